//! The queues of flows against plain ones.

use std::collections::{BTreeMap, VecDeque};

use narrows_core::PacketRef;
use narrows_core::sched::{FlowId, Flows, Waits};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

proptest! {
    #[test]
    fn flows_are_as_many_plain_queues(steps in vec((0u8..12, any::<Index>(), 0u32..2_000), 1..500)) {
        let mut flows = Flows::default();
        let mut model: BTreeMap<FlowId, (u32, VecDeque<Waits>)> = BTreeMap::new();
        let mut free: Vec<FlowId> = Vec::new();
        for (number, (what, index, length)) in (0..).zip(steps) {
            let ids: Vec<FlowId> = model.keys().copied().collect();
            if what == 0 || ids.is_empty() {
                let flow = flows.add(number);
                prop_assert_eq!(flow, free.pop().unwrap_or(FlowId::new(model.len() as u32)));
                model.insert(flow, (number, VecDeque::new()));
                continue;
            }
            let flow = *index.get(&ids);
            let (_, queue) = model.get_mut(&flow).expect("picked");
            match what {
                1..7 => {
                    let waits = Waits { packet: PacketRef::from_number(number), length };
                    flows.push(flow, waits);
                    queue.push_back(waits);
                }
                7..9 => prop_assert_eq!(flows.pop(flow), queue.pop_front()),
                9..11 => prop_assert_eq!(flows.pop_last(flow), queue.pop_back()),
                _ if queue.is_empty() => {
                    flows.remove(flow);
                    model.remove(&flow);
                    free.push(flow);
                    prop_assert!(!flows.contains(flow));
                }
                _ => {}
            }
            let bytes = |queue: &VecDeque<Waits>| queue.iter().map(|w| u64::from(w.length)).sum::<u64>();
            for (&flow, (state, queue)) in &model {
                prop_assert!(flows.contains(flow));
                prop_assert_eq!(flows[flow], *state);
                prop_assert_eq!(flows.packets(flow) as usize, queue.len());
                prop_assert_eq!(flows.bytes(flow), bytes(queue));
                prop_assert_eq!(flows.first(flow), queue.front().copied());
                prop_assert_eq!(flows.state_and_last(flow), (&mut state.clone(), queue.back().copied()));
            }
            prop_assert_eq!(flows.ids().collect::<Vec<_>>(), model.keys().copied().collect::<Vec<_>>());
            prop_assert_eq!(flows.len(), model.len());
            prop_assert_eq!(flows.waiting() as usize, model.values().map(|(_, q)| q.len()).sum::<usize>());
        }
        for (_, state) in flows.states_mut() {
            *state += 1;
        }
        prop_assert!(model.iter().all(|(&flow, (state, _))| flows[flow] == state + 1));
    }
}

/// The places of packets that have gone are used again, whatever flow they were in.
#[test]
fn memory_is_bounded_by_what_waits() {
    let mut flows = Flows::default();
    let ids: Vec<FlowId> = (0..100).map(|_| flows.add(())).collect();
    let waits = Waits { packet: PacketRef::from_number(0), length: 100 };
    let mut high = 0;
    for round in 0..1_000 {
        let flow = ids[round * 37 % 100];
        (0..70).for_each(|_| flows.push(flow, waits));
        (0..70).for_each(|_| assert_eq!(flows.pop(flow), Some(waits)));
        if round == 0 {
            high = flows.memory();
        }
    }
    assert_eq!(flows.memory(), high);
}
