//! Flows come and go, change their weights and lose packets, in any order: every packet comes out once and in the order of
//! its flow, no work waits while nothing is served, and from the last change on no flow lacks more than it is told.

use std::collections::VecDeque;

use narrows_core::sched::{FlowConfig, FlowId, Gfq, Kps, Qfq, Scheduler, Served, Server, Weight, WorstCase};
use narrows_core::{PacketRef, Time};
use proptest::prelude::*;

use crate::compare::Numbers;
use crate::wfi::Meter;

/// What a longer packet is charged as.
const MOST_LENGTH: u32 = 1 << 17;

#[derive(Clone, Copy, Debug)]
enum Step {
    Join(u32, u32),
    Leave(usize),
    Weight(usize, u32),
    Enqueue(usize, u32),
    /// A packet as long as those of the flow may be.
    EnqueueLongest(usize),
    Dequeue,
    DropFirst(usize),
    /// All that are idle.
    LeaveIdle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let weight = prop_oneof![
        3 => 1..=8_u32,
        1 => (0..=20_u32).prop_map(|shift| 1 << shift),
        1 => 1..=10_000_u32,
        1 => Just(1 << 24),
    ];
    let length = prop_oneof![4 => 1..=1500_u32, 1 => Just(1), 1 => Just(1 << 16), 1 => 1..=200_000_u32];
    let longest = prop_oneof![3 => Just(1500_u32), 1 => 1..=1500_u32, 1 => Just(1 << 17)];
    let step = prop_oneof![
        2 => (weight.clone(), longest).prop_map(|(weight, longest)| Step::Join(weight, longest)),
        1 => any::<usize>().prop_map(Step::Leave),
        2 => (any::<usize>(), weight).prop_map(|(flow, weight)| Step::Weight(flow, weight)),
        20 => (any::<usize>(), length).prop_map(|(flow, length)| Step::Enqueue(flow, length)),
        14 => Just(Step::Dequeue),
        2 => any::<usize>().prop_map(Step::DropFirst),
    ];
    prop::collection::vec(step, 1..300)
}

/// Light flows, long packets and short ones, now and then a heavy flow: bounds are narrow, and what flows have had when they
/// leave, or get when they join, is much beside them.
fn steps_that_count() -> impl Strategy<Value = Vec<Step>> {
    let weight = prop_oneof![12 => 1..=2_u32, 1 => Just(2048_u32)];
    let longest = prop_oneof![Just(1 << 16), Just(100_u32)];
    let join = (weight.clone(), longest).prop_map(|(weight, longest)| Step::Join(weight, longest));
    let step = prop_oneof![
        1 => join.clone(),
        1 => (any::<usize>(), weight).prop_map(|(flow, weight)| Step::Weight(flow, weight)),
        20 => any::<usize>().prop_map(Step::EnqueueLongest),
        22 => Just(Step::Dequeue),
    ];
    let steps = (prop::collection::vec(join, 10..40), prop::collection::vec(step, 1..150), any::<bool>());
    steps.prop_map(|(joins, steps, idle_leave)| {
        let last = idle_leave.then_some(Step::LeaveIdle);
        joins.into_iter().chain(steps).chain(last).collect()
    })
}

#[derive(Debug)]
struct Flow {
    id: FlowId,
    config: FlowConfig,
    /// The packets that should wait: numbers and lengths.
    packets: VecDeque<(u32, u32)>,
}

/// A scheduler, and what should wait in its flows.
struct Watched<S: Scheduler> {
    server: Server<S>,
    flows: Vec<Flow>,
    packets: u32,
}

impl<S: Scheduler> Watched<S> {
    fn take(&mut self, step: Step) {
        let count = self.flows.len();
        match step {
            Step::Join(weight, longest) => {
                let weight = Weight::new(weight).expect("not 0");
                let config = FlowConfig { weight, longest, ..FlowConfig::default() };
                let id = self.server.join(config).expect("within the limits");
                self.flows.push(Flow { id, config, packets: VecDeque::new() });
            }
            _ if count == 0 => {}
            Step::Leave(which) => {
                let flow = &self.flows[which % count];
                let is_empty = flow.packets.is_empty();
                assert_eq!(self.server.leave(flow.id), is_empty);
                if is_empty {
                    self.flows.swap_remove(which % count);
                }
            }
            Step::Weight(which, weight) => {
                let flow = &mut self.flows[which % count];
                flow.config.weight = Weight::new(weight).expect("not 0");
                self.server.set_weight(Time::ZERO, flow.id, flow.config.weight).expect("within the limits");
            }
            Step::Enqueue(which, length) => self.enqueue(which % count, length),
            Step::EnqueueLongest(which) => {
                self.enqueue(which % count, self.flows[which % count].config.longest);
            }
            Step::LeaveIdle => {
                for flow in self.flows.extract_if(.., |flow| flow.packets.is_empty()) {
                    assert!(self.server.leave(flow.id));
                }
            }
            Step::Dequeue => {
                self.dequeue();
            }
            Step::DropFirst(which) => {
                let flow = &mut self.flows[which % count];
                let found = self.server.drop_first(Time::ZERO, flow.id).map(|waits| waits.packet.number());
                assert_eq!(found, flow.packets.pop_front().map(|(number, _)| number));
            }
        }
    }

    fn enqueue(&mut self, which: usize, length: u32) {
        let flow = &mut self.flows[which];
        flow.packets.push_back((self.packets, length));
        self.server.enqueue(Time::ZERO, flow.id, PacketRef::from_number(self.packets), length);
        self.packets += 1;
    }

    /// Which flow, and the length.
    fn dequeue(&mut self) -> Option<(usize, u32)> {
        match self.server.dequeue(Time::ZERO) {
            Served::Packet(id, waits) => {
                let which = self.flows.iter().position(|flow| flow.id == id).expect("a flow that is here");
                let wanted = self.flows[which].packets.pop_front();
                assert_eq!(wanted, Some((waits.packet.number(), waits.length)), "first in, first out");
                Some((which, waits.length))
            }
            Served::Empty => {
                assert!(self.flows.iter().all(|flow| flow.packets.is_empty()), "work waits and is not done");
                None
            }
            other => panic!("a work-conserving scheduler said {other:?}"),
        }
    }

    /// From here on flows neither come nor go nor change. What each lacks is within what it is told at the beginning, and
    /// what that rises by when flows begin.
    fn lacks_no_more_than_told(mut self, worst_case: impl Fn(&S, &S::Flow) -> WorstCase, seed: u64) {
        let told = |watched: &Self, which: usize| {
            worst_case(watched.server.scheduler(), &watched.server.flows()[watched.flows[which].id])
        };
        let first: Vec<WorstCase> = (0..self.flows.len()).map(|which| told(&self, which)).collect();
        let mut meter = Meter::new(&self.flows.iter().map(|flow| flow.config).collect::<Vec<_>>());
        for (which, flow) in self.flows.iter().enumerate() {
            flow.packets.iter().for_each(|&(_, length)| meter.enqueue(which, length.min(MOST_LENGTH)));
        }
        let (mut numbers, mut rise) = (Numbers::new(seed), 0);
        let mut left = if self.flows.is_empty() { 0 } else { 200 };
        loop {
            if left > 0 && numbers.below(2) == 0 {
                left -= 1;
                let which = numbers.below(self.flows.len() as u64) as usize;
                let most = u64::from(self.flows[which].config.longest);
                let length = if numbers.below(2) == 0 { most } else { 1 + numbers.below(most) } as u32;
                let before = told(&self, which).work.get();
                self.enqueue(which, length);
                meter.enqueue(which, length);
                rise += told(&self, which).work.get().saturating_sub(before);
            } else if let Some((which, length)) = self.dequeue() {
                meter.dequeue(which, length.min(MOST_LENGTH));
            } else if left == 0 {
                break;
            }
        }
        let sum: f64 = self.flows.iter().map(|flow| f64::from(flow.config.weight.get())).sum();
        for (which, worst) in first.iter().enumerate() {
            let (bytes, work) = (meter.bytes(which), meter.work(which));
            let share = f64::from(self.flows[which].config.weight.get()) / sum;
            let most = worst.bytes.get() as f64 + share * rise as f64;
            assert!(bytes <= most, "flow {which}: B-WFI {bytes}, bound {most}");
            let most = (worst.work.get() + rise) as f64;
            assert!(work <= most, "flow {which}: T-WFI {work}, bound {most}");
        }
    }
}

fn keeps_all_and_its_bounds<S: Scheduler>(
    scheduler: S,
    worst_case: impl Fn(&S, &S::Flow) -> WorstCase,
    steps: Vec<Step>,
    seed: u64,
) {
    let mut watched = Watched { server: Server::new(scheduler), flows: Vec::new(), packets: 0 };
    steps.into_iter().for_each(|step| watched.take(step));
    watched.lacks_no_more_than_told(worst_case, seed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn qfq_keeps_all_and_its_bounds(steps in prop_oneof![steps(), steps_that_count()], seed in any::<u64>()) {
        keeps_all_and_its_bounds(Qfq::default(), Qfq::worst_case, steps, seed);
    }

    #[test]
    fn gfq_keeps_all_and_its_bounds(steps in prop_oneof![steps(), steps_that_count()], seed in any::<u64>()) {
        keeps_all_and_its_bounds(Gfq::default(), Gfq::worst_case, steps, seed);
    }

    #[test]
    fn kps_keeps_all_and_its_bounds(steps in prop_oneof![steps(), steps_that_count()], seed in any::<u64>()) {
        keeps_all_and_its_bounds(Kps::default(), Kps::worst_case, steps, seed);
    }
}
