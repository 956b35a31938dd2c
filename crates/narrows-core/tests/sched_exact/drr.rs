//! DRR as the paper has it: turn after turn, with nothing taken together.

use std::collections::VecDeque;

use narrows_core::Bytes;
use narrows_core::sched::{Drr, FlowConfig};

use crate::compare::{Model, exhaustive, random};
use crate::qfq::flows;

#[derive(Clone, Debug, Default)]
struct Flow {
    quantum: u64,
    deficit: u64,
    packets: VecDeque<u32>,
}

#[derive(Clone, Debug)]
struct SlowDrr {
    flows: Vec<Flow>,
    active: VecDeque<usize>,
    /// Whether the first of these has got its quantum for this turn.
    granted: bool,
}

impl SlowDrr {
    fn new(flows: &[FlowConfig], base: u64) -> Self {
        let flow =
            |flow: &FlowConfig| Flow { quantum: base * u64::from(flow.weight.get()), ..Flow::default() };
        Self { flows: flows.iter().map(flow).collect(), active: VecDeque::new(), granted: false }
    }

    fn deactivate(&mut self, number: usize) {
        if self.active.front() == Some(&number) {
            self.granted = false;
        }
        self.active.retain(|&of| of != number);
        self.flows[number].deficit = 0;
    }
}

impl Model for SlowDrr {
    fn enqueue(&mut self, number: usize, length: u32) {
        if self.flows[number].packets.is_empty() {
            self.active.push_back(number);
        }
        self.flows[number].packets.push_back(length);
    }

    fn dequeue(&mut self) -> Option<(usize, u32)> {
        loop {
            let number = *self.active.front()?;
            let flow = &mut self.flows[number];
            if !self.granted {
                flow.deficit += flow.quantum;
                self.granted = true;
            }
            let first = flow.packets[0];
            if u64::from(first) <= flow.deficit {
                flow.deficit -= u64::from(first);
                flow.packets.pop_front();
                if flow.packets.is_empty() {
                    self.deactivate(number);
                }
                return Some((number, first));
            }
            self.active.rotate_left(1);
            self.granted = false;
        }
    }

    fn drop_first(&mut self, number: usize) -> Option<u32> {
        let dropped = self.flows[number].packets.pop_front();
        if dropped.is_some() && self.flows[number].packets.is_empty() {
            self.deactivate(number);
        }
        dropped
    }
}

#[test]
fn every_short_sequence_gives_the_order_of_the_model() {
    for base in [1, 3, 10] {
        for (weights, lengths, steps) in [
            (&[(1, 9), (2, 9)][..], &[2, 9][..], 6),
            (&[(1, 9), (1, 9), (3, 9)], &[1, 9], 5),
            (&[(1, 64), (7, 64), (2, 64), (2, 64)], &[64], 6),
        ] {
            let flows = flows(weights);
            exhaustive(|| Drr::new(Bytes::new(base)), SlowDrr::new(&flows, base), &flows, lengths, steps);
        }
    }
}

#[test]
fn long_random_sequences_give_the_order_of_the_model() {
    for base in [1, 100, 1500] {
        let flows = flows(&[(1, 1500), (2, 1500), (4, 1500), (1, 64), (1000, 9000), (3, 1)]);
        for seed in 0..3 {
            random(Drr::new(Bytes::new(base)), SlowDrr::new(&flows, base), &flows, seed, 1500);
        }
    }
}
