//! Descriptions of networks and of what is handed in, from which the same run can be made again and again.

use narrows_core::classify::{Classifier, Condition, FlowHash, Identity};
use narrows_core::model::{Constant, DelayModel, Independent, Normal, Selector, Uniform};
use narrows_core::queue::{Bound, DropAt, Fifo, Queue};
use narrows_core::sched::{
    self, Class, Drr, Fair, FlowConfig, Gfq, Overload, Priority, Qfq, Scheduled, Scheduler, Store, Weight,
    Wf2q,
};
use narrows_core::service::{ConstantRate, Overhead, ServiceCurve};
use narrows_core::{
    Bytes, Change, Corruption, Duration, LinkConfig, Loss, Mtu, NetworkConfig, Order, PortConfig, Probability, Protocol,
    Rate, Reorder, Seed, Target, Time,
};

use crate::foreign::{EveryNth, Gate, InTurn, Outage, Slots};

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) links: Vec<LinkPlan>,
    /// Name and entry of each port.
    pub(crate) ports: Vec<(String, Target)>,
    pub(crate) memory: u64,
    pub(crate) visits: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct LinkPlan {
    pub(crate) name: String,
    pub(crate) lanes: Vec<Target>,
    pub(crate) queue: QueuePlan,
    pub(crate) service: ServicePlan,
    pub(crate) overhead: Overhead,
    pub(crate) ingress_loss: Option<LossPlan>,
    pub(crate) wire_loss: Option<LossPlan>,
    pub(crate) corruption: Probability,
    pub(crate) duplication: Probability,
    pub(crate) delay: DelayPlan,
    pub(crate) order: Order,
    pub(crate) reorder: Option<ReorderPlan>,
    pub(crate) line_limit: Option<u64>,
    pub(crate) mtu: Option<Mtu>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum QueuePlan {
    Fifo(Bound, DropAt),
    Gate { bound: Bound, period: Duration, patience: Duration },
    Classes { scheduler: SchedulerPlan, bound: Bound, overload: Overload, limits: Limits },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum SchedulerPlan {
    Fifo,
    Priority,
    Drr,
    Wf2q,
    Qfq,
    Gfq,
    Fair,
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

#[derive(Clone, Copy, Debug)]
pub(crate) enum ServicePlan {
    Rate(Rate),
    Outage(Outage),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum LossPlan {
    Independent(Probability),
    EveryNth(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReorderPlan {
    pub(crate) probability: Probability,
    pub(crate) gap: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum DelayPlan {
    Constant(Duration),
    Uniform(Duration, Duration),
    Normal(Duration, Duration),
    InTurn(Duration, Duration),
}

/// What is handed in.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) at: Time,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Packet(PacketPlan),
    /// A change of the link with this index in the plan.
    Change(usize, ChangePlan),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketPlan {
    /// Index in the plan.
    pub(crate) port: usize,
    pub(crate) length: u32,
    pub(crate) network: Protocol,
}

#[derive(Clone, Debug)]
pub(crate) enum ChangePlan {
    Service(ServicePlan),
    Queue(QueuePlan),
    QueueBound(Bound),
    Overhead(Overhead),
    IngressLoss(Option<LossPlan>),
    WireLoss(Option<LossPlan>),
    Corruption(Probability),
    Duplication(Probability),
    Delay(DelayPlan),
    Order(Order),
    Reorder(Option<ReorderPlan>),
    LineLimit(Option<u64>),
    Mtu(Option<Mtu>),
}

impl Plan {
    pub(crate) fn config(&self) -> NetworkConfig {
        let mut config = NetworkConfig::new(Seed(self.seed));
        config.memory = Bytes::new(self.memory);
        config.visits = self.visits;
        config.links = self.links.iter().map(LinkPlan::config).collect();
        let port = |(name, entry): &(String, Target)| PortConfig { name: name.clone(), entry: entry.clone() };
        config.ports = self.ports.iter().map(port).collect();
        config
    }

    /// A chain of links from port `a` to port `z`.
    pub(crate) fn chain(seed: u64, links: Vec<LinkPlan>) -> Self {
        let lane = |name: &String| Target::Link { name: name.clone(), lane: 0 };
        let names: Vec<_> = links.iter().map(|link| link.name.clone()).collect();
        let mut plan = Self { seed, links, ports: Vec::new(), memory: 1 << 30, visits: 64 };
        for (at, link) in plan.links.iter_mut().enumerate() {
            link.lanes = vec![names.get(at + 1).map_or(Target::Port("z".into()), lane)];
        }
        plan.ports = vec![("a".into(), lane(&names[0])), ("z".into(), Target::Port("z".into()))];
        plan
    }
}

impl LinkPlan {
    /// A link that does nothing.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            lanes: vec![Target::Port("z".into())],
            queue: QueuePlan::Fifo(LinkConfig::DEFAULT_BOUND, DropAt::Tail),
            service: ServicePlan::Rate(Rate::UNLIMITED),
            overhead: Overhead::IP,
            ingress_loss: None,
            wire_loss: None,
            corruption: Probability::ZERO,
            duplication: Probability::ZERO,
            delay: DelayPlan::Constant(Duration::ZERO),
            order: Order::Keep,
            reorder: None,
            line_limit: None,
            mtu: None,
        }
    }

    fn config(&self) -> LinkConfig {
        LinkConfig {
            lanes: self.lanes.clone(),
            queue: self.queue.build(),
            service: self.service.build(),
            overhead: self.overhead,
            ingress_loss: self.ingress_loss.map(LossPlan::loss),
            wire_loss: self.wire_loss.map(LossPlan::loss),
            corruption: selector(self.corruption).map(Corruption::Packets),
            duplication: selector(self.duplication),
            delay: self.delay.build(),
            order: self.order,
            reorder: self.reorder.map(ReorderPlan::build),
            line_limit: self.line_limit,
            mtu: self.mtu,
            ..LinkConfig::new(self.name.clone(), Target::Port(String::new()))
        }
    }
}

impl QueuePlan {
    fn build(self) -> Box<dyn Queue> {
        match self {
            Self::Fifo(bound, drop_at) => Box::new(Fifo::new(bound, drop_at)),
            Self::Gate { bound, period, patience } => Box::new(Gate::new(bound, period, patience)),
            Self::Classes { scheduler, bound, overload, limits } => match scheduler {
                SchedulerPlan::Fifo => classes(sched::Fifo::default(), bound, overload, limits),
                SchedulerPlan::Priority => classes(Priority::default(), bound, overload, limits),
                SchedulerPlan::Drr => classes(Drr::new(Bytes::new(700)), bound, overload, limits),
                SchedulerPlan::Wf2q => classes(Wf2q::default(), bound, overload, limits),
                SchedulerPlan::Gfq => classes(Gfq::default(), bound, overload, limits),
                SchedulerPlan::Qfq => classes(Qfq::default(), bound, overload, limits),
                SchedulerPlan::Fair => classes(Fair::new(Bytes::new(700)), bound, overload, limits),
                SchedulerPlan::Slots(nanos) => {
                    classes(Slots::new(Duration::from_nanos(nanos)), bound, overload, limits)
                }
            },
        }
    }
}

/// Classes by length and lane: two plain ones, a gate, and a queue with classes of its own.
fn classes<S: Scheduler + 'static>(
    scheduler: S,
    bound: Bound,
    overload: Overload,
    limits: Limits,
) -> Box<dyn Queue> {
    let lengths = |lengths| Condition { lengths: Some(lengths), ..Condition::default() };
    let other_lane = Condition { lane: Some(1), ..Condition::default() };
    let rules = vec![(lengths(0..=200), 0), (lengths(201..=800), 1), (other_lane, 2)];
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
        Overload::Longest { batch: 2 },
    );
    (0..3).for_each(|_| inside.add_flow(FlowConfig::default(), Store::Plain).expect("it takes any flow"));
    let stores = [
        (few, DropAt::Tail, Store::Plain),
        (bytes, DropAt::Head, Store::Plain),
        (few, DropAt::Tail, Store::Queue(Box::new(gate))),
        (few, DropAt::Tail, Store::Queue(Box::new(inside))),
    ];
    for ((bound, drop_at, store), number) in stores.into_iter().zip(1..) {
        let weight = Weight::new(number).expect("not 0");
        let flow = FlowConfig { weight, band: 4 - number, ..FlowConfig::default() };
        queue.add_class(Class { flow, bound, drop_at, store }).expect("it takes such flows");
    }
    Box::new(queue)
}

/// The period of the gate inside a class. Where the scheduler declines too, they must say yes at one instant sometime.
pub(crate) const GATE: Duration = Duration::from_micros(20);

/// As good as no bound.
const ENOUGH: Bound = Bound::Packets(u64::MAX);

impl ServicePlan {
    fn build(self) -> Box<dyn ServiceCurve> {
        match self {
            Self::Rate(rate) => Box::new(ConstantRate(rate)),
            Self::Outage(outage) => Box::new(outage),
        }
    }
}

impl LossPlan {
    fn loss(self) -> Loss {
        match self {
            Self::Independent(probability) => Loss::of(Independent(probability)),
            Self::EveryNth(nth) => Loss::of(EveryNth { nth, seen: 0 }),
        }
    }
}

impl ReorderPlan {
    fn build(self) -> Reorder {
        Reorder { selector: Box::new(Independent(self.probability)), gap: self.gap }
    }
}

fn selector(probability: Probability) -> Option<Box<dyn Selector>> {
    (!probability.is_zero()).then(|| Box::new(Independent(probability)) as Box<dyn Selector>)
}

impl DelayPlan {
    fn build(self) -> Box<dyn DelayModel> {
        match self {
            Self::Constant(delay) => Box::new(Constant(delay)),
            Self::Uniform(low, high) => Box::new(Uniform::new(low, high).expect("in order")),
            Self::Normal(mean, sd) => Box::new(Normal { mean, sd }),
            Self::InTurn(one, other) => Box::new(InTurn { delays: [one, other], seen: 0 }),
        }
    }
}

impl ChangePlan {
    pub(crate) fn build(&self) -> Change {
        match *self {
            Self::Service(service) => Change::Service(service.build()),
            Self::Queue(queue) => Change::Queue(queue.build()),
            Self::QueueBound(bound) => Change::QueueBound(bound),
            Self::Overhead(overhead) => Change::Overhead(overhead),
            Self::IngressLoss(loss) => Change::IngressLoss(loss.map(LossPlan::loss)),
            Self::WireLoss(loss) => Change::WireLoss(loss.map(LossPlan::loss)),
            Self::Corruption(probability) => {
                Change::Corruption(selector(probability).map(Corruption::Packets))
            }
            Self::Duplication(probability) => Change::Duplication(selector(probability)),
            Self::Delay(delay) => Change::Delay(delay.build()),
            Self::Order(order) => Change::Order(order),
            Self::Reorder(reorder) => Change::Reorder(reorder.map(ReorderPlan::build)),
            Self::LineLimit(limit) => Change::LineLimit(limit),
            Self::Mtu(mtu) => Change::Mtu(mtu),
        }
    }
}
