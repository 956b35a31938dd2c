//! Schedulers and classes as tc options: the current settings are converted to a document and printed with
//! the tables that parse the options.

use narrows_core::queue::Bound;
use narrows_core::sched::{ErrorWidth, Estimator, HpdClass, Weight};
use narrows_core::{Bytes, Duration};

use crate::dialect::number;
use crate::keys::Parameters;
use crate::keys::kind::{Form, text};
use crate::keys::quantity::ANY_RATE;
use crate::node::{Node, Table, Value};
use crate::tc::{bucket, class, qdisc};
use crate::value::{Cbq, CbqClass, HtbClass, Scheduler, Tbf};

/// The keys that differ from their defaults.
fn document(of: &dyn Parameters) -> Table {
    let mut keys = Table::default();
    of.write(&mut keys);
    keys
}

/// `bound` is that of the scheduler.
pub(super) fn tbf(tbf: &Tbf, bound: Option<Bound>) -> String {
    let mut keys = document(tbf);
    match tbf.peakrate {
        Some(_) => keys = keys.and("mtu", text(tbf.mtu)),
        None => keys.remove("mtu"),
    }
    if let Some(Bound::Bytes(bytes)) = bound {
        keys.put("bound", text(bytes));
    }
    bucket::TBF.show(&keys).unwrap_or_default()
}

pub(super) fn cbq(cbq: &Cbq) -> String {
    qdisc::CBQ.show(&document(cbq)).unwrap_or_default()
}

/// Includes the effective bursts. The priority and the quantum of an inner class have no effect.
pub(super) fn htb_class(class: &HtbClass, is_leaf: bool) -> String {
    let mut keys = document(class);
    if is_leaf {
        keys = keys.and("priority", number(class.priority));
    } else {
        keys.remove("priority");
        keys.remove("quantum");
    }
    if let Some((_, Node { value: Value::Table(parts), .. })) = keys.take("overhead") {
        parts.get("bytes").into_iter().for_each(|bytes| keys.set(bucket::OVERHEAD, bytes.clone()));
        parts.get("cells").into_iter().for_each(|cells| keys.set(bucket::LINK_LAYER, cells.clone()));
    }
    let ceil = ANY_RATE.write(&class.ceil()).unwrap_or(Value::Boolean(false));
    for (key, value) in [("ceil", ceil), ("burst", text(class.burst())), ("cburst", text(class.cburst()))] {
        keys.set(key, Node::new(value));
    }
    class::HTB.show(&keys).unwrap_or_default()
}

pub(super) fn cbq_class(class: &CbqClass) -> String {
    class::CBQ.show(&document(class)).unwrap_or_default()
}

/// Without the `priomap`.
pub(super) fn ets(scheduler: &Scheduler) -> String {
    let mut words = format!("bands {}", scheduler.named().len());
    if scheduler.strict() > 0 {
        words += &format!(" strict {}", scheduler.strict());
    }
    let quanta: Vec<String> =
        scheduler.named().iter().filter_map(scheduler.turns()).map(|turn| turn.to_string()).collect();
    if !quanta.is_empty() {
        words += &format!(" quanta {}", quanta.join(" "));
    }
    words
}

/// Without the `map`, which comes next.
pub(super) fn taprio(scheduler: &Scheduler) -> String {
    format!("num_tc {}", scheduler.named().len())
}

/// What follows the `map` of `taprio`.
pub(super) fn schedule(scheduler: &Scheduler) -> String {
    let classes = scheduler.named().len();
    let queues: Vec<String> = (0..classes).map(|queue| format!("1@{queue}")).collect();
    let mut words = format!(" queues {} base-time 0", queues.join(" "));
    let (entries, cycle) = scheduler.schedule();
    if let Some(cycle) = cycle {
        words += &format!(" cycle-time {}", cycle.nanos());
    }
    for (lasts, open) in entries {
        // The first class is the last traffic class.
        let gates = open.iter().fold(0u64, |gates, class| gates | 1 << (classes - 1 - class));
        words += &format!(" sched-entry S {gates:02x} {}", lasts.nanos());
    }
    words + " clockid CLOCK_TAI"
}

pub(super) fn drr_class(turn: Bytes) -> String {
    let mut keys = Table::default();
    keys.put("quantum", text(turn));
    class::DRR.show(&keys).unwrap_or_default()
}

pub(super) fn qfq_class(weight: Weight, longest: Bytes) -> String {
    let mut keys = Table::default();
    keys.put("weight", number(weight));
    keys.put("longest", text(longest));
    class::QFQ.show(&keys).unwrap_or_default()
}

/// As the published implementation prints it, and whether that is complete. Includes options that the
/// estimator does not use.
pub(super) fn hpd_class(
    class: &HpdClass,
    num: u16,
    is_default: bool,
    packets: Option<u64>,
) -> (String, bool) {
    let mut keys = Table::default();
    // tc supports 32 numbers.
    if num <= 32 {
        keys.put("num", number(num));
    }
    keys.put("default", Value::Boolean(is_default));
    let (mut restart, mut cycle) = (Estimator::THRESHOLD, Estimator::CYCLE);
    let (mut steps, mut said) = (ErrorWidth::Eighth.steps(), true);
    let estimator = match class.estimator {
        Estimator::Ewma => "ewma",
        Estimator::EwmaR { threshold, cycle: time } => {
            (restart, cycle) = (threshold, time);
            "ewma-r"
        }
        Estimator::EwmaPe { steps: own, width } => {
            (steps, said) = (own, width == ErrorWidth::Eighth);
            "ewma-pe"
        }
    };
    keys.put("estimator", text(estimator));
    keys.put("limit", text(class.limit.unwrap_or(Duration::ZERO)));
    if let Some(packets) = packets {
        keys.put("queue", text(Bound::Packets(packets)));
    }
    let whole = crate::keys::whole(class);
    for key in ["ddp", "gamma", "g"] {
        whole.get(key).into_iter().for_each(|node| keys.set(key, node.clone()));
    }
    keys.put("threshold", number(restart));
    keys.put("cycle", text(cycle));
    keys.put("steps", number(steps));
    (class::HPD.show(&keys).unwrap_or_default(), said)
}
