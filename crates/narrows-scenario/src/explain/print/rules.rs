//! Prints rules and queues for people.

use std::fmt;

use crate::explain::about::about;
use crate::explain::{QueueExplanation, RulesExplanation, percent};

pub(super) fn print(rules: &RulesExplanation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let RulesExplanation { name, from, to, interface, one_pass, rules, nats, tables } = rules;
    writeln!(f, "{name}: rules at {interface}; {from} → {to} is out, {to} → {from} is in")?;
    for one in rules {
        let disabled = if one.disabled { " (its set is disabled)" } else { "" };
        writeln!(f, "  {}{disabled}", one.rule)?;
        writeln!(f, "      {}", one.words)?;
    }
    writeln!(f, "  packets that no rule accepts or denies pass")?;
    let what = if nats.is_empty() { "a pipe" } else { "a pipe or a translator" };
    match one_pass {
        true => writeln!(f, "  a packet that leaves {what} is accepted")?,
        false => writeln!(f, "  a packet that leaves {what} continues at the next rule")?,
    }
    for nat in nats {
        writeln!(f, "  {nat}")?;
    }
    for (table, entries) in tables {
        let entries = if *entries == 1 { "1 entry".into() } else { format!("{entries} entries") };
        writeln!(f, "  table {table}: {entries}")?;
    }
    Ok(())
}

pub(super) fn print_queue(queue: &QueueExplanation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut parts = Vec::new();
    parts.extend(
        queue
            .mask
            .as_ref()
            .zip(queue.most)
            .map(|(mask, most)| format!("one for each {mask}, at most {most}")),
    );
    parts.extend(queue.weight.map(|weight| {
        let each = if queue.mask.is_some() { " each" } else { "" };
        let rate = queue.rate_bps.map_or(String::new(), |rate| {
            let flows = if queue.mask.is_some() { ", as one flow" } else { "" };
            format!(" ({} while all have packets{flows})", about(rate as f64))
        });
        format!("weight {weight}{each}{rate}")
    }));
    parts.extend(queue.priority.map(|priority| format!("priority {priority}")));
    parts.extend(queue.longest_bytes.map(|longest| format!("packets up to {longest} bytes")));
    parts.push(format!("queue {}, drops at the {}", queue.bound, queue.drop));
    parts.extend(queue.management.clone());
    parts.extend(
        queue.loss.filter(|loss| *loss > 0.0).map(|loss| format!("loses {} before it", percent(loss))),
    );
    writeln!(f, "    queue {}: {}", queue.number, parts.join("; "))
}
