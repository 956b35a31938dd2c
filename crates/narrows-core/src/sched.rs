//! Schedulers: several flows share one transmitter.
//!
//! [`Scheduler`] is the trait to implement for a new scheduling algorithm. A scheduler only decides which flow sends
//! next. The packets of each flow wait in [`Flows`], which also stores the scheduler's per-flow state next to the
//! flow's queue. [`Scheduled`] adds classes, bounds and queue management, and turns a scheduler into a link's
//! [`Queue`](crate::queue::Queue). [`Server`] is the minimal harness for tests and benchmarks: flows and a scheduler,
//! without packet contents.
//!
//! For a tutorial, see `docs/writing-a-scheduler.md`.

pub mod abe;
pub(crate) mod bucket;
pub mod cake;
pub mod cbq;
pub mod cbs;
pub mod csma_cd;
pub mod dcf;
pub mod drr;
pub mod ets;
pub mod fair;
pub mod fifo;
mod flow_sets;
mod flows;
pub mod fq;
pub mod gfq;
pub mod hfsc;
pub mod hhf;
pub mod hpd;
pub mod htb;
pub mod kps;
mod list;
mod longest;
pub mod paced;
pub mod prio;
pub mod qfq;
mod scheduled;
mod server;
pub(crate) mod shaping;
pub mod taprio;
pub mod tbf;
mod tournament;
pub mod wf2q;

// What is named most often, for short. A new scheduler needs no line here.
pub use crate::class::{
    ClassSettings, ClassState, DelayPlan, DelayState, Failure, Fault, Mode, Refused, SchedulerPlan,
    ShapedState, Weight,
};
pub use crate::queue::{ClassesPlan, FlowSetCounts, MaskedFlow};
pub use abe::{Abe, AbeConfig, AbeFlow};
pub use cake::{AckFilter, Cake, CakeConfig, CakeTarget, Cells, Framing, Isolation, TinMode};
pub use cbq::{Cbq, CbqClass, CbqFlow};
pub use cbs::{Cbs, CbsConfig};
pub use csma_cd::{CsmaCd, CsmaCdConfig, CsmaCdCounters, EthernetStation};
pub use dcf::{Dcf, DcfConfig, DcfCounters, HiddenDcf};
pub use drr::{Drr, DrrFlow};
pub use ets::{Ets, EtsFlow};
pub use fair::{Fair, FairFlow};
pub use fifo::{Fifo, FifoFlow};
pub use flow_sets::{FlowSet, FlowSets, PolicyPerFlow};
pub use flows::{FlowId, Flows, Waits};
pub use fq::{FqCodelConfig, FqPieConfig, SfqConfig, fq_codel, fq_pie, sfq};
pub use gfq::{Gfq, GfqFlow};
pub use hfsc::{Hfsc, HfscClass, HfscCurve};
pub use hhf::{Hhf, HhfConfig};
pub use hpd::{
    BoundOrder, BoundReading, ErrorWidth, Estimator, Gamma, Hpd, HpdClass, HpdConfig, HpdFlow, Per1024,
};
pub use htb::{Htb, HtbClass};
pub use kps::{Kps, KpsFlow};
pub use paced::{PacedFq, PacedFqConfig};
pub use prio::{Priority, PriorityFlow};
pub use qfq::{Qfq, QfqFlow, WorstCase};
pub use scheduled::{Class, Overload, Scheduled, Store};
pub use server::{Served, Server};
pub use shaping::{ShapingError, ShapingFault};
pub use taprio::{Taprio, TaprioEntry, TaprioFlow};
pub use tbf::{Peak, Tbf, TbfConfig};
pub use wf2q::{Wf2q, Wf2qFlow};

use alloc::vec::Vec;
use core::fmt;

use crate::counters::DropReason;
use crate::queue::{Bound, Wire};
use crate::time::Time;
use crate::units::Bytes;

/// Decides which flow sends next.
///
/// # Call sequence
/// 1. A packet arrives and is appended to its flow's queue. [`enqueue`](Self::enqueue) is called.
/// 2. The transmitter is free. [`select`](Self::select) is called.
/// 3. If the answer is [`Selection::Flow`] or [`Selection::Ended`], the flow's first packet is removed from its queue and
///    [`sent`](Self::sent) is called. If queue management drops every packet of the flow instead,
///    [`head_dropped`](Self::head_dropped) is called.
///
/// # Contract
/// - Time is an argument. `now` is the instant at which the event happens, not the instant of a poll. Never count
///   calls.
/// - `select` is idempotent: called again at the same instant, it gives the same answer. It may tidy up or catch up
///   with `now`, but the turn is consumed in `sent`.
/// - The scheduler reads the queues through [`Flows`] and changes only its own state, `flows[flow]`. The caller adds
///   and removes packets and flows.
/// - Every loop has a bound.
/// - A flow without packets may still have scheduler state: queue management can empty a flow at any time.
pub trait Scheduler: fmt::Debug + Send {
    /// The state that the scheduler keeps for each flow. Up to 40 bytes share one cache line with the flow's queue.
    type Flow: fmt::Debug + Send;

    /// Whether [`enqueue`](Self::enqueue) must be called for every packet. Default: true.
    ///
    /// Set it to `false` if the scheduler only needs to know that an idle flow has become backlogged. If a flow then
    /// gets several packets at once, `enqueue` is called for the first one only. This happens when a class with a
    /// nested queue ([`Store::Queue`]) has packets to send again after a pause.
    const COUNTS_PACKETS: bool = true;

    /// Adds a flow whose queue is empty, and returns its initial state.
    ///
    /// # Errors
    /// If the scheduler cannot serve the flow, alone or together with its present flows. Then it must leave its own
    /// state unchanged.
    fn join(&mut self, flow: FlowConfig) -> Result<Self::Flow, Refused>;

    /// Removes a flow whose queue is empty. Its number may be reused for another flow, so the scheduler must forget
    /// the flow.
    fn leave(&mut self, flow: FlowId, flows: &mut Flows<Self::Flow>);

    /// Changes a flow's weight from `now` on. The flow may be backlogged. The default implementation returns
    /// [`Refused::NoWeights`].
    ///
    /// # Errors
    /// As for [`join`](Self::join).
    fn set_weight(
        &mut self,
        _now: Time,
        _flow: FlowId,
        _weight: Weight,
        _flows: &mut Flows<Self::Flow>,
    ) -> Result<(), Refused> {
        Err(Refused::NoWeights)
    }

    /// Changes a flow's scheduler-specific parameters from `now` on. The flow may be backlogged. The default
    /// implementation returns [`Refused::NoSettings`].
    ///
    /// # Errors
    /// If the settings belong to another scheduler, or as for [`join`](Self::join).
    fn set_class(
        &mut self,
        _now: Time,
        _flow: FlowId,
        _settings: ClassSettings,
        _flows: &mut Flows<Self::Flow>,
    ) -> Result<(), Refused> {
        Err(Refused::NoSettings)
    }

    /// A packet has been appended to a flow's queue. If the flow was idle, it is the only packet there:
    /// `flows.packets(flow) == 1`.
    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<Self::Flow>);

    /// Like [`enqueue`](Self::enqueue), for a packet taken over from the queue that this one replaces. The packet has
    /// waited since `since`. The packets of a flow are passed in the order of these instants. The default
    /// implementation calls `enqueue`.
    fn take_over(&mut self, now: Time, flow: FlowId, _since: Time, flows: &mut Flows<Self::Flow>) {
        self.enqueue(now, flow, flows);
    }

    /// Returns the reason to drop a packet of `length` bytes if it could never be sent, and `None` otherwise. The call
    /// changes nothing. Default: `None`. [`Scheduled`] calls it for arriving packets and for those taken over.
    fn never_sends(&self, _length: u32) -> Option<DropReason> {
        None
    }

    /// Returns the reason to refuse a packet of `length` bytes that arrives now, and `None` to accept it. Called only
    /// with [`Overload::Scheduler`], where the scheduler itself decides about admission. The call may catch up with
    /// `now` and changes nothing else. Default: `None`.
    fn refuses(&mut self, _now: Time, _length: u32) -> Option<DropReason> {
        None
    }

    /// Selects the flow that sends its first packet now. A selected flow must have a packet.
    ///
    /// The call must be idempotent: called again at the same instant, it gives the same answer. State changes must
    /// not depend on how often it is called.
    fn select(&mut self, now: Time, flows: &mut Flows<Self::Flow>) -> Selection;

    /// The selected flow has sent a packet of `length` bytes, which has been removed from its queue. Charge the flow
    /// here.
    ///
    /// `length` can differ from the length of the packet that was first at the time of `select`: queue management may
    /// have dropped that one.
    fn sent(&mut self, now: Time, flow: FlowId, length: u32, flows: &mut Flows<Self::Flow>);

    /// One or more packets at the head of a flow have been dropped, whether the flow was selected or not. Now another
    /// packet is the first, or the flow is empty. The dropped packets received no service.
    ///
    /// Also called when a drop at the tail empties the flow, and when a class with a nested queue ([`Store::Queue`]) has
    /// nothing to send for a while. Other drops at the tail are not reported; `flows.packets(flow)` is always current.
    fn head_dropped(&mut self, now: Time, flow: FlowId, flows: &mut Flows<Self::Flow>);

    /// Whether an idle flow has received more than its share and would pay for it when it sends again. Default:
    /// `false`.
    ///
    /// A flow that leaves and joins again loses this debt. Code that removes idle flows and recreates them on demand,
    /// such as [`FlowSets`], therefore waits until the flow owes nothing.
    fn owes(&self, _flow: FlowId, _flows: &Flows<Self::Flow>) -> bool {
        false
    }

    /// Sets the transmitter's present rate and per-packet overhead. See
    /// [`Queue::set_wire`](crate::queue::Queue::set_wire) for when it is called.
    fn set_wire(&mut self, _now: Time, _wire: Wire) {}

    /// Sets the bound of the whole queue. Only needed by a scheduler that decides about admission: see
    /// [`Scheduler::refuses`].
    fn set_bound(&mut self, _bound: Bound) {}

    /// What it is made of, if it is of a kind that [`SchedulerPlan`] has.
    fn plan(&self, _flows: &Flows<Self::Flow>) -> Option<SchedulerPlan> {
        None
    }

    /// Returns the state of each class, inner classes included, in configuration order. Empty if the scheduler
    /// reports nothing beyond the counters that every class has, which is the default.
    fn states(&self, _now: Time, _flows: &Flows<Self::Flow>) -> Vec<ClassState> {
        Vec::new()
    }
}

/// The answer to [`Scheduler::select`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Send this flow's first packet.
    Flow(FlowId),
    /// This flow's first packet has been sent while it still waited: its transmission began at the given instant and
    /// ends now, without the link's transmitter. For schedulers in which transmissions overlap in time. As with
    /// [`Selection::Flow`], [`Scheduler::sent`] is called.
    Ended(FlowId, Time),
    /// Drop this flow's first packet. [`Scheduler::head_dropped`] is called, then [`Scheduler::select`] again.
    GiveUp(FlowId, DropReason),
    /// Packets wait, but none may be sent before this instant, which must be later than `now`. Name the exact instant:
    /// no packet could be sent earlier, and at that instant one can be sent or a later instant is named.
    /// [`Scheduler::select`] may be called before it.
    NotBefore(Time),
    /// No packet waits.
    Empty,
}

/// A flow's parameters. Each scheduler uses only those that its algorithm knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowConfig {
    /// The flow's share of the transmitter, relative to the weights of the others.
    pub weight: Weight,
    /// The longest packet to expect, in bytes from the network header on. Longer packets are still served.
    pub longest: u32,
    /// The band, for strict priorities: lower bands are served first.
    pub band: u32,
    /// The bytes per turn, for schedulers that serve in turns. `None`: in proportion to the weight.
    pub quantum: Option<Bytes>,
}

impl Default for FlowConfig {
    fn default() -> Self {
        Self { weight: Weight::ONE, longest: 1500, band: 0, quantum: None }
    }
}
