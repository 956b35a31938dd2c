//! Trains of segments through the kernel: what comes is cut as a wire would have it, and what leaves joined the kernel cuts
//! into the very bytes that came.

use std::time::Duration;

use narrows_io::frame::{Frame, FramePool};
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::offload;
use narrows_io::packet_socket::{Offloads, PacketSocket, PacketSocketOptions, Received};
use narrows_io::route_socket::RouteSocket;

use crate::lab::{CLIENT_MAC, PATIENCE, SERVER_MAC, privileged, receive_until};

const SEGMENT: usize = 1000;
const PAYLOAD: usize = 20_500;

/// ```text
/// source: out ─── in :wire: far ─── eth0 :sink
/// ```
/// Trains pass from the source to the wire; at `far` nothing is left to anybody, so that the kernel has to cut.
struct Way {
    source: Namespace,
    wire: Namespace,
    sink: Namespace,
}

impl Way {
    fn new() -> Self {
        let [source, wire, sink] = [(); 3].map(|()| Namespace::create().unwrap());
        let end = |namespace, name| VethEnd { namespace, name, mac: None };
        create_veth(&end(&wire, "in"), &end(&source, "out"), 1500).unwrap();
        create_veth(&end(&wire, "far"), &end(&sink, "eth0"), 1500).unwrap();
        offload::trains(&source, "out").unwrap();
        for (namespace, name) in [(&wire, "far"), (&sink, "eth0")] {
            offload::plain_packets(namespace, name).unwrap();
        }
        for (namespace, names) in [(&wire, &["in", "far"][..]), (&source, &["out"]), (&sink, &["eth0"])] {
            let mut sockets = RouteSocket::open(namespace).unwrap();
            names.iter().for_each(|name| sockets.set_up(name).unwrap());
        }
        for (namespace, name) in [(&wire, "in"), (&wire, "far"), (&source, "out"), (&sink, "eth0")] {
            let mut sockets = RouteSocket::open(namespace).unwrap();
            sockets.wait_for_carrier(name, Duration::from_nanos(PATIENCE)).unwrap();
        }
        Self { source, wire, sink }
    }
}

fn socket(namespace: &Namespace, name: &str, offloads: Offloads) -> PacketSocket {
    // Straight to the driver, the kernel would have nobody to cut for an interface that cannot.
    let through_qdisc = offloads == Offloads::Carried;
    let options = PacketSocketOptions { offloads, through_qdisc, ..PacketSocketOptions::default() };
    PacketSocket::open_with(namespace, name, options).unwrap()
}

/// A train behind the header that describes it. Ports of nobody's.
fn train(is_udp: bool, is_ipv4: bool, tagged: bool) -> Vec<u8> {
    let mut frame = [SERVER_MAC.0, CLIENT_MAC.0].concat();
    if tagged {
        frame.extend([0x81, 0, 0, 7]);
    }
    frame.extend(if is_ipv4 { [0x08, 0x00] } else { [0x86, 0xdd] });
    let (protocol, transport) = if is_udp { (17_u8, 8) } else { (6, 32) };
    let length = (transport + PAYLOAD) as u16;
    let network = frame.len();
    let pseudo = if is_ipv4 {
        let [high, low] = (length + 20).to_be_bytes();
        frame.extend([
            0x45, 0, high, low, 0xff, 0xf8, 0x40, 0, 64, protocol, 0, 0, 10, 98, 0, 1, 10, 98, 0, 2,
        ]);
        let checksum = !sum(&frame[network..]);
        frame[network + 10..network + 12].copy_from_slice(&checksum.to_be_bytes());
        &frame[network + 12..]
    } else {
        let [high, low] = length.to_be_bytes();
        frame.extend([0x60, 0, 0, 0, high, low, protocol, 64]);
        frame.extend([0xfd, 0x98, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        frame.extend([0xfd, 0x98, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        &frame[network + 8..]
    };
    let pseudo = sum(&[pseudo, &[0, protocol], &length.to_be_bytes()].concat()).to_be_bytes();
    let from = frame.len();
    frame.extend([0x12, 0x34, 0x43, 0x21]);
    if is_udp {
        frame.extend(length.to_be_bytes());
        frame.extend(pseudo);
    } else {
        // A sequence number that overflows within the train; CWR, ACK, PSH; two words of options and one of nothing.
        frame.extend([0xff, 0xff, 0xf0, 0, 0, 0, 0, 1, 0x80, 0x98, 1, 0]);
        frame.extend(pseudo);
        frame.extend([0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    }
    frame.extend((0..PAYLOAD).map(|n| ((n * 31) >> 3) as u8));
    let (kind, field) = match (is_udp, is_ipv4) {
        (true, _) => (5, 6_u16),
        (_, true) => (1 | 0x80, 16),
        _ => (4 | 0x80, 16),
    };
    let mut whole = vec![1, kind];
    for word in [(from + transport) as u16, SEGMENT as u16, from as u16, field] {
        whole.extend(word.to_ne_bytes());
    }
    whole.extend(frame);
    whole
}

/// The one's complement sum, word by word.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Whether it is of the test's flow, and no greeting of a stack's.
fn is_ours(frame: &[u8]) -> bool {
    frame.get(..12) == Some(&[SERVER_MAC.0, CLIENT_MAC.0].concat())
}

fn ours(frames: Vec<Received>) -> Vec<Frame> {
    frames.into_iter().map(|received| received.frame).filter(|frame| is_ours(frame)).collect()
}

#[test]
#[ignore = "needs namespaces"]
fn what_leaves_joined_the_kernel_cuts_into_what_came() {
    privileged("trains::what_leaves_joined_the_kernel_cuts_into_what_came", || {
        let way = Way::new();
        let mut source = socket(&way.source, "out", Offloads::Whole);
        let mut inward = socket(&way.wire, "in", Offloads::Carried);
        let mut outward = socket(&way.wire, "far", Offloads::Carried);
        let mut sink = socket(&way.sink, "eth0", Offloads::None);
        let packets = PAYLOAD.div_ceil(SEGMENT);
        let count = |frames: &[Received]| frames.iter().filter(|received| is_ours(&received.frame)).count();
        for number in 0..8_u64 {
            let (is_udp, is_ipv4, tagged) = (number & 1 != 0, number & 2 != 0, number & 4 != 0);
            let what = format!("UDP {is_udp}, IPv4 {is_ipv4}, tagged {tagged}");
            assert_eq!(source.send(&[train(is_udp, is_ipv4, tagged)]).count, 1, "{what}");
            let came = receive_until(&mut inward, |frames| count(frames) >= packets);
            assert_eq!(inward.trains().map(|trains| trains.came), Some(number + 1), "{what}");
            let mut frames = ours(came);
            assert_eq!(frames.len(), packets, "{what}");
            assert!(frames.iter().all(Frame::is_open), "{what}");
            let mut room = Vec::new();
            let wanted: Vec<_> = frames.iter().map(|frame| frame.on_the_wire(&mut room).to_vec()).collect();

            assert_eq!(outward.join(&mut frames), Some(packets));
            assert!(frames[1..].iter().all(Frame::was_joined), "{what}");
            assert_eq!(outward.send_joined(&mut frames).count, packets, "{what}");
            let found = ours(receive_until(&mut sink, |frames| count(frames) >= packets));
            assert!(
                wanted.iter().map(|bytes| &bytes[..]).eq(found.iter().map(|frame| &**frame)),
                "{what}: as the kernel cuts it"
            );

            // One by one, the kernel makes the checksums.
            let mut pool = FramePool::default();
            let mut single: Vec<_> = frames.iter().map(|frame| pool.instead_of(frame, frame)).collect();
            assert_eq!(outward.send_joined(&mut single).count, packets, "{what}");
            let found = ours(receive_until(&mut sink, |frames| count(frames) >= packets));
            assert!(
                wanted.iter().map(|bytes| &bytes[..]).eq(found.iter().map(|frame| &**frame)),
                "{what}: one by one"
            );
        }
        assert_eq!(inward.trains().map(|trains| trains.cut), Some(8 * packets as u64));
        assert_eq!(inward.statistics().unwrap().dropped, 0);
    });
}
