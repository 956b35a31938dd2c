//! A run on several threads, with the same bytes out as on one.
//!
//! The network is divided at links with a constant delay ([`division`]). Each thread has an engine for the whole network and
//! carries packets in its share. All run through the same windows of virtual time, each as long as the shortest of those
//! delays: what begins to cross in one window arrives in a later one, so within a window no thread needs to know of the
//! others. Between two windows the threads meet ([`meeting`]), exchange the packets in flight, and agree on when something
//! happens next. (The method is that of Nicol's conservative windows, "The cost of conservative synchronization in parallel
//! discrete event simulations", JACM 40(2), 1993.)
//!
//! A window ends early in a thread that has much to do: whatever it leaves is next for all.
//!
//! Each packet gets the verdict that it gets on one thread, because draws are keyed by packet and element. Where outputs need
//! the order of events, that is restored ([`fates`]).

mod division;
mod fates;
mod meeting;
mod share;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration as WallDuration;

use narrows_core::{Duration, Engine, Time};
use narrows_report::{Part, Place, Report, RunInfo};
use narrows_scenario::{Scenario, Traffic, TrafficSource};
use narrows_traffic::{Body, SourceOptions, Sources};

use crate::changes::{Changes, ScenarioChanges};
use crate::drive::{TrafficInfo, Watch};
use crate::error::SimError;
use crate::names::Names;
use crate::watched::Watchers;
use crate::whole::Whole;
use division::{Division, Work};
use fates::{Fate, Fates, merged};
use meeting::{Broken, Meeting, Wish};
use share::{Crossing, HasCopies, Share, Timed};

/// How many windows there are between two deliveries of events to the outputs, if there are fewer events than [`EVENTS`].
const WINDOWS: u64 = 64;
/// How many events all threads keep before a delivery.
const EVENTS: u64 = 50_000;
/// Deliveries that may wait for the outputs.
const WAITING: usize = 4;
/// How often the watch is asked.
const LOOK: WallDuration = WallDuration::from_millis(5);
/// Steps from which the work of each region is known.
const TRIAL: u64 = 100_000;

/// A run on several threads, at its end.
pub(crate) struct Ended {
    pub(crate) at: Time,
    pub(crate) broken_off: bool,
    pub(crate) parallelism: f64,
    shares: Vec<Share>,
    division: Division,
}

/// What the threads of a run have in common.
struct Common<'a> {
    division: &'a Division,
    meeting: Meeting,
    /// Packets that have begun to cross, by parity of the meeting where they are exchanged, sender and receiver.
    boxes: [Vec<Vec<Mutex<Vec<Crossing>>>>; 2],
    /// The caller wants to stop.
    is_stopped: AtomicBool,
    /// The virtual time reached.
    reached: AtomicU64,
    last: Time,
    /// The limit on the memory of packets.
    memory: u64,
}

/// How the threads have come to the end.
#[derive(Clone, Copy)]
struct Conclusion {
    /// The caller has stopped them.
    is_stopped: bool,
    /// See [`SimResult::parallelism`](crate::SimResult::parallelism).
    parallelism: f64,
}

/// Why a thread cannot go on.
enum Failure {
    /// The run has to begin again, on one thread.
    Again(Whole),
    Error(SimError),
    /// Another thread has failed, or the outputs.
    Elsewhere,
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Whole(why) => Self::Again(why),
            error => Self::Error(error),
        }
    }
}

/// A thread's share at the end, and why it ended if that was too early.
type Left = (Share, Result<Conclusion, Failure>);

/// Runs a scenario on at most `threads` threads. With `keep_frames`, packets have their bytes. `open` opens the outputs once it
/// is clear that there are several.
pub(crate) fn run(
    scenario: &Scenario,
    (threads, keep_frames): (usize, bool),
    until: Option<Time>,
    open: impl FnOnce(&Engine<Body>) -> Result<Watchers, SimError>,
    watch: Watch<'_>,
) -> Result<Result<Ended, Whole>, SimError> {
    let is_timed = scenario.timeline().next().is_some();
    if is_timed && until.is_none() {
        return Ok(Err(Whole::Endless));
    }
    if !scenario.traffic.iter().all(is_read_again) {
        return Ok(Err(Whole::Capture));
    }
    let source_options = SourceOptions { keep_frames, ..SourceOptions::default() };
    let last = until.unwrap_or(Time::NEVER);
    let network = scenario.network();
    let memory = network.memory.get();
    let mut trial = {
        let engine = Engine::new(network)?;
        let inputs = Sources::of(scenario, &engine, source_options, |_| true)?;
        Share::new(engine, inputs, [], last)
    };
    let responds = trial.inputs.respond();
    // Timeline entries may count from the first packet.
    let first = trial.inputs.peek().filter(|&at| at < last);
    trial.network.arrived = responds.then(Vec::new);
    for _ in 0..TRIAL {
        if !trial.step(Time::NEVER)? {
            break;
        }
    }
    let engine = &trial.network.engine;
    let division = match Division::of(scenario, engine, &Work::of(engine), threads) {
        Ok(division) => division,
        Err(whole) => return Ok(Err(whole)),
    };
    let mut outputs = open(engine)?;
    let names = Names::new(engine, trial.inputs.names());
    drop(trial);
    let (follow_paths, look_at_packets) = (outputs.follow_paths(), outputs.look_at_packets());
    let share = |thread: usize| {
        let mut engine = Engine::new(scenario.network())?;
        engine.keep_passed(follow_paths);
        let has = |port| division.of_place(Place::Port(port)) == thread;
        let inputs = Sources::share(scenario, &engine, source_options, has)?;
        let away = division.crossing(&engine).filter(|&(_, front, _)| front == thread);
        let away: Vec<_> = away.map(|(link, ..)| link).collect();
        let mut share = Share::new(engine, inputs, away, last);
        share.network.arrived = responds.then(Vec::new);
        share.fates = look_at_packets.then(Fates::default);
        share.divide_rush_by(division.threads);
        share.timed = is_timed.then(|| Timed {
            changes: ScenarioChanges::new(scenario.clone(), first),
            made: 0,
            crosses: division.crosses(),
            least: division.lookahead,
        });
        Ok(share)
    };
    let shares = thread::scope(|scope| {
        let all: Vec<_> = (0..division.threads).map(|thread| scope.spawn(move || share(thread))).collect();
        all.into_iter().map(join).collect::<Result<Vec<_>, SimError>>()
    })?;
    let mailbox = || (0..division.threads).map(|_| Mutex::default()).collect();
    let common = Common {
        division: &division,
        meeting: Meeting::new(division.threads),
        boxes: [(); 2].map(|()| (0..division.threads).map(|_| mailbox()).collect()),
        is_stopped: AtomicBool::new(false),
        reached: AtomicU64::new(0),
        last,
        memory,
    };
    let (left, written) = run_all(&common, shares, (&mut outputs, &names), watch);
    written?;
    let mut shares = Vec::new();
    let mut again = None;
    let mut conclusion = Conclusion { is_stopped: false, parallelism: 1.0 };
    for (share, how) in left {
        shares.push(share);
        match how {
            // All have come to the same.
            Ok(how) => conclusion = how,
            Err(Failure::Error(error)) => return Err(error),
            Err(Failure::Again(why)) => again = Some(why),
            Err(Failure::Elsewhere) => {}
        }
    }
    if let Some(why) = again {
        return Ok(Err(why));
    }
    let Conclusion { is_stopped: broken_off, parallelism } = conclusion;
    let now = shares.iter().map(|share| share.network.engine.now()).max().unwrap_or(Time::ZERO);
    let at = until.filter(|_| !broken_off).unwrap_or(now);
    for share in &mut shares {
        share.poll(at)?;
    }
    outputs.finish()?;
    Ok(Ok(Ended { at, broken_off, parallelism, shares, division }))
}

/// Whether all threads can read what a source sends.
fn is_read_again(traffic: &Traffic) -> bool {
    match &traffic.source {
        TrafficSource::Capture { file, .. } => std::fs::metadata(file).is_ok_and(|found| found.is_file()),
        _ => true,
    }
}

/// Runs all shares, and passes events to the outputs.
fn run_all(
    common: &Common<'_>,
    shares: Vec<Share>,
    (outputs, names): (&mut Watchers, &Names),
    watch: Watch<'_>,
) -> (Vec<Left>, Result<(), SimError>) {
    thread::scope(|scope| {
        let mut receivers = Vec::new();
        let mut threads = Vec::new();
        for (number, share) in shares.into_iter().enumerate() {
            let (sender, receiver) = sync_channel(WAITING);
            receivers.push(receiver);
            threads.push(scope.spawn(move || carry(common, number, share, &sender)));
        }
        let written = write_all(common, receivers, (outputs, names), watch);
        (threads.into_iter().map(join).collect(), written)
    })
}

/// What a thread returns; if it panicked, so does this one.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Writes events as they come, until all threads have ended. An error makes them end.
fn write_all(
    common: &Common<'_>,
    receivers: Vec<Receiver<Vec<Fate>>>,
    (outputs, names): (&mut Watchers, &Names),
    watch: Watch<'_>,
) -> Result<(), SimError> {
    let mut ask = || {
        if watch(Time::from_nanos(common.reached.load(Ordering::Relaxed))).is_break() {
            common.is_stopped.store(true, Ordering::Relaxed);
        }
    };
    loop {
        // Each thread sends as often as the others.
        let mut batches = Vec::new();
        for receiver in &receivers {
            let mut received = receiver.recv_timeout(LOOK);
            while matches!(received, Err(RecvTimeoutError::Timeout)) {
                ask();
                received = receiver.recv_timeout(LOOK);
            }
            batches.extend(received.ok());
        }
        if batches.is_empty() {
            return Ok(());
        }
        for fate in merged(batches) {
            fate.into_event(|event| outputs.event(names, event))?;
        }
        ask();
    }
}

/// Carries one share through all windows.
fn carry(common: &Common<'_>, thread: usize, mut share: Share, outputs: &SyncSender<Vec<Fate>>) -> Left {
    let _attendance = common.meeting.attend();
    let mut how = windows(common, thread, &mut share, outputs);
    if how.is_ok() && deliver(&mut share, Time::NEVER, outputs).is_err() {
        how = Err(Failure::Elsewhere);
    }
    (share, how)
}

fn windows(
    common: &Common<'_>,
    thread: usize,
    share: &mut Share,
    outputs: &SyncSender<Vec<Fate>>,
) -> Result<Conclusion, Failure> {
    let threads = common.division.threads;
    let mut out: Vec<Vec<Crossing>> = (0..threads).map(|_| Vec::new()).collect();
    let mut mail = Vec::new();
    let mut failure = None;
    let mut next = share.next();
    let (mut steps, mut longest) = (0, 0);
    for number in 0.. {
        let wish = match &failure {
            Some(_) => Wish::Fail,
            None if thread == 0 && common.is_stopped.load(Ordering::Relaxed) => Wish::Stop,
            None => Wish::GoOn,
        };
        let word = share.word(next, wish);
        let agreed = common.meeting.meet(number, thread, word).map_err(|Broken| Failure::Elsewhere)?;
        if agreed.wish == Wish::Fail {
            return Err(failure.unwrap_or(Failure::Elsewhere));
        }
        if agreed.memory > common.memory {
            return Err(Failure::Again(Whole::Memory));
        }
        for from in common.boxes[(number % 2) as usize].iter().map(|to| &to[thread]) {
            std::mem::swap(&mut mail, &mut *lock(from));
            share.take_over(mail.drain(..));
        }
        steps += agreed.steps.0;
        longest += agreed.steps.1;
        if agreed.wish == Wish::Stop || agreed.next == Time::NEVER {
            let parallelism = steps as f64 / longest.max(1) as f64;
            return Ok(Conclusion { is_stopped: agreed.wish == Wish::Stop, parallelism });
        }
        if thread == 0 {
            common.reached.store(agreed.next.nanos(), Ordering::Relaxed);
        }
        let end = agreed.next + common.division.lookahead;
        // A run on one thread leaves responding sources alone after such a pause, although later changes may end it.
        if share.pauses(end, agreed.active) {
            return Err(Failure::Again(Whole::Pause));
        }
        // No thread will come to anything before `next` any more.
        if (number % WINDOWS == WINDOWS - 1 || agreed.events > EVENTS)
            && deliver(share, agreed.next, outputs).is_err()
        {
            failure = Some(Failure::Elsewhere);
        }
        share.begin_window(agreed.next, end);
        let ran = share.run(end).map_err(Failure::from);
        let first = ran.and_then(|()| {
            let first = share.take_crossing(common.division, &mut out);
            first.map_err(|HasCopies| Failure::Again(Whole::Copies))
        });
        let first = first.unwrap_or_else(|why| {
            failure = Some(why);
            Time::NEVER
        });
        let boxes = &common.boxes[((number + 1) % 2) as usize][thread];
        for (packets, to) in out.iter_mut().zip(boxes).filter(|(packets, _)| !packets.is_empty()) {
            // The receiver has emptied it before the meeting just held.
            std::mem::swap(packets, &mut *lock(to));
        }
        next = share.next();
        if first <= common.last {
            next = next.min(first);
        }
    }
    unreachable!("meetings are numbered without end")
}

/// Sends the events before an instant to the outputs.
fn deliver(
    share: &mut Share,
    before: Time,
    outputs: &SyncSender<Vec<Fate>>,
) -> Result<(), SendError<Vec<Fate>>> {
    match &mut share.fates {
        Some(fates) => outputs.send(fates.take_before(before)),
        None => Ok(()),
    }
}

/// Each box has one sender and one receiver, at different times.
fn lock(mailbox: &Mutex<Vec<Crossing>>) -> MutexGuard<'_, Vec<Crossing>> {
    mailbox.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ended {
    /// The number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.division.threads
    }

    /// Packets inside the network.
    pub(crate) fn inside(&self) -> u64 {
        self.shares.iter().map(|share| share.network.engine.inside()).sum()
    }

    /// How many changes the timeline made; updates the report's information on classes with them.
    pub(crate) fn changes(&self, info: &mut RunInfo) -> u64 {
        let timed = self.shares.first().and_then(|share| share.timed.as_ref());
        timed.map_or(0, |timed| {
            timed.changes.update(info);
            timed.made
        })
    }

    /// The report of the whole run.
    pub(crate) fn report(mut self, info: &RunInfo, traffic: &TrafficInfo, length: Duration) -> Report {
        self.reunite();
        let Self { shares, division, .. } = &self;
        let mut parts = shares.iter().enumerate().map(|(thread, Share { network, .. })| {
            let has = |place| division.of_place(place) == thread;
            Part::new(info, &network.engine, &network.meter, &has)
        });
        let first = parts.next().expect("there are several");
        let mut report = Report::of_parts(info, first, parts);
        let all = shares.iter().map(|share| (&share.inputs, &share.network.traffic[..]));
        traffic.report(&mut report, all, length);
        report
    }

    /// Brings both ends of each link that divided the network together again.
    fn reunite(&mut self) {
        let Self { shares, division, .. } = self;
        let crossing: Vec<_> = division.crossing(&shares[0].network.engine).collect();
        for (link, front, back) in crossing {
            if let Ok([front, back]) = shares.get_disjoint_mut([front, back]) {
                front.network.engine.reunite(link, &mut back.network.engine);
            }
        }
    }
}
