//! The congestion window: slow start, additive increase, multiplicative decrease.
//!
//! The window is in packets. Slow start adds one for each acknowledged packet, until the first congestion signal and
//! after a time-out; then each adds 1/window, or one per round trip. A congestion signal is a loss or a mark. For
//! packets sent before the last reduction, signals do not count again, and acknowledgements do not grow the window.
//!
//! - A loss, and a mark with [`Marks::Classic`], halves the window: `w ← max(w/2, 2)` (RFC 5681, RFC 3168).
//! - With [`Marks::Scalable`], `α ← (1 − g)·α + g·F` once per round trip, where F is the share of packets marked in
//!   it and g = 1/16; a mark reduces the window by α/2, once per round trip: `w ← max(w·(1 − α/2), 2)` (RFC 8257,
//!   3.3). As in TCP Prague, and unlike RFC 8257, unmarked packets still grow the window in the round trip after a
//!   reduction: with marks in every round trip, the window would otherwise never grow.
//! - After a time-out the window is 1, and slow start continues up to half of what was in flight: `max(flight/2, 2)`.
//!   Further time-outs in a row leave that threshold unchanged (RFC 5681, 3.1).

use narrows_scenario::Marks;

const LEAST: f64 = 2.0;
/// RFC 8257, 4.2.
const GAIN: f64 = 1.0 / 16.0;

#[derive(Debug)]
pub(super) struct Window {
    packets: f64,
    /// The slow-start threshold.
    threshold: f64,
    marks: Marks,
    /// Signals from transmissions before this number are ignored.
    lost_until: u64,
    marked_until: u64,
    share: Share,
}

/// The moving average of the share of marked packets.
#[derive(Debug)]
struct Share {
    /// α.
    average: f64,
    /// The current round trip ends with this transmission.
    until: u64,
    packets: u32,
    marked: u32,
}

impl Window {
    pub(super) fn new(packets: u32, marks: Marks) -> Self {
        let share = Share { average: 1.0, until: 0, packets: 0, marked: 0 };
        let packets = f64::from(packets);
        Self { packets, threshold: f64::INFINITY, marks, lost_until: 0, marked_until: 0, share }
    }

    pub(super) fn has_room(&self, under_way: usize) -> bool {
        under_way as f64 + 1.0 <= self.packets
    }

    /// Transmission `number` was acknowledged; the next one will be `next`.
    pub(super) fn acknowledged(&mut self, number: u64, marked: bool, next: u64) {
        let marked = marked && self.marks != Marks::None;
        let recovers = number < self.lost_until;
        if self.marks == Marks::Scalable {
            self.share.count(number, marked, next);
        }
        match self.marks {
            _ if !marked => {}
            Marks::Scalable if number >= self.marked_until.max(self.lost_until) => {
                self.reduce(1.0 - self.share.average / 2.0);
                self.marked_until = next;
            }
            Marks::Classic if !recovers => self.halve(next),
            _ => {}
        }
        if !marked && !recovers {
            self.packets += if self.packets < self.threshold { 1.0 } else { 1.0 / self.packets };
        }
    }

    /// Transmission `number` was lost.
    pub(super) fn lost(&mut self, number: u64, next: u64) {
        if number >= self.lost_until {
            self.halve(next);
        }
    }

    /// `again`: nothing has been acknowledged since the previous time-out.
    pub(super) fn timed_out(&mut self, under_way: usize, next: u64, again: bool) {
        if !again {
            self.threshold = (under_way as f64 / 2.0).max(LEAST);
        }
        self.packets = 1.0;
        self.lost_until = next;
    }

    fn halve(&mut self, next: u64) {
        self.reduce(0.5);
        self.lost_until = next;
    }

    fn reduce(&mut self, factor: f64) {
        self.packets = (self.packets * factor).max(LEAST);
        self.threshold = self.packets;
    }
}

impl Share {
    fn count(&mut self, number: u64, marked: bool, next: u64) {
        self.packets += 1;
        self.marked += u32::from(marked);
        if number >= self.until {
            let share = f64::from(self.marked) / f64::from(self.packets);
            self.average += GAIN * (share - self.average);
            (self.until, self.packets, self.marked) = (next, 0, 0);
        }
    }
}
