//! Fair queueing: deficit round robin that gives flows which have just begun to send a turn before the others.
//!
//! This is the scheduler of FQ-CoDel (Høiland-Jørgensen, McKenney, Täht, Gettys, Dumazet: RFC 8290, section 4), out of
//! which SFQ, FQ-CoDel and FQ-PIE are put together in [`fq`](crate::sched::fq_codel). A flow is on one of two lists, new
//! and old, or on none:
//!
//! - A packet for a flow on no list puts it at the end of the new ones, with credits of one quantum.
//! - What sends next is the first of the new flows, or of the old ones if there is no new one. A first flow whose credits
//!   are spent gets a quantum and goes to the end of the old ones; a first flow without packets goes there too if it was
//!   new, and off the list if it was old; and the next one is looked at.
//! - A packet of L bytes costs L credits.
//!
//! So a flow that sends less than a quantum in each round always finds itself new and waits for other such flows only,
//! while backlogged ones get a turn's worth, Q = quantum · weight bytes, a round each. Over any time in which two flows are
//! backlogged, what they sent differs, as in DRR (Shreedhar and Varghese 1995), by
//!
//! ```text
//! |S₁/Q₁ − S₂/Q₂| < 1 + L₁/Q₁ + L₂/Q₂        L the longest packet of each
//! ```
//!
//! since there is at most one turn more of either, and a turn ends overdrawn by less than a packet. Constant time for each
//! packet if the quantum is no shorter than it.
//!
//! Where this differs or has to choose: the RFC says "negative credits (that is, a quantum or more has been sent)", which
//! disagree at exactly zero; spent is zero or less, as in Linux. The RFC knows no weights: here a quantum is multiplied by
//! the flow's. [`Fair::round_robin`] does without the new flows' advantage, as SFQ (McKenney 1990) does: a flow that
//! begins goes to the end of the one list, and one that has sent all it had is off it at once, whatever is left of its
//! credits, as in Linux's SFQ.
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
    /// What becomes of a flow that begins to send.
    first: Place,
    new: List,
    old: List,
}

/// What is kept of a flow.
#[derive(Debug)]
pub struct FairFlow {
    /// Bytes that it may still send before its turn is over; it may overdraw by less than one packet.
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
    /// Backlogged flows send this much in turn. It should be no less than the longest packet, or turns are spent saving
    /// up; at least 1 byte, at most 2³¹ − 1, beyond which it is taken to be that.
    pub fn new(quantum: Bytes) -> Self {
        let quantum = quantum.get().clamp(1, i32::MAX as u64) as u32;
        Self { quantum, first: Place::New, new: List::default(), old: List::default() }
    }

    /// The same without an advantage for flows that begin to send.
    pub fn round_robin(quantum: Bytes) -> Self {
        Self { first: Place::Old, ..Self::new(quantum) }
    }

    /// A turn's worth. Below 2⁶³, as the quantum is below 2³¹.
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

    /// Takes a flow from where it is, and puts it at the end of another list.
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
                // A new flow that has sent all it had does not come back as new before the old ones had their turn.
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
        // Where new flows go first, an empty flow stays on its list until its turn comes.
        if self.first == Place::Old && flows.packets(flow) == 0 {
            self.move_to(Place::Nowhere, flow, flows);
        }
    }
}

#[cfg(test)]
mod tests;
