//! Predefined delay patterns, as in KauNet (Garcia, Hurtig, Brunstrom: "KauNet: Design and Usage", Karlstad
//! University Studies 2008:59): the same delay at the same packet, or in the same millisecond, in every run.
//!
//! A pattern has a length and a list of changes, each a place and the delay from that place on. It repeats
//! after its end. A place is a packet or a span of time: [`Per`].
//!
//! ```
//! use narrows_core::Duration;
//! use narrows_core::model::{DelayModel, DelayPattern, selector::Per};
//!
//! // Of every hundred packets, the first ninety take 10 ms and the others 30 ms.
//! let (short, long) = (Duration::from_millis(10), Duration::from_millis(30));
//! let pattern = DelayPattern::new(Per::Packet, 100, &[(0, short), (90, long)])?;
//! assert_eq!(pattern.mean(), Some(Duration::from_millis(12)));
//! # Ok::<(), narrows_core::model::selector::SelectorError>(())
//! ```

use alloc::sync::Arc;

use super::selector::{Per, SelectorError};
use super::{DelayModel, Propagation};
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::{Duration, Time};

/// A predefined pattern of delays.
#[derive(Clone, Debug)]
pub struct DelayPattern {
    per: Per,
    length: u64,
    /// The first is at place 0; ascending.
    changes: Arc<[(u64, Duration)]>,
    /// Packets seen; restarts at the end of the pattern.
    seen: u64,
    /// The change that applied to the last packet, where the next search begins.
    at: usize,
}

impl DelayPattern {
    /// A pattern of `length` places; each delay holds from its place to the next one.
    ///
    /// # Errors
    /// If the length or the unit of time is zero, the first change is not at 0, a change does not come after
    /// the one before it, or a change is beyond the length.
    pub fn new(per: Per, length: u64, changes: &[(u64, Duration)]) -> Result<Self, SelectorError> {
        if length == 0 || matches!(per, Per::Time { unit: Duration::ZERO, .. }) {
            return Err(SelectorError::NoLength);
        }
        match changes.first() {
            Some((0, _)) => {}
            first => return Err(SelectorError::NotAscending { place: first.map_or(0, |first| first.0) }),
        }
        if let Some(pair) = changes.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(SelectorError::NotAscending { place: pair[1].0 });
        }
        if let Some((place, _)) = changes.last().filter(|(place, _)| *place >= length) {
            return Err(SelectorError::BeyondLength { place: *place, length });
        }
        Ok(Self { per, length, changes: changes.into(), seen: 0, at: 0 })
    }

    /// The delay at a place. For consecutive places this takes a step or two.
    fn delay_at(&mut self, place: u64) -> Duration {
        let holds = |at: usize| {
            self.changes[at].0 <= place && self.changes.get(at + 1).is_none_or(|next| place < next.0)
        };
        let next = (self.at + 1) % self.changes.len();
        let at = [self.at, next, 0].into_iter().find(|at| holds(*at));
        // The first change is at 0, so one is at or before any place.
        self.at = at.unwrap_or_else(|| self.changes.partition_point(|change| change.0 <= place) - 1);
        self.changes[self.at].1
    }
}

impl DelayModel for DelayPattern {
    fn delay(&mut self, now: Time, _: &PacketState, _: &mut Draw) -> Propagation {
        let place = self.per.place(now, self.length, &mut self.seen);
        Propagation::After(self.delay_at(place))
    }

    /// The mean over all places.
    fn mean(&self) -> Option<Duration> {
        let ends = self.changes.iter().skip(1).map(|change| change.0).chain([self.length]);
        let spans = self.changes.iter().zip(ends).map(|(change, end)| (change.1, end - change.0));
        // Delays and places have 64 bits each: a product fits in 128, and the sum is at most the longest
        // delay times the length.
        let sum: u128 = spans.map(|(delay, places)| u128::from(delay.nanos()) * u128::from(places)).sum();
        Some(Duration::from_nanos((sum / u128::from(self.length)) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn places_have_the_delay_of_the_change_before_them_however_they_are_asked() {
        let changes: Vec<_> = (0..50).map(|n| (n * n, millis(n))).collect();
        let mut pattern = DelayPattern::new(Per::Packet, 2_500, &changes).unwrap();
        // In order, twice round, then in leaps.
        let leaps = (0..2_000).map(|n| n * 977 % 2_500);
        for place in (0..2_500).chain(0..2_500).chain(leaps) {
            let root = (0..50).rev().find(|n| n * n <= place).unwrap();
            assert_eq!(pattern.delay_at(place), millis(root), "{place}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        let new = |length, changes: &[(u64, Duration)]| DelayPattern::new(Per::Packet, length, changes).err();
        assert_eq!(new(0, &[(0, millis(1))]), Some(SelectorError::NoLength));
        assert_eq!(new(9, &[]), Some(SelectorError::NotAscending { place: 0 }));
        assert_eq!(new(9, &[(1, millis(1))]), Some(SelectorError::NotAscending { place: 1 }));
        let back = [(0, millis(1)), (5, millis(2)), (5, millis(3))];
        assert_eq!(new(9, &back), Some(SelectorError::NotAscending { place: 5 }));
        let beyond = [(0, millis(1)), (9, millis(2))];
        assert_eq!(new(9, &beyond), Some(SelectorError::BeyondLength { place: 9, length: 9 }));
    }
}
