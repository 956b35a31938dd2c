//! Counters and state of flows that masks create.

use super::Backlog;
use crate::classify::Flow;
use crate::counters::Tally;
use crate::time::Time;

/// Flow counts of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSetCounts {
    /// [`FlowSet::number`](crate::sched::FlowSet::number).
    pub number: u32,
    /// Flows created.
    pub made: u64,
    /// Flows removed because they were idle.
    pub expired: u64,
    /// Packets that arrived while the set was at its maximum number of flows, and used the shared flow.
    pub overflowed: u64,
}

/// A flow created by a mask, or the only flow of a set without a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskedFlow {
    /// Index of its set, from 0.
    pub set: u32,
    /// [`FlowSet::number`](crate::sched::FlowSet::number).
    pub number: u32,
    /// The header fields that its packets have in common. `None` for the flow shared by all packets beyond the
    /// maximum number of flows.
    pub flow: Option<Flow>,
    /// Packets that arrived since the flow was created.
    pub arrived: Tally,
    /// Packets dropped or lost.
    pub dropped: Tally,
    /// Packets waiting.
    pub backlog: Backlog,
    /// Since when the flow has been idle.
    pub idle_since: Option<Time>,
}
