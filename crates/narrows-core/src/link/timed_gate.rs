//! A gate that opens and closes by a schedule, and drops what arrives while it is closed.
//!
//! Sources: IEEE 802.1Q-2018, 8.6.5.1.1 (stream gates, from 802.1Qci); Linux's `act_gate.c`. The entries of the
//! schedule follow each other without end. As in Linux, packets pass before the schedule begins, and a limit of bytes
//! counts anew with each entry.
//!
//! ```text
//! start            200 ms          300 ms          500 ms
//!   | open, 8 MB at most | closed        | open, 8 MB at most | …
//! ```

use alloc::vec::Vec;

use crate::classify::Condition;
use crate::time::{Duration, Time};
use crate::units::Bytes;

/// An entry of a gate's schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateEntry {
    /// How long it lasts; above zero.
    pub lasts: Duration,
    /// Whether the gate is open.
    pub is_open: bool,
    /// How many bytes pass in it, link headers included; `None` for any number.
    pub most: Option<Bytes>,
}

/// A gate.
#[derive(Clone, Debug)]
pub struct TimedGate {
    pub(super) only: Vec<Condition>,
    entries: Vec<GateEntry>,
    /// The current entry, and when it ends. Before the schedule begins: the last entry, and the begin.
    current: (usize, Time),
    has_begun: bool,
    /// The sum of the entries.
    cycle: Duration,
    /// Bytes that have passed in the current entry.
    passed: u64,
}

impl TimedGate {
    /// A gate for packets that have one of these conditions, or all packets if there is none, whose schedule begins at
    /// `start`. `None` if there is no entry, or one that lasts no time.
    pub fn new(only: Vec<Condition>, start: Time, entries: Vec<GateEntry>) -> Option<Self> {
        let last = entries.len().checked_sub(1)?;
        if entries.iter().any(|entry| entry.lasts == Duration::ZERO) {
            return None;
        }
        let cycle = entries.iter().fold(Duration::ZERO, |sum, entry| sum + entry.lasts);
        Some(Self { only, entries, current: (last, start), has_begun: false, cycle, passed: 0 })
    }

    /// Whether a packet with a frame of so many bytes passes at `now`.
    pub(super) fn passes(&mut self, now: Time, frame: u64) -> bool {
        self.advance(now);
        if !self.has_begun {
            return true;
        }
        let entry = self.entries[self.current.0];
        if !entry.is_open {
            return false;
        }
        // As in act_gate.c, the packet that reaches beyond the limit counts, too, and so closes the gate for the rest.
        self.passed = self.passed.saturating_add(frame);
        entry.most.is_none_or(|most| self.passed <= most.get())
    }

    fn advance(&mut self, now: Time) {
        if now < self.current.1 {
            return;
        }
        // Whole cycles at once.
        let cycles = now.since(self.current.1).nanos() / self.cycle.nanos();
        self.current.1 = self.current.1 + Duration::from_nanos(cycles * self.cycle.nanos());
        while self.current.1 <= now {
            self.current.0 = (self.current.0 + 1) % self.entries.len();
            self.current.1 = self.current.1 + self.entries[self.current.0].lasts;
        }
        (self.has_begun, self.passed) = (true, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    fn at(number: u64) -> Time {
        Time::ZERO + ms(number)
    }

    #[test]
    fn it_follows_its_schedule() {
        let open = GateEntry { lasts: ms(20), is_open: true, most: Some(Bytes::new(300)) };
        let closed = GateEntry { lasts: ms(10), is_open: false, most: None };
        let mut gate = TimedGate::new(Vec::new(), at(5), alloc::vec![open, closed]).unwrap();
        assert!(gate.passes(at(4), 10_000), "before the schedule begins");
        // 100 + 200 bytes fit; what follows does not, until the gate opens again.
        assert_eq!(
            [5, 6, 7, 24].map(|now| gate.passes(at(now), 100 * (now - 4).min(2))),
            [true, true, false, false]
        );
        assert_eq!([25, 34].map(|now| gate.passes(at(now), 1)), [false; 2], "closed from 25 to 35 ms");
        assert_eq!([35, 36].map(|now| gate.passes(at(now), 300)), [true, false]);
        // A thousand cycles later: begin 30,005, closed from 30,025 on.
        assert_eq!(
            [30_024, 30_025, 30_034, 30_035].map(|now| gate.passes(at(now), 1)),
            [true, false, false, true]
        );
    }

    #[test]
    fn a_schedule_has_entries_that_last() {
        let entry = GateEntry { lasts: Duration::ZERO, is_open: false, most: None };
        assert!(TimedGate::new(Vec::new(), Time::ZERO, Vec::new()).is_none());
        assert!(TimedGate::new(Vec::new(), Time::ZERO, alloc::vec![entry]).is_none());
    }
}
