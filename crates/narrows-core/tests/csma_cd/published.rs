//! Saturated stations against what is published about Ethernet.

use libm::pow;
use narrows_core::sched::CsmaCdConfig;

use crate::wire::{Cable, What};

/// Bits of the 10 Mbit/s that are frames (preamble included, gap not), of stations that always have some.
fn efficiency(stations: u32, length: u32, frames: usize) -> f64 {
    let mut cable = Cable::saturated(CsmaCdConfig::default(), stations, length, 7);
    cable.run_until_done(frames);
    let (first, last) = (cable.done[0].nanos, cable.done[frames - 1].nanos);
    let sent = cable.done[..frames - 1].iter().filter(|done| matches!(done.what, What::Sends(_))).count();
    sent as f64 * f64::from(64 + 8 * length) * 100.0 / (last - first) as f64
}

/// R. M. Metcalfe and D. R. Boggs, "Ethernet: distributed packet switching for local computer networks", CACM 19(7), 1976,
/// section 6: `E = (P/C) / (P/C + W·T)`, `W = (1 − A)/A`, `A = (1 − 1/Q)^(Q − 1)`.
fn metcalfe_boggs(stations: u32, bits: f64, megabits: f64, slot: f64) -> f64 {
    let q = f64::from(stations);
    let acquires = pow(1.0 - 1.0 / q, q - 1.0);
    let waits = (1.0 - acquires) / acquires;
    let packet = bits / megabits;
    packet / (packet + waits * slot)
}

#[test]
fn the_formula_is_that_of_the_paper() {
    // Its table 1, for 3 Mbit/s and slots of 16 µs.
    for (stations, bits, expected) in
        [(2, 4096.0, 0.9884), (2, 48.0, 0.5), (5, 48.0, 0.4096), (10, 48.0, 0.3874), (1, 48.0, 1.0)]
    {
        let found = metcalfe_boggs(stations, bits, 3.0, 16.0);
        assert!((found - expected).abs() < 1e-4, "{stations} {bits}: {found}");
    }
}

/// The formula takes a whole slot of 51.2 µs for each contention that fails, as on the longest cable that there may be, and
/// lets all stations contend for each frame. On a short one a collision and its gap take 19.2 µs, and losers stay out of the
/// way for their backoffs, so the efficiency is higher, the more so the shorter the frames; it cannot be higher than without
/// collisions. That is what measurements of real ones found: D. R. Boggs, J. C. Mogul and C. A. Kent, "Measured capacity of an
/// Ethernet: myths and reality", SIGCOMM 1988 ("capable of carrying its nominal bandwidth"). For long frames the two meet.
#[test]
fn efficiency_lies_between_the_formula_and_one() {
    for (length, most) in [(64, 0.6), (256, 0.26), (1024, 0.075), (1518, 0.05)] {
        let mut before = 1.0;
        for stations in [2, 3, 5, 10, 24] {
            let measured = efficiency(stations, length, 20_000);
            let bits = f64::from(64 + 8 * length);
            // The paper has no gap.
            let without_gap = measured * (bits + 96.0) / bits;
            let formula = metcalfe_boggs(stations, bits, 10.0, 51.2);
            assert!(
                without_gap > formula && without_gap < 1.0,
                "{stations} × {length}: {measured} {formula}"
            );
            assert!(without_gap - formula < most, "{stations} × {length}: {measured} {formula}");
            assert!(measured < before, "more stations collide more: {stations} × {length}");
            before = measured;
        }
    }
}

/// The limit without collisions: one station's frames and gaps.
#[test]
fn a_station_alone_has_all_but_the_gaps() {
    for length in [64, 1518] {
        let bits = f64::from(64 + 8 * length);
        assert!((efficiency(1, length, 1_000) - bits / (bits + 96.0)).abs() < 1e-9);
    }
}

/// K. K. Ramakrishnan and H. Yang, "The Ethernet capture effect: analysis and solution", LCN 1994: two stations collide, the
/// loser's frame for the m-th time in a row, the winner's next one for the first. The winner draws from 2 slots, the loser from
/// 2^m: the winner goes first again with 1 − 3/2^(m+1), the loser with 1/2^(m+1), and with 1/2^m they collide again.
#[test]
fn the_winner_of_a_contention_captures_the_medium() {
    // For m = 2, 3, 4, each given that the winner has won all before; how often it wins, loses, ties.
    let mut found = [[0_u32; 3]; 3];
    for seed in 0..20_000 {
        let mut cable = Cable::new(CsmaCdConfig::default(), 2, seed);
        for station in [0, 1, 0, 1, 0, 1, 0, 1] {
            // 24 slots of air time: whatever is drawn up to m = 4 is over by then.
            cable.arrive(0, station, 1514);
        }
        cable.run_until_done(1);
        let winner = cable.done[0].station;
        let collisions = |cable: &Cable| cable.server.scheduler().counters().collisions;
        if collisions(&cable) != 1 {
            continue;
        }
        for (step, row) in found.iter_mut().enumerate() {
            cable.run_until_done(step + 2);
            let outcome =
                match (collisions(&cable) == step as u64 + 2, cable.done[step + 1].station == winner) {
                    (true, true) => 0,
                    (true, false) => 1,
                    (false, _) => 2,
                };
            row[outcome] += 1;
            if outcome != 0 {
                break;
            }
        }
    }
    for (row, m) in found.into_iter().zip(2..) {
        let total = f64::from(row.iter().sum::<u32>());
        let window = pow(2.0, f64::from(m));
        let expected = [1.0 - 1.5 / window, 0.5 / window, 1.0 / window];
        for (count, expected) in row.into_iter().zip(expected) {
            let (share, error) = (f64::from(count) / total, (expected * (1.0 - expected) / total).sqrt());
            assert!((share - expected).abs() < 4.0 * error, "m = {m}: {share} ± {error}, {expected}");
        }
    }
}
