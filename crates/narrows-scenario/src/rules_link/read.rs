//! Parses `[links.NAME]` with rules.

use std::net::IpAddr;
use std::ops::Range;

use narrows_core::rules::{
    Action, Addresses, Argument, NatConfig, Rule, RuleChange, RuleSet, RuleSetConfig, Test,
};
use narrows_core::{Seed, Time};

use super::pipe::Pipe;
use super::placed::placed;
use super::queue::{self, PipeQueue};
use super::{RulesLink, nat, tables};
use crate::direction;
use crate::files::Files;
use crate::host::Host;
use crate::ipfw::{self, Context};
use crate::keys;
use crate::node::{Key, Node, Table, suggest};
use crate::problem::{Found, Problem, one_of};
use crate::surroundings::Surroundings;

/// One problem for each key that a link with rules does not have. `with` is a key that only such a link
/// has.
pub(crate) fn unknown_keys(table: &Table, known: &[&str], with: &Key) -> Vec<Problem> {
    let unknown = table.iter().filter(|(key, _)| !known.contains(&key.name.as_str()));
    unknown
        .map(|(key, _)| {
            let name = key.name.as_str();
            let is_of_a_wire = direction::KEYS.contains(&name) || ["shared", "up", "down"].contains(&name);
            if !is_of_a_wire {
                return suggest(Problem::new(format!("unknown key {}", Found(name))), name, known)
                    .at(&key.span);
            }
            let problem = Problem::new(format!(
                "`{name}` with `{}`: a link with rules has no wire of its own",
                with.name
            ))
            .at(&key.span)
            .also(&with.span, "here");
            match name {
                "shared" => {
                    problem.help("a pipe is one medium for everything the rules send there, both ways")
                }
                "up" | "down" => {
                    problem.help("rules tell the directions apart: `out` is up, and `in` is down")
                }
                _ => {
                    problem.help(format!("write it into a pipe, as in [links.NAME.pipes.1] with {name} = …"))
                }
            }
        })
        .collect()
}

/// Parser state.
struct Reader<'a> {
    link: RulesLink,
    around: Surroundings<'a>,
    /// The place of each rule, in the order of the rules.
    places: Vec<Range<usize>>,
    problems: Vec<Problem>,
}

/// Parses a link with rules. `hosts` are all hosts.
pub(crate) fn read(
    table: &Table,
    key: &Key,
    hosts: &[Host],
    files: &Files,
) -> Result<RulesLink, Vec<Problem>> {
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    let mut reader = Reader {
        link: RulesLink::default(),
        around: Surroundings { hosts: &names, shared: true, stations: &[], files, at: Time::ZERO },
        places: Vec::new(),
        problems: Vec::new(),
    };
    let around = reader.around;
    reader.problems.extend(keys::read_all(&mut reader.link, table, &key.span, around));
    reader.tables(table);
    reader.nats(table);
    reader.pipes(table);
    reader.queues(table);
    reader.rules(table, key, hosts);
    if reader.problems.is_empty() {
        let pipes: Vec<u32> = reader.link.pipes.keys().copied().collect();
        pipes.into_iter().for_each(|pipe| reader.link.settle_places(pipe));
        Ok(reader.link)
    } else {
        Err(reader.problems)
    }
}

impl Reader<'_> {
    fn keep<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    fn keep_all(&mut self, problems: Vec<Problem>, path: &[&str]) {
        let inside = |problem: Problem| path.iter().rev().fold(problem, |problem, key| problem.inside(key));
        self.problems.extend(problems.into_iter().map(inside));
    }

    fn tables(&mut self, table: &Table) {
        let inner =
            table.optional("tables", |node| node.table("a table of tables: 1 = [\"10.0.0.0/8 5\"]").cloned());
        let inner = self.keep(inner).flatten().unwrap_or_default();
        for (key, node) in inner.iter() {
            match tables::read(key, node) {
                Ok(table) => drop(self.link.tables.insert(key.name.clone(), table)),
                Err(problems) => self.keep_all(problems, &["tables", &key.name]),
            }
        }
    }

    /// The entries of `pipes` or `queues`, by number.
    fn numbered<'a>(&mut self, table: &'a Table, section: &str) -> Vec<(u32, &'a Key, &'a Node)> {
        let one = section.trim_end_matches('s');
        let inner = table.optional(section, |node| {
            node.table("a table of tables")
                .map_err(|problem| problem.help(format!("write [links.NAME.{section}.1] for {one} 1")))
        });
        let Some(inner) = self.keep(inner).flatten() else { return Vec::new() };
        let mut all = Vec::new();
        for (key, node) in inner.iter() {
            match Pipe::number(&key.name) {
                Some(number) => all.push((number, key, node)),
                None => self.problems.push(
                    Problem::new(format!("{} is not the number of a {one}", Found(&key.name)))
                        .at(&key.span)
                        .inside(section)
                        .help(format!("a {one} has a number from 1 to 65534, without zeros in front")),
                ),
            }
        }
        all
    }

    fn nats(&mut self, table: &Table) {
        for (number, key, node) in self.numbered(table, "nats") {
            match nat::read(node, self.around) {
                Ok(nat) => drop(self.link.nats.insert(number, nat)),
                Err(problems) => {
                    self.link.nats.insert(number, NatConfig::default());
                    self.keep_all(problems, &["nats", &key.name]);
                }
            }
        }
    }

    fn pipes(&mut self, table: &Table) {
        for (number, key, node) in self.numbered(table, "pipes") {
            match Pipe::read(node, self.around) {
                Ok(pipe) => drop(self.link.pipes.insert(number, pipe)),
                Err(problems) => {
                    // A reference to this pipe is not an error of its own.
                    self.link.pipes.insert(number, Pipe::default());
                    self.keep_all(problems, &["pipes", &key.name]);
                }
            }
        }
    }

    fn queues(&mut self, table: &Table) {
        let all = self.numbered(table, "queues");
        let mut read = Vec::new();
        for &(number, key, node) in &all {
            let pipes = &self.link.pipes;
            let sharing = |pipe: u32| Some(pipes.get(&pipe)?.shares_by());
            match PipeQueue::read(node, self.around, sharing) {
                Ok(queue) => {
                    if !self.link.pipes.contains_key(&queue.pipe) {
                        let place = node
                            .table("")
                            .map_or(&node.span, |table| queue::place_of_pipe(table, &node.span));
                        let problem = Problem::new(format!("there is no pipe {}", queue.pipe)).at(place);
                        let problem = problem.help(match self.link.pipes.len() {
                            0 => format!("write it: [links.NAME.pipes.{}] with rate = …", queue.pipe),
                            _ => format!("pipes: {}", self.pipe_names()),
                        });
                        self.keep_all(vec![problem.inside("pipe")], &["queues", &key.name]);
                    }
                    read.push((number, key, node));
                    self.link.queues.insert(number, queue);
                }
                Err(problems) => {
                    self.keep_all(problems, &["queues", &key.name]);
                    self.link.queues.insert(number, PipeQueue::of(0));
                }
            }
        }
        if self.problems.is_empty() {
            for number in self.link.pipes.keys().copied().collect::<Vec<_>>() {
                let Some((queue, problem)) = self.link.refused_queue(number) else { continue };
                let place = read.iter().find(|(number, ..)| *number == queue).map(|(_, _, node)| &node.span);
                let problem = problem.at(place.unwrap_or(&(0..0)));
                self.keep_all(vec![problem], &["queues", &queue.to_string()]);
            }
        }
    }

    fn pipe_names(&self) -> String {
        let names: Vec<String> = self.link.pipes.keys().map(u32::to_string).collect();
        one_of(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn rules(&mut self, table: &Table, key: &Key, hosts: &[Host]) {
        const ALLOWED: &str = "a list of rules, such as [\"100 pipe 1 ip from any to any\"]";
        let Some(node) = table.get("rules") else {
            let missing = keys::named::<RulesLink>("rules").map(|row| row.missing().at(&key.span));
            self.problems.extend(missing);
            return;
        };
        let items = node.list(ALLOWED).map_err(|problem| problem.inside("rules"));
        let Some(items) = self.keep(items) else { return };
        let interface = self.link.interface.as_deref().unwrap_or(&key.name);
        let addresses = |host: &Host| {
            let given = host.addresses.iter().map(|given| given.address.ip);
            (host.name.clone(), given.collect::<Vec<IpAddr>>())
        };
        let known: Vec<(String, Vec<IpAddr>)> = hosts.iter().map(addresses).collect();
        let context = Context { interfaces: &[interface], hosts: &known, ..Context::default() };
        let mut read: Vec<(Rule, Range<usize>)> = Vec::new();
        let mut problems = Vec::new();
        for item in items {
            let rule = item.text(ALLOWED).and_then(|text| {
                ipfw::read_rule(text, &context).map_err(|problem| placed(problem, item, text))
            });
            match rule {
                Ok((mut rule, _)) => {
                    if rule.number == 0 {
                        let last = read.iter().map(|(rule, _)| rule.number).max().unwrap_or(0);
                        rule.number = next_number(last);
                    }
                    read.push((rule, item.span.clone()));
                }
                Err(problem) => problems.push(problem.inside("rules")),
            }
        }
        self.problems.extend(problems);
        read.sort_by_key(|(rule, _)| rule.number);
        (self.link.rules, self.places) = read.into_iter().unzip();
        let allows = self.keep(table.optional("allow-missing", Node::boolean));
        self.check_rules(allows.flatten() == Some(true));
    }

    /// Checks that rules lead to existing objects, unless missing ones are allowed.
    fn check_rules(&mut self, allows_missing: bool) {
        let mut problems = Vec::new();
        for (rule, place) in self.link.rules.iter().zip(&self.places).filter(|_| !allows_missing) {
            let problem = self.link.leads_nowhere(rule);
            problems.extend(problem.map(|problem| problem.at(place).inside("rules")));
        }
        if problems.is_empty() && self.problems.is_empty() {
            problems.extend(self.refused().map(|problem| problem.inside("rules")));
        }
        self.problems.extend(problems);
    }

    /// The problem with what the engine rejects.
    fn refused(&self) -> Option<Problem> {
        let config = RuleSetConfig { disabled_sets: self.link.disabled_sets, ..RuleSetConfig::default() };
        let wrong = |error| Problem::new(format!("{error}"));
        let mut set = match RuleSet::new(Seed(0), "", config) {
            Ok(set) => set,
            Err(error) => return Some(wrong(error)),
        };
        self.link.rules.iter().zip(&self.places).find_map(|(rule, place)| {
            let added = set.change(Time::ZERO, RuleChange::Add(rule.clone()));
            added.err().map(|error| wrong(error).at(place))
        })
    }
}

/// The number of a rule without one, after the rule `last`: ipfw's step is 100.
pub(super) fn next_number(last: u16) -> u16 {
    match last.checked_add(100) {
        Some(next) if next < u16::MAX => next,
        _ => last.max(1),
    }
}

impl RulesLink {
    /// A rule that uses `me`, the addresses of the host at the rules.
    pub(crate) fn says_me(&self) -> Option<&Rule> {
        self.rules.iter().find(|rule| says_me(rule))
    }

    /// A rule that sets a next hop.
    pub(crate) fn forwards(&self) -> Option<&Rule> {
        self.rules.iter().find(|rule| matches!(rule.action, Action::Forward(_)))
    }

    /// The problem with a rule that leads to a missing pipe or queue.
    pub(crate) fn leads_nowhere(&self, rule: &Rule) -> Option<Problem> {
        let (what, number, known): (_, _, Vec<String>) = match rule.action {
            Action::Pipe(Argument::Number(number)) if !self.pipes.contains_key(&number) => {
                ("pipe", number, self.pipes.keys().map(u32::to_string).collect())
            }
            Action::Queue(Argument::Number(number)) if !self.queues.contains_key(&number) => {
                ("queue", number, self.queues.keys().map(u32::to_string).collect())
            }
            Action::Nat(Argument::Number(number)) if !self.nats.contains_key(&number) => {
                ("nat", number, self.nats.keys().map(u32::to_string).collect())
            }
            _ => return None,
        };
        let problem =
            Problem::new(format!("rule {} leads to {what} {number}, which does not exist", rule.number));
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        Some(match &known[..] {
            [] => problem.help(format!("write it: [links.NAME.{what}s.{number}]")),
            _ => problem.help(format!("{what}s: {}", one_of(&known))),
        })
    }
}

/// Whether a rule uses `me`.
fn says_me(rule: &Rule) -> bool {
    let mut tests = rule.terms.iter().flat_map(|term| &term.0).map(|literal| &literal.test);
    tests.any(|test| matches!(test, Test::Source(Addresses::Me) | Test::Destination(Addresses::Me)))
}
