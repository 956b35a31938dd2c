//! Ethernet frames of every kind that a network has to bear: odd, malformed, cut off.

use std::net::SocketAddr;

use narrows_frame::MacAddress;
use narrows_frame::craft::Udp;

/// The stations of the frames.
pub const STATIONS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]];
const ADDRESSES: [&str; 4] = ["198.18.0.1:1000", "198.18.0.2:2000", "[2001:2::1]:1000", "[2001:2::2]:2000"];

const TAG: u16 = 0x8100;
const SERVICE_TAG: u16 = 0x88a8;
const OLD_TAG: u16 = 0x9100;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Where the IP header is in a frame without tags.
const NETWORK: usize = 14;

/// A kind of frames: what it is, and some of them.
#[derive(Clone, Debug)]
pub struct Kind {
    /// In words.
    pub name: &'static str,
    /// Each from the Ethernet header on.
    pub frames: Vec<Vec<u8>>,
}

/// Every kind.
pub fn kinds() -> Vec<Kind> {
    let kind = |name, frames| Kind { name, frames };
    vec![
        kind("sound", sound()),
        kind("truncated", sound().iter().flat_map(|frame| truncated(frame)).collect()),
        kind("wrong lengths", wrong_lengths()),
        kind("VLAN stacks", tagged()),
        kind("fragments", fragments()),
        kind("jumbo", jumbo()),
        kind("IPv6 extension headers", extensions()),
        kind("IPv4 options", options()),
        kind("not IP", not_ip()),
    ]
}

/// All frames of all kinds.
pub fn all() -> Vec<Vec<u8>> {
    kinds().into_iter().flat_map(|kind| kind.frames).collect()
}

/// UDP over IPv4 and IPv6, some bytes of it, to the second station.
pub fn datagram(is_ipv6: bool, payload: &[u8]) -> Vec<u8> {
    let [from, to] = [0, 1].map(|end| -> SocketAddr {
        ADDRESSES[end + 2 * usize::from(is_ipv6)].parse().expect("an address and a port")
    });
    let [to_station, from_station] = STATIONS.map(MacAddress);
    // Congestion can be marked, and IPv4 may be cut.
    let probe = Udp { traffic_class: 2, ..Udp::new(from, to) };
    probe.ethernet(to_station, from_station, payload)
}

/// TCP without options, with a wrong checksum, as no one looks.
fn segment(is_ipv6: bool) -> Vec<u8> {
    let mut frame = datagram(is_ipv6, &[7; 40]);
    let (protocol, transport) =
        if is_ipv6 { (NETWORK + 6, NETWORK + 40) } else { (NETWORK + 9, NETWORK + 20) };
    frame[protocol] = 6;
    frame[transport + 12] = 0x50;
    frame[transport + 13] = 0x18;
    frame
}

fn sound() -> Vec<Vec<u8>> {
    let both = [false, true];
    let datagrams =
        both.into_iter().flat_map(|six| [0, 1, 18, 500, 1400].map(|n| datagram(six, &vec![9; n])));
    datagrams.chain(both.map(segment)).collect()
}

/// Cut off after each byte that means anything, and after some others.
fn truncated(frame: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let most = frame.len().min(100);
    (0..most).chain((most..frame.len()).step_by(97)).map(|length| frame[..length].to_vec())
}

/// Lengths of IP, its header, UDP and TCP that are not so.
fn wrong_lengths() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut put = |frame: &[u8], at: usize, bytes: &[u8]| {
        let mut frame = frame.to_vec();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        all.push(frame);
    };
    let lengths: [u16; 12] = [0, 1, 7, 8, 19, 20, 21, 27, 60, 0x7fff, 0x8000, 0xffff];
    for six in [false, true] {
        for frame in [datagram(six, &[5; 60]), segment(six)] {
            let (length, transport) = if six { (4, 40) } else { (2, 20) };
            for number in lengths {
                put(&frame, NETWORK + length, &number.to_be_bytes());
                put(&frame, NETWORK + transport + 4, &number.to_be_bytes());
            }
            // Each length of a header, and each version.
            for first in 0..=255 {
                put(&frame, NETWORK, &[first]);
            }
            for offset in 0..16 {
                put(&frame, NETWORK + transport + 12, &[offset << 4]);
            }
        }
    }
    all
}

/// The frame with these tags before what it carries.
fn with_tags(frame: &[u8], tags: &[u16]) -> Vec<u8> {
    let tags = tags.iter().zip(1..).flat_map(|(tag, id): (&u16, u16)| [tag.to_be_bytes(), id.to_be_bytes()]);
    [&frame[..12], &tags.flatten().collect::<Vec<u8>>(), &frame[12..]].concat()
}

fn tagged() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for frame in [datagram(false, &[1; 30]), datagram(true, &[1; 30]), arp(1)] {
        for tags in [
            &[TAG][..],
            &[SERVICE_TAG],
            &[OLD_TAG],
            &[SERVICE_TAG, TAG],
            &[TAG, TAG],
            &[SERVICE_TAG, SERVICE_TAG, TAG],
        ] {
            let tagged = with_tags(&frame, tags);
            all.extend((12..24.min(tagged.len())).map(|length| tagged[..length].to_vec()));
            all.push(tagged);
        }
        for depth in 3..20 {
            all.push(with_tags(&frame, &vec![TAG; depth]));
        }
    }
    // Tags to the end of the longest frame there is on a cable.
    all.push(with_tags(&datagram(false, &[])[..12], &vec![TAG; 370]));
    all
}

fn fragments() -> Vec<Vec<u8>> {
    let whole = datagram(false, &[3; 200]);
    let places = [0x2000, 0x2001, 0x0001, 0x1fff, 0x3fff, 0x4000, 0x6000, 0x7fff, 0x8000, 0xffff];
    let of_ipv4 = places.map(|place: u16| {
        let mut frame = whole.clone();
        frame[NETWORK + 6..NETWORK + 8].copy_from_slice(&place.to_be_bytes());
        frame
    });
    let of_ipv6 = places.map(|place: u16| {
        let [high, low] = place.to_be_bytes();
        chain(&[(44, vec![0, 0, high, low, 0, 0, 0, 7])], 17)
    });
    of_ipv4.into_iter().chain(of_ipv6).collect()
}

/// Longer than 1500 bytes of IP: for cables that take 9000.
fn jumbo() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = [1473, 4000, 8900]
        .iter()
        .flat_map(|&n| [false, true].map(|six| datagram(six, &vec![8; n])))
        .collect();
    // A jumbogram (RFC 2675), whose length is in an option; and one that lies.
    for length in [8 + 100, u32::MAX, 0] {
        let [a, b, c, d] = length.to_be_bytes();
        let mut frame = chain(&[(0, vec![0, 0, 0xc2, 4, a, b, c, d])], 17);
        frame[NETWORK + 4..NETWORK + 6].fill(0);
        all.push(frame);
    }
    all
}

/// IPv6 with these headers, each with its number and bytes, of which the first is set here, before 100 bytes of the
/// protocol `last`.
fn chain(headers: &[(u8, Vec<u8>)], last: u8) -> Vec<u8> {
    let payload = datagram(true, &[4; 92])[NETWORK + 40..].to_vec();
    let mut packet = Vec::new();
    let nexts = headers.iter().skip(1).map(|(number, _)| *number).chain([last]);
    for ((_, header), next) in headers.iter().zip(nexts) {
        packet.extend([&[next], &header[1..]].concat());
    }
    packet.extend(payload);
    let mut frame = datagram(true, &[]);
    frame.truncate(NETWORK + 40);
    frame[NETWORK + 4..NETWORK + 6].copy_from_slice(&(packet.len() as u16).to_be_bytes());
    frame[NETWORK + 6] = headers.first().map_or(last, |(number, _)| *number);
    frame.extend(packet);
    frame
}

fn extensions() -> Vec<Vec<u8>> {
    let options = |number: u8| (number, vec![0, 0, 1, 4, 0, 0, 0, 0]);
    let numbers = [0, 43, 44, 51, 60, 135, 139, 140];
    let mut all: Vec<Vec<u8>> = numbers.iter().map(|&number| chain(&[options(number)], 17)).collect();
    // Every order of two, one of all, one that is longer than anybody reads, and one that fills the frame.
    all.extend(numbers.iter().flat_map(|&a| numbers.map(|b| chain(&[options(a), options(b)], 58))));
    all.push(chain(&numbers.map(options), 6));
    for depth in [15, 16, 17, 150] {
        all.push(chain(&vec![options(60); depth], 17));
        // The last one says that it goes on: a chain without an end.
        all.push(chain(&vec![options(60); depth], 60));
    }
    // Headers that claim to be longer than the packet, and a chain that leads to nothing.
    for number in numbers {
        for length in [1, 12, 13, 100, 255] {
            all.push(chain(&[(number, vec![0, length, 0, 0, 0, 0, 0, 0])], 17));
        }
    }
    all.push(chain(&[options(0)], 59));
    let short = chain(&[options(0), options(43), options(60)], 17);
    all.extend(truncated(&short));
    // Cut off, with a length that agrees.
    for length in 0..40 {
        let mut frame = short[..NETWORK + 40 + length].to_vec();
        frame[NETWORK + 4..NETWORK + 6].copy_from_slice(&(length as u16).to_be_bytes());
        all.push(frame);
    }
    all
}

/// Options of IPv4, of right and wrong lengths, on a packet that is long enough to be cut.
fn options() -> Vec<Vec<u8>> {
    let kinds: [&[u8]; 8] = [
        &[0, 0, 0, 0],
        &[1, 1, 1, 1],
        &[0x94, 4, 0, 0],
        &[7, 7, 4, 9, 9, 9, 9, 0],
        &[0x83, 0, 0, 0],
        &[0x83, 1, 0, 0],
        &[0x44, 255, 0, 0],
        &[1, 1, 1, 7],
    ];
    kinds
        .iter()
        .flat_map(|options| {
            [100, 1400].map(|payload| {
                let mut frame = datagram(false, &vec![6; payload]);
                frame.splice(NETWORK + 20..NETWORK + 20, options.iter().copied());
                let length = (frame.len() - NETWORK) as u16;
                frame[NETWORK] = 0x45 + (options.len() / 4) as u8;
                frame[NETWORK + 2..NETWORK + 4].copy_from_slice(&length.to_be_bytes());
                frame
            })
        })
        .collect()
}

/// An Ethernet frame of this type.
fn ethernet(to: [u8; 6], kind: u16, body: &[u8]) -> Vec<u8> {
    [&to[..], &STATIONS[1], &kind.to_be_bytes(), body].concat()
}

/// ARP: 1 asks, 2 answers; other numbers are something else.
fn arp(operation: u16) -> Vec<u8> {
    let [high, low] = operation.to_be_bytes();
    let mut body = vec![0, 1, 8, 0, 6, 4, high, low];
    body.extend(STATIONS[1]);
    body.extend([198, 18, 0, 1]);
    body.extend([0; 6]);
    body.extend([198, 18, 0, 2]);
    body.resize(46, 0);
    ethernet([0xff; 6], 0x0806, &body)
}

fn not_ip() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = [0, 1, 2, 3, 9, 0xffff].map(arp).into();
    all.extend(truncated(&arp(1)));
    let lldp =
        [2, 7, 4, 2, 0, 0, 0, 0, 1, 4, 7, 3, 2, 0, 0, 0, 0, 1, 6, 2, 0, 120, 0xfe, 0xff, 1, 2, 3, 0, 0];
    all.push(ethernet([1, 0x80, 0xc2, 0, 0, 0x0e], 0x88cc, &lldp));
    // 802.3: a length in place of the type; a spanning tree, an empty one, one that is longer than the frame, SNAP.
    let spanning_tree = [0x42, 0x42, 3, 0, 0, 0, 0, 0, 0x80, 0];
    all.push(ethernet([1, 0x80, 0xc2, 0, 0, 0], 38, &[&spanning_tree[..], &[0; 36]].concat()));
    for length in [0, 1, 46, 1499, 1500, 1501, 1535] {
        all.push(ethernet(STATIONS[0], length, &[0xaa; 46]));
    }
    all.push(ethernet(STATIONS[0], 50, &[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &[0x45; 42]].concat()));
    // PPPoE, MPLS, an experimental type, a type of nobody; IP's types with something else behind them.
    for kind in [0x8863, 0x8864, 0x8847, 0x88b5, 0xffff, IPV4, IPV6] {
        all.extend([0, 1, 46, 1500].map(|length| ethernet(STATIONS[0], kind, &vec![0xa5; length])));
    }
    // From nobody to nobody, from a group, to all.
    all.push([&[0; 12][..], &[8, 0], &[0; 46]].concat());
    all.push([&[0xff; 12][..], &datagram(false, &[1; 9])[12..]].concat());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::Protocol;
    use narrows_frame::LinkLayer;
    use narrows_frame::parse::parse;

    #[test]
    fn each_kind_is_what_it_says() {
        let all = kinds();
        let of = |name| &all.iter().find(|kind| kind.name == name).expect("such a kind").frames;
        for frame in of("sound") {
            let parsed = parse(LinkLayer::Ethernet, frame);
            assert!(parsed.key.source_port == 1000, "{frame:02x?}");
            assert_eq!(parsed.length as usize, frame.len() - NETWORK);
        }
        let parsed = of("IPv6 extension headers").iter().map(|frame| parse(LinkLayer::Ethernet, frame));
        let (known, unknown): (Vec<_>, Vec<_>) =
            parsed.filter(|p| p.key.network == Protocol::Ipv6).partition(|p| p.key.destination_port == 2000);
        assert!(known.len() > 5 && unknown.len() > 50, "{} {}", known.len(), unknown.len());
        assert!(of("VLAN stacks").iter().any(|frame| parse(LinkLayer::Ethernet, frame).link_header == 46));
        assert!(of("not IP").iter().all(|frame| parse(LinkLayer::Ethernet, frame).key.source_port != 2000));
        assert!(all.iter().map(|kind| kind.frames.len()).sum::<usize>() > 2000);
        assert!(all.iter().flat_map(|kind| &kind.frames).all(|frame| frame.len() <= 9014));
    }
}
