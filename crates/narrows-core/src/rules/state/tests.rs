use proptest::prelude::*;

use crate::packet::Protocol;
use crate::rules::By;
use crate::time::Duration;

use super::*;

mod plain;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const PSH: u8 = 8;
const ACK: u8 = 16;

const RULE: Parent = Parent { rule: 7, argument: 0 };

fn key(transport: u8, source: (u8, u16), destination: (u8, u16), tcp_flags: u8) -> FlowKey {
    let address = |last| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last];
    FlowKey {
        source: address(source.0),
        destination: address(destination.0),
        source_port: source.1,
        destination_port: destination.1,
        network: Protocol::Ipv4,
        transport,
        tcp_flags,
        ..FlowKey::default()
    }
}

fn back(key: FlowKey) -> FlowKey {
    FlowKey {
        source: key.destination,
        destination: key.source,
        source_port: key.destination_port,
        destination_port: key.source_port,
        ..key
    }
}

fn seconds(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// Whether a state that was made at 0 and whose last packet came then has just this lifetime.
fn lives(states: &States, last: &FlowKey, lifetime: u64) -> bool {
    let found = |at| states.clone().lookup(at, last, 1).is_some();
    found(Time::from_nanos(lifetime * 1_000_000_000 - 1)) && !found(seconds(lifetime))
}

#[test]
fn lifetimes_are_those_of_the_table() {
    let there = |flags| key(TCP, (1, 1024), (2, 80), flags);
    let cases: [(&[FlowKey], u64); 12] = [
        (&[key(UDP, (1, 1024), (2, 53), 0)], 10),
        (&[key(ICMP, (1, 0x800), (2, 7), 0)], 5),
        (&[there(SYN)], 20),
        (&[there(SYN), back(there(SYN | ACK))], 300),
        (&[there(SYN), back(there(SYN | ACK)), there(ACK), there(FIN | ACK)], 300),
        (&[there(SYN), back(there(SYN | ACK)), back(there(FIN | ACK)), back(there(ACK))], 300),
        (&[there(SYN), back(there(SYN | ACK)), there(FIN | ACK), back(there(FIN | ACK))], 1),
        (&[there(SYN), back(there(RST | ACK))], 1),
        (&[there(SYN), back(there(SYN | ACK)), there(RST)], 1),
        // A connection that was there before: no SYN.
        (&[there(PSH | ACK)], 1),
        (&[there(SYN), there(FIN)], 1),
        // An answer that is not one.
        (&[there(SYN), back(there(ACK))], 20),
    ];
    for (packets, lifetime) in cases {
        let mut states = States::new(StateConfig::default());
        assert_eq!(states.install(Time::ZERO, &packets[0], RULE, Keep::State), Ok(()));
        for packet in &packets[1..] {
            assert_eq!(states.lookup(Time::ZERO, packet, 40).map(|(found, _)| found), Some(RULE));
        }
        let last = FlowKey { tcp_flags: 0, ..packets[0] };
        assert!(lives(&states, &last, lifetime), "{lifetime} s after {packets:?}");
    }
}

#[test]
fn a_flow_is_protocol_addresses_and_ports_both_ways() {
    let udp = key(UDP, (1, 1024), (2, 53), 0);
    let mut states = States::new(StateConfig::default());
    assert_eq!(states.lookup(Time::ZERO, &udp, 100).map(|(found, _)| found), None);
    assert_eq!(states.install(Time::ZERO, &udp, RULE, Keep::State), Ok(()));
    // "no additional attributes other than protocol and IP addresses and ports are checked"
    let same = FlowKey { traffic_class: 0xb8, mark: 3, network: Protocol::Ipv4DontFragment, ..udp };
    for of_it in [udp, same, back(udp)] {
        assert_eq!(states.lookup(Time::ZERO, &of_it, 100).map(|(found, _)| found), Some(RULE));
    }
    let others = [
        FlowKey { transport: TCP, ..udp },
        FlowKey { source_port: 1025, ..udp },
        FlowKey { network: Protocol::Ipv6, ..udp },
        FlowKey { source: udp.destination, destination: udp.source, ..udp },
    ];
    for other in others {
        assert_eq!(states.lookup(Time::ZERO, &other, 100).map(|(found, _)| found), None, "{other:?}");
    }
    let [view] = &states.views(seconds(4), |rule| rule as u16 * 100)[..] else { panic!("one state") };
    assert_eq!((view.rule, view.kind, view.packets, view.bytes), (700, StateKind::State, 3, 300));
    assert_eq!((view.source, view.source_port, view.left), (udp.source, 1024, Duration::from_secs(6)));
}

#[test]
fn a_state_keeps_the_argument_of_the_first_packet() {
    let udp = key(UDP, (1, 1024), (2, 53), 0);
    let mut states = States::new(StateConfig::default());
    let parent = Parent { rule: 7, argument: 12 };
    states.install(Time::ZERO, &udp, parent, Keep::State).unwrap();
    // The flow has a state already: it stays what it is.
    states.install(Time::ZERO, &udp, Parent { rule: 8, argument: 13 }, Keep::State).unwrap();
    assert_eq!(states.lookup(Time::ZERO, &back(udp), 100).map(|(found, _)| found), Some(parent));
}

#[test]
fn an_echo_reply_belongs_to_its_request() {
    // The key has type and code where others have a source port, and the identifier where they have a destination port.
    let request = key(ICMP, (1, 0x0800), (2, 77), 0);
    let mut states = States::new(StateConfig::default());
    states.install(Time::ZERO, &request, RULE, Keep::State).unwrap();
    assert_eq!(
        states.lookup(Time::ZERO, &key(ICMP, (2, 0), (1, 77), 0), 84).map(|(found, _)| found),
        Some(RULE)
    );
}

#[test]
fn a_host_may_have_ten_connections_but_not_eleven() {
    // ipfw(8), "DYNAMIC RULES": allow tcp from my-net/24 to any setup limit src-addr 10
    let keep = Keep::Limit { most: 10, by: By { source: true, ..By::default() } };
    let mut states = States::new(StateConfig::default());
    let open = |states: &mut States, at, host, port| {
        states.install(at, &key(TCP, (host, port), (200, 80), SYN), RULE, keep)
    };
    for port in 0..10 {
        assert_eq!(open(&mut states, seconds(port), 1, port as u16), Ok(()));
    }
    assert_eq!(open(&mut states, seconds(10), 1, 10), Err(Refused::Limit));
    // One that is open already is no new one, and another host has its own ten.
    assert_eq!(open(&mut states, seconds(10), 1, 5), Ok(()));
    assert_eq!(open(&mut states, seconds(10), 2, 10), Ok(()));
    assert_eq!(states.refused(), RefusedCounts { full: 0, limit: 1 });
    let kinds = states.views(seconds(10), |_| 0).into_iter().map(|view| view.kind).collect::<Vec<_>>();
    assert_eq!(kinds.iter().filter(|kind| **kind == StateKind::Limited).count(), 11);
    assert_eq!((kinds[0], kinds[11]), (StateKind::Limit { flows: 10 }, StateKind::Limit { flows: 1 }));
    // The first SYN is forgotten after 20 s, and there is room for another.
    assert_eq!(open(&mut states, Time::from_nanos(19_999_999_999), 1, 10), Err(Refused::Limit));
    assert_eq!(open(&mut states, seconds(20), 1, 10), Ok(()));
    assert_eq!(open(&mut states, seconds(20), 1, 11), Err(Refused::Limit));
}

#[test]
fn no_more_states_than_there_may_be() {
    let mut states = States::new(StateConfig { most: 3, ..StateConfig::default() });
    let mut install = |at, port| states.install(at, &key(UDP, (1, port), (2, 53), 0), RULE, Keep::State);
    for port in 0..3 {
        assert_eq!(install(seconds(0), port), Ok(()));
    }
    assert_eq!(install(seconds(9), 3), Err(Refused::Full));
    assert_eq!(install(seconds(9), 0), Ok(()));
    assert_eq!([3, 4, 5].map(|port| install(seconds(10), port)), [Ok(()), Ok(()), Err(Refused::Full)]);
    assert_eq!(states.refused(), RefusedCounts { full: 2, limit: 0 });
    assert_eq!(states.count(seconds(10)), 3);
}

#[test]
fn states_go_with_their_rule_and_leave_room_to_others() {
    let by = By { destination: true, ..By::default() };
    let mut states = States::new(StateConfig::default());
    for port in 0..2000u16 {
        let keep = if port % 2 == 0 { Keep::State } else { Keep::Limit { most: 5000, by } };
        let rule = Parent { rule: u32::from(port % 3), argument: 0 };
        states.install(Time::ZERO, &key(UDP, (1, port), (2, 53), 0), rule, keep).unwrap();
    }
    states.remove_of(&[1]);
    let all = states.views(Time::ZERO, |rule| rule as u16);
    assert!(all.iter().all(|view| view.rule != 1));
    // Those of 0 and 2, and a limit for each of these.
    assert_eq!((states.count(Time::ZERO), all.len()), (1333, 1335));
    states.remove_of(&[0]);
    states.remove_of(&[2]);
    assert!(states.views(Time::ZERO, |_| 0).is_empty() && states.shares.is_empty());
}

#[test]
fn the_dead_do_not_pile_up() {
    let mut states = States::new(StateConfig::default());
    for packet in 0..100_000u64 {
        // 1,000 flows a second that last for 5 s.
        let host = key(ICMP, (1, 0), (2, 0), 0);
        let flow = FlowKey { source: u128::from(packet).to_be_bytes(), ..host };
        states.install(Time::from_nanos(packet * 1_000_000), &flow, RULE, Keep::State).unwrap();
        assert!(states.states.len() <= 5_000);
    }
}

/// A packet, and what is asked of the states about it.
#[derive(Clone, Debug)]
enum Step {
    Lookup(FlowKey),
    Install(FlowKey, Parent, Keep),
    RemoveOf(u32),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let transport = prop_oneof![Just(TCP), Just(TCP), Just(UDP), Just(ICMP)];
    let end = || (0..3u8, 0..2u16);
    let packet = (transport, end(), end(), any::<bool>(), 0..8u8).prop_map(|(transport, a, b, v6, flags)| {
        let network = if v6 { Protocol::Ipv6 } else { Protocol::Ipv4 };
        FlowKey { network, ..key(transport, a, b, flags | if transport == TCP { ACK } else { 0 }) }
    });
    let by = any::<[bool; 4]>().prop_map(|[source, source_port, destination, destination_port]| By {
        source,
        source_port,
        destination,
        destination_port,
    });
    let limit = (0..5u32, by).prop_map(|(most, by)| Keep::Limit { most, by });
    let keep = prop_oneof![Just(Keep::State), limit];
    let step = prop_oneof![
        8 => packet.clone().prop_map(Step::Lookup),
        8 => (packet, 0..3u32, 0..3u32, keep).prop_map(|(packet, rule, argument, keep)| {
            Step::Install(packet, Parent { rule, argument }, keep)
        }),
        1 => (0..3u32).prop_map(Step::RemoveOf),
    ];
    // Gaps near the lifetimes and far below them.
    let gap = prop_oneof![Just(0), 0..100u64, (1..30u64).prop_map(|n| n * 100), Just(30_000)];
    prop::collection::vec((gap, step), 1..150)
}

proptest! {
    #[test]
    fn they_do_what_plain_ones_do(most in 1..12u32, steps in steps()) {
        // Lifetimes in milliseconds, some of them equal.
        let of = Duration::from_millis;
        let config = StateConfig {
            most,
            tcp_syn: of(2000),
            tcp_established: of(30_000),
            tcp_fin: of(100),
            tcp_rst: of(100),
            udp: of(1000),
            other: of(500),
        };
        let mut states = States::new(config.clone());
        let mut plain = plain::States::new(config);
        let mut now = Time::ZERO;
        for (gap, step) in steps {
            now = now + of(gap);
            match step {
                Step::Lookup(key) => {
                    prop_assert_eq!(states.lookup(now, &key, 60).map(|(found, _)| found), plain.lookup(now, &key, 60));
                }
                Step::Install(key, rule, keep) => {
                    let made = states.install(now, &key, rule, keep);
                    prop_assert_eq!(made, plain.install(now, &key, rule, keep));
                }
                Step::RemoveOf(rule) => {
                    states.remove_of(&[rule]);
                    plain.remove_of(rule);
                }
            }
            prop_assert_eq!(states.count(now), plain.count(now));
        }
        prop_assert_eq!(states.refused(), plain.refused);
        let of_states = states.views(now, |rule| rule as u16).into_iter();
        let of_states = of_states.filter(|view| !matches!(view.kind, StateKind::Limit { .. }));
        prop_assert_eq!(of_states.collect::<Vec<_>>(), plain.views(now));
    }
}
