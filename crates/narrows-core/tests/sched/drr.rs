//! Deficit round robin against its paper, with turns that bring nothing spelled out.

use std::collections::VecDeque;

use narrows_core::sched::{
    ClassSettings, Drr, FlowConfig, FlowId, HpdClass, Refused, Served, Server, Weight,
};
use narrows_core::{Bytes, PacketRef, Time};
use proptest::collection::vec;
use proptest::prelude::*;

/// The algorithm of the paper, turn by turn.
#[derive(Default)]
struct Paper {
    /// Quantum, deficit and lengths of each flow.
    flows: Vec<(u64, u64, VecDeque<u32>)>,
    active: VecDeque<usize>,
    /// Whether the first active flow has had its quantum.
    granted: bool,
}

impl Paper {
    fn enqueue(&mut self, flow: usize, length: u32) {
        self.flows[flow].2.push_back(length);
        if self.flows[flow].2.len() == 1 {
            self.active.push_back(flow);
        }
    }

    fn remove_idle(&mut self, flow: usize) {
        if self.flows[flow].2.is_empty() && self.active.contains(&flow) {
            self.granted &= self.active[0] != flow;
            self.active.retain(|&other| other != flow);
            self.flows[flow].1 = 0;
        }
    }

    fn dequeue(&mut self) -> Option<usize> {
        loop {
            let flow = *self.active.front()?;
            let (quantum, deficit, lengths) = &mut self.flows[flow];
            if !self.granted {
                *deficit += *quantum;
                self.granted = true;
            }
            if u64::from(lengths[0]) <= *deficit {
                *deficit -= u64::from(lengths.pop_front()?);
                self.remove_idle(flow);
                return Some(flow);
            }
            self.active.rotate_left(1);
            self.granted = false;
        }
    }
}

proptest! {
    /// Quanta from a byte on, so that hundreds of turns may bring nothing.
    #[test]
    fn the_order_is_that_of_the_paper(
        weights in vec(1u32..6, 1..7),
        quantum in prop_oneof![1u64..10, 1u64..2_000],
        steps in vec((0usize..7, 0u8..9, 1u32..=1_500), 1..200),
    ) {
        let mut server = Server::new(Drr::new(Bytes::new(quantum)));
        let mut paper = Paper::default();
        for &weight in &weights {
            let config = FlowConfig { weight: Weight::new(weight).expect("not 0"), ..FlowConfig::default() };
            server.join(config).expect("any weight will do");
            paper.flows.push((quantum * u64::from(weight), 0, VecDeque::new()));
        }
        for (flow, what, length) in steps {
            let flow = flow % weights.len();
            let id = FlowId::new(flow as u32);
            match what {
                0..4 => {
                    server.enqueue(Time::ZERO, id, PacketRef::from_number(0), length);
                    paper.enqueue(flow, length);
                }
                4..7 => {
                    let served = match server.dequeue(Time::ZERO) {
                        Served::Packet(flow, _) => Some(flow.number() as usize),
                        _ => None,
                    };
                    prop_assert_eq!(served, paper.dequeue());
                }
                7 => {
                    server.drop_first(Time::ZERO, id);
                    paper.flows[flow].2.pop_front();
                    paper.remove_idle(flow);
                }
                _ => {
                    server.set_weight(Time::ZERO, id, Weight::new(length).expect("not 0")).expect("any weight will do");
                    paper.flows[flow].0 = quantum * u64::from(length);
                }
            }
        }
    }
}

/// Two packets of the one to one of the other; then the other way round, from its next turn on.
#[test]
fn a_flow_may_have_a_quantum_of_its_own() {
    let mut server = Server::new(Drr::new(Bytes::new(500)));
    let own = FlowConfig { quantum: Some(Bytes::new(1000)), ..FlowConfig::default() };
    let [a, b] = [own, FlowConfig::default()].map(|config| server.join(config).expect("any flow"));
    let order = |server: &mut Server<Drr>| -> Vec<u32> {
        for flow in [a, b] {
            (0..4).for_each(|n| server.enqueue(Time::ZERO, flow, PacketRef::from_number(n), 500));
        }
        std::iter::from_fn(|| match server.dequeue(Time::ZERO) {
            Served::Packet(flow, _) => Some(flow.number()),
            _ => None,
        })
        .collect()
    };
    assert_eq!(order(&mut server), [0, 0, 1, 0, 0, 1, 1, 1]);
    for (flow, quantum) in [(a, 500), (b, 1000)] {
        server.set_class(Time::ZERO, flow, ClassSettings::Quantum(Bytes::new(quantum))).expect("its own");
    }
    assert_eq!(order(&mut server), [0, 1, 1, 0, 1, 1, 0, 0]);
    let delay = ClassSettings::Delay(HpdClass::default());
    assert_eq!(server.set_class(Time::ZERO, a, delay), Err(Refused::NoSettings));
}

/// A quantum of one byte, a thousand flows, packets of four gigabytes: turn by turn this would take 2⁴² steps.
#[test]
fn rounds_that_bring_nothing_take_no_time() {
    let mut server = Server::new(Drr::new(Bytes::new(0)));
    for _ in 0..1000 {
        let flow = server.join(FlowConfig::default()).expect("any flow");
        (0..2).for_each(|n| server.enqueue(Time::ZERO, flow, PacketRef::from_number(n), u32::MAX));
    }
    let order: Vec<u32> = std::iter::from_fn(|| match server.dequeue(Time::ZERO) {
        Served::Packet(flow, _) => Some(flow.number()),
        _ => None,
    })
    .collect();
    assert_eq!(order, [(0..1000).collect::<Vec<_>>(), (0..1000).collect()].concat());
}
