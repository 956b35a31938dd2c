//! Builds the engine's queue from a scheduler's settings.

use std::net::IpAddr;

use narrows_core::classify::{self, Classifier, FlowHash};
use narrows_core::queue::{self, Bound, DropAt};
use narrows_core::sched::{
    self, Abe, Cake, Cbq, CbqClass, ClassSettings, CsmaCd, Dcf, Ets, FlowConfig, HfscClass, Hhf, HiddenDcf,
    Hpd, HtbClass, Overload, PacedFq, Peak, Scheduled, ShapingError, Store, Taprio, TbfConfig, Weight,
};
use narrows_core::{Bytes, NetemAround, NetemQueue, Seed, Stream, Time};

use super::filter::DROP;
use super::kind::Kind;
use super::own::OwnParameters;
use super::plan::{Plan, Refusal, Why};
use super::sfq::Sfq;
use super::tree::Tree;
use super::{Child, Class, Division, Filter, Scheduler, ShapedBy, fq, hhf};
use crate::value::condition::Match;
use crate::value::queue::Queue;

/// The classes of `pfifo_fast`.
const BANDS: [&str; 3] = ["band-0", "band-1", "band-2"];

/// The classes of `hhf`, and what is in them.
const SIZES: [(&str, &str); 2] = [("heavy", "flows that send much"), ("light", "all other flows")];

/// A class of a direction's scheduler, with its effective settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectionClass {
    /// Name.
    pub name: String,
    /// Weight; `None` if the scheduler has no weights.
    pub weight: Option<Weight>,
    /// Bound on its backlog.
    pub bound: Bound,
    /// Its condition, in one line.
    pub matches: String,
}

impl Scheduler {
    /// A bound that is never reached.
    pub(crate) const NO_BOUND: Bound = Bound::Packets(u64::MAX);

    /// Builds the engine's queue.
    ///
    /// # Errors
    /// The class that the algorithm rejects, and why.
    pub(crate) fn build(&self, plan: Plan<'_>) -> Result<Box<dyn queue::Queue>, Refusal> {
        (self.kind.about().build)(self, plan)
    }

    /// Checks that the algorithm accepts the classes. The error has the first rejected class, and why.
    pub(super) fn try_it(&self) -> Result<(), Refusal> {
        let plan = Plan {
            seed: Seed(0),
            link: "",
            queue: Queue::default(),
            default: Self::NO_BOUND,
            addresses: &|_| Vec::new(),
        };
        match self.serves {
            // These queues are all alike, and not written by anybody.
            Division::Flows { .. } | Division::Own if self.kind != Kind::Plugin => Ok(()),
            _ => self.build(plan).map(|_| ()),
        }
    }

    pub(super) fn assemble<S: sched::Scheduler + 'static>(
        &self,
        algorithm: S,
        plan: Plan<'_>,
    ) -> Result<Box<dyn queue::Queue>, Refusal> {
        let bound = self.whole_bound(plan.queue, plan.default).unwrap_or(Self::NO_BOUND);
        if let Some((count, by)) = self.serves.flows(self.kind) {
            let hash = FlowHash::new(plan.seed, plan.link, count, by);
            let sfq = self.own.get::<Sfq>();
            let drop_at = sfq.map_or(DropAt::Head, |sfq| sfq.drop.unwrap_or(plan.queue.drop));
            let flow_limit = sfq.and_then(|sfq| sfq.flow_limit).map(Bound::Packets);
            let overload = Overload::Longest { batch: self.batch(), drop_at };
            let mut scheduled = Scheduled::new(algorithm, Classifier::Flows(hash), bound, overload);
            let queue = Queue { policy: self.flow_policy(plan.queue), ..plan.queue };
            let store = queue.stores(bound);
            for _ in 0..count {
                let flow = FlowConfig::default();
                let added = match flow_limit {
                    Some(limit) => scheduled.add_bounded_flow(flow, store(), limit, drop_at),
                    None => scheduled.add_flow(flow, store()),
                };
                added.map_err(|refused| Refusal { class: Some(0), why: Why::Refused(refused) })?;
            }
            return Ok(Box::new(scheduled));
        }
        let classes = self.classes();
        let classifier = self.classifier(plan.addresses);
        let overload = if self.kind == Kind::Abe { Overload::Scheduler } else { Overload::Arriving };
        let mut scheduled = Scheduled::new(algorithm, classifier, bound, overload);
        for (index, class) in classes.iter().enumerate() {
            let queue = class.queue.unwrap_or(plan.queue);
            let bound = self.class_bound(class, plan.queue, plan.default);
            let refused = |why| Refusal { class: self.number_of(&class.name), why };
            let store = match &class.child {
                None => queue.stores(bound)(),
                Some(Child::Scheduler(inner)) => {
                    let link = format!("{}/{}", plan.link, class.name);
                    let inner = inner.build(Plan { link: &link, ..plan });
                    Store::Queue(inner.map_err(|refusal| refused(refusal.why))?)
                }
                Some(Child::Netem(netem)) => {
                    let name = format!("{}/{}", plan.link, class.name);
                    Store::Queue(Box::new(NetemQueue::new(*netem.build(), plan.seed, &name)))
                }
                Some(Child::Around(around)) => {
                    let name = format!("{}/{}", plan.link, class.name);
                    let link = format!("{name}/netem");
                    let inner = around.inner.build(Plan { link: &link, ..plan });
                    let inner = inner.map_err(|refusal| refused(refusal.why))?;
                    Store::Queue(Box::new(NetemAround::new(*around.netem.build(), plan.seed, &name, inner)))
                }
                Some(Child::Delayed(delayed)) => {
                    let name = format!("{}/{}", plan.link, class.name);
                    Store::Queue(Box::new(delayed.build(plan, &name)))
                }
            };
            let class = sched::Class {
                flow: FlowConfig {
                    weight: class.weight.unwrap_or(Weight::ONE),
                    longest: class.longest().get() as u32, // at most 65,535
                    band: index as u32,
                    quantum: class.quantum,
                },
                bound,
                drop_at: queue.drop,
                store,
            };
            scheduled.add_class(class).map_err(|why| refused(Why::Refused(why)))?;
        }
        Ok(Box::new(scheduled))
    }

    /// The classifier for its classes. `addresses` looks up the addresses of a host.
    pub(crate) fn classifier(&self, addresses: &dyn Fn(&str) -> Vec<IpAddr>) -> Classifier {
        let classes = self.classes();
        match &self.serves {
            Division::Own if self.kind == Kind::PfifoFast => classify::pfifo_fast(),
            Division::Classes { filters, default, .. } if self.serves.has_filters() => {
                filtered(&classes, filters, default.as_deref(), addresses)
            }
            _ => classifier(&classes, addresses),
        }
    }

    /// The index of a class among all named classes.
    fn number_of(&self, name: &str) -> Option<usize> {
        self.named().iter().position(|class| class.name == name)
    }

    /// All named classes, including inner classes of a tree.
    pub(crate) fn named(&self) -> &[Class] {
        match &self.serves {
            Division::Classes { classes, .. } => classes,
            _ => &[],
        }
    }

    /// The bound of a class: the given one; else the total bound of a token bucket, if it has one; else the
    /// bound of the direction's queue, or its default. A nested scheduler, netem or a delay line sets its own bound.
    pub(crate) fn class_bound(&self, class: &Class, queue: Queue, default: Bound) -> Bound {
        let own = class.queue.and_then(|queue| queue.bound);
        let whole = (self.kind == Kind::Tbf).then(|| self.whole_bound(queue, default)).flatten();
        match &class.child {
            // The algorithm has the bound, for all of them together.
            None if self.kind.shares_one_bound() => Self::NO_BOUND,
            None => own.or(whole).or(queue.bound).unwrap_or(default),
            Some(Child::Scheduler(inner)) => inner.whole_bound(queue, default).unwrap_or(Self::NO_BOUND),
            Some(Child::Netem(netem)) => netem.limit(),
            Some(Child::Around(around)) => around.netem.limit(),
            Some(Child::Delayed(delayed)) => delayed.bound(),
        }
    }

    /// The leaf classes, with their effective settings.
    pub(crate) fn direction_classes(&self, queue: Queue, default: Bound) -> Vec<DirectionClass> {
        let classes = self.classes();
        let one = |(class, matches): (&Class, String)| DirectionClass {
            name: class.name.clone(),
            weight: self.weight(class),
            bound: self.class_bound(class, queue, default),
            matches,
        };
        classes.iter().zip(self.class_words()).map(one).collect()
    }

    /// The parameters of its algorithm, which the registry created.
    pub(super) fn own<T: OwnParameters>(&self) -> &T {
        self.own.get().expect("a scheduler has its algorithm's parameters")
    }

    pub(super) fn plugin(&self) -> &super::Plugin {
        self.own()
    }

    pub(super) fn dcf(&self, plan: Plan<'_>) -> Result<Box<dyn queue::Queue>, Refusal> {
        let (config, stream) = (*self.own(), Stream::new(plan.seed, plan.link, "backoff"));
        let pairs = self.hidden_pairs();
        let mut queue = if pairs.is_empty() {
            self.assemble(Dcf::new(config, stream), plan)?
        } else {
            self.assemble(HiddenDcf::new(config, stream, &pairs), plan)?
        };
        for (index, class) in
            self.named().iter().enumerate().filter(|(_, class)| class.station.rate.is_some())
        {
            let rate = ClassSettings::StationRate(class.station.rate);
            queue
                .set_class(Time::ZERO, index, rate)
                .map_err(|why| Refusal { class: Some(index), why: Why::Refused(why) })?;
        }
        Ok(queue)
    }

    pub(super) fn csma_cd(&self, plan: Plan<'_>) -> CsmaCd {
        CsmaCd::new(*self.own(), Stream::new(plan.seed, plan.link, "backoff"))
    }

    pub(super) fn hpd(&self) -> Hpd {
        let classes = self.classes().iter().map(|class| class.hpd).collect();
        Hpd::new(self.own::<super::Hpd>().config(classes))
    }

    /// The classes of alternative best effort, in the order of the engine's numbers.
    fn colours(&self) -> Vec<Class> {
        let green = Match { dscps: self.own::<super::Abe>().green.clone(), ..Match::default() };
        vec![
            Class { name: "green".into(), matches: vec![green], ..Class::all() },
            Class { name: "blue".into(), ..Class::all() },
        ]
    }

    pub(super) fn fq(&self, plan: Plan<'_>) -> Box<dyn queue::Queue> {
        let (count, by) = self.serves.flows(self.kind).unwrap_or_default();
        let bound = self.whole_bound(plan.queue, plan.default).unwrap_or(Self::NO_BOUND);
        let config = fq::config(self.own(), bound, self.quantum().unwrap_or_default());
        Box::new(PacedFq::new(config, FlowHash::new(plan.seed, plan.link, count, by)))
    }

    /// The classes of `hhf`, in the order of the engine's numbers.
    fn sizes(&self) -> Vec<Class> {
        let quantum = self.quantum().unwrap_or_default();
        let light = Bytes::new(quantum.get() * u64::from(self.own::<sched::HhfConfig>().weight));
        SIZES
            .iter()
            .zip([quantum, light])
            .map(|((name, _), turn)| Class { name: (*name).into(), quantum: Some(turn), ..Class::all() })
            .collect()
    }

    pub(super) fn hhf(&self, plan: Plan<'_>) -> Box<dyn queue::Queue> {
        let bound = self.whole_bound(plan.queue, plan.default).unwrap_or(Self::NO_BOUND);
        Box::new(Hhf::new(hhf::config(self.own(), bound, self.quantum().unwrap_or_default())))
    }

    pub(super) fn ets(&self) -> Ets {
        Ets::new(self.quantum().unwrap_or_default(), self.own::<super::Ets>().strict)
    }

    pub(super) fn taprio(&self) -> Result<Taprio, Refusal> {
        let names: Vec<&str> = self.named().iter().map(|class| class.name.as_str()).collect();
        self.own::<super::Taprio>().gates(&names)
    }

    pub(super) fn abe(&self) -> Abe {
        Abe::new(self.own::<super::Abe>().config())
    }

    pub(super) fn cake(&self, plan: Plan<'_>) -> Box<dyn queue::Queue> {
        let own = self.own::<super::Cake>();
        let bound = self.whole_bound(plan.queue, plan.default).unwrap_or(own.config.limit());
        let cake = Cake::new(own.config, bound, plan.seed, plan.link);
        Box::new(match own.filters(plan.addresses) {
            Some((filters, targets)) => cake.with_filters(filters, targets),
            None => cake,
        })
    }

    pub(super) fn cbq(&self) -> Result<Cbq, ShapingError> {
        let super::Cbq { bandwidth, average_packet } = *self.own();
        Cbq::new(bandwidth, average_packet, self.cbq_classes())
    }

    pub(super) fn tbf_config(&self) -> TbfConfig {
        let tbf = self.own::<super::Tbf>();
        let peak = tbf.peakrate.map(|rate| Peak { rate, mtu: tbf.mtu });
        TbfConfig { rate: tbf.rate, burst: tbf.burst, peak, mpu: tbf.mpu }
    }

    pub(super) fn htb_classes(&self) -> Vec<HtbClass> {
        let classes = self.named();
        let tree = Tree::of(classes);
        let one = |(index, class): (usize, &Class)| match class.shape? {
            ShapedBy::Htb(shape) => Some(HtbClass {
                parent: tree.parent(index),
                rate: shape.rate,
                ceil: shape.ceil(),
                burst: shape.burst(),
                cburst: shape.cburst(),
                priority: shape.priority,
                quantum: shape.quantum(),
                mpu: shape.mpu,
                overhead: shape.overhead,
            }),
            _ => None,
        };
        classes.iter().enumerate().filter_map(one).collect()
    }

    pub(super) fn hfsc_classes(&self) -> Vec<HfscClass> {
        let classes = self.named();
        let tree = Tree::of(classes);
        let one = |(index, class): (usize, &Class)| match class.shape? {
            ShapedBy::Hfsc(shape) => Some(HfscClass {
                parent: tree.parent(index),
                rt: shape.rt().map(|curve| curve.pieces()),
                ls: shape.ls().map(|curve| curve.pieces()),
                ul: shape.ul.map(|curve| curve.pieces()),
            }),
            _ => None,
        };
        classes.iter().enumerate().filter_map(one).collect()
    }

    fn cbq_classes(&self) -> Vec<CbqClass> {
        let classes = self.named();
        let tree = Tree::of(classes);
        let usual = self.own.get::<super::Cbq>().map(|cbq| cbq.average_packet).unwrap_or_default();
        let one = |(index, class): (usize, &Class)| match class.shape? {
            ShapedBy::Cbq(shape) => Some(CbqClass {
                parent: tree.parent(index),
                rate: shape.rate,
                priority: shape.priority,
                allot: shape.allot(usual),
                average_packet: shape.average_packet(usual),
                weight: shape.weight.map(u64::from),
                bounded: shape.bounded,
                isolated: shape.isolated,
                exempt: shape.exempt,
                maxburst: shape.maxburst,
                minburst: shape.minburst(),
                minidle: shape.minidle,
                ewma: shape.ewma,
                mpu: shape.mpu,
            }),
            _ => None,
        };
        classes.iter().enumerate().filter_map(one).collect()
    }

    /// The effective leaf classes, in the order of their numbers in the engine; empty if packets are
    /// divided into flows.
    pub(crate) fn classes(&self) -> Vec<Class> {
        match &self.serves {
            Division::Classes { classes, .. } if classes.is_empty() => vec![Class::all()],
            Division::Classes { classes, .. } => {
                Tree::of(classes).leaves().map(|index| classes[index].clone()).collect()
            }
            Division::Flows { .. } => Vec::new(),
            Division::Own if self.kind == Kind::Abe => self.colours(),
            Division::Own if self.kind == Kind::Cake => self.tins(),
            Division::Own if self.kind == Kind::Hhf => self.sizes(),
            Division::Own => BANDS.map(|name| Class { name: name.into(), ..Class::all() }).into(),
        }
    }

    /// The condition of each effective class, in one line.
    pub(crate) fn class_words(&self) -> Vec<String> {
        match &self.serves {
            Division::Own if self.kind == Kind::PfifoFast => {
                let asks =
                    ["asks for low delay", "asks for neither, or for both", "asks for high throughput"];
                asks.map(|what| format!("{what} by its TOS bits")).into()
            }
            Division::Own if self.kind == Kind::Hhf => SIZES.map(|(_, what)| what.into()).into(),
            Division::Classes { filters, default, .. } if self.serves.has_filters() => self
                .classes()
                .iter()
                .map(|class| filtered_words(class, filters, default.as_deref()))
                .collect(),
            _ => match &self.classes()[..] {
                [only] if only.matches.is_empty() => vec!["every packet".into()],
                classes => classes.iter().map(Class::describe).collect(),
            },
        }
    }

    /// The total bound: the given one; else, if flows share a bound, the bound given for the direction's
    /// queue, or the algorithm's published default, or the direction's default. `None` if only classes have
    /// bounds.
    pub(crate) fn whole_bound(&self, queue: Queue, default: Bound) -> Option<Bound> {
        let shared = self.has_flows() || matches!(self.kind, Kind::Abe | Kind::Hhf);
        let of_flows = || shared.then(|| queue.bound.or(self.published_bound()).unwrap_or(default));
        let of_latency = || self.own.get::<super::Tbf>().and_then(|tbf| tbf.bound());
        // Its limit is one of memory, whatever else waits for the direction.
        let of_cake = || (self.kind == Kind::Cake).then(|| self.published_bound()).flatten();
        self.bound.or_else(of_latency).or_else(of_cake).or_else(of_flows)
    }

    /// The default total bound of the algorithm's authors or first implementation.
    pub(crate) fn published_bound(&self) -> Option<Bound> {
        match self.kind {
            Kind::Sfq => Some(sched::SfqConfig::default().bound),
            Kind::FqCodel => Some(sched::FqCodelConfig::default().bound),
            Kind::FqPie => Some(sched::FqPieConfig::default().bound),
            Kind::Hhf => Some(sched::HhfConfig::default().bound),
            Kind::Fq => Some(sched::PacedFqConfig::default().bound),
            Kind::Cake => Some(self.own::<super::Cake>().config.limit()),
            _ => None,
        }
    }

    /// Number of packets that the longest flow loses at once.
    pub(crate) fn batch(&self) -> u32 {
        match self.kind {
            Kind::FqCodel => sched::FqCodelConfig::default().batch,
            _ => 1,
        }
    }

    /// The AQM of a flow's queue.
    pub(crate) fn flow_policy(&self, queue: Queue) -> crate::value::queue::Policy {
        match self.kind {
            Kind::FqCodel | Kind::FqPie | Kind::Fq => self.policy,
            _ => self.own.get::<Sfq>().and_then(|sfq| sfq.flow_queue).unwrap_or(queue).policy,
        }
    }
}

/// Returns the first class whose condition matches, or else the class without a condition.
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

/// Returns the class of the first filter that matches, or else the default.
fn filtered(
    classes: &[Class],
    filters: &[Filter],
    default: Option<&str>,
    addresses: &dyn Fn(&str) -> Vec<IpAddr>,
) -> Classifier {
    let number = |name: &str| classes.iter().position(|class| class.name == name).map(|index| index as u32);
    let of = |filter: &Filter| {
        let class = match filter.class.as_str() {
            DROP => Classifier::NO_CLASS,
            class => number(class).expect("filters are read beside the classes"),
        };
        filter.matches.iter().map(move |one| (one.condition(addresses), class)).collect::<Vec<_>>()
    };
    Classifier::Rules { rules: filters.iter().flat_map(of).collect(), default: default.and_then(number) }
}

/// What the filters send to a class, in one line for display.
fn filtered_words(class: &Class, filters: &[Filter], default: Option<&str>) -> String {
    let to_it = filters.iter().filter(|filter| filter.class == class.name);
    let mut words: Vec<String> =
        to_it.flat_map(|filter| filter.matches.iter().map(Match::to_string)).collect();
    if default == Some(class.name.as_str()) {
        words.push(if filters.is_empty() { "every packet" } else { "every other packet" }.into());
    }
    if words.is_empty() { "no packet".into() } else { words.join("; or ") }
}
