//! Assignments to pipes and queues: `net.1.rate=2mbit`, `net.queue-10.weight=5`.

use super::RulesLink;
use crate::node::Node;
use crate::problem::{Problem, one_of};
use crate::surroundings::Surroundings;

impl RulesLink {
    /// Sets one key, or one part, of a pipe.
    pub(crate) fn assign_pipe(
        &mut self,
        number: u32,
        key: &str,
        node: &Node,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        let known: Vec<String> = self.pipes.keys().map(u32::to_string).collect();
        let has_queues = self.queues_of(number).next().is_some();
        let pipe = self.pipes.get_mut(&number).ok_or_else(|| no_such("pipe", number, &known))?;
        let before = pipe.clone();
        pipe.set(key, node, around)?;
        let fixed = |what: &str| {
            Err(Problem::new(format!("{what} cannot change while the pipe exists"))
                .at(&node.span)
                .inside(key)
                .help(format!("recreate it: narrows ipfw pipe {number} config …")))
        };
        if pipe.mask != before.mask {
            return fixed("what makes links on first use");
        }
        if pipe.mask.is_some() && (pipe.most, pipe.idle) != (before.most, before.idle) {
            return fixed("how many links a mask makes, and for how long,");
        }
        if has_queues && pipe.shares_by().is_some() != before.shares_by().is_some() {
            return fixed("whether queues share a pipe or it tells flows apart by itself");
        }
        if let Some((_, problem)) = pipe.conflict() {
            return Err(problem.inside(key).at(&node.span));
        }
        let pipe = pipe.clone();
        self.tidy_queues(number, &pipe);
        self.refused_queue(number).map_or(Ok(()), |(_, problem)| Err(problem.inside(key).at(&node.span)))
    }

    /// Sets one key, or one part, of a queue.
    pub(crate) fn assign_queue(
        &mut self,
        number: u32,
        key: &str,
        node: &Node,
        around: Surroundings<'_>,
    ) -> Result<(), Problem> {
        let known: Vec<String> = self.queues.keys().map(u32::to_string).collect();
        let mut queue = self.queues.get(&number).ok_or_else(|| no_such("queue", number, &known))?.clone();
        let of = queue.pipe;
        queue.set(key, node, around)?;
        if queue.pipe != of {
            return Err(Problem::new("a queue cannot change its pipe while it exists")
                .at(&node.span)
                .inside(key)
                .help(format!("move it: narrows ipfw queue {number} config pipe {} …", queue.pipe)));
        }
        let sharing = self.pipes.get(&of).and_then(super::Pipe::shares_by);
        if let Some((_, problem)) = queue.unused(sharing).into_iter().next() {
            return Err(problem.inside(key).at(&node.span));
        }
        self.queues.insert(number, queue);
        self.refused_queue(of).map_or(Ok(()), |(_, problem)| Err(problem.inside(key).at(&node.span)))
    }
}

fn no_such(what: &str, number: u32, known: &[String]) -> Problem {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let problem = Problem::new(format!("there is no {what} {number}"));
    if known.is_empty() { problem } else { problem.help(format!("{what}s: {}", one_of(&known))) }
}
