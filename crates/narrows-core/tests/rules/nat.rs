//! Address translation: by hand, what ipfw(8) and libalias(3) say; at random, against a list of flows.

use std::net::Ipv4Addr;

use narrows_core::rules::{
    Action, Argument, Decision, Inner, Labels, Lifetimes, Masked, NatConfig, Passing, Place, Redirect,
    Remote, Rule, RuleChange, RuleError, RuleSet, RuleSetConfig, Test,
};
use narrows_core::{Duration, FlowKey, Headers, Protocol, Quoted, Seed, Time};

use crate::random::Random;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

type End = (Ipv4Addr, u16);

const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const INNER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// A packet at the rules.
#[derive(Clone, Copy)]
struct Packet {
    key: FlowKey,
    headers: Headers,
    quoted: Option<Quoted>,
}

impl Packet {
    fn new(transport: u8, source: End, destination: End) -> Self {
        let address = |address: Ipv4Addr| address.to_ipv6_mapped().octets();
        let key = FlowKey {
            source: address(source.0),
            destination: address(destination.0),
            source_port: source.1,
            destination_port: destination.1,
            network: Protocol::Ipv4,
            transport,
            ..FlowKey::default()
        };
        Self { key, headers: Headers::plain(&key, 100), quoted: None }
    }

    fn icmp(kind: u8, id: u16, source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self::new(ICMP, (source, u16::from(kind) << 8), (destination, id))
    }

    fn with(mut self, edit: impl FnOnce(&mut Self)) -> Self {
        edit(&mut self);
        self
    }

    fn ends(&self) -> (End, End) {
        let v4 = |address: [u8; 16]| {
            std::net::Ipv6Addr::from(address).to_ipv4_mapped().expect("an address of IPv4")
        };
        ((v4(self.key.source), self.key.source_port), (v4(self.key.destination), self.key.destination_port))
    }
}

struct Host {
    rules: RuleSet,
    now: Time,
    number: u64,
}

fn by(config: NatConfig) -> Host {
    Host::new(vec![Rule::new(100, Action::Nat(Argument::Number(1)))], vec![(1, config)])
}

impl Host {
    fn new(rules: Vec<Rule>, nats: Vec<(u32, NatConfig)>) -> Self {
        let bits = |address: Ipv4Addr| u128::from(address.to_ipv6_mapped());
        let me = vec![Masked { address: bits(HOST), mask: u128::MAX }];
        let config = RuleSetConfig { rules, nats, me, ..RuleSetConfig::default() };
        Self { rules: RuleSet::new(Seed(7), "net", config).expect("it is right"), now: Time::ZERO, number: 0 }
    }

    fn walk(&mut self, packet: &mut Packet, incoming: bool, from: Place) -> Decision {
        self.number += 1;
        let number = self.number;
        let mut passing = Passing {
            key: &mut packet.key,
            whole: None,
            quoted: packet.quoted.as_mut(),
            headers: &packet.headers,
            length: 100,
            link_header: 14,
            incoming,
            labels: &mut Labels::default(),
            draw: &mut |stream| stream.draw(0, number, 0, 0),
        };
        self.rules.walk(self.now, &mut passing, from)
    }

    /// The packet as it leaves; `None` if it is denied.
    fn pass(&mut self, mut packet: Packet, incoming: bool) -> Option<Packet> {
        match self.walk(&mut packet, incoming, Place::default()) {
            Decision::Translated { .. } | Decision::Pass => Some(packet),
            Decision::Deny => None,
            other => panic!("{other:?}"),
        }
    }

    fn out(&mut self, packet: Packet) -> Option<Packet> {
        self.pass(packet, false)
    }

    fn back(&mut self, packet: Packet) -> Option<Packet> {
        self.pass(packet, true)
    }

    /// Sends out a datagram; returns its outer end.
    fn outer(&mut self, source: End, destination: End) -> End {
        self.out(Packet::new(UDP, source, destination)).expect("it goes out").ends().0
    }

    /// Where a datagram to this end goes.
    fn inner(&mut self, source: End, destination: End) -> Option<End> {
        self.back(Packet::new(UDP, source, destination)).map(|packet| packet.ends().1)
    }
}

#[test]
fn a_flow_goes_out_from_the_hosts_address_and_its_answers_come_back() {
    let mut host = by(NatConfig::default());
    let outer = host.outer((INNER, 5000), (FAR, 53));
    assert_eq!(outer.0, HOST);
    assert!(outer.1 >= 32_768, "{outer:?}");
    assert_eq!(host.outer((INNER, 5000), (FAR, 53)), outer, "the same flow");
    assert_eq!(host.inner((FAR, 53), outer), Some((INNER, 5000)));
    // Another remote end: another port ("symmetric"), and that one does not lead in from elsewhere.
    assert_ne!(host.outer((INNER, 5000), (FAR, 54)), outer);
    assert_eq!(host.inner((FAR, 55), outer), Some(outer), "for the host itself");
    let other = host.outer((OTHER, 5000), (FAR, 53));
    assert_ne!(other, outer);
    assert_eq!(host.inner((FAR, 53), other), Some((OTHER, 5000)));
    assert_eq!(host.rules.nats(host.now).next().unwrap().flows, [0, 4, 0, 0]);
}

#[test]
fn ports_stay_where_they_are_free() {
    let mut host = by(NatConfig { keeps_ports: true, ..NatConfig::default() });
    assert_eq!(host.outer((INNER, 5000), (FAR, 53)), (HOST, 5000));
    let other = host.outer((OTHER, 5000), (FAR, 53));
    assert!(other.1 >= 32_768, "{other:?}");
    assert_eq!(host.outer((OTHER, 5000), (FAR, 54)), (HOST, 5000), "free for another remote end");
}

#[test]
fn with_independent_mapping_anybody_may_send_to_the_one_port() {
    let eim = NatConfig { udp_eim: true, ..NatConfig::default() };
    let mut host = by(eim.clone());
    let outer = host.outer((INNER, 5000), (FAR, 53));
    assert_eq!(host.outer((INNER, 5000), (OTHER, 9)), outer);
    assert_eq!(host.inner((Ipv4Addr::new(203, 0, 113, 9), 1), outer), Some((INNER, 5000)));
    assert_ne!(host.outer((OTHER, 5000), (FAR, 53)), outer);
    let mut host = by(NatConfig { denies_incoming: true, ..eim });
    let outer = host.outer((INNER, 5000), (FAR, 53));
    assert_eq!(host.inner((FAR, 53), outer), Some((INNER, 5000)));
    assert_eq!(host.inner((FAR, 54), outer), None, "it has sent nothing there");
    assert_eq!(host.outer((INNER, 5000), (FAR, 54)), outer);
    assert_eq!(host.inner((FAR, 54), outer), Some((INNER, 5000)));
}

#[test]
fn what_comes_in_without_a_flow_is_for_the_host_or_denied() {
    let mut host = by(NatConfig::default());
    assert_eq!(host.inner((FAR, 53), (HOST, 22)), Some((HOST, 22)));
    assert_eq!(host.outer((HOST, 22), (FAR, 53)), (HOST, 22), "the host answers from the same port");
    let mut host = by(NatConfig { denies_incoming: true, ..NatConfig::default() });
    assert_eq!(host.inner((FAR, 53), (HOST, 22)), None);
    assert!(host.back(Packet::icmp(8, 3, FAR, HOST)).is_none());
    assert!(host.back(Packet::icmp(5, 0, FAR, HOST)).is_none(), "a redirect belongs to no flow");
    // Not IPv4, and not IP.
    let of = |network| Packet::new(UDP, (INNER, 1), (FAR, 2)).with(|packet| packet.key.network = network);
    assert!(host.out(of(Protocol::Ipv6)).is_none());
    assert!(host.out(of(Protocol::Other)).is_some() && host.back(of(Protocol::Other)).is_some());
}

#[test]
fn ports_addresses_and_protocols_are_redirected() {
    let redirects = vec![
        Redirect::Ports {
            protocol: UDP,
            inner: vec![(INNER, 1000)],
            outer: None,
            port: 6000,
            count: 10,
            remote: Remote::default(),
        },
        Redirect::Ports {
            protocol: UDP,
            inner: vec![(INNER, 80), (OTHER, 81)],
            outer: None,
            port: 80,
            count: 1,
            remote: Remote { address: Some(FAR), port: None },
        },
        Redirect::Address { inner: vec![OTHER], outer: Some(Ipv4Addr::new(192, 0, 2, 9)) },
        Redirect::Protocol { protocol: 47, inner: INNER, outer: None, remote: None },
    ];
    let mut host = by(NatConfig { redirects, keeps_ports: true, ..NatConfig::default() });
    assert_eq!(host.inner((FAR, 5), (HOST, 6003)), Some((INNER, 1003)));
    assert_eq!(host.outer((INNER, 1003), (FAR, 5)), (HOST, 6003));
    assert_eq!(host.outer((INNER, 1004), (FAR, 5)), (HOST, 6004), "also if the inner host begins");
    assert_eq!(host.inner((FAR, 5), (HOST, 6010)), Some((HOST, 6010)), "one beyond");
    // They take turns, for this remote address alone.
    assert_eq!(host.inner((FAR, 1), (HOST, 80)), Some((INNER, 80)));
    assert_eq!(host.inner((FAR, 2), (HOST, 80)), Some((OTHER, 81)));
    assert_eq!(host.inner((FAR, 1), (HOST, 80)), Some((INNER, 80)), "its flow");
    assert_eq!(host.inner((OTHER, 3), (HOST, 80)), Some((HOST, 80)));
    let public = Ipv4Addr::new(192, 0, 2, 9);
    assert_eq!(host.inner((FAR, 5), (public, 99)), Some((OTHER, 99)));
    assert_eq!(host.outer((OTHER, 7), (FAR, 6)), (public, 7));
    let tunnel = host.back(Packet::new(47, (FAR, 0), (HOST, 0))).unwrap();
    assert_eq!(tunnel.ends().1.0, INNER);
    let tunnel = host.out(Packet::new(47, (INNER, 0), (FAR, 0))).unwrap();
    assert_eq!(tunnel.ends().0.0, HOST);
}

#[test]
fn only_private_addresses_are_translated_on_demand() {
    let shared = Ipv4Addr::new(100, 64, 0, 9);
    for (inner, translates) in [
        (Inner::All, [true; 3]),
        (Inner::Private, [true, false, false]),
        (Inner::PrivateOrShared, [true, true, false]),
    ] {
        let mut host = by(NatConfig { inner, ..NatConfig::default() });
        for (source, is_translated) in [INNER, shared, FAR].into_iter().zip(translates) {
            let expected = if is_translated { HOST } else { source };
            assert_eq!(host.outer((source, 5), (OTHER, 53)).0, expected, "{inner:?}");
        }
    }
}

#[test]
fn echoes_have_identifiers_and_errors_follow_what_they_quote() {
    let mut host = by(NatConfig::default());
    let request = host.out(Packet::icmp(8, 77, INNER, FAR)).unwrap();
    let (source, (_, id)) = request.ends();
    assert_eq!(source, (HOST, 8 << 8), "type and code stay");
    let reply = host.back(Packet::icmp(0, id, FAR, HOST)).unwrap();
    assert_eq!(reply.ends().1, (INNER, 77));
    let outer = host.outer((INNER, 5000), (FAR, 53));
    // A router on the way says that the hop limit is exceeded.
    let router = Ipv4Addr::new(192, 0, 2, 254);
    let error = |quoted| Packet::icmp(11, 0, router, HOST).with(|packet| packet.quoted = Some(quoted));
    let quoted = Quoted { protocol: UDP, source: outer, destination: (FAR, 53) };
    let told = host.back(error(quoted)).unwrap();
    assert_eq!(told.ends().1.0, INNER);
    assert_eq!(told.quoted, Some(Quoted { source: (INNER, 5000), ..quoted }));
    let quoted = Quoted { protocol: ICMP, source: (HOST, id), destination: (FAR, id) };
    let told = host.back(error(quoted)).unwrap();
    assert_eq!(told.quoted, Some(Quoted { source: (INNER, 77), destination: (FAR, 77), ..quoted }));
    // About no flow: it stays, and where incoming packets need a flow, it is denied.
    let quoted = Quoted { protocol: UDP, source: (HOST, 9), destination: (FAR, 9) };
    assert_eq!(host.back(error(quoted)).unwrap().quoted, Some(quoted));
    // The inner host tells the remote one that its port is closed.
    let quoted = Quoted { protocol: UDP, source: (FAR, 53), destination: (INNER, 5000) };
    let told = host.out(Packet::icmp(3, 0, INNER, FAR).with(|packet| packet.quoted = Some(quoted))).unwrap();
    assert_eq!(told.ends().0.0, HOST);
    assert_eq!(told.quoted, Some(Quoted { destination: outer, ..quoted }));
}

#[test]
fn later_fragments_follow_the_first() {
    let mut host = by(NatConfig { keeps_ports: true, ..NatConfig::default() });
    let outer = host.outer((INNER, 5000), (FAR, 53));
    let first = Packet::new(UDP, (FAR, 53), outer)
        .with(|packet| (packet.headers.fragment, packet.headers.ip_id) = (0x20, 9));
    let later = Packet::new(UDP, (FAR, 0), (HOST, 0)).with(|packet| {
        (packet.headers.is_later_fragment, packet.headers.ip_id) = (true, 9);
    });
    assert!(host.back(later).is_none(), "the first has not come");
    assert_eq!(host.back(first).unwrap().ends().1, (INNER, 5000));
    assert_eq!(host.back(later).unwrap().ends().1, (INNER, 0));
    host.now = host.now + Duration::from_secs(11);
    assert!(host.back(later).is_none());
    let out = Packet::new(UDP, (INNER, 0), (FAR, 0)).with(|packet| packet.headers.is_later_fragment = true);
    assert_eq!(host.out(out).unwrap().ends().0, (HOST, 0));
}

#[test]
fn a_piece_that_was_cut_inside_has_the_flow_of_its_packet() {
    let mut host = by(NatConfig::default());
    let outer = host.outer((INNER, 5000), (FAR, 53));
    let mut whole = Packet::new(UDP, (FAR, 53), outer);
    let mut seen = FlowKey { source_port: 0, destination_port: 0, ..whole.key };
    let headers = Headers { is_later_fragment: true, ..whole.headers };
    let mut passing = Passing {
        key: &mut seen,
        whole: Some(&mut whole.key),
        quoted: None,
        headers: &headers,
        length: 100,
        link_header: 14,
        incoming: true,
        labels: &mut Labels::default(),
        draw: &mut |stream| stream.draw(0, 1, 0, 0),
    };
    let decision = host.rules.walk(host.now, &mut passing, Place::default());
    assert!(matches!(decision, Decision::Translated { changed: true, .. }), "{decision:?}");
    assert_eq!(whole.ends().1, (INNER, 5000));
    assert_eq!(
        (seen.destination, seen.destination_port),
        (whole.key.destination, 0),
        "rules see no ports of it"
    );
}

#[test]
fn flows_end_after_their_lifetime_and_tcp_by_its_flags() {
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let seconds = Duration::from_secs;
    let mut host = by(NatConfig { keeps_ports: true, ..NatConfig::default() });
    host.outer((INNER, 5000), (FAR, 53));
    host.now = host.now + seconds(59);
    assert_eq!(host.inner((FAR, 53), (HOST, 5000)), Some((INNER, 5000)));
    host.now = host.now + seconds(60);
    assert_eq!(host.inner((FAR, 53), (HOST, 5000)), Some((HOST, 5000)), "the flow is over");
    let segment =
        |flags: u8| Packet::new(TCP, (INNER, 6000), (FAR, 80)).with(|packet| packet.key.tcp_flags = flags);
    let answer =
        |flags: u8| Packet::new(TCP, (FAR, 80), (HOST, 6000)).with(|packet| packet.key.tcp_flags = flags);
    let reaches = |host: &mut Host, packet| host.back(packet).unwrap().ends().1.0 == INNER;
    host.out(segment(SYN)).unwrap();
    host.now = host.now + seconds(299);
    assert!(reaches(&mut host, answer(SYN | ACK)));
    host.out(segment(ACK)).unwrap();
    host.now = host.now + seconds(80_000);
    assert!(reaches(&mut host, answer(ACK)));
    host.out(segment(FIN | ACK)).unwrap();
    host.now = host.now + seconds(89);
    assert!(reaches(&mut host, answer(ACK)), "one side is still open");
    assert!(reaches(&mut host, answer(FIN | ACK)));
    host.now = host.now + seconds(10);
    assert!(!reaches(&mut host, answer(ACK)));
}

#[test]
fn without_a_port_or_room_packets_are_denied_and_counted() {
    let mut host = by(NatConfig { ports: 40_000..=40_001, ..NatConfig::default() });
    let ends: Vec<_> = (0..2)
        .map(|one| host.out(Packet::new(UDP, (INNER, one), (FAR, 53))).map(|out| out.ends().0))
        .collect();
    assert_eq!(ends.iter().flatten().count(), 2);
    assert_ne!(ends[0], ends[1]);
    assert!(host.out(Packet::new(UDP, (INNER, 9), (FAR, 53))).is_none());
    assert_eq!(host.rules.exceeded().nat, 1);
    host.rules.change(host.now, RuleChange::Nat { number: 1, config: None }).unwrap();
    assert_eq!(host.rules.exceeded().nat, 1, "they stay counted");
    let mut host = by(NatConfig { most: 3, ..NatConfig::default() });
    let went = (0..5).filter(|&one| host.out(Packet::new(UDP, (INNER, one), (FAR, 53))).is_some()).count();
    assert_eq!((went, host.rules.exceeded().nat), (3, 2));
    host.now = host.now + Duration::from_secs(60);
    host.outer((INNER, 99), (FAR, 53));
    assert_eq!(host.rules.nats(host.now).next().unwrap().flows, [0, 1, 0, 0], "the dead make room");
}

#[test]
fn a_packet_goes_on_behind_the_rule_with_what_it_is_now() {
    let from = |address: Ipv4Addr| {
        Test::Source(narrows_core::rules::Addresses::In(vec![Masked {
            address: address.to_ipv6_mapped().into(),
            mask: u128::MAX,
        }]))
    };
    let rules = vec![
        Rule { terms: vec![from(HOST).into()], ..Rule::new(50, Action::Deny) },
        Rule::new(100, Action::Nat(Argument::Number(1))),
        Rule { terms: vec![from(HOST).into()], ..Rule::new(200, Action::Pipe(Argument::Number(5))) },
    ];
    let mut host = Host::new(rules, vec![(1, NatConfig::default())]);
    let mut packet = Packet::new(UDP, (INNER, 5000), (FAR, 53));
    let decision = host.walk(&mut packet, false, Place::default());
    let Decision::Translated { changed: true, resume } = decision else { panic!("{decision:?}") };
    let decision = host.walk(&mut packet, false, resume);
    assert!(matches!(decision, Decision::Pipe { number: 5, .. }), "{decision:?}");
}

#[test]
fn the_global_translator_is_the_one_that_knows_the_flow() {
    let second = Ipv4Addr::new(192, 0, 2, 2);
    let at = |address| NatConfig { address: Some(address), ..NatConfig::default() };
    let mut rules =
        vec![Rule { terms: vec![Test::In.into()], ..Rule::new(100, Action::Nat(Argument::Number(2))) }];
    rules.push(Rule::new(200, Action::NatGlobal));
    let mut host = Host::new(rules, vec![(1, at(HOST)), (2, at(second))]);
    assert_eq!(host.outer((INNER, 5000), (FAR, 53)), (INNER, 5000), "nobody knows it");
    assert_eq!(host.inner((FAR, 53), (second, 22)), Some((second, 22)));
    assert_eq!(host.outer((second, 22), (FAR, 53)), (second, 22));
    let missing = host.rules.change(host.now, RuleChange::Nat { number: 3, config: None });
    assert_eq!(missing, Err(RuleError::NoSuchNat { nat: 3 }));
    host.rules.change(host.now, RuleChange::Nat { number: 2, config: None }).unwrap();
    assert_eq!(host.inner((FAR, 53), (second, 22)), None, "there is no translator");
}

#[test]
fn a_new_address_ends_flows_if_that_is_wanted() {
    let second = Ipv4Addr::new(192, 0, 2, 2);
    for resets in [false, true] {
        let mut host = by(NatConfig { keeps_ports: true, ..NatConfig::default() });
        host.outer((INNER, 5000), (FAR, 53));
        let config = NatConfig { address: Some(second), resets, keeps_ports: true, ..NatConfig::default() };
        host.rules.change(host.now, RuleChange::Nat { number: 1, config: Some(config.into()) }).unwrap();
        let expected = if resets { second } else { HOST };
        assert_eq!(host.outer((INNER, 5000), (FAR, 53)).0, expected);
    }
}

/// A translator as plain as can be: a list of flows.
struct List {
    config: NatConfig,
    flows: Vec<(u8, End, End, End, Time)>,
}

impl List {
    /// Checks what became of a packet.
    fn check(&mut self, now: Time, packet: &Packet, incoming: bool, after: Option<&Packet>) {
        self.flows.retain(|(.., end)| *end > now);
        let protocol = packet.key.transport;
        let (source, destination) = packet.ends();
        let end =
            now + if protocol == UDP { self.config.lifetimes.udp } else { self.config.lifetimes.tcp_closed };
        let is_eim = protocol == UDP && self.config.udp_eim;
        let of = |flow: &&mut (u8, End, End, End, Time), inner: Option<End>, outer: Option<End>, far: End| {
            flow.0 == protocol
                && flow.3 == far
                && inner.is_none_or(|one| one == flow.1)
                && outer.is_none_or(|one| one == flow.2)
        };
        if incoming {
            let found = self.flows.iter_mut().find(|flow| of(flow, None, Some(destination), source));
            if let Some(flow) = found {
                flow.4 = end;
                assert_eq!(after.expect("its flow exists").ends(), (source, flow.1));
                return;
            }
            let shared = self.flows.iter().find(|flow| is_eim && flow.0 == protocol && flow.2 == destination);
            let inner = shared.map_or(destination, |flow| flow.1);
            if self.config.denies_incoming {
                assert!(after.is_none());
            } else {
                assert_eq!(after.expect("it passes").ends(), (source, inner));
                self.flows.retain(|flow| (flow.0, flow.1, flow.3) != (protocol, inner, source));
                self.flows.push((protocol, inner, destination, source, end));
            }
            return;
        }
        let found = self.flows.iter_mut().find(|flow| of(flow, Some(source), None, destination));
        if let Some(flow) = found {
            flow.4 = end;
            assert_eq!(after.expect("its flow exists").ends(), (flow.2, destination));
            return;
        }
        let takes = |outer: End| match is_eim {
            true => self.flows.iter().any(|flow| flow.0 == protocol && flow.2 == outer),
            false => self.flows.iter().any(|flow| (flow.0, flow.2, flow.3) == (protocol, outer, destination)),
        };
        let known = self.flows.iter().find(|flow| is_eim && (flow.0, flow.1) == (protocol, source));
        let Some(after) = after else {
            let ports = self.config.ports.clone().count();
            assert!(ports < 64, "with {ports} ports one is found");
            return;
        };
        let (outer, _) = after.ends();
        assert_eq!(after.ends().1, destination);
        match known {
            Some(flow) => assert_eq!(outer, flow.2),
            None => {
                assert!(!takes(outer), "{outer:?} is taken");
                assert_eq!(outer.0, HOST);
                let keeps = self.config.keeps_ports && !takes((HOST, source.1));
                assert!(if keeps { outer.1 == source.1 } else { self.config.ports.contains(&outer.1) });
            }
        }
        self.flows.push((protocol, source, outer, destination, end));
    }
}

#[test]
fn a_hundred_thousand_packets_are_translated_as_by_a_list_of_flows() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let ports = 40_000..=40_000 + random.one_of(&[15, 63, 5_000]);
        let config = NatConfig {
            keeps_ports: random.percent(50),
            denies_incoming: random.percent(30),
            udp_eim: random.percent(50),
            lifetimes: Lifetimes {
                udp: Duration::from_micros(700),
                tcp_closed: Duration::from_micros(300),
                ..Lifetimes::default()
            },
            ports,
            ..NatConfig::default()
        };
        let mut list = List { config: config.clone(), flows: Vec::new() };
        let mut host = by(config);
        let mut seen: Vec<End> = vec![(HOST, 22)];
        for _ in 0..500 {
            host.now = host.now + Duration::from_nanos(random.below(20_000));
            let far =
                (Ipv4Addr::from_bits(FAR.to_bits() + random.below(3) as u32), 50 + random.below(3) as u16);
            let protocol = random.one_of(&[TCP, UDP]);
            let incoming = random.percent(50);
            let mut packet = if incoming {
                let outer = seen[random.below(seen.len() as u64) as usize];
                Packet::new(protocol, far, outer)
            } else {
                let inner = Ipv4Addr::from_bits(INNER.to_bits() + random.below(4) as u32);
                Packet::new(protocol, (inner, 1000 + random.below(3) as u16), far)
            };
            // A reset: TCP lives as long as a closed connection.
            packet.key.tcp_flags = 4;
            let after = host.pass(packet, incoming);
            list.check(host.now, &packet, incoming, after.as_ref());
            seen.extend(after.filter(|_| !incoming).map(|after| after.ends().0));
        }
        let flows = host.rules.nats(host.now).next().unwrap().flows;
        assert_eq!(flows.iter().sum::<usize>(), list.flows.iter().filter(|flow| flow.4 > host.now).count());
    }
}
