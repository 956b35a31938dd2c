//! Frames that are handled at a port instead of crossing the network.
//!
//! Hosts resolve the link addresses of their neighbours (ARP, neighbour discovery), report multicast groups and look
//! for routers. On a lossy or slow link the loss of such frames would make the far host unreachable, and they would
//! use packet numbers and queue space that the programs under test did not ask for. So address resolution requests
//! are answered at the port on behalf of the far host, and the other frames are dropped there. At a switch, hosts
//! resolve each other's addresses over the network, and only requests for a router's addresses are answered.

use std::net::IpAddr;

use narrows_frame::answer::{self, Notice};
use narrows_frame::parse::parse;
use narrows_frame::{LinkLayer, MacAddress};

const IGMP: u8 = 2;
const ICMPV6: u8 = 58;
/// Multicast listener discovery (RFC 2710, RFC 3810) and neighbour discovery (RFC 4861).
const MULTICAST_LISTENERS: std::ops::RangeInclusive<u8> = 130..=132;
const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
const MULTICAST_LISTENERS_2: u8 = 143;

/// The hosts behind a port's far end, and their link addresses.
#[derive(Clone, Debug, Default)]
pub struct NeighborProxy {
    known: Vec<(IpAddr, MacAddress)>,
    /// Whether every frame that is not answered crosses the network.
    is_transparent: bool,
}

/// What happens to a frame at the port where it arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    /// It crosses the network.
    Crosses,
    /// It is answered and does not cross.
    Answered,
    /// It is dropped here.
    Absorbed,
}

impl NeighborProxy {
    /// No hosts: every frame crosses the network, including address resolution requests. If hosts are added,
    /// requests for their addresses are answered, and all other frames cross.
    pub fn transparent() -> Self {
        Self { is_transparent: true, ..Self::default() }
    }

    /// Adds a host.
    pub fn add(&mut self, address: IpAddr, mac: MacAddress) {
        self.known.push((address, mac));
    }

    /// Decides about a frame; a reply is written to `answer`.
    pub fn judge(&self, frame: &[u8], answer: &mut Vec<u8>) -> Fate {
        if self.is_transparent && self.known.is_empty() {
            return Fate::Crosses;
        }
        let is_resolution = answer::is_address_resolution(frame);
        if is_resolution {
            let asked = answer::asked_address(frame);
            let known = asked.and_then(|asked| self.known.iter().find(|(address, _)| *address == asked));
            if let Some(&(_, mac)) = known
                && answer::answer_resolution(frame, mac, answer)
            {
                return Fate::Answered;
            }
        }
        match !self.is_transparent && (is_resolution || is_link_control(frame)) {
            true => Fate::Absorbed,
            false => Fate::Crosses,
        }
    }

    /// Writes to `answer` the frame that tells a sender about its packet; returns whether there is one. An ICMP error
    /// comes from the host behind the link, as from a router there.
    pub fn tell(&self, frame: &[u8], notice: Notice, answer: &mut Vec<u8>) -> bool {
        let mut sources = self.known.iter().map(|&(address, _)| address);
        let mut tell = |source| notice.write(LinkLayer::Ethernet, frame, Some(source), answer);
        if self.is_transparent {
            // On behalf of the destination host: nothing on the path has an address.
            return tell(IpAddr::from(parse(LinkLayer::Ethernet, frame).key.destination).to_canonical());
        }
        sources.any(tell)
    }
}

/// Whether the frame concerns the link itself: group reports and router discovery.
fn is_link_control(frame: &[u8]) -> bool {
    // Both are sent to groups, so a unicast frame needs no further check.
    if frame.first().is_none_or(|first| first & 1 == 0) {
        return false;
    }
    let key = parse(LinkLayer::Ethernet, frame).key;
    let [kind, _code] = key.source_port.to_be_bytes();
    match key.transport {
        IGMP => true,
        ICMPV6 => {
            MULTICAST_LISTENERS.contains(&kind)
                || NEIGHBOUR_DISCOVERY.contains(&kind)
                || kind == MULTICAST_LISTENERS_2
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::Bytes;
    use narrows_frame::answer::IcmpError;
    use narrows_frame::craft::Udp;

    /// What fits is a thousand bytes.
    const TOO_BIG: Notice = Notice::Error(IcmpError::TooBig(Bytes::new(1000)));

    /// "Who has 198.18.0.2? Tell 198.18.0.1."
    fn question() -> Vec<u8> {
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend([2, 0, 0, 0, 0, 1, 198, 18, 0, 1, 0, 0, 0, 0, 0, 0, 198, 18, 0, 2]);
        frame
    }

    /// An MLDv2 report with its hop-by-hop option, as Linux sends when an address is added.
    fn listener_report() -> Vec<u8> {
        let mut frame = vec![0x33, 0x33, 0, 0, 0, 0x16, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
        frame.extend([0x60, 0, 0, 0, 0, 36, 0, 1]);
        frame.extend([0; 16]);
        frame.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16]);
        frame.extend([58, 0, 5, 2, 0, 0, 1, 0]);
        frame.extend([143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0]);
        frame.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 1]);
        frame
    }

    #[test]
    fn questions_are_answered_reports_end_and_the_rest_crosses() {
        let mac = MacAddress([2, 0, 0, 0, 0, 9]);
        let mut neighbours = NeighborProxy::default();
        let mut answer = Vec::new();
        assert_eq!(neighbours.judge(&question(), &mut answer), Fate::Absorbed);
        neighbours.add("198.18.0.2".parse().unwrap(), mac);
        assert_eq!(neighbours.judge(&question(), &mut answer), Fate::Answered);
        assert_eq!(answer[..6], [2, 0, 0, 0, 0, 1], "to whoever asked");
        assert_eq!(answer[22..28], mac.0, "with the neighbour's address");
        assert_eq!(neighbours.judge(&listener_report(), &mut answer), Fate::Absorbed);
        let udp = Udp::new("198.18.0.1:1".parse().unwrap(), "198.18.0.2:2".parse().unwrap());
        for destination in [mac, MacAddress::BROADCAST] {
            let frame = udp.ethernet(destination, mac, b"x");
            assert_eq!(neighbours.judge(&frame, &mut answer), Fate::Crosses);
        }
    }

    #[test]
    fn where_nobody_is_known_everything_crosses_and_only_what_is_too_long_is_answered() {
        let neighbours = NeighborProxy::transparent();
        let mut answer = Vec::new();
        for frame in [question(), listener_report(), vec![0; 14], vec![0xff; 60], Vec::new()] {
            assert_eq!(neighbours.judge(&frame, &mut answer), Fate::Crosses);
            assert!(!neighbours.tell(&frame, TOO_BIG, &mut answer) || frame == listener_report());
        }
        let udp = Udp::new("198.18.0.1:1".parse().unwrap(), "198.18.0.2:2".parse().unwrap());
        let udp = Udp { dont_fragment: true, ..udp };
        let frame = udp.ethernet(MacAddress([2, 0, 0, 0, 0, 9]), MacAddress([2, 0, 0, 0, 0, 1]), &[0; 1400]);
        assert!(neighbours.tell(&frame, TOO_BIG, &mut answer));
        let parsed = parse(LinkLayer::Ethernet, &answer);
        assert_eq!(parsed.key.source[12..], [198, 18, 0, 2], "in the name of the host that it was for");
        assert_eq!(parsed.key.destination[12..], [198, 18, 0, 1]);
    }

    #[test]
    fn on_a_switch_only_requests_for_a_router_are_answered() {
        let mac = MacAddress([6, 0, 0, 0, 0, 9]);
        let mut neighbours = NeighborProxy::transparent();
        neighbours.add("198.18.0.9".parse().unwrap(), mac);
        let mut answer = Vec::new();
        assert_eq!(neighbours.judge(&question(), &mut answer), Fate::Crosses);
        let mut to_router = question();
        to_router[41] = 9;
        assert_eq!(neighbours.judge(&to_router, &mut answer), Fate::Answered);
        assert_eq!(answer[22..28], mac.0);
        assert_eq!(neighbours.judge(&listener_report(), &mut answer), Fate::Crosses);
    }

    #[test]
    fn too_long_packets_are_answered_in_the_neighbours_name() {
        let mut neighbours = NeighborProxy::default();
        neighbours.add("2001:2::2".parse().unwrap(), MacAddress([2, 0, 0, 0, 0, 9]));
        neighbours.add("198.18.0.2".parse().unwrap(), MacAddress([2, 0, 0, 0, 0, 9]));
        let udp = Udp::new("198.18.0.1:1".parse().unwrap(), "198.18.0.2:2".parse().unwrap());
        let udp = Udp { dont_fragment: true, ..udp };
        let frame = udp.ethernet(MacAddress([2, 0, 0, 0, 0, 9]), MacAddress([2, 0, 0, 0, 0, 1]), &[0; 1400]);
        let mut answer = Vec::new();
        assert!(neighbours.tell(&frame, TOO_BIG, &mut answer));
        let parsed = parse(LinkLayer::Ethernet, &answer);
        assert_eq!(parsed.key.source_port.to_be_bytes(), [3, 4]);
        assert_eq!(parsed.key.source[12..], [198, 18, 0, 2]);
    }
}
