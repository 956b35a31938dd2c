//! The packet loop: one thread that receives, hands in, polls and sends.
//!
//! Each turn reads the clock, drains every port in a fixed order, sorts what came by (instant, port, sequence), hands in
//! what had arrived when the turn began, and releases what the engine scheduled until then. Between turns it waits: by
//! timer until shortly before the next event, then by turning without pause, because a timer wakes a thread some 50 µs
//! late. Being late delays the release of a packet and adds to no later packet: the engine works with the instants at
//! which packets arrived by the kernel's stamps, and with its own schedule.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use narrows_core::{Body, Bytes, DropReason, Duration, Engine, Event, PortId, Time, Verdict};
use narrows_frame::edit::Edits;
use narrows_frame::parse::parse_cut;
use narrows_frame::{LinkLayer, WriteError};
use narrows_io::frame::{Frame, FramePool};
use narrows_io::packet_socket::{PacketSocketError, ReceiveBatch, Received, SendStop};
use narrows_io::wait::{EndSignal, EndSignals, Waiting, wait};
use narrows_report::{Meter, OneWay, Report, RunInfo};
use narrows_scenario::{Scenario, ScenarioError, Timeline};

use crate::clock::Clock;
use crate::control::{ControlSocket, Reply, Request};
use crate::local::Fate;
use crate::recorder::Recorder;
use crate::stage::Cable;

/// How long before an event the loop stops sleeping. Timers here wake a thread 46 to 56 µs late in the median.
const WAKE_EARLY: Duration = Duration::from_micros(120);
/// Batches received from one port before the others have their turn.
const BATCHES_A_TURN: usize = 4;
/// Turns without a pause before signals, control socket and programs are looked at.
const TURNS_UNATTENDED: u32 = 256;
/// Frames sent by one call. They count as released when it begins, so it should not take long.
const SENT_AT_ONCE: usize = 16;
/// Changes that a report lists.
const MOST_NOTES: usize = 24;
/// How soon a port whose interface is full is tried again.
const RETRY: Duration = Duration::from_micros(100);
/// Frames that wait for an interface whose queue is full; what comes beyond counts as a failure to send.
const MOST_UNSENT: usize = 4096;

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
    control: Option<(ControlSocket, RunInfo)>,
    inputs: Vec<Input>,
    sequence: u64,
    frames: FramePool,
    batch: ReceiveBatch,
    received: Vec<Received>,
    /// Room for a frame that is made here.
    made: Vec<u8>,
    notes: Vec<String>,
    /// Changes beyond those in the notes.
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
            control: None,
            inputs: Vec::new(),
            sequence: 0,
            frames: FramePool::default(),
            batch: ReceiveBatch::new(),
            received: Vec::new(),
            made: Vec::new(),
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
            let now = self.clock.now();
            if now >= end {
                return Ok(End::Ready);
            }
            let next = self.next_event().min(end);
            let sleeps = next > now + WAKE_EARLY;
            unattended += 1;
            if !sleeps && unattended < TURNS_UNATTENDED {
                continue;
            }
            unattended = 0;
            let until = if sleeps { next.before(WAKE_EARLY) } else { now };
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
        let answered: u64 = self.ports.iter().map(|port| port.answered).sum();
        if answered > 0 {
            info.notes
                .push(format!("address resolution: {answered} frames were answered or ended at the ports"));
        }
        info.notes.extend(self.notes());
        if let Some(recorder) = self.recorder.take() {
            recorder.finish(&self.engine)?;
        }
        Ok(Report::new(info, &self.engine, &self.meter))
    }

    /// When there is something to do without any packet arriving.
    fn next_event(&self) -> Time {
        let waiting = self.inputs.first().map(|input| input.at);
        let all = [self.engine.next_event(), self.timeline.peek(), waiting];
        all.into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    /// Waits until an instant, or until a packet, a signal, a request or what ends the run comes.
    fn attend(
        &mut self,
        until: Time,
        ready: Option<BorrowedFd<'_>>,
        signals: &mut EndSignals,
    ) -> Result<Option<End>, LoopError> {
        // A port whose interface is full must be tried again before long.
        let unsent = self.ports.iter().any(|port| !port.outgoing.is_empty());
        let until = if unsent { until.min(self.clock.now() + RETRY) } else { until };
        let deadline = (until < Time::NEVER).then(|| self.clock.reading(until));
        let sockets: Vec<_> = self.ports.iter().map(|port| port.cable.socket.as_fd()).collect();
        let clients: Vec<_> = self.control.iter().flat_map(|(control, _)| control.descriptors()).collect();
        let mut waiting: Vec<Waiting<'_>> = vec![Waiting::readable(signals)];
        waiting.extend(ready.iter().map(Waiting::readable));
        waiting.extend(sockets.iter().map(Waiting::readable));
        for (client, reads, writes) in &clients {
            if *reads {
                waiting.push(Waiting::readable(client));
            }
            if *writes {
                waiting.push(Waiting::writable(client));
            }
        }
        wait(&mut waiting, deadline).map_err(LoopError::Wait)?;
        let (signalled, ended) = (waiting[0].is_ready(), ready.is_some() && waiting[1].is_ready());
        if signalled && let Some(signal) = signals.take().map_err(LoopError::Wait)? {
            return Ok(Some(End::Signal(signal)));
        }
        if let Some((mut control, info)) = self.control.take() {
            let mut failed = None;
            control.serve(|request| match self.answer(request, &info) {
                Ok(reply) => reply,
                Err(error) => {
                    let reply = Reply::Error(error.to_string());
                    failed = Some(error);
                    reply
                }
            });
            self.control = Some((control, info));
            if let Some(error) = failed {
                return Err(error);
            }
        }
        if ended {
            // What the program sent last is in the sockets.
            self.turn()?;
            return Ok(Some(End::Ready));
        }
        Ok(None)
    }

    fn answer(&mut self, request: Request, info: &RunInfo) -> Result<Reply, LoopError> {
        // Brings the engine to now: on a quiet network its last turn may be long ago.
        let now = self.turn()?;
        match request {
            Request::Set { assignments } => Ok(match self.assign(now, &assignments)? {
                Ok(()) => Reply::Ok(serde_json::Value::Null),
                Err(error) => Reply::Error(error.to_string()),
            }),
            Request::Stats {} => {
                self.count_lost()?;
                let notes = [info.notes.clone(), self.notes()].concat();
                let info = RunInfo { span: (Time::ZERO, self.clock.now()), notes, ..info.clone() };
                let report = Report::new(&info, &self.engine, &self.meter);
                let text = report.text().to_string();
                Ok(match serde_json::to_value(report) {
                    Ok(report) => Reply::Ok(serde_json::json!({ "report": report, "text": text })),
                    Err(error) => Reply::Error(error.to_string()),
                })
            }
        }
    }

    /// Asks the sockets how many packets the kernel had no room for.
    fn count_lost(&mut self) -> Result<(), LoopError> {
        for port in &mut self.ports {
            let dropped = port.cable.socket.statistics()?.dropped;
            let new = dropped - port.ring_drops;
            self.meter.receive_ring_dropped(port.id, new);
            if let Some(recorder) = self.recorder.as_mut().filter(|_| new > 0) {
                recorder.lost(self.engine.now(), port.id, new)?;
            }
            port.ring_drops = dropped;
        }
        Ok(())
    }

    /// Receives, hands in, releases, sends. Gives the instant up to which all has been done.
    fn turn(&mut self) -> Result<Time, LoopError> {
        // What arrived before now is in the sockets by now.
        let watermark = self.clock.now();
        let watermark = watermark.min(self.receive()?);
        self.hand_in(watermark)?;
        self.release(watermark)?;
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
        self.apply_timeline(watermark)
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

    /// Changes links by assignments such as `access.down.rate=2mbit`: all of them, or none where one is wrong.
    fn assign(&mut self, at: Time, assignments: &[String]) -> Result<Result<(), ScenarioError>, LoopError> {
        let changes = match self.scenario.assign_all(assignments) {
            Ok(changes) => changes,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.changed(at.max(self.engine.now()), assignments)?;
        }
        self.note(|| format!("changed at {at}: {}", assignments.join(", ")));
        for (link, change) in changes {
            if let Some(link) = self.engine.link(&link) {
                self.engine.change(at, link, change);
            }
        }
        Ok(Ok(()))
    }

    /// Adds to the notes of the report, which stays short.
    fn note(&mut self, note: impl FnOnce() -> String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(note());
        } else {
            self.unlisted += 1;
        }
    }

    fn notes(&self) -> Vec<String> {
        let more = (self.unlisted > 0).then(|| format!("and {} changes more", self.unlisted));
        self.notes.iter().cloned().chain(more).collect()
    }

    /// Takes what the engine has decided by the watermark.
    fn release(&mut self, watermark: Time) -> Result<(), LoopError> {
        let mut too_long = Vec::new();
        // No further than to the last event that is due: a packet may still be on its way from the interface to the
        // socket, with a stamp from before the watermark.
        while let Some(at) = self.engine.next_event().filter(|&at| at <= watermark) {
            let Some(event) = self.engine.poll(at) else { continue };
            self.meter.verdict(&event);
            if let Some(recorder) = &mut self.recorder {
                recorder.decided(&event)?;
            }
            match event.verdict {
                Verdict::Delivered(port) => {
                    let scheduled = Some(event.at);
                    let frame = render(event, &mut self.frames, &mut self.made);
                    self.ports[usize::from(port.index())].outgoing.push(Outgoing { scheduled, frame });
                }
                Verdict::Dropped { link: Some(link), reason: DropReason::TooLong } => {
                    let port = event.id.port();
                    too_long.push((port, link, render(event, &mut self.frames, &mut self.made)));
                }
                Verdict::Dropped { .. } => {
                    if let Body::Last(frame) = event.body {
                        self.frames.recycle(frame);
                    }
                }
            }
        }
        for (port, link, frame) in too_long {
            let port = &mut self.ports[usize::from(port.index())];
            let mtu = self.engine.view(link).mtu().map_or(0, |mtu| mtu.bytes);
            if port.cable.neighbours.too_big(&frame, Bytes::new(mtu.into()), &mut self.made) {
                port.outgoing.push(Outgoing { scheduled: None, frame: self.frames.frame(&self.made) });
            }
            self.frames.recycle(frame);
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), LoopError> {
        for port in &mut self.ports {
            if port.outgoing.is_empty() {
                continue;
            }
            let mut sent = 0;
            while sent < port.outgoing.len() {
                let batch = &port.outgoing[sent..port.outgoing.len().min(sent + SENT_AT_ONCE)];
                let before = self.clock.now();
                let step = port.cable.socket.send(batch);
                let after = self.clock.now();
                for scheduled in batch[..step.count].iter().filter_map(|outgoing| outgoing.scheduled) {
                    self.meter.released(port.id, before.since(scheduled));
                    self.meter.sent(after.since(scheduled));
                }
                sent += step.count;
                match step.stopped {
                    None => {}
                    Some(SendStop::Full) => break,
                    // This frame can never be sent; the next one may.
                    Some(_) => {
                        self.meter.send_failed(port.id, 1);
                        sent += 1;
                    }
                }
            }
            let unsent = port.outgoing.len() - sent;
            if unsent > MOST_UNSENT {
                self.meter.send_failed(port.id, (unsent - MOST_UNSENT) as u64);
                sent += unsent - MOST_UNSENT;
            }
            for outgoing in port.outgoing.drain(..sent) {
                self.frames.recycle(outgoing.frame);
            }
        }
        Ok(())
    }
}

/// The frame as it leaves: the one that came in, or a copy where others still need that, with the edits that the
/// engine asks for.
fn render(event: Event<'_, Frame>, frames: &mut FramePool, made: &mut Vec<u8>) -> Frame {
    let edits = Edits::of(&event);
    if edits.needed(event.body.get()) {
        edits.render(event.body.get(), made);
        let frame = frames.frame(made);
        if let Body::Last(original) = event.body {
            frames.recycle(original);
        }
        return frame;
    }
    match event.body {
        Body::Last(frame) => frame,
        Body::Shared(frame) => frames.frame(frame),
    }
}
