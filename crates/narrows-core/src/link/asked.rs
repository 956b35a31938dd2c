//! Packets whose delay is asked for, outside, and what they wait for.
//!
//! A packet that enters the delay line of a link with a two-way feed ([`FeedConfig::ask`](crate::model::FeedConfig::ask)) at
//! t becomes a [`Question`]. The answers come as values of the feed, in the order of its questions. Of a packet whose answer
//! d comes at a, it is due at `max(t + d, a)`. When patience runs out at t + p, the feed decides as if it were empty, and
//! the packet is due at `max(t + delay, t + p)`; the answer to it is still the next one of the feed, and is thrown away when
//! it comes. An answer at the very instant t + p is late.
//!
//! Where order is kept, packets that entered behind one that waits are held back with it, whatever their own delay, until
//! its fate is known; then the rule for packets that are held back holds.

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
    /// The feed, by its place in [`LinkView::feeds`](crate::LinkView::feeds).
    pub feed: u32,
    /// Its number among the questions of the feed, from 0. Where numbers are missing, questions came that nobody took in
    /// time ([`FeedCounters::untold`](crate::model::FeedCounters::untold)); they need answers, too.
    pub number: u64,
    /// When the packet entered the delay line.
    pub at: Time,
    /// Its length from the network header on.
    pub length: u32,
    /// Its flow.
    pub key: FlowKey,
}

/// The packets of a link that wait for answers, and those behind them.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// In the order in which they entered. The first one is open.
    row: VecDeque<Entry>,
    /// The number of the first in the row; they count on.
    first: u64,
    /// Those in the row that are gone: no more than half of a long row.
    gone: usize,
    /// By the number of the feed.
    feeds: Vec<Asker>,
    questions: VecDeque<Untaken>,
}

/// What is asked of one feed.
#[derive(Debug, Default)]
struct Asker {
    /// How long packets wait; nothing for a feed that is not asked.
    patience: Option<Duration>,
    lead: usize,
    /// Entries in the row without an answer, and until when they wait.
    open: VecDeque<(u64, Time)>,
    /// How many answers are to come to questions that are decided.
    owed: u64,
    untaken: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet: PacketRef,
    /// Whether it may not overtake.
    keeps: bool,
    fate: Fate,
}

/// So many of those that are gone may stay in any row.
const FEW: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// [`PacketState::entered`] is when it entered.
    Open,
    /// [`PacketState::entered`] is when it is due.
    Known,
    /// It is lost, or in the line.
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
    /// Packets inside.
    pub(super) fn len(&self) -> u64 {
        (self.row.len() - self.gone) as u64
    }

    /// Whether a packet that keeps order has to join the row.
    pub(super) fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// The next instant at which patience runs out, and the number of the feed.
    pub(super) fn deadline(&self) -> (Time, u32) {
        let heads =
            self.feeds.iter().zip(0..).filter_map(|(feed, number)| Some((feed.open.front()?.1, number)));
        heads.min().unwrap_or((Time::NEVER, 0))
    }

    /// Gets to know the feeds of the link, the first time or after a change. Feeds keep what they have under their new
    /// numbers; `new` has that of each old one, if it goes on and is still asked.
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

    /// A packet waits for an answer of the feed from `now` on, which its state says, too.
    pub(super) fn ask(
        &mut self,
        now: Time,
        packet: PacketRef,
        state: &PacketState,
        feed: &mut Feed,
        keeps: bool,
    ) {
        let asker = &mut self.feeds[feed.number as usize];
        // Where patience was longer before a change, it is for those behind, too: they are decided in order.
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

    /// A packet that is due when its state says comes behind others that wait.
    pub(super) fn wait_behind(&mut self, packet: PacketRef) {
        self.push(packet, true, Fate::Known);
    }

    fn push(&mut self, packet: PacketRef, keeps: bool, fate: Fate) {
        self.row.push_back(Entry { packet, keeps, fate });
    }

    /// Answers that the feed can take: those to open questions, and those that come too late.
    pub(super) fn room(&self, feed: u32) -> u64 {
        self.feeds.get(feed as usize).map_or(0, |asker| asker.owed + asker.open.len() as u64)
    }

    /// Questions without an answer.
    pub(super) fn open(&self, feed: u32) -> u64 {
        self.feeds.get(feed as usize).map_or(0, |asker| asker.open.len() as u64)
    }

    /// Whether the next answer of the feed comes too late; then it is taken.
    pub(super) fn is_late(&mut self, feed: u32) -> bool {
        let owed = &mut self.feeds[feed as usize].owed;
        let late = *owed > 0;
        *owed -= u64::from(late);
        late
    }

    /// The oldest open question of a feed: the number of its entry, and the packet.
    pub(super) fn close(&mut self, feed: u32) -> Option<(u64, PacketRef)> {
        let (number, _) = self.feeds.get_mut(feed as usize)?.open.pop_front()?;
        Some((number, self.row[(number - self.first) as usize].packet))
    }

    /// The answer to the question that was closed is still to come.
    pub(super) fn owe(&mut self, feed: u32) {
        self.feeds[feed as usize].owed += 1;
    }

    /// The packet of an entry that was closed is lost.
    pub(super) fn lose(&mut self, number: u64) {
        self.row[(number - self.first) as usize].fate = Fate::Gone;
        self.gone += 1;
    }

    /// The packet of an entry that was closed is due when its state says.
    pub(super) fn settle(&mut self, number: u64) {
        self.row[(number - self.first) as usize].fate = Fate::Known;
    }

    /// The next packet that may go to the line, if there is one, and whether it keeps order; `number` is the entry that was
    /// settled or lost last. To be called until there is none; then entries may have other numbers.
    pub(super) fn release(&mut self, number: u64) -> Option<(PacketRef, bool)> {
        // One that may overtake does not wait for those before it.
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

    /// Takes those that are gone out of the row and numbers the others anew, in a time that is linear in the row: no more
    /// than a constant for each that has gone since the last time.
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

    /// Hands out the questions that nobody has taken.
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
