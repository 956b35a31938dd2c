//! What turns running rules and pipes into others.

use narrows_core::{Change, RulesChange};

use super::RulesLink;
use super::build::{Plan, RulesSite};
use super::pipe::{Pipe, Run};
use crate::direction::{Direction, Site};
use crate::engine_change::EngineChange;
use crate::value::Queue;

impl Plan {
    /// What turns a running link that is like `before` into this one. Masks are not looked at.
    pub(super) fn changes_since(&self, before: &Self, site: &RulesSite) -> Vec<Change> {
        let addresses = |host: &str| site.addresses_of(host);
        let place = Site { seed: site.seed, link: &self.name, addresses: &addresses };
        let (now, then) = (&self.pipe.direction, &before.pipe.direction);
        if !self.has_sets() && !before.has_sets() {
            return now.changes_since(then, place);
        }
        // Where packets wait is compared below.
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
        } else {
            let weights = self.sets.iter().zip(&before.sets).enumerate();
            changes.extend(
                weights
                    .filter(|(_, (now, then))| now.1.weight() != then.1.weight())
                    .map(|(place, ((_, now), _))| Change::Weight { class: place + 1, weight: now.weight() }),
            );
        }
        changes
    }

    /// Whether a queue that is like `before` becomes this one by other weights.
    fn waits_like(&self, before: &Self) -> bool {
        let whole = |plan: &Self| {
            (plan.pipe.sharing.unwrap_or_default(), plan.pipe.idle, plan.pipe.direction.bound())
        };
        let sets = |plan: &Self| -> Vec<_> {
            let one = |(number, queue): &(u32, super::PipeQueue)| {
                let waits: Queue = queue.queue.unwrap_or(plan.pipe.direction.queue);
                (*number, super::PipeQueue { weight: None, queue: Some(waits), ..queue.clone() })
            };
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
    /// What the engine does so that its pipes and queues are these. `name` is that of the link, and `before` what it was.
    /// A pipe that begins or ceases to have another mask is made anew, and what was in the former one leaves it.
    pub(crate) fn changes_since(&mut self, before: &Self, name: &str, site: &RulesSite) -> Vec<EngineChange> {
        let mut changes = Vec::new();
        let rules = |change| EngineChange::Rules { rules: name.into(), change };
        for (number, pipe) in &mut self.pipes {
            pipe.run = match before.pipes.get(number) {
                Some(then) if then.is_instanced_like(pipe) => {
                    Run { generation: then.run.generation, places: before.sets(*number) }
                }
                Some(then) => Run { generation: then.run.generation + 1, places: Vec::new() },
                None => Run { generation: before.generations.next(*number), places: Vec::new() },
            };
        }
        self.generations = before.generations.clone();
        before.pipes.iter().for_each(|(number, pipe)| self.generations.note(*number, pipe.run.generation));
        for number in before.pipes.keys().filter(|number| !self.pipes.contains_key(number)) {
            changes.push(rules(RulesChange::Pipe(*number, None)));
        }
        for (number, pipe) in &self.pipes {
            self.generations.note(*number, pipe.run.generation);
            let Some(now) = self.plan(name, *number) else { continue };
            match before.plan(name, *number) {
                Some(then) if then.name == now.name => changes.extend(now.engine_changes(&then, site)),
                _ => {
                    changes.push(EngineChange::AddLink(Box::new(now.link(name, site))));
                    changes.push(rules(RulesChange::Pipe(*number, self.pipe_target(name, *number))));
                }
            }
        }
        let numbers: std::collections::BTreeSet<u32> =
            self.queues.keys().chain(before.queues.keys()).copied().collect();
        for number in numbers {
            let (now, then) = (self.queue_target(name, number), before.queue_target(name, number));
            if now != then {
                changes.push(rules(RulesChange::Queue(number, now)));
            }
        }
        if self.one_pass != before.one_pass {
            changes.push(rules(RulesChange::OnePass(self.one_pass)));
        }
        changes
    }
}

impl Plan {
    fn engine_changes(&self, before: &Self, site: &RulesSite) -> Vec<EngineChange> {
        let link = |change| EngineChange::Link { link: self.name.clone(), change };
        let parts = self.changes_since(before, site);
        if self.pipe.mask.is_none() {
            return parts.into_iter().map(link).collect();
        }
        if parts.is_empty() {
            return Vec::new();
        }
        vec![link(Change::Template(Box::new(self.template(Some(before.clone()), site))))]
    }
}

impl Pipe {
    /// Whether links are made on first use for the same flows, and as many.
    fn is_instanced_like(&self, other: &Self) -> bool {
        let of = |pipe: &Self| pipe.mask.map(|mask| (mask, pipe.most, pipe.idle));
        of(self) == of(other)
    }
}
