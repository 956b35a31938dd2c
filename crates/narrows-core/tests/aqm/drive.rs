//! One link with a queue, what arrives at it, and what becomes of that.

use narrows_core::queue::Queue;
use narrows_core::service::ConstantRate;
use narrows_core::{
    Duration, Engine, Event, FlowKey, LinkConfig, NetworkConfig, Packet, PortConfig, PortId, Rate, Seed,
    Target, Time, Verdict, model,
};

pub(crate) const MEGABIT: u64 = 1_000_000;

/// A packet that is to arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    pub(crate) length: u32,
    /// The source port, which tells flows apart.
    pub(crate) flow: u16,
    pub(crate) ecn: u8,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Its place among the arrivals.
    pub(crate) number: usize,
    pub(crate) flow: u16,
    pub(crate) at: Time,
    pub(crate) arrival: Time,
    pub(crate) waited: Duration,
    pub(crate) verdict: Verdict,
    pub(crate) ecn: u8,
}

impl Record {
    pub(crate) const fn sent(&self) -> bool {
        matches!(self.verdict, Verdict::Delivered(_))
    }
}

pub(crate) struct Link {
    pub(crate) engine: Engine<usize>,
    port: PortId,
    arrived: usize,
}

impl Link {
    pub(crate) fn new(queue: Box<dyn Queue>, bits_per_second: u64, delay: Duration) -> Self {
        let mut link = LinkConfig::new("wire", Target::Port("b".into()));
        link.queue = queue;
        link.service = Box::new(ConstantRate(Rate::from_bits_per_second(bits_per_second)));
        link.delay = Box::new(model::Constant(delay));
        let mut config = NetworkConfig::new(Seed(5));
        config.links.push(link);
        let entry = Target::Link { name: "wire".into(), lane: 0 };
        config.ports.push(PortConfig { name: "a".into(), entry });
        config.ports.push(PortConfig { name: "b".into(), entry: Target::Port("b".into()) });
        let engine = Engine::new(config).expect("the network is sound");
        let port = engine.port("a").expect("it was configured");
        Self { engine, port, arrived: 0 }
    }

    pub(crate) fn hand_in(&mut self, arrival: Arrival) {
        let key = FlowKey {
            source_port: arrival.flow,
            transport: 17,
            traffic_class: arrival.ecn,
            ..FlowKey::default()
        };
        let body = self.arrived;
        self.arrived += 1;
        let packet = Packet {
            length: arrival.length,
            link_header: 14,
            network_header: 20,
            headers: Default::default(),
            key,
            body,
        };
        self.engine.hand_in(arrival.at, self.port, packet);
    }

    pub(crate) fn poll(&mut self, now: Time) -> Option<Record> {
        let event: Event<'_, usize> = self.engine.poll(now)?;
        Some(Record {
            number: *event.body.get(),
            flow: event.key.source_port,
            at: event.at,
            arrival: event.arrival,
            waited: event.queued,
            verdict: event.verdict,
            ecn: event.key.ecn(),
        })
    }
}

pub(crate) const END: Time = Time::from_nanos(u64::MAX / 2);

/// Hands everything in and lets the link run empty; polls at the end only.
pub(crate) fn run(queue: Box<dyn Queue>, bits_per_second: u64, arrivals: &[Arrival]) -> Vec<Record> {
    let mut link = Link::new(queue, bits_per_second, Duration::ZERO);
    arrivals.iter().for_each(|&arrival| link.hand_in(arrival));
    std::iter::from_fn(|| link.poll(END)).collect()
}

/// The same, polled at every instant at which something happens.
pub(crate) fn run_exactly(queue: Box<dyn Queue>, bits_per_second: u64, arrivals: &[Arrival]) -> Vec<Record> {
    let mut link = Link::new(queue, bits_per_second, Duration::ZERO);
    let mut records = Vec::new();
    let mut poll_to = |link: &mut Link, until: Time| {
        while let Some(at) = link.engine.next_event()
            && at <= until
        {
            while let Some(record) = link.poll(at) {
                records.push(record);
            }
        }
    };
    for &arrival in arrivals {
        poll_to(&mut link, arrival.at);
        link.hand_in(arrival);
    }
    poll_to(&mut link, END);
    records
}

/// Packets of one flow at even distances, from `start` until `stop`.
pub(crate) fn even(flow: u16, ecn: u8, length: u32, gap: Duration, start: Time, stop: Time) -> Vec<Arrival> {
    let number = stop.since(start).nanos() / gap.nanos();
    let at = |n: u64| start + Duration::from_nanos(n * gap.nanos());
    (0..number).map(|n| Arrival { at: at(n), length, flow, ecn }).collect()
}

/// Several flows together.
pub(crate) fn merge(flows: impl IntoIterator<Item = Vec<Arrival>>) -> Vec<Arrival> {
    let mut all: Vec<_> = flows.into_iter().flatten().collect();
    all.sort_by_key(|arrival| arrival.at);
    all
}

pub(crate) fn seconds(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// The mean of some spans, in milliseconds.
pub(crate) fn mean_millis(spans: impl Iterator<Item = Duration>) -> f64 {
    let (sum, count) = spans.fold((0.0, 0.0), |(sum, count), span| (sum + span.seconds() * 1e3, count + 1.0));
    sum / count
}
