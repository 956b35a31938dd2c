//! A packet thread: receives, hands in, polls and sends packets, and nothing else.
//!
//! Each turn reads the clock, drains every port in a fixed order, sorts arrivals by (instant, port, sequence), hands
//! in what had arrived when the turn began, and releases what the engine scheduled up to then. Between turns it
//! waits: with a timer until shortly before the next event, then by busy-waiting, because a timer wakes a thread some
//! 50 µs late. Lateness delays the release of a packet and does not accumulate: the engine uses the kernel's receive
//! timestamps and its own schedule.
//!
//! The [director](crate::director) does all other work: it sends [orders](orders) and receives raw counters. Nothing
//! here uses a scenario, parses text, opens a file, formats a report or waits for another thread; a test below checks
//! this.

mod answer;
mod apply;
mod arrivals;
pub(crate) mod changes;
pub(crate) mod decision;
mod exchange;
mod feeds;
mod gateway;
pub(crate) mod inspection;
mod intake;
mod lines;
pub(crate) mod orders;
pub(crate) mod pace;
mod poll_set;
mod release;
mod rivals;
pub(crate) mod sample;
pub(crate) mod share;
mod sleep;
#[cfg(test)]
mod tests;
mod traffic;
mod trains;

use std::collections::VecDeque;
use std::sync::Arc;
use std::{io, sync};

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

use self::changes::Changes;
use self::inspection::Inspection;
use self::intake::Intake;
use self::lines::{Lines, Plugged};
use self::orders::{Inbox, Order};
use self::pace::{Off, Pace, PaceError, Rest, Wait};
use self::poll_set::PollSet;
use self::rivals::Rivals;
use self::share::Share;
use self::traffic::Traffic;
use crate::capture::Capture;
use crate::clock::Clock;
use crate::feeds::Feeds;
use crate::gateway::Gateway;
use crate::in_kernel::{Agreement, Ahead, LOOK_EVERY};
use crate::load::Load;
use crate::packet_records::PacketTap;
use crate::recorder::Recorder;
use crate::router::Routers;
use crate::testbed::{self, Cable};

/// How long before an event the loop stops sleeping: twice the recent lateness of timers, within this range. A timer
/// wakes a thread some 50 µs late; on a virtual machine whose processor was idle, several times that.
const WAKE_EARLY: std::ops::RangeInclusive<u64> = 100_000..=1_000_000;
/// The approximate duration of a turn without arrivals. An event within it would wait for its end, so the loop waits
/// for such an event before the turn.
const IDLE_TURN: Duration = Duration::from_micros(2);
/// For this long after a packet the loop does not sleep: for more frequent packets, waking up for each would cost
/// more than polling.
const AWAKE: Duration = Duration::from_micros(20);
/// Where other programs want the processor, packets that come within this time are gathered, and what is due within it
/// leaves with them: each wake-up and each look for packets would take time from those programs.
const GATHER: Duration = Duration::from_micros(100);
/// The maximum number of packets handed in before the loop checks for orders again.
const MOST_A_TURN: usize = 2048;
/// Turns without a pause before descriptors other than ports are polled.
const TURNS_UNATTENDED: u32 = 256;

/// A packet that has arrived and is not in the engine yet.
struct Input {
    at: Time,
    port: PortId,
    sequence: u64,
    received: Received,
}

/// A packet to be sent.
struct Outgoing {
    /// The port that it leaves by.
    port: PortId,
    /// When it was scheduled to leave, and where it came from; `None` for replies of our own.
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
    /// Where its frames come from and go to; `None` at a router, which has no cable.
    plugged: Option<Plugged>,
    /// Frames handled here instead of crossing the network: ARP/ND and the like.
    answered: u64,
    /// Frames that came over a shared line, or were lost there.
    came: u64,
    /// Verdicts that a link inside the kernel has not reached yet.
    ahead_of_kernel: Ahead,
}

/// An error of a packet thread, or around it.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// An interface failed.
    #[error(transparent)]
    CableEnd(#[from] CableEndError),
    /// Waiting failed.
    #[error("cannot wait for packets: {0}")]
    Wait(io::Error),
    /// A traffic source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The input log cannot be written.
    #[error(transparent)]
    Record(#[from] WriteError),
    /// The processor or the priority cannot be set.
    #[error(transparent)]
    Pace(#[from] PaceError),
    /// The network of a further thread, which equals the first one's, cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A thread cannot be started.
    #[error("cannot start a packet thread: {0}")]
    Thread(io::Error),
    /// A thread ended unexpectedly.
    #[error("packet thread {0} panicked; this is a bug of narrows, please report it")]
    Gone(usize),
    /// A thread does not answer.
    #[error("packet thread {0} did not stop within {1} s; this is a bug of narrows, please report it")]
    Stuck(usize, u64),
}

/// A network, or some independent components of one, running in real time on its own thread.
pub(crate) struct DataLoop {
    clock: Clock,
    pub(crate) engine: Engine<Load>,
    /// Frames inside the engine.
    frames_inside: u64,
    /// Answers to senders whose packets rules rejected.
    rejections: u64,
    ports: Vec<Port>,
    lines: Lines,
    /// Whether some interface did not accept all frames.
    is_stuck: bool,
    poll_set: PollSet,
    /// Sends and receives frames while the loop waits, if the kernel supports that.
    exchange: Option<Exchange>,
    routers: Routers,
    /// The router that this host is between its interfaces, if it is one.
    pub(crate) gateway: Option<Box<Gateway>>,
    pub(crate) meter: Meter,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) capture: Option<Capture>,
    /// If its ports' links are inside the kernel: only records cross here, and are compared.
    pub(crate) in_kernel: Option<Arc<Agreement>>,
    /// Where packets are noted for packet records.
    pub(crate) packets: Option<Box<PacketTap>>,
    /// Where packets are noted while somebody inspects them.
    inspection: Option<Box<Inspection>>,
    pub(crate) feeds: Option<Feeds>,
    /// The scenario's own traffic.
    traffic: Option<Box<Traffic>>,
    inputs: Vec<Input>,
    /// An unfinished pass over the ports.
    intake: Option<Intake>,
    /// Everything up to this instant has been read from the ports.
    complete: Time,
    /// When the last turn began.
    turn_began: Time,
    sequence: u64,
    frames: FramePool,
    batch: ReceiveBatch,
    received: Vec<Received>,
    /// A buffer for frames created here.
    made: Vec<u8>,
    /// How long before an event to stop sleeping.
    wake_early: Duration,
    pace: Pace,
    /// Pauses required by real-time priority.
    rest: Rest,
    /// Programs that want the processor on which it polls.
    rivals: Rivals,
    /// The instant of the last arrival.
    last_input: Time,
    /// When frames were last read that had been [left in their sockets](Self::may_gather) until then.
    gathered_until: Time,
    /// Its share of the network.
    pub(crate) share: Share,
    /// Receives orders and sends answers.
    inbox: Inbox,
    /// Orders other than changes, not executed yet.
    orders: VecDeque<Order>,
    /// The director asks for the feeds that exist from this instant on.
    feeds_asked: Option<Time>,
    pub(crate) changes: Changes,
    /// The thread's CPU time at the start, in nanoseconds.
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
        let port = |id| Port { id, plugged: None, answered: 0, came: 0, ahead_of_kernel: Ahead::default() };
        // The n-th port has number n.
        let mut ports: Vec<Port> = engine.ports().map(port).collect();
        let lines = Lines::plug(cables, &mut ports, |name| engine.port(name));
        Self {
            clock,
            meter: Meter::new(ports.len()),
            poll_set: PollSet::new(&lines),
            ports,
            lines,
            is_stuck: false,
            exchange: None,
            routers,
            gateway: None,
            engine,
            frames_inside: 0,
            rejections: 0,
            traffic: Traffic::of(sources),
            recorder: None,
            capture: None,
            in_kernel: None,
            packets: None,
            inspection: None,
            feeds: None,
            inputs: Vec::new(),
            intake: None,
            complete: Time::ZERO,
            turn_began: Time::ZERO,
            sequence: 0,
            frames: FramePool::default(),
            batch: ReceiveBatch::new(),
            received: Vec::new(),
            made: Vec::new(),
            wake_early: Duration::from_nanos(*WAKE_EARLY.start()),
            pace: Pace::default(),
            rest: Rest::none(),
            rivals: Rivals::none(),
            last_input: Time::ZERO,
            gathered_until: Time::ZERO,
            share,
            inbox,
            orders: VecDeque::new(),
            feeds_asked: None,
            changes: Changes::default(),
            processor_time_before: 0,
        }
    }

    /// Runs turns and waits until told to end.
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
            if self.in_kernel.is_some() {
                // Records that are left fill the ring.
                if self.complete == self.turn_began {
                    self.sleep(now + LOOK_EVERY)?;
                }
                continue;
            }
            let next = self.next_event();
            let traffic_due = self.traffic_due();
            if let Some(until) = self.rest.due(now, next.min(traffic_due)) {
                let off = Off::since(now);
                let woken = self.pause(until)?;
                self.rest.rested(off.until(woken), woken);
                self.rivals.slept(woken.since(now));
                continue;
            }
            let is_hybrid = self.pace.wait == Wait::Hybrid;
            let is_crowded = is_hybrid && self.rivals.are_there(now);
            let early = match self.pace.wait {
                // Another program would end any longer polling.
                Wait::Hybrid if is_crowded => Duration::from_nanos(*WAKE_EARLY.start()),
                Wait::Hybrid => self.wake_early,
                Wait::Spin => Duration::from_nanos(u64::MAX),
                Wait::Timer => Duration::ZERO,
            };
            let silence = now.since(self.last_input);
            let gathers = is_crowded && silence <= GATHER && next > now && !self.sends_in_waiting();
            let awake = is_hybrid && !is_crowded && silence <= AWAKE;
            let sleeps = next.since(now) > early && !awake && !gathers;
            if !sleeps && !gathers && next.since(now) < IDLE_TURN {
                self.clock.spin_until(next);
            }
            unattended += 1;
            let is_attended = sleeps || unattended >= TURNS_UNATTENDED;
            if !is_attended && !gathers {
                continue;
            }
            let off = self.rest.is_needed().then(|| Off::since(now));
            let woken = if is_attended {
                unattended = 0;
                // Generated packets are handed in as of their due instants: a timer is accurate enough.
                let until = if sleeps { next.before(early).min(traffic_due) } else { now };
                self.sleep(until)?;
                self.clock.now()
            } else {
                let woken = self.pause(now + GATHER)?;
                self.rivals.gathered += woken.since(now);
                woken
            };
            self.rivals.slept(woken.since(now));
            if let Some(off) = off {
                self.rest.slept(off.until(woken), woken);
            }
        }
    }

    /// Waits for an instant, and nothing else. Returns the present one.
    fn pause(&mut self, until: Time) -> Result<Time, LoopError> {
        wait(&mut [], Some(self.clock.reading(until))).map_err(LoopError::Wait)?;
        self.clock.go_on();
        Ok(self.clock.now())
    }

    /// The next instant at which there is work, even without arrivals.
    fn next_event(&self) -> Time {
        if self.intake.is_some() {
            return Time::ZERO;
        }
        let waiting = self.inputs.first().map(|input| input.at);
        // Internal events need no attention, unless feeds are asked for a delay or a rate at them.
        let asks = self.feeds.as_ref().is_some_and(|feeds| !feeds.is_empty());
        let engine = if asks { self.engine.next_event() } else { self.engine.next_delivery() };
        let engine = engine.filter(|_| self.traffic.is_none() || self.is_watched());
        let gateway = self.gateway.as_ref().and_then(|gateway| gateway.next());
        let all = [engine, waiting, self.changes.next(), gateway];
        all.into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    /// Receives, hands in and releases, within the limits of a turn.
    fn turn(&mut self) -> Result<(), LoopError> {
        // Before orders are read: a change not read now is for a later instant.
        let now = self.clock.now();
        self.turn_began = now;
        self.heed();
        self.attend_gateway(now);
        self.traffic.as_mut().map_or(Ok(()), |traffic| traffic.begin_turn(now))?;
        // If more is ready than one turn hands in, hand that in first; arrivals of an unfinished pass are not sorted
        // yet.
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
        if let Some(packets) = &mut self.packets {
            packets.turn_ended(self.engine.now());
        }
        Ok(())
    }
}

impl Drop for DataLoop {
    fn drop(&mut self) {
        testbed::close(self.lines.take_ends());
    }
}
