//! The payload of packets in the engine, and what is known of a delivered one.

use narrows_core::{Body as Kept, Event, FlowKey, Packet, PortId, TcpOptions, Time, Verdict};
use narrows_frame::LinkLayer;
use narrows_frame::parse::{parse_cut, tcp_options};
use narrows_frame::translate::write_ends;

/// What a generated packet carries through the engine.
#[derive(Debug)]
pub struct Body {
    /// The number of its source.
    pub source: u32,
    /// Its length on arrival, from the network header on.
    pub length: u32,
    /// The source's own number for it, if the source needs to know of its delivery.
    pub number: u64,
    /// The frame's bytes, if it has any and they are needed.
    pub frame: Option<Box<Frame>>,
}

/// A frame, or what a capture kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Its original length on the wire.
    pub original: u32,
    /// Its link layer.
    pub layer: LinkLayer,
}

impl Body {
    /// The options of a packet, if it is a TCP segment. If it has some and its frame was not kept, they count as others: a queue
    /// that compares acknowledgements cannot know what they say.
    pub fn tcp_options(packet: &Packet<Self>) -> TcpOptions {
        match &packet.body.frame {
            Some(frame) => tcp_options(frame.layer, &frame.bytes, frame.original).unwrap_or_default(),
            None => TcpOptions::new(None, packet.headers.tcp_options != 0),
        }
    }
}

impl Frame {
    /// Writes the addresses and ports of a flow key into it.
    fn write_ends(&mut self, key: &FlowKey) {
        let link_header = usize::from(parse_cut(self.layer, &self.bytes, self.original).link_header);
        if let Some(packet) = self.bytes.get_mut(link_header..) {
            write_ends(packet, key, None);
        }
    }
}

/// A packet that has crossed the network.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrived {
    pub(crate) delivery: Delivery,
    pub(crate) source: u32,
    pub(crate) number: u64,
    /// The frame on entry, if it has one, with the addresses and ports that it has now.
    pub(crate) frame: Option<Box<Frame>>,
}

/// The delivery of a complete packet without bit errors, apart from its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub(crate) at: Time,
    /// When it entered the network.
    pub(crate) sent: Time,
    pub(crate) port: PortId,
    /// The length from the network header on.
    pub(crate) length: u32,
    pub(crate) marked: bool,
    /// The flow key, if the network has changed its addresses or ports: what the receiver answers to.
    pub(crate) seen: Option<FlowKey>,
}

impl Delivery {
    /// From an event, if it is such a delivery.
    pub fn of<B>(event: &Event<'_, B>) -> Option<Self> {
        let Verdict::Delivered(port) = event.verdict else { return None };
        let marked = event.key.ecn() == FlowKey::CONGESTION_EXPERIENCED;
        let (at, sent, length) = (event.at, event.arrival, event.length);
        let is_whole = event.fragment.is_none() && event.flips.is_empty();
        let has_new_ends = event.header_edit.as_ref().is_some_and(|edit| edit.has_new_ends);
        let seen = has_new_ends.then_some(FlowKey { mark: 0, ..event.key });
        is_whole.then_some(Self { at, sent, port, length, marked, seen })
    }

    /// The packet, with its body.
    pub fn with(self, body: Body) -> Arrived {
        let Body { source, number, mut frame, .. } = body;
        if let (Some(seen), Some(frame)) = (&self.seen, &mut frame) {
            frame.write_ends(seen);
        }
        Arrived { delivery: self, source, number, frame }
    }

    /// The packet, with a copy of its body.
    pub fn with_shared(self, body: &Body) -> Arrived {
        let Body { source, number, length, ref frame } = *body;
        self.with(Body { source, number, length, frame: frame.clone() })
    }
}

impl Arrived {
    /// From an event, if it is the delivery of a complete packet without bit errors.
    pub fn of(event: Event<'_, Body>) -> Option<Self> {
        let delivery = Delivery::of(&event)?;
        Some(match event.body {
            Kept::Last(body) => delivery.with(body),
            Kept::Shared(body) => delivery.with_shared(body),
        })
    }
}

/// The flow key of the reverse direction.
pub(crate) fn reversed(key: &FlowKey) -> FlowKey {
    FlowKey {
        source: key.destination,
        destination: key.source,
        source_port: key.destination_port,
        destination_port: key.source_port,
        ..*key
    }
}
