//! narrows as the router between two interfaces of this host (`narrows route`).
//!
//! The packets to route arrive at an interface, addressed to its link address, for a destination that the host's routes
//! reach by the other one. They are checked as a router does (RFC 1812, 5.2) before they enter the network; the network
//! is the router's inside. A packet whose next hop is not resolved yet waits before the network, so that address
//! resolution adds nothing to the delays and losses of the scenario. On leaving, a packet gets its link addresses and a
//! hop limit one lower.
//!
//! With address translation ([`Translation`]), it happens at the second interface: the network sees the addresses of
//! the hosts behind the first one in both directions.
//!
//! Everything else is the kernel's: packets to the host's own addresses, also ARP and neighbour discovery about them,
//! and what leaves by a third interface. Both hear the answers of neighbours.

pub(crate) mod neighbours;
pub(crate) mod table;
pub(crate) mod translation;

use std::net::IpAddr;

use narrows_core::Time;
use narrows_frame::answer::{
    IcmpError, Neighbour, Notice, answer_resolution, ask_neighbour, asked_address, heard_neighbour,
    is_address_resolution,
};
use narrows_frame::forward::{IpHeader, Unroutable};
use narrows_frame::nat::{Outcome, Rebind};
use narrows_frame::{LinkLayer, MacAddress};
use narrows_io::address::IpPrefix;
use narrows_io::packet_socket::Received;
use narrows_report::RouterReport;

use self::neighbours::{Ask, Due, Neighbours, Reach};
use self::table::{Side, Table, Way};
use self::translation::Translation;
use crate::router::Budget;

/// A port of the packet thread, by its place among all.
pub(crate) type PortIndex = usize;

/// One of the two interfaces.
#[derive(Debug)]
pub(crate) struct Leg {
    /// The engine's port.
    pub(crate) port: PortIndex,
    /// The interface's link address.
    pub(crate) mac: MacAddress,
    /// The interface's addresses, with their networks.
    pub(crate) addresses: Vec<IpPrefix>,
    /// Whether the kernel forwards packets from here, too, to other interfaces: then it answers those without a route.
    pub(crate) kernel_forwards: bool,
}

/// The side where addresses are translated.
pub(crate) const OUTSIDE: Side = 1;

/// A packet that waits for the link address of its next hop.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) from: PortIndex,
    pub(crate) received: Received,
}

/// What becomes of a frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It enters the network.
    Crosses,
    /// It waits for this next hop.
    Waits(IpAddr),
    /// It is the kernel's, or dropped.
    Stays,
}

/// The router.
#[derive(Debug)]
pub(crate) struct Gateway {
    legs: [Leg; 2],
    neighbours: [Neighbours<Waiting>; 2],
    table: Table,
    translation: Option<Translation>,
    budgets: [Budget; 2],
    counts: RouterReport,
    /// Frames of its own, with the ports that they leave by.
    outbox: Vec<(PortIndex, Vec<u8>)>,
    /// Packets that have waited long enough.
    ready: Vec<Waiting>,
    withheld: u64,
}

impl Gateway {
    pub(crate) fn new(name: &str, legs: [Leg; 2], table: Table, translation: Option<Translation>) -> Self {
        Self {
            legs,
            neighbours: Default::default(),
            table,
            translation,
            budgets: Default::default(),
            counts: RouterReport { name: name.to_owned(), ..RouterReport::default() },
            outbox: Vec::new(),
            ready: Vec::new(),
            withheld: 0,
        }
    }

    /// Decides about a frame that arrived at a port. If it crosses, its addresses are those inside.
    pub(crate) fn arrived(&mut self, port: PortIndex, at: Time, frame: &mut [u8]) -> Arrival {
        let Some(side) = self.side(port) else { return Arrival::Stays };
        let to: Option<[u8; 6]> = frame.first_chunk().copied();
        let to = MacAddress(to.unwrap_or_default());
        if (to.is_group() || to == self.legs[side].mac) && is_address_resolution(frame) {
            self.hear(side, at, frame);
            return Arrival::Stays;
        }
        // The socket is promiscuous: the frame may be for another station.
        if to != self.legs[side].mac { Arrival::Stays } else { self.forward(side, at, frame) }
    }

    fn forward(&mut self, side: Side, at: Time, frame: &mut [u8]) -> Arrival {
        let mut header = match IpHeader::read(frame) {
            Ok(header) => header,
            Err(Unroutable::NotIp) => return Arrival::Stays,
            Err(Unroutable::Malformed) => {
                self.counts.arrived_packets += 1;
                self.counts.malformed_packets += 1;
                return Arrival::Stays;
            }
        };
        let other = 1 - side;
        if side == OUTSIDE
            && let Some(translation) = &mut self.translation
        {
            match translation.inbound(at, frame) {
                Outcome::Translated => header.destination = destination(frame).unwrap_or(header.destination),
                // Nobody outside knows what is inside, except by a mapping.
                Outcome::NotOurs | Outcome::Unknown | Outcome::Impossible => {
                    return self.not_translated(&header);
                }
            }
        }
        match self.table.way_to(header.destination) {
            Way::Own => {
                self.counts.arrived_packets += 1;
                self.counts.local_packets += 1;
            }
            _ if !header.is_forwardable() => {}
            Way::By(out, next) if out == other => {
                if side != OUTSIDE && self.translation.as_ref().is_some_and(|own| !own.takes(frame)) {
                    self.counts.arrived_packets += 1;
                    self.counts.untranslated_packets += 1;
                    return Arrival::Stays;
                }
                return self.forward_to(next, &header, side, at, frame);
            }
            Way::Nowhere if !self.legs[side].kernel_forwards => {
                self.counts.arrived_packets += 1;
                self.counts.no_route_packets += 1;
                self.report(side, at, frame, Notice::Error(IcmpError::NoRoute));
            }
            Way::By(..) | Way::Elsewhere | Way::Nowhere => {}
        }
        Arrival::Stays
    }

    /// A packet from outside without a mapping: it may be for the host itself.
    fn not_translated(&mut self, header: &IpHeader) -> Arrival {
        match self.table.way_to(header.destination) {
            Way::Own => {
                self.counts.arrived_packets += 1;
                self.counts.local_packets += 1;
            }
            _ if !header.is_forwardable() => {}
            _ => {
                self.counts.arrived_packets += 1;
                self.counts.untranslated_packets += 1;
            }
        }
        Arrival::Stays
    }

    fn forward_to(&mut self, next: IpAddr, header: &IpHeader, side: Side, at: Time, frame: &[u8]) -> Arrival {
        self.counts.arrived_packets += 1;
        if header.hop_limit <= 1 {
            self.counts.hop_limit_packets += 1;
            self.report(side, at, frame, Notice::Error(IcmpError::HopLimit));
            return Arrival::Stays;
        }
        let out = 1 - side;
        match self.neighbours[out].reach(at, next) {
            Reach::Known(ask) => {
                self.ask(out, ask);
                self.counts.forwarded_packets += 1;
                Arrival::Crosses
            }
            Reach::Waits(ask) => {
                self.ask(out, ask);
                Arrival::Waits(next)
            }
            Reach::Full => {
                self.counts.unresolved_packets += 1;
                Arrival::Stays
            }
        }
    }

    /// Makes a packet wait for its next hop. Returns one that has no place any more.
    pub(crate) fn wait(&mut self, next: IpAddr, waiting: Waiting) -> Option<Received> {
        let out = 1 - self.side(waiting.from)?;
        let displaced = self.neighbours[out].wait(next, waiting)?;
        self.counts.unresolved_packets += 1;
        Some(displaced.received)
    }

    /// Learns from address resolution. Of what nobody asked for, only requests for the host's own addresses tell
    /// something: whoever asks is going to send packets, which may be answered.
    fn hear(&mut self, side: Side, at: Time, frame: &[u8]) {
        if side == OUTSIDE {
            self.answer_for_translation(frame);
        }
        let Some(Neighbour { address, mac }) = heard_neighbour(frame) else { return };
        let is_to_us = asked_address(frame).is_some_and(|asked| self.table.way_to(asked) == Way::Own);
        let is_here = self.table.way_to(address) == Way::By(side, address);
        let ready = self.neighbours[side].told(at, address, mac, is_to_us && is_here);
        self.counts.forwarded_packets += ready.len() as u64;
        self.ready.extend(ready);
    }

    /// Answers for outer addresses that the host does not have itself.
    fn answer_for_translation(&mut self, frame: &[u8]) {
        let Some((translation, asked)) = self.translation.as_ref().zip(asked_address(frame)) else { return };
        let is_ours = translation.has(asked) && self.table.way_to(asked) != Way::Own;
        let (leg, mut answer) = (&self.legs[OUTSIDE], Vec::new());
        if is_ours && answer_resolution(frame, leg.mac, &mut answer) {
            self.outbox.push((leg.port, answer));
        }
    }

    /// Does what is due: repeats requests, and gives up packets whose next hop does not answer.
    pub(crate) fn attend(&mut self, at: Time) {
        if let Some(translation) = &mut self.translation {
            translation.attend(at);
        }
        for out in 0..self.neighbours.len() {
            while let Some(due) = self.neighbours[out].due(at) {
                match due {
                    Due::Ask(ask) => self.ask(out, Some(ask)),
                    Due::GivenUp(packets) => {
                        self.counts.unresolved_packets += packets.len() as u64;
                        for Waiting { received, .. } in packets {
                            self.report(1 - out, at, &received.frame, Notice::Error(IcmpError::NoHost));
                        }
                    }
                }
            }
        }
    }

    /// When something is due.
    pub(crate) fn next(&self) -> Option<Time> {
        let rebinding = self.translation.as_ref().and_then(Translation::next);
        self.neighbours.iter().filter_map(Neighbours::next).chain(rebinding).min()
    }

    /// Whether packets that leave by a port are translated.
    pub(crate) fn translates(&self, port: PortIndex) -> bool {
        self.translation.is_some() && self.side(port) == Some(OUTSIDE)
    }

    /// Translates a packet that leaves to the outside; `false` if that is not possible.
    pub(crate) fn translate(&mut self, at: Time, frame: &mut [u8]) -> bool {
        self.translation.as_mut().is_some_and(|own| own.outbound(at, frame) == Outcome::Translated)
    }

    /// Makes address translation forget its mappings.
    pub(crate) fn rebind(&mut self, what: Rebind) {
        self.translation.iter_mut().for_each(|translation| translation.rebind(what));
    }

    /// What a rebinding can change.
    pub(crate) fn rebindable(&self) -> &'static [Rebind] {
        match &self.translation {
            None => &[],
            Some(translation) if translation.has_choice() => &[Rebind::Port, Rebind::Address],
            Some(_) => &[Rebind::Port],
        }
    }

    /// The link addresses, source and destination, of a packet that leaves by a port; `None` if its next hop is not
    /// known any more.
    pub(crate) fn stations(&self, port: PortIndex, frame: &[u8]) -> Option<(MacAddress, MacAddress)> {
        let side = self.side(port)?;
        let header = IpHeader::read(frame).ok()?;
        match self.table.way_to(header.destination) {
            Way::By(out, next) if out == side => {
                Some((self.legs[side].mac, self.neighbours[side].mac(next)?))
            }
            _ => None,
        }
    }

    /// Tells the sender of a packet that arrived at a port about it; returns whether there is an answer.
    pub(crate) fn tell(&mut self, port: PortIndex, at: Time, frame: &[u8], notice: Notice) -> bool {
        self.side(port).is_some_and(|side| self.report(side, at, frame, notice))
    }

    /// Its own frames to send.
    pub(crate) fn outbox(&mut self) -> impl Iterator<Item = (PortIndex, Vec<u8>)> {
        self.outbox.drain(..)
    }

    /// The packets whose next hop is known now.
    pub(crate) fn ready(&mut self) -> impl Iterator<Item = Waiting> {
        self.ready.drain(..)
    }

    /// So many packets that cross were lost before the engine took them: they count as if they had not come.
    pub(crate) fn lost(&mut self, packets: u64) {
        self.counts.arrived_packets -= packets;
        self.counts.forwarded_packets -= packets;
    }

    /// Its counters, without so many packets that cross and that the engine has not taken yet.
    pub(crate) fn counts(&self, not_taken: u64) -> RouterReport {
        let waiting: usize = self.neighbours.iter().map(Neighbours::waiting).sum();
        let rebindings = self.translation.as_ref().map_or(0, Translation::rebindings);
        RouterReport {
            arrived_packets: self.counts.arrived_packets - not_taken,
            forwarded_packets: self.counts.forwarded_packets - not_taken,
            waiting_packets: waiting as u64,
            rebindings,
            ..self.counts.clone()
        }
    }

    /// How many ICMP errors the rate limit suppressed, with the router's name.
    pub(crate) fn silenced(&self) -> Option<(String, u64)> {
        (self.withheld > 0).then(|| (self.counts.name.clone(), self.withheld))
    }

    fn side(&self, port: PortIndex) -> Option<Side> {
        self.legs.iter().position(|leg| leg.port == port)
    }

    fn ask(&mut self, side: Side, ask: Option<Ask>) {
        let Some(Ask { address, had }) = ask else { return };
        let leg = &self.legs[side];
        let Some(source) = leg.address_towards(address) else { return };
        let mut frame = Vec::new();
        if ask_neighbour(address, Neighbour { address: source, mac: leg.mac }, had, &mut frame) {
            self.outbox.push((leg.port, frame));
        }
    }

    /// Tells the sender of a frame that arrived on this side about it, from the address there. Returns whether there is an
    /// answer.
    fn report(&mut self, side: Side, at: Time, frame: &[u8], notice: Notice) -> bool {
        let leg = &self.legs[side];
        let Ok(header) = IpHeader::read(frame) else { return false };
        let source = leg.address_towards(header.source);
        let mut answer = Vec::new();
        let mut quoted = Vec::new();
        let frame = match &self.translation {
            Some(translation) if side == OUTSIDE => {
                quoted.extend_from_slice(frame);
                translation.undo_inbound(&mut quoted);
                &quoted[..]
            }
            _ => frame,
        };
        if !notice.write(LinkLayer::Ethernet, frame, source, &mut answer) {
            return false;
        }
        let is_allowed = notice == Notice::Reset || self.budgets[side].take(at);
        if is_allowed {
            self.outbox.push((leg.port, answer));
        } else {
            self.withheld += 1;
        }
        is_allowed
    }
}

fn destination(frame: &[u8]) -> Option<IpAddr> {
    IpHeader::read(frame).ok().map(|header| header.destination)
}

impl Leg {
    /// The address that talks to this one: in the same network, or else any; a link-local address only with one, or
    /// where there is no other.
    fn address_towards(&self, other: IpAddr) -> Option<IpAddr> {
        let host = IpPrefix::new(other, if other.is_ipv4() { 32 } else { 128 });
        let of_version = || self.addresses.iter().filter(|own| own.address.is_ipv4() == other.is_ipv4());
        let near = of_version().find(|own| own.overlaps(&host));
        let is_wide = |own: &&IpPrefix| !matches!(own.address, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let found = near.or_else(|| of_version().find(is_wide)).or_else(|| of_version().next());
        found.map(|own| own.address)
    }
}

#[cfg(test)]
mod tests;
