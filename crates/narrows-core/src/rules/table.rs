//! Tables of addresses: an address gets the value of its longest matching prefix (ipfw(8), "LOOKUP TABLES").

mod blocks;
mod change;
mod flows;
mod iter;
mod key;
mod lpm;
mod node;
mod special;
#[cfg(test)]
mod tests;
mod trie;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::classify::Prefix;

use flows::Flows;
pub use flows::{FlowEntry, FlowFields};
pub use iter::{Matches, Prefixes};
pub use lpm::Lpm;
pub(super) use special::link_key;
pub use special::{Side, SpecialKey};

/// A table: a number for each prefix or [`SpecialKey`], or for each flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    entries: Lpm<u32>,
    /// Those entries that are interfaces, in order. They are few.
    interfaces: Vec<(Side, Prefix, u32)>,
    /// Of a table of flows, its only entries.
    flows: Option<Box<Flows>>,
}

impl Table {
    /// An empty table.
    pub const fn new() -> Self {
        Self { entries: Lpm::new(), interfaces: Vec::new(), flows: None }
    }

    /// An empty table of flows.
    pub fn of_flows(fields: FlowFields) -> Self {
        Self { flows: Some(Flows::new(fields)), ..Self::new() }
    }

    /// What a table of flows compares.
    pub fn flow_fields(&self) -> Option<FlowFields> {
        self.flows.as_ref().map(|flows| flows.fields)
    }

    /// Sets the value of a flow. Returns the previous value. Has no effect in other tables.
    pub fn insert_flow(&mut self, flow: FlowEntry, value: u32) -> Option<u32> {
        let flows = self.flows.as_mut()?;
        flows.entries.insert(flow.only(flows.fields), value)
    }

    /// Removes a flow. Returns its value.
    pub fn remove_flow(&mut self, flow: FlowEntry) -> Option<u32> {
        let flows = self.flows.as_mut()?;
        flows.entries.remove(&flow.only(flows.fields))
    }

    /// The value of a flow. `None` in a table of other keys.
    pub fn lookup_flow(&self, flow: FlowEntry) -> Option<u32> {
        self.flows.as_ref()?.lookup(flow)
    }

    /// All flows, in order.
    pub fn flows(&self) -> impl Iterator<Item = (FlowEntry, u32)> {
        let entries = self.flows.iter().flat_map(|flows| &flows.entries);
        entries.map(|(flow, value)| (*flow, *value))
    }

    /// Sets the value of a prefix. Returns the previous value.
    pub fn insert(&mut self, prefix: Prefix, value: u32) -> Option<u32> {
        if let Some(side) = special::side_of(prefix) {
            self.forget_interface(prefix);
            let key = (side, prefix, value);
            let at =
                self.interfaces.partition_point(|one| (one.0, one.1.address()) < (side, prefix.address()));
            self.interfaces.insert(at, key);
        }
        self.entries.insert(prefix, value)
    }

    /// Removes a prefix. Returns its value.
    pub fn remove(&mut self, prefix: Prefix) -> Option<u32> {
        self.forget_interface(prefix);
        self.entries.remove(prefix)
    }

    fn forget_interface(&mut self, prefix: Prefix) {
        self.interfaces.retain(|one| one.1 != prefix);
    }

    /// The value of the first interface, by name, on this side whose value is accepted.
    pub fn interface(&self, side: Side, accepts: impl Fn(u32) -> bool) -> Option<u32> {
        let mut values = self.interfaces.iter().filter(|one| one.0 == side).map(|one| one.2);
        values.find(|&value| accepts(value))
    }

    /// The value of exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<u32> {
        self.entries.get(prefix).copied()
    }

    /// The value of the longest prefix that contains an address.
    #[inline]
    pub fn lookup(&self, address: [u8; 16]) -> Option<u32> {
        self.entries.lookup(address).copied()
    }

    /// All entries but flows, IPv4 first, ordered by address, and for the same address from the shortest prefix to the longest.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Prefix, u32)> {
        self.entries.iter().map(|(prefix, &value)| (prefix, value))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len() + self.flows.as_ref().map_or(0, |flows| flows.entries.len())
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all entries. A table of flows stays one.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.interfaces.clear();
        self.flows.iter_mut().for_each(|flows| flows.entries.clear());
    }

    /// Memory in bytes: see [`Lpm`].
    pub fn bytes(&self) -> usize {
        let flows = self.flows.as_ref().map_or(0, |flows| flows.entries.len());
        self.entries.bytes() + flows * size_of::<(FlowEntry, u32)>()
    }
}

impl FromIterator<(Prefix, u32)> for Table {
    fn from_iter<I: IntoIterator<Item = (Prefix, u32)>>(entries: I) -> Self {
        let mut table = Self::new();
        for (prefix, value) in entries {
            table.insert(prefix, value);
        }
        table
    }
}
