//! What a coordinator and its agents say to each other when a scenario runs across several machines: JSON, one message
//! per line, over the standard input and output of `narrows agent`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::net::{IpAddr, SocketAddr};

use narrows_core::Duration;
use narrows_report::Report;
use narrows_scenario::{Files, MOST_BYTES, Scenario, ScenarioError};
use serde::{Deserialize, Serialize};

use crate::underlay::UnderlayFigures;

/// The maximum length of an [`Order`]: a byte of a file takes up to four.
pub const LONGEST_ORDER: u64 = 4 * MOST_BYTES;
/// The maximum length of an [`Answer`].
pub const LONGEST_ANSWER: u64 = 16 << 20;

/// From the coordinator to an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Bind sockets for probes.
    Bind {
        /// The address.
        address: IpAddr,
        /// The machines that are probed.
        peers: Vec<String>,
    },
    /// Measure the path to each machine.
    Measure {
        /// The addresses of their sockets.
        peers: BTreeMap<String, SocketAddr>,
    },
    /// Prepare the part of a scenario.
    Prepare(Box<Preparation>),
    /// Run it.
    Start {
        /// The name of the run.
        name: Option<String>,
        /// The address at the other end of each tunnel, by link.
        tunnels: BTreeMap<String, SocketAddr>,
    },
    /// The coordinator is there.
    Alive,
    /// End the run.
    End,
}

/// The part of a scenario that one machine runs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Preparation {
    /// The machine.
    pub machine: String,
    /// The name of the scenario file.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The files that it names.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Assignments from the command line.
    pub set: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// The machine of each node.
    pub nodes: BTreeMap<String, String>,
    /// The links to other machines.
    pub cuts: Vec<Cut>,
    /// The one-way limit towards each machine, in nanoseconds.
    pub limits: BTreeMap<String, u64>,
}

/// A link from this machine to another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cut {
    /// The link.
    pub link: String,
    /// The other machine.
    pub peer: String,
    /// Its number, equal on both machines.
    pub identifier: u32,
    /// The largest UDP payload of the tunnel.
    pub payload: usize,
    /// What is subtracted from its delay.
    pub subtract_ns: u64,
}

/// From an agent to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It has started.
    Hello {
        /// The version of the program.
        version: String,
        /// The address by which ssh reached it.
        address: Option<IpAddr>,
        /// Its user.
        #[serde(default)]
        user: u32,
        /// Whether the user has all privileges or works in a user namespace.
        #[serde(default)]
        is_privileged: bool,
    },
    /// Its sockets are bound.
    Bound {
        /// The ports of its sockets, for each machine or link.
        ports: BTreeMap<String, u16>,
    },
    /// It has measured.
    Measured {
        /// What it has measured.
        figures: BTreeMap<String, UnderlayFigures>,
    },
    /// Its network is up.
    Up {
        /// The name of the run.
        name: String,
    },
    /// It is there.
    Alive,
    /// The run has ended.
    Ended {
        /// Its report.
        report: Box<Report>,
        /// The underlay during the run.
        figures: BTreeMap<String, UnderlayFigures>,
        /// Why it ended early.
        broken: Option<String>,
    },
    /// It cannot go on.
    Failed {
        /// The reason.
        why: String,
    },
}

impl Preparation {
    /// The scenario, and of it the part of this machine.
    ///
    /// # Errors
    /// As [`Scenario::parse_with`], [`Scenario::set`] and [`Scenario::on_machine`].
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        let files = Files::given(self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())));
        let mut scenario = Scenario::parse_with(&self.text, &self.file, files)?;
        scenario.set(&self.set)?;
        scenario.file.clone_from(&self.file);
        scenario.seed = self.seed;
        let span = |cut: &Cut| Duration::from_nanos(cut.subtract_ns);
        let subtract = self.cuts.iter().map(|cut| (cut.link.clone(), span(cut))).collect();
        scenario.on_machine(&self.machine, &self.nodes, &subtract)?;
        Ok(scenario)
    }
}

/// Writes one message.
///
/// # Errors
/// If the other end is gone.
pub fn tell(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    to.write_all(line.as_bytes())?;
    to.flush()
}

/// Reads one message, without its line feed; `None` at the end.
///
/// # Errors
/// If it cannot be read, or has more than `longest` bytes.
pub fn hear(from: &mut impl BufRead, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let length = from.take(longest + 1).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    match length {
        0 => Ok(None),
        _ if line.len() as u64 > longest => {
            Err(io::Error::new(io::ErrorKind::InvalidData, format!("a line is longer than {longest} bytes")))
        }
        _ => Ok(Some(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_bound() {
        let mut from = &b"four\n\nfive5\nno"[..];
        assert_eq!(hear(&mut from, 4).unwrap().as_deref(), Some(&b"four"[..]));
        assert_eq!(hear(&mut from, 4).unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(hear(&mut from, 4).unwrap_err().to_string(), "a line is longer than 4 bytes");
        let mut from = &b"no"[..];
        assert_eq!(hear(&mut from, 4).unwrap().as_deref(), Some(&b"no"[..]));
        assert_eq!(hear(&mut from, 4).unwrap(), None);
        // A stream without an end.
        assert!(hear(&mut io::BufReader::new(io::repeat(b'x')), 1 << 16).is_err());
    }
}
