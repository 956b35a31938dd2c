//! Flow masks: which header bits distinguish flows.
//!
//! A mask is ANDed with addresses, ports, protocol, IPv6 flow label and queue number. Packets with the same result
//! belong to one flow (ipfw(8), "mask-specifier"). Masks of IPv4 addresses apply to IPv4 packets only; masks of IPv6
//! addresses and of the flow label apply to IPv6 packets only. If an address is masked, IPv4 and IPv6 packets never
//! share a flow.
//!
//! ```
//! use narrows_core::classify::FlowMask;
//! use narrows_core::{FlowKey, Headers, Protocol};
//!
//! let of = |last| FlowKey {
//!     source: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 1, last],
//!     network: Protocol::Ipv4,
//!     ..FlowKey::default()
//! };
//! let mask = FlowMask { source_v4: 0xff, ..FlowMask::NONE };
//! assert_eq!(mask.flow(&of(7), 0), mask.flow(&FlowKey { destination_port: 80, ..of(7) }, 0));
//! assert_ne!(mask.flow(&of(7), 0), mask.flow(&of(8), 0));
//! ```

use crate::packet::{FlowKey, Protocol};

/// The header bits that distinguish flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowMask {
    /// Bits of the IPv4 source address.
    pub source_v4: u32,
    /// Bits of the IPv4 destination address.
    pub destination_v4: u32,
    /// Bits of the IPv6 source address.
    pub source_v6: u128,
    /// Bits of the IPv6 destination address.
    pub destination_v6: u128,
    /// Bits of the source port.
    pub source_port: u16,
    /// Bits of the destination port.
    pub destination_port: u16,
    /// Bits of the protocol number.
    pub protocol: u8,
    /// Bits of the IPv6 flow label (20 bits).
    pub flow_label: u32,
    /// Whether the number of the queue through which a packet came distinguishes flows.
    pub queue: bool,
}

/// A flow: the masked header of its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// The source address. IPv4 is mapped into IPv6 if the mask has any bit of it.
    pub source: u128,
    /// The destination address.
    pub destination: u128,
    /// The IPv6 flow label.
    pub flow_label: u32,
    /// The queue number, [`FlowKey::mark`].
    pub queue: u32,
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// The protocol number.
    pub protocol: u8,
}

/// Maps IPv4 addresses into IPv6.
const MAPPED: u128 = 0xffff_0000_0000;

impl FlowMask {
    /// No bit: all packets are one flow.
    pub const NONE: Self = Self {
        source_v4: 0,
        destination_v4: 0,
        source_v6: 0,
        destination_v6: 0,
        source_port: 0,
        destination_port: 0,
        protocol: 0,
        flow_label: 0,
        queue: false,
    };

    /// Every bit, without the queue number.
    pub const ALL: Self = Self {
        source_v4: u32::MAX,
        destination_v4: u32::MAX,
        source_v6: u128::MAX,
        destination_v6: u128::MAX,
        source_port: u16::MAX,
        destination_port: u16::MAX,
        protocol: u8::MAX,
        flow_label: 0xf_ffff,
        queue: false,
    };

    /// Whether no bit is set.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// The union of both masks.
    pub const fn or(self, other: Self) -> Self {
        Self {
            source_v4: self.source_v4 | other.source_v4,
            destination_v4: self.destination_v4 | other.destination_v4,
            source_v6: self.source_v6 | other.source_v6,
            destination_v6: self.destination_v6 | other.destination_v6,
            source_port: self.source_port | other.source_port,
            destination_port: self.destination_port | other.destination_port,
            protocol: self.protocol | other.protocol,
            flow_label: self.flow_label | other.flow_label,
            queue: self.queue | other.queue,
        }
    }

    /// The flow of a packet.
    #[inline]
    pub fn flow(&self, key: &FlowKey, flow_label: u32) -> Flow {
        let mapped = |address: [u8; 16], mask: u32| match mask {
            0 => 0,
            mask => u128::from_be_bytes(address) & u128::from(mask) | MAPPED,
        };
        let (source, destination, flow_label) = match key.network {
            Protocol::Other => (0, 0, 0),
            Protocol::Ipv4 | Protocol::Ipv4DontFragment => {
                (mapped(key.source, self.source_v4), mapped(key.destination, self.destination_v4), 0)
            }
            Protocol::Ipv6 => (
                u128::from_be_bytes(key.source) & self.source_v6,
                u128::from_be_bytes(key.destination) & self.destination_v6,
                flow_label & self.flow_label,
            ),
        };
        Flow {
            source,
            destination,
            flow_label,
            queue: if self.queue { key.mark } else { 0 },
            source_port: key.source_port & self.source_port,
            destination_port: key.destination_port & self.destination_port,
            protocol: key.transport & self.protocol,
        }
    }
}
