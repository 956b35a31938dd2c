//! Keys of tables that are not IP addresses: link addresses and interfaces (ipfw(8), table types `mac` and `iface`).
//!
//! They lie in 0400::/6, which the IETF reserves and nobody assigns, so a table holds them among its addresses:
//!
//! ```text
//! link address  04, nine bytes of zeros, the six bytes of the address: a prefix of 80 bits or more
//! interface     05 inside, 06 outside, 07 elsewhere; then its name, filled up with zeros: a prefix of 128 bits
//! ```

use alloc::string::{String, ToString};

use crate::classify::Prefix;
use crate::packet::LinkAddress;

/// Where an interface is, as seen from rules between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// At the first end: packets of the first lane leave by it.
    Inside,
    /// At the second end: packets of the first lane arrive by it.
    Outside,
    /// On neither: no packet passes it.
    Elsewhere,
}

/// A key that is not an IP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecialKey {
    /// The first bits of a link address.
    LinkAddress {
        /// The address, 0 after these bits.
        address: LinkAddress,
        /// The number of bits, at most 48.
        bits: u8,
    },
    /// An interface.
    Interface {
        /// Where it is.
        side: Side,
        /// Its name, 1 to 15 bytes of printable ASCII.
        name: String,
    },
}

const LINK_ADDRESS: u8 = 4;
const INTERFACE: u8 = 5;
/// The bits before a link address.
const BEFORE: u8 = 80;
/// The longest name, as in FreeBSD and Linux.
const MOST_NAME: usize = 15;

impl SpecialKey {
    /// The key in a table. `None` if the name is not that of an interface, or there are too many bits.
    pub fn prefix(&self) -> Option<Prefix> {
        let mut key = [0; 16];
        match self {
            Self::LinkAddress { address, bits } => {
                key[0] = LINK_ADDRESS;
                key[10..].copy_from_slice(address);
                (*bits <= 48).then(|| Prefix::new(key, BEFORE + bits))
            }
            Self::Interface { side, name } => {
                let is_name =
                    (1..=MOST_NAME).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_graphic());
                key[0] = INTERFACE + *side as u8;
                key.get_mut(1..=name.len())?.copy_from_slice(name.as_bytes());
                is_name.then(|| Prefix::new(key, 128))
            }
        }
    }

    /// The key that a prefix stands for. `None` if it is one of addresses.
    pub fn of(prefix: Prefix) -> Option<Self> {
        let (key, bits) = (prefix.address(), prefix.bits());
        match key {
            [LINK_ADDRESS, zeros @ .., a, b, c, d, e, f] if bits >= BEFORE && zeros == [0; 9] => {
                Some(Self::LinkAddress { address: [a, b, c, d, e, f], bits: bits - BEFORE })
            }
            [tag @ 5..=7, name @ ..] if bits == 128 => {
                let name = name.split(|&c| c == 0).next().filter(|name| !name.is_empty())?;
                let name = core::str::from_utf8(name).ok()?.to_string();
                Some(Self::Interface { side: side(tag)?, name })
            }
            _ => None,
        }
    }
}

/// The side of a key of an interface.
pub(super) fn side_of(prefix: Prefix) -> Option<Side> {
    if prefix.bits() == 128 { side(prefix.address()[0]) } else { None }
}

const fn side(tag: u8) -> Option<Side> {
    match tag {
        5 => Some(Side::Inside),
        6 => Some(Side::Outside),
        7 => Some(Side::Elsewhere),
        _ => None,
    }
}

/// The key of a packet's link address.
pub(in crate::rules) fn link_key(address: LinkAddress) -> [u8; 16] {
    let mut key = [0; 16];
    key[0] = LINK_ADDRESS;
    key[10..].copy_from_slice(&address);
    key
}
