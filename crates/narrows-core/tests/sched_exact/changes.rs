//! Flows that join and leave just after a long packet: what the others lack by that, and that they are told so.

use narrows_core::PacketRef;
use narrows_core::Time;
use narrows_core::sched::{FlowConfig, FlowId, Gfq, Kps, Qfq, Scheduler, Served, Server, WorstCase};

use crate::qfq::flows;
use crate::wfi::Meter;

struct Watched<S: Scheduler> {
    server: Server<S>,
    ids: Vec<FlowId>,
    configs: Vec<FlowConfig>,
    /// How many packets of `longest` wait.
    waiting: Vec<u32>,
    meter: Meter,
}

impl<S: Scheduler> Watched<S> {
    fn new(scheduler: S, configs: &[FlowConfig]) -> Self {
        let mut watched = Self {
            server: Server::new(scheduler),
            ids: Vec::new(),
            configs: Vec::new(),
            waiting: Vec::new(),
            meter: Meter::new(&[]),
        };
        configs.iter().for_each(|&config| watched.join(config));
        watched
    }

    fn join(&mut self, config: FlowConfig) {
        self.ids.push(self.server.join(config).expect("within the limits"));
        self.configs.push(config);
        self.waiting.push(0);
        self.restart();
    }

    /// The last flows leave, so that `count` are left.
    fn leave(&mut self, count: usize) {
        for id in self.ids.drain(count..) {
            assert!(self.server.leave(id), "nothing waits in a flow that leaves");
        }
        self.configs.truncate(count);
        self.waiting.truncate(count);
        self.restart();
    }

    /// Measures from here on.
    fn restart(&mut self) {
        self.meter = Meter::new(&self.configs);
        for (flow, &waiting) in self.waiting.iter().enumerate() {
            (0..waiting).for_each(|_| self.meter.enqueue(flow, self.configs[flow].longest));
        }
    }

    fn enqueue(&mut self, flow: usize, packets: u32) {
        for _ in 0..packets {
            let length = self.configs[flow].longest;
            self.server.enqueue(Time::ZERO, self.ids[flow], PacketRef::from_number(0), length);
            self.meter.enqueue(flow, length);
            self.waiting[flow] += 1;
        }
    }

    /// Sends a packet; if it is of one of the first flows, another one comes to it.
    fn send(&mut self, backlogged: &[usize]) -> usize {
        let Served::Packet(id, waits) = self.server.dequeue(Time::ZERO) else { panic!("packets wait") };
        let flow = self.ids.iter().position(|&of| of == id).expect("a flow that is here");
        self.meter.dequeue(flow, waits.length);
        self.waiting[flow] -= 1;
        if backlogged.contains(&flow) {
            self.enqueue(flow, 1);
        }
        flow
    }
}

/// A heavy flow joins two light ones while virtual time is ahead of one of them by half a long packet. The next flow that
/// begins bears what that gets, if it begins at virtual time, or nothing, if it begins where the others are.
fn a_heavy_flow_joins<S: Scheduler>(
    scheduler: S,
    worst_case: impl Fn(&S, &S::Flow) -> WorstCase,
    longest: u32,
    delays_newcomers: bool,
) {
    let (a, b, d, c) = (0, 1, 2, 3);
    let mut watched = Watched::new(scheduler, &flows(&[(1, 1 << 16), (1, 64), (1, 1500)]));
    watched.enqueue(a, 2);
    watched.enqueue(b, 2);
    while watched.send(&[a, b]) != a {}
    watched.join(flows(&[(2048, longest)])[0]);
    let told = |watched: &Watched<S>| {
        worst_case(watched.server.scheduler(), &watched.server.flows()[watched.ids[d]])
    };
    let plain = told(&watched);
    watched.enqueue(c, 2);
    let owed = told(&watched).work.get() - plain.work.get();
    // It joins at 2^16/3 and begins near 0.
    assert!((40_000_000..(2048 << 16) / 3).contains(&owed), "{owed} bytes");
    watched.enqueue(d, 2);
    while watched.waiting[d] > 0 {
        watched.send(&[a, b, c]);
    }
    let (bytes, work) = (watched.meter.bytes(d), watched.meter.work(d));
    let is_late = bytes > plain.bytes.get() as f64 && work > plain.work.get() as f64;
    assert_eq!(is_late, delays_newcomers, "it is late by {work}");
    assert!(bytes <= plain.bytes.get() as f64 + (owed as f64 / 2051.0).ceil(), "it lacks {bytes}");
    assert!(work <= (plain.work.get() + owed) as f64, "it is late by {work}");
    // When it has had that, all is as it was promised.
    while told(&watched).work > plain.work {
        watched.send(&[a, b, c]);
    }
    watched.restart();
    for _ in 0..20 {
        watched.enqueue(d, 2);
        while watched.waiting[d] > 0 {
            watched.send(&[a, b, c]);
        }
        let (bytes, work) = (watched.meter.bytes(d), watched.meter.work(d));
        assert!(bytes <= plain.bytes.get() as f64 && work <= plain.work.get() as f64, "it is late by {work}");
    }
}

#[test]
fn what_a_heavy_flow_gets_that_joins_is_told_and_is_once_only() {
    a_heavy_flow_joins(Qfq::default(), Qfq::worst_case, 1 << 16, true);
    a_heavy_flow_joins(Gfq::default(), Gfq::worst_case, 1 << 17, true);
    a_heavy_flow_joins(Kps::default(), Kps::worst_case, 1 << 17, false);
}

/// Most flows have sent a long packet in advance when they leave.
fn many_flows_leave<S: Scheduler>(scheduler: S, worst_case: impl Fn(&S, &S::Flow) -> WorstCase) {
    let configs = flows(&[&[(1, 33_000); 9][..], &[(1, 100)], &[(1, 33_000); 90]].concat());
    let (k, stay) = (9, Vec::from_iter(0..10));
    let mut watched = Watched::new(scheduler, &configs);
    for flow in 0..configs.len() {
        watched.enqueue(flow, if flow < 10 { 2 } else { 1 });
    }
    while watched.waiting[10..].iter().any(|&packets| packets > 0) {
        watched.send(&stay);
    }
    watched.leave(10);
    let told = |watched: &Watched<S>| {
        worst_case(watched.server.scheduler(), &watched.server.flows()[watched.ids[k]])
    };
    let first = told(&watched);
    for _ in 0..3000 {
        watched.send(&stay);
    }
    let plain = told(&watched);
    let (bytes, work) = (watched.meter.bytes(k), watched.meter.work(k));
    assert!(bytes > plain.bytes.get() as f64, "it lacks {bytes}: nothing was sent in advance");
    assert!(bytes <= first.bytes.get() as f64, "it lacks {bytes}, bound {}", first.bytes);
    assert!(work <= first.work.get() as f64, "it is late by {work}, bound {}", first.work);
}

#[test]
fn what_flows_that_leave_have_had_in_advance_is_told() {
    many_flows_leave(Qfq::default(), Qfq::worst_case);
    many_flows_leave(Gfq::default(), Gfq::worst_case);
    many_flows_leave(Kps::default(), Kps::worst_case);
}
