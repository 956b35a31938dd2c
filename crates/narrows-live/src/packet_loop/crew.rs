//! The loops of other threads, as the first one directs them.
//!
//! What they are told goes to each by a channel, with a call that wakes it; what they answer comes back by one channel for
//! all. A change is in force everywhere from one instant on. Everybody is told of it first, and only then is its instant read
//! from the clock: a turn that goes up to that instant or further has read the clock after it, and so has found the order; a
//! turn that does not find the order goes less far. So no engine is ever ahead of a change, and none waits for another.

use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use narrows_core::{Duration, Time};
use narrows_io::wait::{Waiting, wait};
use narrows_io::waker::Waker;
use narrows_report::{Part, RunInfo, ThreadReport, TrainsReport};

use super::{LoopError, Pace, PacketLoop};
use crate::feeds::Place;

/// How long the first loop looks away from its packets while it awaits answers.
const GLANCE: Duration = Duration::from_micros(50);

/// What is to be changed.
#[derive(Debug)]
pub(super) enum What {
    /// Values of links.
    Set(Vec<String>),
    /// What commands of ipfw say.
    Ipfw { link: Option<String>, file: String, commands: String },
}

/// A change of all engines at one instant.
#[derive(Debug)]
pub(super) struct Change {
    at: OnceLock<Time>,
    pub(super) what: What,
}

impl Change {
    /// When; nothing as long as not everybody has been told of it.
    pub(super) fn at(&self) -> Option<Time> {
        self.at.get().copied()
    }
}

/// What came of a change: what it prints, where that is this loop's to say; or why it is none.
pub(super) type Outcome = Result<Option<String>, String>;

/// What a loop is told.
pub(super) enum Order {
    Change(Arc<Change>),
    Places,
    Report(Box<RunInfo>),
    /// To stand still, and wait for the next order.
    Halt,
    /// To do all that is due up to this instant, and to say what came of it all.
    Finish(Time, Box<RunInfo>),
    /// To end, whatever happened.
    Quit,
}

/// What a loop has to report.
pub(super) struct Account {
    pub(super) part: Part,
    pub(super) thread: ThreadReport,
    pub(super) trains: Option<TrainsReport>,
    pub(super) backends: Vec<String>,
    pub(super) notes: Vec<String>,
    /// Frames that were answered at its ports.
    pub(super) answered: u64,
}

/// What a loop answers.
pub(super) enum Answer {
    Ready,
    Changed(Outcome),
    Places(Vec<Place>),
    Report(Box<Account>),
    Halted,
    Finished(Box<Account>),
    Failed(LoopError),
    /// Its thread has ended without a word.
    Gone,
}

/// A loop's end of the channels.
pub(super) struct Mailbox {
    pub(super) orders: Receiver<Order>,
    pub(super) called: Arc<Waker>,
    answers: Sender<Answer>,
    caller: Arc<Waker>,
}

impl Mailbox {
    pub(super) fn answer(&self, answer: Answer) {
        // Whoever does not listen any more has ended the run.
        let _ = self.answers.send(answer);
        self.caller.wake();
    }
}

/// A loop on a thread of its own.
pub(super) struct Mate {
    number: usize,
    orders: Sender<Order>,
    called: Arc<Waker>,
    /// Until it is started.
    waiting: Option<(Box<PacketLoop>, Receiver<Order>)>,
    thread: Option<JoinHandle<()>>,
}

impl Mate {
    pub(super) fn new(number: usize, packets: PacketLoop) -> io::Result<Self> {
        let (orders, received) = mpsc::channel();
        let waiting = Some((Box::new(packets), received));
        Ok(Self { number, orders, called: Arc::new(Waker::new()?), waiting, thread: None })
    }

    fn start(&mut self, pace: Pace, answers: Sender<Answer>, caller: Arc<Waker>) -> io::Result<()> {
        let Some((mut packets, orders)) = self.waiting.take() else { return Ok(()) };
        packets.mailbox = Some(Mailbox {
            orders,
            called: self.called.clone(),
            answers: answers.clone(),
            caller: caller.clone(),
        });
        let leaving = Leaving { answers, caller };
        let thread = thread::Builder::new().name(format!("packets {}", self.number));
        self.thread = Some(thread.spawn(move || {
            let leaving = leaving;
            if let Err(error) = packets.serve(pace) {
                let _ = leaving.answers.send(Answer::Failed(error));
            }
        })?);
        Ok(())
    }
}

impl Drop for Mate {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Quit);
        self.called.wake();
        if let Some(thread) = self.thread.take() {
            // Why it broke off, if it did, has been said.
            let _ = thread.join();
        }
    }
}

/// Says so when a thread ends, however it does.
struct Leaving {
    answers: Sender<Answer>,
    caller: Arc<Waker>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let _ = self.answers.send(Answer::Gone);
        self.caller.wake();
    }
}

/// The loops of other threads.
#[derive(Default)]
pub(super) struct Crew {
    mates: Vec<Mate>,
    answers: Option<Answers>,
}

struct Answers {
    sender: Sender<Answer>,
    received: Receiver<Answer>,
    called: Arc<Waker>,
}

impl Crew {
    pub(super) fn join(&mut self, mate: Mate) -> io::Result<()> {
        if self.answers.is_none() {
            let (sender, received) = mpsc::channel();
            self.answers = Some(Answers { sender, received, called: Arc::new(Waker::new()?) });
        }
        self.mates.push(mate);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.mates.len()
    }

    /// Those that are not started yet, with their numbers.
    pub(super) fn waiting(&mut self) -> impl Iterator<Item = (usize, &mut PacketLoop)> {
        self.mates.iter_mut().filter_map(|mate| Some((mate.number, &mut *mate.waiting.as_mut()?.0)))
    }

    /// Becomes readable when one of them has something to say.
    pub(super) fn called(&self) -> Option<&Arc<Waker>> {
        self.answers.as_ref().map(|answers| &answers.called)
    }

    /// Tells each of them; it hears of it in its next turn.
    fn tell(&self, order: impl Fn() -> Order) {
        for mate in &self.mates {
            // One that is gone has said so.
            let _ = mate.orders.send(order());
        }
    }

    /// Wakes those that sleep.
    fn call(&self) {
        self.mates.iter().for_each(|mate| mate.called.wake());
    }

    /// The next answer, if there is one.
    ///
    /// # Errors
    /// When one of them has failed.
    pub(super) fn next(&self) -> Result<Option<Answer>, LoopError> {
        let Some(answers) = &self.answers else { return Ok(None) };
        answers.called.clear();
        match answers.received.try_recv() {
            Ok(Answer::Failed(error)) => Err(error),
            Ok(Answer::Gone) => Err(LoopError::Gone),
            Ok(answer) => Ok(Some(answer)),
            Err(_) => Ok(None),
        }
    }
}

impl PacketLoop {
    /// Starts the other threads, each on its processor where some are named, and waits until they run as they should.
    pub(super) fn start_crew(&mut self, pace: Pace) -> Result<(), LoopError> {
        let Some(answers) = &self.crew.answers else { return Ok(()) };
        for mate in &mut self.crew.mates {
            let pace = Pace { processor: self.processors.get(mate.number).copied(), ..pace };
            mate.start(pace, answers.sender.clone(), answers.called.clone()).map_err(LoopError::Thread)?;
        }
        self.gather(false, |answer| matches!(answer, Answer::Ready).then_some(()))?;
        Ok(())
    }

    /// Has every loop make a change at one instant.
    pub(super) fn change(&mut self, what: What) -> Result<Outcome, LoopError> {
        let change = Arc::new(Change { at: OnceLock::new(), what });
        self.crew.tell(|| Order::Change(change.clone()));
        self.changes.push_back(change.clone());
        // After all turns that do not know of it.
        let _ = change.at.set(self.clock.now() + Duration::from_nanos(1));
        self.crew.call();
        let others = self.gather(true, |answer| match answer {
            Answer::Changed(outcome) => Some(outcome),
            _ => None,
        })?;
        loop {
            if let Some(own) = self.outcome.take() {
                // Each has the same scenario, so what one refuses all refuse.
                return Ok(own.map(|text| text.or(others.into_iter().flatten().flatten().next())));
            }
            self.turn()?;
        }
    }

    /// Where the sockets of all feeds are.
    pub(super) fn all_places(&mut self) -> Result<Vec<Place>, LoopError> {
        self.crew.tell(|| Order::Places);
        self.crew.call();
        let others = self.gather(true, |answer| match answer {
            Answer::Places(places) => Some(places),
            _ => None,
        })?;
        Ok(in_order(self.places().into_iter().chain(others.into_iter().flatten())))
    }

    /// What the others have to report as things stand.
    pub(super) fn accounts(&mut self, info: &RunInfo) -> Result<Vec<Account>, LoopError> {
        self.crew.tell(|| Order::Report(Box::new(info.clone())));
        self.crew.call();
        self.gather(true, |answer| match answer {
            Answer::Report(account) => Some(*account),
            _ => None,
        })
    }

    /// Has all loops do what is due up to one instant, and the others end. Gives that instant and what they have to report.
    pub(super) fn finish_crew(&mut self, info: &RunInfo) -> Result<(Time, Vec<Account>), LoopError> {
        if self.crew.len() == 0 {
            return Ok((self.clock.now(), Vec::new()));
        }
        self.crew.tell(|| Order::Halt);
        self.crew.call();
        self.gather(false, |answer| matches!(answer, Answer::Halted).then_some(()))?;
        // Nobody has gone further than this.
        let end = self.clock.now();
        let info = RunInfo { span: (Time::ZERO, end), ..info.clone() };
        self.crew.tell(|| Order::Finish(end, Box::new(info.clone())));
        self.settle(end)?;
        let accounts = self.gather(false, |answer| match answer {
            Answer::Finished(account) => Some(*account),
            _ => None,
        })?;
        Ok((end, accounts))
    }

    /// Awaits an answer of each, while packets go on or not.
    fn gather<T>(&mut self, goes_on: bool, of: impl Fn(Answer) -> Option<T>) -> Result<Vec<T>, LoopError> {
        let mut all = Vec::new();
        while all.len() < self.crew.len() {
            if goes_on {
                self.turn()?;
            }
            match self.crew.next()? {
                Some(answer) => all.extend(of(answer)),
                None => {
                    let until = goes_on.then(|| self.clock.reading(self.clock.now() + GLANCE));
                    let Some(called) = self.crew.called() else { break };
                    wait(&mut [Waiting::readable(&**called)], until).map_err(LoopError::Wait)?;
                }
            }
        }
        Ok(all)
    }
}

/// Feeds in the order of their links.
pub(super) fn in_order(places: impl IntoIterator<Item = Place>) -> Vec<Place> {
    let mut all: Vec<_> = places.into_iter().collect();
    all.sort_by(|a, b| a.link.cmp(&b.link));
    all
}
