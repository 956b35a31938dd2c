//! Hosts: where programs run and traffic starts and ends.

use std::net::IpAddr;
use std::ops::Range;

use narrows_core::classify::Prefix;
use serde_json::{Value as Json, json};

use crate::keys::kind::{ByHand, Integer, text};
use crate::keys::schema::{self, Definitions};
use crate::keys::{Form, Keyed, Row, row};
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Name, unique among hosts, junctions and routers.
    pub name: String,
    /// Network namespace of the host in a live run.
    pub place: Place,
    /// The machine that it is on, if the scenario runs across several.
    pub machine: Option<String>,
    /// The configured addresses. See [`Port::addresses`](crate::Port) for the effective ones.
    pub addresses: Vec<HostAddress>,
}

impl Host {
    /// A host with default settings.
    pub(crate) fn plain(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// Network namespace of a host in a live run. Ignored in virtual time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A new network namespace, created for the run.
    #[default]
    New,
    /// An existing network namespace, by its name under `/run/netns` or its path.
    Namespace(String),
    /// The network namespace of this process.
    Process(u32),
}

/// An address of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// The link; `None` if the host has only one.
    pub link: Option<String>,
    /// The address.
    pub address: Address,
}

/// An IP address and its prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// Prefix length in bits: at most 32, or 128 for IPv6.
    pub prefix: u8,
}

impl Address {
    /// The network that contains it: its first address and the prefix length.
    pub fn network(self) -> Self {
        let ip = match self.ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix.min(32))).unwrap_or(0);
                IpAddr::from((ip.to_bits() & mask).to_be_bytes())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix.min(128))).unwrap_or(0);
                IpAddr::from((ip.to_bits() & mask).to_be_bytes())
            }
        };
        Self { ip, ..self }
    }

    /// The network as the engine's prefix type.
    pub(crate) fn prefix(self) -> Prefix {
        match self.ip {
            IpAddr::V4(ip) => Prefix::new(ip.to_ipv6_mapped().octets(), 96 + self.prefix.min(32)),
            IpAddr::V6(ip) => Prefix::new(ip.octets(), self.prefix),
        }
    }

    /// The address with a full-length prefix.
    pub(crate) fn host(ip: IpAddr) -> Self {
        Self { ip, prefix: if ip.is_ipv4() { 32 } else { 128 } }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

const NAMESPACE: ByHand<String> = ByHand {
    words: || "name or path".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| {
        const ALLOWED: &str = "the name or path of a network namespace";
        match node.text(ALLOWED)? {
            name if name.is_empty() || name.contains('\0') => Err(node.expected(ALLOWED)),
            name => Ok(name.into()),
        }
    },
    write: |name| Some(text(name)),
};
const MACHINE: ByHand<String> = ByHand {
    words: || "name".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| {
        const ALLOWED: &str = "the name of a machine, as ssh knows it";
        match node.text(ALLOWED)? {
            name if name.is_empty() || name.starts_with('-') || name.contains(['\0', ',', '=', ' ']) => {
                Err(node.expected(ALLOWED))
            }
            name => Ok(name.into()),
        }
    },
    write: |name| Some(text(name)),
};
const PID: Integer = Integer { what: "the number of a process,", low: 1, high: i32::MAX as i64 };
/// The addresses of a host or router.
pub(crate) const ADDRESSES: ByHand<Vec<HostAddress>> = ByHand {
    words: || "list of addresses with prefix lengths, or a table with such a list for each link".into(),
    schema: addresses_schema,
    read: |node, _| read_addresses(node),
    write: |addresses| addresses_value(addresses),
};

impl Keyed for Host {
    const ROWS: &'static [Row<Self>] = &[
        Row::new(
            "namespace",
            &NAMESPACE,
            "Use this existing network namespace as the host: a name under `/run/netns`, or a path.",
            |host: &Self| match &host.place {
                Place::Namespace(name) => NAMESPACE.write(name),
                _ => None,
            },
            |host: &mut Self, node, around| {
                host.place = Place::Namespace(NAMESPACE.read(node, around)?);
                Ok(())
            },
        )
        .default("created for the run"),
        Row::new(
            "pid",
            &PID,
            "Use the network namespace of this process as the host, such as a container's.",
            |host: &Self| match &host.place {
                Place::Process(pid) => PID.write(pid),
                _ => None,
            },
            |host: &mut Self, node, around| {
                host.place = Place::Process(PID.read(node, around)?);
                Ok(())
            },
        ),
        Row::new(
            "machine",
            &MACHINE,
            "Run this host on this machine, one of `narrows up --machines`.",
            |host: &Self| host.machine.as_ref().and_then(|machine| MACHINE.write(machine)),
            |host: &mut Self, node, around| {
                host.machine = Some(MACHINE.read(node, around)?);
                Ok(())
            },
        )
        .default("where narrows runs"),
        row!("addresses", addresses, ADDRESSES, "IP addresses of the host.")
            .default("one of IPv4 and one of IPv6 for each link"),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        match (table.key("namespace"), table.key("pid")) {
            (Some(_), Some(_)) => Err(Problem::new("a host has either `namespace` or `pid`").at(place)),
            _ => Ok(()),
        }
    }
}

fn read_addresses(node: &Node) -> Result<Vec<HostAddress>, Problem> {
    const ALLOWED: &str =
        "a list of addresses, such as [\"10.1.2.1/24\"], or a table with a list for each link";
    let list = |link: Option<&str>, node: &Node| -> Result<Vec<HostAddress>, Problem> {
        let item = |node: &Node| Ok(HostAddress { link: link.map(Into::into), address: read_address(node)? });
        node.list(ALLOWED)?.iter().map(item).collect()
    };
    match &node.value {
        Value::Table(table) => {
            let mut all = Vec::new();
            for (key, node) in table.iter() {
                all.extend(list(Some(&key.name), node).map_err(|p| p.inside(&key.name))?);
            }
            Ok(all)
        }
        _ => list(None, node),
    }
}

fn addresses_value(addresses: &[HostAddress]) -> Option<Value> {
    let on = |link: &Option<String>| {
        let here = addresses.iter().filter(|given| given.link == *link);
        Value::Array(here.map(|given| Node::new(text(given.address))).collect())
    };
    let mut by_link = Table::default();
    for given in addresses {
        match &given.link {
            None => return Some(on(&None)),
            Some(link) => by_link.set(link, Node::new(on(&given.link))),
        }
    }
    (!addresses.is_empty()).then_some(Value::Table(by_link))
}

fn addresses_schema(definitions: &mut Definitions) -> Json {
    let list = |doc: &str| json!({ "type": "array", "description": doc, "items": { "type": "string" } });
    schema::define(definitions, "Addresses", |_| {
        json!({
            "description": "Addresses such as `10.1.2.1/24` or `fd00::1/64`.",
            "anyOf": [
                list("On the only link."),
                {
                    "type": "object",
                    "description": "For each link, by its name.",
                    "additionalProperties": list("On this link."),
                },
            ],
        })
    })
}

pub(crate) fn read_address(node: &Node) -> Result<Address, Problem> {
    const HELP: &str = "write it with its prefix length: \"10.1.2.1/24\" or \"fd00::1/64\"";
    let text = node.text("an address").map_err(|p| p.help(HELP))?;
    let address = text.split_once('/').and_then(|(ip, prefix)| {
        let ip: IpAddr = ip.trim().parse().ok()?;
        let prefix: u8 = prefix.trim().parse().ok()?;
        (prefix <= if ip.is_ipv4() { 32 } else { 128 }).then_some(Address { ip, prefix })
    });
    address
        .ok_or_else(|| Problem::new(format!("{} is not an address", Found(text))).at(&node.span).help(HELP))
}
