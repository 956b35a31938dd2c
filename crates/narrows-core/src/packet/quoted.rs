//! The packet that an ICMP error quotes.

use core::net::Ipv4Addr;

/// The flow of the IPv4 packet that an ICMP error quotes, for address translation. Packets do not have it:
/// [`Engine::set_quoted`](crate::Engine::set_quoted).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// The IP protocol.
    pub protocol: u8,
    /// The address and port of its sender. The ports of an echo of ICMP are its identifier, both of
    /// them; those of protocols without ports are 0.
    pub source: (Ipv4Addr, u16),
    /// The address and port of its receiver.
    pub destination: (Ipv4Addr, u16),
}
