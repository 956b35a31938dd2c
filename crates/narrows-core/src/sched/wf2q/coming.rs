//! The backlogged flows whose first packet may not be served yet, by its start.
//!
//! A flow that has been served starts next where the packet served was to finish, and packets are served by their finish,
//! so flows mostly come here in the order of their starts. Those that do stand in a queue, which costs next to nothing;
//! the others are in a tournament.

use alloc::collections::VecDeque;

use super::{Place, Wf2qFlow};
use crate::sched::tournament::Tournament;
use crate::sched::{FlowId, Flows};

#[derive(Debug, Default)]
pub(super) struct Coming {
    /// In order of their starts, but for those that were taken out since: a flow counts them, and they come before the one
    /// that stands for it now, if one does.
    queue: VecDeque<FlowId>,
    /// The start of the last one in the queue, taken out or not.
    last: u64,
    /// How many in the queue have been taken out.
    stale: usize,
    others: Tournament,
}

/// Fewer than that are not worth a walk.
const FEW: usize = 64;

impl Coming {
    /// Adds a flow by the start that it has.
    #[inline]
    pub(super) fn add(&mut self, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        let state = &mut flows[flow];
        if self.queue.is_empty() || self.last <= state.start {
            state.place = Place::Queued;
            self.last = state.start;
            if self.queue.len() == self.queue.capacity() {
                // By an eighth rather than by doubling, to keep to the memory that a flow may take.
                self.queue.reserve_exact(self.queue.len() / 8 + FEW);
            }
            self.queue.push_back(flow);
        } else {
            state.place = Place::Coming;
            self.others.make_room(flow);
            self.others.set(flow, state.start);
        }
    }

    /// Takes out a flow that stands in the queue.
    pub(super) fn take_queued(&mut self, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        flows[flow].stale += 1;
        self.stale += 1;
        if self.stale > FEW && self.stale > self.queue.len() / 4 {
            self.sweep(flows);
        }
    }

    /// Takes out a flow that is not in the queue.
    pub(super) fn take_other(&mut self, flow: FlowId) {
        self.others.clear(flow);
    }

    /// A flow's number may be another's from now on.
    pub(super) fn forget(&mut self, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        if flows[flow].stale > 0 {
            self.sweep(flows);
        }
    }

    /// Takes out one of the flows that start at `now` or before.
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

    /// The least start of all.
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

    /// All starts move back by `amount`; of none that counts is it less.
    pub(super) fn shift(&mut self, amount: u64) {
        self.last = self.last.saturating_sub(amount);
        self.others.shift(amount);
    }
}
