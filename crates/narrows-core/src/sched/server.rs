//! Flows and a scheduler: the scheduler interface by itself.

use alloc::vec::Vec;

use crate::counters::DropReason;
use crate::pool::PacketRef;
use crate::queue::{Bound, Wire};
use crate::sched::{
    ClassSettings, ClassState, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection, Waits, Weight,
};
use crate::time::Time;

/// Flows that a scheduler serves. It knows packets by number and length only.
#[derive(Debug, Default)]
pub struct Server<S: Scheduler> {
    scheduler: S,
    flows: Flows<S::Flow>,
}

/// The answer to [`Server::dequeue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// This packet goes.
    Packet(FlowId, Waits),
    /// The scheduler gave this packet up.
    GivenUp(FlowId, Waits, DropReason),
    /// Packets wait, but none may go before that instant.
    NotBefore(Time),
    /// Nothing waits.
    Empty,
}

impl<S: Scheduler> Server<S> {
    /// A scheduler without flows.
    pub fn new(scheduler: S) -> Self {
        Self { scheduler, flows: Flows::default() }
    }

    /// A flow joins.
    ///
    /// # Errors
    /// When the scheduler does not take it; then nothing has changed.
    pub fn join(&mut self, flow: FlowConfig) -> Result<FlowId, Refused> {
        let state = self.scheduler.join(flow)?;
        Ok(self.flows.add(state))
    }

    /// A flow leaves, if nothing waits in it; whether it has left.
    pub fn leave(&mut self, flow: FlowId) -> bool {
        let empty = self.flows.contains(flow) && self.flows.packets(flow) == 0;
        if empty {
            self.scheduler.leave(flow, &mut self.flows);
            self.flows.remove(flow);
        }
        empty
    }

    /// Whether a flow in which nothing waits has had more than its share so far: see [`Scheduler::owes`].
    pub fn owes(&self, flow: FlowId) -> bool {
        self.scheduler.owes(flow, &self.flows)
    }

    /// Gives a flow another weight.
    ///
    /// # Errors
    /// When the scheduler does not take it; then nothing has changed.
    pub fn set_weight(&mut self, now: Time, flow: FlowId, weight: Weight) -> Result<(), Refused> {
        self.scheduler.set_weight(now, flow, weight, &mut self.flows)
    }

    /// Gives a flow other parameters of the scheduler's own.
    ///
    /// # Errors
    /// When the scheduler does not take them; then nothing has changed.
    pub fn set_class(&mut self, now: Time, flow: FlowId, settings: ClassSettings) -> Result<(), Refused> {
        self.scheduler.set_class(now, flow, settings, &mut self.flows)
    }

    /// What the transmitter is from now on.
    pub fn set_wire(&mut self, now: Time, wire: Wire) {
        self.scheduler.set_wire(now, wire);
    }

    /// How much may wait, from now on; see [`Scheduler::set_bound`].
    pub fn set_bound(&mut self, bound: Bound) {
        self.scheduler.set_bound(bound);
    }

    /// Why a packet that comes now is not let in: see [`Scheduler::refuses`].
    pub fn refuses(&mut self, now: Time, length: u32) -> Option<DropReason> {
        self.scheduler.refuses(now, length)
    }

    /// Where the classes stand; see [`Scheduler::states`].
    pub fn states(&self, now: Time) -> Vec<ClassState> {
        self.scheduler.states(now, &self.flows)
    }

    /// A packet of `length` bytes joins a flow.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Time, flow: FlowId, packet: PacketRef, length: u32) {
        self.flows.push(flow, Waits { packet, length });
        self.scheduler.enqueue(now, flow, &mut self.flows);
    }

    /// A packet joins a flow that has waited since an earlier instant in a queue that this one replaces.
    pub fn take_over(&mut self, now: Time, flow: FlowId, waits: Waits, since: Time) {
        self.flows.push(flow, waits);
        self.scheduler.take_over(now, flow, since, &mut self.flows);
    }

    /// The transmitter is free: what goes next.
    #[inline(always)]
    pub fn dequeue(&mut self, now: Time) -> Served {
        match self.scheduler.select(now, &mut self.flows) {
            Selection::Flow(flow) => {
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

    /// Drops the last packet of a flow, as a queue does that is full.
    pub fn drop_last(&mut self, now: Time, flow: FlowId) -> Option<Waits> {
        let waits = self.flows.pop_last(flow)?;
        if self.flows.packets(flow) == 0 {
            self.scheduler.head_dropped(now, flow, &mut self.flows);
        }
        Some(waits)
    }

    /// The flows, to look at.
    pub const fn flows(&self) -> &Flows<S::Flow> {
        &self.flows
    }

    /// The scheduler, to look at.
    pub const fn scheduler(&self) -> &S {
        &self.scheduler
    }

    pub(crate) const fn parts(&mut self) -> (&mut S, &mut Flows<S::Flow>) {
        (&mut self.scheduler, &mut self.flows)
    }
}
