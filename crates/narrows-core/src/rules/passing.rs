//! A packet that meets the rules.

use alloc::vec::Vec;

use crate::packet::{FlowKey, Headers};
use crate::random::{Draw, Stream};

/// A packet that meets the rules.
pub struct Passing<'a> {
    /// What tells flows apart. `setdscp` changes the code point here.
    pub key: &'a mut FlowKey,
    /// Other header fields.
    pub headers: &'a Headers,
    /// Bytes from the network header on.
    pub length: u32,
    /// Bytes of link header; 0 without a link layer.
    pub link_header: u8,
    /// Whether it comes from outside, "in", or goes there, "out".
    pub incoming: bool,
    /// Its tags, each once.
    pub tags: &'a mut Vec<u16>,
    /// Gives the packet's draws of a stream: the same ones whenever it is asked during one walk.
    pub draw: &'a mut dyn FnMut(&Stream) -> Draw,
}
