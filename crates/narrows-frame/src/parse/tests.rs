use super::*;
use crate::samples;
use proptest::prelude::*;

fn ethernet(frame: &[u8]) -> Parsed {
    parse(LinkLayer::Ethernet, frame)
}

fn mapped(address: [u8; 4]) -> [u8; 16] {
    std::net::Ipv4Addr::from(address).to_ipv6_mapped().octets()
}

/// A TCP SYN, ECN-capable, from a capture: 20 bytes of IPv4 header, 40 of TCP.
const SYN: [u8; 74] = [
    0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00, //
    0x45, 0x02, 0x00, 0x3c, 0x1c, 0x46, 0x40, 0x00, 0x40, 0x06, 0xb1, 0xe4, //
    0xac, 0x10, 0x0a, 0x63, 0xac, 0x10, 0x0a, 0x0c, //
    0xd4, 0x31, 0x00, 0x50, 0, 0, 0, 1, 0, 0, 0, 0, 0xa0, 0xc2, 0xff, 0xff, 0, 0, 0, 0, //
    2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
];

#[test]
fn tcp_over_ipv4() {
    let parsed = ethernet(&SYN);
    let key = FlowKey {
        source: mapped([172, 16, 10, 99]),
        destination: mapped([172, 16, 10, 12]),
        mark: 0,
        source_port: 54_321,
        destination_port: 80,
        network: Protocol::Ipv4DontFragment,
        transport: 6,
        traffic_class: 2,
        tcp_flags: 0xc2,
    };
    assert_eq!(
        parsed,
        Parsed {
            length: 60,
            link_header: 14,
            network_header: 20,
            key,
            headers: Headers {
                link_source: [2, 0, 0, 0, 0, 1],
                link_destination: [2, 0, 0, 0, 0, 2],
                ether_type: 0x0800,
                hop_limit: 64,
                ip_id: 0x1c46,
                // MSS, permission to acknowledge selectively, timestamps, window scale.
                tcp_options: 1 | 4 | 8 | 2,
                tcp_mss: 1460,
                tcp_window: 65_535,
                tcp_sequence: 1,
                ..Headers::default()
            },
            examined: 14 + 20 + 40
        }
    );
}

#[test]
fn how_much_a_segment_carries_follows_from_the_lengths_of_the_whole() {
    let mut frame = SYN.to_vec();
    frame.extend_from_slice(&[7; 100]);
    frame[17] += 100;
    assert_eq!(ethernet(&frame).headers.tcp_data_length, 100);
    let cut = parse_cut(LinkLayer::Ethernet, &frame[..14 + 20 + 40], frame.len() as u32);
    assert_eq!(cut, ethernet(&frame));
    frame.resize(14 + 160 + 9, 0xee); // padding
    assert_eq!(ethernet(&frame).headers.tcp_data_length, 100);
    frame[46] = 0xf0; // a header of 60 bytes
    assert_eq!(ethernet(&frame).headers.tcp_data_length, 80);
    frame.truncate(14 + 20 + 12); // cut before the header's length
    assert_eq!(parse_cut(LinkLayer::Ethernet, &frame, 174).headers.tcp_data_length, 0);
    frame.splice(14.., SYN[14..].iter().copied());
    frame[46] = 0xf0; // a header that claims more than there is
    assert_eq!(ethernet(&frame).headers.tcp_data_length, 0);
    frame[23] = 17; // no TCP
    assert_eq!(ethernet(&frame).headers.tcp_data_length, 0);
}

/// The SYN above with a strict source route in its IP header: fields and options that rules match.
#[test]
fn fields_and_options_that_rules_match() {
    let mut frame = SYN.to_vec();
    frame.splice(34..34, [137, 7, 4, 192, 0, 2, 1, 0]);
    frame[14] = 0x47; // 28 bytes
    frame[17] += 8;
    frame[20] = 0xe0; // reserved, don't fragment, more fragments
    frame[14 + 28 + 8..14 + 28 + 12].copy_from_slice(&[0, 0, 1, 2]); // acknowledgement number
    let headers = ethernet(&frame).headers;
    assert_eq!((headers.ip_id, headers.ip_options, headers.fragment), (0x1c46, 2, 0xa0));
    assert_eq!((headers.tcp_sequence, headers.tcp_acknowledgement), (1, 0x102));
    assert_eq!((headers.tcp_mss, headers.tcp_options), (1460, 15));
    assert_eq!(ethernet(&frame).key.network, Protocol::Ipv4DontFragment);
    frame[14 + 20 + 1] = 9; // longer than the header
    assert_eq!(ethernet(&frame).headers.ip_options, Headers::MALFORMED_OPTIONS);
    frame[21] = 1; // a fragment behind the first, whose payload is not read
    let headers = ethernet(&frame).headers;
    assert_eq!((headers.fragment, headers.tcp_sequence, headers.tcp_mss), (0xa1, 0, 0));
}

#[test]
fn extension_headers_that_rules_match() {
    let frame = |first: u8, chain: &[u8]| {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0];
        frame.extend([chain.len() as u8, first, 64]);
        frame.extend([0; 32]);
        frame.extend(chain);
        ethernet(&frame).headers.extension_headers
    };
    let of = |next: u8, second: u8, third: u8| [next, second, third, 0, 0, 0, 0, 0];
    assert_eq!(frame(17, &[0; 8]), 0);
    // Hop-by-hop options, then routing of type 2, then UDP.
    assert_eq!(frame(0, &[of(43, 0, 0), of(17, 0, 2), [0; 8]].concat()), 0x02 | 0x04 | 0x80);
    assert_eq!(frame(43, &[of(60, 0, 0), of(17, 0, 0), [0; 8]].concat()), 0x04 | 0x40 | 0x20);
    assert_eq!(frame(44, &[of(17, 0, 0), [0; 8]].concat()), 0x01);
    assert_eq!(frame(51, &[of(50, 0, 0), [0; 8]].concat()), 0x08 | 0x10);
}

#[test]
fn link_addresses_are_known_where_the_link_layer_has_them() {
    let frame = samples::udp(b"hello");
    let headers = |layer, frame: &[u8]| parse(layer, frame).headers;
    let [source, destination] = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]];
    let whole = headers(LinkLayer::Ethernet, &frame);
    assert_eq!((whole.link_source, whole.link_destination, whole.ether_type), (source, destination, 0x0800));
    let bare = Headers { link_source: [0; 6], link_destination: [0; 6], ..whole };
    assert_eq!(headers(LinkLayer::Ip, &frame[14..]), bare);

    let mut cooked = vec![0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 2, 0, 0, 8, 0];
    cooked.extend_from_slice(&frame[14..]);
    assert_eq!(headers(LinkLayer::LinuxCooked, &cooked), Headers { link_source: source, ..bare });
    cooked[5] = 4; // a tunnel's address
    assert_eq!(headers(LinkLayer::LinuxCooked, &cooked), bare);
    let mut cooked = vec![8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 2, 0, 0];
    cooked.extend_from_slice(&frame[14..]);
    assert_eq!(headers(LinkLayer::LinuxCooked2, &cooked), Headers { link_source: source, ..bare });
    cooked[11] = 8;
    assert_eq!(headers(LinkLayer::LinuxCooked2, &cooked), bare);

    let arp = headers(LinkLayer::Ethernet, &samples::ARP_REQUEST);
    assert_eq!((arp.link_destination, arp.ether_type, arp.hop_limit), ([0xff; 6], 0x0806, 0));
    assert_eq!(headers(LinkLayer::Ethernet, &frame[..13]), Headers::default());
}

#[test]
fn flow_label_and_hop_limit_of_ipv6() {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
    frame.extend_from_slice(&[0x60, 0x1a, 0xbc, 0xde, 0, 0, 59, 7]);
    frame.extend_from_slice(&[0x20; 32]);
    let parsed = ethernet(&frame);
    assert_eq!((parsed.headers.flow_label, parsed.headers.hop_limit), (0xa_bcde, 7));
    assert_eq!((parsed.key.traffic_class, parsed.headers.ether_type), (1, 0x86dd));
}

#[test]
fn padding_does_not_count_and_tags_belong_to_the_link_header() {
    let plain = samples::udp(b"x");
    let mut padded = plain.clone();
    padded.resize(60, 0);
    assert_eq!(ethernet(&padded), ethernet(&plain));
    assert_eq!(ethernet(&plain).length, 29);

    let mut tagged = plain[..12].to_vec();
    tagged.extend_from_slice(&[0x88, 0xa8, 0x20, 5, 0x81, 0, 0, 9]);
    tagged.extend_from_slice(&plain[12..]);
    let parsed = ethernet(&tagged);
    assert_eq!((parsed.link_header, parsed.length, parsed.key), (22, 29, ethernet(&plain).key));
}

#[test]
fn packets_without_a_link_header_and_cooked_ones_have_the_same_key() {
    let frame = samples::udp(b"hello");
    let bare = parse(LinkLayer::Ip, &frame[14..]);
    assert_eq!((bare.link_header, bare.length), (0, 33));
    assert_eq!(bare.key, ethernet(&frame).key);

    let mut cooked = vec![0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
    cooked.extend_from_slice(&frame[14..]);
    let parsed = parse(LinkLayer::LinuxCooked, &cooked);
    assert_eq!((parsed.link_header, parsed.length, parsed.key), (16, 33, bare.key));

    let mut cooked = vec![8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    cooked.extend_from_slice(&frame[14..]);
    let parsed = parse(LinkLayer::LinuxCooked2, &cooked);
    assert_eq!((parsed.link_header, parsed.length, parsed.key), (20, 33, bare.key));
}

#[test]
fn fragments_after_the_first_have_no_ports() {
    let mut frame = samples::udp(&[0; 32]);
    frame[14 + 6] = 0x20;
    assert_eq!(ethernet(&frame).key.destination_port, 2000);
    assert!(!ethernet(&frame).headers.is_later_fragment);
    frame[14 + 7] = 3;
    let Parsed { key, headers, .. } = ethernet(&frame);
    assert_eq!((key.source_port, key.destination_port, key.transport), (0, 0, 17));
    assert!(headers.is_later_fragment);
}

#[test]
fn ipv6_extension_headers_are_walked_through() {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
    frame.extend_from_slice(&[0x6b, 0x80, 0, 0, 0, 8 + 8 + 12, 0, 64]);
    frame.extend_from_slice(&[0x20; 16]);
    frame.extend_from_slice(&[0x30; 16]);
    frame.extend_from_slice(&[44, 0, 5, 2, 0, 0, 1, 0]); // hop by hop: router alert
    frame.extend_from_slice(&[132, 0, 0, 1, 0, 0, 0, 7]); // the first fragment
    frame.extend_from_slice(&[0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0, 0, 0, 0, 0]); // SCTP
    let parsed = ethernet(&frame);
    assert_eq!((parsed.length, parsed.network_header), (40 + 28, 0));
    let key = FlowKey {
        source: [0x20; 16],
        destination: [0x30; 16],
        source_port: 0x1234,
        destination_port: 0x5678,
        network: Protocol::Ipv6,
        transport: 132,
        traffic_class: 0xb8,
        ..FlowKey::default()
    };
    assert_eq!(parsed.key, key);
    assert!(!parsed.headers.is_later_fragment);
    frame[14 + 40 + 8 + 3] = 9; // a later fragment
    assert!(ethernet(&frame).headers.is_later_fragment);
    assert_eq!(ethernet(&frame).key, FlowKey { source_port: 0, destination_port: 0, ..key });
}

#[test]
fn a_jumbogram_fills_the_frame() {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
    frame.extend_from_slice(&[0x60, 0, 0, 0, 0, 0, 0, 64]);
    frame.extend_from_slice(&[0x20; 32]);
    frame.extend_from_slice(&[17, 0, 0xc2, 4, 0, 1, 0x38, 0x90]); // a jumbo payload of 80,016 bytes
    frame.extend_from_slice(&[0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0]);
    frame.resize(14 + 40 + 80_016, 0);
    let parsed = ethernet(&frame);
    assert_eq!((parsed.length, parsed.key.source_port), (80_056, 0x1234));
    frame[20] = 59; // nothing follows: that is an empty packet, and padding
    assert_eq!((ethernet(&frame).length, ethernet(&frame).key.source_port), (40, 0));
}

#[test]
fn echo_requests_are_told_apart_by_type_and_identifier() {
    let mut frame = samples::udp(&[]);
    frame[14 + 9] = 1;
    frame[34..].copy_from_slice(&[8, 0, 0, 0, 0xab, 0xcd, 0, 1]);
    let key = ethernet(&frame).key;
    assert_eq!((key.transport, key.source_port, key.destination_port), (1, 0x0800, 0xabcd));
    frame[34] = 3; // "unreachable": those bytes are not an identifier
    assert_eq!(ethernet(&frame).key.destination_port, 0);
}

#[test]
fn what_is_not_sane_ip_has_the_frames_own_length() {
    let whole = samples::udp(&[7; 40]);
    let other = |frame: &[u8], link_header: u8| {
        let parsed = ethernet(frame);
        assert_eq!(parsed.key, FlowKey::default(), "{frame:x?}");
        assert_eq!((parsed.link_header, parsed.network_header), (link_header, 0));
        assert_eq!(parsed.length as usize, frame.len() - usize::from(link_header));
    };
    other(&[], 0);
    other(&whole[..13], 0);
    other(&whole[..14], 14);
    other(&whole[..40], 14); // claims more than there is
    other(&samples::ARP_REQUEST, 14);
    for (at, value) in [(14, 0x55), (14, 0x44), (14, 0x4f), (16, 0xff), (12, 0x86)] {
        let mut frame = whole.clone();
        frame[at] = value;
        frame.truncate(14 + 30.max(usize::from(at == 12) * 60));
        other(&frame, 14);
    }
}

#[test]
fn a_frame_that_a_capture_cut_short_keeps_its_length() {
    let whole = samples::udp(&[7; 400]);
    let cut = parse_cut(LinkLayer::Ethernet, &whole[..60], whole.len() as u32);
    assert_eq!(cut, ethernet(&whole));
    assert_eq!(cut.length, 428);
}

proptest! {
    #[test]
    fn any_bytes_give_lengths_that_fit(layer in samples::layers(), frame in samples::bytes(), original: u32) {
        let parsed = parse_cut(layer, &frame, original);
        let original = original.max(frame.len() as u32);
        prop_assert!(u64::from(parsed.length) + u64::from(parsed.link_header) <= u64::from(original));
        prop_assert!(parsed.examined as usize <= frame.len());
        prop_assert_eq!(parsed.network_header != 0, matches!(parsed.key.network, Protocol::Ipv4 | Protocol::Ipv4DontFragment));
    }

    #[test]
    fn what_was_not_examined_does_not_matter(frame in samples::bytes(), end: prop::sample::Index) {
        let parsed = ethernet(&frame);
        let examined = parsed.examined as usize;
        let end = examined + end.index(frame.len() - examined + 1);
        prop_assert_eq!(parse_cut(LinkLayer::Ethernet, &frame[..end], frame.len() as u32), parsed);
    }

    /// Another parser finds the same in whole frames.
    #[test]
    fn another_implementation_agrees(frame in prop_oneof![samples::ipv4(), samples::ipv6()]) {
        use etherparse::{LinkSlice, NetSlice, TransportSlice};
        let parsed = ethernet(&frame);
        let Ok(sliced) = etherparse::SlicedPacket::from_ethernet(&frame) else { return Ok(()) };
        let Some(LinkSlice::Ethernet2(link)) = sliced.link else { panic!("it is Ethernet") };
        prop_assert_eq!(parsed.headers.link_source, link.source());
        prop_assert_eq!(parsed.headers.link_destination, link.destination());
        match sliced.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header();
                prop_assert_eq!(parsed.length, u32::from(header.total_len()));
                prop_assert_eq!(parsed.network_header, header.slice().len() as u8);
                prop_assert_eq!(parsed.key.source, header.source_addr().to_ipv6_mapped().octets());
                prop_assert_eq!(parsed.key.destination, header.destination_addr().to_ipv6_mapped().octets());
                prop_assert_eq!(parsed.key.traffic_class, header.dcp().value() << 2 | header.ecn().value());
                prop_assert_eq!(parsed.key.transport, header.protocol().0);
                let dont = parsed.key.network == Protocol::Ipv4DontFragment;
                prop_assert_eq!(dont, header.dont_fragment());
                prop_assert_eq!(parsed.headers.hop_limit, header.ttl());
                prop_assert_eq!(parsed.headers.is_later_fragment, header.fragments_offset().value() > 0);
            }
            Some(NetSlice::Ipv6(ip)) => {
                prop_assert_eq!(parsed.length, 40 + u32::from(ip.header().payload_length()));
                prop_assert_eq!(parsed.key.source, ip.header().source());
                prop_assert_eq!(parsed.key.destination, ip.header().destination());
                prop_assert_eq!(parsed.key.traffic_class, ip.header().traffic_class());
                prop_assert_eq!(parsed.headers.hop_limit, ip.header().hop_limit());
                prop_assert_eq!(parsed.headers.flow_label, ip.header().flow_label().value());
                // It takes a length of zero to mean "all there is", padding included, before any header.
                if ip.header().payload_length() == 0 {
                    return Ok(());
                }
            }
            _ => prop_assert!(false, "it is IP"),
        }
        match sliced.transport {
            Some(TransportSlice::Udp(udp)) => {
                prop_assert_eq!((parsed.key.source_port, parsed.key.destination_port), (udp.source_port(), udp.destination_port()));
            }
            Some(TransportSlice::Tcp(tcp)) => {
                prop_assert_eq!((parsed.key.source_port, parsed.key.destination_port), (tcp.source_port(), tcp.destination_port()));
                prop_assert_eq!(parsed.key.tcp_flags, tcp.slice()[13]);
                prop_assert_eq!(usize::from(parsed.headers.tcp_data_length), tcp.payload().len());
            }
            Some(TransportSlice::Icmpv4(icmp)) => {
                prop_assert_eq!(parsed.key.source_port, u16::from(icmp.type_u8()) << 8 | u16::from(icmp.code_u8()));
            }
            Some(TransportSlice::Icmpv6(icmp)) => {
                prop_assert_eq!(parsed.key.source_port, u16::from(icmp.type_u8()) << 8 | u16::from(icmp.code_u8()));
            }
            _ => {}
        }
    }
}
