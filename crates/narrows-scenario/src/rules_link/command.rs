//! Commands of ipfw that change a link with rules while it runs.

use std::ops::RangeInclusive;

use narrows_core::classify::Prefix;
use narrows_core::rules::{Rule, RuleChange, RuleSet, RuleSetConfig, Which};
use narrows_core::{RulesChange, Seed, Time};

use super::read::next_number;
use super::{Pipe, PipeQueue, RulesLink};
use crate::engine_change::EngineChange;
use crate::ipfw::{Command, Config, Network, Object, Rules, Script, SetCommand, TableCommand};
use crate::link::Medium;
use crate::node::Node;
use crate::problem::{Found, Problem, ScenarioError, one_of};
use crate::scenario::Scenario;
use crate::value::Surroundings;

impl Scenario {
    /// Does what a command of ipfw asks for at this instant of a run, on the link with rules of this name, or the only one.
    /// The scenario's own values follow. Gives what to tell the engine, in this order; nothing where the command only prints.
    /// Nothing changes where there is an error.
    ///
    /// A rule may lead to a pipe or queue that is not there, as in ipfw: until it is, its packets are dropped and counted. A
    /// pipe whose mask changes is made anew. A pipe that is deleted takes its queues with it; what is inside leaves it.
    ///
    /// ```
    /// # use narrows_scenario::Scenario;
    /// let text = "[hosts.a]\n[hosts.b]\n[links.net]\nbetween = [\"a\", \"b\"]\nrules = []";
    /// let mut scenario = Scenario::parse(text, "net.toml")?;
    /// let text = "pipe 1 config bw 3Mbit/s delay 32ms\nadd pipe 1 ip from any to any";
    /// for (command, _) in scenario.ipfw_commands(None, "ipfw", text)?.commands {
    ///     scenario.ipfw_at(narrows_core::Time::ZERO, None, &command)?;
    /// }
    /// let rules = scenario.links[0].rules().expect("it has rules");
    /// assert_eq!((rules.rules.len(), rules.pipes[&1].direction.rate.to_string()), (1, "3mbit".to_string()));
    /// # Ok::<(), narrows_scenario::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such link, or the command asks for what cannot be.
    pub fn ipfw_at(
        &mut self,
        at: Time,
        link: Option<&str>,
        command: &Command,
    ) -> Result<Vec<EngineChange>, ScenarioError> {
        let wrong = |problem| ScenarioError::new(NAME, "", vec![problem]);
        let (index, before) = self.rules_link(link).map_err(wrong)?;
        let before = before.clone();
        let mut rules = before.clone();
        let hosts = self.host_names();
        let name = self.links[index].name.clone();
        let around = Surroundings { hosts: &hosts, shared: true, files: &self.files, at };
        let of_rules = rules.command(command, around).map_err(wrong)?;
        // Pipes come before rules that lead to them.
        let mut changes = rules.changes_since(&before, &name, &self.site(&self.links[index]));
        changes
            .extend(of_rules.into_iter().map(|change| EngineChange::Rules { rules: name.clone(), change }));
        self.links[index].medium = Medium::Rules(Box::new(rules));
        Ok(changes)
    }

    /// The link with rules of this name, or the only one: its index, and the rules.
    pub(crate) fn rules_link(&self, link: Option<&str>) -> Result<(usize, &RulesLink), Problem> {
        let all = self.links.iter().enumerate().filter_map(|(index, link)| Some((index, link.rules()?)));
        let all: Vec<(usize, &RulesLink)> = all.collect();
        let names: Vec<&str> = all.iter().map(|(index, _)| self.links[*index].name.as_str()).collect();
        match (link, &all[..]) {
            (_, []) => Err(Problem::new("no link has rules")
                .help("a scenario has some with `rules` in a link, and `run --ipfw FILE` loads a script")),
            (None, [only]) => Ok(*only),
            (None, _) => Err(Problem::new("several links have rules: which of them is meant?")
                .help(format!("links with rules: {}", one_of(&names)))),
            (Some(name), all) => {
                let found = names.iter().position(|known| *known == name).map(|at| all[at]);
                found.ok_or_else(|| {
                    let problem = Problem::new(format!("no link with rules is called {}", Found(name)));
                    problem
                        .did_you_mean(name, names.iter().copied())
                        .help(format!("links with rules: {}", one_of(&names)))
                })
            }
        }
    }
}

/// What errors call the text of a command.
const NAME: &str = "ipfw";

/// The set whose rules a flush leaves, and which cannot be disabled.
const ALWAYS: u8 = 31;

impl RulesLink {
    /// Does what a command asks for, and says what the rules of the engine do for it. What it changes of pipes and queues is
    /// for [`RulesLink::changes_since`] to find. Commands that only print do nothing.
    ///
    /// A rule may lead to a pipe or queue that is not there yet: until it is, its packets are dropped and counted.
    fn command(&mut self, command: &Command, around: Surroundings<'_>) -> Result<Vec<RulesChange>, Problem> {
        let mut changes = Vec::new();
        match command {
            Command::Add(rule) => changes.push(RuleChange::Add(self.add(rule.clone())?)),
            Command::Delete(rules) => {
                for which in these(rules) {
                    self.find(&which)?;
                    self.rules.retain(|rule| !includes(&which, rule));
                    changes.push(RuleChange::Delete(which));
                }
            }
            Command::DeleteSets(sets) => changes.extend(sets.iter().map(|set| self.delete_set(*set))),
            Command::Flush(Some(set)) => changes.push(self.delete_set(*set)),
            Command::Flush(None) => {
                self.rules.retain(|rule| rule.set == ALWAYS);
                changes.push(RuleChange::Flush);
            }
            Command::Zero(rules) => {
                for which in these(rules) {
                    self.find(&which)?;
                    changes.push(RuleChange::Zero(which));
                }
            }
            Command::Sets(change) => changes.extend(self.change_sets(*change)?),
            Command::Table(change) => changes = self.change_table(change)?,
            Command::Configure(config) => self.configure(config, around)?,
            Command::DeleteObjects(object, numbers) => {
                numbers.iter().try_for_each(|numbers| self.delete_objects(*object, numbers))?;
            }
            Command::FlushObjects => {
                self.queues.clear();
                self.pipes.clear();
            }
            Command::OnePass(one_pass) => self.one_pass = *one_pass,
            Command::ResetLog(_) | Command::List(_) | Command::ListObjects(..) | Command::Nothing => {}
        }
        Ok(changes.into_iter().map(RulesChange::Rules).collect())
    }

    fn add(&mut self, mut rule: Rule) -> Result<Rule, Problem> {
        if rule.number == 0 {
            rule.number = next_number(self.rules.last().map_or(0, |last| last.number));
        }
        let alone = RuleSetConfig { rules: vec![rule.clone()], ..RuleSetConfig::default() };
        RuleSet::new(Seed(0), "", alone).map_err(|error| Problem::new(error.to_string()))?;
        let at = self.rules.partition_point(|other| other.number <= rule.number);
        self.rules.insert(at, rule.clone());
        Ok(rule)
    }

    fn delete_set(&mut self, set: u8) -> RuleChange {
        self.rules.retain(|rule| rule.set != set);
        RuleChange::Delete(Which { numbers: None, set: Some(set) })
    }

    /// That numbers that are asked for are those of some rule.
    fn find(&self, which: &Which) -> Result<(), Problem> {
        let Some(numbers) = &which.numbers else { return Ok(()) };
        if self.rules.iter().any(|rule| includes(which, rule)) {
            return Ok(());
        }
        let of = which.set.map_or(String::new(), |set| format!(" of set {set}"));
        Err(Problem::new(match (numbers.start(), numbers.end()) {
            (65_535, _) => "rule 65535 is the default rule, which stays".into(),
            (one, last) if one == last => format!("there is no rule {one}{of}"),
            (first, last) => format!("there are no rules {first} to {last}{of}"),
        }))
    }

    fn change_sets(&mut self, change: SetCommand) -> Result<Option<RuleChange>, Problem> {
        let mut each = |to: &dyn Fn(&Rule) -> u8| self.rules.iter_mut().for_each(|rule| rule.set = to(rule));
        Ok(Some(match change {
            SetCommand::Enable { enable, disable } => {
                let disabled = (self.disabled_sets | disable) & !enable;
                if disabled >> ALWAYS & 1 == 1 {
                    return Err(Problem::new("set 31 cannot be disabled"));
                }
                self.disabled_sets = disabled;
                RuleChange::Sets { enable, disable }
            }
            SetCommand::MoveRule { rule: number, to } => {
                let which = Which { numbers: Some(number..=number), set: None };
                self.find(&which)?;
                let set = |rule: &Rule| if rule.number == number { to } else { rule.set };
                self.rules.iter_mut().for_each(|rule| rule.set = set(rule));
                RuleChange::Move { which, to }
            }
            SetCommand::Move { from, to } => {
                each(&|rule| if rule.set == from { to } else { rule.set });
                RuleChange::Move { which: Which { numbers: None, set: Some(from) }, to }
            }
            SetCommand::Swap(one, other) => {
                each(&|rule| match rule.set {
                    set if set == one => other,
                    set if set == other => one,
                    set => set,
                });
                RuleChange::Swap(one, other)
            }
            SetCommand::Show => return Ok(None),
        }))
    }

    fn change_table(&mut self, change: &TableCommand) -> Result<Vec<RuleChange>, Problem> {
        let mut changes = Vec::new();
        match change {
            TableCommand::Add { table, entries } => {
                let rows = self.tables.entry(table.clone()).or_default();
                for (network, value) in entries {
                    let prefix = prefix(network);
                    if rows.insert(prefix, *value).is_some() {
                        changes.push(RuleChange::TableDelete { table: table.clone(), prefix });
                    }
                    changes.push(RuleChange::TableAdd { table: table.clone(), prefix, value: *value });
                }
            }
            TableCommand::Delete { table, entries } => {
                for network in entries {
                    let prefix = prefix(network);
                    let removed = self.tables.get_mut(table).and_then(|rows| rows.remove(prefix));
                    if removed.is_none() {
                        return Err(Problem::new(format!("{network} is not in table {table}")));
                    }
                    changes.push(RuleChange::TableDelete { table: table.clone(), prefix });
                }
            }
            TableCommand::Flush(one) => {
                if let Some(table) = one.as_ref().filter(|table| !self.tables.contains_key(*table)) {
                    return Err(Problem::new(format!("there is no table {table}")));
                }
                let these =
                    self.tables.iter_mut().filter(|(name, _)| one.as_ref().is_none_or(|one| one == *name));
                for (name, rows) in these.filter(|(_, rows)| rows.iter().len() > 0) {
                    rows.clear();
                    changes.push(RuleChange::TableFlush { table: name.clone() });
                }
            }
            TableCommand::Create(table) => drop(self.tables.entry(table.clone()).or_default()),
            TableCommand::Destroy(table) => match self.tables.remove(table) {
                None => return Err(Problem::new(format!("there is no table {table}"))),
                Some(rows) if rows.iter().len() > 0 => {
                    changes.push(RuleChange::TableFlush { table: table.clone() });
                }
                Some(_) => {}
            },
            TableCommand::List(_) | TableCommand::Info(_) => {}
        }
        Ok(changes)
    }

    /// As in ipfw: what a line does not say is what it is by default, but for what makes a queue or scheduler one.
    fn configure(&mut self, config: &Config, around: Surroundings<'_>) -> Result<(), Problem> {
        let number = config.number;
        let keys = Script::keys_of(config);
        match config.object {
            Object::Queue => {
                let before = self.queues.get(&number);
                let Some(of) = config.parent.or(before.map(|queue| queue.pipe)) else {
                    return Err(Problem::new(format!("queue {number} is at no scheduler"))
                        .help(format!("as in: queue {number} config sched 1")));
                };
                let Some(pipe) = self.pipes.get(&of) else {
                    return Err(Problem::new(format!(
                        "queue {number} is at scheduler {of}, which does not exist"
                    ))
                    .help(format!("first: pipe {of} config …")));
                };
                let mut queue = PipeQueue::of(of);
                if let Some(before) = before {
                    (queue.weight, queue.priority, queue.longest) =
                        (before.weight, before.priority, before.longest);
                }
                for (key, value) in keys {
                    queue.set(key, &Node::typed(&value, 0), around)?;
                }
                let queue = queue.tidied(pipe);
                self.queues.insert(number, queue);
                self.refused_queue(of).map_or(Ok(()), |(_, problem)| Err(problem))
            }
            Object::Pipe | Object::Scheduler => {
                let has_queues = self.queues_of(number).next().is_some();
                let before = self.pipes.get(&number);
                let mut pipe = match (config.object, before) {
                    (Object::Scheduler, Some(before)) => before.clone(),
                    (_, Some(before)) => {
                        let mut pipe = Pipe { sharing: before.sharing, most: before.most, ..Pipe::default() };
                        pipe.direction.scheduler.clone_from(&before.direction.scheduler);
                        pipe.idle = before.idle;
                        // A mask of a pipe whose link is shared by queues is that of the scheduler.
                        pipe.mask = before.mask.filter(|_| has_queues);
                        pipe
                    }
                    (_, None) => Pipe::default(),
                };
                let was_there = before.is_some();
                let keeps = |key: &str| match key {
                    "queue" => was_there && config.object == Object::Scheduler,
                    "scheduler" => was_there && config.scheduler.is_none(),
                    _ => false,
                };
                for (key, value) in keys.into_iter().filter(|(key, _)| !keeps(key)) {
                    pipe.set(key, &Node::typed(&value, 0), around)?;
                }
                if let Some((_, problem)) = pipe.conflict() {
                    return Err(problem);
                }
                for queue in self.queues.values_mut().filter(|queue| queue.pipe == number) {
                    *queue = queue.clone().tidied(&pipe);
                }
                self.pipes.insert(number, pipe);
                self.refused_queue(number).map_or(Ok(()), |(_, problem)| Err(problem))
            }
        }
    }

    /// A pipe goes with its queues, and so does a scheduler with its pipe.
    fn delete_objects(&mut self, object: Object, numbers: &RangeInclusive<u32>) -> Result<(), Problem> {
        let count = self.queues.len() + self.pipes.len();
        match object {
            Object::Queue => self.queues.retain(|number, _| !numbers.contains(number)),
            Object::Pipe | Object::Scheduler => {
                self.queues.retain(|_, queue| !numbers.contains(&queue.pipe));
                self.pipes.retain(|number, _| !numbers.contains(number));
            }
        }
        if self.queues.len() + self.pipes.len() < count {
            return Ok(());
        }
        let (word, first, last) = (object.word(), numbers.start(), numbers.end());
        Err(Problem::new(match first == last {
            true => format!("there is no {word} {first}"),
            false => format!("there is no {word} from {first} to {last}"),
        }))
    }
}

/// As the engine is asked for them.
fn these(rules: &Rules) -> Vec<Which> {
    if rules.numbers.is_empty() {
        return vec![Which { numbers: None, set: rules.set }];
    }
    rules.numbers.iter().map(|numbers| Which { numbers: Some(numbers.clone()), set: rules.set }).collect()
}

fn includes(which: &Which, rule: &Rule) -> bool {
    which.numbers.as_ref().is_none_or(|numbers| numbers.contains(&rule.number))
        && which.set.is_none_or(|set| set == rule.set)
}

fn prefix(network: &Network) -> Prefix {
    Prefix::new(network.address.to_be_bytes(), network.bits)
}
