//! Queues of links, with classes and schedulers of every kind.

use narrows_core::classify::{Classifier, Condition, FlowHash, Identity, Lanes};
use narrows_core::netem::{self, Chance, Netem, Share};
use narrows_core::queue::{Bound, DropAt, Fifo, Queue};
use narrows_core::sched::{
    self, Abe, AbeConfig, Cake, CakeConfig, Cbq, CbqClass, Class, Drr, ErrorWidth, Estimator, Fair,
    FlowConfig, Gfq, Hfsc, HfscClass, HfscCurve, Hpd, HpdClass, HpdConfig, Htb, HtbClass, Kps, Overload,
    PacedFq, PacedFqConfig, Priority, Qfq, Scheduled, Scheduler, Store, TbfConfig, Weight, Wf2q,
};
use narrows_core::{Bytes, DelayQueue, Duration, NetemQueue, Order, Probability, Rate, Seed, Time, model};

use crate::foreign::{Gate, Slots};

#[derive(Clone, Copy, Debug)]
pub(crate) enum QueuePlan {
    Fifo(Bound, DropAt),
    Gate {
        bound: Bound,
        period: Duration,
        patience: Duration,
    },
    /// Fair queueing with this maximum rate of each flow, if any.
    Paced {
        bound: Bound,
        rate: Option<u64>,
    },
    Classes {
        scheduler: SchedulerPlan,
        bound: Bound,
        overload: Overload,
        limits: Limits,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum SchedulerPlan {
    Fifo,
    Priority,
    Drr,
    /// Two strict bands; four that share.
    Ets,
    /// Gates of 200 and 300 ms: long enough for any packet at 100 kbit/s.
    Taprio,
    Wf2q,
    Qfq,
    Gfq,
    Kps,
    Fair,
    /// With a bound for every second class.
    Hpd,
    /// A tree of three levels, some of it oversubscribed.
    Htb,
    /// The same with curves of two pieces.
    Hfsc,
    /// The same with a class of each kind.
    Cbq,
    /// Two plain classes, by length; green may wait so long.
    Abe(Duration),
    /// All tins, shaped to so many Mbit/s or to none.
    Cake(Option<u64>),
    /// Lets packets go in slots of so many nanoseconds only.
    Slots(u64),
}

/// How much waits in the classes of a queue with classes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limits {
    /// Everything that comes.
    None,
    /// A few packets or bytes; a queue inside a class drops what has waited too long; and some packets have no class.
    Tight,
}

impl QueuePlan {
    pub(super) fn build(self) -> Box<dyn Queue> {
        match self {
            Self::Fifo(bound, drop_at) => Box::new(Fifo::new(bound, drop_at)),
            Self::Gate { bound, period, patience } => Box::new(Gate::new(bound, period, patience)),
            Self::Paced { bound, rate } => {
                let max_rate = rate.map(Rate::from_bits_per_second);
                let config = PacedFqConfig { bound, max_rate, flow_limit: 9, ..PacedFqConfig::default() };
                Box::new(PacedFq::new(config, FlowHash::new(Seed(1), "paced", 4, Identity::FiveTuple)))
            }
            Self::Classes { scheduler, bound, overload, limits } => match scheduler {
                SchedulerPlan::Fifo => classes(sched::Fifo::default(), bound, overload, limits),
                SchedulerPlan::Priority => classes(Priority::default(), bound, overload, limits),
                SchedulerPlan::Drr => classes(Drr::new(Bytes::new(700)), bound, overload, limits),
                SchedulerPlan::Ets => classes(sched::Ets::new(Bytes::new(700), 2), bound, overload, limits),
                SchedulerPlan::Taprio => classes(taprio(), bound, overload, limits),
                SchedulerPlan::Wf2q => classes(Wf2q::default(), bound, overload, limits),
                SchedulerPlan::Gfq => classes(Gfq::default(), bound, overload, limits),
                SchedulerPlan::Kps => classes(Kps::default(), bound, overload, limits),
                SchedulerPlan::Qfq => classes(Qfq::default(), bound, overload, limits),
                SchedulerPlan::Fair => classes(Fair::new(Bytes::new(700)), bound, overload, limits),
                SchedulerPlan::Hpd => classes(hpd(), bound, overload, limits),
                SchedulerPlan::Htb => classes(htb(), bound, overload, limits),
                SchedulerPlan::Hfsc => classes(hfsc(), bound, overload, limits),
                SchedulerPlan::Cbq => classes(cbq(), bound, overload, limits),
                SchedulerPlan::Abe(max_delay) => abe(max_delay, bound, limits),
                SchedulerPlan::Cake(bandwidth) => cake(bandwidth, bound, limits),
                SchedulerPlan::Slots(nanos) => {
                    classes(Slots::new(Duration::from_nanos(nanos)), bound, overload, limits)
                }
            },
        }
    }
}

fn taprio() -> sched::Taprio {
    let entry = |millis, open| sched::TaprioEntry { lasts: Duration::from_millis(millis), open };
    sched::Taprio::new(Time::ZERO, &[entry(200, 0b01_0101), entry(300, 0b11_1110)], None)
        .expect("entries that last")
}

/// Classes of all three estimators, every second with a bound that is often at stake.
fn hpd() -> Hpd {
    let estimators = [
        Estimator::Ewma,
        Estimator::EwmaR { threshold: 3, cycle: Duration::from_micros(500) },
        Estimator::EwmaPe { steps: 7, width: ErrorWidth::Tenth },
    ];
    let class = |number: u32| HpdClass {
        ddp: (number + 1).try_into().expect("not 0"),
        limit: number.is_multiple_of(2).then_some(Duration::from_micros(300)),
        estimator: estimators[number as usize % 3],
        ..HpdClass::default()
    };
    Hpd::new(HpdConfig { classes: (0..6).map(class).collect(), ..HpdConfig::default() })
}

/// Green packets are the short ones. Without limits none is too late.
fn abe(max_delay: Duration, bound: Bound, limits: Limits) -> Box<dyn Queue> {
    let short = Condition { lengths: Some(0..=400), ..Condition::default() };
    let (max_delay, default) = match limits {
        Limits::None => (Duration::MAX, Some(1)),
        Limits::Tight => (max_delay, None),
    };
    let long = Condition { lengths: Some(401..=1200), ..Condition::default() };
    let rules = Classifier::Rules { rules: vec![(short, 0), (long, 1)], default };
    let config = AbeConfig { max_delay, bias: Probability::from_ratio(2, 3).expect("below 1") };
    let mut queue = Scheduled::new(Abe::new(config), rules, bound, Overload::Scheduler);
    for _ in 0..2 {
        let class =
            Class { flow: FlowConfig::default(), bound: ENOUGH, drop_at: DropAt::Tail, store: Store::Plain };
        queue.add_class(class).expect("it takes two flows");
    }
    Box::new(queue)
}

/// Without limits it drops nothing: its target is beyond any sojourn time.
fn cake(bandwidth: Option<u64>, bound: Bound, limits: Limits) -> Box<dyn Queue> {
    let (bound, rtt) = match limits {
        Limits::None => (ENOUGH, Duration::from_secs(1_000_000)),
        Limits::Tight => (bound, Duration::from_micros(300)),
    };
    let config = CakeConfig {
        bandwidth: bandwidth.map_or(Rate::UNLIMITED, mbit),
        rtt,
        ingress: matches!(limits, Limits::Tight),
        ..CakeConfig::default()
    };
    Box::new(Cake::new(config, bound, Seed(1), "cake"))
}

/// What each of six leaves has: rate in Mbit/s, parent, priority.
const LEAVES: [(u64, usize, u8); 6] = [(1, 0, 0), (20, 1, 1), (5, 1, 0), (1, 0, 1), (3, 1, 0), (50, 0, 2)];

fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate * 1_000_000)
}

fn htb() -> Htb {
    let class = |rate, ceil, parent, priority| HtbClass {
        parent,
        rate: mbit(rate),
        ceil: mbit(ceil),
        priority,
        ..HtbClass::default()
    };
    let mut classes = vec![class(60, 60, None, 0), class(10, 40, Some(0), 0)];
    classes.extend(LEAVES.map(|(rate, parent, priority)| class(rate, rate * 2, Some(parent), priority)));
    Htb::new(classes).expect("in range")
}

fn hfsc() -> Hfsc {
    let curve = |m1, m2| Some(HfscCurve { m1: mbit(m1), d: Duration::from_millis(2), m2: mbit(m2) });
    let inner = |parent, rate| HfscClass { parent, ls: curve(0, rate), ul: curve(rate, rate), rt: None };
    let mut classes = vec![inner(None, 60), inner(Some(0), 10)];
    classes.extend(LEAVES.map(|(rate, parent, priority)| HfscClass {
        parent: Some(parent),
        rt: curve(rate * u64::from(priority) * 2, rate).filter(|_| rate < 50),
        ls: curve(rate, rate * 2).filter(|_| rate > 1),
        ul: curve(0, rate).filter(|_| rate == 5),
    }));
    // A leaf has at least one curve: those of 1 Mbit/s have a guarantee, that of 50 a share.
    Hfsc::new(classes).expect("in range")
}

fn cbq() -> Cbq {
    let class = |rate, parent, priority| CbqClass {
        parent,
        rate: mbit(rate),
        priority: priority + 1,
        maxburst: 5,
        ..CbqClass::default()
    };
    let mut classes = vec![class(60, None, 0), class(10, Some(0), 0)];
    classes.extend(LEAVES.map(|(rate, parent, priority)| class(rate, Some(parent), priority)));
    (classes[2].bounded, classes[3].isolated, classes[4].exempt) = (true, true, true);
    (classes[5].minburst, classes[5].bounded) = (3, true);
    Cbq::new(mbit(60), Bytes::new(800), classes).expect("in range")
}

/// Classes by length and lane: two plain ones, a gate, a queue with classes of its own, the single queue of sch_netem, and a
/// shaped one.
fn classes<S: Scheduler + 'static>(
    scheduler: S,
    bound: Bound,
    overload: Overload,
    limits: Limits,
) -> Box<dyn Queue> {
    let lengths = |lengths| Condition { lengths: Some(lengths), ..Condition::default() };
    let other_lane = Condition { lane: Some(Lanes::only(1)), ..Condition::default() };
    let rules = vec![
        (lengths(0..=200), 0),
        (lengths(201..=800), 1),
        (lengths(801..=1000), 4),
        (lengths(1001..=1200), 5),
        (other_lane, 2),
    ];
    let (few, bytes, patience, default) = match limits {
        Limits::None => (ENOUGH, ENOUGH, Duration::MAX, Some(3)),
        Limits::Tight => {
            let patience = Duration::from_micros(800);
            (Bound::Packets(5), Bound::Bytes(Bytes::new(3_000)), patience, None)
        }
    };
    let mut queue = Scheduled::new(scheduler, Classifier::Rules { rules, default }, bound, overload);
    let gate = Gate::new(few, GATE, patience);
    let hash = FlowHash::new(Seed(1), "inside", 3, Identity::FiveTuple);
    let mut inside = Scheduled::new(
        Fair::new(Bytes::new(700)),
        Classifier::Flows(hash),
        few,
        Overload::Longest { batch: 2, drop_at: DropAt::Head },
    );
    let line = model::Uniform::new(Duration::ZERO, Duration::from_micros(300)).expect("in order");
    let line = DelayQueue::new(Box::new(line), Order::Allow, few, Seed(1), "line inside");
    for store in [Store::Plain, Store::Plain, Store::Queue(Box::new(line))] {
        inside.add_flow(FlowConfig::default(), store).expect("it takes any flow");
    }
    // Where there are no limits, nothing is lost or made either.
    let (odds, bucket) = match limits {
        Limits::None => (0.0, 3_000),
        Limits::Tight => (20.0, 1_150),
    };
    let chance = Chance { share: Share::from_percent(odds).expect("a share"), ..Chance::NEVER };
    let netem = Netem {
        delay: Duration::from_micros(200),
        jitter: Duration::from_micros(150),
        duplication: chance,
        corruption: chance,
        loss: netem::Loss::Random(chance),
        limit: u32::MAX,
        ..Netem::default()
    };
    let single = NetemQueue::new(netem, Seed(1), "single inside");
    // The smaller bucket is too small for the longest of its packets.
    let tbf = TbfConfig { rate: mbit(5), burst: Bytes::new(bucket), peak: None, mpu: Bytes::new(0) };
    let tbf = sched::Tbf::new(tbf).expect("in range");
    let mut shaped = Scheduled::new(tbf, Classifier::One, few, Overload::Arriving);
    let plain = Class { flow: FlowConfig::default(), bound: few, drop_at: DropAt::Head, store: Store::Plain };
    shaped.add_class(plain).expect("it takes one flow");
    let stores = [
        (few, DropAt::Tail, Store::Plain),
        (bytes, DropAt::Head, Store::Plain),
        (few, DropAt::Tail, Store::Queue(Box::new(gate))),
        (few, DropAt::Tail, Store::Queue(Box::new(inside))),
        (few, DropAt::Tail, Store::Queue(Box::new(single))),
        (few, DropAt::Tail, Store::Queue(Box::new(shaped))),
    ];
    for ((bound, drop_at, store), number) in stores.into_iter().zip(1..) {
        let weight = Weight::new(number).expect("not 0");
        let flow = FlowConfig { weight, band: 6 - number, ..FlowConfig::default() };
        queue.add_class(Class { flow, bound, drop_at, store }).expect("it takes such flows");
    }
    Box::new(queue)
}

/// The period of the gate inside a class. Where the scheduler declines too, they must say yes at one instant sometime.
pub(crate) const GATE: Duration = Duration::from_micros(20);

/// As good as no bound.
const ENOUGH: Bound = Bound::Packets(u64::MAX);
