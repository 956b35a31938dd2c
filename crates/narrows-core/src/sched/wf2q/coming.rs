//! The backlogged flows that are not eligible yet, by start tag.
//!
//! After service, a flow's next start tag is the finish tag of the packet served, and packets are served in order of
//! finish tags. So flows mostly arrive here in order of their start tags. Those that do are kept in a queue, which
//! costs almost nothing; the others are in a tournament tree.

use alloc::collections::VecDeque;

use super::{Place, Wf2qFlow};
use crate::sched::tournament::Tournament;
use crate::sched::{FlowId, Flows};

#[derive(Debug, Default)]
pub(super) struct Coming {
    /// In order of their start tags, except for flows removed since: a flow counts its stale entries, which come
    /// before its valid one, if it has one.
    queue: VecDeque<FlowId>,
    /// The start tag of the last entry in the queue, stale or not.
    last: u64,
    /// The number of stale entries in the queue.
    stale: usize,
    others: Tournament,
}

/// With fewer entries than this, a sweep is not worth it.
const FEW: usize = 64;

impl Coming {
    /// Adds a flow by its present start tag.
    #[inline]
    pub(super) fn add(&mut self, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        let state = &mut flows[flow];
        if self.queue.is_empty() || self.last <= state.start {
            state.place = Place::Queued;
            self.last = state.start;
            if self.queue.len() == self.queue.capacity() {
                // Grow by an eighth instead of doubling, to limit the memory per flow.
                self.queue.reserve_exact(self.queue.len() / 8 + FEW);
            }
            self.queue.push_back(flow);
        } else {
            state.place = Place::Coming;
            self.others.make_room(flow);
            self.others.set(flow, state.start);
        }
    }

    /// Removes a flow that is in the queue.
    pub(super) fn take_queued(&mut self, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        flows[flow].stale += 1;
        self.stale += 1;
        if self.stale > FEW && self.stale > self.queue.len() / 4 {
            self.sweep(flows);
        }
    }

    /// Removes a flow that is not in the queue.
    pub(super) fn take_other(&mut self, flow: FlowId) {
        self.others.clear(flow);
    }

    /// Forgets a flow whose number may be reused from now on.
    pub(super) fn forget(&mut self, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        if flows[flow].stale > 0 {
            self.sweep(flows);
        }
    }

    /// Removes one of the flows that start at or before `now`.
    #[inline]
    pub(super) fn next_until(&mut self, now: u64, flows: &mut Flows<Wf2qFlow>) -> Option<FlowId> {
        if let Some((flow, start)) = self.first_queued(flows)
            && start <= now
        {
            self.queue.pop_front();
            return Some(flow);
        }
        let (start, flow) = self.others.least()?;
        (start <= now).then(|| {
            self.others.clear(flow);
            flow
        })
    }

    /// The least start tag.
    #[inline]
    pub(super) fn least(&mut self, flows: &mut Flows<Wf2qFlow>) -> Option<u64> {
        let queued = self.first_queued(flows).map(|(_, start)| start);
        let other = self.others.least().map(|(start, _)| start);
        queued.into_iter().chain(other).min()
    }

    #[inline]
    fn first_queued(&mut self, flows: &mut Flows<Wf2qFlow>) -> Option<(FlowId, u64)> {
        loop {
            let flow = *self.queue.front()?;
            let state = &mut flows[flow];
            if state.stale == 0 {
                return Some((flow, state.start));
            }
            state.stale -= 1;
            self.stale -= 1;
            self.queue.pop_front();
        }
    }

    #[cold]
    fn sweep(&mut self, flows: &mut Flows<Wf2qFlow>) {
        self.queue.retain(|&flow| {
            let state = &mut flows[flow];
            let stale = state.stale > 0;
            state.stale -= u32::from(stale);
            !stale
        });
        self.stale = 0;
    }

    /// Moves all start tags back by `amount`. No tag that matters is less than that.
    pub(super) fn shift(&mut self, amount: u64) {
        self.last = self.last.saturating_sub(amount);
        self.others.shift(amount);
    }
}
