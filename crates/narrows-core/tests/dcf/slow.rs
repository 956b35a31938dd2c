//! The same order, the same instants as the slow model.

use narrows_core::sched::DcfConfig;
use narrows_core::{Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::air::{Air, ELEVEN, stream};
use crate::slow_model::{Arrival, SlowModel};

fn config() -> impl Strategy<Value = DcfConfig> {
    (0u32..6, 0u32..3, 1u8..8, any::<bool>()).prop_map(|(min, more, retry_limit, short)| DcfConfig {
        window_min: (1 << min) - 1,
        window_max: (1 << (min + more)) - 1,
        retry_limit,
        preamble: if short { DcfConfig::SHORT_PREAMBLE } else { DcfConfig::LONG_PREAMBLE },
        ..DcfConfig::default()
    })
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    // Gaps of whole microseconds meet the boundaries of slots and of DIFS.
    let gap = prop_oneof![Just(0), 0u64..200, 0u64..3_000, 0u64..40_000].prop_map(|micros| micros * 1_000);
    let gap = prop_oneof![gap, 0u64..2_000_000];
    vec((gap, 0usize..6, 20u32..1501), 1..60).prop_map(|steps| {
        let mut at = 0;
        let next = |(gap, station, length)| {
            at += gap;
            Arrival { at, station, length }
        };
        steps.into_iter().map(next).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Six stations with any packets at any instants.
    #[test]
    fn random_packets_are_sent_at_the_instants_of_the_slow_model(
        config in config(),
        arrivals in arrivals(),
        rate in prop_oneof![Just(1_000_000), Just(2_000_000), Just(5_500_000), Just(11_000_000)],
        seed in any::<u64>(),
    ) {
        let rate = Rate::from_bits_per_second(rate);
        let mut slow = SlowModel::new(config, rate, stream(seed), 6);
        slow.run(&arrivals, false, usize::MAX);
        let mut air = Air::new(config, rate, 6, seed);
        for arrival in &arrivals {
            air.arrive(Time::from_nanos(arrival.at), arrival.station as u32, arrival.length);
        }
        air.run_until(Time::from_nanos(u64::MAX / 2));
        prop_assert_eq!(&air.done, &slow.done);
        prop_assert_eq!(air.done.len(), arrivals.len());
    }
}

/// Saturated stations, for long.
#[test]
fn saturated_stations_are_served_as_in_the_slow_model() {
    for stations in [2, 7, 30] {
        let mut air = Air::saturated(DcfConfig::default(), stations, 1000, 21);
        air.run_until_done(3_000);
        let mut slow = SlowModel::new(DcfConfig::default(), ELEVEN, stream(21), stations as usize);
        let all = (0..2).flat_map(|_| 0..stations as usize);
        let arrivals: Vec<_> = all.map(|station| Arrival { at: 0, station, length: 1000 }).collect();
        slow.run(&arrivals, true, 3_000);
        assert_eq!(air.done[..3_000], slow.done[..3_000], "{stations}");
    }
}
