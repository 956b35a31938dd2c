//! QFQ, quick fair queueing: weighted fair queueing in constant time, whatever the number of flows.
//!
//! Source: F. Checconi, L. Rizzo, P. Valente, "QFQ: Efficient Packet Scheduling with Tight Guarantees", IEEE/ACM
//! Transactions on Networking 21(3), 2013. One part does not hold as published and is corrected here, see below.
//!
//! # Algorithm
//! Virtual time V advances by `length / Σw` with each packet sent, where Σw is the sum of the weights of all flows,
//! idle ones included. If no backlogged flow has started, V jumps to the first start. A flow has a start S, in bytes
//! per weight. A packet sent moves it to `S + length / w`. A flow that was idle starts again at `max(S, V)`.
//!
//! Flows with similar `longest / w` form a group: σ is the power of two with `longest / w ≤ σ < 2·longest / w`. In a
//! group, starts are rounded down to slots of width σ/2. A group's start is the least rounded start of its flows, and
//! its finish is 3σ/2 later. Among the eligible groups (start ≤ V), the one with the least finish is served; on a
//! tie, the one with the lower σ. In that group, the first slot is served, and in the slot the flow that came last.
//!
//! A group may be eligible or not, and blocked (by an eligible group of a higher σ that finishes earlier) or not. The
//! four resulting sets of groups are words of bits. Because of the rounding, the finishes of the groups that are
//! eligible and not blocked rise with σ. So the lowest bit is the group to serve, the next bit tells whether groups
//! are no longer blocked, and the highest bit that changes in V tells which groups become eligible. There is no loop
//! and no search.
//!
//! # Differences from the source
//! - *Slots of σ/2 instead of σ, and a finish of start + 3σ/2 instead of start + 2σ.* The published bound is `B-WFI =
//!   3·φ·σ + 2·φ·L`, where φ is `w/Σw`, σ is in bytes of all flows' service, and L is the longest packet of any flow.
//!   With the published rounding this bound is violated. A flow may send while its exact start is up to one slot
//!   after V, and so get ahead of V by a slot and a packet, which is 2σ. Later it may be served only when V has
//!   reached its finish, 2σ after its exact start, plus L. Together that is `4·φ·σ + φ·L`; the model in the tests
//!   reaches 3.9 φσ. With a slot of δ the sum is `(σ + δ) + (σ + δ)`, and `δ = σ/2` makes it the intended `3·φ·σ`.
//!   Starts that are not eligible may then lie two boundaries ahead instead of one, which needs one more word of
//!   bits.
//! - *A flow that starts again starts no later than the finish of the lowest ready group at or above its own*, if V
//!   is beyond that (which happens while the lag of a long packet is made up). The source has this rule for groups
//!   above. With a flow's own group included, the flows of a group lie within 4 slots of each other, whatever the
//!   lengths and weights: flows that are served start less than 3 slots after their group's start, flows that start
//!   again likewise, and in a group that is not eligible all flows lie between V and the third boundary after it. A
//!   ring of 8 slots holds them, without a minimum σ and independent of Σw, which may change at any time. The
//!   reference needs `Lmax/Lmin + 5` slots and has 32.
//! - *A flow that leaves, or takes a lower weight, while ahead of V* has had service for which the others wait. Σw
//!   shrinks immediately, but V halts until the others have made up for these bytes. Otherwise V would run away from
//!   them.
//! - *A flow that has joined, or has taken a higher weight, and starts before the V of that time* because of the rule
//!   for flows that start again, gets service that no share of that time accounts for. V halts for these bytes too,
//!   `w·(V − S)`. They can be many: a packet advances V by L/Σw with the Σw of that time. So a heavy flow that joins
//!   a few light ones at that moment may get `w·L/Σw` before the others continue. This happens only once, and
//!   [`worst_case`](Qfq::worst_case) includes it.
//! - *Σw is the sum over the existing flows*; the reference fixes it at its maximum.
//!
//! # Why the bound holds
//! Let flow k be backlogged at time t with the rounded finish F, and let t₀ be the last time before t at which a
//! packet of a group with a later finish than F was chosen (or V jumped). Groups that finish by F were not eligible
//! then. So all their flows, and all flows that start again later, start after V(t₀). What is sent since is that one
//! packet and, of each flow, at most `w·(F − V(t₀))`, because a packet sent moves a start no further than its rounded
//! finish, which was ≤ F. So `V(t) ≤ F + L/Σw ≤ S + σ + σ/2 + L/Σw`. On the other side, always `S < V + σ + σ/2`.
//! Over an interval in which k is backlogged, it gets at least w times the advance of S, and all flows together get
//! at most Σw times the advance of V. So k lacks at most `w·(3σ + L/Σw)`. The remaining φ·L of the published bound is
//! for instants at which a packet is on the wire.
//!
//! Flows that join, leave or change do not affect this sum, except for the bytes for which V halts. The bytes not yet
//! sent at the beginning of an interval, and those added during it, are sent in addition, so k lacks up to φ times
//! that more.
//!
//! When the weight of a backlogged flow changes, or a packet longer than `longest` arrives, its start is kept within
//! `V − σ/2` and what the sets need; its bound holds from then on.
//!
//! # Arithmetic
//! Virtual time and starts are 64-bit multiples of 2⁻⁴³ bytes per weight, and wrap around. The spread of all instants
//! that are compared is below `2·5·σ/2 ≤ 5·2⁶⁰ < 2⁶³`, because σ is at most `2¹⁷·2⁴³`. The number of wraps of V is
//! recorded when a flow becomes idle, so an old start is never mistaken for a recent one. That number has 32 bits:
//! after `2⁵³·Σw` bytes since the first packet (or an equivalent sum of jumps), each flow that has been idle starts
//! at V, even if it is ahead of V by its last packet. `1/w` is rounded up to a multiple of 2⁻⁴³, and `1/Σw` down to a
//! multiple of 2⁻⁶³. So the effective weight of a flow is lower by a fraction of `w/2⁴³ ≤ 2⁻¹⁹`, and the effective Σw
//! is higher by `Σw/2⁶³ ≤ 2⁻²³`. The bound therefore holds exactly as stated for shares that are smaller than w/Σw by
//! this much. Powers of two are exact.
//!
//! # Example
//! ```
//! use narrows_core::sched::{FlowConfig, Qfq, Served, Server, Weight};
//! use narrows_core::{PacketRef, Time};
//!
//! let mut server = Server::new(Qfq::default());
//! let heavy = server.join(FlowConfig { weight: Weight::new(3).unwrap(), ..FlowConfig::default() }).unwrap();
//! let light = server.join(FlowConfig::default()).unwrap();
//! for number in 0..400 {
//!     server.enqueue(Time::ZERO, heavy, PacketRef::from_number(number), 1000);
//!     server.enqueue(Time::ZERO, light, PacketRef::from_number(400 + number), 1000);
//! }
//! let served = (0..400).filter(|_| matches!(server.dequeue(Time::ZERO), Served::Packet(flow, _) if flow == heavy));
//! let served = served.count();
//! assert!((295..=305).contains(&served), "three quarters of 400, give or take the bound");
//! ```

pub(in crate::sched) mod clock;
mod groups;

use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection, Weight};
use crate::time::Time;
use crate::units::Bytes;

use clock::{Clock, MOST_LENGTH, MOST_SUM, MOST_WEIGHT, UNIT_SHIFT, is_after, pace, sigma};
use groups::{FIRST_SHIFT, Groups, NONE, shift};

/// Quick fair queueing.
#[derive(Debug, Default)]
pub struct Qfq {
    groups: Groups,
    clock: Clock,
}

/// Per-flow state of [`Qfq`].
#[derive(Clone, Copy, Debug)]
pub struct QfqFlow {
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
    is_waiting: bool,
}

/// The worst-case lag of a flow of [`Qfq`], [`Gfq`](super::Gfq) or [`Kps`](super::Kps) behind its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstCase {
    /// B-WFI (bit worst-case fair index): in any interval in which the flow is backlogged, its share of all bytes sent
    /// minus its own bytes is at most this.
    pub bytes: Bytes,
    /// T-WFI (time worst-case fair index) times the rate: a packet that arrives to a backlog of q bytes in its flow, its
    /// own included, has been sent once the transmitter has sent `q / share` plus this.
    pub work: Bytes,
}

impl QfqFlow {
    /// `weight` and `longest` must be within their limits.
    fn configure(&mut self, weight: u32, longest: u32) {
        self.weight = weight;
        self.longest = longest.max(1);
        self.pace = pace(weight);
        self.group = (sigma(self.longest, self.pace) - 1 - FIRST_SHIFT) as u8;
    }

    /// The start of an idle flow, including wraps.
    #[inline]
    const fn whole_start(&self) -> u128 {
        (self.era as u128) << 64 | self.start as u128
    }
}

impl Qfq {
    /// The maximum weight of a flow.
    pub const MOST_WEIGHT: Weight = Weight::new(MOST_WEIGHT).expect("not 0");
    /// The maximum sum of the weights of all flows.
    pub const MOST_SUM: u64 = MOST_SUM;
    /// The maximum of [`FlowConfig::longest`]. Longer packets are served, but count as this length.
    pub const MOST_LENGTH: Bytes = Bytes::new(MOST_LENGTH as u64);

    /// The maximum service that a flow may lack from now on, given its present σ, the present sum of weights, and the
    /// longest packet of any flow so far: `3·φ·σ + 2·φ·L + φ·H` and `3σ + 2L + H`. H is the number of bytes for which
    /// virtual time halts at present, because flows have left, changed their weights or joined. The result is rounded
    /// up to whole bytes.
    ///
    /// It holds for intervals in which none of these changes, with two exceptions. H falls as these bytes are sent. H
    /// rises when a flow that has joined, or changed its weight while it was idle, starts behind virtual time; for an
    /// interval with such a start, add this rise of H.
    pub fn worst_case(&self, flow: &QfqFlow) -> WorstCase {
        let sigma = 2_u128 << shift(flow.group.into());
        let (weight, sum, longest) =
            (u128::from(flow.weight), u128::from(self.clock.sum()), u128::from(self.clock.longest()));
        // sigma ≤ 2^60, sum ≤ 2^40
        let besides = 2 * longest + u128::from(self.clock.held());
        let work = (3 * sigma * sum).div_ceil(1 << UNIT_SHIFT) + besides;
        let bytes = (3 * sigma * weight).div_ceil(1 << UNIT_SHIFT) + (besides * weight).div_ceil(sum);
        WorstCase { bytes: Bytes::new(bytes as u64), work: Bytes::new(work as u64) }
    }

    /// If packets wait but no flow has started, virtual time jumps to the first start.
    #[inline]
    fn catch_up(&mut self) {
        if self.groups.is_stuck() {
            let (now, next) = (self.clock.now(), self.groups.next_start());
            self.clock.jump(next);
            self.groups.advance(now, next);
        }
    }

    /// An idle flow becomes backlogged.
    #[inline]
    fn begin(&mut self, flow: FlowId, flows: &mut Flows<QfqFlow>) {
        if self.groups.is_idle() {
            self.clock.release();
        }
        let present = self.clock.present();
        let limit = self.groups.limit(flows[flow].group.into());
        let state = &mut flows[flow];
        let own = state.whole_start();
        state.is_waiting = true;
        if own < present {
            state.start = present as u64;
        }
        if let Some(limit) = limit
            && !is_after(limit, state.start)
        {
            state.start = limit.wrapping_sub(1);
            let ahead = state.start.wrapping_sub(present as u64) as i64;
            // Only after it has joined or changed: service moves no start that far.
            if let Some(given) = own.checked_sub(present.wrapping_add_signed(ahead.into())) {
                self.clock.hold((u128::from(state.weight) * given) as i128);
            }
        }
        self.groups.insert(flow, present as u64, flows);
        self.catch_up();
    }

    /// Changes a flow's weight or `longest`, and so its group. Its lead or lag is kept in bytes, as far as the sets
    /// allow.
    #[cold]
    fn resettle(&mut self, flow: FlowId, weight: u32, longest: u32, flows: &mut Flows<QfqFlow>) {
        let now = self.clock.now();
        let was = flows[flow];
        if was.is_waiting {
            self.groups.remove(flow, now, flows);
        } else if was.whole_start() < self.clock.present() {
            let state = &mut flows[flow];
            if weight > was.weight {
                // The new weight has no claim to service from the past.
                (state.start, state.era) = (now, self.clock.era(now));
            }
            return state.configure(weight, longest);
        }
        flows[flow].configure(weight, longest);
        let mut ahead = was.start.wrapping_sub(now) as i64;
        let served = i128::from(was.weight) * i128::from(ahead);
        if weight > was.weight {
            ahead = (served / i128::from(weight)) as i64;
        }
        self.place(flow, ahead, served, flows);
    }

    /// Handles a packet, the last of a flow, that is longer than any before.
    #[cold]
    fn lengthen(&mut self, flow: FlowId, length: u32, flows: &mut Flows<QfqFlow>) {
        let QfqFlow { longest, weight, .. } = flows[flow];
        if longest < MOST_LENGTH {
            let longest = length.min(MOST_LENGTH);
            self.clock.lengthen(longest);
            self.resettle(flow, weight, longest, flows);
        }
    }

    /// Sets the start of a flow that is in no slot to this distance ahead of virtual time (or behind), as far as the
    /// sets allow, and puts the flow into a slot if it is backlogged. `served` is its lead in units of service, in
    /// bytes.
    fn place(&mut self, flow: FlowId, ahead: i64, served: i128, flows: &mut Flows<QfqFlow>) {
        let now = self.clock.now();
        let QfqFlow { group, weight, is_waiting, .. } = flows[flow];
        let slot = 1_i64 << shift(group.into());
        let passed = (now % slot as u64) as i64;
        // Not so far behind that it would violate the order of the groups below; not beyond the third boundary; and
        // not so far that a group above might be served first and still block it.
        let mut ahead = ahead.max(-slot).min(3 * slot - 1 - passed);
        if is_waiting && let Some(limit) = self.groups.limit(group.into()) {
            ahead = ahead.min(limit.wrapping_sub(now) as i64 - 1);
        }
        self.hold(served - i128::from(weight) * i128::from(ahead));
        let start = now.wrapping_add_signed(ahead);
        let era = self.clock.era(start);
        let state = &mut flows[flow];
        (state.start, state.era) = (start, era);
        if is_waiting {
            self.groups.insert(flow, now, flows);
            self.groups.sort_out(now);
            self.catch_up();
        }
    }

    /// Handles a packet sent that is longer than the flow's `longest`. This happens only if lengths are not known
    /// packet by packet.
    #[cold]
    fn sent_longer(&mut self, flow: FlowId, length: u32, flows: &mut Flows<QfqFlow>) {
        let length = length.min(MOST_LENGTH);
        self.groups.remove(flow, self.clock.now(), flows);
        self.clock.work(length);
        let now = self.clock.now();
        self.groups.sort_out(now);
        self.clock.lengthen(length);
        let is_waiting = flows.packets(flow) > 0;
        let state = &mut flows[flow];
        state.is_waiting = is_waiting;
        state.configure(state.weight, length);
        state.start = state.start.wrapping_add(u64::from(length) * state.pace);
        let ahead = state.start.wrapping_sub(now) as i64;
        let served = i128::from(state.weight) * i128::from(ahead);
        self.place(flow, ahead, served, flows);
        self.catch_up();
    }

    /// A flow's lead has been reduced by this many units of service, in bytes. Virtual time waits until the others
    /// have made up for that.
    fn hold(&mut self, given: i128) {
        if !self.groups.is_idle() {
            self.clock.hold(given);
        }
    }
}

impl Scheduler for Qfq {
    type Flow = QfqFlow;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, flow: FlowConfig) -> Result<QfqFlow, Refused> {
        self.clock.join(&flow)?;
        let present = self.clock.present();
        let mut state = QfqFlow {
            start: present as u64,
            pace: 0,
            next: NONE,
            previous: NONE,
            weight: 0,
            longest: 0,
            era: (present >> 64) as u32,
            group: 0,
            is_waiting: false,
        };
        state.configure(flow.weight.get(), flow.longest);
        Ok(state)
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<QfqFlow>) {
        let state = flows[flow];
        if let Some(ahead) = state.whole_start().checked_sub(self.clock.present()) {
            self.hold((u128::from(state.weight) * ahead) as i128);
        }
        self.clock.set_sum(self.clock.sum() - u64::from(state.weight));
    }

    fn set_weight(
        &mut self,
        _now: Time,
        flow: FlowId,
        weight: Weight,
        flows: &mut Flows<QfqFlow>,
    ) -> Result<(), Refused> {
        let QfqFlow { weight: was, longest, .. } = flows[flow];
        let sum = self.clock.sum_with(was, weight)?;
        self.resettle(flow, weight.get(), longest, flows);
        self.clock.set_sum(sum);
        Ok(())
    }

    #[inline]
    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<QfqFlow>) {
        let (state, last) = flows.state_and_last(flow);
        let (is_waiting, length) = (state.is_waiting, last.map_or(0, |waits| waits.length));
        if length > state.longest {
            self.lengthen(flow, length, flows);
        }
        if !is_waiting {
            self.begin(flow, flows);
        }
    }

    #[inline]
    fn select(&mut self, _now: Time, _flows: &mut Flows<QfqFlow>) -> Selection {
        self.groups.first().map_or(Selection::Empty, Selection::Flow)
    }

    #[inline]
    fn sent(&mut self, _now: Time, flow: FlowId, length: u32, flows: &mut Flows<QfqFlow>) {
        let (state, packets) = flows.state_and_packets(flow);
        let waits = packets > 0;
        if length > state.longest {
            return self.sent_longer(flow, length, flows);
        }
        let from = state.start;
        let to = from.wrapping_add(u64::from(length) * state.pace);
        let index = u32::from(state.group);
        state.start = to;
        let earlier = self.clock.now();
        self.clock.work(length);
        if !waits {
            state.is_waiting = false;
            state.era = self.clock.era(to);
        }
        let to = if waits { Some(to) } else { None };
        if self.groups.serve(flow, index, (from, to), (earlier, self.clock.now()), flows) {
            self.catch_up();
        }
    }

    fn owes(&self, flow: FlowId, flows: &Flows<Self::Flow>) -> bool {
        flows[flow].whole_start() > self.clock.present()
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<QfqFlow>) {
        // The start is independent of the next packet's length.
        if flows[flow].is_waiting && flows.packets(flow) == 0 {
            let now = self.clock.now();
            self.groups.remove(flow, now, flows);
            let state = &mut flows[flow];
            state.is_waiting = false;
            state.era = self.clock.era(state.start);
            self.catch_up();
        }
    }
}
