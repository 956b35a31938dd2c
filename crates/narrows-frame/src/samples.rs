//! Frames for tests: made by another implementation (`etherparse`), random and mutated.

use etherparse::{IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv4Options, PacketBuilder};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::LinkLayer;
use crate::checksum::Sum;

pub(crate) fn layers() -> impl Strategy<Value = LinkLayer> {
    prop_oneof![
        3 => Just(LinkLayer::Ethernet),
        1 => Just(LinkLayer::Ip),
        1 => Just(LinkLayer::LinuxCooked),
        1 => Just(LinkLayer::LinuxCooked2),
    ]
}

/// Bytes that are a frame, nearly a frame, or nothing at all.
pub(crate) fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let frame =
        prop_oneof![ipv4(), ipv6(), Just(ARP_REQUEST.to_vec()), Just(NEIGHBOUR_SOLICITATION.to_vec()),];
    let mutated =
        (frame, vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), any::<prop::sample::Index>(), 0..4u8)
            .prop_map(|(mut frame, changes, end, cut)| {
                for (at, value) in changes {
                    let at = at.index(frame.len());
                    frame[at] = value;
                }
                if cut == 0 {
                    frame.truncate(end.index(frame.len() + 1));
                }
                frame
            });
    prop_oneof![4 => mutated, 1 => vec(any::<u8>(), 0..120)]
}

/// A whole IPv4 frame: options, any transport, perhaps a fragment, perhaps tagged, perhaps padded.
pub(crate) fn ipv4() -> impl Strategy<Value = Vec<u8>> {
    let transport = prop_oneof![Just(1u8), Just(6), Just(17), Just(132), any::<u8>()];
    let place = (any::<bool>(), 0u16..4, any::<bool>());
    (transport, vec(any::<u8>(), 0..300), options(), place, any::<(u8, u16)>(), 0usize..3, 0usize..20)
        .prop_map(|(transport, payload, options, (dont, offset, more), (class, id), tags, padding)| {
            let mut header =
                Ipv4Header::new(payload.len() as u16, 64, IpNumber(transport), [10, 0, 0, 1], [10, 9, 8, 7])
                    .expect("short enough");
            header.options = Ipv4Options::try_from(&options[..]).expect("a multiple of four");
            header.set_payload_len(payload.len()).expect("short enough");
            header.identification = id;
            header.dscp = (class >> 2).try_into().expect("six bits");
            header.ecn = (class & 3).try_into().expect("two bits");
            header.dont_fragment = dont;
            if !dont {
                header.more_fragments = more;
                header.fragment_offset = offset.try_into().expect("thirteen bits");
            }
            header.header_checksum = header.calc_header_checksum();
            let mut frame = ethernet(tags, 0x0800);
            header.write_raw(&mut frame).expect("a vector takes it");
            frame.extend_from_slice(&payload);
            frame.resize(frame.len() + padding, 0xee);
            frame
        })
}

/// IPv4 options in whole words: some with the copy flag, some without.
pub(crate) fn options() -> impl Strategy<Value = Vec<u8>> {
    let option = prop_oneof![
        Just(vec![1]),
        Just(vec![0x94, 4, 0, 0]),             // router alert: copied
        Just(vec![7, 7, 4, 9, 9, 9, 9]),       // record route: not copied
        Just(vec![0x44, 8, 5, 0, 1, 2, 3, 4]), // timestamp: not copied
    ];
    vec(option, 0..4).prop_map(|options| {
        let mut all = options.concat();
        all.resize(all.len().next_multiple_of(4), 0);
        all
    })
}

/// A whole IPv6 frame with extension headers.
pub(crate) fn ipv6() -> impl Strategy<Value = Vec<u8>> {
    let transport = prop_oneof![Just(58u8), Just(6), Just(17), Just(132), Just(59)];
    (transport, vec(any::<u8>(), 0..200), any::<u8>(), 0usize..3, vec(0usize..4, 0..4), 0usize..20).prop_map(
        |(transport, payload, class, tags, extensions, padding)| {
            // From the transport back to the front: each header says what follows it.
            let (mut next, mut packet) = (transport, payload);
            for kind in extensions {
                let (number, mut header) = match kind {
                    0 => (0u8, vec![next, 0, 5, 2, 0, 0, 1, 0]),
                    1 => (60, vec![next, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
                    2 => (44, vec![next, 0, 0, 1, 0, 0, 0, 7]),
                    _ => (51, vec![next, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]),
                };
                header.extend_from_slice(&packet);
                (next, packet) = (number, header);
            }
            let mut frame = ethernet(tags, 0x86dd);
            frame.extend_from_slice(&[0x60 | class >> 4, class << 4, 0, 0]);
            frame.extend_from_slice(&(packet.len() as u16).to_be_bytes());
            frame.extend_from_slice(&[next, 64]);
            frame.extend_from_slice(&[0x20; 16]);
            frame.extend_from_slice(&[0x30; 16]);
            frame.extend_from_slice(&packet);
            frame.resize(frame.len() + padding, 0xee);
            frame
        },
    )
}

fn ethernet(tags: usize, kind: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for tag in 0..tags {
        frame.extend_from_slice(if tag == 0 && tags > 1 { &[0x88, 0xa8, 0, 5] } else { &[0x81, 0, 0, 9] });
    }
    frame.extend_from_slice(&kind.to_be_bytes());
    frame
}

/// A UDP datagram in a frame.
pub(crate) fn udp(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
        .ip(IpHeaders::Ipv4(
            Ipv4Header {
                time_to_live: 64,
                source: [10, 0, 0, 1],
                destination: [10, 0, 0, 2],
                identification: 77,
                dont_fragment: false,
                ..Default::default()
            },
            Ipv4Extensions::default(),
        ))
        .udp(1000, 2000)
        .write(&mut frame, payload)
        .expect("a vector takes it");
    frame
}

/// Whether an IPv4 header's checksum is right.
pub(crate) fn checksum_is_right(header: &[u8]) -> bool {
    Sum::default().bytes(header).complement() == 0
}

/// Whether this IP packet is a well-formed ICMP or ICMPv6 message with the right checksums, by another implementation.
pub(crate) fn icmp_is_right(packet: &[u8]) -> bool {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    let Ok(sliced) = SlicedPacket::from_ip(packet) else { return false };
    match (sliced.net, sliced.transport) {
        (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Icmpv4(icmp))) => {
            checksum_is_right(ip.header().slice()) && Sum::default().bytes(icmp.slice()).complement() == 0
        }
        (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Icmpv6(icmp))) => {
            icmp.is_checksum_valid(ip.header().source(), ip.header().destination())
        }
        _ => false,
    }
}

/// Who has 10.0.0.2? Tell 10.0.0.1, at 02:00:00:00:00:01; padded to 60 bytes as Ethernet does.
pub(crate) const ARP_REQUEST: [u8; 60] = {
    let mut frame = [0; 60];
    let start = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, //
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
    ];
    let mut at = 0;
    while at < start.len() {
        frame[at] = start[at];
        at += 1;
    }
    frame
};

/// Who has fe80::2? Tell fe80::1, at 02:00:00:00:00:01.
pub(crate) const NEIGHBOUR_SOLICITATION: [u8; 86] = [
    0x33, 0x33, 0xff, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, //
    0x60, 0, 0, 0, 0, 32, 58, 255, //
    0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
    0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 2, //
    135, 0, 0x7a, 0x97, 0, 0, 0, 0, //
    0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
    1, 1, 2, 0, 0, 0, 0, 1,
];
