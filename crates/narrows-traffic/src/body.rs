//! What packets carry through the network, and what is known of one that has crossed it.

use narrows_core::{Body as Kept, Event, FlowKey, PortId, Time, Verdict};
use narrows_frame::LinkLayer;

/// What a generated packet carries through the engine.
#[derive(Debug)]
pub struct Body {
    /// The number of the source that it came from.
    pub source: u32,
    /// Its length when it came in, from the network header on.
    pub length: u32,
    /// What the source knows it by, where it wants to know that it has arrived.
    pub number: u64,
    /// The frame's bytes, where it has any and somebody wants them.
    pub frame: Option<Box<Frame>>,
}

/// A frame, or what a capture kept of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How long it was on the wire.
    pub original: u32,
    /// How it begins.
    pub layer: LinkLayer,
}

/// A packet that has crossed the network.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrived {
    pub(crate) delivery: Delivery,
    pub(crate) source: u32,
    pub(crate) number: u64,
    /// The frame's bytes as they entered, where it has any.
    pub(crate) frame: Option<Vec<u8>>,
}

/// The delivery of a whole packet without a flipped bit, but for its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub(crate) at: Time,
    /// When it entered.
    pub(crate) sent: Time,
    pub(crate) port: PortId,
    /// From the network header on.
    pub(crate) length: u32,
    pub(crate) marked: bool,
}

impl Delivery {
    /// That of an event, if it is one.
    pub fn of<B>(event: &Event<'_, B>) -> Option<Self> {
        let Verdict::Delivered(port) = event.verdict else { return None };
        let marked = event.key.ecn() == FlowKey::CONGESTION_EXPERIENCED;
        let (at, sent, length) = (event.at, event.arrival, event.length);
        let is_whole = event.fragment.is_none() && event.flips.is_empty();
        is_whole.then_some(Self { at, sent, port, length, marked })
    }

    /// The packet that carried this.
    pub fn with(self, body: Body) -> Arrived {
        let Body { source, number, frame, .. } = body;
        Arrived { delivery: self, source, number, frame: frame.map(|frame| frame.bytes) }
    }

    /// A copy of the packet that carries this.
    pub fn with_shared(self, body: &Body) -> Arrived {
        let Body { source, number, ref frame, .. } = *body;
        let frame = frame.as_ref().map(|frame| frame.bytes.clone());
        Arrived { delivery: self, source, number, frame }
    }
}

impl Arrived {
    /// A delivery, if it is that of a whole packet without a flipped bit.
    pub fn of(event: Event<'_, Body>) -> Option<Self> {
        let delivery = Delivery::of(&event)?;
        Some(match event.body {
            Kept::Last(body) => delivery.with(body),
            Kept::Shared(body) => delivery.with_shared(body),
        })
    }
}
