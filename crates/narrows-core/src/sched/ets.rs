//! ETS, enhanced transmission selection: strict priorities first, and deficit round robin among the other flows.
//!
//! Source: IEEE Std 802.1Q-2018, clause 37 (first IEEE 802.1Qaz), as Linux's sch_ets (6.12) has it. The standard asks
//! for shares of the bandwidth that strict bands leave, and names no algorithm; Linux uses deficit round robin.
//!
//! ```text
//! a flow of band b < strict: served before all flows of higher bands, as in Priority
//! all other flows:           served as in Drr, by their quanta, when no strict band has a packet
//! ```
//!
//! Strict bands have no bound on what they send, so the others may wait without end. Among themselves these keep the
//! bounds of [`Drr`](crate::sched::Drr) in bytes: strict packets take time but no turns. A turn that strict packets
//! interrupt continues with the deficit that is left. As in Linux, a band that becomes idle loses its deficit, and
//! a packet that arrives at an idle band gives it a turn after all others.
//!
//! A packet costs what it does with [`Priority`](crate::sched::Priority) or [`Drr`](crate::sched::Drr).
//!
//! ```
//! # use narrows_core::{Bytes, PacketRef, Time};
//! # use narrows_core::sched::{Ets, FlowConfig, Served, Server};
//! let mut server = Server::new(Ets::new(Bytes::new(1000), 1));
//! for band in 0..3 {
//!     let quantum = (band == 2).then_some(Bytes::new(2000));
//!     let flow = server.join(FlowConfig { band, quantum, ..FlowConfig::default() }).expect("any band");
//!     (0..3).for_each(|number| server.enqueue(Time::ZERO, flow, PacketRef::from_number(number), 1000));
//! }
//! let order: Vec<u32> = std::iter::from_fn(|| match server.dequeue(Time::ZERO) {
//!     Served::Packet(flow, _) => Some(flow.number()),
//!     _ => None,
//! })
//! .collect();
//! assert_eq!(order, [0, 0, 0, 1, 2, 2, 1, 2, 1]);
//! ```

use crate::sched::drr::{DrrFlow, TakesTurns, Turns, clamped};
use crate::sched::list::{Linked, Links};
use crate::sched::prio::Bands;
use crate::sched::{ClassSettings, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use crate::time::Time;
use crate::units::Bytes;

/// Strict bands, then deficit round robin. Ignores weights.
#[derive(Debug)]
pub struct Ets {
    /// The quantum of a flow that has none of its own.
    quantum: i64,
    /// Bands below this are strict.
    strict: u32,
    bands: Bands,
    turns: Turns,
}

/// Per-flow state of [`Ets`].
#[derive(Debug)]
pub struct EtsFlow {
    turn: DrrFlow,
    band: u32,
}

impl Linked for EtsFlow {
    fn links(&mut self) -> &mut Links {
        self.turn.links()
    }
}

impl TakesTurns for EtsFlow {
    fn turn(&mut self) -> &mut DrrFlow {
        &mut self.turn
    }
}

impl Ets {
    /// Flows of the first `strict` bands are served in strict priority. The others take turns of `quantum` bytes, from
    /// the network header on, unless they have quanta of their own. Quanta outside 1 to
    /// [`Drr::MOST`](crate::sched::Drr::MOST) are clamped.
    pub fn new(quantum: Bytes, strict: u32) -> Self {
        Self { quantum: clamped(quantum), strict, bands: Bands::default(), turns: Turns::default() }
    }

    fn is_strict(&self, flow: FlowId, flows: &Flows<EtsFlow>) -> bool {
        flows[flow].band < self.strict
    }

    fn deactivate(&mut self, flow: FlowId, flows: &mut Flows<EtsFlow>) {
        let state = &mut flows[flow];
        state.turn.active = false;
        let band = state.band;
        self.bands.remove(band, flow, flows);
    }
}

impl Scheduler for Ets {
    type Flow = EtsFlow;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, flow: FlowConfig) -> Result<EtsFlow, Refused> {
        if flow.band < self.strict {
            self.bands.grow(flow.band)?;
        }
        let quantum = flow.quantum.map_or(self.quantum, clamped);
        Ok(EtsFlow { turn: DrrFlow::new(quantum), band: flow.band })
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<EtsFlow>) {}

    /// Takes effect at the flow's next turn. A strict flow has no quantum.
    fn set_class(
        &mut self,
        _now: Time,
        flow: FlowId,
        settings: ClassSettings,
        flows: &mut Flows<EtsFlow>,
    ) -> Result<(), Refused> {
        match settings {
            ClassSettings::Quantum(quantum) if !self.is_strict(flow, flows) => {
                flows[flow].turn.set_quantum(quantum);
                Ok(())
            }
            _ => Err(Refused::NoSettings),
        }
    }

    #[inline]
    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<EtsFlow>) {
        if !self.is_strict(flow, flows) {
            return self.turns.enqueue(flow, flows);
        }
        let state = &mut flows[flow];
        if !state.turn.active {
            state.turn.active = true;
            let band = state.band;
            self.bands.insert(band, flow, flows);
        }
    }

    #[inline]
    fn select(&mut self, _now: Time, flows: &mut Flows<EtsFlow>) -> Selection {
        let flow = self.bands.first().or_else(|| self.turns.select(flows));
        flow.map_or(Selection::Empty, Selection::Flow)
    }

    #[inline]
    fn sent(&mut self, _now: Time, flow: FlowId, length: u32, flows: &mut Flows<EtsFlow>) {
        if !self.is_strict(flow, flows) {
            return self.turns.sent(flow, length, flows);
        }
        if flows.packets(flow) == 0 {
            self.deactivate(flow, flows);
        } else {
            let band = flows[flow].band;
            self.bands.rotate(band, flows);
        }
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<EtsFlow>) {
        if !self.is_strict(flow, flows) {
            self.turns.head_dropped(flow, flows);
        } else if flows.packets(flow) == 0 && flows[flow].turn.active {
            self.deactivate(flow, flows);
        }
    }
}

#[cfg(test)]
mod tests;
