//! Filters at the ingress of a link that look at headers beyond the flow key, write headers, or follow a schedule.

use narrows_core::classify::{Condition, Fragments, HeaderCondition};
use narrows_core::{
    Change, DropReason, Duration, Engine, FlowKey, GateEntry, HeaderChange, HeaderEdit, Headers, Ingress,
    IngressFilter, LinkConfig, NetworkConfig, Packet, PortConfig, Protocol, Seed, Target, Time, TimedGate,
    Verdict,
};

const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 3];

fn engine(filters: Vec<IngressFilter>) -> Engine<()> {
    let mut network = NetworkConfig::new(Seed(1));
    let mut link = LinkConfig::new("link", Target::Port("out".into()));
    link.ingress = Some(Ingress::new(filters));
    network.links.push(link);
    let entry = Target::Link { name: "link".into(), lane: 0 };
    network.ports = vec![
        PortConfig { name: "in".into(), entry },
        PortConfig { name: "out".into(), entry: Target::Port("out".into()) },
    ];
    Engine::new(network).expect("it leads somewhere")
}

fn mapped(last: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last]
}

/// Sends a datagram from 10.0.0.1:4000 to 10.0.0.2:53.
fn send(
    engine: &mut Engine<()>,
    now: Time,
    headers: Headers,
) -> Result<(FlowKey, Option<HeaderEdit>), DropReason> {
    let key = FlowKey {
        source: mapped(1),
        destination: mapped(2),
        source_port: 4000,
        destination_port: 53,
        transport: 17,
        traffic_class: 46 << 2 | 1,
        network: Protocol::Ipv4,
        ..FlowKey::default()
    };
    let entry = engine.port("in").expect("it is there");
    engine.hand_in(
        now,
        entry,
        Packet { length: 100, link_header: 14, network_header: 20, headers, key, body: () },
    );
    let event = engine.poll(now).expect("nothing takes time here");
    match event.verdict {
        Verdict::Delivered { .. } => Ok((event.key, event.header_edit.as_deref().copied())),
        Verdict::Dropped { reason, .. } => Err(reason),
    }
}

fn headers() -> Headers {
    Headers {
        link_source: NEAR,
        link_destination: FAR,
        ether_type: 0x0800,
        hop_limit: 64,
        ..Headers::default()
    }
}

fn only(headers: HeaderCondition) -> Vec<Condition> {
    vec![Condition { headers: Some(Box::new(headers)), ..Condition::default() }]
}

fn edit(only: Vec<Condition>, change: HeaderChange, goes_on: bool) -> IngressFilter {
    IngressFilter::Edit { only, change, goes_on }
}

#[test]
fn conditions_on_headers() {
    let conditions = [
        HeaderCondition { link_sources: vec![OTHER.into(), NEAR.into()], ..HeaderCondition::default() },
        HeaderCondition { link_destinations: vec![FAR.into()], ..HeaderCondition::default() },
        HeaderCondition { hop_limits: vec![1..=3, 64..=64], ..HeaderCondition::default() },
        HeaderCondition { vlans: vec![0..=0, 100..=199], ..HeaderCondition::default() },
        HeaderCondition { fragments: Some(Fragments::WHOLE), ..HeaderCondition::default() },
        HeaderCondition { fragments: Some(Fragments::WHOLE), ..HeaderCondition::default() },
        HeaderCondition {
            fragments: Some(Fragments::WHOLE.or(Fragments::FIRST)),
            ..HeaderCondition::default()
        },
    ];
    let others = [
        Headers { link_source: FAR, ..headers() },
        Headers { link_destination: OTHER, ..headers() },
        Headers { hop_limit: 63, ..headers() },
        Headers { vlan: 200, ..headers() },
        Headers { fragment: 0x20, ..headers() },
        Headers { extension_headers: 0x01, ..headers() },
        Headers { fragment: 0x21, is_later_fragment: true, ..headers() },
    ];
    for (condition, other) in conditions.into_iter().zip(others) {
        // Built with it, and changed to it.
        let drop = || vec![IngressFilter::Drop(only(condition.clone()))];
        let mut changed = engine(Vec::new());
        let link = changed.link("link").expect("it is there");
        assert!(send(&mut changed, Time::ZERO, headers()).is_ok());
        changed.change(Time::ZERO, link, Change::Ingress(Some(Ingress::new(drop()))));
        for mut engine in [engine(drop()), changed] {
            assert_eq!(send(&mut engine, Time::ZERO, headers()), Err(DropReason::Policed), "{condition:?}");
            assert!(send(&mut engine, Time::ZERO, other).is_ok(), "{condition:?}");
        }
    }
}

#[test]
fn an_edit_is_seen_by_later_filters_and_by_whoever_writes_the_frame() {
    let change = HeaderChange {
        swaps_link_addresses: true,
        link_source: Some(OTHER),
        ether_type: Some(0xbeef),
        vlan: Some(7),
        hop_limit: Some(9),
        dscp: Some(10),
        marks: true,
        source: Some(mapped(9)),
        // Of the other family: stays.
        destination: Some([0xfd; 16]),
        destination_port: Some(54),
        ..HeaderChange::default()
    };
    let rewritten = || only(HeaderCondition { hop_limits: vec![9..=9], ..HeaderCondition::default() });
    let mut passing = engine(vec![edit(Vec::new(), change, false), IngressFilter::Drop(rewritten())]);
    let (key, edited) = send(&mut passing, Time::ZERO, headers()).unwrap();
    assert_eq!((key.source, key.destination), (mapped(9), mapped(2)));
    assert_eq!((key.source_port, key.destination_port), (4000, 54));
    assert_eq!((key.dscp(), key.ecn()), (10, FlowKey::CONGESTION_EXPERIENCED));
    let expected = HeaderEdit {
        // Destination, source.
        addresses: Some([OTHER, FAR]),
        link_header: 14,
        vlan: 7,
        ether_type: Some(0xbeef),
        hop_limit: Some(9),
        has_new_ends: true,
        quoted: None,
    };
    assert_eq!(edited, Some(expected));

    let mut going_on = engine(vec![edit(Vec::new(), change, true), IngressFilter::Drop(rewritten())]);
    assert_eq!(send(&mut going_on, Time::ZERO, headers()), Err(DropReason::Policed));
}

/// A generated packet has no link addresses: none is made up.
#[test]
fn addresses_that_are_not_there_are_not_written() {
    let change = HeaderChange { link_destination: Some(OTHER), dscp: Some(1), ..HeaderChange::default() };
    let mut engine = engine(vec![edit(Vec::new(), change, false)]);
    let plain = Headers { link_source: [0; 6], link_destination: [0; 6], ..headers() };
    let (key, edited) = send(&mut engine, Time::ZERO, plain).unwrap();
    assert_eq!((key.dscp(), edited), (1, None));
}

#[test]
fn code_point_and_ecn_field_are_written_apart() {
    // What comes has the code point 46 and is ECN-capable.
    for (change, expected) in [
        (HeaderChange { ecn: Some(0), ..HeaderChange::default() }, (46, 0)),
        (HeaderChange { dscp: Some(8), ..HeaderChange::default() }, (8, 1)),
        (HeaderChange { dscp: Some(8), ecn: Some(2), marks: true, ..HeaderChange::default() }, (8, 2)),
    ] {
        let mut engine = engine(vec![edit(Vec::new(), change, false)]);
        let (key, _) = send(&mut engine, Time::ZERO, headers()).unwrap();
        assert_eq!((key.dscp(), key.ecn()), expected, "{change:?}");
    }
}

#[test]
fn a_packet_that_is_not_meant_stays_as_it_is() {
    let other = only(HeaderCondition { link_sources: vec![OTHER.into()], ..HeaderCondition::default() });
    let change = HeaderChange { dscp: Some(0), source_port: Some(1), ..HeaderChange::default() };
    let mut engine = engine(vec![edit(other, change, false)]);
    let (key, edited) = send(&mut engine, Time::ZERO, headers()).unwrap();
    assert_eq!((key.dscp(), key.source_port, edited), (46, 4000, None));
}

#[test]
fn a_closed_gate_drops_and_an_open_one_passes_or_leaves_it_to_the_next() {
    let second = Duration::from_secs(1);
    let entries = [true, false].map(|is_open| GateEntry { lasts: second, is_open, most: None }).to_vec();
    let gate = |goes_on| {
        let gate = TimedGate::new(Vec::new(), Time::ZERO, entries.clone()).expect("it has entries");
        vec![IngressFilter::Gate { gate, goes_on }, IngressFilter::Drop(Vec::new())]
    };
    let lost = Some(DropReason::Policed);
    for (goes_on, expected) in [(false, [None, lost, None]), (true, [lost; 3])] {
        let mut engine = engine(gate(goes_on));
        let sent =
            [0, 1, 2].map(|at| send(&mut engine, Time::ZERO + Duration::from_secs(at), headers()).err());
        assert_eq!(sent, expected);
    }
}
