//! The uplink of a run: how its hosts reach networks outside the scenario.
//!
//! ```text
//! client ── link ── server ── cable ── the namespace in which narrows was started ── its own way out
//!                   translates           translates
//! ```
//!
//! The far host forwards packets that are not for itself over a cable to the enclosing namespace. Addresses are
//! translated twice, so that neither another run nor the host needs to know ours. Inside another run's shell the
//! enclosing namespace is that run's host, and packets cross both links: shells nest.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process;

use narrows_io::address::IpPrefix;
use narrows_io::link::VethEnd;
use narrows_io::namespace::{Namespace, NamespaceError};
use narrows_io::nat::{Masquerade, NatError, NftablesError, Outside, WayOut};
use narrows_io::sysctl::{SysctlError, write_sysctl};

use crate::dns::Forwarder;
use crate::names;
use crate::testbed::{Host, Interface};

/// The cable's name in the far host.
const INNER: &str = "outside";

/// Why there is no uplink.
#[derive(Debug, thiserror::Error)]
pub enum UplinkError {
    /// The enclosing namespace cannot be used.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The cable, its routes, or forwarding cannot be set up.
    #[error(transparent)]
    Nat(#[from] NatError),
    /// Address translation in the far host cannot be set up.
    #[error(transparent)]
    Nftables(#[from] NftablesError),
    /// Forwarding in the far host cannot be enabled.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// The far host was not created by us, so it is not turned into a router.
    #[error(
        "`{0}` is in an existing namespace, which narrows does not turn into a router: only a host of the run can be the uplink"
    )]
    NotOurs(String),
    /// The other end of the link is not a host that could be the uplink.
    #[error(
        "host `{host}` is linked to the router `{router}`, but the uplink must be a host at the other end of its first link: give `{host}` such a link, or run the program with --host in one that has it"
    )]
    Router {
        /// The host with CMD.
        host: String,
        /// The router at the other end.
        router: String,
    },
}

/// An uplink: traffic to addresses outside the network leaves through this host, behind NAT, as long as this value lives.
#[derive(Debug)]
pub struct NatUplink {
    host: String,
    /// Our end of the cable in the enclosing namespace.
    interface: String,
    /// Forwards to a name server at a loopback address of this host, which the run's hosts could not reach.
    forwarder: Option<Forwarder>,
    /// Why there is none although one is needed.
    no_forwarder: Option<String>,
    _inner: Masquerade,
    outer: Outside,
}

impl NatUplink {
    /// Opens an uplink through `far`, whose interface on the link is `link`. `ledger` is the folder where changed
    /// settings are recorded. With `to_networks`, the networks of the enclosing namespace will do, if that has no
    /// uplink itself.
    ///
    /// # Errors
    /// If the enclosing namespace has no way out, or does not allow this.
    pub fn open(far: &Host, link: &Interface, ledger: &Path, to_networks: bool) -> Result<Self, UplinkError> {
        if !far.is_ours {
            return Err(UplinkError::NotOurs(far.name.clone()));
        }
        let enclosing = Namespace::current()?.labelled("the namespace in which narrows was started");
        let number = process::id();
        let (outer_name, table) = (format!("narrows{number}"), format!("narrows-{number}"));
        let interface = outer_name[outer_name.len().saturating_sub(15)..].to_owned();
        let way = WayOut {
            inner: VethEnd { namespace: &far.namespace, name: INNER, mac: None },
            outer: VethEnd { namespace: &enclosing, name: &interface, mac: None },
            ipv4: ipv4(number),
            ipv6: Some(ipv6(number)),
            table: &table,
            to_networks,
            ledger,
        };
        let outer = way.open()?;
        let inner = Masquerade::open(&far.namespace, &table, link.addresses.iter().copied())?;
        // The namespace is ours, so forwarding may be enabled for all of it.
        write_sysctl(&far.namespace, "net/ipv4/ip_forward", "1")?;
        if outer.has_ipv6() {
            write_sysctl(&far.namespace, "net/ipv6/conf/all/forwarding", "1")?;
        }
        let inside = way.ipv4.0.address;
        let forwarder =
            names::local_server().map(|server| (server, Forwarder::start(&far.namespace, inside, server)));
        let (forwarder, no_forwarder) = match forwarder {
            None => (None, None),
            Some((_, Ok(forwarder))) => (Some(forwarder), None),
            Some((server, Err(error))) => {
                let note = format!(
                    "names are not resolved inside: the host's name server {server} is unreachable: {error}"
                );
                (None, Some(note))
            }
        };
        Ok(Self { host: far.name.clone(), interface, forwarder, no_forwarder, _inner: inner, outer })
    }

    /// The replacement for a name server at a loopback address of this host.
    pub(crate) fn forwarder(&self) -> Option<&Forwarder> {
        self.forwarder.as_ref()
    }

    /// The host that is the uplink.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Ends it; notes for the report on what went wrong.
    pub(crate) fn close(self) -> Vec<String> {
        self.outer.close()
    }

    /// Notes for the report.
    pub fn remarks(&self) -> Vec<String> {
        let ipv4_only = "the uplink is IPv4 only: the host does not forward IPv6";
        let mut remarks = Vec::new();
        remarks.extend((!self.outer.has_ipv6()).then(|| ipv4_only.to_owned()));
        remarks.extend(self.no_forwarder.clone());
        remarks.extend(self.outer.firewalls().iter().map(|chain| {
            format!(
                "the host's firewall drops forwarded packets by default (nf_tables, {chain}): the uplink fails unless a rule accepts traffic from and to the interface {}",
                self.interface
            )
        }));
        remarks
    }
}

/// The addresses of the cable's ends: a network of four addresses per process ID, from the block that RFC 6598
/// reserves for carrier-grade NAT.
fn ipv4(process: u32) -> (IpPrefix, IpPrefix) {
    let block = u32::from_be_bytes([100, 64, 0, 0]);
    // The block has room for 2^20 of them; Linux process IDs are below 2^22, usually below 2^15.
    let network = block + (process % (1 << 20)) * 4;
    let end = |host| IpPrefix::new(Ipv4Addr::from(network + host), 30);
    (end(2), end(1))
}

/// The same from a unique local prefix.
fn ipv6(process: u32) -> (IpPrefix, IpPrefix) {
    let [high, low] = [(process >> 16) as u16, process as u16];
    let end = |host| IpPrefix::new(Ipv6Addr::new(0xfd6e, 0x6172, 0x7274, high, low, 0, 0, host), 80);
    (end(2), end(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_cables_of_their_own() {
        assert_eq!(ipv4(1).0.to_string(), "100.64.0.6/30");
        assert_eq!(ipv4((1 << 20) - 1).1.to_string(), "100.127.255.253/30");
        assert!(!ipv4(1).0.overlaps(&ipv4(2).0) && !ipv6(1).0.overlaps(&ipv6(2).0));
        assert!(ipv4(3).0.overlaps(&ipv4(3).1) && ipv6(70_000).0.overlaps(&ipv6(70_000).1));
    }
}
