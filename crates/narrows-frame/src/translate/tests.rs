use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;
use crate::MacAddress;
use crate::answer::{IcmpError, icmp_error};
use crate::checksum::Sum;
use crate::craft::Udp;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

fn endpoint(text: &str) -> Endpoint {
    let socket: SocketAddr = text.parse().unwrap();
    Endpoint { address: socket.ip(), port: socket.port() }
}

fn udp(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
    Udp::new(from.parse().unwrap(), to.parse().unwrap()).ethernet(MAC, MAC, payload)
}

/// An echo request, its checksum correct.
fn echo(from: &str, to: &str, identifier: u16) -> Vec<u8> {
    // The headers of a datagram whose payload is the echo without its first eight bytes.
    let mut frame = udp(from, to, b"data");
    let is_ipv4 = from.starts_with(|first: char| first.is_ascii_digit());
    let (network, header, place, number) = if is_ipv4 { (14, 20, 9, 1) } else { (14, 40, 6, 58) };
    frame[network + place] = number;
    let at = network + header;
    frame[at..at + 8].copy_from_slice(&[if is_ipv4 { 8 } else { 128 }, 0, 0, 0, 0, 0, 0, 1]);
    set(&mut frame, at + 4, identifier);
    refresh(&mut frame);
    frame
}

/// Computes all checksums again.
fn refresh(frame: &mut [u8]) {
    let layout = Layout::of(frame, LinkLayer::Ethernet, 0).unwrap();
    let transport = layout.transport.unwrap();
    if layout.is_ipv4 {
        set(frame, 24, 0);
        let sum = Sum::default().bytes(&frame[14..transport]).complement();
        set(frame, 24, sum);
    }
    let place = match layout.protocol {
        protocol::UDP => UDP_CHECKSUM,
        protocol::TCP => TCP_CHECKSUM,
        _ => ICMP_CHECKSUM,
    };
    set(frame, transport + place, 0);
    let width = if layout.is_ipv4 { 4 } else { 16 };
    let [source, destination] = [End::Source, End::Destination].map(|end| layout.address_at(end));
    let mut sum = Sum::default();
    if layout.protocol != protocol::ICMP {
        let (source, destination) =
            (&frame[source..source + width], &frame[destination..destination + width]);
        sum = sum.pseudo_header(source, destination, frame.len() - transport, layout.protocol);
    }
    let sum = sum.bytes(&frame[transport..]).complement();
    set(frame, transport + place, if layout.protocol == protocol::UDP && sum == 0 { 0xffff } else { sum });
}

const CASES: [(&str, &str, &str); 2] = [
    ("10.0.0.1:4433", "10.1.0.9:443", "10.1.0.2:61000"),
    ("[fd00::1]:4433", "[fd01::9]:443", "[fd01::2]:61000"),
];

#[test]
fn a_translated_packet_is_as_if_it_had_been_sent_so() {
    for (inner, server, outer) in CASES {
        let mut frame = udp(inner, server, b"hello");
        assert!(replace(&mut frame, End::Source, endpoint(outer)));
        assert_eq!(frame, udp(outer, server, b"hello"));
        assert!(replace(&mut frame, End::Source, endpoint(inner)));
        assert!(replace(&mut frame, End::Destination, endpoint(outer)));
        assert_eq!(frame, udp(inner, outer, b"hello"));
        let mut frame = echo(inner, server, 7);
        let Kind::Flow(flow) = kind(&frame) else { panic!("{frame:02x?}") };
        assert_eq!((flow.source.port, flow.destination.port), (7, 7));
        assert!(replace(&mut frame, End::Source, endpoint(outer)));
        assert_eq!(frame, echo(outer, server, 61000));
    }
    let mut frame = udp(CASES[0].0, CASES[0].1, b"hello");
    assert!(!replace(&mut frame, End::Source, endpoint(CASES[1].2)), "not of this version");
}

#[test]
fn tcp_is_translated_and_damage_stays() {
    for (inner, server, outer) in CASES {
        let mut frame = udp(inner, server, &[0; 20]);
        let at = if inner.starts_with('[') { 20 } else { 23 };
        let become_tcp = |frame: &mut Vec<u8>| {
            frame[at] = protocol::TCP;
            let transport = frame.len() - 28;
            frame[transport + 4..].fill(0);
            refresh(frame);
        };
        become_tcp(&mut frame);
        let mut wanted = udp(outer, server, &[0; 20]);
        become_tcp(&mut wanted);
        let mut damaged = frame.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(replace(&mut frame, End::Source, endpoint(outer)));
        assert_eq!(frame, wanted);
        assert!(replace(&mut damaged, End::Source, endpoint(outer)));
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(damaged, wanted, "only the damage differs");
    }
}

#[test]
fn a_datagram_without_checksum_stays_without() {
    let mut frame = udp(CASES[0].0, CASES[0].1, b"hello");
    set(&mut frame, 14 + 20 + UDP_CHECKSUM, 0);
    assert!(replace(&mut frame, End::Source, endpoint(CASES[0].2)));
    assert_eq!(word(&frame, 14 + 20 + UDP_CHECKSUM), Some(0));
}

#[test]
fn an_error_belongs_to_the_flow_that_it_quotes() {
    for (inner, server, outer) in CASES {
        // A router near the server answers a translated packet.
        let sent = udp(outer, server, &[0; 600]);
        let router = endpoint(server).address;
        let mut error = Vec::new();
        assert!(icmp_error(LinkLayer::Ethernet, &sent, IcmpError::NoPort, router, &mut error));
        let Kind::Error(flow) = kind(&error) else { panic!("{error:02x?}") };
        assert_eq!((flow.source, flow.destination), (endpoint(outer), endpoint(server)));
        assert!(replace(&mut error, End::Source, endpoint(inner)));
        let Kind::Error(flow) = kind(&error) else { panic!("{error:02x?}") };
        assert_eq!((flow.source, flow.destination), (endpoint(inner), endpoint(server)));
        let header = crate::forward::IpHeader::read(&error).unwrap();
        assert_eq!((header.source, header.destination), (router, endpoint(inner).address));
        let translated = error.clone();
        refresh(&mut error);
        assert_eq!(error, translated, "its checksums are right");
    }
}

#[test]
fn of_a_later_fragment_only_the_address_is_replaced() {
    let mut frame = udp(CASES[0].0, CASES[0].1, b"hello");
    set(&mut frame, 20, 0x0008);
    set(&mut frame, 24, 0);
    let sum = Sum::default().bytes(&frame[14..34]).complement();
    set(&mut frame, 24, sum);
    assert!(matches!(kind(&frame), Kind::Fragment(Some(of)) if Some(of) == FragmentOf::read(&frame)));
    let before = frame.clone();
    assert!(replace(&mut frame, End::Source, endpoint(CASES[0].2)));
    assert_eq!(frame[34..], before[34..], "there are no ports");
    let header = crate::forward::IpHeader::read(&frame).unwrap();
    assert_eq!(header.source, endpoint(CASES[0].2).address);
}

proptest! {
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..120, place in 0usize..120, value: u8) {
        for (inner, server, outer) in CASES {
            let sent = udp(outer, server, &[0; 60]);
            let mut error = Vec::new();
            icmp_error(LinkLayer::Ethernet, &sent, IcmpError::NoPort, endpoint(server).address, &mut error);
            for mut frame in [udp(inner, server, &bytes), echo(inner, server, 7), error, bytes.clone()] {
                frame.truncate(cut);
                if let Some(byte) = frame.get_mut(place) {
                    *byte = value;
                }
                let length = frame.len();
                kind(&frame);
                replace(&mut frame, End::Source, endpoint(outer));
                replace(&mut frame, End::Destination, endpoint(inner));
                prop_assert_eq!(frame.len(), length);
            }
        }
    }
}

/// What [`write_ends`] does with a frame: from the key of one to that of another.
fn written(frame: &[u8], like: &[u8], quotes: Option<Quoted>) -> Vec<u8> {
    let mut out = frame.to_vec();
    write_ends(&mut out[14..], &crate::parse::parse(LinkLayer::Ethernet, like).key, quotes);
    out
}

#[test]
fn an_echo_gets_the_identifier_of_its_key() {
    let (inner, server, outer) = CASES[0];
    let (before, after) = (echo(inner, server, 7), echo(outer, server, 61_000));
    assert_eq!(written(&before, &after, None), after);
}

#[test]
fn the_quotation_of_an_error_is_written_and_read_from_its_beginning() {
    let (inner, server, outer) = CASES[0];
    let router = endpoint(server).address;
    let about = |sent: &[u8]| {
        let mut error = Vec::new();
        assert!(icmp_error(LinkLayer::Ethernet, sent, IcmpError::HopLimit, router, &mut error));
        error
    };
    let errors = [
        [outer, inner].map(|from| about(&udp(from, server, &[0; 600]))),
        [(outer, 61_000), (inner, 7)].map(|(from, id)| about(&echo(from, server, id))),
    ];
    for [before, after] in errors {
        let all = quoted(LinkLayer::Ethernet, &after, 0).expect("it quotes a packet");
        assert_ne!(quoted(LinkLayer::Ethernet, &before, 0), Some(all));
        let mut out = written(&before, &after, Some(all));
        assert_eq!(quoted(LinkLayer::Ethernet, &out, 0), Some(all));
        // Checksums of quoted packets stay as they were; the error's own is right.
        let mended = out.clone();
        refresh(&mut out);
        assert_eq!(out, mended);
        // What a log keeps is enough.
        let parsed = crate::parse::parse(LinkLayer::Ethernet, &after);
        let kept = &after[..parsed.examined as usize];
        assert!(kept.len() < after.len() || after.len() < 120, "{}", kept.len());
        assert_eq!(quoted(LinkLayer::Ethernet, kept, after.len() as u32), Some(all));
    }
    assert_eq!(quoted(LinkLayer::Ethernet, &udp(inner, server, b"no error"), 0), None);
}
