//! AF_XDP between namespaces. Needs root over the host, as BPF does.

use std::sync::Arc;

use narrows_io::bpf::XdpMode;
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::frame::FramePool;
use narrows_io::packet_socket::{PacketSocket, Received, SendStop};
use narrows_io::route_socket::RouteSocket;
use narrows_io::wait::{Waiting, wait};
use narrows_io::xdp::{Group, Port, PortOptions, Umem, XdpError};

use crate::lab::{Lab, PATIENCE, eventually, frame, privileged, receive_until};

fn options() -> PortOptions {
    PortOptions { receive: 256, send: 64, held: 128, ..PortOptions::default() }
}

/// Two ports on the wire's two ends.
fn ports(lab: &Lab, mtu: u32, options: PortOptions) -> (Arc<Umem>, [Port; 2]) {
    let mut group = Group::new(2, mtu, options);
    let ports = ["client", "server"].map(|end| group.open(&lab.wire, end).unwrap());
    (Arc::clone(group.umem()), ports)
}

/// Every chunk is free, with a port, or in one of `held` frames.
fn assert_all_accounted_for(umem: &Umem, ports: &[Port], held: usize) {
    let with_ports: usize = ports.iter().map(Port::chunks).sum();
    assert_eq!(umem.free() + with_ports + held, umem.chunks(), "{umem:?}");
}

/// Receives so many of the test's own frames; the greetings of the hosts' stacks are passed over.
fn receive(port: &mut Port, count: usize) -> Vec<Received> {
    let (mut pool, mut frames) = (FramePool::default(), Vec::new());
    let deadline = MonotonicTime::from_nanos(clock_monotonic().as_nanos() + PATIENCE);
    while frames.len() < count {
        assert!(clock_monotonic() < deadline, "{} of {count} frames came", frames.len());
        wait(&mut [Waiting::readable(port)], Some(deadline)).unwrap();
        port.receive(&mut pool, &mut frames).unwrap();
        frames.retain(is_own);
    }
    frames
}

fn is_own(received: &Received) -> bool {
    received.frame[..12] == frame(&[])[..12]
}

/// How many of these frames are in the shared memory.
fn shared(frames: &[Received]) -> usize {
    frames.iter().filter(|received| received.frame.is_shared()).count()
}

/// A packet socket in the client's namespace, to put frames onto the cable.
fn client(lab: &Lab) -> PacketSocket {
    PacketSocket::open(&lab.client, "eth0").unwrap()
}

fn server(lab: &Lab) -> PacketSocket {
    PacketSocket::open(&lab.server, "eth0").unwrap()
}

fn send_all(socket: &mut PacketSocket, frames: &[Vec<u8>]) {
    let mut at = 0;
    while at < frames.len() {
        at += socket.send(&frames[at..]).count;
    }
}

#[test]
#[ignore = "needs root, af_xdp"]
fn frames_cross_unchanged_and_every_chunk_is_accounted_for() {
    privileged("xdp::frames_cross_unchanged_and_every_chunk_is_accounted_for", || {
        for mtu in [1500, 9000] {
            let lab = Lab::new(mtu);
            let (umem, mut ports) = ports(&lab, mtu, options());
            let (mut near, mut far) = (client(&lab), server(&lab));
            assert_all_accounted_for(&umem, &ports, 0);
            // Of every length, tagged ones among them, many times what the rings hold.
            let lengths = [4usize, 46, 200, 1400, mtu as usize - 40, mtu as usize];
            for round in 0..100u32 {
                let sent: Vec<Vec<u8>> = lengths
                    .iter()
                    .map(|&length| {
                        let mut bytes = frame(&vec![round as u8; length]);
                        if round % 2 == 0 {
                            bytes.splice(12..12, [0x81, 0x00, 0x00, 0x05]);
                        }
                        bytes
                    })
                    .collect();
                send_all(&mut near, &sent);
                let mut came = receive(&mut ports[0], sent.len());
                assert_eq!(came.len(), sent.len());
                for (received, sent) in came.iter().zip(&sent) {
                    assert!(received.frame[..] == sent[..], "{} bytes", sent.len());
                    let stamp = received.stamp.unwrap();
                    assert!(stamp <= clock_monotonic());
                    assert!(stamp.as_nanos() + PATIENCE > clock_monotonic().as_nanos());
                }
                assert_eq!(shared(&came), if mtu == 1500 { 6 } else { 4 }, "jumbo frames are copied");
                assert_all_accounted_for(&umem, &ports, shared(&came));
                let mut frames: Vec<_> = came.drain(..).map(|received| received.frame).collect();
                let outcome = ports[1].send(&mut frames);
                assert_eq!((outcome.count, outcome.stopped.is_none()), (frames.len(), true));
                drop(frames);
                let arrived = receive_until(&mut far, |frames| {
                    frames.iter().filter(|received| is_own(received)).count() >= sent.len()
                });
                let arrived: Vec<_> = arrived.iter().filter(|received| is_own(received)).collect();
                assert_eq!(arrived.len(), sent.len());
                for (received, sent) in arrived.iter().zip(&sent) {
                    assert!(received.frame[..] == sent[..], "{} bytes", sent.len());
                }
            }
            assert_all_accounted_for(&umem, &ports, 0);
            for port in &mut ports {
                let statistics = port.statistics().unwrap();
                assert_eq!((statistics.dropped, statistics.refused), (0, 0));
            }
            drop(ports);
            assert_eq!(umem.free(), umem.chunks(), "after the ports all are free");
        }
    });
}

#[test]
#[ignore = "needs root, af_xdp"]
fn a_long_delay_holds_no_chunks_that_the_next_frames_need() {
    privileged("xdp::a_long_delay_holds_no_chunks_that_the_next_frames_need", || {
        let lab = Lab::new(1500);
        let (umem, mut ports) = ports(&lab, 1500, options());
        let mut near = client(&lab);
        let mut held = Vec::new();
        // Ten times what there are chunks for.
        let count = umem.chunks() * 10;
        for number in 0..count / 50 {
            let sent: Vec<Vec<u8>> = (0..50u8).map(|n| frame(&[number as u8, n, 7, 7])).collect();
            send_all(&mut near, &sent);
            held.extend(receive(&mut ports[0], 50));
        }
        for (number, received) in held.iter().enumerate() {
            assert_eq!(received.frame[14..16], [(number / 50) as u8, (number % 50) as u8], "frame {number}");
        }
        assert_eq!(ports[0].statistics().unwrap().dropped, 0);
        // All of them can still be sent.
        let mut frames: Vec<_> = held.into_iter().map(|received| received.frame).collect();
        let mut at = 0;
        while at < frames.len() {
            let sent = ports[1].send(&mut frames[at..]);
            at += sent.count;
            assert!(matches!(sent.stopped, None | Some(SendStop::Full)), "{sent:?}");
        }
        drop(frames);
        let mut pool = FramePool::default();
        ports[1].receive(&mut pool, &mut Vec::new()).unwrap();
        assert_all_accounted_for(&umem, &ports, 0);
    });
}

#[test]
#[ignore = "needs root, af_xdp"]
fn what_the_kernel_has_no_room_for_is_counted() {
    privileged("xdp::what_the_kernel_has_no_room_for_is_counted", || {
        let lab = Lab::new(1500);
        let (umem, mut ports) = ports(&lab, 1500, options());
        let mut near = client(&lab);
        // Twice what the ring holds, while nobody looks.
        let sent: Vec<Vec<u8>> = (0..512u32).map(|number| frame(&number.to_be_bytes())).collect();
        send_all(&mut near, &sent);
        let mut came = Vec::new();
        eventually("all frames, or word of them", || {
            ports[0].receive(&mut FramePool::default(), &mut came).unwrap();
            // The greetings of the client's own stack count, too.
            ports[0].statistics().unwrap().arrived >= 512
        });
        let statistics = ports[0].statistics().unwrap();
        assert!(statistics.dropped > 0, "{statistics:?}");
        assert_eq!(statistics.arrived, came.len() as u64 + statistics.dropped);
        assert_all_accounted_for(&umem, &ports, shared(&came));
        // And it goes on.
        drop(came);
        send_all(&mut near, &sent[..10]);
        assert_eq!(receive(&mut ports[0], 10).len(), 10);
    });
}

#[test]
#[ignore = "needs root, af_xdp"]
fn frames_longer_than_the_mtu_are_refused_and_an_interface_that_goes_is_noticed() {
    privileged("xdp::frames_longer_than_the_mtu_are_refused_and_an_interface_that_goes_is_noticed", || {
        let lab = Lab::new(1500);
        let (umem, mut ports) = ports(&lab, 1500, options());
        let mut pool = FramePool::default();
        let mut frames = [pool.frame(&frame(&[0; 1500])), pool.frame(&frame(&[0; 1501]))];
        let sent = ports[1].send(&mut frames);
        assert!(matches!((sent.count, sent.stopped), (1, Some(SendStop::TooLarge))));
        let sent = ports[1].send(&mut [pool.frame(&[0; 13])]);
        assert!(matches!((sent.count, sent.stopped), (0, Some(SendStop::TooShort))));
        let is_down = |port: &mut Port| {
            let outcome = port.receive(&mut FramePool::default(), &mut Vec::new());
            matches!(outcome, Err(XdpError::Down { .. }))
        };
        RouteSocket::open(&lab.wire).unwrap().set_down("client").unwrap();
        wait(&mut [Waiting::readable(&ports[0])], None).unwrap();
        let [first, second] = &mut ports;
        eventually("word of the interface that is down", || is_down(first));
        RouteSocket::open(&lab.wire).unwrap().delete_interface("server").unwrap();
        wait(&mut [Waiting::readable(second)], None).unwrap();
        eventually("word of the interface that is gone", || is_down(second));
        drop(ports);
        assert_eq!(umem.free(), umem.chunks());
    });
}

#[test]
#[ignore = "needs root, af_xdp"]
fn a_program_that_is_there_is_named_and_rebinding_at_once_works() {
    privileged("xdp::a_program_that_is_there_is_named_and_rebinding_at_once_works", || {
        let lab = Lab::new(1500);
        let mut other = Group::new(1, 1500, options());
        for mode in [XdpMode::Native, XdpMode::Generic] {
            let mut group = Group::new(1, 1500, PortOptions { mode: Some(mode), ..options() });
            let port = group.open(&lab.wire, "client").unwrap();
            assert_eq!((port.mode(), port.is_zero_copy()), (mode, false));
            let error = other.open(&lab.wire, "client").unwrap_err();
            let text = error.to_string();
            assert!(text.contains("client") && text.contains("use"), "{text}");
            drop((port, group));
        }
        let mut port = other.open(&lab.wire, "client").unwrap();
        send_all(&mut client(&lab), &[frame(&[9; 60])]);
        assert_eq!(receive(&mut port, 1)[0].frame[14..], [9; 60]);
    });
}
