//! Descriptions of networks and of what is handed in, from which the same run can be made again and again.

use narrows_core::model::{Constant, DelayModel, Independent, LossModel, Normal, Uniform};
use narrows_core::queue::{Bound, DropAt, Fifo, Queue};
use narrows_core::service::{ConstantRate, Overhead, ServiceCurve};
use narrows_core::{
    Bytes, Change, Duration, LinkConfig, Mtu, NetworkConfig, Order, PortConfig, Probability, Protocol, Rate,
    Reorder, Seed, Target, Time,
};

use crate::foreign::{EveryNth, Gate, InTurn, Outage};

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
    pub(crate) reorder: Option<Reorder>,
    pub(crate) line_limit: Option<u64>,
    pub(crate) mtu: Option<Mtu>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum QueuePlan {
    Fifo(Bound, DropAt),
    Gate { bound: Bound, period: Duration, patience: Duration },
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
    Reorder(Option<Reorder>),
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
            ingress_loss: self.ingress_loss.map(LossPlan::build),
            wire_loss: self.wire_loss.map(LossPlan::build),
            corruption: self.corruption,
            duplication: self.duplication,
            delay: self.delay.build(),
            order: self.order,
            reorder: self.reorder,
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
        }
    }
}

impl ServicePlan {
    fn build(self) -> Box<dyn ServiceCurve> {
        match self {
            Self::Rate(rate) => Box::new(ConstantRate(rate)),
            Self::Outage(outage) => Box::new(outage),
        }
    }
}

impl LossPlan {
    fn build(self) -> Box<dyn LossModel> {
        match self {
            Self::Independent(probability) => Box::new(Independent(probability)),
            Self::EveryNth(nth) => Box::new(EveryNth { nth, seen: 0 }),
        }
    }
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
            Self::IngressLoss(loss) => Change::IngressLoss(loss.map(LossPlan::build)),
            Self::WireLoss(loss) => Change::WireLoss(loss.map(LossPlan::build)),
            Self::Corruption(probability) => Change::Corruption(probability),
            Self::Duplication(probability) => Change::Duplication(probability),
            Self::Delay(delay) => Change::Delay(delay.build()),
            Self::Order(order) => Change::Order(order),
            Self::Reorder(reorder) => Change::Reorder(reorder),
            Self::LineLimit(limit) => Change::LineLimit(limit),
            Self::Mtu(mtu) => Change::Mtu(mtu),
        }
    }
}
