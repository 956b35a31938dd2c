//! Parameters of 802.11 DCF: `{ type = "dcf", preamble = "short", basic-rate = "2mbit", rts-threshold =
//! "500 bytes" }`.

use std::ops::Range;

use narrows_core::sched::DcfConfig;
use narrows_core::{Bytes, Duration, Rate};
use serde_json::json;

use super::own::OwnParameters;
use crate::keys::Parameters;
use crate::keys::kind::{ByHand, Choice, Integer, Or, text};
use crate::keys::{Keyed, Row, row, schema};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units;

const PREAMBLE: Choice<Duration> = Choice {
    what: "preamble",
    choices: &[("long", DcfConfig::LONG_PREAMBLE), ("short", DcfConfig::SHORT_PREAMBLE)],
};
const RATE: ByHand<Rate> = ByHand {
    words: || "rate of 802.11b".into(),
    schema: schema::rate,
    read: |node, _| {
        let rate = units::finite_rate(node)?;
        let allowed = "a rate of 802.11b: \"1mbit\", \"2mbit\", \"5.5mbit\" or \"11mbit\"";
        if RATES.contains(&rate) { Ok(rate) } else { Err(node.expected(allowed)) }
    },
    write: |rate| Some(text(rate)),
};
const WINDOW: ByHand<u32> = ByHand {
    words: || "one less than a power of two, up to 65535".into(),
    schema: |_| json!({ "type": "integer", "minimum": 1, "maximum": 65535 }),
    read: |node, _| window(node),
    write: |window| Some(Value::Integer(window.to_string())),
};
const FRAME: ByHand<u32> = ByHand {
    words: || "size".into(),
    schema: schema::size,
    // At most 65,535.
    read: |node, _| units::packet_size(node).map(|bytes| bytes.get() as u32),
    write: |bytes| Some(text(Bytes::new(u64::from(*bytes)))),
};

/// The rates of 802.11b.
pub(crate) const RATES: [Rate; 4] = [
    Rate::from_bits_per_second(1_000_000),
    Rate::from_bits_per_second(2_000_000),
    Rate::from_bits_per_second(5_500_000),
    Rate::from_bits_per_second(11_000_000),
];

impl Keyed for DcfConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!("preamble", preamble, PREAMBLE, "PLCP preamble and header before each frame: 192 or 96 µs."),
        row!("basic-rate", basic_rate, RATE, "Rate of ACK, RTS and CTS frames, at most the link's."),
        row!("window-min", window_min, WINDOW, "Initial contention window."),
        row!("window-max", window_max, WINDOW, "Maximum contention window."),
        row!(
            "retry-limit",
            retry_limit,
            Integer { what: "a number of collisions", low: 1, high: 255 },
            "Collisions after which a packet is dropped with the reason `retry limit`."
        ),
        row!("rts-threshold", rts_threshold, Or("none", FRAME), "Protect longer frames by RTS and CTS."),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let Self { window_min, window_max, .. } = self;
        if window_min <= window_max {
            return Ok(());
        }
        let key = table.key("window-min").or(table.key("window-max"));
        Err(Problem::new(format!(
            "the minimum contention window, {window_min}, is above the maximum, {window_max}"
        ))
        .at(key.map_or(place, |key| &key.span)))
    }
}

impl OwnParameters for DcfConfig {
    fn effective(&self) -> String {
        format!(", {}", Parameters::words(self))
    }
}

/// Reads a contention window: a power of two minus one.
fn window(node: &Node) -> Result<u32, Problem> {
    let window = node.integer("a contention window", 1..65_536)? as u32;
    if (window + 1).is_power_of_two() {
        return Ok(window);
    }
    Err(node.expected("one less than a power of two: 1, 3, 7, 15, 31, … 65535"))
}
