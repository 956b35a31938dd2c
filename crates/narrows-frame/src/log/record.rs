//! What a log is made of. The order of fields, and that of the kinds of records and of their alternatives, is the
//! format.

use std::borrow::Cow;

use narrows_core::{
    DropReason, Duration, Element, Event, FlowKey, Headers, LinkId, Packet, PacketId, PortId, Protocol, Seed,
    Time,
};
use serde::{Deserialize, Serialize};

use crate::{LinkLayer, WallTime};

/// What holds for the whole run.
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
    /// The text of the scenario, after all that the command line said was put in.
    pub scenario: String,
    /// The ports, in the order of their numbers.
    pub ports: Vec<Port>,
    /// The names of the links, in the order of their numbers.
    pub links: Vec<String>,
}

/// How much of a frame is kept. What the engine needs to know is always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Keep {
    /// The headers.
    Headers,
    /// The first bytes, this many, or the headers where these are longer.
    Bytes(u32),
    /// All of it.
    Whole,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Its name in the scenario.
    pub name: String,
    /// How its frames begin.
    pub layer: LinkLayer,
}

/// A port, by its place in [`Header::ports`], which is that of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortNumber(pub u16);

/// A link, by its place in [`Header::links`], which is that of the engine.
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

/// A link by its place, or a set of rules or a router ([`Element::number`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ElementNumber(pub u32);

impl From<Element> for ElementNumber {
    fn from(element: Element) -> Self {
        Self(element.number())
    }
}

/// Something that came in, or what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record<'a> {
    /// A packet came in.
    #[serde(borrow)]
    Arrived(Arrived<'a>),
    /// A part of the network was changed.
    Changed(Changed<'a>),
    /// A packet got its verdict.
    Decided(Decided),
    /// Packets came that were lost before they could be handed in.
    Lost(Lost),
    /// The run is over.
    Ended(Ended),
    /// Values were handed to a feed. Since version 2.
    #[serde(borrow)]
    Fed(Fed<'a>),
    /// What a file contains that the scenario names, or a part of it. Since version 2.
    #[serde(borrow)]
    File(FilePart<'a>),
    /// A packet of the scenario's own traffic came in. Since version 4.
    Generated(Generated),
}

/// A packet came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived<'a> {
    /// When the engine took it: when it came, or, for a straggler, what the engine's time was then.
    #[serde(with = "time")]
    pub at: Time,
    /// By how much a straggler had come earlier; zero for all others.
    #[serde(with = "duration")]
    pub late: Duration,
    /// Where.
    pub port: PortNumber,
    /// How many bytes the frame had.
    pub length: u32,
    /// Its bytes, or the first of them.
    #[serde(serialize_with = "as_bytes")]
    pub frame: &'a [u8],
}

/// A packet came in that the scenario's own traffic sent. It has no frame: here is all that the engine knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// When the engine took it, which is when it was due.
    #[serde(with = "time")]
    pub at: Time,
    /// Which source sent it: its place among the scenario's traffic.
    pub source: u32,
    /// Where.
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
    /// What rules and routers look at besides.
    pub headers: GeneratedHeaders,
}

/// [`Headers`] in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratedHeaders(#[serde(with = "HeaderFields")] pub Headers);

impl Generated {
    /// The record of a packet that comes in at a port.
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
    tcp_data_length: u16,
    flow_label: u32,
    hop_limit: u8,
    is_later_fragment: bool,
}

/// A part of the network was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed<'a> {
    /// When the engine took it.
    #[serde(with = "time")]
    pub at: Time,
    /// What, in the words of `narrows set`: `access.down.rate=2mbit`.
    pub text: &'a str,
}

/// Values were handed to a feed, one-way delays or answers: no more of them than the engine took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fed<'a> {
    /// When the engine took them.
    #[serde(with = "time")]
    pub at: Time,
    /// The link.
    pub link: LinkNumber,
    /// The name of the feed in the link.
    pub feed: &'a str,
    /// The values, in order: nanoseconds, or −1.
    pub values: Cow<'a, [i64]>,
}

/// A part of a file that the scenario names. The parts of one file follow one another, in order, from its first byte to its
/// last; an empty file has one part. The files of the scenario in the header come before all other records, and those
/// that a change names right before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePart<'a> {
    /// As the scenario names it.
    pub name: &'a str,
    /// How many bytes the whole file has.
    pub length: u64,
    /// Where in the file these are.
    pub offset: u64,
    /// The bytes.
    #[serde(serialize_with = "as_bytes")]
    pub bytes: &'a [u8],
}

/// A packet got its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decided {
    /// When.
    #[serde(with = "time")]
    pub at: Time,
    /// Which packet.
    pub packet: PacketNumber,
    /// Which copy of it.
    pub copy: u16,
    /// What became of it.
    pub outcome: Outcome,
}

/// A packet: where it came in, and its number among the arrivals there, from 0.
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

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// It left by this port.
    Delivered(PortNumber),
    /// It was dropped.
    Dropped {
        /// Where; nothing when the network as a whole refused it.
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

/// Packets came that were lost before they could be handed in, because nobody took them in time. A log that has such a
/// record is still replayed exactly: they never reached the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// When that was noticed.
    #[serde(with = "time")]
    pub at: Time,
    /// Where.
    pub port: PortNumber,
    /// How many since the last such record.
    pub packets: u64,
}

/// The run is over: the last record of a log that is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When.
    #[serde(with = "time")]
    pub at: Time,
    /// Packets that came in.
    pub arrivals: u64,
    /// Verdicts, those of copies included.
    pub verdicts: u64,
    /// Inputs that were handed in too late.
    pub stragglers: u64,
    /// Packets that had no verdict yet.
    pub inside: u64,
}

/// Bytes go in one piece, not one by one; the format is the same.
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

    /// By their numbers here.
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

/// A reason goes by its name: numbers may change when there are more of them.
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
