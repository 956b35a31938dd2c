//! A circular list of flows, linked by their numbers: no allocation, and a flow leaves it from anywhere.

use crate::sched::{FlowId, Flows};

/// A flow's place in a list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    next: FlowId,
    previous: FlowId,
}

/// What a scheduler keeps of a flow that may be in a list.
pub(super) trait Linked {
    /// Its place. Means nothing while it is in none.
    fn links(&mut self) -> &mut Links;
}

/// Flows in a circle. Whether a flow is in the list is for its user to know.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    front: Option<FlowId>,
}

impl Links {
    /// The flow after this one, which may be itself.
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

    /// The flow at the front goes to the back.
    #[inline]
    pub(super) fn rotate<F: Linked>(&mut self, flows: &mut Flows<F>) {
        self.front = self.front.map(|front| flows[front].links().next);
    }

    /// It is the turn of `flow`, which is the one after the front.
    #[inline]
    pub(super) const fn turn_to(&mut self, flow: FlowId) {
        self.front = Some(flow);
    }

    /// Takes a flow out of this list, where it is.
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
