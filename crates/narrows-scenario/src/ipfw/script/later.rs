//! `sleep` in a script: what follows happens later, on the timeline of the scenario.

use narrows_core::Duration;

use super::Script;
use crate::ipfw::command::Command;
use crate::ipfw::config::Object;
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;

/// Changes at one time.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::ipfw) struct Step {
    at: Duration,
    /// New values of `NUMBER.KEY` or `queue-NUMBER.KEY`.
    set: Table,
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
            self.now = self.now + time;
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
        self.objects = self.latest.take().unwrap_or_else(|| start.clone());
        let before = self.object_keys(config.object, config.number);
        let mut config = config.clone();
        self.configure(&mut config, remarks);
        let after = self.object_keys(config.object, config.number);
        self.latest = Some(std::mem::replace(&mut self.objects, start));
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
        remarks.push(format!("{} after the start", self.now));
        match self.steps.last_mut().filter(|last| last.at == self.now) {
            Some(last) => last.set.extend(set),
            None => self.steps.push(Step { at: self.now, set }),
        }
        Ok(())
    }

    fn has(&self, object: Object, number: u32) -> bool {
        self.objects.contains_key(&(object, number))
    }

    /// The steps as a scenario's timeline, for a link with this name.
    pub(in crate::ipfw) fn timeline(&self, link: &str) -> String {
        let steps = self.steps.iter().filter(|step| !step.set.is_empty());
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
