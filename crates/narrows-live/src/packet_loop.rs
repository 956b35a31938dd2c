//! The packet loop: one thread that receives, hands in, polls and sends.
//!
//! Each turn reads the clock, drains every port in a fixed order, sorts what came by (instant, port, sequence), hands in
//! what had arrived when the turn began, and releases what the engine scheduled until then. Between turns it waits: by
//! timer until shortly before the next event, then by turning without pause, because a timer wakes a thread some 50 µs
//! late. Being late delays the release of a packet and adds to no later packet: the engine works with the instants at
//! which packets arrived by the kernel's stamps, and with its own schedule.

mod attend;
mod feed;
mod release;

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use narrows_core::{Duration, Engine, PortId, Time};
use narrows_frame::parse::parse_cut;
use narrows_frame::{LinkLayer, WriteError};
use narrows_io::frame::{Frame, FramePool};
use narrows_io::packet_socket::{PacketSocketError, ReceiveBatch, Received};
use narrows_io::wait::{EndSignal, EndSignals};
use narrows_report::{Meter, OneWay, Report, RunInfo};
use narrows_scenario::{Scenario, Timeline};

use crate::clock::Clock;
use crate::control::ControlSocket;
use crate::feeds::Feeds;
use crate::local::Fate;
use crate::recorder::Recorder;
use crate::stage::Cable;

/// How long before an event the loop stops sleeping: twice as long as timers were late of late, within these. A timer
/// wakes a thread some 50 µs late, and a processor that had fallen asleep on a virtual machine several times that.
const WAKE_EARLY: std::ops::RangeInclusive<u64> = 100_000..=1_000_000;
/// What a turn takes in which nothing comes, about. An event that falls into it would wait for its end, so one that is
/// nearer than this is awaited before the turn.
const IDLE_TURN: Duration = Duration::from_micros(2);
/// How long after a packet the loop does not sleep: where packets come more often, waking up for each would cost more
/// than looking for them.
const AWAKE: Duration = Duration::from_micros(20);
/// Batches received from one port before the others have their turn.
const BATCHES_A_TURN: usize = 4;
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
    /// When it was scheduled; nothing for what we answer ourselves.
    scheduled: Option<Time>,
    frame: Frame,
}

impl AsRef<[u8]> for Outgoing {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

struct Port {
    id: PortId,
    cable: Cable,
    outgoing: Vec<Outgoing>,
    /// Frames answered here instead of crossing the network: address resolution and its like.
    answered: u64,
    /// The instant of the packet that came last.
    last: Time,
    ring_drops: u64,
}

/// How the loop waits for the next event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// A timer until shortly before it, then looking without pause. How shortly follows from how late timers were.
    #[default]
    Hybrid,
    /// Looking without pause.
    Spin,
    /// A timer alone.
    Timer,
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
    PacketSocket(#[from] PacketSocketError),
    /// Waiting.
    #[error("cannot wait for packets: {0}")]
    Wait(io::Error),
    /// The record.
    #[error(transparent)]
    Record(#[from] WriteError),
}

/// A network that runs in real time.
pub struct PacketLoop {
    clock: Clock,
    engine: Engine<Frame>,
    scenario: Scenario,
    timeline: Timeline,
    ports: Vec<Port>,
    meter: Meter,
    recorder: Option<Recorder>,
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
    wait: Wait,
    /// The instant of the last packet that came.
    last_input: Time,
    notes: Vec<String>,
    /// How many more notes there would be.
    unlisted: u64,
}

impl PacketLoop {
    /// Sets the loop up. The clock starts here.
    pub fn new(engine: Engine<Frame>, scenario: Scenario, cables: Vec<Cable>) -> Self {
        let mut ports: Vec<Port> = cables
            .into_iter()
            .filter_map(|cable| {
                let id = engine.port(&cable.name)?;
                Some(Port { id, cable, outgoing: Vec::new(), answered: 0, last: Time::ZERO, ring_drops: 0 })
            })
            .collect();
        // Ports of the engine are numbered by name: the n-th has number n.
        ports.sort_by_key(|port| port.id);
        Self {
            clock: Clock::start(),
            timeline: scenario.timeline(),
            scenario,
            meter: Meter::new(ports.len()),
            ports,
            engine,
            recorder: None,
            feeds: None,
            control: None,
            inputs: Vec::new(),
            sequence: 0,
            frames: FramePool::default(),
            batch: ReceiveBatch::new(),
            received: Vec::new(),
            made: Vec::new(),
            wake_early: Duration::from_nanos(*WAKE_EARLY.start()),
            wait: Wait::default(),
            last_input: Time::ZERO,
            notes: Vec::new(),
            unlisted: 0,
        }
    }

    /// Keeps a record of all inputs and verdicts from here on.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn record(&mut self, path: &Path, whole: bool) -> Result<(), WriteError> {
        let started = self.clock.started();
        self.recorder = Some(Recorder::create(path, &self.scenario, &self.engine, started, whole)?);
        Ok(())
    }

    /// Waits in another way than [`Wait::Hybrid`].
    pub fn wait_by(&mut self, wait: Wait) {
        self.wait = wait;
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
        self.run_until(self.clock.now() + span, ready, signals)
    }

    fn run_until(
        &mut self,
        end: Time,
        ready: Option<BorrowedFd<'_>>,
        signals: &mut EndSignals,
    ) -> Result<End, LoopError> {
        let mut unattended = 0;
        loop {
            self.turn()?;
            self.call_feeds();
            let now = self.clock.now();
            if now >= end {
                return Ok(End::Ready);
            }
            let next = self.next_event().min(end);
            let early = match self.wait {
                Wait::Hybrid => self.wake_early,
                Wait::Spin => Duration::from_nanos(u64::MAX),
                Wait::Timer => Duration::ZERO,
            };
            let awake = self.wait == Wait::Hybrid && now.since(self.last_input) <= AWAKE;
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
            if let Some(end) = self.attend(until, ready, signals)? {
                return Ok(end);
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
        self.count_lost()?;
        info.span = (Time::ZERO, self.clock.now());
        info.update_classes(&self.scenario);
        let answered: u64 = self.ports.iter().map(|port| port.answered).sum();
        if answered > 0 {
            info.notes
                .push(format!("address resolution: {answered} frames were answered or ended at the ports"));
        }
        info.notes.extend(self.notes());
        if let Some(recorder) = self.recorder.take() {
            recorder.finish(&self.engine)?;
        }
        let mut report = Report::new(info, &self.engine, &self.meter);
        self.report_feeds(&mut report);
        Ok(report)
    }

    /// When there is something to do without any packet arriving.
    fn next_event(&self) -> Time {
        let waiting = self.inputs.first().map(|input| input.at);
        let all = [self.engine.next_event(), self.timeline.peek(), waiting];
        all.into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    /// Receives, hands in, releases, sends. Gives the instant up to which all has been done.
    fn turn(&mut self) -> Result<Time, LoopError> {
        // What arrived before now is in the sockets by now.
        let watermark = self.clock.now();
        let watermark = watermark.min(self.receive()?);
        self.receive_values(watermark);
        self.hand_in(watermark)?;
        self.release(watermark)?;
        self.tell_feeds();
        self.send()?;
        Ok(watermark)
    }

    /// Takes what the ports have, up to a budget. Gives the instant up to which everything has been taken: the engine
    /// may go no further, or what is left in a socket would come too late for its instant.
    fn receive(&mut self) -> Result<Time, LoopError> {
        let mut complete = Time::NEVER;
        for at in 0..self.ports.len() {
            let mut more_from = Time::NEVER;
            for _ in 0..BATCHES_A_TURN {
                let port = &mut self.ports[at];
                let count =
                    port.cable.socket.receive(&mut self.batch, &mut self.frames, &mut self.received)?;
                let last = self.sort_out(at);
                more_from = if count < ReceiveBatch::FRAMES { Time::NEVER } else { last };
                if count < ReceiveBatch::FRAMES {
                    break;
                }
            }
            complete = complete.min(more_from);
        }
        self.inputs.sort_by_key(|input| (input.at, input.port, input.sequence));
        Ok(complete)
    }

    /// Tells frames that stay at the port from those that cross the network. Gives the instant of the last one.
    fn sort_out(&mut self, at: usize) -> Time {
        let now = self.clock.now();
        let port = &mut self.ports[at];
        let mut last = now;
        for received in self.received.drain(..) {
            // Packets of one port come in order, however the wall clock was sampled.
            last = received.stamp.map_or(now, |stamp| self.clock.instant(stamp)).max(port.last);
            port.last = last;
            self.last_input = last;
            let fate = port.cable.neighbours.judge(&received.frame, &mut self.made);
            if fate == Fate::Crosses {
                let (port, sequence) = (port.id, self.sequence);
                self.inputs.push(Input { at: last, port, sequence, received });
                self.sequence += 1;
                continue;
            }
            port.answered += 1;
            self.frames.recycle(received.frame);
            if fate == Fate::Answered {
                port.outgoing.push(Outgoing { scheduled: None, frame: self.frames.frame(&self.made) });
            }
        }
        last
    }

    /// Hands in what had arrived by the watermark, and what the timeline says, in order of their instants. Something
    /// that comes from before what the engine has done already counts as arriving now.
    fn hand_in(&mut self, watermark: Time) -> Result<(), LoopError> {
        let count = self.inputs.partition_point(|input| input.at <= watermark);
        let mut inputs = std::mem::take(&mut self.inputs);
        for Input { at, port, received, .. } in inputs.drain(..count) {
            // What counts from the first packet may begin with it: then it is in force for that packet.
            self.timeline.first_packet(at);
            self.apply_timeline(at)?;
            self.hand_in_values(at)?;
            let frame = received.frame;
            let length = received.original_length as u32; // a frame has at most some 64 KiB
            let packet = parse_cut(LinkLayer::Ethernet, &frame, length);
            if let Some(recorder) = &mut self.recorder {
                let taken = at.max(self.engine.now());
                recorder.arrived(taken, taken.since(at), port, &frame, packet.examined)?;
            }
            self.meter.input_lateness(port, self.clock.now().since(at));
            if at < self.engine.now() {
                self.meter.straggled(self.engine.now().since(at));
            }
            self.engine.hand_in(at, port, packet.with(frame));
        }
        self.inputs = inputs;
        self.apply_timeline(watermark)?;
        self.hand_in_values(watermark)
    }

    fn apply_timeline(&mut self, until: Time) -> Result<(), LoopError> {
        while self.timeline.peek().is_some_and(|at| at <= until)
            && let Some(event) = self.timeline.next()
        {
            // The scenario tried its timeline when it was read; what `set` changed since may make a step wrong.
            if let Err(error) = self.assign(event.at, &event.set)? {
                self.note(|| format!("the timeline at {} was left out: {error}", event.at));
            }
        }
        Ok(())
    }
}
