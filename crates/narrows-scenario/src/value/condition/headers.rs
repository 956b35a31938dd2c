//! Parts of a condition, and of an edit, that are in headers beyond the flow key: link addresses, the hop limit.

use std::ops::RangeInclusive;

use narrows_core::LinkAddress;
use narrows_core::classify::{Fragments, LinkPattern};
use serde_json::json;

use super::parts::{ports_value, range};
use crate::keys::kind::{ByHand, Choice, text};
use crate::node::Value;
use crate::problem::Problem;

/// `"02:00:00:00:00:01"`.
pub(crate) const LINK_ADDRESS: ByHand<LinkAddress> = ByHand {
    words: || "MAC address such as `\"02:00:00:00:00:01\"`".into(),
    schema: |_| json!({ "type": "string", "pattern": "^ *([0-9A-Fa-f]{1,2}[:-]){5}[0-9A-Fa-f]{1,2} *$" }),
    read: |node, _| {
        let written = node.text("a MAC address")?;
        link_address(written)
            .ok_or_else(|| node.expected("a MAC address, six bytes such as \"02:00:00:00:00:01\""))
    },
    write: |address| Some(text(link_address_text(address))),
};

/// `"02:00:00:00:00:01"`, `"02:00:00:00:00:00/24"` or `"01:00:00:00:00:00/01:00:00:00:00:00"`.
pub(super) const LINK_PATTERN: ByHand<LinkPattern> = ByHand {
    words: || "MAC address such as `\"02:00:00:00:00:01\"`, also with a mask".into(),
    schema: |_| {
        json!({
            "type": "string",
            "pattern": "^ *([0-9A-Fa-f]{1,2}[:-]){5}[0-9A-Fa-f]{1,2} *(/ *([0-9]{1,2}|([0-9A-Fa-f]{1,2}[:-]){5}[0-9A-Fa-f]{1,2}) *)?$",
        })
    },
    read: |node, _| {
        let written = node.text("a MAC address")?;
        link_pattern(written).ok_or_else(|| {
            node.expected("a MAC address, six bytes such as \"02:00:00:00:00:01\", also with a mask: the number of its first bits, or six bytes")
        })
    },
    write: |pattern| Some(text(link_pattern_text(pattern))),
};

/// One hop limit, or a range.
pub(super) const HOP_LIMITS: ByHand<RangeInclusive<u8>> = ByHand {
    words: || "whole number from 0 to 255, or a range such as `\"1-5\"`".into(),
    schema: |_| {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": 255 },
            { "type": "string", "pattern": r"^ *[0-9]+ *(- *[0-9]+ *)?$" },
        ] })
    },
    read: |node, _| range(node, "a hop limit from 0 to 255, or a range such as \"1-5\""),
    write: |range| {
        let text = hop_limits_text(range);
        Some(if range.start() == range.end() { Value::Integer(text) } else { Value::String(text) })
    },
};

/// One VLAN, or a range.
pub(super) const VLANS: ByHand<RangeInclusive<u16>> = ByHand {
    words: || "whole number from 0 to 4095, or a range such as `\"100-199\"`".into(),
    schema: |_| {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": 4095 },
            { "type": "string", "pattern": r"^ *[0-9]+ *(- *[0-9]+ *)?$" },
        ] })
    },
    read: |node, _| {
        const EXPECTED: &str = "a VLAN from 0 to 4095, or a range such as \"100-199\"";
        let vlans: RangeInclusive<u16> = range(node, EXPECTED)?;
        if *vlans.end() > 4095 { Err(node.expected(EXPECTED)) } else { Ok(vlans) }
    },
    write: |range| Some(ports_value(range)),
};

pub(super) const FRAGMENTS: Choice<Fragments> = Choice {
    what: "place among fragments",
    choices: &[("none", Fragments::WHOLE), ("first", Fragments::FIRST), ("later", Fragments::LATER)],
};

/// Six bytes in hexadecimal, separated by colons or hyphens.
pub(crate) fn link_address(written: &str) -> Option<LinkAddress> {
    let mut parts = written.trim().split([':', '-']);
    let mut address = [0; 6];
    for byte in &mut address {
        let part = parts.next().filter(|part| (1..=2).contains(&part.len()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(address)
}

pub(crate) fn link_address_text(address: &LinkAddress) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

/// An address, and after a `/` the number of its first bits that count, or six bytes with the bits that count.
pub(crate) fn link_pattern(written: &str) -> Option<LinkPattern> {
    let (address, mask) = written.split_once('/').unwrap_or((written, "48"));
    let mask = match mask.trim().parse::<u32>() {
        Ok(bits @ 0..=48) => {
            let ones = (0xffff_ffff_ffff_u64 << (48 - bits)).to_be_bytes();
            std::array::from_fn(|byte| ones[byte + 2])
        }
        _ => link_address(mask)?,
    };
    Some(LinkPattern::new(link_address(address)?, mask))
}

pub(crate) fn link_pattern_text(pattern: &LinkPattern) -> String {
    let address = link_address_text(&pattern.address());
    let mask = pattern.mask().iter().fold(0_u64, |mask, byte| mask << 8 | u64::from(*byte));
    match (mask.count_ones(), (mask << 16).leading_ones()) {
        (48, _) => address,
        (ones, leading) if ones == leading => format!("{address}/{ones}"),
        _ => format!("{address}/{}", link_address_text(&pattern.mask())),
    }
}

pub(super) fn hop_limits_text(range: &RangeInclusive<u8>) -> String {
    match (range.start(), range.end()) {
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low}-{high}"),
    }
}

/// An error about conditions where packets have only their flow keys.
pub(crate) fn not_here(condition: &super::Match) -> Option<Problem> {
    condition.headers().map(|_| {
        Problem::new("a delay cannot depend on link addresses, VLANs, fragments or the hop limit")
            .help("classes, policers and `ingress` can")
    })
}
