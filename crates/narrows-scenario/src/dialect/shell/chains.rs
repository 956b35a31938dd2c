//! Chains of commands, and what depends on the success of one: that is tried where it is not known.

use std::ops::Range;

use super::KEEP;
use super::place::Place;
use super::state::{Flow, Output, Runner, Status, Trial, lines_of};
use super::tree::{Chain, Command, Joint, Node, Pipeline};
use super::values::{Missing, Scalar, Value};
use crate::problem::Problem;

/// What a trial found.
pub(super) struct Tried {
    pub(super) done: Trial,
    pub(super) flow: Flow,
    pub(super) status: Status,
    /// The variables that it changed.
    pub(super) changed: Vec<String>,
    /// Whether it prints something that is captured.
    pub(super) prints: bool,
}

impl Runner<'_> {
    pub(super) fn chain(&mut self, chain: &Chain) -> Flow {
        if self.is_over {
            return Flow::Exit;
        }
        if chain.is_background {
            return self.background(chain);
        }
        self.joined(chain)
    }

    pub(super) fn joined(&mut self, chain: &Chain) -> Flow {
        let Chain { first, rest, .. } = chain;
        // In a chain, only the failure of its last command ends the script.
        let has_rest = usize::from(!rest.is_empty());
        self.conditions += has_rest;
        let flow = self.pipeline(first);
        self.conditions -= has_rest;
        if flow != Flow::On {
            return flow;
        }
        let mut is_last = rest.is_empty() && !first.is_negated;
        let mut asked = span_of(first);
        for (index, (joint, pipeline)) in rest.iter().enumerate() {
            is_last = false;
            let span = span_of(pipeline);
            let runs = match (self.status, joint) {
                (Status::Known(0), Joint::And) | (Status::Known(1..), Joint::Or) => true,
                (Status::Known(_), _) => continue,
                (Status::Assumed, _) => {
                    match self.assumed(*joint, pipeline) {
                        true => {}
                        false => {
                            self.depends(&span);
                            return Flow::On;
                        }
                    }
                    *joint == Joint::And
                }
                (Status::WithoutArguments(status), _) => {
                    // Whether it holds does not matter where it leads to nothing, and nobody asks.
                    let ends = self.conditions == 0
                        && rest[index..].iter().all(|(_, pipeline)| self.is_harmless(pipeline));
                    if ends {
                        self.status = Status::SUCCESS;
                        return Flow::On;
                    }
                    (status == 0) == (*joint == Joint::And)
                }
                (Status::Unknown { is_condition }, _) => {
                    let trial = self.tried(|runner| {
                        runner.status = Status::of(*joint == Joint::And);
                        runner.pipeline(pipeline)
                    });
                    if matches!(trial.flow, Flow::Return | Flow::MayReturn) && self.may_return(&trial) {
                        self.status = Status::QUESTION;
                        return Flow::MayReturn;
                    }
                    let ends = trial.flow != Flow::On && *joint == Joint::And && !is_condition;
                    let is_jump = self.is_jump(&trial);
                    if trial.done.has_effect || trial.done.sleeps || ends || is_jump {
                        match is_condition {
                            true => self.doubtful(&asked),
                            false => self.depends(&span),
                        }
                        return Flow::On;
                    }
                    let status = self.status;
                    let succeeds = matches!(trial.status, Status::Known(0) | Status::Assumed);
                    let ends = trial.flow != Flow::On;
                    self.doubt([trial]);
                    // Either one of them succeeds, or it is still not known.
                    if *joint == Joint::And || !succeeds && !ends {
                        self.status = status;
                    }
                    continue;
                }
            };
            if !runs {
                continue;
            }
            is_last = index + 1 == rest.len() && !pipeline.is_negated;
            asked = span;
            self.conditions += usize::from(!is_last);
            let flow = self.pipeline(pipeline);
            self.conditions -= usize::from(!is_last);
            if flow != Flow::On {
                return flow;
            }
        }
        let last = rest.last().map_or(first, |(_, pipeline)| pipeline);
        match self.status {
            Status::Known(1..) if is_last && fails(last) && self.exits_on_failure && self.conditions == 0 => {
                Flow::Exit
            }
            _ => Flow::On,
        }
    }

    /// Whether what follows an assumed success may rely on it: it does not end the script, and what handles a failure has no
    /// effect.
    pub(super) fn assumed(&mut self, joint: Joint, pipeline: &Pipeline) -> bool {
        let trial = self.tried(|runner| runner.pipeline(pipeline));
        match joint {
            Joint::And => trial.flow == Flow::On,
            Joint::Or => !trial.done.has_effect,
        }
    }

    pub(super) fn is_harmless(&mut self, pipeline: &Pipeline) -> bool {
        let trial = self.tried(|runner| runner.pipeline(pipeline));
        !trial.done.has_effect && !trial.done.sleeps && trial.changed.is_empty()
    }

    pub(super) fn depends(&mut self, span: &Range<usize>) {
        let span = self.place(span);
        let title = "what depends on the success or failure of another command";
        self.trial.iter_mut().for_each(|trial| trial.has_effect = true);
        self.wrong(Problem::new(title).help(format!("scripts are read, not run: {KEEP}")), &span);
    }

    pub(super) fn doubtful(&mut self, span: &Range<usize>) {
        let span = self.place(span);
        let title = "a condition that depends on more than the script";
        self.trial.iter_mut().for_each(|trial| trial.has_effect = true);
        self.wrong(Problem::new(title).help(format!("scripts are read, not run: {KEEP}")), &span);
    }

    /// Whether a branch goes on elsewhere in the script, rather than being a guard: that ends the script, or fails in what is
    /// executed.
    pub(super) fn is_jump(&self, trial: &Tried) -> bool {
        match trial.flow {
            Flow::On => false,
            // What stands for all of a list is one of those that are not left out.
            Flow::Continue(1) if self.loops == self.once => false,
            Flow::Break(_) | Flow::Continue(_) | Flow::MayReturn => true,
            Flow::Exit if self.shells == 0 => false,
            Flow::Return | Flow::Exit => trial.status == Status::SUCCESS,
        }
    }

    /// Whether what was tried is nothing but a success of the function that is executed.
    pub(super) fn may_return(&self, trial: &Tried) -> bool {
        let is_quiet = !trial.done.has_effect && !trial.done.sleeps && !trial.prints;
        self.deep > 0 && self.is_jump(trial) && is_quiet && trial.changed.is_empty()
    }

    /// What follows in a function that may have returned before; `at` is where it did.
    pub(super) fn rest(&mut self, rest: &[Chain], at: &Range<usize>) -> Flow {
        let trial = self.tried(|runner| runner.list(rest));
        let ends = match trial.flow {
            Flow::On | Flow::Return | Flow::MayReturn => false,
            Flow::Exit => trial.status == Status::SUCCESS,
            Flow::Break(_) | Flow::Continue(_) => true,
        };
        if trial.done.has_effect || trial.done.sleeps || ends {
            self.doubtful(at);
            return Flow::On;
        }
        if trial.prints {
            self.output.iter_mut().for_each(|output| output.is_unknown = true);
        }
        self.doubt_values(trial.changed);
        self.status = Status::QUESTION;
        Flow::MayReturn
    }

    fn doubt_values(&mut self, names: Vec<String>) {
        for name in names {
            self.values.put(&name, Value::One(Scalar::Missing(Missing::Doubt, name.clone())));
        }
    }

    /// What may have been done or not: the values of its variables are not known.
    pub(super) fn doubt(&mut self, trials: impl IntoIterator<Item = Tried>) {
        // What a guard does is lost with the script.
        for trial in trials {
            if trial.prints {
                self.output.iter_mut().for_each(|output| output.is_unknown = true);
            }
            if trial.flow != Flow::On {
                // Where the script itself would not end, what was executed may have failed, and printed less.
                if trial.flow == Flow::Return || self.shells > 0 {
                    self.is_doubtful = true;
                    self.output.iter_mut().for_each(|output| output.is_unknown = true);
                }
                continue;
            }
            self.doubt_values(trial.changed);
        }
        self.status = Status::SUCCESS;
    }

    /// Tries something: it is executed, but no command has an effect.
    pub(super) fn tried(&mut self, run: impl FnOnce(&mut Self) -> Flow) -> Tried {
        let values = self.values.clone();
        let functions = self.functions.clone();
        let waiting = self.input.as_ref().map_or(0, std::collections::VecDeque::len);
        self.take_steps((values.len() + waiting) / 2 + 1);
        let outer = self.trial.replace(Trial::default());
        let (status, wrong, slept, input) = (self.status, self.wrong, self.slept, self.input.clone());
        let written = self.written.clone();
        let flags = (self.exits_on_failure, self.exits_on_unset, self.fails_in_pipes);
        let is_captured = self.output.is_some();
        let output = std::mem::replace(&mut self.output, is_captured.then(Output::default));
        if let (Some(own), Some(outer)) = (&mut self.trial, outer) {
            own.steps = outer.steps + 1;
        }
        let flow = run(self);
        let done = self.trial.take().unwrap_or_default();
        self.trial = outer.map(|outer| Trial {
            has_effect: outer.has_effect || done.has_effect,
            sleeps: outer.sleeps || done.sleeps,
            steps: done.steps,
        });
        let prints = self.output.take().is_some_and(|output| output.is_unknown || !output.text.is_empty());
        self.output = output;
        let changed = values.changed(&self.values);
        self.values = values;
        self.functions = functions;
        let found = std::mem::replace(&mut self.status, status);
        (self.wrong, self.slept, self.input) = (wrong, slept, input);
        (self.exits_on_failure, self.exits_on_unset, self.fails_in_pipes) = flags;
        self.written = written;
        Tried { done, flow, status: found, changed, prints }
    }

    /// What runs beside the commands that follow.
    pub(super) fn background(&mut self, chain: &Chain) -> Flow {
        let span = span_of(&chain.first);
        let trial = self.tried(|runner| runner.joined(chain));
        if trial.done.sleeps && !self.is_waited_for(chain) {
            if trial.done.has_effect {
                let span = self.place(&span);
                self.wrong(
                    Problem::new("commands in the background that wait: what follows does not wait for them")
                        .help("write all commands in the order of time, with `sleep` between them"),
                    &span,
                );
            }
            return Flow::On;
        }
        self.apart(|runner| runner.joined(chain));
        self.status = Status::SUCCESS;
        Flow::On
    }

    /// Whether the next command is `wait`.
    fn is_waited_for(&self, chain: &Chain) -> bool {
        let last = chain.rest.last().map_or(&chain.first, |(_, last)| last);
        let behind = self.source.text.get(span_of(last).end..).unwrap_or_default();
        let next = behind.trim_start().strip_prefix('&').map(str::trim_start);
        let rest = next.and_then(|next| next.strip_prefix("wait"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';']))
    }

    pub(super) fn pipeline(&mut self, pipeline: &Pipeline) -> Flow {
        let Pipeline { is_negated, commands } = pipeline;
        let flow = match &commands[..] {
            [only] => {
                self.conditions += usize::from(*is_negated);
                let flow = self.command(only);
                self.conditions -= usize::from(*is_negated);
                flow
            }
            _ => {
                self.piped(commands);
                Flow::On
            }
        };
        if *is_negated {
            self.status = self.status.negated();
        }
        flow
    }

    /// Commands of which each reads what the one before prints. Each has a shell of its own.
    pub(super) fn piped(&mut self, commands: &[Command]) {
        let (input, was_piped, read_default) = (self.input.take(), self.is_piped, self.reads_default);
        let mut failed = Status::SUCCESS;
        for (index, command) in commands.iter().enumerate() {
            let is_last = index + 1 == commands.len();
            let outer = if is_last { None } else { self.output.replace(Output::default()) };
            // Only its own shell would end.
            let ends_nothing =
                usize::from(!is_last && !self.fails_in_pipes && matches!(command.node, Node::Simple { .. }));
            self.conditions += ends_nothing;
            self.apart(|runner| runner.command(command));
            self.conditions -= ends_nothing;
            failed = match (failed, self.status) {
                (failed, Status::Known(0)) => failed,
                (failed @ Status::Known(1..), status) if status.known().is_none() => failed,
                (failed @ Status::Unknown { .. }, Status::Assumed) => failed,
                (_, status) => status,
            };
            if is_last {
                break;
            }
            let printed = std::mem::replace(&mut self.output, outer).unwrap_or_default();
            let place = Place::Whole(self.place(&command.span));
            self.input = (!printed.is_unknown).then(|| lines_of(&printed.text, &place));
            self.is_piped = true;
            self.reads_default = printed.is_default;
        }
        if self.fails_in_pipes {
            self.status = failed;
        }
        (self.input, self.is_piped, self.reads_default) = (input, was_piped, read_default);
    }
}

/// Whether the failure of a pipeline is one that ends a script: what is in a list has been seen by itself.
fn fails(pipeline: &Pipeline) -> bool {
    !matches!(
        &pipeline.commands[..],
        [Command {
            node: Node::For { .. }
                | Node::Count { .. }
                | Node::While { .. }
                | Node::If(_)
                | Node::Case { .. }
                | Node::Group(_),
            ..
        }]
    )
}

/// Where a pipeline stands.
pub(super) fn span_of(pipeline: &Pipeline) -> Range<usize> {
    let first = pipeline.commands.first().map_or(0..0, |command| command.span.clone());
    let last = pipeline.commands.last().map_or(first.end, |command| command.span.end);
    first.start..last
}
