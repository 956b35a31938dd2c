//! Fair queueing: deficit round robin that serves flows which have just become backlogged before the others.
//!
//! This is the scheduler of FQ-CoDel (Høiland-Jørgensen, McKenney, Täht, Gettys, Dumazet: RFC 8290, section 4).
//! [`fq`](crate::sched::fq_codel) builds SFQ, FQ-CoDel and FQ-PIE from it. A flow is on one of two lists, new and
//! old, or on none:
//!
//! - A packet for a flow on no list appends the flow to the new list, with one quantum of credits.
//! - The next flow to send is the first new flow, or the first old flow if there is no new one. If its credits are
//!   used up, it gets a quantum and moves to the end of the old list. If it has no packets, it also moves there if it
//!   was new, and leaves the list if it was old. Then the next flow is considered.
//! - A packet of L bytes costs L credits.
//!
//! So a flow that sends less than a quantum in each round is always new, and waits only for other such flows.
//! Backlogged flows get one turn per round, Q = quantum · weight bytes. Over any time in which two flows are
//! backlogged, the bytes that they send differ, as in DRR (Shreedhar and Varghese 1995), by
//!
//! ```text
//! |S₁/Q₁ − S₂/Q₂| < 1 + L₁/Q₁ + L₂/Q₂        L the longest packet of each
//! ```
//!
//! because either flow has at most one more turn than the other, and a turn ends overdrawn by less than a packet. A
//! packet costs constant time if the quantum is at least its length.
//!
//! Choices and differences: The RFC says "negative credits (that is, a quantum or more has been sent)", which is
//! contradictory at exactly zero. Here credits are used up at zero or less, as in Linux. The RFC has no weights; here
//! the quantum is multiplied by the flow's weight. [`Fair::round_robin`] omits the advantage of new flows, as SFQ
//! (McKenney 1990) does: a flow that becomes backlogged is appended to the only list, and an emptied flow leaves the
//! list immediately, whatever its remaining credits, as in Linux's SFQ.
//!
//! ```
//! use narrows_core::sched::{Fair, FlowConfig, Served, Server};
//! use narrows_core::{Bytes, PacketRef, Time};
//!
//! let mut server = Server::new(Fair::new(Bytes::new(1514)));
//! let (bulk, sparse) = (server.join(FlowConfig::default())?, server.join(FlowConfig::default())?);
//! (0..10).for_each(|number| server.enqueue(Time::ZERO, bulk, PacketRef::from_number(number), 1500));
//! for _ in 0..2 {
//!     server.dequeue(Time::ZERO); // the quantum of the bulk flow is spent with the second
//! }
//! server.enqueue(Time::ZERO, sparse, PacketRef::from_number(10), 100);
//! assert!(matches!(server.dequeue(Time::ZERO), Served::Packet(flow, _) if flow == sparse));
//! # Ok::<(), narrows_core::sched::Refused>(())
//! ```

use crate::sched::list::{Linked, Links, List};
use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection, Weight};
use crate::time::Time;
use crate::units::Bytes;

/// Fair queueing by deficit round robin with new and old flows.
#[derive(Debug)]
pub struct Fair {
    quantum: u32,
    /// The list for a flow that becomes backlogged.
    first: Place,
    new: List,
    old: List,
}

/// Per-flow state of [`Fair`].
#[derive(Debug)]
pub struct FairFlow {
    /// Bytes that it may still send in this turn. It may overdraw by less than one packet.
    credits: i64,
    weight: Weight,
    place: Place,
    links: Links,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    New,
    Old,
}

impl Linked for FairFlow {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Fair {
    /// `quantum` is the bytes that a backlogged flow sends per turn. Clamped to 1 … 2³¹ − 1 bytes. Use at least the
    /// longest packet; otherwise turns pass without a packet.
    pub fn new(quantum: Bytes) -> Self {
        let quantum = quantum.get().clamp(1, i32::MAX as u64) as u32;
        Self { quantum, first: Place::New, new: List::default(), old: List::default() }
    }

    /// Like [`Fair::new`], without an advantage for flows that become backlogged.
    pub fn round_robin(quantum: Bytes) -> Self {
        Self { first: Place::Old, ..Self::new(quantum) }
    }

    /// Bytes per turn. Below 2⁶³, because the quantum is below 2³¹.
    fn turn(&self, flow: &FairFlow) -> i64 {
        i64::from(self.quantum) * i64::from(flow.weight.get())
    }

    fn list(&mut self, place: Place) -> Option<&mut List> {
        match place {
            Place::Nowhere => None,
            Place::New => Some(&mut self.new),
            Place::Old => Some(&mut self.old),
        }
    }

    /// Moves a flow from its list to the end of another.
    fn move_to(&mut self, place: Place, flow: FlowId, flows: &mut Flows<FairFlow>) {
        let from = core::mem::replace(&mut flows[flow].place, place);
        if let Some(list) = self.list(from) {
            list.remove(flow, flows);
        }
        if let Some(list) = self.list(place) {
            list.push_back(flow, flows);
        }
    }
}

impl Scheduler for Fair {
    type Flow = FairFlow;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, flow: FlowConfig) -> Result<FairFlow, Refused> {
        let (weight, place) = (flow.weight, Place::Nowhere);
        Ok(FairFlow { credits: 0, weight, place, links: Links::default() })
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<FairFlow>) {
        self.move_to(Place::Nowhere, flow, flows);
    }

    fn set_weight(
        &mut self,
        _now: Time,
        flow: FlowId,
        weight: Weight,
        flows: &mut Flows<FairFlow>,
    ) -> Result<(), Refused> {
        flows[flow].weight = weight;
        Ok(())
    }

    #[inline]
    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<FairFlow>) {
        if flows[flow].place == Place::Nowhere {
            flows[flow].credits = self.turn(&flows[flow]);
            self.move_to(self.first, flow, flows);
        }
    }

    fn select(&mut self, _now: Time, flows: &mut Flows<FairFlow>) -> Selection {
        loop {
            let Some(flow) = self.new.front().or(self.old.front()) else { return Selection::Empty };
            if flows[flow].credits <= 0 {
                flows[flow].credits += self.turn(&flows[flow]);
                self.move_to(Place::Old, flow, flows);
            } else if flows.packets(flow) > 0 {
                return Selection::Flow(flow);
            } else {
                // An emptied new flow does not become new again before the old flows have had their turn.
                let place = if flows[flow].place == Place::New { Place::Old } else { Place::Nowhere };
                self.move_to(place, flow, flows);
            }
        }
    }

    #[inline]
    fn sent(&mut self, _now: Time, flow: FlowId, length: u32, flows: &mut Flows<FairFlow>) {
        let (state, packets) = flows.state_and_packets(flow);
        state.credits -= i64::from(length);
        if packets == 0 && self.first == Place::Old {
            self.move_to(Place::Nowhere, flow, flows);
        }
    }

    fn owes(&self, flow: FlowId, flows: &Flows<Self::Flow>) -> bool {
        flows[flow].place != Place::Nowhere
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<FairFlow>) {
        // If new flows are served first, an empty flow stays on its list until its turn comes.
        if self.first == Place::Old && flows.packets(flow) == 0 {
            self.move_to(Place::Nowhere, flow, flows);
        }
    }
}

#[cfg(test)]
mod tests;
