//! Scenarios of scripts: two hosts, and the rules between them.

use std::net::IpAddr;
use std::path::Path;

use crate::files;
use crate::flags::LinkFlags;
use crate::ipfw::{Context, Script};
use crate::problem::ScenarioError;
use crate::scenario::Scenario;

/// What the two hosts and the link between them are called, as in a scenario of flags.
const HOSTS: [&str; 2] = ["client", "server"];
/// The link at which the rules are, and so the interface that they see.
const LINK: &str = "net";

/// Which ports are behind the rules of the short form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports<'a> {
    /// The client's programs talk to these ports of others.
    Client(&'a str),
    /// Others talk to these ports of the client.
    Server(&'a str),
}

impl Script {
    /// Reads a script for the scenario that [`Script::scenario`] makes of it. In its rules `client` and `server` are the
    /// addresses of the two hosts, and the only interface is `net`.
    ///
    /// # Errors
    /// As [`Script::parse`].
    pub fn for_two_hosts(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let plain = Scenario::from_flags(&LinkFlags::default())?;
        let addresses = |host: &&str| {
            let ports = plain.ports().iter().filter(|port| port.host == **host);
            let addresses: Vec<IpAddr> =
                ports.flat_map(|port| port.addresses.iter().map(|address| address.ip)).collect();
            (String::from(*host), addresses)
        };
        let hosts: Vec<_> = HOSTS.iter().map(addresses).collect();
        Self::parse(text, file, &Context { interfaces: &[LINK], hosts: &hosts, ..Context::default() })
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    /// When the file cannot be read, and as [`Script::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let (text, file) = files::read_text(path.as_ref(), "script")?;
        Self::for_two_hosts(&text, &file)
    }

    /// The scenario of a client and a server with these rules between them: `out` is from the client to the server. Files
    /// that it names are found from the folder of `file`.
    ///
    /// # Errors
    /// When it names a file that cannot be read or is wrong. The lines are those of the scenario.
    pub fn scenario(&self, file: &str) -> Result<Scenario, ScenarioError> {
        Scenario::parse(&self.to_toml(LINK, HOSTS), file)
            .map_err(|error| error.of(&format!("{file}, as a scenario")))
    }

    /// The short form of Dummynet's `netconfig`: only packets from or to these ports cross a pipe, one for each way that is
    /// given. A pipe is a rate, or what follows `pipe N config`: `6mbit`, `bw 6Mbit/s delay 10ms queue 20`.
    ///
    /// # Errors
    /// As [`Script::parse`].
    pub fn of_ports(
        ports: Ports<'_>,
        incoming: Option<&str>,
        outgoing: Option<&str>,
    ) -> Result<Self, ScenarioError> {
        let (list, out_by, in_by) = match ports {
            Ports::Client(list) => (list, "dst-port", "src-port"),
            Ports::Server(list) => (list, "src-port", "dst-port"),
        };
        let mut text = String::new();
        for (number, way, by, pipe) in [(1, "out", out_by, outgoing), (2, "in", in_by, incoming)] {
            let Some(pipe) = pipe else { continue };
            let bare = pipe.trim_start().starts_with(|first: char| first.is_ascii_digit());
            let config = if bare { format!("bw {pipe}") } else { pipe.into() };
            text += &format!("pipe {number} config {config}\n");
            text += &format!("add {number}00 pipe {number} ip from any to any {way} {by} {list}\n");
        }
        Self::for_two_hosts(&text, "the short form")
    }
}
