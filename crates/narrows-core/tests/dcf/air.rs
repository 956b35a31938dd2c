//! Stations behind a transmitter that is asked exactly when it is free: what a link does, and no more.

use narrows_core::sched::{ClassSettings, Dcf, DcfConfig, FlowConfig, FlowId, Served, Server};
use narrows_core::service::{ConstantRate, ServiceCurve, Work};
use narrows_core::{Duration, PacketRef, Rate, Seed, Stream, Time};

/// What a station does, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) at: Time,
    pub(crate) station: u32,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The PSDU of a packet of that length starts.
    Sends(u32),
    /// Its first packet reached the retry limit.
    GivesUp,
}

pub(crate) const ELEVEN: Rate = Rate::from_bits_per_second(11_000_000);

pub(crate) fn stream(seed: u64) -> Stream {
    Stream::new(Seed(seed), "air", "backoff")
}

pub(crate) fn micros(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

#[derive(Debug)]
pub(crate) struct Air {
    pub(crate) server: Server<Dcf>,
    rate: Rate,
    /// Until when the transmitter is at work.
    sending_until: Option<Time>,
    wake: Time,
    pub(crate) done: Vec<Done>,
    /// The stations with rates of their own, whose PSDUs have ended when their packets leave.
    pub(crate) own_rates: Vec<u32>,
    /// Whether every station gets another packet as soon as one has left.
    pub(crate) refill: bool,
}

impl Air {
    pub(crate) fn new(config: DcfConfig, rate: Rate, stations: u32, seed: u64) -> Self {
        use narrows_core::queue::Wire;
        use narrows_core::sched::Scheduler;
        let mut dcf = Dcf::new(config, stream(seed));
        dcf.set_wire(Time::ZERO, Wire { rate, overhead: Dcf::OVERHEAD });
        let mut server = Server::new(dcf);
        for _ in 0..stations {
            server.join(FlowConfig::default()).expect("it takes every station");
        }
        let (done, wake) = (Vec::new(), Time::NEVER);
        Self { server, rate, sending_until: None, wake, done, own_rates: Vec::new(), refill: false }
    }

    /// Stations that always have packets of `length` bytes.
    pub(crate) fn saturated(config: DcfConfig, stations: u32, length: u32, seed: u64) -> Self {
        let mut air = Self::new(config, ELEVEN, stations, seed);
        air.refill = true;
        (0..stations).for_each(|station| air.arrive(Time::ZERO, station, length));
        (0..stations).for_each(|station| air.arrive(Time::ZERO, station, length));
        air
    }

    pub(crate) fn set_rate(&mut self, station: u32, rate: Rate) {
        self.own_rates.push(station);
        let rate = ClassSettings::StationRate(Some(rate));
        self.server.set_class(Time::ZERO, FlowId::new(station), rate).expect("stations have rates");
    }

    pub(crate) fn next(&self) -> Time {
        self.sending_until.unwrap_or(self.wake)
    }

    pub(crate) fn arrive(&mut self, at: Time, station: u32, length: u32) {
        self.run_until(at);
        self.server.enqueue(at, FlowId::new(station), PacketRef::from_number(0), length);
        self.serve(at);
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
            self.done.push(Done { at: now, station: flow.number(), what });
            if let What::Sends(length) = what
                && !self.own_rates.contains(&flow.number())
            {
                let bits = Dcf::OVERHEAD.bits(length, 0);
                let end = ConstantRate(self.rate).finish(now, Work::bits(bits)).expect("it is never down").at;
                self.sending_until = Some(end);
            }
            if self.refill {
                self.server.enqueue(now, flow, waits.packet, waits.length);
            }
            if self.sending_until.is_some_and(|until| until > now) {
                return;
            }
            self.sending_until = None;
        }
    }
}
