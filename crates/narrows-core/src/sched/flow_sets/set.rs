//! What a flow set is like, and what can be seen of its flows.

use alloc::boxed::Box;
use core::fmt;

use crate::aqm::Aqm;
use crate::classify::{Flow, FlowMask};
use crate::counters::Tally;
use crate::link::Loss;
use crate::queue::{Backlog, Bound, DropAt};
use crate::sched::FlowConfig;
use crate::time::Time;

/// Flows that are alike: what tells them apart, and what each of them is like.
#[derive(Debug)]
pub struct FlowSet {
    /// The number by which users know it. Part of the key of the draws of `loss`, and of nothing else.
    pub number: u32,
    /// What tells the flows apart. Without any bit the set is one flow, which is there from the start and stays.
    pub mask: FlowMask,
    /// What the scheduler needs to know of each flow.
    pub flow: FlowConfig,
    /// How much may wait in each flow.
    pub bound: Bound,
    /// Which packet goes when that is reached.
    pub drop_at: DropAt,
    /// What manages the queue of each flow.
    pub policy: Option<PolicyPerFlow>,
    /// Packets of the set that are lost before they come to their flow.
    pub loss: Option<Loss>,
    /// The most flows at a time, at least 1. The packets of all others share one flow more.
    pub most: u32,
}

impl FlowSet {
    /// 50 packets a flow, as in the reference; no policy; no losses; at most 65,536 flows.
    pub fn new(number: u32, mask: FlowMask, flow: FlowConfig) -> Self {
        Self {
            number,
            mask,
            flow,
            bound: Bound::Packets(50),
            drop_at: DropAt::Tail,
            policy: None,
            loss: None,
            most: 1 << 16,
        }
    }
}

/// Makes the queue management policy of a flow.
pub struct PolicyPerFlow(Box<dyn Fn() -> Box<dyn Aqm> + Send>);

impl PolicyPerFlow {
    /// `make` is called for each flow that is made. What it gives must not depend on how often it was called.
    pub fn new(make: impl Fn() -> Box<dyn Aqm> + Send + 'static) -> Self {
        Self(Box::new(make))
    }

    pub(super) fn make(&self) -> Box<dyn Aqm> {
        (self.0)()
    }
}

impl fmt::Debug for PolicyPerFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyPerFlow").field(&self.make()).finish()
    }
}

/// What has become of the flows of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSetCounts {
    /// [`FlowSet::number`].
    pub number: u32,
    /// Flows that were made.
    pub made: u64,
    /// Those of them that were taken away, idle.
    pub expired: u64,
    /// Packets that came when there were as many flows as there may be, and shared one.
    pub overflowed: u64,
}

/// A flow that a mask has made, or the one flow of a set without a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskedFlow {
    /// The place of its set, from 0 on.
    pub set: u32,
    /// [`FlowSet::number`].
    pub number: u32,
    /// What its packets agree in; nothing for the flow that those beyond the most share.
    pub flow: Option<Flow>,
    /// What has come since it was made.
    pub arrived: Tally,
    /// What of that was dropped or lost.
    pub dropped: Tally,
    /// What of it waits.
    pub backlog: Backlog,
    /// Since when nothing has waited.
    pub idle_since: Option<Time>,
}
