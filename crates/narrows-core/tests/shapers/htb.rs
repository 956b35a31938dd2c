use narrows_core::sched::{Htb, HtbClass, Mode, ShapingError, ShapingFault};
use narrows_core::service::Overhead;
use narrows_core::{Bytes, Duration, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::{History, Wire, leaves, mbit, near, seconds};

fn class(parent: Option<usize>, rate: u64, ceil: u64) -> HtbClass {
    let (burst, quantum) = (Bytes::new(3_000), Bytes::new(1_500));
    HtbClass {
        parent,
        rate: mbit(rate),
        ceil: mbit(ceil),
        burst,
        cburst: burst,
        quantum,
        ..HtbClass::default()
    }
}

fn htb(classes: &[HtbClass]) -> Htb {
    Htb::new(classes.to_vec()).expect("in range")
}

/// Rates of the leaves, in Mbit/s, over ten seconds after the first one, when some of them send all the time.
fn shares(classes: &[HtbClass], sending: &[usize]) -> Vec<f64> {
    let leaves = leaves(classes.iter().map(|class| class.parent)).len();
    let mut wire = Wire::new(htb(classes), leaves, Rate::UNLIMITED);
    wire.saturate(seconds(11), sending, 1_000);
    (0..leaves).map(|leaf| wire.rate_of(leaf, seconds(1), seconds(11)) / 1e6).collect()
}

/// Figure 2.8 of Moe, 2013: A of 10 Mbit/s; below it B of 6 and the leaf C of 4; below B the leaves D of 2 and E of 4;
/// all with a ceiling of 10.
const FIGURE: [(Option<usize>, u64); 5] =
    [(None, 10), (Some(0), 6), (Some(0), 4), (Some(1), 2), (Some(1), 4)];
const A: usize = 0;
const B: usize = 1;
/// The leaves' flows.
const C: usize = 0;
const D: usize = 1;
const E: usize = 2;

fn figure() -> Vec<HtbClass> {
    FIGURE.map(|(parent, rate)| class(parent, rate, 10)).to_vec()
}

/// The text of Moe, 2013, on figure 2.8: each has its assured rate when all send; B and C borrow from A, B lends to D and E.
#[test]
fn the_tree_of_figure_2_8_shares_as_its_text_says() {
    let close = |found: Vec<f64>, expected: [f64; 3]| {
        for (found, expected) in found.into_iter().zip(expected) {
            if expected == 0.0 {
                assert_eq!(found, 0.0);
            } else {
                near(found, expected, 0.01);
            }
        }
    };
    close(shares(&figure(), &[C, D, E]), [4.0, 2.0, 4.0]);
    // Alone, each borrows all there is.
    close(shares(&figure(), &[C]), [10.0, 0.0, 0.0]);
    close(shares(&figure(), &[D]), [0.0, 10.0, 0.0]);
    // What C leaves goes to B, and from there to D and E, by turns of equal quanta: 2 + 2, 4 + 2.
    close(shares(&figure(), &[D, E]), [0.0, 4.0, 6.0]);
    // What E leaves is lent by B, so D has it: B's 6 are D's before anybody borrows from A.
    close(shares(&figure(), &[C, D]), [4.0, 6.0, 0.0]);
}

/// Figure 2.9: C and E are over their rates, B is over its ceiling: "it is only possible for C and D to dequeue". All bursts
/// but that of B's ceiling are large enough for this, and that is none.
#[test]
fn the_modes_of_figure_2_9_let_c_and_d_send() {
    let mut classes = figure();
    classes[A].burst = Bytes::new(100_000);
    for class in &mut classes {
        class.cburst = Bytes::new(100_000);
    }
    classes[B].cburst = Bytes::new(0);
    let mut wire = Wire::new(htb(&classes), 3, Rate::UNLIMITED);
    for _ in 0..5 {
        wire.arrive(C, 1_000);
        wire.arrive(E, 1_000);
    }
    wire.run(Time::from_nanos(1), |_| {});
    let modes = |wire: &Wire<Htb>| wire.states().iter().map(|state| state.mode).collect::<Vec<_>>();
    let (green, yellow, red) = (Mode::MaySend, Mode::MayBorrow, Mode::CannotSend);
    // Four packets of each are its burst, the last of them on credit; C's fifth is A's, E's waits, because B may not lend.
    assert_eq!(modes(&wire), [green, red, yellow, green, yellow]);
    assert_eq!((wire.waiting(C), wire.waiting(E)), (0, 1));
    for leaf in [C, D, E] {
        wire.arrive(leaf, 1_000);
    }
    let before = wire.sent.len();
    wire.run(Time::from_nanos(2), |_| {});
    let sent: Vec<usize> = wire.sent[before..].iter().map(|&(_, leaf, _)| leaf).collect();
    assert_eq!(sent, [D, C], "a green leaf before one that borrows, and E waits");
    let states = wire.states();
    assert_eq!((states[A].lent, states[2].borrowed, states[4].borrowed), (2, 2, 0));
}

/// Rates that add up to the parent's: each has its own within 1 %, whatever the lengths of the others' packets; nobody
/// exceeds its ceiling by more than its burst and a packet.
#[test]
fn guarantees_and_ceilings_hold() {
    let rates = [1, 2, 5, 12, 30];
    let mut classes = vec![class(None, 50, 50)];
    classes.extend(rates.map(|rate| class(Some(0), rate, rate + 2)));
    let mut wire = Wire::new(htb(&classes), 5, mbit(50));
    let lengths = [1_500, 100, 700, 64, 1_000];
    wire.run(seconds(11), |wire| {
        for (leaf, length) in lengths.into_iter().enumerate() {
            while wire.waiting(leaf) < 4 {
                wire.arrive(leaf, length);
            }
        }
    });
    for (leaf, rate) in rates.into_iter().enumerate() {
        near(wire.rate_of(leaf, seconds(1), seconds(11)), rate as f64 * 1e6, 0.01);
        let allowed = f64::from(8 * (3_000 + lengths[leaf])) + 1.0;
        let burst = wire.burst(&[leaf], mbit(rate + 2));
        assert!(burst <= allowed, "leaf {leaf}: {burst} bits beyond its ceiling");
    }
    // The leaves may have been green at once: then their bursts pass the parent's ceiling.
    let burst = wire.burst(&[0, 1, 2, 3, 4], mbit(50));
    assert!(burst <= 8.0 * (5.0 * 3_000.0 + f64::from(lengths.iter().sum::<u32>())) + 1.0);
}

/// Excess goes by quanta among equals: 1 : 2 : 4, and that of one with a quantum below its packets, too.
#[test]
fn excess_is_shared_by_quanta() {
    for quanta in [[1_500, 3_000, 6_000], [250, 500, 1_000]] {
        let mut classes = vec![class(None, 100, 100)];
        for quantum in quanta {
            let quantum = Bytes::new(quantum);
            classes.push(HtbClass { quantum, ..class(Some(0), 1, 100) });
        }
        let found = shares(&classes, &[0, 1, 2]);
        let excess: Vec<f64> = found.iter().map(|rate| rate - 1.0).collect();
        near(excess.iter().sum(), 97.0, 0.01);
        for (excess, part) in excess.into_iter().zip([1.0, 2.0, 4.0]) {
            near(excess, 97.0 * part / 7.0, 0.02);
        }
    }
}

/// Excess goes by priority first: the lower number has all of it, up to its ceiling; the assured rates of the others stay.
#[test]
fn excess_goes_by_priority_first() {
    let mut classes = vec![class(None, 20, 20)];
    for (priority, ceil) in [(1, 20), (0, 12), (2, 20)] {
        classes.push(HtbClass { priority, ..class(Some(0), 2, ceil) });
    }
    let found = shares(&classes, &[0, 1, 2]);
    for (found, expected) in found.into_iter().zip([6.0, 12.0, 2.0]) {
        near(found, expected, 0.01);
    }
}

/// A level lends before the one above it: D and E, below B, have B's rate between them before B borrows from A.
#[test]
fn who_has_a_lower_lender_goes_first() {
    // C may borrow from A only; B has 7 to lend beyond the 1 and 1 of D and E.
    let classes = [
        class(None, 20, 20),
        class(Some(0), 9, 9),
        class(Some(0), 1, 20),
        class(Some(1), 1, 9),
        class(Some(1), 1, 9),
    ];
    let found = shares(&classes, &[C, D, E]);
    for (found, expected) in found.into_iter().zip([11.0, 4.5, 4.5]) {
        near(found, expected, 0.01);
    }
}

/// As in the kernel: the ceiling is what counts, alone and beside a class that borrows the rest.
#[test]
fn a_ceiling_below_the_rate_limits_a_class() {
    near(shares(&[class(None, 4, 1)], &[0])[0], 1.0, 0.01);
    let tree = [class(None, 10, 10), class(Some(0), 4, 1), class(Some(0), 4, 10)];
    let found = shares(&tree, &[0, 1]);
    near(found[0], 1.0, 0.01);
    near(found[1], 9.0, 0.01);
}

#[test]
fn what_cannot_be_is_refused() {
    let fault = |classes: &[HtbClass]| {
        Htb::new(classes.to_vec()).err().map(|ShapingError { class, fault }| (class, fault))
    };
    assert_eq!(fault(&[]), Some((None, ShapingFault::NoClasses)));
    let good = class(None, 2, 2);
    let below = |parent| HtbClass { parent: Some(parent), ..good };
    assert_eq!(fault(&[good, below(1)]), Some((Some(1), ShapingFault::Parent { found: 1 })));
    assert_eq!(fault(&[good, below(7)]), Some((Some(1), ShapingFault::Parent { found: 7 })));
    let chain: Vec<HtbClass> = (0..9).map(|n: usize| HtbClass { parent: n.checked_sub(1), ..good }).collect();
    assert_eq!(fault(&chain[..8]), None);
    assert_eq!(fault(&chain), Some((Some(8), ShapingFault::TooDeep { most: Htb::DEPTH })));
    let priority = ShapingFault::Priority { found: 8, least: 0, most: 7 };
    assert_eq!(fault(&[good, HtbClass { priority: 8, ..good }]), Some((Some(1), priority)));
    let quantum = Bytes::new(0);
    assert_eq!(fault(&[HtbClass { quantum, ..good }]), Some((Some(0), ShapingFault::NoQuantum)));
    assert_eq!(fault(&[HtbClass { rate: Rate::DOWN, ..good }]), Some((Some(0), ShapingFault::NoRate)));
    let text = Htb::new(vec![good, below(7)]).expect_err("no such parent").to_string();
    assert_eq!(text, "class 1: its parent is class 7, which does not come before it");
}

/// A tree's buckets by all that was ever paid from them, and who may send.
struct Slow {
    classes: Vec<HtbClass>,
    leaves: Vec<usize>,
    buckets: Vec<(History, History)>,
}

impl Slow {
    fn new(classes: &[HtbClass]) -> Self {
        let buckets = classes.iter().map(|class| {
            (History::new(class.rate, class.burst.get()), History::new(class.ceil, class.cburst.get()))
        });
        Self {
            leaves: leaves(classes.iter().map(|class| class.parent)),
            buckets: buckets.collect(),
            classes: classes.to_vec(),
        }
    }

    /// How many classes are above a class.
    fn depth(&self, class: usize) -> usize {
        self.classes[class].parent.map_or(0, |parent| 1 + self.depth(parent))
    }

    /// The class that lends to a leaf, if one does.
    fn lender(&self, leaf: usize, at: Time) -> Option<usize> {
        let mut class = self.leaves[leaf];
        loop {
            let (own, ceiling) = &self.buckets[class];
            if ceiling.tokens(at) < 0 {
                return None;
            }
            if own.tokens(at) >= 0 {
                return Some(class);
            }
            class = self.classes[class].parent?;
        }
    }

    /// The rank of a leaf that may send: green leaves first, then by the depth of the lender, then by priority.
    fn rank(&self, leaf: usize, at: Time) -> Option<(usize, u8)> {
        let lender = self.lender(leaf, at)?;
        let own = self.leaves[leaf];
        let level = if lender == own { 0 } else { 8 - self.depth(lender) };
        Some((level, self.classes[own].priority))
    }

    fn send(&mut self, leaf: usize, at: Time, length: u32) {
        let lender = self.lender(leaf, at).expect("it may send");
        let (mut next, mut borrows) = (Some(self.leaves[leaf]), true);
        while let Some(class) = next {
            let (own, ceiling) = &mut self.buckets[class];
            borrows &= class != lender;
            if !borrows {
                own.pay(at, length.into());
            }
            ceiling.pay(at, length.into());
            next = self.classes[class].parent;
        }
    }
}

fn trees() -> impl Strategy<Value = Vec<HtbClass>> {
    let one = (any::<prop::sample::Index>(), 1u64..20, 0u64..20, 0u64..4_000, 0u64..4_000, 0u8..3);
    vec(one, 1..9).prop_map(|classes| {
        let mut made: Vec<HtbClass> = vec![class(None, 20, 20)];
        for (parent, rate, more, burst, cburst, priority) in classes {
            made.push(HtbClass {
                parent: Some(parent.index(made.len())),
                burst: Bytes::new(burst),
                cburst: Bytes::new(cburst),
                priority,
                ..class(None, rate, rate + more)
            });
        }
        made
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// At every packet: who goes may, and of those in which something waits none that may stands before it; when nobody goes,
    /// nobody might, now or at the last nanosecond before the instant that is named. Modes and counters agree.
    #[test]
    fn the_slow_model_agrees_on_who_may_send(
        classes in trees(),
        packets in vec((any::<prop::sample::Index>(), 0u64..400_000, 40u32..1_500), 1..120),
        wire_rate in prop_oneof![Just(Rate::UNLIMITED), Just(mbit(15))],
    ) {
        let mut slow = Slow::new(&classes);
        let leaves = slow.leaves.len();
        let mut wire = Wire::new(htb(&classes), leaves, wire_rate);
        let mut check = |wire: &mut Wire<Htb>, seen: &mut (usize, usize), waiting: &mut Vec<u32>| {
            let sent: Vec<_> = wire.sent[seen.0..].to_vec();
            let waits: Vec<_> = wire.waits[seen.1..].to_vec();
            (seen.0, seen.1) = (wire.sent.len(), wire.waits.len());
            for &(at, leaf, length) in &sent {
                let rank = slow.rank(leaf, at);
                let rivals = (0..leaves).filter(|&rival| waiting[rival] > 0);
                let best = rivals.filter_map(|rival| slow.rank(rival, at)).min();
                assert!(rank.is_some() && rank == best, "leaf {leaf} at {at}: {rank:?}, the best is {best:?}");
                slow.send(leaf, at, length);
                waiting[leaf] -= 1;
            }
            for &(since, until) in &waits {
                for at in [since, Time::from_nanos(until.nanos() - 1)] {
                    // Another packet may have come meanwhile, but then it was asked again.
                    let may = (0..leaves).find(|&leaf| waiting[leaf] > 0 && slow.rank(leaf, at).is_some());
                    assert_eq!(may, None, "nobody sends at {since} until {until}");
                }
            }
            for (class, state) in wire.states().into_iter().enumerate() {
                let (own, ceiling) = &slow.buckets[class];
                let mode = match (ceiling.tokens(wire.now) < 0, own.tokens(wire.now) < 0) {
                    (true, _) => Mode::CannotSend,
                    (false, true) => Mode::MayBorrow,
                    (false, false) => Mode::MaySend,
                };
                assert_eq!(state.mode, mode);
            }
        };
        let (mut seen, mut waiting) = ((0, 0), vec![0u32; leaves]);
        let mut at = Time::ZERO;
        for (leaf, gap, length) in packets {
            at = at + Duration::from_nanos(gap);
            // One step at a time, so that what waits is known at each.
            while wire.now < at {
                wire.step(at);
                check(&mut wire, &mut seen, &mut waiting);
            }
            let leaf = leaf.index(leaves);
            wire.arrive(leaf, length);
            waiting[leaf] += 1;
        }
        let total: u32 = waiting.iter().sum();
        let before = wire.sent.len();
        while wire.now < seconds(100) {
            wire.step(seconds(100));
            check(&mut wire, &mut seen, &mut waiting);
        }
        prop_assert_eq!(wire.sent.len() - before, total as usize, "everything goes in the end");
        let states = wire.states();
        for (leaf, &class) in slow.leaves.iter().enumerate() {
            let sent = wire.sent.iter().filter(|&&(_, by, _)| by == leaf).count() as u64;
            prop_assert_eq!(states[class].sent.packets, sent);
            prop_assert_eq!(states[class].lent + states[class].borrowed, sent);
        }
        prop_assert_eq!(states[0].sent.packets, wire.sent.len() as u64);
    }
}

/// A class may count more bytes for a packet than the link does: packets of 1000 bytes cost 1250 there.
#[test]
fn a_class_may_have_an_overhead_of_its_own() {
    let own = |extra| Some(Overhead { extra, ..Overhead::IP });
    let plain = class(None, 8, 8);
    for (parent, leaf, expected) in [(None, None, 8.0), (own(250), None, 6.4), (None, own(1000), 4.0)] {
        let classes =
            [HtbClass { overhead: parent, ..plain }, HtbClass { overhead: leaf, ..class(Some(0), 1, 8) }];
        near(shares(&classes, &[0])[0], expected, 0.01);
    }
}
