//! The configuration of a link, and the changes possible while it runs.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::air_time::AirTime;
use super::corruption::Corruption;
use super::ingress::Ingress;
use super::netem::Netem;
use super::policer::Policer;
use super::settings::LinkSettings;
use super::slots::Slots;
use super::target::Target;
use crate::classify::{Classifier, FlowMask};
use crate::model::selector::Loss;
use crate::model::{Constant, DelayModel, Selector};
use crate::queue::{Bound, DropAt, Fifo, Queue};
use crate::sched::{ClassSettings, Weight};
use crate::service::{ConstantRate, Overhead, ServiceCurve};
use crate::steps::Steps;
use crate::time::Duration;
use crate::units::{Bytes, Rate};

/// All parts of a link.
#[derive(Debug)]
pub struct LinkConfig {
    /// Unique in the network. Part of the key of the link's random draws; it also fixes the link's place in
    /// the order of simultaneous events.
    pub name: String,
    /// Where packets go when they leave: one target for a link of one direction, one per direction for a
    /// shared medium.
    pub lanes: Vec<Target>,
    /// The queue.
    pub queue: Box<dyn Queue>,
    /// The queue's bound over time, instead of its own. The bound at the arrival of a packet applies.
    pub bound_steps: Option<Steps<Bound>>,
    /// The service curve of the wire.
    pub service: Box<dyn ServiceCurve>,
    /// How many bits a packet occupies.
    pub overhead: Overhead,
    /// Extra air time per packet beyond its bits, and which packets are lost in it.
    pub air_time: Option<AirTime>,
    /// The maximum burst after idle time: for an idle time d, as many bytes as the wire would have sent in d,
    /// up to this. Zero: no burst.
    pub burst: Bytes,
    /// Loss before the queue.
    pub ingress_loss: Option<Loss>,
    /// Filters, after the ingress loss and before the policer.
    pub ingress: Option<Ingress>,
    /// A token-bucket policer, after the filters and before the MTU and the queue.
    pub policer: Option<Policer>,
    /// Loss after the transmitter.
    pub wire_loss: Option<Loss>,
    /// Bit errors on the wire.
    pub corruption: Option<Corruption>,
    /// Packets that are duplicated on the wire. The duplicate has the same bits and draws its own delay.
    pub duplication: Option<Box<dyn Selector>>,
    /// The propagation delay.
    pub delay: Box<dyn DelayModel>,
    /// Packets that skip the delay.
    pub reorder: Option<Reorder>,
    /// Transmit slots for packets that are due.
    pub slots: Option<Slots>,
    /// The single queue of Linux's sch_netem instead of all other parts, which are then ignored. A later
    /// change of another part does apply: before or after the single queue, or, with [`Change::Queue`], in
    /// its place.
    pub netem: Option<Box<Netem>>,
    /// The plain values.
    pub settings: LinkSettings,
    /// Link instances created on first use, one per flow. The link itself then carries only packets of flows
    /// beyond the maximum number of instances.
    pub instances: Option<Box<Instances>>,
}

impl LinkConfig {
    /// The bound of a queue whose link has no rate from which to compute one.
    pub const DEFAULT_BOUND: Bound = Bound::Packets(1000);

    /// A link that does nothing: unlimited rate, no delay, no impairment.
    pub fn new(name: impl Into<String>, to: Target) -> Self {
        Self { lanes: vec![to], ..Self::plain(name.into()) }
    }

    /// Whether a part of it works with headers that are not in a flow key.
    pub(crate) fn needs_headers(&self) -> bool {
        self.instances.is_some()
            || self.queue.looks_at_headers()
            || self.ingress.as_ref().is_some_and(Ingress::needs_headers)
            || self.policer.as_ref().is_some_and(Policer::looks_at_headers)
    }

    /// As [`LinkConfig::new`], without a lane.
    pub(super) fn plain(name: String) -> Self {
        Self {
            name,
            lanes: Vec::new(),
            queue: Box::new(Fifo::new(Self::DEFAULT_BOUND, DropAt::Tail)),
            bound_steps: None,
            service: Box::new(ConstantRate(Rate::UNLIMITED)),
            overhead: Overhead::IP,
            air_time: None,
            burst: Bytes::new(0),
            ingress_loss: None,
            ingress: None,
            policer: None,
            wire_loss: None,
            corruption: None,
            duplication: None,
            delay: Box::new(Constant(Duration::ZERO)),
            reorder: None,
            slots: None,
            netem: None,
            settings: LinkSettings::default(),
            instances: None,
        }
    }
}

/// Reordering: some packets skip the delay. The first `gap − 1` packets never do; from then on each is a
/// candidate until one is selected. That packet skips the delay, and the count starts again. This is NetEm's
/// rule; with a gap of 1 every packet is a candidate. Only packets that enter the delay line are counted, so a loss before it shifts which packets
/// are candidates, but not their draws.
#[derive(Debug)]
pub struct Reorder {
    /// Selects among the candidates.
    pub selector: Box<dyn Selector>,
    /// At least 1.
    pub gap: u32,
}

impl Change {
    /// Whether the changed part works with headers that are not in a flow key.
    pub(super) fn needs_headers(&self) -> bool {
        match self {
            Self::Queue(queue) => queue.looks_at_headers(),
            Self::Classifier(classifier) => classifier.looks_at_headers(),
            Self::Ingress(ingress) => ingress.as_ref().is_some_and(Ingress::needs_headers),
            Self::Policer(policer) => policer.as_ref().is_some_and(Policer::looks_at_headers),
            _ => false,
        }
    }
}

/// A change of one part of a running link. No packet is lost by it.
#[derive(Debug)]
pub enum Change {
    /// Another rate or kind of rate. The remainder of a transmission continues at the new rate.
    Service(Box<dyn ServiceCurve>),
    /// Another kind of queue, which takes over the waiting packets in order of arrival. On a sch_netem single
    /// queue, this first ends it as [`Change::Netem`] with `None` does.
    Queue(Box<dyn Queue>),
    /// Another bound of the same queue; a smaller bound drops no packet already waiting.
    QueueBound(Bound),
    /// The bound of the queue over time, from now on; `None` keeps the current bound.
    BoundSteps(Option<Steps<Bound>>),
    /// Another weight for one class of a scheduler, by its number. The caller must know the scheduler: one
    /// without that class, or that refuses the weight, does not change.
    Weight {
        /// The class, in the order of the configuration.
        class: usize,
        /// Applies from the next packet that reaches the head of the class.
        weight: Weight,
    },
    /// Other parameters for one class of a scheduler, specific to that kind of scheduler, by the number of
    /// the class. The caller must know the scheduler: one without that class, or of another kind, does not
    /// change.
    Class {
        /// The class, in the order of the configuration.
        class: usize,
        /// Applies from now on.
        settings: ClassSettings,
    },
    /// Other rules that sort packets into the same classes, from the next arrival on; waiting packets stay
    /// where they are. The caller must know the classes: a queue without them does not change.
    Classifier(Classifier),
    /// Applies from the next transmission on.
    Overhead(Overhead),
    /// Applies from the next transmission on.
    AirTime(Option<AirTime>),
    /// Credit earned so far is kept, up to the new burst. If there was no burst before, idle time counts from
    /// now on.
    Burst(Bytes),
    /// Loss before the queue.
    IngressLoss(Option<Loss>),
    /// Other filters, with full buckets, or none.
    Ingress(Option<Ingress>),
    /// Another policer, with full buckets, or none.
    Policer(Option<Policer>),
    /// Loss on the wire.
    WireLoss(Option<Loss>),
    /// Bit errors on the wire.
    Corruption(Option<Corruption>),
    /// Packets that are duplicated.
    Duplication(Option<Box<dyn Selector>>),
    /// Packets in flight keep their due times. Feeds with the same name keep their values and questions;
    /// questions to a removed feed are decided as if it were empty.
    Delay(Box<dyn DelayModel>),
    /// Applies to packets that enter the delay line from now on.
    Reorder(Option<Reorder>),
    /// Other slots from the next one on: a slot already scheduled keeps its time. With `None`, all packets
    /// waiting for a slot leave at once.
    Slots(Option<Slots>),
    /// Another single queue of sch_netem, which takes over what the current one holds. If the link had none,
    /// it becomes one: every other part is reset as in [`LinkConfig::new`], except that order is not kept;
    /// packets waiting for the transmitter leave at once, and packets in the delay line keep their due times.
    /// `None` ends the single queue: its packets move to the delay line with their due times, and the link is
    /// as in [`LinkConfig::new`], whatever it was before.
    Netem(Option<Box<Netem>>),
    /// Other plain values, for packets from now on.
    Settings(LinkSettings),
    /// Another template for link instances ([`Instances`]). Existing instances and the configured link change
    /// as the template specifies ([`LinkTemplate::changes`]). Any other change of a link that has instances
    /// applies to that link alone.
    Template(Box<dyn LinkTemplate>),
}

/// Creates a separate link for each flow that a mask distinguishes, on the flow's first packet: ipfw's
/// "dynamic pipes".
#[derive(Debug)]
pub struct Instances {
    /// The mask that distinguishes flows.
    pub mask: FlowMask,
    /// Maximum number of instances at a time. Packets of further flows share the configured link itself.
    pub most: u32,
    /// An instance that has been empty for this long is removed when the next packet arrives here.
    pub idle: Duration,
    /// The configuration of instances. Values of a feed go to the configured link alone, so the
    /// delay model of an instance must not use a feed.
    pub template: Box<dyn LinkTemplate>,
}

/// A template for link instances.
pub trait LinkTemplate: fmt::Debug + Send {
    /// A new instance. Its name, lanes and instances are ignored.
    fn link(&self) -> LinkConfig;

    /// The changes that turn an instance of the previous template into one of this template; see
    /// [`Change::Template`].
    fn changes(&self) -> Vec<Change>;
}
