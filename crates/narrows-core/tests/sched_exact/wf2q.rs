//! WF2Q+ by its equations, with rational numbers and a search for every packet.

use narrows_core::sched::{FlowConfig, Wf2q};

use crate::compare::{Model, exhaustive, random};
use crate::fraction::Fraction;
use crate::qfq::flows;

#[derive(Clone, Debug)]
struct Flow {
    /// 1/φ
    pace: Fraction,
    start: Fraction,
    packets: Vec<u32>,
}

/// Starts and finishes are exact. As documented, they are compared by whole units of 2⁻²⁴, of equal ones the flow of the
/// lowest number goes, and a flow that begins anew begins on a unit.
#[derive(Clone, Debug)]
struct SlowWf2q {
    flows: Vec<Flow>,
    now: Fraction,
    /// 1/Σφ
    pace: Fraction,
}

fn unit(instant: Fraction) -> Fraction {
    instant.floor_to(Fraction::power_of_two(-24))
}

impl SlowWf2q {
    fn new(flows: &[FlowConfig]) -> Self {
        let sum: u64 = flows.iter().map(|flow| u64::from(flow.weight.get())).sum();
        let flow = |flow: &FlowConfig| Flow {
            pace: Fraction::new(1, flow.weight.get().into()),
            start: Fraction::ZERO,
            packets: Vec::new(),
        };
        Self {
            flows: flows.iter().map(flow).collect(),
            now: Fraction::ZERO,
            pace: Fraction::new(1, sum.into()),
        }
    }

    fn catch_up(&mut self) {
        let waiting = self.flows.iter().filter(|flow| !flow.packets.is_empty());
        if let Some(first) = waiting.map(|flow| unit(flow.start)).min()
            && first > unit(self.now)
        {
            self.now = first;
        }
    }
}

impl Model for SlowWf2q {
    const GOES_BY_NUMBER: bool = true;

    fn enqueue(&mut self, number: usize, length: u32) {
        let now = unit(self.now);
        let flow = &mut self.flows[number];
        if flow.packets.is_empty() && unit(flow.start) < now {
            flow.start = now;
        }
        flow.packets.push(length);
        self.catch_up();
    }

    fn dequeue(&mut self) -> Option<(usize, u32)> {
        let eligible = (0..self.flows.len()).filter(|&number| {
            let flow = &self.flows[number];
            !flow.packets.is_empty() && unit(flow.start) <= unit(self.now)
        });
        let finish = |&number: &usize| {
            let flow = &self.flows[number];
            (unit(flow.start + Fraction::whole(flow.packets[0]) * flow.pace), number)
        };
        let number = eligible.min_by_key(finish)?;
        let flow = &mut self.flows[number];
        let length = flow.packets.remove(0);
        flow.start = flow.start + Fraction::whole(length) * flow.pace;
        self.now = self.now + Fraction::whole(length) * self.pace;
        self.catch_up();
        Some((number, length))
    }

    fn drop_first(&mut self, number: usize) -> Option<u32> {
        let flow = &mut self.flows[number];
        let dropped = (!flow.packets.is_empty()).then(|| flow.packets.remove(0));
        self.catch_up();
        dropped
    }
}

#[test]
fn every_short_sequence_gives_the_order_of_the_model() {
    for (weights, lengths, steps) in [
        (&[(1, 2), (1, 2)][..], &[1, 2][..], 6),
        (&[(2, 3), (1, 3)], &[1, 3], 6),
        (&[(1, 4), (1, 4), (2, 4)], &[1, 4], 5),
        (&[(5, 7), (3, 7), (7, 7)], &[2, 7], 5),
        (&[(8, 64), (4, 64), (2, 64), (2, 64)], &[64], 6),
    ] {
        let flows = flows(weights);
        exhaustive(Wf2q::default, SlowWf2q::new(&flows), &flows, lengths, steps);
    }
}

#[test]
fn long_random_sequences_give_the_order_of_the_model() {
    for weights in [
        &[(1, 1500), (2, 1500), (4, 1500), (1, 64)][..],
        &[(1, 1 << 16), (1 << 20, 1 << 16), (77, 40), (1000, 9000), (3, 1), (3, 2)],
        &[(5, 100), (5, 100), (5, 100), (6, 1500), (7, 1500)],
    ] {
        let flows = flows(weights);
        for seed in 0..3 {
            random(Wf2q::default(), SlowWf2q::new(&flows), &flows, seed, 1500);
        }
    }
}
