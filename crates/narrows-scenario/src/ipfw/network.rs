//! The keys of tables: networks, numbers, link addresses and interfaces.

use std::net::{IpAddr, Ipv4Addr};

use narrows_core::classify::Prefix;
use narrows_core::rules::{Side, SpecialKey};

use super::address::{self, Context, Family};
use super::lexer::Word;
use super::numbers;
use super::text::link_address;
use crate::problem::{Found, Problem};

/// A key of a table: a network, or a [`SpecialKey`]. IPv4 is stored as IPv4-mapped IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    /// The address, with zero bits after the prefix.
    pub address: u128,
    /// Prefix length, of 128 bits.
    pub bits: u8,
}

/// As written: `10.0.0.0/8`, `02:00:00:00:00:01`, `em0`.
impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.special() {
            Some(SpecialKey::LinkAddress { address, bits }) => {
                let [mask @ .., _, _] = u64::MAX.to_be_bytes();
                f.write_str(&link_address(address, mask))?;
                return if bits < 48 { write!(f, "/{bits}") } else { Ok(()) };
            }
            Some(SpecialKey::Interface { name, .. }) => return f.write_str(&name),
            None => {}
        }
        let v6 = std::net::Ipv6Addr::from(self.address);
        match v6.to_ipv4_mapped().filter(|_| self.bits >= 96) {
            Some(v4) => write!(f, "{v4}/{}", self.bits - 96),
            None => write!(f, "{v6}/{}", self.bits),
        }
    }
}

impl Network {
    fn special(self) -> Option<SpecialKey> {
        SpecialKey::of(Prefix::new(self.address.to_be_bytes(), self.bits))
    }

    /// The key in the engine.
    fn of(prefix: Prefix) -> Self {
        Self { address: u128::from_be_bytes(prefix.address()), bits: prefix.bits() }
    }

    /// As written in a scenario, where an interface is at the first or the second host of the link, or at neither:
    /// `em0@first`.
    pub fn in_scenario(&self) -> String {
        match self.special() {
            Some(SpecialKey::Interface { side, name }) => format!("{name}@{}", side_name(side)),
            _ => self.to_string(),
        }
    }

    /// Parses an interface or a link address as a scenario has them; `None` if it is neither.
    pub(crate) fn from_scenario(text: &str) -> Option<Self> {
        if let Some((name, side)) = text.rsplit_once('@') {
            let side = SIDES.iter().find(|(_, word)| *word == side)?.0;
            return SpecialKey::Interface { side, name: name.into() }.prefix().map(Self::of);
        }
        let word = Word { text: text.into(), span: 0..text.len() };
        link_key(&word).ok()?
    }

    /// The type of a table with such keys.
    pub(super) fn kind(&self) -> &'static str {
        match self.special() {
            Some(SpecialKey::LinkAddress { .. }) => "mac",
            Some(SpecialKey::Interface { .. }) => "iface",
            None => "addr",
        }
    }

    /// Whether it is an interface that no packet passes.
    pub(crate) fn is_elsewhere(&self) -> bool {
        matches!(self.special(), Some(SpecialKey::Interface { side: Side::Elsewhere, .. }))
    }

    /// The same interface at the other places where it may be. Empty for other keys.
    pub(crate) fn elsewhere(&self) -> Vec<Self> {
        let Some(SpecialKey::Interface { name, .. }) = self.special() else { return Vec::new() };
        let at = |(side, _): &(Side, _)| SpecialKey::Interface { side: *side, name: name.clone() }.prefix();
        SIDES.iter().filter_map(at).map(Self::of).filter(|other| other != self).collect()
    }
}

const SIDES: &[(Side, &str)] =
    &[(Side::Inside, "first"), (Side::Outside, "second"), (Side::Elsewhere, "neither")];

fn side_name(side: Side) -> &'static str {
    SIDES.iter().find(|(one, _)| *one == side).map_or("neither", |(_, word)| word)
}

/// Parses the key of an entry of this table.
pub(super) fn key(
    table: &str,
    word: &Word,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<Network, Problem> {
    if let Some(key) = link_key(word)? {
        return Ok(key);
    }
    if word.text.contains('@')
        && let Some(key) = Network::from_scenario(&word.text)
    {
        return Ok(key);
    }
    let is = |names: &[&str]| names.contains(&word.text.as_str());
    let side = match (is(context.interfaces), is(context.outside)) {
        (true, _) => Side::Inside,
        (_, true) => Side::Outside,
        _ if context.interface_tables.iter().any(|one| one == table) => Side::Elsewhere,
        _ => return network(word, context, remarks),
    };
    let name = word.text.clone();
    let key = SpecialKey::Interface { side, name }.prefix().map(Network::of);
    let key = key.ok_or_else(|| word.expected("the name of an interface, of 1 to 15 characters"))?;
    if side == Side::Elsewhere {
        remarks.push(format!("no interface {}: its entry matches no packet", Found(&word.text)));
    }
    Ok(key)
}

/// Parses a link address, with or without bits; `None` if it is something else.
fn link_key(word: &Word) -> Result<Option<Network>, Problem> {
    let (address, bits) = match word.text.split_once('/') {
        Some((address, bits)) => (word.part(address), Some(word.part(bits))),
        None => (word.clone(), None),
    };
    let Ok(mut address) = address::six_bytes(&address) else { return Ok(None) };
    let bits = bits.map_or(Ok(48), |bits| numbers::decimal(&bits, "a number of bits", 0..=48))?;
    let [mask @ .., _, _] = u64::MAX.checked_shl(64 - bits).unwrap_or(0).to_be_bytes();
    address.iter_mut().zip(mask).for_each(|(byte, mask)| *byte &= mask);
    let key = SpecialKey::LinkAddress { address, bits: bits as u8 }; // at most 48
    Ok(key.prefix().map(Network::of))
}

/// Parses `a`, or `a/len`; or a number as an address with these bits, as in C's inet_aton: `lookup` uses
/// such keys for ports and code points.
fn network(word: &Word, context: &Context<'_>, remarks: &mut Vec<String>) -> Result<Network, Problem> {
    let (host, bits) = match word.text.split_once('/') {
        Some((host, bits)) => (word.part(host), Some(word.part(bits))),
        None => (word.clone(), None),
    };
    if host.text == "any" || host.text.contains([',', '{', '(']) {
        return Err(word
            .problem(format!("{} is not an entry of a table", Found(&word.text)))
            .help("an entry is an address, a network or an interface, as in 10.0.0.1, 10.0.0.0/8 or em0"));
    }
    let address = match host.text.parse::<u32>() {
        Ok(number) if bits.is_none() => IpAddr::V4(Ipv4Addr::from_bits(number)),
        _ => address::host_address(&host, Family::V4, context, remarks)?,
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        Some(bits) => numbers::decimal(&bits, "a number of bits", 0..=most)?,
        None => most,
    };
    let bits = (bits + 128 - most) as u8; // at most 128
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    Ok(Network { address: address::mapped(address) & mask, bits })
}
