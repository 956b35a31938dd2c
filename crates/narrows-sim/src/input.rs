//! What enters the network, from all sides, in one order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_core::source::Source;
use narrows_core::{Packet, PortId, Time};
use narrows_frame::LinkLayer;

use crate::capture_in::CaptureFeed;
use crate::error::SimError;

/// What a packet carries through the engine.
#[derive(Debug)]
pub(crate) struct Body {
    /// The number of the feed that it came from.
    pub(crate) feed: u32,
    /// Its length when it came in, from the network header on.
    pub(crate) length: u32,
    /// The frame's bytes, where it has any and somebody wants them.
    pub(crate) frame: Option<Box<Frame>>,
}

/// A frame, or what a capture kept of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    /// How long it was on the wire.
    pub(crate) original: u32,
    pub(crate) layer: LinkLayer,
}

/// Where packets come from.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) name: String,
    pub(crate) port: PortId,
    pub(crate) kind: FeedKind,
}

#[derive(Debug)]
pub(crate) enum FeedKind {
    /// Arrivals from nowhere: each packet is like the template, but for its length.
    Source { source: Source, template: Packet<()> },
    /// A capture file.
    Capture(CaptureFeed),
}

/// All feeds, merged: in the order of instants, and at one instant captures before sources, then by name, then in the
/// order in which a feed gives its packets.
#[derive(Debug)]
pub(crate) struct Inputs {
    feeds: Vec<Feed>,
    heads: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Inputs {
    pub(crate) fn new(mut feeds: Vec<Feed>) -> Self {
        feeds.sort_by(|a, b| (a.rank(), &a.name).cmp(&(b.rank(), &b.name)));
        let heads = feeds.iter().zip(0..).filter_map(|(feed, number)| Some(Reverse((feed.peek()?, number))));
        Self { heads: heads.collect(), feeds }
    }

    /// The names of the feeds, in the order of their numbers.
    pub(crate) fn names(&self) -> Vec<String> {
        self.feeds.iter().map(|feed| feed.name.clone()).collect()
    }

    /// The instant of the next packet.
    pub(crate) fn peek(&self) -> Option<Time> {
        self.heads.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next packet.
    pub(crate) fn take(&mut self) -> Result<Option<(Time, PortId, Packet<Body>)>, SimError> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((at, number)) = *head;
        let feed = &mut self.feeds[number as usize];
        let packet = feed.take(number)?;
        match feed.peek() {
            Some(next) => *head = Reverse((next, number)),
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
        Ok(Some((at, feed.port, packet)))
    }
}

impl Feed {
    fn rank(&self) -> u8 {
        match self.kind {
            FeedKind::Capture(_) => 0,
            FeedKind::Source { .. } => 1,
        }
    }

    fn peek(&self) -> Option<Time> {
        match &self.kind {
            FeedKind::Source { source, .. } => source.peek(),
            FeedKind::Capture(capture) => capture.peek(),
        }
    }

    /// Takes the packet that was peeked at.
    fn take(&mut self, feed: u32) -> Result<Packet<Body>, SimError> {
        match &mut self.kind {
            FeedKind::Source { source, template } => {
                let (_, length) = source.take().expect("its instant was peeked at");
                let Packet { link_header, network_header, key, .. } = *template;
                Ok(Packet {
                    length,
                    link_header,
                    network_header,
                    key,
                    body: Body { feed, length, frame: None },
                })
            }
            FeedKind::Capture(capture) => {
                let (packet, frame) = capture.take()?;
                let Packet { length, link_header, network_header, key, .. } = packet;
                Ok(Packet { length, link_header, network_header, key, body: Body { feed, length, frame } })
            }
        }
    }
}
