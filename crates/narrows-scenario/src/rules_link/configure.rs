//! ipfw commands for pipes, queues and schedulers.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use narrows_core::sched::Weight;
use narrows_core::{Change, PipeConfig, RulesChange};

use super::batch::Batch;
use super::build::Plan;
use super::pipe::{Pipe, Run};
use super::{NUMBERS, PipeQueue};
use crate::ipfw::{Config, Object, Script};
use crate::node::Node;
use crate::problem::Problem;
use crate::value::SchedulerKind;

/// The state of queues before a change.
struct Before {
    /// The target of each number.
    targets: BTreeMap<u32, Option<PipeConfig>>,
    /// By pipe number.
    pipes: BTreeMap<u32, OfPipe>,
}

/// The state of a pipe before its queues changed.
enum OfPipe {
    /// With a mask: the whole pipe.
    Masked(Box<Plan>),
    /// Without a mask: the sets of these queues.
    Sets(Vec<(u32, Option<PipeQueue>)>),
}

impl Batch<'_> {
    /// As in ipfw, options that a line does not give get their defaults, except those that define the queue
    /// or scheduler.
    pub(super) fn configure(&mut self, config: &Config) -> Result<(), Problem> {
        let (config, scheduler) = config.split();
        match config.object {
            Object::Queue => self.configure_queue(&config)?,
            Object::Pipe | Object::Scheduler => self.configure_pipe(&config)?,
        }
        scheduler.map_or(Ok(()), |scheduler| self.configure_pipe(&scheduler))
    }

    fn configure_queue(&mut self, config: &Config) -> Result<(), Problem> {
        let number = config.number;
        let before = self.link.queues.get(&number);
        let Some(of) = config.parent().or(before.map(|queue| queue.pipe)) else {
            return Err(Problem::new(format!("queue {number} has no scheduler"))
                .help(format!("as in: queue {number} config sched 1")));
        };
        let Some(pipe) = self.link.pipes.get(&of) else {
            let problem = Problem::new(format!("queue {number} uses scheduler {of}, which does not exist"));
            return Err(problem.help(format!("first: pipe {of} config …")));
        };
        let mut queue = PipeQueue::of(of);
        if let Some(before) = before {
            (queue.weight, queue.priority, queue.longest) = (before.weight, before.priority, before.longest);
        }
        for (key, value) in Script::keys_of(config) {
            queue.set(key, &Node::new(value), self.around)?;
        }
        if pipe.shares_by().is_some_and(|sharing| sharing.kind == SchedulerKind::Wf2q) {
            let most = Weight::new(Script::MOST_WEIGHT);
            queue.weight = queue.weight.zip(most).map(|(weight, most)| weight.min(most));
        }
        let queue = queue.tidied(pipe.shares_by());
        self.set_queues(vec![(number, Some(queue))]);
        self.link.refused_change(of, number).map_or(Ok(()), Err)
    }

    fn configure_pipe(&mut self, config: &Config) -> Result<(), Problem> {
        let number = config.number;
        let has_queues = self.link.queues.count_of(number) > 0;
        let before = self.link.pipes.get(&number);
        let mut pipe = match (config.object, before) {
            (Object::Scheduler, Some(before)) => before.clone(),
            (_, Some(before)) => {
                let mut pipe = Pipe { sharing: before.sharing, most: before.most, ..Pipe::default() };
                pipe.direction.scheduler.clone_from(&before.direction.scheduler);
                pipe.idle = before.idle;
                // If queues share the link of a pipe, the pipe's mask is that of the scheduler.
                pipe.mask = before.mask.filter(|_| has_queues);
                pipe
            }
            (_, None) => Pipe::default(),
        };
        let was_there = before.is_some();
        let keeps = |key: &str| match key {
            "queue" => was_there && config.object == Object::Scheduler,
            "scheduler" => was_there && !config.says("scheduler"),
            // A pipe's own is for packets that rules send to it.
            "mask" => has_queues && config.object == Object::Pipe,
            _ => false,
        };
        for (key, value) in Script::keys_of(config).into_iter().filter(|(key, _)| !keeps(key)) {
            pipe.set(key, &Node::new(value), self.around)?;
        }
        if let Some((_, problem)) = pipe.conflict() {
            return Err(problem);
        }
        self.set_pipe(number, pipe);
        self.link.refused_queue(number).map_or(Ok(()), |(_, problem)| Err(problem))
    }

    /// Rebuilds a pipe whose mask changes; the packets inside leave the old one.
    fn set_pipe(&mut self, number: u32, mut pipe: Pipe) {
        self.tell_queue(number);
        let then = self.link.plan(self.name, number);
        let queues: Vec<u32> = self.link.queues_of(number).map(|(queue, _)| queue).collect();
        let targets: Vec<_> = queues.iter().map(|queue| self.link.queue_target(self.name, *queue)).collect();
        pipe.run = match self.link.pipes.get(&number) {
            Some(then) if then.is_instanced_like(&pipe) => then.run.clone(),
            Some(then) => Run { generation: then.run.generation + 1, ..Run::default() },
            None => Run { generation: self.link.memory.next_generation(number), ..Run::default() },
        };
        if self.link.pipes.get(&number).is_some_and(|then| then.run.generation != pipe.run.generation) {
            self.link.note_former(number);
        }
        self.link.memory.note_generation(number, pipe.run.generation);
        self.link.tidy_queues(number, &pipe);
        self.link.pipes.insert(number, pipe);
        self.link.settle_places(number);
        let Some(now) = self.link.plan(self.name, number) else { return };
        match then {
            Some(then) if then.name == now.name => {
                let changes = now.link_changes(&then, &self.site);
                changes.into_iter().for_each(|change| self.tell_link(&now.name, change));
            }
            _ => {
                self.tell_of_link(now.link(self.name, &self.site));
                self.tell(RulesChange::Pipe(number, self.link.pipe_target(self.name, number)));
            }
        }
        for (queue, then) in queues.into_iter().zip(targets) {
            self.tell_target(queue, then.as_ref());
        }
    }

    /// Replaces the queues with these numbers, or removes them.
    fn set_queues(&mut self, queues: Vec<(u32, Option<PipeQueue>)>) {
        let before = self.before_queues(&queues);
        for (number, queue) in queues {
            let then = self.link.queues.remove(number);
            let stays_at = queue.as_ref().map(|queue| queue.pipe);
            if let Some(then) = then.filter(|then| Some(then.pipe) != stays_at)
                && let Some(pipe) = self.link.pipes.get_mut(&then.pipe)
            {
                pipe.run.places.leave(number, then);
            }
            if let Some(queue) = queue {
                if let Some(pipe) = self.link.pipes.get_mut(&queue.pipe) {
                    pipe.run.places.join(number);
                }
                self.link.queues.insert(number, queue);
            }
        }
        for (pipe, then) in before.pipes {
            match then {
                OfPipe::Masked(then) => {
                    let Some(now) = self.link.plan(self.name, pipe) else { continue };
                    let changes = now.link_changes(&then, &self.site);
                    changes.into_iter().for_each(|change| self.tell_link(&now.name, change));
                }
                OfPipe::Sets(sets) => {
                    sets.into_iter().for_each(|(number, then)| self.tell_set(pipe, number, then));
                }
            }
        }
        for (number, then) in before.targets {
            self.tell_target(number, then.as_ref());
        }
    }

    fn before_queues(&mut self, queues: &[(u32, Option<PipeQueue>)]) -> Before {
        let mut before = Before { targets: BTreeMap::new(), pipes: BTreeMap::new() };
        for (number, queue) in queues {
            before.targets.insert(*number, self.link.queue_target(self.name, *number));
            let then = self.link.queues.get(number).map(|then| then.pipe);
            let now = queue.as_ref().map(|queue| queue.pipe);
            for pipe in [then, now.filter(|now| Some(*now) != then)].into_iter().flatten() {
                self.link.settle_places(pipe);
                let is_masked = self.link.pipes.get(&pipe).is_some_and(|pipe| pipe.mask.is_some());
                let plan = is_masked.then(|| self.link.plan(self.name, pipe)).flatten();
                let of_pipe = before.pipes.entry(pipe).or_insert_with(|| match plan {
                    Some(plan) => OfPipe::Masked(Box::new(plan)),
                    None => OfPipe::Sets(Vec::new()),
                });
                if let OfPipe::Sets(sets) = of_pipe {
                    sets.push((*number, self.link.set_of(pipe, *number)));
                }
            }
        }
        before
    }

    /// Records the flow set of a queue in a pipe without a mask.
    fn tell_set(&mut self, pipe: u32, number: u32, then: Option<PipeQueue>) {
        let Some(of) = self.link.pipes.get(&pipe).filter(|of| of.shares_by().is_some()) else { return };
        let now = self.link.set_of(pipe, number);
        let waits =
            |queue: &Option<PipeQueue>| queue.as_ref().map(|queue| queue.as_it_waits(of.direction.queue));
        if waits(&now) != waits(&then) {
            return self.requeue(pipe);
        }
        let (Some(now), Some(then), Some(place)) = (now, then, of.run.places.of(number)) else { return };
        let has_weights = of.shares_by().is_some_and(|sharing| sharing.has_weights());
        if has_weights && now.weight() != then.weight() {
            let change = Change::Weight { class: place + 1, weight: now.weight() };
            self.reweigh(pipe, number, then.weight, change);
        }
    }

    /// Records the target of a queue number, if it has changed.
    fn tell_target(&mut self, number: u32, then: Option<&PipeConfig>) {
        let now = self.link.queue_target(self.name, number);
        if now.as_ref() != then {
            self.tell(RulesChange::Queue(number, now));
        }
    }

    /// Deleting a pipe deletes its queues; deleting a scheduler deletes its pipe.
    pub(super) fn delete_objects(
        &mut self,
        object: Object,
        numbers: &RangeInclusive<u32>,
    ) -> Result<(), Problem> {
        let is_range = numbers.start() <= numbers.end();
        let there = match object {
            Object::Queue if is_range => {
                let all = self.link.queues.range(numbers.clone()).map(|(number, _)| (*number, None));
                let all: Vec<_> = all.collect();
                let there = !all.is_empty();
                self.set_queues(all);
                there
            }
            Object::Pipe | Object::Scheduler if is_range => self.delete_pipes(numbers),
            _ => false,
        };
        if there {
            return Ok(());
        }
        let (word, first, last) = (object.word(), numbers.start(), numbers.end());
        Err(Problem::new(match first == last {
            true => format!("there is no {word} {first}"),
            false => format!("there is no {word} from {first} to {last}"),
        }))
    }

    pub(super) fn flush_objects(&mut self) {
        self.delete_pipes(&NUMBERS);
    }

    /// Returns whether any of them existed.
    fn delete_pipes(&mut self, numbers: &RangeInclusive<u32>) -> bool {
        let pipes: Vec<u32> = self.link.pipes.range(numbers.clone()).map(|(number, _)| *number).collect();
        let mut queues = BTreeMap::new();
        for &number in &pipes {
            self.tell_queue(number);
            for (queue, _) in self.link.queues_of(number) {
                queues.insert(queue, self.link.queue_target(self.name, queue));
            }
        }
        for &number in &pipes {
            self.link.note_former(number);
            self.link.pipes.remove(&number);
            self.tell(RulesChange::Pipe(number, None));
        }
        for (queue, then) in queues {
            self.link.queues.remove(queue);
            self.tell_target(queue, then.as_ref());
        }
        !pipes.is_empty()
    }
}
