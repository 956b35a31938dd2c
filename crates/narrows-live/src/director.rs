//! The director of a network that runs in real time: everything except moving packets.
//!
//! It owns the scenario with its timeline, the control socket, the sockets of feeds, and the reports; it waits for
//! the program's end and for signals. It sends orders to the packet threads (`data`), each with independent
//! components of the network, and receives raw counters. The director never makes them wait, and waits for them only
//! for a limited time: however busy they are, a signal is handled at once and a client gets a reply.

mod disturbance;
mod events;
mod host;
mod inspector;
mod ipfw;
mod plan;
mod rebinding;
mod recent;
mod report;
mod requests;
mod worker;

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use narrows_core::{Duration, Engine, PortId, Time};
use narrows_frame::nat::Rebind;
use narrows_frame::{ElementNames, WriteError};
use narrows_io::cable_end::CableEnd;
use narrows_io::host::ProcessorTime;
use narrows_io::process::Signal;
use narrows_io::scheduling;
use narrows_io::wait::{EndSignal, EndSignals, Waiting, wait};
use narrows_report::{LatenessBound, OneWay, RunInfo};
use narrows_scenario::Scenario;
use narrows_traffic::{SourceOptions, Sources};

use self::disturbance::Disturbances;
use self::events::Events;
use self::host::HostWatch;
use self::inspector::Inspector;
use self::plan::Plan;
use self::worker::WorkerPool;
use crate::capture::{Capture, CapturePlan};
use crate::clock::Clock;
use crate::control::{ControlSocket, Happening, Peer};
use crate::data::DataLoop;
use crate::data::orders::{Answer, Order};
use crate::entrance::Entrances;
use crate::feeds::{self, FeedError, FeedServers, Feeds, Place};
use crate::gateway::Gateway;
use crate::in_kernel::Agreement;
use crate::load::Load;
use crate::packet_records::{PacketRecords, PacketsPlan};
use crate::recorder::{self, Recorder};
use crate::router::Routers;
use crate::series::{Series, SeriesPlan};
use crate::testbed::Cable;

pub use crate::data::LoopError;
pub use crate::data::pace::{Pace, PaceError, ProcessorShare, Wait};
pub use crate::data::share::{Division, Threads};

/// How long packet threads may take to start or to stop: longer than any of their turns.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why a run in real time ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The awaited descriptor is ready: the program has ended, or the time is over.
    Ready,
    /// A signal asked this process to end.
    Signal(EndSignal),
}

/// A network that runs in real time.
pub struct Director {
    clock: Clock,
    plan: Plan,
    pool: WorkerPool,
    /// The names of all ports, in order of their numbers.
    ports: Vec<String>,
    control: Option<(ControlSocket, RunInfo)>,
    /// The entrances to its hosts, if it has any; and whether anybody asked for one.
    entrances: Option<Entrances>,
    has_let_in: bool,
    /// A client asked the run to end.
    asked_to_end: bool,
    /// The events of the run.
    events: Events,
    /// Packets for clients that inspect them.
    inspector: Inspector,
    /// The client whose request is being answered.
    asking: Option<Peer>,
    /// Where the input log will be.
    record: Option<PathBuf>,
    pace: Pace,
    /// The processors of the packet threads, if given.
    processors: Vec<usize>,
    /// When packet threads are next asked what their links have delivered.
    next_snapshot: Time,
    /// The time series of its links.
    series: Option<Series>,
    /// The records of its packets. After `pool`: packet threads that fail hand over what they noted.
    packet_records: Option<PacketRecords>,
    /// Set once the packet threads are started.
    host: Option<HostWatch>,
    is_halted: bool,
    /// Its links are inside the kernel and do not change.
    is_in_kernel: bool,
    /// What a rebinding of the router's address translation can change.
    rebindable: Vec<Rebind>,
}

impl Director {
    /// Sets up the network, on as many threads as it is divided into, and on these processors, if any. The clock
    /// starts here.
    ///
    /// # Errors
    /// If the kernel has no descriptor left.
    pub fn new(
        engine: Engine<Load>,
        scenario: Scenario,
        cables: Vec<Cable>,
        (division, processors): (Division, &[usize]),
    ) -> Result<Self, LoopError> {
        let clock = Clock::start();
        for cable in &cables {
            if let CableEnd::Kernel(end) = &cable.end {
                end.set_start(clock.reading(Time::ZERO));
            }
        }
        let plan = Plan::new(scenario);
        let scenario = plan.scenario();
        let inspector = Inspector::new(ElementNames::of(&engine), scenario);
        let ports = engine.ports().map(|port| engine.port_name(port).to_owned()).collect();
        let routers = Routers::new(Arc::new(scenario.clone()), |name| engine.port(name));
        let mut pool = WorkerPool::new().map_err(LoopError::Wait)?;
        let (mut cables, mut engine) = (cables, Some(engine));
        for share in division.into_shares() {
            let own = match engine.take() {
                Some(engine) => engine,
                None => Engine::new(scenario.network())?,
            };
            let is_its = |cable: &mut Cable| {
                let port = cable.plugs.first().and_then(|plug| own.port(&plug.port));
                port.is_some_and(|port: PortId| share.has(narrows_report::Place::Port(port)))
            };
            let its = cables.extract_if(.., is_its).collect();
            let routers = routers.clone();
            let has = |port| share.has(narrows_report::Place::Port(port));
            let sources = Sources::of(
                scenario,
                &own,
                SourceOptions { read_ahead: true, live: true, ..Default::default() },
                has,
            )?;
            pool.add(|inbox| DataLoop::new(clock, own, sources, its, routers, share, inbox))
                .map_err(LoopError::Wait)?;
        }
        if let Some(data) = pool.waiting().next() {
            data.changes.await_first_packet(plan.first_packet());
        }
        Ok(Self {
            clock,
            plan,
            pool,
            ports,
            control: None,
            entrances: None,
            has_let_in: false,
            asked_to_end: false,
            events: Events::default(),
            inspector,
            asking: None,
            record: None,
            pace: Pace::default(),
            processors: processors.to_vec(),
            next_snapshot: Time::ZERO,
            series: None,
            packet_records: None,
            host: None,
            is_halted: false,
            is_in_kernel: false,
            rebindable: Vec::new(),
        })
    }

    /// Writes all inputs and verdicts from now on to an input log. With several threads each has a file beside this
    /// one until [`Director::finish`] merges them. Call it before the network runs.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn record(&mut self, path: &Path, whole: bool) -> Result<(), WriteError> {
        let (started, scenario) = (self.clock.started(), self.plan.scenario());
        for (number, data) in self.pool.waiting().enumerate() {
            let part = if number == 0 { path.to_owned() } else { recorder::part(path, number) };
            data.recorder = Some(Recorder::create(&part, scenario, &data.engine, started, whole)?);
        }
        self.record = Some(path.into());
        Ok(())
    }

    /// Captures delivered and dropped packets from now on, on the first packet thread. Call it before the network
    /// runs.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn capture(&mut self, plan: &CapturePlan) -> Result<(), WriteError> {
        let (started, scenario) = (self.clock.started(), self.plan.scenario());
        if let Some(data) = self.pool.waiting().next() {
            data.capture = Some(Capture::create(plan, scenario, &data.engine, started)?);
        }
        Ok(())
    }

    /// Writes a time series of links. Call it before the network runs.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn keep_series(&mut self, plan: &SeriesPlan) -> Result<(), WriteError> {
        self.series = Some(Series::create(plan, self.pool.len())?);
        Ok(())
    }

    /// Writes a record of each packet. Call it before the network runs.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn keep_packets(&mut self, plan: &PacketsPlan) -> Result<(), WriteError> {
        let engines = self.pool.waiting().map(|data| &mut data.engine);
        let (records, taps) = PacketRecords::create(plan, self.plan.scenario(), engines)?;
        for (data, tap) in self.pool.waiting().zip(taps) {
            data.packets = Some(Box::new(tap));
        }
        self.packet_records = Some(records);
        Ok(())
    }

    /// The links are inside the kernel; counts how its verdicts compare with the engine's. Call it before the network runs.
    pub(crate) fn compare_with_kernel(&mut self, agreement: &Arc<Agreement>) {
        self.is_in_kernel = true;
        self.pool.waiting().for_each(|data| data.in_kernel = Some(agreement.clone()));
    }

    /// Makes the first packet thread the router between its two ports. Call it before the network runs.
    pub(crate) fn route(&mut self, gateway: Gateway) {
        self.rebindable = gateway.rebindable().to_vec();
        if let Some(data) = self.pool.waiting().next() {
            data.gateway = Some(Box::new(gateway));
        }
    }

    /// Sets the wait mode. Default: [`Wait::Hybrid`].
    pub fn wait_by(&mut self, wait: Wait) {
        self.pace.wait = wait;
    }

    /// Requests these bounds on lateness.
    pub fn certify(&mut self, bounds: &[LatenessBound]) {
        self.pool.waiting().for_each(|data| data.meter.certify(bounds.iter().copied()));
        for worker in &mut self.pool.workers {
            worker.seen.certify(bounds.iter().copied());
        }
    }

    /// Accepts requests from a control socket; `info` is the configuration for reports.
    pub fn listen(&mut self, control: ControlSocket, info: RunInfo) {
        self.control = Some((control, info));
    }

    /// Allows others to start programs in the hosts.
    pub fn let_in(&mut self, entrances: Entrances) {
        self.entrances = Some(entrances);
    }

    /// Whether anybody has asked how to start one.
    pub fn has_let_in(&self) -> bool {
        self.has_let_in
    }

    /// Creates the sockets of all feeds, also of feeds added later. Call it before the network runs.
    ///
    /// # Errors
    /// If a socket cannot be created.
    pub fn open_feeds(&mut self, folder: &Path) -> Result<(), FeedError> {
        let failed = |cause| FeedError::Make { feed: "of the run".into(), cause };
        let scenario = self.plan.scenario();
        let mut all = Vec::new();
        for data in self.pool.waiting() {
            let mut servers = FeedServers::new(folder).map_err(failed)?;
            let (inlets, error) = servers.update(&data.wanted_feeds(), lead_in_time(scenario));
            if let Some(error) = error {
                return Err(error);
            }
            let mut feeds = Feeds::new(servers.caller().clone());
            feeds.take(inlets);
            data.feeds = Some(feeds);
            all.push(servers);
        }
        for (worker, servers) in self.pool.workers.iter_mut().zip(all) {
            worker.feeds = Some(servers);
        }
        Ok(())
    }

    /// The environment variables by which programs of the run find feed sockets.
    pub fn feed_environment(&self) -> Vec<(String, PathBuf)> {
        feeds::environment(&self.places())
    }

    /// The sockets of all feeds, in the order of their links.
    fn places(&self) -> Vec<Place> {
        let servers = self.pool.workers.iter().filter_map(|worker| worker.feeds.as_ref());
        let mut all: Vec<_> = servers.flat_map(FeedServers::places).cloned().collect();
        all.sort_by(|a, b| a.link.cmp(&b.link));
        all
    }

    /// Sets how packet threads run, from their start.
    pub fn keep_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// Starts the packet threads, each on its processor if given, and waits until they run as configured. Without
    /// this call, the first [`Director::run`] starts them.
    ///
    /// # Errors
    /// If a processor does not exist, the priority is not allowed, or a thread cannot be started.
    pub fn start(&mut self) -> Result<(), LoopError> {
        if self.host.is_some() {
            return Ok(());
        }
        let processors =
            self.processors.iter().copied().map(Some).chain(std::iter::repeat(self.pace.processor));
        let pace = self.pace;
        self.pool.start(processors.map(|processor| Pace { processor, ..pace }))?;
        let mut delays = Vec::new();
        let count = self.pool.len();
        self.await_all(count, |pool, number, answer| match answer {
            Answer::Ready { delay, backends, confined } => {
                delays.extend(delay);
                pool.workers[number].backends = backends;
                pool.workers[number].confined = confined;
                None
            }
            other => Some(other),
        })?;
        let disturbances = Disturbances::watch(self.clock, delays);
        // Even on an overloaded host, signals are handled and clients get replies.
        scheduling::run_soon();
        self.host = Some(HostWatch { processors: ProcessorTime::read().ok(), disturbances });
        self.happened(Happening::Started, "packets cross the network".into());
        self.keep_ahead();
        Ok(())
    }

    /// Runs until the descriptor is readable (a program has ended) or a signal asks this process to end.
    ///
    /// # Errors
    /// If an interface fails or the input log cannot be written.
    pub fn run(&mut self, ready: Option<BorrowedFd<'_>>, signals: &mut EndSignals) -> Result<End, LoopError> {
        self.run_until(Time::NEVER, ready, signals)
    }

    /// As [`Director::run`], with a maximum duration.
    ///
    /// # Errors
    /// Those of [`Director::run`].
    pub fn run_for(
        &mut self,
        span: std::time::Duration,
        ready: Option<BorrowedFd<'_>>,
        signals: &mut EndSignals,
    ) -> Result<End, LoopError> {
        let span = Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        self.run_until(self.clock.now() + span, ready, signals)
    }

    fn run_until(
        &mut self,
        end: Time,
        ready: Option<BorrowedFd<'_>>,
        signals: &mut EndSignals,
    ) -> Result<End, LoopError> {
        self.start()?;
        loop {
            self.hear()?;
            self.keep_ahead();
            self.keep_recent();
            self.keep_series_going();
            self.keep_inspecting();
            let row = self.series.as_ref().map_or(Time::NEVER, Series::next);
            let until = end.min(self.plan.wake()).min(self.next_snapshot).min(row).min(self.inspector.ends());
            let [called, signal, is_ready, has_clients] = self.sleep(until, ready, signals)?;
            if signal && let Some(signal) = signals.take().map_err(LoopError::Wait)? {
                return Ok(End::Signal(signal));
            }
            if called {
                self.hear()?;
            }
            if is_ready {
                return Ok(End::Ready);
            }
            if has_clients {
                self.serve(ready, signals)?;
                if std::mem::take(&mut self.asked_to_end) {
                    return Ok(End::Signal(EndSignal { signal: Signal::SIGTERM, from_terminal: false }));
                }
            }
            if self.clock.now() >= end {
                return Ok(End::Ready);
            }
        }
    }

    /// Sleeps until an instant, or until a packet thread, a signal, the end of the run, or a client wakes it: returns
    /// which.
    fn sleep(
        &self,
        until: Time,
        ready: Option<BorrowedFd<'_>>,
        signals: &EndSignals,
    ) -> Result<[bool; 4], LoopError> {
        let called = self.pool.called().clone();
        let clients: Vec<_> = self.control.iter().flat_map(|(control, _)| control.descriptors()).collect();
        let mut waiting = vec![Waiting::readable(&*called), Waiting::readable(signals)];
        waiting.extend(ready.iter().map(Waiting::readable));
        let before_clients = waiting.len();
        for (client, reads, writes) in &clients {
            if *reads {
                waiting.push(Waiting::readable(client));
            }
            if *writes {
                waiting.push(Waiting::writable(client));
            }
        }
        // Requests are pending that came together with an answered one.
        let has_requests = self.control.as_ref().is_some_and(|(control, _)| control.has_requests());
        let until = if has_requests { Time::ZERO } else { until };
        let deadline = (until < Time::NEVER).then(|| self.clock.reading(until));
        wait(&mut waiting, deadline).map_err(LoopError::Wait)?;
        let is_ready = |waiting: &Waiting<'_>| waiting.is_ready();
        let has_clients = has_requests || waiting[before_clients..].iter().any(is_ready);
        Ok([
            is_ready(&waiting[0]),
            is_ready(&waiting[1]),
            ready.is_some() && is_ready(&waiting[2]),
            has_clients,
        ])
    }

    /// Prepares timeline steps that are near, and sends them to packet threads.
    fn keep_ahead(&mut self) {
        let now = self.advance();
        if let Some(steps) = self.plan.follow(now, self.pool.len()) {
            let mut steps = steps.into_iter();
            self.pool.tell(|_| Order::Follow(steps.next().unwrap_or_default()));
            self.pool.call();
        }
    }

    /// Advances the current configuration to now, and returns the instant.
    fn advance(&mut self) -> Time {
        let now = self.clock.now();
        let before = self.plan.generation();
        if let Some(at) = self.plan.advance(now) {
            self.pool.tell(|_| Order::Feeds(at));
            self.pool.call();
        }
        for step in self.plan.changes_since(before) {
            self.happened(Happening::Timeline, step);
        }
        now
    }

    /// Reads messages of packet threads.
    fn hear(&mut self) -> Result<(), LoopError> {
        while let Some((number, answer)) = self.pool.next() {
            self.take(number, answer)?;
        }
        Ok(())
    }

    /// Takes an answer that nobody waits for.
    ///
    /// # Errors
    /// If the thread has failed.
    fn take(&mut self, number: usize, answer: Answer) -> Result<(), LoopError> {
        match answer {
            Answer::Failed(error) => return Err(error),
            Answer::Gone => return Err(LoopError::Gone(number)),
            Answer::Sampled(sampled) => self.pool.workers[number].take(sampled),
            Answer::Snapshot(mut snapshot, late) => {
                if let Some(series) = &mut self.series {
                    series.take(number, &mut snapshot);
                }
                self.pool.workers[number].recent.add(*snapshot);
                self.look_at_lateness(number, &late);
            }
            Answer::FirstPacket(at) => self.plan.first_packet_came(at),
            Answer::LeftOut(at, error) => {
                self.plan.note(|| format!("a change at {at} was left out: {error}"));
            }
            Answer::Feeds(wanted) => {
                let scenario = self.plan.scenario();
                let worker = &mut self.pool.workers[number];
                let Some(servers) = &mut worker.feeds else { return Ok(()) };
                let (inlets, error) = servers.update(&wanted, lead_in_time(scenario));
                worker.tell(Order::TakeFeeds(inlets));
                worker.call();
                if let Some(error) = error {
                    self.plan.note(|| error.to_string());
                }
            }
            Answer::Inspected(inspection, links) => self.inspected(inspection, links),
            Answer::Spent(rules) => drop(rules),
            // The answer to a request that timed out.
            Answer::Ready { .. }
            | Answer::Rules(_)
            | Answer::Holds { .. }
            | Answer::Halted
            | Answer::Finished(..) => {}
        }
        Ok(())
    }

    /// Waits for `count` answers; `take` returns the answers that are not among them.
    fn await_all(
        &mut self,
        count: usize,
        mut take: impl FnMut(&mut WorkerPool, usize, Answer) -> Option<Answer>,
    ) -> Result<(), LoopError> {
        let give_up = self.clock.now() + PATIENCE;
        let mut missing: Vec<usize> = (0..count).collect();
        while let Some(&first) = missing.first() {
            while let Some((number, answer)) = self.pool.next() {
                match take(&mut self.pool, number, answer) {
                    None => missing.retain(|&other| other != number),
                    // The end of a run may be the end of an interface. Its thread has stopped, and still answers.
                    Some(Answer::Failed(LoopError::CableEnd(error))) if self.is_halted && error.is_down() => {
                        self.plan.note(|| error.to_string());
                    }
                    Some(other) => self.take(number, other)?,
                }
            }
            if missing.is_empty() {
                break;
            }
            if self.clock.now() >= give_up {
                return Err(LoopError::Stuck(first, PATIENCE.nanos() / 1_000_000_000));
            }
            let called = self.pool.called().clone();
            let deadline = Some(self.clock.reading(give_up));
            wait(&mut [Waiting::readable(&*called)], deadline).map_err(LoopError::Wait)?;
        }
        Ok(())
    }

    /// The currently configured mean delay from each host to each other host that it has a path to.
    pub fn one_ways(&self) -> Vec<OneWay> {
        narrows_report::one_ways(self.plan.scenario())
    }

    /// Adds something that has just happened to the notes of the report.
    pub(crate) fn note_now(&mut self, note: &str) {
        let now = self.clock.now();
        self.plan.note(|| format!("at {now}: {note}"));
    }

    /// Whether packets are inside the network or wait for an interface; and the age of the packets being read.
    ///
    /// # Errors
    /// If a packet thread has failed.
    pub(crate) fn holds_packets(&mut self) -> Result<(bool, Duration), LoopError> {
        self.pool.tell(|_| Order::Holds);
        self.pool.call();
        let (count, mut any, mut most) = (self.pool.len(), false, Duration::ZERO);
        self.await_all(count, |_, _, answer| match answer {
            Answer::Holds { packets, behind } => {
                any |= packets;
                most = most.max(behind);
                None
            }
            other => Some(other),
        })?;
        Ok((any, most))
    }

    /// Stops the packet threads: the run is over, and what its programs still send while they are ended is not part
    /// of it.
    ///
    /// # Errors
    /// If a thread has failed or does not stop.
    pub fn halt(&mut self) -> Result<(), LoopError> {
        if std::mem::replace(&mut self.is_halted, true) {
            return Ok(());
        }
        self.start()?;
        self.pool.tell(|_| Order::Halt);
        self.pool.call();
        let count = self.pool.len();
        self.await_all(count, |_, _, answer| match answer {
            Answer::Halted => None,
            other => Some(other),
        })
    }
}

/// The lead of a link's feed in time, if it is given so: the engine only knows it in values.
fn lead_in_time(scenario: &Scenario) -> impl Fn(&str, &str) -> Option<Duration> {
    |link, feed| {
        let links = scenario.links.iter().flat_map(|link| link.directions());
        let mut of_link = links.filter(|(name, _)| name == link);
        of_link.find_map(|(_, direction)| direction.feeds().into_iter().find(|used| used.name == feed)?.span)
    }
}
