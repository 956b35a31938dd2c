//! Built-in measurement: UDP probes between the hosts in both directions, with a single clock.
//!
//! The hosts are on one machine, so a probe's one-way delay is its arrival time, by the kernel's timestamp at the
//! receiver's socket, minus the instant at which it was handed to the sender's socket. This includes the time the
//! kernel takes to carry a packet from a socket to the engine and from the engine to a socket, some microseconds.
//!
//! A scheduler can classify probes by their destination port, and by their configured DSCP and length.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use narrows_core::FlowKey;
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::scheduling::as_usual;
use narrows_io::udp::{Datagram, StampedUdp};
use narrows_io::wait::{Waiting, wait};
pub use narrows_report::ProbePacket;
use narrows_report::{OneWay, ProbeMeter, ProbeReport};

use crate::testbed::{Host, Interface, Testbed, one_of_each};

/// The probes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// Probes per second and direction, evenly spaced.
    pub per_second: u32,
    /// The maximum number of probes in each direction; `None` for as long as the run lasts.
    pub count: Option<u64>,
    /// The probe packets.
    pub packet: ProbePacket,
}

/// The default UDP port of probes. Above privileged ports, below ephemeral ports.
pub const PORT: u16 = 27182;
/// The default and minimum length of a probe: with UDP and IPv6 headers there is room for a number and an instant.
pub const LENGTH: u16 = 64;

/// The ECN field of probes that may be marked: ECT(0) (RFC 3168).
pub const ECN_CAPABLE: u8 = 2;

/// Bytes of a probe in use: its number and its instant.
const USED: usize = 16;
/// How long the receiver waits for outstanding probes after the last one was sent.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);

/// Probes in progress.
#[derive(Debug)]
pub struct Probes {
    stop: Arc<AtomicBool>,
    /// Whether to stop waiting for probes in flight.
    given_up: Arc<AtomicBool>,
    directions: Vec<Direction>,
    /// Becomes readable, because its far end is closed, when every direction is done.
    done: UnixStream,
}

#[derive(Debug)]
struct Direction {
    /// The port whose path it measures, if that leads directly to the other host.
    port: Option<String>,
    packet: ProbePacket,
    from: String,
    to: String,
    sender: JoinHandle<io::Result<u64>>,
    receiver: JoinHandle<io::Result<ProbeMeter>>,
}

impl Probes {
    /// Starts probing each link in both directions; across routers, from the first host connected to one to the first
    /// other host, and back.
    ///
    /// # Errors
    /// If sockets or threads cannot be created.
    pub fn start(plan: &ProbePlan, testbed: &Testbed) -> io::Result<Self> {
        let (stop, given_up) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (done, far) = UnixStream::pair()?;
        let far = Arc::new(far);
        let mut directions = Vec::new();
        let mut start = |(host, interface), (peer, other)| {
            let direction = Direction::start(
                *plan,
                (host, interface),
                (peer, other),
                [&stop, &given_up],
                Arc::clone(&far),
            )?;
            directions.push(direction);
            io::Result::Ok(())
        };
        for host in &testbed.hosts {
            for interface in &host.interfaces {
                let opposite = interface.opposite.as_ref();
                if let Some((peer, other)) = opposite.and_then(|port| testbed.interface(port)) {
                    start((host, interface), (peer, other))?;
                }
            }
        }
        let is_behind_router = |interface: &Interface| interface.neighbours.iter().all(|peer| peer.is_router);
        let routed = |host: &&Host| host.interfaces.first().is_some_and(is_behind_router);
        if let Some(host) = testbed.hosts.iter().find(routed)
            && let Some(interface) = host.interfaces.first()
            && let Some(server) = testbed.server_of(host)
        {
            start((host, interface), server)?;
            start(server, (host, interface))?;
        }
        Ok(Self { stop, given_up, directions, done })
    }

    /// Stops sending, waits for probes in flight, and returns the results, next to the configured delays.
    ///
    /// # Errors
    /// If a socket failed.
    pub fn finish(self, configured: Vec<OneWay>) -> io::Result<Vec<ProbeReport>> {
        self.stop();
        self.directions.into_iter().map(|direction| direction.finish(&configured)).collect()
    }

    /// Stops sending; probes in flight are still awaited.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether all have been sent, and have arrived or been given up.
    pub fn are_done(&self) -> bool {
        let mut done = [Waiting::readable(&self.done)];
        wait(&mut done, Some(clock_monotonic())).is_ok() && done[0].is_ready()
    }

    /// Stops waiting for probes in flight.
    pub fn give_up(&self) {
        self.stop();
        self.given_up.store(true, Ordering::Relaxed);
    }
}

impl AsFd for Probes {
    /// A descriptor that becomes readable when all probes are done.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}

impl Direction {
    fn start(
        plan: ProbePlan,
        (host, interface): (&Host, &Interface),
        (peer, other): (&Host, &Interface),
        [stop, given_up]: [&Arc<AtomicBool>; 2],
        done: Arc<UnixStream>,
    ) -> io::Result<Self> {
        let missing = || io::Error::other(format!("port `{}` has no address", interface.port));
        // Of the first address family that both ends have.
        let ends = one_of_each(&interface.addresses).into_iter().zip(one_of_each(&other.addresses));
        let (own, far) = ends.filter_map(|(own, far)| Some((own?, far?))).next().ok_or_else(missing)?;
        let packet = plan.packet;
        let taken = |cause: io::Error| {
            let what = format!("receive them at port {} of host `{}`: {cause}", packet.port, peer.name);
            io::Error::new(cause.kind(), what)
        };
        let incoming = StampedUdp::bind(&peer.namespace, far, packet.port).map_err(taken)?;
        let outgoing = StampedUdp::bind(&host.namespace, own, 0)?;
        incoming.only_from(outgoing.address()?)?;
        outgoing.set_traffic_class(packet.traffic_class)?;
        let to = incoming.address()?;
        let sent_all = Arc::new(AtomicBool::new(false));
        let (stop, given_up, sent) = (Arc::clone(stop), Arc::clone(given_up), Arc::clone(&sent_all));
        let sender = thread::Builder::new().name("probe sender".into()).spawn(move || {
            as_usual()?;
            let result = send(&outgoing, to, plan, &stop);
            sent.store(true, Ordering::Release);
            result
        })?;
        let receiver = thread::Builder::new().name("probe receiver".into()).spawn(move || {
            as_usual()?;
            let result = receive(&incoming, &sent_all, &given_up);
            drop(done);
            result
        })?;
        Ok(Self {
            port: (interface.opposite.as_ref() == Some(&other.port)).then(|| interface.port.clone()),
            packet,
            from: host.name.clone(),
            to: peer.name.clone(),
            sender,
            receiver,
        })
    }

    fn finish(self, configured: &[OneWay]) -> io::Result<ProbeReport> {
        let ended = |_| io::Error::other("a probe thread panicked");
        let sent = self.sender.join().map_err(ended)??;
        let meter = self.receiver.join().map_err(ended)??;
        let configured = configured.iter().find(|way| Some(&way.from_port) == self.port.as_ref());
        Ok(meter.report(self.from, self.to, self.packet, sent, configured.map(|way| way.delay)))
    }
}

fn send(socket: &StampedUdp, to: SocketAddr, plan: ProbePlan, stop: &AtomicBool) -> io::Result<u64> {
    let gap = 1_000_000_000 / u64::from(plan.per_second.max(1));
    let start = clock_monotonic().as_nanos();
    let mut payload = vec![0; payload(to, plan.packet)];
    let mut number = 0;
    while plan.count.is_none_or(|count| number < count) && !stop.load(Ordering::Relaxed) {
        wait(&mut [], Some(MonotonicTime::from_nanos(start + number * gap)))?;
        payload[..8].copy_from_slice(&number.to_le_bytes());
        payload[8..16].copy_from_slice(&clock_monotonic().as_nanos().to_le_bytes());
        socket.send_to(&payload, to)?;
        number += 1;
    }
    Ok(number)
}

/// Bytes of UDP payload in a probe.
fn payload(to: SocketAddr, packet: ProbePacket) -> usize {
    let headers = if to.is_ipv4() { 28 } else { 48 };
    usize::from(packet.length.max(LENGTH)) - headers
}

fn receive(socket: &StampedUdp, sent_all: &AtomicBool, given_up: &AtomicBool) -> io::Result<ProbeMeter> {
    let mut meter = ProbeMeter::new();
    let mut payload = [0; USED];
    let mut last = clock_monotonic();
    while !given_up.load(Ordering::Relaxed) {
        let sending = !sent_all.load(Ordering::Acquire);
        match socket.receive(&mut payload, POLL)? {
            Some(Datagram { length: USED, stamp, traffic_class }) => {
                last = clock_monotonic();
                let word = |at: usize| payload[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
                let arrived = stamp.unwrap_or(last).as_nanos();
                let delay = narrows_core::Duration::from_nanos(arrived.saturating_sub(word(8)));
                let marked = traffic_class.is_some_and(|class| {
                    class & FlowKey::CONGESTION_EXPERIENCED == FlowKey::CONGESTION_EXPERIENCED
                });
                meter.record(word(0), delay, marked);
            }
            Some(_) => {}
            None if sending => last = clock_monotonic(),
            None => {
                let waited = clock_monotonic().as_nanos() - last.as_nanos();
                if waited > PATIENCE.as_nanos() as u64 {
                    return Ok(meter);
                }
            }
        }
    }
    Ok(meter)
}
