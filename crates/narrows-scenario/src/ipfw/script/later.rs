//! `sleep` in a script: what follows happens later, on the timeline of the scenario.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use narrows_core::Duration;
use narrows_core::rules::Rule;

use super::{ExplainedLine, Script};
use crate::dialect::shell::raises_rights;
use crate::ipfw::command::{Command, Rules};
use crate::ipfw::config::Object;
use crate::ipfw::flows::TableKey;
use crate::ipfw::lexer::{Line, Word};
use crate::ipfw::table::TableCommand;
use crate::ipfw::verbs::is_program;
use crate::ipfw::{Written, text};
use crate::keys::kind;
use crate::node::Node;
use crate::problem::{Found, Problem};

/// What a script does after its first `sleep`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::ipfw) struct Later {
    /// How long it has slept so far.
    now: Duration,
    /// All that it has configured so far; `None` before the first command.
    latest: Option<Box<Script>>,
    commands: Vec<LaterCommand>,
    /// The instants when a turn of a loop begins that never ends, and the next one, and what was there at the first.
    turns: Vec<(Duration, Option<Box<Script>>)>,
}

/// A command that takes effect during the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LaterCommand {
    pub(crate) at: Duration,
    /// The time after which it is executed again, and so on.
    pub(crate) every: Option<Duration>,
    /// The command, for a run.
    text: String,
    /// The place in the script.
    place: Range<usize>,
}

impl LaterCommand {
    /// For a link with this name.
    pub(crate) fn written(&self, link: &str) -> Written {
        Written { link: link.into(), text: self.text.clone(), place: self.place.clone() }
    }
}

impl Later {
    pub(super) fn has_begun(&self) -> bool {
        self.now > Duration::ZERO
    }

    /// The rules at the end, if commands change them.
    pub(super) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.latest.iter().flat_map(|latest| &latest.rules)
    }

    /// Whether a pipe, queue or scheduler exists at the end.
    pub(super) fn configures(&self, object: Object, number: u32) -> bool {
        self.latest.as_ref().is_some_and(|latest| latest.objects.contains_key(&(object, number)))
    }
}

impl Script {
    pub(super) fn sleep(&mut self, time: Duration, remarks: &mut Vec<String>) {
        let is_new = self.rules.is_empty() && self.objects.is_empty() && self.tables.is_empty();
        if is_new {
            remarks.push("nothing is configured yet, so it has no effect".into());
        } else {
            self.later.now += time;
        }
    }

    /// A turn begins of a loop that never ends, or the next one, which is as this one.
    pub(super) fn turn(&mut self, line: &Line, text: &str) -> Result<(), Problem> {
        let (now, place) = (self.later.now, &line.span);
        if let [(_, before)] = &self.later.turns[..]
            && !same(before.as_deref(), self.later.latest.as_deref())
        {
            return Err(Problem::new(
                "a loop that never ends, and whose turns leave something else each time",
            )
            .at(place)
            .help("write out the turns that are to happen: for i in $(seq 1 100); do …; done"));
        }
        if let [(from, _)] = &self.later.turns[..] {
            self.lines.push(ExplainedLine {
                number: line.number,
                text: text.get(place.clone()).unwrap_or_default().to_owned(),
                meaning: format!(
                    "The loop never ends: what happens after {from}, until {now} after the start, happens every {} from then on",
                    now - *from
                ),
                remarks: Vec::new(),
            });
        }
        let latest = self.later.latest.clone();
        self.later.turns.push((now, latest));
        Ok(())
    }

    /// Commands of a turn that repeats say so; those of later turns are left out.
    pub(super) fn end_turns(&mut self) {
        let turns = std::mem::take(&mut self.later.turns);
        if let [(one, _), (next, _)] = turns[..]
            && one < next
        {
            self.later.commands.retain(|command| command.at <= next);
            for command in self.later.commands.iter_mut().filter(|command| command.at > one) {
                command.every = Some(next - one);
            }
        }
    }

    /// Executes a command that takes effect after the start; returns it, with the number that its rule got.
    pub(super) fn later(
        &mut self,
        command: Command,
        line: &Line,
        remarks: &mut Vec<String>,
    ) -> Result<Command, Problem> {
        match command {
            Command::Sleep(time) => {
                self.sleep(time, remarks);
                return Ok(command);
            }
            Command::Nothing | Command::ResetLog(_) | Command::Firewall(true) => return Ok(command),
            _ => {}
        }
        let mut latest = self.later.latest.take().unwrap_or_else(|| {
            let start = Self { lines: Vec::new(), later: Later::default(), ..self.clone() };
            Box::new(start)
        });
        let text = match &command {
            Command::Add(_) => None,
            Command::Delete(rules) => latest.deletion(rules),
            Command::DeleteObjects(object, numbers) => latest.deletion_of(*object, numbers),
            Command::Table(TableCommand::Delete { table, entries }) => latest.deletion_from(table, entries),
            _ => Some(command_text(&command, line)?),
        };
        let applied = match command {
            Command::Zero(_) => command,
            _ => latest.apply_noting(command, None, remarks)?,
        };
        let text = match &applied {
            Command::Add(rule) => Some(format!("add {}", text::rule_text(rule))),
            _ => text,
        };
        self.later.latest = Some(latest);
        if let Some(text) = text {
            remarks.push(format!("{} after the start", self.later.now));
            let (at, place) = (self.later.now, line.span.clone());
            self.later.commands.push(LaterCommand { at, every: None, text, place });
        }
        Ok(applied)
    }

    /// The command that deletes those of these rules that exist: in a run, it is an error if there are none.
    fn deletion(&self, which: &Rules) -> Option<String> {
        let is_there = |range: &&RangeInclusive<u16>| {
            let these = Rules { numbers: vec![(*range).clone()], set: which.set };
            self.rules.iter().any(|rule| these.include(rule))
        };
        let set = which.set.map_or(String::new(), |set| format!("set {set} "));
        let numbers = listed(which.numbers.iter().filter(is_there).map(range))?;
        Some(format!("{set}delete{numbers}"))
    }

    /// Same for pipes, queues and schedulers.
    fn deletion_of(&self, object: Object, which: &[RangeInclusive<u32>]) -> Option<String> {
        let is_there = |range: &&RangeInclusive<u32>| {
            self.objects.keys().any(|(kind, number)| *kind == object && range.contains(number))
        };
        let numbers = listed(which.iter().filter(is_there).map(range))?;
        Some(format!("{} delete{numbers}", object.word()))
    }

    /// Same for entries of a table.
    fn deletion_from(&self, table: &str, which: &[TableKey]) -> Option<String> {
        let rows = self.tables.get(table)?;
        let keys = listed(which.iter().filter(|key| rows.contains_key(key)).map(TableKey::in_scenario))?;
        Some(format!("table {table} delete{keys}"))
    }

    /// The commands that take effect during the run, in order.
    pub(crate) fn later_commands(&self) -> &[LaterCommand] {
        &self.later.commands
    }

    /// The same as a scenario's timeline, for a link with this name.
    pub(in crate::ipfw) fn timeline(&self, link: &str) -> String {
        let steps = self.later.commands.chunk_by(|one, other| one.at == other.at);
        let entry = |step: &[LaterCommand]| {
            let command = |command: &LaterCommand| Node::new(kind::text(&command.text)).toml();
            let commands: Vec<String> = step.iter().map(command).collect();
            let list = match &commands[..] {
                [one] => format!("[{one}]"),
                all => format!("[\n    {},\n]", all.join(",\n    ")),
            };
            let every = step[0].every.map_or(String::new(), |every| format!("every = \"{every}\"\n"));
            format!("\n[[timeline]]\nat = \"{}\"\n{every}ipfw.{link} = {list}\n", step[0].at)
        };
        steps.map(entry).collect()
    }
}

/// Whether the same is configured.
fn same(one: Option<&Script>, other: Option<&Script>) -> bool {
    let parts = |script: &Script| {
        let (rules, objects, tables) = (script.rules.clone(), script.objects.clone(), script.tables.clone());
        (rules, objects, tables, script.nats.clone(), script.disabled_sets, script.one_pass)
    };
    one.map(parts) == other.map(parts)
}

/// These words, each with a space before it; `None` if there are none.
fn listed(words: impl Iterator<Item = String>) -> Option<String> {
    let all: String = words.map(|word| format!(" {word}")).collect();
    (!all.is_empty()).then_some(all)
}

fn range<T: PartialEq + Display>(range: &RangeInclusive<T>) -> String {
    match (range.start(), range.end()) {
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low}-{high}"),
    }
}

/// A command as a run reads it: without the program and flags. Interfaces of tables stand with the host that has them.
fn command_text(command: &Command, line: &Line) -> Result<String, Problem> {
    match command {
        Command::FlushObjects => return Ok("pipe flush".into()),
        Command::Table(TableCommand::Add { table, entries }) => {
            let entry = |(key, value): &(TableKey, u32)| format!(" {} {value}", key.in_scenario());
            return Ok(format!("table {table} add{}", entries.iter().map(entry).collect::<String>()));
        }
        _ => {}
    }
    let is_before = |word: &&Word| {
        is_program(&word.text)
            || raises_rights(&word.text)
            || word.text.starts_with('-')
            || word.text == "exec"
    };
    let own: Vec<&Word> = line.words.iter().skip_while(is_before).collect();
    if let Some(word) =
        own.iter().find(|word| word.text.contains(|c: char| c.is_whitespace() || "\"'#\\".contains(c)))
    {
        return Err(word
            .problem(format!("{} in a command after `sleep`", Found(&word.text)))
            .help("there, no word may contain white space, quotes or `#`"));
    }
    Ok(own.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "))
}
