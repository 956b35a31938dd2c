//! Orders to a packet thread, and its answers.
//!
//! Orders arrive through a channel, with a wake-up call if the thread sleeps. Every turn checks for them, however
//! busy it is, and answers each at once with raw counters. There are no more answers than orders, so the director
//! bounds the channel back.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use narrows_core::rules::PreparedRules;
use narrows_core::{BuildError, Duration, Time};
use narrows_frame::nat::Rebind;
use narrows_io::confinement::{self, Work};
use narrows_io::host::{RunDelay, time_is_virtual};
use narrows_io::waker::Waker;
use narrows_report::Snapshot;

use super::changes::{Asked, Step};
use super::inspection::{FurtherLinks, Inspection};
use super::pace::Pace;
use super::sample::{RulesSample, Sample, Sampled};
use super::{DataLoop, LoopError};
use crate::capture::Capture;
use crate::feeds::{Inlets, Wanted};
use crate::packet_records::PacketTap;

/// At the end: how often a loop checks for remaining inputs, and for how long at most.
const LAST_LOOKS: usize = 64;
const LAST_LOOKS_TAKE: Duration = Duration::from_millis(300);
/// The same for a link inside the kernel, whose packets have gone their way already: as long as its ring takes to be read
/// on a slow machine.
const RECORDS_TAKE: Duration = Duration::from_secs(10);

/// An order to a packet thread.
pub(crate) enum Order {
    /// Timeline steps that follow the earlier ones.
    Follow(Vec<Step>),
    /// A requested change.
    Ask(Box<Asked>),
    /// Return the counters.
    Sample(Box<Sample>),
    /// Return what the links have delivered, and their backlogs.
    Snapshot {
        /// Include all counters of links.
        counts: bool,
    },
    /// Return the feeds that exist once all changes up to this instant are made.
    Feeds(Time),
    /// Replace the feeds.
    TakeFeeds(Inlets),
    /// Return the counters of rules, and the contents of this link's pipes.
    Rules(String),
    /// Note packets here from now on, or nowhere; return those noted so far, and the names of the links after the
    /// first `known_links`.
    Inspect { room: Option<Box<Inspection>>, known_links: usize },
    /// Make the router's address translation forget its mappings.
    Rebind(Rebind),
    /// Return whether packets are inside the network or wait for an interface, and how far the thread is behind.
    Holds,
    /// Stop processing until the next order.
    Halt,
    /// Do everything due up to this instant, and nothing after that.
    Finish(Time, Box<Sample>),
    /// End, whatever the state.
    Quit,
}

/// Output files that a packet thread has fed, to be closed.
pub(crate) struct Outputs {
    pub(crate) capture: Option<Box<Capture>>,
    pub(crate) packets: Option<Box<PacketTap>>,
    /// What is wrong with its part of the input log.
    pub(crate) record: Option<String>,
}

/// An answer of a packet thread.
pub(crate) enum Answer {
    /// It is running as configured. Its run-queue wait can be monitored with this.
    Ready {
        delay: Option<RunDelay>,
        backends: Vec<String>,
        /// Whether the kernel keeps it to open descriptors.
        confined: bool,
    },
    Sampled(Box<Sampled>),
    /// With the bounds on lateness, and how many packets exceeded them since the last sample.
    Snapshot(Box<Snapshot>, Vec<(narrows_core::Duration, u64)>),
    Feeds(Vec<Wanted>),
    Rules(Box<RulesSample>),
    Inspected(Option<Box<Inspection>>, FurtherLinks),
    Holds {
        packets: bool,
        /// The age of the packets that it reads now.
        behind: Duration,
    },
    Halted,
    Finished(Box<Sampled>, Outputs),
    /// Unsolicited: the first packet of the run arrived.
    FirstPacket(Time),
    /// Unsolicited: the engine rejected a change.
    LeftOut(Time, BuildError),
    /// Unsolicited: replaced rules, to be dropped.
    Spent(Box<PreparedRules>),
    /// Unsolicited: it has failed and moves no more packets.
    Failed(LoopError),
    /// Its thread ended without an answer.
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
            Self::Inspected(..) => "Inspected",
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
    /// Its index, from 0.
    pub(crate) number: usize,
    pub(crate) orders: Receiver<Order>,
    pub(crate) called: Arc<Waker>,
    pub(crate) answers: Sender<(usize, Answer)>,
    pub(crate) caller: Arc<Waker>,
}

impl Inbox {
    pub(super) fn answer(&self, answer: Answer) {
        // A receiver that no longer listens has ended the run.
        let _ = self.answers.send((self.number, answer));
        self.caller.wake();
    }

    /// Waits for the next order, for when there is nothing else to do.
    fn wait(&self) -> Order {
        self.orders.recv().unwrap_or(Order::Quit)
    }
}

impl DataLoop {
    /// The main function of the thread.
    pub(crate) fn serve(&mut self, pace: Pace) -> Result<(), LoopError> {
        self.keep_pace(pace)?;
        let delay = RunDelay::of_this_thread().ok();
        // All is open by now; it also works if the kernel does not confine it. A guest has system calls of its own, and nothing to
        // protect.
        let confined = !time_is_virtual() && confinement::to(Work::Descriptors).is_ok();
        self.inbox.answer(Answer::Ready { delay, backends: self.backends(), confined });
        match self.keep_going() {
            Ok(()) => Ok(()),
            Err(error) => {
                self.inbox.answer(Answer::Failed(error));
                self.stand_down()
            }
        }
    }

    /// Reads orders. Changes count from this turn on; all else is done after the turn.
    pub(super) fn heed(&mut self) {
        while let Ok(order) = self.inbox.orders.try_recv() {
            match order {
                Order::Follow(steps) => self.changes.follow(steps),
                Order::Ask(asked) => self.changes.ask(*asked),
                other => self.orders.push_back(other),
            }
        }
    }

    /// Executes orders. Returns whether to end.
    pub(super) fn obey(&mut self) -> Result<bool, LoopError> {
        while let Some(order) = self.orders.pop_front() {
            // If this fails, the order is answered after standing down.
            let brought_up = match &order {
                Order::Sample(_) => self.count_lost().and_then(|()| self.split_some_losses()),
                Order::Finish(end, _) => {
                    self.settle(*end).and_then(|()| self.count_lost()).and_then(|()| self.split_losses())
                }
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
                Order::Inspect { room, known_links } => {
                    let (inspection, links) = self.inspect(room, known_links);
                    self.inbox.answer(Answer::Inspected(inspection, links));
                }
                Order::Rebind(what) => self.gateway.iter_mut().for_each(|gateway| gateway.rebind(what)),
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
                    self.finished(*sample, end);
                    let next = self.inbox.wait();
                    self.orders.push_front(next);
                }
                Order::Quit => return Ok(true),
            }
        }
        Ok(false)
    }

    /// After a failure: uses no port any more, and answers with the state before the failure.
    fn stand_down(&mut self) -> Result<(), LoopError> {
        loop {
            let order = self.orders.pop_front().unwrap_or_else(|| self.inbox.wait());
            match order {
                Order::Follow(_) | Order::Ask(_) | Order::TakeFeeds(_) | Order::Rebind(_) => {}
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
                Order::Inspect { room, known_links } => {
                    let (inspection, links) = self.inspect(room, known_links);
                    self.inbox.answer(Answer::Inspected(inspection, links));
                }
                Order::Holds => self.inbox.answer(Answer::Holds { packets: false, behind: Duration::ZERO }),
                Order::Halt => self.inbox.answer(Answer::Halted),
                Order::Finish(end, sample) => {
                    // The failure may have happened during a pass over the ports.
                    self.put_in_order();
                    self.hand_in(end)?;
                    self.release(end)?;
                    self.finished(*sample, end);
                }
                Order::Quit => return Ok(()),
            }
        }
    }

    fn finished(&mut self, sample: Sample, end: Time) {
        let sampled = Box::new(self.sample(sample, end));
        let outputs = Outputs {
            capture: self.capture.take().map(Box::new),
            packets: self.packets.take(),
            record: self.recorder.take().and_then(|recorder| recorder.finish(&self.engine)),
        };
        self.inbox.answer(Answer::Finished(sampled, outputs));
    }

    /// Does everything due up to an instant, and nothing due after it. If the host is so busy that the arrivals
    /// cannot be processed in time, the rest is lost, and counted.
    fn settle(&mut self, end: Time) -> Result<(), LoopError> {
        let (looks, takes) = match self.in_kernel {
            Some(_) => (usize::MAX, RECORDS_TAKE),
            None => (LAST_LOOKS, LAST_LOOKS_TAKE),
        };
        let give_up = self.clock.now() + takes;
        let mut is_complete = false;
        for _ in 0..looks {
            let now = self.clock.now();
            let complete = loop {
                if let Some(complete) = self.receive(now)? {
                    break complete.min(end);
                }
            };
            // Too far behind to catch up.
            if !time_is_virtual() && end.since(complete) > takes {
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
        // What is still in the sockets arrived too late to be taken.
        self.release(end)?;
        self.tell_feeds();
        self.send()
    }

    /// Whether programs' packets are inside the network or wait for an interface.
    fn holds_packets(&self) -> bool {
        self.frames_inside > 0 || !self.lines.sending.is_empty()
    }
}
