//! The parts of a log. The order of fields, of record kinds and of enum variants is the format.

use std::borrow::Cow;

use narrows_core::{
    DropReason, Duration, Element, Event, FlowKey, Headers, LinkId, Packet, PacketId, PortId, Protocol, Seed,
    TcpOptions, Time,
};
use serde::{Deserialize, Serialize};

use crate::{LinkLayer, WallTime};

/// What applies to the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The program that wrote the log, and its version.
    pub program: String,
    /// The wall clock at [`Time::ZERO`] of the run.
    pub started: WallTime,
    /// The seed of all random draws.
    #[serde(with = "seed")]
    pub seed: Seed,
    /// How much of each frame is kept.
    pub keep: Keep,
    /// The scenario text, with all command-line options applied.
    pub scenario: String,
    /// The ports, in order of their numbers.
    pub ports: Vec<Port>,
    /// The names of the links, in order of their numbers.
    pub links: Vec<String>,
}

/// How much of each frame is kept. The fields that the engine needs are always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Keep {
    /// The headers.
    Headers,
    /// This many of the first bytes, or the headers if they are longer.
    Bytes(u32),
    /// The whole frame.
    Whole,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Its name in the scenario.
    pub name: String,
    /// The link layer of its frames.
    pub layer: LinkLayer,
}

/// A port: its index in [`Header::ports`], which is also the engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortNumber(pub u16);

/// A link: its index in [`Header::links`], which is also the engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkNumber(pub u32);

impl From<PortId> for PortNumber {
    fn from(port: PortId) -> Self {
        Self(port.index())
    }
}

impl From<LinkId> for LinkNumber {
    fn from(link: LinkId) -> Self {
        Self(link.index())
    }
}

/// A link by its index, or a rule set or router ([`Element::number`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ElementNumber(pub u32);

impl From<Element> for ElementNumber {
    fn from(element: Element) -> Self {
        Self(element.number())
    }
}

/// An input or a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record<'a> {
    /// A packet arrived.
    #[serde(borrow)]
    Arrived(Arrived<'a>),
    /// A part of the network was changed.
    Changed(Changed<'a>),
    /// A packet was delivered or dropped.
    Decided(Decided),
    /// Packets arrived but were lost before they reached the engine.
    Lost(Lost),
    /// The run has ended.
    Ended(Ended),
    /// Values were passed to a feed. Since version 2.
    #[serde(borrow)]
    Fed(Fed<'a>),
    /// The contents, or a part of them, of a file that the scenario names. Since version 2.
    #[serde(borrow)]
    File(FilePart<'a>),
    /// A packet of the scenario's own traffic arrived. Since version 4.
    Generated(Generated),
    /// A TCP segment of the scenario's own traffic arrived, where a queue compares acknowledgements. Since version 5.
    Segment(Segment),
}

/// A packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived<'a> {
    /// When the engine took it: its arrival time, or, for a straggler, the engine's time at that moment.
    #[serde(with = "time")]
    pub at: Time,
    /// For a straggler, how much earlier it had arrived; zero for all others.
    #[serde(with = "duration")]
    pub late: Duration,
    /// The port.
    pub port: PortNumber,
    /// The length of the frame in bytes.
    pub length: u32,
    /// Its bytes, or the first of them.
    #[serde(serialize_with = "as_bytes")]
    pub frame: &'a [u8],
}

/// A packet of the scenario's own traffic arrived. It has no frame: this is all that the engine knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// When the engine took it: the instant at which it was due.
    #[serde(with = "time")]
    pub at: Time,
    /// The index of its source among the scenario's traffic.
    pub source: u32,
    /// The port.
    pub port: PortNumber,
    /// Bytes from the network header on.
    pub length: u32,
    /// Bytes of link header before that.
    pub link_header: u8,
    /// Bytes of the IPv4 header.
    pub network_header: u8,
    /// Its flow.
    #[serde(with = "FlowFields")]
    pub key: FlowKey,
    /// Other fields that rules and routers match.
    pub headers: GeneratedHeaders,
}

/// [`Headers`] in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratedHeaders(#[serde(with = "HeaderFields")] pub Headers);

impl Generated {
    /// The record of a packet that arrives at a port.
    pub fn of<B>(at: Time, source: u32, port: PortId, packet: &Packet<B>) -> Self {
        let &Packet { length, link_header, network_header, key, headers, .. } = packet;
        let headers = GeneratedHeaders(headers);
        Self { at, source, port: port.into(), length, link_header, network_header, key, headers }
    }

    /// The packet, with this body.
    pub fn with<B>(&self, body: B) -> Packet<B> {
        let &Self { length, link_header, network_header, key, headers, .. } = self;
        Packet { length, link_header, network_header, key, headers: headers.0, body }
    }
}

/// A TCP segment of the scenario's own traffic arrived, with what a queue compares of its acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The packet.
    pub generated: Generated,
    /// The acknowledgement number.
    pub acknowledgement: u32,
    /// The timestamps, as in [`TcpOptions`].
    pub timestamps: Option<[u32; 2]>,
    /// What is selectively acknowledged, as in [`TcpOptions`].
    pub blocks: Vec<[u32; 2]>,
    /// As in [`TcpOptions`].
    pub has_others: bool,
}

impl Segment {
    /// The record of a packet that has these options.
    pub fn of(generated: Generated, options: &TcpOptions) -> Self {
        let acknowledgement = generated.headers.0.tcp_acknowledgement;
        let (timestamps, blocks) = (options.timestamps, options.blocks().to_vec());
        Self { generated, acknowledgement, timestamps, blocks, has_others: options.has_others }
    }

    /// The packet.
    pub fn packet(&self) -> Generated {
        let mut generated = self.generated;
        generated.headers.0.tcp_acknowledgement = self.acknowledgement;
        generated
    }

    /// Its options.
    pub fn options(&self) -> TcpOptions {
        let mut options = TcpOptions::new(self.timestamps, self.has_others);
        for block in &self.blocks {
            // No header has more, but a file may say so.
            options.has_others |= !options.add_block(*block);
        }
        options
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FlowKey")]
struct FlowFields {
    source: [u8; 16],
    destination: [u8; 16],
    mark: u32,
    source_port: u16,
    destination_port: u16,
    #[serde(with = "network")]
    network: Protocol,
    transport: u8,
    traffic_class: u8,
    tcp_flags: u8,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Headers")]
struct HeaderFields {
    link_source: [u8; 6],
    link_destination: [u8; 6],
    ether_type: u16,
    /// Generated packets have no tags.
    #[serde(skip)]
    vlan: u16,
    tcp_data_length: u16,
    flow_label: u32,
    hop_limit: u8,
    is_later_fragment: bool,
    // Generated packets have no values in these.
    #[serde(skip)]
    fragment: u8,
    #[serde(skip)]
    ip_id: u16,
    #[serde(skip)]
    ip_options: u8,
    #[serde(skip)]
    extension_headers: u8,
    #[serde(skip)]
    tcp_options: u8,
    #[serde(skip)]
    tcp_window: u16,
    #[serde(skip)]
    tcp_mss: u16,
    #[serde(skip)]
    tcp_sequence: u32,
    #[serde(skip)]
    tcp_acknowledgement: u32,
}

/// A part of the network was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed<'a> {
    /// When the engine applied it.
    #[serde(with = "time")]
    pub at: Time,
    /// The change, in the syntax of `narrows set`: `access.down.rate=2mbit`.
    pub text: &'a str,
}

/// Values passed to a feed (one-way delays or answers); only those that the engine accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fed<'a> {
    /// When the engine accepted them.
    #[serde(with = "time")]
    pub at: Time,
    /// The link.
    pub link: LinkNumber,
    /// The name of the feed in the link.
    pub feed: &'a str,
    /// The values, in order: nanoseconds, or −1.
    pub values: Cow<'a, [i64]>,
}

/// A part of a file that the scenario names. The parts of one file are consecutive, in order, from its first byte to
/// its last; an empty file has one part. The files of the scenario in the header precede all other records; those
/// that a change names directly precede it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePart<'a> {
    /// The name, as in the scenario.
    pub name: &'a str,
    /// The length of the whole file in bytes.
    pub length: u64,
    /// The offset of this part in the file.
    pub offset: u64,
    /// The bytes.
    #[serde(serialize_with = "as_bytes")]
    pub bytes: &'a [u8],
}

/// A packet was delivered or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decided {
    /// When.
    #[serde(with = "time")]
    pub at: Time,
    /// The packet.
    pub packet: PacketNumber,
    /// Which copy of the packet.
    pub copy: u16,
    /// The verdict.
    pub outcome: Outcome,
}

/// A packet: the port where it arrived, and its number among the arrivals there, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PacketNumber {
    /// The port.
    pub port: PortNumber,
    /// The number.
    pub number: u64,
}

impl From<PacketId> for PacketNumber {
    fn from(packet: PacketId) -> Self {
        Self { port: packet.port().into(), number: packet.number() }
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// It left by this port.
    Delivered(PortNumber),
    /// It was dropped.
    Dropped {
        /// The element that dropped it; `None` if the network refused it on arrival.
        at: Option<ElementNumber>,
        /// Why.
        #[serde(with = "reason")]
        reason: DropReason,
    },
}

impl Decided {
    /// The record of an event.
    pub fn of<B>(event: &Event<'_, B>) -> Self {
        let outcome = match event.verdict {
            narrows_core::Verdict::Delivered(port) => Outcome::Delivered(port.into()),
            narrows_core::Verdict::Dropped { at, reason } => {
                Outcome::Dropped { at: at.map(Into::into), reason }
            }
        };
        Self { at: event.at, packet: event.id.into(), copy: event.copy, outcome }
    }
}

/// Packets that were lost before they reached the engine because they were not read in time. A log with such a record
/// still replays exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// When the loss was noticed.
    #[serde(with = "time")]
    pub at: Time,
    /// The port.
    pub port: PortNumber,
    /// Packets lost since the last such record.
    pub packets: u64,
}

/// The run has ended: the last record of a complete log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When.
    #[serde(with = "time")]
    pub at: Time,
    /// Packets that came in.
    pub arrivals: u64,
    /// Verdicts, including those of copies.
    pub verdicts: u64,
    /// Inputs that reached the engine late.
    pub stragglers: u64,
    /// Packets without a verdict yet.
    pub inside: u64,
}

/// Serializes bytes as a whole instead of one by one; the format is the same.
fn as_bytes<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

mod time {
    use super::{Deserialize, Time};

    pub(super) fn serialize<S: serde::Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.nanos())
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        u64::deserialize(deserializer).map(Time::from_nanos)
    }
}

mod network {
    use super::{Deserialize, Protocol};
    use serde::de::Error;

    /// Indexed by their numbers in the format.
    const ALL: [Protocol; 4] = [Protocol::Other, Protocol::Ipv4, Protocol::Ipv4DontFragment, Protocol::Ipv6];

    pub(super) fn serialize<S: serde::Serializer>(
        network: &Protocol,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(ALL.iter().position(|one| one == network).unwrap_or(0) as u8)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Protocol, D::Error> {
        let number = usize::from(u8::deserialize(deserializer)?);
        ALL.get(number).copied().ok_or_else(|| D::Error::custom("no such network protocol"))
    }
}

mod duration {
    use super::{Deserialize, Duration};

    pub(super) fn serialize<S: serde::Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(span.nanos())
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}

mod seed {
    use super::{Deserialize, Seed};

    pub(super) fn serialize<S: serde::Serializer>(seed: &Seed, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(seed.0)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Seed, D::Error> {
        u64::deserialize(deserializer).map(Seed)
    }
}

/// A drop reason is stored by name: numbers may change as reasons are added.
mod reason {
    use super::{Deserialize, DropReason};
    use serde::de::Error;

    pub(super) fn serialize<S: serde::Serializer>(
        reason: &DropReason,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(reason.name())
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<DropReason, D::Error> {
        let name = <&str>::deserialize(deserializer)?;
        DropReason::ALL
            .into_iter()
            .find(|reason| reason.name() == name)
            .ok_or_else(|| D::Error::custom("no such reason"))
    }
}
