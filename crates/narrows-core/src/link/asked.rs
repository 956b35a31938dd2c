//! Packets whose delay is asked for outside the engine, and packets that wait behind them.
//!
//! A packet that enters the delay line of a link with a two-way feed
//! ([`FeedConfig::ask`](crate::model::FeedConfig::ask)) at t becomes a [`Question`]. Answers are values of
//! the feed, in the order of its questions. A packet whose answer d arrives at a is due at `max(t + d, a)`. A
//! question times out at t + p, where p is the feed's patience: the feed then decides as if it were empty,
//! and the packet is due at `max(t + delay, t + p)`. Its answer is still the next value expected by the feed,
//! and is discarded when it arrives. An answer exactly at t + p is late.
//!
//! With order kept, packets that entered behind a waiting one wait with it, whatever their own delay, until
//! its outcome is known. Then the usual rule for packets delayed to keep order applies.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::id::LinkId;
use crate::model::Feed;
use crate::packet::FlowKey;
use crate::pool::{PacketRef, PacketState};
use crate::time::{Duration, Time};

/// A packet that waits in a link for its delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The link.
    pub link: LinkId,
    /// The feed, as an index into [`LinkView::feeds`](crate::LinkView::feeds).
    pub feed: u32,
    /// The question's number within the feed, from 0. A gap in the numbers means that questions were not
    /// taken in time ([`FeedCounters::untold`](crate::model::FeedCounters::untold)); they also need answers.
    pub number: u64,
    /// When the packet entered the delay line.
    pub at: Time,
    /// The packet's length from the network header on.
    pub length: u32,
    /// The packet's flow key.
    pub key: FlowKey,
}

/// The packets of a link that wait for answers, and the packets behind them.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// In the order in which they entered. The first one is open.
    row: VecDeque<Entry>,
    /// The number of the first entry in the row; the others follow consecutively.
    first: u64,
    /// Entries in the row whose packets are gone: at most half of a long row.
    gone: usize,
    /// By the number of the feed.
    feeds: Vec<Asker>,
    questions: VecDeque<Untaken>,
}

/// The questions of one feed.
#[derive(Debug, Default)]
struct Asker {
    /// How long packets wait for an answer; `None` for a one-way feed.
    patience: Option<Duration>,
    lead: usize,
    /// Entries in the row without an answer, and their deadlines.
    open: VecDeque<(u64, Time)>,
    /// Expected answers to questions that are already decided.
    owed: u64,
    untaken: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet: PacketRef,
    /// Whether it must keep order.
    keeps: bool,
    fate: Fate,
}

/// This many entries of packets that are gone may stay in any row.
const FEW: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// [`PacketState::entered`] is when the packet entered.
    Open,
    /// [`PacketState::entered`] is when the packet is due.
    Known,
    /// The packet is lost, or in the delay line.
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct Untaken {
    feed: u32,
    number: u64,
    at: Time,
    length: u32,
    key: FlowKey,
}

impl Asked {
    /// The number of packets inside.
    pub(super) fn len(&self) -> u64 {
        (self.row.len() - self.gone) as u64
    }

    /// Whether a packet that keeps order need not wait in the row.
    pub(super) fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// The next deadline of a question, and the number of its feed.
    pub(super) fn deadline(&self) -> (Time, u32) {
        let heads =
            self.feeds.iter().zip(0..).filter_map(|(feed, number)| Some((feed.open.front()?.1, number)));
        heads.min().unwrap_or((Time::NEVER, 0))
    }

    /// Sets the feeds of the link, initially or after a change. Feeds keep their state under their new
    /// numbers; `new` has the new number of each old feed that still exists and is still two-way.
    pub(super) fn meet(&mut self, feeds: Vec<(Option<Duration>, usize)>, new: &[Option<u32>]) {
        let mut before = core::mem::take(&mut self.feeds);
        self.feeds =
            feeds.into_iter().map(|(patience, lead)| Asker { patience, lead, ..Asker::default() }).collect();
        for (asker, new) in before.iter_mut().zip(new) {
            let Some(new) = *new else {
                debug_assert!(asker.open.is_empty(), "questions to a feed that is gone were decided");
                continue;
            };
            let at = &mut self.feeds[new as usize];
            (at.open, at.owed, at.untaken) = (core::mem::take(&mut asker.open), asker.owed, asker.untaken);
        }
        self.questions.retain_mut(|question| match new.get(question.feed as usize) {
            Some(Some(number)) => {
                question.feed = *number;
                true
            }
            _ => false,
        });
    }

    /// A packet waits for an answer of the feed from `now` on, the time in its state.
    pub(super) fn ask(
        &mut self,
        now: Time,
        packet: PacketRef,
        state: &PacketState,
        feed: &mut Feed,
        keeps: bool,
    ) {
        let asker = &mut self.feeds[feed.number as usize];
        // If a change has shortened the patience, later questions wait as long as earlier ones: they are
        // decided in order.
        let deadline = now + asker.patience.unwrap_or_default();
        let deadline = asker.open.back().map_or(deadline, |last| last.1.max(deadline));
        asker.open.push_back((self.first + self.row.len() as u64, deadline));
        let number = feed.counters.asked;
        feed.counters.asked += 1;
        if asker.untaken < asker.lead {
            asker.untaken += 1;
            let (length, key) = (state.length, state.key);
            self.questions.push_back(Untaken { feed: feed.number, number, at: now, length, key });
        } else {
            feed.counters.untold += 1;
        }
        self.push(packet, keeps, Fate::Open);
    }

    /// A packet whose state has its due time waits behind others.
    pub(super) fn wait_behind(&mut self, packet: PacketRef) {
        self.push(packet, true, Fate::Known);
    }

    fn push(&mut self, packet: PacketRef, keeps: bool, fate: Fate) {
        self.row.push_back(Entry { packet, keeps, fate });
    }

    /// Answers that the feed accepts: those to open questions, and late ones.
    pub(super) fn room(&self, feed: u32) -> u64 {
        self.feeds.get(feed as usize).map_or(0, |asker| asker.owed + asker.open.len() as u64)
    }

    /// Questions without an answer.
    pub(super) fn open(&self, feed: u32) -> u64 {
        self.feeds.get(feed as usize).map_or(0, |asker| asker.open.len() as u64)
    }

    /// Whether the next answer of the feed is late; if so, it is consumed.
    pub(super) fn is_late(&mut self, feed: u32) -> bool {
        let owed = &mut self.feeds[feed as usize].owed;
        let late = *owed > 0;
        *owed -= u64::from(late);
        late
    }

    /// Closes the oldest open question of a feed: returns the number of its entry, and the packet.
    pub(super) fn close(&mut self, feed: u32) -> Option<(u64, PacketRef)> {
        let (number, _) = self.feeds.get_mut(feed as usize)?.open.pop_front()?;
        Some((number, self.row[(number - self.first) as usize].packet))
    }

    /// The answer to the closed question is still to come.
    pub(super) fn owe(&mut self, feed: u32) {
        self.feeds[feed as usize].owed += 1;
    }

    /// The packet of a closed entry is lost.
    pub(super) fn lose(&mut self, number: u64) {
        self.row[(number - self.first) as usize].fate = Fate::Gone;
        self.gone += 1;
    }

    /// The packet of a closed entry is due at the time in its state.
    pub(super) fn settle(&mut self, number: u64) {
        self.row[(number - self.first) as usize].fate = Fate::Known;
    }

    /// The next packet that may go to the delay line, if any, and whether it keeps order; `number` is the
    /// entry last settled or lost. Call this until it returns `None`; after that, entries may have other
    /// numbers.
    pub(super) fn release(&mut self, number: u64) -> Option<(PacketRef, bool)> {
        // A packet that may overtake does not wait for those before it.
        let settled = number.checked_sub(self.first).and_then(|at| self.row.get_mut(at as usize));
        if let Some(entry) = settled
            && entry.fate == Fate::Known
            && !entry.keeps
        {
            entry.fate = Fate::Gone;
            self.gone += 1;
            return Some((entry.packet, false));
        }
        while let Some(entry) = self.row.front().filter(|entry| entry.fate != Fate::Open).copied() {
            self.row.pop_front();
            self.first += 1;
            match entry.fate {
                Fate::Known => return Some((entry.packet, entry.keeps)),
                _ => self.gone -= 1,
            }
        }
        if self.gone > FEW && self.gone > self.row.len() / 2 {
            self.close_ranks();
        }
        None
    }

    /// Removes entries of packets that are gone and renumbers the others, in time linear in the length of the
    /// row: amortized, constant per packet gone.
    fn close_ranks(&mut self) {
        let mut gone = 0;
        let before: Vec<u64> = self
            .row
            .iter()
            .map(|entry| {
                let before = gone;
                gone += u64::from(entry.fate == Fate::Gone);
                before
            })
            .collect();
        for (number, _) in self.feeds.iter_mut().flat_map(|feed| &mut feed.open) {
            *number -= before[(*number - self.first) as usize];
        }
        self.row.retain(|entry| entry.fate != Fate::Gone);
        self.gone = 0;
    }

    /// Hands out the untaken questions.
    pub(super) fn take(&mut self, link: LinkId, to: &mut Vec<Question>) {
        self.feeds.iter_mut().for_each(|asker| asker.untaken = 0);
        to.extend(self.questions.drain(..).map(|Untaken { feed, number, at, length, key }| Question {
            link,
            feed,
            number,
            at,
            length,
            key,
        }));
    }
}
