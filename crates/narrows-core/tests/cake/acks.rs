//! The filter of acknowledgements, in a link of a network.

use narrows_core::queue::ClassCounters;
use narrows_core::sched::{AckFilter, Cake, CakeConfig, Isolation, TinMode};
use narrows_core::{
    DropReason, Duration, Engine, FlowKey, Headers, LinkConfig, NetworkConfig, Packet, PortConfig, Seed,
    Target, TcpOptions, Time, Verdict,
};

use crate::link::{flow, ms};

const SYN: u8 = 0x02;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;

/// A segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    key: FlowKey,
    headers: Headers,
    options: TcpOptions,
}

/// A pure acknowledgement.
fn ack(number: u32) -> Segment {
    let key = FlowKey { transport: 6, destination_port: 80, tcp_flags: ACK, ..flow(1, 2, 1) };
    let headers = Headers { tcp_acknowledgement: number, ..Headers::plain(&key, 40) };
    Segment { key, headers, options: TcpOptions::default() }
}

impl Segment {
    fn flags(mut self, flags: u8) -> Self {
        self.key.tcp_flags |= flags;
        self
    }

    fn port(mut self, port: u16) -> Self {
        self.key.source_port = port;
        self
    }

    fn data(mut self, bytes: u16) -> Self {
        self.headers.tcp_data_length = bytes;
        self
    }

    fn stamped(mut self, value: u32, echo: u32) -> Self {
        self.options.timestamps = Some([value, echo]);
        self
    }

    fn sack(mut self, blocks: &[[u32; 2]]) -> Self {
        assert!(blocks.iter().all(|block| self.options.add_block(*block)));
        self
    }

    fn odd(mut self) -> Self {
        self.options.has_others = true;
        self
    }
}

/// What of these, arriving one right after the other at a queue that is waiting, is dropped; and the counters.
fn run(config: CakeConfig, segments: &[Segment]) -> (Vec<usize>, ClassCounters) {
    let mut link = LinkConfig::new("wire", Target::Port("b".into()));
    link.queue = Box::new(Cake::new(config, config.limit(), Seed(1), "wire"));
    let mut network = NetworkConfig::new(Seed(1));
    network.links.push(link);
    network.ports = vec![
        PortConfig { name: "a".into(), entry: Target::Link { name: "wire".into(), lane: 0 } },
        PortConfig { name: "b".into(), entry: Target::Port("b".into()) },
    ];
    let mut engine: Engine<usize> = Engine::new(network).expect("the network is complete");
    let entry = engine.port("a").expect("it has this port");
    assert_eq!(engine.looks_at_tcp_options(), config.ack_filter != AckFilter::Off);
    // The first one occupies the shaper: 40 bytes take 32 ms.
    let all: Vec<Segment> = [ack(0).port(9)].iter().chain(segments).copied().collect();
    for (number, Segment { key, headers, options }) in all.iter().copied().enumerate() {
        engine.set_tcp_options(options);
        let packet = Packet { length: 40, link_header: 0, network_header: 20, key, headers, body: number };
        engine.hand_in(ms(1) + Duration::from_micros(number as u64), entry, packet);
    }
    let (mut dropped, mut came) = (Vec::new(), Vec::new());
    while let Some(event) = engine.poll(Time::from_nanos(u64::MAX / 2)) {
        let number = *event.body.get();
        match event.verdict {
            Verdict::Delivered(_) => came.push(number),
            Verdict::Dropped { reason, .. } => {
                assert_eq!(reason, DropReason::RedundantAck);
                dropped.push(number - 1);
            }
        }
    }
    assert_eq!(came.len() + dropped.len(), all.len());
    assert!(came.is_sorted(), "{came:?}");
    assert_eq!(engine.inside(), 0);
    let view = engine.view(engine.links().next().expect("it has a link"));
    let counters = view.classes()[0];
    assert_eq!(counters.arrived.packets, counters.sent.packets + counters.dropped.packets);
    assert_eq!((counters.redundant, counters.dropped.packets), (dropped.len() as u64, dropped.len() as u64));
    (dropped, counters)
}

fn config(ack_filter: AckFilter) -> CakeConfig {
    CakeConfig {
        bandwidth: narrows_core::Rate::from_bits_per_second(10_000),
        tins: TinMode::BestEffort,
        isolation: Isolation::None,
        rtt: Duration::from_secs(1000),
        ack_filter,
        ..CakeConfig::default()
    }
}

fn dropped(ack_filter: AckFilter, segments: &[Segment]) -> Vec<usize> {
    run(config(ack_filter), segments).0
}

use AckFilter::{Aggressive, Off, On};

#[test]
fn one_of_several_stays_and_aggressively_the_last() {
    let rising = [1, 2, 3, 4, 5].map(|number| ack(number * 1000));
    assert_eq!(dropped(Off, &rising), []);
    // Two redundant ones before the third to drop the first of them.
    assert_eq!(dropped(On, &rising), [0, 1, 2]);
    assert_eq!(dropped(Aggressive, &rising), [0, 1, 2, 3]);
}

#[test]
fn only_what_a_later_one_says_too_is_redundant() {
    let kept = |before: Segment, newest: Segment| {
        assert_eq!(dropped(Aggressive, &[before, newest]), [], "{before:?} {newest:?}");
    };
    let gone = |before: Segment, newest: Segment| {
        assert_eq!(dropped(Aggressive, &[before, newest]), [0], "{before:?} {newest:?}");
    };
    gone(ack(1), ack(2));
    gone(ack(u32::MAX), ack(2));
    kept(ack(2), ack(1));
    // Duplicates count for fast retransmissions.
    kept(ack(1), ack(1));
    kept(ack(1).flags(PSH), ack(2));
    kept(ack(1).flags(SYN), ack(2));
    kept(ack(1), ack(2).flags(SYN));
    kept(ack(1).data(1), ack(2));
    gone(ack(1), ack(2).data(1000).flags(PSH));
    kept(ack(1).odd(), ack(2));
    gone(ack(1), ack(2).odd());
    kept(ack(1).port(2), ack(2));
    kept(ack(1).flags(ECE), ack(2));
    gone(ack(1).flags(ECE), ack(2).flags(ECE));
    gone(ack(1).stamped(5, 5), ack(2).stamped(5, 6));
    kept(ack(1).stamped(6, 5), ack(2).stamped(5, 6));
    kept(ack(1).stamped(5, 6), ack(2).stamped(6, 5));
    kept(ack(1).stamped(1, 1), ack(2));
    gone(ack(1).stamped(u32::MAX, 1), ack(2).stamped(1, 1));
}

#[test]
fn selective_acknowledgements_are_not_lost() {
    let with = |number, blocks: &[[u32; 2]]| ack(number).sack(blocks);
    let all = |before, newest| dropped(Aggressive, &[before, newest]).len();
    // The same number, and more of it.
    assert_eq!(all(with(10, &[[20, 30]]), with(10, &[[20, 40]])), 1);
    assert_eq!(all(ack(10), with(10, &[[20, 30]])), 1);
    assert_eq!(all(with(10, &[[20, 30]]), with(10, &[[20, 30], [50, 60]])), 1);
    assert_eq!(all(with(10, &[[20, 30], [50, 60]]), with(10, &[[20, 60]])), 1);
    // The same, once more.
    assert_eq!(all(with(10, &[[20, 30]]), with(10, &[[20, 30]])), 0);
    assert_eq!(all(with(10, &[[20, 30]]), with(11, &[[20, 30]])), 1);
    // Something that the newest does not say.
    assert_eq!(all(with(10, &[[20, 30]]), with(30, &[])), 0);
    assert_eq!(all(with(10, &[[20, 30]]), with(10, &[[40, 90]])), 0);
    assert_eq!(all(with(10, &[[20, 30], [50, 60]]), with(10, &[[20, 55]])), 0);
    // A duplicate arrived.
    assert_eq!(all(with(10, &[[5, 10]]), with(20, &[[5, 10], [30, 40]])), 0);
}

#[test]
fn changes_of_congestion_flags_are_not_lost() {
    let [plain, marked] = [0, ECE].map(|flags| move |number| ack(number).flags(flags));
    // The marked ones are a run of their own; the first of two redundant neighbours goes.
    let segments = [plain(1), marked(2), marked(3), plain(4), plain(5), plain(6)];
    assert_eq!(dropped(On, &segments), [1, 3]);
    // Others of the connection end a run as well, and strangers do not.
    assert_eq!(dropped(On, &[plain(1), marked(2).data(9), plain(3), plain(4)]), []);
    assert_eq!(dropped(On, &[plain(1), marked(2).port(5), plain(3), plain(4)]), [0]);
    // A packet lies between.
    assert_eq!(dropped(Aggressive, &[plain(1), plain(2).port(5), plain(3)]), []);
}

#[test]
fn long_queues_lose_from_their_heads() {
    // Data does not go; acknowledgements between them do, over several chunks of the store.
    let segments: Vec<Segment> =
        (0..60_u32).map(|number| ack(number).data(if number % 3 == 0 { 100 } else { 0 })).collect();
    let acks: Vec<usize> = (0..60).filter(|number| number % 3 != 0).collect();
    assert_eq!(dropped(On, &segments), acks[..acks.len() - 2]);
}

/// With `ingress`, what is dropped is charged: the next may go after its own duration and a half, instead of its duration.
#[test]
fn drops_are_charged_on_ingress() {
    let rising: Vec<Segment> = (1..40).map(ack).collect();
    let waited = |ingress| {
        let nanos = run(CakeConfig { ingress, ..config(On) }, &rising).1.longest_wait.nanos();
        (nanos + 500_000) / 1_000_000
    };
    assert_eq!((waited(false), waited(true)), (64, 96));
}
