use super::*;
use crate::aqm::harness::{Fate, Managed};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use proptest::prelude::*;

/// RFC 8033, appendix A, with B's de-randomization and cap of steps, and an update at each of its instants, the delay being the age of the packet at the head.
struct Model {
    config: PieConfig,
    packets: VecDeque<(u64, u64, u32)>,
    now: u64,
    next_update: u64,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: u64,
    burst_allowance: u64,
    updates: u64,
}

impl Model {
    fn new(config: PieConfig) -> Self {
        Self {
            config,
            packets: VecDeque::new(),
            now: 0,
            next_update: config.update.nanos(),
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: 0,
            burst_allowance: config.burst.nanos(),
            updates: 0,
        }
    }

    fn current_qdelay(&self) -> u64 {
        self.packets.front().map_or(0, |&(_, at, _)| self.now - at)
    }

    fn run_to(&mut self, now: u64) {
        while self.next_update <= now {
            self.now = self.next_update;
            self.next_update += self.config.update.nanos();
            self.calculate_drop_prob();
        }
        self.now = now;
    }

    fn calculate_drop_prob(&mut self) {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let current = self.current_qdelay();
        let mut p = self.config.alpha * (seconds(current) - seconds(self.config.target.nanos()))
            + self.config.beta * (seconds(current) - seconds(self.qdelay_old));
        for (below, divisor) in
            [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)]
        {
            if self.drop_prob < below {
                p /= divisor;
                break;
            }
        }
        if self.config.cap_drop && self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        if let Some(long) = self.config.high_delay_boost
            && current > long.nanos()
        {
            p += 0.02;
        }
        self.drop_prob += p;
        if current == 0 && self.qdelay_old == 0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = current;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.config.update.nanos());
        self.updates += 1;
    }

    fn drop_early(&mut self, u: f64) -> bool {
        let qdelay_ref = self.config.target.nanos();
        let bytes: u64 = self.packets.iter().map(|&(_, _, length)| u64::from(length)).sum();
        if 2 * self.qdelay_old < qdelay_ref && self.drop_prob < 0.2
            || bytes <= 2 * self.config.mean_packet.get()
        {
            return false;
        }
        if self.config.derandomize {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        u < self.drop_prob
    }

    fn enqueue(&mut self, now: u64, number: u64, length: u32, capable: bool, u: f64) -> Judgement {
        self.run_to(now);
        let short = |delay: u64| 2 * delay < self.config.target.nanos();
        if self.drop_prob == 0.0 && short(self.current_qdelay()) && short(self.qdelay_old) {
            self.burst_allowance = self.config.burst.nanos();
        }
        let judgement = if self.burst_allowance > 0 || !self.drop_early(u) {
            Judgement::Pass
        } else if self.config.ecn && capable && self.drop_prob < 0.1 {
            Judgement::Mark
        } else {
            Judgement::Drop
        };
        if judgement != Judgement::Pass {
            self.accu_prob = 0.0;
        }
        if judgement != Judgement::Drop {
            self.packets.push_back((number, now, length));
        }
        judgement
    }

    fn dequeue(&mut self, now: u64) -> Option<u64> {
        self.run_to(now);
        self.packets.pop_front().map(|(number, ..)| number)
    }
}

/// A step of the wire or of a source, so many microseconds after the one before.
#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(u64, u32, bool),
    Depart(u64),
    Silence(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let stretch = (1u32..12, 1u64..3_000, 10usize..500, 0u64..400_000);
    let stretch = stretch.prop_flat_map(|(arrivals, gap, steps, silence)| {
        let arrive = (0..gap, 40u32..1600, any::<bool>()).prop_map(|(g, l, c)| Step::Arrive(g, l, c));
        let depart = (0..gap).prop_map(Step::Depart);
        let busy = proptest::collection::vec(prop_oneof![arrivals => arrive, 5 => depart], steps);
        busy.prop_map(move |mut steps| {
            steps.push(Step::Silence(silence));
            steps
        })
    });
    proptest::collection::vec(stretch, 1..8).prop_map(|stretches| stretches.concat())
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    dropped: usize,
    marked: usize,
    most: f64,
}

fn compare(steps: &[Step], config: PieConfig) -> Seen {
    let mut tested = Managed::new(Pie::new(config));
    tested
        .policy
        .set_wire(Time::ZERO, Wire { rate: crate::Rate::UNLIMITED, overhead: crate::service::Overhead::IP });
    let mut model = Model::new(config);
    let (mut now, mut arrived, mut seen) = (0, 0, Seen::default());
    for &step in steps {
        match step {
            Step::Silence(gap) => {
                now += gap * 1_000;
                continue;
            }
            Step::Arrive(gap, length, capable) => {
                now += gap * 1_000;
                let judgement = tested.enqueue(Time::from_nanos(now), length, if capable { 1 } else { 0 });
                assert_eq!(
                    judgement,
                    model.enqueue(now, arrived, length, capable, tested.uniform),
                    "at {now}"
                );
                arrived += 1;
                seen.dropped += usize::from(judgement == Judgement::Drop);
                seen.marked += usize::from(judgement == Judgement::Mark);
            }
            Step::Depart(gap) => {
                now += gap * 1_000;
                let empty = tested.waiting().oldest.is_none();
                let fates = tested.dequeue(Time::from_nanos(now));
                if empty {
                    // The policy is not asked, and the updates are made up for later.
                    assert_eq!(fates, []);
                    continue;
                }
                let sent = model.dequeue(now).expect("both have the same packets");
                assert_eq!(fates, [Fate::Sent(sent, false)]);
            }
        }
        let pie = &tested.policy;
        assert_eq!(pie.probability.to_bits(), model.drop_prob.to_bits(), "at {now}");
        let accumulated = f64::from(pie.accumulated) / UNITS_OF_ONE;
        assert!((accumulated - model.accu_prob).abs() < 1e-5, "{accumulated}, {} at {now}", model.accu_prob);
        assert_eq!(
            (pie.old_delay.nanos(), pie.burst_left().nanos(), pie.updates),
            (model.qdelay_old, model.burst_allowance, model.updates)
        );
        seen.most = seen.most.max(pie.probability);
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every verdict and every variable to the last bit, though updates are made up for in leaps.
    #[test]
    fn it_is_the_pseudocode_of_the_rfc(
        steps in steps(),
        update in 1u64..20,
        target in 1u64..30,
        burst in 0u64..200,
        ecn in any::<bool>(),
        derandomize in any::<bool>(),
        cap_drop in any::<bool>(),
        high_delay_boost in proptest::option::of(1u64..100),
    ) {
        let config = PieConfig {
            update: Duration::from_millis(update),
            target: Duration::from_millis(target),
            burst: Duration::from_millis(burst),
            ecn,
            derandomize,
            cap_drop,
            high_delay_boost: high_delay_boost.map(Duration::from_millis),
            ..PieConfig::default()
        };
        compare(&steps, config);
    }
}

/// One long overload, a stall in which p runs up to 1, and silence in which it falls to 0; and the comparison is not about
/// nothing.
#[test]
fn a_long_overload_and_a_stall_go_as_the_pseudocode_does() {
    // 34 packets come for 33 that go.
    let busy = |i: u64| match i % 67 % 2 {
        0 => Step::Arrive(500, 1000, i.is_multiple_of(3)),
        _ => Step::Depart(500),
    };
    let flood = (0..60).map(|_| Step::Arrive(10, 1000, true));
    let steps: Vec<_> = (0..20_000)
        .map(busy)
        .chain(flood.clone())
        .chain([Step::Silence(60_000_000)])
        .chain(flood.clone())
        .chain((0..20_000).map(|_| Step::Depart(0)))
        .chain([Step::Silence(100_000_000)])
        .chain(flood)
        .chain(
            (0..4_000_u64)
                .map(|i| if i.is_multiple_of(3) { Step::Depart(800) } else { Step::Arrive(300, 1000, true) }),
        )
        .collect();
    let basic = PieConfig::default();
    let steep = Some(Duration::from_millis(250));
    let refined = PieConfig { derandomize: true, cap_drop: true, high_delay_boost: steep, ..basic };
    let [seen, of_refined] = [basic, refined].map(|config| compare(&steps, config));
    for seen in [&seen, &of_refined] {
        assert!(seen.dropped > 100 && seen.marked > 50 && seen.most == 1.0, "{seen:?}");
    }
    assert_ne!(seen, of_refined);
}

/// RFC 8033, 5.4: with p fixed, drops are at least 0.85/p packets apart and at most 8.5/p, and at a mean distance that the
/// two stretches give: 0.85/p − 1 packets are spared, and of those after them each is dropped with p, up to the last.
#[test]
fn drops_come_at_even_distances() {
    const P: f64 = 1.0 / 16.0;
    const DROPS: u32 = 20_000;
    let mut random = crate::random::Stream::new(crate::Seed(1), "pie", "even distances").nth(0);
    let mut distances = Vec::new();
    let mut pie = Pie { probability: P, ..Pie::new(PieConfig { derandomize: true, ..PieConfig::default() }) };
    let mut distance = 0;
    while distances.len() < DROPS as usize {
        distance += 1;
        if !pie.lets_in(pie.probability, random.uniform()) {
            distances.push(core::mem::take(&mut distance));
        }
    }
    assert!(distances.iter().all(|distance| (14..=136).contains(distance)));
    // The 14th packet is the first that brings the sum to 0.85, and the 136th brings it to 8.5.
    let mean = distances.iter().sum::<u32>() as f64 / f64::from(DROPS);
    let expected = 13.0 + (1.0 - libm::pow(1.0 - P, 123.0)) / P;
    let deviation = (1.0 - P).sqrt() / P / f64::from(DROPS).sqrt();
    assert!((mean - expected).abs() < 4.0 * deviation, "{mean}, expected {expected} ± {deviation}");
}

/// 5.5: from a probability of 10 % on, no update adds more than 2 %, save at long delays where that is asked for.
#[test]
fn steps_are_bounded() {
    let config = PieConfig { cap_drop: true, ..PieConfig::default() };
    let step = |config, probability| {
        let mut pie = Pie { probability, ..Pie::new(config) };
        pie.update(Duration::from_millis(300));
        pie.probability - probability
    };
    // 0.125·0.285 + 1.25·0.3 = 0.410625, half of it below 0.1.
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(near(step(PieConfig::default(), 0.2), 0.410_625) && near(step(config, 0.2), 0.02));
    assert!(near(step(config, 0.099), 0.205_312_5), "below 10 % it is not bounded");
    let steep = PieConfig { high_delay_boost: Some(Duration::from_millis(250)), ..config };
    assert!(near(step(steep, 0.2), 0.04));
    let longer = PieConfig { high_delay_boost: Some(Duration::from_millis(300)), ..steep };
    assert!(near(step(longer, 0.2), 0.02));
}

proptest! {
    /// All at once is the same as one by one, also where the first packet came in the middle of what was missed, as when a
    /// queue is handed over.
    #[test]
    fn updates_made_up_for_are_those_missed(
        probability in prop_oneof![Just(0.0), Just(1.0), 0.0..1.0],
        old_delay in prop_oneof![Just(0), 0u64..100_000_000],
        oldest in proptest::option::of(0u64..3_000_000_000),
        end in 0u64..3_000_000_000,
    ) {
        let (oldest, old_delay) = (oldest.map(Time::from_nanos), Duration::from_nanos(old_delay));
        let mut at_once = Pie { probability, old_delay, updates: 0, ..Pie::new(PieConfig::default()) };
        let mut one_by_one = at_once.clone();
        let end = Time::from_nanos(end);
        at_once.catch_up(end, oldest);
        for number in 1..=one_by_one.number(end) {
            let at = Time::from_nanos(number * 15_000_000);
            one_by_one.updates += 1;
            one_by_one.update(oldest.map_or(Duration::ZERO, |oldest| at.since(oldest)));
        }
        prop_assert_eq!(at_once.probability.to_bits(), one_by_one.probability.to_bits());
        prop_assert_eq!(
            (at_once.old_delay, at_once.since_grant, at_once.updates),
            (one_by_one.old_delay, one_by_one.since_grant, one_by_one.updates)
        );
    }
}

/// A hundred years of silence, and as long without a departure, take no longer than a moment to make up for.
#[test]
fn what_was_missed_is_made_up_for_in_bounded_time() {
    let century = Duration::from_secs(100 * 365 * 86_400);
    for config in [
        PieConfig::default(),
        PieConfig { alpha: *PieConfig::ALPHA.start(), beta: 0.0, cap_drop: true, ..PieConfig::default() },
    ] {
        let mut pie = Pie { probability: 1.0, ..Pie::new(config) };
        pie.begin(Time::ZERO);
        let silence = Time::ZERO + century;
        pie.catch_up(silence, None);
        assert_eq!((pie.updates, pie.old_delay), (pie.number(silence), Duration::ZERO));
        assert!(pie.probability < 1e-300, "{}", pie.probability);
        let stall = silence + century;
        pie.catch_up(stall, Some(silence));
        assert_eq!((pie.probability, pie.updates), (1.0, pie.number(stall)));
        assert_eq!(pie.old_delay, Time::from_nanos(pie.updates * pie.period().nanos()).since(silence));
    }
}

#[test]
fn a_queue_has_40_bytes_of_its_own() {
    assert_eq!(size_of::<Pie>(), 40);
}

/// Packets of a quarter of the mean are dropped with a quarter of the probability; longer ones with all of it.
#[test]
fn in_byte_mode_short_packets_are_dropped_less() {
    let config = PieConfig { byte_mode: true, mean_packet: Bytes::new(1000), ..PieConfig::default() };
    let mut pie = Pie::new(config);
    pie.probability = 0.4;
    assert_eq!([250, 1000, 1500].map(|length| pie.probability_of(length)), [0.1, 0.4, 0.4]);
    assert!(!pie.lets_in(0.1, 0.09) && pie.lets_in(0.1, 0.11));
}
