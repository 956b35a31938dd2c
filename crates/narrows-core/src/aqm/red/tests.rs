use super::*;
use crate::aqm::harness::Managed;
use crate::random::{Seed, Stream};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use proptest::prelude::*;

const WIRE: Wire = Wire { rate: Rate::from_bits_per_second(8_000_000), overhead: Overhead::IP };

fn red(config: RedConfig) -> Red {
    let mut red = Red::new(config);
    red.set_wire(Time::ZERO, WIRE);
    red
}

#[test]
fn the_curve_is_the_published_one() {
    let gentle = RedConfig { gentle: true, ..RedConfig::default() };
    let bytes = Thresholds::Bytes { min: Bytes::new(5_000), max: Bytes::new(15_000) };
    // (average in packets, p_b, p_b if gentle), by hand: 0.1 at 15, and from there 0.9 more over another 15.
    for (average, plain, gentler) in [
        (0.0, 0.0, 0.0),
        (4.999, 0.0, 0.0),
        (5.0, 0.0, 0.0),
        (7.5, 0.025, 0.025),
        (10.0, 0.05, 0.05),
        (14.0, 0.09, 0.09),
        (15.0, 1.0, 0.1),
        (20.0, 1.0, 0.4),
        (22.5, 1.0, 0.55),
        (29.0, 1.0, 0.94),
        (30.0, 1.0, 1.0),
        (100.0, 1.0, 1.0),
    ] {
        for (config, expected) in [(RedConfig::default(), plain), (gentle, gentler)] {
            assert!((config.probability_at(average) - expected).abs() < 1e-12, "{average}");
            let config = RedConfig { thresholds: bytes, ..config };
            assert!((config.probability_at(average * 1_000.0) - expected).abs() < 1e-12, "{average} kB");
        }
    }
}

/// How many packets there are from one drop to the next, at a fixed average.
fn distances(config: RedConfig, average: f64, length: u32, drops: usize) -> Vec<usize> {
    let stream = Stream::new(Seed(3), "red", "test");
    let mut red = Red { average, ..red(config) };
    let (mut distances, mut since) = (Vec::new(), 0);
    for index in 0.. {
        since += 1;
        if red.decide(length, stream.nth(index).uniform()) {
            distances.push(core::mem::take(&mut since));
        }
        if distances.len() == drops {
            break;
        }
    }
    distances
}

/// Holds the distances to an even distribution over 1 … `most`: of n drops each has n/most, with a standard error of
/// √(n/most·(1 − 1/most)); four and a half of these are exceeded by chance once in 150,000 figures.
fn assert_even(distances: &[usize], most: usize) {
    let share = 1.0 / most as f64;
    let expected = distances.len() as f64 * share;
    let error = libm::sqrt(expected * (1.0 - share));
    for distance in 1..=most {
        let seen = distances.iter().filter(|&&d| d == distance).count() as f64;
        assert!((seen - expected).abs() < 4.5 * error, "{distance}: {seen}, not {expected} ± {error}");
    }
    assert!(distances.iter().all(|&d| (1..=most).contains(&d)));
}

#[test]
fn drops_are_at_even_distances() {
    // The average at 10 packets: p_b = 0.05; at 15 gently: 0.1; at 20 gently: 0.4, not the inverse of a whole number.
    assert_even(&distances(RedConfig::default(), 10.0, 1000, 20_000), 20);
    let gentle = RedConfig { gentle: true, ..RedConfig::default() };
    assert_even(&distances(gentle, 15.0, 1000, 20_000), 10);
    let two_fifths = distances(gentle, 20.0, 1000, 20_000);
    for (distance, share) in [(1, 0.4), (2, 0.4), (3, 0.2)] {
        let seen = two_fifths.iter().filter(|&&d| d == distance).count() as f64;
        let error = libm::sqrt(20_000.0 * share * (1.0 - share));
        assert!((seen - 20_000.0 * share).abs() < 4.5 * error, "{distance}: {seen}");
    }
}

#[test]
fn in_bytes_short_packets_are_dropped_less() {
    let thresholds = Thresholds::Bytes { min: Bytes::new(5_000), max: Bytes::new(15_000) };
    let config = RedConfig { thresholds, ..RedConfig::default() };
    assert_even(&distances(config, 10_000.0, 1500, 20_000), 20);
    assert_even(&distances(config, 10_000.0, 750, 20_000), 40);
    // Not so in Linux.
    let alike = RedConfig { by_length: false, ..config };
    assert_even(&distances(alike, 10_000.0, 750, 20_000), 20);
}

/// Figure 2 of the paper increments a count that the last drop set to 0, so it never has the longest distance.
#[test]
fn the_papers_listing_is_off_by_one() {
    let stream = Stream::new(Seed(4), "red", "test");
    let base = 0.1;
    let (mut count, mut since, mut distances) = (0.0, 0, Vec::new());
    for index in 0..100_000 {
        (count, since) = (count + 1.0, since + 1);
        let left: f64 = 1.0 - count * base;
        if left <= base || stream.nth(index).uniform() < base / left {
            count = 0.0;
            distances.push(core::mem::take(&mut since));
        }
    }
    assert_even(&distances, 9);
}

/// The paper's algorithm, with the count as derived in its section 7.
struct Model {
    config: RedConfig,
    packets: VecDeque<u32>,
    avg: f64,
    q_time: Option<u64>,
    count: u64,
}

impl Model {
    fn arrive(&mut self, now: u64, length: u32, u: f64) -> bool {
        let (w, bytes) = (self.config.weight, matches!(self.config.thresholds, Thresholds::Bytes { .. }));
        match self.q_time {
            Some(since) if self.packets.is_empty() => {
                // A typical packet of 512 bytes takes 512 µs on this wire.
                let m = (now - since) as f64 / 512_000.0;
                self.avg *= libm::exp(m * libm::log1p(-w));
            }
            _ => {
                let q = if bytes { self.packets.iter().sum() } else { self.packets.len() as u32 };
                self.avg = (1.0 - w) * self.avg + w * f64::from(q);
            }
        }
        let (min, max) = self.config.thresholds.range();
        let most = self.config.probability.as_f64();
        let dropped = if self.avg < min {
            self.count = 0;
            false
        } else {
            let gentle = self.config.gentle && self.avg < 2.0 * max;
            let mut p_b = if self.avg < max {
                most * (self.avg - min) / (max - min)
            } else {
                most + (1.0 - most) * (self.avg - max) / max
            };
            if bytes {
                p_b = p_b * f64::from(length) / 1500.0;
            }
            let hard = self.avg >= max && !gentle;
            let p_a = p_b / (1.0 - self.count as f64 * p_b);
            let dropped = hard || !(0.0..1.0).contains(&p_a) || u < p_a;
            self.count = if dropped || p_b == 0.0 { 0 } else { self.count + 1 };
            dropped
        };
        if !dropped {
            self.packets.push_back(length);
        }
        self.q_time = (dropped && self.packets.is_empty()).then_some(now);
        dropped
    }

    fn depart(&mut self, now: u64) {
        if self.packets.pop_front().is_some() && self.packets.is_empty() {
            self.q_time = Some(now);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(u64, u32),
    Depart(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let stretch = (1u32..12, 1u64..5_000, 10usize..400).prop_flat_map(|(arrivals, gap, steps)| {
        let arrive = (0..gap, 40u32..1600).prop_map(|(gap, length)| Step::Arrive(gap, length));
        let depart = (0..gap).prop_map(Step::Depart);
        proptest::collection::vec(prop_oneof![arrivals => arrive, 5 => depart], steps)
    });
    proptest::collection::vec(stretch, 1..8).prop_map(|stretches| stretches.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn it_is_the_papers_algorithm(
        steps in steps(),
        weight in 0.002f64..0.5,
        gentle in any::<bool>(),
        in_bytes in any::<bool>(),
    ) {
        let thresholds = match in_bytes {
            true => Thresholds::Bytes { min: Bytes::new(2_000), max: Bytes::new(8_000) },
            false => Thresholds::Packets { min: 2, max: 8 },
        };
        let config = RedConfig { thresholds, weight, gentle, ecn: false, ..RedConfig::default() };
        let mut tested = Managed::new(red(config));
        let mut model = Model { config, packets: VecDeque::new(), avg: 0.0, q_time: None, count: 0 };
        let mut now = 0;
        for step in steps {
            match step {
                Step::Arrive(gap, length) => {
                    now += gap * 1_000;
                    let dropped = tested.enqueue(Time::from_nanos(now), length, 0) == Judgement::Drop;
                    prop_assert_eq!(dropped, model.arrive(now, length, tested.uniform), "at {}", now);
                    prop_assert_eq!(tested.policy.count, model.count);
                }
                Step::Depart(gap) => {
                    now += gap * 1_000;
                    tested.dequeue(Time::from_nanos(now));
                    model.depart(now);
                }
            }
            // Two ways to write the same sum: rounding differs by some 2⁻⁵³ a step.
            prop_assert!((tested.policy.average - model.avg).abs() < 1e-11 * (1.0 + model.avg));
        }
    }
}

/// A queue of 8 packets, held for n arrivals: avg = 8·(1 − (1 − w)^n). Then m packets' worth of idle time.
#[test]
fn the_average_follows_its_closed_form() {
    let config = RedConfig { weight: 0.01, ..RedConfig::default() };
    let mut red = red(config);
    let waiting = Waiting { backlog: crate::queue::Backlog { packets: 8, bytes: 8_000 }, oldest: None };
    for _ in 0..500 {
        red.observe(Time::ZERO, waiting);
    }
    let expected = 8.0 * (1.0 - libm::pow(0.99, 500.0));
    assert!((red.average - expected).abs() < 1e-12, "{} {expected}", red.average);

    red.idle_since = Some(Time::ZERO);
    red.observe(Time::ZERO + Duration::from_micros(512 * 300), Waiting::default());
    let after = (0..300).fold(expected, |average, _| average * 0.99);
    assert!((red.average - after).abs() < 1e-12, "{} {after}", red.average);
}

/// The rate changes in the middle of an idle time, and a wire that is down or without a limit.
#[test]
fn idle_time_counts_at_the_rate_that_there_was() {
    let decayed = |changes: &[(u64, Rate)]| {
        let mut red = Red { average: 8.0, idle_since: Some(Time::ZERO), ..red(RedConfig::default()) };
        for &(millis, rate) in changes {
            red.set_wire(Time::ZERO + Duration::from_millis(millis), Wire { rate, ..WIRE });
        }
        red.observe(Time::ZERO + Duration::from_millis(512), Waiting::default());
        red.average
    };
    let close = |changes: &[(u64, Rate)], packets| {
        let expected = 8.0 * libm::pow(0.998, packets);
        assert!((decayed(changes) - expected).abs() < 1e-12, "{changes:?}");
    };
    close(&[], 1_000.0);
    close(&[(256, Rate::from_bits_per_second(4_000_000))], 750.0);
    close(&[(256, Rate::DOWN)], 500.0);
    assert_eq!(decayed(&[(256, Rate::UNLIMITED)]), 0.0);
}

#[test]
fn it_marks_what_can_be_marked() {
    let full = |ecn, field| {
        let mut queue = Managed::new(Red { average: 20.0, ..red(RedConfig { ecn, ..RedConfig::default() }) });
        queue.enqueue(Time::ZERO, 1000, field)
    };
    assert_eq!([full(true, 1), full(true, 2), full(true, 3)], [Judgement::Mark; 3]);
    assert_eq!([full(true, 0), full(false, 1)], [Judgement::Drop; 2]);
}

/// As in Linux: every half second, up by a hundredth at most where the average is high, down by a tenth where it is low.
#[test]
fn adaptive_red_moves_its_probability() {
    let config = RedConfig {
        probability: Probability::from_ratio(1, 50).expect("a share"),
        adaptive: true,
        weight: 1.0,
        ..RedConfig::default()
    };
    let half = |n: u64| Time::from_nanos(500_000_000 * n);
    let waiting =
        |packets| Waiting { backlog: crate::queue::Backlog { packets, bytes: 1000 * packets }, oldest: None };
    let mut red = red(config);
    let mut at = |when: Time, packets: u64| {
        red.observe(when, waiting(packets));
        red.probability
    };
    // Thresholds of 5 and 15: low is below 9, high above 11. The look comes before the arrival counts.
    assert_eq!(at(half(0), 14), 0.02);
    assert!((at(half(1), 10) - 0.025).abs() < 1e-12, "a quarter up");
    assert!((at(half(2), 14) - 0.025).abs() < 1e-12, "neither high nor low");
    assert!((at(half(5), 2) - 0.025 * 1.25 * 1.25 * 1.25).abs() < 1e-9, "three looks");
    let before = at(half(5), 2);
    assert!((at(half(6), 2) - 0.9 * before).abs() < 1e-12);
    assert!(at(half(1_000_000), 2) < 0.01, "the average settles below a hundredth, at once");
    assert!(at(half(1_000_000), 2) > 0.008);
}

/// Linux's SFQ: a flow that was empty has no past.
#[test]
fn an_empty_queue_may_start_anew() {
    for (restart, average) in [(false, 10.0), (true, 0.0)] {
        let mut policy = red(RedConfig { restart, ..RedConfig::default() });
        policy.average = 10.0;
        policy.observe(Time::ZERO, Waiting::default());
        assert!((policy.average() - average).abs() < 0.1);
    }
}

proptest! {
    #[test]
    fn what_remains_of_the_average_is_a_power(weight in 0.000_01f64..1.0, packets in 0.0f64..100_000.0, fine in 0.0f64..2.0) {
        let halvings = RedConfig { weight, ..RedConfig::default() }.halvings();
        for packets in [packets, fine] {
            let (ours, exact) = (remains(halvings, packets), libm::pow(1.0 - weight, packets));
            // The exponent has an error of its own, the more the longer.
            prop_assert!((ours - exact).abs() <= 1e-13 * exact + 1e-300, "{ours} {exact}");
        }
    }
}

#[test]
fn nothing_remains_in_the_end() {
    assert_eq!(remains(f64::INFINITY, 0.0), 1.0);
    assert_eq!(remains(f64::INFINITY, 1e-9), 0.0);
    assert_eq!(remains(0.003, f64::INFINITY), 0.0);
    assert_eq!(remains(0.5, 2.0), 0.5);
}
