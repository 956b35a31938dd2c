//! TAP devices: frames both ways, what is counted, and that nothing stays.

use std::net::UdpSocket;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::frame::FramePool;
use narrows_io::namespace::Namespace;
use narrows_io::offload;
use narrows_io::packet_socket::{ReceiveBatch, SendStop};
use narrows_io::route_socket::RouteSocket;
use narrows_io::tap::{Tap, TapError};

use crate::lab::{CLIENT_MAC, CLIENT4, PATIENCE, SERVER_MAC, SERVER4, eventually, frame, privileged};

/// A host with a TAP device that is up, and has an address and a neighbour.
fn host(trains: bool) -> (Namespace, Tap) {
    let namespace = Namespace::create().unwrap().labelled("host");
    let tap = Tap::create(&namespace, "eth0", CLIENT_MAC, 1500, trains).unwrap();
    if trains {
        offload::trains(&namespace, "eth0").unwrap();
    } else {
        offload::plain_packets(&namespace, "eth0").unwrap();
    }
    let mut sockets = RouteSocket::open(&namespace).unwrap();
    sockets.set_up("eth0").unwrap();
    sockets.wait_for_carrier("eth0", Duration::from_nanos(PATIENCE)).unwrap();
    let address: std::net::IpAddr = CLIENT4.parse().unwrap();
    sockets.add_address("eth0", IpPrefix::new(address, 24)).unwrap();
    sockets.add_neighbour("eth0", SERVER4.parse().unwrap(), SERVER_MAC).unwrap();
    let interface = sockets.interface("eth0").unwrap();
    assert_eq!((interface.mac, interface.mtu), (Some(CLIENT_MAC), 1500));
    (namespace, tap)
}

#[test]
#[ignore = "needs namespaces"]
fn frames_go_both_ways_and_what_is_not_read_in_time_is_counted() {
    privileged("tap::frames_go_both_ways_and_what_is_not_read_in_time_is_counted", || {
        for trains in [false, true] {
            let (namespace, mut tap) = host(trains);
            let socket = namespace.run(|| UdpSocket::bind((CLIENT4, 7)).unwrap()).unwrap();
            socket.connect((SERVER4, 9)).unwrap();
            let (mut batch, mut pool, mut frames) = (ReceiveBatch::new(), FramePool::default(), Vec::new());
            socket.send(b"hello").unwrap();
            eventually("a datagram", || {
                tap.receive(&mut batch, &mut pool, &mut frames).unwrap();
                frames.iter().any(|received| received.frame.ends_with(b"hello"))
            });
            let position = frames.iter().position(|received| received.frame.ends_with(b"hello")).unwrap();
            let mut found = frames.swap_remove(position);
            assert_eq!(found.stamp, None, "a TAP device does not say when");
            assert_eq!(found.frame.is_open(), trains, "the kernel makes checksums, or we do");
            found.frame.finish();
            assert_eq!(found.frame[..6], SERVER_MAC.0);

            // Back to the sender: the addresses swapped, and the ports, which changes no checksum.
            let mut answer = found.frame.to_vec();
            answer[..12].rotate_left(6);
            answer[26..34].rotate_left(4);
            answer[34..38].rotate_left(2);
            let mut answer = [pool.frame(&answer)];
            assert_eq!(tap.send(&mut answer).count, 1);
            let mut room = [0; 16];
            socket.set_read_timeout(Some(Duration::from_nanos(PATIENCE))).unwrap();
            assert_eq!(socket.recv(&mut room).unwrap(), 5, "its checksum was believed");

            let mut long = [pool.frame(&frame(&[0; 2000]))];
            assert!(matches!(tap.send(&mut long).stopped, Some(SendStop::TooLarge)));
            let mut short = [pool.frame(&[0; 5])];
            assert!(matches!(tap.send(&mut short).stopped, Some(SendStop::TooShort)));

            let before = tap.statistics().unwrap();
            assert_eq!(before.dropped, 0);
            for _ in 0..10_000 {
                socket.send(b"flood").unwrap();
            }
            frames.clear();
            while tap.receive(&mut batch, &mut pool, &mut frames).unwrap() > 0 {}
            let after = tap.statistics().unwrap();
            let read = frames.iter().filter(|received| received.frame.ends_with(b"flood")).count();
            assert!(read >= 8000, "{read}");
            // The stack may have sent something of its own meanwhile.
            let lost = 10_000 - read as u64;
            assert!((lost..lost + 50).contains(&after.dropped), "each is read or counted: {after:?}, {read}");
        }
    });
}

#[test]
#[ignore = "needs namespaces"]
fn a_device_vanishes_with_its_descriptor() {
    privileged("tap::a_device_vanishes_with_its_descriptor", || {
        let (namespace, tap) = host(false);
        let mut sockets = RouteSocket::open(&namespace).unwrap();
        sockets.interface("eth0").unwrap();
        drop(tap);
        // Programs that other tests are just starting hold its descriptor until they are executed.
        eventually("the device to go", || sockets.interface("eth0").is_err());
    });
}

#[test]
#[ignore = "needs namespaces"]
fn what_is_wrong_is_said() {
    privileged("tap::what_is_wrong_is_said", || {
        let (namespace, mut tap) = host(false);
        let create = |name: &str| Tap::create(&namespace, name, SERVER_MAC, 1500, false);
        assert!(matches!(create("eth0"), Err(TapError::Exists { .. })));
        assert!(matches!(create("lo"), Err(TapError::Exists { .. } | TapError::Refused { .. })));
        for name in ["", "a/b", "a234567890bcdefg"] {
            let error = create(name).unwrap_err().to_string();
            assert!(error.contains("interface"), "{name:?}: {error}");
        }
        RouteSocket::open(&namespace).unwrap().delete_interface("eth0").unwrap();
        let mut frames = Vec::new();
        let error =
            tap.receive(&mut ReceiveBatch::new(), &mut FramePool::default(), &mut frames).unwrap_err();
        assert!(matches!(error, TapError::Gone { .. }), "{error}");
        assert_eq!(tap.statistics().unwrap().dropped, 0);
    });
}
