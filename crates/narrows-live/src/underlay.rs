//! The underlay: the network between the machines that one scenario runs on.
//!
//! Two machines exchange probes over UDP, before the run and all through. The clocks of machines need not agree: only
//! round trips are measured, each without the time that the other machine held the probe, by the kernel's receive
//! timestamps. Half of a round trip is the estimate of the one-way delay; its error is at most half of the smallest
//! round trip, which is reached if the path takes all of it in one direction.
//!
//! How far the wall clocks are apart is estimated for whoever compares captures of two machines, with the same bound:
//! by the fastest probe, as the difference of what both showed halfway (as in NTP, RFC 5905, section 8).

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use std::{io, mem};

use narrows_io::clock::{clock_monotonic, clock_realtime};
use narrows_io::udp::StampedUdp;
use serde::{Deserialize, Serialize};

/// Time between probes while the way is measured: at least this, and with many peers as many of these as there are peers.
const MEASURING: Duration = Duration::from_millis(10);
const MEASURING_EACH: Duration = Duration::from_millis(2);
/// Time between probes afterwards.
const WATCHING: Duration = Duration::from_millis(100);
/// Time between looks at answers to large probes.
const LOOK: Duration = Duration::from_millis(10);
/// The maximum number of round trips kept for percentiles: those of the last hours.
const MOST_KEPT: usize = 100_000;
/// No answer for this long is an outage, on top of the round trip that is tolerated.
const OUTAGE_NS: u64 = 1_000_000_000;
/// Bytes of a probe: kind, number, time of sending, time that it was held, wall clock when it came.
const LENGTH: usize = 33;
/// The largest probe.
const LONGEST: usize = 65_535;
const ASK: u8 = 1;
const ANSWER: u8 = 2;
const ASK_LARGE: u8 = 3;
const ANSWER_LARGE: u8 = 4;

/// What was measured between two machines. Times are one-way: half of round trips, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnderlayFigures {
    /// Probes sent.
    pub probes: u64,
    /// Probes without an answer so far; the latest may still be answered, and is not counted.
    pub lost_probes: u64,
    /// The smallest, also the bound of the error by which the two directions may differ.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The largest.
    pub max_ns: u64,
    /// Probes above the limit.
    pub excursions: u64,
    /// The limit, once it is set.
    pub limit_ns: u64,
    /// The longest time without an answer.
    pub longest_gap_ns: u64,
    /// How far the other machine's wall clock is ahead of this one's, within `min_ns`.
    pub clock_offset_ns: i64,
}

impl UnderlayFigures {
    /// Whether the underlay was slower than allowed, or gone.
    pub fn is_excursion(&self) -> bool {
        self.limit_ns > 0 && (self.excursions > 0 || self.longest_gap_ns > OUTAGE_NS + 2 * self.limit_ns)
    }
}

#[derive(Debug, Default)]
struct Samples {
    probes: u64,
    answered: u64,
    /// Round trips.
    trips: Vec<u64>,
    next: usize,
    smallest: Option<u64>,
    /// By the smallest round trip.
    clock_offset: i64,
    largest: u64,
    excursions: u64,
    last_answer: Option<u64>,
    longest_gap: u64,
}

#[derive(Debug, Default)]
struct Shared {
    samples: Mutex<Samples>,
    /// One-way, in nanoseconds; 0 before the run.
    limit: AtomicU64,
    /// Time between probes in nanoseconds.
    interval: AtomicU64,
    /// The length of large probes; 0: none.
    large: AtomicUsize,
    large_answered: AtomicU64,
    ends: AtomicBool,
}

/// Probes to one other machine.
#[derive(Debug)]
pub struct Underlay {
    shared: Arc<Shared>,
}

impl Underlay {
    /// Sends probes to `peer`, one of `peers`, and answers its own, until dropped.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn start(socket: StampedUdp, peer: SocketAddr, peers: usize) -> io::Result<Self> {
        socket.only_from(peer)?;
        socket.never_fragment()?;
        let interval = MEASURING.max(MEASURING_EACH * u32::try_from(peers).unwrap_or(u32::MAX));
        let shared = Arc::new(Shared { interval: nanos(interval).into(), ..Shared::default() });
        let own = shared.clone();
        thread::Builder::new().name("underlay".into()).spawn(move || exchange(&socket, &own))?;
        Ok(Self { shared })
    }

    /// What was measured so far.
    pub fn figures(&self) -> UnderlayFigures {
        let limit_ns = self.shared.limit.load(Ordering::Relaxed);
        let samples = self.shared.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let mut trips = samples.trips.clone();
        trips.sort_unstable();
        let quantile =
            |percent: usize| trips.get((trips.len().max(1) - 1) * percent / 100).map_or(0, |t| t / 2);
        let unanswered = samples.probes - samples.answered.min(samples.probes);
        let silent = samples.last_answer.map_or(0, |last| clock_monotonic().as_nanos().saturating_sub(last));
        UnderlayFigures {
            probes: samples.probes,
            lost_probes: unanswered.saturating_sub(1),
            min_ns: samples.smallest.unwrap_or(0) / 2,
            p50_ns: quantile(50),
            p99_ns: quantile(99),
            max_ns: samples.largest / 2,
            excursions: samples.excursions,
            limit_ns,
            longest_gap_ns: samples.longest_gap.max(silent),
            clock_offset_ns: samples.clock_offset,
        }
    }

    /// Whether there was any answer.
    pub fn answers(&self) -> bool {
        self.shared.samples.lock().unwrap_or_else(PoisonError::into_inner).answered > 0
    }

    /// Whether datagrams with this many bytes after the UDP header cross the path unfragmented: at least one of those
    /// sent within `patience`.
    pub fn carries(&self, bytes: usize, patience: Duration) -> bool {
        self.shared.large_answered.store(0, Ordering::Relaxed);
        self.shared.large.store(bytes.clamp(LENGTH, LONGEST), Ordering::Relaxed);
        let until = clock_monotonic().as_nanos() + patience.as_nanos() as u64;
        while self.shared.large_answered.load(Ordering::Relaxed) == 0 && clock_monotonic().as_nanos() < until
        {
            thread::sleep(LOOK);
        }
        self.shared.large.store(0, Ordering::Relaxed);
        self.shared.large_answered.load(Ordering::Relaxed) > 0
    }

    /// The way is measured: fewer probes from here on.
    pub fn watch(&self) {
        self.shared.interval.store(nanos(WATCHING), Ordering::Relaxed);
    }

    /// The run begins: measures from here on anew, and counts what exceeds this one-way limit.
    pub fn limit(&self, limit: narrows_core::Duration) {
        let mut samples = self.shared.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let last_answer = samples.last_answer;
        drop(mem::take(&mut *samples));
        samples.last_answer = last_answer;
        self.shared.limit.store(limit.nanos().max(1), Ordering::Relaxed);
    }
}

impl Drop for Underlay {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
    }
}

fn exchange(socket: &StampedUdp, shared: &Shared) {
    // Without it the thread is merely woken later, which is not part of the figures.
    let _ = narrows_io::wait::wake_on_time();
    let mut buffer = vec![0; LONGEST];
    let mut next = clock_monotonic().as_nanos();
    let mut number = 0_u64;
    while !shared.ends.load(Ordering::Relaxed) {
        let now = clock_monotonic().as_nanos();
        if now >= next {
            number += 1;
            let large = shared.large.load(Ordering::Relaxed);
            if large > 0 {
                let mut probe = probe(ASK_LARGE, [number, now, 0, 0]).to_vec();
                probe.resize(large, 0);
                // Too large for the path as far as this host knows: then there is no answer.
                let _ = socket.send(&probe);
            }
            // Refused while the peer is not there yet: a lost probe.
            let _ = socket.send(&probe(ASK, [number, clock_monotonic().as_nanos(), 0, 0]));
            shared.samples.lock().unwrap_or_else(PoisonError::into_inner).probes += 1;
            next = now + shared.interval.load(Ordering::Relaxed);
        }
        let patience = Duration::from_nanos(next.saturating_sub(clock_monotonic().as_nanos()));
        let Ok(Some(datagram)) = socket.receive(&mut buffer, patience) else { continue };
        let Some(bytes) = buffer.get(..LENGTH).filter(|_| datagram.length >= LENGTH) else { continue };
        let word = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_be_bytes);
        let came = datagram.stamp.unwrap_or_else(clock_monotonic).as_nanos();
        match bytes[0] {
            kind @ (ASK | ASK_LARGE) => {
                let (wall, now) = (clock_realtime(), clock_monotonic().as_nanos());
                let held = now.saturating_sub(came);
                let _ = socket.send(&probe(kind + 1, [word(1), word(9), held, wall.saturating_sub(held)]));
            }
            ANSWER => {
                let (sent, held, there) = (word(9), word(17), word(25));
                let trip = came.saturating_sub(sent).saturating_sub(held);
                let (wall, now) = (clock_realtime(), clock_monotonic().as_nanos());
                // What the wall clock here showed when the probe came there, if both directions take as long.
                let here = wall.saturating_sub(now.saturating_sub(sent + trip / 2));
                shared.answered(came, trip, there.wrapping_sub(here) as i64);
            }
            ANSWER_LARGE => {
                shared.large_answered.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

impl Shared {
    fn answered(&self, came: u64, trip: u64, clock_offset: i64) {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.answered += 1;
        if let Some(last) = samples.last_answer.replace(came) {
            samples.longest_gap = samples.longest_gap.max(came.saturating_sub(last));
        }
        if samples.smallest.is_none_or(|smallest| trip < smallest) {
            (samples.smallest, samples.clock_offset) = (Some(trip), clock_offset);
        }
        samples.largest = samples.largest.max(trip);
        samples.excursions += u64::from(limit > 0 && trip / 2 > limit);
        if samples.trips.len() < MOST_KEPT {
            samples.trips.push(trip);
        } else {
            let next = samples.next;
            samples.trips[next] = trip;
            samples.next = (next + 1) % MOST_KEPT;
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn probe(kind: u8, words: [u64; 4]) -> [u8; LENGTH] {
    let mut bytes = [kind; LENGTH];
    for (room, word) in bytes[1..].chunks_exact_mut(8).zip(words) {
        room.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excursions_and_gaps_are_counted() {
        let shared = Arc::new(Shared::default());
        let underlay = Underlay { shared: shared.clone() };
        for (at, trip) in [(0, 600_000), (10, 620_000), (20, 580_000), (30, 900_000)] {
            shared.answered(at * 1_000_000, trip, at as i64 - 25);
        }
        let figures = underlay.figures();
        assert_eq!((figures.min_ns, figures.p50_ns, figures.max_ns), (290_000, 300_000, 450_000));
        assert_eq!(figures.clock_offset_ns, -5, "that of the fastest");
        assert!(!figures.is_excursion(), "there is no limit yet");
        underlay.limit(narrows_core::Duration::from_micros(1300));
        shared.answered(clock_monotonic().as_nanos(), 2_000_000, 0);
        shared.samples.lock().unwrap().longest_gap = 0;
        assert!(!underlay.figures().is_excursion());
        shared.answered(clock_monotonic().as_nanos(), 2_700_000, 0);
        assert_eq!(underlay.figures().excursions, 1);
        assert!(underlay.figures().is_excursion());
    }

    #[test]
    fn no_answer_for_long_is_an_excursion() {
        let figures =
            |longest_gap_ns| UnderlayFigures { limit_ns: 300_000_000, longest_gap_ns, ..Default::default() };
        assert!(!figures(1_600_000_000).is_excursion(), "a round trip of 0.6 s is tolerated");
        assert!(figures(1_600_000_001).is_excursion());
    }
}
