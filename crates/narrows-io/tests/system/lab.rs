//! Two hosts joined by packet sockets, and permission to make them.

use std::io::ErrorKind;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::frame::FramePool;
use narrows_io::host::{Capabilities, user_namespaces};
use narrows_io::link::{MacAddress, VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::{PacketSocket, ReceiveBatch, Received, SendStop};
use narrows_io::route_socket::RouteSocket;
use narrows_io::user_namespace::{InnerUser, start_in_user_namespace};
use narrows_io::wait::{Waiting, wait};
use narrows_io::{offload, stack};

pub(crate) const CLIENT4: &str = "10.98.0.1";
pub(crate) const SERVER4: &str = "10.98.0.2";
pub(crate) const CLIENT6: &str = "fd98::1";
pub(crate) const SERVER6: &str = "fd98::2";
pub(crate) const CLIENT_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
pub(crate) const SERVER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

/// Long enough for a machine under any load; no test waits so long unless it fails.
pub(crate) const PATIENCE: u64 = 20_000_000_000;

/// Runs `test` where it may make namespaces: here, or in a copy of this program inside a user namespace. Where neither is
/// possible, it fails. `name` is the test's own name as the test harness knows it.
pub(crate) fn privileged(name: &str, test: impl FnOnce()) {
    if Capabilities::effective().unwrap().all() {
        return test();
    }
    if let Err(cause) = user_namespaces() {
        panic!("{name} needs root or user namespaces, and this host gives neither ({cause})");
    }
    let mut copy = Command::new("/proc/self/exe");
    copy.args([name, "--exact", "--include-ignored", "--test-threads=1"]);
    start_in_user_namespace(&mut copy, InnerUser::Root);
    assert!(copy.status().unwrap().success(), "{name} failed inside the user namespace");
}

/// A client and a server, each with `eth0`; the other ends are in `wire`, named after the hosts.
pub(crate) struct Lab {
    pub(crate) wire: Namespace,
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
}

impl Lab {
    pub(crate) fn new(mtu: u32) -> Self {
        let wire = Namespace::create().unwrap().labelled("wire");
        let client = host(&wire, "client", [CLIENT4, CLIENT6], CLIENT_MAC, mtu);
        let server = host(&wire, "server", [SERVER4, SERVER6], SERVER_MAC, mtu);
        Self { wire, client, server }
    }

    /// The sockets on the wire's two ends.
    pub(crate) fn sockets(&self) -> [PacketSocket; 2] {
        ["client", "server"].map(|end| PacketSocket::open(&self.wire, end).unwrap())
    }

    /// Carries frames both ways while `traffic` runs; every frame that crossed, by direction (0 is from the
    /// client).
    pub(crate) fn forwarding<R>(&self, traffic: impl FnOnce() -> R) -> (R, [Vec<Received>; 2]) {
        let sockets = self.sockets();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let forwarder = scope.spawn(|| forward(sockets, &done));
            let stop = StopOnDrop(&done);
            let result = traffic();
            drop(stop);
            (result, forwarder.join().unwrap())
        })
    }
}

/// Stops the forwarder even when the traffic panics, so that the scope ends.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn host(wire: &Namespace, name: &str, addresses: [&str; 2], mac: MacAddress, mtu: u32) -> Namespace {
    let namespace = Namespace::create().unwrap().labelled(name);
    let far = VethEnd { namespace: &namespace, name: "eth0", mac: Some(mac) };
    create_veth(&VethEnd { namespace: wire, name, mac: None }, &far, mtu).unwrap();
    for (place, interface) in [(wire, name), (&namespace, "eth0")] {
        let record = offload::plain_packets(place, interface).unwrap();
        assert!(record.stuck.is_empty(), "{record:?}");
    }
    stack::silence(wire, name).unwrap();
    stack::settle(&namespace, "eth0").unwrap();
    RouteSocket::open(wire).unwrap().set_up(name).unwrap();
    let mut sockets = RouteSocket::open(&namespace).unwrap();
    sockets.set_up("eth0").unwrap();
    sockets.wait_for_carrier("eth0", Duration::from_nanos(PATIENCE)).unwrap();
    for (address, length) in addresses.into_iter().zip([24, 64]) {
        let address: std::net::IpAddr = address.parse().unwrap();
        sockets.add_address("eth0", IpPrefix::new(address, length)).unwrap();
        sockets.wait_for_address(address, Duration::from_nanos(PATIENCE)).unwrap();
    }
    namespace
}

fn forward(mut sockets: [PacketSocket; 2], done: &AtomicBool) -> [Vec<Received>; 2] {
    let (mut batch, mut pool) = (ReceiveBatch::new(), FramePool::default());
    let mut seen = [Vec::new(), Vec::new()];
    loop {
        let last = done.load(Ordering::Acquire);
        let mut waiting = [Waiting::readable(&sockets[0]), Waiting::readable(&sockets[1])];
        let soon = MonotonicTime::from_nanos(clock_monotonic().as_nanos() + 5_000_000);
        wait(&mut waiting, Some(soon)).unwrap();
        for from in 0..2 {
            let mut frames = Vec::new();
            while sockets[from].receive(&mut batch, &mut pool, &mut frames).unwrap() > 0 {}
            send_all(&mut sockets[1 - from], &frames);
            seen[from].append(&mut frames);
        }
        if last {
            return seen;
        }
    }
}

fn send_all(socket: &mut PacketSocket, frames: &[Received]) {
    let mut at = 0;
    while at < frames.len() {
        let sent = socket.send(&frames[at..]);
        at += sent.count;
        match sent.stopped {
            None | Some(SendStop::Full) => {}
            Some(stop) => panic!("a frame could not be passed on: {stop}"),
        }
    }
}

/// Receives until `enough` says so; panics when it takes too long.
pub(crate) fn receive_until(
    socket: &mut PacketSocket,
    enough: impl Fn(&[Received]) -> bool,
) -> Vec<Received> {
    let (mut batch, mut pool, mut frames) = (ReceiveBatch::new(), FramePool::default(), Vec::new());
    let deadline = MonotonicTime::from_nanos(clock_monotonic().as_nanos() + PATIENCE);
    while !enough(&frames) {
        assert!(clock_monotonic() < deadline, "still not enough: {frames:?}");
        wait(&mut [Waiting::readable(socket)], Some(deadline)).unwrap();
        socket.receive(&mut batch, &mut pool, &mut frames).unwrap();
    }
    frames
}

/// Looks again and again until `holds`; panics when it takes too long.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = clock_monotonic().as_nanos() + PATIENCE;
    while !holds() {
        assert!(clock_monotonic().as_nanos() < deadline, "never came: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A frame between the two hosts with an experimental EtherType, which their stacks ignore.
pub(crate) fn frame(payload: &[u8]) -> Vec<u8> {
    let mut bytes = [SERVER_MAC.0, CLIENT_MAC.0].concat();
    bytes.extend([0x88, 0xb5]);
    bytes.extend(payload);
    bytes
}

/// Whether the descriptor read timed out rather than failed.
pub(crate) fn timed_out(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
