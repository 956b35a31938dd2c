//! Stations behind a transmitter that is asked exactly when it is free: what a link does, and no more.

use narrows_core::queue::Wire;
use narrows_core::sched::{CsmaCd, CsmaCdConfig, FlowConfig, FlowId, Scheduler, Served, Server};
use narrows_core::service::{ConstantRate, ServiceCurve, Work};
use narrows_core::{PacketRef, Rate, Seed, Stream, Time};

pub(crate) const TEN: Rate = Rate::from_bits_per_second(10_000_000);

/// What a station does, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// A bit is 100 ns.
    pub(crate) nanos: u64,
    pub(crate) station: u32,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The preamble of a frame with so many bytes, from the link header on, is over.
    Sends(u32),
    /// Its first packet reached the attempt limit.
    GivesUp,
}

/// The n-th number of backoff slots after a station's so-manieth collision.
pub(crate) fn slots(seed: u64, draw: u64, collisions: u32) -> u64 {
    stream(seed).nth(draw).below(1 << collisions.min(10))
}

pub(crate) fn stream(seed: u64) -> Stream {
    Stream::new(Seed(seed), "cable", "backoff")
}

#[derive(Debug)]
pub(crate) struct Cable {
    pub(crate) server: Server<CsmaCd>,
    sending_until: Option<Time>,
    wake: Time,
    pub(crate) done: Vec<Done>,
    /// Whether every station gets another packet as soon as one has left.
    refill: bool,
}

impl Cable {
    pub(crate) fn new(config: CsmaCdConfig, stations: u32, seed: u64) -> Self {
        let mut scheduler = CsmaCd::new(config, stream(seed));
        scheduler.set_wire(Time::ZERO, Wire { rate: TEN, overhead: CsmaCd::OVERHEAD });
        let mut server = Server::new(scheduler);
        for _ in 0..stations {
            server.join(FlowConfig::default()).expect("it takes every station");
        }
        Self { server, sending_until: None, wake: Time::NEVER, done: Vec::new(), refill: false }
    }

    /// Stations that always have frames of `length` bytes, check sequence included.
    pub(crate) fn saturated(config: CsmaCdConfig, stations: u32, length: u32, seed: u64) -> Self {
        let mut cable = Self { refill: true, ..Self::new(config, stations, seed) };
        for station in (0..stations).chain(0..stations) {
            cable.arrive(0, station, length - 4);
        }
        cable
    }

    /// A packet of so many bytes from the link header on.
    pub(crate) fn arrive(&mut self, nanos: u64, station: u32, length: u32) {
        let at = Time::from_nanos(nanos);
        self.run_until(at);
        self.server.enqueue(at, FlowId::new(station), PacketRef::from_number(0), length);
        self.serve(at);
    }

    fn next(&self) -> Time {
        self.sending_until.unwrap_or(self.wake)
    }

    pub(crate) fn run_until(&mut self, until: Time) {
        while self.next() <= until && self.next() < Time::NEVER {
            self.serve(self.next());
        }
    }

    pub(crate) fn run_until_done(&mut self, count: usize) {
        while self.done.len() < count {
            self.serve(self.next());
        }
    }

    fn serve(&mut self, now: Time) {
        if self.sending_until.is_some_and(|until| until > now) {
            return;
        }
        self.sending_until = None;
        loop {
            let (flow, waits, what) = match self.server.dequeue(now) {
                Served::Packet(flow, waits) => (flow, waits, What::Sends(waits.length)),
                Served::GivenUp(flow, waits, _) => (flow, waits, What::GivesUp),
                Served::NotBefore(at) => {
                    assert!(at > now);
                    return self.wake = at;
                }
                Served::Empty => return self.wake = Time::NEVER,
            };
            self.done.push(Done { nanos: now.nanos(), station: flow.number(), what });
            if self.refill {
                self.server.enqueue(now, flow, waits.packet, waits.length);
            }
            if let What::Sends(length) = what {
                let bits = CsmaCd::OVERHEAD.bits(length, 0);
                let end = ConstantRate(TEN).finish(now, Work::bits(bits)).expect("it is never down").at;
                return self.sending_until = Some(end);
            }
        }
    }
}
