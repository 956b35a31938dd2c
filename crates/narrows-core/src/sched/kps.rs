//! KPS, Karsten's packet scheduler: fair queueing by rate-controlled, rounded timestamps on interleaved stratified timer
//! wheels.
//!
//! Source: M. Karsten, "SI-WF2Q: WF2Q Approximation with Small Constant Execution Overhead", INFOCOM 2006, and
//! "Approximation of Generalized Processor Sharing with Interleaved Stratified Timer Wheels", IEEE/ACM Transactions on
//! Networking 18(3), 2010. Dummynet's slides of 2010 call it KPS and have it as `dn_sched_kps.c`, of which public trees have
//! only the hook `WITH_KPS`. Of the papers only the abstracts could be had, and what F. Checconi, L. Rizzo and P. Valente write
//! of them ("QFQ", 2013: a part of the cost is linear in the length of the packet). From there are the parts: flows in strata by rate, a timer wheel for each stratum, wheels interleaved on one line of time, rounded
//! starts at which flows become eligible and rounded deadlines by which they are served, constant time but for a part that
//! grows with the packet. **How these are put together here is a reconstruction**: which way is rounded, the width of the slots,
//! the place of the boundaries, how the earliest is found, where the wheels halt, and the proof are our own. "Several
//! versions with different cost-performance trade-offs" are in the paper; here is one.
//!
//! # Algorithm
//! As in WF2Q+, a flow of weight w has a start S; a packet of length l takes it to `S + l/w`, and a flow that has been idle
//! begins again at `max(S, V)`. V moves by `length / Σw` with each packet, Σw being the sum over all flows.
//!
//! A stratum has the flows whose `longest / w` lies within `(σ/2, σ]`, σ a power of two. Its wheel has slots of
//! `δ = σ/4`, whose boundaries are the odd multiples of δ/2. A flow's start is rounded down to a boundary e; there it becomes
//! eligible. Its deadline is `e + 5δ`, another boundary of its stratum: σ for the packet and δ for the rounding. Of the flows
//! that are eligible (e ≤ V) the one with the earliest deadline is served; of several the one that came last. When none is
//! eligible, V jumps to the first e.
//!
//! *Interleaved.* Count time in ticks, half a slot of the first stratum. The boundaries of stratum k are the ticks whose lowest
//! bit that is 1 is bit k: each tick is a boundary of just one stratum, as the marks on a ruler. Hence no two strata have one
//! deadline. Of a set of strata, the one with the next boundary is found by two looks at words of bits. Let T be the
//! present tick. The next boundary of stratum k is where bit k becomes 1. Of those whose bit of T is 0 the lowest does so first.
//! Of those whose bit is 1, it does so after the next carry into a bit above, so again the lowest first. And these two are
//! compared.
//!
//! *The earliest deadline.* A flow that is eligible has its deadline at one of the next five boundaries of its stratum, and a
//! word for each of the five says which strata have such flows. For the first word see above. In the jth, j ≥ 2, the lowest
//! stratum is first: its deadline is no later than `T + j·δ ≤ T + (j − 1)·2δ`, that of a higher one is later than `T + (j − 1)·2δ`.
//! So five are compared, whatever the number of flows and strata.
//!
//! *One wheel for starts and deadlines.* Since a deadline is a fixed number of slots after e, a slot of flows becomes eligible,
//! and then due, where it is: when time passes a boundary, a word of bits shifts. The wheels follow V, and halt at a
//! boundary U at which a slot is due and has flows; these are served first, their deadline is the earliest of all. Thus every
//! flow that waits has `U ≤ e + 5δ` and, see below, `e ≤ U + 5δ`, and a ring of 16 slots is enough, whatever V does.
//! A flow that begins anew while the wheels halt starts no later than `U + δ + σ`, for the same reason; that is at its own
//! stratum's scale, so that flows of wide slots begin at V.
//!
//! # Cost
//! A packet costs a look for the earliest deadline, at most one move to another slot, and the boundaries that time passes while
//! it is sent, of strata that have flows. An interval as long as a slot of stratum k has at most two boundaries of
//! k and all wider strata together, which is what interleaving is for. Narrower ones have more, `length·w / (Σw·longest)`
//! times a small constant: that is the part that grows with the packet, and needs flows of which one's share of it is more than
//! their own longest packet. It is bounded even so: at the tenth boundary at the latest a slot with flows is due, and the wheels
//! halt.
//!
//! # Bound
//! `B-WFI ≤ L_k + 6·w·δ + 2·φ·L`, with L_k the flow's longest packet, L the longest of any flow and φ = w/Σw. As
//! `w·δ` is between L_k/4 and L_k/2, that is `2.5·L_k … 4·L_k + 2·φ·L`; QFQ's is `3·L_k … 6·L_k + 2·φ·L`, GFQ's `2.25·L_k + 2·φ·L`.
//! For delay it is the same by φ·R.
//!
//! *V never runs away.* Let flow k wait at t with deadline d, and t₀ be the last time before at which a packet with a
//! later deadline was chosen, or V jumped. Flows with deadlines up to d were not eligible at t₀: e > V(t₀), and S ≥ e. (Had the
//! wheels halted at t₀, the deadline chosen would have been U, and no flow could have an earlier one, now or later.) Others
//! began after t₀, and so at U or later, and U = V at t₀. After t₀ only packets with deadlines up to d are sent. Each takes
//! the start of its flow to `S + l/w < e + δ + σ = e + 5δ ≤ d`. So flow j sends at most `w_j·(d − V(t₀))` bytes, and all together,
//! with the one packet chosen at t₀, `Σw·(d − V(t₀)) + L`. Hence `V(t) ≤ d + L/Σw ≤ S + 5δ + L/Σw`.
//!
//! *No flow runs ahead of V.* A packet is chosen with e ≤ U ≤ V, where `S < e + δ`. So `S < V + δ + L_k/w` afterwards, and always. As
//! `e + δ + σ = e + 5δ`, the boundary that S is rounded down to is within five slots after U.
//!
//! Over an interval in which k waits it gets at least w times the advance of S, and all together get at most Σw times the
//! advance of V. It lacks at most `w·(6δ + L_k/w + L/Σw)`. The other φ·L is for instants at which a packet is on the wire.
//!
//! A dropped first packet changes nothing of this: deadlines do not depend on the length of the packet that waits.
//! Where flows come, go or change their weights there is φ·H more, H being the bytes for which V halts. As with
//! [`Qfq`](super::Qfq) these are what a flow that leaves, or takes a lower weight, was ahead by, and `w·(V − S)` of a flow that
//! has joined at V, or taken a higher weight, and begins at S, at most `U + δ + σ`. When the weight of a flow that waits changes, or a
//! packet longer than `longest` comes, its start is kept within `U − σ` and `U + δ + σ`; its bound counts from then on.
//!
//! # Arithmetic
//! As [`Qfq`](super::Qfq)'s, with the same limits: instants are 64-bit multiples of 2⁻⁴³ bytes per weight that wrap, and weights
//! are rounded by less than 2⁻¹⁹ of theirs. A tick is 2¹⁶ of these units.
//!
//! # Example
//! ```
//! use narrows_core::sched::{FlowConfig, Kps, Served, Server, Weight};
//! use narrows_core::{PacketRef, Time};
//!
//! let mut server = Server::new(Kps::default());
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
//! assert_eq!(order, "hhlhhhlhhh");
//! ```

mod wheels;

use crate::sched::qfq::clock::{Clock, LEAST_SIGMA, MOST_LENGTH, MOST_SUM, MOST_WEIGHT, UNIT_SHIFT};
use crate::sched::qfq::clock::{pace, sigma};
use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection, Weight, WorstCase};
use crate::time::Time;
use crate::units::Bytes;

use wheels::{NONE, TERM, Wheels, is_same_slot, slot};

/// Karsten's packet scheduler.
#[derive(Debug, Default)]
pub struct Kps {
    clock: Clock,
    wheels: Wheels,
}

/// What [`Kps`] keeps of a flow.
#[derive(Clone, Copy, Debug)]
pub struct KpsFlow {
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
    stratum: u8,
    is_waiting: bool,
}

impl KpsFlow {
    /// `weight` and `longest` are within their limits.
    fn configure(&mut self, weight: u32, longest: u32) {
        self.weight = weight;
        self.longest = longest.max(1);
        self.pace = pace(weight);
        self.stratum = (sigma(self.longest, self.pace) - LEAST_SIGMA) as u8;
    }

    /// Of a flow that is idle, with what it has wrapped.
    #[inline]
    const fn whole_start(&self) -> u128 {
        (self.era as u128) << 64 | self.start as u128
    }
}

impl Kps {
    /// The greatest weight of a flow.
    pub const MOST_WEIGHT: Weight = Weight::new(MOST_WEIGHT).expect("not 0");
    /// The greatest sum of the weights of all flows.
    pub const MOST_SUM: u64 = MOST_SUM;
    /// The greatest [`FlowConfig::longest`]. A longer packet is served too, but counts as one of this length.
    pub const MOST_LENGTH: Bytes = Bytes::new(MOST_LENGTH as u64);

    /// What a flow may lack from now on, with the slots that it has at present, the sum of weights as it is, and the longest
    /// packet of any flow so far: `L_k + 6·w·δ + 2·φ·L + φ·H`, and this by φ, with H the bytes for which virtual time halts
    /// at present. H falls as they are sent, and rises as [`Qfq::worst_case`](super::Qfq::worst_case) says. It is rounded up
    /// to whole bytes.
    pub fn worst_case(&self, flow: &KpsFlow) -> WorstCase {
        let slots = u128::from(TERM + 1) * u128::from(slot(flow.stratum.into()));
        let (weight, sum, own) =
            (u128::from(flow.weight), u128::from(self.clock.sum()), u128::from(flow.longest));
        // slots ≤ 6·2^58, sum ≤ 2^40
        let besides = 2 * u128::from(self.clock.longest()) + u128::from(self.clock.held());
        let work = (own * sum).div_ceil(weight) + (slots * sum).div_ceil(1 << UNIT_SHIFT) + besides;
        let bytes = own + (slots * weight).div_ceil(1 << UNIT_SHIFT) + (besides * weight).div_ceil(sum);
        WorstCase { bytes: Bytes::new(bytes as u64), work: Bytes::new(work as u64) }
    }

    /// A flow that was idle begins to wait.
    #[inline]
    fn begin(&mut self, flow: FlowId, flows: &mut Flows<KpsFlow>) {
        if self.wheels.is_empty() {
            self.clock.release();
        }
        let present = self.clock.present();
        let state = &mut flows[flow];
        let (_, last) = self.wheels.range(state.stratum.into());
        let last = present.wrapping_add_signed(last.wrapping_sub(present as u64) as i64 as i128);
        let own = state.whole_start();
        let start = own.max(present).min(last);
        // Only after it has joined or changed: service takes no start that far.
        self.clock.hold((u128::from(state.weight) * own.saturating_sub(start)) as i128);
        state.start = start as u64;
        state.is_waiting = true;
        self.wheels.insert(flow, flows);
        self.wheels.catch_up(&mut self.clock);
    }

    /// A flow that waits no more, in no slot.
    #[inline]
    fn end(&self, state: &mut KpsFlow) {
        state.is_waiting = false;
        state.era = self.clock.era(state.start);
    }

    /// Gives a flow another weight or `longest`. What it is ahead or behind by is kept in bytes, as far as the wheels reach.
    #[cold]
    fn resettle(&mut self, flow: FlowId, weight: u32, longest: u32, flows: &mut Flows<KpsFlow>) {
        let now = self.clock.now();
        let was = flows[flow];
        if was.is_waiting {
            self.wheels.remove(flow, flows);
        }
        let state = &mut flows[flow];
        state.configure(weight, longest);
        if !was.is_waiting && was.whole_start() < self.clock.present() {
            if weight > was.weight {
                // The weight that is new has no claim to what has been before.
                (state.start, state.era) = (now, self.clock.era(now));
            }
            return;
        }
        let mut ahead = was.start.wrapping_sub(now) as i64;
        let served = i128::from(was.weight) * i128::from(ahead);
        if weight > was.weight {
            ahead = (served / i128::from(weight)) as i64;
        }
        let (first, last) = self.wheels.range(state.stratum.into());
        ahead = ahead.clamp(first.wrapping_sub(now) as i64, last.wrapping_sub(now) as i64);
        if was.is_waiting || !self.wheels.is_empty() {
            self.clock.hold(served - i128::from(weight) * i128::from(ahead));
        }
        state.start = now.wrapping_add_signed(ahead);
        state.era = self.clock.era(state.start);
        if was.is_waiting {
            self.wheels.insert(flow, flows);
            self.wheels.catch_up(&mut self.clock);
        }
    }

    /// A packet longer than any before is in a flow.
    #[cold]
    fn lengthen(&mut self, flow: FlowId, length: u32, flows: &mut Flows<KpsFlow>) {
        let KpsFlow { longest, weight, .. } = flows[flow];
        if longest < MOST_LENGTH {
            let longest = length.min(MOST_LENGTH);
            self.clock.lengthen(longest);
            self.resettle(flow, weight, longest, flows);
        }
    }
}

impl Scheduler for Kps {
    type Flow = KpsFlow;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, flow: FlowConfig) -> Result<KpsFlow, Refused> {
        self.clock.join(&flow)?;
        let start = self.clock.now();
        let mut state = KpsFlow {
            start,
            pace: 0,
            next: NONE,
            previous: NONE,
            weight: 0,
            longest: 0,
            era: self.clock.era(start),
            stratum: 0,
            is_waiting: false,
        };
        state.configure(flow.weight.get(), flow.longest);
        Ok(state)
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<KpsFlow>) {
        let state = flows[flow];
        if !self.wheels.is_empty()
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
        flows: &mut Flows<KpsFlow>,
    ) -> Result<(), Refused> {
        let KpsFlow { weight: was, longest, .. } = flows[flow];
        let sum = self.clock.sum_with(was, weight)?;
        self.resettle(flow, weight.get(), longest, flows);
        self.clock.set_sum(sum);
        Ok(())
    }

    #[inline]
    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<KpsFlow>) {
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
    fn select(&mut self, _now: Time, _flows: &mut Flows<KpsFlow>) -> Selection {
        self.wheels.first().map_or(Selection::Empty, Selection::Flow)
    }

    #[inline]
    fn sent(&mut self, _now: Time, flow: FlowId, length: u32, flows: &mut Flows<KpsFlow>) {
        let length = length.min(MOST_LENGTH);
        if length > flows[flow].longest {
            self.lengthen(flow, length, flows); // only where a flow's lengths are not known packet by packet
        }
        self.clock.work(length);
        let (state, packets) = flows.state_and_packets(flow);
        let to = state.start.wrapping_add(u64::from(length) * state.pace);
        if packets > 0 && is_same_slot(state.stratum.into(), state.start, to) {
            state.start = to;
        } else {
            self.wheels.remove(flow, flows);
            let state = &mut flows[flow];
            state.start = to;
            if packets > 0 {
                self.wheels.insert(flow, flows);
            } else {
                self.end(state);
            }
        }
        self.wheels.catch_up(&mut self.clock);
    }

    fn owes(&self, flow: FlowId, flows: &Flows<Self::Flow>) -> bool {
        flows[flow].whole_start() > self.clock.present()
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<KpsFlow>) {
        // The deadline stands whatever the length of the next packet.
        if flows[flow].is_waiting && flows.packets(flow) == 0 {
            self.wheels.remove(flow, flows);
            self.end(&mut flows[flow]);
            self.wheels.catch_up(&mut self.clock);
        }
    }
}
