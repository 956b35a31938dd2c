//! When, how often and how late the engine is polled changes nothing: neither what becomes of packets nor which flows there
//! are and what they have counted.

use std::sync::Arc;

use narrows_core::aqm::{Codel, CodelConfig, Red, RedConfig, Thresholds};
use narrows_core::classify::FlowMask;
use narrows_core::model::Independent;
use narrows_core::queue::{Bound, ClassCounters, DropAt, Queue};
use narrows_core::sched::{
    Drr, Fair, Fifo, FlowConfig, FlowSet, FlowSetCounts, Gfq, Kps, MaskedFlow, PolicyPerFlow, Priority, Qfq,
    Weight, Wf2q,
};
use narrows_core::service::ConstantRate;
use narrows_core::{
    Bytes, Change, Duration, Engine, FlowKey, Loss, PacketId, Probability, Rate, Time, Verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::shares::{network, packet};
use crate::stand::{IDLE, SOURCES, key, queue};

#[derive(Clone, Copy, Debug)]
struct Plan {
    scheduler: u8,
    weights: [u32; 3],
    bound: u64,
    at_head: bool,
    most: u32,
    policy: u8,
    loses: bool,
}

#[derive(Clone, Copy, Debug)]
enum Input {
    Packet {
        set: u32,
        source: u32,
        length: u32,
    },
    Weight {
        set: usize,
        weight: u32,
    },
    Rate(u64),
    /// The same queue anew, with what waits in it.
    Queue,
}

impl Plan {
    fn policy(&self) -> Option<PolicyPerFlow> {
        match self.policy {
            0 => None,
            1 => {
                let config = CodelConfig {
                    target: Duration::from_millis(2),
                    interval: Duration::from_millis(20),
                    ..CodelConfig::default()
                };
                let config = Arc::new(config);
                Some(PolicyPerFlow::new(move || Box::new(Codel::new(Arc::clone(&config)))))
            }
            _ => {
                let thresholds = Thresholds::Packets { min: 1, max: 4 };
                let config = Arc::new(RedConfig { thresholds, weight: 0.2, ..RedConfig::default() });
                Some(PolicyPerFlow::new(move || Box::new(Red::new(Arc::clone(&config)))))
            }
        }
    }

    fn queue(&self) -> Box<dyn Queue> {
        let set = |(number, mask, weight): (u32, FlowMask, u32)| FlowSet {
            bound: Bound::Packets(self.bound),
            drop_at: if self.at_head { DropAt::Head } else { DropAt::Tail },
            policy: self.policy(),
            loss: self
                .loses
                .then(|| Loss::of(Independent(Probability::from_ratio(1, 10).expect("a probability")))),
            most: self.most,
            ..FlowSet::new(
                number,
                mask,
                FlowConfig {
                    weight: Weight::new(weight).expect("not 0"),
                    band: number,
                    ..FlowConfig::default()
                },
            )
        };
        let low = FlowMask { source_v4: 3, queue: true, ..FlowMask::NONE };
        let [a, b, c] = self.weights;
        let sets = [(1, FlowMask::NONE, a), (2, SOURCES, b), (3, low, c)].map(set).into();
        match self.scheduler {
            0 => Box::new(queue(Wf2q::default(), sets)),
            1 => Box::new(queue(Qfq::default(), sets)),
            2 => Box::new(queue(Drr::new(Bytes::new(1500)), sets)),
            3 => Box::new(queue(Priority::default(), sets)),
            4 => Box::new(queue(Gfq::default(), sets)),
            5 => Box::new(queue(Kps::default(), sets)),
            6 => Box::new(queue(Fair::new(Bytes::new(1500)), sets)),
            _ => Box::new(queue(Fifo::default(), sets)),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Outcome {
    events: Vec<(Time, PacketId, Verdict, Duration, FlowKey)>,
    flows: Vec<MaskedFlow>,
    sets: Vec<FlowSetCounts>,
    classes: Vec<ClassCounters>,
    inside: u64,
}

/// How the engine is polled before an input.
#[derive(Clone, Copy, Debug)]
enum Poll {
    Not,
    /// At each instant at which something happens.
    Exactly,
    /// At the input, for so many events.
    Late(usize),
}

fn run(plan: &Plan, inputs: &[(Duration, Input)], polls: &[Poll]) -> Outcome {
    let config = network(Rate::from_bits_per_second(1_000_000), plan.queue());
    let mut engine = Engine::<FlowKey>::new(config).expect("names are unique");
    let (port, link) =
        (engine.port("in").expect("it was configured"), engine.link("link").expect("it was configured"));
    let mut events = Vec::new();
    let mut poll = |engine: &mut Engine<FlowKey>, at: Time, most: usize| {
        for _ in 0..most {
            let Some(event) = engine.poll(at) else { return };
            events.push((event.at, event.id, event.verdict, event.queued, event.key));
        }
    };
    let mut now = Time::ZERO;
    for (&(gap, input), how) in inputs.iter().zip(polls.iter().cycle()) {
        now = now + gap;
        match *how {
            Poll::Not => {}
            Poll::Exactly => {
                while let Some(at) = engine.next_event().filter(|&at| at <= now) {
                    poll(&mut engine, at, usize::MAX);
                }
            }
            Poll::Late(most) => poll(&mut engine, now, most),
        }
        match input {
            Input::Packet { set, source, length } => {
                engine.hand_in(now, port, packet(key(set, source), length));
            }
            // These know no weights.
            Input::Weight { .. } if matches!(plan.scheduler, 3 | 7) => {}
            Input::Weight { set, weight } => {
                let weight = Weight::new(weight).expect("not 0");
                engine.change(now, link, Change::Weight { class: set, weight });
            }
            Input::Rate(rate) => {
                let service = Box::new(ConstantRate(Rate::from_bits_per_second(rate)));
                engine.change(now, link, Change::Service(service));
            }
            Input::Queue => engine.change(now, link, Change::Queue(plan.queue())),
        }
    }
    // Some flows are expired by then, others are not.
    let end = now + IDLE + Duration::from_millis(40);
    poll(&mut engine, end, usize::MAX);
    let (inside, view) = (engine.inside(), engine.view(link));
    let classes = view.classes().to_vec();
    Outcome { flows: view.masked_flows(end), sets: view.flow_sets(), classes, inside, events }
}

fn inputs() -> impl Strategy<Value = Vec<(Duration, Input)>> {
    let gap = prop_oneof![
        10 => (0..12_000_000u64).prop_map(Duration::from_nanos),
        4 => Just(Duration::ZERO),
        1 => Just(IDLE),
        1 => (0..300_000_000u64).prop_map(Duration::from_nanos),
    ];
    let length = prop_oneof![Just(1_000u32), 40..1_500u32];
    let packet =
        (0..4u32, 0..12u32, length).prop_map(|(set, source, length)| Input::Packet { set, source, length });
    let input = prop_oneof![
        30 => packet,
        1 => (0..3usize, 1..50u32).prop_map(|(set, weight)| Input::Weight { set, weight }),
        1 => prop_oneof![Just(0u64), 100_000..4_000_000u64].prop_map(Input::Rate),
        1 => Just(Input::Queue),
    ];
    vec((gap, input), 1..120)
}

fn plans() -> impl Strategy<Value = Plan> {
    let weights = [1..30u32, 1..30u32, 1..30u32];
    let parts = (0..8u8, weights, 1..8u64, any::<bool>(), 1..9u32, 0..3u8, any::<bool>());
    parts.prop_map(|(scheduler, weights, bound, at_head, most, policy, loses)| Plan {
        scheduler,
        weights,
        bound,
        at_head,
        most,
        policy,
        loses,
    })
}

fn polls() -> impl Strategy<Value = Vec<Poll>> {
    vec(prop_oneof![Just(Poll::Not), Just(Poll::Exactly), (0..4usize).prop_map(Poll::Late)], 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_pattern_of_polls_gives_the_same(plan in plans(), inputs in inputs(), polls in polls()) {
        let exact = run(&plan, &inputs, &[Poll::Exactly]);
        prop_assert_eq!(&run(&plan, &inputs, &[Poll::Not]), &exact);
        prop_assert_eq!(&run(&plan, &inputs, &polls), &exact);
        // Everything that came is accounted for.
        let packets = inputs.iter().filter(|(_, input)| matches!(input, Input::Packet { .. })).count();
        prop_assert_eq!(exact.events.len() as u64 + exact.inside, packets as u64);
    }
}
