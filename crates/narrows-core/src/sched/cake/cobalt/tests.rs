use super::*;

const WITH: Parameters = Parameters {
    target: Duration::from_millis(5),
    interval: Duration::from_millis(100),
    packet_time: Duration::from_micros(100),
};

const LATE: Duration = Duration::from_millis(6);

fn at(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

fn judge(cobalt: &mut Cobalt, now: Time, sojourn: Duration) -> Judged {
    cobalt.judge(&WITH, now, sojourn, 0, false, || panic!("BLUE is at rest"))
}

/// The instants, in microseconds, at which a packet each 100 µs is dropped.
fn drops(cobalt: &mut Cobalt, from: u64, until: u64, sojourn: Duration) -> Vec<u64> {
    let instants = (from..until).step_by(100);
    instants.filter(|&micros| judge(cobalt, at(micros), sojourn).drop).collect()
}

use alloc::vec;
use alloc::vec::Vec;

#[test]
fn roots_are_near_the_exact_ones() {
    assert_eq!(TABLE[..5], [u32::MAX, u32::MAX, 3_037_000_499, 2_479_700_524, 1 << 31]);
    let mut root = TABLE[15];
    for count in 2..100_000u32 {
        root = TABLE.get(count as usize).copied().unwrap_or_else(|| newton(root, count));
        let exact = 4_294_967_296.0 / libm::sqrt(f64::from(count));
        assert!((f64::from(root) / exact - 1.0).abs() < 0.002, "{count}");
    }
}

/// By hand: the first signal comes with the second late packet, the next ones after 70.71, 57.74, 50 and 44.72 ms.
#[test]
fn signals_follow_the_control_law() {
    let mut cobalt = Cobalt::default();
    assert_eq!(drops(&mut cobalt, 0, 1_000, Duration::from_millis(5)), [0; 0], "at the target, none is late");
    let late = drops(&mut cobalt, 1_000, 250_000, LATE);
    // 1000 + 70711 = 71711, + 57735 = 129446, + 50000 = 179446, + 44721 = 224167; the next packet is the one dropped.
    assert_eq!(late, [1_100, 71_800, 129_500, 179_500, 224_200]);
    // The drop at 224.2 ms was the fifth, after a count of 1.
    assert_eq!(cobalt.count, 6);
}

/// After the first episode, dropping begins an interval after the first late packet, at 1/√count of it.
#[test]
fn a_later_episode_begins_after_a_fraction_of_the_interval() {
    let mut cobalt = Cobalt::default();
    drops(&mut cobalt, 0, 1_000, LATE);
    assert_eq!(cobalt.count, 2);
    drops(&mut cobalt, 1_000, 1_100, Duration::ZERO);
    // 1/√2 of 100 ms after 1100 µs.
    assert_eq!(drops(&mut cobalt, 1_100, 80_000, LATE), [71_900]);
}

#[test]
fn the_count_decays_while_packets_are_on_time() {
    let mut cobalt = Cobalt::default();
    drops(&mut cobalt, 0, 250_000, LATE);
    let count = cobalt.count;
    assert!(count > 4);
    let mut steps = vec![count];
    for micros in (250_000..1_200_000).step_by(100) {
        judge(&mut cobalt, at(micros), Duration::ZERO);
        if steps.last() != Some(&cobalt.count) {
            steps.push(cobalt.count);
        }
    }
    assert_eq!(steps, (0..=count).rev().collect::<Vec<_>>());
    // At rest an interval after the last packet.
    assert!(!cobalt.is_at_rest(at(1_200_000)) && cobalt.is_at_rest(at(1_199_900 + 100_000)));
    // All at once, too.
    let mut other = Cobalt::default();
    drops(&mut other, 0, 250_000, LATE);
    judge(&mut other, at(1_199_900), Duration::ZERO);
    assert_eq!(other.count, 0);
}

#[test]
fn what_can_be_marked_is_marked_and_the_schedule_is_the_same() {
    let (mut one, mut other) = <(Cobalt, Cobalt)>::default();
    for micros in (0..250_000).step_by(100) {
        let dropped = judge(&mut one, at(micros), LATE);
        let marked = other.judge(&WITH, at(micros), LATE, 0, true, || 0);
        assert_eq!((marked.mark, marked.drop), (dropped.drop, false));
    }
}

#[test]
fn a_few_packets_are_no_standing_queue() {
    let slow = Parameters { packet_time: Duration::from_millis(2), ..WITH };
    let judge = |sojourn, bulk| {
        let mut cobalt = Cobalt::default();
        cobalt.judge(&slow, at(0), sojourn, bulk, false, || 0);
        cobalt.count == 1
    };
    let ms = Duration::from_millis;
    assert_eq!([judge(ms(8), 0), judge(ms(9), 0)], [false, true], "four packets take 8 ms");
    assert_eq!([judge(ms(12), 3), judge(ms(13), 3)], [false, true], "two of each bulk flow");
}

#[test]
fn blue_goes_up_and_down_once_per_target() {
    let mut cobalt = Cobalt::default();
    for micros in 0..20_000 {
        cobalt.full(&WITH, at(micros));
    }
    // At 0, 5001, 10002 and 15003 µs.
    assert_eq!(cobalt.probability, 4 << 24);
    for micros in 20_000..30_000 {
        cobalt.empty(&WITH, at(micros));
    }
    // After 20004 and 25005 µs.
    assert_eq!(cobalt.probability, (4 << 24) - (2 << 20));
    assert!(!cobalt.is_at_rest(Time::NEVER));
    let mut is_dropped = |draw| {
        let judged = cobalt.judge(&WITH, at(40_000), Duration::ZERO, 0, true, || draw);
        (judged.drop, judged.mark)
    };
    let limit = (4 << 24) - (2 << 20);
    assert_eq!([is_dropped(limit - 1), is_dropped(limit)], [(true, false), (false, false)]);
}
