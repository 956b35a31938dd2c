//! Flows come and go, change their weights and lose packets, in any order: every packet comes out once and in the order of
//! its flow, no work waits while nothing is served, and no flow starves.

use std::collections::VecDeque;

use narrows_core::sched::{FlowConfig, FlowId, Gfq, Qfq, Scheduler, Served, Server, Weight, WorstCase};
use narrows_core::{PacketRef, Time};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Join(u32, u32),
    Leave(usize),
    Weight(usize, u32),
    Enqueue(usize, u32),
    Dequeue,
    DropFirst(usize),
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

/// A scheduler, and what should wait in its flows.
struct Watched<S: Scheduler> {
    server: Server<S>,
    waiting: Vec<(FlowId, VecDeque<u32>)>,
    packets: u32,
    /// The longest packet so far.
    longest: u32,
}

impl<S: Scheduler> Watched<S> {
    fn take(&mut self, step: Step) {
        let flows = self.waiting.len();
        match step {
            Step::Join(weight, longest) => {
                let weight = Weight::new(weight).expect("not 0");
                let config = FlowConfig { weight, longest, ..FlowConfig::default() };
                let flow = self.server.join(config).expect("within the limits");
                self.waiting.push((flow, VecDeque::new()));
            }
            _ if flows == 0 => {}
            Step::Leave(which) => {
                let (flow, packets) = &self.waiting[which % flows];
                let is_empty = packets.is_empty();
                assert_eq!(self.server.leave(*flow), is_empty);
                if is_empty {
                    self.waiting.swap_remove(which % flows);
                }
            }
            Step::Weight(which, weight) => {
                let weight = Weight::new(weight).expect("not 0");
                self.server
                    .set_weight(Time::ZERO, self.waiting[which % flows].0, weight)
                    .expect("within the limits");
            }
            Step::Enqueue(which, length) => {
                let (flow, packets) = &mut self.waiting[which % flows];
                packets.push_back(self.packets);
                self.server.enqueue(Time::ZERO, *flow, PacketRef::from_number(self.packets), length);
                self.packets += 1;
                self.longest = self.longest.max(length);
            }
            Step::Dequeue => {
                self.dequeue();
            }
            Step::DropFirst(which) => {
                let (flow, packets) = &mut self.waiting[which % flows];
                let found = self.server.drop_first(Time::ZERO, *flow).map(|waits| waits.packet.number());
                assert_eq!(found, packets.pop_front());
            }
        }
    }

    fn dequeue(&mut self) -> Option<(FlowId, u32)> {
        match self.server.dequeue(Time::ZERO) {
            Served::Packet(flow, waits) => {
                let (_, packets) =
                    self.waiting.iter_mut().find(|(of, _)| *of == flow).expect("a flow that is here");
                assert_eq!(packets.pop_front(), Some(waits.packet.number()), "first in, first out");
                Some((flow, waits.length))
            }
            Served::Empty => {
                assert!(
                    self.waiting.iter().all(|(_, packets)| packets.is_empty()),
                    "work waits and is not done"
                );
                None
            }
            other => panic!("a work-conserving scheduler said {other:?}"),
        }
    }
}

fn keeps_all_and_starves_none<S: Scheduler>(
    scheduler: S,
    worst_case: impl Fn(&S, &S::Flow) -> WorstCase,
    steps: Vec<Step>,
) {
    let server = Server::new(scheduler);
    let mut watched = Watched { server, waiting: Vec::new(), packets: 0, longest: 0 };
    let mut changes = 0;
    for step in steps {
        changes += u64::from(matches!(step, Step::Leave(_) | Step::Weight(..) | Step::DropFirst(_)));
        watched.take(step);
    }
    // From here on nothing changes, so that a flow's bound counts from some time on; what was left, changed or dropped
    // before can cost it a few packets more each time.
    let mut allowed: Vec<(FlowId, u64)> = Vec::new();
    for (flow, packets) in &watched.waiting {
        if !packets.is_empty() {
            let worst = worst_case(watched.server.scheduler(), &watched.server.flows()[*flow]);
            allowed.push((*flow, worst.work.get() + (6 * changes + 1) * u64::from(watched.longest)));
        }
    }
    let mut sent = 0;
    while let Some((flow, length)) = watched.dequeue() {
        sent += u64::from(length);
        allowed.retain(|&(of, _)| of != flow);
        assert!(allowed.iter().all(|&(_, most)| sent <= most + u64::from(length)), "a flow starves");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn qfq_keeps_all_and_starves_none(steps in steps()) {
        keeps_all_and_starves_none(Qfq::default(), Qfq::worst_case, steps);
    }

    #[test]
    fn gfq_keeps_all_and_starves_none(steps in steps()) {
        keeps_all_and_starves_none(Gfq::default(), Gfq::worst_case, steps);
    }
}
