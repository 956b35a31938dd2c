//! Switches: learning bridges that connect any number of links in one or several VLANs.

use std::ops::Range;

use narrows_core::{Duration, VlanSet};
use serde_json::json;

use crate::files::Files;
use crate::host::Host;
use crate::keys::kind::{Boolean, ByHand, Described, Integer, text};
use crate::keys::quantity::Time;
use crate::keys::{Keyed, Row, row};
use crate::link::{self, Link};
use crate::node::{self, Node, Table, Value};
use crate::problem::{Found, Problem};

/// A switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Name, unique among hosts, junctions, routers, switches and links.
    pub name: String,
    /// The VLANs of ports, each by the name of its link or of what is at the other end.
    pub vlans: Vec<(String, PortVlans)>,
    /// Whether it knows the link addresses of all hosts from the start.
    pub known_hosts: bool,
    /// How long a learned address that sends nothing is kept.
    pub ageing: Duration,
    /// How many addresses it can learn.
    pub table_size: u32,
}

/// The VLANs of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortVlans {
    /// The VLAN of frames without a tag; `None` if there must be one.
    pub untagged: Option<u16>,
    /// The VLANs whose frames have tags.
    pub tagged: Tagged,
}

/// VLANs whose frames have tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tagged {
    /// These.
    Some(Vec<u16>),
    /// All.
    All,
}

impl Tagged {
    /// The same as the engine's set.
    pub(crate) fn set(&self) -> VlanSet {
        match self {
            Self::Some(vlans) => VlanSet::of(vlans.iter().copied()),
            Self::All => VlanSet::All,
        }
    }

    fn contains(&self, vlan: u16) -> bool {
        match self {
            Self::Some(vlans) => vlans.contains(&vlan),
            Self::All => true,
        }
    }
}

/// The VLAN of ports that no one has configured (IEEE 802.1Q-2018, table 9-2).
const USUAL: u16 = 1;

impl PortVlans {
    /// A port of one VLAN, whose frames have no tags.
    const fn access(vlan: u16) -> Self {
        Self { untagged: Some(vlan), tagged: Tagged::Some(Vec::new()) }
    }

    /// A port of all VLANs; the frames of the usual one have no tags.
    const TRUNK: Self = Self { untagged: Some(USUAL), tagged: Tagged::All };

    /// A port that is not configured: all VLANs between two switches, otherwise the usual one.
    pub(crate) const fn usual(between_switches: bool) -> Self {
        if between_switches { Self::TRUNK } else { Self::access(USUAL) }
    }

    /// The VLAN of an arriving frame with this tag, 0 for none.
    pub(crate) fn vlan_of(&self, tag: u16) -> Option<u16> {
        match tag {
            0 => self.untagged,
            tag => (self.untagged == Some(tag) || self.tagged.contains(tag)).then_some(tag),
        }
    }

    /// The tag of a leaving frame of this VLAN, 0 for none.
    pub(crate) fn tag_of(&self, vlan: u16) -> Option<u16> {
        match self.untagged == Some(vlan) {
            true => Some(0),
            false => self.tagged.contains(vlan).then_some(vlan),
        }
    }
}

impl std::fmt::Display for PortVlans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self { tagged: Tagged::All, .. } => f.write_str("all VLANs"),
            Self { untagged: Some(vlan), .. } => write!(f, "VLAN {vlan}"),
            Self { tagged: Tagged::Some(vlans), .. } => {
                let vlans: Vec<String> = vlans.iter().map(u16::to_string).collect();
                write!(f, "VLANs {} tagged", vlans.join(", "))
            }
        }
    }
}

impl Switch {
    /// A switch with default settings.
    pub(crate) fn plain(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The configured VLANs of the port at a link to `other`.
    pub(crate) fn vlans_of(&self, link: &str, other: &str) -> Option<&PortVlans> {
        let find = |wanted: &str| self.vlans.iter().find(|(name, _)| name == wanted);
        find(link).or_else(|| find(other)).map(|(_, vlans)| vlans)
    }
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            name: String::new(),
            vlans: Vec::new(),
            known_hosts: true,
            ageing: Duration::from_secs(300),
            table_size: 8192,
        }
    }
}

const VLANS: ByHand<Vec<(String, PortVlans)>> = ByHand {
    words: || {
        "table of ports, by link, host, router or switch: a number from 1 to 4094, a list of such numbers, or `\"trunk\"`"
            .into()
    },
    schema: |_| {
        let number = json!({ "type": "integer", "minimum": 1, "maximum": LAST });
        json!({ "type": "object", "additionalProperties": { "anyOf": [
            number,
            { "type": "array", "items": number, "minItems": 1 },
            { "type": "string", "enum": ["trunk"] },
        ] } })
    },
    read: |node, _| {
        let table = node.table("a table of ports, such as { client = 10, uplink = \"trunk\" }")?;
        let port = |(key, node): (&node::Key, &Node)| {
            Ok((key.name.clone(), port_vlans(node).map_err(|problem| problem.inside(&key.name))?))
        };
        table.iter().map(port).collect()
    },
    write: |ports| {
        let mut table = Table::default();
        ports.iter().for_each(|(name, vlans)| table.set(name, Node::new(vlans_value(vlans))));
        (!ports.is_empty()).then_some(Value::Table(table))
    },
};
/// The last identifier of a VLAN: 4095 is reserved (IEEE 802.1Q-2018, table 9-2).
const LAST: u16 = 4094;
const NAMES: Described = Described {
    words: || "list of hosts".into(),
    schema: |_| json!({ "type": "array", "items": { "type": "string" } }),
};
const LINK: Described =
    Described { words: || "table of the keys of a [link](#links)".into(), schema: Link::schema_without_ends };
const ADDRESSES: Integer = Integer { what: "a number of addresses", low: 0, high: 1_000_000 };

fn port_vlans(node: &Node) -> Result<PortVlans, Problem> {
    const ALLOWED: &str = "a VLAN from 1 to 4094, a list of VLANs whose frames have tags, or \"trunk\"";
    let vlan = |node: &Node| match &node.value {
        Value::Integer(text) => {
            let vlan = text.parse().ok().filter(|vlan| (1..=LAST).contains(vlan));
            vlan.ok_or_else(|| node.expected("a VLAN from 1 to 4094"))
        }
        _ => Err(node.expected(ALLOWED)),
    };
    match &node.value {
        Value::String(word) if word == "trunk" => Ok(PortVlans::TRUNK),
        Value::Array(vlans) if !vlans.is_empty() => {
            let mut tagged = vlans.iter().map(vlan).collect::<Result<Vec<u16>, _>>()?;
            tagged.sort_unstable();
            tagged.dedup();
            Ok(PortVlans { untagged: None, tagged: Tagged::Some(tagged) })
        }
        _ => vlan(node).map(PortVlans::access),
    }
}

fn vlans_value(vlans: &PortVlans) -> Value {
    let number = |vlan: &u16| Value::Integer(vlan.to_string());
    match vlans {
        PortVlans { tagged: Tagged::All, .. } => text("trunk"),
        PortVlans { untagged: Some(vlan), .. } => number(vlan),
        PortVlans { tagged: Tagged::Some(vlans), .. } => {
            Value::Array(vlans.iter().map(|vlan| Node::new(number(vlan))).collect())
        }
    }
}

impl Keyed for Switch {
    const ROWS: &'static [Row<Self>] = &[
        Row::apart(
            "hosts",
            &NAMES,
            "Hosts that get a link to the switch each, named `SWITCH-HOST`; **up** is from the host. Others join by links of their own: `between = [\"HOST\", \"SWITCH\"]`.",
            |_: &Self| None,
        )
        .default("none"),
        Row::apart("link", &LINK, "Keys of the links to `hosts`.", |_: &Self| None).default("none"),
        Row::apart(
            "shared",
            &Boolean,
            "Whether the links to `hosts` share [one medium](#stations-on-one-medium), such as a radio channel; it belongs to the first of them.",
            |_: &Self| None,
        )
        .default("`false`"),
        row!(
            "vlans",
            vlans,
            VLANS,
            "[VLANs](#switches) of ports. A number: the port belongs to this VLAN, and its frames have no tags. A list: to these, and frames have tags. `\"trunk\"`: to all, with tags but for VLAN 1."
        )
        .default("`\"trunk\"` between two switches, otherwise 1"),
        row!(
            "known-hosts",
            known_hosts,
            Boolean,
            "Whether it knows from the start, and does not forget, where the scenario's hosts are, as if they sent often. Otherwise frames to a host are flooded until it has sent."
        ),
        row!("ageing", ageing, Time::POSITIVE, "How long a learned address that sends nothing is kept."),
        row!(
            "table-size",
            table_size,
            ADDRESSES,
            "How many addresses it can learn. Those known from the start need no room."
        ),
    ];
}

/// The links that `hosts` and `link` of a switch's table stand for, each with the place of its host.
pub(crate) fn links_of<'a>(
    key: &node::Key,
    table: &'a Table,
    hosts: &[Host],
    names: &[String],
    files: &Files,
) -> Result<Vec<(Link, &'a Node)>, Vec<Problem>> {
    let one = |problem: Problem| vec![problem];
    let Some(list) = table.get("hosts") else {
        return match table.key("link").or(table.key("shared")) {
            None => Ok(Vec::new()),
            Some(key) => Err(one(Problem::new(format!("`{}` needs `hosts`", key.name))
                .at(&key.span)
                .help("name the hosts whose links these keys are for: hosts = [\"client\", \"server\"]"))),
        };
    };
    let inside = |problem: Problem| one(problem.inside("hosts"));
    let keys = match table.get("link") {
        None => Table::default(),
        Some(node) => {
            let keys = node.table("a table of what the links do").map_err(|p| one(p.inside("link")))?;
            if let Some(between) = keys.key("between") {
                let problem = Problem::new("the links of `hosts` are between each host and the switch")
                    .at(&between.span)
                    .help("leave `between` out");
                return Err(one(problem.inside("link")));
            }
            keys.clone()
        }
    };
    let mut links: Vec<(Link, &Node)> = Vec::new();
    let shares = match table.get("shared") {
        None => false,
        Some(node) => node.boolean().map_err(|p| one(p.inside("shared")))?,
    };
    let list = list.list("a list of hosts, such as [\"a\", \"b\"]").map_err(inside)?;
    let of_medium: Vec<String> = match shares && list.len() > 1 {
        true => list.iter().filter_map(|node| node.text("").ok().map(str::to_owned)).collect(),
        false => Vec::new(),
    };
    for node in list {
        let host = node.text("the name of a host").map_err(inside)?;
        if !names.iter().any(|name| name == host) {
            let problem = Problem::new(format!("there is no host {}", Found(host))).at(&node.span);
            return Err(inside(problem.help(format!("add a line for it: [hosts.{host}]"))));
        }
        let name = format!("{}-{host}", key.name);
        if links.iter().any(|(link, _)| link.name == name) {
            return Err(inside(Problem::new(format!("`{host}` is named twice")).at(&node.span)));
        }
        let ends = [host, key.name.as_str()].map(|end| Node { span: node.span.clone(), value: text(end) });
        let mut own = match links.first() {
            Some((first, _)) if shares => {
                let mut own = Table::default();
                own.set("medium", Node { span: node.span.clone(), value: text(&first.name) });
                own
            }
            _ => keys.clone(),
        };
        if shares && links.is_empty() {
            own.set("shared", Node { span: node.span.clone(), value: Value::Boolean(true) });
        }
        own.set("between", Node { span: node.span.clone(), value: Value::Array(ends.into()) });
        // The stations belong to the first link.
        let stations = if links.is_empty() { &of_medium[..] } else { &[] };
        let own_key = node::Key { name, span: node.span.clone() };
        let own = Node { span: node.span.clone(), value: Value::Table(own) };
        let read = link::read(&own_key, &own, hosts, names, stations, files);
        let link = read.map_err(|all| all.into_iter().map(|p| p.inside("link")).collect::<Vec<_>>())?;
        links.push((link, node));
    }
    Ok(links)
}

/// Checks that the names in `vlans` are those of links here, or of what is at their other ends.
pub(crate) fn check(switch: &Switch, table: &Table, links: &[&Link]) -> Vec<Problem> {
    let vlans = table.get("vlans").and_then(|node| node.table("").ok());
    let place = |name: &str| vlans.and_then(|table| table.key(name)).map_or(0..0, |key| key.span.clone());
    let known = |name: &str| {
        links.iter().filter(|link| link.name == name || link.between.iter().any(|end| end == name)).count()
    };
    let problem = |(name, _): &(String, PortVlans)| {
        let problem = match known(name) {
            1 => return None,
            0 => Problem::new(format!("the switch `{}` has no port {}", switch.name, Found(name)))
                .help("name a link of the switch, or the host, router or switch at its other end"),
            _ => Problem::new(format!("several links join `{}` and `{name}`", switch.name))
                .help("name the link instead"),
        };
        let place: Range<usize> = place(name);
        Some(problem.at(&place).inside("vlans"))
    };
    switch.vlans.iter().filter_map(problem).collect()
}
