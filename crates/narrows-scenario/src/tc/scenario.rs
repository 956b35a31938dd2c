//! Scenarios of scripts: two hosts, and between them a link that does what the script says.

use std::path::Path;

use super::{Device, Script};
use crate::ScenarioError;
use crate::files;
use crate::link::Way;
use crate::problem::{Found, Problem, one_of};
use crate::two_hosts::{self, LINK};

/// A device of a script and the way that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// What commands made of it.
    pub device: Device,
    /// The way of packets that leave there; those that arrive come the other way.
    pub way: Way,
}

impl Placed {
    /// The keys of the link, each with its way.
    pub fn keys(&self) -> impl Iterator<Item = (Way, &'static str, &str)> {
        let egress = self.device.egress.keys.iter().map(|(key, value)| (self.way, *key, value.as_str()));
        let back = match self.way {
            Way::Up => Way::Down,
            Way::Down => Way::Up,
        };
        egress.chain(self.device.ingress.keys.iter().map(move |(key, value)| (back, *key, value.as_str())))
    }

    /// How the device is taken, for people.
    pub fn words(&self) -> String {
        let (from, to) = match self.way {
            Way::Up => ("client", "server"),
            Way::Down => ("server", "client"),
        };
        format!(
            "{} is the {from}'s device: what leaves there goes to the {to}, along {LINK}.{}",
            self.device.name,
            self.way.name()
        )
    }
}

impl Script {
    /// Reads a script from a file.
    ///
    /// # Errors
    /// When the file cannot be read, and as [`Script::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let (text, file) = files::read_text(path.as_ref(), "script")?;
        Self::parse(&text, &file)
    }

    /// Its devices on a link between a client and a server. `client`, `link.up` and `up` are the client's; `server`,
    /// `link.down` and `down` are the server's, unless [`Script::with_devices`] says otherwise; of other names the first is the client's, and the second the server's.
    ///
    /// # Errors
    /// As of [`Script::devices`], and when there are more devices than ends.
    pub fn placed(&self, exact: bool) -> Result<Vec<Placed>, ScenarioError> {
        // First, as what each of thousands is like would take its time.
        let mut ways: Vec<(&str, Way)> = Vec::new();
        for name in self.names() {
            let known = self.known.iter().find(|(known, _)| known == name).map(|(_, way)| *way);
            let named = known.or(match name {
                "client" | "client.link" | "link.up" | "up" => Some(Way::Up),
                "server" | "server.link" | "link.down" | "down" => Some(Way::Down),
                _ => None,
            });
            let free = [Way::Up, Way::Down].into_iter().find(|way| ways.iter().all(|other| other.1 != *way));
            match named.or(free) {
                Some(way) if ways.iter().all(|other| other.1 != way) => ways.push((name, way)),
                _ => {
                    let names: Vec<&str> = ways.iter().map(|(name, _)| *name).collect();
                    return Err(self.error(
                        Problem::new(format!("too many devices, {}: a link has two ends", Found(name)))
                            .help(format!("its ends are {}", one_of(&names)))
                            .help(
                                "for more links write a scenario file, and configure each with `narrows tc`",
                            ),
                    ));
                }
            }
        }
        let devices = self.devices(exact)?.into_iter();
        Ok(devices.zip(ways).map(|(device, (_, way))| Placed { device, way }).collect())
    }

    /// What sets the keys of a link called `link`, as [`Scenario::set`](crate::Scenario::set) takes it.
    ///
    /// # Errors
    /// As of [`Script::placed`].
    pub fn assignments(&self, exact: bool) -> Result<Vec<String>, ScenarioError> {
        let placed = self.placed(exact)?;
        let text = |(way, key, value): (Way, &str, &str)| {
            format!("{LINK}.{}.{key}={}", way.name(), value.replace('\n', " "))
        };
        Ok(placed.iter().flat_map(|placed| placed.keys().map(text).collect::<Vec<_>>()).collect())
    }

    /// The scenario file that does the same.
    ///
    /// # Errors
    /// As of [`Script::placed`].
    pub fn scenario_text(&self, exact: bool) -> Result<String, ScenarioError> {
        let placed = self.placed(exact)?;
        Ok(two_hosts::text([], placed.iter().flat_map(Placed::keys)))
    }
}
