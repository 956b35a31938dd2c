//! Timelines by hand, at 10 Mbit/s: a bit is 100 ns, a preamble 6.4 µs, a gap 9.6 µs, a slot 51.2 µs.

use narrows_core::Time;
use narrows_core::sched::CsmaCdConfig;

use crate::wire::{Cable, Done, What, slots};

const PREAMBLE: u64 = 6_400;
const JAM: u64 = 3_200;
const GAP: u64 = 9_600;
const SLOT: u64 = 51_200;
const END: Time = Time::from_nanos(u64::MAX / 2);

fn sends(nanos: u64, station: u32, length: u32) -> Done {
    Done { nanos, station, what: What::Sends(length) }
}

fn default() -> Cable {
    Cable::new(CsmaCdConfig::default(), 4, 1)
}

#[test]
fn a_station_alone_sends_at_once_and_then_after_the_gap() {
    let mut cable = default();
    cable.arrive(1_000, 0, 1514);
    cable.arrive(1_000, 0, 40);
    cable.run_until(END);
    // 1518 bytes; then at least 64.
    let second = 1_000 + PREAMBLE + 1518 * 800 + GAP + PREAMBLE;
    assert_eq!(cable.done, [sends(1_000 + PREAMBLE, 0, 1514), sends(second, 0, 40)]);
    // After a long idle time there is no gap to wait for.
    let end = second + 64 * 800;
    cable.arrive(end + GAP, 0, 40);
    cable.arrive(end + GAP + 200_000, 1, 40);
    cable.run_until(END);
    let third = [sends(end + GAP + PREAMBLE, 0, 40), sends(end + GAP + 200_000 + PREAMBLE, 1, 40)];
    assert_eq!(cable.done[2..], third);
}

#[test]
fn who_has_heard_another_waits_and_who_has_not_collides() {
    // A signal takes 2 µs.
    for later in [0, 1, 1_999, 2_000, 5_000] {
        let mut cable = default();
        cable.arrive(10_000, 0, 1000);
        cable.arrive(10_000 + later, 1, 1000);
        cable.run_until(END);
        let counters = cable.server.scheduler().counters();
        assert_eq!(counters.collisions > 0, later < 2_000, "{later}");
        if later >= 2_000 {
            let first = 10_000 + PREAMBLE;
            let expected = [sends(first, 0, 1000), sends(first + 1004 * 800 + GAP + PREAMBLE, 1, 1000)];
            assert_eq!(cable.done, expected);
        }
    }
}

#[test]
fn stations_that_collide_jam_and_back_off_from_the_end_of_the_jam() {
    let (found, later) = (0..50).map(two_collide).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    // Half of the first backoffs differ.
    assert!((10..40).contains(&found) && later == 50 - found, "{found}");
}

/// One or the other, as the draws of this seed are: whether the first backoff told them apart.
fn two_collide(seed: u64) -> (u32, u32) {
    let mut cable = Cable::new(CsmaCdConfig::default(), 2, seed);
    cable.arrive(0, 0, 1000);
    cable.arrive(1_500, 1, 500);
    cable.run_until(END);
    let end = 1_500 + PREAMBLE + JAM;
    let backoffs = [slots(seed, 0, 1), slots(seed, 1, 1)];
    if backoffs[0] == backoffs[1] {
        assert!(cable.server.scheduler().counters().collisions > 1);
        return (0, 1);
    }
    let lengths = [1000, 500];
    let (winner, loser) = if backoffs[0] < backoffs[1] { (0, 1) } else { (1, 0) };
    // One slot is longer than the gap, so the other hears the frame; it waits until that is over.
    let first = end + GAP + PREAMBLE;
    let second = first + u64::from(lengths[winner] + 4) * 800 + GAP + PREAMBLE;
    let expected =
        [sends(first, winner as u32, lengths[winner]), sends(second, loser as u32, lengths[loser])];
    assert_eq!((backoffs[winner], cable.done.as_slice()), (0, &expected[..]));
    (1, 0)
}

#[test]
fn at_the_attempt_limit_a_frame_is_dropped() {
    // Everybody draws no slots: all collide again after each gap.
    let config = CsmaCdConfig { backoff_limit: 0, ..CsmaCdConfig::default() };
    let mut cable = Cable::new(config, 3, 1);
    for station in 0..3 {
        cable.arrive(0, station, 1000);
    }
    cable.run_until(END);
    let period = PREAMBLE + JAM + GAP;
    let end = 15 * period + PREAMBLE + JAM;
    let given_up = (0..3).map(|station| Done { nanos: end, station, what: What::GivesUp });
    assert_eq!(cable.done, given_up.collect::<Vec<_>>());
    let counters = cable.server.scheduler().counters();
    assert_eq!((counters.collisions, counters.collided, counters.frames), (16, 48, 0));
    // The next frame begins anew.
    cable.arrive(end + SLOT, 1, 1000);
    cable.run_until(END);
    assert_eq!(cable.done[3..], [sends(end + SLOT + PREAMBLE, 1, 1000)]);
}
