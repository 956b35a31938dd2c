//! The program's own measurement: UDP probes between the hosts, both ways, with one clock.
//!
//! The hosts are on one machine, so a probe's one-way delay is simply its arrival, by the kernel's stamp at the
//! receiver's socket, minus the instant at which it was handed to the sender's socket. That includes what the kernel
//! takes to carry a packet from a socket to the engine and from the engine to a socket, some microseconds.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::udp::StampedUdp;
use narrows_io::wait::wait;
use narrows_report::{OneWay, ProbeMeter, ProbeReport};

use crate::stage::{Host, Interface, Stage, one_of_each};

/// How many probes to send.
#[derive(Clone, Copy, Debug)]
pub struct ProbePlan {
    /// Probes a second and direction, evenly spaced.
    pub per_second: u32,
    /// The most probes in each direction; nothing for as long as the run lasts.
    pub count: Option<u64>,
}

/// The bytes of a probe: its number and its instant; with the UDP and IPv4 headers 64 bytes.
const PAYLOAD: usize = 36;
/// How long the receiver waits for the last probes after the last one was sent.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);

/// Probes under way.
#[derive(Debug)]
pub struct Probes {
    stop: Arc<AtomicBool>,
    directions: Vec<Direction>,
    /// Readable, because closed at the far end, when every direction is done.
    done: UnixStream,
}

#[derive(Debug)]
struct Direction {
    port: String,
    from: String,
    to: String,
    sender: JoinHandle<io::Result<u64>>,
    receiver: JoinHandle<io::Result<ProbeMeter>>,
}

impl Probes {
    /// Starts probing each link in both directions.
    ///
    /// # Errors
    /// When sockets or threads cannot be had.
    pub fn start(plan: &ProbePlan, stage: &Stage) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (done, far) = UnixStream::pair()?;
        let far = Arc::new(far);
        let mut directions = Vec::new();
        for host in &stage.hosts {
            for interface in &host.interfaces {
                if let Some(peer) = stage.host(&interface.peer.host) {
                    let far = Arc::clone(&far);
                    directions.push(Direction::start(*plan, host, interface, peer, &stop, far)?);
                }
            }
        }
        Ok(Self { stop, directions, done })
    }

    /// Stops sending, waits for probes that are on their way, and says what came of them, beside the delays that are
    /// configured.
    ///
    /// # Errors
    /// When a socket failed.
    pub fn finish(self, configured: Vec<OneWay>) -> io::Result<Vec<ProbeReport>> {
        self.stop.store(true, Ordering::Relaxed);
        self.directions.into_iter().map(|direction| direction.finish(&configured)).collect()
    }

    /// Stops sending; what is on its way is still awaited.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl AsFd for Probes {
    /// A descriptor that becomes readable when all probes have been sent and awaited.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}

impl Direction {
    fn start(
        plan: ProbePlan,
        host: &Host,
        interface: &Interface,
        peer: &Host,
        stop: &Arc<AtomicBool>,
        done: Arc<UnixStream>,
    ) -> io::Result<Self> {
        let missing = || io::Error::other(format!("port `{}` has no address", interface.port));
        // Of one family: the first that both ends have.
        let ends = one_of_each(&interface.addresses).into_iter().zip(one_of_each(&interface.peer.addresses));
        let (own, far) = ends.filter_map(|(own, far)| Some((own?, far?))).next().ok_or_else(missing)?;
        let incoming = StampedUdp::bind(&peer.namespace, far, 0)?;
        let outgoing = StampedUdp::bind(&host.namespace, own, 0)?;
        let to = incoming.address()?;
        let sent_all = Arc::new(AtomicBool::new(false));
        let (stop, sent) = (Arc::clone(stop), Arc::clone(&sent_all));
        let sender = thread::Builder::new().name("probe sender".into()).spawn(move || {
            let result = send(&outgoing, to, plan, &stop);
            sent.store(true, Ordering::Release);
            result
        })?;
        let receiver = thread::Builder::new().name("probe receiver".into()).spawn(move || {
            let result = receive(&incoming, &sent_all);
            drop(done);
            result
        })?;
        Ok(Self {
            port: interface.port.clone(),
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
        let configured = configured.iter().find(|way| way.from_port == self.port);
        Ok(meter.report(self.from, self.to, sent, configured.map(|way| way.delay)))
    }
}

fn send(socket: &StampedUdp, to: SocketAddr, plan: ProbePlan, stop: &AtomicBool) -> io::Result<u64> {
    let gap = 1_000_000_000 / u64::from(plan.per_second.max(1));
    let start = clock_monotonic().as_nanos();
    let mut payload = [0; PAYLOAD];
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

fn receive(socket: &StampedUdp, sent_all: &AtomicBool) -> io::Result<ProbeMeter> {
    let mut meter = ProbeMeter::new();
    let mut payload = [0; PAYLOAD];
    let mut last = clock_monotonic();
    loop {
        let sending = !sent_all.load(Ordering::Acquire);
        match socket.receive(&mut payload, POLL)? {
            Some((PAYLOAD, stamp)) => {
                last = clock_monotonic();
                let word = |at: usize| payload[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
                let arrived = stamp.unwrap_or(last).as_nanos();
                let delay = narrows_core::Duration::from_nanos(arrived.saturating_sub(word(8)));
                meter.record(word(0), delay);
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
}
