//! Scenarios from scripts: the network around their devices, with the settings of the script.

use std::collections::BTreeMap;
use std::path::Path;

use super::command::Body;
use super::network::Placed;
use super::place::Place;
use super::qdisc::Kind;
use super::{Device, Script};
use crate::ScenarioError;
use crate::dialect::shell::Start;
use crate::files;
use crate::link::Way;
use crate::netem;
use crate::problem::{Found, Problem};

/// Values of keys of each link.
pub(super) type Said = BTreeMap<(String, Way, &'static str), String>;

/// As many VLAN tags as a device may put on a frame, one above another.
const MOST_TAGS: usize = 8;

impl Script {
    /// Reads a script from a file. Tables of distributions are beside it.
    ///
    /// # Errors
    /// If the file cannot be read, and as [`Script::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        Self::load_with(path, Start::default())
    }

    /// As [`Script::load`], for a script that is started with these arguments and variables.
    ///
    /// # Errors
    /// As [`Script::load`].
    pub fn load_with(path: impl AsRef<Path>, start: Start<'_>) -> Result<Self, ScenarioError> {
        let (text, file) = files::read_script(path.as_ref())?;
        let mut script = Self::parse_with(&text, &file, Start { path: Some(path.as_ref()), ..start })?;
        let folder = path.as_ref().parent().unwrap_or(Path::new(""));
        for command in &mut script.commands {
            let Body::Qdisc(Some(Kind::Netem(qdisc))) = &mut command.body else { continue };
            let netem::Kind::Netem(options) = &mut qdisc.kind else { continue };
            for name in options.tables() {
                let beside = folder.join(&*name);
                if beside.is_file() {
                    *name = beside.display().to_string();
                } else if !Path::new(name).is_file() {
                    let title = format!(
                        "the table of a distribution, {}, cannot be read: there is no such file",
                        Found(name)
                    );
                    let help = "it is looked for beside the script, and in this folder; tc's own tables are usually in /usr/lib/tc";
                    let problem = Problem::new(title).put_at(&command.span).help(help);
                    return Err(ScenarioError::new(&file, &text, vec![problem]));
                }
            }
        }
        Ok(script)
    }

    /// Maps its devices to links. One or two are the ends of a link between a client and a server: `client`, `link.up` and `up`
    /// belong to the client; `server`, `link.down` and `down` to the server; of devices with other names, the first belongs to
    /// the client, the second to the server. [`Script::with_devices`] overrides this. More devices are those of a router, with
    /// a link and a host behind each, or, with a network namespace for each, those of hosts around a router.
    ///
    /// # Errors
    /// As [`Script::devices`], and if there are more devices than ends, or too many.
    pub fn placed(&self, exact: bool) -> Result<Vec<Placed>, ScenarioError> {
        // Mapped first, as computing the settings of thousands of devices would take long.
        let places = self.places()?;
        self.check_vlans()?;
        let devices: BTreeMap<String, Device> =
            self.devices(exact)?.into_iter().map(|device| (device.name.clone(), device)).collect();
        let place = |(name, place): (&str, Place)| match devices.get(name).cloned() {
            Some(device) => Placed { device, place },
            // A device may be configured for the first time after a `sleep`.
            None => Placed::empty(name, place),
        };
        let mut all: Vec<Placed> = places.into_iter().map(place).collect();
        if let Some(first) = all.first_mut() {
            first.device.egress.notes.splice(0..0, self.notes_of_network());
        }
        self.said(&all)?;
        Ok(all)
    }

    /// The values of keys of each direction of the links.
    pub(super) fn said(&self, all: &[Placed]) -> Result<Said, ScenarioError> {
        let mut said = Said::new();
        for placed in all {
            let link = &placed.place.link;
            for (way, key, value) in placed.keys() {
                if said.insert((link.clone(), way, key), value.to_owned()).is_some() {
                    let title = format!("{link}.{} would have two of `{key}`", way.name());
                    return Err(self.error(Problem::new(title).help(
                        "one for packets that leave by a device, one for those that arrive at the other",
                    )));
                }
            }
        }
        for (link, way, _) in said.keys().filter(|(.., key)| *key == "exact-netem") {
            let beside = |key| said.contains_key(&(link.clone(), *way, key));
            if beside("policer") || beside("ingress") {
                let title = format!(
                    "{link}.{} would have the kernel's single queue, which --exact-netem asks for, and filters with actions",
                    way.name()
                );
                return Err(self.error(Problem::new(title).help("leave out --exact-netem, or these filters")));
            }
        }
        Ok(said)
    }

    /// The devices by which a device of a VLAN sends, from the next one on.
    pub(super) fn below(&self, device: &str) -> Vec<String> {
        let next = |device: &String| self.below_vlan(device);
        std::iter::successors(self.below_vlan(device), next).take(MOST_TAGS).collect()
    }

    /// Devices of VLANs send by another device, whose disciplines they pass, too.
    fn check_vlans(&self) -> Result<(), ScenarioError> {
        let names = self.names().into_iter().filter(|name| self.known.iter().all(|(known, _)| known != name));
        let all: BTreeMap<&str, Vec<String>> = names.map(|name| (name, self.below(name))).collect();
        let other =
            |below: &[String]| below.iter().find_map(|other| Some(*all.get_key_value(other.as_str())?.0));
        let found = all.iter().find_map(|(name, below)| Some((*name, other(below)?)));
        let Some((name, other)) = found else { return Ok(()) };
        let command = self.commands.iter().find(|command| command.device.as_deref() == Some(name));
        let span = command.map_or(0..0, |command| command.span.clone());
        Err(self.error(
            Problem::new(format!(
                "{} and {} are one device, with and without a VLAN",
                Found(other),
                Found(name)
            ))
            .put_at(&span)
            .help("a link stands for one of them: its frames have one tag, or none")
            .help("filters tell VLANs apart: protocol 802.1Q flower vlan_id 10"),
        ))
    }

    /// The assignments for its links, as accepted by [`Scenario::set`](crate::Scenario::set).
    ///
    /// # Errors
    /// As [`Script::placed`].
    pub fn assignments(&self, exact: bool) -> Result<Vec<String>, ScenarioError> {
        let placed = self.placed(exact)?;
        let of_one = |placed: &Placed| -> Vec<String> {
            let link = &placed.place.link;
            let text = |(way, key, value): (Way, &str, &str)| {
                format!("{link}.{}.{key}={}", way.name(), value.replace('\n', " "))
            };
            placed.keys().map(text).collect()
        };
        Ok(placed.iter().flat_map(of_one).collect())
    }

    /// The equivalent scenario file.
    ///
    /// # Errors
    /// As [`Script::placed`].
    pub fn scenario_text(&self, exact: bool) -> Result<String, ScenarioError> {
        let placed = self.placed(exact)?;
        let mut text = self.network_text(&placed);
        for step in self.steps(exact)? {
            text += &step.text();
        }
        Ok(text)
    }
}
