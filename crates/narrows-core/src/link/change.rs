//! Changes of a running link.

use alloc::boxed::Box;

use super::{Change, Link, feeds};
use crate::pool::Pool;
use crate::queue::{Context, Drops};
use crate::service::{ServiceCurve, Work};
use crate::time::Time;
use crate::units::Rate;

impl Link {
    /// Changes the link at `now`; all events up to `now` have been handled. No packet is lost: packets in the
    /// delay line keep their due times, waiting packets stay in order of arrival, even beyond a smaller
    /// bound, and the remainder of a transmission continues at the new rate.
    pub(crate) fn change(&mut self, now: Time, change: Change, pool: &mut Pool, drops: &mut Drops) {
        if self.varies <= now {
            self.vary(now);
        }
        if change.needs_headers() {
            pool.keep_headers();
        }
        match change {
            Change::Service(service) => {
                self.change_service(now, service);
                self.vary(now);
            }
            Change::Queue(mut queue) => {
                if queue.looks_at_tcp_options() {
                    pool.keep_tcp_options();
                }
                self.end_netem(now, pool);
                let waiting = self.queue.take_all(pool);
                queue.set_wire(now, self.wire(now));
                queue.adopt(now, waiting, &mut Context::new(pool, drops, &self.draws));
                feeds::keep_values(|visit| self.queue.each_feed(visit), |visit| queue.each_feed(visit));
                self.queue = queue.into();
                self.set_bound(now);
            }
            Change::QueueBound(bound) => self.queue.set_bound(bound),
            Change::BoundSteps(steps) => self.change_bounds(now, steps),
            Change::Weight { class, weight } => {
                let changed = self.queue.set_weight(now, class, weight);
                debug_assert!(changed.is_ok(), "whoever asks for a weight knows the scheduler: {changed:?}");
            }
            Change::Class { class, settings } => {
                let changed = self.queue.set_class(now, class, settings);
                debug_assert!(changed.is_ok(), "whoever asks for them knows the scheduler: {changed:?}");
            }
            Change::Classifier(classifier) => {
                let changed = self.queue.set_classifier(classifier);
                debug_assert!(changed.is_ok(), "whoever asks for it knows the classes: {changed:?}");
            }
            Change::AirTime(profile) => self.set_air_time(profile),
            Change::Burst(burst) => self.set_burst(now, burst),
            Change::Overhead(overhead) => {
                self.overhead = overhead;
                self.set_wire(now);
            }
            Change::IngressLoss(loss) => self.impair(loss, |link| &mut link.ingress_loss),
            Change::Ingress(ingress) => self.impair(ingress, |link| &mut link.ingress),
            Change::Policer(policer) => self.impair(policer, |link| &mut link.policer),
            Change::WireLoss(loss) => self.impair(loss, |link| &mut link.wire_loss),
            Change::Corruption(corruption) => self.impair(corruption, |link| &mut link.corruption),
            Change::Duplication(selector) => self.impair(selector, |link| &mut link.duplication),
            Change::Delay(delay) => self.change_delay(now, delay, pool, drops),
            Change::Reorder(reorder) => self.impair(reorder, |link| &mut link.reorder),
            Change::Slots(slots) => self.change_slots(now, slots),
            Change::Netem(netem) => self.change_netem(now, netem, pool, drops),
            Change::Settings(settings) => self.settings = settings,
            // The network handles templates of links with instances; a link without any applies the
            // template's changes itself.
            Change::Template(template) => {
                template.changes().into_iter().for_each(|change| self.change(now, change, pool, drops));
            }
        }
        self.serve(now, pool, drops);
    }

    pub(super) fn change_service(&mut self, now: Time, service: Box<dyn ServiceCurve>) {
        self.credit_idle_time(now);
        let before = core::mem::replace(&mut self.service, service.into());
        self.freed.1 = Work::default();
        let Some(mut transmission) = self.transmission.take() else { return };
        // During its air time none of its bits have been sent.
        if transmission.since < now {
            let done = before.served(transmission.since, now);
            transmission.work = Work(transmission.work.0.saturating_sub(done.0));
            if before.rate(transmission.since) == Rate::DOWN && done == Work::default() {
                // The wire was down, and not in use.
                transmission.began = transmission.began + now.since(transmission.since);
            }
            transmission.since = now;
        }
        (transmission.end, transmission.surplus) =
            self.predict(transmission.since, transmission.work, Work::default());
        self.transmission = Some(transmission);
    }
}
