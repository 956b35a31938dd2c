//! What a run does at present, for clients that show or change it.

use narrows_core::Target;
use narrows_scenario::Scenario;
use narrows_scenario::tc::Handle;
use serde::{Deserialize, Serialize};

use crate::testbed::interface_name;

/// The scenario with the values in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentScenario {
    /// The run's generation: a change that builds on what is said here names it.
    pub generation: u64,
    /// The whole, as a file.
    pub toml: String,
    /// The links of the engine.
    pub links: Vec<CurrentLink>,
    /// The ports of the hosts.
    pub ports: Vec<CurrentPort>,
}

/// One direction of a link, or a medium that both share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentLink {
    /// Its name, by which it is assigned to: `access.up`.
    pub link: String,
    /// What it does in NetEm's words, as far as they go; nothing where that is nothing.
    pub netem: Option<String>,
    /// Whether it is NetEm's single queue.
    pub exact: bool,
    /// Keys whose values NetEm has no words for.
    pub unrepresentable: Vec<String>,
    /// The keys that NetEm's words are about and that are not as in a plain link.
    pub keys: Vec<String>,
    /// Its scheduler as tc's disciplines and classes, where it is one of tc's.
    #[serde(default)]
    pub tree: Option<narrows_scenario::tc::CurrentConfig>,
}

/// Where packets of a host come in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentPort {
    /// Its name.
    pub port: String,
    /// The host.
    pub host: String,
    /// The link that packets enter here.
    pub link: String,
    /// The host's interface.
    #[serde(default)]
    pub interface: String,
}

impl CurrentScenario {
    /// That of a scenario.
    pub(crate) fn of(scenario: &Scenario, generation: u64) -> Self {
        let owned = |keys: Vec<&'static str>| keys.into_iter().map(str::to_owned).collect();
        let all = scenario.links.iter().flat_map(|link| link.directions());
        let links = all.enumerate().map(|(number, (link, direction))| {
            let first = Handle::FIRST.saturating_add(u16::try_from(number).unwrap_or(u16::MAX));
            let netem = direction.netem();
            CurrentLink {
                link,
                netem: netem.qdisc.map(|qdisc| qdisc.text()),
                exact: netem.exact,
                unrepresentable: owned(netem.unrepresentable),
                keys: owned(netem.keys),
                tree: direction.tc(first),
            }
        });
        let ports = scenario.ports().iter().map(|port| CurrentPort {
            port: port.name.clone(),
            host: port.host.clone(),
            link: port.path.first().map_or(String::new(), name),
            interface: interface_name(&port.link),
        });
        Self { generation, toml: scenario.to_toml(), links: links.collect(), ports: ports.collect() }
    }
}

/// The name of a link, or of what else a packet may come to.
fn name(target: &Target) -> String {
    match target {
        Target::Link { name, .. }
        | Target::Rules { name, .. }
        | Target::FromPipe { rules: name, .. }
        | Target::Router(name)
        | Target::Port(name) => name.clone(),
    }
}
