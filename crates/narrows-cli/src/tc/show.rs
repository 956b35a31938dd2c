//! `qdisc show`, in tc's layout.

use std::fmt::Write;

use narrows_live::control::{CurrentLink, CurrentScenario};
use narrows_report::{Direction, Report};
use narrows_scenario::tc::{CurrentClass, CurrentConfig, CurrentQdisc, Handle};

use super::{classes, tins};

/// One line for each link, or for one; with counters if there is a report. Text after `#` is not part of
/// tc's layout.
pub(super) fn show(
    current: &CurrentScenario,
    only: Option<&CurrentLink>,
    device: Option<&str>,
    report: Option<&Report>,
) -> String {
    let mut text = String::new();
    for (number, link) in (0..).zip(&current.links) {
        if only.is_some_and(|only| only.link != link.link) {
            continue;
        }
        if let Some(tree) = &link.tree {
            disciplines(&mut text, link, tree, device.is_none(), report)
                .expect("writing to a string does not fail");
            continue;
        }
        line(&mut text, number, link, device.is_none()).expect("writing to a string does not fail");
        let counters = match (report, &link.netem) {
            (None, _) => Ok(()),
            (Some(report), Some(_)) => statistics(&mut text, &link.link, report),
            (Some(report), None) => sent(&mut text, &link.link, report, 0),
        };
        counters.expect("writing to a string does not fail");
    }
    text
}

fn line(text: &mut String, number: u32, link: &CurrentLink, named: bool) -> std::fmt::Result {
    let device = if named { format!(" dev {}", link.link) } else { String::new() };
    let handle = u32::from(Handle::FIRST) + number;
    let (kernel, options) = link.netem.as_deref().map_or((None, None), |options| {
        // tc does not have the word.
        let last = options.rsplit_once(" kernel ");
        last.map_or((None, Some(options)), |(rest, kernel)| (Some(kernel), Some(rest)))
    });
    match options {
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
        if let Some(kernel) = kernel {
            write!(text, " of Linux {kernel}")?;
        }
    }
    if !link.unrepresentable.is_empty() {
        write!(text, "  # besides, not in NetEm's words: {}", link.unrepresentable.join(", "))?;
    }
    text.push('\n');
    Ok(())
}

/// One line for each qdisc of a tree; with a report, its counters, and for HPD the code points.
fn disciplines(
    text: &mut String,
    link: &CurrentLink,
    tree: &CurrentConfig,
    named: bool,
    report: Option<&Report>,
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
        if number == 0 && !tree.unrepresentable.is_empty() {
            write!(text, "  # besides, not shown in tc's words: {}", tree.unrepresentable.join(", "))?;
        }
        text.push('\n');
        let Some(report) = report else { continue };
        counters(text, link, tree, qdisc, report)?;
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

/// The counters of a qdisc in a tree: for one in a class those of the class; for CAKE those of its tins; nothing for
/// deeper ones.
fn counters(
    text: &mut String,
    link: &CurrentLink,
    tree: &CurrentConfig,
    qdisc: &CurrentQdisc,
    report: &Report,
) -> std::fmt::Result {
    let mut outermost = tree.classes.iter().filter(|class| class.outermost);
    let own: Vec<&CurrentClass> = outermost.clone().filter(|class| class.is_of(qdisc)).collect();
    if !own.is_empty() {
        let over = own.iter().map(|class| classes::over_limit(report, &link.link, class)).sum();
        sent(text, &link.link, report, over)
    } else if qdisc.kind == "cake" && tree.classes.is_empty() {
        sent(text, &link.link, report, 0)?;
        tins::show(text, report, &link.link)
    } else if qdisc.parent.is_none() {
        statistics(text, &link.link, report)
    } else if let Some(class) = outermost.find(|class| Some(&class.handle) == qdisc.parent.as_ref())
        && let Some(class) = classes::counted(report, &link.link, class)
    {
        sent_line(text, class.sent_bytes, class.sent_packets, class.dropped_packets, 0)?;
        classes::backlog(text, class.backlog_bytes, class.backlog_packets)
    } else {
        Ok(())
    }
}

/// A sum over the lanes of a link in a report.
fn sum(report: &Report, link: &str, of: impl Fn(&Direction) -> u64) -> u64 {
    report.directions.iter().filter(|lane| lane.link == link).map(of).sum()
}

fn sent(text: &mut String, link: &str, report: &Report, over_limits: u64) -> std::fmt::Result {
    let sum = |of: fn(&Direction) -> u64| sum(report, link, of);
    let (bytes, packets) = (sum(|lane| lane.delivered.bytes), sum(|lane| lane.delivered.packets));
    sent_line(text, bytes, packets, sum(|lane| lane.dropped_packets), over_limits)?;
    classes::backlog(text, sum(|lane| lane.backlog_bytes), sum(|lane| lane.backlog_packets))?;
    match sum(|lane| lane.in_flight_packets) {
        0 => Ok(()),
        // The second queue of a link, which a kernel qdisc does not have.
        flying => writeln!(text, " in flight {flying}p"),
    }
}

/// The line that all qdiscs have.
fn sent_line(
    text: &mut String,
    bytes: u64,
    packets: u64,
    dropped: u64,
    over_limits: u64,
) -> std::fmt::Result {
    writeln!(
        text,
        " Sent {bytes} bytes {packets} pkt (dropped {dropped}, overlimits {over_limits} requeues 0)"
    )
}

/// The statistics of NetEm.
fn statistics(text: &mut String, link: &str, report: &Report) -> std::fmt::Result {
    let sum = |of: fn(&Direction) -> u64| sum(report, link, of);
    let lost = sum(|lane| {
        lane.drops.iter().filter(|drop| drop.reason.contains("loss")).map(|drop| drop.packets).sum()
    });
    let reordered = sum(|lane| lane.reordered_packets);
    sent(text, link, report, 0)?;
    writeln!(
        text,
        " delayed {} dropped {lost} corrupted {} duplicated {} reordered {reordered} ecn_marked {} allocation_errors 0",
        sum(|lane| lane.delivered.packets).saturating_sub(reordered),
        sum(|lane| lane.corrupted_packets),
        sum(|lane| lane.duplicated_packets),
        sum(|lane| lane.marked_packets),
    )
}
