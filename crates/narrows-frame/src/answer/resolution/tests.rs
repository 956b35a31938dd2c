use super::*;
use crate::samples::{self, ARP_REQUEST, NEIGHBOUR_SOLICITATION};
use proptest::prelude::*;

const MAC: MacAddress = MacAddress([2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee]);

fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![1, 2, 3];
    match answer_resolution(frame, MAC, &mut out) {
        true => Some(out),
        false => {
            assert_eq!(out, [1, 2, 3]);
            None
        }
    }
}

#[test]
fn an_arp_request_is_answered() {
    assert!(is_address_resolution(&ARP_REQUEST));
    assert_eq!(asked_address(&ARP_REQUEST), Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))));
    let expected = [
        2, 0, 0, 0, 0, 1, 2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 8, 6, //
        0, 1, 8, 0, 6, 4, 0, 2, 2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 10, 0, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1,
    ];
    assert_eq!(answer(&ARP_REQUEST), Some(expected.to_vec()));
    assert!(is_address_resolution(&expected));
    assert_eq!(answer(&expected), None, "a reply is not answered");
}

#[test]
fn the_answer_to_a_tagged_request_is_tagged() {
    let mut frame = ARP_REQUEST.to_vec();
    frame.splice(12..12, [0x81, 0, 0, 42]);
    assert_eq!(answer(&frame).expect("it is answered")[12..18], [0x81, 0, 0, 42, 8, 6]);
}

#[test]
fn arp_probes_and_announcements_stay_without_answer() {
    let changed = |at: usize, value: &[u8]| {
        let mut frame = ARP_REQUEST;
        frame[at..at + value.len()].copy_from_slice(value);
        assert!(is_address_resolution(&frame));
        assert_eq!((answer(&frame), asked_address(&frame)), (None, None), "{frame:?}");
    };
    changed(28, &[0, 0, 0, 0]); // a probe
    changed(28, &[10, 0, 0, 2]); // an announcement
    changed(38, &[255, 255, 255, 255]);
    changed(38, &[224, 0, 0, 1]);
    changed(22, &[0xff; 6]); // from everybody
    changed(14, &[0, 6]); // another kind of network
    changed(20, &[0, 3]); // reverse ARP
    assert_eq!(answer(&ARP_REQUEST[..41]), None);
}

#[test]
fn a_neighbour_solicitation_is_answered() {
    assert!(is_address_resolution(&NEIGHBOUR_SOLICITATION));
    let target: Ipv6Addr = "fe80::2".parse().expect("an address");
    assert_eq!(asked_address(&NEIGHBOUR_SOLICITATION), Some(IpAddr::V6(target)));
    let out = answer(&NEIGHBOUR_SOLICITATION).expect("it is answered");
    assert_eq!(out[..14], [2, 0, 0, 0, 0, 1, 2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x86, 0xdd]);
    assert!(is_address_resolution(&out));
    assert_eq!(answer(&out), None, "an advertisement is not answered");

    let sliced = etherparse::SlicedPacket::from_ethernet(&out).expect("well formed");
    let (Some(etherparse::NetSlice::Ipv6(ip)), Some(etherparse::TransportSlice::Icmpv6(icmp))) =
        (sliced.net, sliced.transport)
    else {
        panic!("not ICMPv6");
    };
    assert_eq!(ip.header().hop_limit(), 255);
    assert_eq!(ip.header().source_addr(), target);
    assert_eq!(ip.header().destination_addr(), "fe80::1".parse::<Ipv6Addr>().expect("an address"));
    assert!(icmp.is_checksum_valid(ip.header().source(), ip.header().destination()));
    assert_eq!((icmp.type_u8(), icmp.code_u8(), icmp.bytes5to8()), (136, 0, [0x60, 0, 0, 0]));
    let mut body = target.octets().to_vec();
    body.extend_from_slice(&[2, 1, 2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee]);
    assert_eq!(icmp.payload(), body);
}

/// The frame with bytes changed and its ICMPv6 checksum right again.
fn solicitation(changes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut frame = NEIGHBOUR_SOLICITATION.to_vec();
    for (at, value) in changes {
        frame[*at..at + value.len()].copy_from_slice(value);
    }
    frame[56..58].fill(0);
    let checksum = Sum::default().pseudo_header(&frame[22..38], &frame[38..54], 32, 58).bytes(&frame[54..]);
    frame[56..58].copy_from_slice(&checksum.complement().to_be_bytes());
    frame
}

#[test]
fn detection_of_duplicate_addresses_stays_without_answer() {
    assert_eq!(solicitation(&[]), NEIGHBOUR_SOLICITATION);
    let probe = solicitation(&[(22, &[0; 16])]);
    assert!(is_address_resolution(&probe));
    assert_eq!(answer(&probe), None);
}

#[test]
fn malformed_solicitations_stay_without_answer() {
    type Changes = [(usize, &'static [u8])];
    let cases: [(&str, &Changes); 5] = [
        ("it came from afar", &[(21, &[64])]),
        ("a code", &[(55, &[1])]),
        ("a group is nobody's neighbour", &[(62, &[0xff])]),
        ("an option without length", &[(79, &[0])]),
        ("an option that is too long", &[(79, &[2])]),
    ];
    for (why, changes) in cases {
        assert_eq!(answer(&solicitation(changes)), None, "{why}");
    }
    let mut wrong_checksum = NEIGHBOUR_SOLICITATION;
    wrong_checksum[57] ^= 1;
    assert_eq!(answer(&wrong_checksum), None);
}

#[test]
fn an_answer_goes_where_the_option_says_or_else_where_the_question_came_from() {
    let other = solicitation(&[(80, &[2, 0, 0, 0, 0, 9])]);
    assert_eq!(answer(&other).expect("it is answered")[..6], [2, 0, 0, 0, 0, 9]);
    let unknown = solicitation(&[(78, &[200])]);
    assert_eq!(answer(&unknown).expect("it is answered")[..6], [2, 0, 0, 0, 0, 1]);
}

#[test]
fn traffic_is_not_address_resolution() {
    assert!(!is_address_resolution(&samples::udp(b"x")));
    let mut echo = NEIGHBOUR_SOLICITATION;
    echo[54] = 128;
    assert!(!is_address_resolution(&echo));
    assert!(!is_address_resolution(&[]));
}

proptest! {
    #[test]
    fn nothing_panics_and_answers_are_answered_by_nobody(frame in samples::bytes()) {
        let asked = asked_address(&frame);
        let mut out = Vec::new();
        let answered = answer_resolution(&frame, MAC, &mut out);
        prop_assert_eq!(answered, asked.is_some());
        if answered {
            prop_assert!(is_address_resolution(&frame) && is_address_resolution(&out));
            prop_assert_eq!(asked_address(&out), None);
        }
    }
}
