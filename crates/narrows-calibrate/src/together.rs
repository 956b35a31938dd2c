//! Packets of several links that are due at the same instant on one output: the last leaves (N − 1)·L/B late, where
//! L/B is the output's time per packet (Carbone and Rizzo 2010, section 5.1).

use narrows_core::model::{DelayModel, Propagation};
use narrows_core::{Draw, Duration, PacketState, Target, Time};
use narrows_io::clock::clock_monotonic;
use narrows_io::frame::FramePool;
use narrows_io::packet_socket::{PacketSocket, ReceiveBatch};
use narrows_live::director::Wait;
use narrows_scenario::Scenario;
use serde::Serialize;

use crate::bed::Bed;
use crate::measured::Spread;
use crate::traffic::{frame, ours};
use crate::{CalibrateError, Effort};

/// The maximum number of links.
const MOST: usize = 32;
/// The numbers of links measured.
const COUNTS: [usize; 6] = [1, 2, 4, 8, 16, MOST];
/// Packets are due at multiples of this.
const GRID: Duration = Duration::from_millis(10);

/// Packets of several links that were due at the same instant.
#[derive(Clone, Debug, Serialize)]
pub struct Together {
    /// The number of links.
    pub links: usize,
    /// The time from the first packet's timestamp at the receiver to the last one's.
    pub apart: Spread,
    /// (N − 1)·L/B, from the kernel's time per frame.
    pub expected_ns: f64,
}

/// Delays every packet until the next multiple of ten milliseconds.
#[derive(Debug)]
struct UntilGrid;

impl DelayModel for UntilGrid {
    fn delay(&mut self, now: Time, _: &PacketState, _: &mut Draw) -> Propagation {
        Propagation::After(Duration::from_nanos(GRID.nanos() - now.nanos() % GRID.nanos()))
    }

    fn mean(&self) -> Option<Duration> {
        Some(Duration::from_nanos(GRID.nanos() / 2))
    }
}

pub(crate) fn measure(bed: &mut Bed, effort: Effort, send_ns: f64) -> Result<Vec<Together>, CalibrateError> {
    let rounds = match effort {
        Effort::Full => 40,
        Effort::Quick => 3,
    };
    let hosts: String = (0..MOST).map(|number| format!("[hosts.h{number}]\n")).collect();
    let links: String =
        (0..MOST).map(|number| format!("[links.l{number}]\nbetween = [\"h{number}\", \"sink\"]\n")).collect();
    let scenario = Scenario::parse(&format!("{hosts}[hosts.sink]\n{links}"), "calibrate")?;
    let mut network = scenario.network();
    for link in network.links.iter_mut().filter(|link| link.name.ends_with(".up")) {
        // All links end at one interface of the receiver.
        link.lanes = vec![Target::Port("sink.l0".into())];
        link.delay = Box::new(UntilGrid);
    }
    let prepare = |testbed: &narrows_live::testbed::Testbed| {
        let mut sockets = Vec::new();
        for host in &testbed.hosts {
            let interface = host.interfaces.first().ok_or(CalibrateError::Hosts)?;
            sockets.push(PacketSocket::open(&host.namespace, &interface.name)?);
        }
        Ok(sockets)
    };
    let work = move |mut sockets: Vec<PacketSocket>| {
        let mut far = sockets.pop().ok_or(CalibrateError::Hosts)?;
        let mut all = Vec::new();
        for links in COUNTS {
            let mut apart = Vec::new();
            for _ in 0..rounds {
                apart.extend(round(&mut sockets[..links], &mut far)?);
            }
            let expected_ns = (links - 1) as f64 * send_ns;
            all.push(Together { links, apart: Spread::of(apart), expected_ns });
        }
        Ok(all)
    };
    Ok(bed.network(&scenario, network, Wait::Hybrid, prepare, work)?.0)
}

/// Sends one packet from each sender. Returns the span of their arrivals; `None` if they were due at different
/// instants, or one did not arrive.
fn round(senders: &mut [PacketSocket], far: &mut PacketSocket) -> Result<Option<i64>, CalibrateError> {
    let (mut batch, mut pool, mut received) = (ReceiveBatch::new(), FramePool::default(), Vec::new());
    for sender in senders.iter_mut() {
        if let Some(stop) = sender.send(&[frame()]).stopped {
            return Err(CalibrateError::Send(stop.to_string()));
        }
    }
    let asked = clock_monotonic().as_nanos();
    let mut stamps = Vec::new();
    while stamps.len() < senders.len() && clock_monotonic().as_nanos() - asked < 4 * GRID.nanos() {
        far.receive(&mut batch, &mut pool, &mut received)?;
        for packet in received.drain(..) {
            if ours(&packet.frame).is_some() {
                stamps.extend(packet.stamp.map(|stamp| stamp.as_nanos()));
            }
            pool.recycle(packet.frame);
        }
    }
    let apart = stamps.iter().max().zip(stamps.iter().min()).map(|(last, first)| last - first);
    let whole = stamps.len() == senders.len();
    Ok(apart.filter(|&apart| whole && apart < GRID.nanos() / 2).map(|apart| apart as i64))
}
