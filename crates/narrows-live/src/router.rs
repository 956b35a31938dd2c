//! The routers of a run, as senders of packets.
//!
//! The engine forwards packets through routers and decides their fate. A router's reply to a sender is built here,
//! from the packet's bytes, and enters the network at the router's own port, at the instant of the engine's decision:
//! - for a packet whose hop limit is exceeded: "time exceeded", which makes routers visible to `traceroute`;
//! - for a packet without a route: "destination unreachable";
//! - for a packet that exceeds the MTU of the router's next link: "fragmentation needed" or "packet too big";
//! - for a packet to the router itself: an echo reply or a TCP reset; anything else is unreachable;
//! - for a packet that a rule of its next link rejects: what the rule says.
//!
//! A router has one address per link; it replies from the address of
//! the link by which the reply leaves, as Linux does.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use narrows_core::{Duration, PortId, Target, Time};
use narrows_frame::LinkLayer;
use narrows_frame::answer::{IcmpError, Notice, echo_reply, tcp_reset};
use narrows_frame::parse::parse;
use narrows_scenario::{Interface, Scenario};

/// IP protocol numbers.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// All routers. Their addresses and routes are those of the scenario at the start: nothing changes them during a run.
#[derive(Clone, Debug)]
pub(crate) struct Routers {
    scenario: Arc<Scenario>,
    all: Vec<Router>,
}

#[derive(Clone, Debug)]
struct Router {
    name: String,
    port: PortId,
    budget: Budget,
    /// Replies suppressed by the rate limit.
    withheld: u64,
}

/// What a router replies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// It drops a packet.
    Dropped(Notice),
    /// A packet is addressed to the router itself.
    Own,
}

impl Routers {
    /// The routers of the scenario for which the engine has a port.
    pub(crate) fn new(scenario: Arc<Scenario>, port: impl Fn(&str) -> Option<PortId>) -> Self {
        let router = |router: &narrows_scenario::Router| {
            let name = router.name.clone();
            Some(Router { port: port(&name)?, name, budget: Budget::default(), withheld: 0 })
        };
        let all = scenario.routers.iter().filter_map(router).collect();
        Self { scenario, all }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The port of a router.
    pub(crate) fn port(&self, name: &str) -> Option<PortId> {
        self.all.iter().find(|router| router.name == name).map(|router| router.port)
    }

    /// Writes to `answer` the reply of the router at this port about a frame; returns whether there is one.
    pub(crate) fn answer(
        &mut self,
        at: Time,
        port: PortId,
        occasion: Occasion,
        frame: &[u8],
        answer: &mut Vec<u8>,
    ) -> bool {
        let Some(router) = self.all.iter_mut().find(|router| router.port == port) else { return false };
        let parsed = parse(LinkLayer::Ethernet, frame);
        let [sender, own] = [parsed.key.source, parsed.key.destination].map(canonical);
        let (notice, source) = match occasion {
            Occasion::Dropped(notice) => (notice, self.scenario.router_address(&router.name, sender)),
            Occasion::Own if echo_reply(LinkLayer::Ethernet, frame, answer) => return true,
            Occasion::Own if tcp_reset(LinkLayer::Ethernet, frame, answer) => return true,
            Occasion::Own => match parsed.key.transport {
                UDP => (Notice::Error(IcmpError::NoPort), Some(own)),
                // Other ICMP messages, resets, damaged packets.
                ICMP | ICMPV6 | TCP => return false,
                _ => (Notice::Error(IcmpError::NoProtocol), Some(own)),
            },
        };
        if !notice.write(LinkLayer::Ethernet, frame, source, answer) {
            return false;
        }
        let is_allowed = notice == Notice::Reset || router.budget.take(at);
        router.withheld += u64::from(!is_allowed);
        is_allowed
    }

    /// Routers that exceeded the rate limit, and how many messages were suppressed.
    pub(crate) fn silenced(&self) -> Vec<(String, u64)> {
        let silenced = self.all.iter().filter(|router| router.withheld > 0);
        silenced.map(|router| (router.name.clone(), router.withheld)).collect()
    }

    /// The port of the router that sends into this link or its rules, if there is one.
    pub(crate) fn sender_into(&self, link: &str, destination: [u8; 16]) -> Option<PortId> {
        self.port(sender_into(&self.scenario, link, destination)?)
    }
}

/// A note for the report that a router exceeded the rate limit.
pub(crate) fn silenced_note((router, withheld): &(String, u64)) -> String {
    format!(
        "router {router}: {withheld} ICMP errors were not sent: a router sends {MOST_A_SECOND} a second, {AT_ONCE} at once"
    )
}

/// The router that sends into this link or its rules, if there is one; of the routers at both ends of a medium or of
/// rules, the one on the path to this destination.
fn sender_into<'a>(scenario: &'a Scenario, link: &str, destination: [u8; 16]) -> Option<&'a str> {
    let sends = |interface: &&Interface| {
        let leads = |target: &Target| matches!(target, Target::Link { name, .. } | Target::Rules { name, .. } if name == link);
        interface.path.iter().any(leads)
    };
    let is_shared = scenario.links.iter().any(|other| other.name == link);
    let leads_there = |interface: &&Interface| {
        let from = scenario.router_address(&interface.router, canonical(destination));
        from.is_some_and(|from| interface.addresses.iter().any(|address| address.ip == from))
    };
    let mut interfaces = scenario.interfaces().iter().filter(sends);
    let found = if is_shared { interfaces.find(leads_there) } else { interfaces.next() };
    found.map(|interface| interface.router.as_str())
}

/// In the engine, IPv4 addresses are mapped into IPv6.
fn canonical(address: [u8; 16]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_octets(address)).to_canonical()
}

/// Linux's rate limit on a host's ICMP errors (`icmp_msgs_per_sec`, `icmp_msgs_burst`); echo replies and resets are
/// not limited.
const MOST_A_SECOND: u64 = 1000;
const AT_ONCE: u64 = 50;

/// A token bucket on the engine's instants: a replay does not need it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    /// When it is full again.
    full: Time,
}

impl Budget {
    /// Whether a message may be sent at this instant.
    pub(crate) fn take(&mut self, at: Time) -> bool {
        const EACH: u64 = 1_000_000_000 / MOST_A_SECOND;
        let from = self.full.max(at);
        if from.since(at).nanos() > (AT_ONCE - 1) * EACH {
            return false;
        }
        self.full = from + Duration::from_nanos(EACH);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_errors_at_once_and_then_one_each_millisecond() {
        let mut budget = Budget::default();
        let at = |micros: u64| Time::from_nanos(micros * 1000);
        let granted = (0..60).filter(|_| budget.take(at(10_000))).count();
        assert_eq!(granted, 50);
        assert!(!budget.take(at(10_999)) && budget.take(at(11_000)) && !budget.take(at(11_000)));
        let in_a_second = (0..10_000).filter(|n| budget.take(at(11_000 + n * 100))).count();
        assert_eq!(in_a_second, 999);
        let granted = (0..60).filter(|_| budget.take(at(9_000_000))).count();
        assert_eq!(granted, 50, "and no more, however long it was quiet");
    }
}
