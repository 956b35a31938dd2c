//! nf_tables by netlink: a table per family with one rule, "packets from this network leave with the address of the
//! outgoing interface".
//!
//! In `nft` syntax, for 10.1.2.0/24: `table ip NAME { flags owner; chain outside { type nat hook postrouting priority
//! srcnat; ip saddr 10.1.2.0/24 masquerade } }`. Constants are from `linux/netfilter/nf_tables.h`; numbers in
//! attributes are big-endian.

use std::io;
use std::net::IpAddr;

use nix::sys::socket::SockProtocol;

use crate::address::{IpPrefix, octets};
use crate::namespace::{Namespace, NamespaceError};
use crate::netlink::{Answer, Attributes, Message, Netlink, Request};

const SUBSYSTEM: u16 = 10;
pub(super) const NEWTABLE: u16 = SUBSYSTEM << 8;
const GETTABLE: u16 = SUBSYSTEM << 8 | 1;
pub(super) const NEWCHAIN: u16 = SUBSYSTEM << 8 | 3;
const GETCHAIN: u16 = SUBSYSTEM << 8 | 4;
pub(super) const NEWRULE: u16 = SUBSYSTEM << 8 | 6;
pub(super) const BATCH_BEGIN: u16 = 16;
pub(super) const BATCH_END: u16 = 17;
pub(super) const TABLE_NAME: u16 = 1;
pub(super) const TABLE_FLAGS: u16 = 2;
/// The table is removed with the socket that created it (Linux 5.12).
pub(super) const TABLE_FLAG_OWNER: u32 = 2;
const CHAIN: &str = "outside";
/// Attributes of a rule.
pub(super) const RULE_TABLE: u16 = 1;
pub(super) const RULE_CHAIN: u16 = 2;
pub(super) const RULE_EXPRESSIONS: u16 = 4;
/// Attributes of a chain, and of its hook.
pub(super) const CHAIN_TABLE: u16 = 1;
pub(super) const CHAIN_NAME: u16 = 3;
pub(super) const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
pub(super) const CHAIN_TYPE: u16 = 7;
pub(super) const HOOK_NUMBER: u16 = 1;
pub(super) const HOOK_PRIORITY: u16 = 2;

/// Why the masquerade rule was refused.
#[derive(Debug, thiserror::Error)]
pub enum NftablesError {
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The kernel has no nf_tables, or not its NAT part.
    #[error(
        "this kernel cannot translate addresses (nf_tables with NAT is missing: {cause}); run without --internet, or load the modules nf_tables, nft_chain_nat and nft_masq"
    )]
    Missing {
        /// The kernel's error.
        cause: io::Error,
    },
    /// This process may not change the tables.
    #[error(
        "not allowed to add a masquerade rule in {namespace}: this needs the capability CAP_NET_ADMIN there; \
         run it as root"
    )]
    Permission {
        /// The namespace's label.
        namespace: String,
    },
    /// A table of that name exists.
    #[error("an nf_tables table named `{table}` exists already in {namespace}")]
    Exists {
        /// The table.
        table: String,
        /// The namespace's label.
        namespace: String,
    },
    /// The kernel refused for another reason.
    #[error("cannot add a masquerade rule in {namespace}: {cause}")]
    Refused {
        /// The namespace's label.
        namespace: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// Tables that the kernel removes when this is dropped, or the process ends in any way.
#[derive(Debug)]
pub(super) struct OwnedTables {
    pub(super) _socket: Netlink,
}

/// Masquerades packets from these networks, at most one of each family.
pub(super) fn masquerade(
    namespace: &Namespace,
    table: &str,
    networks: impl Iterator<Item = IpPrefix>,
) -> Result<OwnedTables, NftablesError> {
    let mut socket = open(namespace)?;
    let requests = networks.flat_map(|network| rule(table, network)).collect();
    let outcome = socket.transact(batch(BATCH_BEGIN), requests, batch(BATCH_END));
    match explain(outcome, namespace, table) {
        Ok(_) => Ok(OwnedTables { _socket: socket }),
        // A table owned by another process gives the same error as a missing privilege.
        Err(NftablesError::Permission { namespace: label })
            if table_names(namespace).is_ok_and(|names| names.iter().any(|name| name == table)) =>
        {
            Err(NftablesError::Exists { table: table.into(), namespace: label })
        }
        Err(error) => Err(error),
    }
}

/// The names of all tables in a namespace; also tells whether the kernel has nf_tables at all.
pub fn table_names(namespace: &Namespace) -> Result<Vec<String>, NftablesError> {
    let mut socket = open(namespace)?;
    let outcome = socket.dump(message(GETTABLE, 0, 0));
    let tables = explain(outcome, namespace, "")?;
    Ok(tables.iter().filter_map(|table| table.attributes(4).string(TABLE_NAME)).collect())
}

/// The chains that drop packets forwarded by the namespace unless a rule accepts them, for example `filter FORWARD`,
/// which Docker and ufw set up. Chains of the older iptables are not visible here.
pub(super) fn dropping_chains(namespace: &Namespace) -> Result<Vec<String>, NftablesError> {
    let mut socket = open(namespace)?;
    let outcome = socket.dump(message(GETCHAIN, 0, 0));
    let chains = explain(outcome, namespace, "")?;
    Ok(chains.iter().filter_map(dropped_by).collect())
}

fn dropped_by(chain: &Message) -> Option<String> {
    /// `ip`, `inet`, `ip6`: the families in which hook 2 sees forwarded packets.
    const FAMILIES: [u8; 3] = [2, 1, 10];
    const FORWARD: u32 = 2;
    const DROP: u32 = 0;
    let attributes = chain.attributes(4);
    let hook = Attributes::of(attributes.get(CHAIN_HOOK)?);
    let number = |attributes: Attributes<'_>, kind| attributes.u32(kind).map(u32::from_be);
    let drops = FAMILIES.contains(chain.payload.first()?)
        && number(hook, HOOK_NUMBER) == Some(FORWARD)
        && number(attributes, CHAIN_POLICY) == Some(DROP);
    drops.then_some(format!("{} {}", attributes.string(CHAIN_TABLE)?, attributes.string(CHAIN_NAME)?))
}

pub(super) fn open(namespace: &Namespace) -> Result<Netlink, NftablesError> {
    let opened = namespace.run(|| Netlink::open(SockProtocol::NetlinkNetFilter))?;
    opened.map_err(|cause| NftablesError::Missing { cause })
}

fn explain(outcome: Answer, namespace: &Namespace, table: &str) -> Result<Vec<Message>, NftablesError> {
    let namespace = namespace.label().to_owned();
    outcome.map_err(|refusal| match refusal.cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => NftablesError::Permission { namespace },
        Some(libc::EEXIST) => NftablesError::Exists { table: table.into(), namespace },
        Some(libc::EOPNOTSUPP | libc::ENOENT | libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::EINVAL) => {
            NftablesError::Missing { cause: refusal.cause }
        }
        _ => NftablesError::Refused { namespace, cause: refusal.cause },
    })
}

/// The three messages for one network: table, chain, rule.
fn rule(table: &str, network: IpPrefix) -> [Request; 3] {
    /// The hook of the chain.
    const POST_ROUTING: u32 = 4;
    const SOURCE_NAT: u32 = 100;

    let family = crate::address::family(network.address);
    let create = libc::NLM_F_CREATE as u16;
    let exclusive = create | libc::NLM_F_EXCL as u16;
    [
        be32(message(NEWTABLE, family, exclusive).string(TABLE_NAME, table), TABLE_FLAGS, TABLE_FLAG_OWNER),
        message(NEWCHAIN, family, create)
            .string(CHAIN_TABLE, table)
            .string(CHAIN_NAME, CHAIN)
            .nested(CHAIN_HOOK, |hook| be32(be32(hook, HOOK_NUMBER, POST_ROUTING), HOOK_PRIORITY, SOURCE_NAT))
            .string(CHAIN_TYPE, "nat"),
        message(NEWRULE, family, create | libc::NLM_F_APPEND as u16)
            .string(RULE_TABLE, table)
            .string(RULE_CHAIN, CHAIN)
            .nested(RULE_EXPRESSIONS, |list| {
                let list = expression(list, "payload", |data| load_source(data, network.address));
                let list = expression(list, "bitwise", |data| keep_network(data, network));
                let list = expression(list, "cmp", |data| compare(data, network));
                expression(list, "masq", |data| data)
            }),
    ]
}

/// The register that passes values between the rule's expressions.
pub(super) const REGISTER: u32 = 1;

/// Loads the source address from the network header.
fn load_source(data: Request, address: IpAddr) -> Request {
    let (offset, length) = match address {
        IpAddr::V4(_) => (12, 4),
        IpAddr::V6(_) => (8, 16),
    };
    load(data, NETWORK_HEADER, offset, length)
}

/// Bases of loads.
pub(super) const NETWORK_HEADER: u32 = 1;
pub(super) const TRANSPORT_HEADER: u32 = 2;

/// Loads so many bytes of a header.
pub(super) fn load(data: Request, base: u32, offset: u32, length: u32) -> Request {
    /// Destination register, base, offset, length.
    const KINDS: [u16; 4] = [1, 2, 3, 4];
    let values = [REGISTER, base, offset, length];
    KINDS.into_iter().zip(values).fold(data, |data, (kind, value)| be32(data, kind, value))
}

/// Clears the host part: register & mask.
pub(super) fn keep_network(data: Request, network: IpPrefix) -> Request {
    /// Source register, destination register, length; then mask and xor.
    const KINDS: [u16; 3] = [1, 2, 3];
    const MASK: u16 = 4;
    const XOR: u16 = 5;
    let mask = mask(network);
    let values = [REGISTER, REGISTER, mask.len() as u32];
    let data = KINDS.into_iter().zip(values).fold(data, |data, (kind, value)| be32(data, kind, value));
    data.nested(MASK, |inner| value(inner, &mask)).nested(XOR, |inner| value(inner, &vec![0; mask.len()]))
}

/// Continues only if the register equals the network.
pub(super) fn compare(data: Request, network: IpPrefix) -> Request {
    const EQUAL: u32 = 0;
    let wanted: Vec<u8> =
        octets(network.address).into_iter().zip(mask(network)).map(|(byte, mask)| byte & mask).collect();
    compare_with(data, EQUAL, &wanted)
}

/// Continues only if the register and these bytes compare so.
pub(super) fn compare_with(data: Request, operation: u32, bytes: &[u8]) -> Request {
    const SOURCE: u16 = 1;
    const OPERATION: u16 = 2;
    const DATA: u16 = 3;
    be32(be32(data, SOURCE, REGISTER), OPERATION, operation).nested(DATA, |inner| value(inner, bytes))
}

pub(super) fn mask(network: IpPrefix) -> Vec<u8> {
    let bits = |position: usize| usize::from(network.length).saturating_sub(position * 8).min(8);
    (0..octets(network.address).len()).map(|position| !(0xffu16 >> bits(position)) as u8).collect()
}

pub(super) fn expression(list: Request, name: &str, fill: impl FnOnce(Request) -> Request) -> Request {
    const ELEMENT: u16 = 1;
    const NAME: u16 = 1;
    const DATA: u16 = 2;
    list.nested(ELEMENT, |element| element.string(NAME, name).nested(DATA, fill))
}

pub(super) fn value(inner: Request, bytes: &[u8]) -> Request {
    const VALUE: u16 = 1;
    inner.attribute(VALUE, bytes)
}

pub(super) fn be32(request: Request, kind: u16, value: u32) -> Request {
    request.attribute(kind, &value.to_be_bytes())
}

/// A message with its `struct nfgenmsg`: family, version, resource.
pub(super) fn message(kind: u16, family: u8, flags: u16) -> Request {
    Request::new(kind, flags).fixed(&[family, 0, 0, 0])
}

pub(super) fn batch(kind: u16) -> Request {
    let [high, low] = SUBSYSTEM.to_be_bytes();
    Request::new(kind, 0).fixed(&[0, 0, high, low])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_follow_the_prefix() {
        let network = |length| IpPrefix::new(std::net::Ipv4Addr::new(10, 1, 2, 3), length);
        assert_eq!(mask(network(24)), [255, 255, 255, 0]);
        assert_eq!(mask(network(30)), [255, 255, 255, 252]);
        assert_eq!(mask(network(0)), [0; 4]);
        assert_eq!(mask(network(32)), [255; 4]);
    }
}
