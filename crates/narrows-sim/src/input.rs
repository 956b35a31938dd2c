//! What enters the network, from all sides, in one order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use narrows_core::source::Source;
use narrows_core::{Headers, Packet, PortId, Time};

use crate::aimd::{Aimd, Out};
use crate::apps::{App, Departure};
use crate::body::{Arrived, Body};
use crate::capture_in::CaptureFeed;
use crate::error::SimError;

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
    /// A sender that waits for what comes back; boxed, as it is large.
    Aimd(Box<Aimd>),
    /// Clients and servers of an application.
    App(Box<App>),
    /// A capture file.
    Capture(CaptureFeed),
}

/// All feeds, merged: in the order of instants, and at one instant captures before others, then by name, then in the
/// order in which a feed gives its packets.
#[derive(Debug)]
pub(crate) struct Inputs {
    feeds: Vec<Feed>,
    /// When feeds are to be looked at, the next packet coming then or later. An arrival may bring it forward, and leave
    /// an entry behind that counts no more.
    heads: BinaryHeap<Reverse<(Time, u32)>>,
    /// The entry that counts, of each feed.
    entries: Vec<Option<Time>>,
}

impl Inputs {
    pub(crate) fn new(mut feeds: Vec<Feed>) -> Self {
        feeds.sort_by(|a, b| (a.rank(), &a.name).cmp(&(b.rank(), &b.name)));
        let entries: Vec<_> = feeds.iter().map(Feed::peek).collect();
        let heads = entries.iter().zip(0..).filter_map(|(&at, number)| Some(Reverse((at?, number))));
        Self { heads: heads.collect(), entries, feeds }
    }

    /// The names of the feeds, in the order of their numbers.
    pub(crate) fn names(&self) -> Vec<String> {
        self.feeds.iter().map(|feed| feed.name.clone()).collect()
    }

    /// Whether there are feeds that wait for what arrives.
    pub(crate) fn respond(&self) -> bool {
        self.feeds.iter().any(|feed| matches!(feed.kind, FeedKind::Aimd(_) | FeedKind::App(_)))
    }

    /// The applications, with their names.
    pub(crate) fn apps(&self) -> impl Iterator<Item = (&str, &App)> {
        self.feeds.iter().filter_map(|feed| match &feed.kind {
            FeedKind::App(app) => Some((feed.name.as_str(), &**app)),
            _ => None,
        })
    }

    /// Tells a feed that its packet has arrived; its next one may come at once.
    pub(crate) fn arrive(&mut self, arrived: Arrived) {
        let number = arrived.feed;
        let feed = &mut self.feeds[number as usize];
        match &mut feed.kind {
            FeedKind::Aimd(aimd) => aimd.arrive(arrived),
            FeedKind::App(app) => app.arrive(arrived),
            FeedKind::Source { .. } | FeedKind::Capture(_) => return,
        }
        let entry = &mut self.entries[number as usize];
        if let Some(at) = feed.peek().filter(|&at| entry.is_none_or(|entry| at < entry)) {
            *entry = Some(at);
            self.heads.push(Reverse((at, number)));
        }
    }

    /// The instant of the next packet.
    pub(crate) fn peek(&mut self) -> Option<Time> {
        while let Some(mut head) = self.heads.peek_mut() {
            let Reverse((at, number)) = *head;
            let entry = &mut self.entries[number as usize];
            if *entry != Some(at) {
                PeekMut::pop(head);
                continue;
            }
            *entry = self.feeds[number as usize].peek();
            match *entry {
                Some(actual) if actual == at => return Some(at),
                Some(actual) => *head = Reverse((actual, number)),
                None => drop(PeekMut::pop(head)),
            }
        }
        None
    }

    /// Takes the packet whose instant was peeked at; there may be none, where somebody only wakes up then.
    pub(crate) fn take(&mut self) -> Result<Option<(Time, PortId, Packet<Body>)>, SimError> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((at, number)) = *head;
        let feed = &mut self.feeds[number as usize];
        let taken = feed.take(number)?;
        self.entries[number as usize] = feed.peek();
        match self.entries[number as usize] {
            Some(next) => *head = Reverse((next, number)),
            None => drop(PeekMut::pop(head)),
        }
        Ok(taken.map(|(port, packet)| (at, port, packet)))
    }
}

impl Feed {
    fn rank(&self) -> u8 {
        match self.kind {
            FeedKind::Capture(_) => 0,
            FeedKind::Source { .. } | FeedKind::Aimd(_) | FeedKind::App(_) => 1,
        }
    }

    fn peek(&self) -> Option<Time> {
        match &self.kind {
            FeedKind::Source { source, .. } => source.peek(),
            FeedKind::Aimd(aimd) => aimd.peek(),
            FeedKind::App(app) => app.peek(),
            FeedKind::Capture(capture) => capture.peek(),
        }
    }

    /// Takes the packet that was peeked at, and the port where it enters.
    fn take(&mut self, feed: u32) -> Result<Option<(PortId, Packet<Body>)>, SimError> {
        let (port, number, packet, frame) = match &mut self.kind {
            FeedKind::Source { source, template } => {
                let (_, length) = source.take().expect("its instant was peeked at");
                let headers = Headers::plain(&template.key, length);
                (self.port, 0, Packet { length, headers, ..*template }, None)
            }
            FeedKind::Aimd(aimd) => {
                let (Out { port, number, .. }, packet) = aimd.take();
                (port, number, packet, None)
            }
            FeedKind::App(app) => {
                let Some(Departure { port, number, packet, .. }) = app.take() else { return Ok(None) };
                let Packet { length, link_header, network_header, key, headers, body: frame } = packet;
                let packet = Packet { length, link_header, network_header, key, headers, body: () };
                (port, number, packet, frame)
            }
            FeedKind::Capture(capture) => {
                let (packet, frame) = capture.take()?;
                (self.port, 0, packet, frame)
            }
        };
        let Packet { length, link_header, network_header, key, headers, .. } = packet;
        let body = Body { feed, length, number, frame };
        Ok(Some((port, Packet { length, link_header, network_header, key, headers, body })))
    }
}
