//! Descriptions of networks and of what is handed in, from which the same run can be made again and again.

mod queue;

use narrows_core::classify::{Condition, Lanes};
use narrows_core::model::selector::{
    BitPattern, Conditional, Correlated, FourState, GilbertElliott, Pattern, Per, Transitions,
};
use narrows_core::model::{
    ByClass, Constant, DelayModel, DelaySteps, Fed, FeedConfig, Independent, LossSteps, Normal, OnEmpty,
    Selector, Uniform,
};
use narrows_core::netem::{self, Chance, Generation, Netem, Share, Table};
use narrows_core::queue::{Bound, DropAt};
use narrows_core::service::{ConstantRate, Opportunities, Overhead, RateSteps, ServiceCurve};
use narrows_core::steps::{After, Steps};
use narrows_core::{
    AirTime, BitErrors, Bytes, Change, Corruption, Duration, LinkConfig, LinkSettings, Loss, Mtu,
    NetworkConfig, Order, Policer, PolicerConfig, PortConfig, Probability, Protocol, Rate, Reorder, Seed,
    SlotGap, Target, Time,
};

use crate::foreign::{EveryNth, InTurn, Outage};
pub(crate) use queue::{GATE, Limits, QueuePlan, SchedulerPlan};

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
    pub(crate) bounds: Option<TracePlan<Bound>>,
    pub(crate) service: ServicePlan,
    pub(crate) overhead: Overhead,
    pub(crate) air: Option<AirPlan>,
    pub(crate) burst: u64,
    pub(crate) ingress_loss: Option<LossPlan>,
    pub(crate) wire_loss: Option<LossPlan>,
    pub(crate) policer: Option<PolicerConfig>,
    pub(crate) corruption: Probability,
    pub(crate) duplication: Probability,
    pub(crate) delay: DelayPlan,
    pub(crate) order: Order,
    pub(crate) reorder: Option<ReorderPlan>,
    /// In place of `corruption`.
    pub(crate) bits: Option<BitsPlan>,
    /// In place of `duplication`.
    pub(crate) duplicates: Option<LossPlan>,
    pub(crate) slots: Option<SlotsPlan>,
    pub(crate) netem: Option<NetemPlan>,
    pub(crate) line_limit: Option<u64>,
    pub(crate) mtu: Option<Mtu>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ServicePlan {
    Rate(Rate),
    Outage(Outage),
    Trace(TracePlan<Rate>),
    /// Gaps, whether they repeat, and bytes.
    Opportunities([Duration; 3], bool, u64),
}

/// Two values, in turn for these spans, again and again from some instant on, or until the first stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TracePlan<T> {
    pub(crate) values: [T; 2],
    pub(crate) spans: [Duration; 2],
    pub(crate) start: Time,
    pub(crate) loops: bool,
}

/// A feed, by the number of its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FedPlan {
    pub(crate) name: u8,
    pub(crate) on_empty: OnEmpty,
    pub(crate) lead: usize,
    pub(crate) ask: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum LossPlan {
    Independent(Probability),
    EveryNth(u64),
    Correlated(Probability, f64),
    GilbertElliott([Probability; 4]),
    FourState(Transitions),
    Conditional([Probability; 3]),
    /// Places by packet, or by span of time, with those hit.
    Pattern(Option<Duration>, u64, [u64; 2]),
    /// Those that are congested anyway are marked instead.
    Marking(Probability),
    Trace(TracePlan<Probability>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum BitsPlan {
    Errors(Probability),
    Pattern(u64, [u64; 2]),
    Packets(LossPlan),
}

/// Extra air time: a slope between two times up to the middle, another to twice the second, and a loss level in percent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AirPlan {
    pub(crate) times: (Duration, Duration),
    pub(crate) samples: u32,
    pub(crate) level: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotsPlan {
    pub(crate) gap: (Duration, Duration),
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// Everything of sch_netem, from a few numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetemPlan {
    pub(crate) generation: Generation,
    pub(crate) limit: u32,
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    pub(crate) table: bool,
    /// By percent; 0 switches one off.
    pub(crate) loss: f64,
    pub(crate) model: u8,
    pub(crate) duplication: f64,
    pub(crate) corruption: f64,
    pub(crate) reorder: f64,
    pub(crate) correlation: f64,
    pub(crate) gap: u32,
    pub(crate) rate: u64,
    pub(crate) cell_size: u32,
    pub(crate) slots: Option<SlotsPlan>,
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
    Trace(TracePlan<Duration>),
    Fed(FedPlan),
    /// One for long packets, one for the others of the first lane, and none for the rest.
    ByClass(FedPlan, FedPlan, Duration),
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
    /// Values for a feed of that name of the link.
    Feed(usize, u8, Vec<i64>),
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
    BoundSteps(Option<TracePlan<Bound>>),
    Overhead(Overhead),
    AirTime(Option<AirPlan>),
    Burst(u64),
    IngressLoss(Option<LossPlan>),
    Policer(Option<PolicerConfig>),
    WireLoss(Option<LossPlan>),
    Corruption(Probability),
    Duplication(Probability),
    Delay(DelayPlan),
    Reorder(Option<ReorderPlan>),
    Bits(Option<BitsPlan>),
    Duplicates(Option<LossPlan>),
    Slots(Option<SlotsPlan>),
    Netem(Option<NetemPlan>),
    Settings(LinkSettings),
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
            bounds: None,
            service: ServicePlan::Rate(Rate::UNLIMITED),
            overhead: Overhead::IP,
            air: None,
            burst: 0,
            ingress_loss: None,
            wire_loss: None,
            policer: None,
            corruption: Probability::ZERO,
            duplication: Probability::ZERO,
            delay: DelayPlan::Constant(Duration::ZERO),
            order: Order::Keep,
            reorder: None,
            bits: None,
            duplicates: None,
            slots: None,
            netem: None,
            line_limit: None,
            mtu: None,
        }
    }

    fn config(&self) -> LinkConfig {
        LinkConfig {
            lanes: self.lanes.clone(),
            queue: self.queue.build(),
            bound_steps: self.bounds.map(TracePlan::build),
            service: self.service.build(),
            overhead: self.overhead,
            air_time: self.air.map(AirPlan::build),
            burst: Bytes::new(self.burst),
            ingress_loss: self.ingress_loss.map(LossPlan::loss),
            wire_loss: self.wire_loss.map(LossPlan::loss),
            policer: self.policer.map(policer),
            corruption: match self.bits {
                Some(bits) => Some(bits.build()),
                None => selector(self.corruption).map(Corruption::Packets),
            },
            duplication: match self.duplicates {
                Some(duplicates) => Some(duplicates.loss().selector),
                None => selector(self.duplication),
            },
            delay: self.delay.build(),
            reorder: self.reorder.map(ReorderPlan::build),
            slots: self.slots.map(SlotsPlan::build),
            netem: self.netem.map(NetemPlan::build),
            settings: crate::random::settings_of(self.order, self.line_limit, self.mtu),
            ..LinkConfig::new(self.name.clone(), Target::Port(String::new()))
        }
    }
}

fn policer(config: PolicerConfig) -> Policer {
    Policer::new(config).expect("in range")
}

impl AirPlan {
    pub(crate) fn build(self) -> AirTime {
        let (low, high) = self.times;
        let share = |percent| Probability::from_ratio(percent, 100).expect("a percentage");
        let points =
            [(share(0), low), (share(50), high), (share(50), high + high), (share(100), high + high)];
        AirTime::new(&points, self.samples, share(self.level)).expect("it goes up")
    }
}

impl ServicePlan {
    fn build(self) -> Box<dyn ServiceCurve> {
        match self {
            Self::Rate(rate) => Box::new(ConstantRate(rate)),
            Self::Outage(outage) => Box::new(outage),
            Self::Trace(trace) => Box::new(RateSteps::new(trace.build())),
            Self::Opportunities(gaps, loops, bytes) => {
                let mut at = Time::ZERO;
                let instants = gaps.map(|gap| {
                    at = at + gap;
                    at
                });
                let length = at.since(Time::ZERO) + Duration::from_nanos(1);
                let after = if loops { After::Loop(length) } else { After::End(length, Rate::UNLIMITED) };
                Box::new(Opportunities::new(instants, Bytes::new(bytes), after).expect("in order"))
            }
        }
    }
}

impl<T: Copy> TracePlan<T> {
    fn build(self) -> Steps<T> {
        let [first, second] = self.values;
        let points = vec![(Time::ZERO, first), (Time::ZERO + self.spans[0], second)];
        let length = self.spans[0] + self.spans[1];
        let after = if self.loops { After::Loop(length) } else { After::End(length, first) };
        Steps::new(points, after).expect("no span is zero").starting(self.start, self.spans[1])
    }
}

impl FedPlan {
    fn build(self) -> Fed {
        let Self { on_empty, lead, ask, .. } = self;
        Fed::new(FeedConfig { on_empty, lead, ask, ..FeedConfig::new(feed_name(self.name)) })
    }
}

pub(crate) fn feed_name(number: u8) -> String {
    format!("feed {number}")
}

impl LossPlan {
    fn loss(self) -> Loss {
        match self {
            Self::Independent(probability) => Loss::of(Independent(probability)),
            Self::EveryNth(nth) => Loss::of(EveryNth { nth, seen: 0 }),
            Self::Correlated(p, rho) => Loss::of(Correlated::new(p, rho).expect("a correlation")),
            Self::GilbertElliott([p, r, bad, good]) => Loss::of(GilbertElliott::new(p, r, bad, good)),
            Self::FourState(transitions) => Loss::of(FourState::new(transitions).expect("no sum above 1")),
            Self::Conditional(after) => Loss::of(Conditional::new(after).expect("there are some")),
            Self::Pattern(span, length, [from, to]) => {
                let per = span.map_or(Per::Packet, |unit| Per::Time { unit, origin: Time::ZERO });
                Loss::of(Pattern::new(per, length, std::iter::once(from..to)).expect("within the length"))
            }
            Self::Trace(trace) => Loss::of(LossSteps::new(trace.build())),
            Self::Marking(p) => Loss { selector: Box::new(Independent(p)), mark: true },
        }
    }
}

impl BitsPlan {
    fn build(self) -> Corruption {
        match self {
            Self::Errors(rate) => Corruption::BitErrors(BitErrors::new(rate).expect("not too high")),
            Self::Pattern(length, [from, to]) => Corruption::Pattern(
                BitPattern::new(length, std::iter::once(from..to)).expect("within the length"),
            ),
            Self::Packets(packets) => Corruption::Packets(packets.loss().selector),
        }
    }
}

impl SlotsPlan {
    fn build(self) -> narrows_core::Slots {
        let gap = SlotGap::Between(self.gap.0, self.gap.1);
        narrows_core::Slots { gap, packets: self.packets, bytes: Bytes::new(self.bytes) }
    }
}

impl NetemPlan {
    pub(crate) fn build(self) -> Box<Netem> {
        let share = |percent| Share::from_percent(percent).expect("a percentage");
        let chance = |percent| Chance { share: share(percent), correlation: share(self.correlation) };
        let table = || Table::new(vec![-9000, -4000, 0, 2000, 12_000]).expect("a few values");
        let loss = match self.model {
            0 => netem::Loss::Random(chance(self.loss)),
            1 => netem::Loss::States {
                p13: share(self.loss),
                p31: share(30.0),
                p32: share(10.0),
                p23: share(60.0),
                p14: share(1.0),
            },
            _ => netem::Loss::GilbertElliott {
                p: share(self.loss),
                r: share(40.0),
                h: share(20.0),
                loss_in_good: share(1.0),
            },
        };
        let slots = self.slots.map(|slots| netem::Slots {
            gap: match self.table {
                true => netem::SlotGap::Table { table: table(), delay: slots.gap.0, jitter: slots.gap.1 },
                false => netem::SlotGap::Between(slots.gap.0, slots.gap.1),
            },
            packets: slots.packets as u32,
            bytes: slots.bytes as u32,
        });
        let rate = |bytes_per_second| netem::Rate {
            bytes_per_second,
            packet_overhead: 8,
            cell_size: self.cell_size,
            cell_overhead: 5,
        };
        Box::new(Netem {
            generation: self.generation,
            limit: self.limit,
            delay: self.delay,
            jitter: self.jitter,
            delay_correlation: share(self.correlation),
            table: self.table.then(table),
            loss,
            ecn: self.gap == 2,
            duplication: chance(self.duplication),
            corruption: chance(self.corruption),
            reorder: chance(self.reorder),
            gap: self.gap,
            rate: (self.rate > 0).then(|| rate(self.rate)),
            slots,
        })
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
            Self::Trace(trace) => Box::new(DelaySteps::new(trace.build())),
            Self::Fed(fed) => Box::new(fed.build()),
            Self::ByClass(long, first_lane, rest) => {
                let long =
                    (Condition { lengths: Some(700..=u32::MAX), ..Condition::default() }, long.build());
                let first_lane =
                    (Condition { lane: Some(Lanes::only(0)), ..Condition::default() }, first_lane.build());
                let classes =
                    [long, first_lane].map(|(which, fed)| (which, Box::new(fed) as Box<dyn DelayModel>));
                Box::new(ByClass::new(classes.into(), Box::new(Constant(rest))))
            }
        }
    }
}

impl ChangePlan {
    pub(crate) fn build(&self) -> Change {
        match *self {
            Self::Service(service) => Change::Service(service.build()),
            Self::Queue(queue) => Change::Queue(queue.build()),
            Self::QueueBound(bound) => Change::QueueBound(bound),
            Self::BoundSteps(bounds) => Change::BoundSteps(bounds.map(TracePlan::build)),
            Self::Overhead(overhead) => Change::Overhead(overhead),
            Self::AirTime(air) => Change::AirTime(air.map(AirPlan::build)),
            Self::Burst(burst) => Change::Burst(Bytes::new(burst)),
            Self::IngressLoss(loss) => Change::IngressLoss(loss.map(LossPlan::loss)),
            Self::Policer(config) => Change::Policer(config.map(policer)),
            Self::WireLoss(loss) => Change::WireLoss(loss.map(LossPlan::loss)),
            Self::Corruption(probability) => {
                Change::Corruption(selector(probability).map(Corruption::Packets))
            }
            Self::Duplication(probability) => Change::Duplication(selector(probability)),
            Self::Delay(delay) => Change::Delay(delay.build()),
            Self::Reorder(reorder) => Change::Reorder(reorder.map(ReorderPlan::build)),
            Self::Bits(bits) => Change::Corruption(bits.map(BitsPlan::build)),
            Self::Duplicates(which) => Change::Duplication(which.map(|which| which.loss().selector)),
            Self::Slots(slots) => Change::Slots(slots.map(SlotsPlan::build)),
            Self::Netem(netem) => Change::Netem(netem.map(NetemPlan::build)),
            Self::Settings(settings) => Change::Settings(settings),
        }
    }
}
