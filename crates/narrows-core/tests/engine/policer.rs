//! The policer at the entrance of a link.

use narrows_core::classify::Condition;
use narrows_core::sched::Peak;
use narrows_core::service::{Overhead, Work};
use narrows_core::{
    Bytes, Change, DropReason, Duration, Engine, Exceed, FlowKey, Ingress, IngressFilter, LinkConfig,
    NetworkConfig, Packet, Policer, PolicerConfig, PortConfig, Protocol, Rate, Seed, Target, Time, Verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;

const CONFIG: PolicerConfig = PolicerConfig {
    rate: Rate::from_bits_per_second(8_000_000),
    burst: Bytes::new(3_000),
    peak: None,
    mpu: Bytes::new(0),
    overhead: None,
    exceed: Exceed::Drop,
};

fn policed(config: PolicerConfig, overhead: Overhead) -> Engine<()> {
    let mut network = NetworkConfig::new(Seed(1));
    let mut link = LinkConfig::new("link", Target::Port("out".into()));
    (link.policer, link.overhead) = (Some(Policer::new(config).expect("in range")), overhead);
    network.links.push(link);
    let entry = Target::Link { name: "link".into(), lane: 0 };
    network.ports = vec![
        PortConfig { name: "in".into(), entry },
        PortConfig { name: "out".into(), entry: Target::Port("out".into()) },
    ];
    Engine::new(network).expect("it leads somewhere")
}

/// Hands in a packet; whether it is delivered, and with which code point.
fn probe(engine: &mut Engine<()>, now: Time, length: u32, ecn: u8) -> Result<u8, DropReason> {
    let port = engine.port("in").expect("it is there");
    let key = FlowKey { traffic_class: ecn, ..FlowKey::default() };
    let headers = Default::default();
    engine.hand_in(now, port, Packet { length, link_header: 14, network_header: 0, headers, key, body: () });
    let event = engine.poll(now).expect("nothing takes time here");
    match event.verdict {
        Verdict::Delivered { .. } => Ok(event.key.ecn()),
        Verdict::Dropped { reason, .. } => Err(reason),
    }
}

fn counts(engine: &Engine<()>) -> (u64, u64) {
    let counts = engine.view(engine.link("link").expect("it is there")).policer().expect("there is one");
    (counts.conforming.packets, counts.exceeding.packets)
}

#[test]
fn what_exceeds_is_dropped_marked_or_counted() {
    for (exceed, plain, capable) in [
        (Exceed::Drop, Err(DropReason::Policed), Err(DropReason::Policed)),
        (Exceed::Mark, Err(DropReason::Policed), Ok(FlowKey::CONGESTION_EXPERIENCED)),
        (Exceed::Pass, Ok(0), Ok(2)),
    ] {
        let mut engine = policed(PolicerConfig { exceed, ..CONFIG }, Overhead::IP);
        for _ in 0..3 {
            assert_eq!(probe(&mut engine, Time::ZERO, 1000, 2), Ok(2), "a burst of three");
        }
        assert_eq!(probe(&mut engine, Time::ZERO, 1000, 0), plain);
        assert_eq!(probe(&mut engine, Time::ZERO, 1000, 2), capable);
        // What exceeded used up nothing: a millisecond earns one.
        assert_eq!(probe(&mut engine, Time::from_nanos(999_999), 1000, 0), plain);
        assert_eq!(probe(&mut engine, Time::from_nanos(1_000_000), 1000, 0), Ok(0));
        assert_eq!(counts(&engine), (4, 3));
    }
}

#[test]
fn the_overhead_counts_and_a_change_begins_anew() {
    let config = PolicerConfig { mpu: Bytes::new(64), ..CONFIG };
    let mut engine = policed(config, Overhead::FRAME);
    // 3000 bytes: 1014, 1014, 914, and then not even 58, which is one of 64.
    for (length, conforms) in [(1000, true), (1000, true), (900, true), (44, false)] {
        assert_eq!(probe(&mut engine, Time::ZERO, length, 0).is_ok(), conforms, "{length}");
    }
    let link = engine.link("link").expect("it is there");
    let policer = Policer::new(PolicerConfig { peak: peak(1_000), ..config }).expect("in range");
    engine.change(Time::from_nanos(1), link, Change::Policer(Some(policer)));
    // Full again, and no faster than its peak: 900 and no more.
    for (length, conforms) in [(900, true), (900, false), (70, true), (44, false)] {
        assert_eq!(probe(&mut engine, Time::from_nanos(2), length, 0).is_ok(), conforms, "{length}");
    }
    // By an overhead of its own: three packets of 1000 bytes, whatever the link counts.
    let policer = Policer::new(PolicerConfig { overhead: Some(Overhead::IP), ..config }).expect("in range");
    engine.change(Time::from_nanos(2), link, Change::Policer(Some(policer)));
    for (length, conforms) in [(1000, true), (1000, true), (1000, true), (1, false)] {
        assert_eq!(probe(&mut engine, Time::from_nanos(3), length, 0).is_ok(), conforms, "{length}");
    }
    engine.change(Time::from_nanos(3), link, Change::Policer(None));
    assert_eq!(probe(&mut engine, Time::from_nanos(3), 60_000, 0), Ok(0));
    assert_eq!(engine.view(link).policer(), None);
}

fn peak(mtu: u64) -> Option<Peak> {
    Some(Peak { rate: Rate::from_bits_per_second(80_000_000), mtu: Bytes::new(mtu) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Against buckets by the closed form, in exact fractions: what is in one is the least, over all instants, of the burst
    /// then and what was earned and paid since.
    #[test]
    fn it_lets_in_what_the_closed_form_does(
        packets in vec((0u64..4_000_000, 1u32..3_000), 1..80),
        (rate, burst, mtu) in (1_000u64..50_000_000, 1_000u64..6_000, proptest::option::of(1_000u64..3_000)),
    ) {
        let rate_of = Rate::from_bits_per_second(rate);
        let peak = mtu.map(|mtu| Peak { rate: Rate::from_bits_per_second(rate * 3), mtu: Bytes::new(mtu) });
        let config = PolicerConfig { rate: rate_of, burst: Bytes::new(burst), peak, ..CONFIG };
        let mut engine = policed(config, Overhead::IP);
        let mut let_in: Vec<(Time, u128)> = Vec::new();
        let mut now = Time::ZERO;
        for (gap, length) in packets {
            now = now + Duration::from_nanos(gap);
            let cost = Work::bits(u64::from(length) * 8).0;
            let holds = |rate: u64, burst: u64| {
                let rate = Rate::from_bits_per_second(rate);
                // In every span that ends here: no more than the burst and what the span earns.
                let mut paid = cost;
                let burst = Work::bits(burst * 8).0;
                let spans = let_in.iter().rev().all(|&(since, own)| {
                    paid += own;
                    paid <= burst + Work::done(rate, now.since(since)).0
                });
                cost <= burst && spans
            };
            let conforms = holds(rate, burst) && mtu.is_none_or(|mtu| holds(rate * 3, mtu));
            prop_assert_eq!(probe(&mut engine, now, length, 0).is_ok(), conforms);
            if conforms {
                let_in.push((now, cost));
            }
        }
    }
}

/// Packets of the port 22 are dropped, those of 53 pass, and all others are policed; a policer may leave packets to the
/// next filter.
#[test]
fn the_first_filter_that_decides_counts() {
    let port = |port: u16| vec![Condition { destination_ports: vec![port..=port], ..Condition::default() }];
    let policer = |exceed| Policer::new(PolicerConfig { exceed, ..CONFIG }).expect("in range");
    let mut engine = policed(CONFIG, Overhead::IP);
    let link = engine.link("link").expect("it is there");
    engine.change(Time::ZERO, link, Change::Policer(None));
    let send = |engine: &mut Engine<()>, to: u16| {
        let key =
            FlowKey { destination_port: to, transport: 17, network: Protocol::Ipv4, ..FlowKey::default() };
        let entry = engine.port("in").expect("it is there");
        let headers = Default::default();
        let packet = Packet { length: 1000, link_header: 14, network_header: 20, headers, key, body: () };
        engine.hand_in(Time::ZERO, entry, packet);
        match engine.poll(Time::ZERO).expect("nothing takes time here").verdict {
            Verdict::Delivered { .. } => Ok(()),
            Verdict::Dropped { reason, .. } => Err(reason),
        }
    };
    let filters = |policer: Policer| {
        let list = vec![
            IngressFilter::Drop(port(22)),
            IngressFilter::Pass(port(53)),
            IngressFilter::Police(policer),
        ];
        Change::Ingress(Some(Ingress::new(list)))
    };
    engine.change(Time::ZERO, link, filters(policer(Exceed::Drop)));
    let lost = Err(DropReason::Policed);
    for (to, expected) in [(22, lost), (80, Ok(())), (80, Ok(())), (80, Ok(())), (80, lost), (53, Ok(()))] {
        assert_eq!(send(&mut engine, to), expected, "{to}");
    }
    // Packets above the rate go on to a filter that drops them, packets below it to one that drops those.
    let all = || IngressFilter::Drop(Vec::new());
    for (policer, expected) in [
        (policer(Exceed::Next), [Ok(()), Ok(()), Ok(()), lost]),
        (policer(Exceed::Pass).and_goes_on(), [lost, lost, lost, Ok(())]),
    ] {
        let list = vec![IngressFilter::Police(policer), all()];
        engine.change(Time::ZERO, link, Change::Ingress(Some(Ingress::new(list))));
        for expected in expected {
            assert_eq!(send(&mut engine, 80), expected);
        }
    }
    engine.change(Time::ZERO, link, Change::Ingress(None));
    assert_eq!(send(&mut engine, 22), Ok(()));
}
