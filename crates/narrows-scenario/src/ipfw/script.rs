//! Executes a script: its commands in order, and the resulting state.

mod later;

use later::Later;
pub(crate) use later::LaterCommand;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use narrows_core::rules::{Action, Argument, FlowFields, NatConfig, Rule};

use super::address::Context;
use super::command::{self, Command, Rules};
use super::config::{Config, Object, SchedulerType};
use super::flows::{self, TableKey};
use super::interfaces;
use super::lexer::Line;
use super::nat::NatCommand;
use super::reader::LAST;
use super::rule::backwards;
use super::sets::SetCommand;
use super::source;
use super::table::TableCommand;
use super::words;
use crate::dialect::number_of;
use crate::node::Value;
use crate::problem::{Problem, Problems, ScenarioError};

/// The rules, tables, pipes, queues and schedulers that a script creates.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The rules, in the order in which they are tried.
    pub rules: Vec<Rule>,
    /// Disabled sets, one bit for each.
    pub disabled_sets: u32,
    /// Tables by name, with the value of each network.
    pub tables: BTreeMap<String, BTreeMap<TableKey, u32>>,
    /// The fields of tables of flows.
    pub flow_tables: BTreeMap<String, FlowFields>,
    /// Translators by number.
    pub nats: BTreeMap<u32, NatConfig>,
    /// Whether a packet that leaves a pipe or a translator is accepted; otherwise it continues at the next rule.
    pub one_pass: bool,
    /// Pipes, queues and schedulers by kind and number.
    pub objects: BTreeMap<(Object, u32), Config>,
    /// The lines with their explanations.
    pub lines: Vec<ExplainedLine>,
    /// What `sleep` moves to the timeline.
    pub(super) later: Later,
    /// The largest number of a rule.
    pub(super) last: u16,
}

/// A line with its explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedLine {
    /// Line number in the file, from 1.
    pub number: usize,
    /// The text, on one line.
    pub text: String,
    /// What it does, in words.
    pub meaning: String,
    /// Assumptions made.
    pub remarks: Vec<String>,
}

/// The line and its remarks, with distinguishing marks.
impl std::fmt::Display for ExplainedLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>4}  {}\n      {}", self.number, self.text, self.meaning)?;
        self.remarks.iter().try_for_each(|remark| write!(f, "\n      ({remark})"))
    }
}

impl Default for Script {
    /// No rules, and ipfw's initial setting that packets are accepted after a pipe.
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            disabled_sets: 0,
            tables: BTreeMap::new(),
            flow_tables: BTreeMap::new(),
            nats: BTreeMap::new(),
            one_pass: true,
            objects: BTreeMap::new(),
            lines: Vec::new(),
            later: Later::default(),
            last: 0,
        }
    }
}

/// Maximum number of lines of a script.
const MOST_COMMANDS: usize = 1 << 20;

impl Script {
    /// The greatest weight of WF2Q+, the scheduler of a pipe without another (dn_sched_wf2q.c).
    pub(crate) const MOST_WEIGHT: u32 = 100;

    /// Parses and executes a script, and checks that everything exists that its queues name, and the translators of its
    /// rules. A rule whose pipe or queue does not exist drops its packets, as in ipfw, with a remark.
    /// `file` is its name in errors.
    ///
    /// # Errors
    /// The error points at every invalid line or, if all lines are valid, at every line that names a
    /// missing object.
    pub fn parse(text: &str, file: &str, context: &Context<'_>) -> Result<Self, ScenarioError> {
        let mut script = Self::default();
        let mut problems = Problems::default();
        let mut places = Places::default();
        let commands = source::commands(text, context.start);
        let interface_tables = interfaces::tables(commands.iter().flatten());
        let states = only_name_of_states(&commands).or(context.states);
        let flow_tables = flows::tables(commands.iter().flatten());
        let context = Context {
            states,
            interface_tables: &interface_tables,
            flow_tables: &flow_tables,
            is_script: true,
            ..*context
        };
        // Of several, the first counts, as it does where entries are read.
        for (name, fields) in &flow_tables {
            script.flow_tables.entry(name.clone()).or_insert(*fields);
        }
        if commands.len() > MOST_COMMANDS {
            problems.extend(vec![Problem::new(format!("more than {MOST_COMMANDS} lines"))]);
        }
        for line in commands.iter().take(MOST_COMMANDS) {
            let line = match line {
                Ok(line) if line.begins_turn => {
                    problems.catch(script.turn(line, text));
                    continue;
                }
                Ok(line) if line.words.is_empty() => continue,
                Ok(line) => line,
                Err(problem) => {
                    problems.catch::<()>(Err(problem.clone()));
                    continue;
                }
            };
            let read = script.line(line, text, &context, &mut places);
            problems.catch(read.map_err(|problem| source::of_line(problem, line)));
        }
        script.end_turns();
        script.put_in_order();
        if let Some(place) = &places.disabled {
            problems.extend(vec![command::disabled().at(place)]);
        }
        if problems.is_empty() {
            problems.extend(script.missing(&places));
            script.tell_of_missing_objects(&places);
            script.tell_of_unused_schedulers(&places);
            script.tell_of_unused_masks(&places);
            script.tell_of_unused_pipes(&places);
            script.bound_queues(&places);
        }
        if problems.is_empty() { Ok(script) } else { Err(problems.into_error(file, text)) }
    }

    fn line(
        &mut self,
        line: &Line,
        text: &str,
        context: &Context<'_>,
        places: &mut Places,
    ) -> Result<(), Problem> {
        let unset = |problem: &Problem| format!("{}: a shell has no word in its place", problem.title());
        let mut remarks: Vec<String> =
            line.unset.iter().map(unset).chain(line.said.iter().cloned()).collect();
        let command = match self.is_said_of_a_rule(line) {
            true => {
                remarks.push("What ipfw says of a rule that it adds".into());
                Command::Nothing
            }
            false => command::read(line, context, &mut remarks)?,
        };
        places.note(line, &command, self.lines.len());
        match (&command, &places.disabled) {
            (Command::Firewall(on), _) => {
                places.disabled = line.words.last().filter(|_| !on).map(|word| word.span.clone());
            }
            (Command::Sleep(_), Some(place)) => return Err(command::disabled().at(place)),
            _ => {}
        }
        let command =
            self.apply_noting(command, Some(line), &mut remarks).map_err(|problem| problem.at(&line.span))?;
        let written = text.get(whole(text, &line.span)).unwrap_or_default();
        let words: Vec<&str> = written.split_whitespace().filter(|word| *word != "\\").collect();
        self.lines.push(ExplainedLine {
            number: line.number,
            text: if written.contains('$') { line.text() } else { words.join(" ") },
            meaning: words::command(&command),
            remarks,
        });
        Ok(())
    }

    /// Whether a line of a session is what `add` prints: five digits, the number of a rule that is there, and its action.
    fn is_said_of_a_rule(&self, line: &Line) -> bool {
        let [number, action, ..] = &line.words[..] else { return false };
        let is_number = number.text.len() == 5 && number.text.bytes().all(|byte| byte.is_ascii_digit());
        let number: Option<u16> = number.text.parse().ok().filter(|_| is_number);
        let is_there = |number| self.rules.iter().any(|rule| rule.number == number);
        number.is_some_and(is_there) && !matches!(action.text.as_str(), "add" | "delete")
    }

    /// Executes a command. Commands that only print have no effect.
    ///
    /// # Errors
    /// If a rule would jump backwards, and after a `sleep`, which only a text may have. The script is then unchanged.
    pub fn apply(&mut self, command: Command) -> Result<(), ScenarioError> {
        let applied = self.apply_noting(command, None, &mut Vec::new());
        self.put_in_order();
        applied.map(|_| ()).map_err(|problem| ScenarioError::new(super::NAME, "", vec![problem]))
    }

    /// Sorts the rules by number, and those of one number by age: inserting each at its place would take the square of their
    /// number.
    fn put_in_order(&mut self) {
        self.rules.sort_by_key(|rule| rule.number);
    }

    /// Same; returns the command, with the number that its rule got.
    fn apply_noting(
        &mut self,
        mut command: Command,
        line: Option<&Line>,
        remarks: &mut Vec<String>,
    ) -> Result<Command, Problem> {
        if self.later.has_begun() && !command.prints() {
            let line = line.ok_or_else(|| Problem::new("a single command after `sleep`"))?;
            return self.later(command, line, remarks);
        }
        match &mut command {
            Command::Add(rule) => self.add(rule, remarks)?,
            Command::Delete(rules) => self.delete(rules, remarks),
            Command::DeleteSets(sets) => self.retain(|rule| !sets.contains(&rule.set)),
            Command::Flush(set) => self.retain(|rule| match set {
                Some(set) => rule.set != *set,
                None => rule.set == 31,
            }),
            Command::Sets(change) => self.sets(*change),
            Command::Configure(config) => self.configure(config, remarks),
            Command::DeleteObjects(object, numbers) => {
                for range in numbers.iter() {
                    let before = self.objects.len();
                    self.objects.retain(|(kind, number), _| kind != object || !range.contains(number));
                    if self.objects.len() == before {
                        remarks.push(format!(
                            "there is no {} {} to delete",
                            object.word(),
                            words::range(range)
                        ));
                    }
                }
            }
            Command::FlushObjects => self.objects.clear(),
            Command::Table(change) => self.table(change, remarks),
            Command::Nat(command) => self.nat(command, remarks),
            Command::OnePass(on) => self.one_pass = *on,
            Command::Zero(_) | Command::ResetLog(_) => {
                remarks.push("a script has nothing to reset yet".into());
            }
            Command::List(_) | Command::ListObjects(..) | Command::Settings(_) => {
                remarks.push("a script prints nothing".into());
            }
            Command::Sleep(time) => self.sleep(*time, remarks),
            Command::Firewall(_) | Command::Nothing => {}
        }
        Ok(command)
    }

    fn retain(&mut self, keep: impl FnMut(&Rule) -> bool) {
        self.rules.retain(keep);
        self.last = self.rules.iter().map(|rule| rule.number).max().unwrap_or(0);
    }

    /// Adds a rule, to stand after those with the same number. A rule without a number gets the last one plus 100.
    fn add(&mut self, rule: &mut Rule, remarks: &mut Vec<String>) -> Result<(), Problem> {
        const STEP: u16 = 100;
        if rule.number == 0 {
            let last = self.last;
            rule.number = if u32::from(last) + u32::from(STEP) <= LAST { last + STEP } else { last };
            remarks.push(format!("no number given: it gets {}", rule.number));
        }
        if let Action::SkipTo(Argument::Number(to)) = rule.action
            && to <= u32::from(rule.number)
        {
            return Err(backwards(to, rule.number));
        }
        self.last = self.last.max(rule.number);
        self.rules.push(rule.clone());
        Ok(())
    }

    fn delete(&mut self, rules: &Rules, remarks: &mut Vec<String>) {
        for range in &rules.numbers {
            let these = Rules { numbers: vec![range.clone()], set: rules.set };
            let before = self.rules.len();
            self.retain(|rule| !these.include(rule));
            if self.rules.len() == before {
                remarks.push(format!("there is no rule {} to delete", words::range(range)));
            }
        }
    }

    fn sets(&mut self, change: SetCommand) {
        let mut each = |to: &dyn Fn(&Rule) -> u8| self.rules.iter_mut().for_each(|rule| rule.set = to(rule));
        match change {
            SetCommand::Enable { enable, disable } => {
                self.disabled_sets = (self.disabled_sets | disable) & !enable;
            }
            SetCommand::MoveRule { rule: number, to } => {
                each(&|rule| if rule.number == number { to } else { rule.set });
            }
            SetCommand::Move { from, to } => each(&|rule| if rule.set == from { to } else { rule.set }),
            SetCommand::Swap(a, b) => each(&|rule| match rule.set {
                set if set == a => b,
                set if set == b => a,
                set => set,
            }),
            SetCommand::Show => {}
        }
    }

    /// As in ipfw, configuring an object again resets what the line does not mention. A queue keeps its
    /// pipe, weight, priority and longest packet, and a scheduler its type.
    pub(super) fn configure(&mut self, config: &mut Config, remarks: &mut Vec<String>) {
        let (mut own, scheduler) = config.split();
        self.configure_one(&mut own, remarks);
        if let Some(scheduler) = scheduler {
            self.objects.insert((scheduler.object, scheduler.number), scheduler);
        } else {
            *config = own;
        }
    }

    fn configure_one(&mut self, config: &mut Config, remarks: &mut Vec<String>) {
        let key = (config.object, config.number);
        if let Some(before) = self.objects.get(&key) {
            for key in ["weight", "longest", "priority", "pipe", "scheduler"] {
                if let Some(node) = before.keys.get(key) {
                    config.keys = config.keys.and(key, node.value.clone());
                }
            }
            let word = config.object.word();
            remarks.push(format!(
                "{word} {} was configured before: options not given here return to their defaults",
                config.number
            ));
        }
        if config.object == Object::Queue && !config.says("weight") && !config.says("priority") {
            remarks.push("its weight is 1, the default".into());
        }
        self.objects.insert(key, config.clone());
    }

    fn nat(&mut self, command: &NatCommand, remarks: &mut Vec<String>) {
        match command {
            NatCommand::Configure { number, config } => {
                if self.nats.insert(*number, (**config).clone()).is_some() {
                    remarks.push(format!(
                        "translator {number} was configured before: options not given here return to their defaults"
                    ));
                }
            }
            NatCommand::Delete(number) => {
                if self.nats.remove(number).is_none() {
                    remarks.push(format!("there is no translator {number} to delete"));
                }
            }
            NatCommand::Show(_) | NatCommand::ShowFlows(_) => {
                remarks.push("a script prints nothing".into());
            }
        }
    }

    fn table(&mut self, change: &TableCommand, remarks: &mut Vec<String>) {
        match change {
            TableCommand::Add { table, entries } => {
                let rows = self.tables.entry(table.clone()).or_default();
                for (network, value) in entries {
                    if let Some(before) = rows.insert(*network, *value)
                        && before != *value
                    {
                        remarks.push(format!("{network} had the value {before} before"));
                    }
                }
            }
            TableCommand::Delete { table, entries } => {
                let rows = self.tables.entry(table.clone()).or_default();
                for network in entries {
                    if rows.remove(network).is_none() {
                        remarks.push(format!("{network} is not in the table"));
                    }
                }
            }
            TableCommand::Flush(Some(table)) => self.tables.entry(table.clone()).or_default().clear(),
            TableCommand::Flush(None) => self.tables.values_mut().for_each(BTreeMap::clear),
            TableCommand::Create { table, .. } => {
                self.tables.entry(table.clone()).or_default();
            }
            TableCommand::Swap(one, other) => {
                let [first, second] = [one, other].map(|name| self.tables.remove(name).unwrap_or_default());
                self.tables.insert(other.clone(), first);
                if one != other {
                    self.tables.insert(one.clone(), second);
                }
            }
            TableCommand::Destroy(table) => {
                self.tables.remove(table);
            }
            TableCommand::List(_) | TableCommand::Info(_) => {
                remarks.push("a script prints nothing".into());
            }
        }
    }

    /// Whether a pipe or scheduler with this number has a link.
    fn has_link(&self, number: u32) -> bool {
        [Object::Pipe, Object::Scheduler].iter().any(|object| self.objects.contains_key(&(*object, number)))
    }

    /// Gives queues what their schedulers allow them, with a remark to the line of each that asks for more.
    fn bound_queues(&mut self, places: &Places) {
        let most = Self::MOST_WEIGHT;
        let kinds: BTreeMap<u32, &SchedulerType> = self
            .objects
            .iter()
            .filter(|((object, _), _)| *object == Object::Scheduler)
            .filter_map(|((_, number), config)| Some((*number, config.scheduler()?.0)))
            .collect();
        for (&(object, number), config) in &mut self.objects {
            if object != Object::Queue {
                continue;
            }
            let kind = config.parent().and_then(|parent| kinds.get(&parent).copied());
            let weight = number_of(&config.keys, "weight").unwrap_or(1);
            let remark = match kind {
                Some(kind) if kind.manages() => {
                    let has_own = ["weight", "priority", "longest", "bound", "queue"]
                        .iter()
                        .any(|key| config.says(key));
                    (has_own || config.mask.is_some()).then(|| {
                        format!(
                            "{} gives its own queues to flows: weights, masks, lengths and AQM of this queue have no effect, as in ipfw",
                            kind.printed
                        )
                    })
                }
                None | Some(SchedulerType { name: "wf2q+", .. }) if weight > most => {
                    config.keys.remove("weight");
                    config.keys.put("weight", Value::Integer(most.to_string()));
                    Some(format!("weights of WF2Q+ end at {most}, as in ipfw: this queue gets {most}"))
                }
                _ => None,
            };
            let line = places.configured.get(&number).and_then(|at| self.lines.get_mut(*at));
            if let (Some(line), Some(remark)) = (line, remark) {
                line.remarks.push(remark);
            }
        }
    }

    /// Adds a remark to each line with the mask of a pipe whose queues have another one, or none.
    fn tell_of_unused_masks(&mut self, places: &Places) {
        for number in self.objects.values().filter_map(Config::parent).collect::<BTreeSet<u32>>() {
            let mask = |object| self.objects.get(&(object, number)).and_then(|config: &Config| config.mask);
            let (pipe, scheduler) = (mask(Object::Pipe), mask(Object::Scheduler));
            let of_pipe =
                self.objects.get(&(Object::Pipe, number)).filter(|_| pipe.is_some() && pipe != scheduler);
            let line = of_pipe.and_then(|_| places.pipes.get(&number)).copied();
            if let Some(line) = line.and_then(|at| self.lines.get_mut(at)) {
                line.remarks.push(format!(
                    "the mask is for packets that rules send to pipe {number}; queues share its scheduler without it, as in ipfw: sched {number} config mask … divides that"
                ));
            }
        }
    }

    /// Adds a remark to each line with a scheduler that no queue uses.
    fn tell_of_unused_schedulers(&mut self, places: &Places) {
        let used: BTreeSet<u32> = self.objects.values().filter_map(Config::parent).collect();
        for (&number, &line) in places.typed.iter().filter(|(number, _)| !used.contains(number)) {
            let is_there = self.objects.contains_key(&(Object::Scheduler, number));
            if let Some(line) = self.lines.get_mut(line).filter(|_| is_there) {
                line.remarks.push(format!(
                    "no queue uses this scheduler: packets that rules send to pipe {number} wait first in, first out, as in ipfw. To use it: queue {number} config pipe {number}, and rules of queue {number}"
                ));
            }
        }
    }

    /// Adds a remark to each line that configures a pipe or a queue to which no rule leads, now or later.
    fn tell_of_unused_pipes(&mut self, places: &Places) {
        let rules: Vec<&Rule> = self.rules.iter().chain(self.later.rules()).collect();
        if rules.iter().any(|rule| {
            matches!(
                rule.action,
                Action::Pipe(Argument::TableArgument) | Action::Queue(Argument::TableArgument)
            )
        }) {
            return;
        }
        let mut used: BTreeSet<u32> = self.objects.values().filter_map(Config::parent).collect();
        used.extend(rules.iter().filter_map(|rule| match rule.action {
            Action::Pipe(Argument::Number(number)) => Some(number),
            _ => None,
        }));
        let queues: BTreeSet<u32> = rules
            .iter()
            .filter_map(|rule| match rule.action {
                Action::Queue(Argument::Number(number)) => Some(number),
                _ => None,
            })
            .collect();
        let all = [(Object::Pipe, &places.pipes, used), (Object::Queue, &places.configured, queues)];
        for (object, lines, used) in all {
            for (&number, &line) in lines.iter().filter(|(number, _)| !used.contains(number)) {
                let is_there = self.objects.contains_key(&(object, number));
                if let Some(line) = self.lines.get_mut(line).filter(|_| is_there) {
                    let word = object.word();
                    line.remarks.push(format!("no rule leads to {word} {number}: no packet passes it"));
                }
            }
        }
    }

    /// The pipes and queues that rules lead to and that are not configured at the start: packets of these rules are dropped.
    pub(super) fn missing_objects(&self) -> BTreeSet<(Object, u32)> {
        let to = |rule: &Rule| match rule.action {
            Action::Pipe(Argument::Number(number)) => Some((Object::Pipe, number)),
            Action::Queue(Argument::Number(number)) => Some((Object::Queue, number)),
            _ => None,
        };
        self.rules.iter().filter_map(to).filter(|to| !self.objects.contains_key(to)).collect()
    }

    /// Adds a remark to each line with a rule whose pipe or queue is not configured: ipfw drops its packets.
    fn tell_of_missing_objects(&mut self, places: &Places) {
        for (object, number) in self.missing_objects() {
            let word = object.word();
            let mut remark = match self.later.configures(object, number) {
                true => format!(
                    "{word} {number} is not configured at the start: until it is, packets that reach it are dropped, as in ipfw"
                ),
                false => format!(
                    "{word} {number} is not configured: packets that reach it are dropped, as in ipfw"
                ),
            };
            if self.objects.is_empty() {
                remark += "; NO PIPE AT ALL IS CONFIGURED HERE";
            }
            for named in places.leading.get(&(object, number)).into_iter().flatten() {
                self.lines.get_mut(named.line).into_iter().for_each(|line| line.remarks.push(remark.clone()));
            }
        }
    }

    /// Problems with rules of missing translators, and with queues and schedulers.
    fn missing(&self, places: &Places) -> Vec<Problem> {
        let mut problems = Vec::new();
        // In ipfw, a scheduler alone passes no packets of a pipe; in a scenario it is one.
        let missing = self.missing_objects().into_iter();
        for to in missing.filter(|(object, number)| *object == Object::Pipe && self.has_link(*number)) {
            let number = to.1;
            let title =
                format!("a rule sends packets to pipe {number}, of which only the scheduler is configured");
            let problem = Problem::new(title).help(format!("write: pipe {number} config …"));
            problems.push(match places.leading.get(&to).and_then(|at| at.first()) {
                Some(named) => problem.at(&named.place),
                None => problem,
            });
        }
        for rule in &self.rules {
            if let Action::Nat(Argument::Number(number)) = rule.action
                && !self.nats.contains_key(&number)
            {
                problems.push(self.no_translator(rule.number, number, places));
            }
        }
        for config in self.objects.values().filter(|config| config.object == Object::Queue) {
            let number = config.number;
            let problem = match config.parent() {
                Some(parent) if self.has_link(parent) => continue,
                Some(parent) => Problem::new(format!(
                    "queue {number} uses the scheduler {parent}, which is not configured"
                ))
                .help(format!("write: pipe {parent} config …, or: sched {parent} config …")),
                None => Problem::new(format!("`sched` is missing: queue {number} has no scheduler"))
                    .help(format!("as in: queue {number} config sched 1, or, which is the same, pipe 1")),
            };
            problems.push(places.at_config(problem, number));
        }
        for number in self.objects.values().filter_map(Config::parent).collect::<BTreeSet<u32>>() {
            let mask = |object| self.objects.get(&(object, number)).and_then(|config| config.mask);
            let leads = |rule: &Rule| rule.action == Action::Pipe(Argument::Number(number));
            if mask(Object::Pipe) != mask(Object::Scheduler)
                && let Some(rule) = self.rules.iter().find(|rule| leads(rule))
            {
                let title = format!(
                    "rule {} leads to pipe {number}, queues to its scheduler, and these have different masks",
                    rule.number
                );
                let help = "in ipfw these are two links: give each a number of its own";
                let problem = Problem::new(title).help(help);
                let place = places.leading.get(&(Object::Pipe, number)).and_then(|all| all.first());
                problems.push(match place {
                    Some(named) => problem.at(&named.place),
                    None => problem,
                });
            }
        }
        problems
    }
}

impl Script {
    fn no_translator(&self, rule: u16, number: u32, places: &Places) -> Problem {
        let known: Vec<String> = self.nats.keys().map(u32::to_string).collect();
        let known = match &known[..] {
            [] => "no translator is configured".into(),
            known => format!("configured: {}", known.join(", ")),
        };
        let title = format!("rule {rule} uses translator {number}, which is not configured");
        let problem = Problem::new(title).help(format!("{known}; write: nat {number} config if em0"));
        match places.nats.get(&number) {
            Some(place) => problem.at(place),
            None => problem,
        }
    }
}

/// The line with the quote that closes its last word.
fn whole(text: &str, span: &Range<usize>) -> Range<usize> {
    let next = text.get(span.end..).and_then(|rest| rest.chars().next());
    let Some((line, next)) = text.get(span.clone()).zip(next) else { return span.clone() };
    let closes = matches!(next, '"' | '\'') && line.matches(next).count() % 2 == 1;
    span.start..span.end + usize::from(closes)
}

/// The name of the dynamic rules, if all rules that create or check some use the same.
fn only_name_of_states(commands: &[Result<Line, Problem>]) -> Option<&str> {
    let words = commands.iter().flatten().flat_map(|line| {
        let next = line.words.iter().skip(1).map(Some).chain([None]);
        line.words.iter().zip(next)
    });
    let is_name = |text: &str| text.starts_with(':');
    let mut names = words.filter_map(|(word, next)| match word.text.as_str() {
        "check-state" | "keep-state" | "record-state" => Some(next.map_or("", |next| next.text.as_str())),
        // The name follows the number.
        "limit" | "set-limit" => Some(""),
        name if is_name(name) => Some(name),
        _ => None,
    });
    let first = names.next().filter(|name| is_name(name))?;
    names.all(|name| name == first).then_some(first)
}

/// The position of a line, and the word in it.
struct NamedAt {
    line: usize,
    place: Range<usize>,
}

/// The places at which objects are named.
#[derive(Default)]
struct Places {
    /// Where rules name a pipe or queue.
    leading: BTreeMap<(Object, u32), Vec<NamedAt>>,
    /// Translators in the actions of rules.
    nats: BTreeMap<u32, Range<usize>>,
    /// Lines that configure queues.
    queues: BTreeMap<u32, Range<usize>>,
    /// Positions of the last lines that give a scheduler its type.
    typed: BTreeMap<u32, usize>,
    /// Positions of the last lines that configure queues.
    configured: BTreeMap<u32, usize>,
    /// The same of pipes.
    pipes: BTreeMap<u32, usize>,
    /// The last `disable firewall` that no `enable firewall` follows.
    disabled: Option<Range<usize>>,
}

impl Places {
    fn note(&mut self, line: &Line, command: &Command, at: usize) {
        if let Command::Configure(config) = command
            && config.says("scheduler")
        {
            self.typed.insert(config.number, at);
        }
        if let Command::Configure(config) = command {
            match config.object {
                Object::Queue => drop(self.configured.insert(config.number, at)),
                Object::Pipe => drop(self.pipes.insert(config.number, at)),
                Object::Scheduler => {}
            }
        }
        match command {
            Command::Add(Rule { action: Action::Nat(Argument::Number(number)), .. }) => {
                let at = line.words.iter().position(|word| word.text == "nat");
                let word = at.and_then(|at| line.words.get(at + 1));
                let place = word.map_or(line.span.clone(), |word| word.span.clone());
                self.nats.entry(*number).or_insert(place);
            }
            Command::Add(rule) => {
                let (object, number) = match rule.action {
                    Action::Pipe(Argument::Number(number)) => (Object::Pipe, number),
                    Action::Queue(Argument::Number(number)) => (Object::Queue, number),
                    _ => return,
                };
                let word = line.words.iter().position(|word| word.text == object.word());
                let word = word.and_then(|at| line.words.get(at + 1));
                let place = word.map_or(line.span.clone(), |word| word.span.clone());
                self.leading.entry((object, number)).or_default().push(NamedAt { line: at, place });
            }
            Command::Configure(config) if config.object == Object::Queue => {
                let at = line
                    .words
                    .iter()
                    .rposition(|word| matches!(word.text.as_str(), "sched" | "pipe" | "link"));
                let word = at.and_then(|at| line.words.get(at + 1)).filter(|_| config.parent().is_some());
                let place = word.map_or(line.span.clone(), |word| word.span.clone());
                self.queues.insert(config.number, place);
            }
            _ => {}
        }
    }

    fn at_config(&self, problem: Problem, number: u32) -> Problem {
        match self.queues.get(&number) {
            Some(place) => problem.at(place),
            None => problem,
        }
    }
}
