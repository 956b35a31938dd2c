//! What a packet thread is told, and what it answers.
//!
//! Orders come by a channel, with a call that wakes the thread if it sleeps; they are looked for in every turn, however busy
//! it is, and each is answered at once with raw counters. The answers are no more than the orders, so the channel back is
//! bounded by whoever asks.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use narrows_core::rules::PreparedRules;
use narrows_core::{BuildError, Duration, Time};
use narrows_io::host::{RunDelay, time_is_virtual};
use narrows_io::privileges;
use narrows_io::waker::Waker;
use narrows_report::Snapshot;

use super::changes::{Asked, Step};
use super::pace::Pace;
use super::sample::{RulesSample, Sample, Sampled};
use super::{DataLoop, LoopError};
use crate::capture::Capture;
use crate::feeds::{Inlets, Wanted};

/// How often, at the end, a loop looks whether there is still something from before it; and for how long at the most.
const LAST_LOOKS: usize = 64;
const LAST_LOOKS_TAKE: Duration = Duration::from_millis(300);

/// What a packet thread is told.
pub(crate) enum Order {
    /// Steps of the timeline, which follow those before.
    Follow(Vec<Step>),
    /// A change that somebody asks for.
    Ask(Box<Asked>),
    /// To say what has been counted.
    Sample(Box<Sample>),
    /// To say what the links have let out, and what waits.
    Snapshot {
        /// With all that links have counted.
        counts: bool,
    },
    /// To say what feeds there are once all changes up to this instant are made.
    Feeds(Time),
    /// To take these in place of the feeds before.
    TakeFeeds(Inlets),
    /// To say what rules have counted, and what the pipes of this link hold.
    Rules(String),
    /// To say whether packets are inside the network, or wait for an interface, and how far it is behind.
    Holds,
    /// To stand still until the next order.
    Halt,
    /// To do all that is due up to this instant, and nothing more from then on.
    Finish(Time, Box<Sample>),
    /// To end, whatever happened.
    Quit,
}

/// What a packet thread answers.
pub(crate) enum Answer {
    /// It runs as it should. Its waiting for a processor can be watched by this.
    Ready {
        delay: Option<RunDelay>,
        backends: Vec<String>,
    },
    Sampled(Box<Sampled>),
    /// With the bounds on lateness, and how many packets were later since the last sample.
    Snapshot(Box<Snapshot>, Vec<(narrows_core::Duration, u64)>),
    Feeds(Vec<Wanted>),
    Rules(Box<RulesSample>),
    Holds {
        packets: bool,
        /// How long ago the packets came that it reads now.
        behind: Duration,
    },
    Halted,
    Finished(Box<Sampled>, Option<Box<Capture>>),
    /// Not asked for: the first packet of all came.
    FirstPacket(Time),
    /// Not asked for: a change that the engine does not take.
    LeftOut(Time, BuildError),
    /// Not asked for: rules that others have taken the place of, to be dropped.
    Spent(Box<PreparedRules>),
    /// Not asked for: it moves no more packets.
    Failed(LoopError),
    /// Its thread has ended without a word.
    Gone,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready { .. } => "Ready",
            Self::Sampled(_) => "Sampled",
            Self::Snapshot(..) => "Snapshot",
            Self::Feeds(_) => "Feeds",
            Self::Rules(_) => "Rules",
            Self::Holds { .. } => "Holds",
            Self::Halted => "Halted",
            Self::Finished(..) => "Finished",
            Self::FirstPacket(_) => "FirstPacket",
            Self::LeftOut(..) => "LeftOut",
            Self::Spent(_) => "Spent",
            Self::Failed(_) => "Failed",
            Self::Gone => "Gone",
        })
    }
}

/// A packet thread's end of the channels.
pub(crate) struct Inbox {
    /// Which thread it is, from 0.
    pub(crate) number: usize,
    pub(crate) orders: Receiver<Order>,
    pub(crate) called: Arc<Waker>,
    pub(crate) answers: Sender<(usize, Answer)>,
    pub(crate) caller: Arc<Waker>,
}

impl Inbox {
    pub(super) fn answer(&self, answer: Answer) {
        // Whoever does not listen any more has ended the run.
        let _ = self.answers.send((self.number, answer));
        self.caller.wake();
    }

    /// The next order, however long that takes: for when there is nothing more to do.
    fn wait(&self) -> Order {
        self.orders.recv().unwrap_or(Order::Quit)
    }
}

impl DataLoop {
    /// What the thread does.
    pub(crate) fn serve(&mut self, pace: Pace) -> Result<(), LoopError> {
        self.keep_pace(pace)?;
        // It needs none; and works as well where the kernel lets it give up none.
        let _ = privileges::give_up();
        let delay = RunDelay::of_this_thread().ok();
        self.inbox.answer(Answer::Ready { delay, backends: self.backends() });
        match self.keep_going() {
            Ok(()) => Ok(()),
            Err(error) => {
                self.inbox.answer(Answer::Failed(error));
                self.stand_down()
            }
        }
    }

    /// Looks what there is to be heard. Changes count from this turn on; all else is done once it has ended.
    pub(super) fn heed(&mut self) {
        while let Ok(order) = self.inbox.orders.try_recv() {
            match order {
                Order::Follow(steps) => self.changes.follow(steps),
                Order::Ask(asked) => self.changes.ask(*asked),
                other => self.orders.push_back(other),
            }
        }
    }

    /// Does what it was told. Whether it is to end.
    pub(super) fn obey(&mut self) -> Result<bool, LoopError> {
        while let Some(order) = self.orders.pop_front() {
            // What fails here is answered standing down.
            let brought_up = match &order {
                Order::Sample(_) => self.count_lost(),
                Order::Finish(end, _) => self.settle(*end).and_then(|()| self.count_lost()),
                _ => Ok(()),
            };
            if let Err(error) = brought_up {
                self.orders.push_front(order);
                return Err(error);
            }
            match order {
                Order::Follow(steps) => self.changes.follow(steps),
                Order::Ask(asked) => self.changes.ask(*asked),
                Order::Sample(sample) => {
                    let now = self.clock.now();
                    let sampled = self.sample(*sample, now);
                    self.inbox.answer(Answer::Sampled(Box::new(sampled)));
                }
                Order::Snapshot { counts } => {
                    let now = self.clock.now();
                    let snapshot = self.snapshot(now, counts);
                    self.inbox.answer(Answer::Snapshot(Box::new(snapshot), self.meter.late()));
                }
                Order::Feeds(at) => self.feeds_asked = Some(at),
                Order::TakeFeeds(inlets) => self.take_feeds(inlets),
                Order::Rules(link) => {
                    let rules = self.rules_sample(&link);
                    self.inbox.answer(Answer::Rules(Box::new(rules)));
                }
                Order::Holds => {
                    let behind = self.clock.now().since(self.complete);
                    self.inbox.answer(Answer::Holds { packets: self.holds_packets(), behind });
                }
                Order::Halt => {
                    self.inbox.answer(Answer::Halted);
                    let next = self.inbox.wait();
                    self.orders.push_front(next);
                }
                Order::Finish(end, sample) => {
                    self.close_record()?;
                    self.finished(*sample, end);
                    let next = self.inbox.wait();
                    self.orders.push_front(next);
                }
                Order::Quit => return Ok(true),
            }
        }
        Ok(false)
    }

    /// After a failure: touches no port any more, and says what was until then.
    fn stand_down(&mut self) -> Result<(), LoopError> {
        loop {
            let order = self.orders.pop_front().unwrap_or_else(|| self.inbox.wait());
            match order {
                Order::Follow(_) | Order::Ask(_) | Order::TakeFeeds(_) => {}
                Order::Sample(sample) => {
                    let now = self.engine.now();
                    let sampled = self.sample(*sample, now);
                    self.inbox.answer(Answer::Sampled(Box::new(sampled)));
                }
                Order::Snapshot { counts } => {
                    let snapshot = self.snapshot(self.engine.now(), counts);
                    self.inbox.answer(Answer::Snapshot(Box::new(snapshot), self.meter.late()));
                }
                Order::Feeds(_) => self.inbox.answer(Answer::Feeds(self.wanted_feeds())),
                Order::Rules(link) => {
                    let rules = self.rules_sample(&link);
                    self.inbox.answer(Answer::Rules(Box::new(rules)));
                }
                Order::Holds => self.inbox.answer(Answer::Holds { packets: false, behind: Duration::ZERO }),
                Order::Halt => self.inbox.answer(Answer::Halted),
                Order::Finish(end, sample) => {
                    // It may have failed in the middle of a look at the ports.
                    self.put_in_order();
                    self.hand_in(end)?;
                    self.release(end)?;
                    self.close_record()?;
                    self.finished(*sample, end);
                }
                Order::Quit => return Ok(()),
            }
        }
    }

    fn finished(&mut self, sample: Sample, end: Time) {
        let sampled = Box::new(self.sample(sample, end));
        let capture = self.capture.take().map(Box::new);
        self.inbox.answer(Answer::Finished(sampled, capture));
    }

    /// Does all that is due up to an instant, and nothing that is due after it. Where the host is so busy that more has come
    /// than can be done before long, the rest is lost, and counted.
    fn settle(&mut self, end: Time) -> Result<(), LoopError> {
        let give_up = self.clock.now() + LAST_LOOKS_TAKE;
        let mut is_complete = false;
        for _ in 0..LAST_LOOKS {
            let now = self.clock.now();
            let complete = loop {
                if let Some(complete) = self.receive(now)? {
                    break complete.min(end);
                }
            };
            // So far behind that there is no catching up.
            if !time_is_virtual() && end.since(complete) > LAST_LOOKS_TAKE {
                break;
            }
            self.receive_values(complete);
            self.traffic.as_mut().map_or(Ok(()), |traffic| traffic.begin_turn(now))?;
            let reached = self.hand_in(complete)?;
            self.release(reached)?;
            is_complete = reached == end;
            if is_complete || !time_is_virtual() && self.clock.now() >= give_up {
                break;
            }
        }
        if !is_complete {
            self.lose_unread(end)?;
        }
        // What is still in the sockets came too late to be taken.
        self.release(end)?;
        self.tell_feeds();
        self.send()
    }

    /// Whether packets of programs are inside the network, or wait for an interface.
    fn holds_packets(&self) -> bool {
        self.frames_inside > 0 || !self.sending.is_empty()
    }
}
