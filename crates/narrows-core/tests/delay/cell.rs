//! A cell replayed from a light and a heavy trace against one trace alone, on a synthetic cell whose rate follows the load.
//!
//! `cargo test -p narrows-core --test delay cell -- --nocapture` prints the table of `docs/traces.md`.

use std::collections::VecDeque;

use narrows_core::model::{Cell, CellConfig, Constant, LightTrace, Train};
use narrows_core::service::{Opportunities, Overhead};
use narrows_core::steps::After;
use narrows_core::{Bytes, Duration, Engine, LinkConfig, Target, Time};

use crate::order::{engine, packet};

const MILLI: u64 = 1_000_000;
/// The recordings, and the runs.
const LENGTH: u64 = 60_000;
const PACKET: u32 = 1500;
const OPPORTUNITY: Bytes = Bytes::new(1504);

/// A wave between two values with a period in milliseconds, in straight lines.
fn wave(milli: u64, period: u64, low: u64, high: u64) -> u64 {
    let place = milli % period * 2;
    let up = place.min(2 * period - place);
    low + (high - low) * up / period
}

/// The synthetic cell, in slots of a millisecond. A packet takes 12 ms through the core network, waits at the base station,
/// and takes 6 to 14 ms through the air. The base station gives an idle phone 15 % of its share; while data waits, that
/// grows to all of it within 80 ms, and falls again in 40 ms. The share is 1.5 to 3.5 packets a slot.
#[derive(Default)]
struct Synthetic {
    /// From 0 to 1000.
    activity: u64,
    /// Thousandths of a packet.
    credit: u64,
}

impl Synthetic {
    /// When packets that arrive at these milliseconds leave, in order.
    fn run(mut self, arrivals: &[u64]) -> Vec<u64> {
        let (mut left, mut waiting, mut next): (Vec<u64>, VecDeque<usize>, _) = Default::default();
        let mut milli = 0;
        while left.len() < arrivals.len() {
            while arrivals.get(next).is_some_and(|at| at + 12 <= milli) {
                waiting.push_back(next);
                next += 1;
            }
            match waiting.is_empty() {
                true => (self.activity, self.credit) = (self.activity.saturating_sub(1000 / 40), 0),
                false => {
                    self.activity = (self.activity + 1000 / 80).min(1000);
                    let share = wave(milli, 3100, 1500, 3500);
                    self.credit += share * (150 + 850 * self.activity / 1000) / 1000;
                }
            }
            while self.credit >= 1000 && !waiting.is_empty() {
                waiting.pop_front();
                self.credit -= 1000;
                let due = milli + wave(milli, 2300, 6, 14);
                left.push(due.max(left.last().copied().unwrap_or(0)));
            }
            milli += 1;
        }
        left
    }
}

/// The light trace: trains of 12 packets, ten a second, in whole milliseconds. Also returns the shortest delay.
fn light() -> (LightTrace, Duration) {
    const TRAIN: usize = 12;
    let starts: Vec<u64> = (0..LENGTH / 100).map(|n| n * 100).collect();
    let arrivals: Vec<u64> = starts.iter().flat_map(|start| [*start; TRAIN]).collect();
    let left = Synthetic::default().run(&arrivals);
    let (mut trains, mut offsets, mut shortest) = (Vec::new(), Vec::new(), Duration::from_secs(1));
    for (start, of) in starts.iter().zip(left.chunks(TRAIN)) {
        let base = Duration::from_millis(of[0] - start);
        shortest = shortest.min(base);
        trains.push(Train { at: Time::from_nanos(start * MILLI), base, first: offsets.len() as u32 });
        offsets.extend(of.iter().map(|at| Duration::from_millis(at - of[0])));
    }
    (LightTrace::new(trains, offsets).expect("it is a trace"), shortest)
}

/// The heavy trace: when packets leave a cell that always has some waiting.
fn heavy() -> Opportunities {
    let arrivals: Vec<u64> = (0..LENGTH).flat_map(|milli| [milli; 4]).collect();
    let left = Synthetic::default().run(&arrivals);
    let instants: Vec<Time> =
        left.into_iter().filter(|at| *at <= LENGTH).map(|at| Time::from_nanos(at * MILLI)).collect();
    Opportunities::new(instants, OPPORTUNITY, After::Loop(Duration::from_millis(LENGTH)))
        .expect("it is a trace")
}

/// Polls up to `until`, and notes when packets leave, in milliseconds.
fn drain(engine: &mut Engine<u64>, until: Time, left: &mut [f64]) {
    while let Some(event) = engine.poll(until) {
        left[*event.body.get() as usize] = event.at.nanos() as f64 / MILLI as f64;
    }
}

/// When packets leave a link, in milliseconds. The engine is polled at every arrival, or at the end only.
fn replay(link: LinkConfig, arrivals: &[u64], late: bool) -> Vec<f64> {
    let mut engine = engine(link);
    let port = engine.port("in").expect("it was just configured");
    let mut left = vec![f64::NAN; arrivals.len()];
    for (body, milli) in (0..).zip(arrivals) {
        let at = Time::from_nanos(milli * MILLI);
        if !late {
            drain(&mut engine, at, &mut left);
        }
        engine.hand_in(at, port, packet(PACKET, body));
    }
    drain(&mut engine, Time::from_nanos(u64::MAX - 1), &mut left);
    left
}

fn cell() -> LinkConfig {
    let mut link = LinkConfig::new("l", Target::Port("out".into()));
    let config = CellConfig {
        opportunity: OPPORTUNITY,
        idle: Duration::from_millis(1),
        most_packets: None,
        most_bytes: None,
        start: Time::ZERO,
        skipped: Duration::ZERO,
    };
    link.delay = Box::new(Cell::new(light().0, Box::new(heavy()), config));
    link
}

/// As mahimahi replays the heavy trace: the shortest delay, then opportunities.
fn alone() -> LinkConfig {
    let mut link = LinkConfig::new("l", Target::Port("out".into()));
    link.service = Box::new(heavy());
    link.overhead = Overhead { extra: 4, ..Overhead::IP };
    link.delay = Box::new(Constant(light().1));
    link
}

/// Flows of this many packets, sent at once, a second and some apart, so that the cell is idle between them.
fn flows(packets: usize) -> Vec<u64> {
    let starts = (0..LENGTH / 1300).map(|n| 37 + n * 1237 + n * n % 61);
    starts.flat_map(|start| vec![start; packets]).collect()
}

/// The mean relative error of the flows' completion times.
fn error(truth: &[u64], replayed: &[f64], arrivals: &[u64], packets: usize) -> f64 {
    let ends = || (packets - 1..arrivals.len()).step_by(packets);
    let of = |at: usize| {
        let (took, replayed) = (truth[at] as f64 - arrivals[at] as f64, replayed[at] - arrivals[at] as f64);
        (replayed - took).abs() / took
    };
    ends().map(of).sum::<f64>() / ends().count() as f64
}

#[test]
fn two_traces_have_half_the_error_of_one() {
    println!("packets  truth (ms)  one trace  two traces");
    let mut sums = [0.0, 0.0];
    let sizes = [1, 2, 5, 10, 20, 50, 100, 200];
    for packets in sizes {
        let arrivals = flows(packets);
        let truth = Synthetic::default().run(&arrivals);
        let took: Vec<u64> =
            (packets - 1..arrivals.len()).step_by(packets).map(|at| truth[at] - arrivals[at]).collect();
        let mean = took.iter().sum::<u64>() as f64 / took.len() as f64;
        let [one, two] =
            [alone(), cell()].map(|link| error(&truth, &replay(link, &arrivals, false), &arrivals, packets));
        println!("{packets:7} {mean:11.1} {:9.1} % {:9.1} %", one * 100.0, two * 100.0);
        sums = [sums[0] + one, sums[1] + two];
        // Single packets, that is round trips, and short flows, which the heavy trace serves too well.
        assert!(packets > 20 || two < one / 2.0, "{packets}: {one} {two}");
        assert!(two < one, "{packets}: {one} {two}");
    }
    let [one, two] = sums.map(|sum| sum / sizes.len() as f64);
    println!("   mean {:21.1} % {:9.1} %", one * 100.0, two * 100.0);
    assert!(two < one / 2.0, "{one} {two}");
}

#[test]
fn polling_late_changes_nothing_and_no_packet_overtakes() {
    // Flows on a steady trickle, so that sessions begin in every state of the heavy queue.
    let mut arrivals: Vec<u64> =
        [5, 40].map(flows).concat().into_iter().chain((0..9000).map(|n| n * 6)).collect();
    arrivals.sort_unstable();
    let left = replay(cell(), &arrivals, false);
    assert_eq!(left, replay(cell(), &arrivals, true));
    assert!(left.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(left.iter().zip(&arrivals).all(|(left, arrival)| *left >= *arrival as f64 + 12.0));
}
