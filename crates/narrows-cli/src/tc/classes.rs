//! `class show`, in tc's layout.

use std::fmt::{self, Write};

use narrows_live::control::{CurrentLink, CurrentScenario};
use narrows_report::{ClassReport, Direction, Report, ShapedClassReport};
use narrows_scenario::tc::CurrentClass;

/// One line for each class of a link, or of all links; with counters if there is a report.
pub(super) fn show(current: &CurrentScenario, only: Option<&CurrentLink>, report: Option<&Report>) -> String {
    let mut text = String::new();
    for link in current.links.iter().filter(|link| only.is_none_or(|only| only.link == link.link)) {
        for class in link.tree.iter().flat_map(|tree| &tree.classes) {
            line(&mut text, class).expect("writing to a string does not fail");
            if let Some(report) = report.filter(|_| class.outermost) {
                statistics(&mut text, report, &link.link, class).expect("writing to a string does not fail");
            }
        }
    }
    text
}

fn line(text: &mut String, class: &CurrentClass) -> fmt::Result {
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

/// The counters of a leaf class in a report.
pub(super) fn counted<'a>(report: &'a Report, link: &str, class: &CurrentClass) -> Option<&'a ClassReport> {
    lanes(report, link).flat_map(|lane| &lane.classes).find(|one| one.name == class.name)
}

/// The counters of a shaper's class in a report.
fn shaped<'a>(report: &'a Report, link: &str, class: &CurrentClass) -> Option<&'a ShapedClassReport> {
    lanes(report, link).flat_map(|lane| &lane.shaped).find(|one| one.name == class.name)
}

fn lanes<'a>(report: &'a Report, link: &str) -> impl Iterator<Item = &'a Direction> {
    report.directions.iter().filter(move |lane| lane.link == link)
}

/// How often a class was over its limit, or sent to keep its delay bound.
pub(super) fn over_limit(report: &Report, link: &str, class: &CurrentClass) -> u64 {
    let shaped = shaped(report, link, class).map(|class| class.over_limit);
    let delayed = || Some(counted(report, link, class)?.delay?.over_limit);
    shaped.or_else(delayed).unwrap_or(0)
}

fn statistics(text: &mut String, report: &Report, link: &str, class: &CurrentClass) -> fmt::Result {
    let (counted, shaped) = (counted(report, link, class), shaped(report, link, class));
    // For an inner class, only the shaper knows what it sent.
    let (bytes, packets, dropped) = match (counted, shaped) {
        (Some(class), _) => (class.sent_bytes, class.sent_packets, class.dropped_packets),
        (None, Some(class)) => (class.sent_bytes, class.sent_packets, 0),
        (None, None) => return Ok(()),
    };
    let over_limit = over_limit(report, link, class);
    writeln!(text, " Sent {bytes} bytes {packets} pkts (dropped {dropped}, overlimits {over_limit})")?;
    if let Some(class) = counted {
        backlog(text, class.backlog_bytes, class.backlog_packets)?;
    }
    if class.name != class.handle {
        writeln!(text, " name: {}", class.name)?;
    }
    if let Some(delay) = counted.and_then(|counted| counted.delay) {
        // In microseconds, as the reference implementation prints them.
        writeln!(text, " hold time: {}", delay.hold_ns / 1000)?;
        writeln!(text, " average delay: {}", delay.average_ns / 1000)?;
    }
    let Some(ShapedClassReport {
        lent_packets, borrowed_packets, over_limit, tokens_ns, ceil_tokens_ns, ..
    }) = shaped
    else {
        return Ok(());
    };
    match class.kind.as_str() {
        "cbq" => {
            let idle = tokens_ns / 1000;
            writeln!(text, " borrowed {borrowed_packets} overactions {over_limit} avgidle {idle}")
        }
        "htb" => {
            writeln!(text, " lended: {lent_packets} borrowed: {borrowed_packets} giants: 0")?;
            writeln!(text, " tokens: {tokens_ns} ctokens: {ceil_tokens_ns}")
        }
        _ => Ok(()),
    }
}

/// The current backlog.
pub(super) fn backlog(text: &mut String, bytes: u64, packets: u64) -> fmt::Result {
    writeln!(text, " backlog {bytes}b {packets}p requeues 0")
}
