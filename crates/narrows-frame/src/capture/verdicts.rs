//! What became of packets, as a capture: there is an interface for each port, and comments say what bytes do not.
//!
//! A packet that left is on the interface of the port where it did, at the instant at which it did, with everything that
//! the network did to it. A dropped one is on that of the port where it had come in, at the instant of the drop.
//!
//! | comment | of a packet |
//! |---|---|
//! | none | that left at the instant for which it was scheduled, as in virtual time |
//! | `scheduled 0.025083200 s, released 4321 ns late; came in 0.000000000 s at client.access, by access.up` | of a live run |
//! | `not sent, refused by the system; scheduled …` | that left the network and never the host |
//! | `an answer of the network's own` | that nobody had sent: address resolution, "packet too big" |
//! | `dropped at access.down: queue full` | that was dropped |
//!
//! Instants in comments count from the start of the run, with nine digits.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use narrows_core::{DropReason, Element, PortId, Time};

use super::{CaptureWriter, Captured, Interface};
use crate::file::WriteError;
use crate::{ElementNames, LinkLayer, WallTime};

/// Writes what became of packets.
#[derive(Debug)]
pub struct VerdictWriter<W: Write> {
    writer: CaptureWriter<W>,
    start: WallTime,
    /// One for each port and link layer that came up, in that order.
    interfaces: Vec<(PortId, Interface)>,
    /// The links from one port to another, where that is known.
    ways: BTreeMap<(PortId, PortId), String>,
    comment: String,
}

/// A packet, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// When it left or was dropped.
    pub at: Time,
    /// Where it left; of a dropped one, where it had come in.
    pub port: PortId,
    /// How its bytes begin.
    pub layer: LinkLayer,
    /// How many bytes it had.
    pub length: u32,
    /// Its bytes, or the first of them.
    pub bytes: &'a [u8],
    /// What became of it.
    pub fate: Fate,
    /// How many packets are missing before it, because they could not be kept.
    pub missing: u64,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It left at the instant for which it was scheduled.
    Delivered,
    /// It was released by a live run, later than that.
    Released(Passage),
    /// The system refused to send it.
    Refused(Passage),
    /// It left, but had never come in: an answer.
    Answered,
    /// It was dropped.
    Dropped {
        /// At this element; nothing where it was refused on coming in.
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

/// When a packet was to leave, and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it was to leave.
    pub scheduled: Time,
    /// When it came in.
    pub arrival: Time,
    /// Where it came in.
    pub from: PortId,
}

impl<W: Write> VerdictWriter<W> {
    /// Writes to `writer`, which had better be buffered; `file` names it in errors, `title` says what runs, and instants
    /// count from `start`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(file: impl Into<String>, writer: W, title: &str, start: WallTime) -> Result<Self, WriteError> {
        let writer = CaptureWriter::new(file, writer, title)?;
        Ok(Self { writer, start, interfaces: Vec::new(), ways: BTreeMap::new(), comment: String::new() })
    }

    /// Says which links lead from one port to another, for the comments of released packets.
    pub fn way(&mut self, from: PortId, to: PortId, links: String) {
        self.ways.insert((from, to), links);
    }

    /// Adds a packet; `names` are those of the network that it crossed.
    ///
    /// # Errors
    /// When it cannot be written.
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
    /// When it cannot be written.
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

    /// Writes what is still buffered.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.writer.flush()
    }

    /// Writes what is still buffered, and gives the writer back.
    ///
    /// # Errors
    /// When it cannot be written.
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
