//! The effective settings of a scheduler and its classes.

use narrows_core::Rate;
use narrows_core::queue::{Bound, DropAt};
use serde::Serialize;

use crate::direction::Direction;
use crate::value::{
    self, Child, Class, DirectionClass, Division, Queue, Scheduler, SchedulerKind, Tree, identity_name,
};

/// The scheduler of a link's transmitter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SchedulerExplanation {
    /// Type, as written in a file.
    pub name: String,
    /// Description with the effective parameters.
    pub words: String,
    /// Bound on the total backlog; `None` if only classes have bounds.
    pub bound: Option<String>,
    /// Number of flow queues, if it schedules flows.
    pub flows: Option<u32>,
    /// The flow identity, if it schedules flows.
    pub by: Option<String>,
    /// AQM of each flow's queue, if it schedules flows.
    pub management: Option<String>,
    /// Its classes, if it schedules classes.
    pub classes: Vec<ClassExplanation>,
    /// Whether packets that match no class are dropped.
    pub drops_rest: bool,
}

/// The effective settings of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClassExplanation {
    /// Its name.
    pub name: String,
    /// What belongs to it.
    pub matches: String,
    /// Weight, if the scheduler has weights.
    pub weight: Option<u32>,
    /// Sum of all weights.
    pub weights: Option<u64>,
    /// Bytes per turn, if a class of the scheduler has a quantum of its own.
    pub quantum_bytes: Option<u64>,
    /// Sum of all bytes per turn.
    pub quanta_bytes: Option<u64>,
    /// Its share of the link's rate in bits per second while all classes are backlogged.
    pub rate_bps: Option<u64>,
    /// Longest expected packet in bytes, if the scheduler uses it.
    pub longest_bytes: Option<u64>,
    /// Parameters specific to its scheduler.
    pub parameters: Option<String>,
    /// Bound on its backlog.
    pub bound: String,
    /// `tail`, `head`, or `None` if its queue decides itself which packet to drop.
    pub drop: Option<String>,
    /// AQM of its queue.
    pub management: Option<String>,
    /// Depth in the class tree.
    pub depth: usize,
    /// Shaping parameters, if it is shaped.
    pub shaped: Option<String>,
    /// Whether it is an inner class, whose packets are in the classes below it.
    pub inner: bool,
    /// NetEm options, if it contains NetEm.
    pub netem: Option<String>,
    /// Its delay line, if that replaces its queue.
    pub delay: Option<String>,
    /// Nested scheduler.
    pub scheduler: Option<Box<SchedulerExplanation>>,
}

pub(super) fn scheduler(direction: &Direction, scheduler: &Scheduler) -> SchedulerExplanation {
    let flows = scheduler.flows();
    SchedulerExplanation {
        name: scheduler.kind.name().into(),
        words: words(scheduler),
        bound: scheduler
            .whole_bound(direction.queue, direction.default_bound.bound())
            .map(|bound| bound.to_string()),
        flows: flows.map(|(count, _)| count),
        by: flows.map(|(_, by)| identity_name(by).into()),
        management: flows.and_then(|_| scheduler.flow_policy(direction.queue).words()),
        classes: classes(direction, scheduler),
        drops_rest: matches!(scheduler.serves, Division::Classes { drops_rest: true, .. }),
    }
}

fn words(scheduler: &Scheduler) -> String {
    let mut words = scheduler.kind.words().to_string();
    if let Some(quantum) = scheduler.quantum() {
        words += &format!(", quantum {quantum}");
    }
    words += &scheduler.own.effective();
    words
}

/// All classes, parents before their children.
fn classes(direction: &Direction, scheduler: &Scheduler) -> Vec<ClassExplanation> {
    let (named, current) = (scheduler.named(), scheduler.classes());
    let leaves = scheduler.direction_classes(direction.queue, direction.default_bound.bound());
    let tree = Tree::of(named);
    let turn = scheduler.turns();
    let sums = Sums {
        turn: &turn,
        weights: leaves.iter().filter_map(|class| class.weight).map(|weight| u64::from(weight.get())).sum(),
        quanta: current.iter().filter_map(&turn).sum(),
    };
    let inner = |index: usize| {
        let class = &named[index];
        ClassExplanation {
            name: class.name.clone(),
            shaped: class.shape.as_ref().map(|shape| shape.effective(false)),
            depth: tree.depth(index),
            inner: true,
            ..ClassExplanation::default()
        }
    };
    if named.is_empty() {
        return leaves
            .iter()
            .zip(&current)
            .map(|(class, asked)| explained(direction, scheduler, &sums, class, asked))
            .collect();
    }
    // In the order of the classes.
    let mut leaves = leaves.iter();
    let one = |(index, asked): (usize, &Class)| match tree.is_leaf(index).then(|| leaves.next()).flatten() {
        Some(class) => ClassExplanation {
            depth: tree.depth(index),
            ..explained(direction, scheduler, &sums, class, asked)
        },
        None => inner(index),
    };
    named.iter().enumerate().map(one).collect()
}

/// Of all classes.
struct Sums<'a> {
    weights: u64,
    quanta: u64,
    /// The bytes per turn of a class.
    turn: &'a dyn Fn(&Class) -> Option<u64>,
}

fn explained(
    direction: &Direction,
    scheduler: &Scheduler,
    sums: &Sums<'_>,
    class: &DirectionClass,
    asked: &Class,
) -> ClassExplanation {
    let Sums { weights, quanta, turn } = *sums;
    let quantum = turn(asked);
    // The rate of a nested scheduler depends on the outer one.
    let outermost = direction.scheduler.as_ref().is_some_and(|outer| std::ptr::eq(outer, scheduler));
    let rate = Some(direction.effective_rate())
        // What strict classes leave is not known.
        .filter(|_| scheduler.strict() == 0)
        .filter(|rate| outermost && ![Rate::UNLIMITED, Rate::DOWN].contains(rate))
        .map(|rate| u128::from(rate.bits_per_second()));
    let queue: Queue = asked.queue.unwrap_or(direction.queue);
    let weight = class.weight.map(|weight| weight.get()).filter(|_| quantum.is_none());
    let part = quantum.map(|quantum| (quantum, quanta)).or(weight.map(|weight| (weight.into(), weights)));
    let share = |rate: u128| part.map(|(of, all)| (rate * u128::from(of) / u128::from(all.max(1))) as u64);
    ClassExplanation {
        name: class.name.clone(),
        matches: class.matches.clone(),
        weight,
        weights: weight.map(|_| weights),
        quantum_bytes: quantum,
        quanta_bytes: quantum.map(|_| quanta),
        rate_bps: rate.and_then(share),
        longest_bytes: scheduler.kind.wants_longest().then(|| asked.longest().get()),
        parameters: match scheduler.kind {
            SchedulerKind::Hpd => Some(value::hpd_words(&asked.hpd)),
            SchedulerKind::Dcf => scheduler.station_words(asked),
            SchedulerKind::Ets => scheduler.is_strict(asked).then(|| "strict priority".into()),
            _ => None,
        },
        bound: if class.bound == Scheduler::NO_BOUND {
            "that of all".into()
        } else {
            class.bound.to_string()
        },
        drop: (scheduler.kind != SchedulerKind::Hhf && queue.has_place_to_drop())
            .then(|| drop_word(queue.drop).into()),
        management: queue.policy.words(),
        depth: 0,
        shaped: asked.shape.as_ref().map(|shape| shape.effective(true)),
        inner: false,
        netem: asked.child.as_ref().and_then(Child::netem).map(ToString::to_string),
        delay: match &asked.child {
            Some(Child::Delayed(delayed)) => Some(delayed.to_string()),
            _ => None,
        },
        scheduler: asked
            .child
            .as_ref()
            .and_then(Child::scheduler)
            .map(|inner| Box::new(self::scheduler(direction, inner))),
    }
}

pub(super) fn drop_word(drop: DropAt) -> &'static str {
    match drop {
        DropAt::Tail => "tail",
        DropAt::Head => "head",
    }
}

/// The bound and its origin: of each class, of all flows, or of the single queue.
pub(super) fn bound(direction: &Direction) -> (Bound, String) {
    if let Some(netem) = direction.single_netem() {
        return (netem.limit(), "single queue: waiting packets and packets in flight together".into());
    }
    let given = match direction.queue.bound {
        Some(_) => "given".into(),
        None => direction.default_bound.to_string(),
    };
    match &direction.scheduler {
        Some(scheduler)
            if scheduler.has_flows()
                || matches!(scheduler.kind, SchedulerKind::Cake | SchedulerKind::Hhf) =>
        {
            let bound = direction.whole_bound().unwrap_or(direction.bound());
            let reason = match (scheduler.bound, direction.queue.bound, scheduler.published_bound()) {
                (Some(_), _, _) => "given for the scheduler".into(),
                (None, None, Some(_)) => format!("default of {}", scheduler.kind.name()),
                _ => given,
            };
            let of =
                if scheduler.kind == SchedulerKind::Fq { "each of its bands" } else { "all flows together" };
            (bound, format!("{reason}; {of}"))
        }
        Some(_) => (direction.bound(), format!("{given}; each class without a bound")),
        None => (direction.bound(), given),
    }
}
