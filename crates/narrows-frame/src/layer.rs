//! The link layer: what precedes the network header.

use std::fmt;

/// How a frame begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum LinkLayer {
    /// Ethernet II or IEEE 802.3, with any VLAN tags, without a frame check sequence.
    #[default]
    Ethernet,
    /// Starts with the IPv4 or IPv6 header: a TUN device, a capture without link headers.
    Ip,
    /// The 16-byte header of Linux cooked captures, version 1.
    LinuxCooked,
    /// The 20-byte header of Linux cooked captures, version 2.
    LinuxCooked2,
}

impl LinkLayer {
    /// The layer for a LINKTYPE number of a capture file, if supported.
    pub const fn from_link_type(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            // 101 is LINKTYPE_RAW; 228 and 229 are its variants for a single IP version; 12 is what some systems
            // wrote before RAW had its own number.
            12 | 101 | 228 | 229 => Some(Self::Ip),
            113 => Some(Self::LinuxCooked),
            276 => Some(Self::LinuxCooked2),
            _ => None,
        }
    }

    /// The LINKTYPE number in capture files.
    pub const fn link_type(self) -> u32 {
        match self {
            Self::Ethernet => 1,
            Self::Ip => 101,
            Self::LinuxCooked => 113,
            Self::LinuxCooked2 => 276,
        }
    }
}

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The broadcast address.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether it is a group address: multicast or broadcast.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
