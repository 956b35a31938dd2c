//! The test bed: two hosts, and between them a cable, a bare forwarder, or narrows in normal operation.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use narrows_core::{Engine, NetworkConfig};
use narrows_io::cable_end::CableEnd;
use narrows_io::clock::clock_monotonic;
use narrows_io::frame::{Frame, FramePool};
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::{PacketSocketOptions, ReceiveBatch, SendStop};
use narrows_io::route_socket::RouteSocket;
use narrows_io::wait::{EndSignals, Waiting, wait};
use narrows_io::{offload, stack};
use narrows_live::cabling::Cabling;
use narrows_live::director::{Director, Division, End, Wait};
use narrows_live::testbed::{Host, Testbed};
use narrows_report::{Kind, Report, RunInfo};
use narrows_scenario::Scenario;

use crate::CalibrateError;
use crate::kernel::Qdisc;
use crate::traffic::Ends;

/// Where measurements run, and how they can be stopped.
pub(crate) struct Bed {
    signals: EndSignals,
}

impl Bed {
    pub(crate) fn new() -> Result<Self, CalibrateError> {
        let signals = EndSignals::catch().map_err(CalibrateError::System)?;
        narrows_io::wait::wake_on_time().map_err(CalibrateError::System)?;
        Ok(Self { signals })
    }

    /// Measures through narrows with this scenario, from its first host to its last.
    pub(crate) fn narrows<T: Send + 'static>(
        &mut self,
        scenario: &Scenario,
        how: Wait,
        load: impl FnOnce(Ends) -> Result<T, CalibrateError> + Send + 'static,
    ) -> Result<(T, Report), CalibrateError> {
        self.network(scenario, scenario.network(), how, ends, load)
    }

    /// The same with a different network between the same ports, and with the load's own ends.
    pub(crate) fn network<L: Send + 'static, T: Send + 'static>(
        &mut self,
        scenario: &Scenario,
        network: NetworkConfig,
        how: Wait,
        prepare: impl FnOnce(&Testbed) -> Result<L, CalibrateError>,
        load: impl FnOnce(L) -> Result<T, CalibrateError> + Send + 'static,
    ) -> Result<(T, Report), CalibrateError> {
        let mut testbed = Testbed::create(scenario, Cabling::default(), |_| 0)?;
        let prepared = prepare(&testbed)?;
        let (engine, cables) = (Engine::new(network)?, testbed.take_cables());
        let mut packets = Director::new(engine, scenario.clone(), cables, (Division::default(), &[]))?;
        packets.wait_by(how);
        let (thread, done) = start(prepared, load)?;
        if let End::Signal(ended) = packets.run(Some(done.as_fd()), &mut self.signals)? {
            return Err(CalibrateError::Interrupted(ended.signal as i32));
        }
        let found = join(thread)?;
        let mut info = RunInfo::of(scenario, Kind::Live);
        Ok((found, packets.finish(&mut info)?))
    }

    /// Measures through a plain cable: the kernel's own cost. Optionally with a kernel queueing discipline at its
    /// near end.
    pub(crate) fn cable<T: Send + 'static>(
        &mut self,
        qdisc: Option<&Qdisc>,
        load: impl FnOnce(Ends) -> Result<T, CalibrateError> + Send + 'static,
    ) -> Result<T, CalibrateError> {
        let (near, far) = (Namespace::create()?, Namespace::create()?);
        let end = |namespace| VethEnd { namespace, name: "cable", mac: None };
        create_veth(&end(&near), &end(&far), 1500)?;
        for namespace in [&near, &far] {
            offload::plain_packets(namespace, "cable")?;
            stack::silence(namespace, "cable")?;
            RouteSocket::open(namespace)?.set_up("cable")?;
        }
        RouteSocket::open(&far)?.wait_for_carrier("cable", std::time::Duration::from_secs(5))?;
        if let Some(Qdisc { kind, options }) = qdisc {
            RouteSocket::open(&near)?.add_root_qdisc("cable", kind, options)?;
        }
        let through_qdisc = PacketSocketOptions { through_qdisc: qdisc.is_some(), ..Default::default() };
        let ends = Ends::open_with((&near, "cable"), (&far, "cable"), through_qdisc)?;
        let (thread, done) = start(ends, load)?;
        loop {
            let mut waiting = [Waiting::readable(&self.signals), Waiting::readable(&done)];
            wait(&mut waiting, None).map_err(CalibrateError::System)?;
            if waiting[0].is_ready() {
                return Err(interrupted(&mut self.signals));
            }
            if waiting[1].is_ready() {
                return join(thread);
            }
        }
    }

    /// Measures through a forwarder that only delays each packet: the floor of anything that uses packet sockets.
    /// Also returns how late each packet's send call returned.
    pub(crate) fn forwarder<T: Send + 'static>(
        &mut self,
        scenario: &Scenario,
        delay: impl Fn(u64) -> u64,
        load: impl FnOnce(Ends) -> Result<T, CalibrateError> + Send + 'static,
    ) -> Result<(T, Vec<i64>), CalibrateError> {
        let mut testbed = Testbed::create(scenario, Cabling::default(), |_| 0)?;
        let ends = ends(&testbed)?;
        let mut cables = testbed.take_cables();
        let (Some(mut to), Some(mut from)) = (cables.pop(), cables.pop()) else {
            return Err(CalibrateError::Hosts);
        };
        let (thread, done) = start(ends, load)?;
        let late = forward(&mut from.end, &mut to.end, &delay, &done, &mut self.signals)?;
        Ok((join(thread)?, late))
    }
}

/// The first interface of the first host and of the last one.
fn ends(testbed: &Testbed) -> Result<Ends, CalibrateError> {
    let end = |host: Option<&Host>| {
        host.and_then(|host| {
            host.interfaces.first().map(|interface| (host.namespace.try_clone(), interface.name.clone()))
        })
    };
    let (Some(near), Some(far)) = (end(testbed.hosts.first()), end(testbed.hosts.last())) else {
        return Err(CalibrateError::Hosts);
    };
    Ends::open((&near.0?, &near.1), (&far.0?, &far.1))
}

/// Starts the load; the returned descriptor becomes readable when it is done, however it ended.
fn start<L: Send + 'static, T: Send + 'static>(
    prepared: L,
    load: impl FnOnce(L) -> Result<T, CalibrateError> + Send + 'static,
) -> Result<(JoinHandle<Result<T, CalibrateError>>, UnixStream), CalibrateError> {
    let (done, far) = UnixStream::pair().map_err(CalibrateError::System)?;
    let work = move || {
        let result = load(prepared);
        drop(far);
        result
    };
    let thread = thread::Builder::new().name("load".into()).spawn(work).map_err(CalibrateError::System)?;
    Ok((thread, done))
}

fn join<T>(thread: JoinHandle<Result<T, CalibrateError>>) -> Result<T, CalibrateError> {
    thread.join().map_err(|_| CalibrateError::System(std::io::Error::other("the load's thread panicked")))?
}

/// How many turns the forwarder makes between checks whether to end.
const TURNS: u32 = 1_024;

const SIGINT: i32 = 2;

/// The signal that came.
fn interrupted(signals: &mut EndSignals) -> CalibrateError {
    match signals.take() {
        Ok(came) => CalibrateError::Interrupted(came.map_or(SIGINT, |came| came.signal as i32)),
        Err(error) => CalibrateError::System(error),
    }
}

/// `delay` gives the delay of the packet with a number, in nanoseconds.
fn forward(
    from: &mut CableEnd,
    to: &mut CableEnd,
    delay: &impl Fn(u64) -> u64,
    done: &UnixStream,
    signals: &mut EndSignals,
) -> Result<Vec<i64>, CalibrateError> {
    let (mut batch, mut pool, mut received) = (ReceiveBatch::new(), FramePool::default(), Vec::new());
    // By due instant, then by number.
    let mut held: BTreeMap<(u64, u64), Frame> = BTreeMap::new();
    let (mut late, mut number) = (Vec::new(), 0);
    for turn in 0u32.. {
        from.receive(&mut batch, &mut pool, &mut received)?;
        let now = clock_monotonic();
        for packet in received.drain(..) {
            let due = packet.stamp.unwrap_or(now).min(now).as_nanos() + delay(number);
            held.insert((due, number), packet.frame);
            number += 1;
        }
        let now = clock_monotonic().as_nanos();
        while let Some(first) = held.first_entry().filter(|first| first.key().0 <= now) {
            let ((due, _), mut frame) = first.remove_entry();
            if let Some(SendStop::Down) = to.send(std::slice::from_mut(&mut frame)).stopped {
                return Err(CalibrateError::Send("the interface is down".into()));
            }
            late.push(clock_monotonic().as_nanos() as i64 - due as i64);
            pool.recycle(frame);
        }
        if turn % TURNS == 0 {
            let mut waiting = [Waiting::readable(done), Waiting::readable(&*signals)];
            wait(&mut waiting, Some(clock_monotonic())).map_err(CalibrateError::System)?;
            if waiting[1].is_ready() {
                return Err(interrupted(signals));
            }
            if waiting[0].is_ready() {
                break;
            }
        }
    }
    Ok(late)
}
