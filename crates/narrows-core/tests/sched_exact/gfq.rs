//! GFQ by its definition: who is eligible, and whose finish is the least, is worked out anew for every packet.

use narrows_core::sched::{FlowConfig, Gfq};

use crate::compare::{Model, exhaustive, random};
use crate::fraction::Fraction;
use crate::qfq::{Rounding, flows};

#[derive(Clone, Debug)]
struct Flow {
    /// 1/w
    pace: Fraction,
    /// log₂ σ
    exponent: i32,
    start: Fraction,
    packets: Vec<u32>,
    is_eligible: bool,
    /// When it came to its slot: the last one is served first.
    came: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct SlowGfq {
    flows: Vec<Flow>,
    now: Fraction,
    /// 1/Σw
    pace: Fraction,
    arrivals: u64,
}

impl SlowGfq {
    pub(crate) fn new(flows: &[FlowConfig], rounding: Rounding) -> Self {
        let sum: u64 = flows.iter().map(|flow| u64::from(flow.weight.get())).sum();
        let flows = flows.iter().map(|flow| {
            let pace = rounding.of_weight(flow.weight.get());
            let most = pace * Fraction::whole(flow.longest);
            let exponent = (-43..43).find(|&e| Fraction::power_of_two(e) >= most).expect("within 2^±43");
            let start = Fraction::ZERO;
            Flow { pace, exponent, start, packets: Vec::new(), is_eligible: false, came: 0 }
        });
        Self { flows: flows.collect(), now: Fraction::ZERO, pace: rounding.of_sum(sum), arrivals: 0 }
    }

    fn slot(&self, flow: usize) -> Fraction {
        Fraction::power_of_two(self.flows[flow].exponent - 4)
    }

    fn rounded_start(&self, flow: usize) -> Fraction {
        self.flows[flow].start.floor_to(self.slot(flow))
    }

    /// Of its first packet, rounded up.
    fn finish(&self, flow: usize) -> Fraction {
        let Flow { start, pace, packets, .. } = &self.flows[flow];
        let finish = *start + Fraction::whole(packets[0]) * *pace;
        (finish - Fraction::power_of_two(-43)).floor_to(self.slot(flow)) + self.slot(flow)
    }

    fn waiting(&self, eligible: bool) -> Vec<usize> {
        let is_such =
            |&flow: &usize| !self.flows[flow].packets.is_empty() && self.flows[flow].is_eligible == eligible;
        (0..self.flows.len()).filter(is_such).collect()
    }

    /// It comes to a slot of its group.
    fn insert(&mut self, flow: usize) {
        self.arrivals += 1;
        self.flows[flow].came = self.arrivals;
        self.flows[flow].is_eligible = self.rounded_start(flow) <= self.now;
    }

    fn pass(&mut self) {
        let mut begun = self.waiting(false);
        begun.retain(|&flow| self.rounded_start(flow) <= self.now);
        begun.sort_by_key(|&flow| (self.rounded_start(flow), u64::MAX - self.flows[flow].came));
        begun.into_iter().for_each(|flow| self.insert(flow));
    }

    fn advance(&mut self) {
        self.pass();
        let coming = self.waiting(false);
        if self.waiting(true).is_empty()
            && let Some(first) = coming.into_iter().map(|flow| self.rounded_start(flow)).min()
        {
            self.now = first;
            self.pass();
        }
    }
}

impl Model for SlowGfq {
    fn enqueue(&mut self, number: usize, length: u32) {
        let was_idle = self.flows[number].packets.is_empty();
        if was_idle {
            let now = self.now.floor_to(Fraction::power_of_two(-43));
            if self.flows[number].start <= now {
                let mut group = self.waiting(true);
                group.retain(|&flow| self.flows[flow].exponent == self.flows[number].exponent);
                let limit = group.into_iter().map(|flow| self.finish(flow)).min();
                let start = limit.map_or(now, |limit| limit.min(now));
                self.flows[number].start = self.flows[number].start.max(start);
            }
        }
        self.flows[number].packets.push(length);
        if was_idle {
            self.insert(number);
        }
        self.advance();
    }

    fn dequeue(&mut self) -> Option<(usize, u32)> {
        let key =
            |&flow: &usize| (self.finish(flow), self.flows[flow].exponent, u64::MAX - self.flows[flow].came);
        let chosen = self.waiting(true).into_iter().min_by_key(key)?;
        let length = self.flows[chosen].packets.remove(0);
        let bytes = Fraction::whole(length);
        self.now = self.now + bytes * self.pace;
        // It comes to its next slot after those that have begun meanwhile.
        let rest = std::mem::take(&mut self.flows[chosen].packets);
        self.pass();
        self.flows[chosen].packets = rest;
        self.flows[chosen].start = self.flows[chosen].start + bytes * self.flows[chosen].pace;
        if !self.flows[chosen].packets.is_empty() {
            self.insert(chosen);
        }
        self.advance();
        Some((chosen, length))
    }

    fn drop_first(&mut self, number: usize) -> Option<u32> {
        let flow = &mut self.flows[number];
        let dropped = (!flow.packets.is_empty()).then(|| flow.packets.remove(0));
        if !self.flows[number].packets.is_empty() {
            self.insert(number);
        }
        self.advance();
        dropped
    }
}

#[test]
fn every_short_sequence_gives_the_order_of_the_model_without_rounding() {
    for (weights, lengths, steps) in [
        (&[(1, 2), (1, 2)][..], &[1, 2][..], 6),
        (&[(2, 3), (2, 8)], &[1, 3], 6),
        (&[(1, 4), (1, 4), (2, 4)], &[1, 4], 6),
        (&[(4, 5), (2, 5), (2, 40)], &[2, 5], 5),
        (&[(8, 64), (4, 64), (2, 64), (2, 64)], &[64], 6),
    ] {
        let flows = flows(weights);
        exhaustive(Gfq::default, SlowGfq::new(&flows, Rounding::None), &flows, lengths, steps);
    }
}

#[test]
fn every_short_sequence_gives_the_order_of_the_model_with_the_documented_rounding() {
    for (weights, lengths, steps) in
        [(&[(1, 3), (3, 3), (5, 3)][..], &[1, 3][..], 5), (&[(7, 9), (1, 2), (100, 1500)], &[1, 2], 5)]
    {
        let flows = flows(weights);
        exhaustive(Gfq::default, SlowGfq::new(&flows, Rounding::Documented), &flows, lengths, steps);
    }
}

#[test]
fn long_random_sequences_give_the_order_of_the_model() {
    for weights in [
        &[(1, 1500), (2, 1500), (4, 1500), (1, 64)][..],
        &[(1, 1 << 16), (1 << 20, 1 << 16), (77, 40), (1000, 9000), (3, 1), (3, 2)],
        &[(1, 1), (1, 1), (1, 1), (1, 1), (1 << 24, 1)],
        &[(5, 100), (5, 100), (5, 100), (5, 1500), (5, 1500), (6, 1500), (7, 1500)],
        // Here V comes to be ahead of a group by long packets of another, and flows have been beyond the group's first finish.
        &[(1, 1500), (1, 1500), (1, 1500), (1, 1500), (8, 1 << 16), (8, 1 << 16)],
    ] {
        let flows = flows(weights);
        for seed in 0..3 {
            random(Gfq::default(), SlowGfq::new(&flows, Rounding::Documented), &flows, seed, 1500);
        }
    }
}
