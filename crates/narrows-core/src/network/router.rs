//! Routers: longest-prefix match on the destination.
//!
//! A packet that is not for the router itself has its hop limit decremented, and is dropped if none is left
//! (RFC 1812, section 5.3.1; RFC 8200, section 3). Packets that the router itself sends, from a port that its
//! own addresses lead to, keep their hop limit there. Where rules have set a next hop, the route is that to the next
//! hop. A packet that is not IP is dropped: no router forwards
//! it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Hop;
use super::config::{Route, Spread};
use crate::classify::{FlowHash, Identity};
use crate::counters::{DropReason, Tally};
use crate::id::PortId;
use crate::known::Known;
use crate::packet::{LinkAddress, Protocol};
use crate::pool::{PacketRef, Pool};
use crate::random::{Seed, Stream};
use crate::rules::Lpm;
use crate::sched::Weight;

/// The counters of a router: `arrived = forwarded + local + dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterCounters {
    /// Arrived, or sent by the router itself.
    pub arrived: Tally,
    /// Forwarded.
    pub forwarded: Tally,
    /// Addressed to the router itself.
    pub local: Tally,
    /// Dropped because no route matches their destination, or because they are not IP.
    pub no_route: Tally,
    /// Dropped because their hop limit was exhausted: a routing loop, or a traceroute.
    pub hop_limit: Tally,
    /// Dropped because they came from a switch and were addressed to others.
    pub filtered: Tally,
}

/// One route, with its next hops resolved.
#[derive(Debug)]
pub(super) struct Ways {
    /// Each with the cumulative sum of the weights up to and including its own.
    pub(super) hops: Vec<(Hop, u32)>,
    /// For each of them the link addresses that packets get, if a switch needs them.
    addresses: Vec<[LinkAddress; 2]>,
    spread: Spread,
    local: bool,
    hash: FlowHash,
}

/// The routes of a router.
#[derive(Debug)]
pub(super) struct Table {
    /// Those of prefixes of its own, then those to groups.
    pub(super) routes: Vec<Ways>,
    /// Prefixes of its own.
    pub(super) own: Lpm<Known>,
    /// For each group of destinations the number of the route there, counted from the first one to a group.
    pub(super) groups: Arc<[u16]>,
    pub(super) first_of_groups: usize,
}

#[derive(Debug)]
pub(super) struct Router {
    pub(super) name: alloc::string::String,
    pub(super) counters: RouterCounters,
    pub(super) table: Table,
    /// The link addresses of its interfaces, if it looks at them.
    pub(super) link_addresses: Vec<LinkAddress>,
    pub(super) draws: Stream,
    /// Whether a packet may visit again, so that its draws must be keyed by the visit.
    pub(super) revisited: bool,
}

impl Ways {
    pub(super) fn new(
        seed: Seed,
        router: &str,
        hops: impl IntoIterator<Item = (Hop, Weight)>,
        route: &Route,
    ) -> Self {
        let mut sum = 0u32;
        let hops = hops.into_iter().map(|(hop, weight)| {
            sum = sum.saturating_add(weight.get());
            (hop, sum)
        });
        let hops = hops.collect();
        let Route { link_addresses, spread, local, .. } = route;
        Self {
            hops,
            addresses: link_addresses.clone(),
            spread: *spread,
            local: *local,
            hash: FlowHash::new(seed, router, sum, Identity::FiveTuple),
        }
    }

    /// The number of a packet's next hop by this route; `None` if the route has none.
    fn pick(&self, pool: &Pool, packet: PacketRef, draws: &Stream, visit: u8) -> Option<usize> {
        if self.hops.len() != 1 {
            let place = match self.spread {
                Spread::Flow => self.hash.class(&pool.get(packet).seen_key()),
                Spread::Packet => pool.draw(draws, packet, visit).below(self.hash.classes().into()) as u32,
            };
            return self.hops.iter().position(|(_, below)| place < *below);
        }
        Some(0)
    }
}

impl Table {
    /// The route to an address: by the longest prefix among the router's own routes and all destinations, of which
    /// `common` finds the longest.
    fn find(&self, address: [u8; 16], common: impl FnOnce() -> Option<Known>) -> Option<&Ways> {
        let own = self.own.lookup(address);
        // No prefix is longer than a whole address.
        let common = match own {
            Some(own) if own.bits == 128 => None,
            _ => common().filter(|common| own.is_none_or(|own| common.bits > own.bits)),
        };
        let way = common.and_then(|common| self.groups.get(common.number as usize));
        let common = way.and_then(|&way| self.routes.get(self.first_of_groups + usize::from(way)));
        common.or_else(|| own.map(|own| &self.routes[own.number as usize]))
    }
}

impl Router {
    /// Whether packets for the router itself leave by this port.
    pub(super) fn is_own(&self, port: PortId) -> bool {
        let leads =
            |ways: &Ways| ways.hops.iter().any(|(hop, _)| matches!(hop, Hop::Port(to) if *to == port));
        self.table.routes.iter().filter(|ways| ways.local).any(leads)
    }

    /// Whether a frame to this link address is for the router.
    fn is_addressed(&self, destination: LinkAddress) -> bool {
        self.link_addresses.is_empty()
            || destination == LinkAddress::default()
            || self.link_addresses.contains(&destination)
    }

    /// The next hop of a packet, or why it is dropped; `is_own` if the router itself sends it.
    pub(super) fn route(
        &mut self,
        destinations: &Lpm<Known>,
        packet: PacketRef,
        is_own: bool,
        pool: &mut Pool,
        visit: u8,
    ) -> Result<Hop, DropReason> {
        let state = pool.get(packet);
        let length = state.length;
        self.counters.arrived.add(length);
        if !is_own && !self.is_addressed(pool.carried(packet).headers.link_destination) {
            self.counters.filtered.add(length);
            return Err(DropReason::Filtered);
        }
        let ways = match state.key.network {
            Protocol::Other => None,
            _ => {
                let destination = state.key.destination;
                match pool.take_next_hop(packet) {
                    Some(next) => self.table.find(next, || destinations.lookup(next).copied()),
                    None => {
                        let known = &mut pool.carried_mut(packet).known;
                        let find = || destinations.lookup(destination).copied();
                        self.table.find(destination, || known.or_find(find))
                    }
                }
            }
        };
        let Some((ways, number)) =
            ways.and_then(|ways| Some((ways, ways.pick(pool, packet, &self.draws, visit)?)))
        else {
            self.counters.no_route.add(length);
            return Err(DropReason::NoRoute);
        };
        let (hop, _) = ways.hops[number];
        // Another router is not this one: otherwise packets could circulate forever.
        if ways.local && !matches!(hop, Hop::Router(_)) {
            self.counters.local.add(length);
            return Ok(hop);
        }
        if !is_own && !pool.take_hop(packet) {
            self.counters.hop_limit.add(length);
            return Err(DropReason::HopLimit);
        }
        if let Some(&addresses) = ways.addresses.get(number) {
            pool.readdress(packet, addresses);
        }
        self.counters.forwarded.add(length);
        Ok(hop)
    }
}
