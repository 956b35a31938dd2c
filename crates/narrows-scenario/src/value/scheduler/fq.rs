//! Parameters of Linux's `fq`: `{ type = "fq", max-rate = "5mbit", flow-limit = "200 packets" }`.

use narrows_core::Bytes;
use narrows_core::queue::Bound;
use narrows_core::sched::{PacedFq, PacedFqConfig};
use serde_json::json;

use super::own::OwnParameters;
use crate::keys::kind::{ByHand, Given};
use crate::keys::quantity::{FINITE_RATE, PACKETS, Size, Time};
use crate::keys::{Keyed, Row, row};
use crate::node::{Node, Value};
use crate::problem::Problem;

const INITIAL: Size =
    Size { low: 1, high: i32::MAX as u64, expected: "a size from 1 byte to 2147483647 bytes" };
const WEIGHTS: ByHand<[u32; 3]> = ByHand {
    words: || "list of three whole numbers, 16384 to 2147483647".into(),
    schema: |_| json!({ "type": "array", "items": { "type": "integer" }, "minItems": 3, "maxItems": 3 }),
    read: |node, _| {
        let one = |node: &Node| node.integer("a weight", PacedFq::LEAST_WEIGHT.into()..1 << 31);
        Ok(numbers(node, "three weights, such as [589824, 196608, 65536]", one)?.map(|weight| weight as u32))
    },
    write: |weights| Some(list(weights)),
};
const PRIORITIES: ByHand<[u8; 16]> = ByHand {
    words: || "list of 16 bands, 0 to 2".into(),
    schema: |_| json!({ "type": "array", "items": { "enum": [0, 1, 2] }, "minItems": 16, "maxItems": 16 }),
    read: |node, _| {
        let one = |node: &Node| node.integer("a band", 0..3);
        Ok(numbers(node, "the bands of 16 priorities", one)?.map(|band| band as u8))
    },
    write: |bands| Some(list(bands)),
};

fn numbers<const COUNT: usize>(
    node: &Node,
    expected: &str,
    one: impl Fn(&Node) -> Result<i64, Problem>,
) -> Result<[i64; COUNT], Problem> {
    let all: Vec<i64> = node.list(expected)?.iter().map(one).collect::<Result<_, _>>()?;
    all.try_into().map_err(|_| node.expected(expected))
}

fn list(numbers: &[impl ToString]) -> Value {
    Value::Array(numbers.iter().map(|number| Node::new(Value::Integer(number.to_string()))).collect())
}

impl Keyed for PacedFqConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!("flow-limit", flow_limit, PACKETS, "Maximum backlog of a flow."),
        row!(
            "initial-quantum",
            initial_quantum,
            INITIAL,
            "Bytes that a flow may send at once when it first appears."
        ),
        row!("max-rate", max_rate, Given(FINITE_RATE), "Maximum rate of each flow.").default("unlimited"),
        row!(
            "low-rate-threshold",
            low_rate,
            FINITE_RATE,
            "Up to this `max-rate`, packets are paced one by one, not by quanta."
        ),
        row!(
            "refill-delay",
            refill_delay,
            Time::ANY,
            "A flow that was idle for longer has at least a quantum again."
        ),
        row!(
            "ce-threshold",
            ce_threshold,
            Given(Time::ANY),
            "Mark ECN-capable packets sent more than this after they could have been sent."
        )
        .default("none"),
        row!("weights", weights, WEIGHTS, "Bytes that each of the three bands sends per turn."),
        row!(
            "priomap",
            priorities,
            PRIORITIES,
            "Band of each of Linux's 16 priorities. By their TOS bits packets have 0 (neither), 2 (high throughput), 6 (low delay) or 4 (both)."
        ),
    ];
}

impl OwnParameters for PacedFqConfig {
    fn effective(&self) -> String {
        let mut words = match self.max_rate {
            None => "; no maximum rate of a flow".to_owned(),
            Some(rate) => format!("; a flow has {rate} at most"),
        };
        words += &format!(", and up to {} at first", self.initial_quantum);
        words += &format!("; up to {} of a flow wait", Bound::Packets(self.flow_limit));
        words += &format!("; bands share {} to {} to {}", self.weights[0], self.weights[1], self.weights[2]);
        if let Some(threshold) = self.ce_threshold {
            words += &format!("; marks packets {threshold} late");
        }
        words
    }
}

/// The engine's parameters.
pub(super) fn config(own: &PacedFqConfig, bound: Bound, quantum: Bytes) -> PacedFqConfig {
    PacedFqConfig { bound, quantum, ..own.clone() }
}
