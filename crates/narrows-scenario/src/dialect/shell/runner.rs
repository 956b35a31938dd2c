//! Executes a script as far as it is known what its commands do.
//!
//! A value that is not in the script is one that is not known, and so is the success of most programs. What depends on it is
//! tried: where no branch has an effect on a network, the script goes on, and variables that a branch sets are not known from
//! there on. A branch that ends the script is a guard, which passes. Anything else is a problem.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use super::field::Expanded;
use super::parser::Parser;
use super::place::Place;
use super::printed;
use super::programs::{self, Printed, Runs};
use super::state::{Flow, Function, Output, Runner, Source, Status, lines_of, text_of};
use super::tree::{Chain, Command, Node};
use super::values::{Missing, Scalar, Values};
use super::{Answer, Call, Lines, Role, Start, Turns};
use crate::problem::Problem;

/// The most commands of a script, with those that loops come to.
const MOST: usize = 1 << 20;
/// The most turns of loops and looks at conditions, whether they lead to commands or not.
const MOST_STEPS: usize = 1 << 21;
/// The most turns and commands of a trial.
const MOST_TRIED: usize = 1 << 14;
/// The status of a shell's command that is not found.
const NOT_FOUND: u8 = 127;
/// Functions that call one another, and commands in `$(…)` within one another.
const DEEPEST: usize = 32;

impl<'a> Runner<'a> {
    pub(super) fn new(text: &str, start: Start<'a>, call: &'a mut dyn FnMut(&Call<'_>) -> Answer) -> Self {
        let shebang = text.lines().next().filter(|line| line.starts_with("#!")).unwrap_or_default();
        Self {
            start,
            source: Rc::new(Source { text: text.to_owned(), place: Place::Offset(0) }),
            values: Values::new(start.arguments, start.variables),
            functions: Rc::new(BTreeMap::new()),
            call,
            problems: Vec::new(),
            said: BTreeSet::new(),
            left: MOST,
            steps: MOST_STEPS,
            deep: 0,
            expansions: 0,
            captures: 0,
            status: Status::SUCCESS,
            exits_on_failure: shebang
                .split_whitespace()
                .nth(1)
                .is_some_and(|flags| flags.starts_with('-') && flags.contains('e')),
            exits_on_unset: false,
            fails_in_pipes: false,
            loops: 0,
            once: 0,
            devices: (false, false),
            sourced: 0,
            shells: 0,
            is_doubtful: false,
            conditions: 0,
            is_without: false,
            has_moved: false,
            has_lists: ["bash", "zsh", "ksh"].iter().any(|shell| shebang.contains(shell)),
            has_aliases: ["/sh", "/dash", " sh"].iter().any(|shell| shebang.trim_end().ends_with(shell)),
            output: None,
            input: None,
            trial: None,
            written: BTreeMap::new(),
            elsewhere: Vec::new(),
            is_piped: false,
            reads_default: false,
            disciplines: Some(BTreeSet::new()),
            configured: Some(BTreeSet::new()),
            wrong: 0,
            slept: 0,
            reads_others: false,
            body: None,
            told: 0,
            in_loops: Vec::new(),
            last_step: 0..0,
            is_over: false,
        }
    }

    /// Executes the whole script.
    pub(super) fn run(&mut self, lines: Lines<'_>, has_prompts: bool) {
        let source = self.source.clone();
        let flow = self.run_source(&source, lines, has_prompts);
        // A script of an init system defines functions, of which that calls one.
        let first = source.text.lines().next().unwrap_or_default();
        let is_of_init = ["runscript", "openrc-run", "rc.common"].iter().any(|name| first.contains(name));
        if is_of_init && flow == Flow::On {
            let name = match self.values.arguments() {
                Some([Scalar::Text(name), ..]) => name.clone(),
                _ => "start".to_owned(),
            };
            if let Some(function) = self.functions.get(&name).cloned() {
                self.call_function(&function, &[], &(0..first.len()));
            }
        }
        if self.steps == 0 {
            let span = self.last_step.clone();
            self.wrong_at(&span, format!("more than {MOST_STEPS} turns of loops and conditions"));
        }
    }

    /// Executes a text.
    fn run_source(&mut self, source: &Rc<Source>, lines: Lines<'_>, has_prompts: bool) -> Flow {
        let outer = std::mem::replace(&mut self.source, source.clone());
        let mut parser = Parser::new(&source.text, lines, has_prompts);
        let flow = loop {
            match parser.next() {
                Ok(Some(chain)) => match self.chain(&chain) {
                    Flow::On => {}
                    flow => break flow,
                },
                Ok(None) => break Flow::On,
                Err(mut problem) => {
                    if let Place::Whole(whole) = &source.place {
                        problem = problem.put_at(whole);
                    } else if let Place::Offset(start) = source.place {
                        problem = problem.moved(start);
                    }
                    self.say(problem);
                    break Flow::Exit;
                }
            }
        };
        self.source = outer;
        flow
    }

    /// Executes a text that the script makes, as `eval` does.
    pub(super) fn eval(&mut self, text: String, place: Place) -> Flow {
        if self.deep >= DEEPEST {
            self.wrong_at(&place.of(&(0..text.len())), format!("commands more than {DEEPEST} deep"));
            return Flow::On;
        }
        self.deep += 1;
        let flow = self.run_source(&Rc::new(Source { text, place }), Lines::OF_SHELL, false);
        self.deep -= 1;
        flow
    }

    /// What the commands of `$(…)` print; `None` if that is not known.
    pub(super) fn captured(&mut self, text: &str, place: &Place) -> Option<String> {
        let output = self.output.replace(Output::default());
        let status = self.status;
        let input = self.input.take();
        self.apart(|runner| {
            // In bash, it is not handed on.
            runner.exits_on_failure = false;
            runner.eval(text.to_owned(), place.clone())
        });
        self.captures += 1;
        // The status is that of the last command.
        if text.trim().is_empty() {
            self.status = status;
        }
        self.input = input;
        let own = std::mem::replace(&mut self.output, output)?;
        (!own.is_unknown).then_some(own.text)
    }

    /// Executes something in a shell of its own: what it sets is lost, and an `exit` ends it alone.
    pub(super) fn apart(&mut self, run: impl FnOnce(&mut Self) -> Flow) {
        let values = self.values.clone();
        let functions = self.functions.clone();
        let flags = (self.exits_on_failure, self.exits_on_unset, self.fails_in_pipes);
        let loops = std::mem::take(&mut self.loops);
        self.shells += 1;
        let was_doubtful = std::mem::take(&mut self.is_doubtful);
        self.take_steps(values.len() / 2);
        run(self);
        self.doubt_status();
        self.is_doubtful = was_doubtful;
        self.loops = loops;
        self.shells -= 1;
        self.values = values;
        self.functions = functions;
        (self.exits_on_failure, self.exits_on_unset, self.fails_in_pipes) = flags;
    }

    /// The status of what may have ended before, with a failure.
    fn doubt_status(&mut self) {
        if self.is_doubtful && matches!(self.status, Status::Known(0) | Status::Assumed) {
            self.status = Status::QUESTION;
        }
    }

    pub(super) fn say(&mut self, problem: Problem) {
        self.wrong += 1;
        if self.trial.is_none() {
            self.problems.push(problem);
        }
    }

    /// A problem at a place, which is said once.
    pub(super) fn wrong(&mut self, problem: Problem, span: &Range<usize>) {
        self.status = Status::SUCCESS;
        match self.trial.is_some() || self.said.insert((span.start, span.end)) {
            true => self.say(problem.at(span)),
            false => self.wrong += 1,
        }
    }

    pub(super) fn wrong_at(&mut self, span: &Range<usize>, title: String) {
        self.wrong(Problem::new(title), span);
    }

    /// Takes steps; returns whether so many are allowed.
    pub(super) fn take_steps(&mut self, count: usize) -> bool {
        match self.steps.checked_sub(count) {
            Some(left) => {
                self.steps = left;
                true
            }
            None => {
                self.steps = 0;
                self.is_over = true;
                false
            }
        }
    }

    pub(super) fn step(&mut self, at: &Range<usize>) -> Flow {
        if let Some(trial) = &mut self.trial {
            trial.steps += 1;
            // What takes longer is not tried to its end.
            if trial.steps > MOST_TRIED {
                trial.has_effect = true;
                return Flow::Exit;
            }
        }
        self.last_step = self.place(at);
        if self.take_steps(1) { Flow::On } else { Flow::Exit }
    }

    /// A span of what is executed, in the script.
    pub(super) fn place(&self, span: &Range<usize>) -> Range<usize> {
        self.source.place.of(span)
    }

    pub(super) fn list(&mut self, list: &[Chain]) -> Flow {
        for (index, chain) in list.iter().enumerate() {
            match self.chain(chain) {
                Flow::On => {}
                Flow::MayReturn if index + 1 < list.len() => {
                    return self.rest(&list[index + 1..], &super::chains::span_of(&chain.first));
                }
                flow => return flow,
            }
        }
        Flow::On
    }

    pub(super) fn node(&mut self, command: &Command) -> Flow {
        let span = &command.span;
        if !matches!(command.node, Node::Simple { .. }) && self.is_piped {
            // What is inside may read it, but is no filter.
            self.is_piped = false;
            let flow = self.node(command);
            self.is_piped = true;
            return flow;
        }
        match &command.node {
            Node::Simple { assignments, words } => self.simple(assignments, words, span),
            Node::For { name, list, body } => self.of_for(name, list.as_deref(), body, span),
            Node::Count { calculations, body } => self.count(calculations, body),
            Node::While { test, body, is_until } => self.of_while(test, body, *is_until, span),
            Node::If(branches) => self.of_if(branches, span),
            Node::Case { word, arms } => self.of_case(word, arms),
            Node::Group(body) => self.list(body),
            Node::Subshell(body) => {
                self.apart(|runner| runner.list(body));
                Flow::On
            }
            Node::Calculation(calculation) => {
                let place = self.source.place.at(calculation.start);
                let raw = self.source.text[calculation.clone()].to_owned();
                let value = self.calculated(&raw, &place);
                self.status_of_calculation(value, span);
                Flow::On
            }
            Node::Condition(words) => {
                self.status = self.condition(words);
                Flow::On
            }
            Node::Function { name, body } => {
                let name = self.source.text[name.clone()].to_owned();
                // A shell of its own has functions of its own.
                if Rc::strong_count(&self.functions) > 1 {
                    self.take_steps(self.functions.len());
                }
                let function = Function { body: body.clone(), source: self.source.clone() };
                Rc::make_mut(&mut self.functions).insert(name, function);
                self.status = Status::SUCCESS;
                Flow::On
            }
            Node::Own(span) => {
                let place = self.place(span);
                self.answered(&Call::new(&[], place, Role::Line))
            }
        }
    }

    /// The status of a calculation: it fails if it comes to zero.
    pub(super) fn status_of_calculation(&mut self, value: super::field::Field, span: &Range<usize>) {
        self.status = match (value.unknown, value.text.as_str()) {
            (None, "0") => Status::FAILURE,
            (None, _) => Status::SUCCESS,
            (Some(unknown), _) if self.is_unclear(&unknown) => Status::Unknown { is_condition: true },
            (Some(unknown), _) => {
                let span = self.place(span);
                self.wrong(unknown.problem, &span);
                Status::SUCCESS
            }
        };
    }

    /// Whether a value is one that is not in the script, rather than wrong.
    pub(super) fn is_unclear(&self, unknown: &super::field::Unknown) -> bool {
        unknown.is_named || unknown.what != Missing::Output
    }

    /// The words of a command.
    pub(super) fn all_words(&mut self, words: &[Range<usize>]) -> Vec<Expanded> {
        let mut all = Vec::with_capacity(words.len());
        words.iter().for_each(|word| self.words(word, &mut all));
        all
    }

    fn simple(&mut self, assignments: &[Range<usize>], words: &[Range<usize>], span: &Range<usize>) -> Flow {
        let captures = self.captures;
        let all = self.all_words(words);
        if all.is_empty() {
            for assignment in assignments {
                let raw = self.source.text[assignment.clone()].to_owned();
                let place = self.source.place.at(assignment.start);
                self.assign(&raw, &place, false);
            }
            // The status is that of the last `$(…)`, if there is one. Until here `$?` is the one before.
            if self.captures == captures && !(words.is_empty() && assignments.is_empty()) {
                self.status = Status::SUCCESS;
            }
            return Flow::On;
        }
        // They are for this command alone.
        let mut former = Vec::new();
        for assignment in assignments {
            let raw = self.source.text[assignment.clone()].to_owned();
            let name = raw[..super::scan::name_length(&raw)].to_owned();
            former.push((name.clone(), self.values.get(&name).cloned()));
            let place = self.source.place.at(assignment.start);
            self.assign(&raw, &place, false);
        }
        // A program gets them.
        let own: Vec<String> = former
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| !self.values.is_exported(name))
            .collect();
        own.iter().for_each(|name| self.values.export(name));
        let flow = self.words_run(&all, words, span);
        own.iter().for_each(|name| self.values.forget_export(name));
        for (name, value) in former.into_iter().rev() {
            self.values.restore(name, value);
        }
        flow
    }

    /// Runs a command with these words.
    pub(super) fn words_run(
        &mut self,
        all: &[Expanded],
        words: &[Range<usize>],
        span: &Range<usize>,
    ) -> Flow {
        let Some(first) = all.first() else { return Flow::On };
        if first.unknown.is_none() {
            let name = first.text.clone();
            if let Some(flow) = self.shell(all, span) {
                return flow;
            }
            if let Some(function) = self.functions.get(&name).cloned() {
                return self.call_function(&function, &all[1..], span);
            }
            if let Some(flow) = self.builtin(&name, all, words, span) {
                return flow;
            }
        }
        self.program(all, span)
    }

    /// Runs a script that the script has written or that is beside it, or a text that another shell runs: `sh FILE`, `sh -c
    /// TEXT`, `ssh HOST TEXT`.
    pub(super) fn shell(&mut self, all: &[Expanded], span: &Range<usize>) -> Option<Flow> {
        let known: Vec<&str> = all.iter().map(Expanded::text).collect();
        let run = programs::runs(&known)?;
        let word = all.get(run.word).filter(|word| word.unknown.is_none())?;
        let (text, arguments) = match run.what {
            Runs::File => (self.beside(&word.text).filter(|text| is_script(text))?, &all[run.word + 1..]),
            Runs::Text => (word.text.clone(), all.get(run.word + 2..).unwrap_or_default()),
        };
        let place = Place::Whole(self.place(span));
        let arguments =
            arguments.iter().filter(|word| !word.vanishes).map(|word| self.scalar(word, "")).collect();
        let before: Vec<Expanded> = all[..run.before].to_vec();
        let outer = std::mem::take(&mut self.elsewhere);
        self.elsewhere = outer.iter().cloned().chain(before).collect();
        let forgets = programs::forgets_variables(&known);
        self.apart(|runner| {
            runner.values.set_arguments(Some(arguments));
            let exported = |name: &String| runner.values.is_exported(&format!("{name}()"));
            let kept = runner.functions.iter().filter(|(name, _)| exported(name) && !forgets);
            runner.functions =
                Rc::new(kept.map(|(name, function)| (name.clone(), function.clone())).collect());
            match forgets {
                true => runner.values.clear(),
                false => runner.values.keep_exported(),
            }
            runner.exits_on_failure = false;
            runner.eval(text, place)
        });
        self.elsewhere = outer;
        Some(Flow::On)
    }

    fn call_function(&mut self, function: &Function, arguments: &[Expanded], span: &Range<usize>) -> Flow {
        if self.deep >= DEEPEST {
            let span = self.place(span);
            self.wrong_at(&span, format!("functions that call one another more than {DEEPEST} deep"));
            return Flow::On;
        }
        let arguments =
            arguments.iter().filter(|word| !word.vanishes).map(|word| self.scalar(word, "")).collect();
        let loops = (std::mem::take(&mut self.loops), std::mem::take(&mut self.once));
        let was_doubtful = std::mem::take(&mut self.is_doubtful);
        let frame = self.values.begin_function(arguments);
        let source = std::mem::replace(&mut self.source, function.source.clone());
        let outer = self.body.replace(function.body.span.clone());
        self.deep += 1;
        let flow = match self.step(&function.body.span) {
            Flow::On => self.command(&function.body.clone()),
            flow => flow,
        };
        self.deep -= 1;
        self.source = source;
        self.body = outer;
        self.doubt_status();
        // An `exit` of a function ends the shell of its own, too.
        self.is_doubtful = was_doubtful || self.is_doubtful && self.shells > 0;
        (self.loops, self.once) = loops;
        self.values.end_function(frame);
        match flow {
            Flow::Exit => Flow::Exit,
            _ => Flow::On,
        }
    }

    /// What is known of a word, as the value of a variable.
    pub(super) fn scalar(&self, word: &Expanded, name: &str) -> Scalar {
        match &word.unknown {
            None => Scalar::Text(word.text.clone()),
            Some(unknown) => {
                let of = word.text.strip_prefix('$').filter(|of| {
                    unknown.is_named && super::scan::is_variable(of) || of.chars().all(|c| c.is_ascii_digit())
                });
                let what = if unknown.is_named || unknown.what == Missing::Unset {
                    unknown.what
                } else {
                    Missing::Output
                };
                Scalar::Missing(what, of.unwrap_or(name).to_owned())
            }
        }
    }

    /// A command that is not of the shell.
    pub(super) fn program(&mut self, all: &[Expanded], span: &Range<usize>) -> Flow {
        let span = match (all.first(), all.last(), &self.source.place) {
            // Words of a function's arguments stand elsewhere.
            (Some(first), Some(last), Place::Offset(_)) if first.span.start <= last.span.end => {
                let own = self.place(span);
                let start = if own.contains(&first.span.start) { first.span.start } else { own.start };
                // An opening quote before the first word is the command's.
                start.min(own.end)..own.end
            }
            _ => self.place(span),
        };
        if self.trial.is_none() && !self.count_command(&span) {
            return Flow::Exit;
        }
        let elsewhere: Vec<Expanded>;
        let all = match self.elsewhere.is_empty() {
            true => all,
            false => {
                elsewhere = self.elsewhere.iter().chain(all).cloned().collect();
                &elsewhere
            }
        };
        // What is to run must be known.
        let is_first_unset = all.first().is_some_and(|first| first.vanishes);
        let (unset, all): (Vec<Expanded>, Vec<Expanded>) =
            all.iter().cloned().partition(|word| word.vanishes && !is_first_unset);
        let known: Vec<&str> = all.iter().map(Expanded::text).collect();
        let Some(first) = all.first() else { return Flow::On };
        let found = self.printed(&all, &known);
        let is_printed = self.output.is_some();
        if let Some(output) = &mut self.output {
            match &found {
                Some(printed) => {
                    output.text += &printed.text;
                    output.is_default |= printed.is_default;
                    output.is_unknown |= printed.is_default;
                }
                None => output.is_unknown |= !programs::is_silent(&known),
            }
        }
        let is_query = programs::shows(&known);
        if let Some(printed) = found.as_ref().filter(|_| !is_query)
            && (is_printed || printed::filters(&known))
        {
            self.status = Status::of(printed.succeeds);
            // How far a program reads is not known.
            if printed::reads(&known) && self.input.as_ref().is_some_and(|lines| !lines.is_empty()) {
                self.input = None;
            }
            return Flow::On;
        }
        let deletes_nothing = self.deletes_nothing(&known);
        if let Some(trial) = &mut self.trial {
            trial.has_effect |= first.unknown.is_some() || programs::has_effect(&known) && !deletes_nothing;
            trial.sleeps |= programs::sleeps(&known);
            self.status = match found {
                Some(printed) => Status::of(printed.succeeds),
                None => Status::from(programs::success(&known)),
            };
            let is_end =
                matches!(&known[..], ["sleep", "infinity" | "inf"]) || known[0] == "exec" && known.len() > 1;
            return if is_end { Flow::Exit } else { Flow::On };
        }
        let batch = match programs::batch_file(&known) {
            Some(file) => self.beside(file).map(|text| lines_of(&text, &Place::Whole(span.clone()))),
            None => self.input.clone().filter(|_| programs::is_batch(&known)),
        };
        let reads_lines = batch.is_some();
        let reads_output = self.is_piped && !reads_lines && !programs::reads_password(&known);
        let role = if reads_output { Role::Piped } else { Role::Command };
        let file = programs::rules_file(&known).map(|file| self.beside(file));
        let lines = match file {
            Some(text) => text.map(|text| lines_of(&text, &Place::Whole(span.clone()))),
            None => self.input.clone().filter(|_| programs::reads_rules(&known)),
        };
        let call = Call {
            reads_lines,
            ends_on_failure: self.exits_on_failure && self.conditions == 0,
            unset: &unset,
            input: lines.as_ref(),
            missing: self.missing_script(&all, &known),
            ..Call::new(&all, span, role)
        };
        let is_missing = call.missing.is_some();
        self.has_moved |= matches!(known[0], "cd" | "pushd");
        if known[0] == "touch" {
            for file in &known[1..] {
                self.written.entry((*file).to_owned()).or_default();
            }
        }
        self.slept += usize::from(programs::sleeps(&known));
        if programs::has_effect(&known) {
            let is_known = |(at, word): (usize, &Expanded)| {
                word.unknown.is_none() || at > 0 && matches!(known[at - 1], "dev" | "-n" | "-netns")
            };
            match all.iter().enumerate().all(is_known) {
                true => self.configures(&known),
                false => self.disciplines = None,
            }
            match programs::part(&known).filter(|(device, _)| !device.contains('$')) {
                Some((device, is_filter)) => {
                    let part = (device.to_owned(), is_filter);
                    self.configured.iter_mut().for_each(|known| known.extend([part.clone()]));
                }
                None => self.configured = None,
            }
        }
        if programs::has_effect(&known)
            && let Some(title) = self.is_of_list(&all, &known)
        {
            self.wrong_at(&call.span, title.into());
            return Flow::On;
        }
        let answer = self.tell(&call);
        let flow = self.follow(answer, &known);
        if let Some(printed) = found.as_ref().filter(|_| flow == Flow::On) {
            self.status = Status::of(printed.succeeds);
        }
        if is_missing {
            self.status = Status::Known(NOT_FOUND);
        }
        match batch.filter(|_| flow == Flow::On) {
            Some(lines) => {
                if programs::batch_file(&known).is_none() {
                    self.input = None;
                }
                self.batch(lines)
            }
            None => flow,
        }
    }

    /// Notes the kinds and numbers of disciplines that words name.
    fn configures(&mut self, words: &[&str]) {
        if let Some(known) = &mut self.disciplines {
            known.extend(printed::kinds(words).map(str::to_owned).chain(printed::numbers(words)));
        }
    }

    /// What a command prints, if that depends on what is known.
    fn printed(&self, all: &[Expanded], known_words: &[&str]) -> Option<Printed> {
        if all.iter().any(|word| word.unknown.is_some()) {
            // In nothing, nothing is found.
            let is_empty = self.input.as_ref().is_some_and(|lines| lines.is_empty());
            let finds_nothing = is_empty && !self.reads_default && printed::filters(known_words);
            return finds_nothing.then(|| Printed { succeeds: false, ..Printed::default() });
        }
        if programs::shows(known_words) {
            // Nothing has been configured yet.
            let is_default = known_words.contains(&"qdisc");
            let is_fresh = self.configured.as_ref().is_some_and(|known| match programs::part(known_words) {
                Some((device, is_filter)) => !known.contains(&(device.to_owned(), is_filter)),
                None => known.is_empty(),
            });
            // Of disciplines, kinds and numbers may be looked for that nothing has configured.
            return (is_fresh || is_default && self.disciplines.is_some())
                .then(|| Printed { is_default, ..Printed::default() });
        }
        if self.reads_default {
            return printed::looked_for(known_words, self.disciplines.as_ref()?)
                .map(|succeeds| Printed { succeeds, ..Printed::default() });
        }
        let lines = match (printed::reads(known_words), &self.input) {
            (true, Some(lines)) if lines.iter().all(|line| line.unknown.is_none()) => Some(text_of(lines)),
            _ => None,
        };
        printed::printed(known_words, lines.as_deref(), &|file| self.beside(file))
    }

    /// Counts a command; returns whether so many are allowed.
    fn count_command(&mut self, span: &Range<usize>) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => {
                self.wrong_at(span, format!("more than {MOST} commands"));
                self.is_over = true;
            }
        }
        !self.is_over
    }

    /// A command whose words are its own matter.
    pub(super) fn answered(&mut self, call: &Call<'_>) -> Flow {
        if let Some(trial) = &mut self.trial {
            trial.has_effect = true;
            return Flow::On;
        }
        if !self.count_command(&call.span) {
            return Flow::Exit;
        }
        let answer = self.tell(call);
        self.follow(answer, &[])
    }

    /// Passes a command on.
    fn tell(&mut self, call: &Call<'_>) -> Answer {
        if self.loops > 0 {
            let words: Vec<&str> = call.words.iter().map(Expanded::text).collect();
            if call.role == Role::Line || programs::has_effect(&words) || programs::sleeps(&words) {
                self.in_loops.push((self.told, words.join("\n")));
            }
        }
        self.told += 1;
        (self.call)(call)
    }

    /// Whether a command takes away what a device has that the script has not configured.
    fn deletes_nothing(&self, known: &[&str]) -> bool {
        let deletes = known.contains(&"qdisc") && known.iter().any(|word| matches!(*word, "del" | "delete"));
        let device = programs::part(known).map(|(device, _)| device).filter(|device| !device.contains('$'));
        deletes
            && device
                .zip(self.configured.as_ref())
                .is_some_and(|(device, configured)| !configured.contains(&(device.to_owned(), false)))
    }

    /// What is wrong with a command that changes a network where a list is not known: in a turn that stands for all of the
    /// list it is about a device of the list, and none of those is one that the script names itself.
    fn is_of_list(&mut self, all: &[Expanded], known: &[&str]) -> Option<&'static str> {
        if self.once > 0 && !names_place(all) {
            return Some(
                "a command for each of a list that is not in the script, and not for a device of it",
            );
        }
        let device = programs::part(known).map_or("", |(device, _)| device);
        let has = |words: &[&str]| known.iter().any(|word| words.contains(word));
        if device.is_empty()
            || device.starts_with("ifb")
            || !has(&["qdisc", "class", "filter"])
            || has(&["del", "delete"])
        {
            return None;
        }
        match self.once > 0 {
            true => self.devices.0 = true,
            false => self.devices.1 = true,
        }
        (self.devices == (true, true))
            .then_some("a device beside those of a list that is not in the script, of which it may be one")
    }

    /// Says that a loop goes on as in the last turns before, of which these are the first calls; returns whether it does.
    pub(super) fn repeats(&mut self, starts: &[usize]) -> bool {
        let first = |call: usize| self.in_loops.partition_point(|(number, _)| *number < call);
        let turn = |start: usize, end: usize| {
            self.in_loops[first(start)..first(end)].iter().map(|(_, words)| words.as_str())
        };
        let alike = |turns: &&[usize]| turn(turns[0], turns[1]).eq(turn(turns[1], turns[2]));
        let all: Vec<&[usize]> = starts.windows(3).collect();
        let count = all.iter().rev().take_while(|turns| alike(turns)).count();
        // What is there before the first turn is seldom there after it.
        let Some(turns) = all.get((all.len() - count).max(1)).filter(|_| count > 1) else { return false };
        let turns = Turns { one: turns[0], next: turns[1], end: turns[2] };
        let span = self.last_step.clone();
        let call = Call::new(&[], span, Role::Repeats(turns));
        if (self.call)(&call) == Answer::Wrong {
            self.wrong += 1;
        }
        true
    }

    /// Goes on as the reader of a command says.
    fn follow(&mut self, answer: Answer, words: &[&str]) -> Flow {
        self.status = match answer {
            Answer::Ran => Status::from(programs::success(words)),
            Answer::Failed => Status::FAILURE,
            Answer::Wrong => {
                self.wrong += 1;
                Status::SUCCESS
            }
            Answer::End => return Flow::Exit,
        };
        Flow::On
    }
}

/// Whether a command names the device or the machine that it is about by what is not known: each of a list has its own.
fn names_place(all: &[Expanded]) -> bool {
    let tool = all.iter().position(|word| matches!(word.text.rsplit('/').next(), Some("tc" | "ip")));
    let is_place = |(at, word): (usize, &Expanded)| {
        let before = at.checked_sub(1).map_or("", |at| &all[at].text);
        word.unknown.is_some()
            && (matches!(before, "dev" | "-n" | "-netns" | "exec") || tool.is_some_and(|tool| at < tool))
    };
    all.iter().enumerate().any(is_place)
}

/// Whether a file is a script of a shell, as a shell decides that runs it by its name.
fn is_script(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    match first.strip_prefix("#!") {
        Some(program) => program
            .split([' ', '/'])
            .any(|word| matches!(word, "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh")),
        // Programs have bytes that are no text.
        None => !text.contains(['\0', '\u{fffd}']),
    }
}
