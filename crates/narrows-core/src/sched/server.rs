//! Flows and a scheduler: the scheduler interface on its own.

use alloc::vec::Vec;

use crate::counters::DropReason;
use crate::pool::PacketRef;
use crate::queue::{Bound, Wire};
use crate::sched::{
    ClassSettings, ClassState, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection, Waits, Weight,
};
use crate::time::Time;

/// Flows served by a scheduler. It knows only the numbers and lengths of packets.
#[derive(Debug, Default)]
pub struct Server<S: Scheduler> {
    scheduler: S,
    flows: Flows<S::Flow>,
}

/// The answer to [`Server::dequeue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// This packet is sent.
    Packet(FlowId, Waits),
    /// The scheduler gave up this packet; it is dropped.
    GivenUp(FlowId, Waits, DropReason),
    /// Packets wait, but none may be sent before this instant.
    NotBefore(Time),
    /// No packet waits.
    Empty,
}

impl<S: Scheduler> Server<S> {
    /// A server without flows.
    pub fn new(scheduler: S) -> Self {
        Self { scheduler, flows: Flows::default() }
    }

    /// Adds a flow.
    ///
    /// # Errors
    /// If the scheduler does not accept it. Then nothing has changed.
    pub fn join(&mut self, flow: FlowConfig) -> Result<FlowId, Refused> {
        let state = self.scheduler.join(flow)?;
        Ok(self.flows.add(state))
    }

    /// Removes a flow if its queue is empty. Returns whether it was removed.
    pub fn leave(&mut self, flow: FlowId) -> bool {
        let empty = self.flows.contains(flow) && self.flows.packets(flow) == 0;
        if empty {
            self.scheduler.leave(flow, &mut self.flows);
            self.flows.remove(flow);
        }
        empty
    }

    /// Whether an idle flow has received more than its share: see [`Scheduler::owes`].
    pub fn owes(&self, flow: FlowId) -> bool {
        self.scheduler.owes(flow, &self.flows)
    }

    /// Changes a flow's weight.
    ///
    /// # Errors
    /// If the scheduler does not accept it. Then nothing has changed.
    pub fn set_weight(&mut self, now: Time, flow: FlowId, weight: Weight) -> Result<(), Refused> {
        self.scheduler.set_weight(now, flow, weight, &mut self.flows)
    }

    /// Changes a flow's scheduler-specific parameters.
    ///
    /// # Errors
    /// If the scheduler does not accept them. Then nothing has changed.
    pub fn set_class(&mut self, now: Time, flow: FlowId, settings: ClassSettings) -> Result<(), Refused> {
        self.scheduler.set_class(now, flow, settings, &mut self.flows)
    }

    /// Sets the transmitter's rate and overhead.
    pub fn set_wire(&mut self, now: Time, wire: Wire) {
        self.scheduler.set_wire(now, wire);
    }

    /// Sets the maximum backlog; see [`Scheduler::set_bound`].
    pub fn set_bound(&mut self, bound: Bound) {
        self.scheduler.set_bound(bound);
    }

    /// The reason to refuse a packet that arrives now, if any: see [`Scheduler::refuses`].
    pub fn refuses(&mut self, now: Time, length: u32) -> Option<DropReason> {
        self.scheduler.refuses(now, length)
    }

    /// The state of the classes; see [`Scheduler::states`].
    pub fn states(&self, now: Time) -> Vec<ClassState> {
        self.scheduler.states(now, &self.flows)
    }

    /// Appends a packet of `length` bytes to a flow.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Time, flow: FlowId, packet: PacketRef, length: u32) {
        self.flows.push(flow, Waits { packet, length });
        self.scheduler.enqueue(now, flow, &mut self.flows);
    }

    /// Appends a packet taken over from a queue that this one replaces. It has waited since `since`.
    pub fn take_over(&mut self, now: Time, flow: FlowId, waits: Waits, since: Time) {
        self.flows.push(flow, waits);
        self.scheduler.take_over(now, flow, since, &mut self.flows);
    }

    /// Dequeues what goes next. The transmitter is free.
    #[inline(always)]
    pub fn dequeue(&mut self, now: Time) -> Served {
        match self.scheduler.select(now, &mut self.flows) {
            Selection::Flow(flow) | Selection::Ended(flow, _) => {
                let waits = self.flows.pop(flow).expect("a flow that is chosen has a packet");
                self.scheduler.sent(now, flow, waits.length, &mut self.flows);
                Served::Packet(flow, waits)
            }
            Selection::GiveUp(flow, reason) => {
                let waits = self.drop_first(now, flow).expect("a flow that gives up has a packet");
                Served::GivenUp(flow, waits, reason)
            }
            Selection::NotBefore(at) => Served::NotBefore(at),
            Selection::Empty => Served::Empty,
        }
    }

    /// Drops the first packet of a flow, as queue management does.
    pub fn drop_first(&mut self, now: Time, flow: FlowId) -> Option<Waits> {
        let waits = self.flows.pop(flow)?;
        self.scheduler.head_dropped(now, flow, &mut self.flows);
        Some(waits)
    }

    /// Drops the last packet of a flow, as a full queue does.
    pub fn drop_last(&mut self, now: Time, flow: FlowId) -> Option<Waits> {
        let waits = self.flows.pop_last(flow)?;
        if self.flows.packets(flow) == 0 {
            self.scheduler.head_dropped(now, flow, &mut self.flows);
        }
        Some(waits)
    }

    /// Read access to the flows.
    pub const fn flows(&self) -> &Flows<S::Flow> {
        &self.flows
    }

    /// Read access to the scheduler.
    pub const fn scheduler(&self) -> &S {
        &self.scheduler
    }

    pub(crate) const fn parts(&mut self) -> (&mut S, &mut Flows<S::Flow>) {
        (&mut self.scheduler, &mut self.flows)
    }
}
