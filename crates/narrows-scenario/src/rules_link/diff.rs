//! Computes the changes between two states of running rules and pipes.

use narrows_core::Change;

use super::build::{Plan, RulesSite};
use super::{PipeQueue, RulesLink};
use crate::direction::{Direction, Site};
use crate::value::Queue;

impl Plan {
    /// The changes that turn a running link with the settings `before` into this one, ignoring masks.
    pub(super) fn changes_since(&self, before: &Self, site: &RulesSite) -> Vec<Change> {
        let addresses = |host: &str| site.addresses_of(host);
        let place = Site { seed: site.seed, link: &self.name, addresses: &addresses };
        let (now, then) = (&self.pipe.direction, &before.pipe.direction);
        if !self.has_sets() && !before.has_sets() {
            return now.changes_since(then, place);
        }
        // The queues are compared below.
        let alike = Direction {
            queue: now.queue,
            scheduler: now.scheduler.clone(),
            default_bound: now.default_bound,
            ..then.clone()
        };
        let mut changes = now.changes_since(&alike, place);
        if !self.has_sets() {
            changes.push(Change::Queue(now.build_queue(place)));
        } else if !self.waits_like(before) {
            changes.push(Change::Queue(self.queue(site)));
        } else if self.pipe.sharing.unwrap_or_default().has_weights() {
            let weights = self.sets.iter().zip(&before.sets).enumerate();
            changes.extend(
                weights
                    .filter(|(_, (now, then))| now.1.weight() != then.1.weight())
                    .map(|(place, ((_, now), _))| Change::Weight { class: place + 1, weight: now.weight() }),
            );
        }
        changes
    }

    /// Whether the queue of `before` can become this one by changing only weights.
    fn waits_like(&self, before: &Self) -> bool {
        let whole = |plan: &Self| {
            (plan.pipe.sharing.unwrap_or_default(), plan.pipe.idle, plan.pipe.direction.bound())
        };
        let sets = |plan: &Self| -> Vec<_> {
            let one =
                |(number, queue): &(u32, PipeQueue)| (*number, queue.as_it_waits(plan.pipe.direction.queue));
            plan.sets.iter().map(one).collect()
        };
        let own = |plan: &Self| Queue { bound: None, ..plan.pipe.direction.queue };
        before.has_sets()
            && whole(self) == whole(before)
            && own(self) == own(before)
            && sets(self) == sets(before)
    }
}

impl RulesLink {
    /// The changes for the engine that give the same pipes these settings. `name` is that of the link.
    pub(crate) fn changes_since(&self, before: &Self, name: &str, site: &RulesSite) -> Vec<(String, Change)> {
        let pipes = self.pipes.keys().filter_map(|pipe| self.plan(name, *pipe).zip(before.plan(name, *pipe)));
        pipes
            .flat_map(|(now, then)| {
                let changes = now.link_changes(&then, site);
                changes.into_iter().map(move |change| (now.name.clone(), change))
            })
            .collect()
    }
}

impl Plan {
    /// The changes that turn a running link with the settings `before` into this one, including its
    /// instances.
    pub(super) fn link_changes(&self, before: &Self, site: &RulesSite) -> Vec<Change> {
        let parts = self.changes_since(before, site);
        if self.pipe.mask.is_none() || parts.is_empty() {
            return parts;
        }
        vec![Change::Template(Box::new(self.template(Some(before.clone()), site)))]
    }
}
