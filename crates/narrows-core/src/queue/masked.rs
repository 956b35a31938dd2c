//! What can be seen of flows that masks have made.

use super::Backlog;
use crate::classify::Flow;
use crate::counters::Tally;
use crate::time::Time;

/// What has become of the flows of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSetCounts {
    /// [`FlowSet::number`](crate::sched::FlowSet::number).
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
    /// [`FlowSet::number`](crate::sched::FlowSet::number).
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
