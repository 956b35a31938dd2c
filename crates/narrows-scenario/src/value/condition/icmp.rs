//! Types and codes of ICMP: `8`, `"0-7"`, `"3/4"`, `"3/0-3"`.

use std::ops::RangeInclusive;

use serde_json::json;

use crate::keys::kind::ByHand;
use crate::node::{Node, Value};
use crate::problem::Problem;

/// Types, the upper byte of both ends, with all codes; or codes of one type.
pub(super) const ICMP: ByHand<RangeInclusive<u16>> = ByHand {
    words: || {
        "whole number from 0 to 255, a range such as `\"13-18\"`, or with a code such as `\"3/4\"`".into()
    },
    schema: |_| {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": 255 },
            { "type": "string", "pattern": r"^ *[0-9]+ *([-/] *[0-9]+ *)?$|^ *[0-9]+ */ *[0-9]+ *- *[0-9]+ *$" },
        ] })
    },
    read: |node, _| read(node),
    write: |range| {
        let text = icmp_text(range);
        Some(if text.bytes().all(|c| c.is_ascii_digit()) {
            Value::Integer(text)
        } else {
            Value::String(text)
        })
    },
};

fn read(node: &Node) -> Result<RangeInclusive<u16>, Problem> {
    const WHAT: &str =
        "a type of ICMP from 0 to 255, a range such as \"13-18\", or a type and a code such as \"3/4\"";
    let text = match &node.value {
        Value::Integer(text) | Value::String(text) => text.as_str(),
        _ => return Err(node.expected(WHAT)),
    };
    let byte = |text: &str| text.trim().parse::<u8>().ok().map(u16::from);
    let bytes = |text: &str| match text.split_once('-') {
        Some((low, high)) => Some((byte(low)?, byte(high)?)),
        None => byte(text).map(|one| (one, one)),
    };
    let range = match text.split_once('/') {
        Some((kind, codes)) => {
            byte(kind).zip(bytes(codes)).map(|(kind, (low, high))| (kind << 8 | low, kind << 8 | high))
        }
        None => bytes(text).map(|(low, high)| (low << 8, high << 8 | 0xff)),
    };
    match range {
        Some((low, high)) if low > high => {
            Err(Problem::new(format!("the range {} is descending", node.found())).at(&node.span))
        }
        Some((low, high)) => Ok(low..=high),
        None => Err(node.expected(WHAT)),
    }
}

/// As written in a file.
pub(super) fn icmp_text(range: &RangeInclusive<u16>) -> String {
    let span = |low: u16, high: u16| if low == high { low.to_string() } else { format!("{low}-{high}") };
    let ([first, low], [last, high]) = (range.start().to_be_bytes(), range.end().to_be_bytes());
    match (low, high) {
        (0, 0xff) => span(first.into(), last.into()),
        _ => format!("{first}/{}", span(low.into(), high.into())),
    }
}
