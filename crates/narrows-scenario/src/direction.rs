//! One direction of a link, or a medium that both share: what the keys of its table say, and what that becomes.

use std::net::IpAddr;

use narrows_core::model::{Independent, Selector};
use narrows_core::queue::{self, Bound};
use narrows_core::sched::{self, Weight};
use narrows_core::service::{ConstantRate, Overhead};
use narrows_core::{Change, Corruption, Duration, LinkConfig, Mtu, Order, Rate, Seed, Target};

use crate::bound::DefaultBound;
use crate::node::{Node, Value};
use crate::problem::{Problem, ScenarioError};
use crate::units::{self, Share};
use crate::value::{
    self, Class, Delay, Loss, Plan, Policy, Queue, Reorder, Scheduler, SchedulerKind, Surroundings,
};

/// Packets that are selected independently, if any are.
fn selector(share: Share) -> Option<Box<dyn Selector>> {
    (!share.is_zero()).then(|| Box::new(Independent(share.probability())) as Box<dyn Selector>)
}

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
    /// Where packets wait; with a scheduler, where those of a class or flow do that has no queue of its own.
    pub queue: Queue,
    /// What shares the transmitter among classes or flows.
    pub scheduler: Option<Scheduler>,
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
            scheduler: None,
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

/// A class of a direction's scheduler, with what is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectionClass {
    /// Its name.
    pub name: String,
    /// Its weight; nothing where the scheduler knows none.
    pub weight: Option<Weight>,
    /// How much may wait in it.
    pub bound: Bound,
    /// What belongs to it, in one line.
    pub matches: String,
}

/// Where a direction is in the engine, and what its queue depends on there.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) seed: Seed,
    /// The engine's name of the link.
    pub(crate) link: &'a str,
    /// The addresses of a host.
    pub(crate) addresses: &'a dyn Fn(&str) -> Vec<IpAddr>,
}

/// The keys of a direction's table.
pub(crate) const KEYS: &[&str] = &[
    "rate",
    "delay",
    "jitter",
    "order",
    "queue",
    "scheduler",
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
/// There are more in queues and schedulers.
pub(crate) const PARTS: &[&str] = &["delay.order", "queue.bound", "queue.drop", "loss.ingress", "loss.wire"];

impl Direction {
    /// Sets what one key, or one part, says.
    pub(crate) fn set(&mut self, key: &str, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        self.set_unchecked(key, node, around).map_err(|problem| problem.inside(key))
    }

    /// Sets what a flag of this name says; the caller names the flag in the error.
    pub(crate) fn set_flag(
        &mut self,
        key: &str,
        node: &Node,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        self.set_unchecked(key, node, around)
    }

    fn set_unchecked(&mut self, key: &str, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
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
            "scheduler" => self.scheduler = Scheduler::read(node, around)?,
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
            _ => match (key.split_once('.'), &self.scheduler) {
                (Some(("queue", part)), _) => self.queue = self.queue.with(part, node)?,
                (Some(("scheduler", path)), Some(scheduler)) => {
                    let path: Vec<&str> = path.split('.').collect();
                    self.scheduler = scheduler.with(&path, node, self.queue, around)?;
                }
                (Some(("scheduler", _)), None) => {
                    return Err(Problem::new("there is no scheduler of which to set a part")
                        .at(&node.span)
                        .help("set the whole, such as scheduler={ type = \"drr\", classes = [ … ] }"));
                }
                _ => return Err(Problem::new(format!("a link has no `{key}`")).at(&node.span)),
            },
        }
        Ok(())
    }

    /// Where its values do not go together: the key that stands for it, and why.
    pub(crate) fn conflict(&self) -> Option<(&'static str, Problem)> {
        if let (Some(delay), Some(sd)) = (self.delay, self.jitter)
            && !matches!(delay, Delay::Constant(_))
        {
            return Some(("jitter", Problem::new(format!("a jitter of {sd} on top of a delay that varies already ({delay})"))
                .help("`jitter` makes a constant delay a normal one; leave one of the two out, or set `jitter = \"0ms\"`")));
        }
        let Some(scheduler) = &self.scheduler else { return None };
        let name = scheduler.kind.name();
        if scheduler.policy != Policy::Fifo && self.queue.policy != Policy::Fifo {
            return Some((
                "queue",
                Problem::new(format!(
                    "`{name}` manages its queues itself, and the link's queue is `{}`",
                    self.queue.policy.name()
                ))
                .help(format!("leave out the type of the queue, or take another scheduler than `{name}`")),
            ));
        }
        if scheduler.kind == SchedulerKind::Dcf && !value::DCF_RATES.contains(&self.rate) {
            return Some(("scheduler", Problem::new(format!("`dcf` on a link of {}", self.rate)).help(
                "802.11b knows rates of 1, 2, 5.5 and 11 Mbit/s: rate = \"1mbit\", \"2mbit\", \"5.5mbit\" or \"11mbit\"",
            )));
        }
        None
    }

    /// What counts as the length of a packet: what is given, or for stations that contend what their MAC adds.
    pub fn effective_overhead(&self) -> Overhead {
        match &self.scheduler {
            Some(scheduler) if scheduler.kind == SchedulerKind::Dcf && self.overhead == Overhead::IP => {
                sched::Dcf::OVERHEAD
            }
            _ => self.overhead,
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

    /// The bound of the queue, given or default. With a scheduler it is that of each class that has none of its own.
    pub fn bound(&self) -> Bound {
        self.queue.bound.unwrap_or(self.default_bound.bound())
    }

    /// How much may wait in all; nothing where only the classes of a scheduler have bounds.
    pub fn whole_bound(&self) -> Option<Bound> {
        match &self.scheduler {
            None => Some(self.bound()),
            Some(scheduler) => scheduler.whole_bound(self.queue, self.default_bound.bound()),
        }
    }

    /// The classes of the scheduler, in the order of their numbers in the engine; none where there is no scheduler, or
    /// where it serves flows.
    pub fn classes(&self) -> Vec<DirectionClass> {
        let Some(scheduler) = &self.scheduler else { return Vec::new() };
        scheduler
            .classes()
            .iter()
            .zip(scheduler.class_words())
            .map(|(class, matches)| DirectionClass {
                name: class.name.clone(),
                weight: scheduler.weight(class),
                bound: class.queue.and_then(|queue| queue.bound).unwrap_or(self.bound()),
                matches,
            })
            .collect()
    }

    /// The same direction with another scheduler, by its name or `none`. Classes, or flows, are kept as far as that
    /// scheduler can serve them: `sfq`, `fq_codel` and `fq_pie` tell flows apart by themselves, `pfifo_fast` has its own
    /// bands, and what knows no weights has none.
    ///
    /// # Errors
    /// When no scheduler has that name, or it does not take these classes or this direction.
    pub fn with_scheduler(&self, name: &str) -> Result<Self, ScenarioError> {
        let wrong =
            |problem: Problem| ScenarioError::new("scheduler", name, vec![problem.at(&(0..name.len()))]);
        let none = Surroundings { hosts: &[], shared: false };
        let plain = Scheduler::read(&Node::typed(name, 0), none);
        let scheduler = match (&self.scheduler, SchedulerKind::from_name(name)) {
            (Some(scheduler), Some(kind)) => {
                let scheduler = scheduler.converted(kind);
                scheduler.check().map_err(wrong)?;
                Some(scheduler)
            }
            _ => plain.map_err(wrong)?,
        };
        let direction = Self { scheduler, ..self.clone() };
        match direction.conflict() {
            Some((_, problem)) => Err(wrong(problem)),
            None => Ok(direction),
        }
    }

    /// Where packets wait, for the engine.
    fn build_queue(&self, site: Site<'_>) -> Box<dyn queue::Queue> {
        let default = self.default_bound.bound();
        let Some(scheduler) = &self.scheduler else { return self.queue.build(default) };
        let Site { seed, link, addresses } = site;
        scheduler.build(Plan { seed, link, queue: self.queue, default, addresses }).unwrap_or_else(
            |(class, refused)| panic!("{link}: class {class} was tried when it was read: {refused}"),
        )
    }

    /// The engine's link.
    pub(crate) fn build(&self, lanes: Vec<Target>, site: Site<'_>) -> LinkConfig {
        LinkConfig {
            name: site.link.into(),
            lanes,
            queue: self.build_queue(site),
            service: Box::new(ConstantRate(self.effective_rate())),
            overhead: self.effective_overhead(),
            ingress_loss: Loss::build(self.loss.ingress),
            wire_loss: Loss::build(self.loss.wire),
            corruption: selector(self.corrupt).map(Corruption::Packets),
            duplication: selector(self.duplicate),
            delay: self.effective_delay().build(),
            order: self.order,
            reorder: self.reorder.map(Reorder::build),
            line_limit: self.line_limit,
            mtu: self.mtu,
        }
    }

    /// What turns a running link that is like `before` into this one.
    pub(crate) fn changes_since(&self, before: &Self, site: Site<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut differs = |differs: bool, change: &dyn Fn() -> Change| {
            if differs {
                changes.push(change());
            }
        };
        differs(self.effective_rate() != before.effective_rate(), &|| {
            Change::Service(Box::new(ConstantRate(self.effective_rate())))
        });
        let other_kind = !self.waits_like(before);
        differs(other_kind, &|| Change::Queue(self.build_queue(site)));
        differs(!other_kind && self.whole_bound() != before.whole_bound(), &|| {
            Change::QueueBound(self.whole_bound().unwrap_or(Scheduler::NO_BOUND))
        });
        if !other_kind {
            let classes = self.classes().into_iter().zip(before.classes()).enumerate();
            for (class, weight) in classes
                .filter(|(_, (now, then))| now.weight != then.weight)
                .filter_map(|(class, (now, _))| now.weight.map(|weight| (class, weight)))
            {
                differs(true, &|| Change::Weight { class, weight });
            }
        }
        let overhead = self.effective_overhead();
        differs(overhead != before.effective_overhead(), &|| Change::Overhead(overhead));
        differs(self.loss.ingress != before.loss.ingress, &|| {
            Change::IngressLoss(Loss::build(self.loss.ingress))
        });
        differs(self.loss.wire != before.loss.wire, &|| Change::WireLoss(Loss::build(self.loss.wire)));
        differs(self.corrupt != before.corrupt, &|| {
            Change::Corruption(selector(self.corrupt).map(Corruption::Packets))
        });
        differs(self.duplicate != before.duplicate, &|| Change::Duplication(selector(self.duplicate)));
        differs(self.effective_delay() != before.effective_delay(), &|| {
            Change::Delay(self.effective_delay().build())
        });
        differs(self.order != before.order, &|| Change::Order(self.order));
        differs(self.reorder != before.reorder, &|| Change::Reorder(self.reorder.map(Reorder::build)));
        differs(self.line_limit != before.line_limit, &|| Change::LineLimit(self.line_limit));
        differs(self.mtu != before.mtu, &|| Change::Mtu(self.mtu));
        changes
    }

    /// Whether a queue that is like `before` becomes this one by another bound of the whole and other weights.
    fn waits_like(&self, before: &Self) -> bool {
        match (&self.scheduler, &before.scheduler) {
            (None, None) => self.queue.drop == before.queue.drop && self.queue.policy == before.queue.policy,
            (Some(now), Some(then)) => {
                let queues = |of: &Self, scheduler: &Scheduler| -> Vec<(Queue, Bound)> {
                    let one = |class: &Class| {
                        let queue = class.queue.unwrap_or(of.queue);
                        (Queue { bound: None, ..queue }, queue.bound.unwrap_or(of.bound()))
                    };
                    scheduler.classes().iter().map(one).collect()
                };
                now.is_tuned_like(then)
                    && queues(self, now) == queues(before, then)
                    && (!now.has_flows() || self.queue.policy == before.queue.policy)
            }
            _ => false,
        }
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
        differs(self.scheduler.is_some(), "scheduler", &|| {
            self.scheduler.as_ref().map(Scheduler::text).unwrap_or_default()
        });
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
