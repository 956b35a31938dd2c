use alloc::vec;

use proptest::prelude::*;

use super::*;

const TCP: u8 = 6;
const UDP: u8 = 17;

fn v4(a: u8, b: u8, c: u8, d: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

fn v6(last: u8) -> [u8; 16] {
    let mut address = [0; 16];
    (address[0], address[15]) = (0xfd, last);
    address
}

fn key() -> FlowKey {
    FlowKey {
        source: v4(10, 0, 0, 1),
        destination: v4(10, 0, 0, 2),
        source_port: 40_000,
        destination_port: 5060,
        network: Protocol::Ipv4,
        transport: UDP,
        traffic_class: 46 << 2 | 1,
        ..FlowKey::default()
    }
}

#[test]
fn every_part_must_hold() {
    let all = Condition {
        sources: vec![Prefix::new(v4(10, 0, 0, 0), 96 + 24)],
        destinations: vec![Prefix::new(v4(10, 0, 0, 2), 128), Prefix::new(v6(0), 8)],
        source_ports: vec![1..=2, 40_000..=40_000],
        destination_ports: vec![5060..=5061],
        ports: vec![5060..=5060],
        protocols: vec![TCP, UDP],
        icmp: Vec::new(),
        dscps: Some(1 << 46),
        ecns: Some(1 << 1),
        lengths: Some(0..=300),
        lane: Some(Lanes::only(1)),
        families: Some(Families::IPV4),
        tcp_flags: None,
        headers: None,
    };
    assert!(all.admits(&key(), 300, 1));
    assert!(Condition::default().admits(&FlowKey::default(), 0, 0));
    assert!(!all.admits(&key(), 301, 1), "length");
    assert!(!all.admits(&key(), 300, 0), "lane");
    for (part, other) in [
        ("source", FlowKey { source: v4(10, 0, 1, 1), ..key() }),
        ("destination", FlowKey { destination: v4(10, 0, 0, 3), ..key() }),
        ("source port", FlowKey { source_port: 3, ..key() }),
        ("destination port", FlowKey { destination_port: 5062, ..key() }),
        ("either port", FlowKey { destination_port: 5061, ..key() }),
        ("protocol", FlowKey { transport: 132, ..key() }),
        ("code point", FlowKey { traffic_class: 1, ..key() }),
        ("ECN", FlowKey { traffic_class: 46 << 2 | 3, ..key() }),
    ] {
        assert!(!all.admits(&other, 300, 1), "{part}");
    }
}

#[test]
fn what_a_packet_does_not_have_is_not_zero() {
    let of = |condition: &Condition, key: &FlowKey| condition.admits(key, 100, 0);
    let other = FlowKey::default(); // ARP, say
    let best_effort = Condition { dscps: Some(1), ..Condition::default() };
    assert!(of(&best_effort, &FlowKey { traffic_class: 0, ..key() }) && !of(&best_effort, &other));
    let hop_by_hop = Condition { protocols: vec![0], ..Condition::default() };
    assert!(!of(&hop_by_hop, &other));
    let anywhere = Condition { sources: vec![Prefix::new([0; 16], 0)], ..Condition::default() };
    assert!(of(&anywhere, &key()) && !of(&anywhere, &other));
    // The identifier of an echo is no port, nor is the absence of one.
    let echo = FlowKey { transport: ICMP, ..key() };
    for condition in [
        Condition { destination_ports: vec![5060..=5060], ..Condition::default() },
        Condition { ports: vec![5060..=5060], ..Condition::default() },
    ] {
        assert!(of(&condition, &key()) && !of(&condition, &echo));
    }
    assert!(!of(&Condition { ports: vec![0..=10], ..Condition::default() }, &other));
}

#[test]
fn families_and_flags() {
    let of = |condition: &Condition, key: &FlowKey| condition.admits(key, 100, 0);
    let arp = FlowKey::default();
    let whole = FlowKey { network: Protocol::Ipv4DontFragment, ..key() };
    let six = FlowKey { source: v6(1), destination: v6(2), network: Protocol::Ipv6, ..key() };
    for (families, expected) in [
        (Families::IPV4, [true, true, false, false]),
        (Families::IPV6, [false, false, true, false]),
        (Families::OTHER, [false, false, false, true]),
        (Families::IPV4.or(Families::OTHER), [true, true, false, true]),
    ] {
        let condition = Condition { families: Some(families), ..Condition::default() };
        assert_eq!([key(), whole, six, arp].map(|key| of(&condition, &key)), expected, "{families:?}");
    }
    let pure_ack = Condition { tcp_flags: Some(TcpFlags { set: 0x10, clear: 0xef }), ..Condition::default() };
    let tcp = |tcp_flags| FlowKey { transport: TCP, tcp_flags, ..key() };
    assert_eq!([0x10, 0x12, 0x18, 0].map(|flags| of(&pure_ack, &tcp(flags))), [true, false, false, false]);
    assert!(!of(&pure_ack, &FlowKey { tcp_flags: 0x10, ..key() }), "no TCP");
}

#[test]
fn types_of_icmp() {
    let types = |range| Condition { icmp: vec![range], ..Condition::default() };
    let echo = |transport, of: u16| FlowKey { transport, source_port: of << 8, ..key() };
    let asks = types(0x0800..=0x08ff);
    assert!(asks.admits(&echo(ICMP, 8), 84, 0));
    assert!(!asks.admits(&echo(ICMP, 0), 84, 0), "an answer");
    assert!(!asks.admits(&echo(UDP, 8), 84, 0), "a port");
    assert!(types(0x8000..=0x80ff).admits(&echo(ICMPV6, 128), 84, 0));
    assert!(types(0..=0xffff).covers(&asks) && !asks.covers(&types(0..=0xffff)));
    assert!(!Condition { protocols: vec![ICMP], ..Condition::default() }.covers(&asks), "it may be ICMPv6");
    for other in [
        Condition { protocols: vec![UDP], ..asks.clone() },
        Condition { ports: vec![1..=9], ..asks.clone() },
        Condition { tcp_flags: Some(TcpFlags::default()), ..asks.clone() },
        Condition { families: Some(Families::OTHER), ..asks },
    ] {
        assert!(other.is_impossible(), "{other:?}");
    }
}

#[test]
fn covered_or_not() {
    let any = Condition::default;
    let udp = || Condition { protocols: vec![UDP], ..any() };
    let to = |low, high| Condition { destination_ports: vec![low..=high], ..any() };
    let either = |low, high| Condition { ports: vec![low..=high], ..any() };
    let from = |address, bits| Condition { sources: vec![Prefix::new(address, bits)], ..any() };
    let of = |families| Condition { families: Some(families), ..any() };
    let flags = |set, clear| Condition { tcp_flags: Some(TcpFlags { set, clear }), ..any() };
    let upper_half = Prefix::new(v4(10, 128, 0, 0), 96 + 9);
    for (first, second, expected) in [
        (any(), udp(), true),
        (udp(), any(), false),
        (udp(), Condition { lengths: Some(0..=300), ..udp() }, true),
        (Condition { lengths: Some(0..=300), ..any() }, udp(), false),
        (Condition { lengths: Some(0..=u32::MAX), ..any() }, udp(), true),
        (to(1, 100), to(5, 50), true),
        (to(1, 100), to(5, 101), false),
        (Condition { destination_ports: vec![1..=4, 5..=9], ..any() }, to(3, 7), true),
        (either(1, 100), to(5, 50), true),
        (to(1, 100), either(5, 50), false),
        (to(0, 65_535), udp(), true), // UDP has ports
        (to(0, 65_535), Condition { protocols: vec![ICMP, UDP], ..any() }, false),
        (to(0, 65_535), any(), false),
        (from(v4(10, 0, 0, 0), 96 + 8), from(v4(10, 1, 2, 3), 128), true),
        (from(v4(10, 1, 2, 3), 128), from(v4(10, 0, 0, 0), 96 + 8), false),
        (from(v4(0, 0, 0, 0), 96), from(v6(1), 128), false),
        (from([0; 16], 0), udp(), true),
        (from([0; 16], 0), any(), false), // what is not IP
        (
            Condition { sources: vec![Prefix::new(v4(10, 0, 0, 0), 96 + 9), upper_half], ..any() },
            from(v4(10, 0, 0, 0), 96 + 8),
            true,
        ),
        (Condition { dscps: Some(u64::MAX), ..any() }, udp(), true),
        (Condition { dscps: Some(u64::MAX), ..any() }, any(), false),
        (of(Families::IPV4), from(v4(10, 0, 0, 0), 96 + 8), true),
        (of(Families::IPV4), from(v6(1), 128), false),
        (of(Families::IPV4.or(Families::IPV6)), udp(), true),
        (of(Families::IPV4), udp(), false),
        (flags(0x10, 0), flags(0x10, 0x02), true),
        (flags(0x10, 0x02), flags(0x10, 0), false),
        (Condition { protocols: vec![TCP], ..any() }, flags(0x10, 0), true),
        (
            Condition { lane: Some(Lanes::only(0)), ..any() },
            Condition { lane: Some(Lanes::only(1)), ..any() },
            false,
        ),
    ] {
        assert_eq!(first.covers(&second), expected, "{first:?}\n{second:?}");
    }
}

#[test]
fn contradictions() {
    let any = Condition::default;
    let network = |address, bits| vec![Prefix::new(address, bits)];
    for impossible in [
        Condition { dscps: Some(0), ..any() },
        Condition { lengths: Some(RangeInclusive::new(5, 4)), ..any() },
        Condition { ports: vec![RangeInclusive::new(5, 4)], ..any() },
        Condition { protocols: vec![ICMP], ports: vec![80..=80], ..any() },
        Condition { sources: network(v4(10, 0, 0, 0), 104), destinations: network(v6(0), 8), ..any() },
        Condition {
            ports: vec![80..=80],
            source_ports: vec![1024..=65_535],
            destination_ports: vec![443..=443],
            ..any()
        },
        Condition { families: Some(Families::IPV6), sources: network(v4(10, 0, 0, 0), 104), ..any() },
        Condition { families: Some(Families::OTHER), protocols: vec![UDP], ..any() },
        Condition { protocols: vec![UDP], tcp_flags: Some(TcpFlags { set: 2, clear: 0 }), ..any() },
        Condition { tcp_flags: Some(TcpFlags { set: 2, clear: 2 }), ..any() },
    ] {
        assert!(impossible.is_impossible(), "{impossible:?}");
    }
    for possible in [
        any(),
        Condition { protocols: vec![ICMP, UDP], ports: vec![80..=80], ..any() },
        Condition { sources: network([0; 16], 0), destinations: network(v6(0), 8), ..any() },
        Condition { sources: network([0; 16], 0), destinations: network(v4(1, 2, 3, 4), 128), ..any() },
        Condition { ports: vec![80..=80], source_ports: vec![1024..=65_535], ..any() },
    ] {
        assert!(!possible.is_impossible(), "{possible:?}");
    }
}

/// Small domains, so that random conditions and packets meet often.
fn port_ranges() -> impl Strategy<Value = Vec<RangeInclusive<u16>>> {
    let edge = || prop_oneof![0u16..6, Just(u16::MAX)];
    let range = (edge(), edge()).prop_map(|(a, b)| a..=b);
    prop_oneof![2 => Just(vec![]), 3 => proptest::collection::vec(range, 1..3)]
}

fn prefixes() -> impl Strategy<Value = Vec<Prefix>> {
    let prefix = (address(), prop_oneof![Just(0u8), Just(8), Just(96), Just(104), 124..=128u8])
        .prop_map(|(address, bits)| Prefix::new(address, bits));
    prop_oneof![2 => Just(vec![]), 2 => proptest::collection::vec(prefix, 1..3)]
}

fn address() -> impl Strategy<Value = [u8; 16]> {
    prop_oneof![(0u8..6).prop_map(|d| v4(10, 0, 0, d)), (0u8..6).prop_map(v6)]
}

fn protocol() -> impl Strategy<Value = u8> {
    proptest::sample::select(vec![ICMP, TCP, UDP])
}

fn condition() -> impl Strategy<Value = Condition> {
    let protocols = prop_oneof![Just(vec![]), proptest::collection::vec(protocol(), 1..3)];
    let dscps = prop_oneof![Just(None), Just(Some(u64::MAX)), (0u64..16).prop_map(Some)];
    let ecns = prop_oneof![2 => Just(None), 1 => Just(Some(0xf)), 3 => (0u8..16).prop_map(Some)];
    let lengths = prop_oneof![
        Just(None),
        (0u32..6, 0u32..6).prop_map(|(low, high)| Some(RangeInclusive::new(low, high))),
        Just(Some(0..=u32::MAX)),
    ];
    let lane = prop_oneof![Just(None), (0u8..2).prop_map(|lane| Some(Lanes::only(lane)))];
    let families = prop_oneof![3 => Just(None), 1 => (0u8..8).prop_map(|set| Some(Families(set)))];
    let icmp = prop_oneof![3 => Just(vec![]), 1 => port_ranges()];
    let flags = (0u8..8, 0u8..8).prop_map(|(set, clear)| Some(TcpFlags { set, clear }));
    let layers = (lane, families, prop_oneof![3 => Just(None), 1 => flags], icmp);
    let addresses = (prefixes(), prefixes());
    (addresses, port_ranges(), port_ranges(), port_ranges(), protocols, (dscps, ecns), lengths, layers)
        .prop_map(
            |(
                (sources, destinations),
                source_ports,
                destination_ports,
                ports,
                protocols,
                (dscps, ecns),
                lengths,
                (lane, families, tcp_flags, icmp),
            )| {
                Condition {
                    sources,
                    destinations,
                    source_ports,
                    destination_ports,
                    ports,
                    protocols,
                    icmp,
                    dscps,
                    ecns,
                    lengths,
                    lane,
                    families,
                    tcp_flags,
                    headers: None,
                }
            },
        )
}

/// A packet as it may be on a wire: its key, length and lane.
fn packet() -> impl Strategy<Value = (FlowKey, u32, u8)> {
    let port = || prop_oneof![4 => 0u16..7, 1 => Just(u16::MAX)];
    let ip =
        (0u8..6, 0u8..6, any::<bool>(), (port(), port()), protocol(), (0u8..20, 0u8..8), 0u32..7, 0u8..2)
            .prop_map(
                |(
                    from,
                    to,
                    six,
                    (source_port, destination_port),
                    transport,
                    (traffic_class, flags),
                    length,
                    lane,
                )| {
                    let address = |d| if six { v6(d) } else { v4(10, 0, 0, d) };
                    let key = FlowKey {
                        source: address(from),
                        destination: address(to),
                        source_port,
                        destination_port,
                        network: if six { Protocol::Ipv6 } else { Protocol::Ipv4 },
                        transport,
                        traffic_class,
                        tcp_flags: if transport == TCP { flags } else { 0 },
                        ..FlowKey::default()
                    };
                    (key, length, lane)
                },
            );
    let other = (0u32..7, 0u8..2).prop_map(|(length, lane)| (FlowKey::default(), length, lane));
    prop_oneof![9 => ip, 1 => other]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Whatever is said without a packet is true of every packet that is tried.
    #[test]
    fn what_is_said_without_a_packet_is_true(
        first in condition(), second in condition(), packets in proptest::collection::vec(packet(), 60),
    ) {
        let holds = |condition: &Condition, (key, length, lane): &(FlowKey, u32, u8)| {
            condition.admits(key, *length, *lane)
        };
        for packet in &packets {
            prop_assert!(!(first.is_impossible() && holds(&first, packet)), "{first:?} {packet:?}");
            prop_assert!(
                !(first.covers(&second) && holds(&second, packet) && !holds(&first, packet)),
                "{first:?}\n{second:?}\n{packet:?}"
            );
        }
        prop_assert!(first.covers(&first));
        prop_assert!(Condition::default().covers(&first));
        if first.covers(&second) && !second.is_impossible() {
            let mut values = first.only_values().into_iter().zip(second.only_values());
            prop_assert!(values.all(|(own, other)| own.is_none() || own == other), "{first:?}\n{second:?}");
        }
    }

    /// A condition that asks for more in one part is covered: the answer is not always no.
    #[test]
    fn asking_for_more_is_covered(wide in condition(), narrow in condition(), part in 0usize..9) {
        let mut both = wide.clone();
        match part {
            0 if wide.protocols.is_empty() => both.protocols = narrow.protocols,
            1 if wide.sources.is_empty() => both.sources = narrow.sources,
            2 if wide.destination_ports.is_empty() => both.destination_ports = narrow.destination_ports,
            3 if wide.dscps.is_none() => both.dscps = narrow.dscps,
            4 if wide.lengths.is_none() => both.lengths = narrow.lengths,
            5 if wide.lane.is_none() => both.lane = narrow.lane,
            7 if wide.families.is_none() => both.families = narrow.families,
            8 if wide.tcp_flags.is_none() => both.tcp_flags = narrow.tcp_flags,
            6 if wide.ecns.is_none() => both.ecns = narrow.ecns,
            _ => {}
        }
        prop_assert!(wide.covers(&both), "{wide:?}\n{both:?}");
        let mut values = wide.only_values().into_iter().zip(both.only_values());
        prop_assert!(
            both.is_impossible() || values.all(|(own, other)| own.is_none() || own == other),
            "{wide:?}\n{both:?}"
        );
    }
}
