//! Keeps the kernel from handling packets that narrows routes: one nf_tables table that drops them before the kernel
//! looks for a route. Packet sockets get a frame before that, so narrows sees all of them.
//!
//! In `nft` syntax: `table inet NAME { flags owner; chain barrier { type filter hook prerouting priority raw; iif 7 ip daddr
//! 10.0.1.0/24 drop } }`. The kernel removes the table with the socket that created it, so nothing outlives this process.
//! Constants are from `linux/netfilter/nf_tables.h`.

use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::nftables::{
    BATCH_BEGIN, BATCH_END, CHAIN_HOOK, CHAIN_NAME, CHAIN_TABLE, CHAIN_TYPE, HOOK_NUMBER, HOOK_PRIORITY,
    NETWORK_HEADER, NEWCHAIN, NEWRULE, NEWTABLE, NftablesError, OwnedTables, REGISTER, RULE_CHAIN,
    RULE_EXPRESSIONS, RULE_TABLE, TABLE_FLAG_OWNER, TABLE_FLAGS, TABLE_NAME, TRANSPORT_HEADER, batch, be32,
    compare, compare_with, expression, keep_network, load, message, open,
};
use crate::address::IpPrefix;
use crate::link::InterfaceIndex;
use crate::namespace::Namespace;
use crate::netlink::Request;

const CHAIN: &str = "barrier";
/// `inet`: IPv4 and IPv6.
const FAMILY: u8 = 1;
const PRE_ROUTING: u32 = 0;
/// `raw`: before connection tracking.
const PRIORITY: i32 = -300;
/// Comparisons.
const EQUAL: u32 = 0;
const AT_MOST: u32 = 3;
const AT_LEAST: u32 = 5;
/// Keys of the `meta` expression.
const INPUT_INTERFACE: u32 = 4;
const VERSION: u32 = 15;
const TRANSPORT: u32 = 16;

/// Why the kernel cannot be kept from handling packets.
#[derive(Debug, thiserror::Error)]
pub enum BarrierError {
    /// The kernel has no nf_tables, or not the parts needed.
    #[error("this kernel cannot drop packets by nf_tables ({cause}); load the module nf_tables")]
    Missing {
        /// The kernel's error.
        cause: io::Error,
    },
    /// It is refused for another reason.
    #[error("cannot keep the kernel in {namespace} from handling routed packets, too: {cause}")]
    Refused {
        /// The namespace's label.
        namespace: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The namespace cannot be used.
    #[error(transparent)]
    Namespace(NftablesError),
}

/// Whether packets to a network reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// They do.
    Open,
    /// They are dropped.
    Closed,
}

/// What the kernel does not get of the packets that arrive at an interface.
#[derive(Clone, Debug)]
pub struct Barred {
    /// The interface.
    pub interface: InterfaceIndex,
    /// Ports of TCP and UDP: packets to these are dropped.
    pub ports: Option<RangeInclusive<u16>>,
    /// Destinations; the first network that has a packet's destination decides, and without one it reaches the kernel.
    pub networks: Vec<(IpPrefix, Passage)>,
}

/// The table, as long as this value lives.
#[derive(Debug)]
pub struct ForwardBarrier {
    _tables: OwnedTables,
}

impl ForwardBarrier {
    /// Adds the table, with this name.
    ///
    /// # Errors
    /// If the kernel refuses; nothing is changed then.
    pub fn raise(namespace: &Namespace, table: &str, barred: &[Barred]) -> Result<Self, BarrierError> {
        let mut socket = match open(namespace) {
            Ok(socket) => socket,
            Err(NftablesError::Missing { cause }) => return Err(BarrierError::Missing { cause }),
            Err(error) => return Err(BarrierError::Namespace(error)),
        };
        let mut requests = beginning(table).to_vec();
        for barred in barred {
            requests.extend(rules(table, barred));
        }
        match socket.transact(batch(BATCH_BEGIN), requests, batch(BATCH_END)) {
            Ok(_) => Ok(Self { _tables: OwnedTables { _socket: socket } }),
            Err(refusal) => Err(explain(refusal.cause, namespace)),
        }
    }
}

fn explain(cause: io::Error, namespace: &Namespace) -> BarrierError {
    match cause.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOENT | libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::EINVAL) => {
            BarrierError::Missing { cause }
        }
        _ => BarrierError::Refused { namespace: namespace.label().to_owned(), cause },
    }
}

/// The messages for table and chain.
fn beginning(table: &str) -> [Request; 2] {
    let create = libc::NLM_F_CREATE as u16;
    let exclusive = create | libc::NLM_F_EXCL as u16;
    let hook = |hook| be32(be32(hook, HOOK_NUMBER, PRE_ROUTING), HOOK_PRIORITY, PRIORITY as u32);
    [
        be32(message(NEWTABLE, FAMILY, exclusive).string(TABLE_NAME, table), TABLE_FLAGS, TABLE_FLAG_OWNER),
        message(NEWCHAIN, FAMILY, create)
            .string(CHAIN_TABLE, table)
            .string(CHAIN_NAME, CHAIN)
            .nested(CHAIN_HOOK, hook)
            .string(CHAIN_TYPE, "filter"),
    ]
}

fn rules(table: &str, barred: &Barred) -> Vec<Request> {
    const PROTOCOLS: [i32; 2] = [libc::IPPROTO_TCP, libc::IPPROTO_UDP];
    let mut all = Vec::new();
    if let Some(ports) = &barred.ports {
        all.extend(PROTOCOLS.map(|protocol| {
            rule(table, |list| {
                let list = arrived_at(list, barred.interface);
                let list = of_transport(list, protocol as u8);
                verdict(to_ports(list, ports), Passage::Closed)
            })
        }));
    }
    for &(network, passage) in &barred.networks {
        all.push(rule(table, |list| {
            let list = arrived_at(list, barred.interface);
            verdict(to_network(list, network), passage)
        }));
    }
    all
}

fn rule(table: &str, fill: impl FnOnce(Request) -> Request) -> Request {
    let flags = (libc::NLM_F_CREATE | libc::NLM_F_APPEND) as u16;
    message(NEWRULE, FAMILY, flags)
        .string(RULE_TABLE, table)
        .string(RULE_CHAIN, CHAIN)
        .nested(RULE_EXPRESSIONS, fill)
}

fn arrived_at(list: Request, interface: InterfaceIndex) -> Request {
    let list = meta(list, INPUT_INTERFACE);
    expression(list, "cmp", |data| compare_with(data, EQUAL, &interface.0.to_ne_bytes()))
}

fn of_transport(list: Request, protocol: u8) -> Request {
    expression(meta(list, TRANSPORT), "cmp", |data| compare_with(data, EQUAL, &[protocol]))
}

fn to_ports(list: Request, ports: &RangeInclusive<u16>) -> Request {
    let list = expression(list, "payload", |data| load(data, TRANSPORT_HEADER, 2, 2));
    let list = expression(list, "cmp", |data| compare_with(data, AT_LEAST, &ports.start().to_be_bytes()));
    expression(list, "cmp", |data| compare_with(data, AT_MOST, &ports.end().to_be_bytes()))
}

fn to_network(list: Request, network: IpPrefix) -> Request {
    let (version, offset, length) = match network.address {
        IpAddr::V4(_) => (libc::AF_INET, 16, 4),
        IpAddr::V6(_) => (libc::AF_INET6, 24, 16),
    };
    let list = expression(meta(list, VERSION), "cmp", |data| compare_with(data, EQUAL, &[version as u8]));
    if network.length == 0 {
        return list;
    }
    let list = expression(list, "payload", |data| load(data, NETWORK_HEADER, offset, length));
    let list = expression(list, "bitwise", |data| keep_network(data, network));
    expression(list, "cmp", |data| compare(data, network))
}

/// Loads a property of the packet.
fn meta(list: Request, property: u32) -> Request {
    const DESTINATION: u16 = 1;
    const KEY: u16 = 2;
    expression(list, "meta", |data| be32(be32(data, DESTINATION, REGISTER), KEY, property))
}

fn verdict(list: Request, passage: Passage) -> Request {
    const DESTINATION: u16 = 1;
    const DATA: u16 = 2;
    const VERDICT: u16 = 2;
    const CODE: u16 = 1;
    const VERDICT_REGISTER: u32 = 0;
    let code = match passage {
        Passage::Open => 1,
        Passage::Closed => 0,
    };
    expression(list, "immediate", |data| {
        be32(data, DESTINATION, VERDICT_REGISTER)
            .nested(DATA, |data| data.nested(VERDICT, |verdict| be32(verdict, CODE, code)))
    })
}
