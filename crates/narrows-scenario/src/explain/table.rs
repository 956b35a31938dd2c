//! Table of many links for people: one row per link, and the round-trip times of all pairs of hosts in one
//! line.

use std::fmt::{self, Write};

use super::print::span;
use super::{Explanation, LinkExplanation};

/// Maximum number of rows printed; there may be thousands of links.
const MOST_ROWS: usize = 60;
/// Maximum width of a cell; a delay may be a mixture of many distributions.
const WIDEST: usize = 28;

impl Explanation {
    /// The explanation as a table: one row per link, or per direction if they differ.
    pub fn table(&self) -> impl fmt::Display + '_ {
        Table(self)
    }
}

struct Table<'a>(&'a Explanation);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0;
        let (hosts, routers) = (all.hosts.len(), all.routers.len());
        let plural =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (hosts, routers) = (plural(hosts, "host"), plural(routers, "router"));
        let switches = match all.switches.len() {
            0 => String::new(),
            1 => ", 1 switch".into(),
            count => format!(", {count} switches"),
        };
        writeln!(f, "{}: seed {}, {hosts}, {routers}{switches}", all.scenario, all.seed)?;
        let rows = rows(&all.links);
        let head = ["link", "from", "to", "rate", "delay", "queue", "one way", "longest"].map(String::from);
        let shown = &rows[..rows.len().min(MOST_ROWS)];
        let width = |column: usize| {
            let cells = shown.iter().chain([&head]).map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for row in [&head].into_iter().chain(shown) {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                write!(line, "{cell:width$}  ")?;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        if rows.len() > shown.len() {
            writeln!(f, "and {} more", rows.len() - shown.len())?;
        }
        writeln!(f, "(one way: a full-size packet without queueing; longest: behind a full queue of them)")?;
        self.round_trips(f)?;
        for (title, lines) in
            [("rules", all.rules.len()), ("traffic", all.traffic.len()), ("timeline", all.timeline.len())]
        {
            if lines > 0 {
                writeln!(f, "{title}: {lines}")?;
            }
        }
        all.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}

impl Table<'_> {
    fn round_trips(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (paths, more) = (&self.0.paths, self.0.paths_left_out);
        let mut known: Vec<_> =
            paths.iter().filter_map(|path| Some((path.round_trip_full_ns?, path))).collect();
        known.sort_by_key(|(nanos, _)| *nanos);
        let all = paths.len() + more;
        let (Some(first), Some(last)) = (known.first(), known.last()) else {
            return writeln!(f, "round trips: {all} pairs of hosts, all unknown");
        };
        let of = |(nanos, path): &(u64, &super::PathExplanation)| {
            format!("{} ({} ↔ {})", span(Some(*nanos)), path.from, path.to)
        };
        let middle = span(Some(known[known.len() / 2].0));
        write!(f, "round trips: min {}, p50 {middle}, max {}, {}", of(first), of(last), known.len())?;
        match all - known.len() {
            0 => writeln!(f, " pairs"),
            others => writeln!(f, " pairs; {others} more not looked at, or without a known time"),
        }
    }
}

/// One row per link, or per direction if they differ.
fn rows(links: &[LinkExplanation]) -> Vec<[String; 8]> {
    let mut rows: Vec<[String; 8]> = Vec::new();
    let mut directions = links.iter().peekable();
    while let Some(link) = directions.next() {
        let cells = cells(link);
        let is_back = |other: &&LinkExplanation| {
            let whole = |name: &str, end: &str| name.strip_suffix(end).map(str::to_owned);
            let one_link =
                whole(&link.name, ".up").is_some_and(|name| whole(&other.name, ".down") == Some(name));
            one_link && self::cells(other) == cells
        };
        let both = directions.next_if(is_back).is_some();
        let name = if both { link.name.trim_end_matches(".up") } else { &link.name };
        let arrow = if both || link.shared { "↔" } else { "→" };
        let [rate, delay, queue, one_way, longest] = cells;
        rows.push([
            name.into(),
            link.from.clone(),
            format!("{arrow} {}", link.to),
            rate,
            delay,
            queue,
            one_way,
            longest,
        ]);
    }
    rows
}

fn cells(link: &LinkExplanation) -> [String; 5] {
    let delay = link.delay.split(';').next().unwrap_or_default();
    [
        short(&link.rate),
        short(delay),
        short(&link.queue),
        span(link.full.one_way_ns),
        link.full.max_ns.map_or(String::new(), |nanos| span(Some(nanos))),
    ]
}

fn short(text: &str) -> String {
    match text.char_indices().nth(WIDEST - 1) {
        Some((end, _)) if text.chars().count() > WIDEST => format!("{}…", &text[..end]),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    #[test]
    fn many_links_are_a_row_each() {
        let mut text = "[routers.r]\n".to_owned();
        for n in 1..=30 {
            let rate = if n == 7 { "{ rate = \"1mbit\" }" } else { "{ rate = \"10mbit\" }" };
            text += &format!(
                "[hosts.h{n}]\n[links.l{n}]\nbetween = [\"h{n}\", \"r\"]\ndelay = \"{n}ms\"\nqueue = \"50 packets\"\n\
                 up = {rate}\ndown = {{ rate = \"10mbit\" }}\n"
            );
        }
        let explanation = Scenario::parse(&text, "star.toml").unwrap().explain();
        let table = explanation.table().to_string();
        // A head, a title, thirty links of which one has two rows, what the columns are, the round trips.
        assert_eq!(table.lines().count(), 2 + 31 + 2, "{table}");
        assert!(explanation.to_string().lines().count() > 2_000);
        let row = |name: &str| {
            let row = table.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
            row.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("l3"), "l3 h3 ↔ r 10mbit 3ms 50 packets 4.2ms 64.2ms");
        assert!(row("l7.up").starts_with("l7.up h7 → r 1mbit 7ms") && row("l7.down").contains("→ h7 10mbit"));
        assert!(table.contains("min 10.8ms (h1.l1 ↔ h2.l2)") && table.contains(", 435 pairs\n"), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 110), "{table}");
    }
}
