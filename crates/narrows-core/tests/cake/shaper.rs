//! The shaper: packets leave as if each took its time at the bandwidth, whatever the link.

use narrows_core::sched::{CakeConfig, Framing};
use narrows_core::{Duration, Rate, Time};
use proptest::prelude::*;

use crate::link::{Arrival, flow, run};

proptest! {
    /// One flow, too short for queue management: each packet leaves when it has come and those before it have taken
    /// their time. Exactly, however odd the rate.
    #[test]
    fn departures_are_those_of_a_wire(
        packets in proptest::collection::vec((0u64..3_000_000, 60u32..1_500), 1..60),
        rate in 1_000_000u64..40_000_000,
    ) {
        let bandwidth = Rate::from_bits_per_second(rate);
        let config = CakeConfig {
            bandwidth,
            framing: Framing { overhead: Some(0), ..Framing::default() },
            rtt: Duration::from_secs(1000),
            ..CakeConfig::default()
        };
        let mut at = Time::ZERO;
        let arrivals: Vec<Arrival> = packets.iter().map(|&(gap, length)| {
            at = at + Duration::from_nanos(gap);
            Arrival { at, key: flow(1, 2, 3), length }
        }).collect();
        let outcome = run(config, Rate::UNLIMITED, &arrivals);
        // In billionths of a bit at the rate; the wire is free at `free`.
        let mut free = 0u128;
        for (arrival, sent) in arrivals.iter().zip(&outcome.sent) {
            let came = u128::from(arrival.at.nanos()) * u128::from(rate);
            // Only an arrival at an empty queue begins anew: what has come before waits for its turn.
            free = free.max(came);
            prop_assert_eq!(u128::from(sent.at.nanos()), free.div_ceil(rate.into()));
            free += u128::from(arrival.length) * 8_000_000_000;
        }
    }
}

/// What has been unused is no credit: after a second of idleness, the second packet waits for the first.
#[test]
fn there_is_no_burst() {
    let bandwidth = Rate::from_bits_per_second(8_000_000);
    let config = CakeConfig { bandwidth, ..CakeConfig::default() };
    let at = Time::ZERO + Duration::from_secs(1);
    let arrivals = [Arrival { at, key: flow(1, 2, 3), length: 1000 }; 3];
    let outcome = run(config, Rate::UNLIMITED, &arrivals);
    let instants: Vec<u64> = outcome.sent.iter().map(|sent| sent.at.nanos() - at.nanos()).collect();
    assert_eq!(instants, [0, 1_000_000, 2_000_000]);
}
