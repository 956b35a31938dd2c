//! A packet-delivery trace gives exactly its opportunities.

use std::collections::VecDeque;

use narrows_core::service::{ConstantRate, Opportunities, Overhead, ServiceCurve, Work};
use narrows_core::steps::After;
use narrows_core::{Bytes, Change, Duration, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::{TUN, ends, link};

const MILLI: u64 = 1_000_000;

fn opportunities(trace: &[u64], after: After<Rate>) -> Opportunities {
    let instants: Vec<_> = trace.iter().map(|&milli| Time::from_nanos(milli * MILLI)).collect();
    Opportunities::new(instants, Bytes::new(1504), after).expect("it is a trace")
}

fn repeating(trace: &[u64]) -> Opportunities {
    opportunities(trace, After::Loop(Duration::from_millis(trace[trace.len() - 1])))
}

/// In milliseconds.
fn left(trace: Opportunities, packets: &[(u64, u32)]) -> Vec<u64> {
    let mut link = link(trace);
    link.overhead = TUN;
    let packets: Vec<_> = packets.iter().map(|&(at, length)| (at * MILLI, length)).collect();
    let ends = ends(link, &packets, Vec::new());
    assert!(ends.iter().all(|end| end % MILLI == 0));
    ends.into_iter().map(|end| end / MILLI).collect()
}

/// Mahimahi's rule, opportunity by opportunity: each sends up to 1504 bytes of what arrived before it, at once; the rest of
/// it is lost. The trace repeats, its base advanced by its last value.
fn slow(trace: &[u64], packets: &[(i64, u32)]) -> Vec<u64> {
    let (mut base, mut next, mut arrived) = (0, 0, 0);
    let (mut queue, mut left) = (VecDeque::new(), vec![0; packets.len()]);
    let mut open = packets.len();
    while open > 0 {
        let at = base + trace[next];
        next += 1;
        if next == trace.len() {
            (next, base) = (0, at);
        }
        while let Some(packet) = packets.get(arrived).filter(|packet| packet.0 < at as i64) {
            queue.push_back((arrived, packet.1 + 4));
            arrived += 1;
        }
        let mut bytes = 1504;
        while bytes > 0
            && let Some((number, waiting)) = queue.front_mut()
        {
            let sent = bytes.min(*waiting);
            (bytes, *waiting) = (bytes - sent, *waiting - sent);
            if *waiting == 0 {
                left[*number] = at;
                queue.pop_front();
                open -= 1;
            }
        }
    }
    left
}

#[test]
fn worked_by_hand() {
    // Every fifth millisecond one packet of 1500 bytes; what comes at 5 is too late for 5.
    assert_eq!(left(repeating(&[5]), &[(0, 1500), (5, 1500), (11, 1500)]), [5, 10, 15]);
    // Two opportunities at 2 ms carry two long packets, or many short ones: 100 + 4 bytes go 14 times into 1504, and the
    // fifteenth has 48 bytes in it and 56 in the next.
    assert_eq!(left(repeating(&[2, 2, 7]), &[(0, 1500), (0, 1500), (0, 1500)]), [2, 2, 7]);
    let short = [(0, 100); 30];
    let mut expected = vec![3; 14];
    expected.extend(vec![4; 14]);
    expected.extend(vec![7; 2]); // the trace begins anew at 4: its next instants are 7 and 8
    assert_eq!(left(repeating(&[3, 4]), &short), expected);
    // 4 kB need three opportunities; 4008 bytes leave 504 of the third, which the small packet behind it gets.
    assert_eq!(left(repeating(&[1, 6]), &[(0, 4004), (0, 500), (0, 1)]), [7, 7, 12]);
    // At the end of a round and at the very beginning of the next one.
    assert_eq!(left(repeating(&[0, 0, 10]), &[(0, 1500), (0, 1500), (0, 1500), (0, 1500)]), [10, 10, 10, 20]);
    // What nobody used is lost, and what is left of an opportunity does not wait for who comes at its very instant.
    assert_eq!(left(repeating(&[1, 2, 3, 4]), &[(3, 1500), (3, 1500)]), [4, 5]);
    assert_eq!(left(repeating(&[4]), &[(0, 100), (4, 100)]), [4, 8]);
}

#[test]
fn after_the_last_opportunity_there_is_none_or_a_rate() {
    let rate = Rate::from_bits_per_second(12_032_000); // 1504 bytes a millisecond
    let end = After::End(Duration::from_millis(10), rate);
    // One goes at 3, one at 8, half of one at 8 and half from 10 on; then one each millisecond.
    let packets = [(0, 1500), (0, 748), (0, 1500), (0, 1500)];
    let mut ended = link(opportunities(&[3, 8], end));
    ended.overhead = TUN;
    assert_eq!(
        ends(ended, &packets, Vec::new()),
        [3 * MILLI, 8 * MILLI, 10 * MILLI + MILLI / 2, 11 * MILLI + MILLI / 2]
    );
    // No more opportunities: the link is down until somebody changes it, in the middle of a packet.
    let mut held = link(opportunities(&[3, 8], After::Hold));
    held.overhead = TUN;
    let changes = vec![(20 * MILLI, Change::Service(Box::new(ConstantRate(rate))))];
    // 1504 of 2256 bytes are sent at 3, and 752 at 8; of the other packet 752 at 8 and 752 from 20 ms on.
    let left = ends(held, &[(0, 2252), (0, 1500)], changes);
    assert_eq!(left, [8 * MILLI, 20 * MILLI + MILLI / 2]);
}

#[test]
fn a_trace_ends_with_time_itself() {
    let nano = Time::from_nanos(1);
    let bytes = Bytes::new(1);
    let every = |start| {
        let trace = Opportunities::new([nano], bytes, After::Loop(Duration::from_nanos(1))).expect("a trace");
        trace.starting(Time::from_nanos(start), Duration::ZERO)
    };
    let end = u64::MAX - 10;
    let finish = |bytes: u64| every(end).finish(Time::from_nanos(end), Work::bits(bytes * 8));
    assert_eq!(finish(9).map(|finish| finish.at), Some(Time::from_nanos(u64::MAX - 1)));
    assert_eq!((finish(10), finish(1 << 32)), (None, None));
}

/// What comes after the trace may lie beyond the end of time, as may the trace itself.
#[test]
fn an_end_that_never_comes_is_none() {
    let rate = Rate::from_bits_per_second(8_000);
    let milli = Time::from_nanos(MILLI);
    let new = |after| Opportunities::new([milli], Bytes::new(1504), after).expect("a trace");
    let never = new(After::End(Duration::MAX, rate));
    let one = Work::bits(8);
    // The only opportunity comes at 1 ms: from then on there is nothing, and the wire says so instead of failing.
    assert_eq!(never.finish(Time::ZERO, one).map(|finish| finish.at), Some(milli));
    for start in [MILLI, 2 * MILLI, u64::MAX - 1, u64::MAX] {
        assert_eq!(never.finish(Time::from_nanos(start), one), None, "from {start} on");
    }
    assert_eq!(never.served(Time::ZERO, Time::NEVER), Work::bits(1504 * 8));
    assert_eq!(never.next_change(Time::ZERO), Time::NEVER);
    // The rate would begin 3 ms after a start that is 1 ns before the end of time.
    for after in
        [After::End(Duration::from_millis(3), rate), After::Hold, After::Loop(Duration::from_millis(3))]
    {
        let late = new(after).starting(Time::from_nanos(u64::MAX - 1), Duration::ZERO);
        for start in [0, MILLI, u64::MAX - 1, u64::MAX] {
            assert_eq!(late.finish(Time::from_nanos(start), one), None, "{after:?} from {start} on");
        }
        assert_eq!(late.served(Time::ZERO, Time::from_nanos(u64::MAX - 1)), Work::default());
    }
}

/// However much is skipped, the trace goes on from there.
#[test]
fn more_can_be_skipped_than_time_lasts() {
    let skipping = |after, nanos: u64| {
        opportunities(&[0, 3, 7], after).starting(Time::ZERO, Duration::from_nanos(nanos))
    };
    let round = After::Loop(Duration::from_millis(7));
    let packets = [(0, 1500); 8];
    for rest in [0, 1, 3, 6] {
        let rounds = u64::MAX / (7 * MILLI) - 1;
        let late = left(skipping(round, rounds * 7 * MILLI + rest * MILLI), &packets);
        assert_eq!(late, left(skipping(round, (7 + rest) * MILLI), &packets), "{rest}");
    }
    for after in [After::Hold, After::End(Duration::from_millis(7), Rate::DOWN)] {
        assert_eq!(skipping(after, u64::MAX).finish(Time::ZERO, Work::bits(8)), None);
    }
}

/// As many as a trace of a fast wire may have at an instant, each round anew: none is walked past one by one, and what they
/// leave over is not cut.
#[test]
fn millions_coincide() {
    const ALL: u64 = 2_000_000;
    let mut instants = vec![0; ALL as usize];
    instants.extend([1, 1, 3]);
    let trace = opportunities(&instants, After::Loop(Duration::from_millis(3)));
    let at = |milli: u64| Time::from_nanos(milli * MILLI);
    let surplus = |opportunities: u64| Work::bits(opportunities * 1504 * 8 - 8);
    for round in 0..1_000 {
        for (start, end, coincide) in [(0, 1, 2), (1, 3, ALL + 1), (2, 3, ALL + 1)] {
            let finish = trace.finish(at(3 * round + start), Work::bits(8)).expect("it repeats");
            assert_eq!((finish.at, finish.surplus), (at(3 * round + end), surplus(coincide)));
        }
    }
}

/// What is left of an opportunity goes to those that wait, however much it is.
#[test]
fn a_huge_opportunity_takes_all_that_wait() {
    let milli = Time::from_nanos(MILLI);
    // Twice 4.5 GB at an instant, and five packets that take 2 GB each on the wire: of the first there are 7 GB left, which
    // are 5.6·10¹⁹ billionths of a bit, above 2⁶⁴.
    let bytes = Bytes::new(4_500_000_000);
    let trace =
        Opportunities::new([milli; 2], bytes, After::Loop(Duration::from_millis(1))).expect("a trace");
    let mut link = link(trace);
    link.overhead = Overhead { extra: 2_000_000_000 - 100, ..Overhead::IP };
    let left = ends(link, &[(0, 100); 5], Vec::new());
    assert_eq!(left, [MILLI, MILLI, MILLI, MILLI, 2 * MILLI]);
}

/// From a rate to opportunities and back, in the middle of one packet of 10,000 bytes.
#[test]
fn what_is_left_of_a_packet_goes_on_by_opportunity() {
    let rate = |bits| Box::new(ConstantRate(Rate::from_bits_per_second(bits)));
    let trace = repeating(&[2, 5]).starting(Time::from_nanos(10 * MILLI), Duration::from_millis(1));
    let changes = vec![
        (4 * MILLI, Change::Service(Box::new(trace))),
        // 15 ms is 6 ms into the trace: 2 and 5 ms are over, which came at 11 and 14.
        (15 * MILLI, Change::Service(rate(8_000))),
    ];
    // 4,000 bytes in 4 ms at 8 Mbit/s, twice 1504, and the other 2992 at 1 byte a millisecond.
    let left = ends(link(ConstantRate(Rate::from_bits_per_second(8_000_000))), &[(0, 10_000)], changes);
    assert_eq!(left, [15 * MILLI + 2_992 * MILLI]);
}

fn trace() -> impl Strategy<Value = Vec<u64>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => Just(1), 2 => 2u64..9, 1 => 9u64..60];
    (vec(gap, 0..25), 1u64..30).prop_map(|(gaps, last)| {
        let mut trace: Vec<u64> = gaps
            .iter()
            .scan(0, |at, gap| {
                *at += gap;
                Some(*at)
            })
            .collect();
        trace.push(trace.last().unwrap_or(&0) + last);
        trace
    })
}

fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![6 => Just(0u64), 3 => 1u64..4, 1 => 4u64..200];
    let length = prop_oneof![2 => Just(1500u32), 2 => 1u32..200, 2 => 1u32..1501, 1 => 1501u32..9000];
    vec((gap, length), 1..80).prop_map(|packets| {
        let mut at = 0;
        packets
            .into_iter()
            .map(|(gap, length)| {
                at += gap;
                (at, length)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_leaves_when_mahimahis_rule_says(trace in trace(), packets in packets()) {
        let signed: Vec<_> = packets.iter().map(|&(at, length)| (at as i64, length)).collect();
        prop_assert_eq!(left(repeating(&trace), &packets), slow(&trace, &signed));
    }

    /// From somewhere in the trace on, somewhere in the run.
    #[test]
    fn a_trace_that_starts_later_is_the_same_trace(
        trace in trace(), packets in packets(), start in 0u64..50, skipped in 0u64..200,
    ) {
        let started =
            repeating(&trace).starting(Time::from_nanos(start * MILLI), Duration::from_millis(skipped));
        // In the trace's own time. What came before the start waits for the opportunity right there.
        let (start, skipped) = (start as i64, skipped as i64);
        let moved: Vec<_> =
            packets.iter().map(|&(at, length)| ((at as i64).max(start - 1) - start + skipped, length)).collect();
        let expected: Vec<_> =
            slow(&trace, &moved).into_iter().map(|at| (at as i64 - skipped + start) as u64).collect();
        prop_assert_eq!(left(started, &packets), expected);
    }
}
