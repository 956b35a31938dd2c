//! Frames through the engine and out again, and a run from its log.

use std::collections::BTreeMap;

use etherparse::defrag::IpDefragPool;
use narrows_core::aqm::{Aqm, Judgement, Waiting};
use narrows_core::classify::Prefix;
use narrows_core::queue::Context;
use narrows_core::sched::Weight;
use narrows_core::steps::{After, Steps};
use narrows_core::{
    Change, Corruption, DropReason, Duration, Engine, FlowKey, LinkConfig, Mtu, MtuPolicy, NetworkConfig,
    Order, PacketRef, PortConfig, Probability, Rate, Route, RouterConfig, Seed, Spread, Target, Time,
    Verdict, model, queue, service,
};
use narrows_frame::craft::Udp;
use narrows_frame::edit::Edits;
use narrows_frame::log::{
    Decided, Ended, Header, Keep, LogReader, LogWriter, LoggedFiles, Outcome, Port, PortNumber, Record,
};
use narrows_frame::parse::{parse, parse_cut};
use narrows_frame::{LinkLayer, MacAddress, WallTime};

/// Links one after the other, from port `a` to port `b`.
fn network(seed: u64, mut links: Vec<LinkConfig>) -> NetworkConfig {
    let mut config = NetworkConfig::new(Seed(seed));
    let names: Vec<_> = links.iter().map(|link| link.name.clone()).collect();
    for (link, next) in links.iter_mut().zip(names.iter().skip(1)) {
        link.lanes = vec![Target::Link { name: next.clone(), lane: 0 }];
    }
    config.links = links;
    config.ports = vec![
        PortConfig { name: "a".into(), entry: Target::Link { name: names[0].clone(), lane: 0 } },
        PortConfig { name: "b".into(), entry: Target::Port("a".into()) },
    ];
    config
}

fn link(name: &str) -> LinkConfig {
    LinkConfig::new(name, Target::Port("b".into()))
}

fn frame(identification: u16, payload: &[u8]) -> Vec<u8> {
    let probe = Udp::new(([10, 0, 0, 1], 4000).into(), ([10, 0, 0, 2], 5000).into());
    let probe = Udp { identification, ..probe };
    probe.ethernet(MacAddress([2, 0, 0, 0, 0, 2]), MacAddress([2, 0, 0, 0, 0, 1]), payload)
}

/// Bytes without a pattern.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[test]
fn a_packet_leaves_with_fewer_hops_for_each_router_that_it_passed() {
    let way = |target| Route {
        ways: vec![(target, Weight::ONE)],
        spread: Spread::Flow,
        local: false,
        ..Route::default()
    };
    let router = |name: &str, next| RouterConfig {
        name: name.into(),
        // All of IPv4.
        routes: vec![(Prefix::new([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0], 96), way(next))],
        ..RouterConfig::default()
    };
    let mut config = network(1, vec![link("wire")]);
    config.links[0].lanes = vec![Target::Router("second".into())];
    config.ports[0].entry = Target::Router("first".into());
    let wire = Target::Link { name: "wire".into(), lane: 0 };
    config.routers = vec![router("first", wire), router("second", Target::Port("b".into()))];
    let mut engine: Engine<Vec<u8>> = Engine::new(config).expect("a network");
    let port = engine.port("a").expect("it is there");
    let frame = frame(7, b"hello");
    for hop_limit in [2, 64] {
        let mut frame = frame.clone();
        frame[22] = hop_limit;
        let packet = parse(LinkLayer::Ethernet, &frame);
        engine.hand_in(Time::ZERO, port, packet.with(frame));
    }
    let event = engine.poll(Time::NEVER).expect("the first is dropped");
    assert!(matches!(event.verdict, Verdict::Dropped { reason: DropReason::HopLimit, .. }));
    let event = engine.poll(Time::NEVER).expect("the second is delivered");
    let mut out = Vec::new();
    Edits::of(&event).render(event.body.get(), &mut out);
    let parsed = parse(LinkLayer::Ethernet, &out);
    assert_eq!((parsed.headers.hop_limit, event.hops), (62, 2));
    // Another implementation makes the same of the header.
    let slice = etherparse::Ipv4HeaderSlice::from_slice(&out[14..]).expect("a header");
    assert_eq!(slice.header_checksum(), slice.to_header().calc_header_checksum());
}

#[test]
fn another_implementation_reassembles_what_two_links_cut() {
    let mut wide = link("wide");
    wide.settings.mtu = Some(Mtu { bytes: 1000, policy: MtuPolicy::Fragment });
    let mut narrow = link("narrow");
    narrow.settings.mtu = Some(Mtu { bytes: 301, policy: MtuPolicy::Fragment });
    let mut engine = Engine::new(network(1, vec![wide, narrow])).expect("it is a network");
    let a = engine.port("a").expect("it was configured");

    let sent: Vec<_> = (0..20u16).map(|id| noise(u64::from(id), 100 * usize::from(id))).collect();
    for (id, payload) in sent.iter().enumerate() {
        let frame = frame(id as u16, payload);
        engine.hand_in(Time::ZERO, a, parse(LinkLayer::Ethernet, &frame).with(frame));
    }
    let mut pieces = Vec::new();
    while let Some(event) = engine.poll(Time::NEVER) {
        let (edits, mut out) = (Edits::of(&event), Vec::new());
        let frame = event.body.get();
        assert!(matches!(event.verdict, Verdict::Delivered(_)));
        assert_eq!(edits.needed(frame), event.fragment.is_some());
        edits.render(frame, &mut out);
        assert_eq!(out.len() as u32, event.length + 14);
        assert!(event.length <= 301);
        pieces.push(out);
    }
    // A packet of n bytes of payload is cut where n + 20 is more than the MTU, into pieces of a multiple of 8.
    let cut = |payload: usize, mtu: usize| {
        let room = if payload + 20 > mtu { (mtu - 20) / 8 * 8 } else { payload };
        (0..payload).step_by(room).map(move |offset| room.min(payload - offset))
    };
    let pieces_of =
        |payload: &Vec<u8>| cut(payload.len() + 8, 1000).flat_map(|piece| cut(piece, 301)).count();
    assert_eq!(pieces.len(), sent.iter().map(pieces_of).sum::<usize>());

    let mut received = vec![Vec::new(); sent.len()];
    let mut pool = IpDefragPool::<(), ()>::new();
    for piece in pieces.iter().rev() {
        let sliced = etherparse::SlicedPacket::from_ethernet(piece).expect("it is well formed");
        let Some(etherparse::NetSlice::Ipv4(ip)) = &sliced.net else { panic!("it is IPv4") };
        assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
        let id = usize::from(ip.header().identification());
        if ip.header().is_fragmenting_payload() {
            if let Some(whole) = pool.process_sliced_packet(&sliced, (), ()).expect("it fits") {
                received[id] = whole.payload[8..].to_vec();
            }
        } else {
            received[id] = piece[14 + 28..].to_vec();
        }
    }
    assert_eq!(received, sent);
}

#[test]
fn a_corrupted_packet_differs_in_one_bit_of_its_ip_packet() {
    let mut noisy = link("noisy");
    noisy.corruption = Some(Corruption::of(model::Independent(Probability::ONE)));
    let mut engine = Engine::new(network(1, vec![noisy])).expect("it is a network");
    let a = engine.port("a").expect("it was configured");
    let mut sent = frame(1, b"hi");
    sent.resize(60, 0);
    for _ in 0..1000 {
        engine.hand_in(Time::ZERO, a, parse(LinkLayer::Ethernet, &sent).with(sent.clone()));
    }
    let mut hit = [0; 60];
    while let Some(event) = engine.poll(Time::NEVER) {
        let mut out = Vec::new();
        Edits::of(&event).render(event.body.get(), &mut out);
        let changed: Vec<_> = (0..60).filter(|&at| out[at] != sent[at]).collect();
        assert_eq!(changed.len(), 1);
        assert_eq!((out[changed[0]] ^ sent[changed[0]]).count_ones(), 1);
        hit[changed[0]] += 1;
    }
    // 1000 flips among 30 bytes: a given byte is missed by all with a probability of (29/30)^1000 < 10^-14.
    assert!(hit.iter().enumerate().all(|(at, &hits)| (hits > 0) == (14..44).contains(&at)), "{hit:?}");
}

/// Tells every second packet of congestion.
#[derive(Debug, Default)]
struct EverySecond(u64);

impl Aqm for EverySecond {
    fn arrive(&mut self, _: Time, _: PacketRef, _: Waiting, _: &mut Context<'_>) -> Judgement {
        Judgement::Pass
    }

    fn depart(&mut self, _: Time, packet: PacketRef, _: Waiting, context: &mut Context<'_>) -> Judgement {
        self.0 += 1;
        if self.0.is_multiple_of(2) {
            Judgement::congestion(true, context.pool.get(packet))
        } else {
            Judgement::Pass
        }
    }
}

/// The frame of a packet with this traffic class, over IPv4 or IPv6.
fn frame_of_class(class: u8, version: u8, identification: u16, payload: &[u8]) -> Vec<u8> {
    let [from, to] = match version {
        4 => [([10, 0, 0, 1], 4000).into(), ([10, 0, 0, 2], 5000).into()],
        _ => [([0xfd00, 0, 0, 0, 0, 0, 0, 1], 4000).into(), ([0xfd00, 0, 0, 0, 0, 0, 0, 2], 5000).into()],
    };
    let packet = Udp { identification, traffic_class: class, ..Udp::new(from, to) };
    packet.ethernet(MacAddress([2, 0, 0, 0, 0, 2]), MacAddress([2, 0, 0, 0, 0, 1]), payload)
}

/// A mark is one packet's own: its twin, which has the same frame, and the other pieces do not get it.
#[test]
fn marks_reach_the_frames_of_copies_and_pieces_one_by_one() {
    // DSCP EF with ECT(0), over both versions; the long ones of IPv4 are cut in three.
    const CLASS: u8 = 46 << 2 | 2;
    let mut first = link("first");
    first.settings.mtu = Some(Mtu { bytes: 600, policy: MtuPolicy::Fragment });
    first.duplication = Some(Box::new(model::Independent(Probability::ONE)));
    let mut second = link("second");
    second.queue = Box::new(queue::Fifo::managed(
        queue::Bound::Packets(1000),
        queue::DropAt::Tail,
        Box::new(EverySecond::default()),
    ));
    let mut engine = Engine::new(network(1, vec![first, second])).expect("it is a network");
    let a = engine.port("a").expect("it was configured");
    let (mut sent, mut outcomes) = (Vec::new(), BTreeMap::new());
    for (number, (version, length)) in
        [(4, 1500), (6, 400), (4, 100)].into_iter().cycle().take(30).enumerate()
    {
        let frame = frame_of_class(CLASS, version, number as u16, &noise(number as u64, length));
        engine.hand_in(Time::ZERO, a, parse(LinkLayer::Ethernet, &frame).with(frame.clone()));
        sent.push(frame);
    }
    while let Some(event) = engine.poll(Time::NEVER) {
        assert!(matches!(event.verdict, Verdict::Delivered(_)));
        let (edits, mut out, mut unmarked) = (Edits::of(&event), Vec::new(), Vec::new());
        edits.render(event.body.get(), &mut out);
        Edits { traffic_class: CLASS, ..edits }.render(event.body.get(), &mut unmarked);
        let parsed = parse(LinkLayer::Ethernet, &out);
        assert_eq!((parsed.key.dscp(), parsed.key.ecn()), (46, event.key.ecn()));
        let is_marked = event.key.ecn() == FlowKey::CONGESTION_EXPERIENCED;
        let changed: Vec<_> = (0..out.len()).filter(|&at| out[at] != unmarked[at]).collect();
        let sliced = etherparse::SlicedPacket::from_ethernet(&out).expect("it is well formed");
        match (&sliced.net, is_marked) {
            (Some(etherparse::NetSlice::Ipv4(ip)), _) => {
                assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
                // The class and the header's checksum, of which often one byte changes.
                assert!(if is_marked {
                    changed[0] == 15 && changed[1..].iter().all(|at| [24, 25].contains(at))
                } else {
                    changed.is_empty()
                });
            }
            (_, true) => assert_eq!(changed, [15]),
            (_, false) => assert_eq!(changed, [0; 0]),
        }
        *outcomes.entry((event.id.number() % 3, is_marked)).or_insert(0u32) += 1;
    }
    let marked = engine.view(engine.link("second").expect("a link")).counters()[0].marked;
    // 20 twins, each of one or three pieces; every second departure is marked.
    assert_eq!(outcomes.values().sum::<u32>(), 20 * (3 + 1 + 1));
    assert_eq!(marked, 50);
    assert_eq!(
        outcomes,
        BTreeMap::from([
            ((0, false), 30),
            ((0, true), 30),
            ((1, false), 10),
            ((1, true), 10),
            ((2, false), 10),
            ((2, true), 10)
        ])
    );
}

/// Loss, duplication, jitter that reorders, corruption, fragmentation and a short queue.
fn rough() -> NetworkConfig {
    let mut rough = link("rough");
    rough.service = Box::new(service::ConstantRate(Rate::from_bits_per_second(2_000_000)));
    rough.queue = Box::new(queue::Fifo::new(queue::Bound::Packets(8), queue::DropAt::Tail));
    rough.ingress_loss = Some(narrows_core::Loss::of(model::Independent(percent(5))));
    rough.wire_loss = Some(narrows_core::Loss::of(model::Independent(percent(5))));
    rough.duplication = Some(Box::new(model::Independent(percent(5))));
    rough.corruption = Some(Corruption::of(model::Independent(percent(5))));
    rough.settings.order = Order::Allow;
    let (low, high) = (Duration::from_millis(1), Duration::from_millis(30));
    rough.delay = Box::new(model::Uniform::new(low, high).expect("low is below high"));
    rough.settings.mtu = Some(Mtu { bytes: 600, policy: MtuPolicy::Fragment });
    network(7, vec![rough])
}

const fn percent(percent: u64) -> Probability {
    Probability::from_ratio(percent, 100).expect("it is at most 100")
}

/// What `what` means to the link, in this test.
fn change(what: &str, files: &BTreeMap<String, Vec<u8>>) -> Change {
    let fed = |ask| {
        let on_empty = model::OnEmpty::Repeat;
        let config = model::FeedConfig { on_empty, lead: 20, ask, ..model::FeedConfig::new("jitter") };
        Change::Delay(Box::new(model::Fed::new(config)))
    };
    match what.strip_prefix("rough.").and_then(|what| what.split_once('=')) {
        Some(("rate", rate)) => {
            let rate = Rate::from_bits_per_second(rate.parse().expect("the test wrote it"));
            Change::Service(Box::new(service::ConstantRate(rate)))
        }
        Some(("feed", "one-way")) => fed(None),
        Some(("feed", "two-way")) => fed(Some(Duration::from_millis(4))),
        Some(("trace", file)) => {
            let rate = |(at, &rate): (u64, &u8)| {
                (Time::from_nanos(at * 1_000_000), Rate::from_bits_per_second(u64::from(rate) * 20_000))
            };
            let points = (0..).zip(&files[file]).map(rate).collect();
            let steps = Steps::new(points, After::Loop(Duration::from_secs(1))).expect("they are in order");
            Change::Service(Box::new(service::RateSteps::new(steps)))
        }
        _ => panic!("the test does not write {what}"),
    }
}

/// Changes, by the number of the packet that they come after.
const CHANGES: [(u64, &str); 5] = [
    (200, "rough.feed=one-way"),
    (700, "rough.feed=two-way"),
    (1000, "rough.rate=1000000"),
    (1200, "rough.trace=cell"),
    (1600, "rough.feed=one-way"),
];

#[test]
fn a_run_from_its_log_gives_the_same_verdicts() {
    let header = Header {
        program: "a test".into(),
        started: WallTime::from_nanos(0),
        seed: Seed(7),
        keep: Keep::Headers,
        scenario: String::new(),
        ports: ["a", "b"].map(|name| Port { name: name.into(), layer: LinkLayer::Ethernet }).into(),
        links: vec!["rough".into()],
    };
    let mut log = LogWriter::new("log", Vec::new(), &header).expect("a vector takes it");
    let mut engine = Engine::new(rough()).expect("it is a network");
    let (a, link) = (engine.port("a").expect("a port"), engine.link("rough").expect("a link"));
    let (mut verdicts, mut stragglers) = (Vec::new(), 0);
    let trace = (String::from("cell"), noise(1, 700));
    let files = BTreeMap::from([trace.clone()]);
    for number in 0..2000u64 {
        // Every tenth packet comes three milliseconds later than it says.
        let came = Time::from_nanos(number * 1_500_000);
        let said = if number % 10 == 9 { Time::from_nanos(number * 1_500_000 - 3_000_000) } else { came };
        let at = said.max(engine.now());
        stragglers += u64::from(at != said);
        let frame = frame(number as u16, &noise(number, (number % 7 * 170) as usize));
        let parsed = parse(LinkLayer::Ethernet, &frame);
        log.arrived(at, at.since(said), PortNumber::from(a), &frame, parsed.examined)
            .expect("a vector takes it");
        engine.hand_in(at, a, parsed.with(frame));
        if let Some((_, text)) = CHANGES.into_iter().find(|(after, _)| *after == number) {
            if text.ends_with("cell") {
                log.file(&trace.0, &trace.1).expect("a vector takes it");
            }
            log.write(&Record::Changed(narrows_frame::log::Changed { at, text })).expect("a vector takes it");
            engine.change(at, link, change(text, &files));
        }
        if number % 4 == 1 {
            // Too few, then too many; some are -1.
            let values: Vec<i64> = noise(number, (number / 100 % 9) as usize)
                .into_iter()
                .map(|byte| i64::from(byte) * 100_000 - i64::from(byte == 0))
                .collect();
            let taken = engine.feed(at, link, "jitter", &values);
            log.fed(at, link.into(), "jitter", &values[..taken]).expect("a vector takes it");
        }
        while let Some(event) = engine.poll(came) {
            let decided = Decided::of(&event);
            log.write(&Record::Decided(decided)).expect("a vector takes it");
            verdicts.push(decided);
        }
    }
    while let Some(event) = engine.poll(Time::NEVER) {
        let decided = Decided::of(&event);
        log.write(&Record::Decided(decided)).expect("a vector takes it");
        verdicts.push(decided);
    }
    let fed = engine.view(link).feeds()[0].counters;
    assert!(fed.used > 300 && fed.underruns > 300 && fed.refused > 100 && fed.asked > 200, "{fed:?}");
    assert!(fed.late > 100, "{fed:?}");
    let ended = Ended { arrivals: 2000, verdicts: verdicts.len() as u64, stragglers, ..Ended::default() };
    log.write(&Record::Ended(ended)).expect("a vector takes it");
    let file = log.finish().expect("a vector takes it");
    let dropped = verdicts.iter().filter(|one| matches!(one.outcome, Outcome::Dropped { .. })).count();
    assert!(
        verdicts.len() > 2500 && dropped > 300 && stragglers > 100,
        "{} {dropped} {stragglers}",
        verdicts.len()
    );

    let mut engine = Engine::new(rough()).expect("it is a network");
    let (mut again, mut logged) = (Vec::new(), Vec::new());
    let mut reader = LogReader::new("log", &file[..]).expect("it is a log");
    let mut files = LoggedFiles::default();
    while let Some(record) = reader.read().expect("it is whole") {
        match record {
            Record::Arrived(arrived) => {
                let parsed = parse_cut(LinkLayer::Ethernet, arrived.frame, arrived.length);
                engine.hand_in(arrived.at, a, parsed.with(()));
            }
            Record::Generated(_) | Record::Segment(_) => panic!("nobody generated packets"),
            Record::Changed(changed) => {
                engine.change(changed.at, link, change(changed.text, files.whole()));
            }
            Record::Fed(fed) => {
                assert_eq!(engine.feed(fed.at, link, fed.feed, &fed.values), fed.values.len());
            }
            Record::File(part) => files.take(part).expect("it is whole"),
            Record::Decided(decided) => logged.push(decided),
            Record::Ended(read) => assert_eq!(read, ended),
            Record::Lost(_) => panic!("nothing was lost"),
        }
    }
    while let Some(event) = engine.poll(Time::NEVER) {
        again.push(Decided::of(&event));
    }
    assert_eq!(engine.stragglers(), 0);
    assert_eq!(logged, verdicts);
    assert_eq!(again, verdicts);
}
