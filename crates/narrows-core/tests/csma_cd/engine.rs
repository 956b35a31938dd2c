//! CSMA/CD as a link's queue.

use narrows_core::classify::Classifier;
use narrows_core::queue::{Bound, DropAt, Fifo, Queue};
use narrows_core::sched::{Class, CsmaCd, CsmaCdConfig, FlowConfig, Overload, Scheduled, Store};
use narrows_core::service::{ConstantRate, Overhead, ServiceCurve};
use narrows_core::{
    Change, DropReason, Duration, Element, Engine, FlowKey, LinkConfig, LinkId, NetworkConfig, Packet,
    PacketId, PortConfig, PortId, Rate, Seed, Target, Time, Verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::{TEN, stream};

fn micros(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

const STATIONS: u8 = 4;

/// The station is the traffic class byte.
fn csma_cd(config: CsmaCdConfig, drop_at: DropAt) -> Box<dyn Queue> {
    let mut classes = [0; 256];
    classes.iter_mut().zip(0..STATIONS).for_each(|(class, station)| *class = station);
    let scheduler = CsmaCd::new(config, stream(1));
    let classifier = Classifier::TrafficClass(Box::new(classes));
    let mut queue = Scheduled::new(scheduler, classifier, Bound::Packets(1000), Overload::Arriving);
    for _ in 0..STATIONS {
        let (flow, store) = (FlowConfig::default(), Store::Plain);
        queue
            .add_class(Class { flow, bound: Bound::Packets(3), drop_at, store })
            .expect("it takes every station");
    }
    Box::new(queue)
}

struct Net {
    engine: Engine<()>,
    cable: LinkId,
    port: PortId,
    events: Vec<(Time, Verdict, PacketId, Duration)>,
}

impl Net {
    fn new(queue: Box<dyn Queue>, rate: Rate) -> Self {
        Self::of(queue, Box::new(ConstantRate(rate)))
    }

    fn of(queue: Box<dyn Queue>, service: Box<dyn ServiceCurve>) -> Self {
        let mut config = NetworkConfig::new(Seed(1));
        config.links.push(LinkConfig {
            queue,
            service,
            overhead: CsmaCd::OVERHEAD,
            ..LinkConfig::new("cable", Target::Port("z".into()))
        });
        let entry = Target::Link { name: "cable".into(), lane: 0 };
        config.ports.push(PortConfig { name: "a".into(), entry });
        config.ports.push(PortConfig { name: "z".into(), entry: Target::Port("z".into()) });
        let engine = Engine::new(config).expect("it is sound");
        let (cable, port) =
            (engine.link("cable").expect("it was configured"), engine.port("a").expect("it was configured"));
        Self { engine, cable, port, events: Vec::new() }
    }

    fn hand_in(&mut self, at: Time, station: u8, length: u32) {
        let key = FlowKey { traffic_class: station, ..FlowKey::default() };
        let packet = Packet {
            length,
            link_header: 14,
            network_header: 20,
            headers: Default::default(),
            key,
            body: (),
        };
        self.engine.hand_in(at, self.port, packet);
    }

    fn rate(&mut self, at: Time, rate: Rate) {
        self.engine.change(at, self.cable, Change::Service(Box::new(ConstantRate(rate))));
    }

    fn poll(&mut self, now: Time) {
        while let Some(event) = self.engine.poll(now) {
            self.events.push((event.at, event.verdict, event.id, event.queued));
        }
    }
}

const END: Time = Time::from_nanos(u64::MAX / 2);

#[test]
fn the_attempt_limit_is_a_drop_with_its_reason_and_its_own_counter() {
    let config = CsmaCdConfig { backoff_limit: 0, attempt_limit: 2, ..CsmaCdConfig::default() };
    let mut net = Net::new(csma_cd(config, DropAt::Tail), TEN);
    for station in 0..3 {
        net.hand_in(micros(1), station, 1500);
    }
    net.poll(END);
    // 16 bytes of preamble and jam twice, and a gap.
    let given_up = Time::from_nanos(1_000 + 9_600 + 9_600 + 9_600);
    let dropped = Verdict::Dropped { at: Some(Element::Link(net.cable)), reason: DropReason::Collisions };
    let found: Vec<_> = net.events.iter().map(|&(at, verdict, ..)| (at, verdict)).collect();
    assert_eq!(found, [(given_up, dropped); 3]);
    let counters = &net.engine.view(net.cable).counters()[0];
    assert_eq!(counters.dropped(DropReason::Collisions).packets, 3);
}

/// As a trace or a change may have it for a while.
#[test]
fn without_a_limit_on_the_rate_nothing_collides() {
    let mut net = Net::new(csma_cd(CsmaCdConfig::default(), DropAt::Tail), Rate::UNLIMITED);
    for station in (0..3).chain(0..3) {
        net.hand_in(micros(1), station, 1500);
    }
    net.poll(micros(2));
    let delivered = |verdict| matches!(verdict, Verdict::Delivered(_));
    assert_eq!(
        net.events.iter().filter(|&&(_, verdict, ..)| delivered(verdict)).count(),
        6,
        "{:?}",
        net.events
    );
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Packet(u8, u32),
    Rate(Rate),
    Overhead(Overhead),
    Fifo,
    Again,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let rates = [Rate::DOWN, Rate::UNLIMITED, TEN, Rate::from_bits_per_second(1_000_000)];
    let step = prop_oneof![
        20 => (0..STATIONS, 20u32..1501).prop_map(|(station, length)| Step::Packet(station, length)),
        2 => proptest::sample::select(rates.to_vec()).prop_map(Step::Rate),
        1 => Just(Step::Overhead(Overhead::ETHERNET)),
        1 => Just(Step::Fifo),
        1 => Just(Step::Again),
    ];
    let gap = prop_oneof![Just(0), (0u64..500).prop_map(|micros| micros * 1_000), 0u64..5_000_000];
    vec((gap, step), 1..80)
}

/// A run in which before each input is polled or not, as the pattern says, and then to the end.
fn run(steps: &[(u64, Step)], config: CsmaCdConfig, drop_at: DropAt, polls: &[u8]) -> Net {
    let mut net = Net::new(csma_cd(config, drop_at), TEN);
    let mut at = Time::ZERO;
    for (&(gap, step), poll) in steps.iter().zip(polls.iter().cycle()) {
        let before = at;
        at = at + Duration::from_nanos(gap);
        match poll {
            0 => {}
            1 => net.poll(at),
            2 => net.poll(before + Duration::from_nanos(gap / 2)),
            _ => {
                while let Some(next) = net.engine.next_event()
                    && next <= at
                {
                    net.poll(next);
                }
            }
        }
        match step {
            Step::Packet(station, length) => net.hand_in(at, station, length),
            Step::Rate(rate) => net.rate(at, rate),
            Step::Overhead(overhead) => net.engine.change(at, net.cable, Change::Overhead(overhead)),
            Step::Fifo => {
                let fifo = Fifo::new(Bound::Packets(5), DropAt::Head);
                net.engine.change(at, net.cable, Change::Queue(Box::new(fifo)));
            }
            Step::Again => net.engine.change(at, net.cable, Change::Queue(csma_cd(config, drop_at))),
        }
        let counters = &net.engine.view(net.cable).counters()[0];
        let view = net.engine.view(net.cable);
        let inside = view.backlog().packets + u64::from(view.is_transmitting()) + view.in_flight();
        assert_eq!(counters.inside(), inside);
    }
    net.rate(at + Duration::from_secs(1), TEN);
    net.poll(END);
    net
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn late_polls_change_nothing_and_every_packet_comes_out(
        steps in steps(),
        polls in vec(0u8..4, 1..8),
        small in any::<bool>(),
        head in any::<bool>(),
    ) {
        let config = match small {
            true => CsmaCdConfig { backoff_limit: 1, attempt_limit: 3, propagation: 64, ..CsmaCdConfig::default() },
            false => CsmaCdConfig::default(),
        };
        let drop_at = if head { DropAt::Head } else { DropAt::Tail };
        let exact = run(&steps, config, drop_at, &[3]);
        prop_assert_eq!(&run(&steps, config, drop_at, &[0]).events, &exact.events);
        prop_assert_eq!(&run(&steps, config, drop_at, &polls).events, &exact.events);

        let packets = steps.iter().filter(|(_, step)| matches!(step, Step::Packet(..))).count();
        prop_assert_eq!(exact.events.len(), packets);
        prop_assert_eq!(exact.engine.inside(), 0);
    }
}
