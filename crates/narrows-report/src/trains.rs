//! Trains of segments that a live run received from the kernel, or handed to it, as one frame.

use std::fmt::{self, Formatter};

use serde::{Deserialize, Serialize};

use crate::human::{count, span};

/// Counters of trains, where they were carried. Each packet of a train has its own verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainsReport {
    /// Trains received from hosts. Their packets have the same arrival time.
    #[serde(alias = "came")]
    pub received: u64,
    /// The packets that they were split into.
    #[serde(alias = "came_packets")]
    pub received_packets: u64,
    /// Trains sent to hosts, joined from packets that were due when the send call was made. Their packets reach the
    /// receiver at the same instant.
    #[serde(alias = "left")]
    pub sent: u64,
    /// The packets that they were joined from.
    #[serde(alias = "left_packets")]
    pub sent_packets: u64,
    /// The maximum difference between the scheduled instants of the first and the last packet of a train that was
    /// sent.
    #[serde(alias = "apart_max_ns")]
    pub spread_max_ns: u64,
}

impl TrainsReport {
    /// Adds the counters of other ports.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.received_packets += other.received_packets;
        self.sent += other.sent;
        self.sent_packets += other.sent_packets;
        self.spread_max_ns = self.spread_max_ns.max(other.spread_max_ns);
    }
}

pub(crate) fn print(trains: &TrainsReport, f: &mut Formatter<'_>) -> fmt::Result {
    let TrainsReport { received, received_packets, sent, sent_packets, spread_max_ns } = trains;
    writeln!(
        f,
        "  trains: {} received, segmented into {} packets; {} sent, joined from {} packets",
        count(*received),
        count(*received_packets),
        count(*sent),
        count(*sent_packets),
    )?;
    match spread_max_ns {
        0 => writeln!(f, "  scheduled for the same instant"),
        apart => writeln!(f, "  scheduled up to {} apart", span(*apart)),
    }
}
