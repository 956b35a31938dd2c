//! Classes and their scheduler (`struct narrows_queue` in `bpf/state.h`).

use narrows_core::Bytes as ByteCount;
use narrows_core::queue::Bound;
use narrows_core::sched::hpd::weight_by_backlog;
use narrows_core::sched::{
    BoundOrder, BoundReading, ClassesPlan, DelayPlan, Estimator, Gamma, SchedulerPlan,
};

use super::rules::{Rule, rules_of};
use super::{Bytes, NO_LIMIT, limits};

/// The most classes.
const MOST_CLASSES: usize = 32;

/// Classes, each a FIFO that drops arriving packets, and their scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueParameters {
    /// Which class sends next.
    pub discipline: Discipline,
    /// The bound of each class.
    pub bounds: Vec<Bound>,
    /// The bound of all together.
    pub bound: Bound,
    /// The first of these that holds says the class of a packet. None: all packets are of the first class.
    pub rules: Vec<Rule>,
}

/// Which class sends next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// There is one.
    InOrder,
    /// The lowest number first.
    Priority,
    /// In turns, with these quanta.
    Drr(Vec<ByteCount>),
    /// By hybrid delays.
    Delay {
        /// The classes.
        classes: Vec<DelayPlan>,
        /// See [`SchedulerPlan::Delay`].
        common: bool,
        /// See [`SchedulerPlan::Delay`].
        bound_order: BoundOrder,
        /// See [`SchedulerPlan::Delay`].
        bound_reading: BoundReading,
    },
}

impl QueueParameters {
    /// A FIFO.
    pub const fn fifo(bound: Bound) -> Self {
        Self { discipline: Discipline::InOrder, bounds: Vec::new(), bound, rules: Vec::new() }
    }

    /// Classes.
    ///
    /// # Errors
    /// What the program does not have.
    pub fn new(plan: ClassesPlan) -> Result<Self, &'static str> {
        let ClassesPlan { scheduler, classifier, bounds, bound } = plan;
        if bounds.len() > MOST_CLASSES {
            return Err("the kernel has at most 32 classes");
        }
        let discipline = match scheduler {
            SchedulerPlan::Priority(bands) if (0..).zip(&bands).all(|(number, band)| number == *band) => {
                Discipline::Priority
            }
            SchedulerPlan::Priority(_) => {
                return Err("the kernel serves classes in the order of their numbers");
            }
            SchedulerPlan::Drr(quanta) => Discipline::Drr(quanta),
            SchedulerPlan::Delay { classes, common, bound_order, bound_reading } => {
                Discipline::Delay { classes, common, bound_order, bound_reading }
            }
        };
        Ok(Self { discipline, bounds, bound, rules: rules_of(&classifier)? })
    }

    /// The weight γ of DBHPD with 0 to `packets` packets in a class.
    pub(super) fn weights(&self, packets: u32) -> Vec<u64> {
        let Discipline::Delay { classes, .. } = &self.discipline else { return Vec::new() };
        let by_backlog = |class: &DelayPlan| class.settings.gamma == Gamma::OfBacklog;
        if !classes.iter().any(by_backlog) {
            return Vec::new();
        }
        (0..=packets).map(|packets| weight_by_backlog(classes.len() as u32, packets)).collect()
    }

    pub(super) fn put(&self, bytes: &mut Bytes) {
        let (discipline, common, bounded, has_violated, earliest) = match &self.discipline {
            Discipline::InOrder => (0, 0, 0, false, false),
            Discipline::Priority => (1, 0, 0, false, false),
            Discipline::Drr(_) => (2, 0, 0, false, false),
            Discipline::Delay { classes, common, bound_order, bound_reading } => {
                let bit = |(number, class): (u32, &DelayPlan)| {
                    u32::from(class.settings.limit.is_some()) << number // below 32
                };
                let bounded = (0..).zip(classes).map(bit).sum();
                let has_violated = *bound_reading == BoundReading::HasViolated;
                (3, u32::from(*common), bounded, has_violated, *bound_order == BoundOrder::EarliestDeadline)
            }
        };
        limits(self.bound).into_iter().for_each(|limit| bytes.long(limit));
        for word in [discipline, common, bounded, u32::from(has_violated), u32::from(earliest), 0] {
            bytes.word(word);
        }
        for number in 0..MOST_CLASSES {
            self.put_class(number, bytes);
        }
    }

    fn put_class(&self, number: usize, bytes: &mut Bytes) {
        let bound = self.bounds.get(number).map_or([NO_LIMIT; 2], |bound| limits(*bound));
        let quantum = match &self.discipline {
            Discipline::Drr(quanta) => quanta.get(number).map_or(0, |quantum| quantum.get()),
            _ => 0,
        };
        let delay = match &self.discipline {
            Discipline::Delay { classes, .. } => classes.get(number),
            _ => None,
        };
        let (slope, factor) = delay.map_or((0, 0), |delay| (delay.slope, delay.factor));
        let settings = delay.map(|delay| delay.settings).unwrap_or_default();
        let gamma = match settings.gamma {
            Gamma::Fixed(parts) => u64::from(parts.get()) << 22,
            Gamma::OfBacklog => NO_LIMIT,
        };
        let (estimator, threshold, cycle, steps, parts) = match settings.estimator {
            Estimator::Ewma => (0, 0, 0, 0, 0),
            Estimator::EwmaR { threshold, cycle } => (1, threshold, cycle.nanos(), 0, 0),
            Estimator::EwmaPe { steps, width } => (2, 0, 0, u32::from(steps), width.parts()),
        };
        let limit = settings.limit.map_or(NO_LIMIT, |limit| limit.nanos());
        for long in bound.into_iter().chain([quantum, slope, factor, limit, gamma, cycle]) {
            bytes.long(long);
        }
        for word in [threshold, settings.ddp.get(), estimator, steps, parts, 0] {
            bytes.word(word);
        }
    }
}
