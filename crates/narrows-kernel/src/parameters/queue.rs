//! Classes and their scheduler (`struct narrows_queue` in `bpf/state.h`).

use narrows_core::Bytes as ByteCount;
use narrows_core::queue::{Bound, FifoPlan};
use narrows_core::sched::hpd::weight_by_backlog;
use narrows_core::sched::{
    BoundOrder, BoundReading, ClassesPlan, DelayPlan, Estimator, Gamma, SchedulerPlan,
};
use narrows_core::service::Overhead;

use super::rules::{Rule, rules_of};
use super::{Bytes, NO_LIMIT, Policy, limits};

/// The most classes.
const MOST_CLASSES: usize = 32;

/// Classes, each a FIFO that drops arriving packets, and their scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueParameters {
    /// Which class sends next.
    pub discipline: Discipline,
    /// The bound of each class, and its queue management.
    pub classes: Vec<(Bound, Policy)>,
    /// The bound of all together; `None` if only classes have one.
    pub bound: Option<Bound>,
    /// The key of draws on arrival.
    pub key: [u32; 2],
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
    /// The least finish tag first, with these weights.
    Wf2q(Vec<u32>),
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

/// A class: its bound and its policy.
fn class(plan: &FifoPlan, overhead: Overhead) -> Result<(Bound, Policy), &'static str> {
    let policy =
        plan.policy.as_ref().map_or(Ok(Policy::default()), |policy| Policy::new(policy, overhead))?;
    Ok((plan.bound, policy))
}

impl QueueParameters {
    /// A FIFO.
    pub fn fifo(bound: Bound) -> Self {
        let classes = vec![(bound, Policy::default())];
        Self { discipline: Discipline::InOrder, classes, bound: None, key: [0; 2], rules: Vec::new() }
    }

    /// A FIFO with queue management, at a wire with this overhead.
    ///
    /// # Errors
    /// What the program does not have.
    pub fn managed(plan: &FifoPlan, key: [u32; 2], overhead: Overhead) -> Result<Self, &'static str> {
        Ok(Self { classes: vec![class(plan, overhead)?], key, ..Self::fifo(plan.bound) })
    }

    /// Classes.
    ///
    /// # Errors
    /// What the program does not have.
    pub fn new(plan: ClassesPlan, key: [u32; 2], overhead: Overhead) -> Result<Self, &'static str> {
        let ClassesPlan { scheduler, classifier, classes, bound } = plan;
        if classes.len() > MOST_CLASSES {
            return Err("the kernel has at most 32 classes");
        }
        let is_managed = classes.iter().any(|class| class.policy.is_some());
        let discipline = match scheduler {
            SchedulerPlan::Priority(bands) if (0..).zip(&bands).all(|(number, band)| number == *band) => {
                Discipline::Priority
            }
            SchedulerPlan::Priority(_) => {
                return Err("the kernel serves classes in the order of their numbers");
            }
            SchedulerPlan::Drr(quanta) => Discipline::Drr(quanta),
            SchedulerPlan::Wf2q(weights) => Discipline::Wf2q(weights),
            SchedulerPlan::Delay { .. } if is_managed => {
                return Err("classes of hpd have no queue management in the kernel");
            }
            SchedulerPlan::Delay { classes, common, bound_order, bound_reading } => {
                Discipline::Delay { classes, common, bound_order, bound_reading }
            }
        };
        let classes = classes.iter().map(|plan| class(plan, overhead)).collect::<Result<_, _>>()?;
        Ok(Self { discipline, classes, bound: Some(bound), key, rules: rules_of(&classifier)? })
    }

    /// Whether some class marks packets.
    pub fn marks(&self) -> bool {
        self.classes.iter().any(|(_, policy)| policy.marks())
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
            Discipline::Wf2q(_) => (4, 0, 0, false, false),
            Discipline::Delay { classes, common, bound_order, bound_reading } => {
                let bit = |(number, class): (u32, &DelayPlan)| {
                    u32::from(class.settings.limit.is_some()) << number // below 32
                };
                let bounded = (0..).zip(classes).map(bit).sum();
                let has_violated = *bound_reading == BoundReading::HasViolated;
                (3, u32::from(*common), bounded, has_violated, *bound_order == BoundOrder::EarliestDeadline)
            }
        };
        let weights = match &self.discipline {
            Discipline::Wf2q(weights) => weights.iter().map(|weight| u64::from(*weight)).sum(),
            _ => 0,
        };
        let bound = self.bound.map_or([NO_LIMIT; 2], limits);
        bound.into_iter().chain([weights]).for_each(|long| bytes.long(long));
        self.key.into_iter().for_each(|word| bytes.word(word));
        for word in [discipline, common, bounded, u32::from(has_violated), u32::from(earliest), 0] {
            bytes.word(word);
        }
        for number in 0..MOST_CLASSES {
            self.put_class(number, bytes);
        }
    }

    fn put_class(&self, number: usize, bytes: &mut Bytes) {
        let class = self.classes.get(number);
        let bound = class.map_or([NO_LIMIT; 2], |(bound, _)| limits(*bound));
        let policy = class.map(|(_, policy)| *policy).unwrap_or_default();
        let quantum = match &self.discipline {
            Discipline::Drr(quanta) => quanta.get(number).map_or(0, |quantum| quantum.get()),
            Discipline::Wf2q(weights) => weights.get(number).map_or(1, |weight| u64::from(*weight)),
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
        bound.into_iter().chain([quantum]).for_each(|long| bytes.long(long));
        policy.put(bytes);
        for long in [slope, factor, limit, gamma, cycle] {
            bytes.long(long);
        }
        for word in [threshold, settings.ddp.get(), estimator, steps, parts, 0] {
            bytes.word(word);
        }
    }
}
