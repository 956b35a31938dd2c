//! Packets of a run, for clients that inspect them.

use serde::{Deserialize, Serialize};

/// A packet that was delivered or dropped. Fields that `narrows sim --packets` also writes have the names of its
/// columns, and the same meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRecord {
    /// Its number among the packets inspected in this run, from 1.
    pub seen: u64,
    /// The port where it arrived.
    pub port: String,
    /// Its number among the arrivals there, from 0.
    pub number: u64,
    /// 0 for the packet that arrived; duplicates and fragments have other numbers.
    pub copy: u16,
    /// The scenario's traffic that sent it; empty for a program's packet.
    pub feed: String,
    /// `tcp`, `udp`, `icmp`, `icmpv6`, `sctp`, or a number; empty if it is not IP.
    pub protocol: String,
    /// Source address; empty if it is not IP.
    pub source: String,
    /// Source port, or the ICMP type and code.
    pub source_port: u16,
    /// Destination address; empty if it is not IP.
    pub destination: String,
    /// Destination port, or the ICMP identifier.
    pub destination_port: u16,
    /// The IPv4 TOS or IPv6 traffic class byte.
    pub traffic_class: u8,
    /// When it arrived, on the run's clock.
    pub arrival_ns: u64,
    /// From the network header on.
    pub length_bytes: u32,
    /// `delivered` or `dropped`.
    pub verdict: String,
    /// The port of delivery, or the link, rules, router or switch that dropped it; empty when the network refused it.
    #[serde(rename = "where")]
    pub place: String,
    /// The short name of the reason; empty if it was not dropped.
    pub reason: String,
    /// The sum of its waiting times in all queues.
    pub queueing_ns: u64,
    /// When it was delivered or dropped, as scheduled, on the run's clock.
    pub departure_ns: u64,
    /// The same on the wall clock, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// The host that it came from; empty for a router.
    pub from: String,
    /// The host that it was delivered to, or was on its way to; empty if unknown.
    pub to: String,
    /// The links on its path, in order, up to where it was dropped; empty if that is unknown.
    pub path: Vec<String>,
    /// The links that it passed, with the one that dropped it, and its times there.
    pub links: Vec<LinkPassed>,
    /// Whether it is marked "congestion experienced".
    pub marked: bool,
    /// Whether it is a fragment that a link cut.
    pub fragment: bool,
    /// Whether bits were flipped on the way.
    pub corrupted: bool,
    /// The settings that can drop packets for this reason, as assignments: `access.up.loss=2%`; `(default)`
    /// follows a default.
    pub settings: Vec<String>,
    /// What happened to it, in a sentence.
    pub text: String,
}

/// A link that a packet passed, or that dropped it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPassed {
    /// The link.
    pub link: String,
    /// When the packet reached it, on the run's clock.
    pub entered_ns: u64,
    /// How long it waited in the queue.
    pub queueing_ns: u64,
    /// When it left, or was dropped.
    pub left_ns: u64,
}

impl PacketRecord {
    /// Whether it was dropped.
    pub fn is_dropped(&self) -> bool {
        self.verdict == "dropped"
    }
}

/// How many packets were inspected since inspection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketCounts {
    /// Delivered packets.
    pub delivered: u64,
    /// Dropped packets.
    pub dropped: u64,
    /// Delivered packets for which there was no room, so that they are in no answer.
    pub left_out_delivered: u64,
    /// The same for dropped packets.
    pub left_out_dropped: u64,
}

/// The packets after a given one; `P` is how they are held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketsSince<P = PacketRecord> {
    /// When inspection began, on the run's clock: it ends when nobody asks for some seconds.
    pub since_ns: u64,
    /// The packets, oldest first.
    pub packets: Vec<P>,
    /// How many earlier ones are no longer kept.
    pub missed: u64,
    /// All packets since inspection began.
    pub counts: PacketCounts,
}
