//! `sleep` in a script: what follows happens later, on the timeline of the scenario.

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::Duration;
use narrows_core::rules::{Action, Rule};

use super::Script;
use crate::ipfw::command::Command;
use crate::ipfw::config::{Config, Object};
use crate::keys::kind::text;
use crate::node::{Key, Node, Table, Value};
use crate::problem::Problem;

/// Changes at one time.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    at: Duration,
    /// New values of `NUMBER.KEY` or `queue-NUMBER.KEY`.
    set: Table,
}

/// What a script does after its first `sleep`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::ipfw) struct Later {
    /// How long it has slept so far.
    now: Duration,
    steps: Vec<Step>,
    /// Pipes, queues and schedulers after the last step.
    latest: Option<BTreeMap<(Object, u32), Config>>,
    /// Whether it has deleted all rules at the end.
    ended: bool,
}

impl Later {
    pub(super) fn has_begun(&self) -> bool {
        self.now > Duration::ZERO
    }
}

/// The values of keys that a later configuration does not set.
const USUAL: &[(&str, &str)] =
    &[("rate", "unlimited"), ("delay", "0s"), ("burst", "0B"), ("profile", "none"), ("loss", "0%")];

impl Script {
    pub(super) fn sleep(&mut self, time: Duration, remarks: &mut Vec<String>) {
        let is_new = self.rules.is_empty() && self.objects.is_empty() && self.tables.is_empty();
        if is_new {
            remarks.push("nothing is configured yet, so it has no effect".into());
        } else {
            self.later.now += time;
        }
    }

    /// Executes a command that takes effect after the start.
    pub(super) fn later(&mut self, command: &Command, remarks: &mut Vec<String>) -> Result<(), Problem> {
        let config = match command {
            Command::Sleep(time) => {
                self.sleep(*time, remarks);
                return Ok(());
            }
            Command::Nothing => return Ok(()),
            Command::Flush(None) => return self.end(remarks),
            Command::Delete(rules) if self.rules.iter().all(|rule| rules.include(rule)) => {
                return self.end(remarks);
            }
            Command::DeleteObjects(..) | Command::FlushObjects if self.later.ended => return Ok(()),
            _ if self.later.ended => {
                return Err(Problem::new("a command after `sleep` and the end of all rules"));
            }
            Command::Configure(config) if self.has(config.object, config.number) => config,
            _ => {
                return Err(Problem::new(
                    "after `sleep`, a script can only reconfigure pipes and queues that exist",
                )
                .help("apply other commands to a run: narrows ipfw COMMAND"));
            }
        };
        if config.split().1.is_some() || config.object == Object::Scheduler {
            return Err(Problem::new("after `sleep`, a script cannot change a scheduler")
                .help("apply the command to a run: narrows ipfw COMMAND"));
        }
        // The objects of the start stay as they are.
        let start = std::mem::take(&mut self.objects);
        self.objects = self.later.latest.take().unwrap_or_else(|| start.clone());
        let before = self.object_keys(config.object, config.number);
        let mut config = config.clone();
        self.configure(&mut config, remarks);
        let after = self.object_keys(config.object, config.number);
        self.later.latest = Some(std::mem::replace(&mut self.objects, start));
        let name = match config.object {
            Object::Queue => format!("queue-{}", config.number),
            _ => config.number.to_string(),
        };
        let mut set = Table::default();
        for (key, value) in &after {
            let is_new = before.iter().all(|(known, then)| (known, then) != (key, value));
            match *key {
                _ if !is_new => {}
                "mask" | "pipe" => return Err(fixed(key)),
                _ => set.put(&format!("{name}.{key}"), value.clone()),
            }
        }
        for (key, _) in &before {
            if after.iter().any(|(known, _)| known == key) {
                continue;
            }
            let usual = USUAL.iter().find(|(known, _)| known == key).ok_or_else(|| fixed(key))?;
            set.put(&format!("{name}.{key}"), text(usual.1));
        }
        remarks.push(format!("{} after the start", self.later.now));
        self.add_step(set);
        Ok(())
    }

    /// All rules are deleted: from now on, packets cross the pipes as if there were none.
    fn end(&mut self, remarks: &mut Vec<String>) -> Result<(), Problem> {
        let passes = |rule: &Rule| {
            !matches!(rule.action, Action::Deny | Action::Reject(_) | Action::SetDscp(_))
                && rule.set != 31
                && rule.keep.is_none()
        };
        if let Some(rule) = self.rules.iter().find(|rule| !passes(rule)) {
            return Err(Problem::new(format!("after `sleep`, a script cannot delete rule {}", rule.number))
                .help("only rules that send packets to pipes, or let them pass, can end; use narrows ipfw COMMAND"));
        }
        let links = self.objects.keys().filter(|(object, _)| *object != Object::Queue);
        let numbers: BTreeSet<u32> = links.map(|(_, number)| *number).collect();
        let usual = |number: u32| {
            USUAL.iter().map(move |(key, usual)| {
                let name = format!("{number}.{key}");
                (Key { name, span: 0..0 }, Node::new(text(*usual)))
            })
        };
        let set = numbers.into_iter().flat_map(usual).collect();
        self.later.ended = true;
        remarks.push(format!("{} after the start, packets pass as if there were no pipes", self.later.now));
        self.add_step(set);
        Ok(())
    }

    fn add_step(&mut self, set: Table) {
        match self.later.steps.last_mut().filter(|last| last.at == self.later.now) {
            Some(last) => set.iter().for_each(|(key, node)| last.set.set(&key.name, node.clone())),
            None => self.later.steps.push(Step { at: self.later.now, set }),
        }
    }

    fn has(&self, object: Object, number: u32) -> bool {
        self.objects.contains_key(&(object, number))
    }

    /// The steps as a scenario's timeline, for a link with this name.
    pub(in crate::ipfw) fn timeline(&self, link: &str) -> String {
        let steps = self.later.steps.iter().filter(|step| !step.set.is_empty());
        let entry = |step: &Step| {
            let mut set = Table::default();
            step.set
                .iter()
                .for_each(|(key, node)| set.put(&format!("{link}.{}", key.name), node.value.clone()));
            let set = Node::new(Value::Table(set)).toml();
            format!("\n[[timeline]]\nat = \"{}\"\nset = {set}\n", step.at)
        };
        steps.map(entry).collect()
    }
}

fn fixed(key: &str) -> Problem {
    Problem::new(format!("after `sleep`, a script cannot change the {key}"))
        .help("apply the command to a run: narrows ipfw COMMAND")
}
