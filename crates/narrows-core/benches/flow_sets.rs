//! What a packet costs in a queue of flow sets, by how many flows a mask has made: `cargo bench -p narrows-core --bench
//! flow_sets`.
//!
//! Each packet comes and one goes, beside two that wait in each flow. Below each scheduler's row is what it costs by itself,
//! without packets' contents. The machine may be shared and noisy, so that cases take turns, and medians over rounds are
//! shown, with ratios to a set without a mask.

use std::time::Instant;

use narrows_core::classify::FlowMask;
use narrows_core::queue::{Bound, Dequeue, Queue, Stand};
use narrows_core::sched::{Drr, FlowConfig, FlowSet, FlowSets, Qfq, Scheduler, Served, Server, Wf2q};
use narrows_core::{Bytes, Duration, FlowKey, PacketRef, Protocol, Seed, Time};

const ROUNDS: usize = 15;
const PACKETS: u64 = 50_000;
const WAITING: u32 = 2;

trait Run {
    fn packets(&mut self, packets: u64);
}

struct Masked {
    stand: Stand,
    queue: Box<dyn Queue>,
    now: Time,
    /// Whether each packet is of a flow that was not there before.
    comes_and_goes: bool,
    numbers: u64,
}

impl Masked {
    /// Without flows there is no mask.
    fn new<S: Scheduler + 'static>(scheduler: S, flows: u32, comes_and_goes: bool) -> Self {
        // Of those that come and go there are so many because that is how long they stay.
        let idle = if comes_and_goes { Duration::from_micros(flows.into()) } else { Duration::from_secs(1) };
        let mask = if flows == 0 { 0 } else { u32::MAX };
        let mut queue = FlowSets::new(scheduler, idle, Seed(1), "bench");
        let set = FlowSet::new(1, FlowMask { source_v4: mask, ..FlowMask::NONE }, FlowConfig::default());
        let set = FlowSet { bound: Bound::Packets(u64::MAX), most: u32::MAX, ..set };
        queue.add_set(set).expect("the scheduler takes it");
        let (stand, now) = (Stand::new(Seed(1)), Time::ZERO);
        let mut run = Self { stand, queue: Box::new(queue), now, comes_and_goes, numbers: 1 };
        let sources = if comes_and_goes { 1 } else { flows.max(1) };
        for n in 0..sources * WAITING {
            let length = length(&mut run.numbers);
            let packet = run.stand.insert(Time::ZERO, key(n % sources), length);
            run.queue.enqueue(Time::ZERO, packet, &mut run.stand.context());
        }
        // As many as will be there at a time, and all memory touched.
        run.packets(u64::from(flows) * 2);
        run
    }
}

impl Run for Masked {
    fn packets(&mut self, packets: u64) {
        for _ in 0..packets {
            self.now = self.now + Duration::from_micros(1);
            let answer = self.queue.dequeue(self.now, &mut self.stand.context());
            let Dequeue::Packet(packet) = answer else { panic!("packets wait in every flow") };
            let length = length(&mut self.numbers);
            let key = match self.comes_and_goes {
                true => key(self.now.nanos() as u32 / 1_000),
                false => self.stand.pool().get(packet).key,
            };
            self.stand.renew(packet, self.now, key, length);
            self.queue.enqueue(self.now, packet, &mut self.stand.context());
        }
    }
}

/// A scheduler and nothing around it.
struct Alone<S: Scheduler> {
    server: Server<S>,
    numbers: u64,
}

impl<S: Scheduler> Alone<S> {
    fn new(scheduler: S, flows: u32) -> Self {
        let mut alone = Self { server: Server::new(scheduler), numbers: 1 };
        for _ in 0..flows {
            let flow = alone.server.join(FlowConfig::default()).expect("the scheduler takes it");
            for packet in 0..WAITING {
                let length = length(&mut alone.numbers);
                alone.server.enqueue(Time::ZERO, flow, PacketRef::from_number(packet), length);
            }
        }
        alone
    }
}

impl<S: Scheduler> Run for Alone<S> {
    fn packets(&mut self, packets: u64) {
        for _ in 0..packets {
            let served = self.server.dequeue(Time::ZERO);
            let Served::Packet(flow, waits) = served else { panic!("packets wait in every flow") };
            self.server.enqueue(Time::ZERO, flow, waits.packet, length(&mut self.numbers));
        }
    }
}

/// Lengths that scatter the order of service.
fn length(numbers: &mut u64) -> u32 {
    *numbers = numbers.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    100 + (*numbers >> 40) as u32 % 1_400
}

/// A packet of one of 2²⁴ sources.
fn key(source: u32) -> FlowKey {
    let mut address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0];
    address[13..].copy_from_slice(&source.to_be_bytes()[1..]);
    FlowKey { source: address, network: Protocol::Ipv4, ..FlowKey::default() }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures wall-clock time")]
fn time(run: &mut dyn Run) -> f64 {
    let start = Instant::now();
    run.packets(PACKETS);
    start.elapsed().as_nanos() as f64 / PACKETS as f64
}

/// Nanoseconds for each packet: medians of rounds in which the runs take turns.
fn medians(runs: &mut [Box<dyn Run>]) -> Vec<f64> {
    let mut times = vec![Vec::with_capacity(ROUNDS); runs.len()];
    for _ in 0..ROUNDS {
        for (run, times) in runs.iter_mut().zip(&mut times) {
            times.push(time(&mut **run));
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        times[ROUNDS / 2]
    };
    times.into_iter().map(median).collect()
}

fn row<S: Scheduler + 'static>(name: &str, scheduler: fn() -> S) {
    let masked =
        |flows, comes_and_goes| -> Box<dyn Run> { Box::new(Masked::new(scheduler(), flows, comes_and_goes)) };
    let alone = |flows| -> Box<dyn Run> { Box::new(Alone::new(scheduler(), flows)) };
    let cases = [(0, false), (1, false), (1_000, false), (100_000, false), (1_000, true), (100_000, true)];
    let mut runs: Vec<_> = cases.map(|(flows, comes_and_goes)| masked(flows, comes_and_goes)).into();
    runs.extend([1, 1_000, 100_000].map(alone));
    let ns = medians(&mut runs);
    let cell = |ns: f64, one: f64| format!("{:>16}", format!("{ns:.1} ({:.2}×)", ns / one));
    let line = |cells: &[f64], one| cells.iter().map(|&ns| cell(ns, one)).collect::<String>();
    println!("{name:<6}{}", line(&ns[..6], ns[0]));
    println!("{:<22}{}", " alone", line(&ns[6..], ns[6]));
}

fn main() {
    println!("nanoseconds a packet, and the ratio to one flow without a mask\n");
    println!(
        "flows         no mask               1           1,000         100,000   new, of 1,000   of 100,000"
    );
    row("wf2q+", Wf2q::default);
    row("qfq", Qfq::default);
    row("drr", || Drr::new(Bytes::new(1500)));
}
