//! What a flow set is like, and what can be seen of its flows.

use alloc::boxed::Box;
use core::fmt;

use crate::aqm::Aqm;
use crate::classify::FlowMask;
use crate::model::selector::Loss;
use crate::queue::{Bound, DropAt};
use crate::sched::FlowConfig;

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
