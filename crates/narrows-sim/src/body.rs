//! What packets carry through the network, and what is known of one that has crossed it.

use narrows_core::{Body as Kept, Event, FlowKey, PortId, Time, Verdict};
use narrows_frame::LinkLayer;

/// What a packet carries through the engine.
#[derive(Debug)]
pub(crate) struct Body {
    /// The number of the feed that it came from.
    pub(crate) feed: u32,
    /// Its length when it came in, from the network header on.
    pub(crate) length: u32,
    /// What the feed knows it by, where it wants to know that it has arrived.
    pub(crate) number: u64,
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

/// A packet that has crossed the network.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) at: Time,
    /// When it entered.
    pub(crate) sent: Time,
    pub(crate) feed: u32,
    pub(crate) port: PortId,
    pub(crate) number: u64,
    /// From the network header on.
    pub(crate) length: u32,
    pub(crate) marked: bool,
    /// The frame's bytes as they entered, where it has any.
    pub(crate) frame: Option<Vec<u8>>,
}

impl Arrived {
    /// A delivery, if it is that of a whole packet without a flipped bit.
    pub(crate) fn of(event: Event<'_, Body>) -> Option<Self> {
        let Verdict::Delivered(port) = event.verdict else { return None };
        if event.fragment.is_some() || !event.flips.is_empty() {
            return None;
        }
        let Body { feed, number, .. } = *event.body.get();
        let frame = match event.body {
            Kept::Last(body) => body.frame.map(|frame| frame.bytes),
            Kept::Shared(body) => body.frame.as_ref().map(|frame| frame.bytes.clone()),
        };
        let marked = event.key.ecn() == FlowKey::CONGESTION_EXPERIENCED;
        let (at, sent, length) = (event.at, event.arrival, event.length);
        Some(Self { at, sent, feed, port, number, length, marked, frame })
    }
}
