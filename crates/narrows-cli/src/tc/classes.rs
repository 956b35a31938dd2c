//! `class show`, in tc's own layout.

use std::fmt::{self, Write};

use narrows_live::control::{LinkInForce, ScenarioInForce};
use narrows_scenario::tc::ClassInForce;
use serde_json::Value;

/// A line for each class of a link, or of all of them; with the counters of a report, if there is one.
pub(super) fn show(in_force: &ScenarioInForce, only: Option<&LinkInForce>, report: Option<&Value>) -> String {
    let mut text = String::new();
    for link in in_force.links.iter().filter(|link| only.is_none_or(|only| only.link == link.link)) {
        for class in link.tree.iter().flat_map(|tree| &tree.classes) {
            line(&mut text, class).expect("writing to a string does not fail");
            if let Some(report) = report.filter(|_| class.outermost) {
                statistics(&mut text, report, &link.link, class).expect("writing to a string does not fail");
            }
        }
    }
    text
}

fn line(text: &mut String, class: &ClassInForce) -> fmt::Result {
    write!(text, "class {} {}", class.kind, class.handle)?;
    match &class.parent {
        Some(parent) => write!(text, " parent {parent}")?,
        None => text.push_str(" root"),
    }
    if let Some(leaf) = &class.leaf {
        write!(text, " leaf {leaf}")?;
    }
    if !class.options.is_empty() {
        write!(text, " {}", class.options)?;
    }
    text.push('\n');
    Ok(())
}

/// What the report says of a class that has packets.
pub(super) fn counted<'a>(report: &'a Value, link: &str, class: &ClassInForce) -> Option<&'a Value> {
    in_report(report, link, "classes", class)
}

/// What the first lane of a link says of a class in one of its lists.
fn in_report<'a>(report: &'a Value, link: &str, list: &str, class: &ClassInForce) -> Option<&'a Value> {
    let lanes = report["directions"].as_array()?.iter().filter(|lane| lane["link"] == link);
    lanes.filter_map(|lane| lane[list].as_array()).flatten().find(|one| one["name"] == class.name.as_str())
}

/// How often a class wanted to send and might not, or sent for its bound.
pub(super) fn over_limit(report: &Value, link: &str, class: &ClassInForce) -> u64 {
    let shaped = in_report(report, link, "shaped", class).map(|class| &class["over_limit"]);
    let delayed = || counted(report, link, class).map(|class| &class["delay"]["over_limit"]);
    shaped.or_else(delayed).and_then(Value::as_u64).unwrap_or(0)
}

/// The line that all classes have.
fn sent(text: &mut String, class: &Value, over_limit: u64) -> fmt::Result {
    writeln!(
        text,
        " Sent {} bytes {} pkts (dropped {}, overlimits {over_limit})",
        number(class, "sent_bytes"),
        number(class, "sent_packets"),
        number(class, "dropped_packets"),
    )
}

fn statistics(text: &mut String, report: &Value, link: &str, class: &ClassInForce) -> fmt::Result {
    let (counted, shaped) = (counted(report, link, class), in_report(report, link, "shaped", class));
    let delay = counted.map(|counted| &counted["delay"]).filter(|delay| delay.is_object());
    // Of a class with others below it, only the shaper knows what it sent.
    let Some(sender) = counted.or(shaped) else { return Ok(()) };
    sent(text, sender, over_limit(report, link, class))?;
    if class.name != class.handle {
        writeln!(text, " name: {}", class.name)?;
    }
    if let Some(delay) = delay {
        // As the reference implementation prints them: microseconds.
        writeln!(text, " hold time: {}", number(delay, "hold_ns") / 1000)?;
        writeln!(text, " average delay: {}", number(delay, "average_ns") / 1000)?;
    }
    let Some(shaped) = shaped else { return Ok(()) };
    let (lent, borrowed) = (number(shaped, "lent_packets"), number(shaped, "borrowed_packets"));
    let signed = |key: &str| shaped[key].as_i64().unwrap_or(0);
    let (tokens, ceil) = (signed("tokens_ns"), signed("ceil_tokens_ns"));
    match class.kind.as_str() {
        "cbq" => writeln!(
            text,
            " borrowed {borrowed} overactions {} avgidle {}",
            number(shaped, "over_limit"),
            tokens / 1000
        ),
        "htb" => {
            writeln!(text, " lended: {lent} borrowed: {borrowed} giants: 0")?;
            writeln!(text, " tokens: {tokens} ctokens: {ceil}")
        }
        _ => Ok(()),
    }
}

pub(super) fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}
