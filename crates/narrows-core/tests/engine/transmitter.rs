//! No burst above the rate, and no gap while there is backlog.

use narrows_core::queue::{Bound, DropAt};
use narrows_core::{Duration, Protocol, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::drive::{END, Run};
use crate::foreign::Outage;
use crate::plan::{ChangePlan, Input, LinkPlan, PacketPlan, Plan, QueuePlan, ServicePlan, What};

pub(crate) const BILLION: u128 = 1_000_000_000;

/// A wire without delay behind a queue that is never full: what leaves it does so at the end of its transmission.
pub(crate) fn wire(service: ServicePlan) -> Plan {
    let queue = QueuePlan::Fifo(Bound::Packets(u64::MAX), DropAt::Tail);
    Plan::chain(1, vec![LinkPlan { queue, service, ..LinkPlan::new("wire") }])
}

pub(crate) fn at_rate(bits_per_second: u64) -> Plan {
    wire(ServicePlan::Rate(Rate::from_bits_per_second(bits_per_second)))
}

pub(crate) fn packet(at: u64, length: u32) -> Input {
    let packet = PacketPlan { port: 0, length, network: Protocol::Other };
    Input { at: Time::from_nanos(at), what: What::Packet(packet) }
}

/// The ends of transmissions, in nanoseconds.
fn ends(plan: &Plan, inputs: &[Input]) -> Vec<u64> {
    let mut run = Run::new(plan);
    inputs.iter().for_each(|input| run.input(input));
    run.poll(END, usize::MAX);
    run.records.iter().map(|record| record.at.nanos()).collect()
}

/// Rates up to which a nanosecond is less than a packet, and those beyond.
fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![1_000u64..1_000_000, 1_000_000u64..20_000_000_000, 10_000_000_000u64..20_000_000_000_000]
}

proptest! {
    #[test]
    fn a_backlogged_wire_sends_at_exactly_its_rate(
        rate in rate(),
        start in 0u64..1_000_000_000,
        lengths in vec(1u32..2_000, 1..60),
    ) {
        let inputs: Vec<_> = lengths.iter().map(|&length| packet(start, length)).collect();
        let mut bits = 0;
        let expected: Vec<_> = lengths
            .iter()
            .map(|&length| {
                bits += u128::from(length) * 8;
                start + (bits * BILLION).div_ceil(u128::from(rate)) as u64
            })
            .collect();
        prop_assert_eq!(ends(&at_rate(rate), &inputs), expected);
    }

    /// Against a queue in exact arithmetic: a packet starts when it has come and the one before it is through; that
    /// is at the exact end of the one before if it came no later than the whole nanosecond at which that was seen.
    #[test]
    fn random_traffic_ends_when_exact_arithmetic_says(
        rate in rate(),
        packets in vec((prop_oneof![Just(0), 0u64..20_000, 0u64..20_000_000], 1u32..2_000), 1..80),
    ) {
        let (mut at, mut inputs) = (0, Vec::new());
        // In units of 1/rate of a nanosecond.
        let (mut free, mut expected) = (0u128, Vec::new());
        for (gap, length) in packets {
            at += gap;
            inputs.push(packet(at, length));
            let seen = free.div_ceil(u128::from(rate)) as u64;
            let start = if at <= seen { free } else { u128::from(at) * u128::from(rate) };
            free = start + u128::from(length) * 8 * BILLION;
            expected.push(free.div_ceil(u128::from(rate)) as u64);
        }
        prop_assert_eq!(ends(&at_rate(rate), &inputs), expected);
    }

    /// The bits of the packets whose transmissions end in (s, t] are at most rate·(t − s) and one packet, which may
    /// have begun before. Instants are whole, so an interval from just before an end starts one nanosecond earlier.
    #[test]
    fn no_interval_has_more_than_the_rate_and_one_packet(
        rate in rate(),
        packets in vec((prop_oneof![3 => Just(0), 1 => 0u64..200_000, 1 => 0u64..20_000_000], 1u32..2_000), 1..80),
    ) {
        let (mut at, mut inputs, mut lengths) = (0, Vec::new(), Vec::new());
        for (gap, length) in packets {
            at += gap;
            inputs.push(packet(at, length));
            lengths.push(u128::from(length));
        }
        let ends = ends(&at_rate(rate), &inputs);
        for first in 0..ends.len() {
            let (mut bits, mut longest) = (0, 0);
            for last in first..ends.len() {
                bits += lengths[last] * 8;
                longest = longest.max(lengths[last] * 8);
                let interval = u128::from(ends[last] - ends[first] + 1);
                prop_assert!(bits * BILLION <= u128::from(rate) * interval + longest * BILLION);
            }
        }
    }

    /// Through changes of rate in the middle of packets, outages included: the k-th end is the first instant by which
    /// the rates have done the work of k packets.
    #[test]
    fn a_busy_period_is_exact_through_changes_of_rate(
        first in rate(),
        changes in vec((1u64..300_000, prop_oneof![1 => Just(0), 4 => rate()]), 0..12),
        last in rate(),
        lengths in vec(1u32..2_000, 1..40),
    ) {
        let mut inputs: Vec<_> = lengths.iter().map(|&length| packet(0, length)).collect();
        let (mut at, mut pieces) = (0, vec![(0, first)]);
        for (gap, rate) in changes.into_iter().chain([(1_000, last)]) {
            at += gap;
            pieces.push((at, rate));
            let service = ServicePlan::Rate(Rate::from_bits_per_second(rate));
            let what = What::Change(0, ChangePlan::Service(service));
            inputs.push(Input { at: Time::from_nanos(at), what });
        }
        let mut bits = 0;
        let expected: Vec<_> = lengths
            .iter()
            .map(|&length| {
                bits += u128::from(length) * 8;
                done_by(&pieces, bits * BILLION)
            })
            .collect();
        prop_assert_eq!(ends(&at_rate(first), &inputs), expected);
    }

    /// A curve that another crate fills in does what the same changes of a constant rate do.
    #[test]
    fn an_outage_of_the_curve_is_an_outage_of_the_rate(
        before in rate(),
        after in rate(),
        down in 1u64..1_000_000,
        lasts in 1u64..1_000_000,
        packets in vec((0u64..100_000, 1u32..2_000), 1..40),
    ) {
        let up = down + lasts;
        let (mut at, mut inputs) = (0, Vec::new());
        for (gap, length) in packets {
            at += gap;
            inputs.push(packet(at, length));
        }
        let rates = [before, after].map(Rate::from_bits_per_second);
        let (down, up) = (Time::from_nanos(down), Time::from_nanos(up));
        let curve = wire(ServicePlan::Outage(Outage { before: rates[0], down, up, after: rates[1] }));
        let by_curve = ends(&curve, &inputs);
        for (at, rate) in [(down, Rate::DOWN), (up, rates[1])] {
            let what = What::Change(0, ChangePlan::Service(ServicePlan::Rate(rate)));
            let place = inputs.partition_point(|input| input.at < at);
            inputs.insert(place, Input { at, what });
        }
        prop_assert_eq!(by_curve, ends(&at_rate(before), &inputs));
    }
}

/// The first instant by which pieces of constant rate, each from an instant on, have done `work`.
pub(crate) fn done_by(pieces: &[(u64, u64)], mut work: u128) -> u64 {
    for (index, &(from, rate)) in pieces.iter().enumerate() {
        let to = pieces.get(index + 1).map_or(u64::MAX, |next| next.0);
        let most = u128::from(to - from) * u128::from(rate);
        if work <= most {
            return from + work.div_ceil(u128::from(rate)) as u64;
        }
        work -= most;
    }
    unreachable!("the last rate is not zero")
}

#[test]
fn an_idle_wire_saves_up_nothing() {
    // 1,250 bytes take 10 ms. The wire idles for a second, then two packets come at once.
    let inputs = [packet(0, 1_250), packet(1_000_000_000, 1_250), packet(1_000_000_000, 1_250)];
    assert_eq!(ends(&at_rate(1_000_000), &inputs), [10_000_000, 1_010_000_000, 1_020_000_000]);
}

/// Five packets leave one link at the same instant, and pass an unlimited one whose queue holds a single packet, in
/// either order of their names.
#[test]
fn an_unlimited_wire_never_queues() {
    for names in [["a", "b"], ["b", "a"]] {
        let (period, patience) = (Duration::from_millis(1), Duration::MAX);
        let together = QueuePlan::Gate { bound: Bound::Packets(5), period, patience };
        let single = QueuePlan::Fifo(Bound::Packets(1), DropAt::Tail);
        let links = [(names[0], together), (names[1], single)];
        let links = links.map(|(name, queue)| LinkPlan { queue, ..LinkPlan::new(name) });
        let mut run = Run::new(&Plan::chain(1, links.to_vec()));
        (1..=5).for_each(|nanos| run.input(&packet(nanos, 100)));
        run.poll(END, usize::MAX);
        let left: Vec<_> = run.records.iter().map(|r| (r.delivered(), r.at)).collect();
        assert_eq!(left, [(true, Time::from_nanos(1_000_000)); 5]);
    }
}
