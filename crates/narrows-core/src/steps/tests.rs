use super::*;
use alloc::vec;
use proptest::collection::vec;
use proptest::prelude::*;

const fn time(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

const fn span(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

#[test]
fn points_out_of_order_are_refused() {
    let new =
        |points: &[u64], after| Steps::new(points.iter().map(|&at| (time(at), ())).collect(), after).err();
    assert_eq!(new(&[], After::Hold), Some(StepsError::Empty));
    assert_eq!(new(&[1], After::Hold), Some(StepsError::LateStart));
    assert_eq!(new(&[0, 5, 5], After::Hold), Some(StepsError::OutOfOrder(2)));
    assert_eq!(new(&[0, 5], After::Loop(span(5))), Some(StepsError::EarlyEnd));
    assert_eq!(new(&[0], After::Loop(span(0))), Some(StepsError::EarlyEnd));
    assert_eq!(new(&[0, 5], After::End(span(5), ())), Some(StepsError::EarlyEnd));
    assert_eq!(new(&[0, 5], After::End(span(6), ())), None);
}

/// However much is skipped, the trace goes on from there: 2⁶⁴ − 1 ns are 1 ns into a round of 7.
#[test]
fn more_can_be_skipped_than_time_lasts() {
    assert_eq!(u64::MAX % 7, 1);
    let new = |after| Steps::new(vec![(time(0), 'a'), (time(3), 'b')], after).unwrap();
    let round = new(After::Loop(span(7))).starting(time(100), Duration::MAX);
    // 1 ns into the round at 100: b comes at 102, a at 106.
    let seen: Vec<char> = (98..115).map(|at| round.at(time(at))).collect();
    assert_eq!(seen, Vec::from_iter("aaaabbbbaaabbbbaa".chars()));
    // What has an end is over.
    for (after, value) in [(After::Hold, 'b'), (After::End(span(9), 'c'), 'c')] {
        let over = new(after).starting(time(100), Duration::MAX);
        assert_eq!((over.at(time(0)), over.at(time(u64::MAX - 1))), (value, value));
        assert_eq!(over.segment(time(100)).until, Time::NEVER);
    }
}

/// The value at an instant, by the definition: the number of its point.
fn plain(points: &[u64], after: After<usize>, start: u64, skipped: u64, at: u64) -> usize {
    let mut place = skipped + at.saturating_sub(start);
    match after {
        After::Loop(length) => {
            while place >= length.nanos() {
                place -= length.nanos();
            }
        }
        After::End(length, value) if place >= length.nanos() => return value,
        _ => {}
    }
    points.iter().rposition(|&point| point <= place).expect("the first is at zero")
}

fn trace() -> impl Strategy<Value = (Vec<u64>, After<usize>)> {
    (vec(1u64..20, 0..12), 1u64..20, 0..3).prop_map(|(gaps, rest, after)| {
        let mut points = vec![0];
        points.extend(gaps.iter().scan(0, |at, gap| {
            *at += gap;
            Some(*at)
        }));
        let length = span(points[points.len() - 1] + rest);
        let after = match after {
            0 => After::Loop(length),
            1 => After::Hold,
            _ => After::End(length, 99),
        };
        (points, after)
    })
}

proptest! {
    /// Instant by instant, with a cursor that jumps about, against the definition.
    #[test]
    fn every_instant_has_the_value_of_the_point_before_it(
        (points, after) in trace(),
        start in 0u64..50,
        skipped in prop_oneof![Just(0), 0u64..300],
        ats in vec(0u64..700, 1..40),
        goes_on: bool,
    ) {
        let numbered = points.iter().zip(0..).map(|(&at, n)| (time(at), n)).collect();
        let steps = Steps::new(numbered, after).unwrap().starting(time(start), span(skipped));
        let values: Vec<usize> =
            (0..1_000).map(|at| plain(&points, after, start, skipped, at)).collect();
        let mut ats = ats;
        if goes_on {
            ats.sort_unstable();
        }
        let mut segment = Segment::NOWHERE;
        for at in ats {
            steps.seek(&mut segment, time(at));
            prop_assert_eq!(segment, steps.segment(time(at)), "at {}", at);
            prop_assert!(segment.from <= time(at) && time(at) < segment.until);
            prop_assert_eq!(steps.at(time(at)), values[at as usize]);
            let until = segment.until.nanos().min(1_000) as usize;
            let alike = values[segment.from.nanos() as usize..until].iter().all(|&v| v == values[at as usize]);
            prop_assert!(alike, "{:?}", segment);
            prop_assert_eq!(steps.next_change(time(at)), segment.until);
        }
    }
}

#[test]
fn a_loop_of_an_odd_length_is_where_it_should_be_after_years() {
    // 7 ns; 2⁶³ ns are 292 years.
    let steps = Steps::new(vec![(time(0), 'a'), (time(3), 'b')], After::Loop(span(7))).unwrap();
    let years = 1u64 << 63;
    let phase = years % 7;
    for ahead in 0..14 {
        let value = if (phase + ahead) % 7 < 3 { 'a' } else { 'b' };
        assert_eq!(steps.at(time(years + ahead)), value);
    }
}

#[test]
fn means_are_over_time() {
    let points = vec![(time(0), 1.0), (time(10), 4.0)];
    let mean = |after| Steps::new(points.clone(), after).unwrap().mean(|v| *v);
    assert!((mean(After::Loop(span(15))) - 2.0).abs() < 1e-12);
    assert!((mean(After::End(span(40), 9.0)) - 3.25).abs() < 1e-12);
    assert!((mean(After::Hold) - 1.0).abs() < 1e-12);
    let always = Steps::new(vec![(time(0), 3.0)], After::Hold).unwrap();
    assert!((always.mean(|v| *v) - 3.0).abs() < 1e-12);
}

#[test]
fn steps_share_their_points() {
    let steps = Steps::new(vec![(time(0), 1), (time(5), 2)], After::Hold).unwrap();
    assert!(core::ptr::eq(steps.points(), steps.clone().starting(time(3), span(2)).points()));
    let doubled = steps.map(|value| value * 2);
    assert_eq!(doubled.points(), [(time(0), 2), (time(5), 4)]);
}
