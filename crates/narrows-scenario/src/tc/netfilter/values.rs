//! Networks and ranges of numbers, as rules and sets have them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use crate::dialect::{SERVICES, Word};
use crate::netem::units;
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::value::{Party, party};

/// The length of the prefix of IPv6 addresses that stand for those of IPv4.
const MAPPED: u8 = 96;

/// The numbers `A:B`, `A:`, `:B` or `A`.
pub(super) fn range(word: Word<'_>, text: &str) -> Result<RangeInclusive<u16>, Problem> {
    let number = |text: &str, usual| match text {
        "" => Some(usual),
        text => text
            .parse()
            .ok()
            .or_else(|| SERVICES.iter().find(|(name, _)| *name == text).map(|(_, port)| *port)),
    };
    let (low, high) = text.split_once(':').unwrap_or((text, text));
    match (number(low, 0), number(high, u16::MAX)) {
        (Some(low), Some(high)) if low <= high && !text.is_empty() => Ok(low..=high),
        _ => Err(word
            .problem(format!("{} is not a number, and no range of numbers", Found(text)))
            .help("understood: numbers, and names of well-known services such as `http`")),
    }
}

/// A mark and its mask: `10`, `0x10/0xff`. Without a mask, all bits count.
pub(super) fn mark_and_mask(word: Word<'_>) -> Result<(u32, u32), Problem> {
    let (value, mask) = word.text.split_once('/').unwrap_or((word.text, "0xffffffff"));
    let number =
        |text| Ok::<_, Problem>(units::integer(word.part(text), "a mark", 0, i64::from(u32::MAX))? as u32);
    Ok((number(value)?, number(mask)?))
}

/// Networks, or those around one; `None` for all addresses.
pub(super) fn networks(word: Word<'_>, not: bool) -> Result<Option<Vec<Party>>, Problem> {
    let read = |text: &str| {
        let dotted = text.split_once('/').and_then(|(address, mask)| {
            let mask = u32::from(mask.parse::<Ipv4Addr>().ok()?);
            (mask.leading_ones() + mask.trailing_zeros() == 32)
                .then(|| format!("{address}/{}", mask.leading_ones()))
        });
        let node = Node { span: word.span(), value: Value::String(dotted.unwrap_or_else(|| text.into())) };
        party(&node, &[])
    };
    let is_all = |text: &str| matches!(text, "0/0" | "0.0.0.0/0" | "::/0" | "any");
    match (word.text, not) {
        (text, false) if text.split(',').any(is_all) => Ok(None),
        (text, false) => text.split(',').map(read).collect::<Result<Vec<_>, _>>().map(Some),
        (text, true) if text.contains(',') || is_all(text) => Err(word
            .problem(format!("no address is left by `! {text}`, or several networks are excluded"))
            .help("exclude one network")),
        (text, true) => match read(text)? {
            Party::Network { ip, prefix: prefix @ 1.. } => Ok(Some(around(ip, prefix))),
            _ => Err(word
                .problem(format!("all addresses but {}", Found(word.text)))
                .help("exclude one network, or mark all packets first and then those of the network")),
        },
    }
}

/// The networks that together are all addresses of a family but those of one network.
fn around(ip: IpAddr, prefix: u8) -> Vec<Party> {
    match ip {
        IpAddr::V4(ip) => {
            let beside = |bits: u8| {
                let last = 32 - u32::from(bits);
                let ip = IpAddr::V4(Ipv4Addr::from_bits((ip.to_bits() ^ 1 << last) & u32::MAX << last));
                Party::Network { ip, prefix: bits }
            };
            (1..=prefix).map(beside).collect()
        }
        IpAddr::V6(ip) => {
            (1..=prefix).flat_map(|bits| without_mapped(beside(ip.to_bits(), bits), bits)).collect()
        }
    }
}

/// The network of IPv6 with a prefix of that length which differs from an address in the last bit of the prefix alone.
fn beside(ip: u128, prefix: u8) -> u128 {
    let last = 128 - u32::from(prefix);
    (ip ^ 1 << last) & u128::MAX << last
}

/// A network of IPv6 without the addresses that stand for IPv4, which no packet of IPv6 has.
fn without_mapped(network: u128, prefix: u8) -> Vec<Party> {
    let mapped = Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().to_bits();
    let of = |network, prefix| Party::Network { ip: IpAddr::V6(Ipv6Addr::from_bits(network)), prefix };
    match (network ^ mapped) >> (128 - u32::from(prefix)) {
        0 if prefix <= MAPPED => (prefix + 1..=MAPPED).map(|bits| of(beside(mapped, bits), bits)).collect(),
        _ => vec![of(network, prefix)],
    }
}
