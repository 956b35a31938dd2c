//! The DCF as a link's queue.

use narrows_core::aqm::{Codel, CodelConfig};
use narrows_core::classify::Classifier;
use narrows_core::queue::{Bound, DropAt, Fifo, Queue};
use narrows_core::sched::{
    Class, ClassSettings, Dcf, DcfConfig, FlowConfig, HiddenDcf, Overload, Scheduled, Scheduler, Store,
};
use narrows_core::service::{ConstantRate, Overhead, RateSteps, ServiceCurve};
use narrows_core::steps::{After, Steps};
use narrows_core::{
    Change, DropReason, Duration, Element, Engine, FlowKey, LinkConfig, LinkId, NetworkConfig, Packet,
    PacketId, PortConfig, PortId, Rate, Seed, Stream, Target, Time, Verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::air::{ELEVEN, micros};

const STATIONS: u8 = 4;

fn dcf(config: DcfConfig, drop_at: DropAt) -> Box<dyn Queue> {
    queue(Dcf::new(config, Stream::new(Seed(1), "air", "backoff")), drop_at)
}

/// The second station is slow.
fn slow(config: DcfConfig, drop_at: DropAt) -> Box<dyn Queue> {
    let mut queue = dcf(config, drop_at);
    let slow = ClassSettings::StationRate(Some(Rate::from_bits_per_second(2_000_000)));
    queue.set_class(Time::ZERO, 1, slow).expect("stations have rates");
    queue
}

/// Stations of which the first does not hear the next two. The second is slow, and the last has queue management.
fn hidden(config: DcfConfig, drop_at: DropAt) -> Box<dyn Queue> {
    let mut queue =
        queue(HiddenDcf::new(config, Stream::new(Seed(1), "air", "backoff"), &[(0, 1), (2, 0)]), drop_at);
    let slow = ClassSettings::StationRate(Some(Rate::from_bits_per_second(2_000_000)));
    queue.set_class(Time::ZERO, 1, slow).expect("stations have rates");
    queue
}

/// The station is the traffic class byte.
fn queue<S: Scheduler + 'static>(scheduler: S, drop_at: DropAt) -> Box<dyn Queue> {
    let mut classes = [0; 256];
    classes.iter_mut().zip(0..STATIONS).for_each(|(class, station)| *class = station);
    let classifier = Classifier::TrafficClass(Box::new(classes));
    let mut queue = Scheduled::new(scheduler, classifier, Bound::Packets(1000), Overload::Arriving);
    for station in 0..STATIONS {
        let strict = CodelConfig { target: Duration::from_micros(100), ..CodelConfig::default() };
        let managed = || Store::Managed(Box::new(Codel::new(strict)));
        let store = if station + 1 == STATIONS { managed() } else { Store::Plain };
        let flow = FlowConfig::default();
        queue
            .add_class(Class { flow, bound: Bound::Packets(3), drop_at, store })
            .expect("it takes every station");
    }
    Box::new(queue)
}

struct Net {
    engine: Engine<()>,
    air: LinkId,
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
            overhead: Dcf::OVERHEAD,
            ..LinkConfig::new("air", Target::Port("z".into()))
        });
        let entry = Target::Link { name: "air".into(), lane: 0 };
        config.ports.push(PortConfig { name: "a".into(), entry });
        config.ports.push(PortConfig { name: "z".into(), entry: Target::Port("z".into()) });
        let engine = Engine::new(config).expect("it is sound");
        let (air, port) =
            (engine.link("air").expect("it was configured"), engine.port("a").expect("it was configured"));
        Self { engine, air, port, events: Vec::new() }
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
        self.engine.change(at, self.air, Change::Service(Box::new(ConstantRate(rate))));
    }

    fn poll(&mut self, now: Time) {
        while let Some(event) = self.engine.poll(now) {
            self.events.push((event.at, event.verdict, event.id, event.queued));
        }
    }

    fn instants(&self) -> Vec<Time> {
        self.events.iter().map(|&(at, ..)| at).collect()
    }
}

const END: Time = Time::from_nanos(u64::MAX / 2);

#[test]
fn a_packet_leaves_at_the_end_of_its_psdu_and_the_next_contends_after_the_acknowledgement() {
    let mut net = Net::new(dcf(DcfConfig::default(), DropAt::Tail), ELEVEN);
    net.hand_in(micros(100), 0, 1500);
    net.hand_in(micros(100), 0, 64);
    net.poll(END);
    // PSDU 192 µs after; 1536 bytes at 11 Mbit/s are 1117.09 µs for the link, 1118 on the air.
    let backoff = Stream::new(Seed(1), "air", "backoff").nth(0).below(32);
    let first = Time::from_nanos(292_000 + 1_117_091);
    let second = 292 + 1118 + 258 + 50 + 20 * backoff + 192;
    let second = micros(second) + Duration::from_nanos(72_728);
    assert_eq!(net.instants(), [first, second]);
}

/// Two stations that do not hear each other: the second starts during the frame of the first.
#[test]
fn hidden_stations_lose_both_frames_and_packets_leave_at_the_end_of_their_psdus() {
    let config = DcfConfig { retry_limit: 1, ..DcfConfig::default() };
    let mut net = Net::new(hidden(config, DropAt::Tail), ELEVEN);
    net.hand_in(micros(100), 0, 1064); // until 100 + 192 + 800
    net.hand_in(micros(900), 1, 64); // at 2 Mbit/s until 900 + 192 + 400
    net.hand_in(micros(10_000), 0, 1064);
    net.poll(END);
    let dropped = Verdict::Dropped { at: Some(Element::Link(net.air)), reason: DropReason::RetryLimit };
    let found: Vec<_> = net.events.iter().map(|&(at, verdict, ..)| (at, verdict)).collect();
    assert_eq!(found[..2], [(micros(1092 + 314), dropped), (micros(1492 + 314), dropped)]);
    let (at, _, _, queued) = net.events[2];
    assert_eq!((at, queued), (micros(10_000 + 192 + 800), Duration::from_micros(192)));
    let counters = &net.engine.view(net.air).counters()[0];
    assert_eq!(counters.busy, Duration::from_micros(800), "the PSDU of the packet that was received");
}

#[test]
fn a_wire_that_is_down_stops_the_contention_and_what_is_on_the_air() {
    let mut net = Net::new(dcf(DcfConfig::default(), DropAt::Tail), ELEVEN);
    net.hand_in(Time::ZERO, 0, 1064); // 800 µs from 192 on
    net.rate(micros(592), Rate::DOWN);
    net.hand_in(micros(600), 1, 64);
    net.poll(micros(5_000));
    assert_eq!(net.instants(), []);
    net.rate(micros(10_000), ELEVEN);
    net.poll(micros(10_400));
    assert_eq!(net.instants(), [micros(10_400)], "half of it was left");
    // It was on the air from 192 µs on. Then an exchange goes on as always.
    net.poll(micros(90_000));
    let draw = |n| Stream::new(Seed(1), "air", "backoff").nth(n).below(32);
    let psdu = 10_400 + 258 + 50 + 20 * draw(1) + 192;
    assert_eq!(net.instants()[1], micros(psdu) + Duration::from_nanos(72_728));

    // Down while the medium is idle: packets come, back off, and go when it is up again.
    net.rate(micros(100_000), Rate::DOWN);
    net.hand_in(micros(100_001), 2, 64);
    net.hand_in(micros(100_002), 3, 64);
    net.poll(micros(200_000));
    assert_eq!(net.events.len(), 2);
    net.rate(micros(200_000), Rate::UNLIMITED);
    net.poll(END);
    let (two, three) = (draw(3), draw(4));
    assert_ne!(two, three, "a seed without a collision");
    let first = 200_050 + 20 * two.min(three) + 192;
    let second = first + 258 + 50 + 20 * two.abs_diff(three) + 192;
    assert_eq!(
        net.instants()[2..],
        [micros(first), micros(second)],
        "an unlimited wire takes no time for PSDUs"
    );
}

/// Stations with rates of their own, or hidden ones: the exchange on the air is completed, and no other one starts until
/// the wire is up again.
#[test]
fn a_wire_that_is_down_lets_no_station_with_a_rate_of_its_own_start() {
    let rts = DcfConfig { rts_threshold: Some(500), ..DcfConfig::default() };
    for (queue, preamble) in [
        (slow(DcfConfig::default(), DropAt::Tail), 192),
        (hidden(DcfConfig::default(), DropAt::Tail), 192),
        (hidden(rts, DropAt::Tail), 272 + 10 + 248 + 10 + 192),
    ] {
        let mut net = Net::new(queue, ELEVEN);
        net.hand_in(Time::ZERO, 1, 1064); // 1100 bytes at 2 Mbit/s
        net.rate(micros(200), Rate::DOWN);
        (0..3).for_each(|station| net.hand_in(micros(300 + u64::from(station)), station, 64));
        net.poll(micros(90_000));
        assert_eq!(net.instants(), [micros(preamble + 4_400)]);
        net.rate(micros(100_000), ELEVEN);
        net.poll(END);
        assert_eq!(net.events.len(), 4);
        assert!(net.instants()[1] > micros(100_050 + 192));
    }
}

/// Packets that come while the wire is down, and stations that contend when it goes down: nobody but the trace says when it
/// is up again.
#[test]
fn a_trace_of_the_rate_is_as_good_as_changes_of_it() {
    let slow = Rate::from_bits_per_second(1_000_000);
    let rates = [
        (0, ELEVEN),
        (10_000, Rate::DOWN),
        (20_000, slow),
        (41_234, Rate::DOWN),
        (51_000, Rate::DOWN),
        (52_000, ELEVEN),
    ];
    let points = rates.map(|(at, rate)| (micros(at), rate)).to_vec();
    let steps = Steps::new(points, After::Hold).expect("instants increase");
    for first in [9_000, 9_990, 12_000] {
        let packets = |net: &mut Net| {
            (0..12u8).for_each(|n| net.hand_in(micros(first + u64::from(n)), n % STATIONS, 1000));
        };
        let dcf = || dcf(DcfConfig::default(), DropAt::Tail);
        let mut traced = Net::of(dcf(), Box::new(RateSteps::new(steps.clone())));
        packets(&mut traced);
        traced.poll(END);

        let mut changed = Net::new(dcf(), ELEVEN);
        let (before, after): (Vec<_>, Vec<_>) = rates.iter().partition(|&&(at, _)| at < first);
        before.into_iter().for_each(|(at, rate)| changed.rate(micros(at), rate));
        packets(&mut changed);
        after.into_iter().for_each(|(at, rate)| changed.rate(micros(at), rate));
        changed.poll(END);
        assert_eq!(traced.events, changed.events);
        assert_eq!((traced.events.len(), traced.engine.inside()), (12, 0));
    }
}

#[test]
fn the_retry_limit_is_a_drop_with_its_reason() {
    let config = DcfConfig { window_min: 0, window_max: 0, retry_limit: 1, ..DcfConfig::default() };
    let mut net = Net::new(dcf(config, DropAt::Tail), ELEVEN);
    for station in 0..3 {
        net.hand_in(micros(station.into()), station, 1500);
    }
    net.poll(END);
    let given_up = micros(192 + 1118 + 258 + 50 + 192 + 1118 + 314);
    let dropped = Verdict::Dropped { at: Some(Element::Link(net.air)), reason: DropReason::RetryLimit };
    let found: Vec<_> = net.events[1..].iter().map(|&(at, verdict, ..)| (at, verdict)).collect();
    assert_eq!(found, [(given_up, dropped); 2]);
    let classes = net.engine.view(net.air).classes();
    assert_eq!(classes[..3].iter().map(|class| class.dropped.packets).collect::<Vec<_>>(), [0, 1, 1]);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Packet(u8, u32),
    Rate(Rate),
    Overhead(Overhead),
    Fifo,
    Dcf,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let rates = [Rate::DOWN, Rate::UNLIMITED, ELEVEN, Rate::from_bits_per_second(1_000_000)];
    let step = prop_oneof![
        20 => (0..STATIONS, 20u32..1501).prop_map(|(station, length)| Step::Packet(station, length)),
        2 => proptest::sample::select(rates.to_vec()).prop_map(Step::Rate),
        1 => Just(Step::Overhead(Overhead::ETHERNET)),
        1 => Just(Step::Fifo),
        1 => Just(Step::Dcf),
    ];
    let gap = prop_oneof![Just(0), (0u64..500).prop_map(|micros| micros * 1_000), 0u64..5_000_000];
    vec((gap, step), 1..80)
}

/// A run in which before each input is polled or not, as the pattern says, and then to the end.
fn run(steps: &[(u64, Step)], queue: &dyn Fn() -> Box<dyn Queue>, polls: &[u8]) -> Net {
    let mut net = Net::new(queue(), ELEVEN);
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
            Step::Overhead(overhead) => net.engine.change(at, net.air, Change::Overhead(overhead)),
            Step::Fifo => {
                let fifo = Fifo::new(Bound::Packets(5), DropAt::Head);
                net.engine.change(at, net.air, Change::Queue(Box::new(fifo)));
            }
            Step::Dcf => net.engine.change(at, net.air, Change::Queue(queue())),
        }
        let counters = &net.engine.view(net.air).counters()[0];
        let view = net.engine.view(net.air);
        let inside = view.backlog().packets + u64::from(view.is_transmitting()) + view.in_flight();
        assert_eq!(counters.inside(), inside);
    }
    net.rate(at + Duration::from_secs(1), ELEVEN);
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
        is_hidden in any::<bool>(),
    ) {
        let config = match small {
            true => DcfConfig { window_min: 1, window_max: 3, retry_limit: 2, ..DcfConfig::default() },
            false => DcfConfig::default(),
        };
        let drop_at = if head { DropAt::Head } else { DropAt::Tail };
        let queue = || if is_hidden { hidden(config, drop_at) } else { slow(config, drop_at) };
        let exact = run(&steps, &queue, &[3]);
        prop_assert_eq!(&run(&steps, &queue, &[0]).events, &exact.events);
        prop_assert_eq!(&run(&steps, &queue, &polls).events, &exact.events);

        let packets = steps.iter().filter(|(_, step)| matches!(step, Step::Packet(..))).count();
        prop_assert_eq!(exact.events.len(), packets);
        prop_assert_eq!(exact.engine.inside(), 0);
    }
}
