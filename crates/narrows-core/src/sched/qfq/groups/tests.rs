//! Whatever is done to it, the sets are what their definitions say, and every packet comes out once and in order.

extern crate std;

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::pool::PacketRef;
use crate::sched::qfq::Qfq;
use crate::sched::{FlowConfig, Refused, Scheduler, Selection, Served, Server, Weight};
use crate::time::Time;
use crate::units::Bytes;

#[derive(Clone, Copy, Debug)]
enum Step {
    Join(u32, u32),
    Leave(usize),
    Weight(usize, u32),
    Enqueue(usize, u32),
    Dequeue,
    DropFirst(usize),
    /// So many from a flow at once, as a queue inside a class drops them.
    DropSome(usize, u32),
    /// The packet that goes is not as long as the one that was announced.
    DequeueOther(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let weight = prop_oneof![3 => 1..=8_u32, 1 => Just(1 << 24), 1 => (0..=20_u32).prop_map(|shift| 1 << shift), 1 => 1..=10_000_u32];
    let length = prop_oneof![3 => 1..=1500_u32, 1 => Just(1500), 1 => Just(1), 1 => Just(1 << 16), 1 => 1..=200_000_u32];
    let longest = prop_oneof![3 => Just(1500_u32), 1 => 1..=1500_u32, 1 => Just(1 << 17)];
    let step = prop_oneof![
        2 => (weight.clone(), longest).prop_map(|(weight, longest)| Step::Join(weight, longest)),
        1 => any::<usize>().prop_map(Step::Leave),
        2 => (any::<usize>(), weight).prop_map(|(flow, weight)| Step::Weight(flow, weight)),
        20 => (any::<usize>(), length.clone()).prop_map(|(flow, length)| Step::Enqueue(flow, length)),
        14 => Just(Step::Dequeue),
        2 => any::<usize>().prop_map(Step::DropFirst),
        1 => (any::<usize>(), 1..4_u32).prop_map(|(flow, packets)| Step::DropSome(flow, packets)),
        1 => length.prop_map(Step::DequeueOther),
    ];
    prop::collection::vec(step, 1..300)
}

/// A scheduler, and what should wait in its flows.
struct Watched {
    server: Server<Qfq>,
    waiting: Vec<(FlowId, VecDeque<u32>)>,
    packets: u32,
    /// The most that one packet has ever moved the clock by.
    most_moved: u64,
}

impl Watched {
    fn new() -> Self {
        Self { server: Server::new(Qfq::default()), waiting: Vec::new(), packets: 0, most_moved: 0 }
    }

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
            }
            Step::Dequeue => self.dequeue(None),
            Step::DequeueOther(length) => self.dequeue(Some(length)),
            Step::DropFirst(which) => {
                let (flow, packets) = &mut self.waiting[which % flows];
                let found = self.server.drop_first(Time::ZERO, *flow).map(|waits| waits.packet.number());
                assert_eq!(found, packets.pop_front());
            }
            Step::DropSome(which, some) => {
                let (flow, packets) = &mut self.waiting[which % flows];
                packets.drain(..packets.len().min(some as usize));
                let (scheduler, of) = self.server.parts();
                for _ in 0..some {
                    of.pop(*flow);
                }
                scheduler.head_dropped(Time::ZERO, *flow, of);
            }
        }
        self.most_moved = self.most_moved.max(self.server.scheduler().clock.stride());
        self.check();
    }

    fn dequeue(&mut self, length: Option<u32>) {
        let (scheduler, flows) = self.server.parts();
        let selected = scheduler.select(Time::ZERO, flows);
        let Selection::Flow(flow) = selected else {
            assert_eq!(selected, Selection::Empty);
            return assert!(
                self.waiting.iter().all(|(_, packets)| packets.is_empty()),
                "work waits and is not done"
            );
        };
        let waits = flows.pop(flow).expect("a flow that is chosen has a packet");
        scheduler.sent(Time::ZERO, flow, length.unwrap_or(waits.length), flows);
        let (_, packets) = self.waiting.iter_mut().find(|(of, _)| *of == flow).expect("a flow that is here");
        assert_eq!(packets.pop_front(), Some(waits.packet.number()), "first in, first out");
    }

    /// Everything anew from the starts of the flows that wait.
    fn check(&self) {
        let (qfq, flows) = (self.server.scheduler(), self.server.flows());
        let (groups, now) = (&qfq.groups, qfq.clock.now());
        let mut lists = vec![vec![Vec::new(); SLOTS as usize]; 64];
        for (flow, packets) in &self.waiting {
            let state = flows[*flow];
            assert_eq!(state.is_waiting, !packets.is_empty());
            if state.is_waiting {
                let index = u32::from(state.group);
                lists[index as usize][slot(state.start, index) as usize].push(*flow);
            }
        }
        // Relative to now, so that they compare as numbers.
        let relative = |instant: u64| i128::from(instant.wrapping_sub(now) as i64);
        let width = |index: usize| 1_i128 << shift(index as u32);
        let mut extents = vec![None; 64];
        for (index, slots) in lists.iter().enumerate() {
            let group = &groups.groups[index];
            for (slot, flows_of_slot) in slots.iter().enumerate() {
                assert_eq!(group.full >> slot & 1 == 1, !flows_of_slot.is_empty());
                let mut listed = Vec::new();
                let mut number = group.slots[slot];
                while number != NONE {
                    listed.push(FlowId::new(number));
                    number = flows[FlowId::new(number)].next;
                }
                listed.sort();
                let mut wanted = flows_of_slot.clone();
                wanted.sort();
                assert_eq!(listed, wanted, "the list of slot {slot} of group {index}");
            }
            let starts =
                slots.iter().flatten().map(|&flow| relative(round_down(flows[flow].start, index as u32)));
            let starts: Vec<i128> = starts.collect();
            let Some(&first) = starts.iter().min() else { continue };
            assert_eq!(relative(group.start), first);
            let boundary = relative(round_down(now, index as u32));
            for start in starts {
                assert!(start - first <= 4 * width(index), "the ring of group {index} is too short");
                assert!(start <= boundary + 2 * width(index), "a start beyond the third boundary");
            }
            let behind = -(first + 3 * width(index));
            assert!(behind <= i128::from(self.most_moved), "group {index} is {behind} behind its finish");
            extents[index] = Some((first, first + 3 * width(index)));
        }
        let eligible = |index: usize| extents[index].is_some_and(|(start, _)| start <= 0);
        let is_in = |set: u64, index: usize| set >> index & 1 == 1;
        for index in 0..64 {
            let Some((start, finish)) = extents[index] else {
                let sets = groups.eligible | groups.later | groups.blocked | groups.far;
                assert!(!is_in(sets, index));
                continue;
            };
            let blocked = (index + 1..64).any(|above| eligible(above) && extents[above].unwrap().1 < finish);
            assert_eq!(is_in(groups.eligible, index), eligible(index), "group {index}");
            assert_eq!(is_in(groups.later, index), !eligible(index), "group {index}");
            assert_eq!(is_in(groups.blocked, index), blocked, "group {index}");
            assert_eq!(is_in(groups.far, index), start > width(index));
            for above in (index + 1..64).filter(|&above| eligible(above)) {
                for &flow in lists[index].iter().flatten() {
                    let finish = relative(round_down(flows[flow].start, index as u32)) + 3 * width(index);
                    assert!(
                        finish <= extents[above].unwrap().1 + 2 * width(index),
                        "{index} could block later"
                    );
                }
            }
        }
        assert!(groups.ready() != 0 || groups.is_idle(), "packets wait and none is eligible");
        assert_eq!(
            qfq.clock.sum(),
            self.waiting.iter().map(|(flow, _)| u64::from(flows[*flow].weight)).sum::<u64>()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn sets_are_what_they_should_be_and_packets_come_out_once_and_in_order(steps in steps()) {
        let mut watched = Watched::new();
        for step in steps {
            watched.take(step);
        }
        // All of what waits comes out, and none is passed over for longer than its bound allows.
        let qfq = watched.server.scheduler();
        let mut allowed: Vec<(FlowId, u64)> = Vec::new();
        for (flow, packets) in &watched.waiting {
            if !packets.is_empty() {
                let worst = qfq.worst_case(&watched.server.flows()[*flow]);
                allowed.push((*flow, worst.work.get()));
            }
        }
        let mut sent = 0;
        while let Served::Packet(flow, waits) = watched.server.dequeue(Time::ZERO) {
            sent += u64::from(waits.length.min(1 << 17));
            let (_, packets) = watched.waiting.iter_mut().find(|(of, _)| *of == flow).expect("a flow that is here");
            prop_assert_eq!(packets.pop_front(), Some(waits.packet.number()));
            allowed.retain(|&(of, _)| of != flow);
            prop_assert!(allowed.iter().all(|&(_, most)| sent <= most), "a flow starves");
            watched.check();
        }
        prop_assert!(watched.waiting.iter().all(|(_, packets)| packets.is_empty()));
    }
}

#[test]
fn flows_beyond_the_limits_are_refused_and_change_nothing() {
    let mut server = Server::new(Qfq::default());
    let flow = |weight, longest| FlowConfig {
        weight: Weight::new(weight).unwrap(),
        longest,
        ..FlowConfig::default()
    };
    let most = Qfq::MOST_WEIGHT.get();
    let found = u64::from(most) + 1;
    assert_eq!(server.join(flow(most + 1, 1500)), Err(Refused::Weight { found, most: most.into() }));
    let longest = Qfq::MOST_LENGTH.get();
    let refused = Refused::Longest { found: longest + 1, most: longest };
    assert_eq!(server.join(flow(1, longest as u32 + 1)), Err(refused));
    let last =
        (0..Qfq::MOST_SUM / u64::from(most)).map(|_| server.join(flow(most, 1500)).unwrap()).last().unwrap();
    let refused = Refused::Sum { found: Qfq::MOST_SUM + 1, most: Qfq::MOST_SUM };
    assert_eq!(server.join(flow(1, 1500)), Err(refused));
    assert_eq!(server.set_weight(Time::ZERO, last, Weight::new(most - 1).unwrap()), Ok(()));
    assert!(server.join(flow(1, 1500)).is_ok());
    let refused = server.set_weight(Time::ZERO, last, Weight::new(most).unwrap());
    assert_eq!(refused, Err(Refused::Sum { found: Qfq::MOST_SUM + 1, most: Qfq::MOST_SUM }));
    assert_eq!(server.scheduler().clock.sum(), Qfq::MOST_SUM);
}

#[test]
fn a_start_of_long_ago_is_stale_however_often_the_clock_has_wrapped() {
    let mut server = Server::new(Qfq::default());
    let old = server.join(FlowConfig::default()).unwrap();
    let other = server.join(FlowConfig::default()).unwrap();
    let packet = PacketRef::from_number(0);
    server.enqueue(Time::ZERO, old, packet, 1500);
    server.dequeue(Time::ZERO);
    let start = server.flows()[old].start;
    // Two flows of weight 1: a wrap in 2^22 bytes. Stops where the old start looks as if it lay just ahead.
    let looks_ahead = |server: &Server<Qfq>| is_after(start, server.scheduler().clock.now());
    for _ in 0..200_000 {
        server.enqueue(Time::ZERO, other, packet, 1500);
        server.dequeue(Time::ZERO);
        if server.scheduler().clock.present() >> 64 >= 3 && looks_ahead(&server) {
            break;
        }
    }
    assert!(looks_ahead(&server) && server.scheduler().clock.present() >> 64 >= 3);
    server.enqueue(Time::ZERO, old, packet, 1500);
    assert_eq!(
        server.flows()[old].start,
        server.scheduler().clock.now(),
        "it begins now, not at its old start"
    );
}

#[test]
fn the_bound_is_the_formula() {
    let mut server = Server::new(Qfq::default());
    let flow = |weight, longest| FlowConfig {
        weight: Weight::new(weight).unwrap(),
        longest,
        ..FlowConfig::default()
    };
    let small = server.join(flow(2, 1000)).unwrap();
    server.join(flow(6, 1500)).unwrap();
    // L/w = 500, σ = 512 per weight, of 8: 4096 bytes of all flows; φ = 1/4; L = 1500.
    let worst = server.scheduler().worst_case(&server.flows()[small]);
    assert_eq!(worst.work, Bytes::new(3 * 4096 + 2 * 1500));
    assert_eq!(worst.bytes, Bytes::new(3 * 1024 + 750));
}

#[test]
fn a_flow_takes_one_cache_line_with_its_queue_and_a_group_too() {
    assert!(size_of::<QfqFlow>() <= 40);
    assert_eq!(size_of::<Group>(), 64);
}
