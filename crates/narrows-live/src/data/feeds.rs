//! Feeds in the packet loop: values in, questions out.

use narrows_core::{Element, Time};

use super::orders::Answer;
use super::{DataLoop, LoopError};
use crate::feeds::{self, Inlets, Wanted};

impl DataLoop {
    /// The feeds of this loop's links.
    pub(crate) fn wanted_feeds(&self) -> Vec<Wanted> {
        let links = self.engine.links().filter(|&link| self.share.has_element(Element::Link(link)));
        feeds::wanted(&self.engine, links)
    }

    /// Reports the existing feeds, if requested and all changes up to that instant have been made.
    pub(super) fn tell_wanted_feeds(&mut self) {
        let Some(at) = self.feeds_asked else { return };
        if self.changes.next().is_none_or(|next| next > at) {
            self.feeds_asked = None;
            self.inbox.answer(Answer::Feeds(self.wanted_feeds()));
        }
    }

    /// Replaces the feeds.
    pub(crate) fn take_feeds(&mut self, inlets: Inlets) {
        if let Some(feeds) = &mut self.feeds {
            feeds.take(inlets);
        }
    }

    /// Takes values that arrived by the watermark. No system call.
    pub(super) fn receive_values(&mut self, watermark: Time) {
        let Some(feeds) = self.feeds.as_mut().filter(|feeds| !feeds.is_empty()) else { return };
        let Some(agreement) = &self.in_kernel else {
            return feeds.receive(&self.clock, &self.engine, watermark);
        };
        let (clock, engine, ports, lines) = (self.clock, &self.engine, &self.ports, &mut self.lines);
        feeds.receive_each(&clock, engine, watermark, |batch| {
            let port = agreement.port_of(engine.view(batch.link).name());
            let plugged = port.and_then(|port| ports[port].plugged.as_ref());
            if let Some(end) = plugged.and_then(|plugged| lines[plugged.line].end.kernel_end_mut()) {
                agreement.feed(batch, end, &clock);
            }
        });
    }

    /// Hands in values that arrived by `until`.
    pub(super) fn hand_in_values(&mut self, until: Time) -> Result<(), LoopError> {
        while let Some(batch) = self.feeds.as_mut().and_then(|feeds| feeds.next(until)) {
            // Values are not put back: traffic left for the next turn comes after them.
            self.generate_before(batch.at)?;
            self.catch_up(batch.at)?;
            let at = batch.at.max(self.engine.now());
            let taken = self.engine.feed(at, batch.link, &batch.feed, &batch.values);
            if let Some(recorder) = self.recorder.as_mut().filter(|_| taken > 0) {
                recorder.fed(at, batch.link, &batch.feed, &batch.values[..taken]);
            }
            if let Some(feeds) = &mut self.feeds {
                feeds.recycle(batch);
            }
        }
        Ok(())
    }

    /// Tells the feed threads how far packets have got. No system call.
    pub(super) fn tell_feeds(&mut self) {
        if let Some(feeds) = self.feeds.as_mut().filter(|feeds| !feeds.is_empty()) {
            feeds.tell(&self.clock, &mut self.engine);
        }
    }

    /// Wakes them if they want it.
    pub(super) fn call_feeds(&mut self) {
        if let Some(feeds) = &mut self.feeds {
            feeds.call();
        }
    }
}
