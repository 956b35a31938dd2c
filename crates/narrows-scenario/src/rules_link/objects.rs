//! Pipes, queues and schedulers as ipfw objects, for `pipe show` and similar commands.

use std::collections::BTreeMap;

use narrows_core::classify::Prefix;
use narrows_core::queue::Bound;
use narrows_core::rules::{Field, FlowEntry, FlowFields, SpecialKey, Table as Rows, Test};

use super::{Pipe, PipeQueue, RulesLink};
use crate::dialect;
use crate::ipfw::{self, Config, Network, Object, TableKey};
use crate::keys;
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::value::{Division, GilbertElliott, LossModel, Losses, Policy, Queue};

impl RulesLink {
    /// The objects that ipfw would list: all pipes, and a scheduler for each pipe shared by queues.
    pub fn objects(&self) -> BTreeMap<(Object, u32), Config> {
        let mut objects = BTreeMap::new();
        for (&number, pipe) in &self.pipes {
            let config = link(number, pipe);
            if let Some(kind) = scheduler(pipe, self.queues_of(number).next().is_some()) {
                let mut shared = Config { mask: pipe.mask, ..Config::new(Object::Scheduler, number) };
                shared.keys.put("scheduler", Value::Table(kind));
                objects.insert((Object::Scheduler, number), shared);
            }
            objects.insert((Object::Pipe, number), config);
        }
        for (&number, queue) in &self.queues {
            let of = self.pipes.get(&queue.pipe).map(|pipe| pipe.direction.queue);
            objects.insert((Object::Queue, number), flow_set(number, queue, of.unwrap_or_default()));
        }
        objects
    }

    /// The tables, as `table list` prints them.
    pub fn networks(&self) -> BTreeMap<String, BTreeMap<TableKey, u32>> {
        let entries = |table: &Rows| {
            let entry = |(prefix, value): (Prefix, u32)| {
                let network = Network { address: u128::from_be_bytes(prefix.address()), bits: prefix.bits() };
                (TableKey::Network(network), value)
            };
            let fields = table.flow_fields().unwrap_or_default();
            let flow = |(flow, value): (FlowEntry, u32)| (TableKey::Flow(fields, flow), value);
            table.iter().map(entry).chain(table.flows().map(flow)).collect()
        };
        self.tables.iter().map(|(name, table)| (name.clone(), entries(table))).collect()
    }

    /// The tables that contain interfaces, or are looked up for one.
    pub(crate) fn interface_tables(&self) -> Vec<String> {
        let is_interface = |prefix| matches!(SpecialKey::of(prefix), Some(SpecialKey::Interface { .. }));
        let has_one = |rows: &Rows| rows.iter().any(|(prefix, _)| is_interface(prefix));
        let filled = self.tables.iter().filter(|(_, rows)| has_one(rows)).map(|(name, _)| name.clone());
        let literals = self.rules.iter().flat_map(|rule| &rule.terms).flat_map(|term| &term.0);
        let looked_up = literals.filter_map(|literal| match &literal.test {
            Test::Lookup { field: Field::Received | Field::Sent | Field::Via, table, .. } => {
                Some(table.table.clone())
            }
            _ => None,
        });
        filled.chain(looked_up).collect()
    }

    /// The tables of flows, with their fields.
    pub(crate) fn flow_tables(&self) -> Vec<(String, FlowFields)> {
        let all = self.tables.iter();
        all.filter_map(|(name, rows)| Some((name.clone(), rows.flow_fields()?))).collect()
    }

    /// The engine's link for a pipe of the rules `name`.
    pub fn link_of_pipe(&self, name: &str, number: u32) -> Option<String> {
        Some(self.pipes.get(&number)?.core_name(name, number))
    }
}

fn link(number: u32, pipe: &Pipe) -> Config {
    let direction = &pipe.direction;
    let mut config = Config { mask: pipe.mask, ..Config::new(Object::Pipe, number) };
    let mut put = |key, value: Option<Value>| value.into_iter().for_each(|value| config.keys.put(key, value));
    put("rate", Some(text(direction.rate)));
    put("delay", direction.mean_delay().map(text));
    put("burst", Some(text(direction.burst)));
    put("profile", direction.profile.as_ref().map(|profile| text(&profile.file.name)));
    put("bound", Some(text(direction.bound())));
    put("loss", direction.loss.ingress.as_ref().and_then(loss));
    put("queue", managed(direction.queue.policy).map(Value::Table));
    config
}

fn flow_set(number: u32, queue: &PipeQueue, of: Queue) -> Config {
    let waits = queue.queue.unwrap_or(of);
    let mut config = Config { mask: queue.mask, ..Config::new(Object::Queue, number) };
    let mut put = |key, value: Option<Value>| value.into_iter().for_each(|value| config.keys.put(key, value));
    put("pipe", Some(dialect::number(queue.pipe)));
    put("weight", queue.weight.map(|weight| dialect::number(weight.get())));
    put("priority", Some(dialect::number(queue.priority)));
    put("longest", queue.longest.map(text));
    put("bound", waits.bound.map(text));
    put("loss", queue.loss.as_ref().and_then(loss));
    put("queue", managed(waits.policy).map(Value::Table));
    config
}

fn scheduler(pipe: &Pipe, has_queues: bool) -> Option<Table> {
    let Some(own) = &pipe.direction.scheduler else {
        let shared = pipe.sharing.is_some() || has_queues;
        return shared.then(|| ipfw::of_type(pipe.sharing.unwrap_or_default().kind.name()));
    };
    let mut keys = managed(own.policy)?;
    keys.set("type", Node::new(text(own.kind.name())));
    if let Some(Bound::Packets(_)) = own.bound {
        keys.set("bound", Node::new(text(own.bound?)));
    }
    if let Division::Flows { count, .. } = own.serves {
        keys.put("flows", dialect::number(count));
    }
    own.quantum.into_iter().for_each(|quantum| keys.put("quantum", text(quantum)));
    Some(keys)
}

fn loss(model: &LossModel) -> Option<Value> {
    let model = match &model.losses {
        Losses::Chance(chance) => text(chance.rate),
        &Losses::GilbertElliott(GilbertElliott { p, r, loss_bad, loss_good }) => {
            ipfw::gilbert_elliott([p, r, loss_bad, loss_good])
        }
        _ => return None,
    };
    let mut table = Table::default();
    table.put("ingress", model);
    Some(Value::Table(table))
}

/// The AQM of a queue, with all its keys.
fn managed(policy: Policy) -> Option<Table> {
    let keys = match &policy {
        Policy::Codel(own) => keys::whole(own),
        Policy::Pie(own) => keys::whole(own),
        _ => return None,
    };
    let mut table = ipfw::of_type(policy.name());
    keys.iter().for_each(|(key, node)| table.set(&key.name, node.clone()));
    Some(table)
}
