//! Hosts: where programs run and traffic comes from.

use std::net::IpAddr;

use narrows_core::classify::Prefix;

use crate::node::{Key, Node, Value};
use crate::problem::{Found, Problem};

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Unique among hosts, junctions and routers.
    pub name: String,
    /// Where it is in a live run.
    pub place: Place,
    /// The addresses that were given; see [`Port::addresses`](crate::Port) for those in force.
    pub addresses: Vec<HostAddress>,
}

impl Host {
    /// A host of which no more is known.
    pub(crate) fn plain(name: &str) -> Self {
        Self { name: name.into(), place: Place::New, addresses: Vec::new() }
    }
}

/// Where a host is in a live run. Virtual time takes no notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A network namespace of its own, made for the run.
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
    /// On which link; nothing for the only one.
    pub link: Option<String>,
    /// The address.
    pub address: Address,
}

/// An IP address and the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// Bits of the prefix: at most 32, or 128 for IPv6.
    pub prefix: u8,
}

impl Address {
    /// The network that it is in: the first address and the length of the prefix.
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

    /// The addresses of its network, as the engine has them.
    pub(crate) fn prefix(self) -> Prefix {
        match self.ip {
            IpAddr::V4(ip) => Prefix::new(ip.to_ipv6_mapped().octets(), 96 + self.prefix.min(32)),
            IpAddr::V6(ip) => Prefix::new(ip.octets(), self.prefix),
        }
    }

    /// The address alone.
    pub(crate) fn host(ip: IpAddr) -> Self {
        Self { ip, prefix: if ip.is_ipv4() { 32 } else { 128 } }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

pub(crate) const KEYS: &[&str] = &["namespace", "pid", "addresses"];

/// Reads `[hosts.NAME]`.
pub(crate) fn read(key: &Key, node: &Node) -> Result<Host, Problem> {
    let table = node.table("a table, which may be empty")?;
    table.only(KEYS)?;
    let namespace = table.optional("namespace", |node| {
        let name = node.text("the name or path of a network namespace")?;
        if name.is_empty() || name.contains('\0') {
            Err(node.expected("the name or path of a network namespace"))
        } else {
            Ok(name.to_string())
        }
    })?;
    let pid = table.optional("pid", |node| node.integer("the number of a process,", 1..1 << 31))?;
    let place = match (namespace, pid) {
        (None, None) => Place::New,
        (Some(name), None) => Place::Namespace(name),
        (None, Some(pid)) => Place::Process(pid as u32),
        (Some(_), Some(_)) => {
            return Err(Problem::new("a host has either `namespace` or `pid`").at(&key.span));
        }
    };
    let addresses = table.optional("addresses", read_addresses)?.unwrap_or_default();
    Ok(Host { name: key.name.clone(), place, addresses })
}

pub(crate) fn read_addresses(node: &Node) -> Result<Vec<HostAddress>, Problem> {
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

pub(crate) fn read_address(node: &Node) -> Result<Address, Problem> {
    const HELP: &str = "write it with the length of its prefix: \"10.1.2.1/24\" or \"fd00::1/64\"";
    let text = node.text("an address").map_err(|p| p.help(HELP))?;
    let address = text.split_once('/').and_then(|(ip, prefix)| {
        let ip: IpAddr = ip.trim().parse().ok()?;
        let prefix: u8 = prefix.trim().parse().ok()?;
        (prefix <= if ip.is_ipv4() { 32 } else { 128 }).then_some(Address { ip, prefix })
    });
    address.ok_or_else(|| Problem::new(format!("{} is no address", Found(text))).at(&node.span).help(HELP))
}
