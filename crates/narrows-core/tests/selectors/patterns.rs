//! Patterns against a plain list of places.

use narrows_core::model::selector::{BitPattern, Pattern, Per, Selector, SelectorError};
use narrows_core::queue::Stand;
use narrows_core::{Corruption, Duration, FlowKey, LinkConfig, Seed, Stream, Target, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::corruption::Sender;

/// A list of hit places, and the same as ranges.
fn places() -> impl Strategy<Value = (Vec<bool>, Vec<std::ops::Range<u64>>)> {
    vec(any::<bool>(), 1..60).prop_map(|hit| {
        let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
        for place in (0..hit.len() as u64).filter(|&place| hit[place as usize]) {
            match ranges.last_mut() {
                Some(last) if last.end == place => last.end += 1,
                _ => ranges.push(place..place + 1),
            }
        }
        (hit, ranges)
    })
}

proptest! {
    #[test]
    fn packets_and_spans_of_time(
        (hit, ranges) in places(),
        gaps in vec(0u64..3_000, 1..200),
        unit in 1u64..2_000,
        origin in 0u64..3_000,
    ) {
        let length = hit.len() as u64;
        let mut stand = Stand::new(Seed(1));
        let packet = stand.insert(Time::ZERO, FlowKey::default(), 100);
        let state = stand.pool().get(packet);
        let mut draw = Stream::new(Seed(1), "", "").nth(0);
        let mut by_packet = Pattern::new(Per::Packet, length, ranges.clone()).unwrap();
        let per = Per::Time { unit: Duration::from_nanos(unit), origin: Time::from_nanos(origin) };
        let mut by_time = Pattern::new(per, length, ranges.clone()).unwrap();
        let mut now = 0;
        for (n, gap) in gaps.into_iter().enumerate() {
            now += gap;
            let at = Time::from_nanos(now);
            prop_assert_eq!(by_packet.selects(at, state, &mut draw), hit[n % hit.len()]);
            let span = now.saturating_sub(origin) / unit;
            prop_assert_eq!(by_time.selects(at, state, &mut draw), hit[(span % length) as usize]);
        }
        let count = hit.iter().filter(|&&hit| hit).count();
        prop_assert_eq!(by_packet.mean(), count as f64 / length as f64);
        if count > 0 && count < hit.len() {
            // The bursts of a pattern that goes round and round.
            let begins = (0..hit.len()).filter(|&n| hit[n] && !hit[(n + hit.len() - 1) % hit.len()]).count();
            prop_assert_eq!(by_packet.mean_burst(), Some(count as f64 / begins as f64));
        }
    }

    #[test]
    fn bits((hit, ranges) in places(), lengths in vec(1u32..40, 1..20)) {
        let pattern = BitPattern::new(hit.len() as u64, ranges).unwrap();
        let mut config = LinkConfig::new("link", Target::Port("out".into()));
        config.corruption = Some(Corruption::Pattern(pattern));
        let mut sender = Sender::new(1, config);
        let mut next = 0;
        for length in lengths {
            let bits = 8 * length;
            let expected: Vec<u32> = (0..bits).filter(|bit| hit[(next + *bit as usize) % hit.len()]).collect();
            next += bits as usize;
            prop_assert_eq!(sender.send(length).expect("nothing is lost"), expected);
        }
    }
}

#[test]
fn what_is_no_pattern() {
    let pattern = |length, hit: &[(u64, u64)]| {
        Pattern::new(Per::Packet, length, hit.iter().map(|&(from, to)| from..to))
    };
    assert_eq!(pattern(0, &[]).unwrap_err(), SelectorError::NoLength);
    assert_eq!(pattern(10, &[(3, 11)]).unwrap_err(), SelectorError::BeyondLength { place: 10, length: 10 });
    assert_eq!(pattern(10, &[(12, 13)]).unwrap_err(), SelectorError::BeyondLength { place: 12, length: 10 });
    assert_eq!(pattern(10, &[(3, 5), (4, 6)]).unwrap_err(), SelectorError::NotAscending { place: 4 });
    let still = Per::Time { unit: Duration::ZERO, origin: Time::ZERO };
    assert_eq!(Pattern::new(still, 10, std::iter::once(0..1)).unwrap_err(), SelectorError::NoLength);
}
