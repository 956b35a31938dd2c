//! A cache of search results for the last packets of some thousand flows.

use alloc::boxed::Box;
use alloc::vec;

use super::Found;
use super::address::{Address, Words};
use super::filter::View;

/// Rows of two flows each, the newer one first. A new flow in a full row replaces the older one.
///
/// A result is cached only if the search tested nothing beyond what a [`View`] contains.
#[derive(Clone, Debug)]
pub(super) struct Cache<A: Address> {
    rows: Box<[[Entry<A>; 2]]>,
}

#[derive(Clone, Copy, Debug)]
struct Entry<A: Address> {
    packet: (A::Hosts, u64),
    ports: u32,
    last: u32,
    found: [Found; 2],
}

/// 4,096 flows: 128 KiB for IPv4, 256 KiB for IPv6.
const ROWS: usize = 2_048;

impl<A: Address> Cache<A> {
    pub(super) fn new() -> Self {
        // No packet is of that kind.
        let packet = (A::both(A::default(), A::default()), u64::MAX);
        let none = Entry { packet, ports: 0, last: 0, found: [Found::NONE; 2] };
        Self { rows: vec![[none; 2]; ROWS].into() }
    }

    /// What was found for packets of this flow, and the rule at which the search ended.
    #[inline]
    pub(super) fn get(&self, packet: &View<A>) -> Option<(u32, [Found; 2])> {
        let (what, ports) = packet.all();
        let row = &self.rows[row(what, ports)];
        let entry = row.iter().find(|entry| (entry.packet == what) & (entry.ports == ports))?;
        Some((entry.last, entry.found))
    }

    /// Stores what was found, if it is short enough.
    pub(super) fn put(&mut self, packet: &View<A>, last: u32, found: &[Found]) {
        let found = match *found {
            [] => [Found::NONE; 2],
            [one] => [one, Found::NONE],
            [one, other] => [one, other],
            _ => return,
        };
        let (what, ports) = packet.all();
        let row = &mut self.rows[row(what, ports)];
        *row = [Entry { packet: what, ports, last, found }, row[0]];
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.rows)
    }
}

/// Multiplication by odd numbers without a pattern mixes into the upper bits.
#[inline]
fn row<H: Into<Words>>((hosts, kind): (H, u64), ports: u32) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let Words(hosts) = hosts.into();
    let mixed = (hosts ^ u64::from(ports) << 16 ^ kind << 7).wrapping_mul(SPREAD);
    ((mixed ^ mixed >> 32).wrapping_mul(SPREAD) >> (u64::BITS - ROWS.ilog2())) as usize
}
