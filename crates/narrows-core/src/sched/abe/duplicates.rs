//! The virtual queue of duplicates: what a single FIFO queue on the same link would hold.

use alloc::collections::VecDeque;

use crate::queue::Backlog;
use crate::sched::bucket;
use crate::service::{Overhead, Work};
use crate::time::Time;
use crate::units::{Bytes, Rate};

/// Duplicates of packets, served in order of arrival. Work is counted from the first packet on, so a duplicate's
/// position never changes. A link of 2⁶⁴ bit/s would need 2³⁴ s to exceed its 2¹²⁸.
#[derive(Debug)]
pub(super) struct Duplicates {
    rate: Rate,
    /// All work that has arrived.
    come: u128,
    /// All work done, up to `at`.
    done: u128,
    at: Time,
    /// For each duplicate whose service has not begun: the work at which it begins, and its length.
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

    /// Adds a duplicate. Returns the work at which its service ends.
    pub(super) fn push(&mut self, now: Time, length: u32, overhead: &Overhead) -> u128 {
        self.advance(now);
        self.line.push_back((self.come, length));
        self.waiting.add(length);
        self.come += bucket::cost(length, overhead, Bytes::new(0)).0;
        // On an idle link it is served immediately.
        self.advance(now);
        self.come
    }

    /// The duplicates whose service has not begun.
    pub(super) const fn waiting(&self) -> Backlog {
        self.waiting
    }

    /// The work left until that position is reached.
    pub(super) const fn left(&self, place: u128) -> u128 {
        place.saturating_sub(self.done)
    }
}
