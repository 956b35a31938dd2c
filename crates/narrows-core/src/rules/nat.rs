//! Address translation with state: rules that replace a packet's addresses and ports, as FreeBSD's `ipfw nat` does.
//!
//! Sources: ipfw(8), libalias(3) and its code, RFC 4787 (mappings), RFC 5508 (ICMP).
//!
//! A **flow** is what translation tells apart: for TCP and UDP the two addresses and ports, for echoes and timestamps of
//! ICMP the addresses and the identifier, for other protocols the addresses. Its inner end is replaced by an outer one:
//!
//! - A packet that goes out gets the outer end of its flow. A new flow gets the outer address and a port that no other
//!   flow with the same remote end has (endpoint-dependent mapping); with `udp_eim`, flows of UDP from one inner end have
//!   one outer end (endpoint-independent mapping). Ports are drawn from the stream `nat N` of the rule set's name.
//! - A packet that comes in gets the inner end of its flow. Without a flow, a redirection may lead it to an inner host.
//!   Otherwise it passes unchanged, for the host with the outer address itself, or is denied.
//! - An ICMP error belongs to the flow of the packet that it quotes, and is changed in the same way, quotation included.
//! - A fragment other than the first has no ports: one that goes out gets the outer address; one that comes in follows
//!   the first, which must have come less than 10 s before.
//!
//! Differences from libalias: lifetimes are exact, where it counts whole seconds; there is a maximum of flows, beyond which,
//! as without a free port, packets that go out are denied, where libalias lets them out untranslated; protocols that carry
//! addresses in their data (FTP, IRC, PPTP) are not rewritten; a first fragment that comes in without a flow is denied like
//! other packets. Fragments that are cut inside the network have the flow of their packet.

mod config;
mod flows;
mod redirect;

pub use config::{Inner, Lifetimes, NatConfig};
pub use redirect::{Redirect, Remote};

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use flows::{Flow, Flows, Phase, Side, Way};

use super::passing::Passing;
use crate::packet::{FlowKey, Headers, Protocol, Quoted};
use crate::random::{Seed, Stream};
use crate::time::{Duration, Time};

/// An address with a port, an identifier of ICMP, or 0.
pub(super) type End = (Ipv4Addr, u16);

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// How often another port is tried for a new flow.
const TRIES: u32 = 20;
/// How long later fragments find the first.
const FRAGMENT_LIFE: Duration = Duration::from_secs(10);
/// Dead flows that are removed with each packet: more than it makes.
const BURIED: usize = 4;
/// More first fragments are not remembered at a time.
const MOST_FRAGMENTS: usize = 1024;

/// A translator with its flows.
#[derive(Clone, Debug)]
pub(super) struct Nat {
    config: NatConfig,
    ports: Stream,
    flows: Flows,
    /// Of each redirection, which inner host is next.
    turns: Vec<usize>,
    /// The outer address of the last packet.
    outer: Option<Ipv4Addr>,
    /// The inner addresses of packets whose first fragment came in: by sender, outer address and identification.
    fragments: BTreeMap<(Ipv4Addr, Ipv4Addr, u16), (Ipv4Addr, Time)>,
    refused: u64,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It belongs to no flow, and stays as it is.
    Ignored,
    /// Its addresses and ports are right now; they may be as before.
    Translated,
    Denied,
}

/// What translation sees of a packet.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A packet of a flow, by its ports: source and destination.
    Flow([u16; 2]),
    /// A packet of a flow, by the identifier in place of the port at the near end.
    Identified(u16),
    /// An ICMP error about this packet, if it is readable.
    Error(Option<Quoted>),
    /// A fragment other than the first.
    Fragment,
    /// Another ICMP message.
    Message,
}

impl Kind {
    /// `is_piece`: it was cut from a packet inside the network, whose key is known.
    fn of(key: &FlowKey, headers: &Headers, quoted: Option<&Quoted>, is_piece: bool) -> Self {
        const OFFSET: u8 = 0x01;
        let is_later = if is_piece { headers.fragment & OFFSET != 0 } else { headers.is_later_fragment };
        if is_later {
            return Self::Fragment;
        }
        match key.transport {
            TCP | UDP => Self::Flow([key.source_port, key.destination_port]),
            ICMP => match key.source_port >> 8 {
                // Echo and timestamp.
                0 | 8 | 13 | 14 => Self::Identified(key.destination_port),
                3 | 4 | 11 | 12 => Self::Error(quoted.copied()),
                _ => Self::Message,
            },
            _ => Self::Flow([0; 2]),
        }
    }
}

impl Nat {
    pub(super) fn new(seed: Seed, rules: &str, number: u32, config: NatConfig) -> Self {
        let ports = Stream::new(seed, rules, &alloc::format!("nat {number}"));
        let flows = Flows::new(config.most);
        let turns = alloc::vec![0; config.redirects.len()];
        Self { config, ports, flows, turns, outer: None, fragments: BTreeMap::new(), refused: 0 }
    }

    pub(super) const fn config(&self) -> &NatConfig {
        &self.config
    }

    /// Flows stay as they are.
    pub(super) fn set_config(&mut self, config: NatConfig) {
        self.flows.set_most(config.most);
        self.turns = alloc::vec![0; config.redirects.len()];
        self.config = config;
    }

    /// The numbers of live flows: of ICMP, UDP, TCP and others.
    pub(super) fn flows(&self, now: Time) -> [usize; 4] {
        self.flows.live(now)
    }

    /// How many packets were denied because no port or no room was left for their flow.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Translates a packet. `own` is the address of the host that the rules are on.
    pub(super) fn translate(&mut self, now: Time, packet: &mut Passing<'_>, own: Option<Ipv4Addr>) -> Fate {
        self.pass(now, packet, own, true)
    }

    /// Translates a packet that goes out, if its flow exists.
    pub(super) fn translate_known(
        &mut self,
        now: Time,
        packet: &mut Passing<'_>,
        own: Option<Ipv4Addr>,
    ) -> Fate {
        match self.config.global && !self.config.reverse && !packet.incoming {
            true => self.pass(now, packet, own, false),
            false => Fate::Ignored,
        }
    }

    fn pass(&mut self, now: Time, packet: &mut Passing<'_>, own: Option<Ipv4Addr>, creates: bool) -> Fate {
        let key = *packet.whole.as_deref().unwrap_or(packet.key);
        let (Some(source), Some(destination)) = (v4(&key, key.source), v4(&key, key.destination)) else {
            return Fate::Denied;
        };
        let Some(outer) = self.config.address.or(own) else { return Fate::Denied };
        if self.outer.replace(outer) != Some(outer) && self.config.resets {
            self.flows.clear();
            self.fragments.clear();
        }
        self.flows.bury(now, BURIED);
        let goes_out = packet.incoming == self.config.reverse;
        let kind = Kind::of(&key, packet.headers, packet.quoted.as_deref(), packet.whole.is_some());
        let fate = match (kind, goes_out) {
            (Kind::Flow([from, to]), true) => {
                let ends = Ends { near: (source, from), far: (destination, to) };
                self.out(now, &key, ends, packet, creates)
            }
            (Kind::Flow([from, to]), false) => {
                let ends = Ends { near: (destination, to), far: (source, from) };
                self.back(now, &key, ends, packet)
            }
            (Kind::Identified(id), true) => {
                let ends = Ends { near: (source, id), far: (destination, 0) };
                self.out(now, &key, ends, packet, creates)
            }
            (Kind::Identified(id), false) => {
                let ends = Ends { near: (destination, id), far: (source, 0) };
                self.back(now, &key, ends, packet)
            }
            (Kind::Error(Some(quoted)), _) => self.error(now, quoted, goes_out, packet),
            (Kind::Fragment, true) => {
                write_address(packet, true, self.outer_of(source));
                Fate::Translated
            }
            (Kind::Fragment, false) => {
                let whole = (source, destination, packet.headers.ip_id);
                match self.fragments.get(&whole).filter(|(_, end)| *end > now) {
                    Some(&(inner, _)) => {
                        write_address(packet, false, inner);
                        Fate::Translated
                    }
                    None => Fate::Denied,
                }
            }
            (Kind::Error(None) | Kind::Message, _) => Fate::Ignored,
        };
        match fate {
            Fate::Ignored if creates && !goes_out && self.config.denies_incoming => Fate::Denied,
            fate => fate,
        }
    }

    /// A packet of a flow goes out.
    fn out(&mut self, now: Time, key: &FlowKey, ends: Ends, packet: &mut Passing<'_>, creates: bool) -> Fate {
        let protocol = key.transport;
        let found = self.flows.find(now, Side::Inner, protocol, ends.near, ends.far);
        let Some(at) = found.or_else(|| {
            let outer = creates.then(|| self.outer_end(now, protocol, ends, packet))??;
            self.flows.insert(now, Flow::new(protocol, ends.near, outer, ends.far))
        }) else {
            if !creates {
                return Fate::Ignored;
            }
            self.refused += 1;
            return Fate::Denied;
        };
        self.refresh(now, at, key, Way::Out);
        write_end(packet, true, self.flows.get(at).outer);
        Fate::Translated
    }

    /// A packet of a flow comes in.
    fn back(&mut self, now: Time, key: &FlowKey, ends: Ends, packet: &mut Passing<'_>) -> Fate {
        let protocol = key.transport;
        let found = self.flows.find(now, Side::Outer, protocol, ends.near, ends.far);
        let at = match found {
            Some(at) => at,
            None => {
                let Some(inner) = self.inner_end(now, protocol, ends) else { return Fate::Ignored };
                let flow = Flow::new(protocol, inner, ends.near, ends.far);
                let Some(at) = self.flows.insert(now, flow) else {
                    self.refused += 1;
                    return Fate::Denied;
                };
                at
            }
        };
        self.refresh(now, at, key, Way::In);
        let inner = self.flows.get(at).inner;
        const MORE: u8 = 0x20;
        if packet.headers.fragment & MORE != 0 {
            self.remember(now, (ends.far.0, ends.near.0, packet.headers.ip_id), inner.0);
        }
        write_end(packet, false, inner);
        Fate::Translated
    }

    /// An ICMP error. The packet that it quotes went the other way, and is quoted as it was on this side.
    fn error(&mut self, now: Time, quoted: Quoted, goes_out: bool, packet: &mut Passing<'_>) -> Fate {
        let (near, far) = match goes_out {
            true => (quoted.destination, quoted.source),
            false => (quoted.source, quoted.destination),
        };
        let far = if quoted.protocol == ICMP { (far.0, 0) } else { far };
        let side = if goes_out { Side::Inner } else { Side::Outer };
        let Some(at) = self.flows.find(now, side, quoted.protocol, near, far) else { return Fate::Ignored };
        let flow = self.flows.get(at);
        let new = if goes_out { flow.outer } else { flow.inner };
        // An error by a router in between comes from an address of its own.
        let key = packet.whole.as_deref().unwrap_or(packet.key);
        if !goes_out || v4(key, key.source) == Some(near.0) {
            write_address(packet, goes_out, new.0);
        }
        if let Some(quoted) = &mut packet.quoted {
            *(if goes_out { &mut quoted.destination } else { &mut quoted.source }) = new;
            if quoted.protocol == ICMP {
                (quoted.source.1, quoted.destination.1) = (new.1, new.1);
            }
        }
        Fate::Translated
    }

    /// The outer address of an inner one.
    fn outer_of(&self, inner: Ipv4Addr) -> Ipv4Addr {
        let own = self.outer.unwrap_or(inner);
        if !self.config.translates(inner) {
            return inner;
        }
        let mut fixed = self.config.redirects.iter().filter_map(|one| one.outer_address(inner, own));
        fixed.next().unwrap_or(own)
    }

    /// The outer end of a new flow.
    fn outer_end(&mut self, now: Time, protocol: u8, ends: Ends, packet: &mut Passing<'_>) -> Option<End> {
        let Ends { near, far } = ends;
        let own = self.outer?;
        let fixed = self.config.redirects.iter().find_map(|one| one.outer_end(protocol, near, far, own));
        if fixed.is_some() {
            return fixed;
        }
        let address = self.outer_of(near.0);
        if !matches!(protocol, ICMP | TCP | UDP) {
            return Some((address, 0));
        }
        let is_for_all = protocol == UDP && self.config.udp_eim;
        if is_for_all && let Some(flow) = self.flows.any(now, Side::Inner, protocol, near) {
            return Some(flow.outer);
        }
        let (first, last) = (*self.config.ports.start(), *self.config.ports.end());
        let mut draw = (packet.draw)(&self.ports);
        for attempt in 0..TRIES {
            let port = match attempt {
                0 if self.config.keeps_ports => near.1,
                // Below 65,536.
                _ => first + draw.below(u64::from(last.saturating_sub(first)) + 1) as u16,
            };
            let end = (address, port);
            let is_free = match is_for_all {
                true => self.flows.any(now, Side::Outer, protocol, end).is_none(),
                false => self.flows.find(now, Side::Outer, protocol, end, far).is_none(),
            };
            if is_free {
                return Some(end);
            }
        }
        None
    }

    /// The inner end for a packet without a flow.
    fn inner_end(&mut self, now: Time, protocol: u8, Ends { near, far }: Ends) -> Option<End> {
        let own = self.outer?;
        let redirects = self.config.redirects.iter().zip(&mut self.turns);
        let fixed =
            redirects.into_iter().find_map(|(one, turn)| one.inner_end(protocol, near, far, own, turn));
        if fixed.is_some() || self.config.denies_incoming {
            return fixed;
        }
        if protocol == UDP
            && self.config.udp_eim
            && let Some(flow) = self.flows.any(now, Side::Outer, protocol, near)
        {
            return Some(flow.inner);
        }
        let mut redirects = self.config.redirects.iter().zip(&mut self.turns);
        let to_host = redirects.find_map(|(one, turn)| one.inner_address(near.0, own, turn));
        Some((to_host.unwrap_or(near.0), near.1))
    }

    fn remember(&mut self, now: Time, fragment: (Ipv4Addr, Ipv4Addr, u16), inner: Ipv4Addr) {
        if self.fragments.len() >= MOST_FRAGMENTS {
            self.fragments.retain(|_, (_, end)| *end > now);
        }
        if self.fragments.len() < MOST_FRAGMENTS {
            self.fragments.insert(fragment, (inner, now + FRAGMENT_LIFE));
        }
    }

    /// Restarts the lifetime of a flow.
    fn refresh(&mut self, now: Time, at: usize, key: &FlowKey, way: Way) {
        let lives = self.config.lifetimes;
        let life = match key.transport {
            TCP => {
                let flow = self.flows.get_mut(at);
                flow.tcp.see(way, key.tcp_flags);
                match flow.tcp.phase() {
                    Phase::Opening => lives.tcp_opening,
                    Phase::Open => lives.tcp,
                    Phase::Closing => lives.tcp_closing,
                    Phase::Closed => lives.tcp_closed,
                }
            }
            UDP => lives.udp,
            ICMP => lives.icmp,
            _ => lives.other,
        };
        self.flows.set_end(at, now + life);
    }
}

/// The two ends of a packet's flow: inside or on the outside of the translator, and the remote one.
#[derive(Clone, Copy)]
struct Ends {
    near: End,
    far: End,
}

/// An IPv4 address of a packet.
fn v4(key: &FlowKey, address: [u8; 16]) -> Option<Ipv4Addr> {
    match key.network {
        Protocol::Ipv4 | Protocol::Ipv4DontFragment => Ipv6Addr::from(address).to_ipv4_mapped(),
        Protocol::Ipv6 | Protocol::Other => None,
    }
}

/// Writes the source or the destination address.
fn write_address(packet: &mut Passing<'_>, is_source: bool, address: Ipv4Addr) {
    let address = address.to_ipv6_mapped().octets();
    let keys = core::iter::once(&mut *packet.key).chain(packet.whole.as_deref_mut());
    keys.for_each(|key| *(if is_source { &mut key.source } else { &mut key.destination }) = address);
}

/// Writes the source or the destination end.
fn write_end(packet: &mut Passing<'_>, is_source: bool, (address, port): End) {
    write_address(packet, is_source, address);
    let write = |key: &mut FlowKey| match key.transport {
        ICMP => key.destination_port = port,
        TCP | UDP if is_source => key.source_port = port,
        TCP | UDP => key.destination_port = port,
        _ => {}
    };
    match &mut packet.whole {
        Some(whole) => {
            // Of a later fragment, rules see no ports.
            let sees_ports = packet.key.source_port == whole.source_port
                && packet.key.destination_port == whole.destination_port;
            write(whole);
            if sees_ports {
                write(packet.key);
            }
        }
        None => write(packet.key),
    }
}
