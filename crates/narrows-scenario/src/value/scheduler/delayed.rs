//! A delay line as the queue of a class: `delay = { feed = "radio" }`, with `line-limit = "100 packets"`.

use narrows_core::queue::Bound;
use narrows_core::{DelayQueue, Duration, Order};

use super::plan::Plan;
use crate::keys::kind::{ByHand, Kind as _, text};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::value::condition::Surroundings;
use crate::value::{DELAY, Delay, read_delay};

/// A delay line as the queue of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Delayed {
    /// The delays.
    pub delay: Delay,
    /// Whether packets may be reordered.
    pub order: Order,
    /// Maximum number of packets, both those that wait for their delay and those that are due.
    pub limit: u64,
}

impl Default for Delayed {
    fn default() -> Self {
        Self { delay: Delay::constant(Duration::ZERO), order: Order::Keep, limit: Self::LIMIT }
    }
}

pub(super) const DELAYED: ByHand<Delayed> = ByHand {
    words: || "as [`delay`](#delay-jitter-order)".into(),
    schema: |definitions| DELAY.schema(definitions),
    read: |node, around| Delayed::read(node, around),
    write: |delayed| Some(delayed.value()),
};

impl Delayed {
    /// The default limit, that of `sch_delay`.
    pub(super) const LIMIT: u64 = 1000;

    fn read(node: &Node, around: Surroundings<'_>) -> Result<Self, Problem> {
        let (delay, order) = read_delay(node, around)?;
        if delay.feeds().iter().any(|feed| feed.ask.is_some()) {
            return Err(Problem::new("`ask` in the delay of a class")
                .at(&node.span)
                .help("only packets in the delay line of a link can wait for answers: leave it out"));
        }
        Ok(Self { delay, order: order.unwrap_or(Order::Keep), limit: Self::LIMIT })
    }

    /// As written in a file, without the limit.
    fn value(&self) -> Value {
        match (self.order, self.delay.value()) {
            (Order::Keep, value) => value,
            (Order::Allow, Value::Table(table)) => Value::Table(table.and("order", text("allow"))),
            (Order::Allow, time) => {
                Value::Table(Table::default().and("constant", time).and("order", text("allow")))
            }
        }
    }

    /// `name` is unique in the network.
    pub(super) fn build(&self, plan: Plan<'_>, name: &str) -> DelayQueue {
        DelayQueue::new(self.delay.build(plan.addresses), self.order, self.bound(), plan.seed, name)
    }

    pub(crate) fn bound(&self) -> Bound {
        Bound::Packets(self.limit)
    }
}

/// For display.
impl std::fmt::Display for Delayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let order = match self.order {
            Order::Keep => "",
            Order::Allow => ", may reorder",
        };
        write!(f, "{}{order}, at most {}", self.delay, self.bound())
    }
}
