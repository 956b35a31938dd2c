//! One direction of a link, or a medium that both share: what the keys of its table say, and what that becomes.

use narrows_core::queue::Bound;
use narrows_core::service::{ConstantRate, Overhead};
use narrows_core::{Change, Duration, LinkConfig, Mtu, Order, Rate, Target};

use crate::bound::DefaultBound;
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::units::{self, Share};
use crate::value::{self, Delay, Loss, Queue, Reorder};

/// What one direction of a link does. The default does nothing: unlimited, without delay or impairment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direction {
    /// Bits a second.
    pub rate: Rate,
    /// Whether the wire is down at present, whatever its rate.
    pub outage: bool,
    /// The propagation delay; nothing where none is given.
    pub delay: Option<Delay>,
    /// Makes a constant delay a normal one with this standard deviation.
    pub jitter: Option<Duration>,
    /// Whether packets may overtake one another in the delay line.
    pub order: Order,
    /// Where packets wait.
    pub queue: Queue,
    /// The bound of the queue where none is given, and how it came about.
    pub default_bound: DefaultBound,
    /// How many bits a packet is.
    pub overhead: Overhead,
    /// Losses other than those of a full queue.
    pub loss: Loss,
    /// The probability that a packet is duplicated on the wire.
    pub duplicate: Share,
    /// The probability that one bit of a packet is flipped on the wire.
    pub corrupt: Share,
    /// Packets that skip the delay.
    pub reorder: Option<Reorder>,
    /// The longest packet.
    pub mtu: Option<Mtu>,
    /// The most packets in the delay line.
    pub line_limit: Option<u64>,
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            rate: Rate::UNLIMITED,
            outage: false,
            delay: None,
            jitter: None,
            order: Order::Keep,
            queue: Queue::default(),
            default_bound: DefaultBound::NO_RATE,
            overhead: Overhead::IP,
            loss: Loss::default(),
            duplicate: Share::ZERO,
            corrupt: Share::ZERO,
            reorder: None,
            mtu: None,
            line_limit: None,
        }
    }
}

/// The keys of a direction's table.
pub(crate) const KEYS: &[&str] = &[
    "rate",
    "delay",
    "jitter",
    "order",
    "queue",
    "overhead",
    "loss",
    "duplicate",
    "corrupt",
    "reorder",
    "mtu",
    "line-limit",
    "outage",
];

/// Parts of values that an assignment may set alone.
pub(crate) const PARTS: &[&str] = &["delay.order", "queue.bound", "queue.drop", "loss.ingress", "loss.wire"];

impl Direction {
    /// Sets what one key, or one part, says.
    pub(crate) fn set(&mut self, key: &str, node: &Node) -> Result<(), Problem> {
        self.set_unchecked(key, node).map_err(|problem| problem.inside(key))
    }

    /// Sets what a flag of this name says; the caller names the flag in the error.
    pub(crate) fn set_flag(&mut self, key: &str, node: &Node) -> Result<(), Problem> {
        self.set_unchecked(key, node)
    }

    fn set_unchecked(&mut self, key: &str, node: &Node) -> Result<(), Problem> {
        match key {
            "rate" => self.rate = units::rate(node)?,
            "outage" => self.outage = node.boolean()?,
            "delay" => {
                let (delay, order) = value::read_delay(node)?;
                self.delay = Some(delay);
                self.order = order.unwrap_or(self.order);
            }
            "jitter" => self.jitter = Some(units::time(node)?).filter(|sd| *sd > Duration::ZERO),
            "order" | "delay.order" => self.order = node.choice("order", value::ORDERS)?,
            "queue" => self.queue = Queue::read(node)?,
            "queue.bound" => self.queue.bound = Queue::read_bound(node)?,
            "queue.drop" => self.queue.drop = Queue::read_drop(node)?,
            "overhead" => self.overhead = value::read_overhead(node)?,
            "loss" => self.loss = Loss::read(node)?,
            "loss.ingress" => self.loss.ingress = Share::read(node)?,
            "loss.wire" => self.loss.wire = Share::read(node)?,
            "duplicate" => self.duplicate = Share::read(node)?,
            "corrupt" => self.corrupt = Share::read(node)?,
            "reorder" => self.reorder = Reorder::read(node)?,
            "mtu" => self.mtu = value::read_mtu(node)?,
            "line-limit" => {
                self.line_limit = match &node.value {
                    Value::String(text) if text.trim() == "unlimited" => None,
                    _ => Some(units::packets(node)?),
                }
            }
            _ => return Err(Problem::new(format!("a link has no `{key}`")).at(&node.span)),
        }
        Ok(())
    }

    /// Whether its values go together.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        match (self.delay, self.jitter) {
            (Some(delay), Some(sd)) if !matches!(delay, Delay::Constant(_)) => {
                Err(Problem::new(format!("a jitter of {sd} on top of a delay that varies already ({delay})"))
                    .help("`jitter` makes a constant delay a normal one; leave one of the two out, or set `jitter = \"0ms\"`"))
            }
            _ => Ok(()),
        }
    }

    /// The delay that packets have, with the jitter; zero where none is given.
    pub fn effective_delay(&self) -> Delay {
        match (self.delay.unwrap_or(Delay::Constant(Duration::ZERO)), self.jitter) {
            (Delay::Constant(mean), Some(sd)) => Delay::Normal { mean, sd },
            (delay, _) => delay,
        }
    }

    /// The rate that packets have: that of the link, or none while it is down.
    pub fn effective_rate(&self) -> Rate {
        if self.outage { Rate::DOWN } else { self.rate }
    }

    /// The bound of the queue, given or default.
    pub fn bound(&self) -> Bound {
        self.queue.bound.unwrap_or(self.default_bound.bound())
    }

    /// The engine's link.
    pub(crate) fn build(&self, name: String, lanes: Vec<Target>) -> LinkConfig {
        LinkConfig {
            name,
            lanes,
            queue: self.queue.build(self.default_bound.bound()),
            service: Box::new(ConstantRate(self.effective_rate())),
            overhead: self.overhead,
            ingress_loss: Loss::build(self.loss.ingress),
            wire_loss: Loss::build(self.loss.wire),
            corruption: self.corrupt.probability(),
            duplication: self.duplicate.probability(),
            delay: self.effective_delay().build(),
            order: self.order,
            reorder: self.reorder.map(Reorder::build),
            line_limit: self.line_limit,
            mtu: self.mtu,
        }
    }

    /// What turns a running link that is like `before` into this one.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut differs = |differs: bool, change: &dyn Fn() -> Change| {
            if differs {
                changes.push(change());
            }
        };
        differs(self.effective_rate() != before.effective_rate(), &|| {
            Change::Service(Box::new(ConstantRate(self.effective_rate())))
        });
        let other_kind = self.queue.drop != before.queue.drop;
        differs(other_kind, &|| Change::Queue(self.queue.build(self.default_bound.bound())));
        differs(!other_kind && self.bound() != before.bound(), &|| Change::QueueBound(self.bound()));
        differs(self.overhead != before.overhead, &|| Change::Overhead(self.overhead));
        differs(self.loss.ingress != before.loss.ingress, &|| {
            Change::IngressLoss(Loss::build(self.loss.ingress))
        });
        differs(self.loss.wire != before.loss.wire, &|| Change::WireLoss(Loss::build(self.loss.wire)));
        differs(self.corrupt != before.corrupt, &|| Change::Corruption(self.corrupt.probability()));
        differs(self.duplicate != before.duplicate, &|| Change::Duplication(self.duplicate.probability()));
        differs(self.effective_delay() != before.effective_delay(), &|| {
            Change::Delay(self.effective_delay().build())
        });
        differs(self.order != before.order, &|| Change::Order(self.order));
        differs(self.reorder != before.reorder, &|| Change::Reorder(self.reorder.map(Reorder::build)));
        differs(self.line_limit != before.line_limit, &|| Change::LineLimit(self.line_limit));
        differs(self.mtu != before.mtu, &|| Change::Mtu(self.mtu));
        changes
    }

    /// The keys that differ from a link that does nothing, each with its value as it stands in a file.
    pub(crate) fn entries(&self) -> Vec<(&'static str, String)> {
        let plain = Self::default();
        let mut entries = Vec::new();
        let mut differs = |differs: bool, key, text: &dyn Fn() -> String| {
            if differs {
                entries.push((key, text()));
            }
        };
        differs(self.rate != plain.rate, "rate", &|| format!("\"{}\"", self.rate));
        differs(self.delay.is_some(), "delay", &|| self.delay.map(Delay::text).unwrap_or_default());
        differs(self.jitter.is_some(), "jitter", &|| format!("\"{}\"", self.jitter.unwrap_or_default()));
        differs(self.order != plain.order, "order", &|| "\"allow\"".into());
        differs(self.queue != plain.queue, "queue", &|| self.queue.text());
        differs(self.overhead != plain.overhead, "overhead", &|| value::overhead_text(self.overhead));
        differs(self.loss != plain.loss, "loss", &|| self.loss.text());
        differs(self.duplicate != plain.duplicate, "duplicate", &|| format!("\"{}\"", self.duplicate));
        differs(self.corrupt != plain.corrupt, "corrupt", &|| format!("\"{}\"", self.corrupt));
        differs(self.reorder.is_some(), "reorder", &|| self.reorder.map(Reorder::text).unwrap_or_default());
        differs(self.mtu.is_some(), "mtu", &|| self.mtu.map(value::mtu_text).unwrap_or_default());
        differs(self.line_limit.is_some(), "line-limit", &|| {
            format!("\"{} packets\"", self.line_limit.unwrap_or_default())
        });
        differs(self.outage, "outage", &|| "true".into());
        entries
    }
}
