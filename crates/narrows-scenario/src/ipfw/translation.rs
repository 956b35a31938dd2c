//! Converts a script to a scenario.

use std::collections::BTreeSet;

use narrows_core::classify::FlowMask;
use narrows_core::queue::Bound;
use narrows_core::{Bytes, Rate};

use super::config::{AQMS, Config, Object, SCHEDULERS, SchedulerType, of_type, or_usual, threshold};
use super::flows::{self, TableKey};
use super::quantity::DEFAULT_BOUND;
use super::script::Script;
use super::{mask, text};
use crate::dialect::{is_zero, text_of};
use crate::keys::{self, kind};
use crate::node::{Key, Node, Table, Value, toml_string};

/// Keys of a pipe or queue of a scenario.
type Keys = Vec<(&'static str, Value)>;

impl Script {
    /// The equivalent scenario: a link with this name between these two hosts, whose packets pass the
    /// rules, `out` from the first host to the second and `in` the other way.
    ///
    /// What follows a `sleep` is its timeline.
    pub fn to_toml(&self, link: &str, between: [&str; 2]) -> String {
        self.start_toml(link, between) + &self.timeline(link)
    }

    /// Same, without the timeline.
    pub(crate) fn start_toml(&self, link: &str, between: [&str; 2]) -> String {
        let mut file = between.map(|host| format!("[hosts.{host}]\n\n")).concat();
        file += &format!("[links.{link}]\nbetween = [\"{}\", \"{}\"]\n", between[0], between[1]);
        if !self.one_pass {
            file += "one-pass = false\n";
        }
        if !self.missing_objects().is_empty() {
            file += "allow-missing = true\n";
        }
        if self.disabled_sets != 0 {
            let sets: Vec<String> =
                (0..32).filter(|set| self.disabled_sets >> set & 1 == 1).map(|set| set.to_string()).collect();
            file += &format!("disabled-sets = [{}]\n", sets.join(", "));
        }
        file += "rules = [\n";
        for rule in &self.rules {
            file += &format!("    {},\n", toml_string(&text::rule_text(rule)));
        }
        file += "]\n";
        if !self.tables.is_empty() {
            file += &format!("\n[links.{link}.tables]\n");
        }
        for (name, rows) in &self.tables {
            let kind = self.flow_tables.get(name).map(|fields| format!("\"{}\"", flows::kind_text(*fields)));
            let row = |(key, value): (&TableKey, &u32)| format!("\"{} {value}\"", key.in_scenario());
            let rows: Vec<String> = kind.into_iter().chain(rows.iter().map(row)).collect();
            // A name may contain a dot.
            let name = if name.contains('.') { toml_string(name) } else { name.clone() };
            file += &format!("{name} = [{}]\n", rows.join(", "));
        }
        for (number, config) in &self.nats {
            let keys = keys::written(config);
            let line = |(key, node): (&Key, &Node)| format!("{} = {}\n", key.name, node.toml());
            let lines: String = keys.iter().map(line).collect();
            file += &format!("\n[links.{link}.nats.{number}]\n{lines}");
        }
        let mut links: Vec<u32> = self
            .objects
            .keys()
            .filter(|(object, _)| *object != Object::Queue)
            .map(|(_, number)| *number)
            .collect();
        links.sort_unstable();
        links.dedup();
        let queues = self.objects.values().filter(|config| config.object == Object::Queue);
        let shared: BTreeSet<u32> = queues.filter_map(Config::parent).collect();
        for number in links {
            let (keys, is_left_out) = self.pipe_keys(number, shared.contains(&number));
            file += &section(&format!("links.{link}.pipes.{number}"), keys, is_left_out);
        }
        for config in self.objects.values().filter(|config| config.object == Object::Queue) {
            let keys = self.queue_keys(config);
            file += &section(&format!("links.{link}.queues.{}", config.number), keys, false);
        }
        file
    }

    /// The scheduler of a pipe.
    fn scheduler_of(&self, number: u32, has_queues: bool) -> Option<(&'static SchedulerType, Value)> {
        let said = self.objects.get(&(Object::Scheduler, number));
        let kind = said.and_then(Config::scheduler);
        has_queues.then(|| match kind {
            Some((kind, keys)) if kind.manages() => (kind, Value::Table(or_usual(keys, &[kind.own]))),
            Some((kind, _)) => (kind, kind::text(kind.name)),
            None => (&SCHEDULERS[1], kind::text(SCHEDULERS[1].name)),
        })
    }

    /// The keys of a pipe or queue from one configuration alone.
    pub(crate) fn keys_of(config: &Config) -> Keys {
        if config.object == Object::Queue {
            return queue_keys(config);
        }
        let objects = [((config.object, config.number), config.clone())].into();
        let is_scheduler = config.object == Object::Scheduler;
        Self { objects, ..Self::default() }.pipe_keys(config.number, is_scheduler).0
    }

    /// The keys of a queue that its scheduler uses.
    fn queue_keys(&self, config: &Config) -> Keys {
        let kind = config.parent().and_then(|parent| self.objects.get(&(Object::Scheduler, parent)));
        let kind = kind.and_then(Config::scheduler).map_or(&SCHEDULERS[1], |(kind, _)| kind);
        let mut keys = queue_keys(config);
        keys.retain(|(key, _)| is_used(key, kind));
        keys
    }

    /// The keys of a pipe, including the scheduler with its number, and whether its AQM is left out.
    fn pipe_keys(&self, number: u32, has_queues: bool) -> (Keys, bool) {
        let nothing = Config::new(Object::Pipe, number);
        let config = self.objects.get(&(Object::Pipe, number)).unwrap_or(&nothing);
        let scheduler = self.objects.get(&(Object::Scheduler, number));
        let kind = self.scheduler_of(number, has_queues);
        // The scheduler includes its own AQM.
        let is_left_out = kind.as_ref().is_some_and(|(kind, _)| kind.manages()) && config.managed().is_some();
        let mut keys = said(config, &["rate", "delay", "burst", "profile"]);
        keys.retain(|(key, value)| match *key {
            "rate" => config.rate() != Rate::UNLIMITED,
            "profile" => true,
            _ => !is_zero(value),
        });
        keys.push(("queue", queue(config, config.managed().filter(|_| !is_left_out))));
        keys.extend(said(config, &["loss"]));
        keys.extend(kind.map(|(_, value)| ("scheduler", value)));
        // As in ipfw, the mask of a pipe is for packets that rules send to it, that of its scheduler for packets of queues.
        let mask = match has_queues {
            true => scheduler.and_then(|scheduler| scheduler.mask),
            false => config.mask,
        };
        keys.extend(mask.map(|mask| ("mask", mask_value(&mask))));
        (keys, is_left_out)
    }
}

/// A table of the file. A comment notes an AQM that is left out.
fn section(title: &str, keys: Keys, is_left_out: bool) -> String {
    let line = |(key, value): (&str, Value)| {
        let note = match key {
            "queue" if is_left_out => {
                " # its queue management is dropped: the scheduler manages its own queues"
            }
            _ => "",
        };
        format!("{key} = {}{note}\n", Node::new(value).toml())
    };
    format!("\n[{title}]\n{}", keys.into_iter().map(line).collect::<String>())
}

/// Those of these keys that a configuration sets.
fn said(config: &Config, keys: &[&'static str]) -> Keys {
    keys.iter().filter_map(|key| Some((*key, config.keys.get(key)?.value.clone()))).collect()
}

fn queue_keys(config: &Config) -> Keys {
    let mut keys = said(config, &["pipe", "weight", "priority", "longest"]);
    keys.push(("queue", queue(config, config.managed())));
    keys.extend(said(config, &["loss"]));
    keys.extend(config.mask.map(|mask| ("mask", mask_value(&mask))));
    keys
}

/// Whether a scheduler uses this key of its queues. ipfw accepts all of them.
fn is_used(key: &str, kind: &SchedulerType) -> bool {
    match (key, kind.name) {
        ("pipe", _) => true,
        // These schedulers classify flows themselves.
        _ if kind.manages() => false,
        ("weight", name) => !matches!(name, "fifo" | "prio"),
        ("priority", name) => name == "prio",
        ("longest", name) => matches!(name, "qfq" | "kps"),
        _ => true,
    }
}

/// The queue of a pipe or of a flow set.
fn queue(config: &Config, managed: Option<&Table>) -> Value {
    let bound = config.bound().unwrap_or(DEFAULT_BOUND);
    let Some(managed) = managed else { return kind::text(bound) };
    let name = text_of(managed, "type");
    let mut table = of_type(&name);
    table.put("bound", kind::text(bound));
    for (key, node) in managed.iter().skip(1) {
        let value = match (key.name.as_str(), bound) {
            ("min" | "max", Bound::Packets(_)) => kind::text(Bound::Packets(threshold(managed, &key.name))),
            ("min" | "max", Bound::Bytes(_)) => kind::text(Bytes::new(threshold(managed, &key.name))),
            _ => node.value.clone(),
        };
        table.put(&key.name, value);
    }
    let own = AQMS.iter().find(|aqm| aqm.name == name).map_or(&[][..], |aqm| aqm.own);
    Value::Table(or_usual(&table, &[own]))
}

/// A mask as a value of a scenario.
fn mask_value(mask: &FlowMask) -> Value {
    let mut table = Table::default();
    for (name, bits) in mask::written(mask) {
        table.put(name, kind::text(bits));
    }
    if mask.queue {
        table.put("queue", Value::Boolean(true));
    }
    Value::Table(table)
}
