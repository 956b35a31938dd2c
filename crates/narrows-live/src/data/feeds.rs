//! Feeds in the loop: values in, questions out.

use narrows_core::{Element, Time};

use super::orders::Answer;
use super::{DataLoop, LoopError};
use crate::feeds::{self, Inlets, Wanted};

impl DataLoop {
    /// The feeds that the links of this loop have.
    pub(crate) fn wanted_feeds(&self) -> Vec<Wanted> {
        let links = self.engine.links().filter(|&link| self.share.has_element(Element::Link(link)));
        feeds::wanted(&self.engine, links)
    }

    /// Says what feeds there are, if that is asked for and the changes up to then are made.
    pub(super) fn tell_wanted_feeds(&mut self) {
        let Some(at) = self.feeds_asked else { return };
        if self.changes.next().is_none_or(|next| next > at) {
            self.feeds_asked = None;
            self.inbox.answer(Answer::Feeds(self.wanted_feeds()));
        }
    }

    /// Takes these in place of the feeds before.
    pub(crate) fn take_feeds(&mut self, inlets: Inlets) {
        if let Some(feeds) = &mut self.feeds {
            feeds.take(inlets);
        }
    }

    /// Takes values that came by the watermark. No system call.
    pub(super) fn receive_values(&mut self, watermark: Time) {
        if let Some(feeds) = self.feeds.as_mut().filter(|feeds| !feeds.is_empty()) {
            feeds.receive(&self.clock, &self.engine, watermark);
        }
    }

    /// Hands in values that came by then.
    pub(super) fn hand_in_values(&mut self, until: Time) -> Result<(), LoopError> {
        while let Some(batch) = self.feeds.as_mut().and_then(|feeds| feeds.next(until)) {
            // Values are not put back: what traffic is left for the next turn comes behind them.
            self.generate_before(batch.at)?;
            self.catch_up(batch.at)?;
            let at = batch.at.max(self.engine.now());
            let taken = self.engine.feed(at, batch.link, &batch.feed, &batch.values);
            if let Some(recorder) = self.recorder.as_mut().filter(|_| taken > 0) {
                recorder.fed(at, batch.link, &batch.feed, &batch.values[..taken])?;
            }
            if let Some(feeds) = &mut self.feeds {
                feeds.recycle(batch);
            }
        }
        Ok(())
    }

    /// Tells those who read from writers how far packets have got. No system call.
    pub(super) fn tell_feeds(&mut self) {
        if let Some(feeds) = self.feeds.as_mut().filter(|feeds| !feeds.is_empty()) {
            feeds.tell(&self.clock, &mut self.engine);
        }
    }

    /// Calls them if they want that.
    pub(super) fn call_feeds(&mut self) {
        if let Some(feeds) = &mut self.feeds {
            feeds.call();
        }
    }
}
