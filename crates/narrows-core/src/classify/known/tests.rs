use alloc::collections::{BTreeMap, VecDeque};

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// A flow of a small set, with fields that differ in many places.
fn flow(which: u32) -> Flow {
    let which = u128::from(which);
    Flow {
        source: which << 90 | which,
        destination: 0xffff_0a00_0000 | (which % 7),
        flow_label: (which % 3) as u32,
        source_port: (which % 5) as u16,
        ..Flow::default()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Use(u32),
    Idle(u32, u64),
    Busy(u32),
    Remove(u32),
    Expire(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..60u32).prop_map(Step::Use),
        3 => (0..60u32, 0..10u64).prop_map(|(flow, later)| Step::Idle(flow, later)),
        1 => (0..60u32).prop_map(Step::Busy),
        1 => (0..60u32).prop_map(Step::Remove),
        1 => (0..20u64).prop_map(Step::Expire),
    ]
}

proptest! {
    /// The same as a sorted map and a plain list of who is idle.
    #[test]
    fn it_is_a_map_and_a_row(steps in vec(step(), 1..400), most in 1..50u32) {
        let mut known = Known::new(Seed(7), "link", most);
        let mut numbers: BTreeMap<Flow, u32> = BTreeMap::new();
        let mut idle: VecDeque<(u32, u64)> = VecDeque::new();
        let mut free: Vec<u32> = Vec::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Use(which) => {
                    let flow = flow(which);
                    prop_assert_eq!(known.find(&flow), numbers.get(&flow).copied());
                    if !numbers.contains_key(&flow) {
                        let expected = (numbers.len() < most as usize).then(|| {
                            free.pop().unwrap_or(numbers.len() as u32)
                        });
                        prop_assert_eq!(known.insert(flow), expected);
                        numbers.extend(expected.map(|number| (flow, number)));
                    }
                }
                Step::Idle(which, later) => {
                    now += later;
                    if let Some(number) = known.find(&flow(which)) {
                        known.idle(number, Time::from_nanos(now));
                        idle.retain(|&(other, _)| other != number);
                        idle.push_back((number, now));
                    }
                }
                Step::Busy(which) => {
                    if let Some(number) = known.find(&flow(which)) {
                        known.busy(number);
                        idle.retain(|&(other, _)| other != number);
                    }
                }
                Step::Remove(which) => {
                    if let Some(number) = numbers.remove(&flow(which)) {
                        known.remove(number);
                        idle.retain(|&(other, _)| other != number);
                        free.push(number);
                    }
                }
                Step::Expire(ago) => {
                    let before = now.saturating_sub(ago);
                    while let Some(number) = known.expired(Time::from_nanos(before)) {
                        let first = idle.pop_front();
                        prop_assert_eq!(first.map(|(number, _)| number), Some(number));
                        prop_assert!(first.is_some_and(|(_, since)| since <= before));
                        numbers.remove(known.flow(number));
                        known.remove(number);
                        free.push(number);
                    }
                    prop_assert!(idle.front().is_none_or(|&(_, since)| since > before));
                }
            }
            prop_assert_eq!(known.len() as usize, numbers.len());
            let mut by_number: Vec<(u32, Flow)> = numbers.iter().map(|(&flow, &n)| (n, flow)).collect();
            by_number.sort_unstable();
            prop_assert_eq!(known.iter().map(|(n, &flow)| (n, flow)).collect::<Vec<_>>(), by_number);
            for (flow, &number) in &numbers {
                prop_assert_eq!(known.find(flow), Some(number));
                let since = idle.iter().find(|&&(other, _)| other == number).map(|&(_, since)| since);
                prop_assert_eq!(known.idle_since(number), since.map(Time::from_nanos));
            }
        }
    }
}

#[test]
fn a_flow_takes_64_bytes() {
    assert_eq!(size_of::<Entry>(), 64);
}

/// Addresses in a row, ports in a row, both, and the upper halves of IPv6 addresses: searches stay short, as for random
/// places. With a load of α they take (1 + 1/(1 − α)) / 2 looks on average (Knuth, 6.4): at 3/4 that is 2.5.
#[test]
fn searches_are_short() {
    let kinds: [fn(u32) -> Flow; 4] = [
        |n| Flow { source: 0xffff_0a00_0000 + u128::from(n), ..Flow::default() },
        |n| Flow { destination: u128::from(n) << 64, ..Flow::default() },
        |n| Flow { source_port: n as u16, destination_port: (n >> 16) as u16, ..Flow::default() },
        |n| Flow { source: u128::from(n / 256) << 80, queue: n % 256, ..Flow::default() },
    ];
    for (kind, make) in kinds.iter().enumerate() {
        let mut known = Known::new(Seed(1), "x", Known::MOST);
        let flows = 3 << 14;
        for n in 0..flows {
            known.insert(make(n)).unwrap();
        }
        assert_eq!(known.places.len(), 1 << 16);
        let mask = known.places.len() - 1;
        let looks = |(place, &number): (usize, &u32)| match number {
            NONE => 0,
            number => (place.wrapping_sub(known.home(known.flow(number))) & mask) + 1,
        };
        let all: usize = known.places.iter().enumerate().map(looks).sum();
        let mean = all as f64 / f64::from(flows);
        assert!((2.3..2.7).contains(&mean), "kind {kind}: {mean}");
    }
}

#[test]
fn what_went_leaves_nothing_behind() {
    let mut known = Known::new(Seed(1), "x", 100);
    for n in 0..100_000 {
        let number = known.insert(flow(n)).unwrap();
        known.idle(number, Time::from_nanos(n.into()));
        if known.len() == 100 {
            let first = known.expired(Time::from_nanos(u64::from(n) - 99)).unwrap();
            assert_eq!(*known.flow(first), flow(n - 99));
            known.remove(first);
        }
    }
    assert_eq!((known.len(), known.entries.len(), known.places.len()), (99, 100, 256));
}
