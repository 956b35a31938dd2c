//! Trains of segments that a live run received from the kernel, or handed to it, as one frame.

use std::fmt::{self, Formatter};

use serde::{Deserialize, Serialize};

use crate::human::{count, span};

/// Counters of trains, where they were carried. Each packet of a train has its own verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainsReport {
    /// Trains received from hosts. Their packets have the same arrival time.
    pub came: u64,
    /// The packets that they were split into.
    pub came_packets: u64,
    /// Trains sent to hosts, joined from packets that were due when the send call was made. Their packets reach the
    /// receiver at the same instant.
    pub left: u64,
    /// The packets that they were joined from.
    pub left_packets: u64,
    /// The maximum difference between the scheduled instants of the first and the last packet of a train that was
    /// sent.
    pub apart_max_ns: u64,
}

impl TrainsReport {
    /// Adds the counters of other ports.
    pub fn add(&mut self, other: &Self) {
        self.came += other.came;
        self.came_packets += other.came_packets;
        self.left += other.left;
        self.left_packets += other.left_packets;
        self.apart_max_ns = self.apart_max_ns.max(other.apart_max_ns);
    }
}

pub(crate) fn print(trains: &TrainsReport, f: &mut Formatter<'_>) -> fmt::Result {
    let TrainsReport { came, came_packets, left, left_packets, apart_max_ns } = trains;
    writeln!(
        f,
        "  trains: {} came, each at one instant, cut into {} packets with a verdict each; {} left, joined from {} packets that",
        count(*came),
        count(*came_packets),
        count(*left),
        count(*left_packets),
    )?;
    match apart_max_ns {
        0 => writeln!(f, "  had been scheduled for one instant"),
        apart => writeln!(f, "  had been scheduled up to {} apart and arrived at one instant", span(*apart)),
    }
}
