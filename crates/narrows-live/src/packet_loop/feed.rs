//! Feeds in the loop: values in, questions out.

use std::path::{Path, PathBuf};

use narrows_core::{Element, Engine, Time};
use narrows_io::frame::Frame;
use narrows_scenario::Scenario;

use super::crew::in_order;
use super::share::Share;
use super::{LoopError, PacketLoop};
use crate::feeds::{self, FeedError, Feeds, Place};

impl PacketLoop {
    /// Makes the sockets of all feeds, those of feeds that come later as well.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn open_feeds(&mut self, folder: &Path) -> Result<(), FeedError> {
        let failed = |cause| FeedError::Make { feed: "of the run".into(), cause };
        let mut feeds = Feeds::new(folder).map_err(failed)?;
        update(&mut feeds, &self.engine, &self.scenario, &self.share)?;
        self.feeds = Some(feeds);
        self.crew.waiting().try_for_each(|(_, other)| other.open_feeds(folder))
    }

    /// How programs of the run find the feeds that have sockets. To be called before other threads are started.
    pub fn feed_environment(&mut self) -> Vec<(String, PathBuf)> {
        let mut all = self.places();
        all.extend(self.crew.waiting().flat_map(|(_, other)| other.places()));
        feeds::environment(&in_order(all))
    }

    pub(super) fn places(&self) -> Vec<Place> {
        self.feeds.iter().flat_map(Feeds::places).cloned().collect()
    }

    /// Links have changed, and with them perhaps the feeds.
    pub(super) fn update_feeds(&mut self) {
        self.share.update(&self.engine);
        let Some(feeds) = &mut self.feeds else { return };
        if let Err(error) = update(feeds, &self.engine, &self.scenario, &self.share) {
            self.note(|| error.to_string());
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

fn update(
    feeds: &mut Feeds,
    engine: &Engine<Frame>,
    scenario: &Scenario,
    share: &Share,
) -> Result<(), FeedError> {
    let links = engine.links().filter(|&link| share.has_element(Element::Link(link)));
    // The engine has the lead in values alone.
    feeds.update(engine, links, |link, feed| {
        let links = scenario.links.iter().flat_map(|link| link.directions());
        let delays =
            links.filter(|(name, _)| name == link).filter_map(|(_, direction)| direction.delay.as_ref());
        delays.flat_map(|delay| delay.feeds()).find(|used| used.name == feed)?.span
    })
}
