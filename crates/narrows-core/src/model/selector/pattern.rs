//! Predefined patterns, as in KauNet (Garcia, Conchon, Pérennou and Brunstrom 2009): the same losses at the
//! same packets, or in the same milliseconds, in every run.
//!
//! A pattern has a length and the selected places, as ascending ranges. It repeats after its end. Depending
//! on its use, a place is a packet, a span of time, or a bit.
//!
//! ```
//! use narrows_core::model::selector::{Pattern, Per, Selector};
//!
//! // Of every thousand packets the 11th to the 15th.
//! let loss = Pattern::new(Per::Packet, 1000, [10..15])?;
//! assert_eq!((loss.mean(), loss.mean_burst()), (0.005, Some(5.0)));
//! # Ok::<(), narrows_core::model::selector::SelectorError>(())
//! ```

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Selector, SelectorError, SelectorPlan};
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::{Duration, Time};

/// What the places of a [`Pattern`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Packets, in order of arrival at the selector.
    Packet,
    /// Spans of time: every packet that arrives in a selected span is selected.
    Time {
        /// The length of a span.
        unit: Duration,
        /// When the first span began.
        origin: Time,
    },
}

impl Per {
    /// Milliseconds from the start of the run.
    pub const MILLISECOND: Self = Self::Time { unit: Duration::from_millis(1), origin: Time::ZERO };

    /// The place of a packet that arrives at `now`, in a pattern of `length` places; `seen` counts packets,
    /// and restarts at the end of the pattern.
    pub(in crate::model) fn place(self, now: Time, length: u64, seen: &mut u64) -> u64 {
        match self {
            Self::Packet => {
                let place = *seen;
                *seen = (place + 1) % length;
                place
            }
            Self::Time { unit, origin } => now.since(origin).nanos() / unit.nanos() % length,
        }
    }
}

/// Selects packets at predefined places.
#[derive(Clone, Debug)]
pub struct Pattern {
    per: Per,
    places: Places,
    /// Packets seen; restarts at the end of the pattern.
    seen: u64,
}

impl Pattern {
    /// A pattern of `length` places that selects the places in `hit`.
    ///
    /// # Errors
    /// If the length or the unit of time is zero, or a range does not come after the one before it or is not
    /// within the length.
    pub fn new(
        per: Per,
        length: u64,
        hit: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<Self, SelectorError> {
        if matches!(per, Per::Time { unit: Duration::ZERO, .. }) {
            return Err(SelectorError::NoLength);
        }
        Ok(Self { per, places: Places::new(length, hit)?, seen: 0 })
    }
}

impl Selector for Pattern {
    fn selects(&mut self, now: Time, _: &PacketState, _: &mut Draw) -> bool {
        let place = self.per.place(now, self.places.length, &mut self.seen);
        self.places.from(place).first().is_some_and(|range| range.contains(&place))
    }

    fn plan(&self) -> Option<SelectorPlan> {
        let Places { length, ranges } = self.places.clone();
        (self.per == Per::Packet).then_some(SelectorPlan::Pattern { length, ranges })
    }

    /// For spans of time, the share of time.
    fn mean(&self) -> f64 {
        self.places.hit() as f64 / self.places.length as f64
    }

    /// Only for places that are packets; `None` if all are selected, or none.
    fn mean_burst(&self) -> Option<f64> {
        let (hit, runs) = (self.places.hit(), self.places.runs());
        let ends = hit > 0 && hit < self.places.length;
        (self.per == Per::Packet && ends).then(|| hit as f64 / runs as f64)
    }
}

/// Flips bits at predefined places, counted from the network header on through all packets.
#[derive(Clone, Debug)]
pub struct BitPattern {
    places: Places,
    /// The place of the next bit.
    next: u64,
}

impl BitPattern {
    /// A pattern of `length` bits that flips the bits in `hit`.
    ///
    /// # Errors
    /// If the length is zero, or a range does not come after the one before it or is not within the length.
    pub fn new(length: u64, hit: impl IntoIterator<Item = Range<u64>>) -> Result<Self, SelectorError> {
        Ok(Self { places: Places::new(length, hit)?, next: 0 })
    }

    /// The share of bits that are flipped.
    pub fn mean(&self) -> f64 {
        self.places.hit() as f64 / self.places.length as f64
    }

    /// Flips bits of the next packet, which has `bits` bits.
    pub(crate) fn corrupt(&mut self, bits: u32, mut flip: impl FnMut(u32)) {
        let mut done = 0;
        while done < bits {
            // Up to the end of the pattern or of the packet, whichever comes first.
            let step = (self.places.length - self.next).min(u64::from(bits - done));
            let (begin, end) = (self.next, self.next + step);
            for range in self.places.from(begin).iter().take_while(|range| range.start < end) {
                for bit in range.start.max(begin)..range.end.min(end) {
                    flip(done + (bit - begin) as u32); // no more than `bits`
                }
            }
            done += step as u32;
            self.next = end % self.places.length;
        }
    }
}

/// Ascending ranges with gaps between them, within a length.
#[derive(Clone, Debug)]
struct Places {
    length: u64,
    ranges: Arc<[Range<u64>]>,
}

impl Places {
    fn new(length: u64, hit: impl IntoIterator<Item = Range<u64>>) -> Result<Self, SelectorError> {
        if length == 0 {
            return Err(SelectorError::NoLength);
        }
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for range in hit.into_iter().filter(|range| !range.is_empty()) {
            if range.end > length {
                return Err(SelectorError::BeyondLength { place: range.start.max(length), length });
            }
            match ranges.last_mut() {
                Some(last) if range.start < last.end => {
                    return Err(SelectorError::NotAscending { place: range.start });
                }
                Some(last) if range.start == last.end => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        Ok(Self { length, ranges: ranges.into() })
    }

    /// The ranges that end after `place`.
    fn from(&self, place: u64) -> &[Range<u64>] {
        &self.ranges[self.ranges.partition_point(|range| range.end <= place)..]
    }

    fn hit(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// The number of ranges; the last and the first are one if they join where the pattern repeats.
    fn runs(&self) -> usize {
        let (first, last) = (self.ranges.first(), self.ranges.last());
        let joined = first.is_some_and(|first| first.start == 0)
            && last.is_some_and(|last| last.end == self.length)
            && self.ranges.len() > 1;
        self.ranges.len() - usize::from(joined)
    }
}
