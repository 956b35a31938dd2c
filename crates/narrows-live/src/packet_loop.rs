//! The packet loop: a thread that receives, hands in, polls and sends; or several, for parts of a network that have nothing
//! to do with one another (`share.rs`).
//!
//! Each turn reads the clock, drains every port in a fixed order, sorts what came by (instant, port, sequence), hands in
//! what had arrived when the turn began, and releases what the engine scheduled until then. Between turns it waits: by
//! timer until shortly before the next event, then by turning without pause, because a timer wakes a thread some 50 µs
//! late. Being late delays the release of a packet and adds to no later packet: the engine works with the instants at
//! which packets arrived by the kernel's stamps, and with its own schedule.

mod answer;
mod attend;
mod crew;
mod disturbance;
mod exchange;
mod feed;
mod host;
mod intake;
mod ipfw;
mod looks;
mod mate;
mod pace;
mod release;
mod share;
mod trains;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use narrows_core::{BuildError, Duration, Engine, PortId, Time};
use narrows_frame::WriteError;
use narrows_frame::capture::verdicts::Passage;
use narrows_io::cable_end::CableEndError;
use narrows_io::exchange::Exchange;
use narrows_io::frame::{Frame, FramePool};
use narrows_io::packet_socket::{ReceiveBatch, Received};
use narrows_io::wait::{EndSignal, EndSignals, wait};
use narrows_report::{LatenessBound, Meter, OneWay, Report, RunInfo};
use narrows_scenario::{Scenario, Timeline};

use self::crew::{Account, Change, Crew, Mailbox, Order, Outcome};
use self::host::HostBefore;
use self::looks::Looks;
use self::pace::{Off, Rest};
pub use self::pace::{Pace, PaceError, Wait};
use self::share::Share;
pub use self::share::Threads;
use self::trains::Trains;
use crate::capture::{Capture, CapturePlan};
use crate::clock::Clock;
use crate::control::ControlSocket;
use crate::feeds::Feeds;
use crate::recorder::{self, Recorder};
use crate::router::Routers;
use crate::stage::{self, Cable};

/// How long before an event the loop stops sleeping: twice as long as timers were late of late, within these. A timer
/// wakes a thread some 50 µs late, and a processor that had fallen asleep on a virtual machine several times that.
const WAKE_EARLY: std::ops::RangeInclusive<u64> = 100_000..=1_000_000;
/// What a turn takes in which nothing comes, about. An event that falls into it would wait for its end, so one that is
/// nearer than this is awaited before the turn.
const IDLE_TURN: Duration = Duration::from_micros(2);
/// How long after a packet the loop does not sleep: where packets come more often, waking up for each would cost more
/// than looking for them.
const AWAKE: Duration = Duration::from_micros(20);
/// Turns without a pause before signals, control socket and programs are looked at.
const TURNS_UNATTENDED: u32 = 256;

/// A packet that has arrived and is not in the engine yet.
struct Input {
    at: Time,
    port: PortId,
    sequence: u64,
    received: Received,
}

/// A packet on its way out.
struct Outgoing {
    /// When it was to leave, and where it came from; nothing for what we answer ourselves.
    passage: Option<Passage>,
    frame: Frame,
}

impl AsRef<[u8]> for Outgoing {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

impl AsMut<Frame> for Outgoing {
    fn as_mut(&mut self) -> &mut Frame {
        &mut self.frame
    }
}

struct Port {
    id: PortId,
    /// Where its frames come from and go to; nothing at a router, which nobody is connected to.
    cable: Option<Cable>,
    outgoing: Vec<Outgoing>,
    /// Frames answered here instead of crossing the network: address resolution and its like.
    answered: u64,
    /// The instant of the packet that came last.
    last: Time,
    ring_drops: u64,
    trains: Trains,
    /// Frames that the interface refused after it had taken them.
    refused: u64,
}

/// What ends a run in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What it was waiting for is ready: the program has ended, or the time is over.
    Ready,
    /// We were asked to end, by this signal.
    Signal(EndSignal),
}

/// What went wrong in the loop.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// An interface.
    #[error(transparent)]
    CableEnd(#[from] CableEndError),
    /// Waiting.
    #[error("cannot wait for packets: {0}")]
    Wait(io::Error),
    /// The record.
    #[error(transparent)]
    Record(#[from] WriteError),
    /// The processor, or the priority.
    #[error(transparent)]
    Pace(#[from] PaceError),
    /// The network of another thread, which is the same as the first one's.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Another thread.
    #[error("cannot start a thread of the packet loop: {0}")]
    Thread(io::Error),
    /// One that has ended when it should not.
    #[error("a thread of the packet loop broke off, which is a fault of narrows; `--shards 1` does without")]
    Gone,
}

/// A network that runs in real time.
pub struct PacketLoop {
    clock: Clock,
    engine: Engine<Frame>,
    scenario: Scenario,
    timeline: Timeline,
    ports: Vec<Port>,
    /// Those that have something to send, by their places.
    sending: Vec<u16>,
    /// Whether some interface did not take all of it.
    is_stuck: bool,
    looks: Looks,
    /// What frames are sent and received by as the loop waits, where the kernel offers that.
    exchange: Option<Exchange>,
    routers: Routers,
    meter: Meter,
    recorder: Option<Recorder>,
    capture: Option<Capture>,
    /// Where the record will be.
    record: Option<PathBuf>,
    /// Before the control socket: its folder is removed with that.
    feeds: Option<Feeds>,
    control: Option<(ControlSocket, RunInfo)>,
    inputs: Vec<Input>,
    sequence: u64,
    frames: FramePool,
    batch: ReceiveBatch,
    received: Vec<Received>,
    /// Room for a frame that is made here.
    made: Vec<u8>,
    /// How long before an event to stop sleeping.
    wake_early: Duration,
    pace: Pace,
    /// Pauses that real-time priority asks for.
    rest: Rest,
    /// The instant of the last packet that came.
    last_input: Time,
    before: HostBefore,
    /// What it has of the network.
    share: Share,
    /// The loops of the rest, where this one directs them, and their processors, if any are named, after its own.
    crew: Crew,
    processors: Vec<usize>,
    /// Where another loop directs this one, and what that has said besides changes.
    mailbox: Option<Mailbox>,
    orders: VecDeque<Order>,
    /// Changes that everybody is to make, in order, and what came of the last one.
    changes: VecDeque<Arc<Change>>,
    outcome: Option<Outcome>,
    notes: Vec<String>,
    /// How many more notes there would be.
    unlisted: u64,
}

impl PacketLoop {
    /// Sets the loop up. The clock starts here.
    pub fn new(engine: Engine<Frame>, scenario: Scenario, cables: Vec<Cable>) -> Self {
        Self::begun(Clock::start(), engine, scenario, cables)
    }

    fn begun(clock: Clock, engine: Engine<Frame>, scenario: Scenario, cables: Vec<Cable>) -> Self {
        let mut cables: BTreeMap<String, Cable> =
            cables.into_iter().map(|cable| (cable.name.clone(), cable)).collect();
        let port = |id| Port {
            id,
            cable: cables.remove(engine.port_name(id)),
            outgoing: Vec::new(),
            answered: 0,
            last: Time::ZERO,
            ring_drops: 0,
            trains: Trains::default(),
            refused: 0,
        };
        // The n-th has number n.
        let ports: Vec<Port> = engine.ports().map(port).collect();
        let routers = Routers::new(&scenario, |name| engine.port(name));
        Self {
            clock,
            timeline: scenario.timeline(),
            scenario,
            meter: Meter::new(ports.len()),
            looks: Looks::new(&ports),
            ports,
            sending: Vec::new(),
            is_stuck: false,
            exchange: None,
            routers,
            engine,
            recorder: None,
            capture: None,
            record: None,
            feeds: None,
            control: None,
            inputs: Vec::new(),
            sequence: 0,
            frames: FramePool::default(),
            batch: ReceiveBatch::new(),
            received: Vec::new(),
            made: Vec::new(),
            wake_early: Duration::from_nanos(*WAKE_EARLY.start()),
            pace: Pace::default(),
            rest: Rest::none(),
            last_input: Time::ZERO,
            before: HostBefore::read(clock),
            share: Share::default(),
            crew: Crew::default(),
            processors: Vec::new(),
            mailbox: None,
            orders: VecDeque::new(),
            changes: VecDeque::new(),
            outcome: None,
            notes: Vec::new(),
            unlisted: 0,
        }
    }

    /// Keeps a record of all inputs and verdicts from here on. Of several threads each has a file beside this one until
    /// [`PacketLoop::finish`] joins them.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn record(&mut self, path: &Path, whole: bool) -> Result<(), WriteError> {
        let started = self.clock.started();
        self.recorder = Some(Recorder::create(path, &self.scenario, &self.engine, started, whole)?);
        for (number, other) in self.crew.waiting() {
            other.record(&recorder::part(path, number), whole)?;
        }
        self.record = Some(path.into());
        Ok(())
    }

    /// Captures what leaves and what is dropped from here on.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn capture(&mut self, plan: &CapturePlan) -> Result<(), WriteError> {
        let started = self.clock.started();
        self.capture = Some(Capture::create(plan, &self.scenario, &self.engine, started)?);
        Ok(())
    }

    /// Waits in another way than [`Wait::Hybrid`].
    pub fn wait_by(&mut self, wait: Wait) {
        self.pace.wait = wait;
    }

    /// Asks for these bounds on lateness.
    pub fn certify(&mut self, bounds: &[LatenessBound]) {
        self.meter.certify(bounds.iter().copied());
        self.crew.waiting().for_each(|(_, other)| other.certify(bounds));
    }

    /// Takes requests from a control socket; `info` is what reports begin with.
    pub fn listen(&mut self, control: ControlSocket, info: RunInfo) {
        self.control = Some((control, info));
    }

    /// Runs until the descriptor is readable (a program has ended) or a signal asks us to end.
    ///
    /// # Errors
    /// When an interface fails or the record cannot be written.
    pub fn run(&mut self, ready: Option<BorrowedFd<'_>>, signals: &mut EndSignals) -> Result<End, LoopError> {
        self.run_until(Time::NEVER, ready, signals)
    }

    /// The same, for no longer than this.
    ///
    /// # Errors
    /// As of [`PacketLoop::run`].
    pub fn run_for(
        &mut self,
        span: std::time::Duration,
        ready: Option<BorrowedFd<'_>>,
        signals: &mut EndSignals,
    ) -> Result<End, LoopError> {
        let span = Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        self.clock.go_on();
        self.run_until(self.clock.now() + span, ready, signals)
    }

    fn run_until(
        &mut self,
        end: Time,
        ready: Option<BorrowedFd<'_>>,
        signals: &mut EndSignals,
    ) -> Result<End, LoopError> {
        let ended = self.keep_going(end, |packets, until| packets.attend(until, ready, signals))?;
        Ok(ended.unwrap_or(End::Ready))
    }

    /// Turns and waits until an instant, or until `attend` has something: that sleeps until an instant at the longest, and
    /// looks after all that is not a packet.
    fn keep_going<T>(
        &mut self,
        end: Time,
        mut attend: impl FnMut(&mut Self, Time) -> Result<Option<T>, LoopError>,
    ) -> Result<Option<T>, LoopError> {
        let mut unattended = 0;
        self.clock.go_on();
        loop {
            self.turn_inside()?;
            if !self.sends_in_waiting() || self.rest.is_needed() || self.clock.now() >= end {
                self.let_leave()?;
            }
            self.call_feeds();
            let now = self.clock.now();
            if now >= end {
                return Ok(None);
            }
            let next = self.next_event().min(end);
            if let Some(until) = self.rest.due(now, next) {
                let off = Off::since(now);
                wait(&mut [], Some(self.clock.reading(until))).map_err(LoopError::Wait)?;
                self.clock.go_on();
                let now = self.clock.now();
                self.rest.rested(off.until(now), now);
                continue;
            }
            let early = match self.pace.wait {
                Wait::Hybrid => self.wake_early,
                Wait::Spin => Duration::from_nanos(u64::MAX),
                Wait::Timer => Duration::ZERO,
            };
            let awake = self.pace.wait == Wait::Hybrid && now.since(self.last_input) <= AWAKE;
            let sleeps = next.since(now) > early && !awake;
            if !sleeps && next.since(now) < IDLE_TURN {
                self.clock.spin_until(next);
            }
            unattended += 1;
            if !sleeps && unattended < TURNS_UNATTENDED {
                continue;
            }
            unattended = 0;
            let until = if sleeps { next.before(early) } else { now };
            let off = self.rest.is_needed().then(|| Off::since(now));
            let found = attend(self, until)?;
            if let Some(off) = off {
                let now = self.clock.now();
                self.rest.slept(off.until(now), now);
            }
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// The mean delay from each host to each other that it has a path to, as configured now.
    pub fn one_ways(&self) -> Vec<OneWay> {
        narrows_report::one_ways(&self.scenario)
    }

    /// Closes the record, and reports.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn finish(mut self, info: &mut RunInfo) -> Result<Report, LoopError> {
        self.clock.go_on();
        info.update(&self.scenario);
        let (end, others) = self.finish_crew(info)?;
        self.count_lost()?;
        info.span = (Time::ZERO, end);
        let own = self.account(info);
        let answered: u64 = own.answered + others.iter().map(|other| other.answered).sum::<u64>();
        if answered > 0 {
            info.notes
                .push(format!("address resolution: {answered} frames were answered or ended at the ports"));
        }
        info.notes.extend(all_notes(&own, &others));
        self.close_record()?;
        if let Some(path) = self.record.as_ref().filter(|_| self.crew.len() > 0) {
            recorder::join(path, self.crew.len())?;
        }
        let capture = self.capture.take().map(|capture| capture.finish(self.engine.now()));
        Ok(Report { capture, ..self.report(info, own, others) })
    }

    fn close_record(&mut self) -> Result<(), LoopError> {
        match self.recorder.take() {
            Some(recorder) => Ok(recorder.finish(&self.engine)?),
            None => Ok(()),
        }
    }

    /// When there is something to do without any packet arriving.
    fn next_event(&self) -> Time {
        let waiting = self.inputs.first().map(|input| input.at);
        let change = self.changes.front().and_then(|change| change.at());
        // Nobody waits for what happens inside, but for those who are asked for a delay or a rate then.
        let asks = self.feeds.as_ref().is_some_and(|feeds| !feeds.is_empty());
        let engine = if asks { self.engine.next_event() } else { self.engine.next_delivery() };
        let all = [engine, self.timeline.peek(), waiting, change];
        all.into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    /// Receives, hands in, releases, sends. Gives the instant up to which all has been done.
    fn turn(&mut self) -> Result<Time, LoopError> {
        let watermark = self.turn_inside()?;
        self.let_leave()?;
        Ok(watermark)
    }

    /// All of it but sending.
    fn turn_inside(&mut self) -> Result<Time, LoopError> {
        // What arrived before now is in the sockets by now.
        let watermark = self.clock.now();
        self.heed();
        let watermark = watermark.min(self.receive()?);
        self.receive_values(watermark);
        self.hand_in(watermark)?;
        self.release(watermark)?;
        self.tell_feeds();
        Ok(watermark)
    }

    fn let_leave(&mut self) -> Result<(), LoopError> {
        self.send()?;
        if let Some(capture) = &mut self.capture {
            capture.turn_ended(self.engine.now());
        }
        Ok(())
    }
}

/// What the first loop notes, and what only others do: a change is noted by each.
fn all_notes(own: &Account, others: &[Account]) -> Vec<String> {
    let mut all = own.notes.clone();
    for note in others.iter().flat_map(|other| &other.notes) {
        if !all.contains(note) {
            all.push(note.clone());
        }
    }
    all
}

impl Drop for PacketLoop {
    fn drop(&mut self) {
        stage::close(self.ports.drain(..).filter_map(|port| port.cable).collect());
    }
}
