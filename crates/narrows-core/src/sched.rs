//! Schedulers: several flows share one transmitter.
//!
//! [`Scheduler`] is an open seam. A scheduler decides which flow sends next, and nothing else: the packets of each flow
//! wait in [`Flows`], which also keeps what the scheduler wants to remember of a flow, next to its queue. Classes, bounds
//! and queue management are [`Scheduled`]'s business, which makes a scheduler a link's [`Queue`](crate::queue::Queue).
//! [`Server`] is the bare thing, for tests and benches: flows and a scheduler, without packets' contents.
//!
//! How to write one: `docs/writing-a-scheduler.md`.

mod abe;
pub(crate) mod bucket;
mod cbq;
mod csma_cd;
mod dcf;
mod drr;
mod fair;
mod fifo;
mod flow_sets;
mod flows;
mod fq;
mod gfq;
mod hpd;
mod htb;
mod kps;
mod list;
mod longest;
mod prio;
mod qfq;
mod scheduled;
mod server;
pub(crate) mod shaping;
pub(crate) mod tbf;
mod tournament;
mod wf2q;

pub use crate::class::{
    ClassSettings, ClassState, DelayState, Failure, Fault, Mode, Refused, ShapedState, Weight,
};
pub use crate::queue::{FlowSetCounts, MaskedFlow};
pub use abe::{Abe, AbeConfig, AbeFlow};
pub use cbq::{Cbq, CbqClass, CbqFlow};
pub use csma_cd::{CsmaCd, CsmaCdConfig, CsmaCdCounters, EthernetStation};
pub use dcf::{Dcf, DcfConfig, DcfCounters};
pub use drr::{Drr, DrrFlow};
pub use fair::{Fair, FairFlow};
pub use fifo::{Fifo, FifoFlow};
pub use flow_sets::{FlowSet, FlowSets, PolicyPerFlow};
pub use flows::{FlowId, Flows, Waits};
pub use fq::{FqCodelConfig, FqPieConfig, SfqConfig, fq_codel, fq_pie, sfq};
pub use gfq::{Gfq, GfqFlow};
pub use hpd::{
    BoundOrder, BoundReading, ErrorWidth, Estimator, Gamma, Hpd, HpdClass, HpdConfig, HpdFlow, Per1024,
};
pub use htb::{Htb, HtbClass};
pub use kps::{Kps, KpsFlow};
pub use prio::{Priority, PriorityFlow};
pub use qfq::{Qfq, QfqFlow, WorstCase};
pub use scheduled::{Class, Overload, Scheduled, Store};
pub use server::{Served, Server};
pub use shaping::{ShapingError, ShapingFault};
pub use tbf::{Peak, Tbf, TbfConfig};
pub use wf2q::{Wf2q, Wf2qFlow};

use alloc::vec::Vec;
use core::fmt;

use crate::counters::DropReason;
use crate::queue::{Bound, Wire};
use crate::time::Time;

/// Chooses among flows.
///
/// For each packet the calls come in this order: [`enqueue`](Self::enqueue) when it has joined its flow's queue; later
/// [`select`](Self::select) when the transmitter is free; and if that says [`Selection::Flow`], the flow's first packet is
/// taken out and [`sent`](Self::sent) follows, unless queue management dropped everything that waited in the flow, when
/// [`head_dropped`](Self::head_dropped) follows.
pub trait Scheduler: fmt::Debug + Send {
    /// What it keeps of a flow. Up to 40 bytes lie in one cache line with the flow's queue.
    type Flow: fmt::Debug + Send;

    /// Whether [`enqueue`](Self::enqueue) has to tell of each packet, as it does where this is not said otherwise. To one to
    /// whom it only matters that an idle flow has a packet now it tells of the first alone, where a flow gets several at
    /// once: those of a class whose own queue had nothing to send for a while.
    const COUNTS_PACKETS: bool = true;

    /// A flow joins, with nothing waiting.
    ///
    /// # Errors
    /// When it cannot serve such a flow, alone or beside those that it has; then nothing has changed.
    fn join(&mut self, flow: FlowConfig) -> Result<Self::Flow, Refused>;

    /// A flow leaves. Nothing waits in it; its number may be given to another one.
    fn leave(&mut self, flow: FlowId, flows: &mut Flows<Self::Flow>);

    /// A flow has another weight from now on; it may be backlogged. A scheduler without weights refuses.
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

    /// A flow has other parameters of the scheduler's own from now on; it may be backlogged.
    ///
    /// # Errors
    /// When these are not of its kind, or as for [`join`](Self::join).
    fn set_class(
        &mut self,
        _now: Time,
        _flow: FlowId,
        _settings: ClassSettings,
        _flows: &mut Flows<Self::Flow>,
    ) -> Result<(), Refused> {
        Err(Refused::NoSettings)
    }

    /// A packet has joined the end of a flow's queue. It is the only one there if the flow was idle:
    /// `flows.packets(flow) == 1`.
    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<Self::Flow>);

    /// The same of a packet that has waited since an earlier instant in a queue that this one replaces. Those of a flow
    /// come in the order of these instants.
    fn take_over(&mut self, now: Time, flow: FlowId, _since: Time, flows: &mut Flows<Self::Flow>) {
        self.enqueue(now, flow, flows);
    }

    /// Why a packet of `length` bytes could never go, and is dropped when it comes. Nothing is changed by asking.
    fn never_sends(&self, _length: u32) -> Option<DropReason> {
        None
    }

    /// Why a packet of `length` bytes that comes now is not let in, by a scheduler that decides on that itself
    /// ([`Overload::Scheduler`]). Nothing but the catching up with `now` is changed by asking.
    fn refuses(&mut self, _now: Time, _length: u32) -> Option<DropReason> {
        None
    }

    /// Which flow sends its first packet now. A flow that is chosen must have one. What this changes must not depend on
    /// how often it is asked: asking again at the same instant gives the same answer.
    fn select(&mut self, now: Time, flows: &mut Flows<Self::Flow>) -> Selection;

    /// The selected flow has sent a packet of `length` bytes, which is out of its queue. What was its first packet when it
    /// was selected may have been dropped before by queue management, so the length may be another one.
    fn sent(&mut self, now: Time, flow: FlowId, length: u32, flows: &mut Flows<Self::Flow>);

    /// A flow's first packets have been dropped, whether it was selected or not: another packet is the first now, or none
    /// is. They got no service. To a class whose own queue has nothing to send for a while this happens, too.
    fn head_dropped(&mut self, now: Time, flow: FlowId, flows: &mut Flows<Self::Flow>);

    /// Whether a flow in which nothing waits has had more than its share so far, and would pay for it when it sends again.
    /// One that left and joined anew would not, so who takes idle flows away and makes them again waits until it owes nothing.
    fn owes(&self, _flow: FlowId, _flows: &Flows<Self::Flow>) -> bool {
        false
    }

    /// The transmitter is now this.
    fn set_wire(&mut self, _now: Time, _wire: Wire) {}

    /// The bound of the whole is now this. Only one that lets packets in itself needs it: see [`Scheduler::refuses`].
    fn set_bound(&mut self, _bound: Bound) {}

    /// Where its classes stand, those with others below them included, in the order in which they were configured.
    /// Nothing where it has no more to tell than what all classes count.
    fn states(&self, _now: Time, _flows: &Flows<Self::Flow>) -> Vec<ClassState> {
        Vec::new()
    }
}

/// The answer to [`Scheduler::select`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// This flow's first packet goes.
    Flow(FlowId),
    /// This flow's first packet is given up: it is dropped, [`Scheduler::head_dropped`] follows, then another
    /// [`Scheduler::select`].
    GiveUp(FlowId, DropReason),
    /// Packets wait, but none may go before that instant, which lies in the future.
    NotBefore(Time),
    /// Nothing waits.
    Empty,
}

/// What a scheduler needs to know of a flow. Each looks only at what its algorithm knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowConfig {
    /// Its share of the transmitter, relative to the others' weights.
    pub weight: Weight,
    /// The longest packet that is expected, in bytes from the network header on. A longer one is served all the same.
    pub longest: u32,
    /// Its band, for strict priorities: lower ones go first.
    pub band: u32,
}

impl Default for FlowConfig {
    fn default() -> Self {
        Self { weight: Weight::ONE, longest: 1500, band: 0 }
    }
}
