//! A rate that follows a trace, against exact arithmetic: what the wire does is a polyline, C(t), in billionths of a bit.

use narrows_core::service::{ConstantRate, RateSteps, ServiceCurve};
use narrows_core::steps::{After, Steps};
use narrows_core::{Change, Duration, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::{ends, link};

const BILLION: u128 = 1_000_000_000;

/// Rates in bits a second, each from an instant on, the last for ever: what all traces here are written out to.
type Pieces = Vec<(u64, u64)>;

#[derive(Clone, Copy, Debug)]
enum Then {
    Loop(u64),
    Hold,
    End(u64, u64),
}

#[derive(Clone, Debug)]
struct Trace {
    points: Pieces,
    then: Then,
    start: u64,
    skipped: u64,
}

impl Trace {
    fn curve(&self) -> RateSteps {
        let rate = Rate::from_bits_per_second;
        let points = self.points.iter().map(|&(at, bits)| (Time::from_nanos(at), rate(bits))).collect();
        let after = match self.then {
            Then::Loop(length) => After::Loop(Duration::from_nanos(length)),
            Then::Hold => After::Hold,
            Then::End(length, bits) => After::End(Duration::from_nanos(length), rate(bits)),
        };
        let steps = Steps::new(points, after).expect("they are in order");
        RateSteps::new(steps.starting(Time::from_nanos(self.start), Duration::from_nanos(self.skipped)))
    }

    /// Point by point, round by round, up to some instant of the run at least.
    fn written_out(&self, until: u64) -> Pieces {
        let mut in_trace: Pieces = self.points.clone();
        match self.then {
            Then::Hold => {}
            Then::End(length, bits) => in_trace.push((length, bits)),
            Then::Loop(length) => {
                let mut base = length;
                while base <= until + self.skipped {
                    in_trace.extend(self.points.iter().map(|&(at, bits)| (base + at, bits)));
                    base += length;
                }
            }
        }
        let first = in_trace.iter().rposition(|piece| piece.0 <= self.skipped).expect("the first is at zero");
        let mut pieces = vec![(0, in_trace[first].1)];
        let rest = in_trace[first + 1..].iter();
        pieces.extend(rest.map(|&(at, bits)| (at - self.skipped + self.start, bits)));
        pieces
    }
}

/// C(t).
fn done(pieces: &[(u64, u64)], t: u64) -> u128 {
    let until = |index: usize| pieces.get(index + 1).map_or(u64::MAX, |next| next.0);
    let within = |(index, &(from, bits)): (usize, &(u64, u64))| {
        u128::from(until(index).min(t).saturating_sub(from)) * u128::from(bits)
    };
    pieces.iter().enumerate().map(within).sum()
}

/// The first whole nanosecond by which so much is done.
fn done_by(pieces: &[(u64, u64)], work: u128) -> u64 {
    let mut left = work;
    for (index, &(from, bits)) in pieces.iter().enumerate() {
        let until = pieces.get(index + 1).map_or(u64::MAX, |next| next.0);
        let most = u128::from(until - from) * u128::from(bits);
        if left <= most {
            return if left == 0 { from } else { from + left.div_ceil(u128::from(bits)) as u64 };
        }
        left -= most;
    }
    unreachable!("the last rate is not zero")
}

/// The ends of packets by exact arithmetic: each starts where the one before it ended, exactly, if it came no later than the
/// whole nanosecond at which that was seen, or else when it comes.
fn exact(pieces: &[(u64, u64)], packets: &[(u64, u32)]) -> Vec<u64> {
    let (mut free, mut seen) = (0, 0);
    packets
        .iter()
        .map(|&(at, length)| {
            let start = if at <= seen { free } else { done(pieces, at) };
            free = start + u128::from(length) * 8 * BILLION;
            seen = done_by(pieces, free);
            seen
        })
        .collect()
}

/// Rates for which a nanosecond is less than a packet and for which it is more, and none.
fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0),
        2 => 1u64..100_000,
        5 => 1_000_000u64..20_000_000_000,
        1 => 10_000_000_000u64..20_000_000_000_000,
    ]
}

fn trace() -> impl Strategy<Value = Trace> {
    trace_of(|| prop_oneof![1u64..10, 1u64..3_000, 1u64..3_000_000])
}

fn trace_of<S: Strategy<Value = u64>>(span: impl Fn() -> S) -> impl Strategy<Value = Trace> {
    let origin = (prop_oneof![Just(0), 0u64..2_000_000], prop_oneof![Just(0), 0u64..9_000_000]);
    // At least one point and the end are not down, so that everything leaves.
    let rates = (1_000_000u64..3_000_000_000, vec((span(), rate()), 0..10), 1_000_000u64..100_000_000);
    (rates, span(), 0..3, origin).prop_map(|((first, gaps, last), rest, then, (start, skipped))| {
        let (mut at, mut points) = (0, vec![(0, first)]);
        for (gap, bits) in gaps {
            at += gap;
            points.push((at, bits));
        }
        let length = at + rest;
        let then = match then {
            0 => Then::Loop(length),
            1 => {
                points.push((length, last));
                Then::Hold
            }
            _ => Then::End(length, last),
        };
        Trace { points, then, start, skipped }
    })
}

fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![5 => Just(0u64), 2 => 1u64..3_000, 2 => 1u64..3_000_000];
    vec((gap, 1u32..2_000), 1..40).prop_map(|packets| {
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

    /// Every end of every packet, to the nanosecond, as long as the trace that is written out lasts: some hundred rounds.
    #[test]
    fn ends_are_exact_through_all_changes(trace in trace(), packets in packets()) {
        let length = trace.points[trace.points.len() - 1].0.max(1);
        let mut pieces = trace.written_out(length * 300);
        pieces.push((u64::MAX / 2, 1)); // beyond what is compared
        let expected = exact(&pieces, &packets);
        let left = ends(link(trace.curve()), &packets, Vec::new());
        let last_written = pieces[pieces.len() - 2].0;
        for (left, expected) in left.iter().zip(&expected) {
            if matches!(trace.then, Then::Loop(_)) && *expected >= last_written {
                prop_assert!(*left >= last_written);
                break;
            }
            prop_assert_eq!(left, expected);
        }
    }

    /// What is done between two instants, as a change in the middle of a packet asks for it, also over many rounds.
    #[test]
    fn what_is_served_is_the_sum_of_the_pieces(
        trace in trace(), from in 0u64..40_000_000, lasts in 0u64..40_000_000,
    ) {
        let length = trace.points[trace.points.len() - 1].0.max(1);
        let (from, lasts) = (from % (length * 300), lasts % (length * 300));
        let pieces = trace.written_out(from + lasts);
        let expected = done(&pieces, from + lasts) - done(&pieces, from);
        let served = trace.curve().served(Time::from_nanos(from), Time::from_nanos(from + lasts));
        prop_assert_eq!(served.0, expected);
    }

    /// Traces and constant rates take turns in the middle of packets: one polyline, put together from all of them.
    #[test]
    fn a_busy_period_is_exact_when_traces_take_turns(
        first in trace_of(|| 30_000u64..3_000_000),
        turns in vec((
            1u64..4_000_000,
            prop_oneof![trace_of(|| 30_000u64..3_000_000).prop_map(Ok), rate().prop_map(Err)],
        ), 1..5),
        lengths in vec(1u32..2_000, 1..30),
    ) {
        const ENOUGH: u64 = 6_000_000;
        let mut pieces: Pieces = first.written_out(ENOUGH);
        let (mut at, mut changes) = (0, Vec::new());
        for (gap, turn) in turns {
            at += gap;
            let (service, new): (Box<dyn ServiceCurve>, Pieces) = match turn {
                Ok(trace) => (Box::new(trace.curve()), trace.written_out(at + ENOUGH)),
                Err(bits) => {
                    (Box::new(ConstantRate(Rate::from_bits_per_second(bits))), vec![(0, bits)])
                }
            };
            changes.push((at, Change::Service(service)));
            pieces.retain(|piece| piece.0 < at);
            let holds = new.iter().rposition(|piece| piece.0 <= at).expect("one is at zero");
            pieces.push((at, new[holds].1));
            pieces.extend(&new[holds + 1..]);
        }
        at += ENOUGH / 2;
        changes.push((at, Change::Service(Box::new(ConstantRate(Rate::from_bits_per_second(7_000_000))))));
        pieces.retain(|piece| piece.0 < at);
        pieces.push((at, 7_000_000));
        let packets: Vec<_> = lengths.iter().map(|&length| (0, length)).collect();
        let expected: Vec<_> = (1..=packets.len())
            .map(|count| done_by(&pieces, packets[..count].iter().map(|p| u128::from(p.1) * 8 * BILLION).sum()))
            .collect();
        prop_assert_eq!(ends(link(first.curve()), &packets, changes), expected);
    }
}

#[test]
fn worked_by_hand() {
    let curve = |points: &[(u64, Rate)], after| {
        let points = points.iter().map(|&(at, rate)| (Time::from_nanos(at), rate)).collect();
        link(RateSteps::new(Steps::new(points, after).expect("they are in order")))
    };
    let rate = Rate::from_bits_per_second;
    let looped = |length| After::Loop(Duration::from_nanos(length));

    // 1 Gbit/s, then 0.3 Gbit/s: 100 bits by 100 ns, 60 more at 0.3 bits a nanosecond in 200 ns.
    let two = [(0, rate(1_000_000_000)), (100, rate(300_000_000))];
    assert_eq!(ends(curve(&two, After::Hold), &[(0, 20)], Vec::new()), [300]);
    // 3 bits more take 10 ns; two packets of a byte are done by 320 + 2/3 and 347 + 1/3, seen at 327 and 354.
    assert_eq!(ends(curve(&two, After::Hold), &[(0, 20), (0, 1), (0, 1)], Vec::new()), [300, 327, 354]);

    // Down for all but one nanosecond in a thousand, in which 8 bits go; over a million rounds.
    let blinks = [(0, rate(8_000_000_000)), (1, Rate::DOWN)];
    assert_eq!(ends(curve(&blinks, looped(1_000)), &[(0, 1_000_000)], Vec::new()), [999_999 * 1_000 + 1]);
    // What comes while it is down waits for the next round.
    assert_eq!(ends(curve(&blinks, looped(1_000)), &[(1, 1), (1_500, 1)], Vec::new()), [1_001, 2_001]);

    // Without limit for a while: what is on the wire then, and what comes, takes no more time.
    let burst = [(0, rate(1_000_000_000)), (100, Rate::UNLIMITED), (200, rate(8_000_000))];
    let packets = [(0, 1_000), (0, 1_000), (150, 1_000), (200, 1)];
    assert_eq!(ends(curve(&burst, looped(2_000)), &packets, Vec::new()), [100, 100, 150, 1_200]);
    // And in every later round.
    assert_eq!(ends(curve(&burst, looped(2_000)), &[(201, 1_000)], Vec::new()), [2_100]);
    assert_eq!(ends(curve(&burst, looped(2_000)), &[(4_201, 1_000)], Vec::new()), [6_100]);

    // The last byte is done exactly when the wire goes down; a packet behind it waits for the other side.
    let outage = [(0, rate(8_000_000_000)), (10, Rate::DOWN), (50, rate(8_000_000_000))];
    assert_eq!(ends(curve(&outage, After::Hold), &[(0, 10), (0, 1)], Vec::new()), [10, 51]);
}

#[test]
fn a_trace_that_stays_down_is_down_for_good_and_a_later_change_helps() {
    for after in
        [After::Hold, After::Loop(Duration::from_nanos(20)), After::End(Duration::from_nanos(20), Rate::DOWN)]
    {
        let steps = Steps::new(vec![(Time::ZERO, Rate::DOWN)], after).expect("they are in order");
        let change = Change::Service(Box::new(ConstantRate(Rate::from_bits_per_second(8_000_000_000))));
        let left = ends(link(RateSteps::new(steps)), &[(0, 100)], vec![(5_000, change)]);
        assert_eq!(left, [5_100]);
    }
}

/// An hour of a looped trace whose length and rates share no factor with anything: the k-th end is where the work of k
/// packets is done, by a closed form, round and remainder.
#[test]
fn nothing_drifts_over_an_hour() {
    let trace = Trace {
        points: vec![(0, 611_953), (313_331, 0), (400_009, 97_003), (871_117, 1_299_709)],
        then: Then::Loop(1_000_003),
        start: 0,
        skipped: 0,
    };
    let round = done(&trace.written_out(0)[..4], 1_000_003);
    let work = 1_498 * 8 * BILLION;
    let packets = (3_600 * BILLION * round / 1_000_003 / work) as usize;
    assert!(packets > 100_000);
    let left = ends(link(trace.curve()), &vec![(0, 1_498); packets], Vec::new());
    for (count, left) in (1..).zip(left) {
        let (rounds, rest) = ((count * work - 1) / round, (count * work - 1) % round + 1);
        let within = done_by(&trace.points, rest);
        assert_eq!(u128::from(left), rounds * 1_000_003 + u128::from(within), "packet {count}");
    }
}
