//! The current configuration of a run, for clients that show or change it.

use narrows_core::queue::Bound;
use narrows_core::{Duration, Target};
use narrows_report::{DirectionInfo, Kind, RunInfo};
use narrows_scenario::tc::Handle;
use narrows_scenario::{Lane, Scenario};
use serde::{Deserialize, Serialize};

/// The scenario with its current values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentScenario {
    /// The run's generation: changes based on this configuration refer to it.
    pub generation: u64,
    /// The whole scenario, as a file.
    pub toml: String,
    /// The links of the engine.
    pub links: Vec<CurrentLink>,
    /// The ports of the hosts.
    pub ports: Vec<CurrentPort>,
    /// The effective settings of each direction of each link. Runs of older versions do not say them.
    #[serde(default)]
    pub directions: Vec<CurrentDirection>,
}

/// The effective settings of one direction of a link, defaults included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentDirection {
    /// The engine's name of the link, for assignments: `access.up`.
    pub link: String,
    /// The lane: 0, except on a shared medium.
    pub lane: u8,
    /// The host where packets come from.
    pub from: String,
    /// The host where they go.
    pub to: String,
    /// The rate; `None` if it is unlimited or comes from a trace.
    pub rate_bps: Option<u64>,
    /// The mean one-way delay; `None` if unknown.
    pub delay_ns: Option<u64>,
    /// The queue limit, if it is in packets.
    pub bound_packets: Option<u64>,
    /// The queue limit, if it is in bytes.
    pub bound_bytes: Option<u64>,
    /// Whether the link is down.
    pub outage: bool,
    /// All settings, in one line.
    pub configured: String,
}

/// One direction of a link, or a medium that both share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentLink {
    /// Its name, for assignments: `access.up`.
    pub link: String,
    /// Its configuration in NetEm syntax, as far as it can be expressed; `None` if there is nothing to express.
    pub netem: Option<String>,
    /// Whether it is an exact NetEm qdisc with a single queue.
    pub exact: bool,
    /// Keys whose values NetEm syntax cannot express.
    pub unrepresentable: Vec<String>,
    /// Keys expressed in NetEm syntax that differ from a plain link.
    pub keys: Vec<String>,
    /// Its scheduler as tc qdiscs and classes, if tc has it.
    #[serde(default)]
    pub tree: Option<narrows_scenario::tc::CurrentConfig>,
}

/// The port where a host's packets enter the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentPort {
    /// Its name.
    pub port: String,
    /// The host.
    pub host: String,
    /// The link that packets enter there.
    pub link: String,
    /// The host's interface.
    #[serde(default)]
    pub interface: String,
}

impl CurrentScenario {
    /// From a scenario.
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
            interface: scenario.interface_name(port),
        });
        // The kind of clock does not affect the settings.
        let info = RunInfo::of(scenario, Kind::Live);
        let lanes = scenario.links.iter().flat_map(|link| link.lanes());
        let directions = info.directions.into_iter().zip(lanes);
        Self {
            generation,
            toml: scenario.to_toml(),
            links: links.collect(),
            ports: ports.collect(),
            directions: directions.map(|(info, lane)| CurrentDirection::of(info, &lane)).collect(),
        }
    }
}

impl CurrentDirection {
    fn of(info: DirectionInfo, lane: &Lane<'_>) -> Self {
        let bound = lane.direction.whole_bound();
        Self {
            link: info.link,
            lane: info.lane,
            from: info.from,
            to: info.to,
            rate_bps: info.rate_bps,
            delay_ns: info.delay.map(Duration::nanos),
            bound_packets: bound.and_then(|bound| match bound {
                Bound::Packets(packets) => Some(packets),
                Bound::Bytes(_) => None,
            }),
            bound_bytes: bound.and_then(|bound| match bound {
                Bound::Bytes(bytes) => Some(bytes.get()),
                Bound::Packets(_) => None,
            }),
            outage: lane.direction.outage,
            configured: info.asked,
        }
    }
}

/// The name of a link, or of another element that a packet may enter.
fn name(target: &Target) -> String {
    match target {
        Target::Link { name, .. }
        | Target::Rules { name, .. }
        | Target::FromPipe { rules: name, .. }
        | Target::Router(name)
        | Target::Switch { name, .. }
        | Target::Port(name) => name.clone(),
    }
}
