//! `{ type = "codel", target = "5ms", interval = "100ms", ecn = true }` (RFC 8289).

use narrows_core::Duration;
use narrows_core::aqm::{self, CodelConfig};
use serde_json::json;

use super::{Maker, Manages, maker};
use crate::keys::kind::{Boolean, ByHand, Given, text};
use crate::keys::quantity::{PACKET_SIZE, Time};
use crate::keys::{Keyed, Row, row};

const LONGEST: Duration = Duration::from_secs(100);
const TARGET: Time = Time::between(Duration::from_micros(1), LONGEST);
const INTERVAL: Time = Time::between(Duration::from_millis(1), LONGEST);

/// A value and a mask.
const MATCH: ByHand<Option<(u8, u8)>> = ByHand {
    words: || "value and mask, such as `\"0x01/0x03\"`".into(),
    schema: |_| json!({ "type": "string", "pattern": "^0x[0-9a-f]{2}/0x[0-9a-f]{2}$" }),
    read: |node, _| {
        let byte = |text: &str| u8::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let expected = "a value and a mask of one byte each, such as \"0x01/0x03\"";
        let parts = node.text(expected)?.trim().split_once('/');
        let parts = parts.and_then(|(value, mask)| byte(value).zip(byte(mask)));
        parts.map(Some).ok_or_else(|| node.expected(expected))
    },
    write: |parts| parts.map(|(value, mask)| text(format!("{value:#04x}/{mask:#04x}"))),
};

impl Keyed for CodelConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!("target", target, TARGET, "The acceptable standing queue delay, usually 5 to 10 % of `interval`."),
        row!(
            "interval",
            interval,
            INTERVAL,
            "Drop once the sojourn time has been above `target` for this long: about the worst-case round-trip time."
        ),
        row!(
            "longest",
            longest,
            PACKET_SIZE,
            "The longest packet: do not drop while no more than this is waiting."
        ),
        row!("ecn", ecn, Boolean, "Mark ECN-capable packets instead of dropping them."),
        row!(
            "ce-threshold",
            ce_threshold,
            Given(Time::ANY),
            "Mark every ECN-capable packet that has waited for longer than this."
        )
        .default("none"),
        row!(
            "ce-match",
            ce_match,
            MATCH,
            "Mark by `ce-threshold` only if the traffic class (DSCP and ECN), masked by the second number, is the first."
        )
        .default("none"),
    ];
}

impl Manages for CodelConfig {
    fn maker(&self) -> Option<Maker> {
        Some(maker(aqm::Codel::new(*self)))
    }
}
