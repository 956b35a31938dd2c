//! Networks and ranges of numbers, as rules and sets have them.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use crate::dialect::{SERVICES, Word};
use crate::netem::units;
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::value::{Party, party};

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
            Party::Network { ip: IpAddr::V4(ip), prefix: prefix @ 1.. } => Ok(Some(around(ip, prefix))),
            _ => Err(word.problem(format!("all addresses but {}", Found(text))).help(
                "exclude one network of IPv4, or mark all packets first and then those of the network",
            )),
        },
    }
}

/// The networks that together are all addresses of IPv4 but those of one network.
fn around(ip: Ipv4Addr, prefix: u8) -> Vec<Party> {
    let beside = |bits: u8| {
        let (mask, last) = (u32::MAX << (32 - u32::from(bits)), 1 << (32 - u32::from(bits)));
        Ipv4Addr::from_bits((ip.to_bits() ^ last) & mask)
    };
    (1..=prefix).map(|bits| Party::Network { ip: IpAddr::V4(beside(bits)), prefix: bits }).collect()
}
