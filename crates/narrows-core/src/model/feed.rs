//! Feeds: delays that another process generates and streams in.
//!
//! A [`Fed`] model holds values that were handed in ([`Engine::feed`](crate::Engine::feed)) and gives each
//! one, once and in order, to one packet that enters the delay line. A value is a delay in nanoseconds, or
//! −1: lose this packet. A packet uses only values handed in before it. Whether there is one is decided when
//! the packet enters the delay line; if not, [`OnEmpty`] applies. The number of values held ahead is limited
//! ([`FeedConfig::lead`]), so that a change of the fed values takes effect soon.
//!
//! In the two-way form ([`FeedConfig::ask`]) a packet asks a question instead and waits for its answer: see
//! [`Question`](crate::Question).
//!
//! Source: "A delay emulator with user-fed delays" (DETERMINISTIC6G's `sch_delay`), whose character device
//! takes a sequence of 64-bit delays, one per packet. Departures: a value may lose its packet, and when the
//! values run out, the configuration decides the packet's fate, and an underrun is counted.
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

/// The configuration of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedConfig {
    /// Distinguishes the feeds of one link.
    pub name: String,
    /// The fate of a packet for which there is no value.
    pub on_empty: OnEmpty,
    /// Maximum number of values held; in the two-way form, maximum number of untaken questions. At least 1;
    /// smaller values count as 1. [`OnEmpty::Repeat`] cycles through this many of the last values used.
    pub lead: usize,
    /// Enables the two-way form, and sets how long a packet waits for its answer.
    pub ask: Option<Duration>,
}

impl FeedConfig {
    /// One-way, up to 4,096 values ahead, and no delay when they run out.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), on_empty: OnEmpty::Zero, lead: 4096, ask: None }
    }
}

/// The fate of a packet for which there is no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEmpty {
    /// No delay.
    #[default]
    Zero,
    /// The last delay used. (The loss of another packet is not a delay.) No delay if there has been none.
    Last,
    /// The last values used, losses included, repeat in a cycle, oldest first, until there is a new value;
    /// after that a new cycle begins. No delay if there have been none.
    Repeat,
    /// The packet is lost.
    Drop,
}

/// The counters of a feed: `taken = used + late + discarded + waiting`, where `waiting` applies to the
/// one-way form and `late` to the two-way form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedCounters {
    /// Values accepted.
    pub taken: u64,
    /// Values that decided a packet's fate, including losses.
    pub used: u64,
    /// Of the used values, those that lost their packet.
    pub lost: u64,
    /// Packets for which there was no value in time.
    pub underruns: u64,
    /// Values out of range: above one hour, taken as one hour, or below −1, taken as zero.
    pub clamped: u64,
    /// Values not accepted, because there was no room or no question.
    pub refused: u64,
    /// Values made useless by a change of the delay model: held when the feed became two-way, or the answer
    /// for a packet that another model now delays.
    pub discarded: u64,
    /// Questions.
    pub asked: u64,
    /// Questions that were not handed out because earlier ones had not been taken. They still need answers.
    pub untold: u64,
    /// Answers to questions that were already decided without them.
    pub late: u64,
}

/// A feed: its waiting values, and the memory of used ones.
#[derive(Debug)]
pub struct Feed {
    config: FeedConfig,
    /// The feed's number within its link.
    pub(crate) number: u32,
    waiting: VecDeque<i64>,
    last: Duration,
    /// The last values used, if they may repeat, and how many have been repeated since the last new value.
    history: VecDeque<i64>,
    repeated: usize,
    /// In the two-way form, the decision on the packet currently handled.
    answer: Option<Answer>,
    pub(crate) counters: FeedCounters,
}

/// The decision on a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Value(i64),
    TooLate,
}

/// A value that loses its packet.
const LOSE: i64 = -1;
/// The maximum delay accepted.
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

    /// The feed's configuration.
    pub const fn config(&self) -> &FeedConfig {
        &self.config
    }

    /// The feed's counters.
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

    /// How many more values a one-way feed holds.
    pub(crate) fn room(&self) -> usize {
        self.lead().saturating_sub(self.waiting.len())
    }

    /// Takes as many values as a one-way feed has room for. Returns how many.
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

    /// The valid value nearest to a value: a delay of at most an hour, or −1.
    pub const fn possible(value: i64) -> i64 {
        match value {
            LOSE..=LONGEST => value,
            ..LOSE => 0,
            _ => LONGEST,
        }
    }

    /// Counts an accepted value, and clamps it to the valid range.
    pub(crate) fn take(&mut self, value: i64) -> i64 {
        self.counters.taken += 1;
        let possible = Self::possible(value);
        self.counters.clamped += u64::from(possible != value);
        possible
    }

    /// Stores a decision, for the next time this feed is asked.
    pub(crate) const fn decide(&mut self, answer: Answer) {
        self.answer = Some(answer);
    }

    /// Discards an unused decision: a change of the model has sent the packet elsewhere.
    pub(crate) const fn forget_answer(&mut self) {
        if let Some(Answer::Value(_)) = self.answer.take() {
            self.counters.discarded += 1;
        }
    }

    /// Takes over the values and the memory of the feed with the same name that this one replaces.
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
