//! A packet thread: it receives, hands in, polls and sends, and does nothing else.
//!
//! Each turn reads the clock, drains every port in a fixed order, sorts what came by (instant, port, sequence), hands in
//! what had arrived when the turn began, and releases what the engine scheduled until then. Between turns it waits: by
//! timer until shortly before the next event, then by turning without pause, because a timer wakes a thread some 50 µs
//! late. Being late delays the release of a packet and adds to no later packet: the engine works with the instants at
//! which packets arrived by the kernel's stamps, and with its own schedule.
//!
//! What else there is to do is the [director's](crate::director): it sends [orders](orders) and gets raw counters
//! back. Nothing here knows a scenario, parses a text, opens a file, words a report or waits for another thread; a test
//! below says so.

mod answer;
mod apply;
mod arrivals;
pub(crate) mod changes;
mod exchange;
mod feeds;
mod intake;
pub(crate) mod orders;
pub(crate) mod pace;
mod poll_set;
mod release;
pub(crate) mod sample;
pub(crate) mod share;
mod sleep;
#[cfg(test)]
mod tests;
mod traffic;
mod trains;

use std::collections::{BTreeMap, VecDeque};
use std::io;

use narrows_core::{BuildError, Duration, Engine, PortId, Time};
use narrows_frame::WriteError;
use narrows_frame::capture::verdicts::Passage;
use narrows_io::cable_end::CableEndError;
use narrows_io::clock::thread_processor_time;
use narrows_io::exchange::Exchange;
use narrows_io::frame::{Frame, FramePool};
use narrows_io::packet_socket::{ReceiveBatch, Received};
use narrows_io::wait::wait;
use narrows_report::Meter;
use narrows_traffic::{SourceError, Sources};

use self::arrivals::Arrivals;
use self::changes::Changes;
use self::intake::Intake;
use self::orders::{Inbox, Order};
use self::pace::{Off, Pace, PaceError, Rest, Wait};
use self::poll_set::PollSet;
use self::share::Share;
use self::traffic::Traffic;
use self::trains::Trains;
use crate::capture::Capture;
use crate::clock::Clock;
use crate::feeds::Feeds;
use crate::load::Load;
use crate::recorder::Recorder;
use crate::router::Routers;
use crate::testbed::{self, Cable};

/// How long before an event the loop stops sleeping: twice as long as timers were late of late, within these. A timer
/// wakes a thread some 50 µs late, and a processor that had fallen asleep on a virtual machine several times that.
const WAKE_EARLY: std::ops::RangeInclusive<u64> = 100_000..=1_000_000;
/// What a turn takes in which nothing comes, about. An event that falls into it would wait for its end, so one that is
/// nearer than this is awaited before the turn.
const IDLE_TURN: Duration = Duration::from_micros(2);
/// How long after a packet the loop does not sleep: where packets come more often, waking up for each would cost more
/// than looking for them.
const AWAKE: Duration = Duration::from_micros(20);
/// Packets handed in before orders are looked for again.
const MOST_A_TURN: usize = 2048;
/// Turns without a pause before descriptors other than ports are looked at.
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
    /// When frames came here.
    arrivals: Arrivals,
    ring_drops: u64,
    trains: Trains,
    /// Frames that the interface refused after it had taken them.
    refused: u64,
}

/// What went wrong on a packet thread, or around it.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// An interface.
    #[error(transparent)]
    CableEnd(#[from] CableEndError),
    /// Waiting.
    #[error("cannot wait for packets: {0}")]
    Wait(io::Error),
    /// A source of the scenario's traffic.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The record.
    #[error(transparent)]
    Record(#[from] WriteError),
    /// The processor, or the priority.
    #[error(transparent)]
    Pace(#[from] PaceError),
    /// The network of another thread, which is the same as the first one's.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A thread.
    #[error("cannot start a packet thread: {0}")]
    Thread(io::Error),
    /// One that has ended when it should not.
    #[error("packet thread {0} panicked; this is a bug of narrows, please report it")]
    Gone(usize),
    /// One that does not answer.
    #[error("packet thread {0} did not stop within {1} s; this is a bug of narrows, please report it")]
    Stuck(usize, u64),
}

/// A network, or some independent components of one, that runs in real time on a thread of its own.
pub(crate) struct DataLoop {
    clock: Clock,
    pub(crate) engine: Engine<Load>,
    /// Frames in it.
    frames_inside: u64,
    ports: Vec<Port>,
    /// Those that have something to send, by their places.
    sending: Vec<u16>,
    /// Whether some interface did not take all of it.
    is_stuck: bool,
    poll_set: PollSet,
    /// What frames are sent and received by as the loop waits, where the kernel offers that.
    exchange: Option<Exchange>,
    routers: Routers,
    pub(crate) meter: Meter,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) capture: Option<Capture>,
    pub(crate) feeds: Option<Feeds>,
    /// What the scenario itself sends.
    traffic: Option<Box<Traffic>>,
    inputs: Vec<Input>,
    /// A look at the ports that is not through yet.
    intake: Option<Intake>,
    /// Up to when everything has been taken from the ports.
    complete: Time,
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
    /// What it has of the network.
    pub(crate) share: Share,
    /// What it is told, and whom it answers.
    inbox: Inbox,
    /// What it was told besides changes, and has not done yet.
    orders: VecDeque<Order>,
    /// The feeds that there are from this instant on are asked for.
    feeds_asked: Option<Time>,
    pub(crate) changes: Changes,
    /// The processor time that the thread had used when it began, in nanoseconds.
    processor_time_before: u64,
}

impl DataLoop {
    pub(crate) fn new(
        clock: Clock,
        engine: Engine<Load>,
        sources: Sources,
        cables: Vec<Cable>,
        routers: Routers,
        share: Share,
        inbox: Inbox,
    ) -> Self {
        let mut cables: BTreeMap<String, Cable> =
            cables.into_iter().map(|cable| (cable.name.clone(), cable)).collect();
        let port = |id| {
            let cable = cables.remove(engine.port_name(id));
            let opened = cable.as_ref().map_or_else(|| clock.reading(Time::ZERO), |cable| cable.laid);
            Port {
                id,
                cable,
                outgoing: Vec::new(),
                answered: 0,
                arrivals: Arrivals::since(opened),
                ring_drops: 0,
                trains: Trains::default(),
                refused: 0,
            }
        };
        // The n-th has number n.
        let ports: Vec<Port> = engine.ports().map(port).collect();
        Self {
            clock,
            meter: Meter::new(ports.len()),
            poll_set: PollSet::new(&ports),
            ports,
            sending: Vec::new(),
            is_stuck: false,
            exchange: None,
            routers,
            engine,
            frames_inside: 0,
            traffic: Traffic::of(sources),
            recorder: None,
            capture: None,
            feeds: None,
            inputs: Vec::new(),
            intake: None,
            complete: Time::ZERO,
            sequence: 0,
            frames: FramePool::default(),
            batch: ReceiveBatch::new(),
            received: Vec::new(),
            made: Vec::new(),
            wake_early: Duration::from_nanos(*WAKE_EARLY.start()),
            pace: Pace::default(),
            rest: Rest::none(),
            last_input: Time::ZERO,
            share,
            inbox,
            orders: VecDeque::new(),
            feeds_asked: None,
            changes: Changes::default(),
            processor_time_before: 0,
        }
    }

    /// Turns and waits until it is told to end.
    fn keep_going(&mut self) -> Result<(), LoopError> {
        let mut unattended = 0;
        self.processor_time_before = thread_processor_time();
        self.clock.go_on();
        loop {
            self.turn()?;
            if !self.sends_in_waiting() || self.rest.is_needed() {
                self.let_leave()?;
            }
            self.call_feeds();
            if !self.orders.is_empty() && self.obey()? {
                return Ok(());
            }
            self.tell_wanted_feeds();
            let now = self.clock.now();
            let next = self.next_event();
            let traffic_due = self.traffic_due();
            if let Some(until) = self.rest.due(now, next.min(traffic_due)) {
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
            // Generated packets are handed in as of when they were due: a timer is good enough.
            let until = if sleeps { next.before(early).min(traffic_due) } else { now };
            let off = self.rest.is_needed().then(|| Off::since(now));
            self.sleep(until)?;
            if let Some(off) = off {
                let now = self.clock.now();
                self.rest.slept(off.until(now), now);
            }
        }
    }

    /// When there is something to do without any packet arriving.
    fn next_event(&self) -> Time {
        if self.intake.is_some() {
            return Time::ZERO;
        }
        let waiting = self.inputs.first().map(|input| input.at);
        // Nobody waits for what happens inside, but for those who are asked for a delay or a rate then.
        let asks = self.feeds.as_ref().is_some_and(|feeds| !feeds.is_empty());
        let engine = if asks { self.engine.next_event() } else { self.engine.next_delivery() };
        let engine = engine.filter(|_| self.traffic.is_none() || self.is_watched());
        let all = [engine, waiting, self.changes.next()];
        all.into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    /// Receives, hands in and releases, as far as a turn goes.
    fn turn(&mut self) -> Result<(), LoopError> {
        // Before orders are heard: a change that is not heard now is for a later instant.
        let now = self.clock.now();
        self.heed();
        self.traffic.as_mut().map_or(Ok(()), |traffic| traffic.begin_turn(now))?;
        // Where more is ready than one turn hands in, that comes first; what a look has begun to take is in no order yet.
        let has_enough = || self.inputs.get(MOST_A_TURN).is_some_and(|input| input.at <= self.complete);
        if self.intake.is_some() || !has_enough() {
            match self.receive(now)? {
                Some(complete) => self.complete = complete,
                None => return Ok(()),
            }
        }
        let watermark = match self.inputs.get(MOST_A_TURN) {
            Some(input) => self.complete.min(input.at),
            None => self.complete,
        };
        self.receive_values(watermark);
        let reached = self.hand_in(watermark)?;
        self.release(reached)?;
        self.tell_feeds();
        Ok(())
    }

    fn let_leave(&mut self) -> Result<(), LoopError> {
        self.send()?;
        if let Some(capture) = &mut self.capture {
            capture.turn_ended(self.engine.now());
        }
        Ok(())
    }

    fn close_record(&mut self) -> Result<(), LoopError> {
        match self.recorder.take() {
            Some(recorder) => Ok(recorder.finish(&self.engine)?),
            None => Ok(()),
        }
    }
}

impl Drop for DataLoop {
    fn drop(&mut self) {
        testbed::close(self.ports.drain(..).filter_map(|port| port.cable).collect());
    }
}
