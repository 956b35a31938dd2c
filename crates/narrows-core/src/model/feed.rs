//! Delays that come from outside: another process generates them and streams them in.
//!
//! A [`Fed`] model holds values that were handed in ([`Engine::feed`](crate::Engine::feed)) and gives each, once and in
//! order, to one packet, when that enters the delay line. A value is a delay in nanoseconds, or −1: this packet is lost. A
//! packet sees only values that were handed in before it; whether there is one is decided when it enters the delay line, by
//! [`OnEmpty`] if there is none. How far ahead the values may run is bounded ([`FeedConfig::lead`]), so that a change of
//! what is fed takes effect soon.
//!
//! In the two-way form ([`FeedConfig::ask`]) a packet asks a question instead and waits for its answer: see
//! [`Question`](crate::Question).
//!
//! From: "A delay emulator with user-fed delays" (DETERMINISTIC6G's `sch_delay`), whose character device takes a run of
//! 64-bit delays, one for each packet. Where we depart from it: a value may lose its packet, and when the values run out
//! the configuration says what becomes of a packet, and it is counted.
//!
//! ```
//! use narrows_core::*;
//! use narrows_core::model::{Fed, FeedConfig, OnEmpty};
//!
//! let mut link = LinkConfig::new("wire", Target::Port("b".into()));
//! link.delay = Box::new(Fed::new(FeedConfig { on_empty: OnEmpty::Last, ..FeedConfig::new("jitter") }));
//! let mut config = NetworkConfig::new(Seed(1));
//! config.links.push(link);
//! config.ports.push(PortConfig { name: "a".into(), entry: Target::Link { name: "wire".into(), lane: 0 } });
//! config.ports.push(PortConfig { name: "b".into(), entry: Target::Port("b".into()) });
//! let mut engine = Engine::new(config)?;
//! let (a, wire) = (engine.port("a").expect("it was configured"), engine.link("wire").expect("so was it"));
//!
//! assert_eq!(engine.feed(Time::ZERO, wire, "jitter", &[3_000_000, -1]), 2);
//! let packet = Packet { length: 100, link_header: 14, network_header: 20, headers: Default::default(), key: FlowKey::default(), body: () };
//! for _ in 0..3 {
//!     engine.hand_in(Time::ZERO, a, packet.clone());
//! }
//! let mut leave = || engine.poll(Time::from_nanos(10_000_000)).map(|event| (event.at.nanos(), event.verdict));
//! assert!(matches!(leave(), Some((0, Verdict::Dropped { .. })))); // the second packet, by −1
//! assert!(matches!(leave(), Some((3_000_000, Verdict::Delivered(_))))); // the first
//! assert!(matches!(leave(), Some((3_000_000, Verdict::Delivered(_))))); // the third, by the last delay
//! # Ok::<(), BuildError>(())
//! ```

use alloc::collections::VecDeque;
use alloc::string::String;

use super::propagation::Propagation;
use crate::time::Duration;

/// What a feed is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedConfig {
    /// What tells the feeds of one link apart.
    pub name: String,
    /// What becomes of a packet for which there is no value.
    pub on_empty: OnEmpty,
    /// How many values are held at most, in the two-way form how many questions that nobody has taken; at least 1 (which
    /// less is taken to be). [`OnEmpty::Repeat`] goes round so many of the values used last.
    pub lead: usize,
    /// The two-way form, and how long a packet waits for its answer.
    pub ask: Option<Duration>,
}

impl FeedConfig {
    /// One way, 4,096 values ahead, and no delay when they run out.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), on_empty: OnEmpty::Zero, lead: 4096, ask: None }
    }
}

/// What becomes of a packet for which there is no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEmpty {
    /// It is not delayed.
    #[default]
    Zero,
    /// It gets the last delay that was used. (That another packet was lost is no delay.) Before there was one: none.
    Last,
    /// The values used last come again, the oldest first, losses among them, round and round until there is a fresh one;
    /// then the round begins anew. Before there was one: no delay.
    Repeat,
    /// It is lost.
    Drop,
}

/// What a feed has counted: `taken = used + late + discarded + waiting`, where what waits is of the one-way form and what
/// is late of the two-way form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedCounters {
    /// Values that were taken.
    pub taken: u64,
    /// Values that decided over a packet, those that lost it included.
    pub used: u64,
    /// Of these, those that lost it.
    pub lost: u64,
    /// Packets for which there was no value in time.
    pub underruns: u64,
    /// Values beyond what is possible: more than an hour, which became an hour, or less than −1, which became zero.
    pub clamped: u64,
    /// Values that were not taken, because there was no room, or no question.
    pub refused: u64,
    /// Values that a change of the delay model made useless: held when the feed became a two-way one, or the answer for a
    /// packet that another model now delays.
    pub discarded: u64,
    /// Questions.
    pub asked: u64,
    /// Questions that were not handed out, because nobody took those before them. Their answers are due all the same.
    pub untold: u64,
    /// Answers to questions that had been decided without them.
    pub late: u64,
}

/// A feed: values that wait, and what is remembered of those that were used.
#[derive(Debug)]
pub struct Feed {
    config: FeedConfig,
    /// Its number among the feeds of its link.
    pub(crate) number: u32,
    waiting: VecDeque<i64>,
    last: Duration,
    /// Those used last, where they may come again, and how many of them have since there was a fresh one.
    history: VecDeque<i64>,
    repeated: usize,
    /// The decision over the packet that is decided now, in the two-way form.
    answer: Option<Answer>,
    pub(crate) counters: FeedCounters,
}

/// What was decided on a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Value(i64),
    TooLate,
}

/// A value that loses its packet.
const LOSE: i64 = -1;
/// The longest delay that is taken.
const LONGEST: i64 = 3_600_000_000_000;

impl Feed {
    pub(super) fn new(config: FeedConfig) -> Self {
        Self {
            config,
            number: 0,
            waiting: VecDeque::new(),
            last: Duration::ZERO,
            history: VecDeque::new(),
            repeated: 0,
            answer: None,
            counters: FeedCounters::default(),
        }
    }

    /// What it is.
    pub const fn config(&self) -> &FeedConfig {
        &self.config
    }

    /// What it has counted.
    pub const fn counters(&self) -> FeedCounters {
        self.counters
    }

    /// Values that wait for packets.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn lead(&self) -> usize {
        self.config.lead.max(1)
    }

    /// How many more values it holds, one way.
    pub(crate) fn room(&self) -> usize {
        self.lead().saturating_sub(self.waiting.len())
    }

    /// Takes as many values as there is room for, one way. Returns how many.
    pub(crate) fn fill(&mut self, values: &[i64]) -> usize {
        let room = self.room().min(values.len());
        let (taken, refused) = values.split_at(room);
        for &value in taken {
            let value = self.take(value);
            self.waiting.push_back(value);
        }
        self.counters.refused += refused.len() as u64;
        taken.len()
    }

    /// Counts a value that is taken, and brings it into its range.
    pub(crate) fn take(&mut self, value: i64) -> i64 {
        self.counters.taken += 1;
        let possible = match value {
            LOSE..=LONGEST => return value,
            ..LOSE => 0,
            _ => LONGEST,
        };
        self.counters.clamped += 1;
        possible
    }

    /// The next time that this feed is asked, this is what was decided.
    pub(crate) const fn decide(&mut self, answer: Answer) {
        self.answer = Some(answer);
    }

    /// What was decided is of no use, if it has not been used: a change of the model has sent the packet elsewhere.
    pub(crate) const fn forget_answer(&mut self) {
        if let Some(Answer::Value(_)) = self.answer.take() {
            self.counters.discarded += 1;
        }
    }

    /// Takes over what a feed of the same name that this one replaces holds and remembers.
    pub(crate) fn adopt(&mut self, before: &mut Self) {
        self.counters = before.counters;
        self.last = before.last;
        if self.config.on_empty == OnEmpty::Repeat {
            self.history = core::mem::take(&mut before.history);
            let excess = self.history.len().saturating_sub(self.lead());
            self.history.drain(..excess);
        }
        self.waiting = core::mem::take(&mut before.waiting);
        if self.config.ask.is_some() {
            self.counters.discarded += self.waiting.len() as u64;
            self.waiting.clear();
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Propagation {
        let value = match (self.config.ask, self.answer.take()) {
            (None, _) => self.waiting.pop_front(),
            (Some(_), Some(Answer::Value(value))) => Some(value),
            (Some(_), Some(Answer::TooLate)) => None,
            (Some(_), None) => return Propagation::Asked(self.number),
        };
        match value {
            Some(value) => {
                self.counters.used += 1;
                self.remember(value);
                self.apply(value)
            }
            None => self.run_dry(),
        }
    }

    fn remember(&mut self, value: i64) {
        if self.config.on_empty == OnEmpty::Repeat {
            while self.history.len() >= self.lead() {
                self.history.pop_front();
            }
            self.history.push_back(value);
            self.repeated = 0;
        }
    }

    #[inline]
    fn apply(&mut self, value: i64) -> Propagation {
        match u64::try_from(value) {
            Ok(nanos) => {
                self.last = Duration::from_nanos(nanos);
                Propagation::After(self.last)
            }
            Err(_) => {
                self.counters.lost += 1;
                Propagation::Lost
            }
        }
    }

    fn run_dry(&mut self) -> Propagation {
        self.counters.underruns += 1;
        match self.config.on_empty {
            OnEmpty::Zero => Propagation::After(Duration::ZERO),
            OnEmpty::Last => Propagation::After(self.last),
            OnEmpty::Drop => Propagation::Lost,
            OnEmpty::Repeat => {
                let value = self.history.get(self.repeated % self.history.len().max(1)).copied();
                self.repeated += 1;
                match value.map_or(Ok(0), u64::try_from) {
                    Ok(nanos) => Propagation::After(Duration::from_nanos(nanos)),
                    Err(_) => Propagation::Lost,
                }
            }
        }
    }
}
