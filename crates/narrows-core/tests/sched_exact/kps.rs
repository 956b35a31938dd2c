//! KPS by its definition: who has started, and whose deadline is the earliest, is worked out anew for every packet.

use narrows_core::sched::{FlowConfig, Kps};

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
    /// When it came to its slot: the last one is served first.
    came: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct SlowKps {
    flows: Vec<Flow>,
    now: Fraction,
    /// 1/Σw
    pace: Fraction,
    arrivals: u64,
}

impl SlowKps {
    pub(crate) fn new(flows: &[FlowConfig], rounding: Rounding) -> Self {
        let sum: u64 = flows.iter().map(|flow| u64::from(flow.weight.get())).sum();
        let flows = flows.iter().map(|flow| {
            let pace = rounding.of_weight(flow.weight.get());
            let most = pace * Fraction::whole(flow.longest);
            let exponent = (-43..43).find(|&e| Fraction::power_of_two(e) >= most).expect("within 2^±43");
            Flow { pace, exponent, start: Fraction::ZERO, packets: Vec::new(), came: 0 }
        });
        Self { flows: flows.collect(), now: Fraction::ZERO, pace: rounding.of_sum(sum), arrivals: 0 }
    }

    fn slot(&self, flow: usize) -> Fraction {
        Fraction::power_of_two(self.flows[flow].exponent - 2)
    }

    /// Down to an odd multiple of half a slot.
    fn rounded_start(&self, flow: usize) -> Fraction {
        let half = Fraction::power_of_two(self.flows[flow].exponent - 3);
        (self.flows[flow].start - half).floor_to(self.slot(flow)) + half
    }

    fn deadline(&self, flow: usize) -> Fraction {
        self.rounded_start(flow) + self.slot(flow) + Fraction::power_of_two(self.flows[flow].exponent)
    }

    fn waiting(&self) -> Vec<usize> {
        (0..self.flows.len()).filter(|&flow| !self.flows[flow].packets.is_empty()).collect()
    }

    fn started(&self) -> Vec<usize> {
        let mut started = self.waiting();
        started.retain(|&flow| self.rounded_start(flow) <= self.now);
        started
    }

    /// It comes to a slot of its stratum.
    fn insert(&mut self, flow: usize) {
        self.arrivals += 1;
        self.flows[flow].came = self.arrivals;
    }

    fn jump(&mut self) {
        if self.started().is_empty()
            && let Some(first) = self.waiting().into_iter().map(|flow| self.rounded_start(flow)).min()
        {
            self.now = first;
        }
    }
}

impl Model for SlowKps {
    fn enqueue(&mut self, number: usize, length: u32) {
        if self.flows[number].packets.is_empty() {
            let unit = Fraction::power_of_two(-43);
            let now = self.now.floor_to(unit);
            // Where the wheels are.
            let kept = self.waiting().into_iter().map(|flow| self.deadline(flow)).min();
            let kept = kept.map_or(now, |deadline| deadline.min(now));
            let last = kept + self.slot(number) + Fraction::power_of_two(self.flows[number].exponent) - unit;
            self.flows[number].start = self.flows[number].start.max(now).min(last);
            self.insert(number);
        }
        self.flows[number].packets.push(length);
        self.jump();
    }

    fn dequeue(&mut self) -> Option<(usize, u32)> {
        let key = |&flow: &usize| (self.deadline(flow), u64::MAX - self.flows[flow].came);
        let chosen = self.started().into_iter().min_by_key(key)?;
        let length = self.flows[chosen].packets.remove(0);
        let bytes = Fraction::whole(length);
        self.now = self.now + bytes * self.pace;
        self.flows[chosen].start = self.flows[chosen].start + bytes * self.flows[chosen].pace;
        self.insert(chosen);
        self.jump();
        Some((chosen, length))
    }

    fn drop_first(&mut self, number: usize) -> Option<u32> {
        let flow = &mut self.flows[number];
        let dropped = (!flow.packets.is_empty()).then(|| flow.packets.remove(0));
        self.jump();
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
        exhaustive(Kps::default, SlowKps::new(&flows, Rounding::None), &flows, lengths, steps);
    }
}

#[test]
fn every_short_sequence_gives_the_order_of_the_model_with_the_documented_rounding() {
    for (weights, lengths, steps) in
        [(&[(1, 3), (3, 3), (5, 3)][..], &[1, 3][..], 5), (&[(7, 9), (1, 2), (100, 1500)], &[1, 2], 5)]
    {
        let flows = flows(weights);
        exhaustive(Kps::default, SlowKps::new(&flows, Rounding::Documented), &flows, lengths, steps);
    }
}

#[test]
fn long_random_sequences_give_the_order_of_the_model() {
    for weights in [
        &[(1, 1500), (2, 1500), (4, 1500), (1, 64)][..],
        &[(1, 1 << 16), (1 << 20, 1 << 16), (77, 40), (1000, 9000), (3, 1), (3, 2)],
        &[(1, 1), (1, 1), (1, 1), (1, 1), (1 << 24, 1)],
        &[(5, 100), (5, 100), (5, 100), (5, 1500), (5, 1500), (6, 1500), (7, 1500)],
        // Here V comes to be ahead of deadlines by long packets, and flows begin anew while the wheels halt.
        &[(1, 1500), (1, 1500), (1, 1500), (1, 1500), (8, 1 << 16), (8, 1 << 16)],
        &[(1, 1 << 16), (8, 100), (8, 100), (4, 40), (8, 41), (1000, 64), (1, 1 << 16)],
    ] {
        let flows = flows(weights);
        for seed in 0..3 {
            random(Kps::default(), SlowKps::new(&flows, Rounding::Documented), &flows, seed, 1500);
        }
    }
}
