//! FIFO across all flows.
//!
//! The packets of all flows are sent in order of arrival, as if there were one queue. Flows only separate bounds,
//! queue management and counters. Within a flow the oldest packet is sent first, so a ring of flow numbers in order
//! of arrival is enough. A packet that queue management drops leaves a stale entry in the ring. A flow's stale
//! entries are always its first ones, so it is enough to count them per flow and skip them when their turn comes.
//! When more than half of the ring is stale, the stale entries are removed. So the ring is bounded by the backlog,
//! and a packet costs amortized constant time.
//!
//! ```
//! # use narrows_core::{PacketRef, Time};
//! # use narrows_core::sched::{Fifo, FlowConfig, Served, Server};
//! let mut server = Server::new(Fifo::default());
//! let [a, b] = [(); 2].map(|()| server.join(FlowConfig::default()).expect("it takes any flow"));
//! for (number, flow) in [b, a, a, b].into_iter().enumerate() {
//!     server.enqueue(Time::ZERO, flow, PacketRef::from_number(number as u32), 1000);
//! }
//! server.drop_first(Time::ZERO, b);
//! let order: Vec<u32> = std::iter::from_fn(|| match server.dequeue(Time::ZERO) {
//!     Served::Packet(_, waits) => Some(waits.packet.number()),
//!     _ => None,
//! })
//! .collect();
//! assert_eq!(order, [1, 2, 3]);
//! ```

use alloc::collections::VecDeque;

use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use crate::time::Time;

/// Serves packets in order of arrival. Ignores weights and bands.
#[derive(Debug, Default)]
pub struct Fifo {
    /// The flow of each packet in order of arrival, including packets that were dropped.
    arrivals: VecDeque<FlowId>,
    /// The number of stale entries: those of dropped packets.
    stale: usize,
}

/// Per-flow state of [`Fifo`].
#[derive(Debug)]
pub struct FifoFlow {
    /// Packets waiting, as far as the scheduler has been told.
    known: u32,
    /// How many of the flow's entries in the ring, from its first one on, are stale.
    stale: u32,
}

/// With fewer entries than this, a sweep is not worth it.
const FEW: usize = 64;

impl Fifo {
    /// Handles packets of a flow that were dropped without the scheduler being told.
    fn note_gone(&mut self, flow: FlowId, flows: &mut Flows<FifoFlow>) {
        let waiting = flows.packets(flow);
        let state = &mut flows[flow];
        let gone = state.known - waiting;
        state.known = waiting;
        state.stale += gone;
        self.stale += gone as usize;
        if self.stale > FEW && self.stale > self.arrivals.len() / 2 {
            self.sweep(flows);
        }
    }

    /// Removes the stale entries from the ring.
    #[cold]
    fn sweep(&mut self, flows: &mut Flows<FifoFlow>) {
        self.arrivals.retain(|&flow| {
            let state = &mut flows[flow];
            let stale = state.stale > 0;
            state.stale -= u32::from(stale);
            !stale
        });
        self.stale = 0;
        self.arrivals.shrink_to(2 * self.arrivals.len() + FEW);
    }
}

impl Scheduler for Fifo {
    type Flow = FifoFlow;

    fn join(&mut self, _flow: FlowConfig) -> Result<FifoFlow, Refused> {
        Ok(FifoFlow { known: 0, stale: 0 })
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<FifoFlow>) {
        if flows[flow].stale > 0 {
            // Stale entries must not be taken for entries of the next flow with this number.
            self.sweep(flows);
        }
    }

    #[inline]
    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<FifoFlow>) {
        flows[flow].known += 1;
        self.arrivals.push_back(flow);
    }

    #[inline]
    fn select(&mut self, _now: Time, flows: &mut Flows<FifoFlow>) -> Selection {
        while let Some(&flow) = self.arrivals.front() {
            let state = &mut flows[flow];
            if state.stale == 0 {
                return Selection::Flow(flow);
            }
            state.stale -= 1;
            self.stale -= 1;
            self.arrivals.pop_front();
        }
        Selection::Empty
    }

    #[inline]
    fn sent(&mut self, _now: Time, flow: FlowId, _length: u32, flows: &mut Flows<FifoFlow>) {
        // The flow was selected, so its first entry is the first of the ring and not stale.
        self.arrivals.pop_front();
        let (state, packets) = flows.state_and_packets(flow);
        state.known -= 1;
        if state.known != packets {
            // Queue management dropped packets before this one.
            self.note_gone(flow, flows);
        }
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<FifoFlow>) {
        self.note_gone(flow, flows);
    }
}
