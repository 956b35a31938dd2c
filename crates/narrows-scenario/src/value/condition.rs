//! Conditions that assign packets to a class: `{ protocol = "udp", dscp = "ef", length = "..300 bytes" }`.

mod headers;
mod icmp;
mod parts;
mod sender;

pub(crate) use headers::{
    LINK_ADDRESS, link_address, link_address_text, link_pattern, link_pattern_text, not_here,
};
pub(crate) use parts::{code_point, party, protocol, protocol_name};

pub(crate) use crate::surroundings::Surroundings;

use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};

use narrows_core::classify::{
    Condition, Families, Fragments, HeaderCondition, LinkPattern, Prefix, TcpFlags,
};

use headers::{FRAGMENTS, HOP_LIMITS, LINK_PATTERN, VLANS};
use icmp::{ICMP, icmp_text};
use serde_json::json;

use crate::keys::compound::Group;
use crate::keys::kind::{ByHand, Choice, Given, Several, text};
use crate::keys::schema;
use crate::keys::{Keyed, Row, Tabled, row};
use crate::node::{Table, Value};
use crate::problem::Problem;
pub use sender::Sender;

/// A condition on packets. All given parts must match; a part with several values matches if one of them
/// does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// IP protocol numbers.
    pub protocols: Vec<u8>,
    /// Types of ICMP and ICMPv6 in the upper byte, codes in the lower.
    pub icmp: Vec<RangeInclusive<u16>>,
    /// Sources.
    pub sources: Vec<Party>,
    /// Destinations.
    pub destinations: Vec<Party>,
    /// Source ports.
    pub source_ports: Vec<RangeInclusive<u16>>,
    /// Destination ports.
    pub destination_ports: Vec<RangeInclusive<u16>>,
    /// Ports that match as source or destination port.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Differentiated services code points (DSCP).
    pub dscps: Vec<u8>,
    /// Values of the ECN field.
    pub ecns: Vec<u8>,
    /// Length of the IP packet in bytes.
    pub length: Option<RangeInclusive<u32>>,
    /// Network protocols: IPv4, IPv6, or neither.
    pub families: Vec<Families>,
    /// Flags of the TCP header.
    pub tcp_flags: Option<TcpFlags>,
    /// Source addresses of the link layer.
    pub link_sources: Vec<LinkPattern>,
    /// Destination addresses of the link layer.
    pub link_destinations: Vec<LinkPattern>,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limits: Vec<RangeInclusive<u8>>,
    /// VLANs of the first tag; 0 for packets without one.
    pub vlans: Vec<RangeInclusive<u16>>,
    /// Whole packets, first fragments, other fragments.
    pub fragments: Vec<Fragments>,
    /// Direction of the packets, on a shared medium.
    pub from: Option<Sender>,
}

/// Source or destination of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Party {
    /// A host of the scenario, with all its addresses.
    Host(String),
    /// Addresses with the same prefix.
    Network {
        /// The address, with zero bits after the prefix.
        ip: IpAddr,
        /// Prefix length in bits.
        prefix: u8,
    },
}

const PROTOCOL: ByHand<u8> = ByHand {
    words: || format!("{}, or a number from 0 to 255", parts::protocol_names()),
    schema: |definitions| schema::named_number(definitions),
    read: |node, _| parts::protocol(node),
    write: |number| Some(parts::named_text(parts::protocol_name(*number), *number)),
};
pub(crate) const CODE_POINT: ByHand<u8> = ByHand {
    words: || "name such as `\"ef\"`, `\"cs1\"` or `\"af41\"`, or a number from 0 to 63".into(),
    schema: |definitions| schema::named_number(definitions),
    read: |node, _| parts::code_point(node),
    write: |point| Some(parts::named_text(parts::code_point_name(*point), *point)),
};
/// RFC 3168, RFC 9331.
pub(crate) const ECN: Choice<u8> = Choice {
    what: "value of the ECN field",
    choices: &[("not-ect", 0), ("ect0", 2), ("ect1", 1), ("ce", 3)],
};
pub(crate) const FAMILY: Choice<Families> = Choice {
    what: "network protocol",
    choices: &[("ipv4", Families::IPV4), ("ipv6", Families::IPV6), ("other", Families::OTHER)],
};
const TCP_FLAGS: ByHand<TcpFlags> = ByHand {
    words: || "`\"ack\"`, or several such as `\"syn,!ack\"`".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| parts::tcp_flags(node),
    write: |flags| Some(text(parts::tcp_flags_text(*flags))),
};
const PARTY: ByHand<Party> = ByHand {
    words: || "address, network, or the name of a host".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, around| parts::party(node, around.hosts),
    write: |party| Some(text(party)),
};
const PORTS: ByHand<RangeInclusive<u16>> = ByHand {
    words: || "whole number, or a range such as `\"6000-6100\"`".into(),
    schema: parts::ports_schema,
    read: |node, _| parts::ports(node),
    write: |range| Some(parts::ports_value(range)),
};
const LENGTH: ByHand<RangeInclusive<u32>> = ByHand {
    words: || "`\"..300 bytes\"`, `\"301 bytes..\"`, `\"100..200 bytes\"` or `\"40 bytes\"`".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| parts::length(node),
    write: |range| Some(text(parts::length_text(range))),
};
const FROM: ByHand<Sender> = ByHand {
    words: || "`\"up\"`, `\"down\"` or a station".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, around| parts::sender(node, around.shared, around.stations),
    write: |sender| Some(text(sender.name())),
};

impl Keyed for Match {
    const ROWS: &'static [Row<Self>] = &[
        row!("protocol", protocols, Several(PROTOCOL), "IP protocol."),
        row!(
            "source",
            sources,
            Several(PARTY),
            "Source address or network; a host stands for all its addresses."
        ),
        row!(
            "destination",
            destinations,
            Several(PARTY),
            "Destination address or network; a host stands for all its addresses."
        ),
        row!(
            "source-port",
            source_ports,
            Several(PORTS),
            "Source port, for TCP, UDP, SCTP, DCCP and UDP-Lite."
        ),
        row!("destination-port", destination_ports, Several(PORTS), "Destination port."),
        row!("port", ports, Several(PORTS), "Source or destination port."),
        row!(
            "icmp-type",
            icmp,
            Several(ICMP),
            "Type of ICMP or ICMPv6, or type and code; a later fragment has type 0 and code 0."
        ),
        row!("dscp", dscps, Several(CODE_POINT), "Differentiated services code point."),
        row!("ecn", ecns, Several(ECN), "ECN field (RFC 3168)."),
        row!(
            "length",
            length,
            Given(LENGTH),
            "IP packet length, both ends included. A unit after the second number applies to both."
        ),
        row!(
            "family",
            families,
            Several(FAMILY),
            "Network protocol: IPv4, IPv6, or neither of them, such as ARP."
        ),
        row!(
            "tcp-flags",
            tcp_flags,
            Given(TCP_FLAGS),
            "TCP flags that are set or, after `!`, not set: `fin`, `syn`, `rst`, `psh`, `ack`, `urg`, `ece`, `cwr`."
        ),
        row!(
            "link-source",
            link_sources,
            Several(LINK_PATTERN),
            "Source MAC address, or with a mask several: `\"02:00:00:00:00:00/24\"`, `\"01:00:00:00:00:00/01:00:00:00:00:00\"`. Not for classes of a delay. Generated packets have none."
        ),
        row!(
            "link-destination",
            link_destinations,
            Several(LINK_PATTERN),
            "Destination MAC address, likewise."
        ),
        row!(
            "hop-limit",
            hop_limits,
            Several(HOP_LIMITS),
            "IPv4 TTL or IPv6 hop limit on arrival at the link; not for classes of a delay."
        ),
        row!(
            "vlan",
            vlans,
            Several(VLANS),
            "VLAN of the first tag on arrival at the link, from 1 to 4095, or 0 for packets without a tag; not for classes of a delay."
        ),
        row!(
            "fragment",
            fragments,
            Several(FRAGMENTS),
            "Whether the packet is a fragment of IP: `none` for whole packets; not for classes of a delay."
        ),
        row!(
            "from",
            from,
            Given(FROM),
            "Direction on a shared medium, or the host that sends on a medium of [several links](#stations-on-one-medium)."
        ),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        if table.iter().next().is_some() {
            return Ok(());
        }
        Err(Problem::new("found a table, expected a condition")
            .at(place)
            .help("a class without `match` takes all other packets; it must be last"))
    }
}

impl Match {
    pub(crate) const FORM: Group<Self> = Group::new(
        "Match",
        "Condition on a packet: all of these.",
        "{ protocol = \"udp\", destination-port = 5060 }",
    );

    /// As written in a file.
    pub(crate) fn value(&self) -> Value {
        Value::Table(self.to_table())
    }

    /// The engine's condition. `addresses` looks up the addresses of a host.
    pub(crate) fn condition(&self, addresses: &dyn Fn(&str) -> Vec<IpAddr>) -> Condition {
        let prefixes =
            |parties: &[Party]| parties.iter().flat_map(|party| party.prefixes(addresses)).collect();
        Condition {
            sources: prefixes(&self.sources),
            destinations: prefixes(&self.destinations),
            source_ports: self.source_ports.clone(),
            destination_ports: self.destination_ports.clone(),
            ports: self.ports.clone(),
            protocols: self.protocols.clone(),
            icmp: self.icmp.clone(),
            dscps: (!self.dscps.is_empty()).then(|| self.dscps.iter().fold(0, |set, point| set | 1 << point)),
            ecns: (!self.ecns.is_empty()).then(|| self.ecns.iter().fold(0, |set, field| set | 1 << field)),
            lengths: self.length.clone(),
            families: self.families.iter().copied().reduce(Families::or),
            tcp_flags: self.tcp_flags,
            lane: self.from.as_ref().map(Sender::lanes),
            headers: self.headers().map(Box::new),
        }
    }

    /// The part of the condition that is not about flow keys.
    pub(crate) fn headers(&self) -> Option<HeaderCondition> {
        let headers = HeaderCondition {
            link_sources: self.link_sources.clone(),
            link_destinations: self.link_destinations.clone(),
            hop_limits: self.hop_limits.clone(),
            vlans: self.vlans.clone(),
            fragments: self.fragments.iter().copied().reduce(Fragments::or),
        };
        (headers != HeaderCondition::default()).then_some(headers)
    }

    /// A condition for comparisons before addresses are known: hosts are distinct, have addresses of both
    /// families, and belong to no network except that of all addresses.
    pub(crate) fn symbolic(&self, hosts: &[String]) -> Condition {
        self.condition(&|name| {
            // Neither is the address of a host: 240.0.0.0/4 is reserved (RFC 1112), 100::/64 is the discard
            // prefix (RFC 6666).
            let number = hosts.iter().position(|host| host == name).map_or(0, |at| at as u32 + 1);
            let v6 = (0x0100u128 << 112) | u128::from(number);
            vec![IpAddr::V4((0xf000_0000 | number & 0xff_ffff).into()), IpAddr::V6(v6.into())]
        })
    }
}

impl Party {
    fn prefixes(&self, addresses: &dyn Fn(&str) -> Vec<IpAddr>) -> Vec<Prefix> {
        match self {
            Self::Network { ip, prefix } => vec![mapped(*ip, *prefix)],
            Self::Host(name) => {
                let all = addresses(name);
                if all.is_empty() {
                    // No packet has this source address, so that a host without a link matches no packet.
                    return vec![Prefix::new([0xff; 16], 128)];
                }
                all.into_iter().map(|ip| mapped(ip, if ip.is_ipv4() { 32 } else { 128 })).collect()
            }
        }
    }
}

fn mapped(ip: IpAddr, prefix: u8) -> Prefix {
    match ip {
        IpAddr::V4(ip) => Prefix::new(ip.to_ipv6_mapped().octets(), 96 + prefix),
        IpAddr::V6(ip) => Prefix::new(ip.octets(), prefix),
    }
}

/// As written in a file: a name, an address or a network.
impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host(name) => f.write_str(name),
            Self::Network { ip, prefix } if *prefix == if ip.is_ipv4() { 32 } else { 128 } => ip.fmt(f),
            Self::Network { ip, prefix } => write!(f, "{ip}/{prefix}"),
        }
    }
}

/// One line, for display.
impl std::fmt::Display for Match {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all: Vec<String> = Vec::new();
        let mut add = |name: &str, items: Vec<String>| {
            if !items.is_empty() {
                all.push(format!("{name}{}", items.join(" or ")));
            }
        };
        let parties = |parties: &[Party]| parties.iter().map(Party::to_string).collect::<Vec<_>>();
        let ports = |ranges: &[RangeInclusive<u16>]| ranges.iter().map(parts::ports_text).collect::<Vec<_>>();
        let protocol = |number: &u8| {
            parts::protocol_name(*number).map_or_else(|| format!("protocol {number}"), Into::into)
        };
        let point = |point: &u8| parts::code_point_name(*point).map_or_else(|| point.to_string(), Into::into);
        add("", self.protocols.iter().map(protocol).collect());
        add("ICMP type ", self.icmp.iter().map(icmp_text).collect());
        add("from ", parties(&self.sources));
        add("to ", parties(&self.destinations));
        add("source port ", ports(&self.source_ports));
        add("destination port ", ports(&self.destination_ports));
        add("port ", ports(&self.ports));
        add("dscp ", self.dscps.iter().map(point).collect());
        let field = |field: &u8| ECN.name(field).to_owned();
        add("ecn ", self.ecns.iter().map(field).collect());
        add("", self.length.iter().map(parts::length_words).collect());
        let family = |family: &Families| FAMILY.name(family).to_owned();
        add(
            "",
            self.families
                .iter()
                .map(|one| if *one == Families::OTHER { "neither IPv4 nor IPv6".into() } else { family(one) })
                .collect(),
        );
        add("TCP flags ", self.tcp_flags.iter().map(|flags| parts::tcp_flags_text(*flags)).collect());
        add("from MAC ", self.link_sources.iter().map(link_pattern_text).collect());
        add("to MAC ", self.link_destinations.iter().map(link_pattern_text).collect());
        add("hop limit ", self.hop_limits.iter().map(headers::hop_limits_text).collect());
        add("VLAN ", self.vlans.iter().map(parts::ports_text).collect());
        let fragment = |one: &Fragments| {
            FRAGMENTS.choices.iter().find(|(_, known)| known == one).map_or("", |(name, _)| name)
        };
        add("fragment ", self.fragments.iter().map(|one| fragment(one).to_owned()).collect());
        let (from, going) = match &self.from {
            Some(Sender::Way(way)) => (None, Some(way.name().to_owned())),
            Some(Sender::Station { name, .. }) => (Some(name.clone()), None),
            None => (None, None),
        };
        add("sent by ", from.into_iter().collect());
        add("going ", going.into_iter().collect());
        f.write_str(&all.join(", "))
    }
}
