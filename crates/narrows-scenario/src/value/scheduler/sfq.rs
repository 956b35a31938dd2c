//! Parameters of stochastic fairness queueing: `{ type = "sfq", drop = "head", flow-limit = "50 packets" }`.

use narrows_core::queue::{Bound, DropAt};

use super::own::OwnParameters;
use crate::keys::kind::Given;
use crate::keys::quantity::PACKETS;
use crate::keys::{Keyed, Row, row};
use crate::value::queue::{DROP, QUEUE, Queue};

/// Parameters of SFQ.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sfq {
    /// Which packet of a flow is dropped; `None` for the place of the direction's queue.
    pub(super) drop: Option<DropAt>,
    /// Bound of each flow.
    pub(super) flow_limit: Option<u64>,
    /// Queue management of each flow; `None` for that of the direction's queue.
    pub(super) flow_queue: Option<Queue>,
}

impl Keyed for Sfq {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "drop",
            drop,
            Given(DROP),
            "Which packet to drop, of the longest flow or of one at its `flow-limit`: the last, or the oldest."
        )
        .default("that of the direction's queue"),
        row!("flow-limit", flow_limit, Given(PACKETS), "Maximum backlog of a flow.").default("none"),
        row!(
            "flow-queue",
            flow_queue,
            Given(QUEUE),
            "Queue management of each flow; its `bound` and `drop` are not used."
        )
        .default("that of the direction's queue"),
    ];
}

impl OwnParameters for Sfq {
    fn effective(&self) -> String {
        let mut words = String::new();
        if self.drop == Some(DropAt::Head) {
            words += "; drops the oldest packets";
        }
        if let Some(limit) = self.flow_limit {
            words += &format!("; up to {} of a flow wait", Bound::Packets(limit));
        }
        if let Some(managed) = self.flow_queue.and_then(|queue| queue.policy.words()) {
            words += &format!("; each flow with {managed}");
        }
        words
    }
}
