//! The configuration of a flow set.

use alloc::boxed::Box;
use core::fmt;

use crate::aqm::Aqm;
use crate::classify::FlowMask;
use crate::model::selector::Loss;
use crate::queue::{Bound, DropAt};
use crate::sched::FlowConfig;

/// Flows with the same configuration: the mask that separates them, and the parameters of each.
#[derive(Debug)]
pub struct FlowSet {
    /// The number by which users know the set. It is part of the key of the `loss` draws and nothing else.
    pub number: u32,
    /// What distinguishes the flows. With no bit set, the set is one flow that always exists.
    pub mask: FlowMask,
    /// The scheduler's parameters of each flow.
    pub flow: FlowConfig,
    /// The maximum backlog of each flow.
    pub bound: Bound,
    /// Which packet to drop when the bound is reached.
    pub drop_at: DropAt,
    /// The queue management of each flow.
    pub policy: Option<PolicyPerFlow>,
    /// Random loss of the set's packets before they reach their flow.
    pub loss: Option<Loss>,
    /// Maximum number of flows at a time, at least 1. The packets of all others share one additional flow.
    pub most: u32,
}

impl FlowSet {
    /// 50 packets per flow, as in the reference; drop tail; no policy; no loss; at most 65,536 flows.
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

/// Creates the queue management policy of a flow.
pub struct PolicyPerFlow(Box<dyn Fn() -> Box<dyn Aqm> + Send>);

impl PolicyPerFlow {
    /// `make` is called for each flow that is created. Its result must not depend on how often it was called.
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
