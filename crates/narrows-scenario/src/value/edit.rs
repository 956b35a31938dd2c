//! What a filter writes into packets: `{ dscp = "ef", destination-port = 8080 }`.

use std::net::IpAddr;
use std::ops::Range;

use narrows_core::{HeaderChange, LinkAddress};
use serde_json::json;

use crate::keys::compound::Group;
use crate::keys::kind::{Boolean, ByHand, Given, Integer, text};
use crate::keys::{Keyed, Row, row};
use crate::node::Table;
use crate::problem::Problem;
use crate::value::condition::{CODE_POINT, ECN, LINK_ADDRESS, link_address_text};

/// Header fields to write; those that are `None` stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditUse {
    /// Whether the link addresses change places, after they are written.
    pub swap: bool,
    /// Source address of the link layer.
    pub link_source: Option<LinkAddress>,
    /// Destination address of the link layer.
    pub link_destination: Option<LinkAddress>,
    /// EtherType of the payload.
    pub ether_type: Option<u16>,
    /// The VLAN of a tag; 0 takes the tag off.
    pub vlan: Option<u16>,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limit: Option<u8>,
    /// Differentiated services code point.
    pub dscp: Option<u8>,
    /// ECN field.
    pub ecn: Option<u8>,
    /// Whether ECN-capable packets are marked.
    pub mark: bool,
    /// Source address.
    pub source: Option<IpAddr>,
    /// Destination address.
    pub destination: Option<IpAddr>,
    /// Source port.
    pub source_port: Option<u16>,
    /// Destination port.
    pub destination_port: Option<u16>,
}

const ADDRESS: ByHand<IpAddr> = ByHand {
    words: || "IP address".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| {
        let written = node.text("an IP address")?.trim();
        written.parse().map_err(|_| node.expected("an IP address, such as \"10.0.0.1\" or \"fd00::1\""))
    },
    write: |address| Some(text(address)),
};
const PORT: Integer = Integer { what: "a port", low: 0, high: 65_535 };

pub(super) const EDIT: Group<EditUse> = Group::new(
    "Edit",
    "Header fields to write; the others stay.",
    "{ dscp = \"ef\", destination-port = 8080 }",
);

impl Keyed for EditUse {
    const ROWS: &'static [Row<Self>] = &[
        row!("swap-link-addresses", swap, Boolean, "Source and destination MAC address change places, after they are written."),
        row!("link-source", link_source, Given(LINK_ADDRESS), "Source MAC address.").default("unchanged"),
        row!(
            "link-destination",
            link_destination,
            Given(LINK_ADDRESS),
            "Destination MAC address, except of multicast and broadcast. A router on the way writes its own."
        )
        .default("unchanged"),
        row!(
            "ether-type",
            ether_type,
            Given(Integer { what: "an EtherType", low: 0x600, high: 0xffff }),
            "EtherType of the payload. The network goes on to treat the packet by its network header."
        )
        .default("unchanged"),
        row!(
            "vlan",
            vlan,
            Given(Integer { what: "a VLAN", low: 0, high: 4094 }),
            "VLAN of a tag that is put on an untagged packet; 0 takes the first tag off. The VLAN of a tag that is there stays."
        )
        .default("unchanged"),
        row!(
            "hop-limit",
            hop_limit,
            Given(Integer { what: "a hop limit", low: 0, high: 255 }),
            "IPv4 TTL or IPv6 hop limit."
        )
        .default("unchanged"),
        row!("dscp", dscp, Given(CODE_POINT), "Differentiated services code point.").default("unchanged"),
        row!("ecn", ecn, Given(ECN), "ECN field (RFC 3168): `\"not-ect\"` takes the capability away.").default("unchanged"),
        row!("mark", mark, Boolean, "ECN-capable packets are marked with \"congestion experienced\" (RFC 3168)."),
        row!("source", source, Given(ADDRESS), "Source address, of packets of its family.").default("unchanged"),
        row!("destination", destination, Given(ADDRESS), "Destination address, of packets of its family.")
            .default("unchanged"),
        row!("source-port", source_port, Given(PORT), "Source port of TCP, UDP, UDP-Lite and DCCP.")
            .default("unchanged"),
        row!("destination-port", destination_port, Given(PORT), "Destination port, likewise.")
            .default("unchanged"),
    ];

    fn check(&self, _: &Table, place: &Range<usize>) -> Result<(), Problem> {
        if *self != Self::default() {
            return Ok(());
        }
        Err(Problem::new("nothing to write").at(place).help("as in: { dscp = \"ef\" }"))
    }
}

impl EditUse {
    /// The engine's change.
    pub(super) fn build(&self) -> HeaderChange {
        let mapped = |address: IpAddr| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        HeaderChange {
            swaps_link_addresses: self.swap,
            link_source: self.link_source,
            link_destination: self.link_destination,
            ether_type: self.ether_type,
            vlan: self.vlan,
            hop_limit: self.hop_limit,
            dscp: self.dscp,
            ecn: self.ecn,
            marks: self.mark,
            source: self.source.map(mapped),
            destination: self.destination.map(mapped),
            source_port: self.source_port,
            destination_port: self.destination_port,
        }
    }

    /// For display.
    pub(super) fn words(&self) -> String {
        let to = |name: &str, value: Option<String>| value.map(|value| format!("{name} {value}"));
        let parts = [
            self.swap.then(|| "MAC addresses swapped".to_owned()),
            to("source MAC", self.link_source.as_ref().map(link_address_text)),
            to("destination MAC", self.link_destination.as_ref().map(link_address_text)),
            to("EtherType", self.ether_type.map(|number| format!("{number:#06x}"))),
            match self.vlan {
                Some(0) => Some("VLAN tag taken off".into()),
                vlan => to("VLAN", vlan.map(|vlan| vlan.to_string())),
            },
            to("hop limit", self.hop_limit.map(|limit| limit.to_string())),
            to("DSCP", self.dscp.map(|point| point.to_string())),
            to("ECN", self.ecn.map(|field| ECN.name(&field).to_owned())),
            self.mark.then(|| "marked if ECN-capable".to_owned()),
            to("source", self.source.map(|address| address.to_string())),
            to("destination", self.destination.map(|address| address.to_string())),
            to("source port", self.source_port.map(|port| port.to_string())),
            to("destination port", self.destination_port.map(|port| port.to_string())),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}
