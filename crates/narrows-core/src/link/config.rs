//! What a link is made of, and what may change while it runs.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::air_time::AirTime;
use super::corruption::Corruption;
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
    /// Unique in the network. Part of the key of the link's random draws, and its place in the order of events.
    pub name: String,
    /// Where packets go on leaving: one target for a link of one direction, one for each direction of a shared medium.
    pub lanes: Vec<Target>,
    /// Where packets wait.
    pub queue: Box<dyn Queue>,
    /// The bound of the queue over time, in place of its own. The one that holds when a packet arrives counts.
    pub bound_steps: Option<Steps<Bound>>,
    /// How fast the wire takes bits.
    pub service: Box<dyn ServiceCurve>,
    /// How many bits a packet is.
    pub overhead: Overhead,
    /// For how long a packet holds the wire beyond its bits, and which are lost in doing so.
    pub air_time: Option<AirTime>,
    /// The most that may pass at once after the wire was idle: for an idle time d, as many bytes as the wire would have
    /// sent in d. Zero is none.
    pub burst: Bytes,
    /// Loss before the queue.
    pub ingress_loss: Option<Loss>,
    /// What is let in, by a token bucket: after that loss, before the MTU and the queue.
    pub policer: Option<Policer>,
    /// Loss after the transmitter.
    pub wire_loss: Option<Loss>,
    /// What flips bits on the wire.
    pub corruption: Option<Corruption>,
    /// Packets that are duplicated on the wire. The twin has the same bits and draws its own delay.
    pub duplication: Option<Box<dyn Selector>>,
    /// The propagation delay.
    pub delay: Box<dyn DelayModel>,
    /// Packets that skip the delay.
    pub reorder: Option<Reorder>,
    /// When packets leave that are due.
    pub slots: Option<Slots>,
    /// The single queue of Linux's sch_netem in place of all other parts, which then do not count. A change of another part
    /// does: it comes before or after the single queue, or with [`Change::Queue`] in its place.
    pub netem: Option<Box<Netem>>,
    /// The plain values.
    pub settings: LinkSettings,
    /// Links that are made on first use in place of this one, which then only takes what is beyond their number.
    pub instances: Option<Box<Instances>>,
}

impl LinkConfig {
    /// The bound of a queue whose link has no rate from which to work one out.
    pub const DEFAULT_BOUND: Bound = Bound::Packets(1000);

    /// A link that does nothing: unlimited, without delay or impairment.
    pub fn new(name: impl Into<String>, to: Target) -> Self {
        Self { lanes: vec![to], ..Self::plain(name.into()) }
    }

    /// The same without a lane.
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

/// Some packets skip the delay: of every `gap` packets the first `gap − 1` never do, and from then on each does if it
/// is selected, until one has. NetEm's rule; a gap of 1 makes every packet a candidate. The count goes by the
/// packets that enter the delay line, so a loss before it shifts which are candidates, though not their draws.
#[derive(Debug)]
pub struct Reorder {
    /// Of the candidates, those that do.
    pub selector: Box<dyn Selector>,
    /// At least 1.
    pub gap: u32,
}

/// A change of one part of a link while it runs. No packet is lost by it.
#[derive(Debug)]
pub enum Change {
    /// Another rate, or kind of rate; what is left of a transmission goes on at the new one.
    Service(Box<dyn ServiceCurve>),
    /// Another kind of queue, which takes over what waits, in order of arrival. In place of the single queue of sch_netem:
    /// after the end of that ([`Change::Netem`]).
    Queue(Box<dyn Queue>),
    /// Another bound of the same queue; a smaller one drops nothing that waits.
    QueueBound(Bound),
    /// The bound of the queue over time from now on; nothing leaves it as it is.
    BoundSteps(Option<Steps<Bound>>),
    /// Another weight for one class of a scheduler, by its number. Whoever asks knows the scheduler: one without that
    /// class, or that does not take the weight, goes on as it was.
    Weight {
        /// The class, in the order of the configuration.
        class: usize,
        /// Used from the next packet on that reaches the head of the class.
        weight: Weight,
    },
    /// Other parameters for one class of a scheduler, which only such a scheduler knows, by the number of the class. Whoever
    /// asks knows the scheduler: one without that class, or of another kind, goes on as it was.
    Class {
        /// The class, in the order of the configuration.
        class: usize,
        /// From now on.
        settings: ClassSettings,
    },
    /// Other rules that sort packets into the same classes, from the next arrival on; what waits stays where it is. Whoever
    /// asks knows the classes: a queue without them goes on as it was.
    Classifier(Classifier),
    /// Counts from the next transmission on.
    Overhead(Overhead),
    /// Counts from the next transmission on.
    AirTime(Option<AirTime>),
    /// What was earned stays, up to the new burst; idle time counts from now on where there was none.
    Burst(Bytes),
    /// Loss before the queue.
    IngressLoss(Option<Loss>),
    /// Another policer, with full buckets, or none.
    Policer(Option<Policer>),
    /// Loss on the wire.
    WireLoss(Option<Loss>),
    /// What flips bits on the wire.
    Corruption(Option<Corruption>),
    /// Packets that are duplicated.
    Duplication(Option<Box<dyn Selector>>),
    /// Packets in flight keep their instants. Feeds of the same name keep their values and their questions; questions to a
    /// feed that is gone are decided as if it were empty.
    Delay(Box<dyn DelayModel>),
    /// Counts for packets that enter the delay line from now on.
    Reorder(Option<Reorder>),
    /// Other slots from the next one on: one that was asked for keeps its instant. Without slots all that waits for one
    /// leaves at once.
    Slots(Option<Slots>),
    /// Another single queue of sch_netem, which takes over what the present one holds; or the link becomes one: then every
    /// other part is as in [`LinkConfig::new`] but that order is not kept, what waited for the transmitter leaves at once,
    /// and what is in the delay line keeps its instants. Nothing ends it: what it holds keeps its instants in the delay
    /// line, and the link is as in [`LinkConfig::new`], whatever it was before.
    Netem(Option<Box<Netem>>),
    /// Other plain values, which count for packets from now on.
    Settings(LinkSettings),
    /// Another template for links that are made on first use ([`Instances`]). Those that there are, and the configured link,
    /// change by what it says of itself ([`LinkTemplate::changes`]). Any other change of a link that has instances changes
    /// that link alone.
    Template(Box<dyn LinkTemplate>),
}

/// Makes a link of its own for each flow that a mask tells apart, on the flow's first packet: ipfw's "dynamic pipes".
#[derive(Debug)]
pub struct Instances {
    /// What tells the flows apart.
    pub mask: FlowMask,
    /// The most links at a time. Packets of flows beyond share the configured link itself.
    pub most: u32,
    /// A link in which nothing has been for as long as this is given up by the next packet that comes here.
    pub idle: Duration,
    /// What they are like. The values of a feed go to the configured link alone, so their delay is none that is fed.
    pub template: Box<dyn LinkTemplate>,
}

/// What links are like that are made on first use.
pub trait LinkTemplate: fmt::Debug + Send {
    /// A new one. Its name, lanes and instances are not looked at.
    fn link(&self) -> LinkConfig;

    /// What makes a link of the template before this one a link of this one; see [`Change::Template`].
    fn changes(&self) -> Vec<Change>;
}
