//! Stations of which some are hidden from others, behind a link that takes no time.

use narrows_core::queue::Wire;
use narrows_core::sched::{
    ClassSettings, Dcf, DcfConfig, FlowConfig, FlowId, HiddenDcf, Scheduler, Served, Server,
};
use narrows_core::{PacketRef, Rate, Stream, Time};

use crate::air::{Done, What};

#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) server: Server<HiddenDcf>,
    wake: Time,
    /// What is sent is known at the end of its PSDU.
    pub(crate) done: Vec<Done>,
    /// Whether every station gets another packet as soon as one has left.
    pub(crate) refill: bool,
}

impl Cell {
    /// One station for each rate.
    pub(crate) fn new(config: DcfConfig, rates: &[Rate], pairs: &[(u32, u32)], stream: Stream) -> Self {
        let mut dcf = HiddenDcf::new(config, stream, pairs);
        let fastest = rates.iter().copied().max().expect("there are stations");
        dcf.set_wire(Time::ZERO, Wire { rate: fastest, overhead: Dcf::OVERHEAD });
        let mut server = Server::new(dcf);
        for &rate in rates {
            let station = server.join(FlowConfig::default()).expect("it takes every station");
            server
                .set_class(Time::ZERO, station, ClassSettings::StationRate(Some(rate)))
                .expect("it has one");
        }
        Self { server, wake: Time::NEVER, done: Vec::new(), refill: false }
    }

    /// Stations that always have packets of `length` bytes.
    pub(crate) fn saturated(mut self, length: u32) -> Self {
        self.refill = true;
        let stations = self.server.flows().len() as u32;
        (0..2).flat_map(|_| 0..stations).for_each(|station| self.arrive(Time::ZERO, station, length));
        self
    }

    pub(crate) fn arrive(&mut self, at: Time, station: u32, length: u32) {
        self.run_until(at);
        self.server.enqueue(at, FlowId::new(station), PacketRef::from_number(0), length);
        self.serve(at);
    }

    pub(crate) fn run_until(&mut self, until: Time) {
        while self.wake <= until && self.wake < Time::NEVER {
            self.serve(self.wake);
        }
    }

    fn serve(&mut self, now: Time) {
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
            if self.refill {
                self.server.enqueue(now, flow, waits.packet, waits.length);
            }
        }
    }
}
