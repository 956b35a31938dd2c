//! KPS, Karsten's packet scheduler: fair queueing by rate-controlled, rounded timestamps on interleaved stratified
//! timer wheels.
//!
//! Source: M. Karsten, "SI-WF2Q: WF2Q Approximation with Small Constant Execution Overhead", INFOCOM 2006, and
//! "Approximation of Generalized Processor Sharing with Interleaved Stratified Timer Wheels", IEEE/ACM Transactions
//! on Networking 18(3), 2010. Dummynet's slides of 2010 call it KPS and list it as `dn_sched_kps.c`; public source
//! trees have only the hook `WITH_KPS`. Only the abstracts of the papers were available, and the description by F.
//! Checconi, L. Rizzo and P. Valente ("QFQ", 2013: part of the cost is linear in the packet length). These sources
//! give the building blocks: flows in strata by rate, a timer wheel for each stratum, wheels interleaved on one time
//! line, rounded starts at which flows become eligible, rounded deadlines by which they are served, and constant time
//! except for a part that grows with the packet length. **How these are combined here is a reconstruction**: the
//! direction of rounding, the width of the slots, the position of the boundaries, how the earliest deadline is found,
//! where the wheels halt, and the proof are our own. The paper has "several versions with different cost-performance
//! trade-offs"; this is one.
//!
//! # Algorithm
//! As in WF2Q+, a flow of weight w has a start S. A packet of length l moves it to `S + l/w`, and a flow that was
//! idle starts again at `max(S, V)`. V advances by `length / Σw` with each packet, where Σw is the sum over all
//! flows.
//!
//! A stratum holds the flows whose `longest / w` lies within `(σ/2, σ]`, σ a power of two. Its wheel has slots of `δ
//! = σ/4`, whose boundaries are the odd multiples of δ/2. A flow's start is rounded down to a boundary e, at which
//! the flow becomes eligible. Its deadline is `e + 5δ`, another boundary of its stratum: σ for the packet and δ for
//! the rounding. Of the eligible flows (e ≤ V), the one with the earliest deadline is served; on a tie, the one that
//! came last. If no flow is eligible, V jumps to the first e.
//!
//! *Interleaved.* Count time in ticks, half a slot of the first stratum. The boundaries of stratum k are the ticks
//! whose lowest set bit is bit k. So each tick is a boundary of exactly one stratum, like the marks on a ruler, and
//! no two strata share a deadline. In a set of strata, two bit-word lookups find the one with the next boundary. Let
//! T be the present tick. The next boundary of stratum k is where bit k becomes 1. Among the strata whose bit of T is
//! 0, the lowest comes first. Among those whose bit is 1, the boundary comes after the next carry into a higher bit,
//! so again the lowest comes first. These two are compared.
//!
//! *The earliest deadline.* An eligible flow has its deadline at one of the next five boundaries of its stratum. For
//! each of the five, a word of bits says which strata have such flows. For the first word see above. In the jth, j ≥
//! 2, the lowest stratum is first: its deadline is no later than `T + j·δ ≤ T + (j − 1)·2δ`, and that of a higher one
//! is later than `T + (j − 1)·2δ`. So five deadlines are compared, whatever the number of flows and strata.
//!
//! *One wheel for starts and deadlines.* A deadline is a fixed number of slots after e. So a slot of flows becomes
//! eligible, and then due, without moving: when time passes a boundary, a word of bits shifts. The wheels follow V,
//! and halt at a boundary U at which a slot with flows is due. These flows are served first, because their deadline
//! is the earliest of all. Thus every backlogged flow has `U ≤ e + 5δ` and, see below, `e ≤ U + 5δ`, and a ring of 16
//! slots is enough, whatever V does. A flow that starts again while the wheels halt starts no later than `U + δ + σ`,
//! for the same reason. That limit is at the scale of its own stratum, so flows with wide slots start at V.
//!
//! # Cost
//! A packet costs one search for the earliest deadline, at most one move to another slot, and the boundaries of
//! backlogged strata that time passes during its transmission. An interval as long as a slot of stratum k has at most
//! two boundaries of k and all wider strata together, thanks to the interleaving. Narrower strata have more,
//! `length·w / (Σw·longest)` times a small constant. This is the part that grows with the packet length. It needs
//! flows whose share of that length is more than their own longest packet. Even so it is bounded: at the tenth
//! boundary at the latest, a slot with flows is due, and the wheels halt.
//!
//! # Bound
//! `B-WFI ≤ L_k + 6·w·δ + 2·φ·L`, where L_k is the flow's longest packet, L the longest of any flow and φ = w/Σw.
//! Because `w·δ` is between L_k/4 and L_k/2, that is `2.5·L_k … 4·L_k + 2·φ·L`. QFQ's bound is `3·L_k … 6·L_k +
//! 2·φ·L`, GFQ's `2.25·L_k + 2·φ·L`. The bound on delay is this divided by φ·R.
//!
//! *V never runs away.* Let flow k be backlogged at t with deadline d, and let t₀ be the last time before t at which
//! a packet with a later deadline was chosen, or V jumped. Flows with deadlines up to d were not eligible at t₀: e >
//! V(t₀), and S ≥ e. (Had the wheels halted at t₀, the chosen deadline would have been U, and no flow could have an
//! earlier one, now or later.) Other flows started after t₀, and so at U or later, and U = V at t₀. After t₀ only
//! packets with deadlines up to d are sent. Each moves the start of its flow to `S + l/w < e + δ + σ = e + 5δ ≤ d`.
//! So flow j sends at most `w_j·(d − V(t₀))` bytes, and all together, with the one packet chosen at t₀, `Σw·(d −
//! V(t₀)) + L`. Hence `V(t) ≤ d + L/Σw ≤ S + 5δ + L/Σw`.
//!
//! *No flow runs ahead of V.* A packet is chosen with e ≤ U ≤ V, where `S < e + δ`. So `S < V + δ + L_k/w`
//! afterwards, and always. As `e + δ + σ = e + 5δ`, the boundary to which S is rounded down is within five slots
//! after U.
//!
//! Over an interval in which k is backlogged, it gets at least w times the advance of S, and all flows together get
//! at most Σw times the advance of V. So k lacks at most `w·(6δ + L_k/w + L/Σw)`. The other φ·L is for instants at
//! which a packet is on the wire.
//!
//! Dropping the first packet does not change this: deadlines do not depend on the length of the waiting packet. When
//! flows join, leave or change their weights, add φ·H, where H is the number of bytes for which V halts. As with
//! [`Qfq`](super::Qfq), these bytes are the lead of a flow that leaves or takes a lower weight, and `w·(V − S)` of a
//! flow that has joined at V, or taken a higher weight, and starts at S, at most `U + δ + σ`. When the weight of a
//! backlogged flow changes, or a packet longer than `longest` arrives, its start is kept within `U − σ` and `U + δ +
//! σ`; its bound holds from then on.
//!
//! # Arithmetic
//! Like [`Qfq`](super::Qfq)'s, with the same limits: instants are 64-bit multiples of 2⁻⁴³ bytes per weight and wrap
//! around, and weights are rounded by a relative error below 2⁻¹⁹. A tick is 2¹⁶ of these units.
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

/// Per-flow state of [`Kps`].
#[derive(Clone, Copy, Debug)]
pub struct KpsFlow {
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
    stratum: u8,
    is_waiting: bool,
}

impl KpsFlow {
    /// `weight` and `longest` must be within their limits.
    fn configure(&mut self, weight: u32, longest: u32) {
        self.weight = weight;
        self.longest = longest.max(1);
        self.pace = pace(weight);
        self.stratum = (sigma(self.longest, self.pace) - LEAST_SIGMA) as u8;
    }

    /// The start of an idle flow, including wraps.
    #[inline]
    const fn whole_start(&self) -> u128 {
        (self.era as u128) << 64 | self.start as u128
    }
}

impl Kps {
    /// The maximum weight of a flow.
    pub const MOST_WEIGHT: Weight = Weight::new(MOST_WEIGHT).expect("not 0");
    /// The maximum sum of the weights of all flows.
    pub const MOST_SUM: u64 = MOST_SUM;
    /// The maximum of [`FlowConfig::longest`]. Longer packets are served, but count as this length.
    pub const MOST_LENGTH: Bytes = Bytes::new(MOST_LENGTH as u64);

    /// The maximum service that a flow may lack from now on, given its present slots, the present sum of weights, and
    /// the longest packet of any flow so far: `L_k + 6·w·δ + 2·φ·L + φ·H`, and this divided by φ. H is the number of
    /// bytes for which virtual time halts at present. H falls as they are sent, and rises as
    /// [`Qfq::worst_case`](super::Qfq::worst_case) says. The result is rounded up to whole bytes.
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

    /// An idle flow becomes backlogged.
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
        // Only after it has joined or changed: service moves no start that far.
        self.clock.hold((u128::from(state.weight) * own.saturating_sub(start)) as i128);
        state.start = start as u64;
        state.is_waiting = true;
        self.wheels.insert(flow, flows);
        self.wheels.catch_up(&mut self.clock);
    }

    /// A flow that is no longer backlogged and in no slot.
    #[inline]
    fn end(&self, state: &mut KpsFlow) {
        state.is_waiting = false;
        state.era = self.clock.era(state.start);
    }

    /// Changes a flow's weight or `longest`. Its lead or lag is kept in bytes, as far as the wheels reach.
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

    /// Handles a packet longer than any before in a flow.
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
        // The deadline is independent of the next packet's length.
        if flows[flow].is_waiting && flows.packets(flow) == 0 {
            self.wheels.remove(flow, flows);
            self.end(&mut flows[flow]);
            self.wheels.catch_up(&mut self.clock);
        }
    }
}
