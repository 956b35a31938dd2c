use narrows_core::sched::{Cbq, CbqClass, Mode, ShapingError, ShapingFault};
use narrows_core::{Bytes, Duration, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::{Wire, leaves, mbit, seconds};

const BANDWIDTH: Rate = mbit(10);

fn class(parent: Option<usize>, kbit: u64) -> CbqClass {
    let rate = Rate::from_bits_per_second(kbit * 1_000);
    CbqClass { parent, rate, maxburst: 20, ..CbqClass::default() }
}

fn cbq(classes: &[CbqClass]) -> Cbq {
    Cbq::new(BANDWIDTH, Bytes::new(1_000), classes.to_vec()).expect("in range")
}

/// Rates of the leaves, in Mbit/s, over twenty seconds after the first ten, when some of them send all the time at 10 Mbit/s.
fn shares(classes: &[CbqClass], sending: &[usize]) -> Vec<f64> {
    let leaves = leaves(classes.iter().map(|class| class.parent)).len();
    let mut wire = Wire::new(cbq(classes), leaves, BANDWIDTH);
    wire.saturate(seconds(30), sending, 1_000);
    (0..leaves).map(|leaf| wire.rate_of(leaf, seconds(10), seconds(30)) / 1e6).collect()
}

/// No more than 1 % below what is expected; and no more than W above it: the average of the idle time is a little below
/// zero when a class sends as soon as it may, so that the method gives it that much more.
#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (&found, &expected) in found.iter().zip(expected) {
        if expected == 0.0 {
            assert_eq!(found, 0.0);
        } else {
            assert!((0.99..=1.0 + W).contains(&(found / expected)), "{found} for {expected}");
        }
    }
}

/// A tree as figure 3.3 of Lamminen, 2007, has it, with numbers of our own since its text has none: two agencies below the link,
/// with two classes each. All send: each has its allotment.
fn agencies() -> Vec<CbqClass> {
    vec![
        class(None, 6_000),
        class(None, 4_000),
        class(Some(0), 4_000),
        class(Some(0), 2_000),
        class(Some(1), 3_000),
        class(Some(1), 1_000),
    ]
}

#[test]
fn a_tree_gives_each_class_its_allotment() {
    close(&shares(&agencies(), &[0, 1, 2, 3]), &[4.0, 2.0, 3.0, 1.0]);
}

/// Figure 3.4: a class that has run out of its bandwidth uses that of another one as long as that one leaves it. First of its
/// own agency; then of the link.
#[test]
fn unused_bandwidth_is_borrowed_in_the_agency_first() {
    // Class 0 is silent: its 4 go to class 1 of the same agency, and not to the other one.
    close(&shares(&agencies(), &[1, 2, 3]), &[0.0, 6.0, 3.0, 1.0]);
    // The whole first agency is silent: the others share all, by weights 3 : 1.
    close(&shares(&agencies(), &[2, 3]), &[0.0, 0.0, 7.5, 2.5]);
    // Alone, one has all there is.
    close(&shares(&agencies(), &[3]), &[0.0, 0.0, 0.0, 10.0]);
}

#[test]
fn a_bounded_class_never_borrows() {
    let mut classes = agencies();
    classes[3].bounded = true;
    close(&shares(&classes, &[1, 2, 3]), &[0.0, 2.0, 6.0, 2.0]);
    close(&shares(&classes, &[1]), &[0.0, 2.0, 0.0, 0.0]);
    // A bounded agency lends within itself.
    let mut classes = agencies();
    classes[0].bounded = true;
    close(&shares(&classes, &[1]), &[0.0, 6.0, 0.0, 0.0]);
}

/// What an isolated class leaves unused nobody has, even where the link is idle then.
#[test]
fn an_isolated_class_neither_borrows_nor_lends() {
    let mut classes = agencies();
    classes[2].isolated = true;
    close(&shares(&classes, &[1, 2, 3]), &[0.0, 2.0, 3.0, 1.0]);
    close(&shares(&classes, &[0]), &[4.0, 0.0, 0.0, 0.0]);
    close(&shares(&classes, &[0, 1, 2, 3]), &[4.0, 2.0, 3.0, 1.0]);
}

/// An exempt class borrows whatever the others do: with the highest priority it has the link for itself.
#[test]
fn an_exempt_class_always_borrows() {
    let mut classes = vec![class(None, 1_000), class(None, 9_000)];
    close(&shares(&classes, &[0, 1]), &[1.0, 9.0]);
    (classes[0].exempt, classes[0].priority) = (true, 1);
    close(&shares(&classes, &[0, 1]), &[10.0, 0.0]);
    // At the priority of the other one they take turns, by weights of 1 : 1 where these are given.
    (classes[0].priority, classes[0].weight, classes[1].weight) = (8, Some(1), Some(1));
    close(&shares(&classes, &[0, 1]), &[5.0, 5.0]);
}

/// Excess goes by priority first, and in one priority by weights, while allotments stay.
#[test]
fn excess_goes_by_priority_then_by_weight() {
    let mut classes = vec![class(None, 1_000), class(None, 1_000), class(None, 2_000), class(None, 6_000)];
    for (class, weight) in classes.iter_mut().zip([1, 3, 1, 1]) {
        class.weight = Some(weight);
    }
    classes[2].priority = 7;
    // The 6 of the silent class are all the prior one's.
    close(&shares(&classes, &[0, 1, 2]), &[1.0, 1.0, 8.0, 0.0]);
    // Without it 1 : 3 of all.
    close(&shares(&classes, &[0, 1]), &[2.5, 7.5, 0.0, 0.0]);
}

/// A class that had nothing to send for long begins with a burst of `maxburst` packets, more or less; one that is at its limit
/// for long sends `minburst` packets at once, and one more.
#[test]
fn bursts_are_as_asked_for() {
    let bounded = CbqClass { bounded: true, average_packet: Bytes::new(1_000), ..class(None, 1_000) };
    for burst in [5u32, 20, 60] {
        let classes = [CbqClass { maxburst: burst, ..bounded }];
        let mut wire = Wire::new(cbq(&classes), 1, BANDWIDTH);
        wire.arrive(0, 1_000);
        wire.run(seconds(60), |_| {});
        wire.saturate(seconds(61), &[0], 1_000);
        let gap = Duration::from_micros(900);
        let together =
            wire.sent[1..].windows(2).take_while(|pair| pair[1].0.since(pair[0].0) < gap).count() + 1;
        assert!((burst as usize..=burst as usize + 2).contains(&together), "{burst}: {together}");
    }
    for burst in [2u32, 8] {
        let classes = [CbqClass { maxburst: 2 * burst, minburst: burst, ..bounded }];
        let mut wire = Wire::new(cbq(&classes), 1, BANDWIDTH);
        wire.saturate(seconds(40), &[0], 1_000);
        // In a burst the average is above zero, and forgets some of that with each packet: W for each half packet or so.
        let rate = wire.rate_of(0, seconds(10), seconds(40));
        assert!((1.0 - W * 0.5 * f64::from(burst)..=1.001).contains(&(rate / 1e6)), "{burst}: {rate}");
        let starts =
            wire.sent.windows(2).filter(|pair| pair[1].0.since(pair[0].0) > Duration::from_millis(2));
        let mean = wire.sent.len() as f64 / starts.count() as f64;
        assert!((0.0..=1.1).contains(&(mean - f64::from(burst))), "{burst}: {mean}");
    }
}

#[test]
fn states_tell_modes_and_counts() {
    let mut classes = agencies();
    classes[3].bounded = true;
    let mut wire = Wire::new(cbq(&classes), 4, BANDWIDTH);
    wire.saturate(seconds(5), &[1, 2], 1_000);
    let states = wire.states();
    assert_eq!(states[2].mode, Mode::MaySend, "it sent nothing");
    let at_limit = |wire: &Wire<Cbq>| wire.states()[3].mode == Mode::CannotSend;
    let mut often = 0;
    for n in 1..=100 {
        wire.saturate(seconds(5) + Duration::from_micros(7_777 * n), &[1, 2], 1_000);
        often += u32::from(at_limit(&wire));
    }
    assert!(often > 60, "bounded, and at its limit: {often} of 100 times");
    let states = wire.states();
    assert!(states[3].over_limit > 0 && states[3].borrowed == 0);
    assert_eq!(states[3].lent, states[3].sent.packets);
    assert_eq!(states[4].mode, Mode::MayBorrow);
    assert!(states[4].tokens < 0 && states[4].borrowed > states[4].lent);
    let sent = |class: usize| states[class].sent.packets;
    assert_eq!((sent(0), sent(1)), (sent(2) + sent(3), sent(4) + sent(5)));
    assert_eq!(sent(0) + sent(1), wire.sent.len() as u64);
}

#[test]
fn what_cannot_be_is_refused() {
    let fault = |classes: &[CbqClass]| {
        let cbq = Cbq::new(BANDWIDTH, Bytes::new(1_000), classes.to_vec());
        cbq.err().map(|ShapingError { class, fault }| (class, fault))
    };
    let good = class(None, 1_000);
    assert_eq!(fault(&[]), Some((None, ShapingFault::NoClasses)));
    assert_eq!(fault(&[class(Some(0), 1)]), Some((Some(0), ShapingFault::Parent { found: 0 })));
    for (bad, expected) in [
        (CbqClass { rate: Rate::DOWN, ..good }, ShapingFault::NoRate),
        (CbqClass { priority: 0, ..good }, ShapingFault::Priority { found: 0, least: 1, most: 8 }),
        (CbqClass { priority: 9, ..good }, ShapingFault::Priority { found: 9, least: 1, most: 8 }),
        (CbqClass { allot: Bytes::new(0), ..good }, ShapingFault::NoQuantum),
        (CbqClass { average_packet: Bytes::new(0), ..good }, ShapingFault::NoAveragePacket),
        (CbqClass { weight: Some(0), ..good }, ShapingFault::NoWeight),
        (CbqClass { ewma: 32, ..good }, ShapingFault::TimeConstant { found: 32, most: 31 }),
        (CbqClass { bounded: true, exempt: true, ..good }, ShapingFault::BoundedAndExempt),
    ] {
        assert_eq!(fault(&[good, bad]), Some((Some(1), expected)));
    }
    let down = Cbq::new(Rate::DOWN, Bytes::new(1_000), vec![good]);
    assert_eq!(down.err(), Some(ShapingError { class: None, fault: ShapingFault::NoRate }));
}

/// The estimator and the limit in plain floating point, seconds and bits: all classes and the link behind them, and who lends.
struct Slow {
    classes: Vec<CbqClass>,
    leaves: Vec<usize>,
    /// Seconds a bit takes at the rate of each class, what isolated classes have apart.
    bits: Vec<f64>,
    /// Whether it has a limit: the link has one where an isolated class is below it.
    limited: Vec<bool>,
    /// Of each class: average (not divided by W), end of the last packet, end of the limit.
    state: Vec<(f64, Option<f64>, f64)>,
    most: Vec<f64>,
    /// Whether an average came so near to zero that rounding says on which side it is: what follows depends on that.
    doubtful: bool,
}

const W: f64 = 1.0 / 32.0;
/// In seconds: far more than either rounds, a packet's time being of whole 2⁻³² ns a bit.
const DOUBT: f64 = 1e-12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lends {
    /// A class at this level, which is under its limit.
    Level(usize),
    /// Whoever is above an exempt class.
    Always,
}

impl Slow {
    fn new(configs: &[CbqClass]) -> Self {
        let mut classes = configs.to_vec();
        let link = classes.len();
        classes.iter_mut().for_each(|class| class.parent = class.parent.or(Some(link)));
        classes.push(CbqClass { rate: BANDWIDTH, bounded: true, ..CbqClass::default() });
        let mut rates: Vec<u64> = classes.iter().map(|class| class.rate.bits_per_second()).collect();
        let mut limited: Vec<bool> = (0..=link).map(|place| place < link).collect();
        for class in classes.iter().filter(|class| class.isolated) {
            let mut above = class.parent;
            while let Some(parent) = above {
                rates[parent] = rates[parent].saturating_sub(class.rate.bits_per_second());
                limited[parent] = true;
                above = classes[parent].parent.filter(|_| !classes[parent].isolated);
            }
        }
        let most: Vec<f64> = classes
            .iter()
            .map(|class| {
                let (own, wire) = (time(class.rate), time(BANDWIDTH));
                ((own - wire) * (libm::pow(1.0 - W, -f64::from(class.maxburst)) - 1.0)).max(wire * W)
            })
            .collect();
        Self {
            leaves: leaves(configs.iter().map(|class| class.parent)),
            bits: rates
                .iter()
                .map(|&rate| if rate == 0 { HALF_A_MINUTE } else { 1.0 / rate as f64 })
                .collect(),
            limited,
            state: most.iter().map(|&most| (most, None, 0.0)).collect(),
            classes,
            most,
            doubtful: false,
        }
    }

    fn level(&self, class: usize) -> usize {
        let children = (0..self.classes.len()).filter(|&child| self.classes[child].parent == Some(class));
        children.map(|child| self.level(child) + 1).max().unwrap_or(0)
    }

    /// Who lends to a leaf, and how near in time the decision is.
    fn lender(&self, leaf: usize, now: f64) -> (Option<Lends>, f64) {
        let (mut class, mut margin) = (self.leaves[leaf], f64::MAX);
        loop {
            let limit = self.state[class].2;
            if !self.limited[class] {
                return (Some(Lends::Level(self.level(class))), margin);
            }
            margin = margin.min((now - limit).abs());
            if limit <= now {
                return (Some(Lends::Level(self.level(class))), margin);
            }
            let CbqClass { parent, exempt, bounded, isolated, .. } = self.classes[class];
            let Some(parent) = parent else { return (None, margin) };
            if exempt {
                return (Some(Lends::Always), margin);
            }
            if bounded || isolated {
                return (None, margin);
            }
            class = parent;
        }
    }

    fn send(&mut self, leaf: usize, now: f64, length: u32) {
        let bits = f64::from(length) * 8.0;
        let wire = bits / BANDWIDTH.bits_per_second() as f64;
        let end = now + wire;
        let mut next = Some(self.leaves[leaf]);
        while let Some(place) = next {
            let (own, class) = (bits * self.bits[place], &self.classes[place]);
            let (average, ended, limit) = &mut self.state[place];
            *average = match *ended {
                None => self.most[place],
                Some(ended) => (1.0 - W) * *average + W * (end - ended - own),
            };
            let over = *average <= 0.0;
            self.doubtful |= average.abs() < DOUBT;
            if let Some(least) = class.minidle {
                *average = average.max(-W * least.seconds());
            }
            *limit = if over { end + (1.0 - W) / W * -*average + own - wire } else { 0.0 };
            *average = average.min(self.most[place]);
            *ended = Some(end);
            next = class.parent.filter(|_| !class.isolated);
        }
    }

    /// A class to which nobody lends: it sleeps so long that it has a burst then, and its average's part is forgiven.
    fn sleep(&mut self, leaf: usize, now: f64) {
        let place = self.leaves[leaf];
        let class = &self.classes[place];
        let gap = (time(class.rate) - time(BANDWIDTH)).max(0.0);
        let packets = match class.minburst {
            0 => 0.0,
            1 => W / (1.0 - W),
            burst => 1.0 + (libm::pow(1.0 - W, -f64::from(burst - 1)) - 1.0) / W,
        };
        let (average, _, limit) = &mut self.state[place];
        let forgiven = if *average < 0.0 { (1.0 - W) / W * -*average } else { 0.0 };
        *limit = (*limit + gap * packets - forgiven).max(now + 1e-9);
    }
}

/// What a bit takes where nothing is left of a rate: 2³⁵ ns.
const HALF_A_MINUTE: f64 = 34.359_738_368;

/// How long an average packet takes.
fn time(rate: Rate) -> f64 {
    8_000.0 / rate.bits_per_second() as f64
}

fn trees() -> impl Strategy<Value = Vec<CbqClass>> {
    let kind = prop_oneof![
        3 => Just(CbqClass::default()),
        2 => Just(CbqClass { bounded: true, ..CbqClass::default() }),
        1 => Just(CbqClass { isolated: true, ..CbqClass::default() }),
        1 => Just(CbqClass { exempt: true, ..CbqClass::default() }),
    ];
    let minidle = proptest::option::of((0u64..5_000).prop_map(Duration::from_micros));
    let idle = (0u32..20, 0u32..6, minidle);
    let one = (any::<prop::sample::Index>(), 200u64..3_000, kind, 1u8..4, idle);
    vec(one, 2..7).prop_map(|classes| {
        let mut made: Vec<CbqClass> = Vec::new();
        for (parent, kbit, kind, priority, (maxburst, minburst, minidle)) in classes {
            let parent = Some(parent.index(made.len() + 1)).filter(|&parent| parent < made.len());
            let rate = class(parent, kbit).rate;
            made.push(CbqClass { parent, rate, priority, maxburst, minburst, minidle, ..kind });
        }
        made
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// At every packet: who goes has the lowest lender of those in which something waits, and the highest priority of these.
    /// When nobody goes, nobody may, until the instant that is named and no longer. Decisions that hang on less than a
    /// microsecond are not judged, nor is what follows where rounding decides that a class is at its limit.
    #[test]
    fn the_slow_model_agrees_on_who_may_send(
        classes in trees(),
        packets in vec((any::<prop::sample::Index>(), 0u64..1_500_000, 40u32..1_500), 1..200),
    ) {
        let mut slow = Slow::new(&classes);
        let leaves = slow.leaves.len();
        let mut wire = Wire::new(cbq(&classes), leaves, BANDWIDTH);
        let (mut waiting, mut asleep) = (vec![0u32; leaves], vec![false; leaves]);
        let mut judged = 0;
        let mut step = |wire: &mut Wire<Cbq>, until: Time, waiting: &mut Vec<u32>| {
            let (sent, waits, now) = (wire.sent.len(), wire.waits.len(), wire.now);
            let at = now.seconds();
            wire.step(until);
            let candidates: Vec<usize> = (0..leaves).filter(|&leaf| waiting[leaf] > 0).collect();
            let lenders: Vec<_> = candidates.iter().map(|&leaf| slow.lender(leaf, at)).collect();
            let clear = lenders.iter().all(|&(_, margin)| margin > 1e-6);
            for (&leaf, &(lender, _)) in candidates.iter().zip(&lenders) {
                if lender.is_none() && !asleep[leaf] {
                    slow.sleep(leaf, at);
                    asleep[leaf] = true;
                }
            }
            let level = |&(lender, _): &(Option<Lends>, f64)| match lender {
                Some(Lends::Level(level)) => Some(level),
                _ => None,
            };
            let top = lenders.iter().filter_map(level).min().map(Lends::Level);
            let sends = |lender: Option<Lends>| lender.is_some_and(|own| own == Lends::Always || Some(own) == top);
            let may = candidates.iter().zip(&lenders).filter(|&(_, &(lender, _))| sends(lender));
            let best = may.map(|(&leaf, _)| classes[slow.leaves[leaf]].priority).min();
            let goes = wire.sent.get(sent).map(|&(_, leaf, _)| leaf);
            if clear {
                judged += 1;
                assert_eq!(goes.map(|leaf| classes[slow.leaves[leaf]].priority), best, "at {now}");
                if let Some(leaf) = goes {
                    assert!(sends(slow.lender(leaf, at).0), "at {now}");
                }
                if let Some(&(_, then)) = wire.waits[waits..].first() {
                    let may = |at: f64| candidates.iter().any(|&leaf| slow.lender(leaf, at).0.is_some());
                    assert!(then.since(now).seconds() < 2e-6 || !may(then.seconds() - 1e-6), "before {then}");
                    assert!(may(then.seconds() + 1e-6), "at {then}");
                }
            }
            if let Some(&(_, leaf, length)) = wire.sent.get(sent) {
                slow.send(leaf, at, length);
                waiting[leaf] -= 1;
                asleep[leaf] = false;
            }
            slow.doubtful
        };
        let mut at = Time::ZERO;
        for (leaf, gap, length) in packets {
            at = at + Duration::from_nanos(gap);
            while wire.now < at {
                if step(&mut wire, at, &mut waiting) {
                    return Ok(());
                }
            }
            let leaf = leaf.index(leaves);
            wire.arrive(leaf, length);
            waiting[leaf] += 1;
        }
        while waiting.iter().any(|&packets| packets > 0) {
            if step(&mut wire, seconds(1_000), &mut waiting) {
                return Ok(());
            }
        }
        prop_assert!(judged > 0);
    }
}
