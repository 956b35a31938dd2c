//! What rules attach to a packet.

use alloc::vec::Vec;

/// What rules attach to a packet, and later rules test. It stays with the packet until the packet leaves the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Its tags, without duplicates.
    pub tags: Vec<u16>,
    /// Its mark; 0 if none is set.
    pub mark: u32,
    /// The number of its routing table; 0 if none is set. Only rules look at it.
    pub fib: u16,
    /// The address that the next router sends it towards, instead of its destination.
    pub next_hop: Option<[u8; 16]>,
}
