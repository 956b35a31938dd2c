//! Drives a scheduler with traffic, on a link of constant rate, in exact time.

use std::fmt;

use narrows_core::sched::{FlowConfig, FlowId, Refused, Scheduler, Served, Server};
use narrows_core::{PacketRef, Rate, Time};

use super::traffic::Traffic;

/// A scheduler with its flows, of any kind.
pub(crate) trait Subject: fmt::Debug {
    fn enqueue(&mut self, now: Time, flow: FlowId, packet: PacketRef, length: u32);
    fn dequeue(&mut self, now: Time) -> Served;
}

impl<S: Scheduler> Subject for Server<S> {
    fn enqueue(&mut self, now: Time, flow: FlowId, packet: PacketRef, length: u32) {
        Self::enqueue(self, now, flow, packet, length);
    }

    fn dequeue(&mut self, now: Time) -> Served {
        Self::dequeue(self, now)
    }
}

/// A scheduler with these flows, numbered from 0 in order.
pub(crate) fn server<S: Scheduler>(scheduler: S, flows: &[FlowConfig]) -> Result<Server<S>, Refused> {
    let mut server = Server::new(scheduler);
    flows.iter().try_for_each(|&flow| server.join(flow).map(drop))?;
    Ok(server)
}

/// Observes events in order of time. All instants are in byte-times.
pub(crate) trait Watch {
    /// A packet has joined a flow.
    fn arrived(&mut self, now: u64, flow: usize, length: u32);
    /// The first packet waiting in a flow begins transmission. Returns its length.
    fn begins(&mut self, now: u64, flow: usize) -> u32;
    /// The packet of that flow and length has been sent.
    fn ended(&mut self, now: u64, flow: usize, length: u32);
}

/// Sends all traffic through a scheduler. Packets that arrive at the instant at which the link becomes free are
/// enqueued before it selects.
///
/// # Panics
/// If the scheduler is not work-conserving, or reorders packets within a flow.
pub(crate) fn drive(subject: &mut dyn Subject, traffic: &mut Traffic, rate: Rate, watch: &mut dyn Watch) {
    let mut queues: Vec<usize> = vec![0; traffic.flows.len()];
    let (mut now, mut packets, mut waiting) = (0, 0u32, 0u64);
    let mut busy: Option<(u64, usize, u32)> = None;
    loop {
        let free_at = busy.map(|(end, ..)| end);
        match (traffic.peek(), free_at) {
            (Some(at), end)
                if end.is_none_or(|end| at < end) && (waiting == 0 || busy.is_some() || at <= now) =>
            {
                let arrival = traffic.take().expect("it was peeked at");
                now = now.max(arrival.at);
                let flow = arrival.flow as usize;
                subject.enqueue(
                    instant(now, rate),
                    FlowId::new(arrival.flow),
                    PacketRef::from_number(packets),
                    arrival.length,
                );
                packets = packets.wrapping_add(1);
                (queues[flow], waiting) = (queues[flow] + 1, waiting + 1);
                watch.arrived(now, flow, arrival.length);
            }
            (_, Some(end)) => {
                let (_, flow, length) = busy.take().expect("it ends");
                now = end;
                watch.ended(end, flow, length);
            }
            (_, None) if waiting > 0 => {
                let Served::Packet(flow, waits) = subject.dequeue(instant(now, rate)) else {
                    panic!("{waiting} packets wait, the link is free, and the scheduler has nothing to send");
                };
                let number = flow.number() as usize;
                let length = watch.begins(now, number);
                assert_eq!(length, waits.length, "packets of a flow leave in order");
                (queues[number], waiting) = (queues[number] - 1, waiting - 1);
                let end = now + u64::from(length);
                traffic.sent(flow.number(), now, end, queues[number]);
                busy = Some((end, number, length));
            }
            (_, None) => return,
        }
    }
}

/// The nanosecond that contains an instant. The lab computes in byte-times; schedulers that use time see this.
fn instant(now: u64, rate: Rate) -> Time {
    let nanos = u128::from(now) * 8_000_000_000 / u128::from(rate.bits_per_second().max(1));
    Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
