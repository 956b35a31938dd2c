//! A transmitter of unlimited or constant rate behind CAKE.

use narrows_core::queue::{Dequeue, Queue, Stand};
use narrows_core::sched::{Cake, CakeConfig};
use narrows_core::{DropReason, Duration, FlowKey, Protocol, Rate, Seed, Time};

/// A packet that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) key: FlowKey,
    pub(crate) length: u32,
}

/// One that was sent, by its number among all arrivals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) number: usize,
    pub(crate) at: Time,
}

/// What became of all.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) sent: Vec<Sent>,
    pub(crate) dropped: Vec<(usize, DropReason)>,
    pub(crate) marked: u64,
}

pub(crate) fn ms(at: u64) -> Time {
    Time::ZERO + Duration::from_millis(at)
}

pub(crate) fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate * 1_000_000)
}

/// A flow from host to host.
pub(crate) fn flow(source: u8, destination: u8, port: u16) -> FlowKey {
    let host = |last: u8| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last];
    FlowKey {
        source: host(source),
        destination: host(destination),
        source_port: port,
        network: Protocol::Ipv4,
        transport: 17,
        ..FlowKey::default()
    }
}

/// Packets of one flow, so many bytes each, at a constant rate.
pub(crate) fn constant(key: FlowKey, length: u32, rate: Rate, from: Time, until: Time) -> Vec<Arrival> {
    let gap = Duration::from_nanos(u64::from(length) * 8_000_000_000 / rate.bits_per_second());
    let instants = std::iter::successors(Some(from), |at| Some(*at + gap));
    instants.take_while(|at| *at < until).map(|at| Arrival { at, key, length }).collect()
}

pub(crate) fn merged(parts: impl IntoIterator<Item = Vec<Arrival>>) -> Vec<Arrival> {
    let mut all: Vec<Arrival> = parts.into_iter().flatten().collect();
    all.sort_by_key(|arrival| arrival.at);
    all
}

/// Sends all. Without a bandwidth, the link has this rate; otherwise it is unlimited.
pub(crate) fn run(config: CakeConfig, link: Rate, arrivals: &[Arrival]) -> Outcome {
    run_queue(Cake::new(config, config.limit(), Seed(1), "link"), link, arrivals)
}

pub(crate) fn run_queue(mut cake: Cake, link: Rate, arrivals: &[Arrival]) -> Outcome {
    let mut stand = Stand::new(Seed(1));
    let mut outcome = Outcome::default();
    let (mut next, mut wake) = (0, None::<Time>);
    let mut busy = Time::ZERO;
    loop {
        let now = match (wake, arrivals.get(next)) {
            (None, None) => break,
            (Some(at), arrival) if arrival.is_none_or(|arrival| at <= arrival.at) => at,
            (_, Some(arrival)) => arrival.at,
            (Some(at), None) => at,
        };
        if wake != Some(now) {
            let Arrival { key, length, .. } = arrivals[next];
            let packet = stand.insert(now, key, length);
            cake.enqueue(now, packet, &mut stand.context());
            next += 1;
        }
        wake = Some(busy).filter(|busy| *busy > now);
        while wake.is_none() {
            match cake.dequeue(now, &mut stand.context()) {
                Dequeue::Empty => break,
                Dequeue::NotBefore(at) => {
                    assert!(at > now);
                    wake = Some(at);
                }
                Dequeue::Ended(..) => panic!("the link transmits"),
                Dequeue::Packet(packet) => {
                    let number = packet.number() as usize;
                    outcome.sent.push(Sent { number, at: now });
                    let bits = u64::from(stand.pool().get(packet).length) * 8;
                    if link != Rate::UNLIMITED {
                        busy = now + Duration::from_nanos(bits * 1_000_000_000 / link.bits_per_second());
                        wake = Some(busy);
                    }
                }
            }
        }
        while let Some((packet, reason)) = stand.dropped() {
            outcome.dropped.push((packet.number() as usize, reason));
        }
        outcome.marked += stand.marked();
    }
    assert_eq!((outcome.sent.len() + outcome.dropped.len(), cake.backlog().packets), (arrivals.len(), 0));
    outcome
}

impl Outcome {
    /// Bytes of the packets with this property that were sent in a span.
    pub(crate) fn bytes(
        &self,
        arrivals: &[Arrival],
        span: [Time; 2],
        which: impl Fn(&FlowKey) -> bool,
    ) -> u64 {
        let within = self.sent.iter().filter(|sent| (span[0]..span[1]).contains(&sent.at));
        let packets = within.map(|sent| &arrivals[sent.number]).filter(|arrival| which(&arrival.key));
        packets.map(|arrival| u64::from(arrival.length)).sum()
    }
}
