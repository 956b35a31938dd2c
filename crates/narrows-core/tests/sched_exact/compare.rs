//! A scheduler and a model of it, side by side.

use narrows_core::sched::{FlowConfig, FlowId, Scheduler, Served, Server};
use narrows_core::{PacketRef, Time};

/// A scheduler that serves flows by number and knows lengths only.
pub(crate) trait Model: Clone {
    /// Whether a flow's number matters, beside its weight and lengths.
    const GOES_BY_NUMBER: bool = false;

    fn enqueue(&mut self, flow: usize, length: u32);
    fn dequeue(&mut self) -> Option<(usize, u32)>;
    fn drop_first(&mut self, flow: usize) -> Option<u32>;
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    Enqueue(usize, u32),
    Dequeue,
}

pub(crate) fn server<S: Scheduler>(scheduler: S, flows: &[FlowConfig]) -> Server<S> {
    let mut server = Server::new(scheduler);
    for flow in flows {
        server.join(*flow).expect("within the limits");
    }
    server
}

pub(crate) fn enqueue<S: Scheduler>(server: &mut Server<S>, flow: usize, length: u32) {
    server.enqueue(Time::ZERO, FlowId::new(flow as u32), PacketRef::from_number(0), length);
}

pub(crate) fn dequeue<S: Scheduler>(server: &mut Server<S>) -> Option<(usize, u32)> {
    match server.dequeue(Time::ZERO) {
        Served::Packet(flow, waits) => Some((flow.number() as usize, waits.length)),
        Served::Empty => None,
        other => panic!("a work-conserving scheduler said {other:?}"),
    }
}

fn drop_first<S: Scheduler>(server: &mut Server<S>, flow: usize) -> Option<u32> {
    server.drop_first(Time::ZERO, FlowId::new(flow as u32)).map(|waits| waits.length)
}

/// All sequences of up to `steps` steps, each a packet to one of the flows with one of the lengths, or a packet taken
/// out. After each sequence everything is taken out: the model is asked for the whole order. Of sequences that differ only
/// in which of some flows that are alike is which, one is tried.
pub(crate) fn exhaustive<S: Scheduler, M: Model>(
    scheduler: impl Fn() -> S + Copy,
    model: M,
    flows: &[FlowConfig],
    lengths: &[u32],
    steps: usize,
) {
    let mut taken = Vec::new();
    let sequences = extend(scheduler, &model, flows, lengths, steps, &mut taken);
    assert!(sequences > 1000, "{sequences} sequences are not what was meant");
}

fn extend<S: Scheduler, M: Model>(
    scheduler: impl Fn() -> S + Copy,
    model: &M,
    flows: &[FlowConfig],
    lengths: &[u32],
    steps: usize,
    taken: &mut Vec<(Step, Option<(usize, u32)>)>,
) -> u64 {
    if steps == 0 {
        check(scheduler(), model.clone(), flows, taken);
        return 1;
    }
    let mut sequences = 0;
    let enqueues =
        (0..flows.len()).flat_map(|flow| lengths.iter().map(move |&length| Step::Enqueue(flow, length)));
    for step in enqueues.chain([Step::Dequeue]) {
        let mut model = model.clone();
        let served = match step {
            Step::Enqueue(flow, length) => {
                let is_new =
                    |flow| !taken.iter().any(|(step, _)| matches!(step, Step::Enqueue(of, _) if *of == flow));
                let has_new_twin = |flow: usize| {
                    (0..flow).any(|other| flows[other] == flows[flow] && is_new(other)) && is_new(flow)
                };
                if length > flows[flow].longest || (!M::GOES_BY_NUMBER && has_new_twin(flow)) {
                    continue;
                }
                model.enqueue(flow, length);
                None
            }
            Step::Dequeue => match model.dequeue() {
                None => continue,
                served => served,
            },
        };
        taken.push((step, served));
        sequences += extend(scheduler, &model, flows, lengths, steps - 1, taken);
        taken.pop();
    }
    sequences
}

/// Replays the steps with the scheduler, whose answers must be those of the model, and so to the last packet.
fn check<S: Scheduler, M: Model>(
    scheduler: S,
    mut model: M,
    flows: &[FlowConfig],
    steps: &[(Step, Option<(usize, u32)>)],
) {
    let mut server = server(scheduler, flows);
    for &(step, served) in steps {
        match step {
            Step::Enqueue(flow, length) => enqueue(&mut server, flow, length),
            Step::Dequeue => assert_eq!(dequeue(&mut server), served, "in {steps:?}"),
        }
    }
    loop {
        let (found, wanted) = (dequeue(&mut server), model.dequeue());
        assert_eq!(found, wanted, "after {steps:?}");
        if wanted.is_none() {
            return;
        }
    }
}

/// A sequence of numbers that look random.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A long sequence with spells of filling and draining, short and long packets, and packets that are dropped.
pub(crate) fn random<S: Scheduler, M: Model>(
    scheduler: S,
    mut model: M,
    flows: &[FlowConfig],
    seed: u64,
    steps: usize,
) {
    let mut server = server(scheduler, flows);
    let mut numbers = Numbers::new(seed);
    let mut filling = true;
    for at in 0..steps {
        if numbers.below(40) == 0 {
            filling = !filling;
        }
        let flow = numbers.below(flows.len() as u64) as usize;
        let kind = numbers.below(20);
        if kind == 0 {
            assert_eq!(drop_first(&mut server, flow), model.drop_first(flow), "step {at} of {seed}");
        } else if (kind < 14) == filling {
            let longest = u64::from(flows[flow].longest);
            let length = match numbers.below(3) {
                0 => longest,
                1 => 1,
                _ => 1 + numbers.below(longest),
            };
            enqueue(&mut server, flow, length as u32);
            model.enqueue(flow, length as u32);
        } else {
            assert_eq!(dequeue(&mut server), model.dequeue(), "step {at} of {seed}");
        }
    }
}
