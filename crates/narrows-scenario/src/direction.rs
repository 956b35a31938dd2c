//! One direction of a link, or a medium shared by both: the keys of its table, and the effective values.

mod build;
mod causes;
mod conflict;
mod in_netem;
mod parts;
mod rows;

pub(crate) use build::Site;
pub(crate) use parts::{PARTS, allowed as allowed_parts, is_part};
pub(crate) use rows::KEYS;

use narrows_core::queue::Bound;
use narrows_core::sched;
use narrows_core::service::Overhead;
use narrows_core::{Bytes, Duration, LinkSettings, Rate, Time};

use crate::bound::DefaultBound;
use crate::files::Files;
use crate::keys;
use crate::netem;
use crate::node::Node;
use crate::problem::{Problem, ScenarioError};
use crate::value::{
    self, Chance, Corrupt, Delay, DelaySource, DirectionClass, ExactNetem, FeedUse, IngressUse, Loss,
    PolicerUse, ProfileUse, Queue, Reorder, Scheduler, SchedulerKind, Slots, Surroundings, TraceUse,
};

/// One direction of a link. The default does nothing: unlimited rate, no delay, no impairments.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Rate in bits per second.
    pub rate: Rate,
    /// Whether the wire is currently down, whatever its rate.
    pub outage: bool,
    /// Propagation delay; `None` if not given.
    pub delay: Option<Delay>,
    /// Standard deviation that turns a constant delay into a normal distribution.
    pub jitter: Option<Duration>,
    /// The queue. With a scheduler, the queue of each class or flow that has none of its own.
    pub queue: Queue,
    /// Scheduler that shares the transmitter among classes or flows.
    pub scheduler: Option<Scheduler>,
    /// The default bound of the queue, used if none is given, and its derivation.
    pub default_bound: DefaultBound,
    /// Framing overhead: how many bits a packet occupies.
    pub overhead: Overhead,
    /// Profile of the time a packet occupies the wire beyond its bits.
    pub profile: Option<ProfileUse>,
    /// Largest burst that may pass at once after the wire was idle.
    pub burst: Bytes,
    /// Loss other than queue overflow.
    pub loss: Loss,
    /// Chance that a packet is duplicated on the wire.
    pub duplicate: Chance,
    /// Bit errors on the wire.
    pub corrupt: Corrupt,
    /// Packets that skip the delay.
    pub reorder: Option<Reorder>,
    /// Time slots; packets leave only within a slot.
    pub slots: Option<Slots>,
    /// A trace that replaces the rate, the delay and other values over time.
    pub trace: Option<TraceUse>,
    /// NetEm's single queue, emulated exactly; it replaces everything else.
    pub exact_netem: Option<ExactNetem>,
    /// Plain values of the engine: packet order, line limit, MTU.
    pub settings: LinkSettings,
    /// Filters that drop, pass, police, gate or edit arriving packets; the first that decides counts.
    pub ingress: Option<Vec<IngressUse>>,
    /// Policer: limits arriving packets to a rate without a queue.
    pub policer: Option<PolicerUse>,
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            rate: Rate::UNLIMITED,
            outage: false,
            delay: None,
            jitter: None,
            queue: Queue::default(),
            scheduler: None,
            default_bound: DefaultBound::NO_RATE,
            overhead: Overhead::IP,
            profile: None,
            burst: Bytes::new(0),
            loss: Loss::default(),
            duplicate: Chance::default(),
            corrupt: Corrupt::default(),
            reorder: None,
            slots: None,
            trace: None,
            exact_netem: None,
            settings: LinkSettings::default(),
            ingress: None,
            policer: None,
        }
    }
}

impl Direction {
    /// Sets one key or one part.
    pub(crate) fn set(&mut self, key: &str, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        self.set_unchecked(key, node, around).map_err(|problem| problem.inside(key))
    }

    /// Sets the value of the flag with this name. The caller names the flag in the error.
    pub(crate) fn set_flag(
        &mut self,
        key: &str,
        node: &Node,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        self.set_unchecked(key, node, around)
    }

    fn set_unchecked(&mut self, key: &str, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        if let Some(row) = keys::named::<Self>(key) {
            return row.set(self, node, around);
        }
        match key.split_once('.') {
            Some(("delay", "order")) => self.set_unchecked("order", node, around),
            Some((key, path)) => self.set_part(key, path, node, around),
            None => Err(Problem::new(format!("a link has no `{key}`")).at(&node.span)),
        }
    }

    /// Sets the keys that a string of NetEm options stands for.
    fn set_netem(&mut self, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        let place = |problem: Problem| problem.put_at(&node.span);
        for (key, text) in
            netem::read(node)?.assignments().map_err(|error| error.into_problem().put_at(&node.span))?
        {
            self.set_unchecked(key, &Node::typed(&text, 0), around).map_err(place)?;
        }
        Ok(())
    }

    /// The effective overhead: the given one; else, for contending stations, the MAC overhead; for
    /// transmission opportunities, the four bytes that mahimahi's device adds.
    pub fn effective_overhead(&self) -> Overhead {
        let kind = self.scheduler.as_ref().map(|scheduler| scheduler.kind);
        let has_opportunities =
            self.trace.as_ref().is_some_and(|trace| trace.trace.opportunities().is_some());
        match self.overhead {
            Overhead::IP if kind == Some(SchedulerKind::Dcf) => sched::Dcf::OVERHEAD,
            Overhead::IP if kind == Some(SchedulerKind::CsmaCd) => sched::CsmaCd::OVERHEAD,
            Overhead::IP if has_opportunities => Overhead { extra: 4, ..Overhead::IP },
            overhead => overhead,
        }
    }

    /// The effective delay without a trace, jitter included; zero if none is given.
    pub fn effective_delay(&self) -> Delay {
        match (self.delay.clone().unwrap_or(Delay::constant(Duration::ZERO)), self.jitter) {
            (Delay { source: DelaySource::Constant(mean), per_byte }, Some(sd)) => {
                Delay { per_byte, ..Delay::normal(mean, sd) }
            }
            (delay, _) => delay,
        }
    }

    /// Mean of the effective delay, if known. A delay trace takes precedence.
    pub fn mean_delay(&self) -> Option<Duration> {
        match (&self.exact_netem, &self.trace) {
            (Some(netem), _) => Some(netem.mean_delay()),
            (None, Some(trace)) if trace.trace.delay().is_some() => trace.mean_delay(),
            _ => self.effective_delay().mean(),
        }
    }

    /// The largest delay, or for most distributions the p99.9; `None` if unknown.
    pub fn longest_delay(&self) -> Option<Duration> {
        match (&self.exact_netem, &self.trace) {
            (Some(_), _) => None,
            (None, Some(trace)) if trace.trace.delay().is_some() => trace.longest_delay(),
            _ => self.effective_delay().longest(),
        }
    }

    /// Whether a trace sets the propagation delay.
    pub(crate) fn follows_delay_trace(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.trace.delay().is_some())
    }

    /// Whether any setting determines the propagation delay.
    pub(crate) fn says_delay(&self) -> bool {
        self.delay.is_some()
            || self.jitter.is_some()
            || self.follows_delay_trace()
            || self.exact_netem.is_some()
    }

    /// NetEm's single queue, if it is the whole link.
    pub(crate) fn single_netem(&self) -> Option<&ExactNetem> {
        self.exact_netem.as_ref().filter(|_| !self.says_queue())
    }

    /// NetEm's single queue, if it contains another queue or a scheduler.
    pub(crate) fn netem_around(&self) -> Option<&ExactNetem> {
        self.exact_netem.as_ref().filter(|_| self.says_queue())
    }

    fn says_queue(&self) -> bool {
        self.scheduler.is_some() || self.queue != Queue::default()
    }

    /// Mean rate over time, used for default bounds: the trace's mean if it has a rate.
    pub(crate) fn mean_rate(&self) -> Rate {
        match (&self.exact_netem, &self.trace) {
            (Some(netem), _) => netem.rate(),
            (None, Some(trace)) if trace.has_rate() => trace.mean_rate().unwrap_or(Rate::UNLIMITED),
            _ => self.own_rate(),
        }
    }

    /// The effective rate without a trace: the link's rate, or zero while the link is down.
    pub fn effective_rate(&self) -> Rate {
        if self.outage { Rate::DOWN } else { self.own_rate() }
    }

    /// The link's configured rate, or else that of its profile.
    pub(crate) fn own_rate(&self) -> Rate {
        match (self.rate, &self.profile) {
            (Rate::UNLIMITED, Some(profile)) => profile.rate().unwrap_or(Rate::UNLIMITED),
            (rate, _) => rate,
        }
    }

    /// Whether the rate comes from the profile.
    pub(crate) fn has_rate_of_profile(&self) -> bool {
        self.rate == Rate::UNLIMITED && self.own_rate() != Rate::UNLIMITED
    }

    /// The feeds that its delays come from: those of the link, then those of delay lines in classes.
    pub fn feeds(&self) -> Vec<&FeedUse> {
        let of_link = self.delay.iter().flat_map(Delay::feeds);
        of_link.chain(self.scheduler.iter().flat_map(Scheduler::feeds)).collect()
    }

    /// The bound of the queue, given or default. With a scheduler, the bound of each class that has none of
    /// its own.
    pub fn bound(&self) -> Bound {
        self.queue.bound.unwrap_or(self.default_bound.bound())
    }

    /// The bound on the total backlog; `None` if only the classes of a scheduler have bounds.
    pub fn whole_bound(&self) -> Option<Bound> {
        match &self.scheduler {
            None => Some(self.bound()),
            Some(scheduler) => scheduler.whole_bound(self.queue, self.default_bound.bound()),
        }
    }

    /// The classes of the scheduler, in the order of their numbers in the engine; empty without a scheduler
    /// or if it schedules flows.
    pub fn classes(&self) -> Vec<DirectionClass> {
        let Some(scheduler) = &self.scheduler else { return Vec::new() };
        scheduler.direction_classes(self.queue, self.default_bound.bound())
    }

    /// All classes of a shaper, inner classes included, in the order in which the engine reports their
    /// state, each with its depth in the tree; empty without a shaper.
    pub fn class_tree(&self) -> Vec<(String, usize)> {
        let Some(scheduler) = self.scheduler.as_ref().filter(|scheduler| scheduler.kind.is_shaper()) else {
            return Vec::new();
        };
        match scheduler.named() {
            [] => self.classes().into_iter().map(|class| (class.name, 0)).collect(),
            named => {
                let tree = value::Tree::of(named);
                (0..named.len()).map(|at| (named[at].name.clone(), tree.depth(at))).collect()
            }
        }
    }

    /// Returns this direction with another scheduler, given by name or `none`. Keeps the classes or flows
    /// as far as the new scheduler supports them: `sfq`, `fq_codel` and `fq_pie` classify flows themselves,
    /// `pfifo_fast` has fixed bands, and a scheduler without weights drops them.
    ///
    /// # Errors
    /// If there is no such scheduler, or it does not support these classes or this direction.
    pub fn with_scheduler(&self, name: &str) -> Result<Self, ScenarioError> {
        let wrong =
            |problem: Problem| ScenarioError::new("scheduler", name, vec![problem.at(&(0..name.len()))]);
        let files = Files::default();
        let none = Surroundings { hosts: &[], shared: false, stations: &[], files: &files, at: Time::ZERO };
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
}
