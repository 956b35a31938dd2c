//! Against a plain, slow model: which flows there are at any instant, what they have counted, which packets are dropped.

use std::collections::{BTreeMap, VecDeque};

use narrows_core::classify::FlowMask;
use narrows_core::queue::{Bound, DropAt};
use narrows_core::sched::{Fifo, FlowConfig, FlowSet};
use narrows_core::{Bytes, DropReason, Duration, FlowKey, Tally, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::stand::{IDLE, Run, SOURCES, key, queue, source};

#[derive(Clone, Copy, Debug)]
struct SetPlan {
    has_mask: bool,
    bound: Bound,
    drop_at: DropAt,
    most: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(Duration),
    Packet { set: u32, source: u32, length: u32 },
    Send,
}

/// A flow by the definition: it is there from the first packet of its own on, until nothing has waited for long.
#[derive(Clone, Debug, Default)]
struct Flow {
    arrived: Tally,
    dropped: Tally,
    waits: VecDeque<(u32, u32)>,
    idle_since: Time,
}

/// By set and source; `u32::MAX` is the flow of those beyond the most.
#[derive(Default)]
struct Model {
    flows: BTreeMap<(u32, u32), Flow>,
    /// Packets in order of arrival, with their flows.
    order: VecDeque<(u32, (u32, u32))>,
    made: Vec<u64>,
    overflowed: Vec<u64>,
    dropped: Vec<(u32, DropReason)>,
}

const SHARED: u32 = u32::MAX;

impl Model {
    fn expire(&mut self, now: Time, sets: &[SetPlan]) {
        self.flows.retain(|&(set, _), flow| {
            let masked = sets[set as usize].has_mask;
            !masked || !flow.waits.is_empty() || now.since(flow.idle_since) < IDLE
        });
    }

    fn packet(&mut self, now: Time, sets: &[SetPlan], number: u32, key: &FlowKey, length: u32) {
        let Some(plan) = sets.get(key.mark as usize) else {
            return self.dropped.push((number, DropReason::NoClass));
        };
        self.expire(now, sets);
        let set = key.mark;
        let mut which = (set, if plan.has_mask { source(key) } else { 0 });
        if !self.flows.contains_key(&which) {
            let count = self.flows.keys().filter(|&&(of, source)| of == set && source != SHARED).count();
            if count as u32 >= plan.most {
                self.overflowed[set as usize] += 1;
                which.1 = SHARED;
            }
        }
        let made = &mut self.made[set as usize];
        let flow = self.flows.entry(which).or_insert_with(|| {
            *made += 1;
            Flow::default()
        });
        flow.arrived.add(length);
        let fits = |waits: &VecDeque<(u32, u32)>| match plan.bound {
            Bound::Packets(most) => (waits.len() as u64) < most,
            Bound::Bytes(most) => {
                waits.iter().map(|&(_, length)| u64::from(length)).sum::<u64>() + u64::from(length)
                    <= most.get()
            }
        };
        let alone = fits(&VecDeque::new());
        if plan.drop_at == DropAt::Head && alone {
            while !fits(&flow.waits) {
                let (first, length) = flow.waits.pop_front().expect("it waits");
                flow.dropped.add(length);
                self.dropped.push((first, DropReason::QueueFull));
                self.order.retain(|&(number, _)| number != first);
            }
        }
        if fits(&flow.waits) {
            flow.waits.push_back((number, length));
            self.order.push_back((number, which));
        } else {
            flow.dropped.add(length);
            self.dropped.push((number, DropReason::QueueFull));
            if flow.waits.is_empty() {
                flow.idle_since = now;
            }
        }
    }

    fn send(&mut self, now: Time) -> Option<u32> {
        let (number, which) = self.order.pop_front()?;
        let flow = self.flows.get_mut(&which).expect("it is there");
        assert_eq!(flow.waits.pop_front().expect("it waits").0, number);
        if flow.waits.is_empty() {
            flow.idle_since = now;
        }
        Some(number)
    }
}

fn sets() -> impl Strategy<Value = Vec<SetPlan>> {
    let bound = prop_oneof![
        (0..6u64).prop_map(Bound::Packets),
        (0..4_000u64).prop_map(|bytes| Bound::Bytes(Bytes::new(bytes)))
    ];
    let drop_at = prop_oneof![Just(DropAt::Tail), Just(DropAt::Head)];
    let set = (any::<bool>(), bound, drop_at, 1..6u32);
    let set = set.prop_map(|(has_mask, bound, drop_at, most)| SetPlan { has_mask, bound, drop_at, most });
    vec(set, 1..4)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Waits of just as long as a flow stays among them.
    let wait = prop_oneof![
        4 => (0..40_000_000u64).prop_map(Duration::from_nanos),
        1 => Just(IDLE),
        1 => Just(IDLE.saturating_sub(Duration::from_nanos(1))),
        1 => Just(IDLE + IDLE),
    ];
    let step = prop_oneof![
        2 => wait.prop_map(Step::Wait),
        // One in four goes to a set that may not be there.
        5 => (0..4u32, 0..9u32, prop_oneof![Just(1_000u32), 1..1_500u32])
            .prop_map(|(set, source, length)| Step::Packet { set, source, length }),
        4 => Just(Step::Send),
    ];
    vec(step, 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn flows_come_and_go_as_said(sets in sets(), steps in steps()) {
        let flow_sets = sets.iter().map(|plan| FlowSet {
            bound: plan.bound,
            drop_at: plan.drop_at,
            most: plan.most,
            ..FlowSet::new(9, if plan.has_mask { SOURCES } else { FlowMask::NONE }, FlowConfig::default())
        });
        let mut run = Run::new(queue(Fifo::default(), flow_sets.collect()));
        let mut model = Model { made: vec![0; sets.len()], overflowed: vec![0; sets.len()], ..Model::default() };
        for (set, _) in (0..).zip(&sets).filter(|(_, plan)| !plan.has_mask) {
            model.flows.insert((set, 0), Flow::default());
            model.made[set as usize] = 1;
        }
        for step in steps {
            match step {
                Step::Wait(span) => run.now = run.now + span,
                Step::Packet { set, source, length } => {
                    let key = key(set, source);
                    let packet = run.enqueue(key, length);
                    model.packet(run.now, &sets, packet.number(), &key, length);
                }
                Step::Send => {
                    let sent = run.send().map(|(packet, _)| packet.number());
                    prop_assert_eq!(sent, model.send(run.now));
                }
            }
            model.expire(run.now, &sets);
            let dropped: Vec<_> = run.dropped.iter().map(|&(packet, why)| (packet.number(), why)).collect();
            prop_assert_eq!(&dropped, &model.dropped);
            let mut seen: Vec<_> = run
                .queue
                .masked_flows(run.now)
                .into_iter()
                .map(|flow| {
                    let has_mask = sets[flow.set as usize].has_mask;
                    let source = flow.flow.map_or(SHARED, |flow| (flow.source & 0xff_ffff) as u32);
                    // A flow that is there to stay is never called idle.
                    prop_assert_eq!(flow.idle_since.is_some(), has_mask && flow.backlog.packets == 0);
                    Ok(((flow.set, source), flow.arrived, flow.dropped, flow.backlog.packets, flow.idle_since))
                })
                .collect::<Result<_, TestCaseError>>()?;
            seen.sort_by_key(|flow| flow.0);
            let expected: Vec<_> = model
                .flows
                .iter()
                .map(|(&which, flow)| {
                    let masked = sets[which.0 as usize].has_mask;
                    let idle = (masked && flow.waits.is_empty()).then_some(flow.idle_since);
                    (which, flow.arrived, flow.dropped, flow.waits.len() as u64, idle)
                })
                .collect();
            prop_assert_eq!(seen, expected);
            for (set, counts) in run.queue.flow_sets().into_iter().enumerate() {
                prop_assert_eq!(counts.number, 9);
                prop_assert_eq!((counts.made, counts.overflowed), (model.made[set], model.overflowed[set]));
            }
        }
    }
}
