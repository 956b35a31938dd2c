//! The contract of a scheduler, for all of them, over any interleaving of what may happen, against a plain model.

use std::collections::{BTreeMap, VecDeque};

use narrows_core::sched::{FlowConfig, FlowId, Refused, Served, Taprio, Weight};
use narrows_core::{Duration, Time};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::kinds::{ALL, Kind, LONGEST, Subject};

#[derive(Clone, Debug)]
enum Step {
    Join { weight: u32, band: u32 },
    Leave(Index),
    SetWeight(Index, u32),
    Enqueue(Index, u32),
    Dequeue,
    DropFirst(Index),
    Wait(u64),
}

/// The packets of each flow, in order.
type Model = BTreeMap<FlowId, VecDeque<(u32, u32)>>;

struct Run {
    kind: Kind,
    subject: Box<dyn Subject>,
    model: Model,
    now: Time,
    packets: u32,
}

impl Run {
    fn new(kind: Kind) -> Self {
        Self { kind, subject: (kind.make)(), model: Model::new(), now: Time::ZERO, packets: 0 }
    }

    fn pick(&self, index: Index) -> Option<FlowId> {
        let flows: Vec<FlowId> = self.model.keys().copied().collect();
        (!flows.is_empty()).then(|| *index.get(&flows))
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Join { weight, band } => {
                let weight = Weight::new(weight).expect("not 0");
                let band = if self.kind.name == "taprio" { band % Taprio::BANDS } else { band };
                let config = FlowConfig { weight, band, longest: LONGEST, quantum: None };
                if self.kind.most.is_some_and(|most| self.model.len() == most as usize) {
                    let most = self.model.len() as u64;
                    assert_eq!(self.subject.join(config), Err(Refused::Flows { most }));
                    return;
                }
                let flow = self.subject.join(config).expect("in range");
                assert!(self.model.insert(flow, VecDeque::new()).is_none(), "the number was free");
            }
            Step::Leave(index) => {
                let Some(flow) = self.pick(index) else { return };
                let empty = self.model[&flow].is_empty();
                assert_eq!(self.subject.leave(flow), empty);
                if empty {
                    self.model.remove(&flow);
                    assert!(!self.subject.leave(flow), "it has left already");
                }
            }
            Step::SetWeight(index, weight) => {
                let Some(flow) = self.pick(index) else { return };
                let weight = Weight::new(weight).expect("not 0");
                let changed = self.subject.set_weight(self.now, flow, weight);
                assert_eq!(changed.is_ok(), self.kind.weighted, "{changed:?}");
            }
            Step::Enqueue(index, length) => {
                let Some(flow) = self.pick(index) else { return };
                self.subject.enqueue(self.now, flow, self.packets, length);
                self.model.get_mut(&flow).expect("picked").push_back((self.packets, length));
                self.packets += 1;
            }
            Step::Dequeue => {
                self.dequeue();
            }
            Step::DropFirst(index) => {
                let Some(flow) = self.pick(index) else { return };
                let dropped = self.subject.drop_first(self.now, flow);
                let first = self.model.get_mut(&flow).expect("picked").pop_front();
                assert_eq!(dropped.map(|waits| (waits.packet.number(), waits.length)), first);
            }
            Step::Wait(nanos) => self.now = self.now + Duration::from_nanos(nanos),
        }
    }

    /// Whether a packet was sent or given up; or else the time is that at which to ask again.
    fn dequeue(&mut self) -> bool {
        match self.subject.dequeue(self.now) {
            Served::Packet(flow, waits) | Served::GivenUp(flow, waits, _) => {
                let first = self.model.get_mut(&flow).expect("a flow that there is").pop_front();
                assert_eq!(Some((waits.packet.number(), waits.length)), first, "first in, first out");
                true
            }
            Served::NotBefore(at) => {
                assert!(self.kind.declines, "it is work-conserving");
                assert!(at > self.now, "not before now would be asked for ever");
                assert!(self.waiting() > 0, "there is something to wait for");
                self.now = at;
                false
            }
            Served::Empty => {
                assert_eq!(self.waiting(), 0, "no packet is forgotten");
                false
            }
        }
    }

    fn waiting(&self) -> usize {
        self.model.values().map(VecDeque::len).sum()
    }

    fn check(&self) {
        let (mut packets, mut bytes) = (0, 0);
        for (&flow, queue) in &self.model {
            let length: u64 = queue.iter().map(|&(_, length)| u64::from(length)).sum();
            let (count, in_flow, first) = self.subject.waiting(flow);
            assert_eq!((count as usize, in_flow), (queue.len(), length));
            assert_eq!(first.map(|waits| (waits.packet.number(), waits.length)), queue.front().copied());
            packets += queue.len() as u64;
            bytes += length;
        }
        assert_eq!(self.subject.backlog(), (packets, bytes));
    }

    /// Everything that waits comes out, within as many answers as a scheduler that declines may need.
    fn drain(&mut self) {
        for _ in 0..200 * (self.waiting() + 1) {
            self.dequeue();
            if self.waiting() == 0 {
                break;
            }
        }
        assert_eq!(self.waiting(), 0, "everything comes out");
        assert_eq!(self.subject.dequeue(self.now), Served::Empty);
        self.check();
    }
}

fn step() -> impl Strategy<Value = Step> {
    let weight = || prop_oneof![1u32..10, 1u32..1_000];
    let band = prop_oneof![0u32..4, 0u32..100_000];
    let length = prop_oneof![1u32..=LONGEST, Just(LONGEST), Just(0)];
    prop_oneof![
        3 => (weight(), band).prop_map(|(weight, band)| Step::Join { weight, band }),
        1 => any::<Index>().prop_map(Step::Leave),
        2 => (any::<Index>(), weight()).prop_map(|(flow, weight)| Step::SetWeight(flow, weight)),
        8 => (any::<Index>(), length).prop_map(|(flow, length)| Step::Enqueue(flow, length)),
        6 => Just(Step::Dequeue),
        2 => any::<Index>().prop_map(Step::DropFirst),
        1 => (0u64..1_000_000).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_scheduler_loses_makes_or_reorders_packets_of_a_flow(steps in vec(step(), 1..150)) {
        for kind in ALL {
            let mut run = Run::new(kind);
            for step in &steps {
                run.step(step);
                run.check();
            }
            run.drain();
        }
    }
}

/// A packet may be longer than what the flow announced, and as long as the numbers go.
#[test]
fn longer_packets_than_announced_are_served_all_the_same() {
    for kind in ALL {
        let mut run = Run::new(kind);
        for weight in [1, 1000] {
            run.step(&Step::Join { weight, band: 0 });
        }
        for length in [65_535, 1, u32::MAX, 40, 9_000] {
            for flow in [FlowId::new(0), FlowId::new(1)] {
                run.subject.enqueue(run.now, flow, run.packets, length);
                run.model.get_mut(&flow).expect("joined").push_back((run.packets, length));
                run.packets += 1;
            }
        }
        run.drain();
        println!("{}", kind.name);
    }
}
