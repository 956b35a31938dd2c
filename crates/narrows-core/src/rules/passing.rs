//! A packet passed through the rules.

use crate::labels::Labels;
use crate::packet::{FlowKey, Headers, Quoted};
use crate::random::{Draw, Stream};

/// A packet passed through the rules.
pub struct Passing<'a> {
    /// The flow key. `setdscp` changes its code point, `nat` its addresses and ports.
    pub key: &'a mut FlowKey,
    /// The flow key of the whole packet, if this is a fragment cut inside the network: translation changes it, too.
    pub whole: Option<&'a mut FlowKey>,
    /// The flow of the packet that an ICMP error quotes, if it is known.
    pub quoted: Option<&'a mut Quoted>,
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
