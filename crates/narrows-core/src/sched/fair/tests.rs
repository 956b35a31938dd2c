use super::*;
use crate::pool::PacketRef;
use crate::sched::{Served, Server};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use proptest::prelude::*;

/// RFC 8290, sections 4.1.2 and 4.2, over plain lists of flow numbers; or, where all are old from the start, Linux's sch_sfq.
#[derive(Default)]
struct Model {
    quantum: i64,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    flows: BTreeMap<u32, ModelFlow>,
    /// Everybody is old from the start.
    plain: bool,
}

#[derive(Default)]
struct ModelFlow {
    packets: VecDeque<(u32, u32)>,
    credits: i64,
    weight: i64,
}

impl Model {
    fn enqueue(&mut self, flow: u32, number: u32, length: u32) {
        let active = self.new.contains(&flow) || self.old.contains(&flow);
        let queue = self.flows.get_mut(&flow).unwrap();
        queue.packets.push_back((number, length));
        if !active {
            queue.credits = self.quantum * queue.weight;
            if self.plain { &mut self.old } else { &mut self.new }.push_back(flow);
        }
    }

    fn dequeue(&mut self) -> Option<(u32, u32)> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let flow = *list.front()?;
            let queue = self.flows.get_mut(&flow).unwrap();
            if queue.credits <= 0 {
                queue.credits += self.quantum * queue.weight;
                list.pop_front();
                self.old.push_back(flow);
                continue;
            }
            let Some((number, length)) = queue.packets.pop_front() else {
                list.pop_front();
                if from_new {
                    self.old.push_back(flow);
                }
                continue;
            };
            queue.credits -= i64::from(length);
            if self.plain && queue.packets.is_empty() {
                list.pop_front();
            }
            return Some((flow, number));
        }
    }

    fn leave(&mut self, flow: u32) {
        self.flows.remove(&flow);
        self.new.retain(|&other| other != flow);
        self.old.retain(|&other| other != flow);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Enqueue(usize, u32),
    Dequeue,
    Drop(usize),
    Leave(usize),
    Join(u32),
    Weight(usize, u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0usize..8, 1u32..4000).prop_map(|(flow, length)| Step::Enqueue(flow, length)),
        8 => Just(Step::Dequeue),
        2 => (0usize..8).prop_map(Step::Drop),
        1 => (0usize..8).prop_map(Step::Leave),
        1 => (1u32..5).prop_map(Step::Join),
        1 => (0usize..8, 1u32..5).prop_map(|(flow, weight)| Step::Weight(flow, weight)),
    ]
}

proptest! {
    /// The same packet at each dequeue, whatever comes and goes between, and whether it is asked twice.
    #[test]
    fn it_serves_in_the_order_of_the_rfc(
        steps in proptest::collection::vec(step(), 1..400),
        quantum in 1u32..3000,
        plain in any::<bool>(),
    ) {
        let bytes = Bytes::new(quantum.into());
        let mut server = Server::new(if plain { Fair::round_robin(bytes) } else { Fair::new(bytes) });
        let mut model = Model { quantum: quantum.into(), plain, ..Model::default() };
        let mut flows: Vec<FlowId> = Vec::new();
        let now = Time::ZERO;
        for (number, step) in (0..).zip(steps.iter().chain(core::iter::repeat_n(&Step::Dequeue, 400))) {
            let nth = |n: usize| flows.get(n % flows.len().max(1)).copied();
            match *step {
                Step::Join(weight) => {
                    let weight = Weight::new(weight).unwrap();
                    let flow = server.join(FlowConfig { weight, ..FlowConfig::default() }).unwrap();
                    flows.push(flow);
                    let queue = ModelFlow { weight: weight.get().into(), ..ModelFlow::default() };
                    model.flows.insert(flow.number(), queue);
                }
                Step::Enqueue(n, length) => if let Some(flow) = nth(n) {
                    server.enqueue(now, flow, PacketRef::from_number(number), length);
                    model.enqueue(flow.number(), number, length);
                },
                Step::Dequeue => {
                    let (scheduler, flows) = server.parts();
                    let first = scheduler.select(now, flows);
                    prop_assert_eq!(first, scheduler.select(now, flows));
                    let served = match server.dequeue(now) {
                        Served::Packet(flow, waits) => Some((flow.number(), waits.packet.number())),
                        other => { prop_assert_eq!(other, Served::Empty); None }
                    };
                    prop_assert_eq!(served, model.dequeue());
                }
                Step::Drop(n) => if let Some(flow) = nth(n) {
                    let dropped = server.drop_first(now, flow).map(|waits| waits.packet.number());
                    let queue = model.flows.get_mut(&flow.number()).unwrap();
                    prop_assert_eq!(dropped, queue.packets.pop_front().map(|(number, _)| number));
                    if plain && queue.packets.is_empty() {
                        model.old.retain(|&other| other != flow.number());
                    }
                },
                Step::Leave(n) => if let Some(flow) = nth(n) && server.leave(flow) {
                    flows.retain(|&other| other != flow);
                    model.leave(flow.number());
                },
                Step::Weight(n, weight) => if let Some(flow) = nth(n) {
                    server.set_weight(now, flow, Weight::new(weight).unwrap()).unwrap();
                    model.flows.get_mut(&flow.number()).unwrap().weight = weight.into();
                },
            }
        }
    }

    /// The bound at the top of the file, over every interval of a run in which all flows are backlogged.
    #[test]
    fn backlogged_flows_get_their_shares(
        flows in proptest::collection::vec((1u32..6, 1u32..3000), 2..5),
        quantum in 300u32..3000,
        seed in any::<u32>(),
    ) {
        let mut server = Server::new(Fair::new(Bytes::new(quantum.into())));
        let mut state = u64::from(seed);
        for &(weight, longest) in &flows {
            let weight = Weight::new(weight).unwrap();
            let flow = server.join(FlowConfig { weight, ..FlowConfig::default() }).unwrap();
            for _ in 0..400 {
                state = crate::random::mix(state);
                server.enqueue(Time::ZERO, flow, PacketRef::from_number(0), 1 + (state % u64::from(longest)) as u32);
            }
        }
        // The lead of each flow over each other, in turns: its extent over time bounds what any interval sees.
        let turn = |flow: usize| f64::from(quantum) * f64::from(flows[flow].0);
        let mut sent: Vec<f64> = flows.iter().map(|_| 0.0).collect();
        let pairs: Vec<_> = (0..flows.len()).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
        let mut extents: Vec<(f64, f64)> = pairs.iter().map(|_| (0.0, 0.0)).collect();
        while server.flows().ids().all(|flow| server.flows().packets(flow) > 1) {
            let Served::Packet(flow, waits) = server.dequeue(Time::ZERO) else { unreachable!() };
            sent[flow.number() as usize] += f64::from(waits.length);
            for (&(i, j), extent) in pairs.iter().zip(&mut extents) {
                let lead = sent[i] / turn(i) - sent[j] / turn(j);
                *extent = (extent.0.min(lead), extent.1.max(lead));
            }
        }
        for (&(i, j), &(least, most)) in pairs.iter().zip(&extents) {
            let bound = 1.0 + f64::from(flows[i].1) / turn(i) + f64::from(flows[j].1) / turn(j);
            prop_assert!(most - least < bound, "{} and {}: {} against {}", i, j, most - least, bound);
        }
    }
}

/// A flow that sends less than a quantum at a time goes before those that are backlogged, and one that pretends to begin
/// again and again does not keep them from sending.
#[test]
fn new_flows_go_first_but_only_once_a_round() {
    let mut server = Server::new(Fair::new(Bytes::new(1000)));
    let mut join = || server.join(FlowConfig::default()).unwrap();
    let (bulk, sparse) = (join(), join());
    (0..100).for_each(|_| server.enqueue(Time::ZERO, bulk, PacketRef::from_number(0), 1000));
    let mut order = Vec::new();
    for _ in 0..20 {
        if server.flows().packets(sparse) == 0 {
            server.enqueue(Time::ZERO, sparse, PacketRef::from_number(1), 100);
        }
        let Served::Packet(flow, _) = server.dequeue(Time::ZERO) else { panic!("packets wait") };
        order.push(flow == sparse);
    }
    // Ten packets of 100 bytes make a quantum, which is one packet of the other.
    assert_eq!(order[..3], [false, true, true], "{order:?}");
    assert_eq!(order.iter().filter(|&&sparse| !sparse).count(), 2, "{order:?}");
}

#[test]
fn in_plain_turns_a_flow_that_had_sent_all_begins_anew() {
    let mut server = Server::new(Fair::round_robin(Bytes::new(1500)));
    let [one, other] = [(); 2].map(|()| server.join(FlowConfig::default()).unwrap());
    let mut number = 0;
    let mut enqueue = |server: &mut Server<Fair>, flow| {
        server.enqueue(Time::ZERO, flow, PacketRef::from_number(number), 1000);
        number += 1;
    };
    enqueue(&mut server, one);
    assert!(matches!(server.dequeue(Time::ZERO), Served::Packet(flow, _) if flow == one));
    // It has credits left, but is behind who came first.
    enqueue(&mut server, other);
    enqueue(&mut server, one);
    assert!(matches!(server.dequeue(Time::ZERO), Served::Packet(flow, _) if flow == other));
    assert!(matches!(server.dequeue(Time::ZERO), Served::Packet(flow, _) if flow == one));
}

#[test]
fn a_flow_is_one_cache_line() {
    assert!(size_of::<FairFlow>() <= 40);
    let mut server = Server::new(Fair::new(Bytes::new(1514)));
    (0..64).for_each(|_| _ = server.join(FlowConfig::default()).unwrap());
    // Room for a few more that may come.
    assert!(server.flows().memory() <= 72 * 64, "{}", server.flows().memory());
}
