//! A script as it is read: what its commands come to, one by one, as a shell would run them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use narrows_core::Duration;

use super::action::Shared;
use super::command::{Body, Command, Parent};
use super::line::{self, Line, Passed};
use super::listing::{self, Listing};
use super::netfilter::{self, Firewall};
use super::programs::{self, Given};
use super::qdisc::Kind;
use super::script::{Moment, Repetition, Script};
use crate::ScenarioError;
use crate::dialect::Words;
use crate::dialect::shell::{self, Answer, Call, Expanded, Lines, Role, Start, Turns};
use crate::netem::Verb;
use crate::problem::{Found, Problem};

const LISTED: &str = "What tc prints about a device is read as the commands that make it.";
const WITHOUT_FILTERS: &str = "No filter is shown: as far as the text says, all packets go where those go that no filter matches. `tc filter show` prints filters.";
const RULES_STAY: &str = " Packets keep their marks until then: what sees them is taken away, too.";

impl Script {
    /// Parses a script. `name` is that of its file, for errors.
    ///
    /// # Errors
    /// The error says which word is invalid, at which line and column, and what is allowed there.
    pub fn parse(text: &str, name: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, name, Start::default())
    }

    /// As [`Script::parse`], for a script that is started like this.
    ///
    /// # Errors
    /// As [`Script::parse`].
    pub fn parse_with(text: &str, name: &str, start: Start<'_>) -> Result<Self, ScenarioError> {
        let (script, problems) = Reading::of(text, name, start);
        match problems.is_empty() {
            true => Ok(script),
            false => Err(ScenarioError::new(name, text, problems)),
        }
    }
}

/// A script so far.
#[derive(Default)]
pub(super) struct Reading {
    script: Script,
    problems: Vec<Problem>,
    shared: Shared,
    /// From the start to the command that is read.
    now: Duration,
    /// When each call was.
    times: Vec<Duration>,
    /// The devices that are down, and where they were taken down.
    down: BTreeMap<String, Range<usize>>,
    /// Where the script says which discipline devices have by default.
    default: Option<Range<usize>>,
    /// Rules that translate addresses, and the device by which such packets leave.
    translated: Vec<(Range<usize>, Option<String>)>,
    /// The devices that commands configure.
    configured: BTreeSet<String>,
    /// The queue lengths that devices have now.
    lengths: BTreeMap<String, u32>,
    /// A program that lasts, since the last command that configures something, and when it ran.
    lasting: Option<(String, Duration)>,
    /// Rules that are taken away after a `sleep`, and how many commands are before them.
    taken_away: Vec<(usize, Range<usize>)>,
}

impl Reading {
    /// Reads a text; returns what it comes to, and what is wrong with it.
    pub(super) fn of(text: &str, name: &str, start: Start<'_>) -> (Script, Vec<Problem>) {
        let mut reading = Self::default();
        (reading.script.name, reading.script.text) = (name.into(), text.into());
        match listing::read(text) {
            Some(listing) => reading.listed(&listing),
            None => {
                let without = listing::without_listing(text);
                let text = without.as_deref().unwrap_or(text);
                let of_shell = shell::run(text, start, Lines::OF_SHELL, &mut |call| reading.take(call));
                reading.problems.extend(of_shell);
            }
        }
        reading.check_translations();
        reading.check_taken_away();
        reading.check_default();
        reading.problems.extend(reading.needed_down());
        if reading.problems.is_empty() && reading.script.commands.is_empty() {
            reading.problems.push(without_commands(text));
        }
        (reading.script, reading.problems)
    }

    /// The problem of a device that is down and that packets of the link would pass.
    fn needed_down(&self) -> Option<Problem> {
        let is_needed = |device: &str| {
            self.script.commands.iter().any(|command| command.names(device)) || self.script.has_own_network()
        };
        let (device, span) = self.down.iter().find(|(device, _)| is_needed(device))?;
        Some(stays_down(device, span))
    }

    /// What tc prints.
    fn listed(&mut self, listing: &Listing) {
        for listed in &listing.commands {
            match Command::read(&mut listed.words(), listed.span.clone(), &mut self.shared) {
                Ok(command) => self.script.commands.push(command),
                Err(problem) => self.problems.push(problem),
            }
        }
        let mut say = |words: &str| {
            self.script.passed.push((0, Passed { span: listing.first.clone(), words: words.into() }));
        };
        say(LISTED);
        if listing.lacks_filters {
            say(WITHOUT_FILTERS);
        }
    }

    /// A call of a program.
    fn take(&mut self, call: &Call<'_>) -> Answer {
        if let Role::Repeats(turns) = call.role {
            self.repeats(turns, &call.span);
            return Answer::Ran;
        }
        self.times.push(self.now);
        let words: Vec<&str> = call.words.iter().map(Expanded::text).collect();
        if let Some(name) = programs::lasting(&words) {
            self.lasting = Some((name.to_owned(), self.now));
        }
        for word in call.unset {
            let said = word.problem().map(Problem::title).unwrap_or_default();
            self.say(Passed {
                span: word.span(),
                words: format!("{said}: a shell has no word in its place."),
            });
        }
        if call.role == Role::Command {
            self.script.cabling.take(&words, self.configured.is_empty());
        }
        let read = line::read(call, &mut self.shared);
        match read.and_then(|line| line.map_or(Ok(Answer::Ran), |line| self.line(line, call))) {
            Ok(answer) => answer,
            Err(problem) => {
                self.problems.push(problem);
                Answer::Wrong
            }
        }
    }

    fn line(&mut self, line: Line, call: &Call<'_>) -> Result<Answer, Problem> {
        match line {
            Line::Tc(command) => self.command(*command),
            Line::Other(other) => self.say(other),
            Line::NoQueue { device, span } => self.no_queue(&device, span)?,
            Line::Default(passed) => {
                self.default.get_or_insert(passed.span.clone());
                self.say(passed);
            }
            Line::Device { given, passed } => self.device(&given, passed)?,
            Line::State { device, is_up, passed } => {
                match is_up {
                    true => drop(self.down.remove(&device)),
                    false => drop(self.down.insert(device, passed.span.clone())),
                }
                self.say(passed);
            }
            Line::Sleep { time, span } => self.sleep(time, span)?,
            Line::Firewall { line, namespace, passed } => {
                self.firewall(&line, namespace, passed)?;
                // No rule is there before the script adds it.
                if call.words.iter().any(|word| matches!(word.text(), "-C" | "--check")) {
                    return Ok(Answer::Failed);
                }
            }
            Line::End => return Ok(Answer::End),
        }
        Ok(Answer::Ran)
    }

    fn say(&mut self, passed: Passed) {
        self.script.passed.push((self.script.commands.len(), passed));
    }

    fn command(&mut self, mut command: Command) {
        let length = command.device.as_ref().and_then(|device| self.lengths.get(device));
        if let (Some(length), Body::Qdisc(Some(Kind::Managed(managed))), Verb::Add | Verb::Replace) =
            (length, &mut command.body, command.verb)
        {
            managed.made_at_queue_length(*length);
        }
        self.tell_of_lasting(&command);
        if command.configures() {
            self.configured.extend(command.device.clone());
        }
        let Script { later, commands, .. } = &mut self.script;
        let last = later.last().map_or(Duration::ZERO, |moment| moment.at);
        if command.verb != Verb::Show && self.now > last {
            later.push(Moment { at: self.now, before: commands.len() });
        }
        commands.push(command);
    }

    /// What is configured after a program that lasts would be different while it runs.
    fn tell_of_lasting(&mut self, command: &Command) {
        if command.verb == Verb::Show {
            return;
        }
        let Some((name, ran_at)) = self.lasting.take() else { return };
        let is_there = command.device.as_ref().is_some_and(|device| self.configured.contains(device));
        let again = is_there && command.parent == Some(Parent::Root);
        if again && ran_at == self.now {
            let words = format!(
                "`{name}` before this runs with what is configured until then, and takes no time here: what the script comes to is what it configures last. With `sleep` in its place this happens so much later."
            );
            self.say(Passed { span: command.span.clone(), words });
        }
    }

    /// A device gets no queue: as a link without a rate has none, the one that it has is taken away.
    fn no_queue(&mut self, device: &str, span: Range<usize>) -> Result<(), Problem> {
        if self.configured.contains(device) {
            let text = format!("qdisc del dev {device} root");
            let command = Command::read(&mut Words::new(&text), span, &mut self.shared)?;
            self.command(command);
        } else {
            let words = format!("{device} gets no queue: it has none here.");
            self.say(Passed { span, words });
        }
        Ok(())
    }

    fn device(&mut self, given: &Given, mut passed: Passed) -> Result<(), Problem> {
        if self.now > Duration::ZERO {
            return Err(Problem::new("an MTU or a queue length after `sleep`")
                .at(&passed.span)
                .help("a script gives them to devices before packets are sent: put it before the `sleep`"));
        }
        let device = given.device.clone();
        if let Some(length) = given.length {
            self.lengths.insert(device.clone(), length);
            match self.configured.contains(&device) {
                true => {
                    passed.words += " Those that are there keep the length that they have, and here also those of classes without a discipline."
                }
                false => drop(self.script.lengths.insert(device.clone(), length)),
            }
        }
        if let Some(bytes) = given.mtu {
            self.script.mtus.insert(device, bytes);
        }
        self.say(passed);
        Ok(())
    }

    fn sleep(&mut self, time: Duration, span: Range<usize>) -> Result<(), Problem> {
        // Before the first discipline there is nothing that could be different meanwhile.
        let words = match self.configured.is_empty() {
            false => {
                if let Some(problem) = self.needed_down() {
                    self.down.clear();
                    return Err(problem);
                }
                self.now += time;
                format!("What follows happens {} after the start.", self.now)
            }
            true => "Nothing is configured yet, so it has no effect.".to_owned(),
        };
        let before = (self.script.commands.len(), self.script.passed.len());
        self.script.sleeps.push((before.0, before.1, Passed { span, words }));
        Ok(())
    }

    fn firewall(
        &mut self,
        line: &netfilter::Line,
        namespace: Option<String>,
        mut passed: Passed,
    ) -> Result<(), Problem> {
        if let Some(translation) = line.translates() {
            self.translated.push((passed.span.clone(), translation.leaves.clone()));
        }
        let is_idle = line.does_nothing()
            || line.translates().is_some()
            || line.only_accepts() && !self.script.firewalls.values().any(Firewall::marks_in_filter);
        match self.now > Duration::ZERO && !is_idle {
            true if line.removes() && !self.script.firewalls.values().any(Firewall::drops) => {
                self.taken_away.push((self.script.commands.len(), passed.span.clone()));
                passed.words += RULES_STAY;
            }
            true => return Err(comes_late(&passed.span)),
            false => {
                let firewall = self.script.firewalls.entry(namespace).or_default();
                firewall.apply(line).map_err(|problem| problem.put_at(&passed.span))?;
            }
        }
        self.say(passed);
        Ok(())
    }

    /// A loop goes on as in these turns.
    fn repeats(&mut self, turns: Turns, span: &Range<usize>) {
        let at = |call: usize| self.times.get(call).copied().unwrap_or(self.now);
        let (from, to) = (at(turns.one), at(turns.next));
        if from == to {
            return;
        }
        let Script { commands, later, passed, sleeps, repeats, .. } = &mut self.script;
        *repeats = Some(Repetition { from, to, span: span.clone() });
        // Later turns are as this one.
        if let Some(beyond) = later.iter().position(|moment| moment.at > to) {
            commands.truncate(later[beyond].before);
            later.truncate(beyond);
        }
        passed.retain(|(before, _)| *before <= commands.len());
        sleeps.retain(|(before, ..)| *before < commands.len());
        let words = format!(
            "The loop never ends: what happens after {from}, until {to} after the start, happens every {} from then on.",
            to - from
        );
        self.say(Passed { span: span.clone(), words });
    }

    /// Packets that leave by another device have the addresses that hosts behind this one know.
    fn check_translations(&mut self) {
        let meets = |leaves: &Option<String>, command: &Command| {
            command.looks_at_addresses() && (leaves.is_none() || command.device == *leaves)
        };
        let meeting = self.translated.iter().find_map(|(span, leaves)| {
            Some((span, self.script.commands.iter().find(|command| meets(leaves, command))?))
        });
        self.problems.extend(meeting.map(|(translated, command)| {
            Problem::new("a filter by addresses or ports, which iptables translates before it sees them")
                .at(&command.span)
                .also(translated, "translated")
                .help("addresses are not translated here: match what packets have when they are sent, and leave out the translation")
        }));
    }

    /// The queues of `mq` have it.
    fn check_default(&mut self) {
        let of_queues =
            |command: &&Command| matches!(&command.body, Body::Qdisc(Some(Kind::Mq | Kind::Mqprio { .. })));
        let Some(span) = &self.default else { return };
        self.problems.extend(self.script.commands.iter().find(of_queues).map(|command| {
            Problem::new("a default for the queues of `mq`")
                .at(span)
                .also(&command.span, "such queues")
                .help("give the queues the discipline, as in: tc qdisc add dev eth0 parent 1:1 fq")
        }));
    }

    /// Rules may be taken away after a `sleep` where the disciplines are, too: then nobody sees marks any more.
    fn check_taken_away(&mut self) {
        let commands = &self.script.commands;
        for (before, span) in &self.taken_away {
            // What is taken away at the same instant may stand before the rules.
            let moment = self.script.later.iter().rev().find(|moment| moment.before <= *before);
            let first = moment.map_or(*before, |moment| moment.before);
            let (earlier, later) = commands.split_at(first);
            let is_deleted = |device: &Option<String>| {
                later.iter().any(|command| command.device == *device && command.is_root_deleted())
            };
            let mut configured = earlier.iter().filter(|command| command.configures());
            let only_deletes = !later.iter().any(Command::configures);
            if !(only_deletes && configured.all(|command| is_deleted(&command.device))) {
                self.problems.push(comes_late(span));
            }
        }
    }
}

fn comes_late(span: &Range<usize>) -> Problem {
    Problem::new("a rule of the firewall after `sleep`")
        .at(span)
        .help("rules of a script hold from its start: put the rule before the `sleep`")
}

fn stays_down(device: &str, span: &Range<usize>) -> Problem {
    Problem::new(format!("{} is taken down, and no packet passes it", Found(device)))
        .at(span)
        .help("a link has `outage` for this, in a scenario: leave the line out, or take the device up before packets are sent")
}

fn without_commands(text: &str) -> Problem {
    let problem = Problem::new("there is no command of tc");
    match text.contains("tc ") && text.contains('$') {
        true => problem.help(
            "with these arguments and variables the script comes to none: give it others (`-- ARGUMENTS`, `--env`), or `narrows tc commands`, which runs it in a sandbox and prints its commands",
        ),
        false => problem.help("as in: tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb latency 70ms"),
    }
}
