//! WF2Q+: J. C. R. Bennett and H. Zhang, "Hierarchical packet fair queueing algorithms", IEEE/ACM Transactions on
//! Networking 5(5), 1997.
//!
//! The packets of a flow have, in the virtual time V of a fluid system, a start and a finish. For a packet of length L of
//! flow i with weight φ_i (eq. 28 and 29 there)
//!
//! ```text
//! S = max(V, F of the flow's last packet)   when the flow becomes backlogged
//! S = F of the flow's last packet           for the next packet of a backlogged flow
//! F = S + L / φ_i
//! ```
//!
//! Of the flows whose first packet may have begun in the fluid system, S ≤ V, the one with the least F is served; of
//! equal F the flow with the lowest number. When L bytes have been sent (eq. 27)
//!
//! ```text
//! V = max(V + L / Σφ, min S of the backlogged flows)
//! ```
//!
//! where Σφ is the sum of the weights of all flows that there are, backlogged or not: φ_i / Σφ is the share that a flow
//! is promised. Let L_i be its longest packet and L the longest of all. Then a flow that stays backlogged lags behind its
//! share of what is served, from any instant to the end of one of its packets, by at most (Theorem 4, its B-WFI)
//!
//! ```text
//! L_i + (L − L_i)·φ_i / Σφ  ≤  L
//! ```
//!
//! and up to any other instant by at most L_i·(1 − φ_i / Σφ) more, for the packet that it has not got yet.
//!
//! # Arithmetic
//!
//! Virtual time counts in units of 2⁻²⁴ bytes over weight. Divisions are exact: what is left over stays with the flow, or
//! with V, and goes into the next one, so that nothing adds up. What rounding is left, when a flow starts at V and when S
//! is compared with V, is below one unit, which is worth at most a byte to a flow of the greatest weight.
//!
//! A packet is shorter than 2³² bytes, so F − S ≤ 2⁵⁶. A backlogged flow has S ≤ V + 2⁵⁶, because its last packet was
//! eligible when it was served, and F ≥ V − 2⁵⁸, because whatever starts from V on comes after it. V begins at 2⁶¹; when
//! it reaches 2⁶², all of virtual time moves back by 2⁶¹. V grows by at most 2⁵⁶ / Σφ with a packet, and Σφ is at least
//! the number of flows, so that this walk over all flows comes at most once in 32 packets for each of them, with packets
//! of 1500 bytes once in 2²⁶.
//!
//! # Where this departs
//!
//! - Instead of heaps the eligible flows are in a tournament tree by F, and those to come in a queue as far as they come
//!   in the order of S, which most do, or else in another tree. A packet costs four walks up a tree of four-way branches at
//!   most, nine levels for 100,000 flows.
//! - The paper has fixed rates. Here a flow that gets another weight keeps, in bytes, what it is ahead of the fluid
//!   system or behind: S' = V + (S − V)·φ/φ'. A flow that leaves takes what it is ahead with it.
//! - V counts a packet when its transmission begins, not while it goes on.
//!
//! ```
//! # use narrows_core::{PacketRef, Time};
//! # use narrows_core::sched::{FlowConfig, Served, Server, Weight, Wf2q};
//! // The example of the paper: one flow has half of the link, ten have a twentieth each.
//! let mut server = Server::new(Wf2q::default());
//! let flows: Vec<_> = [10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
//!     .map(|weight| {
//!         let weight = Weight::new(weight).expect("not 0");
//!         server.join(FlowConfig { weight, ..FlowConfig::default() }).expect("the weight is in range")
//!     })
//!     .into();
//! for (number, &flow) in [&[flows[0]; 11], &flows[1..]].concat().iter().enumerate() {
//!     server.enqueue(Time::ZERO, flow, PacketRef::from_number(number as u32), 1000);
//! }
//! let order: Vec<u32> = std::iter::from_fn(|| match server.dequeue(Time::ZERO) {
//!     Served::Packet(flow, _) => Some(flow.number()),
//!     _ => None,
//! })
//! .collect();
//! // By turns, where WFQ would send ten packets of the first flow in a row.
//! assert_eq!(order, [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0]);
//! ```

mod coming;
mod divisor;
#[cfg(test)]
mod tests;

use crate::sched::tournament::Tournament;
use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection, Weight};
use crate::time::Time;
use coming::Coming;
use divisor::Divisor;

/// Worst-case fair weighted fair queueing, as Bennett and Zhang simplified it.
#[derive(Debug)]
pub struct Wf2q {
    /// V: whole units, and what is left over in Σφths of a unit.
    now: u64,
    remainder: u64,
    /// Σφ, and the same to divide by, or 1 without flows.
    sum: u64,
    by_sum: Divisor,
    /// The backlogged flows whose first packet is eligible, by its finish. Some that have become so of late are still
    /// among those to come.
    eligible: Tournament,
    /// The other backlogged flows.
    coming: Coming,
}

/// What [`Wf2q`] keeps of a flow.
#[derive(Debug)]
pub struct Wf2qFlow {
    /// The start of its first packet, or while it is idle the finish of its last one: whole units, and what is left over
    /// in φths of a unit.
    start: u64,
    /// The finish of its first packet. Means nothing while it is idle.
    finish: u64,
    /// φ, and its inverse.
    weight: u32,
    inverse: u64,
    remainder: u32,
    /// How many entries in the queue of flows to come stand for it no more.
    stale: u32,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Idle,
    Eligible,
    /// To come, in the queue.
    Queued,
    /// To come, not in the queue.
    Coming,
}

/// Bits of a unit of virtual time.
const FRACTION: u32 = 24;
/// How far virtual time moves back, and where it starts, so that nothing is before its beginning.
const BACK: u64 = 1 << 61;
/// When.
const LATE: u64 = 1 << 62;
/// What a flow that gets another weight is ahead or behind at most.
const FAR: u64 = 1 << 58;

impl Default for Wf2q {
    fn default() -> Self {
        Self {
            now: BACK,
            remainder: 0,
            sum: 0,
            by_sum: Divisor::new(1),
            eligible: Tournament::default(),
            coming: Coming::default(),
        }
    }
}

impl Wf2q {
    /// The greatest weight. There is no greatest sum.
    pub const MOST_WEIGHT: u32 = 1 << 24;

    fn check(weight: Weight) -> Result<u32, Refused> {
        match weight.get() {
            found @ ..=Self::MOST_WEIGHT => Ok(found),
            found => Err(Refused::Weight { found: found.into(), most: Self::MOST_WEIGHT.into() }),
        }
    }

    fn set_sum(&mut self, sum: u64) {
        // What is left over keeps its worth. It was below the old sum, so it is below the new one.
        let left = u128::from(self.remainder) * u128::from(sum) / u128::from(self.by_sum.get());
        self.remainder = left as u64;
        (self.sum, self.by_sum) = (sum, Divisor::new(sum.max(1)));
    }

    /// Files a backlogged flow, whose start is set and which is nowhere yet, under its first packet.
    #[inline]
    fn file(&mut self, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        let (start, finish) = set_finish(flow, flows);
        if start <= self.now {
            flows[flow].place = Place::Eligible;
            self.eligible.set(flow, finish);
        } else {
            self.coming.add(flow, flows);
        }
    }

    /// Takes a flow out of where it is.
    #[inline]
    fn take(&mut self, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        match core::mem::replace(&mut flows[flow].place, Place::Idle) {
            Place::Idle => {}
            Place::Eligible => self.eligible.clear(flow),
            Place::Queued => self.coming.take_queued(flow, flows),
            Place::Coming => self.coming.take_other(flow),
        }
    }

    /// V is not before the least start of the backlogged flows.
    #[inline]
    fn catch_up(&mut self, flows: &mut Flows<Wf2qFlow>) {
        if self.eligible.least().is_none()
            && let Some(start) = self.coming.least(flows)
            && start > self.now
        {
            (self.now, self.remainder) = (start, 0);
        }
    }

    #[cold]
    fn move_back(&mut self, flows: &mut Flows<Wf2qFlow>) {
        self.now -= BACK;
        self.eligible.shift(BACK);
        self.coming.shift(BACK);
        for (_, state) in flows.states_mut() {
            // An idle flow's may lie anywhere in the past; there it means nothing.
            state.start = state.start.saturating_sub(BACK);
            state.finish = state.finish.saturating_sub(BACK);
        }
    }
}

/// Sets the finish of a flow's first packet from its start, which comes back with it.
#[inline]
fn set_finish(flow: FlowId, flows: &mut Flows<Wf2qFlow>) -> (u64, u64) {
    let first = flows.first(flow).map_or(0, |waits| waits.length);
    let state = &mut flows[flow];
    state.finish = state.start + state.span(first).0;
    (state.start, state.finish)
}

impl Wf2qFlow {
    fn new(weight: u32) -> Self {
        let inverse = Divisor::new(weight.into()).inverse();
        Self { start: 0, finish: 0, inverse, weight, remainder: 0, stale: 0, place: Place::Idle }
    }

    /// What a packet of that length takes of the flow's virtual time, with what is left over then.
    #[inline]
    const fn span(&self, length: u32) -> (u64, u32) {
        // Below 2⁵⁶ + 2²⁴.
        let by = Divisor::with_inverse(self.weight as u64, self.inverse);
        let (units, left) = by.divide(((length as u64) << FRACTION) + self.remainder as u64);
        (units, left as u32)
    }
}

impl Scheduler for Wf2q {
    type Flow = Wf2qFlow;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, flow: FlowConfig) -> Result<Wf2qFlow, Refused> {
        let weight = Self::check(flow.weight)?;
        self.set_sum(self.sum + u64::from(weight));
        Ok(Wf2qFlow::new(weight))
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        self.coming.forget(flow, flows);
        self.set_sum(self.sum - u64::from(flows[flow].weight));
    }

    fn set_weight(
        &mut self,
        _now: Time,
        flow: FlowId,
        weight: Weight,
        flows: &mut Flows<Wf2qFlow>,
    ) -> Result<(), Refused> {
        let weight = Self::check(weight)?;
        let backlogged = flows[flow].place != Place::Idle;
        self.take(flow, flows);
        let state = &mut flows[flow];
        let before = state.weight;
        self.set_sum(self.sum - u64::from(before) + u64::from(weight));
        let scaled = |span: u64| {
            let span = u128::from(span) * u128::from(before) / u128::from(weight);
            u64::try_from(span).unwrap_or(u64::MAX).min(FAR)
        };
        let start = match state.start.checked_sub(self.now) {
            Some(ahead) => self.now + scaled(ahead),
            None if backlogged => self.now - scaled(self.now - state.start),
            None => state.start,
        };
        *state = Wf2qFlow { start, stale: state.stale, ..Wf2qFlow::new(weight) };
        if backlogged {
            self.file(flow, flows);
            self.catch_up(flows);
        }
        Ok(())
    }

    #[inline]
    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        let state = &mut flows[flow];
        if state.place != Place::Idle {
            return;
        }
        if state.start < self.now {
            (state.start, state.remainder) = (self.now, 0);
        }
        self.eligible.make_room(flow);
        self.file(flow, flows);
        self.catch_up(flows);
    }

    #[inline]
    fn select(&mut self, _now: Time, flows: &mut Flows<Wf2qFlow>) -> Selection {
        while let Some(flow) = self.coming.next_until(self.now, flows) {
            let state = &mut flows[flow];
            state.place = Place::Eligible;
            self.eligible.set(flow, state.finish);
        }
        match self.eligible.least() {
            Some((_, flow)) => Selection::Flow(flow),
            None => Selection::Empty,
        }
    }

    #[inline]
    fn sent(&mut self, _now: Time, flow: FlowId, length: u32, flows: &mut Flows<Wf2qFlow>) {
        // Below 2⁵⁶ + the sum, which is below 2⁵⁶: as many flows as there are numbers, each with the greatest weight.
        let (units, left) = self.by_sum.divide((u64::from(length) << FRACTION) + self.remainder);
        (self.now, self.remainder) = (self.now + units, left);

        let state = &mut flows[flow];
        let (units, left) = state.span(length);
        (state.start, state.remainder) = (state.start + units, left);
        if flows.packets(flow) == 0 {
            self.take(flow, flows);
        } else if flows[flow].start <= self.now {
            let (_, finish) = set_finish(flow, flows);
            self.eligible.set(flow, finish);
        } else {
            self.take(flow, flows);
            self.file(flow, flows);
        }
        self.catch_up(flows);
        if self.now >= LATE {
            self.move_back(flows);
        }
    }

    fn owes(&self, flow: FlowId, flows: &Flows<Self::Flow>) -> bool {
        flows[flow].start > self.now
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        if flows.packets(flow) == 0 {
            self.take(flow, flows);
        } else {
            let (_, finish) = set_finish(flow, flows);
            if flows[flow].place == Place::Eligible {
                self.eligible.set(flow, finish);
            }
        }
        self.catch_up(flows);
    }
}
