//! GFQ, grouped fair queueing: fair queueing with two calendar queues for each group of flows.
//!
//! Source: D. C. Stephens, J. C. R. Bennett, H. Zhang, "Implementing Scheduling Algorithms in High-Speed Networks",
//! IEEE Journal on Selected Areas in Communications 17(6), 1999. Flows of similar rate are put into groups, within a
//! group they are sorted by a calendar queue, and only the first flows of the groups are compared. The source is
//! mostly for cells of one length. The extension to packets of any length, the width of the slots and the proof of
//! the bound are our own.
//!
//! # Algorithm
//! As in WF2Q+, a packet of length l of a flow of weight w has a start S and a finish `F = S + l/w`. It is eligible
//! when S ≤ V. Of the eligible packets, the one with the least finish is sent. V advances by `length / Σw` with each
//! packet, where Σw is the sum over all flows, and jumps to the least start when no flow is eligible. Starts and
//! finishes are exact; only sorting is rounded. A group holds the flows whose `longest / w` lies within `(σ/2, σ]`, σ
//! a power of two. It has two calendar queues with slots of width `δ = σ/16`: one for flows that are not eligible, by
//! start, and one for eligible flows, by finish. When V passes the beginning of a slot of the first, its flows move
//! to the second. The group whose first slot of finishes ends first is served; on a tie, the one with the lower σ. In
//! the slot, the flow that came last is served.
//!
//! A flow that was idle starts at `max(F, V)`, where F is its last finish; or, if the first finish in its group is
//! before V, at the later of F and that finish. With this rule all flows of a group lie within 64 slots of each
//! other, whatever the lengths: starts are at most σ + δ after the later of V and the group's first finish, finishes
//! 2σ + 3δ.
//!
//! # Cost
//! Each packet costs a look at each group that has flows, up to 42 of them, and at most one move from calendar to
//! calendar, which happens when V passes the slot. For a given number of groups the cost is constant on average, but
//! not for each single packet.
//!
//! # Bound
//! `B-WFI ≤ 2·L_k + 2·w·δ + 2·φ·L`, where L_k is the flow's longest packet and L the longest of any flow. Since δ <
//! L_k/8w, that is below `2.25·L_k + 2·φ·L`. QFQ's bound is `3·L_k … 6·L_k + 2·φ·L`. Proof: let flow k be backlogged
//! at t, its finish rounded up to `F' < S + l/w + δ`. Let t₀ be the last time at which a packet that finishes later
//! was chosen (or V jumped). After t₀, only packets with finishes up to F' are sent. Their flows were not eligible at
//! t₀ or came later, so all of them start after V(t₀). So these packets are at most `Σw·(F' − V(t₀))` bytes, plus the
//! one packet chosen at t₀: `V(t) ≤ F' + L/Σw`. And as a packet is chosen at `S < V + δ`, a start is never beyond `V
//! + δ + L_k/w`. The flow gets at least w times the advance of S; all flows together get Σw times the advance of V.
//! So flow k lacks at most `w·(2·L_k/w + 2δ + L/Σw)`. The other φ·L is for instants at which a packet is on the wire.
//!
//! When flows join, leave or change their weights, add `φ·H`, where H is the number of bytes for which V halts. As
//! with [`Qfq`](super::Qfq), these bytes are the lead of a flow that leaves or takes a lower weight, and `w·(V − S)`
//! of a flow that has joined, or taken a higher weight, at V but starts at S, at most σ + δ after the first finish in
//! its group. That can be many bytes, once: up to `w·L/Σw` with the previous Σw.
//!
//! The bound holds while no flow changes its `longest`, and no first packet is dropped. A shorter packet behind a
//! dropped one finishes earlier, which costs the other flows up to the difference.
//!
//! # Arithmetic
//! Like [`Qfq`](super::Qfq)'s, with the same limits: instants are 64-bit multiples of 2⁻⁴³ bytes per weight and wrap
//! around, and weights are rounded by a relative error below 2⁻¹⁹.
//!
//! # Example
//! ```
//! use narrows_core::sched::{FlowConfig, Gfq, Served, Server, Weight};
//! use narrows_core::{PacketRef, Time};
//!
//! let mut server = Server::new(Gfq::default());
//! let heavy = server.join(FlowConfig { weight: Weight::new(4).unwrap(), ..FlowConfig::default() }).unwrap();
//! let light = server.join(FlowConfig::default()).unwrap();
//! for number in 0..8 {
//!     server.enqueue(Time::ZERO, heavy, PacketRef::from_number(number), 1000);
//!     server.enqueue(Time::ZERO, light, PacketRef::from_number(8 + number), 1000);
//! }
//! let order: String = (0..10)
//!     .map(|_| match server.dequeue(Time::ZERO) {
//!         Served::Packet(flow, _) if flow == heavy => 'h',
//!         _ => 'l',
//!     })
//!     .collect();
//! assert_eq!(order, "hlhhhhlhhh");
//! ```

mod calendar;

use alloc::boxed::Box;
use alloc::vec;

use crate::bits::Bits;
use crate::sched::qfq::clock::{Clock, LEAST_SIGMA, MOST_LENGTH, MOST_SUM, MOST_WEIGHT, UNIT_SHIFT};
use crate::sched::qfq::clock::{is_after, pace, sigma};
use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection, Weight, WorstCase};
use crate::time::Time;
use crate::units::Bytes;

use calendar::{Calendar, NONE};

/// σ from 2^19 to 2^60.
const GROUPS: u32 = UNIT_SHIFT + MOST_LENGTH.ilog2() - LEAST_SIGMA + 1;

/// Slots are σ/16 wide.
const SLOTS_OF_SIGMA: u32 = 4;

/// Grouped fair queueing.
#[derive(Debug)]
pub struct Gfq {
    clock: Clock,
    /// Which groups have eligible flows, and which have others.
    eligible: u64,
    coming: u64,
    groups: Box<[Group]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// By finish.
    eligible: Calendar,
    /// By start.
    coming: Calendar,
}

/// Per-flow state of [`Gfq`].
#[derive(Clone, Copy, Debug)]
pub struct GfqFlow {
    /// The start of its next packet.
    start: u64,
    /// `2⁴³ / weight`, rounded up: how far a byte moves the start.
    pace: u64,
    /// Its neighbours in its slot. The `previous` of the first one is meaningless.
    next: u32,
    previous: u32,
    weight: u32,
    longest: u32,
    /// While it is idle: how often the clock had wrapped at `start`.
    era: u32,
    group: u8,
    slot: u8,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Idle,
    Coming,
    Eligible,
}

impl Default for Gfq {
    fn default() -> Self {
        let groups = vec![Group::default(); GROUPS as usize].into_boxed_slice();
        Self { clock: Clock::default(), eligible: 0, coming: 0, groups }
    }
}

#[inline]
const fn shift(group: u32) -> u32 {
    LEAST_SIGMA - SLOTS_OF_SIGMA + group
}

impl GfqFlow {
    /// `weight` and `longest` must be within their limits.
    fn configure(&mut self, weight: u32, longest: u32) {
        self.weight = weight;
        self.longest = longest.max(1);
        self.pace = pace(weight);
        self.group = (sigma(self.longest, self.pace) - LEAST_SIGMA) as u8;
    }

    const fn whole_start(&self) -> u128 {
        (self.era as u128) << 64 | self.start as u128
    }
}

impl Gfq {
    /// The maximum weight of a flow.
    pub const MOST_WEIGHT: Weight = Weight::new(MOST_WEIGHT).expect("not 0");
    /// The maximum sum of the weights of all flows.
    pub const MOST_SUM: u64 = MOST_SUM;
    /// The maximum of [`FlowConfig::longest`]. Longer packets are served, but count as this length.
    pub const MOST_LENGTH: Bytes = Bytes::new(MOST_LENGTH as u64);

    /// The maximum service that a flow may lack from now on, given its present slots, the present sum of weights, and
    /// the longest packet of any flow so far: `2·L_k + 2·w·δ + 2·φ·L + φ·H`, and this divided by φ. H is the number
    /// of bytes for which virtual time halts at present. H falls as they are sent, and rises as
    /// [`Qfq::worst_case`](super::Qfq::worst_case) says. The result is rounded up to whole bytes.
    pub fn worst_case(&self, flow: &GfqFlow) -> WorstCase {
        let slot = 1_u128 << shift(flow.group.into());
        let (weight, sum, longest) =
            (u128::from(flow.weight), u128::from(self.clock.sum()), u128::from(self.clock.longest()));
        let own = 2 * u128::from(flow.longest);
        // slot ≤ 2^56, sum ≤ 2^40
        let besides = 2 * longest + u128::from(self.clock.held());
        let work = (own * sum).div_ceil(weight) + (2 * slot * sum).div_ceil(1 << UNIT_SHIFT) + besides;
        let bytes = own + (2 * slot * weight).div_ceil(1 << UNIT_SHIFT) + (besides * weight).div_ceil(sum);
        WorstCase { bytes: Bytes::new(bytes as u64), work: Bytes::new(work as u64) }
    }

    /// Puts a flow into the right calendar, by its start and its first packet.
    #[inline]
    fn insert(&mut self, flow: FlowId, flows: &mut Flows<GfqFlow>) {
        let length = flows.first(flow).map_or(0, |waits| waits.length);
        let state = &mut flows[flow];
        let (index, start) = (u32::from(state.group), state.start);
        let shift = shift(index);
        let group = &mut self.groups[index as usize];
        if is_after(start >> shift << shift, self.clock.now()) {
            state.place = Place::Coming;
            self.coming |= 1 << index;
            group.coming.insert(flow, start, shift, flows);
        } else {
            state.place = Place::Eligible;
            let finish = start.wrapping_add(u64::from(length.min(state.longest)) * state.pace);
            self.eligible |= 1 << index;
            // A slot ends at its last instant: a finish on a boundary belongs to the slot before.
            group.eligible.insert(flow, finish.wrapping_sub(1), shift, flows);
        }
    }

    /// Removes a flow from its calendar.
    #[inline]
    fn remove(&mut self, flow: FlowId, flows: &mut Flows<GfqFlow>) {
        let GfqFlow { group: index, place, .. } = flows[flow];
        let group = &mut self.groups[usize::from(index)];
        let (calendar, set) = match place {
            Place::Idle => return,
            Place::Coming => (&mut group.coming, &mut self.coming),
            Place::Eligible => (&mut group.eligible, &mut self.eligible),
        };
        calendar.remove(flow, shift(index.into()), flows);
        *set &= !(u64::from(calendar.is_empty()) << index);
    }

    /// Virtual time has advanced: flows become eligible. If none is, it jumps to the first start.
    #[inline]
    fn advance(&mut self, flows: &mut Flows<GfqFlow>) {
        self.pass(flows);
        if self.eligible == 0 && self.coming != 0 {
            let now = self.clock.now();
            let starts = Bits(self.coming).filter_map(|index| self.groups[index as usize].coming.first());
            let ahead = starts.map(|start| start.wrapping_sub(now)).min();
            self.clock.jump(now.wrapping_add(ahead.unwrap_or(0)));
            self.pass(flows);
        }
    }

    #[inline]
    fn pass(&mut self, flows: &mut Flows<GfqFlow>) {
        let now = self.clock.now();
        for index in Bits(self.coming) {
            let shift = shift(index);
            while let Some(first) = self.groups[index as usize].coming.first()
                && !is_after(first, now)
            {
                let coming = &mut self.groups[index as usize].coming;
                let mut number = coming.take_first(shift);
                if coming.is_empty() {
                    self.coming &= !(1 << index);
                }
                while number != NONE {
                    let flow = FlowId::new(number);
                    number = flows[flow].next;
                    self.insert(flow, flows);
                }
            }
        }
    }

    /// The group with the least first finish.
    #[inline]
    fn first(&self) -> Option<u32> {
        let mut least: Option<(u32, u64)> = None;
        for index in Bits(self.eligible) {
            let Some(first) = self.groups[index as usize].eligible.first() else { continue };
            let end = first.wrapping_add(1 << shift(index));
            if least.is_none_or(|(_, least)| is_after(least, end)) {
                least = Some((index, end));
            }
        }
        least.map(|(index, _)| index)
    }

    /// The rounded-up finish of the first eligible flow of a group.
    #[inline]
    fn limit(&self, index: u8) -> Option<u64> {
        let first = self.groups[usize::from(index)].eligible.first()?;
        Some(first.wrapping_add(1 << shift(index.into())))
    }

    /// An idle flow becomes backlogged.
    fn begin(&mut self, flow: FlowId, flows: &mut Flows<GfqFlow>) {
        if self.eligible == 0 {
            self.clock.release();
        }
        let present = self.clock.present();
        let state = &mut flows[flow];
        let own = state.whole_start();
        if own <= present {
            state.start = present as u64;
            if let Some(limit) = self.limit(state.group)
                && is_after(state.start, limit)
            {
                let first = present - u128::from(state.start.wrapping_sub(limit));
                // Service moves no start further than σ and a slot from the first finish; a flow that has just joined
                // may be farther.
                let start =
                    own.clamp(first, first + ((1 + (1 << SLOTS_OF_SIGMA)) << shift(state.group.into())));
                state.start = start as u64;
                self.clock.hold((u128::from(state.weight) * own.saturating_sub(start)) as i128);
            }
        }
        self.insert(flow, flows);
        self.advance(flows);
    }

    /// Changes a flow's weight or `longest`. Its lead or lag is kept in bytes, as far as the calendars reach.
    #[cold]
    fn resettle(&mut self, flow: FlowId, weight: u32, longest: u32, flows: &mut Flows<GfqFlow>) {
        self.remove(flow, flows);
        let now = self.clock.now();
        let was = flows[flow];
        let state = &mut flows[flow];
        state.configure(weight, longest);
        if was.place == Place::Idle && was.whole_start() < self.clock.present() {
            if weight > was.weight {
                // The new weight has no claim to service from the past.
                (state.start, state.era) = (now, self.clock.era(now));
            }
            return;
        }
        let mut ahead = was.start.wrapping_sub(now) as i64;
        let served = i128::from(was.weight) * i128::from(ahead);
        if weight > was.weight {
            ahead = (served / i128::from(weight)) as i64;
        }
        let sigma = 1 << (shift(state.group.into()) + SLOTS_OF_SIGMA);
        ahead = ahead.clamp(-sigma, sigma);
        if let Some(limit) = self.limit(state.group) {
            ahead = ahead.min(limit.wrapping_sub(now) as i64);
        }
        if self.eligible | self.coming != 0 {
            self.clock.hold(served - i128::from(weight) * i128::from(ahead));
        }
        state.start = now.wrapping_add_signed(ahead);
        state.era = self.clock.era(state.start);
        if was.place != Place::Idle {
            self.insert(flow, flows);
            self.advance(flows);
        }
    }

    /// Handles a packet longer than any before in a flow.
    #[cold]
    fn lengthen(&mut self, flow: FlowId, length: u32, flows: &mut Flows<GfqFlow>) {
        let GfqFlow { longest, weight, .. } = flows[flow];
        if longest < MOST_LENGTH {
            let longest = length.min(MOST_LENGTH);
            self.clock.lengthen(longest);
            self.resettle(flow, weight, longest, flows);
        }
    }
}

impl Scheduler for Gfq {
    type Flow = GfqFlow;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, flow: FlowConfig) -> Result<GfqFlow, Refused> {
        self.clock.join(&flow)?;
        let start = self.clock.now();
        let mut state = GfqFlow {
            start,
            pace: 0,
            next: NONE,
            previous: NONE,
            weight: 0,
            longest: 0,
            era: self.clock.era(start),
            group: 0,
            slot: 0,
            place: Place::Idle,
        };
        state.configure(flow.weight.get(), flow.longest);
        Ok(state)
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<GfqFlow>) {
        let state = flows[flow];
        if self.eligible != 0
            && let Some(ahead) = state.whole_start().checked_sub(self.clock.present())
        {
            self.clock.hold((u128::from(state.weight) * ahead) as i128);
        }
        self.clock.set_sum(self.clock.sum() - u64::from(state.weight));
    }

    fn set_weight(
        &mut self,
        _now: Time,
        flow: FlowId,
        weight: Weight,
        flows: &mut Flows<GfqFlow>,
    ) -> Result<(), Refused> {
        let GfqFlow { weight: was, longest, .. } = flows[flow];
        let sum = self.clock.sum_with(was, weight)?;
        self.resettle(flow, weight.get(), longest, flows);
        self.clock.set_sum(sum);
        Ok(())
    }

    #[inline]
    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<GfqFlow>) {
        let (state, last) = flows.state_and_last(flow);
        let (place, length) = (state.place, last.map_or(0, |waits| waits.length));
        if length > state.longest {
            self.lengthen(flow, length, flows);
        }
        if place == Place::Idle {
            self.begin(flow, flows);
        }
    }

    #[inline]
    fn select(&mut self, _now: Time, _flows: &mut Flows<GfqFlow>) -> Selection {
        match self.first() {
            Some(index) => Selection::Flow(self.groups[index as usize].eligible.head(shift(index))),
            None => Selection::Empty,
        }
    }

    #[inline]
    fn sent(&mut self, _now: Time, flow: FlowId, length: u32, flows: &mut Flows<GfqFlow>) {
        let length = length.min(MOST_LENGTH);
        if length > flows[flow].longest {
            self.lengthen(flow, length, flows); // only where a flow's lengths are not known packet by packet
        }
        self.remove(flow, flows);
        self.clock.work(length);
        self.pass(flows);
        let waits = flows.packets(flow) > 0;
        let state = &mut flows[flow];
        state.start = state.start.wrapping_add(u64::from(length) * state.pace);
        state.place = Place::Idle;
        if waits {
            self.insert(flow, flows);
        } else {
            state.era = self.clock.era(state.start);
        }
        self.advance(flows);
    }

    fn owes(&self, flow: FlowId, flows: &Flows<Self::Flow>) -> bool {
        flows[flow].whole_start() > self.clock.present()
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<GfqFlow>) {
        if flows[flow].place == Place::Idle {
            return;
        }
        self.remove(flow, flows);
        if flows.packets(flow) > 0 {
            self.insert(flow, flows);
        } else {
            let state = &mut flows[flow];
            state.place = Place::Idle;
            state.era = self.clock.era(state.start);
        }
        self.advance(flows);
    }
}
