//! Writes the fate of packets as a capture: one interface for each port, and comments for what the bytes do not show.
//!
//! A delivered packet is on the interface of the port where it left, at the instant when it left, with everything
//! that the network did to it. A dropped packet is on the interface of the port where it arrived, at the instant of
//! the drop.
//!
//! | comment | packet |
//! |---|---|
//! | none | left at the instant for which it was scheduled, as in virtual time |
//! | `scheduled 0.025083200 s, released 4321 ns late; came in 0.000000000 s at client.access, by access.up` | left in a live run |
//! | `not sent, refused by the system; scheduled …` | left the network, but the system refused to send it |
//! | `an answer of the network's own` | sent by the network itself: ARP/ND reply, "packet too big" |
//! | `dropped at access.down: queue full` | dropped |
//!
//! Instants in comments count from the start of the run, with nine digits.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use narrows_core::{DropReason, Element, PortId, Time};

use super::{CaptureWriter, Captured, Interface};
use crate::file::WriteError;
use crate::{ElementNames, LinkLayer, WallTime};

/// Writes the fate of packets.
#[derive(Debug)]
pub struct VerdictWriter<W: Write> {
    writer: CaptureWriter<W>,
    start: WallTime,
    /// One for each pair of port and link layer seen so far, in order of appearance.
    interfaces: Vec<(PortId, Interface)>,
    /// The links from one port to another, where known.
    ways: BTreeMap<(PortId, PortId), String>,
    comment: String,
}

/// A packet and its fate.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// When it left or was dropped.
    pub at: Time,
    /// The port where it left, or, if dropped, where it arrived.
    pub port: PortId,
    /// The link layer of its bytes.
    pub layer: LinkLayer,
    /// Its length in bytes.
    pub length: u32,
    /// Its bytes, or the first of them.
    pub bytes: &'a [u8],
    /// Its fate.
    pub fate: Fate,
    /// How many packets are missing before it because they could not be kept.
    pub missing: u64,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It left at the instant for which it was scheduled.
    Delivered,
    /// A live run released it, later than that.
    Released(Passage),
    /// The system refused to send it.
    Refused(Passage),
    /// It is an answer of the network itself: it left, but never arrived.
    Answered,
    /// It was dropped.
    Dropped {
        /// The element that dropped it; `None` if the network refused it on arrival.
        at: Option<Element>,
        /// Why.
        reason: DropReason,
    },
}

impl Fate {
    /// The same packet, if the system refuses to send it.
    pub fn refused(self) -> Self {
        match self {
            Self::Released(passage) => Self::Refused(passage),
            other => other,
        }
    }
}

/// When a packet was scheduled to leave, and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it was scheduled to leave.
    pub scheduled: Time,
    /// When it arrived.
    pub arrival: Time,
    /// The port where it arrived.
    pub from: PortId,
}

impl<W: Write> VerdictWriter<W> {
    /// Writes to `writer`, which should be buffered; `file` names it in errors, `title` describes the run, and
    /// instants count from `start`.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(file: impl Into<String>, writer: W, title: &str, start: WallTime) -> Result<Self, WriteError> {
        let writer = CaptureWriter::new(file, writer, title)?;
        Ok(Self { writer, start, interfaces: Vec::new(), ways: BTreeMap::new(), comment: String::new() })
    }

    /// Sets which links lead from one port to another, for the comments of released packets.
    pub fn way(&mut self, from: PortId, to: PortId, links: String) {
        self.ways.insert((from, to), links);
    }

    /// Adds a packet; `names` are the names of the network that it crossed.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&mut self, names: &ElementNames, outcome: &Outcome<'_>) -> Result<(), WriteError> {
        let Outcome { at, port, layer, length, bytes, .. } = *outcome;
        let interface = self.interface(names, port, layer)?;
        self.comment.clear();
        // Writing to a string cannot fail.
        let _ = self.describe(names, outcome);
        let instant = self.start + at.since(Time::ZERO);
        let comment = (!self.comment.is_empty()).then_some(self.comment.as_str());
        self.writer.write(&Captured { instant, interface, length, bytes, comment })
    }

    fn describe(&mut self, names: &ElementNames, outcome: &Outcome<'_>) -> std::fmt::Result {
        let text = &mut self.comment;
        match outcome.fate {
            Fate::Delivered => {}
            Fate::Answered => text.push_str("an answer of the network's own"),
            Fate::Dropped { at: Some(at), reason } => {
                write!(text, "dropped at {}: {}", names.element(at), reason.name())?;
            }
            Fate::Dropped { at: None, reason } => write!(text, "dropped: {}", reason.name())?,
            Fate::Released(passage) => {
                let late = outcome.at.since(passage.scheduled).nanos();
                write!(text, "scheduled {} s, released {late} ns late", Seconds(passage.scheduled))?;
            }
            Fate::Refused(passage) => {
                write!(text, "not sent, refused by the system; scheduled {} s", Seconds(passage.scheduled))?;
            }
        }
        if let Fate::Released(passage) | Fate::Refused(passage) = outcome.fate {
            let Passage { arrival, from, .. } = passage;
            write!(text, "; came in {} s at {}", Seconds(arrival), names.port(from))?;
            if let Some(way) = self.ways.get(&(from, outcome.port)) {
                write!(text, ", by {way}")?;
            }
        }
        if outcome.missing > 0 {
            let start = if text.is_empty() { "" } else { "; " };
            write!(text, "{start}missing before it: {} packets", outcome.missing)?;
        }
        Ok(())
    }

    /// The interface of a port, described on first use.
    ///
    /// # Errors
    /// If writing fails.
    pub fn interface(
        &mut self,
        names: &ElementNames,
        port: PortId,
        layer: LinkLayer,
    ) -> Result<Interface, WriteError> {
        let is = |(of, interface): &&(PortId, Interface)| *of == port && interface.layer() == layer;
        if let Some((_, interface)) = self.interfaces.iter().find(is) {
            return Ok(*interface);
        }
        let interface = self.writer.interface(names.port(port), layer)?;
        self.interfaces.push((port, interface));
        Ok(interface)
    }

    /// Flushes buffered data.
    ///
    /// # Errors
    /// If writing fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.writer.flush()
    }

    /// Flushes buffered data and returns the writer.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> Result<W, WriteError> {
        self.writer.finish()
    }
}

/// An instant, in seconds with nine digits.
struct Seconds(Time);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanos = self.0.nanos();
        write!(f, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use narrows_core::{Engine, LinkConfig, NetworkConfig, PortConfig, Seed, Target};

    use super::*;
    use crate::capture::CaptureReader;

    #[test]
    fn each_fate_has_its_words() {
        let mut config = NetworkConfig::new(Seed(1));
        let entry = |name: &str| Target::Link { name: name.into(), lane: 0 };
        config.links.push(LinkConfig::new("access.down", Target::Port("client".into())));
        config.links.push(LinkConfig::new("access.up", Target::Port("server".into())));
        config.ports.push(PortConfig { name: "client".into(), entry: entry("access.up") });
        config.ports.push(PortConfig { name: "server".into(), entry: entry("access.down") });
        let engine: Engine<()> = Engine::new(config).unwrap();
        let names = ElementNames::of(&engine);
        let [client, server] = ["client", "server"].map(|name| engine.port(name).unwrap());
        let at = Time::from_nanos;
        let passage = Passage { scheduled: at(25_000_001), arrival: at(7), from: client };
        let link = engine.link("access.up").map(Element::Link);
        let cases = [
            (server, Fate::Delivered, 0, None),
            (server, Fate::Delivered, 2, Some("missing before it: 2 packets")),
            (client, Fate::Answered, 0, Some("an answer of the network's own")),
            (
                client,
                Fate::Dropped { at: link, reason: DropReason::QueueFull },
                0,
                Some("dropped at access.up: queue full"),
            ),
            (
                server,
                Fate::Released(passage),
                3,
                Some(
                    "scheduled 0.025000001 s, released 4999999 ns late; came in 0.000000007 s at client, by access.up; \
                     missing before it: 3 packets",
                ),
            ),
            // Nobody has said by what it came here.
            (
                client,
                Fate::Refused(passage),
                0,
                Some(
                    "not sent, refused by the system; scheduled 0.025000001 s; came in 0.000000007 s at client",
                ),
            ),
        ];
        let start = WallTime::from_nanos(1_700_000_000_000_000_000);
        let mut writer = VerdictWriter::new("f", Vec::new(), "", start).unwrap();
        writer.way(client, server, "access.up".into());
        for (port, fate, missing, _) in cases {
            let outcome = Outcome {
                at: at(30_000_000),
                port,
                layer: LinkLayer::Ethernet,
                length: 60,
                bytes: b"abc",
                fate,
                missing,
            };
            writer.write(&names, &outcome).unwrap();
        }
        let file = writer.finish().unwrap();
        let mut reader = CaptureReader::new("f", &file[..]).unwrap();
        for (port, _, _, comment) in cases {
            let packet = reader.read().unwrap().unwrap();
            assert_eq!(packet.comment, comment);
            assert_eq!(
                (packet.instant.nanos(), packet.length, packet.bytes),
                (1_700_000_000_030_000_000, 60, &b"abc"[..])
            );
            let interface = packet.interface;
            assert_eq!(reader.interface_name(interface), Some(names.port(port)));
        }
        assert!(reader.read().unwrap().is_none());
    }
}
