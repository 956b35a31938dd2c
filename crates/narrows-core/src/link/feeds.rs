//! A link whose delays come from outside: values in, questions out, and decisions on packets that wait for an
//! answer.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::asked::{Asked, Question};
use super::{Link, Order, visit};
use crate::counters::DropReason;
use crate::id::LinkId;
use crate::model::{Answer, DelayModel, Feed, FeedConfig, FeedCounters, Propagation};
use crate::pool::{PacketRef, Pool};
use crate::queue::Drops;
use crate::time::{Duration, Time};

/// A feed of a link, for inspection.
#[derive(Clone, Copy, Debug)]
pub struct FeedView<'a> {
    /// The feed's configuration.
    pub config: &'a FeedConfig,
    /// The feed's counters.
    pub counters: FeedCounters,
    /// Values that wait for packets.
    pub waiting: u64,
    /// Packets that wait for answers.
    pub open: u64,
    /// How many more values the feed takes now: the rest of its lead, or, for a two-way feed, the number of
    /// answers expected.
    pub room: u64,
}

impl Link {
    /// Numbers the feeds of the delay model, and prepares for packets that wait for answers. `new` has the
    /// new number of each previous feed that is still asked.
    pub(super) fn meet_feeds(&mut self, new: &[Option<u32>]) {
        let mut feeds = Vec::new();
        self.delay.each_feed(&mut |feed| {
            feed.number = feeds.len() as u32;
            feeds.push((feed.config().ask, feed.lead()));
        });
        if self.asked.is_some() || feeds.iter().any(|(patience, _)| patience.is_some()) {
            self.asked.get_or_insert_default().meet(feeds, new);
            self.attend();
        }
    }

    /// A packet enters the delay line at `now` and waits for an answer.
    pub(super) fn ask(&mut self, now: Time, packet: PacketRef, number: u32, pool: &mut Pool) {
        let keeps = self.settings.order == Order::Keep;
        let state = pool.get_mut(packet);
        state.entered = now;
        let asked = self.asked.as_mut().expect("a model that asks has a feed that does");
        with_feed(&mut *self.delay, number, |feed| asked.ask(now, packet, state, feed, keeps));
        self.attend();
    }

    /// Takes values at `now`. Returns how many were taken.
    pub(crate) fn feed(
        &mut self,
        now: Time,
        name: &str,
        values: &[i64],
        pool: &mut Pool,
        drops: &mut Drops,
    ) -> usize {
        let (mut asks, mut taken) = (None, 0);
        let mut found = false;
        self.delay.each_feed(&mut |feed| {
            if found || feed.config().name != name {
                return;
            }
            found = true;
            match feed.config().ask {
                None => taken = feed.fill(values),
                Some(_) => asks = Some(feed.number),
            }
        });
        if !found {
            self.queue.each_feed(&mut |feed| {
                if !found && feed.config().name == name {
                    found = true;
                    taken = feed.fill(values);
                }
            });
        }
        if let Some(number) = asks {
            taken = values.iter().take_while(|&&value| self.answer(now, number, value, pool, drops)).count();
            let refused = (values.len() - taken) as u64;
            with_feed(&mut *self.delay, number, |feed| feed.counters.refused += refused);
            self.attend();
        }
        taken
    }

    /// Handles an answer to the oldest open question. Returns whether there was one.
    fn answer(&mut self, now: Time, number: u32, value: i64, pool: &mut Pool, drops: &mut Drops) -> bool {
        let Some(asked) = &mut self.asked else { return false };
        if asked.is_late(number) {
            with_feed(&mut *self.delay, number, |feed| {
                feed.take(value);
                feed.counters.late += 1;
            });
            return true;
        }
        let Some((entry, packet)) = asked.close(number) else { return false };
        with_feed(&mut *self.delay, number, |feed| {
            let value = feed.take(value);
            feed.decide(Answer::Value(value));
        });
        self.decide(now, number, entry, packet, pool, drops);
        true
    }

    /// One question times out at `now`.
    pub(super) fn expire(&mut self, now: Time, pool: &mut Pool, drops: &mut Drops) {
        let Some(asked) = &mut self.asked else { return };
        let (_, number) = asked.deadline();
        self.give_up(now, number, pool, drops);
        self.attend();
    }

    /// Decides the oldest open question of a feed without an answer. Returns whether there was one.
    fn give_up(&mut self, now: Time, number: u32, pool: &mut Pool, drops: &mut Drops) -> bool {
        let Some(asked) = &mut self.asked else { return false };
        let Some((entry, packet)) = asked.close(number) else { return false };
        asked.owe(number);
        with_feed(&mut *self.delay, number, |feed| feed.decide(Answer::TooLate));
        self.decide(now, number, entry, packet, pool, drops);
        true
    }

    /// The feed has its decision on a packet: asks the model again, and releases all packets that need not
    /// wait any longer.
    fn decide(
        &mut self,
        now: Time,
        number: u32,
        entry: u64,
        packet: PacketRef,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let entered = pool.get(packet).entered;
        let visit = visit(self.draws.cyclic, pool, packet);
        let mut draw = pool.draw(&self.streams.delay, packet, visit);
        let propagation = self.delay.delay(entered, pool.get(packet), &mut draw);
        with_feed(&mut *self.delay, number, Feed::forget_answer);
        let Some(asked) = &mut self.asked else { return };
        let delay = match propagation {
            Propagation::After(delay) => Some(delay),
            Propagation::Lost => None,
            // Reached only if a model sends the packet to another feed than before, which it must not do.
            Propagation::Asked(_) => Some(Duration::ZERO),
        };
        match delay {
            Some(delay) => {
                asked.settle(entry);
                pool.get_mut(packet).entered = (entered + delay).max(now);
            }
            None => {
                asked.lose(entry);
                drops.push(packet, DropReason::DelayModel);
            }
        }
        while let Some((packet, keeps)) = self.asked.as_mut().and_then(|asked| asked.release(entry)) {
            // A packet that waited behind a lost one may have been due before `now`.
            let due = pool.get(packet).entered.max(now);
            self.put_in_line(due, packet, keeps, pool);
        }
    }

    /// Sets another delay model from `now` on. Feeds with the same name keep their values and questions;
    /// questions to other feeds are decided now, since they would never be answered. If several feeds have
    /// the same name, the first continues as the first.
    pub(super) fn change_delay(
        &mut self,
        now: Time,
        mut delay: Box<dyn DelayModel>,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let mut feeds = Vec::new();
        delay.each_feed(&mut |feed| feeds.push((feed.config().name.clone(), feed.config().ask.is_some())));
        let (mut new, mut met) = (Vec::new(), Vec::new());
        self.delay.view_feeds(&mut |before| {
            let FeedConfig { name, ask, .. } = before.config();
            // Values go to the first feed of a name, so another one would never be answered.
            let is_first = !met.contains(&name);
            met.push(name);
            let same = (0..).zip(&feeds).find(|(_, feed)| is_first && feed.0 == *name);
            new.push(same.filter(|(_, feed)| ask.is_some() && feed.1).map(|same| same.0));
        });
        for (number, _) in (0..).zip(&new).filter(|(_, new)| new.is_none()) {
            while self.give_up(now, number, pool, drops) {}
        }
        keep_values(|visit| self.delay.each_feed(visit), |visit| delay.each_feed(visit));
        self.delay = delay.into();
        self.meet_feeds(&new);
    }

    /// Whether packets here may wait for answers.
    pub(crate) const fn asks(&self) -> bool {
        self.asked.is_some()
    }

    /// Hands out the untaken questions.
    pub(crate) fn take_questions(&mut self, link: LinkId, to: &mut Vec<Question>) {
        if let Some(asked) = &mut self.asked {
            asked.take(link, to);
        }
    }

    /// The link's feeds.
    pub(super) fn view_feeds(&self) -> Vec<FeedView<'_>> {
        let mut views = Vec::new();
        let asked = self.asked.as_deref();
        self.delay.view_feeds(&mut |feed| {
            let of = |what: fn(&Asked, u32) -> u64| asked.map_or(0, |asked| what(asked, feed.number));
            views.push(FeedView {
                config: feed.config(),
                counters: feed.counters(),
                waiting: feed.waiting() as u64,
                open: of(Asked::open),
                room: if feed.config().ask.is_some() { of(Asked::room) } else { feed.room() as u64 },
            });
        });
        self.queue.view_feeds(&mut |feed| {
            views.push(FeedView {
                config: feed.config(),
                counters: feed.counters(),
                waiting: feed.waiting() as u64,
                open: 0,
                room: feed.room() as u64,
            });
        });
        views
    }
}

/// Feeds take over the values of the feeds with the same names that they replace, the first of a name from the first.
/// Both arguments visit feeds.
pub(super) fn keep_values(
    before: impl FnOnce(&mut dyn FnMut(&mut Feed)),
    mut after: impl FnMut(&mut dyn FnMut(&mut Feed)),
) {
    let mut adopted = Vec::new();
    before(&mut |before| {
        let mut is_first = !adopted.contains(&before.config().name);
        after(&mut |feed| {
            if is_first && before.config().name == feed.config().name {
                feed.adopt(before);
                is_first = false;
            }
        });
        adopted.push(before.config().name.clone());
    });
}

/// Applies `act` to the feed with this number.
fn with_feed(model: &mut dyn DelayModel, number: u32, act: impl FnOnce(&mut Feed)) {
    let mut act = Some(act);
    model.each_feed(&mut |feed| {
        if feed.number == number
            && let Some(act) = act.take()
        {
            act(feed);
        }
    });
}
