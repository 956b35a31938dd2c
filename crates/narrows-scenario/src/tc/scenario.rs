//! Scenarios from scripts: two hosts, and a link between them with the settings of the script.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Device, Keys, Script};
use crate::ScenarioError;
use crate::files;
use crate::link::Way;
use crate::problem::{Found, Problem, one_of};
use crate::two_hosts::{self, LINK};

/// Values of keys.
pub(super) type Said = BTreeMap<(Way, &'static str), String>;

/// A device of a script, and its direction on the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The device's settings from the commands.
    pub device: Device,
    /// The direction of packets that leave by the device; arriving packets have the other direction.
    pub way: Way,
}

impl Placed {
    /// The keys of the link, each with its direction.
    pub fn keys(&self) -> impl Iterator<Item = (Way, &'static str, &str)> {
        let egress = self.device.egress.keys.iter().map(|(key, value)| (self.way, *key, value.as_str()));
        let back = match self.way {
            Way::Up => Way::Down,
            Way::Down => Way::Up,
        };
        egress.chain(self.device.ingress.keys.iter().map(move |(key, value)| (back, *key, value.as_str())))
    }

    /// Describes how the device is mapped, for people.
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
    /// If the file cannot be read, and as [`Script::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let (text, file) = files::read_script(path.as_ref())?;
        Self::parse(&text, &file)
    }

    /// Maps its devices to a link between a client and a server. `client`, `link.up` and `up` belong to the
    /// client; `server`, `link.down` and `down` to the server. [`Script::with_devices`] overrides this. Of
    /// devices with other names, the first belongs to the client, the second to the server.
    ///
    /// # Errors
    /// As [`Script::devices`], and if there are more devices than ends.
    pub fn placed(&self, exact: bool) -> Result<Vec<Placed>, ScenarioError> {
        self.check_vlans()?;
        // Mapped first, as computing the settings of thousands of devices would take long.
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
        let mut devices = self.devices(exact)?;
        let place = |(name, way): (&str, Way)| {
            // A device may be configured for the first time after a `sleep`.
            let device = match devices.iter().position(|device| device.name == name) {
                Some(at) => devices.swap_remove(at),
                None => Device { name: name.into(), egress: Keys::default(), ingress: Keys::default() },
            };
            Placed { device, way }
        };
        let all: Vec<Placed> = ways.into_iter().map(place).collect();
        self.said(&all)?;
        Ok(all)
    }

    /// The values of keys of the link's directions.
    pub(super) fn said(&self, all: &[Placed]) -> Result<Said, ScenarioError> {
        let mut said = Said::new();
        for (way, key, value) in all.iter().flat_map(Placed::keys) {
            if said.insert((way, key), value.to_owned()).is_some() {
                let title = format!("{LINK}.{} would have two of `{key}`", way.name());
                return Err(self.error(Problem::new(title).help(
                    "one for packets that leave by a device, one for those that arrive at the other",
                )));
            }
        }
        Ok(said)
    }

    /// Devices of VLANs send by another device: of those, a link stands for one.
    fn check_vlans(&self) -> Result<(), ScenarioError> {
        let names = self.names().into_iter().filter(|name| self.known.iter().all(|(known, _)| known != name));
        let mut seen: Vec<(&str, String)> = Vec::new();
        for name in names {
            let below = self.below_vlan(name).unwrap_or_else(|| name.to_owned());
            if let Some((other, _)) = seen.iter().find(|(_, known)| *known == below) {
                let command = self.commands.iter().find(|command| command.device.as_deref() == Some(name));
                let span = command.map_or(0..0, |command| command.span.clone());
                return Err(self.error(
                    Problem::new(format!(
                        "{} and {} are one device, with and without a VLAN, or two VLANs of it",
                        Found(other),
                        Found(name)
                    ))
                    .put_at(&span)
                    .help("a link stands for one of them: its frames have one tag, or none")
                    .help("filters tell VLANs apart: protocol 802.1Q flower vlan_id 10"),
                ));
            }
            seen.push((name, below));
        }
        Ok(())
    }

    /// The assignments for a link named `link`, as accepted by [`Scenario::set`](crate::Scenario::set).
    ///
    /// # Errors
    /// As [`Script::placed`].
    pub fn assignments(&self, exact: bool) -> Result<Vec<String>, ScenarioError> {
        let placed = self.placed(exact)?;
        let text = |(way, key, value): (Way, &str, &str)| {
            format!("{LINK}.{}.{key}={}", way.name(), value.replace('\n', " "))
        };
        Ok(placed.iter().flat_map(|placed| placed.keys().map(text).collect::<Vec<_>>()).collect())
    }

    /// The equivalent scenario file.
    ///
    /// # Errors
    /// As [`Script::placed`].
    pub fn scenario_text(&self, exact: bool) -> Result<String, ScenarioError> {
        let placed = self.placed(exact)?;
        let mut text = two_hosts::text([], placed.iter().flat_map(Placed::keys));
        for step in self.steps(exact)? {
            text += &step.text();
        }
        Ok(text)
    }
}
