//! Packet records: one row for each packet, as CSV here and as columns in `narrows-columns`.
//!
//! | column | |
//! |---|---|
//! | `port`, `number` | the port where the packet arrived, and its number among the arrivals there, from 0 |
//! | `copy` | 0 for the packet that arrived; duplicates and fragments have other numbers |
//! | `feed` | the traffic source or capture that sent it; empty for a program's packet |
//! | `protocol`, `source`, `source_port`, `destination`, `destination_port`, `traffic_class` | its flow key |
//! | `arrival_ns` | when it arrived |
//! | `length_bytes` | from the network header on; for a fragment, the fragment's |
//! | `verdict` | `delivered` or `dropped` |
//! | `where` | the port of delivery, or the link that dropped it; empty when the network refused it |
//! | `reason` | why it was dropped |
//! | `queueing_ns` | its total queueing delay |
//! | `departure_ns` | when it was delivered or dropped |
//! | `links` | the links that it passed, with the one that dropped it, each as `LINK:ENTERED:QUEUEING:LEFT` in ns, separated by `;` |
//!
//! Records are in the order of verdicts.

use std::fmt;

use narrows_core::{Duration, Element, FlowKey, Passed, Time};
use narrows_frame::{Address, ElementNames, transport};

use crate::series::csv_field;

/// The columns.
pub const PACKETS_HEAD: &str = "port,number,copy,feed,protocol,source,source_port,destination,destination_port,traffic_class,\
     arrival_ns,length_bytes,verdict,where,reason,queueing_ns,departure_ns,links\n";

/// A row of packet records: the fate of a packet. The columns are in [`PACKETS_HEAD`].
#[derive(Clone, Copy, Debug)]
pub struct PacketRow<'a> {
    /// The traffic source or capture that sent it.
    pub feed: &'a str,
    /// The port where it arrived.
    pub port: &'a str,
    /// Its number among the arrivals there, from 0.
    pub number: u64,
    /// 0 for the packet that arrived; duplicates and fragments have other numbers.
    pub copy: u16,
    /// Its flow key at that instant.
    pub key: FlowKey,
    /// When it arrived.
    pub arrival: Time,
    /// When it was delivered or dropped.
    pub at: Time,
    /// Its length at that instant, from the network header on.
    pub length: u32,
    /// Its total queueing delay.
    pub queued: Duration,
    /// Whether it was delivered.
    pub delivered: bool,
    /// The port of delivery, or the link that dropped it; empty when the network refused it.
    pub place: &'a str,
    /// Why it was dropped; empty if it was not.
    pub reason: &'static str,
    /// Whether it is marked "congestion experienced".
    pub marked: bool,
    /// The links that it passed.
    pub links: Path<'a>,
}

/// The links that a packet passed, in order, with the one that dropped it.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    /// The links by number.
    pub passed: &'a [Passed],
    /// Their names.
    pub names: &'a ElementNames,
}

impl<'a> Path<'a> {
    /// The links by name.
    pub fn named(&self) -> impl ExactSizeIterator<Item = (&'a str, &'a Passed)> + use<'a> {
        let names = self.names;
        self.passed.iter().map(|passed| (names.element(Element::Link(passed.link)), passed))
    }
}

/// As in CSV. Names of links contain neither `:` nor `;`.
impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, passed)) in self.named().enumerate() {
            let sign = if at > 0 { ";" } else { "" };
            let Passed { entered, queued, left, .. } = passed;
            write!(f, "{sign}{name}:{}:{}:{}", entered.nanos(), queued.nanos(), left.nanos())?;
        }
        Ok(())
    }
}

impl PacketRow<'_> {
    /// `delivered` or `dropped`.
    pub fn verdict(&self) -> &'static str {
        if self.delivered { "delivered" } else { "dropped" }
    }
}

/// A line of CSV, without the line end.
impl fmt::Display for PacketRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        write!(
            f,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            csv_field(self.port),
            self.number,
            self.copy,
            csv_field(self.feed),
            transport(key),
            Address::source(key),
            key.source_port,
            Address::destination(key),
            key.destination_port,
            key.traffic_class,
            self.arrival.nanos(),
            self.length,
            self.verdict(),
            csv_field(self.place),
            self.reason,
            self.queued.nanos(),
            self.at.nanos(),
            self.links,
        )
    }
}
