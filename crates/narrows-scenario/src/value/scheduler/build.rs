//! From what a scenario says to the engine's queue.

use std::net::IpAddr;

use narrows_core::classify::{self, Classifier, FlowHash};
use narrows_core::queue::{self, Bound};
use narrows_core::sched::{
    self, Dcf, Drr, Fair, Fifo, FlowConfig, Gfq, Overload, Priority, Qfq, Refused, Scheduled, Weight, Wf2q,
};
use narrows_core::{Seed, Stream};

use super::kind::Kind;
use super::{Class, Division, Scheduler};
use crate::value::queue::Queue;

/// What a scheduler's queue depends on besides its own values.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) seed: Seed,
    /// The engine's name of the link.
    pub(crate) link: &'a str,
    /// The direction's queue: that of classes and flows that have none of their own.
    pub(crate) queue: Queue,
    /// The bound of that where none is given.
    pub(crate) default: Bound,
    /// The addresses of a host.
    pub(crate) addresses: &'a dyn Fn(&str) -> Vec<IpAddr>,
}

/// The classes of `pfifo_fast`.
const BANDS: [&str; 3] = ["band-0", "band-1", "band-2"];

impl Scheduler {
    /// More than ever waits.
    pub(crate) const NO_BOUND: Bound = Bound::Packets(u64::MAX);

    /// The engine's queue.
    ///
    /// # Errors
    /// Which class the algorithm does not take, and why.
    pub(crate) fn build(&self, plan: Plan<'_>) -> Result<Box<dyn queue::Queue>, (usize, Refused)> {
        let quantum = self.quantum().unwrap_or_default();
        match self.kind {
            Kind::Fifo => self.assemble(Fifo::default(), plan),
            Kind::Prio | Kind::PfifoFast => self.assemble(Priority::default(), plan),
            Kind::Drr => self.assemble(Drr::new(quantum), plan),
            Kind::Wf2q => self.assemble(Wf2q::default(), plan),
            Kind::Qfq => self.assemble(Qfq::default(), plan),
            Kind::Gfq => self.assemble(Gfq::default(), plan),
            Kind::Sfq => self.assemble(Fair::round_robin(quantum), plan),
            Kind::FqCodel | Kind::FqPie => self.assemble(Fair::new(quantum), plan),
            Kind::Dcf => {
                let stream = Stream::new(plan.seed, plan.link, "backoff");
                self.assemble(Dcf::new(self.dcf.config(), stream), plan)
            }
        }
    }

    /// Whether the algorithm takes the classes, with the first that it does not take, and why.
    pub(super) fn try_it(&self) -> Result<(), (usize, Refused)> {
        let plan = Plan {
            seed: Seed(0),
            link: "",
            queue: Queue::default(),
            default: Self::NO_BOUND,
            addresses: &|_| Vec::new(),
        };
        match self.serves {
            // All alike, and not what anybody wrote.
            Division::Flows { .. } | Division::Bands => Ok(()),
            Division::Classes { .. } => self.build(plan).map(|_| ()),
        }
    }

    fn assemble<S: sched::Scheduler + 'static>(
        &self,
        algorithm: S,
        plan: Plan<'_>,
    ) -> Result<Box<dyn queue::Queue>, (usize, Refused)> {
        let bound = self.whole_bound(plan.queue, plan.default).unwrap_or(Self::NO_BOUND);
        if let Some((count, by)) = self.serves.flows(self.kind) {
            let hash = FlowHash::new(plan.seed, plan.link, count, by);
            let overload = Overload::Longest { batch: self.batch() };
            let mut scheduled = Scheduled::new(algorithm, Classifier::Flows(hash), bound, overload);
            let queue = Queue { policy: self.flow_policy(plan.queue), ..plan.queue };
            let store = queue.stores(bound);
            for _ in 0..count {
                scheduled.add_flow(FlowConfig::default(), store()).map_err(|refused| (0, refused))?;
            }
            return Ok(Box::new(scheduled));
        }
        let classes = self.classes();
        let classifier = match &self.serves {
            Division::Bands => classify::pfifo_fast(),
            _ => classifier(&classes, plan.addresses),
        };
        let mut scheduled = Scheduled::new(algorithm, classifier, bound, Overload::Arriving);
        for (index, class) in classes.iter().enumerate() {
            let queue = class.queue.unwrap_or(plan.queue);
            let bound = queue.bound.or(plan.queue.bound).unwrap_or(plan.default);
            let class = sched::Class {
                flow: FlowConfig {
                    weight: class.weight.unwrap_or(Weight::ONE),
                    longest: class.longest().get() as u32, // at most 65,535
                    band: index as u32,
                },
                bound,
                drop_at: queue.drop,
                store: queue.stores(bound)(),
            };
            scheduled.add_class(class).map_err(|refused| (index, refused))?;
        }
        Ok(Box::new(scheduled))
    }

    /// The classes in force; none where there are flows.
    pub(crate) fn classes(&self) -> Vec<Class> {
        match &self.serves {
            Division::Classes { classes, .. } if classes.is_empty() => vec![Class::all()],
            Division::Classes { classes, .. } => classes.clone(),
            Division::Flows { .. } => Vec::new(),
            Division::Bands => BANDS.map(|name| Class { name: name.into(), ..Class::all() }).into(),
        }
    }

    /// What belongs to each of the classes in force, in one line.
    pub(crate) fn class_words(&self) -> Vec<String> {
        match &self.serves {
            Division::Bands => {
                let asks =
                    ["asks for low delay", "asks for neither, or for both", "asks for high throughput"];
                asks.map(|what| format!("{what} by its TOS bits")).into()
            }
            _ => match &self.classes()[..] {
                [only] if only.matches.is_empty() => vec!["every packet".into()],
                classes => classes.iter().map(Class::describe).collect(),
            },
        }
    }

    /// How much may wait in all: given, or where flows share it, that of the direction's queue if that is given, or the
    /// algorithm's published default, or that of the direction. Nothing where classes have bounds of their own alone.
    pub(crate) fn whole_bound(&self, queue: Queue, default: Bound) -> Option<Bound> {
        let of_flows = || self.has_flows().then(|| queue.bound.or(self.published_bound()).unwrap_or(default));
        self.bound.or_else(of_flows)
    }

    /// What the algorithm's authors, or its first implementation, have for the whole.
    pub(crate) fn published_bound(&self) -> Option<Bound> {
        match self.kind {
            Kind::Sfq => Some(sched::SfqConfig::default().bound),
            Kind::FqCodel => Some(sched::FqCodelConfig::default().bound),
            Kind::FqPie => Some(sched::FqPieConfig::default().bound),
            _ => None,
        }
    }

    /// How many packets the longest flow loses at once.
    pub(crate) fn batch(&self) -> u32 {
        match self.kind {
            Kind::FqCodel => sched::FqCodelConfig::default().batch,
            _ => 1,
        }
    }

    /// What manages the queue of a flow.
    pub(crate) fn flow_policy(&self, queue: Queue) -> crate::value::queue::Policy {
        match self.kind {
            Kind::FqCodel | Kind::FqPie => self.policy,
            _ => queue.policy,
        }
    }
}

/// The first class whose condition holds, or else the one without.
fn classifier(classes: &[Class], addresses: &dyn Fn(&str) -> Vec<IpAddr>) -> Classifier {
    let number = |index: usize| index as u32; // far fewer than 2³² in any file
    let default = classes.iter().position(|class| class.matches.is_empty()).map(number);
    let of = |(index, class): (usize, &Class)| {
        class.matches.iter().map(move |one| (one.condition(addresses), number(index))).collect::<Vec<_>>()
    };
    let rules: Vec<_> = classes.iter().enumerate().flat_map(of).collect();
    match (rules.is_empty(), default) {
        (true, Some(0)) => Classifier::One,
        _ => Classifier::Rules { rules, default },
    }
}
