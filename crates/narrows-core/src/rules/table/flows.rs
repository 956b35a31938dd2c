//! Tables of flows (ipfw(8), table type `flow`): each entry is a value for each of the table's fields, which must all be
//! those of the packet.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// The fields of a flow that a table compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowFields {
    /// The source address.
    pub source: bool,
    /// The protocol.
    pub protocol: bool,
    /// The source port.
    pub source_port: bool,
    /// The destination address.
    pub destination: bool,
    /// The destination port.
    pub destination_port: bool,
}

/// The key of an entry. Fields that the table does not compare are 0, as are the ports of packets without ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowEntry {
    /// The source address; IPv4 is mapped into IPv6.
    pub source: u128,
    /// The destination address.
    pub destination: u128,
    /// The IP protocol.
    pub protocol: u8,
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
}

impl FlowEntry {
    /// With only these fields.
    #[must_use]
    pub const fn only(self, fields: FlowFields) -> Self {
        Self {
            source: if fields.source { self.source } else { 0 },
            destination: if fields.destination { self.destination } else { 0 },
            protocol: if fields.protocol { self.protocol } else { 0 },
            source_port: if fields.source_port { self.source_port } else { 0 },
            destination_port: if fields.destination_port { self.destination_port } else { 0 },
        }
    }
}

/// The entries of a table of flows, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flows {
    pub(super) fields: FlowFields,
    pub(super) entries: BTreeMap<FlowEntry, u32>,
}

impl Flows {
    pub(super) fn new(fields: FlowFields) -> Box<Self> {
        Box::new(Self { fields, entries: BTreeMap::new() })
    }

    pub(super) fn lookup(&self, flow: FlowEntry) -> Option<u32> {
        self.entries.get(&flow.only(self.fields)).copied()
    }
}
