//! A transmitter behind a scheduler whose rate may change each millisecond, and packets that come at given instants.

use narrows_core::queue::{Backlog, Bound, Wire};
use narrows_core::sched::{FlowConfig, FlowId, Scheduler, Served, Server};
use narrows_core::service::Overhead;
use narrows_core::{DropReason, Duration, PacketRef, Rate, Time};

/// A packet that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) green: bool,
    pub(crate) length: u32,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Sent { begins: Time, ends: Time },
    Dropped { at: Time, reason: DropReason },
}

/// Nanoseconds for each byte, in each millisecond by turns.
#[derive(Clone, Debug)]
pub(crate) struct Link(pub(crate) Vec<u64>);

const STEP: u64 = 1_000_000;

impl Link {
    fn per_byte(&self, at: u64) -> u64 {
        self.0[(at / STEP) as usize % self.0.len()]
    }

    fn wire(&self, at: u64) -> Wire {
        let rate = Rate::from_bits_per_second(8_000_000_000 / self.per_byte(at));
        Wire { rate, overhead: Overhead::IP }
    }

    /// When so many bytes that begin at `now` are sent.
    fn ends(&self, now: Time, bytes: u32) -> Time {
        let (mut at, mut left) = (now.nanos(), u128::from(bytes) * 1_000_000);
        loop {
            let end = (at / STEP + 1) * STEP;
            let per_byte = u128::from(self.per_byte(at));
            let done = u128::from(end - at) * 1_000_000 / per_byte;
            if self.0.len() == 1 || done >= left {
                return Time::from_nanos(at + (left * per_byte).div_ceil(1_000_000) as u64);
            }
            (at, left) = (end, left - done);
        }
    }
}

/// How much may wait, and who sees to it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    OfScheduler(Bound),
    OfDriver(Bound),
}

/// Sends all of these, and says what became of each. What comes while the transmitter begins anew comes after that.
pub(crate) fn run<S: Scheduler>(scheduler: S, room: Room, link: &Link, arrivals: &[Arrival]) -> Vec<Fate> {
    let mut server = Server::new(scheduler);
    if let Room::OfScheduler(bound) = room {
        server.set_bound(bound);
    }
    let [green, blue] = [(); 2].map(|()| server.join(FlowConfig::default()).expect("two flows"));
    let mut fates = vec![None; arrivals.len()];
    let mut backlog = Backlog::default();
    let (mut next, mut busy, mut told) = (0, None::<Time>, None);
    loop {
        let arrival = arrivals.get(next);
        let now = match (busy, arrival) {
            (None, None) => break,
            (Some(free), arrival) if arrival.is_none_or(|arrival| free <= arrival.at) => free,
            (_, Some(arrival)) => arrival.at,
            (Some(free), None) => free,
        };
        // Each rate from when on it holds.
        let step = now.nanos() / STEP;
        for step in told.map_or(step, |told| told + 1)..=step {
            server.set_wire(Time::from_nanos(step * STEP), link.wire(step * STEP));
            told = Some(step);
        }
        if busy == Some(now) {
            busy = None;
        } else if let Some(&Arrival { green: is_green, length, .. }) = arrival {
            let refused = match room {
                Room::OfScheduler(_) => server.refuses(now, length),
                Room::OfDriver(bound) => (!bound.admits(backlog, length)).then_some(DropReason::QueueFull),
            };
            if let Some(reason) = refused {
                fates[next] = Some(Fate::Dropped { at: now, reason });
            } else {
                let flow = if is_green { green } else { blue };
                server.enqueue(now, flow, PacketRef::from_number(next as u32), length);
                backlog.packets += 1;
                backlog.bytes += u64::from(length);
            }
            next += 1;
        }
        while busy.is_none() {
            let (waits, fate) = match server.dequeue(now) {
                Served::Packet(flow, waits) => {
                    let colour = arrivals[waits.packet.number() as usize].green;
                    assert_eq!(flow, FlowId::new(u32::from(!colour)), "a packet of the flow's colour");
                    let ends = link.ends(now, waits.length);
                    busy = Some(ends);
                    (waits, Fate::Sent { begins: now, ends })
                }
                Served::GivenUp(_, waits, reason) => (waits, Fate::Dropped { at: now, reason }),
                Served::Empty => break,
                other => panic!("{other:?}: it is work-conserving"),
            };
            backlog.packets -= 1;
            backlog.bytes -= u64::from(waits.length);
            let before = fates[waits.packet.number() as usize].replace(fate);
            assert_eq!(before, None, "each packet once");
        }
    }
    assert_eq!(server.flows().waiting(), 0);
    fates.into_iter().map(|fate| fate.expect("nothing waits")).collect()
}

pub(crate) fn after(at: Time, nanos: u64) -> Time {
    at + Duration::from_nanos(nanos)
}
