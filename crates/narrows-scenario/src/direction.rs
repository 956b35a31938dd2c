//! One direction of a link, or a medium that both share: what the keys of its table say, and what that becomes.

mod build;
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
    self, Chance, Corrupt, Delay, DelaySource, DirectionClass, ExactNetem, Loss, PolicerUse, ProfileUse,
    Queue, Reorder, Scheduler, SchedulerKind, Slots, Surroundings, TraceUse,
};

/// What one direction of a link does. The default does nothing: unlimited, without delay or impairment.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Bits a second.
    pub rate: Rate,
    /// Whether the wire is down at present, whatever its rate.
    pub outage: bool,
    /// The propagation delay; nothing where none is given.
    pub delay: Option<Delay>,
    /// Makes a constant delay a normal one with this standard deviation.
    pub jitter: Option<Duration>,
    /// Where packets wait; with a scheduler, where those of a class or flow do that has no queue of its own.
    pub queue: Queue,
    /// What shares the transmitter among classes or flows.
    pub scheduler: Option<Scheduler>,
    /// The bound of the queue where none is given, and how it came about.
    pub default_bound: DefaultBound,
    /// How many bits a packet is.
    pub overhead: Overhead,
    /// How long a packet holds the wire beyond its bits.
    pub profile: Option<ProfileUse>,
    /// The most that may pass at once after the wire was idle.
    pub burst: Bytes,
    /// Losses other than those of a full queue.
    pub loss: Loss,
    /// Packets that are duplicated on the wire.
    pub duplicate: Chance,
    /// Bits that are flipped on the wire.
    pub corrupt: Corrupt,
    /// Packets that skip the delay.
    pub reorder: Option<Reorder>,
    /// Slots in which alone packets leave.
    pub slots: Option<Slots>,
    /// What takes the place of the rate, the delay and others over time.
    pub trace: Option<TraceUse>,
    /// NetEm's single queue, exactly, in place of everything else.
    pub exact_netem: Option<ExactNetem>,
    /// What is a plain value in the engine, too: order, line limit, MTU.
    pub settings: LinkSettings,
    /// What holds arriving packets to a rate without a queue.
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
            policer: None,
        }
    }
}

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
        if let Some(row) = keys::named::<Self>(key) {
            return row.set(self, node, around);
        }
        match key.split_once('.') {
            Some(("delay", "order")) => self.set_unchecked("order", node, around),
            Some((key, path)) => self.set_part(key, path, node, around),
            None => Err(Problem::new(format!("a link has no `{key}`")).at(&node.span)),
        }
    }

    /// Sets the keys that NetEm's words mean.
    fn set_netem(&mut self, node: &Node, around: Surroundings<'_>) -> Result<(), Problem> {
        let place = |problem: Problem| problem.put_at(&node.span);
        for (key, text) in
            netem::read(node)?.assignments().map_err(|error| error.into_problem().put_at(&node.span))?
        {
            self.set_unchecked(key, &Node::typed(&text, 0), around).map_err(place)?;
        }
        Ok(())
    }

    /// What counts as the length of a packet: what is given, or for stations that contend what their MAC adds, and for
    /// opportunities the four bytes that mahimahi's device adds.
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

    /// The delay that packets have without a trace, with the jitter; zero where none is given.
    pub fn effective_delay(&self) -> Delay {
        match (self.delay.clone().unwrap_or(Delay::constant(Duration::ZERO)), self.jitter) {
            (Delay { source: DelaySource::Constant(mean), per_byte }, Some(sd)) => {
                Delay { per_byte, ..Delay::normal(mean, sd) }
            }
            (delay, _) => delay,
        }
    }

    /// The mean of the delay that packets have, where it is known: that of the trace where it has one.
    pub fn mean_delay(&self) -> Option<Duration> {
        match (&self.exact_netem, &self.trace) {
            (Some(netem), _) => Some(netem.mean_delay()),
            (None, Some(trace)) if trace.trace.delay().is_some() => trace.mean_delay(),
            _ => self.effective_delay().mean(),
        }
    }

    /// The longest delay, or that which one packet in a thousand exceeds, where it is known.
    pub fn longest_delay(&self) -> Option<Duration> {
        match (&self.exact_netem, &self.trace) {
            (Some(_), _) => None,
            (None, Some(trace)) if trace.trace.delay().is_some() => trace.longest_delay(),
            _ => self.effective_delay().longest(),
        }
    }

    /// Whether a trace says how long packets propagate.
    pub(crate) fn follows_delay_trace(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.trace.delay().is_some())
    }

    /// Whether it is said how long packets propagate.
    pub(crate) fn says_delay(&self) -> bool {
        self.delay.is_some()
            || self.jitter.is_some()
            || self.follows_delay_trace()
            || self.exact_netem.is_some()
    }

    /// NetEm's single queue, where it is all of the link.
    pub(crate) fn single_netem(&self) -> Option<&ExactNetem> {
        self.exact_netem.as_ref().filter(|_| !self.says_queue())
    }

    /// NetEm's single queue, where another queue or a scheduler is in it.
    pub(crate) fn netem_around(&self) -> Option<&ExactNetem> {
        self.exact_netem.as_ref().filter(|_| self.says_queue())
    }

    fn says_queue(&self) -> bool {
        self.scheduler.is_some() || self.queue != Queue::default()
    }

    /// The rate over time, for bounds: the mean of the trace where it has one.
    pub(crate) fn mean_rate(&self) -> Rate {
        match (&self.exact_netem, &self.trace) {
            (Some(netem), _) => netem.rate(),
            (None, Some(trace)) if trace.has_rate() => trace.mean_rate().unwrap_or(Rate::UNLIMITED),
            _ => self.own_rate(),
        }
    }

    /// The rate that packets have where no trace says it: that of the link, or none while it is down.
    pub fn effective_rate(&self) -> Rate {
        if self.outage { Rate::DOWN } else { self.own_rate() }
    }

    /// The rate that the link has by itself: its own, or where it gives none that of its profile.
    pub(crate) fn own_rate(&self) -> Rate {
        match (self.rate, &self.profile) {
            (Rate::UNLIMITED, Some(profile)) => profile.rate().unwrap_or(Rate::UNLIMITED),
            (rate, _) => rate,
        }
    }

    /// Whether the rate is that of the profile.
    pub(crate) fn has_rate_of_profile(&self) -> bool {
        self.rate == Rate::UNLIMITED && self.own_rate() != Rate::UNLIMITED
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
        scheduler.direction_classes(self.queue, self.default_bound.bound())
    }

    /// The classes of a shaper, those with others below them included, in the order in which the engine tells where they
    /// stand, each with how many are above it; none without a shaper.
    pub fn class_tree(&self) -> Vec<(String, usize)> {
        let Some(scheduler) = self.scheduler.as_ref().filter(|scheduler| scheduler.kind.is_shaper()) else {
            return Vec::new();
        };
        match scheduler.named() {
            [] => self.classes().into_iter().map(|class| (class.name, 0)).collect(),
            named => (0..named.len()).map(|at| (named[at].name.clone(), value::depth(named, at))).collect(),
        }
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
        let files = Files::default();
        let none = Surroundings { hosts: &[], shared: false, files: &files, at: Time::ZERO };
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
