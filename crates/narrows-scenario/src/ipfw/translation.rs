//! What a script comes to as a scenario.

use std::collections::BTreeSet;

use narrows_core::classify::FlowMask;
use narrows_core::queue::Bound;
use narrows_core::{Bytes, Rate};

use super::config::{Codel, Config, Hashed, Loss, Management, Object, Pie, SchedulerType};
use super::script::Script;
use super::{mask, text};
use crate::node::toml_string;
use crate::value::inline::Inline;

/// The slots of a queue of which the script says no length.
const DEFAULT_SLOTS: u64 = 50;
/// The packets that wait at a scheduler of hashed flows of which the script says no limit.
const DEFAULT_LIMIT: u32 = 10_240;

impl Script {
    /// The scenario that the script equals: a link of this name between these two hosts, on which packets meet the rules,
    /// `out` from the first to the second and `in` back.
    pub fn to_toml(&self, link: &str, between: [&str; 2]) -> String {
        let mut file = between.map(|host| format!("[hosts.{host}]\n\n")).concat();
        file += &format!("[links.{link}]\nbetween = [\"{}\", \"{}\"]\n", between[0], between[1]);
        if !self.one_pass {
            file += "one-pass = false\n";
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
            let rows: Vec<String> =
                rows.iter().map(|(network, value)| format!("\"{network} {value}\"")).collect();
            // A name may have a point in it.
            let name = if name.contains('.') { toml_string(name) } else { name.clone() };
            file += &format!("{name} = [{}]\n", rows.join(", "));
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
        let shared: BTreeSet<u32> = queues.filter_map(|config| config.parent).collect();
        for number in links {
            let keys = self.pipe_keys(number, shared.contains(&number));
            file += &section(&format!("links.{link}.pipes.{number}"), keys);
        }
        for config in self.objects.values().filter(|config| config.object == Object::Queue) {
            let kind = config.parent.and_then(|parent| self.objects.get(&(Object::Scheduler, parent)));
            let kind = kind.and_then(|scheduler| scheduler.scheduler).unwrap_or(SchedulerType::Wf2q);
            let mut keys = queue_keys(config);
            keys.retain(|(key, _)| is_used(key, kind));
            file += &section(&format!("links.{link}.queues.{}", config.number), keys);
        }
        file
    }

    /// What shares a pipe among its queues, if it has any or a line says it.
    fn scheduler_of(&self, number: u32, has_queues: bool) -> Option<SchedulerType> {
        let said = self.objects.get(&(Object::Scheduler, number));
        let needed = said.is_some() || has_queues;
        needed.then(|| said.and_then(|said| said.scheduler).unwrap_or(SchedulerType::Wf2q))
    }

    /// What one configuration says by itself, as keys of a pipe or queue of a scenario.
    pub(crate) fn keys_of(config: &Config) -> Vec<(&'static str, String)> {
        if config.object == Object::Queue {
            return queue_keys(config);
        }
        let objects = [((config.object, config.number), config.clone())].into();
        Self { objects, ..Self::default() }.pipe_keys(config.number, false)
    }

    /// The keys of a pipe, with those of the scheduler of its number.
    fn pipe_keys(&self, number: u32, has_queues: bool) -> Vec<(&'static str, String)> {
        let nothing = Config::new(Object::Pipe, number);
        let pipe = self.objects.get(&(Object::Pipe, number));
        let scheduler = self.objects.get(&(Object::Scheduler, number));
        let mut keys = Vec::new();
        let config = pipe.unwrap_or(&nothing);
        if let Some(rate) = config.rate.filter(|rate| *rate != Rate::UNLIMITED) {
            keys.push(("rate", format!("\"{rate}\"")));
        }
        if let Some(delay) = config.delay.filter(|delay| delay.nanos() > 0) {
            keys.push(("delay", format!("\"{delay}\"")));
        }
        if let Some(burst) = config.burst.filter(|burst| burst.get() > 0) {
            keys.push(("burst", format!("\"{burst}\"")));
        }
        if let Some(profile) = &config.profile {
            keys.push(("profile", toml_string(&profile.display().to_string())));
        }
        let kind = self.scheduler_of(number, has_queues);
        let manages = matches!(kind, Some(SchedulerType::FqCodel(..) | SchedulerType::FqPie(..)));
        let left_out = manages && !matches!(config.management, None | Some(Management::DropTail));
        let bare = Config { management: None, ..config.clone() };
        // What is behind the value is a comment.
        let note = if left_out {
            " # its management is left out: the scheduler manages its queues itself"
        } else {
            ""
        };
        keys.push(("queue", queue(if left_out { &bare } else { config }) + note));
        keys.extend(config.loss.map(|loss| ("loss", self::loss(loss))));
        keys.extend(kind.map(|kind| ("scheduler", self::scheduler(kind))));
        // One mask stands for both, as in ipfw: the scheduler's, where it says one.
        let mask = scheduler.and_then(|scheduler| scheduler.mask).or(config.mask);
        keys.extend(mask.map(|mask| ("mask", self::mask_text(&mask))));
        keys
    }
}

fn section(title: &str, keys: Vec<(&str, String)>) -> String {
    let lines: Vec<String> = keys.into_iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    format!("\n[{title}]\n{}", lines.concat())
}

fn queue_keys(config: &Config) -> Vec<(&'static str, String)> {
    let mut keys = Vec::new();
    keys.extend(config.parent.map(|parent| ("pipe", parent.to_string())));
    keys.extend(config.weight.map(|weight| ("weight", weight.to_string())));
    keys.extend(config.priority.map(|priority| ("priority", priority.to_string())));
    keys.extend(config.longest.map(|longest| ("longest", format!("\"{longest} bytes\""))));
    keys.push(("queue", queue(config)));
    keys.extend(config.loss.map(|loss| ("loss", self::loss(loss))));
    keys.extend(config.mask.map(|mask| ("mask", mask_text(&mask))));
    keys
}

/// Whether a scheduler makes use of a key of its queues. ipfw takes all of them.
fn is_used(key: &str, kind: SchedulerType) -> bool {
    match (key, kind) {
        ("pipe", _) => true,
        // They tell flows apart by themselves.
        (_, SchedulerType::FqCodel(..) | SchedulerType::FqPie(..)) => false,
        ("weight", kind) => !matches!(kind, SchedulerType::Fifo | SchedulerType::Priority),
        ("priority", kind) => kind == SchedulerType::Priority,
        ("longest", kind) => kind == SchedulerType::Qfq,
        _ => true,
    }
}

fn bound_text(bound: Bound) -> String {
    match bound {
        Bound::Packets(packets) => format!("{packets} packets"),
        Bound::Bytes(bytes) => bytes.to_string(),
    }
}

/// The queue of a pipe or of a set of flows.
fn queue(config: &Config) -> String {
    let bound = config.bound.unwrap_or(Bound::Packets(DEFAULT_SLOTS));
    let mut table = Inline::default();
    match config.management {
        None | Some(Management::DropTail) => return format!("\"{}\"", bound_text(bound)),
        Some(Management::Red { gentle, weight, min, max, probability, ecn }) => {
            let threshold = |value| match bound {
                Bound::Packets(_) => bound_text(Bound::Packets(value)),
                Bound::Bytes(_) => bound_text(Bound::Bytes(Bytes::new(value))),
            };
            table.quoted("type", Some(if gentle { "gred" } else { "red" }));
            table.quoted("bound", Some(bound_text(bound)));
            table.quoted("min", Some(threshold(min)));
            table.quoted("max", Some(threshold(max)));
            table.quoted("probability", Some(probability));
            table.plain("weight", Some(weight));
            table.plain("ecn", Some(ecn));
        }
        Some(Management::Codel(codel)) => {
            table.quoted("type", Some("codel"));
            table.quoted("bound", Some(bound_text(bound)));
            codel_keys(&mut table, codel, false);
        }
        Some(Management::Pie(pie)) => {
            table.quoted("type", Some("pie"));
            table.quoted("bound", Some(bound_text(bound)));
            pie_keys(&mut table, pie, false);
        }
    }
    table.finish()
}

fn codel_keys(table: &mut Inline, codel: Codel, ecn: bool) {
    table.quoted("target", codel.target);
    table.quoted("interval", codel.interval);
    table.plain("ecn", Some(codel.ecn.unwrap_or(ecn)));
}

fn pie_keys(table: &mut Inline, pie: Pie, ecn: bool) {
    table.quoted("target", pie.target);
    table.quoted("update", pie.update);
    table.plain("alpha", pie.alpha);
    table.plain("beta", pie.beta);
    table.quoted("burst", pie.burst);
    table.quoted("mark-below", pie.mark_below);
    table.plain("ecn", Some(pie.ecn.unwrap_or(ecn)));
    table.plain("derandomize", Some(pie.derandomize.unwrap_or(true)));
    table.plain("cap-drop", Some(pie.cap_drop.unwrap_or(true)));
}

fn loss(loss: Loss) -> String {
    match loss {
        Loss::Independent(share) => format!("{{ ingress = \"{share}\" }}"),
        Loss::GilbertElliott { loss_good, p, loss_bad, r } => format!(
            "{{ ingress = {{ gilbert-elliott = {{ p = \"{p}\", r = \"{r}\", loss-bad = \"{loss_bad}\", loss-good = \"{loss_good}\" }} }} }}"
        ),
    }
}

fn scheduler(kind: SchedulerType) -> String {
    let hashed = |name: &str, hashed: Hashed| {
        let mut table = Inline::default();
        table.quoted("type", Some(name));
        table.quoted("bound", Some(format!("{} packets", hashed.limit.unwrap_or(DEFAULT_LIMIT))));
        table.plain("flows", hashed.flows);
        table.quoted("quantum", hashed.quantum.map(|quantum| format!("{quantum} bytes")));
        table
    };
    match kind {
        SchedulerType::Fifo => "\"fifo\"".into(),
        SchedulerType::Wf2q => "\"wf2q+\"".into(),
        SchedulerType::RoundRobin => "\"drr\"".into(),
        SchedulerType::Qfq => "\"qfq\"".into(),
        SchedulerType::Priority => "\"prio\"".into(),
        SchedulerType::FqCodel(flows, codel) => {
            let mut table = hashed("fq_codel", flows);
            codel_keys(&mut table, codel, true);
            table.finish()
        }
        SchedulerType::FqPie(flows, pie) => {
            let mut table = hashed("fq_pie", flows);
            pie_keys(&mut table, pie, true);
            table.finish()
        }
    }
}

/// A mask as a value of a scenario.
pub(crate) fn mask_text(mask: &FlowMask) -> String {
    let mut table = Inline::default();
    for (name, bits) in mask::written(mask) {
        table.quoted(name, Some(bits));
    }
    table.plain("queue", mask.queue.then_some(true));
    table.finish()
}
