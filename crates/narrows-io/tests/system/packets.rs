//! Packet sockets: what is received and what is not, tags, sizes, stamps, counts, refusals.

use narrows_io::clock::clock_monotonic;
use narrows_io::frame::FramePool;
use narrows_io::link::create_veth;
use narrows_io::link::{InterfaceIndex, VethEnd};
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::{
    PacketSocket, PacketSocketError, PacketSocketOptions, ReceiveBatch, Received, SendStop,
};
use narrows_io::route_socket::RouteSocket;

use crate::lab::{Lab, frame, privileged, receive_until};

fn with_payload<'a>(frames: &'a [Received], sent: &[u8]) -> Vec<&'a Received> {
    frames.iter().filter(|received| received.frame[..] == *sent).collect()
}

#[test]
#[ignore = "needs namespaces"]
fn a_frame_is_received_once_with_the_kernels_stamp() {
    privileged("packets::a_frame_is_received_once_with_the_kernels_stamp", || {
        let lab = Lab::new(1500);
        let [mut wire, _] = lab.sockets();
        let mut host = PacketSocket::open(&lab.client, "eth0").unwrap();
        let (first, last) = (frame(b"first"), frame(b"last"));
        let before = clock_monotonic();
        assert_eq!(host.send(&[&first, &last]).count, 2);
        let after = clock_monotonic();
        let frames = receive_until(&mut wire, |frames| !with_payload(frames, &last).is_empty());
        let [received] = with_payload(&frames, &first)[..] else { panic!("not once: {frames:?}") };
        let stamp = received.stamp.expect("the kernel stamps");
        // The conversion from the wall clock may be off by less than a microsecond.
        assert!(before.as_nanos() <= stamp.as_nanos() + 1_000, "{before:?} {stamp:?}");
        assert!(stamp.as_nanos() <= after.as_nanos() + 1_000, "{stamp:?} {after:?}");
        assert_eq!(received.original_length, first.len());
        assert!(!received.partial_checksum);
    });
}

#[test]
#[ignore = "needs namespaces"]
fn what_we_inject_is_not_captured_again() {
    privileged("packets::what_we_inject_is_not_captured_again", || {
        let lab = Lab::new(1500);
        let [mut wire, _] = lab.sockets();
        let mut host = PacketSocket::open(&lab.client, "eth0").unwrap();
        let (ours, theirs) = (frame(b"injected"), frame(b"answer"));
        assert_eq!(wire.send(&[&ours]).count, 1);
        receive_until(&mut host, |frames| !with_payload(frames, &ours).is_empty());
        assert_eq!(host.send(&[&theirs]).count, 1);
        let frames = receive_until(&mut wire, |frames| !with_payload(frames, &theirs).is_empty());
        assert!(with_payload(&frames, &ours).is_empty(), "{frames:?}");
    });
}

#[test]
#[ignore = "needs namespaces"]
fn vlan_tags_are_in_the_frame() {
    privileged("packets::vlan_tags_are_in_the_frame", || {
        let lab = Lab::new(1500);
        let [mut wire, _] = lab.sockets();
        let mut host = PacketSocket::open(&lab.client, "eth0").unwrap();
        let plain = frame(b"tagged");
        let tagged = |tags: &[u8]| [&plain[..12], tags, &plain[12..]].concat();
        let sent = [
            tagged(&[0x81, 0x00, 0xa0, 0x05]),
            tagged(&[0x88, 0xa8, 0x00, 0x07]),
            tagged(&[0x81, 0x00, 0x00, 0x00]),
            tagged(&[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x09]),
        ];
        assert_eq!(host.send(&sent).count, sent.len());
        let all = |frames: &[Received]| sent.iter().all(|tagged| !with_payload(frames, tagged).is_empty());
        let frames = receive_until(&mut wire, all);
        for tagged in &sent {
            let [received] = with_payload(&frames, tagged)[..] else { panic!("not once: {frames:?}") };
            assert_eq!(received.original_length, tagged.len());
        }
        // And they go back out as they came.
        assert_eq!(wire.send(&sent).count, sent.len());
        receive_until(&mut host, all);
    });
}

#[test]
#[ignore = "needs namespaces"]
fn large_frames_arrive_whole() {
    privileged("packets::large_frames_arrive_whole", || {
        let lab = Lab::new(65_535);
        let [mut wire, _] = lab.sockets();
        let mut host = PacketSocket::open(&lab.client, "eth0").unwrap();
        for length in [46, 1500, 2033, 2034, 2035, 9000, 9004, 65_535] {
            let sent = frame(&(0..length).map(|byte| byte as u8).collect::<Vec<_>>());
            let outcome = host.send(&[&sent]);
            assert_eq!(outcome.count, 1, "{length}: {outcome:?}");
            let frames = receive_until(&mut wire, |frames| !with_payload(frames, &sent).is_empty());
            let received = with_payload(&frames, &sent)[0];
            assert_eq!(received.original_length, sent.len());
        }
    });
}

#[test]
#[ignore = "needs namespaces"]
fn frames_that_cannot_be_sent_are_reported() {
    privileged("packets::frames_that_cannot_be_sent_are_reported", || {
        let lab = Lab::new(1500);
        let [mut wire, _] = lab.sockets();
        let (good, large, short) = (frame(b"good"), frame(&[0; 2000]), vec![0; 5]);
        let outcome = wire.send(&[&good, &good, &large, &good]);
        assert_eq!(outcome.count, 2);
        assert!(matches!(outcome.stopped, Some(SendStop::TooLarge)), "{outcome:?}");
        let outcome = wire.send(&[&good, &short]);
        assert_eq!(outcome.count, 1);
        assert!(matches!(outcome.stopped, Some(SendStop::TooShort)), "{outcome:?}");
        let none: [&[u8]; 0] = [];
        let outcome = wire.send(&none);
        assert!(outcome.count == 0 && outcome.stopped.is_none());
    });
}

#[test]
#[ignore = "needs namespaces, sch_tbf"]
fn a_full_queue_is_reported_and_nothing_is_lost() {
    privileged("packets::a_full_queue_is_reported_and_nothing_is_lost", || {
        let lab = Lab::new(1500);
        // A token bucket that lets next to nothing through holds the frames, and with them the socket's memory.
        let mut sockets = RouteSocket::open(&lab.wire).unwrap();
        sockets.add_root_qdisc("client", "tbf", &token_bucket(1, 64 << 20, 20_000)).unwrap();
        let options = PacketSocketOptions { through_qdisc: true, ..Default::default() };
        let mut socket = PacketSocket::open_with(&lab.wire, "client", options).unwrap();
        let frames = vec![frame(&[0; 100]); 50_000];
        let outcome = socket.send(&frames);
        assert!(outcome.count > 0 && outcome.count < frames.len(), "{}", outcome.count);
        assert!(matches!(outcome.stopped, Some(SendStop::Full)), "{:?}", outcome.stopped);
        let outcome = socket.send(&frames);
        assert_eq!(outcome.count, 0, "still full");
        assert!(matches!(outcome.stopped, Some(SendStop::Full)));
    });
}

/// `TCA_TBF_PARMS` and `TCA_TBF_BURST`: bytes a second, bytes that may wait, bytes at once.
fn token_bucket(rate: u32, limit: u32, burst: u32) -> Vec<u8> {
    let mut options = vec![40, 0, 1, 0];
    options.extend([0, 1, 0, 0, 0, 0, 0, 0]);
    options.extend(rate.to_ne_bytes());
    options.extend([0; 12]);
    for value in [limit, 0, 0] {
        options.extend(value.to_ne_bytes());
    }
    options.extend([8, 0, 6, 0]);
    options.extend(burst.to_ne_bytes());
    options
}

#[test]
#[ignore = "needs namespaces"]
fn what_does_not_fit_the_receive_buffer_is_counted() {
    privileged("packets::what_does_not_fit_the_receive_buffer_is_counted", || {
        let lab = Lab::new(1500);
        let options = PacketSocketOptions { receive_buffer: 20_000, ..Default::default() };
        let mut wire = PacketSocket::open_with(&lab.wire, "client", options).unwrap();
        let mut host = PacketSocket::open(&lab.client, "eth0").unwrap();
        let (mut batch, mut pool, mut frames) = (ReceiveBatch::new(), FramePool::default(), Vec::new());
        for round in 1..=2u64 {
            assert_eq!(host.send(&vec![frame(b"x"); 500]).count, 500);
            assert_eq!(host.send(&vec![frame(b"x"); 500]).count, 500);
            // A veth pair hands over in the sender's own context, or soon after.
            let expected = 1000 * round;
            crate::lab::eventually("all frames to be counted", || {
                let statistics =
                    RouteSocket::open(&lab.wire).unwrap().interface("client").unwrap().statistics;
                statistics.received_packets >= expected
            });
            while wire.receive(&mut batch, &mut pool, &mut frames).unwrap() > 0 {}
        }
        let statistics = wire.statistics().unwrap();
        assert!(statistics.dropped > 0, "{statistics:?}");
        assert_eq!(statistics.arrived - statistics.dropped, frames.len() as u64, "{statistics:?}");
        assert_eq!(wire.statistics().unwrap(), statistics, "reading does not reset it");
    });
}

#[test]
#[ignore = "needs namespaces"]
fn a_socket_sees_its_own_interface_alone() {
    privileged("packets::a_socket_sees_its_own_interface_alone", || {
        let lab = Lab::new(1500);
        let [mut client, mut server] = lab.sockets();
        let mut host = PacketSocket::open(&lab.client, "eth0").unwrap();
        let mut other = PacketSocket::open(&lab.server, "eth0").unwrap();
        let (from_client, from_server) = (frame(b"from the client"), frame(b"from the server"));
        assert_eq!(host.send(&[&from_client]).count, 1);
        assert_eq!(other.send(&[&from_server]).count, 1);
        let at_client = receive_until(&mut client, |frames| !with_payload(frames, &from_client).is_empty());
        let at_server = receive_until(&mut server, |frames| !with_payload(frames, &from_server).is_empty());
        assert!(with_payload(&at_client, &from_server).is_empty());
        assert!(with_payload(&at_server, &from_client).is_empty());
    });
}

#[test]
#[ignore = "needs namespaces"]
fn an_interface_that_is_not_there_or_goes_down_is_named() {
    privileged("packets::an_interface_that_is_not_there_or_goes_down_is_named", || {
        let here = Namespace::create().unwrap().labelled("here");
        let error = PacketSocket::open(&here, "eth7").unwrap_err();
        assert!(error.to_string().contains("eth7") && error.to_string().contains("here"), "{error}");

        let end = |name| VethEnd { namespace: &here, name, mac: None };
        create_veth(&end("a"), &end("b"), 1500).unwrap();
        let mut sockets = RouteSocket::open(&here).unwrap();
        let mut socket = PacketSocket::open(&here, "a").unwrap();
        let outcome = socket.send(&[frame(b"x")]);
        assert!(matches!(outcome.stopped, Some(SendStop::Down)), "{outcome:?}");
        sockets.set_up("a").unwrap();
        sockets.delete_interface("a").unwrap();
        let (mut batch, mut pool) = (ReceiveBatch::new(), FramePool::default());
        let error = socket.receive(&mut batch, &mut pool, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, PacketSocketError::Down { .. }), "{error}");
    });
}

#[test]
#[ignore = "needs namespaces"]
fn one_socket_serves_all_interfaces_of_a_namespace() {
    privileged("packets::one_socket_serves_all_interfaces_of_a_namespace", || {
        let lab = Lab::new(1500);
        let mut all = PacketSocket::open_on_all(&lab.wire, 1 << 20).unwrap();
        let index = |name: &str| RouteSocket::open(&lab.wire).unwrap().interface_index(name).unwrap();
        let ends = [index("client"), index("server")];
        let mut client = PacketSocket::open(&lab.client, "eth0").unwrap();
        let mut server = PacketSocket::open(&lab.server, "eth0").unwrap();
        // Out by the one and the other, in one call.
        let frames = [frame(b"to the client"), frame(b"to the server"), frame(b"to the client, too")];
        let ways = [ends[0], ends[1], ends[0]];
        let numbered: Vec<_> =
            frames.iter().zip(ways).map(|(frame, way)| Way { frame: frame.to_vec(), way }).collect();
        assert_eq!(all.send_each(&numbered, |frame| frame.way).count, 3);
        let came = receive_until(&mut client, |came| !with_payload(came, &frames[2]).is_empty());
        assert_eq!(with_payload(&came, &frames[0]).len(), 1);
        assert!(with_payload(&came, &frames[1]).is_empty());
        receive_until(&mut server, |came| !with_payload(came, &frames[1]).is_empty());
        // In from each, with its name, and nothing of what went out.
        let (one, other) = (frame(b"from the client"), frame(b"from the server"));
        assert_eq!(client.send(&[&one]).count + server.send(&[&other]).count, 2);
        let came = receive_until(&mut all, |came| {
            !with_payload(came, &one).is_empty() && !with_payload(came, &other).is_empty()
        });
        for (sent, end) in [(&one, ends[0]), (&other, ends[1])] {
            let [received] = with_payload(&came, sent)[..] else { panic!("not once: {came:?}") };
            assert_eq!(received.interface, Some(end));
        }
        assert!(frames.iter().all(|frame| with_payload(&came, frame).is_empty()), "{came:?}");
        // An interface that is not there: the others' frames before it are sent.
        let nowhere =
            [Way { frame: one.to_vec(), way: ends[0] }, Way { frame: one.to_vec(), way: InterfaceIndex(0) }];
        let sent = all.send_each(&nowhere, |frame| frame.way);
        assert!(sent.count == 1 && matches!(sent.stopped, Some(SendStop::Down)), "{sent:?}");
    });
}

/// A frame, and the interface that it is to leave by.
struct Way {
    frame: Vec<u8>,
    way: InterfaceIndex,
}

impl AsRef<[u8]> for Way {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}
