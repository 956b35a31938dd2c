//! `qdisc show`, in tc's own layout.

use std::fmt::Write;

use narrows_live::control::{LinkInForce, ScenarioInForce};
use serde_json::Value;

/// The first handle that tc gives by itself.
const FIRST_HANDLE: u32 = 0x8001;

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
        line(&mut text, number, link, device.is_none()).expect("writing to a string does not fail");
        if let Some(report) = report {
            statistics(&mut text, &link.link, report).expect("writing to a string does not fail");
        }
    }
    text
}

fn line(text: &mut String, number: u32, link: &LinkInForce, named: bool) -> std::fmt::Result {
    let device = if named { format!(" dev {}", link.link) } else { String::new() };
    let handle = FIRST_HANDLE + number;
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
