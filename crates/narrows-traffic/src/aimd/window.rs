//! How much may be under way: slow start, additive increase, multiplicative decrease.
//!
//! In packets. Slow start adds one for each packet that is acknowledged, until the first sign of congestion and after a
//! time-out; then 1/window is added, one a round trip. A sign of congestion is a loss, or a mark; signs from packets that
//! were sent before the last reduction do not count again, and neither do their acknowledgements for growth.
//!
//! - A loss, and a mark with [`Marks::Classic`], halves the window: `w ← max(w/2, 2)` (RFC 5681, RFC 3168).
//! - With [`Marks::Scalable`], `α ← (1 − g)·α + g·F` once a round trip, F being the share of packets that were marked in it
//!   and g = 1/16, and a mark reduces the window by α/2, once a round trip: `w ← max(w·(1 − α/2), 2)` (RFC 8257, 3.3). As
//!   in TCP Prague, and not in RFC 8257, the window goes on to grow by the packets that are not marked in the round trip
//!   after a reduction: where marks come in every round trip, there would be no growth at all.
//! - After a time-out it is 1, and slow start goes to half of what was under way: `max(flight/2, 2)`, which further
//!   time-outs in a row leave as it is (RFC 5681, 3.1).

use narrows_scenario::Marks;

const LEAST: f64 = 2.0;
/// RFC 8257, 4.2.
const GAIN: f64 = 1.0 / 16.0;

#[derive(Debug)]
pub(super) struct Window {
    packets: f64,
    /// Where slow start ends.
    threshold: f64,
    marks: Marks,
    /// Signs from transmissions before these say nothing new.
    lost_until: u64,
    marked_until: u64,
    share: Share,
}

/// The share of packets that are marked.
#[derive(Debug)]
struct Share {
    /// α.
    average: f64,
    /// The round trip that is measured ends with this transmission.
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

    /// `again` when the time-out before has brought nothing.
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
