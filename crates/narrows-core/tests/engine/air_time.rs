//! Extra air time: closed forms, its distribution, losses, changes of rate, links in series.

use narrows_core::{
    AirTime, Bytes, Change, DropReason, Duration, Probability, Protocol, Rate, Time, Verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::drive::{END, Record, Run};
use crate::plan::{ChangePlan, DelayPlan, Input, LinkPlan, PacketPlan, Plan, ServicePlan, What};
use crate::transmitter::{BILLION, at_rate, done_by, packet, wire};

fn share(numerator: u64, denominator: u64) -> Probability {
    Probability::from_ratio(numerator, denominator).expect("at most one")
}

/// The same for every packet.
fn constant(extra: u64) -> AirTime {
    let extra = Duration::from_nanos(extra);
    let points = [(Probability::ZERO, extra), (Probability::ONE, extra)];
    AirTime::new(&points, 2, Probability::ONE).expect("it is level")
}

/// A run of a chain whose links have these profiles.
fn with(plan: &Plan, profiles: Vec<Option<AirTime>>) -> Run {
    let mut config = plan.config();
    for (link, profile) in config.links.iter_mut().zip(profiles) {
        link.air_time = profile;
    }
    Run::of(plan, config)
}

fn at(record: &Record) -> u64 {
    record.at.nanos()
}

fn ends(plan: &Plan, extra: u64, inputs: &[Input]) -> Vec<u64> {
    let mut run = with(plan, vec![Some(constant(extra))]);
    inputs.iter().for_each(|input| run.input(input));
    run.poll(END, usize::MAX);
    run.records.iter().map(at).collect()
}

fn rate_from(at: u64, rate: u64) -> Input {
    let service = ServicePlan::Rate(Rate::from_bits_per_second(rate));
    Input { at: Time::from_nanos(at), what: What::Change(0, ChangePlan::Service(service)) }
}

/// When packets, by instant and bits, leave a link in exact arithmetic: the wire is free after the air time and the bits of
/// each, and what rounding up to a nanosecond gives away goes to one that comes no later than that nanosecond.
fn leave(packets: &[(u64, u64)], rate: u64, extra: u64, delay: u64) -> Vec<u64> {
    let rate = u128::from(rate);
    let mut free = 0; // in units of 1/rate of a nanosecond
    let mut leave = Vec::new();
    for &(at, bits) in packets {
        let start = if u128::from(at) <= free_nanos(free, rate) { free } else { u128::from(at) * rate };
        free = start + u128::from(extra) * rate + u128::from(bits) * BILLION;
        leave.push(free_nanos(free, rate) as u64 + delay);
    }
    leave
}

fn free_nanos(free: u128, rate: u128) -> u128 {
    free.div_ceil(rate)
}

#[test]
fn a_packet_takes_its_air_time_its_bits_and_the_delay() {
    // 1,000 bytes at 1 Mbit/s are 8 ms; with 50 ms of delay 58 ms, and with 300 µs of air time that much more.
    let mut plan = at_rate(1_000_000);
    plan.links[0].delay = DelayPlan::Constant(Duration::from_millis(50));
    assert_eq!(ends(&plan, 0, &[packet(0, 1_000)]), [58_000_000]);
    assert_eq!(ends(&plan, 300_000, &[packet(0, 1_000), packet(0, 500)]), [58_300_000, 62_600_000]);
    // Without a limit only the air time is left.
    plan.links[0].service = ServicePlan::Rate(Rate::UNLIMITED);
    assert_eq!(ends(&plan, 7, &[packet(0, 1_000), packet(0, 500)]), [50_000_007, 50_000_014]);
}

proptest! {
    /// T = (l + Q)/B + extra + t_D, where the backlog Q has its air time, too; on one link and on two in series.
    #[test]
    fn packets_leave_when_exact_arithmetic_says(
        rates in [1_000u64..20_000_000_000, 1_000u64..20_000_000_000],
        extras in [0u64..2_000_000, 0u64..3],
        delays in [0u64..100_000_000, 0u64..1_000],
        packets in vec((prop_oneof![Just(0), 0u64..20_000, 0u64..20_000_000], 1u32..2_000), 1..60),
    ) {
        let links = ["first", "second"].into_iter().zip(rates).zip(delays).map(|((name, rate), delay)| {
            let queue = wire(ServicePlan::Rate(Rate::DOWN)).links[0].queue;
            let delay = Duration::from_nanos(delay);
            let service = ServicePlan::Rate(Rate::from_bits_per_second(rate));
            LinkPlan { queue, service, delay: DelayPlan::Constant(delay), ..LinkPlan::new(name) }
        });
        let plan = Plan::chain(1, links.collect());
        let mut run = with(&plan, extras.map(|extra| Some(constant(extra))).to_vec());
        let (mut at, mut expected) = (0, Vec::new());
        for &(gap, length) in &packets {
            at += gap;
            run.input(&packet(at, length));
            expected.push((at, u64::from(length) * 8));
        }
        for hop in 0..2 {
            let left = leave(&expected, rates[hop], extras[hop], delays[hop]);
            expected.iter_mut().zip(left).for_each(|(packet, left)| packet.0 = left);
        }
        run.poll(END, usize::MAX);
        let left: Vec<_> = run.records.iter().map(self::at).collect();
        prop_assert_eq!(left, expected.iter().map(|packet| packet.0).collect::<Vec<_>>());
    }

    /// Whatever the rate does, the bits begin when the air time is over.
    #[test]
    fn changes_of_rate_count_for_the_bits_only(
        first in 1_000_000u64..20_000_000,
        changes in vec((1u64..300_000, prop_oneof![1 => Just(0), 4 => 100_000u64..100_000_000]), 0..12),
        last in 1_000_000u64..20_000_000,
        extra in 0u64..2_000_000,
        length in 1u32..2_000,
    ) {
        let (mut at, mut inputs, mut pieces) = (0, vec![packet(0, length)], vec![(0, first)]);
        for (gap, rate) in changes.into_iter().chain([(1_000, last)]) {
            at += gap;
            pieces.push((at, rate));
            inputs.push(rate_from(at, rate));
        }
        // The pieces from the end of the air time on.
        let begun = pieces.partition_point(|piece| piece.0 <= extra) - 1;
        let mut pieces = pieces.split_off(begun);
        pieces[0].0 = extra;
        let expected = done_by(&pieces, u128::from(length) * 8 * BILLION);
        prop_assert_eq!(ends(&at_rate(first), extra, &inputs), [expected]);
    }
}

#[test]
fn a_rate_that_changes_in_the_air_time_or_in_the_bits() {
    // A millisecond of air time, then 8,000 bits at 8 Mbit/s, which is another.
    let run = |changes: &[(u64, u64)]| {
        let mut inputs = vec![packet(0, 1_000)];
        inputs.extend(changes.iter().map(|&(micros, rate)| rate_from(micros * 1_000, rate)));
        ends(&at_rate(8_000_000), 1_000_000, &inputs)[0] / 1_000
    };
    assert_eq!(run(&[]), 2_000);
    assert_eq!(run(&[(500, 4_000_000)]), 3_000);
    // At half of the bits.
    assert_eq!(run(&[(1_500, 1_000_000)]), 5_500);
    // Air time passes on a wire that is down; bits do not.
    assert_eq!(run(&[(200, 0), (800, 8_000_000)]), 2_000);
    assert_eq!(run(&[(200, 0), (3_000, 8_000_000)]), 4_000);
    assert_eq!(run(&[(0, u64::MAX)]), 1_000);
}

/// Opportunities at 10, 20, 30 ms, … of 1,000 bytes. What two packets of 500 bytes share without air time, they do not with it.
#[test]
fn an_opportunity_does_not_last_through_the_air_time() {
    let period = Duration::from_nanos(10_000_000 - 1);
    let service = ServicePlan::Opportunities([period, Duration::ZERO, Duration::ZERO], true, 500);
    let mut plan = wire(service);
    plan.links[0].queue =
        crate::plan::QueuePlan::Fifo(narrows_core::queue::Bound::Packets(9), Default::default());
    let packets = [packet(0, 500), packet(0, 500)];
    let first = 10_000_000 - 1;
    assert_eq!(ends(&plan, 0, &packets), [first, first]);
    assert_eq!(ends(&plan, 1, &packets), [first, first + 10_000_000]);
}

/// A profile changes for the next transmission, not for the one under way.
#[test]
fn a_change_of_profile_counts_from_the_next_packet_on() {
    let mut run = with(&at_rate(8_000_000), vec![Some(constant(1_000_000))]);
    let link = run.engine.link("wire").expect("it was configured");
    (0..3).for_each(|_| run.input(&packet(0, 1_000)));
    run.engine.change(Time::from_nanos(500_000), link, Change::AirTime(Some(constant(100))));
    run.engine.change(Time::from_nanos(3_500_000), link, Change::AirTime(None));
    (0..2).for_each(|_| run.input(&packet(4_000_200, 1_000)));
    run.poll(END, usize::MAX);
    let expected = [2_000_000, 3_000_100, 4_000_200, 5_000_200, 6_000_200];
    // The third went on the wire before the second change.
    assert_eq!(run.records.iter().map(at).collect::<Vec<_>>(), expected);
}

const PACKETS: u64 = 100_000;

/// What becomes of packets that are alone on a wire without a limit: how long each was on it, and whether it is lost.
fn alone(profile: &AirTime) -> Vec<(u64, bool)> {
    let mut run = with(&wire(ServicePlan::Rate(Rate::UNLIMITED)), vec![Some(profile.clone())]);
    let gap = profile.longest().nanos() + 1;
    for number in 0..PACKETS {
        let now = Time::from_nanos(number * gap);
        run.poll(now, usize::MAX);
        run.hand_in(now, PacketPlan { port: 0, length: 100, network: Protocol::Other });
    }
    run.poll(END, usize::MAX);
    assert_eq!(run.records.len(), PACKETS as usize);
    let link = run.engine.link("wire").expect("it was configured");
    let counters = &run.engine.view(link).counters()[0];
    let busy: u64 = run.records.iter().map(|record| record.at.since(record.arrival).nanos()).sum();
    assert_eq!((counters.sent.packets, counters.busy.nanos()), (PACKETS, busy));
    let lost = |record: &Record| match record.verdict {
        Verdict::Dropped { reason, .. } => {
            assert_eq!(reason, DropReason::WireLoss);
            true
        }
        _ => false,
    };
    run.records.iter().map(|record| (record.at.since(record.arrival).nanos(), lost(record))).collect()
}

/// The corners of a curve with an atom of a fifth, a jump, slopes, and an atom at its end.
const CORNERS: [(f64, f64); 6] =
    [(0.2, 100e3), (0.4, 130e3), (0.4, 400e3), (0.7, 1_500e3), (0.8, 1_600e3), (0.98, 2_000e3)];

fn profile(samples: u32, level: Probability) -> AirTime {
    let points =
        CORNERS.map(|(p, nanos)| (share((p * 100.0) as u64, 100), Duration::from_nanos(nanos as u64)));
    AirTime::new(&points, samples, level).expect("it goes up")
}

/// The polyline as a distribution function, just below x and at x, moved up by `shift` nanoseconds.
fn polyline(x: f64, shift: f64) -> (f64, f64) {
    let x = x - shift;
    let on = |(p0, x0): (f64, f64), (p1, x1): (f64, f64)| p0 + (p1 - p0) * (x - x0) / (x1 - x0);
    let last = CORNERS[CORNERS.len() - 1];
    let at = match CORNERS.iter().position(|corner| corner.1 > x) {
        Some(0) => 0.0,
        Some(next) => on(CORNERS[next - 1], CORNERS[next]),
        None => 1.0,
    };
    let below = match CORNERS.iter().position(|corner| corner.1 >= x) {
        Some(0) => 0.0,
        Some(next) => on(CORNERS[next - 1], CORNERS[next]),
        None => 1.0,
    };
    // The atoms below the first corner and above the last one.
    (below, if x == last.1 { 1.0 } else { at })
}

/// The Kolmogorov-Smirnov distance from a distribution function that says its values just below and at x.
fn distance(samples: &[f64], cdf: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let gap = |x: f64| {
        let below = sorted.partition_point(|&sample| sample < x) as f64 / n;
        let at = sorted.partition_point(|&sample| sample <= x) as f64 / n;
        (below - cdf(x).0).abs().max((at - cdf(x).1).abs())
    };
    sorted.iter().copied().chain(CORNERS.map(|corner| corner.1)).map(gap).fold(0.0, f64::max)
}

/// What the distance of so many samples exceeds in 1 % of all cases.
const CRITICAL: f64 = 1.63 / 316.2;

#[test]
fn air_times_are_distributed_as_the_polyline() {
    let times: Vec<f64> = alone(&profile(1024, Probability::ONE)).iter().map(|fate| fate.0 as f64).collect();
    let measured = distance(&times, |x| polyline(x, 0.0));
    assert!(measured < CRITICAL, "{measured} beyond {CRITICAL}");
    // The test would see a hundredth.
    let moved = distance(&times, |x| polyline(x, 20e3));
    assert!(moved > 2.0 * CRITICAL, "{moved}");
}

/// With few samples they are the polyline's values at these, each as often as any other.
#[test]
fn air_times_are_the_samples_of_the_polyline() {
    let profile = profile(25, Probability::ONE);
    let mut times: Vec<u64> = alone(&profile).iter().map(|fate| fate.0).collect();
    times.sort_unstable();
    let mut expected: Vec<u64> = profile.times().iter().map(|time| time.nanos()).collect();
    assert_eq!(expected.len(), 25);
    expected.dedup();
    for time in expected {
        let entries = profile.times().iter().filter(|entry| entry.nanos() == time).count() as f64;
        let (n, p) = (PACKETS as f64, entries / 25.0);
        let count = times.iter().filter(|&&found| found == time).count() as f64;
        assert!((count - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt(), "{count} packets of {time} ns");
    }
    times.dedup();
    assert_eq!(times.len(), profile.times().iter().collect::<std::collections::BTreeSet<_>>().len());
}

#[test]
fn packets_above_the_level_are_lost_after_their_time() {
    let profile = profile(100, share(9, 10));
    let fates = alone(&profile);
    let level = profile.times()[90].nanos();
    // No two samples around the level are equal, so the time says which are lost.
    assert!(profile.times()[89].nanos() < level);
    assert!(fates.iter().all(|&(time, lost)| lost == (time >= level)), "those that take longest");
    let lost = fates.iter().filter(|fate| fate.1).count() as f64;
    assert!((lost - 10_000.0).abs() < 4.0 * (PACKETS as f64 * 0.09).sqrt(), "{lost} lost");
}

/// What is lost has held the medium all the same, and a packet behind it waits for that.
#[test]
fn a_lost_packet_uses_its_time() {
    let time = Duration::from_millis(1);
    let all = AirTime::new(&[(Probability::ZERO, time), (Probability::ONE, time)], 2, Probability::ZERO);
    let mut run = with(&at_rate(8_000_000), vec![Some(all.expect("it is level"))]);
    (0..3).for_each(|_| run.input(&packet(0, 1_000)));
    run.poll(END, usize::MAX);
    assert!(run.records.iter().all(|record| !record.delivered()));
    assert_eq!(run.records.iter().map(at).collect::<Vec<_>>(), [2_000_000, 4_000_000, 6_000_000]);
}

/// Credit pays for bits; the air time is used all the same.
#[test]
fn a_burst_does_not_pay_for_air_time() {
    let mut run = with(&at_rate(8_000_000), vec![Some(constant(1_000_000))]);
    let link = run.engine.link("wire").expect("it was configured");
    run.engine.change(Time::ZERO, link, Change::Burst(Bytes::new(1_500)));
    (0..2).for_each(|_| run.input(&packet(1_000_000_000, 1_000)));
    run.poll(END, usize::MAX);
    // All of the first packet, half of the second.
    assert_eq!(run.records.iter().map(at).collect::<Vec<_>>(), [1_001_000_000, 1_002_500_000]);
}
