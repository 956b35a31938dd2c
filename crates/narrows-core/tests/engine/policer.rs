//! The policer at the entrance of a link.

use narrows_core::sched::Peak;
use narrows_core::service::{Overhead, Work};
use narrows_core::{
    Bytes, Change, DropReason, Duration, Engine, Exceed, FlowKey, LinkConfig, NetworkConfig, Packet, Policer,
    PolicerConfig, PortConfig, Rate, Seed, Target, Time, Verdict,
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
