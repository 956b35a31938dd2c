//! Frames sent, waited for and received by one system call. Of the kernel's in a guest of `narrows run --virtual`, in which
//! `scripts/test-kernel` runs these; any other has no such call.

use narrows_io::clock::{MonotonicTime, SteadyOffset, clock_monotonic};
use narrows_io::exchange::Exchange;
use narrows_io::frame::FramePool;
use narrows_io::packet_socket::{PacketSocket, ReceiveBatch};
use narrows_io::wait::{Waiting, wait, wake_on_time};

use crate::lab::{Lab, frame, privileged};

const NONE: [Vec<u8>; 0] = [];

/// For the wire's end of a cable and the host's.
fn with_sockets(name: &str, test: impl FnOnce(&mut Exchange, PacketSocket, PacketSocket)) {
    privileged(name, || {
        let mut exchange = Exchange::new(2).expect("the guest kernel has the call");
        let lab = Lab::new(1500);
        let [wire, _] = lab.sockets();
        let host = PacketSocket::open(&lab.client, "eth0").unwrap();
        test(&mut exchange, wire, host);
    });
}

fn after(now: MonotonicTime, nanoseconds: u64) -> MonotonicTime {
    MonotonicTime::from_nanos(now.as_nanos() + nanoseconds)
}

#[test]
#[ignore = "needs guest kernel"]
fn frames_are_sent_waited_for_and_received() {
    with_sockets("exchange::frames_are_sent_waited_for_and_received", |exchange, wire, mut host| {
        let sent = [frame(b"first"), frame(b"second")];
        let now = clock_monotonic();
        let sockets = [(&wire, &sent[..]), (&host, &[])];
        let mut waiting = [Waiting::readable(&wire), Waiting::readable(&host)];
        let exchanged =
            exchange.exchange(&sockets, now, &mut waiting, Some(after(now, 1_000_000_000))).unwrap();
        assert_eq!(exchanged.sent, [2, 0]);
        let (_, then) = exchanged.waited.unwrap();
        assert!(now < then && then < after(now, 100_000), "{now:?} {then:?}");
        assert!(waiting[1].is_ready() && exchange.holds(1));
        let (mut pool, mut received) = (FramePool::default(), Vec::new());
        let steady = SteadyOffset::sample().unwrap();
        let count = exchange.take(1, &mut host, &steady, &mut pool, &mut received);
        assert_eq!(count, Some(received.len()));
        let ours: Vec<_> =
            received.iter().filter(|received| sent.contains(&received.frame.to_vec())).collect();
        assert_eq!(ours.len(), 2, "{received:?}");
        for received in ours {
            let stamp = received.stamp.unwrap();
            assert!(now <= stamp && stamp <= then, "{now:?} {stamp:?} {then:?}");
        }
        assert!(!exchange.holds(1));
        assert_eq!(exchange.take(1, &mut host, &steady, &mut pool, &mut received), None);
    });
}

#[test]
#[ignore = "needs guest kernel"]
fn a_wait_ends_at_its_deadline() {
    with_sockets("exchange::a_wait_ends_at_its_deadline", |exchange, wire, host| {
        wake_on_time().unwrap();
        let now = clock_monotonic();
        let sockets = [(&wire, &NONE[..]), (&host, &NONE[..])];
        let exchanged = exchange.exchange(&sockets, now, &mut [], Some(after(now, 5_000_000))).unwrap();
        let (ready, then) = exchanged.waited.unwrap();
        assert_eq!(ready, 0);
        assert!(after(now, 5_000_000) <= then && then < after(now, 5_010_000), "{now:?} {then:?}");
    });
}

#[test]
#[ignore = "needs guest kernel"]
fn what_an_interface_does_not_take_ends_it_before_the_wait() {
    let name = "exchange::what_an_interface_does_not_take_ends_it_before_the_wait";
    with_sockets(name, |exchange, wire, mut host| {
        let (good, large) = (frame(b"good"), frame(&[0; 2000]));
        let sent = [good.clone(), large, good.clone()];
        let now = clock_monotonic();
        let sockets = [(&wire, &sent[..]), (&host, &[])];
        let exchanged = exchange.exchange(&sockets, now, &mut [], Some(after(now, 1_000_000_000))).unwrap();
        assert_eq!((exchanged.sent, exchanged.waited), (vec![1, 0], None));
        assert!(!exchange.holds(0) && !exchange.holds(1));
        assert!(clock_monotonic() < after(now, 100_000_000));
        wait(&mut [Waiting::readable(&host)], Some(after(now, 1_000_000_000))).unwrap();
        let (mut batch, mut pool, mut received) = (ReceiveBatch::new(), FramePool::default(), Vec::new());
        host.receive(&mut batch, &mut pool, &mut received).unwrap();
        assert_eq!(received.iter().filter(|received| received.frame[..] == good[..]).count(), 1);
    });
}
