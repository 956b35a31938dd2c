use super::*;
use crate::LinkLayer;
use crate::craft::{Other, Udp};
use crate::parse::{Parsed, parse, protocol};
use crate::samples;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::SocketAddr;

fn edits(parsed: &Parsed) -> Edits<'static> {
    Edits {
        link_header: parsed.link_header,
        network: parsed.key.network,
        traffic_class: parsed.key.traffic_class,
        hop_limit: None,
        hops: 0,
        length: parsed.length,
        fragment: None,
        flips: &[],
        stations: None,
        ether_type: None,
        ends: None,
        quoted: None,
        tag: Tag::Stays,
    }
}

fn rendered(edits: &Edits<'_>, frame: &[u8]) -> Vec<u8> {
    let mut out = vec![9; 3];
    edits.render(frame, &mut out);
    out
}

/// Cuts a frame as the engine cuts a packet: pieces of `room` bytes of payload, a multiple of 8.
fn fragments(frame: &[u8], room: usize) -> Vec<Vec<u8>> {
    let parsed = parse(LinkLayer::Ethernet, frame);
    let header = u32::from(parsed.network_header);
    let payload = (parsed.length - header) as usize;
    let mut pieces = Vec::new();
    for offset in (0..payload).step_by(room) {
        let length = room.min(payload - offset);
        let piece = Fragment { offset: offset as u16, more: offset + length < payload };
        let edits = Edits { length: header + length as u32, fragment: Some(piece), ..edits(&parsed) };
        pieces.push(rendered(&edits, frame));
    }
    pieces
}

/// Joins the fragments of one packet as a host does: payload bytes by their place, until the one without "more".
fn reassembled(pieces: &[Vec<u8>]) -> Option<Vec<u8>> {
    let (mut bytes, mut end) = (BTreeMap::new(), None);
    for piece in pieces {
        let packet = &piece[14..];
        let (header, length) = (usize::from(packet[0] & 15) * 4, u16::from_be_bytes([packet[2], packet[3]]));
        assert_eq!(usize::from(length), packet.len());
        assert!(samples::checksum_is_right(&packet[..header]));
        let place = u16::from_be_bytes([packet[6], packet[7]]);
        let offset = usize::from(place & OFFSET) * 8;
        if place & MORE_FRAGMENTS == 0 {
            assert_eq!(end.replace(offset + packet.len() - header), None, "two last fragments");
        }
        for (at, &byte) in packet[header..].iter().enumerate() {
            assert_eq!(bytes.insert(offset + at, byte), None, "a byte in two fragments");
        }
    }
    let whole: Vec<u8> = bytes.values().copied().collect();
    (end == Some(whole.len()) && bytes.keys().copied().eq(0..whole.len())).then_some(whole)
}

#[test]
fn a_frame_that_stays_as_it_is_needs_no_edit() {
    let frame = samples::udp(b"hello");
    let same = edits(&parse(LinkLayer::Ethernet, &frame));
    assert!(!same.needed(&frame));
    assert_eq!(rendered(&same, &frame), frame);
    assert!(!edits(&parse(LinkLayer::Ethernet, &samples::ARP_REQUEST)).needed(&samples::ARP_REQUEST));
}

#[test]
fn a_congestion_mark_mends_the_header_and_touches_nothing_else() {
    let frame = samples::udp(b"hello");
    let mark = Edits { traffic_class: 3, ..edits(&parse(LinkLayer::Ethernet, &frame)) };
    assert!(mark.needed(&frame));
    let marked = rendered(&mark, &frame);
    let mut expected = frame.clone();
    expected[15] = 3;
    expected[24..26].copy_from_slice(&marked[24..26]);
    assert_eq!(marked, expected);
    assert!(samples::checksum_is_right(&marked[14..34]));
    assert!(!mark.needed(&marked));
}

#[test]
fn a_header_that_arrived_with_a_wrong_checksum_leaves_with_a_wrong_one() {
    let mut frame = samples::udp(b"hello");
    frame[24] ^= 0x10;
    let marked = rendered(&Edits { traffic_class: 3, ..edits(&parse(LinkLayer::Ethernet, &frame)) }, &frame);
    assert!(!samples::checksum_is_right(&marked[14..34]));
}

#[test]
fn bits_are_counted_from_the_network_header_as_rfcs_draw_them() {
    let frame = samples::udp(b"hello");
    let bits = [0, 9, 33 * 8 - 1, 33 * 8, u32::MAX];
    let flipped = rendered(&Edits { flips: &bits, ..edits(&parse(LinkLayer::Ethernet, &frame)) }, &frame);
    let mut expected = frame;
    expected[14] ^= 0x80;
    expected[15] ^= 0x40;
    *expected.last_mut().expect("it is not empty") ^= 1;
    assert_eq!(flipped, expected);
}

#[test]
fn a_flip_in_padding_is_left_out() {
    let mut frame = samples::udp(b"x");
    let edits = Edits { flips: &[29 * 8], ..edits(&parse(LinkLayer::Ethernet, &frame)) };
    frame.resize(60, 0);
    assert_eq!(rendered(&edits, &frame), frame);
}

#[test]
fn a_marked_and_flipped_piece_is_cut_first_and_flipped_last() {
    let frame = samples::udp(&[0x55; 100]);
    let piece = Edits {
        traffic_class: 3,
        length: 20 + 16,
        fragment: Some(Fragment { offset: 16, more: true }),
        flips: &[20 * 8],
        ..edits(&parse(LinkLayer::Ethernet, &frame))
    };
    let out = rendered(&piece, &frame);
    assert_eq!(out.len(), 14 + 36);
    assert!(samples::checksum_is_right(&out[14..34]));
    assert_eq!((out[15], &out[16..22]), (3, &[0, 36, 0, 77, 0x20, 2][..]));
    assert_eq!((out[34], &out[35..]), (0xd5, &[0x55; 15][..]));
}

#[test]
fn routers_that_were_passed_count_down_the_time_to_live_and_the_checksum_is_mended() {
    let frame = samples::udp(b"hello");
    let passed = |hops| Edits { hops, ..edits(&parse(LinkLayer::Ethernet, &frame)) };
    assert!(passed(3).needed(&frame));
    let out = rendered(&passed(3), &frame);
    let mut expected = frame.clone();
    expected[22] = 61;
    expected[24..26].copy_from_slice(&out[24..26]);
    assert_eq!(out, expected);
    assert!(samples::checksum_is_right(&out[14..34]));
    assert_eq!(rendered(&passed(64), &frame)[22], 0);
    assert_eq!(rendered(&passed(200), &frame)[22], 0, "no less than nothing");

    let mut wrong = frame.clone();
    wrong[24] ^= 0x10;
    assert!(!samples::checksum_is_right(&rendered(&passed(3), &wrong)[14..34]));
}

#[test]
fn every_piece_has_passed_the_routers() {
    let frame = samples::udp(&[0x55; 100]);
    let piece = Edits {
        hops: 2,
        length: 20 + 16,
        fragment: Some(Fragment { offset: 16, more: true }),
        ..edits(&parse(LinkLayer::Ethernet, &frame))
    };
    let out = rendered(&piece, &frame);
    assert_eq!((out[22], &out[16..22]), (62, &[0, 36, 0, 77, 0x20, 2][..]));
    assert!(samples::checksum_is_right(&out[14..34]));
}

#[test]
fn stations_are_those_of_the_last_link_and_groups_stay() {
    let (router, host) = (MacAddress([2, 0, 0, 0, 0, 7]), MacAddress([2, 0, 0, 0, 0, 8]));
    let mut frame = samples::udp(b"hello");
    let forwarded = Edits { stations: Some((router, host)), ..edits(&parse(LinkLayer::Ethernet, &frame)) };
    assert!(forwarded.needed(&frame));
    let out = rendered(&forwarded, &frame);
    assert_eq!((&out[..6], &out[6..12], &out[12..]), (&host.0[..], &router.0[..], &frame[12..]));
    assert!(!forwarded.needed(&out));
    frame[0] |= 1;
    let out = rendered(&forwarded, &frame);
    assert_eq!((&out[..6], &out[6..12]), (&frame[..6], &router.0[..]));
    let bare = Edits { stations: Some((router, host)), ..edits(&parse(LinkLayer::Ip, &frame[14..])) };
    assert_eq!(rendered(&bare, &frame[14..]), frame[14..], "no link header, no addresses");
}

#[test]
fn only_options_with_the_copy_flag_go_into_later_fragments() {
    let mut options = vec![7, 7, 4, 9, 9, 9, 9, 0x94, 4, 0, 0, 1, 0x44, 3, 9, 0];
    blank_uncopied_options(&mut options);
    assert_eq!(options, [1, 1, 1, 1, 1, 1, 1, 0x94, 4, 0, 0, 1, 1, 1, 1, 0]);
    for malformed in [[7, 0, 0, 0], [7, 1, 0, 0], [7, 5, 0, 0], [1, 1, 1, 7]] {
        let mut options = malformed;
        blank_uncopied_options(&mut options);
        assert_eq!(options, malformed);
    }
}

#[test]
fn a_piece_of_a_frame_cut_short_is_what_is_there_of_it() {
    let frame = samples::udp(&[0x55; 100]);
    let edits = Edits {
        length: 20 + 48,
        fragment: Some(Fragment { offset: 48, more: true }),
        ..edits(&parse(LinkLayer::Ethernet, &frame))
    };
    let (whole, cut) = (rendered(&edits, &frame), rendered(&edits, &frame[..14 + 20 + 60]));
    assert_eq!(cut, whole[..14 + 20 + 12]);
    assert_eq!(rendered(&edits, &frame[..14 + 20 + 8]), whole[..14 + 20]);
}

proptest! {
    #[test]
    fn fragments_and_fragments_of_fragments_come_together_again(
        payload in proptest::collection::vec(any::<u8>(), 1..3000),
        options in samples::options(), first in 1usize..60, second in 1usize..20, swap: prop::sample::Index,
    ) {
        let mut frame = samples::udp(&payload);
        // Options between the header and the datagram.
        frame.splice(34..34, options.iter().copied());
        frame[14] += options.len() as u8 / 4;
        let total = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        let header = 20 + options.len();
        frame[24..26].fill(0);
        let checksum = Sum::default().bytes(&frame[14..14 + header]).complement();
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());

        let once = fragments(&frame, first * 8);
        let expected = Some(frame[14 + header..].to_vec());
        prop_assert_eq!(&reassembled(&once), &expected);
        let mut twice: Vec<_> = once.iter().flat_map(|piece| fragments(piece, second * 8)).collect();
        let at = swap.index(twice.len());
        twice.swap(0, at);
        prop_assert_eq!(reassembled(&twice), expected);
        // Cutting a piece again gives what cutting the whole that finely gives, headers included.
        if first % second == 0 {
            let mut direct = fragments(&frame, second * 8);
            let at = swap.index(direct.len());
            direct.swap(0, at);
            prop_assert_eq!(&direct, &twice);
        }
        let mut copied = options.clone();
        blank_uncopied_options(&mut copied);
        for piece in &twice {
            let first = piece[20] & 0x1f == 0 && piece[21] == 0;
            prop_assert_eq!(&piece[34..14 + header], if first { &options } else { &copied });
        }
        if once.len() > 1 {
            prop_assert_eq!(reassembled(&once[1..]), None);
        }
    }

    #[test]
    fn a_new_class_is_what_parsing_finds_then(
        frame in prop_oneof![samples::ipv4(), samples::ipv6()], class: u8,
    ) {
        let parsed = parse(LinkLayer::Ethernet, &frame);
        prop_assert!(parsed.key.network != Protocol::Other);
        let out = rendered(&Edits { traffic_class: class, ..edits(&parsed) }, &frame);
        let again = parse(LinkLayer::Ethernet, &out);
        let expected = narrows_core::FlowKey { traffic_class: class, ..parsed.key };
        prop_assert_eq!((again.key, again.length), (expected, parsed.length));
        if again.network_header > 0 {
            let (from, to) = (usize::from(again.link_header), usize::from(again.link_header + again.network_header));
            prop_assert!(samples::checksum_is_right(&out[from..to]));
        }
        // And back: the same frame.
        prop_assert_eq!(rendered(&edits(&parsed), &out), frame);
    }

    #[test]
    fn a_lower_hop_limit_is_what_parsing_finds_then(
        frame in prop_oneof![samples::ipv4(), samples::ipv6()], hops: u8,
    ) {
        let parsed = parse(LinkLayer::Ethernet, &frame);
        let out = rendered(&Edits { hops, ..edits(&parsed) }, &frame);
        let mut expected = parsed;
        expected.headers.hop_limit = 64u8.saturating_sub(hops);
        prop_assert_eq!(parse(LinkLayer::Ethernet, &out), expected);
        if parsed.network_header > 0 {
            let (from, to) = (usize::from(parsed.link_header), usize::from(parsed.link_header + parsed.network_header));
            prop_assert!(samples::checksum_is_right(&out[from..to]));
        }
    }

    #[test]
    fn nothing_panics(
        frame in samples::bytes(), link_header: u8, network in 0usize..4, class: u8, length: u32,
        piece: Option<(u16, bool)>, flips in proptest::collection::vec(any::<u32>(), 0..4), sane: bool,
        hops: u8, stations: Option<([u8; 6], [u8; 6])>, tag in 0usize..3,
        written: (Option<u8>, Option<u16>), ends: Option<([u8; 16], u16)>,
    ) {
        let parsed = parse(LinkLayer::Ethernet, &frame);
        let network = [Protocol::Other, Protocol::Ipv4, Protocol::Ipv4DontFragment, Protocol::Ipv6][network];
        let edits = Edits {
            link_header: if sane { parsed.link_header } else { link_header },
            network: if sane { parsed.key.network } else { network },
            traffic_class: class,
            hop_limit: written.0,
            hops,
            length: if sane { parsed.length } else { length },
            fragment: piece.map(|(offset, more)| Fragment { offset: offset & !7, more }),
            flips: &flips,
            stations: stations.map(|(from, to)| (MacAddress(from), MacAddress(to))),
            ether_type: written.1,
            quoted: None,
            ends: ends.map(|(source, source_port)| FlowKey { source, source_port, ..parsed.key }),
            tag: [Tag::Stays, Tag::On(7), Tag::Off][tag],
        };
        let out = rendered(&edits, &frame);
        let grows = if matches!(edits.tag, Tag::On(_)) { 4 } else { 0 };
        prop_assert!(out.len() <= frame.len() + grows);
        if !edits.needed(&frame) {
            prop_assert_eq!(out, frame);
        }
    }
}

/// Frames whose addresses and ports were written are those that a sender with these addresses and ports builds: UDP and
/// TCP over IPv4 and IPv6, with the checksums.
#[test]
fn written_ends_are_those_of_another_sender() {
    let ends =
        |near: &str, far: &str| -> (SocketAddr, SocketAddr) { (near.parse().unwrap(), far.parse().unwrap()) };
    let pairs = [
        (ends("10.0.0.1:4000", "10.0.0.2:53"), ends("192.0.2.7:65535", "198.51.100.1:1")),
        (ends("[fd00::1]:4000", "[fd00::2]:53"), ends("[2001:db8::7]:22", "[2001:db8::ffff:1]:443")),
    ];
    for ((source, destination), (new_source, new_destination)) in pairs {
        for (number, payload) in [protocol::UDP, protocol::TCP]
            .into_iter()
            .flat_map(|number| [(number, b"even".as_slice()), (number, b"odd".as_slice()), (number, &[])])
        {
            let build = |source, destination| match number {
                protocol::UDP => Udp::new(source, destination).packet(payload),
                _ => {
                    let mut out = Vec::new();
                    Other::new(source, destination, number).append(payload, &mut out);
                    out
                }
            };
            let (before, after) = (build(source, destination), build(new_source, new_destination));
            let parsed = parse(LinkLayer::Ip, &before);
            let edits = Edits { ends: Some(parse(LinkLayer::Ip, &after).key), ..edits(&parsed) };
            assert_eq!(rendered(&edits, &before), after, "protocol {number}, {} bytes", payload.len());
        }
    }
}

#[test]
fn a_datagram_without_a_checksum_gets_none() {
    let (near, far) = ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:53".parse().unwrap());
    let mut packet = Udp::new(near, far).packet(b"plain");
    packet[26..28].fill(0);
    let parsed = parse(LinkLayer::Ip, &packet);
    let edits = Edits { ends: Some(FlowKey { destination_port: 54, ..parsed.key }), ..edits(&parsed) };
    let out = rendered(&edits, &packet);
    assert_eq!((&out[22..24], &out[26..28]), (&[0, 54][..], &[0, 0][..]));
}

#[test]
fn a_filter_writes_the_type_and_the_hop_limit() {
    let (near, far) = ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:53".parse().unwrap());
    let frame = Udp::new(near, far).ethernet(MacAddress([2; 6]), MacAddress([4; 6]), b"");
    let parsed = parse(LinkLayer::Ethernet, &frame);
    // Three routers behind the filter; the tag comes before the type.
    let edits =
        Edits { ether_type: Some(0xbeef), hop_limit: Some(9), hops: 3, tag: Tag::On(7), ..edits(&parsed) };
    let out = rendered(&edits, &frame);
    assert_eq!(out[12..18], [0x81, 0, 0, 7, 0xbe, 0xef]);
    assert_eq!(out[18 + 8], 6);
    assert!(samples::checksum_is_right(&out[18..38]));
}

#[test]
fn a_tag_is_put_on_behind_the_addresses_and_taken_off_again() {
    let plain = samples::udp(b"hello");
    let on = Edits { tag: Tag::On(0x123), ..edits(&parse(LinkLayer::Ethernet, &plain)) };
    assert!(on.needed(&plain));
    let tagged = rendered(&on, &plain);
    assert_eq!(tagged[..12], plain[..12]);
    assert_eq!(tagged[12..16], [0x81, 0x00, 0x01, 0x23]);
    assert_eq!(tagged[16..], plain[12..]);
    let parsed = parse(LinkLayer::Ethernet, &tagged);
    assert_eq!((parsed.link_header, parsed.headers.vlan), (18, 0x123));
    let off = Edits { tag: Tag::Off, traffic_class: parsed.key.traffic_class ^ 3, ..edits(&parsed) };
    let bare = rendered(&off, &tagged);
    assert_eq!(bare.len(), plain.len());
    let bare = parse(LinkLayer::Ethernet, &bare);
    assert_eq!((bare.headers.vlan, bare.key.traffic_class), (0, parsed.key.traffic_class ^ 3));
    for length in 0..16 {
        rendered(
            &Edits { tag: Tag::Off, ..edits(&parse(LinkLayer::Ethernet, &tagged[..length])) },
            &tagged[..length],
        );
    }
}
