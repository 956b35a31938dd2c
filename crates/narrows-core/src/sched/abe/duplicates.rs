//! The virtual queue of duplicates: what a single first-in first-out queue on the same link would hold.

use alloc::collections::VecDeque;

use crate::queue::Backlog;
use crate::sched::bucket;
use crate::service::{Overhead, Work};
use crate::time::Time;
use crate::units::{Bytes, Rate};

/// Duplicates of packets, served in the order in which they came. Work is counted from the first packet on, so that a
/// duplicate's place never changes; a link of 2⁶⁴ bit/s would need 2³⁴ s to count beyond the 2¹²⁸ of it.
#[derive(Debug)]
pub(super) struct Duplicates {
    rate: Rate,
    /// All work that has come.
    come: u128,
    /// All that is done, up to `at`.
    done: u128,
    at: Time,
    /// Where the service of each begins that has not begun, and its length.
    line: VecDeque<(u128, u32)>,
    waiting: Backlog,
}

impl Default for Duplicates {
    /// Behind a link that takes no time.
    fn default() -> Self {
        Self {
            rate: Rate::UNLIMITED,
            come: 0,
            done: 0,
            at: Time::ZERO,
            line: VecDeque::new(),
            waiting: Backlog::default(),
        }
    }
}

impl Duplicates {
    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    /// Serves up to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        self.done = if self.rate == Rate::UNLIMITED {
            self.come
        } else {
            self.done.saturating_add(Work::done(self.rate, now.since(self.at)).0).min(self.come)
        };
        self.at = self.at.max(now);
        while let Some(&(begins, length)) = self.line.front()
            && begins <= self.done
        {
            self.line.pop_front();
            self.waiting.remove(length);
        }
    }

    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        self.rate = rate;
    }

    /// One more. Says where its service ends.
    pub(super) fn push(&mut self, now: Time, length: u32, overhead: &Overhead) -> u128 {
        self.advance(now);
        self.line.push_back((self.come, length));
        self.waiting.add(length);
        self.come += bucket::cost(length, overhead, Bytes::new(0)).0;
        // On an idle link it is served at once.
        self.advance(now);
        self.come
    }

    /// What waits for its service to begin.
    pub(super) const fn waiting(&self) -> Backlog {
        self.waiting
    }

    /// How much there is to do until that place is reached.
    pub(super) const fn left(&self, place: u128) -> u128 {
        place.saturating_sub(self.done)
    }
}
