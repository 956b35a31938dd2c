//! The counters of CAKE's tins, in tc's layout. The rows are those that a report has.

use std::fmt::{self, Write};

use narrows_report::{ClassReport, Report};

/// A row: its title, and what of a tin it shows.
type Row = (&'static str, fn(&ClassReport) -> String);

const ROWS: [Row; 6] = [
    ("backlog", |tin| format!("{}b", tin.backlog_bytes)),
    ("pkts", |tin| tin.arrived_packets.to_string()),
    ("bytes", |tin| tin.arrived_bytes.to_string()),
    // tc counts acknowledgements apart.
    ("drops", |tin| (tin.dropped_packets - tin.redundant_acks).to_string()),
    ("marks", |tin| tin.marked_packets.to_string()),
    ("ack_drop", |tin| tin.redundant_acks.to_string()),
];

/// One column for each tin of a link; nothing if the report has none.
pub(super) fn show(text: &mut String, report: &Report, link: &str) -> fmt::Result {
    let lane = report.directions.iter().find(|lane| lane.link == link && !lane.classes.is_empty());
    let Some(lane) = lane else { return Ok(()) };
    let mut tins: Vec<&ClassReport> = lane.classes.iter().collect();
    // The engine numbers best effort first, tc prints bulk first.
    if tins.get(1).is_some_and(|tin| tin.name == "bulk") {
        tins.swap(0, 1);
    }
    write!(text, "{:10}", "")?;
    for (number, tin) in tins.iter().enumerate() {
        let title = match tin.name.as_str() {
            "bulk" => "Bulk".to_owned(),
            "best-effort" if tins.len() > 1 => "Best Effort".to_owned(),
            "video" => "Video".to_owned(),
            "voice" => "Voice".to_owned(),
            _ => format!("Tin {number}"),
        };
        write!(text, " {title:>12}")?;
    }
    text.push('\n');
    for (title, value) in ROWS {
        write!(text, "  {title:8}")?;
        for tin in &tins {
            write!(text, " {:>12}", value(tin))?;
        }
        text.push('\n');
    }
    Ok(())
}
