use super::*;
use narrows_core::Bytes;
use narrows_frame::answer::answer_resolution;
use narrows_frame::craft::Udp;
use narrows_frame::parse::parse;
use narrows_io::frame::FramePool;

use super::table::Route;

const OURS: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];
const CLIENT: MacAddress = MacAddress([2, 0, 0, 0, 1, 1]);
const SERVER: MacAddress = MacAddress([2, 0, 0, 0, 1, 2]);
const PORTS: [PortIndex; 2] = [0, 1];

fn prefix(text: &str) -> IpPrefix {
    let (address, length) = text.split_once('/').unwrap();
    IpPrefix::new(address.parse::<IpAddr>().unwrap(), length.parse().unwrap())
}

/// As in the simulator of quic-interop-runner.
fn gateway() -> Gateway {
    with_translation(None)
}

fn with_translation(translation: Option<Translation>) -> Gateway {
    let networks = [
        ["193.167.0.2/24", "fd00:cafe:cafe:0::2/64", "fe80::2/64"],
        ["193.167.100.2/24", "fd00:cafe:cafe:100::2/64", "fe80::3/64"],
    ]
    .map(|all| all.map(prefix).to_vec());
    let routes = networks.iter().enumerate().flat_map(|(side, all)| {
        all.iter().map(move |own| Route { destination: *own, gateway: None, side: Some(side) })
    });
    let table = Table::new(&networks.concat(), routes.collect());
    let [left, right] = networks;
    let leg =
        |side: Side, addresses| Leg { port: PORTS[side], mac: OURS[side], addresses, kernel_forwards: false };
    Gateway::new("eth0-eth1", [leg(0, left), leg(1, right)], table, translation)
}

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// From the client to a server, by the gateway.
fn packet(to: &str, hop_limit: u8) -> Vec<u8> {
    let from = if to.starts_with('[') { "[fd00:cafe:cafe:0::100]:7" } else { "193.167.0.100:7" };
    let udp = Udp { hop_limit, ..Udp::new(from.parse().unwrap(), to.parse().unwrap()) };
    udp.ethernet(OURS[0], CLIENT, b"hello")
}

fn received(frame: &[u8]) -> Received {
    let frame = FramePool::default().frame(frame);
    Received { original_length: frame.len(), frame, stamp: None, partial_checksum: false, interface: None }
}

fn icmp_kind(frame: &[u8]) -> [u8; 2] {
    parse(LinkLayer::Ethernet, frame).key.source_port.to_be_bytes()
}

/// Makes the gateway know the server.
fn resolve(gateway: &mut Gateway, to: &str) {
    let frame = packet(to, 64);
    let Arrival::Waits(next) = gateway.arrived(PORTS[0], at(0), &mut frame.clone()) else {
        panic!("it is known")
    };
    assert!(gateway.wait(next, Waiting { from: PORTS[0], received: received(&frame) }).is_none());
    let (port, request) = gateway.outbox().next().unwrap();
    assert_eq!(port, PORTS[1]);
    let mut answer = Vec::new();
    assert!(answer_resolution(&request, SERVER, &mut answer));
    assert_eq!(gateway.arrived(PORTS[1], at(1), &mut answer), Arrival::Stays);
    let ready: Vec<_> = gateway.ready().collect();
    assert_eq!((ready.len(), ready[0].from), (1, PORTS[0]));
}

/// Every packet that arrived is accounted for.
fn sound(gateway: &Gateway) -> RouterReport {
    let counts = gateway.counts(0);
    let went = counts.forwarded_packets
        + counts.local_packets
        + counts.hop_limit_packets
        + counts.no_route_packets
        + counts.unresolved_packets
        + counts.malformed_packets
        + counts.untranslated_packets
        + counts.waiting_packets;
    assert_eq!(counts.arrived_packets, went, "{counts:?}");
    counts
}

#[test]
fn packets_wait_for_their_next_hop_and_then_cross() {
    for to in ["193.167.100.100:9", "[fd00:cafe:cafe:100::100]:9"] {
        let mut gateway = gateway();
        resolve(&mut gateway, to);
        let frame = packet(to, 2);
        assert_eq!(gateway.arrived(PORTS[0], at(2), &mut frame.clone()), Arrival::Crosses);
        assert_eq!(gateway.stations(PORTS[1], &frame), Some((OURS[1], SERVER)));
        assert_eq!(gateway.stations(PORTS[0], &frame), None, "not back");
        assert_eq!(sound(&gateway).forwarded_packets, 2);
        assert!(gateway.outbox().next().is_none() && gateway.next().is_none());
    }
}

#[test]
fn who_asks_for_the_gateway_is_known_from_then_on() {
    let mut gateway = gateway();
    let asks = |from: &str, wanted: &str| {
        let own = Neighbour { address: from.parse().unwrap(), mac: CLIENT };
        let mut frame = Vec::new();
        assert!(ask_neighbour(wanted.parse().unwrap(), own, None, &mut frame));
        frame
    };
    // Another host's request, and an address of another network.
    for frame in [asks("193.167.0.100", "193.167.0.77"), asks("10.0.0.1", "193.167.0.2")] {
        gateway.arrived(PORTS[0], at(0), &mut frame.clone());
    }
    assert_eq!(gateway.neighbours[0].mac("193.167.0.100".parse().unwrap()), None);
    assert_eq!(gateway.neighbours[0].mac("10.0.0.1".parse().unwrap()), None);
    gateway.arrived(PORTS[0], at(0), &mut asks("193.167.0.100", "193.167.0.2"));
    assert_eq!(gateway.neighbours[0].mac("193.167.0.100".parse().unwrap()), Some(CLIENT));
    assert!(gateway.outbox().next().is_none(), "the kernel answers for its addresses");
}

#[test]
fn senders_are_told_what_cannot_be_forwarded() {
    let mut gateway = gateway();
    let v4 = packet("193.167.100.100:9", 1);
    let v6 = packet("[fd00:cafe:cafe:100::100]:9", 1);
    for (frame, kind, from) in [(&v4, [11, 0], "193.167.0.2"), (&v6, [3, 0], "fd00:cafe:cafe:0::2")] {
        assert_eq!(gateway.arrived(PORTS[0], at(0), &mut frame.clone()), Arrival::Stays);
        let (port, answer) = gateway.outbox().next().unwrap();
        let header = IpHeader::read(&answer).unwrap();
        assert_eq!((port, icmp_kind(&answer), header.source), (PORTS[0], kind, from.parse().unwrap()));
        assert_eq!((&answer[..6], &answer[6..12]), (&CLIENT.0[..], &OURS[0].0[..]));
    }
    assert_eq!(gateway.arrived(PORTS[0], at(0), &mut packet("8.8.8.8:9", 9)), Arrival::Stays);
    assert_eq!(icmp_kind(&gateway.outbox().next().unwrap().1), [3, 0], "no route");
    gateway.tell(
        PORTS[0],
        at(0),
        &packet("193.167.100.100:9", 9),
        Notice::Error(IcmpError::TooBig(Bytes::new(1280))),
    );
    assert_eq!(icmp_kind(&gateway.outbox().next().unwrap().1), [3, 4]);
    let counts = sound(&gateway);
    assert_eq!((counts.hop_limit_packets, counts.no_route_packets), (2, 1));
}

#[test]
fn a_next_hop_that_does_not_answer_is_unreachable() {
    for (to, kind) in [("193.167.100.100:9", [3, 1]), ("[fd00:cafe:cafe:100::100]:9", [1, 3])] {
        let mut gateway = gateway();
        let frame = packet(to, 64);
        for _ in 0..neighbours::MOST_WAITING + 2 {
            let Arrival::Waits(next) = gateway.arrived(PORTS[0], at(0), &mut frame.clone()) else { panic!() };
            gateway.wait(next, Waiting { from: PORTS[0], received: received(&frame) });
        }
        assert_eq!(sound(&gateway).waiting_packets, neighbours::MOST_WAITING as u64);
        let mut requests = gateway.outbox().count();
        for second in 1..=3 {
            assert_eq!(gateway.next(), Some(at(second * 1000)));
            gateway.attend(at(second * 1000));
            requests += if second < 3 { gateway.outbox().count() } else { 0 };
        }
        assert_eq!(requests, 3);
        let answers: Vec<_> = gateway.outbox().collect();
        assert!(answers.iter().all(|(port, answer)| *port == PORTS[0] && icmp_kind(answer) == kind));
        // As many as the rate limit lets through at once.
        assert_eq!(answers.len() as u64 + gateway.silenced().unwrap().1, neighbours::MOST_WAITING as u64);
        assert_eq!(sound(&gateway).unresolved_packets, neighbours::MOST_WAITING as u64 + 2);
    }
}

#[test]
fn what_is_the_kernels_is_left_to_it() {
    let mut gateway = gateway();
    let mut to_other_station = packet("193.167.100.100:9", 64);
    to_other_station[..6].copy_from_slice(&SERVER.0);
    let mut damaged = packet("193.167.100.100:9", 64);
    damaged[30] ^= 1;
    for frame in [
        packet("193.167.0.2:9", 1),
        packet("193.167.100.2:9", 1),
        packet("193.167.0.77:9", 64),
        packet("224.0.0.5:9", 64),
        to_other_station,
        damaged,
        vec![0; 14],
        Vec::new(),
    ] {
        assert_eq!(gateway.arrived(PORTS[0], at(0), &mut frame.clone()), Arrival::Stays, "{frame:02x?}");
    }
    assert!(gateway.outbox().next().is_none());
    let counts = sound(&gateway);
    assert_eq!((counts.local_packets, counts.malformed_packets, counts.forwarded_packets), (2, 1, 0));
}

/// From the server to an address of the gateway's side.
fn reply(to: &str) -> Vec<u8> {
    let udp = Udp::new("193.167.100.100:9".parse().unwrap(), to.parse().unwrap());
    udp.ethernet(OURS[1], SERVER, b"hello")
}

#[test]
fn with_translation_the_outside_sees_one_address_and_reaches_only_mappings() {
    let pool = ["193.167.100.2", "193.167.100.3"].map(|text| text.parse().unwrap());
    let mut gateway = with_translation(Some(Translation::new(&pool, &[])));
    resolve(&mut gateway, "193.167.100.100:9");
    let mut frame = packet("193.167.100.100:9", 64);
    assert!(gateway.translates(PORTS[1]) && !gateway.translates(PORTS[0]));
    assert!(gateway.translate(at(3), &mut frame));
    let out = IpHeader::read(&frame).unwrap();
    assert_eq!((out.source, out.destination), (pool[0], "193.167.100.100".parse().unwrap()));

    // The client asks for the gateway, so that the way back is known.
    let own = Neighbour { address: "193.167.0.100".parse().unwrap(), mac: CLIENT };
    let mut asked = Vec::new();
    assert!(ask_neighbour("193.167.0.2".parse().unwrap(), own, None, &mut asked));
    gateway.arrived(PORTS[0], at(3), &mut asked);

    let mut back = reply("193.167.100.2:61000");
    assert_eq!(gateway.arrived(PORTS[1], at(4), &mut back), Arrival::Crosses);
    assert_eq!(IpHeader::read(&back).unwrap().destination, own.address);
    assert_eq!(gateway.stations(PORTS[0], &back), Some((OURS[0], CLIENT)));
    gateway.tell(PORTS[1], at(4), &back, Notice::Error(IcmpError::TooBig(Bytes::new(600))));
    let (port, told) = gateway.outbox().next().unwrap();
    assert_eq!(
        (port, &told[42 + 16..42 + 20]),
        (PORTS[1], &[193, 167, 100, 2][..]),
        "it quotes what was sent"
    );

    // Without a mapping: the host's own, another outer address, one inside, another protocol.
    for to in ["193.167.100.2:22", "193.167.100.3:61000", "193.167.0.100:7"] {
        assert_eq!(gateway.arrived(PORTS[1], at(5), &mut reply(to)), Arrival::Stays, "{to}");
    }
    let mut other = packet("193.167.100.100:9", 64);
    other[23] = 47;
    let sum = u16::from_be_bytes([other[24], other[25]]) - 30;
    other[24..26].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(gateway.arrived(PORTS[0], at(5), &mut other), Arrival::Stays);
    let counts = sound(&gateway);
    assert_eq!((counts.local_packets, counts.untranslated_packets), (1, 3));

    // It answers for the address that the host does not have.
    let server = Neighbour { address: "193.167.100.100".parse().unwrap(), mac: SERVER };
    for (wanted, answered) in [("193.167.100.2", false), ("193.167.100.3", true), ("193.167.100.4", false)] {
        assert!(ask_neighbour(wanted.parse().unwrap(), server, None, &mut asked));
        gateway.arrived(PORTS[1], at(6), &mut asked);
        assert_eq!(gateway.outbox().next().is_some(), answered, "{wanted}");
    }
}
