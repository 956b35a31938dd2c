//! The report in at most [`LINES`] lines: what was emulated, the results, and their accuracy.

use std::fmt::{self, Display, Formatter};

use narrows_scenario::printable;

use crate::app::ApplicationReport;
use crate::figures::Quantiles;
use crate::generated;
use crate::human::{count, packets, percent, rate, run_span, shortened, span};
use crate::info::Kind;
use crate::probe::ProbeReport;
use crate::report::{Direction, Pair, Report};
use crate::text::short;
use crate::trust::Trust;

/// The maximum number of lines of a summary.
pub const LINES: usize = 11;
/// The maximum number of notes in it.
const MOST_NOTES: usize = 2;
/// The beginnings of notes that any run may have.
const ROUTINE: [&str; 2] = ["changed at ", "ARP/ND: "];
/// The minimum width, however narrow the terminal.
const NARROWEST: usize = 60;

/// The appearance of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The width in columns.
    pub width: usize,
    /// Whether the accuracy line is coloured.
    pub colour: bool,
}

impl Default for Look {
    /// For a pipe: 100 columns without colour.
    fn default() -> Self {
        Self { width: 100, colour: false }
    }
}

impl Report {
    /// The report in a few lines.
    pub fn summary(&self, look: Look) -> impl Display + '_ {
        Summary(self, Look { width: look.width.max(NARROWEST), ..look })
    }
}

struct Summary<'a>(&'a Report, Look);

impl Display for Summary<'_> {
    /// Names come from untrusted sources and are escaped; colour codes are ours.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(report, look) = self;
        f.write_str(&printable(&Body(report, *look).to_string()))?;
        let line = report.trust_line();
        let line = printable(&line);
        match look.colour {
            true => writeln!(f, "\x1b[{}m{line}\x1b[0m", colour(report.trust())),
            false => writeln!(f, "{line}"),
        }
    }
}

/// All but the last line.
struct Body<'a>(&'a Report, Look);

impl Display for Body<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(report, look) = self;
        let starved = report.feeds.iter().filter(|feed| feed.underruns_packets > 0).map(|feed| {
            let share = percent(feed.underruns_share);
            format!("feed {}/{}: {share} of the packets found no value", feed.link, feed.feed)
        });
        let is_routine = |note: &str| ROUTINE.iter().any(|beginning| note.starts_with(beginning));
        let others = report.notes.iter().filter(|note| !is_routine(note)).cloned();
        let notes: Vec<String> = starved.chain(others).take(MOST_NOTES).collect();
        // The title, the accuracy line and the heads of two tables.
        let mut rows = LINES - 4 - notes.len();
        let clock = match report.kind {
            Kind::Live => "live",
            Kind::ExactVirtual => "exact virtual time",
            Kind::Virtual => "virtual time",
            Kind::Replay => "replay",
        };
        let length = run_span(report.end_ns.saturating_sub(report.start_ns));
        let after = format!(": {clock}, {length}, seed {}", report.seed);
        let room = look.width.saturating_sub(after.chars().count());
        writeln!(f, "{}{after}", shortened(&report.title, room))?;
        let busy = report.directions.iter().filter(|direction| direction.offered.packets > 0).count();
        let passed: u64 = report.rules.iter().map(|rules| rules.passed.packets).sum();
        if busy == 0 && passed > 0 {
            writeln!(f, "{} crossed rules, and no pipe", packets(passed))?;
        } else if busy == 0 {
            writeln!(f, "no packet crossed the network")?;
        } else {
            let (applications, probes) = (&report.applications[..], &report.probes[..]);
            let lists = [applications.len(), probes.len(), report.pairs.len()];
            let second = lists.into_iter().find(|&rows| rows > 0).unwrap_or(0);
            // In virtual time all packets are generated.
            let beside = report.kind.is_live() && !report.generated.is_empty();
            rows -= usize::from(beside);
            rows -= directions(report, rows - second.min(rows / 2), f)?;
            if beside {
                let line = format!("generated  {}", generated::sum(&report.generated));
                writeln!(f, "{}", shortened(&line, look.width))?;
            }
            match (applications, probes) {
                ([], []) => delays(report, rows, f)?,
                ([], all) => self::probes(report, all, rows, f)?,
                (all, _) => self::applications(all, rows, f)?,
            }
        }
        for note in notes {
            writeln!(f, "note: {}", shortened(&note, look.width - 6))?;
        }
        Ok(())
    }
}

/// Green, yellow, red.
const fn colour(trust: Trust) -> u8 {
    match trust {
        Trust::Good => 32,
        Trust::Fair => 33,
        Trust::Poor => 31,
    }
}

/// A table of the directions with the most packets, in at most `rows` rows. Returns how many it used.
fn directions(report: &Report, rows: usize, f: &mut Formatter<'_>) -> Result<usize, fmt::Error> {
    let all: Vec<&Direction> = report.directions.iter().filter(|one| one.offered.packets > 0).collect();
    let shown = busiest(&all, rows, |one| (one.dropped_packets, one.offered.packets));
    let width = shown.iter().map(|one| one.link.chars().count()).max().unwrap_or(0).clamp(16, 32);
    writeln!(f, "{:<width$}{:>12}{:>12}{:>11}  rate", "link", "offered", "delivered", "dropped")?;
    for one in &shown {
        write!(f, "{:<width$}{:>12}", shortened(&one.link, width), count(one.offered.packets))?;
        write!(f, "{:>12}{:>11}", count(one.delivered.packets), count(one.dropped_packets))?;
        let delivered = one.delivered.rate_bps.map_or("-".into(), rate);
        match one.asked_rate_bps {
            Some(asked) => write!(f, "  {delivered} of {}", rate(asked))?,
            None => write!(f, "  {delivered}")?,
        }
        writeln!(f, "{}", reasons(one))?;
    }
    if all.len() > shown.len() {
        writeln!(f, "{} more directions", all.len() - shown.len())?;
        return Ok(shown.len() + 1);
    }
    Ok(shown.len())
}

/// Why packets were dropped: `, lost 1.2 % (queue full)`.
fn reasons(one: &Direction) -> String {
    let mut drops: Vec<_> = one.drops.iter().filter(|drop| drop.packets > 0).collect();
    drops.sort_by_key(|drop| std::cmp::Reverse(drop.packets));
    let names: Vec<&str> = drops.iter().take(2).map(|drop| drop.reason.as_ref()).collect();
    if names.is_empty() {
        return String::new();
    }
    let more = if drops.len() > 2 { ", …" } else { "" };
    format!(", dropped {}: {}{more}", percent(one.dropped_share), names.join(", "))
}

/// A table of the delays of the pairs with the most packets, in at most `rows` rows.
fn delays(report: &Report, rows: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let all: Vec<&Pair> = report.pairs.iter().collect();
    let shown = busiest(&all, rows, |pair| pair.delay.packets);
    let row = |pair: &&Pair| {
        let label = format!("{} → {}", short(report, &pair.from_port), short(report, &pair.to_port));
        let asked = asked(report, host(&pair.from_port), host(&pair.to_port));
        (label, pair.delay, asked.map_or(String::new(), run_span))
    };
    spans("one-way delay", &shown.iter().map(row).collect::<Vec<_>>(), f)?;
    if all.len() > shown.len() {
        writeln!(f, "{} more pairs", all.len() - shown.len())?;
    }
    Ok(())
}

/// A table of the results of probes, in at most `rows` rows.
fn probes(report: &Report, all: &[ProbeReport], rows: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let all: Vec<&ProbeReport> = all.iter().collect();
    let shown = busiest(&all, rows, |probe| probe.sent_packets);
    let row = |probe: &&ProbeReport| {
        let asked = asked(report, &probe.from, &probe.to).map(|nanos| format!("{}, ", run_span(nanos)));
        let lost = format!("{} of {} lost", count(probe.lost_packets), count(probe.sent_packets));
        (format!("{} → {}", probe.from, probe.to), probe.delay, asked.unwrap_or_default() + &lost)
    };
    spans("probes, one way", &shown.iter().map(row).collect::<Vec<_>>(), f)?;
    if all.len() > shown.len() {
        writeln!(f, "{} more probes", all.len() - shown.len())?;
    }
    Ok(())
}

/// A table of delays, each with the configured one.
fn spans(title: &str, rows: &[(String, Quantiles, String)], f: &mut Formatter<'_>) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let width = rows.iter().map(|row| row.0.chars().count()).max().unwrap_or(0).clamp(16, 40);
    writeln!(f, "{title:<width$}{:>12}{:>12}{:>11}  asked", "p50", "p99", "max")?;
    for (label, delay, asked) in rows {
        write!(f, "{:<width$}", shortened(label, width))?;
        let [p50, p99, max] = [delay.p50_ns, delay.p99_ns, delay.max_ns].map(span);
        writeln!(f, "{}", format!("{p50:>12}{p99:>12}{max:>11}  {asked}").trim_end())?;
    }
    Ok(())
}

/// A table of the applications that sent the most, in at most `rows` rows.
fn applications(all: &[ApplicationReport], rows: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let all: Vec<&ApplicationReport> = all.iter().collect();
    let shown = busiest(&all, rows, |app| app.sent_packets);
    let width = shown.iter().map(|app| app.name.chars().count()).max().unwrap_or(0).clamp(16, 32);
    writeln!(f, "{:<width$}{:>12}{:>12}{:>11}  to the client", "application", "succeeded", "p50", "p99")?;
    for app in &shown {
        let time = app.messages.map(|messages| messages.delay).or(app.time);
        let [p50, p99] = [|time: Quantiles| time.p50_ns, |time: Quantiles| time.p99_ns]
            .map(|of| time.map_or("-".into(), |time| span(of(time))));
        // Those that the end of the run cut off have neither succeeded nor failed.
        let ended = format!(
            "{} of {}",
            count(app.succeeded),
            count(app.succeeded + app.failed_reset + app.failed_timeout)
        );
        write!(f, "{:<width$}{ended:>12}", shortened(&app.name, width))?;
        write!(f, "{p50:>12}{p99:>11}")?;
        writeln!(f, "  {}", app.down_bps.map_or("-".into(), rate))?;
    }
    if all.len() > shown.len() {
        writeln!(f, "{} more applications", all.len() - shown.len())?;
    }
    Ok(())
}

/// The configured mean delay between two hosts, if a single link joins them.
fn asked(report: &Report, from: &str, to: &str) -> Option<u64> {
    let mut between = report.directions.iter().filter(|one| one.from == from && one.to == to);
    match (between.next(), between.next()) {
        (Some(one), None) => one.asked_delay_ns,
        _ => None,
    }
}

fn host(port: &str) -> &str {
    port.split_once('.').map_or(port, |(host, _)| host)
}

/// The entries with the highest value of `of`, in their own order; one row fewer if a line about the rest is needed.
fn busiest<'a, T, K: Ord>(all: &[&'a T], rows: usize, of: impl Fn(&T) -> K) -> Vec<&'a T> {
    if all.len() <= rows {
        return all.to_vec();
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(of(all[at])));
    order.truncate(rows.saturating_sub(1));
    order.sort_unstable();
    order.into_iter().map(|at| all[at]).collect()
}
