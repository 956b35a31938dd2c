//! A network address translator: hosts inside use an address of the translator towards the outside (RFC 3022, "NAPT").
//!
//! Mapping and filtering are independent of the endpoint outside (RFC 4787, REQ-1 and REQ-8): every flow of an inner
//! endpoint has the same outer one, and whoever knows that can send to it. UDP, TCP and ICMP echo are translated, and ICMP
//! errors about them. Outer ports are given in turn from [`PORTS`]. A mapping that no packet uses expires: RFC 4787 REQ-5
//! recommends 5 minutes for UDP, RFC 5382 REQ-5 2 hours 4 minutes for TCP, RFC 5508 REQ-1 60 seconds for ICMP. Departure:
//! the state of TCP connections is not followed.
//!
//! A translator can be told to forget its mappings ([`Nat::rebind`]), as if it had restarted or changed its uplink: flows
//! go on from other ports, or another address, and packets to the old ones are dropped. QUIC calls this a NAT rebinding
//! (RFC 9000, 9).
//!
//! ```
//! use narrows_core::Time;
//! use narrows_frame::nat::{Nat, Outcome};
//! use narrows_frame::{MacAddress, craft::Udp};
//!
//! let mut nat = Nat::new(&["198.51.100.1".parse()?]);
//! let mac = MacAddress([2, 0, 0, 0, 0, 1]);
//! let mut frame = Udp::new("10.0.0.7:5000".parse()?, "192.0.2.1:443".parse()?).ethernet(mac, mac, b"hello");
//! assert_eq!(nat.outbound(Time::ZERO, &mut frame), Outcome::Translated);
//! let same = Udp::new("198.51.100.1:61000".parse()?, "192.0.2.1:443".parse()?).ethernet(mac, mac, b"hello");
//! assert_eq!(frame, same);
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use narrows_core::{Duration, Time};

use crate::parse::protocol;
use crate::translate::{End, Endpoint, FragmentOf, Kind, kind, replace};

/// The outer ports: above those that Linux gives to its own sockets by default (`ip_local_port_range`).
pub const PORTS: RangeInclusive<u16> = 61_000..=65_535;
/// First fragments whose later ones can still be translated.
const MOST_FRAGMENTED: usize = 64;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is translated.
    Translated,
    /// It is not for an outer address.
    NotOurs,
    /// It is for an outer address, but there is no mapping for it.
    Unknown,
    /// It cannot be translated: another protocol, no outer address of its IP version, or no free port.
    Impossible,
}

/// What changes when mappings are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebind {
    /// The ports.
    Port,
    /// The address, which becomes the next one, and the ports.
    Address,
}

/// A translator.
#[derive(Clone, Debug)]
pub struct Nat {
    pools: [Pool; 2],
    /// By protocol and inner endpoint.
    mappings: BTreeMap<(u8, Endpoint), Mapping>,
    /// The inner endpoint by protocol and outer endpoint.
    inner: BTreeMap<(u8, Endpoint), Endpoint>,
    /// The next port to try.
    next: u16,
    fragmented: VecDeque<(FragmentOf, Endpoint)>,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    outer: Endpoint,
    used: Time,
}

/// The outer addresses of one IP version.
#[derive(Clone, Debug, Default)]
struct Pool {
    addresses: Vec<IpAddr>,
    current: usize,
}

impl Nat {
    /// A translator with these outer addresses, of which the first of each IP version is used until a rebinding.
    pub fn new(addresses: &[IpAddr]) -> Self {
        let of_version = |is_ipv4| {
            let addresses = addresses.iter().copied().filter(|address| address.is_ipv4() == is_ipv4);
            Pool { addresses: addresses.collect(), current: 0 }
        };
        Self {
            pools: [of_version(true), of_version(false)],
            mappings: BTreeMap::new(),
            inner: BTreeMap::new(),
            next: *PORTS.start(),
            fragmented: VecDeque::new(),
        }
    }

    /// Translates a packet that leaves to the outside.
    pub fn outbound(&mut self, at: Time, frame: &mut [u8]) -> Outcome {
        let outer = match kind(frame) {
            Kind::Flow(flow) => self.map(at, flow.protocol, flow.source).map(|outer| (End::Source, outer)),
            // The quoted packet came from outside.
            Kind::Error(quoted) => {
                let mapping = self.mappings.get(&(quoted.protocol, quoted.destination));
                mapping.map(|mapping| (End::Destination, mapping.outer))
            }
            Kind::Fragment(_) => {
                let is_ipv4 = frame.get(14).is_some_and(|first| first >> 4 == 4);
                self.address(is_ipv4).map(|address| (End::Source, Endpoint { address, port: 0 }))
            }
            Kind::Other => None,
        };
        match outer {
            Some((end, outer)) if replace(frame, end, outer) => Outcome::Translated,
            _ => Outcome::Impossible,
        }
    }

    /// Translates a packet from outside.
    pub fn inbound(&mut self, at: Time, frame: &mut [u8]) -> Outcome {
        let (end, inner) = match kind(frame) {
            Kind::Flow(flow) if self.has(flow.destination.address) => {
                let inner = self.inner_of(at, flow.protocol, flow.destination);
                if let Some((of, inner)) = FragmentOf::read(frame).zip(inner) {
                    self.fragmented.truncate(MOST_FRAGMENTED - 1);
                    self.fragmented.push_front((of, inner));
                }
                (End::Destination, inner)
            }
            // The quoted packet went outside.
            Kind::Error(quoted) if self.has(quoted.source.address) => {
                (End::Source, self.inner_of(at, quoted.protocol, quoted.source))
            }
            Kind::Fragment(Some(fragment)) => {
                let known = self.fragmented.iter().find(|(of, _)| *of == fragment);
                (End::Destination, known.map(|&(_, inner)| inner))
            }
            _ => return Outcome::NotOurs,
        };
        match inner {
            Some(inner) if replace(frame, end, inner) => Outcome::Translated,
            _ => Outcome::Unknown,
        }
    }

    /// Gives a packet that came from outside its outer destination again, to quote it to its sender.
    pub fn undo_inbound(&self, frame: &mut [u8]) {
        let Kind::Flow(flow) = kind(frame) else { return };
        if let Some(mapping) = self.mappings.get(&(flow.protocol, flow.destination)) {
            replace(frame, End::Destination, mapping.outer);
        }
    }

    /// Forgets all mappings, so that flows continue from other ports or another address.
    pub fn rebind(&mut self, what: Rebind) {
        self.mappings.clear();
        self.inner.clear();
        self.fragmented.clear();
        if what == Rebind::Address {
            for pool in &mut self.pools {
                pool.current = (pool.current + 1) % pool.addresses.len().max(1);
            }
        }
    }

    /// Whether this is an outer address.
    pub fn has(&self, address: IpAddr) -> bool {
        self.pools.iter().any(|pool| pool.addresses.contains(&address))
    }

    /// Whether [`Rebind::Address`] has an address to change to.
    pub fn has_choice(&self) -> bool {
        self.pools.iter().any(|pool| pool.addresses.len() > 1)
    }

    /// The present outer address of an IP version.
    fn address(&self, is_ipv4: bool) -> Option<IpAddr> {
        let pool = &self.pools[usize::from(!is_ipv4)];
        pool.addresses.get(pool.current).copied()
    }

    fn inner_of(&mut self, at: Time, protocol: u8, outer: Endpoint) -> Option<Endpoint> {
        let inner = *self.inner.get(&(protocol, outer))?;
        if let Some(mapping) = self.mappings.get_mut(&(protocol, inner)) {
            mapping.used = at;
        }
        Some(inner)
    }

    /// The outer endpoint of an inner one.
    fn map(&mut self, at: Time, protocol: u8, inner: Endpoint) -> Option<Endpoint> {
        if let Some(mapping) = self.mappings.get_mut(&(protocol, inner)) {
            mapping.used = at;
            return Some(mapping.outer);
        }
        let address = self.address(inner.address.is_ipv4())?;
        let port = match self.free_port(protocol, address) {
            Some(port) => port,
            None => {
                self.expire(at);
                self.free_port(protocol, address)?
            }
        };
        let outer = Endpoint { address, port };
        self.mappings.insert((protocol, inner), Mapping { outer, used: at });
        self.inner.insert((protocol, outer), inner);
        Some(outer)
    }

    /// The next port that no mapping has.
    fn free_port(&mut self, protocol: u8, address: IpAddr) -> Option<u16> {
        for _ in PORTS {
            let port = self.next;
            self.next = if port == *PORTS.end() { *PORTS.start() } else { port + 1 };
            if !self.inner.contains_key(&(protocol, Endpoint { address, port })) {
                return Some(port);
            }
        }
        None
    }

    /// Forgets mappings that were not used for too long.
    fn expire(&mut self, at: Time) {
        let is_used = |protocol: u8, mapping: &Mapping| at.since(mapping.used) < lifetime(protocol);
        self.mappings.retain(|&(protocol, _), mapping| is_used(protocol, mapping));
        let Self { mappings, inner, .. } = self;
        inner.retain(|&(protocol, _), inner| mappings.contains_key(&(protocol, *inner)));
    }
}

fn lifetime(protocol: u8) -> Duration {
    Duration::from_secs(match protocol {
        protocol::TCP => 7440,
        protocol::UDP => 300,
        _ => 60,
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::MacAddress;
    use crate::answer::{IcmpError, icmp_error};
    use crate::craft::Udp;
    use crate::{LinkLayer, forward::IpHeader};

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const SERVER: &str = "192.0.2.1:443";

    fn nat() -> Nat {
        Nat::new(&["198.51.100.1", "198.51.100.2", "2001:db8::1"].map(|text| text.parse().unwrap()))
    }

    fn udp(from: &str, to: &str) -> Vec<u8> {
        Udp::new(from.parse().unwrap(), to.parse().unwrap()).ethernet(MAC, MAC, b"hello")
    }

    fn socket(endpoint: Endpoint) -> SocketAddr {
        SocketAddr::new(endpoint.address, endpoint.port)
    }

    /// The outer endpoint from which an inner one sends.
    fn leaves(nat: &mut Nat, at: Time, from: &str) -> Option<String> {
        let mut frame = udp(from, SERVER);
        let outcome = nat.outbound(at, &mut frame);
        let Kind::Flow(flow) = kind(&frame) else { panic!() };
        (outcome == Outcome::Translated).then(|| socket(flow.source).to_string())
    }

    /// Where a packet to an outer endpoint gets.
    fn gets(nat: &mut Nat, at: Time, to: &str) -> Result<String, Outcome> {
        let mut frame = udp(SERVER, to);
        match nat.inbound(at, &mut frame) {
            Outcome::Translated => {
                let Kind::Flow(flow) = kind(&frame) else { panic!() };
                Ok(socket(flow.destination).to_string())
            }
            other => Err(other),
        }
    }

    #[test]
    fn every_inner_endpoint_has_one_outer_one_and_answers_find_back() {
        let mut nat = nat();
        let (a, b) = ("10.0.0.7:5000", "10.0.0.8:5000");
        assert_eq!(leaves(&mut nat, Time::ZERO, a).as_deref(), Some("198.51.100.1:61000"));
        assert_eq!(leaves(&mut nat, Time::ZERO, b).as_deref(), Some("198.51.100.1:61001"));
        assert_eq!(leaves(&mut nat, Time::ZERO, a).as_deref(), Some("198.51.100.1:61000"));
        assert_eq!(gets(&mut nat, Time::ZERO, "198.51.100.1:61001").as_deref(), Ok(b));
        assert_eq!(gets(&mut nat, Time::ZERO, "198.51.100.1:61002"), Err(Outcome::Unknown));
        assert_eq!(gets(&mut nat, Time::ZERO, "10.0.0.7:5000"), Err(Outcome::NotOurs));
    }

    #[test]
    fn after_a_rebinding_flows_come_from_elsewhere_and_the_old_place_is_closed() {
        let mut nat = nat();
        let client = "10.0.0.7:5000";
        leaves(&mut nat, Time::ZERO, client);
        nat.rebind(Rebind::Port);
        assert_eq!(gets(&mut nat, Time::ZERO, "198.51.100.1:61000"), Err(Outcome::Unknown));
        assert_eq!(leaves(&mut nat, Time::ZERO, client).as_deref(), Some("198.51.100.1:61001"));
        nat.rebind(Rebind::Address);
        assert_eq!(leaves(&mut nat, Time::ZERO, client).as_deref(), Some("198.51.100.2:61002"));
        assert_eq!(gets(&mut nat, Time::ZERO, "198.51.100.2:61002").as_deref(), Ok(client));
        nat.rebind(Rebind::Address);
        assert_eq!(leaves(&mut nat, Time::ZERO, client).as_deref(), Some("198.51.100.1:61003"));
    }

    #[test]
    fn errors_reach_whoever_sent_the_quoted_packet() {
        let mut nat = nat();
        let mut frame = udp("10.0.0.7:5000", SERVER);
        nat.outbound(Time::ZERO, &mut frame);
        let (router, mut error) = ("192.0.2.9".parse().unwrap(), Vec::new());
        assert!(icmp_error(LinkLayer::Ethernet, &frame, IcmpError::NoHost, router, &mut error));
        assert_eq!(nat.inbound(Time::ZERO, &mut error), Outcome::Translated);
        assert_eq!(IpHeader::read(&error).unwrap().destination, "10.0.0.7".parse::<IpAddr>().unwrap());
        // And the other way: the client refuses a packet from outside.
        let mut frame = udp(SERVER, "198.51.100.1:61000");
        let outside = frame.clone();
        nat.inbound(Time::ZERO, &mut frame);
        assert!(icmp_error(
            LinkLayer::Ethernet,
            &frame,
            IcmpError::NoPort,
            "10.0.0.7".parse().unwrap(),
            &mut error
        ));
        assert_eq!(nat.outbound(Time::ZERO, &mut error), Outcome::Translated);
        let Kind::Error(quoted) = kind(&error) else { panic!() };
        assert_eq!(socket(quoted.destination).to_string(), "198.51.100.1:61000");
        assert_eq!(IpHeader::read(&error).unwrap().source, "198.51.100.1".parse::<IpAddr>().unwrap());
        nat.undo_inbound(&mut frame);
        assert_eq!(frame, outside);
    }

    #[test]
    fn fragments_follow_the_first_one() {
        let fragment = |frame: &[u8], place: [u8; 2]| {
            let mut frame = frame.to_vec();
            frame[20..22].copy_from_slice(&place);
            frame[24..26].fill(0);
            let sum = crate::checksum::Sum::default().bytes(&frame[14..34]).complement();
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            frame
        };
        let mut nat = nat();
        leaves(&mut nat, Time::ZERO, "10.0.0.7:5000");
        let whole = udp(SERVER, "198.51.100.1:61000");
        let mut later = fragment(&whole, [0, 8]);
        assert_eq!(nat.inbound(Time::ZERO, &mut later.clone()), Outcome::Unknown, "the first is not there");
        assert_eq!(nat.inbound(Time::ZERO, &mut fragment(&whole, [0x20, 0])), Outcome::Translated);
        assert_eq!(nat.inbound(Time::ZERO, &mut later), Outcome::Translated);
        assert_eq!(IpHeader::read(&later).unwrap().destination, "10.0.0.7".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn ports_run_out_until_mappings_expire() {
        let mut nat = nat();
        let all = PORTS.count();
        for number in 0..all {
            assert!(leaves(&mut nat, Time::ZERO, &format!("10.0.0.7:{}", number + 1)).is_some());
        }
        let late = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        assert_eq!(leaves(&mut nat, late(299), "10.0.0.8:1"), None);
        assert!(leaves(&mut nat, late(299), "10.0.0.7:1").is_some(), "known ones go on");
        assert!(leaves(&mut nat, late(300), "10.0.0.8:1").is_some());
        assert_eq!(nat.mappings.len(), 2, "the used one and the new one");
        assert_eq!(nat.inner.len(), 2);
    }

    #[test]
    fn what_has_no_flow_is_not_translated() {
        let mut nat = Nat::new(&["198.51.100.1".parse().unwrap()]);
        let mut gre = udp("10.0.0.7:5000", SERVER);
        gre[23] = 47;
        let sum = crate::checksum::updated(u16::from_be_bytes([gre[24], gre[25]]), 17, 47);
        gre[24..26].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(nat.outbound(Time::ZERO, &mut gre), Outcome::Impossible);
        let mut v6 = udp("[fd00::7]:1", "[2001:db8:1::1]:2");
        assert_eq!(nat.outbound(Time::ZERO, &mut v6), Outcome::Impossible, "no address of that version");
    }
}
