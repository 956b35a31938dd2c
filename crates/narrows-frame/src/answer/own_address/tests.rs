use super::*;
use crate::MacAddress;
use crate::craft::{Other, Udp};
use crate::parse::parse;
use crate::samples;
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use std::net::SocketAddr;

const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn four() -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ethernet2(HOST, ROUTER).ipv4([10, 0, 0, 1], [10, 0, 0, 254], 9)
}

fn six() -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    let [mut host, mut router] = [[0; 16]; 2];
    (host[0], host[15], router[0], router[15]) = (0xfd, 1, 0xfd, 0xfe);
    PacketBuilder::ethernet2(HOST, ROUTER).ipv6(host, router, 9)
}

fn echo_4(data: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    four().icmpv4_echo_request(77, 3).write(&mut frame, data).expect("a vector takes it");
    frame
}

fn echo_6(data: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    six().icmpv6_echo_request(77, 3).write(&mut frame, data).expect("a vector takes it");
    frame
}

type Answer = fn(LinkLayer, &[u8], &mut Vec<u8>) -> bool;

fn answered(answer: Answer, frame: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![1, 2, 3];
    match answer(LinkLayer::Ethernet, frame, &mut out) {
        true => Some(out),
        false => {
            assert_eq!(out, [1, 2, 3]);
            None
        }
    }
}

#[test]
fn an_echo_comes_back_with_its_data() {
    for (frame, request, reply) in [(echo_4(b"are you there"), 8, 0), (echo_6(b"are you there"), 128, 129)] {
        let out = answered(echo_reply, &frame).expect("it is answered");
        assert_eq!((&out[..6], &out[6..12]), (&HOST[..], &ROUTER[..]));
        let (asked, answer) = (parse(LinkLayer::Ethernet, &frame), parse(LinkLayer::Ethernet, &out));
        assert_eq!(asked.key.source_port.to_be_bytes(), [request, 0]);
        assert_eq!(answer.key.source_port.to_be_bytes(), [reply, 0]);
        assert_eq!((answer.key.source, answer.key.destination), (asked.key.destination, asked.key.source));
        assert_eq!((answer.length, answer.headers.hop_limit), (asked.length, 64));
        assert!(samples::icmp_is_right(&out[14..]));
        // Identifier, number and data.
        assert_eq!(out[out.len() - 17..], frame[frame.len() - 17..]);
        assert_eq!(answered(echo_reply, &out), None, "a reply is not a question");
    }
}

#[test]
fn what_is_damaged_or_cut_gets_no_echo() {
    for whole in [echo_4(b"are you there"), echo_6(b"are you there")] {
        for at in 14..whole.len() {
            // No checksum of IPv6 covers its traffic class, flow label and hop limit.
            if whole[14] >> 4 == 6 && matches!(at, 14..18 | 21) {
                continue;
            }
            let mut frame = whole.clone();
            frame[at] ^= 4;
            assert_eq!(answered(echo_reply, &frame), None, "byte {at}");
        }
        assert_eq!(answered(echo_reply, &whole[..whole.len() - 1]), None);
    }
    // A first fragment, its header's checksum right.
    let mut frame = echo_4(b"are you there");
    let old = word(&frame, 20).expect("it is there");
    frame[20..22].copy_from_slice(&0x2000u16.to_be_bytes());
    let mended = crate::checksum::updated(word(&frame, 24).expect("it is there"), old, 0x2000);
    frame[24..26].copy_from_slice(&mended.to_be_bytes());
    assert!(samples::checksum_is_right(&frame[14..34]));
    assert_eq!(answered(echo_reply, &frame), None);
}

/// The reset of a segment, as another implementation reads it.
fn reset_of(frame: &[u8]) -> Option<etherparse::TcpHeader> {
    let out = answered(tcp_reset, frame)?;
    let sliced = SlicedPacket::from_ethernet(&out).expect("well formed");
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("no TCP") };
    let header = tcp.to_header();
    let right = match sliced.net.expect("it is IP") {
        etherparse::NetSlice::Ipv4(ip) => {
            assert!(samples::checksum_is_right(ip.header().slice()));
            header.calc_checksum_ipv4_raw(ip.header().source(), ip.header().destination(), &[])
        }
        etherparse::NetSlice::Ipv6(ip) => {
            header.calc_checksum_ipv6_raw(ip.header().source(), ip.header().destination(), &[])
        }
        etherparse::NetSlice::Arp(_) => panic!("not IP"),
    };
    assert_eq!(Ok(header.checksum), right);
    assert_eq!((tcp.payload().len(), &out[..6], &out[6..12]), (0, &HOST[..], &ROUTER[..]));
    Some(header)
}

#[test]
fn a_connection_is_refused_as_the_rfc_says() {
    for start in [four, six] {
        let segment = |change: fn(&mut etherparse::TcpHeader), data: &[u8]| {
            let mut header = etherparse::TcpHeader::new(4000, 80, 1000, 500);
            change(&mut header);
            let mut frame = Vec::new();
            start().tcp_header(header).write(&mut frame, data).expect("a vector takes it");
            frame
        };
        // No acknowledgement: sequence 0, and the segment is acknowledged.
        let reset = reset_of(&segment(|tcp| tcp.syn = true, b"")).expect("it is answered");
        assert_eq!((reset.source_port, reset.destination_port), (80, 4000));
        assert!(reset.rst && reset.ack && !reset.syn && !reset.fin);
        assert_eq!((reset.sequence_number, reset.acknowledgment_number), (0, 1001));
        let reset = reset_of(&segment(|tcp| tcp.fin = true, b"hello")).expect("it is answered");
        assert_eq!((reset.sequence_number, reset.acknowledgment_number), (0, 1006));
        // With one: that is the sequence.
        let acknowledging = segment(
            |tcp| {
                tcp.ack = true;
                tcp.acknowledgment_number = 42;
            },
            b"hello",
        );
        let reset = reset_of(&acknowledging).expect("it is answered");
        assert!(reset.rst && !reset.ack);
        assert_eq!((reset.sequence_number, reset.acknowledgment_number), (42, 0));
        assert_eq!(reset_of(&segment(|tcp| tcp.rst = true, b"")), None, "a reset ends it");
        let mut damaged = segment(|tcp| tcp.syn = true, b"hello");
        *damaged.last_mut().expect("it is not empty") ^= 1;
        assert_eq!(reset_of(&damaged), None);
    }
}

#[test]
fn other_protocols_get_neither() {
    let ends: [SocketAddr; 2] = [([10, 0, 0, 1], 4000).into(), ([10, 0, 0, 254], 5000).into()];
    let udp = Udp::new(ends[0], ends[1]).ethernet(MacAddress(ROUTER), MacAddress(HOST), b"x");
    let mut sctp = Vec::new();
    Other::new(ends[0], ends[1], 132).append(b"x", &mut sctp);
    for (layer, packet) in [(LinkLayer::Ethernet, &udp), (LinkLayer::Ip, &sctp)] {
        let mut out = Vec::new();
        assert!(!echo_reply(layer, packet, &mut out) && !tcp_reset(layer, packet, &mut out));
    }
}

proptest! {
    #[test]
    fn nothing_panics(layer in samples::layers(), frame in samples::bytes()) {
        for answer in [echo_reply, tcp_reset] as [Answer; 2] {
            let mut out = Vec::new();
            if answer(layer, &frame, &mut out) {
                let (asked, answer) = (parse(layer, &frame), parse(layer, &out));
                prop_assert_eq!((answer.key.source, answer.key.destination), (asked.key.destination, asked.key.source));
                prop_assert_eq!(answer.length as usize + usize::from(answer.link_header), out.len());
            }
        }
    }

    /// Whatever is asked comes back, over both versions of IP.
    #[test]
    fn every_whole_echo_is_answered(data in proptest::collection::vec(any::<u8>(), 0..1400), padding in 0usize..20) {
        for mut frame in [echo_4(&data), echo_6(&data)] {
            frame.resize(frame.len() + padding, 0xee);
            let out = answered(echo_reply, &frame);
            prop_assert!(out.is_some_and(|out| out.ends_with(&data) && samples::icmp_is_right(&out[14..])));
        }
    }
}
