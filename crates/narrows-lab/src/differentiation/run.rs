//! A work-conserving link behind a scheduler.

use narrows_core::queue::Wire;
use narrows_core::sched::{FlowConfig, FlowId, Scheduler, Served, Server};
use narrows_core::service::Overhead;
use narrows_core::{Duration, PacketRef, Rate, Time};

use super::NANOS_PER_BYTE;
use super::traffic::Arrival;

/// The waits of the classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Waits {
    /// For each class the total wait of its packets in seconds, and their number.
    pub(super) classes: Vec<(f64, u64)>,
}

impl Waits {
    pub(super) fn means(&self) -> Vec<f64> {
        self.classes.iter().map(|&(sum, packets)| sum / packets.max(1) as f64).collect()
    }
}

/// Sends all packets. `band` gives a class's band, for schedulers with bands.
pub(super) fn waits<S: Scheduler>(
    scheduler: S,
    arrivals: &[Arrival],
    classes: usize,
    band: impl Fn(u32) -> u32,
) -> Waits {
    let mut server = Server::new(scheduler);
    let rate = Rate::from_bits_per_second(8_000_000_000 / NANOS_PER_BYTE);
    server.set_wire(Time::ZERO, Wire { rate, overhead: Overhead::IP });
    for class in 0..classes as u32 {
        let flow = server.join(FlowConfig { band: band(class), ..FlowConfig::default() });
        assert_eq!(flow, Ok(FlowId::new(class)), "at most 32 classes, and as many bands");
    }
    let mut found = Waits { classes: vec![(0.0, 0); classes] };
    let (mut now, mut next) = (Time::ZERO, 0);
    loop {
        while let Some(arrival) = arrivals.get(next).filter(|arrival| arrival.at <= now) {
            let packet = PacketRef::from_number(next as u32);
            server.enqueue(arrival.at, FlowId::new(arrival.class), packet, arrival.length);
            next += 1;
        }
        match (server.dequeue(now), arrivals.get(next)) {
            (Served::Packet(flow, waits), _) => {
                let number = waits.packet.number() as usize;
                let (sum, packets) = &mut found.classes[flow.number() as usize];
                *sum += now.since(arrivals[number].at).seconds();
                *packets += 1;
                now = now + Duration::from_nanos(u64::from(waits.length) * NANOS_PER_BYTE);
            }
            (_, Some(arrival)) => now = arrival.at,
            (_, None) => return found,
        }
    }
}
