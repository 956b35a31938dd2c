use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::service::{ConstantRate, Opportunities};
use crate::steps::After;
use crate::units::Rate;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Tenths of a millisecond.
fn at(tenths: u64) -> Time {
    Time::from_nanos(tenths * 100_000)
}

/// From 0 on: 20 ms, and opportunities after 0, 0, 1 and 3 ms; from 100 ms on: 40 ms, after 0 and 2 ms; the
/// trace ends at 200 ms with 20 ms.
fn light() -> LightTrace {
    let train = |at, base, first| Train { at: Time::ZERO + millis(at), base: millis(base), first };
    let trains = vec![train(0, 20, 0), train(100, 40, 4), train(200, 20, 6)];
    LightTrace::new(trains, [0, 0, 1, 3, 0, 2].map(millis)).unwrap()
}

/// Heavy opportunities of 1400 bytes every 10 ms.
fn heavy() -> Box<dyn ServiceCurve> {
    let instants: Vec<Time> = (1..=10).map(|n| Time::ZERO + millis(n * 10)).collect();
    Box::new(Opportunities::new(instants, Bytes::new(1400), After::Loop(millis(100))).unwrap())
}

const CONFIG: CellConfig = CellConfig {
    opportunity: Bytes::new(1400),
    idle: MILLISECOND,
    most_packets: None,
    most_bytes: None,
    start: Time::ZERO,
    skipped: Duration::ZERO,
};

/// When packets that arrive at these tenths of a millisecond leave, in tenths; of this many bytes each.
fn run(config: CellConfig, bytes: u64, arrivals: &[u64]) -> Vec<Option<u64>> {
    let mut cell = Cell::new(light(), heavy(), config);
    let leaves = |tenths: &u64| Some(cell.leaves(at(*tenths), bytes)?.nanos() / 100_000);
    arrivals.iter().map(leaves).collect()
}

fn all(tenths: &[u64]) -> Vec<Option<u64>> {
    tenths.iter().copied().map(Some).collect()
}

#[test]
fn a_burst_takes_light_opportunities_then_heavy_ones() {
    // Four at 20 ms + 0, 0, 1, 3; then the heavy ones after 23 ms.
    assert_eq!(run(CONFIG, 1400, &[0; 7]), all(&[200, 200, 210, 230, 300, 400, 500]));
    // Two packets for each opportunity: after eight, two leave at a time.
    let halves = [200, 200, 200, 200, 210, 210, 230, 230, 300, 300, 400];
    assert_eq!(run(CONFIG, 700, &[0; 11]), all(&halves));
    // A packet that does not fit in the rest of a light opportunity takes the next; heavy ones are divided.
    assert_eq!(run(CONFIG, 1000, &[0; 8]), all(&[200, 200, 210, 230, 300, 400, 500, 500]));
    // Longer than an opportunity: two light ones each; then 2000 bytes of 1400 + 1400, of which 800 are left.
    assert_eq!(run(CONFIG, 2000, &[0; 4]), all(&[200, 230, 400, 500]));
}

#[test]
fn a_packet_that_finds_the_light_stage_empty_begins_a_session_with_the_base_delay_of_that_time() {
    // Linear from 20 ms at 0 to 40 ms at 100 ms and back to 20 ms at 200 ms, where the trace begins again.
    let arrivals = [0, 250, 500, 1000, 1500, 1990, 2000, 2250, 12_500];
    assert_eq!(run(CONFIG, 1400, &arrivals), all(&[200, 500, 800, 1400, 1800, 2192, 2200, 2500, 12_800]));
}

#[test]
fn opportunities_pass_unused() {
    // At 0.2 ms the second at 0 ms still serves; at 1.1 ms that of 1 ms; at 1.9 ms that of 3 ms.
    assert_eq!(run(CONFIG, 1400, &[0, 2, 11, 19]), all(&[200, 202, 211, 230]));
    // A millisecond after the light stage was empty, a new session begins, with the base delay of then.
    let base = 20_000_000 + 20_000_000 * 13 / 1000;
    let mut cell = Cell::new(light(), heavy(), CONFIG);
    assert_eq!(cell.leaves(at(0), 1400), Some(at(200)));
    assert_eq!(cell.leaves(at(13), 1400), Some(at(13) + Duration::from_nanos(base)));
    // Not with a longer timer: there the second packet has the session's second opportunity, at once.
    assert_eq!(run(CellConfig { idle: millis(2), ..CONFIG }, 1400, &[0, 9, 13]), all(&[200, 209, 213]));
}

#[test]
fn sessions_wait_behind_the_heavy_queue() {
    // Six at 0: the last leaves at 40 ms. At 15 ms, b = 23 ms: the light stage gives 38 ms, but a packet
    // waits until 40 ms. So that of 15 ms is a heavy one, at 50 ms; that of 50 ms finds the queue empty.
    let burst = [0, 0, 0, 0, 0, 0, 150, 500];
    assert_eq!(run(CONFIG, 1400, &burst), all(&[200, 200, 210, 230, 300, 400, 500, 800]));
}

#[test]
fn the_heavy_queue_drops_its_tail() {
    let two = CellConfig { most_packets: Some(2), ..CONFIG };
    let packets = run(two, 1400, &[0, 0, 0, 0, 0, 0, 0, 250]);
    let times = [Some(200), Some(200), Some(210), Some(230), Some(300), Some(400), None];
    assert_eq!(packets[..7], times);
    let bytes = CellConfig { most_bytes: Some(Bytes::new(2800)), ..CONFIG };
    // At 25 ms + 25 ms both have left.
    assert_eq!(packets[7], Some(500));
    assert_eq!(run(bytes, 1400, &[0; 7])[..], times);
}

#[test]
fn the_heavy_curve_may_be_a_rate_and_the_traces_begin_where_told() {
    let rate = || Box::new(ConstantRate(Rate::from_bits_per_second(1_400 * 8 * 1000)));
    let mut cell = Cell::new(light(), rate(), CONFIG);
    // A millisecond for each packet behind 23 ms.
    let left: Vec<_> = (0..6).map(|_| cell.leaves(at(0), 1400).unwrap()).collect();
    assert_eq!(left[4..], [at(240), at(250)]);
    let never = Box::new(ConstantRate(Rate::DOWN));
    let mut cell = Cell::new(light(), never, CONFIG);
    assert_eq!((0..5).map(|_| cell.leaves(at(0), 1400)).last(), Some(None));
    // 100 ms into the trace at 50 ms: b = 40 ms; two opportunities, at 0 and 2 ms.
    let config = CellConfig { start: at(500), skipped: millis(100), ..CONFIG };
    assert_eq!(run(config, 1400, &[500, 500]), all(&[900, 920]));
}

#[test]
fn the_mean_is_that_of_the_base_delay_and_what_is_no_trace_is_refused() {
    assert_eq!(light().mean_base(), millis(30));
    let train = |at, first| Train { at: Time::ZERO + millis(at), base: millis(1), first };
    for (trains, offsets) in [
        (vec![], &[][..]),
        (vec![train(0, 0)], &[0]),
        (vec![train(1, 0), train(2, 1)], &[0]),
        (vec![train(0, 0), train(0, 1)], &[0]),
        (vec![train(0, 0), train(1, 2)], &[1, 0]),
        (vec![train(0, 0), train(1, 2)], &[0]),
    ] {
        let offsets: Vec<Duration> = offsets.iter().copied().map(millis).collect();
        assert_eq!(LightTrace::new(trains, offsets), None);
    }
}
