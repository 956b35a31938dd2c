//! Hidden stations: the same instants as a model that walks through every microsecond, and closed forms.

use narrows_core::sched::DcfConfig;
use narrows_core::{Duration, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::air::{Air, Done, ELEVEN, What, micros, stream};
use crate::cell::Cell;
use crate::hidden_model::HiddenModel;
use crate::slow_model::Arrival;

const STATIONS: usize = 5;

fn rates() -> impl Strategy<Value = Vec<Rate>> {
    let rate = prop_oneof![Just(1_000_000), Just(2_000_000), Just(5_500_000), Just(11_000_000)];
    vec(rate.prop_map(Rate::from_bits_per_second), STATIONS)
}

fn config() -> impl Strategy<Value = DcfConfig> {
    let rts = prop_oneof![Just(None), Just(Some(0)), Just(Some(700))];
    (0u32..6, 0u32..3, 1u8..8, any::<bool>(), rts).prop_map(
        |(min, more, retry_limit, short, rts_threshold)| DcfConfig {
            window_min: (1 << min) - 1,
            window_max: (1 << (min + more)) - 1,
            retry_limit,
            preamble: if short { DcfConfig::SHORT_PREAMBLE } else { DcfConfig::LONG_PREAMBLE },
            rts_threshold,
            ..DcfConfig::default()
        },
    )
}

fn pairs() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let all: Vec<(u32, u32)> = (0..5).flat_map(|one| (0..one).map(move |other| (one, other))).collect();
    let most = all.len();
    proptest::sample::subsequence(all, 0..=most)
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0), 0u64..40, 0u64..500, 0u64..4_000];
    vec((gap, 0..STATIONS, 20u32..1501), 1..30).prop_map(|steps| {
        let mut at = 0;
        let next = |(gap, station, length)| {
            at += gap * 1_000;
            Arrival { at, station, length }
        };
        steps.into_iter().map(next).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Any stations that hear each other or not, any packets, with and without RTS.
    #[test]
    fn packets_are_received_at_the_instants_of_the_model(
        config in config(),
        rates in rates(),
        pairs in pairs(),
        arrivals in arrivals(),
        seed in any::<u64>(),
    ) {
        let mut model = HiddenModel::new(config, &rates, &pairs, stream(seed));
        model.run(&arrivals, false, u64::MAX);
        let mut cell = Cell::new(config, &rates, &pairs, stream(seed));
        for arrival in &arrivals {
            cell.arrive(Time::from_nanos(arrival.at), arrival.station as u32, arrival.length);
        }
        cell.run_until(Time::from_nanos(u64::MAX / 2));
        prop_assert_eq!(&cell.done, &model.done);
        prop_assert_eq!(cell.done.len(), arrivals.len());
    }
}

const ONE: Rate = Rate::from_bits_per_second(1_000_000);

/// Packets that have left by the end of a run of so many seconds.
fn run(mut cell: Cell, seconds: u64) -> Cell {
    cell.run_until(micros(seconds * 1_000_000));
    cell
}

fn sent(done: &[Done]) -> usize {
    done.iter().filter(|done| done.what != What::GivesUp).count()
}

/// Without hidden stations it is the DCF: the same frames at the same instants, a PSDU later.
#[test]
fn stations_that_hear_all_are_those_of_the_dcf() {
    for rts_threshold in [None, Some(0)] {
        let config = DcfConfig { rts_threshold, ..DcfConfig::default() };
        for stations in [1, 2, 7, 30] {
            let mut air = Air::saturated(config, stations, 1064, 21);
            air.run_until_done(2_000);
            let rates = vec![ELEVEN; stations as usize];
            let cell = run(Cell::new(config, &rates, &[], stream(21)).saturated(1064), 10);
            // 1100 bytes take 800 µs at 11 Mbit/s.
            let ends = |done: &Done| match done.what {
                What::Sends(_) => Done { at: done.at + Duration::from_micros(800), ..*done },
                What::GivesUp => *done,
            };
            let mut expected: Vec<Done> = air.done.iter().map(ends).collect();
            let mut found = cell.done;
            // Another order: one gives up its packet before the PSDU of another one ends.
            expected.sort_by_key(|done| (done.at, done.station));
            found.sort_by_key(|done| (done.at, done.station));
            assert_eq!(found[..1_990], expected[..1_990], "{stations}");
        }
    }
}

/// Two hidden stations with few packets and no retries: a frame is lost if the other station starts less than a frame
/// before it or after it, or in the SIFS before its ACK, with probability 1 − exp(−λ·(2·T + SIFS)).
#[test]
fn the_vulnerable_period_is_two_frames() {
    // 1100 bytes at 1 Mbit/s with the preamble, and exponential gaps between packets.
    let (frame, gap) = (8.0 * 1100.0 + 192.0, 200_000.0);
    let config = DcfConfig { window_min: 1, window_max: 1, retry_limit: 1, ..DcfConfig::default() };
    let random = stream(6);
    let mut arrivals = Vec::new();
    for station in 0..2 {
        let mut at = 0.0;
        for _ in 0..50_000 {
            let uniform = (random.nth(arrivals.len() as u64).below(1 << 40) + 1) as f64 / (1u64 << 40) as f64;
            at -= gap * libm::log(uniform);
            arrivals.push((at as u64, station));
        }
    }
    arrivals.sort();
    let mut cell = Cell::new(config, &[ONE, ONE], &[(0, 1)], stream(5));
    for (at, station) in arrivals {
        cell.arrive(micros(at), station, 1064);
    }
    let counters = cell.server.scheduler().counters();
    let lost = counters.collided as f64 / (counters.collided + counters.exchanges) as f64;
    let expected = 1.0 - libm::exp(-(2.0 * frame + 10.0) / gap);
    // About 4,000 collisions: a standard error of 1.6 %.
    assert!((lost / expected - 1.0).abs() < 0.05, "{lost} {expected}");
}

/// Saturated stations, for 0.4 s: three of which two are hidden from each other, and five in a row that hear only their
/// neighbours.
#[test]
fn saturated_hidden_stations_are_served_as_in_the_model() {
    let row: Vec<(u32, u32)> = (0..5).flat_map(|one| (one + 2..5).map(move |other| (one, other))).collect();
    for (stations, pairs) in [(3, vec![(0, 2)]), (5, row)] {
        for rts_threshold in [None, Some(0)] {
            let config = DcfConfig { rts_threshold, ..DcfConfig::default() };
            let rates = vec![ELEVEN; stations];
            let mut model = HiddenModel::new(config, &rates, &pairs, stream(8));
            let all = (0..2).flat_map(|_| 0..stations);
            let arrivals: Vec<_> = all.map(|station| Arrival { at: 0, station, length: 1000 }).collect();
            model.run(&arrivals, true, 400_000);
            let cell = Cell::new(config, &rates, &pairs, stream(8)).saturated(1000);
            let done = run(cell, 1).done;
            assert!(model.done.len() > 50, "{}", model.done.len());
            assert_eq!(done[..model.done.len()], model.done, "{stations}");
        }
    }
}

/// Saturated stations: two that do not hear each other get less than two that do, and RTS gives most of it back. With
/// more stations the difference grows: of ten in two groups that do not hear each other, RTS more than triples the
/// throughput.
#[test]
fn rts_recovers_the_throughput_of_hidden_stations() {
    let throughput = |stations: usize, pairs: &[(u32, u32)], rts_threshold| {
        let config = DcfConfig { rts_threshold, ..DcfConfig::default() };
        let cell = run(Cell::new(config, &vec![ELEVEN; stations], pairs, stream(3)).saturated(1500), 20);
        sent(&cell.done) as f64
    };
    let (all, all_rts) = (throughput(2, &[], None), throughput(2, &[], Some(0)));
    let (hidden, hidden_rts) = (throughput(2, &[(0, 1)], None), throughput(2, &[(0, 1)], Some(0)));
    assert!(hidden < 0.65 * all, "{hidden} {all}");
    assert!(hidden_rts > 0.85 * all_rts, "{hidden_rts} {all_rts}");
    let groups: Vec<(u32, u32)> = (0..5).flat_map(|one| (5..10).map(move |other| (one, other))).collect();
    assert!(throughput(10, &groups, Some(0)) > 3.0 * throughput(10, &groups, None));
}
