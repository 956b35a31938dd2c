//! Schedulers: several flows share one transmitter.
//!
//! [`Scheduler`] is an open seam. A scheduler decides which flow sends next, and nothing else: the packets of each flow
//! wait in [`Flows`], which also keeps what the scheduler wants to remember of a flow, next to its queue. Classes, bounds
//! and queue management are [`Scheduled`]'s business, which makes a scheduler a link's [`Queue`](crate::queue::Queue).
//! [`Server`] is the bare thing, for tests and benches: flows and a scheduler, without packets' contents.
//!
//! How to write one: `docs/writing-a-scheduler.md`.

mod dcf;
mod drr;
mod fair;
mod fifo;
mod flows;
mod fq;
mod gfq;
mod list;
mod longest;
mod prio;
mod qfq;
mod scheduled;
mod server;
mod tournament;
mod wf2q;

pub use dcf::{Dcf, DcfConfig, DcfCounters};
pub use drr::{Drr, DrrFlow};
pub use fair::{Fair, FairFlow};
pub use fifo::{Fifo, FifoFlow};
pub use flows::{FlowId, Flows, Waits};
pub use fq::{FqCodelConfig, FqPieConfig, SfqConfig, fq_codel, fq_pie, sfq};
pub use gfq::{Gfq, GfqFlow};
pub use prio::{Priority, PriorityFlow};
pub use qfq::{Qfq, QfqFlow, WorstCase};
pub use scheduled::{Class, Overload, Scheduled, Store};
pub use server::{Served, Server};
pub use wf2q::{Wf2q, Wf2qFlow};

use core::fmt;
use core::num::NonZero;

use crate::counters::DropReason;
use crate::queue::Wire;
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

    /// A flow joins, with nothing waiting.
    ///
    /// # Errors
    /// When it cannot serve such a flow, alone or beside those that it has; then nothing has changed.
    fn join(&mut self, flow: FlowConfig) -> Result<Self::Flow, Refused>;

    /// A flow leaves. Nothing waits in it; its number may be given to another one.
    fn leave(&mut self, flow: FlowId, flows: &mut Flows<Self::Flow>);

    /// A flow has another weight from now on; it may be backlogged.
    ///
    /// # Errors
    /// As for [`join`](Self::join).
    fn set_weight(
        &mut self,
        now: Time,
        flow: FlowId,
        weight: Weight,
        flows: &mut Flows<Self::Flow>,
    ) -> Result<(), Refused>;

    /// A packet has joined the end of a flow's queue. It is the only one there if the flow was idle:
    /// `flows.packets(flow) == 1`.
    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<Self::Flow>);

    /// Which flow sends its first packet now. A flow that is chosen must have one. What this changes must not depend on
    /// how often it is asked: asking again at the same instant gives the same answer.
    fn select(&mut self, now: Time, flows: &mut Flows<Self::Flow>) -> Selection;

    /// The selected flow has sent a packet of `length` bytes, which is out of its queue. What was its first packet when it
    /// was selected may have been dropped before by queue management, so the length may be another one.
    fn sent(&mut self, now: Time, flow: FlowId, length: u32, flows: &mut Flows<Self::Flow>);

    /// A flow's first packets have been dropped, whether it was selected or not: another packet is the first now, or none
    /// is. They got no service.
    fn head_dropped(&mut self, now: Time, flow: FlowId, flows: &mut Flows<Self::Flow>);

    /// The transmitter is now this.
    fn set_wire(&mut self, _now: Time, _wire: Wire) {}
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

/// The share of a flow relative to others: a whole number, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(NonZero<u32>);

impl Weight {
    /// The least.
    pub const ONE: Self = Self(NonZero::<u32>::MIN);

    /// Nothing for 0.
    pub const fn new(weight: u32) -> Option<Self> {
        match NonZero::new(weight) {
            Some(weight) => Some(Self(weight)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a scheduler does not take a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its weight is above the greatest.
    Weight {
        /// What it is.
        found: u64,
        /// The most.
        most: u64,
    },
    /// The sum of all weights would be above the greatest.
    Sum {
        /// What it would be.
        found: u64,
        /// The most.
        most: u64,
    },
    /// Its longest packet is beyond what the arithmetic holds.
    Longest {
        /// What it is, in bytes.
        found: u64,
        /// The most, in bytes.
        most: u64,
    },
    /// Its band is above the greatest.
    Band {
        /// What it is.
        found: u64,
        /// The most.
        most: u64,
    },
    /// There are as many flows as there may be.
    Flows {
        /// The most.
        most: u64,
    },
    /// There is no such class.
    NoClass,
    /// The scheduler knows no weights.
    NoWeights,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weight { found, most } => write!(f, "the weight is {found}, the greatest is {most}"),
            Self::Sum { found, most } => write!(f, "the weights add up to {found}, the most is {most}"),
            Self::Longest { found, most } => {
                write!(f, "the longest packet is {found} bytes, the most is {most} bytes")
            }
            Self::Band { found, most } => write!(f, "the band is {found}, the last one is {most}"),
            Self::Flows { most } => write!(f, "there are {most} flows already, which is the most"),
            Self::NoClass => write!(f, "there is no such class"),
            Self::NoWeights => write!(f, "this scheduler has no weights"),
        }
    }
}

impl core::error::Error for Refused {}
