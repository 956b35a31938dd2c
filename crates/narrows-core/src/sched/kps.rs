//! KPS
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
