//! Against the paper's formulas in exact rational arithmetic, the bound, and the edges of the arithmetic.

use super::*;
use crate::pool::PacketRef;
use crate::sched::{Served, Server};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cmp::Ordering;
use proptest::collection::vec;
use proptest::prelude::*;

/// A fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio(i128, i128);

impl Ratio {
    fn new(numerator: i128, denominator: i128) -> Self {
        let (mut a, mut b) = (numerator.abs(), denominator);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Self(numerator / a.max(1), denominator / a.max(1))
    }

    fn plus(self, other: Self) -> Self {
        Self::new(self.0 * other.1 + other.0 * self.1, self.1 * other.1)
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0 * other.1).cmp(&(other.0 * self.1))
    }
}

const NOTHING: Ratio = Ratio(0, 1);

/// WF2Q+ as the paper has it: no structure, no rounding. Looks at every flow each time.
struct Paper {
    now: Ratio,
    flows: Vec<PaperFlow>,
}

struct PaperFlow {
    weight: i128,
    start: Ratio,
    lengths: VecDeque<u32>,
}

impl PaperFlow {
    fn finish(&self) -> Ratio {
        self.start.plus(Ratio::new(self.lengths[0].into(), self.weight))
    }
}

impl Paper {
    fn new(weights: &[u32]) -> Self {
        let flow =
            |&weight: &u32| PaperFlow { weight: weight.into(), start: NOTHING, lengths: VecDeque::new() };
        Self { now: NOTHING, flows: weights.iter().map(flow).collect() }
    }

    fn advance(&mut self) {
        let backlogged = self.flows.iter().filter(|flow| !flow.lengths.is_empty());
        self.now = self.now.max(backlogged.map(|flow| flow.start).min().unwrap_or(self.now));
    }

    fn enqueue(&mut self, flow: usize, length: u32) {
        let state = &mut self.flows[flow];
        if state.lengths.is_empty() {
            state.start = state.start.max(self.now);
        }
        state.lengths.push_back(length);
        self.advance();
    }

    fn drop_first(&mut self, flow: usize) {
        self.flows[flow].lengths.pop_front();
        self.advance();
    }

    /// The flow with the least finish of those that are eligible, by at least a margin.
    fn choice(&self, margin: Ratio) -> Option<usize> {
        let backlogged = self.flows.iter().enumerate().filter(|(_, flow)| !flow.lengths.is_empty());
        let eligible = backlogged.filter(|(_, flow)| flow.start.plus(margin) <= self.now);
        eligible.min_by_key(|(_, flow)| flow.finish()).map(|(number, _)| number)
    }

    fn serve(&mut self, flow: usize) {
        let sum = self.flows.iter().map(|flow| flow.weight).sum();
        let state = &mut self.flows[flow];
        let length = state.lengths[0];
        state.start = state.finish();
        state.lengths.pop_front();
        self.now = self.now.plus(Ratio::new(length.into(), sum));
        self.advance();
    }
}

fn server(weights: &[u32], now: u64) -> Server<Wf2q> {
    let mut server = Server::new(Wf2q { now, ..Wf2q::default() });
    for &weight in weights {
        let weight = Weight::new(weight).unwrap();
        server.join(FlowConfig { weight, ..FlowConfig::default() }).unwrap();
    }
    server
}

fn enqueue(server: &mut Server<Wf2q>, flow: usize, length: u32) {
    server.enqueue(Time::ZERO, FlowId::new(flow as u32), PacketRef::from_number(0), length);
}

fn dequeue(server: &mut Server<Wf2q>) -> Option<(usize, u32)> {
    match server.dequeue(Time::ZERO) {
        Served::Packet(flow, waits) => Some((flow.number() as usize, waits.length)),
        _ => None,
    }
}

/// Every sequence of so many steps, each of which is a packet of one of two lengths for one of the flows, a service, or a
/// drop. The sums of weights are powers of two, so that the arithmetic is exact and ties are true ties.
fn exhaust(weights: &[u32], steps: u32, lengths: [u32; 2]) {
    let kinds = 3 * weights.len() + 1;
    for sequence in 0..kinds.pow(steps) {
        let mut server = server(weights, BACK);
        let mut paper = Paper::new(weights);
        let mut rest = sequence;
        // What waits in the end is served.
        let drain = core::iter::repeat_n(kinds - 1, steps as usize);
        let sequence = (0..steps).map(|_| {
            let step = rest % kinds;
            rest /= kinds;
            step
        });
        for step in sequence.chain(drain) {
            let flow = step / 3;
            if step == kinds - 1 {
                let expected = paper.choice(NOTHING);
                assert_eq!(dequeue(&mut server).map(|(flow, _)| flow), expected, "{weights:?} {lengths:?}");
                expected.into_iter().for_each(|flow| paper.serve(flow));
            } else if step % 3 < 2 {
                enqueue(&mut server, flow, lengths[step % 3]);
                paper.enqueue(flow, lengths[step % 3]);
            } else {
                server.drop_first(Time::ZERO, FlowId::new(flow as u32));
                paper.drop_first(flow);
            }
        }
    }
}

#[test]
fn in_small_states_the_order_is_that_of_the_paper_in_exact_arithmetic() {
    exhaust(&[1, 1], 6, [1, 2]);
    exhaust(&[1, 1], 5, [64, 65_535]);
    exhaust(&[4, 4], 5, [3, 2]);
    exhaust(&[1, 1, 2], 4, [1, 3]);
    exhaust(&[2, 4, 2], 4, [500, 1500]);
    exhaust(&[1, 2, 4, 1], 3, [2, 5]);
}

fn weights() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![small_weights(), vec(prop_oneof![Just(1u32), Just(1000), Just(Wf2q::MOST_WEIGHT)], 1..5)]
}

/// Of which the fractions stay small.
fn small_weights() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![vec(1u32..8, 1..7), vec(prop_oneof![Just(1u32), Just(12), Just(1000)], 1..5)]
}

fn length() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 40u32..1_501, 1 => Just(65_535u32), 1 => 1u32..10]
}

proptest! {
    /// Any weights: rounding may decide what is nearer than a few units, and nothing else.
    #[test]
    fn the_order_is_that_of_the_paper_but_for_rounding(
        weights in small_weights(),
        steps in vec((any::<prop::sample::Index>(), 0u8..8, length()), 1..300),
    ) {
        let mut server = server(&weights, BACK);
        let mut paper = Paper::new(&weights);
        // Each step may round V or a start down by less than a unit.
        let slack = Ratio::new(2 * steps.len() as i128, 1 << FRACTION);
        for (flow, kind, length) in steps {
            let flow = flow.index(weights.len());
            match kind {
                0..4 => {
                    enqueue(&mut server, flow, length);
                    paper.enqueue(flow, length);
                }
                4..7 => {
                    let Some((chosen, _)) = dequeue(&mut server) else {
                        prop_assert_eq!(paper.choice(NOTHING), None);
                        continue;
                    };
                    let state = &paper.flows[chosen];
                    prop_assert!(state.start <= paper.now.plus(slack));
                    if let Some(best) = paper.choice(slack) {
                        prop_assert!(state.finish() <= paper.flows[best].finish().plus(slack));
                    }
                    paper.serve(chosen);
                }
                _ => {
                    server.drop_first(Time::ZERO, FlowId::new(flow as u32));
                    paper.drop_first(flow);
                }
            }
        }
    }

    /// Virtual time that moves back in the middle of the run changes nothing.
    #[test]
    fn the_order_does_not_depend_on_where_virtual_time_is(
        weights in weights(),
        steps in vec((any::<prop::sample::Index>(), 0u8..9, length(), 1u32..100), 1..200),
        before in 0u64..(1 << 30),
    ) {
        let mut early = server(&weights, BACK);
        let mut late = server(&weights, LATE - before);
        for (flow, kind, length, weight) in steps {
            let flow = flow.index(weights.len());
            let id = FlowId::new(flow as u32);
            for server in [&mut early, &mut late] {
                match kind {
                    0..4 => enqueue(server, flow, length),
                    7 => {
 server.drop_first(Time::ZERO, id);
}
                    8 => server.set_weight(Time::ZERO, id, Weight::new(weight).unwrap()).unwrap(),
                    _ => {}
                }
            }
            if (4..7).contains(&kind) {
                prop_assert_eq!(dequeue(&mut early), dequeue(&mut late));
            }
        }
    }

    /// B-WFI. By what a backlogged flow lags behind its share of what is served, from any instant to the end of one of its
    /// packets: at most `L_i + (L − L_i)·φ_i / Σφ`, where L_i is its longest packet and L that of all. Up to the beginning
    /// of a packet, when the paper's fluid system may have served all of it but the link none, it is one such packet more,
    /// less what the flow can be ahead. The worst from any instant on is the greatest rise of the lag.
    #[test]
    fn no_backlogged_flow_lags_by_more_than_a_maximum_packet(
        weights in weights(),
        steps in vec((any::<prop::sample::Index>(), any::<bool>(), length()), 1..400),
    ) {
        let sum: i128 = weights.iter().map(|&weight| i128::from(weight)).sum();
        let mut server = server(&weights, BACK);
        let steps: Vec<_> = steps.iter().map(|&(at, more, length)| (at.index(weights.len()), more, length)).collect();
        let longest = |of: Option<usize>| {
            let lengths = steps.iter().filter(|step| step.1 && of.is_none_or(|flow| step.0 == flow));
            i128::from(lengths.map(|step| step.2).max().unwrap_or(0))
        };
        // For each flow the lag times the sum, and its least since the flow became backlogged.
        let mut lags = alloc::vec![(0i128, 0i128); weights.len()];
        for &(flow, more, length) in &steps {
            if more {
                if server.flows().packets(FlowId::new(flow as u32)) == 0 {
                    lags[flow] = (0, 0);
                }
                enqueue(&mut server, flow, length);
            } else if let Some((served, length)) = dequeue(&mut server) {
                for (flow, (lag, least)) in lags.iter_mut().enumerate() {
                    let (weight, own) = (i128::from(weights[flow]), longest(Some(flow)));
                    // Times the sum; rounding is worth a byte at most.
                    let bound = own * sum + (longest(None) - own) * weight + sum;
                    *lag += i128::from(length) * weight;
                    if flow == served {
                        *lag -= i128::from(length) * sum;
                        prop_assert!(*lag - *least <= bound, "{} {} {}", flow, lag, least);
                    } else if server.flows().packets(FlowId::new(flow as u32)) > 0 {
                        prop_assert!(*lag - *least <= bound + own * (sum - weight), "{} {} {}", flow, lag, least);
                    }
                    *least = (*least).min(*lag);
                }
            }
        }
    }
}

#[test]
fn the_limits_hold_and_beyond_them_flows_are_refused() {
    let refused = |found| Err(Refused::Weight { found, most: u64::from(Wf2q::MOST_WEIGHT) });
    let mut wf2q = Wf2q::default();
    let flow = |weight| FlowConfig { weight: Weight::new(weight).unwrap(), ..FlowConfig::default() };
    assert_eq!(wf2q.join(flow((1 << 24) + 1)).map(drop), refused((1 << 24) + 1));
    assert_eq!(wf2q.join(flow(u32::MAX)).map(drop), refused(u32::MAX.into()));
    assert_eq!(wf2q.sum, 0, "nothing has changed");

    // 100,000 flows, every other one with the greatest weight, with packets of 64 KiB. When each of the heavy ones has
    // sent one, V is not quite where their next ones start, and one of the light ones is served; the others come last.
    let weights: Vec<u32> = (0..100_000).map(|n| if n % 2 == 0 { Wf2q::MOST_WEIGHT } else { 1 }).collect();
    let mut server = server(&weights, BACK);
    (0..weights.len()).for_each(|flow| (0..2).for_each(|_| enqueue(&mut server, flow, 65_535)));
    let order: Vec<usize> = core::iter::from_fn(|| dequeue(&mut server)).map(|(flow, _)| flow).collect();
    assert_eq!(order.len(), 200_000);
    let light: Vec<usize> = (0..100_001).filter(|&at| order[at] % 2 == 1).collect();
    assert_eq!(light, [50_000]);
}

#[test]
fn a_flow_that_gets_another_weight_keeps_what_it_is_ahead_in_bytes() {
    // Flow 0 has had 4 packets at once, alone, of which its share is half: it is as far ahead as that makes it.
    let mut server = server(&[1, 1], BACK);
    (0..8).for_each(|_| enqueue(&mut server, 0, 1000));
    dequeue(&mut server);
    let wf2q = server.scheduler();
    let ahead = server.flows()[FlowId::new(0)].start - wf2q.now;
    server.set_weight(Time::ZERO, FlowId::new(0), Weight::new(4).unwrap()).unwrap();
    let after = server.flows()[FlowId::new(0)].start - server.scheduler().now;
    assert_eq!(after, ahead / 4);
}
