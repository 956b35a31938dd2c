use super::*;
use crate::craft::Udp;
use crate::parse::parse;
use crate::samples;
use proptest::prelude::*;

const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const NEXT: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const ROUTER4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 254));
const ROUTER6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe));
const MTU: Bytes = Bytes::new(1400);

fn ipv4(payload: usize) -> Vec<u8> {
    let probe = Udp::new(([10, 0, 0, 1], 1000).into(), ([10, 0, 1, 1], 2000).into());
    Udp { dont_fragment: true, ..probe }.ethernet(NEXT, HOST, &vec![0xab; payload])
}

fn ipv6(payload: usize) -> Vec<u8> {
    let (from, to) = ("[fd00::1]:1000".parse(), "[fd00::2]:2000".parse());
    Udp::new(from.expect("an address"), to.expect("an address")).ethernet(NEXT, HOST, &vec![0xab; payload])
}

const TOO_BIG: IcmpError = IcmpError::TooBig(MTU);
const ERRORS: [IcmpError; 5] =
    [TOO_BIG, IcmpError::HopLimit, IcmpError::NoRoute, IcmpError::NoPort, IcmpError::NoProtocol];

fn answer(frame: &[u8], source: IpAddr) -> Option<Vec<u8>> {
    error_about(frame, TOO_BIG, source)
}

fn error_about(frame: &[u8], error: IcmpError, source: IpAddr) -> Option<Vec<u8>> {
    let mut out = vec![1, 2, 3];
    match icmp_error(LinkLayer::Ethernet, frame, error, source, &mut out) {
        true => Some(out),
        false => {
            assert_eq!(out, [1, 2, 3]);
            None
        }
    }
}

#[test]
fn fragmentation_needed_says_how_much_fits() {
    let frame = ipv4(1472);
    let out = answer(&frame, ROUTER4).expect("it is answered");
    assert_eq!(out[..14], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    assert_eq!(out.len(), 14 + 576);
    let sliced = etherparse::SlicedPacket::from_ethernet(&out).expect("well formed");
    let (Some(etherparse::NetSlice::Ipv4(ip)), Some(etherparse::TransportSlice::Icmpv4(icmp))) =
        (sliced.net, sliced.transport)
    else {
        panic!("not ICMP");
    };
    assert!(samples::checksum_is_right(ip.header().slice()));
    assert_eq!((IpAddr::V4(ip.header().source_addr()), ip.header().destination()), (ROUTER4, [10, 0, 0, 1]));
    assert_eq!(Sum::default().bytes(icmp.slice()).complement(), 0);
    assert_eq!((icmp.type_u8(), icmp.code_u8(), icmp.bytes5to8()), (3, 4, [0, 0, 5, 0x78]));
    assert_eq!(icmp.payload(), &frame[14..14 + 548]);
}

#[test]
fn packet_too_big_says_how_much_fits() {
    let frame = ipv6(1452);
    let out = answer(&frame, ROUTER6).expect("it is answered");
    assert_eq!(out.len(), 14 + 1280);
    let sliced = etherparse::SlicedPacket::from_ethernet(&out).expect("well formed");
    let (Some(etherparse::NetSlice::Ipv6(ip)), Some(etherparse::TransportSlice::Icmpv6(icmp))) =
        (sliced.net, sliced.transport)
    else {
        panic!("not ICMPv6");
    };
    assert_eq!(IpAddr::V6(ip.header().source_addr()), ROUTER6);
    assert_eq!(ip.header().destination_addr(), "fd00::1".parse::<Ipv6Addr>().expect("an address"));
    assert!(icmp.is_checksum_valid(ip.header().source(), ip.header().destination()));
    assert_eq!((icmp.type_u8(), icmp.code_u8(), icmp.bytes5to8()), (2, 0, [0, 0, 5, 0x78]));
    assert_eq!(icmp.payload(), &frame[14..14 + 1232]);
}

#[test]
fn a_short_packet_is_quoted_whole_without_its_padding() {
    let mut frame = ipv4(1);
    frame.resize(60, 0xee);
    assert_eq!(answer(&frame, ROUTER4).expect("it is answered").len(), 14 + 28 + 29);
    let mut out = Vec::new();
    assert!(icmp_error(LinkLayer::Ip, &frame[14..], TOO_BIG, ROUTER4, &mut out));
    assert_eq!(out, answer(&frame, ROUTER4).expect("it is answered")[14..]);
}

#[test]
fn over_ipv4_some_packets_are_never_answered() {
    let changed = |why: &str, at: usize, value: &[u8], expected: bool| {
        let mut frame = ipv4(1472);
        frame[at..at + value.len()].copy_from_slice(value);
        assert_eq!(answer(&frame, ROUTER4).is_some(), expected, "{why}");
    };
    changed("as it is", 0, &[], true);
    changed("the first fragment", 20, &[0x20, 0], true);
    changed("another fragment", 20, &[0x20, 1], false);
    changed("to a multicast", 30, &[224, 0, 0, 9], false);
    changed("to the broadcast", 30, &[255; 4], false);
    changed("to all stations", 0, &[0xff; 6], false);
    changed("to a group of stations", 0, &[1, 0, 0x5e], false);
    changed("from nobody", 26, &[0; 4], false);
    changed("from a multicast", 26, &[224, 0, 0, 9], false);
    changed("from the broadcast", 26, &[255; 4], false);
    changed("from loopback", 26, &[127, 0, 0, 1], false);
    changed("from a reserved address", 26, &[241, 0, 0, 1], false);
    for (kind, expected) in
        [(0, true), (8, true), (3, false), (4, false), (5, false), (11, false), (12, false), (99, false)]
    {
        let mut frame = ipv4(1472);
        frame[23] = 1;
        frame[34] = kind;
        assert_eq!(answer(&frame, ROUTER4).is_some(), expected, "ICMP type {kind}");
    }
    assert_eq!(answer(&ipv4(1472), ROUTER6), None);
    let out = answer(&ipv4(1472), ROUTER4).expect("it is answered");
    assert_eq!(answer(&out, ROUTER4), None, "an answer is an error");
}

#[test]
fn over_ipv6_some_packets_are_never_answered() {
    for (kind, expected) in [(128, true), (135, true), (1, false), (2, false), (127, false), (137, false)] {
        let mut frame = ipv6(1452);
        frame[20] = 58;
        frame[54] = kind;
        assert_eq!(answer(&frame, ROUTER6).is_some(), expected, "ICMPv6 type {kind}");
    }
    for first in [0xff, 0] {
        let mut frame = ipv6(1452);
        frame[22..38].fill(0);
        frame[22] = first;
        assert_eq!(answer(&frame, ROUTER6), None, "from nobody or a group");
    }
    assert_eq!(answer(&ipv6(1452), ROUTER4), None);
    let out = answer(&ipv6(1452), ROUTER6).expect("it is answered");
    assert_eq!(answer(&out, ROUTER6), None, "an answer is an error");
}

#[test]
fn a_multicast_over_ipv6_is_answered_from_an_address_of_one_station() {
    let mut frame = ipv6(1452);
    frame[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 9]);
    frame[38] = 0xff;
    let out = answer(&frame, ROUTER6).expect("it is answered");
    assert_eq!(out[..12], [2, 0, 0, 0, 0, 1, 0x32, 0x33, 0, 0, 0, 9]);
}

/// The numbers are those of RFC 792, RFC 1122 (protocol and port unreachable) and RFC 4443.
#[test]
fn errors_have_their_types_and_codes() {
    for (error, four, six) in [
        (IcmpError::HopLimit, [11, 0], Some([3, 0])),
        (IcmpError::NoRoute, [3, 0], Some([1, 0])),
        (IcmpError::NoPort, [3, 3], Some([1, 4])),
        (IcmpError::NoProtocol, [3, 2], None),
    ] {
        let (frame, out) = (ipv4(40), error_about(&ipv4(40), error, ROUTER4).expect("it is answered"));
        assert_eq!((&out[34..36], &out[38..42]), (&four[..], &[0; 4][..]), "{error:?}");
        assert_eq!(out[42..], frame[14..], "the packet as it came");
        let out = error_about(&ipv6(40), error, ROUTER6);
        assert_eq!(out.as_ref().map(|out| [out[54], out[55]]), six, "{error:?}");
        if let Some(out) = out {
            assert_eq!((&out[58..62], &out[62..]), (&[0; 4][..], &ipv6(40)[14..]));
        }
    }
}

#[test]
fn over_ipv6_only_too_big_is_said_about_a_packet_to_a_group() {
    for (at, value) in [(38, 0xff), (0, 0x33)] {
        let mut frame = ipv6(40);
        frame[at] = value;
        for error in ERRORS {
            assert_eq!(error_about(&frame, error, ROUTER6).is_some(), error == TOO_BIG, "{error:?}");
        }
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_answers_are_well_formed(
        layer in samples::layers(), frame in samples::bytes(), mtu: u64, error in 0usize..5,
    ) {
        let error = match ERRORS[error] {
            IcmpError::TooBig(_) => IcmpError::TooBig(Bytes::new(mtu)),
            other => other,
        };
        for source in [ROUTER4, ROUTER6] {
            let mut out = Vec::new();
            if icmp_error(layer, &frame, error, source, &mut out) {
                let before = parse(layer, &frame);
                let parsed = parse(layer, &out);
                prop_assert_eq!(parsed.key.destination, before.key.source);
                prop_assert_eq!(parsed.length as usize + usize::from(parsed.link_header), out.len());
                prop_assert_eq!(parsed.link_header, before.link_header);
                prop_assert!(samples::icmp_is_right(&out[usize::from(parsed.link_header)..]));
                let mut again = Vec::new();
                prop_assert!(!icmp_error(layer, &out, error, source, &mut again));
            }
        }
    }
}

/// What rules answer: the code that they name, in the message of the packet's IP version, with right checksums.
#[test]
fn a_rule_says_which_way_a_destination_is_unreachable() {
    use crate::answer::Notice;
    use narrows_core::rules::Answer;

    let told = |frame: &[u8], answer: Answer, source| {
        let mut out = Vec::new();
        assert!(Notice::from(answer).write(LinkLayer::Ethernet, frame, Some(source), &mut out));
        assert!(samples::icmp_is_right(&out[14..]), "{answer:?}");
        let header = if frame[14] >> 4 == 4 { 34 } else { 54 };
        out[header..header + 8].to_vec()
    };
    let [four, six] = [ipv4(100), ipv6(100)];
    for code in [0, 1, 13, 255] {
        let message = told(&four, Answer::Unreachable(code), ROUTER4);
        assert_eq!((&message[..2], &message[4..]), (&[3, code][..], &[0; 4][..]));
        let message = told(&six, Answer::Unreachable6(code), ROUTER6);
        assert_eq!((&message[..2], &message[4..]), (&[1, code][..], &[0; 4][..]));
    }
    let message = told(&four, Answer::FragmentationNeeded(1400), ROUTER4);
    assert_eq!((&message[..2], &message[4..]), (&[3, 4][..], &[0, 0, 0x05, 0x78][..]));
    // These packets are no TCP segments.
    let mut out = Vec::new();
    for (answer, frame) in [(Answer::Reset, &four), (Answer::Reset6, &six)] {
        assert!(!Notice::from(answer).write(LinkLayer::Ethernet, frame, None, &mut out));
    }
    assert!(!Notice::from(Answer::Unreachable(1)).write(LinkLayer::Ethernet, &four, None, &mut out));
}
