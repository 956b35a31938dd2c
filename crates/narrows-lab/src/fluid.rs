//! The fluid reference system for packet schedulers: generalised processor sharing.
//!
//! Source: A. Parekh and R. Gallager, "A generalized processor sharing approach to flow control in integrated
//! services networks: the single-node case", IEEE/ACM Transactions on Networking 1(3), 1993. All backlogged flows are
//! served simultaneously, flow k at the rate `R·w_k/Σw_j`, with the sum over the flows that are backlogged in the
//! fluid system. Virtual time V advances by `dV = dW/Σw_j` with the work W done, so that a packet of L bytes is
//! served between its start tag `S = max(V, F of the packet before)` and its finish tag `F = S + L/w_k`. A flow
//! becomes empty when V reaches its last F.
//!
//! Units: work and time are both in *byte-times*, the time in which the link sends one byte: while the link is busy,
//! work done equals time passed. Virtual time is in bytes per unit of weight.
//!
//! Precision: everything is in fixed point with 56 fractional bits. Only quotients by a weight or a sum of weights
//! are rounded (down), once for each arrival and each call of [`Fluid::advance`]; between one flow's emptying and the
//! next nothing is rounded. After n such events the error of a flow's backlog is below `2·n·Σw·2⁻⁵⁶` bytes: below
//! 1/500 byte after a million events with weights that add up to 2²⁶.
//!
//! ```
//! # use narrows_lab::fluid::Fluid;
//! let mut fluid = Fluid::new([1, 3]);
//! fluid.arrive(0, 100);
//! fluid.arrive(1, 100);
//! fluid.advance(40); // 40 bytes of work: 10 for the first, 30 for the second
//! assert_eq!((fluid.served(0), fluid.served(1)), (10.0, 30.0));
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Fractional bits of virtual time and of time.
const FRACTION: u32 = 56;

/// Generalised processor sharing on a link that sends one byte in each unit of time.
#[derive(Clone, Debug)]
pub struct Fluid {
    flows: Vec<Flow>,
    /// The finish tag of the last packet of each flow that has ever been backlogged; outdated if the flow has a later
    /// one.
    finishes: BinaryHeap<Reverse<(u128, usize)>>,
    /// The sum of the weights of backlogged flows.
    sum: u128,
    virtual_time: u128,
    now: u128,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    weight: u128,
    /// The finish tag, in virtual time, of its last packet.
    finish: u128,
    backlogged: bool,
    /// Bytes.
    arrived: u64,
}

impl Fluid {
    /// A system of idle flows with these weights, each at least 1, at the instant 0.
    pub fn new(weights: impl IntoIterator<Item = u32>) -> Self {
        let flow = |weight| Flow { weight: u128::from(weight), finish: 0, backlogged: false, arrived: 0 };
        Self {
            flows: weights.into_iter().map(flow).collect(),
            finishes: BinaryHeap::new(),
            sum: 0,
            virtual_time: 0,
            now: 0,
        }
    }

    /// Serves until the instant `now`, which must not be earlier than in the last call.
    pub fn advance(&mut self, now: u64) {
        let now = u128::from(now) << FRACTION;
        while let Some(&Reverse((finish, number))) = self.finishes.peek() {
            let flow = &mut self.flows[number];
            if flow.finish != finish || !flow.backlogged {
                self.finishes.pop();
                continue;
            }
            // A flow with 2^40 bytes waiting at weight 1 beside others of 2^31 together: below 2^127.
            let span = (finish - self.virtual_time) * self.sum;
            if self.now + span > now {
                self.virtual_time += (now - self.now) / self.sum;
                break;
            }
            self.finishes.pop();
            flow.backlogged = false;
            self.sum -= flow.weight;
            self.virtual_time = finish;
            self.now += span;
        }
        self.now = self.now.max(now);
    }

    /// A packet of `length` bytes joins a flow, now.
    pub fn arrive(&mut self, flow: usize, length: u32) {
        let number = flow;
        let flow = &mut self.flows[number];
        if !flow.backlogged {
            flow.backlogged = true;
            flow.finish = self.virtual_time;
            self.sum += flow.weight;
        }
        flow.finish += (u128::from(length) << FRACTION) / flow.weight;
        flow.arrived += u64::from(length);
        self.finishes.push(Reverse((flow.finish, number)));
    }

    /// A flow's backlog in bytes, now.
    pub fn backlog(&self, flow: usize) -> f64 {
        let flow = &self.flows[flow];
        if !flow.backlogged {
            return 0.0;
        }
        let fixed = (flow.finish - self.virtual_time) * flow.weight;
        fixed as f64 / (1u64 << FRACTION) as f64
    }

    /// The bytes of a flow served until now.
    pub fn served(&self, flow: usize) -> f64 {
        self.flows[flow].arrived as f64 - self.backlog(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fluid system without virtual time: every backlogged flow drains at its share, and the next thing that happens
    /// is that the one with the least left for its share is empty.
    struct Slow {
        weights: Vec<f64>,
        backlogs: Vec<f64>,
        served: Vec<f64>,
        now: f64,
    }

    impl Slow {
        fn advance(&mut self, now: f64) {
            while self.now < now {
                let busy = |&flow: &usize| self.backlogs[flow] > 1e-7;
                let sum: f64 = (0..self.weights.len()).filter(busy).map(|flow| self.weights[flow]).sum();
                let left = |flow: usize| self.backlogs[flow] * sum / self.weights[flow];
                let Some(next) = (0..self.weights.len()).filter(busy).map(left).reduce(f64::min) else {
                    self.now = now;
                    return;
                };
                let span = next.min(now - self.now);
                let sharing: Vec<usize> = (0..self.weights.len()).filter(busy).collect();
                for flow in sharing {
                    let work = span * self.weights[flow] / sum;
                    self.backlogs[flow] -= work;
                    self.served[flow] += work;
                }
                self.now += span;
            }
        }
    }

    #[test]
    fn a_share_grows_when_another_flow_empties() {
        let mut fluid = Fluid::new([1, 1, 2]);
        for (flow, length) in [(0, 1000), (1, 100), (2, 1000)] {
            fluid.arrive(flow, length);
        }
        // Shares ¼, ¼, ½ until flow 1 is empty at 400; then ⅓ and ⅔ until flow 2 is empty at 1600.
        fluid.advance(400);
        assert_eq!([0, 1, 2].map(|flow| fluid.served(flow)), [100.0, 100.0, 200.0]);
        fluid.advance(700);
        assert!((fluid.served(0) - 200.0).abs() < 1e-9 && (fluid.served(2) - 400.0).abs() < 1e-9);
        fluid.advance(2099);
        assert!((fluid.served(0) - 999.0).abs() < 1e-9);
        fluid.advance(5000);
        assert_eq!([0, 1, 2].map(|flow| fluid.served(flow)), [1000.0, 100.0, 1000.0]);
        // Nothing is saved up while idle.
        fluid.arrive(1, 10);
        fluid.advance(5004);
        assert_eq!(fluid.served(1), 104.0);
    }

    #[test]
    fn it_agrees_with_a_model_that_knows_no_virtual_time() {
        let weights = [1u32, 2, 3, 50, 1000];
        let mut fluid = Fluid::new(weights);
        let mut slow = Slow {
            weights: weights.map(f64::from).to_vec(),
            backlogs: vec![0.0; 5],
            served: vec![0.0; 5],
            now: 0.0,
        };
        let stream = narrows_core::Stream::new(narrows_core::Seed(1), "fluid", "test");
        let mut now = 0;
        for index in 0..4000 {
            let mut draw = stream.nth(index);
            // About 90 % of what the link carries, in clumps.
            now += if draw.below(4) == 0 { draw.below(4200) } else { draw.below(100) };
            let (flow, length) = (draw.below(5) as usize, 40 + draw.below(1000) as u32);
            fluid.advance(now);
            slow.advance(now as f64);
            fluid.arrive(flow, length);
            slow.backlogs[flow] += f64::from(length);
            for flow in 0..5 {
                // The slow model's own floats are good for about this much.
                assert!((fluid.served(flow) - slow.served[flow]).abs() < 1e-4, "flow {flow} at {now}");
            }
        }
        assert!(now > 2_000_000);
    }
}
