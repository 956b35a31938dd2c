//! CPU steal and run-queue wait of packet threads, second by second: for intervals in which packets were late.
//!
//! A separate thread reads the kernel's counters once a second, so that the loop is not delayed by that.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use narrows_core::Time;
use narrows_io::host::{ProcessorTime, RunDelay, time_is_virtual};
use narrows_io::privileges;

use crate::clock::Clock;

/// The interval between readings.
const SECOND: std::time::Duration = std::time::Duration::from_secs(1);
/// The maximum number of readings: an hour in which every second had a disturbance; beyond it, every other one is
/// dropped.
const MOST: usize = 3600;

/// The kernel's counters at an instant; `None` if it does not report them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// CPU steal over all processors, in nanoseconds.
    pub(super) stolen: Option<u64>,
    /// Run-queue wait of packet threads, in nanoseconds.
    pub(super) waited: Option<u64>,
}

/// Monitors packet threads.
#[derive(Debug)]
pub(super) struct Disturbances {
    clock: Clock,
    watch: Arc<Watch>,
    /// `None` once it is to end.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Watch {
    before: Option<ProcessorTime>,
    delays: Vec<RunDelay>,
    readings: Mutex<Readings>,
}

impl Disturbances {
    /// Monitors the threads with these delays. If the thread for it cannot be started, only the start and the end are
    /// known; in virtual time there is none, because nothing is late there.
    pub(super) fn watch(clock: Clock, delays: Vec<RunDelay>) -> Self {
        let before = ProcessorTime::read().ok();
        let watch = Arc::new(Watch { before, delays, readings: Mutex::default() });
        watch.look(clock);
        let (end, ended) = mpsc::channel();
        let theirs = Arc::clone(&watch);
        let thread = (!time_is_virtual()).then(|| {
            thread::Builder::new().name("host watch".into()).spawn(move || {
                // No privileges are needed; reading also works if the kernel does not let them be dropped.
                let _ = privileges::give_up();
                while ended.recv_timeout(SECOND) == Err(RecvTimeoutError::Timeout) {
                    theirs.look(clock);
                }
            })
        });
        Self { clock, watch, end: Some(end), thread: thread.and_then(Result::ok) }
    }

    /// Takes a reading now.
    pub(super) fn look(&self) {
        self.watch.look(self.clock);
    }

    /// The disturbance in the seconds that an interval touches.
    pub(super) fn around(&self, start: Time, end: Time) -> Taken {
        self.watch.readings().around(start, end)
    }
}

impl Drop for Disturbances {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Watch {
    fn look(&self, clock: Clock) {
        let stolen = self.before.zip(ProcessorTime::read().ok());
        let stolen = stolen.map(|(before, now)| now.stolen_since(before));
        let waited = self.delays.iter().map(|delay| delay.read().ok()).sum::<Option<u64>>();
        let waited = waited.filter(|_| !self.delays.is_empty());
        self.readings().add(clock.now(), Taken { stolen, waited });
    }

    fn readings(&self) -> std::sync::MutexGuard<'_, Readings> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counters at instants, in order. Of several readings with equal counters only the first and the last are kept.
#[derive(Debug, Default)]
struct Readings(Vec<(Time, Taken)>);

impl Readings {
    fn add(&mut self, at: Time, taken: Taken) {
        if let [.., (_, before), (last, same)] = self.0.as_mut_slice()
            && *before == taken
            && *same == taken
        {
            *last = at;
            return;
        }
        if self.0.len() >= MOST {
            let mut number = 0;
            self.0.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        self.0.push((at, taken));
    }

    fn around(&self, start: Time, end: Time) -> Taken {
        let from = self.0.partition_point(|(at, _)| *at <= start).saturating_sub(1);
        let to = self.0.partition_point(|(at, _)| *at < end).min(self.0.len().saturating_sub(1));
        let (Some((_, before)), Some((_, after))) = (self.0.get(from), self.0.get(to)) else {
            return Taken { stolen: None, waited: None };
        };
        let between = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        Taken { stolen: between(before.stolen, after.stolen), waited: between(before.waited, after.waited) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Time {
        Time::from_nanos(number * 1_000_000_000)
    }

    fn taken(stolen: u64, waited: u64) -> Taken {
        Taken { stolen: Some(stolen), waited: Some(waited) }
    }

    #[test]
    fn a_time_is_told_what_was_taken_in_its_seconds() {
        let mut readings = Readings::default();
        assert_eq!(readings.around(second(0), second(1)), Taken { stolen: None, waited: None });
        for (at, stolen, waited) in [(0, 0, 5), (1, 0, 5), (2, 0, 5), (3, 0, 5), (4, 70, 5), (5, 90, 25)] {
            readings.add(second(at), taken(stolen, waited));
        }
        assert_eq!(readings.0.len(), 4, "what is the same is not kept");
        let around = |from: u64, to: u64| {
            readings.around(Time::from_nanos(from * 1_000_000), Time::from_nanos(to * 1_000_000))
        };
        assert_eq!(around(1200, 1300), taken(0, 0));
        assert_eq!(around(3200, 3300), taken(70, 0));
        assert_eq!(around(3200, 4100), taken(90, 20));
        assert_eq!(around(4100, 4200), taken(20, 20));
        assert_eq!(around(200, 9000), taken(90, 20), "what comes later is not known yet");
    }

    #[test]
    fn memory_is_bounded_and_sums_stay() {
        let mut readings = Readings::default();
        for number in 0..10_000 {
            readings.add(second(number), taken(number, 2 * number));
        }
        assert!(readings.0.len() <= MOST, "{}", readings.0.len());
        assert_eq!(readings.around(second(0), second(9_999)), taken(9_999, 19_998));
    }

    #[test]
    fn the_thread_ends_with_the_value() {
        let watched = Disturbances::watch(Clock::start(), RunDelay::of_this_thread().into_iter().collect());
        watched.look();
        let end = Clock::start().now();
        let taken = watched.around(Time::ZERO, end);
        assert_eq!(taken.stolen.is_some(), ProcessorTime::read().is_ok());
        drop(watched);
    }
}
