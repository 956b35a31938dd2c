//! QFQ, quick fair queueing: weighted fair queueing in constant time, whatever the number of flows.
//!
//! Source: F. Checconi, L. Rizzo, P. Valente, "QFQ: Efficient Packet Scheduling with Tight Guarantees", IEEE/ACM
//! Transactions on Networking 21(3), 2013. One part of it does not hold as published and is mended here, see below.
//!
//! # Algorithm
//! Virtual time V advances by `length / Σw` with each packet sent, Σw being the sum of the weights of all flows, idle ones
//! included; when no flow that waits has begun, it jumps to the first start. A flow has a start S, in bytes per weight. A
//! packet sent takes it to `S + length / w`; when the flow has been idle, it begins again at `max(S, V)`.
//!
//! Flows whose `longest / w` is alike form a group: σ is the power of two with `longest / w ≤ σ < 2·longest / w`. In a group
//! starts are rounded down to slots of width σ/2; a group's start is the least rounded start of its flows, and its finish
//! 3σ/2 later. Among the groups that are eligible (start ≤ V), the one with the least finish is served, on a tie the one with
//! the lower σ; in it the first slot, and there the flow that came last.
//!
//! The four sets of groups, eligible or not, blocked (by an eligible group of a higher σ that finishes earlier) or not, are
//! words of bits. Rounding has seen to it that the finishes of the groups that are eligible and not blocked rise
//! with σ, so the lowest bit is the group to serve; that one look at the next bit says whether groups are blocked no longer;
//! and that the highest bit that changes in V says which groups become eligible. There is no loop and no search.
//!
//! # Where it departs from the source
//! - *Slots of σ/2 instead of σ, and a finish of start + 3σ/2 instead of start + 2σ.* The published bound is
//!   `B-WFI = 3·φ·σ + 2·φ·L`, φ being `w/Σw`, σ in bytes of all flows' service, L the longest packet of any flow. With the
//!   published rounding it is broken: a flow may send when its exact start is up to one slot after V, and so get ahead of V
//!   by a slot and a packet, that is 2σ; and later be served only when V has reached its finish, 2σ after its exact start,
//!   and L more. Together that is `4·φ·σ + φ·L`, and the model in the tests comes to 3.9 φσ. With a slot of δ the sum is
//!   `(σ + δ) + (σ + δ)`, and `δ = σ/2` makes it the `3·φ·σ` that was meant. Starts that are not eligible may then lie two
//!   boundaries ahead, not one, for which there is one more word of bits.
//! - *A flow that begins anew starts no later than the finish of the lowest ready group at or above its own*, if V is beyond
//!   that (which happens while the lag of a long packet is made up for). The source has this for groups above; with its own
//!   group the flows of a group lie within 4 slots of each other, whatever the lengths and weights: served ones begin
//!   less than 3 slots after their group's start, those that begin anew likewise, and with a group that is not eligible all
//!   lie between V and the third boundary after it. A ring of 8 slots holds them, without a floor under σ and without
//!   regard to Σw, which may change at any time. The reference needs `Lmax/Lmin + 5` slots and has 32.
//! - *A flow that leaves, or takes a lower weight, ahead of V* has had service that the others wait for. Σw shrinks at once,
//!   but V halts until they have made up for these bytes; otherwise it would run away from them.
//! - *A flow that has joined, or has taken a higher weight, and begins before the V of that time* because of the rule for
//!   flows that begin anew, gets service that no share of that time stands for: V halts for these bytes too, `w·(V − S)`.
//!   They can be many: V moves by L/Σw with a packet, by the Σw of that time, so that a heavy flow that joins a few light
//!   ones just then may get `w·L/Σw` before the others go on. It is once only, and [`worst_case`](Qfq::worst_case) counts it.
//! - *Σw is that of the flows that there are*; the reference fixes it at its maximum.
//!
//! # Why the bound holds
//! Let flow k wait at time t with the rounded finish F, and t₀ be the last time before at which a packet of a group with a
//! later finish than F was chosen (or V jumped). Groups that finish by F were not eligible then, so that all their flows,
//! and all that begin anew later, start after V(t₀). What is sent since is that one packet and, of each flow, at most
//! `w·(F − V(t₀))`, because a packet sent takes a start no further than its rounded finish, which was ≤ F. So
//! `V(t) ≤ F + L/Σw ≤ S + σ + σ/2 + L/Σw`. On the other side `S < V + σ + σ/2` always. Over an interval in which k waits it gets at least
//! w times the advance of S, and all together get at most Σw times the advance of V: it lacks at most
//! `w·(3σ + L/Σw)`. The remaining φ·L of the published bound is for instants at which a packet is on the wire.
//!
//! Flows that come, go or change keep this sum as it is, except for the bytes for which V halts: what has not been sent of
//! them by the beginning of an interval, and what is added within it, is sent besides, so that k lacks up to φ times that
//! more.
//!
//! When the weight of a flow that waits changes, or a packet longer than `longest` comes, its start is kept within `V − σ/2`
//! and what the sets need; its bound counts from then on.
//!
//! # Arithmetic
//! Virtual time and starts are 64-bit multiples of 2⁻⁴³ bytes per weight, and wrap. The spread of all that are compared
//! is below `2·5·σ/2 ≤ 5·2⁶⁰ < 2⁶³`, σ being at most `2¹⁷·2⁴³`. How often V has wrapped is noted when a flow becomes idle, so a
//! start of long ago is never mistaken for a fresh one. That number has 32 bits: after `2⁵³·Σw` bytes since the first packet
//! (or jumps that come to as much) each flow that has been idle begins at V, even if it is ahead of V by its last packet.
//! `1/w` is rounded up to a multiple of 2⁻⁴³, and `1/Σw` down to one of
//! 2⁻⁶³: a flow's weight is less than it should be by a part of `w/2⁴³ ≤ 2⁻¹⁹`, and Σw is more by `Σw/2⁶³ ≤ 2⁻²³`. Therefore the
//! bound holds exactly as stated for shares that are that much smaller than w/Σw. Powers of two are exact.
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

/// What [`Qfq`] keeps of a flow.
#[derive(Clone, Copy, Debug)]
pub struct QfqFlow {
    /// Where its next packet begins.
    start: u64,
    /// `2⁴³ / weight`, rounded up: how far a byte moves the start.
    pace: u64,
    /// Its neighbours in its slot. The first one's `previous` says nothing.
    next: u32,
    previous: u32,
    weight: u32,
    longest: u32,
    /// While it is idle, how often the clock had wrapped at `start`.
    era: u32,
    group: u8,
    is_waiting: bool,
}

/// What a flow of [`Qfq`], [`Gfq`](super::Gfq) or [`Kps`](super::Kps) may lack at worst, of what its share would have given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstCase {
    /// B-WFI: in any interval in which it waits, its share of all bytes sent less its own bytes is no more than this.
    pub bytes: Bytes,
    /// T-WFI times the rate: a packet that comes to q bytes in its flow, its own included, has been sent when the
    /// transmitter has sent `q / share` and this.
    pub work: Bytes,
}

impl QfqFlow {
    /// `weight` and `longest` are within their limits.
    fn configure(&mut self, weight: u32, longest: u32) {
        self.weight = weight;
        self.longest = longest.max(1);
        self.pace = pace(weight);
        self.group = (sigma(self.longest, self.pace) - 1 - FIRST_SHIFT) as u8;
    }

    /// Of a flow that is idle, with what it has wrapped.
    #[inline]
    const fn whole_start(&self) -> u128 {
        (self.era as u128) << 64 | self.start as u128
    }
}

impl Qfq {
    /// The greatest weight of a flow.
    pub const MOST_WEIGHT: Weight = Weight::new(MOST_WEIGHT).expect("not 0");
    /// The greatest sum of the weights of all flows.
    pub const MOST_SUM: u64 = MOST_SUM;
    /// The greatest [`FlowConfig::longest`]. A longer packet is served too, but counts as one of this length.
    pub const MOST_LENGTH: Bytes = Bytes::new(MOST_LENGTH as u64);

    /// What a flow may lack from now on, with the σ that it has at present, the sum of weights as it is, and the longest
    /// packet of any flow so far: `3·φ·σ + 2·φ·L + φ·H` and `3σ + 2L + H`, with H the bytes for which virtual time halts at
    /// present, because flows have left, changed their weights or joined. It counts for intervals in which none of these
    /// changes, save that H falls as they are sent; and that it rises when a flow that has joined, or changed its weight
    /// while it was idle, begins behind virtual time: for an interval with such a beginning in it, what H rises by then comes
    /// on top. It is rounded up to whole bytes.
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

    /// When packets wait but none has begun, virtual time jumps to the first that will.
    #[inline]
    fn catch_up(&mut self) {
        if self.groups.is_stuck() {
            let (now, next) = (self.clock.now(), self.groups.next_start());
            self.clock.jump(next);
            self.groups.advance(now, next);
        }
    }

    /// A flow that was idle begins to wait.
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

    /// Gives a flow another weight, another `longest`, or another group for its start. What it is ahead or behind by is
    /// kept in bytes, as far as the sets allow.
    #[cold]
    fn resettle(&mut self, flow: FlowId, weight: u32, longest: u32, flows: &mut Flows<QfqFlow>) {
        let now = self.clock.now();
        let was = flows[flow];
        if was.is_waiting {
            self.groups.remove(flow, now, flows);
        } else if was.whole_start() < self.clock.present() {
            let state = &mut flows[flow];
            if weight > was.weight {
                // The weight that is new has no claim to what has been before.
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

    /// A packet longer than any before waits in a flow, as the last.
    #[cold]
    fn lengthen(&mut self, flow: FlowId, length: u32, flows: &mut Flows<QfqFlow>) {
        let QfqFlow { longest, weight, .. } = flows[flow];
        if longest < MOST_LENGTH {
            let longest = length.min(MOST_LENGTH);
            self.clock.lengthen(longest);
            self.resettle(flow, weight, longest, flows);
        }
    }

    /// Lets a flow that is in no slot start so far ahead of virtual time, or behind, as far as the sets allow, and puts it
    /// into a slot if it waits. `served` is by how many units of service, in bytes, it was ahead.
    fn place(&mut self, flow: FlowId, ahead: i64, served: i128, flows: &mut Flows<QfqFlow>) {
        let now = self.clock.now();
        let QfqFlow { group, weight, is_waiting, .. } = flows[flow];
        let slot = 1_i64 << shift(group.into());
        let passed = (now % slot as u64) as i64;
        // Not so far behind that it would undo the order of the groups below; not beyond the third boundary; and not so far
        // that a group above might be served first, and then block it still.
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

    /// A packet longer than the flow's `longest` has been sent: that happens only where the lengths are not known packet by
    /// packet.
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

    /// A flow that was ahead is so many units of service, in bytes, less ahead from now on: virtual time waits until the
    /// others have made up for that.
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
        // The start stands whatever the length of the next packet.
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
