//! `qdisc show`, in tc's own layout.

use std::fmt::Write;

use narrows_live::control::{FIRST_HANDLE, LinkInForce, ScenarioInForce};
use narrows_scenario::tc::InForce;
use serde_json::Value;

/// A line for each link, or for one; with the counters of a report, if there is one. What stands behind `#` is no part of
/// tc's layout.
pub(super) fn show(
    in_force: &ScenarioInForce,
    only: Option<&LinkInForce>,
    device: Option<&str>,
    report: Option<&Value>,
) -> String {
    let mut text = String::new();
    for (number, link) in (0..).zip(&in_force.links) {
        if only.is_some_and(|only| only.link != link.link) {
            continue;
        }
        if let Some(tree) = &link.tree {
            disciplines(&mut text, link, tree, device.is_none(), report)
                .expect("writing to a string does not fail");
            continue;
        }
        line(&mut text, number, link, device.is_none()).expect("writing to a string does not fail");
        if let Some(report) = report {
            statistics(&mut text, &link.link, report).expect("writing to a string does not fail");
        }
    }
    text
}

fn line(text: &mut String, number: u32, link: &LinkInForce, named: bool) -> std::fmt::Result {
    let device = if named { format!(" dev {}", link.link) } else { String::new() };
    let handle = u32::from(FIRST_HANDLE) + number;
    match link.netem.as_deref() {
        None => write!(text, "qdisc noqueue 0:{device} root refcnt 2")?,
        Some(options) => {
            let (kind, options) = match options.strip_prefix("root delay ") {
                Some(options) => ("delay", options),
                None => ("netem", options),
            };
            write!(text, "qdisc {kind} {handle:x}:{device} root refcnt 2 {options}")?;
        }
    }
    if link.exact {
        text.push_str("  # exact-netem: the single queue");
    }
    if !link.unsaid.is_empty() {
        write!(text, "  # besides, not in NetEm's words: {}", link.unsaid.join(", "))?;
    }
    text.push('\n');
    Ok(())
}

/// A line for each discipline of a tree; with a report the counters, and of hybrid proportional delay the code points.
fn disciplines(
    text: &mut String,
    link: &LinkInForce,
    tree: &InForce,
    named: bool,
    report: Option<&Value>,
) -> std::fmt::Result {
    let device = if named { format!(" dev {}", link.link) } else { String::new() };
    for (number, qdisc) in tree.qdiscs.iter().enumerate() {
        let place = match &qdisc.parent {
            None => "root refcnt 2".to_owned(),
            Some(parent) => format!("parent {parent}"),
        };
        write!(text, "qdisc {} {}{device} {place}", qdisc.kind, qdisc.handle)?;
        if !qdisc.options.is_empty() {
            write!(text, " {}", qdisc.options)?;
        }
        if number == 0 && !tree.unsaid.is_empty() {
            write!(text, "  # besides, not shown in tc's words: {}", tree.unsaid.join(", "))?;
        }
        text.push('\n');
        let Some(report) = report else { continue };
        match &qdisc.parent {
            None => statistics(text, &link.link, report)?,
            Some(parent) => {
                let class = tree.classes.iter().find(|class| class.outermost && class.handle == *parent);
                if let Some(class) =
                    class.and_then(|class| super::classes::counted(report, &link.link, class))
                {
                    super::classes::sent(text, class, 0)?;
                }
            }
        }
        for (row, points) in qdisc.points.chunks(16).enumerate() {
            write!(text, " dscp {:>2}-{:>2}:", row * 16, row * 16 + points.len() - 1)?;
            for class in points {
                match class {
                    Some(class) => write!(text, " {class:>2}")?,
                    None => text.push_str("  -"),
                }
            }
            text.push('\n');
        }
    }
    Ok(())
}

fn statistics(text: &mut String, link: &str, report: &Value) -> std::fmt::Result {
    let all = report["directions"].as_array().map_or(&[][..], Vec::as_slice);
    let lanes: Vec<&Value> = all.iter().filter(|lane| lane["link"] == link).collect();
    let sum = |of: &dyn Fn(&Value) -> u64| lanes.iter().map(|lane| of(lane)).sum::<u64>();
    let number = |key: &'static str| sum(&|lane| lane[key].as_u64().unwrap_or(0));
    let delivered = |key: &str| sum(&|lane| lane["delivered"][key].as_u64().unwrap_or(0));
    let lost = sum(&|lane| {
        let drops = lane["drops"].as_array().map_or(&[][..], Vec::as_slice);
        let losses =
            drops.iter().filter(|drop| drop["reason"].as_str().is_some_and(|reason| reason.contains("loss")));
        losses.map(|drop| drop["packets"].as_u64().unwrap_or(0)).sum()
    });
    writeln!(
        text,
        " Sent {} bytes {} pkt (dropped {}, overlimits 0 requeues 0)",
        delivered("bytes"),
        delivered("packets"),
        number("dropped_packets"),
    )?;
    let reordered = number("reordered_packets");
    writeln!(
        text,
        " delayed {} dropped {lost} corrupted {} duplicated {} reordered {reordered} ecn_marked {} allocation_errors 0",
        delivered("packets").saturating_sub(reordered),
        number("corrupted_packets"),
        number("duplicated_packets"),
        number("marked_packets"),
    )
}
