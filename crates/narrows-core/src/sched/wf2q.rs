//! WF2Q+: J. C. R. Bennett and H. Zhang, "Hierarchical packet fair queueing algorithms", IEEE/ACM Transactions on
//! Networking 5(5), 1997.
//!
//! Each packet has a start tag S and a finish tag F in the virtual time V of a fluid system. For a packet of length L
//! of flow i with weight φ_i (eq. 28 and 29 there)
//!
//! ```text
//! S = max(V, F of the flow's last packet)   when the flow becomes backlogged
//! S = F of the flow's last packet           for the next packet of a backlogged flow
//! F = S + L / φ_i
//! ```
//!
//! A flow is eligible if its first packet may have started in the fluid system, S ≤ V. The eligible flow with the
//! least F is served; on a tie, the flow with the lowest number. When L bytes have been sent (eq. 27)
//!
//! ```text
//! V = max(V + L / Σφ, min S of the backlogged flows)
//! ```
//!
//! where Σφ is the sum of the weights of all flows, backlogged or not: φ_i / Σφ is the guaranteed share of a flow.
//! Let L_i be its longest packet and L the longest of all. A flow that stays backlogged lags behind its share of the
//! service, from any instant to the end of one of its packets, by at most (Theorem 4, its bit worst-case fair index,
//! B-WFI)
//!
//! ```text
//! L_i + (L − L_i)·φ_i / Σφ  ≤  L
//! ```
//!
//! and up to any other instant by at most L_i·(1 − φ_i / Σφ) more, for the packet that it has not received yet.
//!
//! # Arithmetic
//!
//! Virtual time has units of 2⁻²⁴ bytes per weight. Divisions are exact: the remainder stays with the flow, or with
//! V, and is carried into the next division, so errors do not accumulate. The only rounding occurs when a flow starts
//! at V and when S is compared with V. It is below one unit, which is at most a byte for a flow of maximum weight.
//!
//! A packet is shorter than 2³² bytes, so F − S ≤ 2⁵⁶. A backlogged flow has S ≤ V + 2⁵⁶, because its last packet was
//! eligible when it was served, and F ≥ V − 2⁵⁸, because every flow that starts from V on comes after it. V begins at
//! 2⁶¹. When it reaches 2⁶², all of virtual time moves back by 2⁶¹. A packet advances V by at most 2⁵⁶ / Σφ, and Σφ
//! is at least the number of flows. So with n flows this walk over all flows happens at most once per 32·n packets,
//! and with packets of 1500 bytes once per 2²⁶·n.
//!
//! # Differences from the source
//!
//! - Instead of heaps, the eligible flows are in a tournament tree by F. The others are in a queue if they arrive in
//!   the order of S, as most do, or else in another tree. A packet costs at most four walks up a tree with four-way
//!   branches, nine levels for 100,000 flows.
//! - The paper has fixed rates. Here a flow whose weight changes keeps its lead over or lag behind the fluid system,
//!   in bytes: S' = V + (S − V)·φ/φ'. If a flow leaves, its lead is lost.
//! - V counts a packet when its transmission begins, not during the transmission.
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
use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, SchedulerPlan, Selection, Weight};
use crate::time::Time;
use coming::Coming;
use divisor::Divisor;

/// Worst-case fair weighted fair queueing, as simplified by Bennett and Zhang.
#[derive(Debug)]
pub struct Wf2q {
    /// V: whole units, and the remainder in Σφths of a unit.
    now: u64,
    remainder: u64,
    /// Σφ, and the same as a divisor, or 1 without flows.
    sum: u64,
    by_sum: Divisor,
    /// The backlogged flows whose first packet is eligible, by finish tag. Some flows that became eligible recently
    /// are still in `coming`.
    eligible: Tournament,
    /// The other backlogged flows.
    coming: Coming,
}

/// Per-flow state of [`Wf2q`].
#[derive(Debug)]
pub struct Wf2qFlow {
    /// The start tag of its first packet, or while it is idle the finish tag of its last one: whole units, and the
    /// remainder in φths of a unit.
    start: u64,
    /// The finish tag of its first packet. Meaningless while it is idle.
    finish: u64,
    /// φ and its inverse.
    weight: u32,
    inverse: u64,
    remainder: u32,
    /// The number of its stale entries in the queue of coming flows.
    stale: u32,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Idle,
    Eligible,
    /// Not eligible, in the queue.
    Queued,
    /// Not eligible, not in the queue.
    Coming,
}

/// Fraction bits of a unit of virtual time.
const FRACTION: u32 = 24;
/// How far virtual time moves back, and where it starts, so that no tag is before its beginning.
const BACK: u64 = 1 << 61;
/// When virtual time moves back.
const LATE: u64 = 1 << 62;
/// Maximum lead or lag of a flow whose weight changes.
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
    /// The maximum weight. The sum of weights has no maximum.
    pub const MOST_WEIGHT: u32 = 1 << 24;

    fn check(weight: Weight) -> Result<u32, Refused> {
        match weight.get() {
            found @ ..=Self::MOST_WEIGHT => Ok(found),
            found => Err(Refused::Weight { found: found.into(), most: Self::MOST_WEIGHT.into() }),
        }
    }

    fn set_sum(&mut self, sum: u64) {
        // The remainder keeps its value. It was below the old sum, so it is below the new one.
        let left = u128::from(self.remainder) * u128::from(sum) / u128::from(self.by_sum.get());
        self.remainder = left as u64;
        (self.sum, self.by_sum) = (sum, Divisor::new(sum.max(1)));
    }

    /// Files a backlogged flow by its first packet. Its start tag is set, and it is nowhere yet.
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

    /// Removes a flow from where it is.
    #[inline]
    fn take(&mut self, flow: FlowId, flows: &mut Flows<Wf2qFlow>) {
        match core::mem::replace(&mut flows[flow].place, Place::Idle) {
            Place::Idle => {}
            Place::Eligible => self.eligible.clear(flow),
            Place::Queued => self.coming.take_queued(flow, flows),
            Place::Coming => self.coming.take_other(flow),
        }
    }

    /// Ensures that V is not before the least start tag of the backlogged flows.
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
            // The tag of an idle flow may be anywhere in the past, where its value does not matter.
            state.start = state.start.saturating_sub(BACK);
            state.finish = state.finish.saturating_sub(BACK);
        }
    }
}

/// Sets the finish tag of a flow's first packet from its start tag. Returns both.
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

    /// The virtual time of the flow that a packet of this length takes, and the new remainder.
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
        // Below 2⁵⁶ plus the sum, which is below 2⁵⁶: as many flows as there are numbers, each with the maximum
        // weight.
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

    fn plan(&self, flows: &Flows<Wf2qFlow>) -> Option<SchedulerPlan> {
        Some(SchedulerPlan::Wf2q(flows.ids().map(|flow| flows[flow].weight).collect()))
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
