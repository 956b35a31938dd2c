//! Deficit round robin: M. Shreedhar and G. Varghese, "Efficient fair queueing using deficit round robin", SIGCOMM
//! 1995.
//!
//! Backlogged flows take turns. At its turn, a flow's deficit grows by its quantum. The flow sends as long as its
//! first packet is no longer than its deficit, which shrinks by what is sent. The rest of the deficit is kept for the
//! next turn. A flow that becomes idle loses it.
//!
//! ```text
//! quantum_i = weight_i · base
//! ```
//!
//! A flow may instead have a quantum of its own, in bytes, as in Linux's sch_drr.
//!
//! Between turns a backlogged flow's deficit is below its longest packet. So in any m turns it sends m·quantum_i
//! bytes, give or take its longest packet (Lemma 2 there). The numbers of turns of two flows that are backlogged all
//! the time differ by less than two, and
//!
//! ```text
//! | sent_i / weight_i − sent_j / weight_j |  ≤  base + longest_i / weight_i + longest_j / weight_j
//! ```
//!
//! A packet costs constant time if each quantum is at least the longest packet (Theorem 4 there). A base equal to the
//! MTU ensures that. With a smaller base, several turns may pass without a packet. Rounds in which no flow can send
//! are then counted in one step, so that a packet never costs more than two rounds, however small the quantum. The
//! order is that of the paper. As in the paper, an idle flow keeps no credit, and a flow may wait for a whole round
//! of all others: the sum of their quanta and their longest packets, at the rate of the transmitter.
//!
//! If queue management or a nested queue sends another packet than the one that was first, the deficit is charged for
//! the packet sent. It may then become negative by the difference in length.
//!
//! ```
//! # use narrows_core::{Bytes, PacketRef, Time};
//! # use narrows_core::sched::{Drr, FlowConfig, Served, Server, Weight};
//! let mut server = Server::new(Drr::new(Bytes::new(500)));
//! let [a, b] = [1, 2].map(|weight| {
//!     let weight = Weight::new(weight).expect("not 0");
//!     server.join(FlowConfig { weight, ..FlowConfig::default() }).expect("any weight will do")
//! });
//! for number in 0..9 {
//!     let flow = if number < 3 { a } else { b };
//!     server.enqueue(Time::ZERO, flow, PacketRef::from_number(number), 500);
//! }
//! let order: Vec<u32> = std::iter::from_fn(|| match server.dequeue(Time::ZERO) {
//!     Served::Packet(_, waits) => Some(waits.packet.number()),
//!     _ => None,
//! })
//! .collect();
//! assert_eq!(order, [0, 3, 4, 1, 5, 6, 2, 7, 8]);
//! ```

use crate::sched::list::{Linked, Links, List};
use crate::sched::{
    ClassSettings, FlowConfig, FlowId, Flows, Refused, Scheduler, SchedulerPlan, Selection, Weight,
};
use crate::time::Time;
use crate::units::Bytes;

/// Deficit round robin.
#[derive(Debug)]
pub struct Drr {
    /// The quantum of weight 1.
    base: i64,
    turns: Turns,
}

/// The backlogged flows, and whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The backlogged flows. The first has its turn, or is about to.
    active: List,
    /// The number of backlogged flows.
    count: u32,
    /// Whether the first flow's deficit has grown for this turn.
    granted: bool,
}

/// Per-flow state of [`Drr`].
#[derive(Debug)]
pub struct DrrFlow {
    links: Links,
    /// Bytes that it may send. Below 2³² plus the quantum, and above −2³².
    deficit: i64,
    /// Below 2⁶², so that sums with a deficit fit.
    quantum: i64,
    /// Whether it is in a list.
    pub(super) active: bool,
}

/// Per-flow state of a scheduler whose flows, or some of them, take turns.
pub(super) trait TakesTurns: Linked {
    /// The state for turns.
    fn turn(&mut self) -> &mut DrrFlow;
}

impl Linked for DrrFlow {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl TakesTurns for DrrFlow {
    fn turn(&mut self) -> &mut DrrFlow {
        self
    }
}

impl DrrFlow {
    /// A flow without packets.
    pub(super) fn new(quantum: i64) -> Self {
        Self { links: Links::default(), deficit: 0, quantum, active: false }
    }

    /// Takes effect at the flow's next turn.
    pub(super) fn set_quantum(&mut self, quantum: Bytes) {
        self.quantum = clamped(quantum);
    }
}

/// A quantum within its limits.
pub(super) fn clamped(quantum: Bytes) -> i64 {
    quantum.get().clamp(1, Drr::MOST.get()) as i64
}

impl Turns {
    /// A flow has got a packet.
    #[inline]
    pub(super) fn enqueue<F: TakesTurns>(&mut self, flow: FlowId, flows: &mut Flows<F>) {
        let state = flows[flow].turn();
        if !state.active {
            state.active = true;
            self.active.push_back(flow, flows);
            self.count += 1;
        }
    }

    /// The flow that sends next.
    #[inline]
    pub(super) fn select<F: TakesTurns>(&mut self, flows: &mut Flows<F>) -> Option<FlowId> {
        let mut passed = 0;
        loop {
            let flow = self.active.front()?;
            let (state, first) = flows.state_and_first(flow);
            let state = state.turn();
            let first = first.map_or(0, |waits| i64::from(waits.length));
            if !self.granted {
                state.deficit += state.quantum;
                self.granted = true;
            }
            if first <= state.deficit {
                return Some(flow);
            }
            self.active.turn_to(state.links.next());
            self.granted = false;
            passed += 1;
            if passed == self.count {
                self.skip_rounds(flows);
            }
        }
    }

    /// The selected flow has sent a packet.
    #[inline]
    pub(super) fn sent<F: TakesTurns>(&mut self, flow: FlowId, length: u32, flows: &mut Flows<F>) {
        let (state, packets) = flows.state_and_packets(flow);
        state.turn().deficit -= i64::from(length);
        if packets == 0 {
            self.deactivate(flow, flows);
        }
    }

    /// A flow has lost packets.
    pub(super) fn head_dropped<F: TakesTurns>(&mut self, flow: FlowId, flows: &mut Flows<F>) {
        if flows.packets(flow) == 0 && flows[flow].turn().active {
            self.deactivate(flow, flows);
        }
    }

    fn deactivate<F: TakesTurns>(&mut self, flow: FlowId, flows: &mut Flows<F>) {
        if self.active.front() == Some(flow) {
            self.granted = false;
        }
        self.active.remove(flow, flows);
        self.count -= 1;
        let state = flows[flow].turn();
        (state.active, state.deficit) = (false, 0);
    }

    /// No flow could send in a whole round. Grants in one step what all rounds without a packet would grant, except
    /// the last one before some flow can send.
    #[cold]
    fn skip_rounds<F: TakesTurns>(&mut self, flows: &mut Flows<F>) {
        let Some(front) = self.active.front() else { return };
        let mut rounds = i64::MAX;
        for pass in 0..2 {
            let mut flow = front;
            loop {
                let first = flows.first(flow).map_or(0, |waits| i64::from(waits.length));
                let state = flows[flow].turn();
                if pass == 0 {
                    let missing = first - state.deficit; // above 0 and below 2³³
                    rounds = rounds.min((missing + state.quantum - 1) / state.quantum);
                } else {
                    // At most what this flow itself lacks.
                    state.deficit += (rounds - 1) * state.quantum;
                }
                flow = state.links.next();
                if flow == front {
                    break;
                }
            }
        }
    }
}

impl Drr {
    /// The maximum base, and the maximum quantum of a flow's own. The minimum is one byte.
    pub const MOST: Bytes = Bytes::new(1 << 30);

    /// `quantum` is the base: the bytes, from the network header on, that a flow of weight 1 may send per turn.
    /// Values outside 1 to [`Drr::MOST`] are clamped. Any weight is accepted.
    pub fn new(quantum: Bytes) -> Self {
        Self { base: clamped(quantum), turns: Turns::default() }
    }

    fn quantum(&self, weight: Weight) -> i64 {
        self.base * i64::from(weight.get()) // below 2³⁰ · 2³²
    }
}

impl Scheduler for Drr {
    type Flow = DrrFlow;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, flow: FlowConfig) -> Result<DrrFlow, Refused> {
        Ok(DrrFlow::new(flow.quantum.map_or_else(|| self.quantum(flow.weight), clamped)))
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<DrrFlow>) {}

    /// Takes effect at the flow's next turn.
    fn set_weight(
        &mut self,
        _now: Time,
        flow: FlowId,
        weight: Weight,
        flows: &mut Flows<DrrFlow>,
    ) -> Result<(), Refused> {
        flows[flow].quantum = self.quantum(weight);
        Ok(())
    }

    /// Takes effect at the flow's next turn.
    fn set_class(
        &mut self,
        _now: Time,
        flow: FlowId,
        settings: ClassSettings,
        flows: &mut Flows<DrrFlow>,
    ) -> Result<(), Refused> {
        let ClassSettings::Quantum(quantum) = settings else { return Err(Refused::NoSettings) };
        flows[flow].set_quantum(quantum);
        Ok(())
    }

    #[inline]
    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<DrrFlow>) {
        self.turns.enqueue(flow, flows);
    }

    #[inline]
    fn select(&mut self, _now: Time, flows: &mut Flows<DrrFlow>) -> Selection {
        self.turns.select(flows).map_or(Selection::Empty, Selection::Flow)
    }

    #[inline]
    fn sent(&mut self, _now: Time, flow: FlowId, length: u32, flows: &mut Flows<DrrFlow>) {
        self.turns.sent(flow, length, flows);
    }

    fn plan(&self, flows: &Flows<DrrFlow>) -> Option<SchedulerPlan> {
        let quantum = |flow| Bytes::new(flows[flow].quantum as u64); // at least 1
        Some(SchedulerPlan::Drr(flows.ids().map(quantum).collect()))
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<DrrFlow>) {
        self.turns.head_dropped(flow, flows);
    }
}
