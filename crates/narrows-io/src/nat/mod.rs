//! An uplink to outside networks: a cable from a namespace to the enclosing one, forwarding, and a masquerade rule.
//!
//! Nothing of it outlives this process. The cable is removed with the inner namespace; the rule is in tables that the
//! kernel removes when the netlink socket that created them closes; forwarding settings changed on the enclosing side
//! are in a [`crate::ledger`] and reverted by the last run, or by [`crate::ledger::restore_abandoned`] after
//! `kill -9`.
//!
//! Forwarding is enabled per interface: on our end of the cable and on the interfaces with a default route. For IPv6
//! this needs `force_forwarding` (Linux 6.17). On older kernels IPv6 forwarding is a single switch for the whole host
//! and makes it ignore router advertisements, so there IPv6 is only available if the host already forwards.
//!
//! Limitation: it cannot pass a firewall of the host that drops forwarded packets (Docker and ufw set one up); no
//! rule of ours overrides another table's drop. [`Outside::firewalls`] names candidates.

mod barrier;
mod nftables;

use std::net::IpAddr;
use std::path::Path;

use crate::address::IpPrefix;
use crate::ledger::{LedgerError, RaisedSetting};
use crate::link::{InterfaceIndex, VethEnd, create_veth};
use crate::namespace::{Namespace, NamespaceError};
use crate::route_socket::{NetlinkError, RouteSocket};
use crate::stack::{self, StackError};
use crate::sysctl::{SysctlError, read_sysctl, write_sysctl};

pub use barrier::{Barred, BarrierError, ForwardBarrier, Passage};
pub use nftables::{NftablesError, table_names};

/// Why the uplink could not be created.
#[derive(Debug, thiserror::Error)]
pub enum NatError {
    /// The enclosing namespace has no default route.
    #[error("no uplink: {namespace} has no default route")]
    NoWayOut {
        /// The enclosing namespace's label.
        namespace: String,
    },
    /// The cable, an address or a route was refused.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The masquerade rule was refused.
    #[error(transparent)]
    Nftables(#[from] NftablesError),
    /// Forwarding could not be enabled.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The enclosing namespace cannot be kept open.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A setting of the cable was refused.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A setting of the cable was refused.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
}

/// The configuration of an uplink.
#[derive(Clone, Copy, Debug)]
pub struct WayOut<'a> {
    /// The end in the inner namespace, which must not have a default route yet.
    pub inner: VethEnd<'a>,
    /// The end in the enclosing namespace.
    pub outer: VethEnd<'a>,
    /// The addresses of the two ends in a free network: inner, outer.
    pub ipv4: (IpPrefix, IpPrefix),
    /// The same for IPv6, if wanted.
    pub ipv6: Option<(IpPrefix, IpPrefix)>,
    /// The name of the rule's tables; must be unique among runs.
    pub table: &'a str,
    /// Whether the networks that the enclosing namespace has routes to will do, if it has no default route.
    pub to_networks: bool,
    /// Where settings to be reverted are recorded, such as `/run/narrows/settings`.
    pub ledger: &'a Path,
}

/// An uplink, active as long as this value lives.
#[derive(Debug)]
pub struct Outside {
    /// Closing it removes the tables.
    _tables: nftables::OwnedTables,
    raised: Vec<RaisedSetting>,
    ipv6: bool,
    firewalls: Vec<String>,
    namespace: Namespace,
    uplinks: Vec<(InterfaceIndex, String)>,
}

impl Outside {
    /// Whether IPv6 is available, too.
    pub fn has_ipv6(&self) -> bool {
        self.ipv6
    }

    /// The chains, as `table chain`, by which the enclosing namespace drops forwarded packets unless a rule accepts
    /// them.
    pub fn firewalls(&self) -> &[String] {
        &self.firewalls
    }

    /// Ends it and reverts what was changed. Returns what went wrong: settings that could not be reverted, and interfaces
    /// with a default route that are gone by now.
    pub fn close(self) -> Vec<String> {
        let released =
            self.raised.into_iter().map(|setting| setting.release().map_err(|error| error.to_string()));
        let mut trouble: Vec<String> = released.filter_map(Result::err).collect();
        match RouteSocket::open(&self.namespace).and_then(|mut sockets| sockets.interfaces()) {
            Ok(now) => {
                let is_gone =
                    |(index, _): &&(InterfaceIndex, String)| now.iter().all(|there| there.index != *index);
                trouble.extend(self.uplinks.iter().filter(is_gone).map(|(_, name)| {
                    format!("the uplink {name} was removed, or moved to another namespace, during the run")
                }));
            }
            Err(error) => trouble.push(error.to_string()),
        }
        trouble
    }
}

/// Address translation only: packets from certain networks leave a namespace with the address of the outgoing
/// interface. Active as long as this value lives.
#[derive(Debug)]
pub struct Masquerade {
    /// Closing it removes the tables.
    _tables: nftables::OwnedTables,
}

impl Masquerade {
    /// Adds the rule, in tables of this name.
    pub fn open(
        namespace: &Namespace,
        table: &str,
        networks: impl IntoIterator<Item = IpPrefix>,
    ) -> Result<Self, NftablesError> {
        Ok(Self { _tables: nftables::masquerade(namespace, table, networks.into_iter())? })
    }
}

impl WayOut<'_> {
    /// Lays the cable and enables the uplink.
    pub fn open(&self) -> Result<Outside, NatError> {
        let uplinks = self.uplinks()?;
        if uplinks.ipv4.is_empty() && uplinks.ipv6.is_empty() {
            return Err(NatError::NoWayOut { namespace: self.outer.namespace.label().into() });
        }
        // The rule first: if it is refused, nothing has been changed yet.
        let networks = [Some(self.ipv4.0), self.ipv6.map(|ends| ends.0)].into_iter().flatten();
        let tables = nftables::masquerade(self.outer.namespace, self.table, networks)?;
        let firewalls = nftables::dropping_chains(self.outer.namespace)?;
        let namespace = self.outer.namespace.try_clone()?;
        let mut outside = Outside {
            _tables: tables,
            raised: Vec::new(),
            ipv6: false,
            firewalls,
            namespace,
            uplinks: uplinks.numbers,
        };
        self.lay_cable()?;
        for uplink in &uplinks.ipv4 {
            self.raise(&mut outside, &format!("net/ipv4/conf/{uplink}/forwarding"))?;
        }
        if self.ipv6.is_some() && !uplinks.ipv6.is_empty() {
            outside.ipv6 = self.forward_ipv6(&mut outside, &uplinks.ipv6)?;
        }
        self.add_routes(outside.ipv6)?;
        Ok(outside)
    }

    /// The interfaces of the enclosing namespace that have a default route; or any route, if none has and that will do.
    fn uplinks(&self) -> Result<Uplinks, NatError> {
        let mut sockets = RouteSocket::open(self.outer.namespace)?;
        let interfaces = sockets.interfaces()?;
        let mut uplinks = Uplinks::default();
        let mut routes = sockets.routes()?;
        if !self.to_networks || routes.iter().any(|route| route.destination.length == 0) {
            routes.retain(|route| route.destination.length == 0);
        }
        for route in routes {
            let Some(interface) = interfaces.iter().find(|found| Some(found.index) == route.interface) else {
                continue;
            };
            let list = match route.destination.address {
                IpAddr::V4(_) => &mut uplinks.ipv4,
                IpAddr::V6(_) => &mut uplinks.ipv6,
            };
            if !list.contains(&interface.name) {
                list.push(interface.name.clone());
            }
            let numbered = (interface.index, interface.name.clone());
            if !uplinks.numbers.contains(&numbered) {
                uplinks.numbers.push(numbered);
            }
        }
        Ok(uplinks)
    }

    fn lay_cable(&self) -> Result<(), NatError> {
        create_veth(&self.inner, &self.outer, 1500)?;
        let addresses = [Some(self.ipv4), self.ipv6];
        for (end, inner) in [(&self.outer, false), (&self.inner, true)] {
            stack::settle(end.namespace, end.name)?;
            let mut sockets = RouteSocket::open(end.namespace)?;
            sockets.set_up(end.name)?;
            for (inner_address, outer_address) in addresses.into_iter().flatten() {
                sockets.add_address(end.name, if inner { inner_address } else { outer_address })?;
            }
        }
        RouteSocket::open(self.inner.namespace)?.wait_for_carrier(self.inner.name, CARRIER)?;
        // The cable's own setting is removed with the cable.
        write_sysctl(self.outer.namespace, &format!("net/ipv4/conf/{}/forwarding", self.outer.name), "1")?;
        Ok(())
    }

    /// Enables IPv6 forwarding per interface; `false` if this kernel cannot.
    fn forward_ipv6(&self, outside: &mut Outside, uplinks: &[String]) -> Result<bool, NatError> {
        let enclosing = self.outer.namespace;
        if read_sysctl(enclosing, "net/ipv6/conf/all/forwarding")? != "0" {
            return Ok(true);
        }
        let key = |interface: &str| format!("net/ipv6/conf/{interface}/force_forwarding");
        if read_sysctl(enclosing, &key(self.outer.name)).is_err() {
            return Ok(false);
        }
        write_sysctl(enclosing, &key(self.outer.name), "1")?;
        for uplink in uplinks {
            self.raise(outside, &key(uplink))?;
        }
        Ok(true)
    }

    fn raise(&self, outside: &mut Outside, key: &str) -> Result<(), NatError> {
        outside.raised.extend(RaisedSetting::raise(self.outer.namespace, key, "1", self.ledger)?);
        Ok(())
    }

    fn add_routes(&self, ipv6: bool) -> Result<(), NatError> {
        let mut sockets = RouteSocket::open(self.inner.namespace)?;
        sockets.add_default_route(self.ipv4.1.address, self.inner.name)?;
        if let Some((_, outer)) = self.ipv6.filter(|_| ipv6) {
            sockets.add_default_route(outer.address, self.inner.name)?;
        }
        Ok(())
    }
}

/// How long a cable between two namespaces may take to have carrier; normally milliseconds.
const CARRIER: std::time::Duration = std::time::Duration::from_secs(5);

/// The interfaces with a default route: names by IP version, and all with their numbers.
#[derive(Default)]
struct Uplinks {
    numbers: Vec<(InterfaceIndex, String)>,
    ipv4: Vec<String>,
    ipv6: Vec<String>,
}
