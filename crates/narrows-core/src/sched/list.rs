//! A circular list of flows, linked by number: no allocation, and a flow can be removed from any position.

use crate::sched::{FlowId, Flows};

/// A flow's links in a list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    next: FlowId,
    previous: FlowId,
}

/// Per-flow state of a scheduler that keeps flows in lists.
pub(super) trait Linked {
    /// The flow's links. Meaningless while it is in no list.
    fn links(&mut self) -> &mut Links;
}

/// A circular list of flows. The user must know whether a flow is in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    front: Option<FlowId>,
}

impl Links {
    /// The flow after this one, which may be the same flow.
    pub(super) const fn next(self) -> FlowId {
        self.next
    }
}

impl List {
    /// The flow whose turn it is.
    #[inline]
    pub(super) const fn front(&self) -> Option<FlowId> {
        self.front
    }

    /// Appends a flow that is in no list.
    #[inline]
    pub(super) fn push_back<F: Linked>(&mut self, flow: FlowId, flows: &mut Flows<F>) {
        let Some(front) = self.front else {
            *flows[flow].links() = Links { next: flow, previous: flow };
            self.front = Some(flow);
            return;
        };
        let back = core::mem::replace(&mut flows[front].links().previous, flow);
        flows[back].links().next = flow;
        *flows[flow].links() = Links { next: front, previous: back };
    }

    /// Moves the front flow to the back.
    #[inline]
    pub(super) fn rotate<F: Linked>(&mut self, flows: &mut Flows<F>) {
        self.front = self.front.map(|front| flows[front].links().next);
    }

    /// Gives the turn to `flow`, which is the one after the front.
    #[inline]
    pub(super) const fn turn_to(&mut self, flow: FlowId) {
        self.front = Some(flow);
    }

    /// Removes a flow from this list. It must be in it.
    #[inline]
    pub(super) fn remove<F: Linked>(&mut self, flow: FlowId, flows: &mut Flows<F>) {
        let Links { next, previous } = *flows[flow].links();
        if next == flow {
            self.front = None;
            return;
        }
        flows[previous].links().next = next;
        flows[next].links().previous = previous;
        if self.front == Some(flow) {
            self.front = Some(next);
        }
    }
}
