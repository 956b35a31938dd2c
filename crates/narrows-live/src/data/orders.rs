//! What a packet thread is told, and what it answers.
//!
//! Orders come by a channel, with a call that wakes the thread if it sleeps; they are looked for in every turn, however busy
//! it is, and each is answered at once with raw counters. The answers are no more than the orders, so the channel back is
//! bounded by whoever asks.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use narrows_core::rules::{PreparedRules, Rule, RuleCounters, StateView};
use narrows_core::{BuildError, Element, Time};
use narrows_io::clock::thread_processor_time;
use narrows_io::host::{RunDelay, time_is_virtual};
use narrows_io::privileges;
use narrows_io::waker::Waker;
use narrows_report::{Counts, Meter, RunInfo, ThreadReport, TrainsReport};

use super::changes::{Asked, Step};
use super::pace::Pace;
use super::{DataLoop, LoopError};
use crate::capture::Capture;
use crate::feeds::{Inlets, Wanted};

/// How often, at the end, a loop looks whether there is still something from before it; and for how long at the most.
const LAST_LOOKS: usize = 64;
const LAST_LOOKS_TAKE: narrows_core::Duration = narrows_core::Duration::from_millis(300);

/// What a packet thread is told.
pub(crate) enum Order {
    /// Steps of the timeline, which follow those before.
    Follow(Vec<Step>),
    /// A change that somebody asks for.
    Ask(Box<Asked>),
    /// To say what has been counted.
    Sample(Box<Sample>),
    /// To say what feeds there are.
    Feeds,
    /// To take these in place of the feeds before.
    TakeFeeds(Inlets),
    /// To say what rules have counted, and what the pipes of this link hold.
    Rules(String),
    /// To say whether packets are inside the network, or wait for an interface.
    Holds,
    /// To stand still until the next order.
    Halt,
    /// To do all that is due up to this instant, and nothing more from then on.
    Finish(Time, Box<Sample>),
    /// To end, whatever happened.
    Quit,
}

/// What a sample is taken with.
pub(crate) struct Sample {
    /// What is reported on.
    pub(crate) info: RunInfo,
    /// What the loop goes on with as its meter.
    pub(crate) meter: Meter,
}

/// What a packet thread has counted.
pub(crate) struct Sampled {
    pub(crate) info: RunInfo,
    pub(crate) counts: Counts,
    /// What was seen since the sample before.
    pub(crate) meter: Meter,
    pub(crate) thread: ThreadReport,
    pub(crate) trains: Option<TrainsReport>,
    /// Frames that were answered at its ports.
    pub(crate) answered: u64,
    /// Routers that had more to say than they may: their names, and how many messages.
    pub(crate) silenced: Vec<(String, u64)>,
    /// Where the engine is.
    pub(crate) engine_at: Time,
}

/// What rules have counted.
#[derive(Debug, Default)]
pub(crate) struct RulesSample {
    pub(crate) rules: Vec<(Rule, RuleCounters, bool)>,
    pub(crate) states: Vec<StateView>,
    /// The engine's links that begin with the name of the rules.
    pub(crate) pipes: Vec<PipeSample>,
}

/// What a pipe has counted, in its flows.
#[derive(Debug)]
pub(crate) struct PipeSample {
    pub(crate) link: String,
    pub(crate) whole: FlowSample,
    /// The links that a mask made.
    pub(crate) instances: Vec<FlowSample>,
    /// The queues within, by their numbers.
    pub(crate) queues: Vec<(u32, FlowSample)>,
}

/// One flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowSample {
    pub(crate) flow: narrows_core::classify::Flow,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) waiting: u64,
    pub(crate) waiting_bytes: u64,
    pub(crate) dropped: u64,
}

/// What a packet thread answers.
pub(crate) enum Answer {
    /// It runs as it should. Its waiting for a processor can be watched by this.
    Ready {
        delay: Option<RunDelay>,
        backends: Vec<String>,
    },
    Sampled(Box<Sampled>),
    Feeds(Vec<Wanted>),
    Rules(Box<RulesSample>),
    Holds(bool),
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
            Self::Feeds(_) => "Feeds",
            Self::Rules(_) => "Rules",
            Self::Holds(_) => "Holds",
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
                Order::Feeds => self.inbox.answer(Answer::Feeds(self.wanted_feeds())),
                Order::TakeFeeds(inlets) => self.take_feeds(inlets),
                Order::Rules(link) => {
                    let rules = self.rules_sample(&link);
                    self.inbox.answer(Answer::Rules(Box::new(rules)));
                }
                Order::Holds => self.inbox.answer(Answer::Holds(self.holds_packets())),
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
                Order::Feeds => self.inbox.answer(Answer::Feeds(self.wanted_feeds())),
                Order::Rules(link) => {
                    let rules = self.rules_sample(&link);
                    self.inbox.answer(Answer::Rules(Box::new(rules)));
                }
                Order::Holds => self.inbox.answer(Answer::Holds(false)),
                Order::Halt => self.inbox.answer(Answer::Halted),
                Order::Finish(end, sample) => {
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
            self.receive_values(complete);
            self.hand_in(complete)?;
            self.release(complete)?;
            is_complete = complete == end;
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

    /// What this loop has counted; the engine has been brought up to `now`.
    fn sample(&mut self, sample: Sample, now: Time) -> Sampled {
        let Sample { mut info, meter } = sample;
        info.span = (Time::ZERO, now);
        let counts = Counts::of(&info, &self.engine, &|place| self.share.has(place));
        Sampled {
            counts,
            thread: self.thread_report(&info),
            meter: std::mem::replace(&mut self.meter, meter),
            info,
            trains: self.trains(),
            answered: self.ports.iter().map(|port| port.answered).sum(),
            silenced: self.routers.silenced(),
            engine_at: self.engine.now(),
        }
    }

    /// What the thread has used.
    fn thread_report(&self, info: &RunInfo) -> ThreadReport {
        let used = thread_processor_time().saturating_sub(self.processor_time_before);
        let span = info.span.1.since(info.span.0).nanos().max(1);
        ThreadReport {
            ports: self.ports.iter().filter(|port| port.cable.is_some()).count() as u64,
            processor: self.pace.processor,
            processor_ns: used,
            processor_share: used as f64 / span as f64,
            rested_ns: self.rest.rested.nanos(),
        }
    }

    /// How frames come and go at its ports.
    fn backends(&self) -> Vec<String> {
        let cables = self.ports.iter().filter_map(|port| port.cable.as_ref());
        cables.map(|cable| cable.end.description()).collect()
    }

    /// Whether packets are inside the network, or wait for an interface.
    fn holds_packets(&self) -> bool {
        self.engine.inside() > 0 || !self.sending.is_empty()
    }

    fn rules_sample(&self, name: &str) -> RulesSample {
        let Some(rules) = self.engine.rules_of(name) else { return RulesSample::default() };
        if !self.share.has_element(Element::Rules(rules)) {
            return RulesSample::default();
        }
        let now = self.clock.now();
        let set = self.engine.rule_set(rules);
        let rule = |view: narrows_core::rules::RuleView<'_>| (view.rule.clone(), view.counters, view.enabled);
        let pipes = self.engine.links().filter_map(|link| {
            let view = self.engine.view(link);
            view.name().strip_prefix(name)?.strip_prefix('.')?;
            let flows = view.masked_flows(now).into_iter().map(|flow| {
                let of_flow = FlowSample {
                    flow: flow.flow.unwrap_or_default(),
                    packets: flow.arrived.packets,
                    bytes: flow.arrived.bytes,
                    waiting: flow.backlog.packets,
                    waiting_bytes: flow.backlog.bytes,
                    dropped: flow.dropped.packets,
                };
                (flow.number, of_flow)
            });
            let instances = view.instances(now);
            Some(PipeSample {
                link: view.name().to_owned(),
                whole: of_view(&view),
                instances: instances
                    .iter()
                    .map(|instance| FlowSample { flow: instance.flow, ..of_view(&instance.link) })
                    .collect(),
                queues: flows.collect(),
            })
        });
        RulesSample {
            rules: set.rules().map(rule).collect(),
            states: set.states(now),
            pipes: pipes.collect(),
        }
    }
}

fn of_view(view: &narrows_core::LinkView<'_>) -> FlowSample {
    let (counters, backlog) = (view.counters(), view.backlog());
    FlowSample {
        flow: Default::default(),
        packets: counters.iter().map(|lane| lane.arrived.packets).sum(),
        bytes: counters.iter().map(|lane| lane.arrived.bytes).sum(),
        waiting: backlog.packets,
        waiting_bytes: backlog.bytes,
        dropped: counters.iter().map(|lane| lane.dropped_in_all().packets).sum(),
    }
}
