//! A packet passed through the rules.

use alloc::vec::Vec;

use crate::packet::{FlowKey, Headers};
use crate::random::{Draw, Stream};

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

/// A packet passed through the rules.
pub struct Passing<'a> {
    /// The flow key. `setdscp` changes its code point.
    pub key: &'a mut FlowKey,
    /// Other header fields.
    pub headers: &'a Headers,
    /// Length in bytes from the network header on.
    pub length: u32,
    /// Bytes of link header; 0 without a link layer.
    pub link_header: u8,
    /// Whether it comes from outside ("in") or goes there ("out").
    pub incoming: bool,
    /// What rules have attached to it.
    pub labels: &'a mut Labels,
    /// Returns the packet's draws of a stream: the same draws on every call during one walk.
    pub draw: &'a mut dyn FnMut(&Stream) -> Draw,
}
