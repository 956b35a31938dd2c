//! The keys of a link with rules.

use serde_json::json;

use narrows_core::rules::NatConfig;

use super::{Pipe, PipeQueue, RulesLink, tables};
use crate::ipfw;
use crate::keys::compound::Group;
use crate::keys::kind::{Boolean, ByHand, Described, Given, Kind, Tables, text};
use crate::keys::{self, Keyed, Row, row};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;

const RULES: Described = Described {
    words: || "list of rules".into(),
    schema: |_| json!({ "type": "array", "items": { "type": "string" } }),
};
const PIPES: Tables = Tables { words: "tables `[links.NAME.pipes.NUMBER]`, 1 to 65534", of: Pipe::schema };
const QUEUES: Tables =
    Tables { words: "tables `[links.NAME.queues.NUMBER]`, 1 to 65534", of: |all| QUEUE.schema(all) };
const NATS: Tables =
    Tables { words: "tables `[links.NAME.nats.NUMBER]`, 1 to 65534", of: |all| NAT.schema(all) };
const NAT: Group<NatConfig> = Group::new(
    "Nat",
    "A translator of addresses and ports, with a table of flows.",
    "a table of what the translator does: { keep-ports = true }",
);
const QUEUE: Group<PipeQueue> = Group::new(
    "PipeQueue",
    "A queue that shares the transmitter of a pipe with others, or with a mask one for each flow.",
    "a table of what the queue does: { pipe = 5, weight = 20 }",
);
const TABLES: Tables = Tables {
    words: "lists of texts by name",
    of: |_| json!({ "type": "array", "items": { "type": "string" } }),
};
const INTERFACE: ByHand<String> = ByHand {
    words: || "name".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| interface(node),
    write: |name| Some(text(name)),
};
const SETS: ByHand<u32> = ByHand {
    words: || "list of whole numbers, 0 to 30".into(),
    schema: |_| json!({ "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 30 } }),
    read: |node, _| disabled_sets(node),
    write: |sets| {
        let disabled = (0..32).filter(|set| sets >> set & 1 == 1);
        let disabled: Vec<Node> =
            disabled.map(|set: u32| Node::new(Value::Integer(set.to_string()))).collect();
        (!disabled.is_empty()).then_some(Value::Array(disabled))
    },
};

/// A table keyed by names or numbers.
fn by_name<K: ToString, V>(
    entries: impl IntoIterator<Item = (K, V)>,
    value: fn(V) -> Value,
) -> Option<Value> {
    let mut table = Table::default();
    entries.into_iter().for_each(|(name, entry)| table.put(&name.to_string(), value(entry)));
    (!table.is_empty()).then_some(Value::Table(table))
}

impl Keyed for RulesLink {
    const ROWS: &'static [Row<Self>] = &[
        Row::apart(
            "rules",
            &RULES,
            "Rules in ipfw syntax: `[NUMBER] [set SET] [prob P] ACTION [PROTOCOL from SOURCE to DESTINATION] [OPTIONS]`. They are evaluated by number; a rule without one gets the highest number so far plus 100. Packets that match no rule pass.",
            |link: &Self| {
                let rules = link.rules.iter().map(|rule| Node::new(text(ipfw::rule_text(rule))));
                Some(Value::Array(rules.collect()))
            },
        )
        .required_with("the others are reached by rules only"),
        Row::apart(
            "tables",
            &TABLES,
            "Lookup tables: `\"ADDRESS[/BITS] [VALUE]\"`, value 0 by default. The longest prefix matches. A number instead of an address is a port or code point; other keys are link addresses, and interfaces at the first or the second host, or neither: `em0@first`.",
            |link: &Self| by_name(&link.tables, tables::value),
        )
        .default("none"),
        Row::apart("nats", &NATS, "[Translators](#address-translation) of addresses that rules send packets to.", |link: &Self| {
            by_name(&link.nats, |nat| Value::Table(keys::written(nat)))
        })
        .default("none"),
        Row::apart("pipes", &PIPES, "[Links](#pipes) that rules send packets to.", |link: &Self| {
            by_name(&link.pipes, |pipe| Value::Table(pipe.table()))
        })
        .default("none"),
        Row::apart("queues", &QUEUES, "[Queues](#queues-in-front-of-a-pipe) that share a pipe.", |link: &Self| {
            by_name(&link.queues, |queue| Value::Table(keys::written(queue)))
        })
        .default("none"),
        row!("one-pass", one_pass, Boolean, "Whether a packet is accepted when it leaves a pipe or a translator. Otherwise it continues at the next rule."),
        Row::apart(
            "allow-missing",
            &Boolean,
            "Accept rules that lead to pipes, queues or translators that do not exist, and drop their packets until these do, as ipfw does. Otherwise such a rule is an error.",
            |link: &Self| {
                let leads_nowhere = link.rules.iter().any(|rule| link.leads_nowhere(rule).is_some());
                leads_nowhere.then_some(Value::Boolean(true))
            },
        )
        .default("`false`"),
        row!("interface", interface, Given(INTERFACE), "Name of the interface in the rules (`via`, `recv`, `xmit`).")
            .default("the name of the link"),
        row!("disabled-sets", disabled_sets, SETS, "Rule sets that are disabled.").default("none"),
    ];
}

fn interface(node: &Node) -> Result<String, Problem> {
    const ALLOWED: &str =
        "the name of an interface: 1 to 15 of the characters a–z, A–Z, 0–9, `-`, `_` and `.`";
    let name = node.text(ALLOWED)?;
    let is_one = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=15).contains(&name.len()) && name.chars().all(is_one) {
        Ok(name.into())
    } else {
        Err(node.expected(ALLOWED))
    }
}

fn disabled_sets(node: &Node) -> Result<u32, Problem> {
    const ALLOWED: &str = "a list of sets, such as [5, 6]";
    let Value::Array(items) = &node.value else { return Err(node.expected(ALLOWED)) };
    let set = |node: &Node| {
        node.integer("a set", 0..31).map_err(|problem| problem.help("set 31 is always enabled"))
    };
    items.iter().try_fold(0, |sets, item| Ok(sets | 1 << set(item)?))
}
