//! What a coordinator and its agents say to each other: JSON, one message per line.

use std::collections::BTreeMap;
use std::io::{self, Write};

use narrows_live::underlay::UnderlayFigures;
use narrows_report::Report;
use serde::{Deserialize, Serialize};

/// From the coordinator to an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Bind sockets for probes to these machines, at this address.
    Bind { address: std::net::IpAddr, peers: Vec<String> },
    /// Measure the way to each machine: the addresses of their sockets.
    Measure { peers: BTreeMap<String, std::net::SocketAddr> },
    /// Prepare the part of a scenario.
    Prepare(Box<Preparation>),
    /// Run it.
    Start { name: Option<String>, tunnels: BTreeMap<String, std::net::SocketAddr> },
    /// The coordinator is there.
    Alive,
    /// End the run.
    End,
}

/// The part of a scenario that one machine runs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Preparation {
    pub(super) machine: String,
    /// The scenario file, and the files that it names.
    pub(super) file: String,
    pub(super) text: String,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) set: Vec<String>,
    pub(super) seed: u64,
    /// The machine of each node.
    pub(super) nodes: BTreeMap<String, String>,
    pub(super) cuts: Vec<Cut>,
    /// The one-way limit towards each machine, in nanoseconds.
    pub(super) limits: BTreeMap<String, u64>,
}

/// A link from this machine to another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cut {
    pub(super) link: String,
    pub(super) peer: String,
    /// Its number, equal on both machines.
    pub(super) identifier: u32,
    /// The largest UDP payload of the tunnel.
    pub(super) payload: usize,
    /// What is subtracted from its delay.
    pub(super) subtract_ns: u64,
}

/// From an agent to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// It has started; the address is the one by which ssh reached it.
    Hello {
        version: String,
        address: Option<std::net::IpAddr>,
        /// Its user, and whether that has all privileges or works in a user namespace.
        #[serde(default)]
        user: u32,
        #[serde(default)]
        is_privileged: bool,
    },
    /// The ports of its sockets, for each machine or link.
    Bound {
        ports: BTreeMap<String, u16>,
    },
    /// What it has measured.
    Measured {
        figures: BTreeMap<String, UnderlayFigures>,
    },
    /// Its network is up.
    Up {
        name: String,
    },
    Alive,
    /// The run has ended.
    Ended {
        report: Box<Report>,
        figures: BTreeMap<String, UnderlayFigures>,
        broken: Option<String>,
    },
    /// It cannot go on.
    Failed {
        why: String,
    },
}

/// Writes one message.
pub(super) fn tell(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    to.write_all(line.as_bytes())?;
    to.flush()
}
