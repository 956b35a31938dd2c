//! Delays from outside.

use super::DelayModel;
use crate::model::feed::{Feed, FeedConfig};
use crate::model::propagation::Propagation;
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::{Duration, Time};

/// Delays from a feed.
#[derive(Debug)]
pub struct Fed(Feed);

impl Fed {
    /// A model without values yet.
    pub fn new(config: FeedConfig) -> Self {
        Self(Feed::new(config))
    }
}

impl DelayModel for Fed {
    #[inline]
    fn delay(&mut self, _: Time, _: &PacketState, _: &mut Draw) -> Propagation {
        self.0.next()
    }

    /// Unknown: it depends on the values fed.
    fn mean(&self) -> Option<Duration> {
        None
    }

    fn fed(&self) -> Option<&FeedConfig> {
        Some(self.0.config())
    }

    fn each_feed(&mut self, visit: &mut dyn FnMut(&mut Feed)) {
        visit(&mut self.0);
    }

    fn view_feeds<'a>(&'a self, visit: &mut dyn FnMut(&'a Feed)) {
        visit(&self.0);
    }
}
