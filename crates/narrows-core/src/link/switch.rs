//! Turns a link into sch_netem's single queue, and back.

use alloc::boxed::Box;
use alloc::string::String;

use super::netem::{Netem, SingleQueue};
use crate::link::slots::Numbers;
use crate::link::waiting::Waiting;
use crate::link::{Link, LinkConfig, LinkSettings, Order};
use crate::model::Constant;
use crate::pool::Pool;
use crate::queue::{Context, Drops, Queue};
use crate::random::Seed;
use crate::service::{ConstantRate, Overhead};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};

/// Settings around the single queue, which does not keep order and has its own limit.
const STRIPPED: LinkSettings = LinkSettings { order: Order::Allow, ..LinkSettings::PLAIN };

/// The parts of a link, and the single queue if the configuration has one.
pub(super) fn replace(
    mut config: LinkConfig,
    seed: Seed,
    since: Time,
    slots: &Numbers,
) -> (LinkConfig, Option<Box<SingleQueue>>) {
    let Some(netem) = config.netem.take() else { return (config, None) };
    let queue = SingleQueue::new(netem, since, seed, &config.name, slots.of_netem);
    let LinkConfig { name, lanes, .. } = config;
    // Packets leave the single queue when they are due, in any order.
    let plain = LinkConfig { lanes, settings: STRIPPED, ..LinkConfig::plain(name) };
    (plain, Some(Box::new(queue)))
}

impl Link {
    pub(super) fn change_netem(
        &mut self,
        now: Time,
        netem: Option<Box<Netem>>,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let Some(netem) = netem else { return self.end_netem(now, pool) };
        let mut queue = SingleQueue::new(netem, now, self.seed, &self.name, self.slots.of_netem);
        if let Waiting::Single(before) = &mut self.queue {
            queue.succeed(before);
        } else {
            let held = self.queue.take_all(pool);
            self.strip(now, pool, drops);
            queue.adopt(now, held, &mut Context::new(pool, drops, &self.draws));
        }
        self.queue = Waiting::Single(Box::new(queue));
    }

    /// Resets all parts except the queue to those of a plain link.
    fn strip(&mut self, now: Time, pool: &mut Pool, drops: &mut Drops) {
        self.change_service(now, Box::new(ConstantRate(Rate::UNLIMITED)));
        self.overhead = Overhead::IP;
        self.set_air_time(None);
        self.set_burst(now, Bytes::new(0));
        self.change_bounds(now, None);
        self.impairments = None;
        self.change_delay(now, Box::new(Constant(Duration::ZERO)), pool, drops);
        self.settings = STRIPPED;
        self.change_slots(now, None);
    }

    /// Moves the packets of the single queue, if there is one, to the delay line, and replaces it with a
    /// plain queue.
    pub(super) fn end_netem(&mut self, now: Time, pool: &mut Pool) {
        let Waiting::Single(single) = &mut self.queue else { return };
        while let Some((packet, due)) = single.pop(pool) {
            let state = pool.get_mut(packet);
            state.queued += now.since(state.entered);
            let due = due.unwrap_or(now).max(now);
            self.last_due = self.last_due.max(due);
            self.line.push(due, packet, pool);
        }
        self.slots.of_netem = single.slots();
        let plain = LinkConfig::plain(String::new());
        self.queue = plain.queue.into();
        self.settings.order = plain.settings.order;
        self.varies = now;
    }
}
