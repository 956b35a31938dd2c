//! A comparison as tables for a person.

use std::fmt::{self, Display, Formatter};

use narrows_report::Look;
use narrows_report::human::{count, percent, rate, run_span, shortened, span, within};
use narrows_scenario::printable;

use super::means::{Compared, Ends, Link, Means, Used};
use super::totals::{Row, Rows, Totals, direction_name};
use super::{Head, RunComparison, Unit};

/// The most tables of one kind; a program can read the rest.
const MOST_TABLES: usize = 24;
/// The columns after a label: A, B and change, and that in percent.
const TOTALS: [usize; 4] = [14, 14, 15, 10];
const MEANS: [usize; 4] = [24, 24, 25, 9];
/// Where the columns of a label end.
const LABEL: usize = 16;
/// A label is no shorter than this, however narrow the terminal.
const SHORTEST: usize = 12;
/// Yellow.
pub(super) const DIFFERS: &str = "\x1b[33m";
pub(super) const PLAIN: &str = "\x1b[0m";

impl RunComparison {
    /// Tables, in lines of up to that width. What names in it say to a terminal is taken out.
    pub fn text(&self, look: Look) -> impl Display + '_ {
        Text(self, look)
    }
}

struct Text<'a>(&'a RunComparison, Look);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(RunComparison { a, b, totals, series, notes }, look) = self;
        head("A", a, *look, f)?;
        head("B", b, *look, f)?;
        if let Some(totals) = totals {
            self::totals(totals, *look, f)?;
        }
        if let Some(series) = series {
            means(series, *look, f)?;
        }
        if !notes.is_empty() {
            writeln!(f)?;
        }
        notes.iter().try_for_each(|note| sentence(&format!("note: {note}"), *look, f))
    }
}

/// In lines that fit.
fn sentence(text: &str, look: Look, f: &mut Formatter<'_>) -> fmt::Result {
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        let gap = match column {
            0 => "",
            _ if column + 1 + length > look.width => "\n",
            _ => " ",
        };
        column = if gap == " " { column + 1 + length } else { length };
        write!(f, "{gap}{word}")?;
    }
    writeln!(f)
}

fn head(letter: &str, run: &Head, look: Look, f: &mut Formatter<'_>) -> fmt::Result {
    let (mut line, mut end) = (format!("{letter}  {}", run.name), String::new());
    if let (Some(title), Some(duration), Some(seed)) = (&run.title, run.duration_ns, run.seed) {
        line += &format!(": {title}");
        end = format!(", {}, seed {seed}", run_span(duration));
    }
    let room = look.width.saturating_sub(end.chars().count());
    writeln!(f, "{}{end}", shortened(&printable(&line), room))
}

/// A title and the heads of the columns.
fn columns(title: &str, label: usize, widths: [usize; 4], f: &mut Formatter<'_>) -> fmt::Result {
    let [a, b, change, _] = widths;
    let title = printable(title);
    writeln!(f)?;
    // A title may reach into the first column, which has one letter at its right.
    let title = shortened(&title, label + a - 2);
    let rest = label + a - title.chars().count();
    writeln!(f, "{title}{:>rest$}{:>b$}{:>change$}", "A", "B", "change")
}

fn totals(totals: &Totals, look: Look, f: &mut Formatter<'_>) -> fmt::Result {
    let label = look.width.saturating_sub(TOTALS.iter().sum()).clamp(SHORTEST, 30);
    let busy = |rows: &Rows| rows.0.iter().any(|row| !row.is_empty());
    let directions: Vec<_> = totals.directions.iter().filter(|one| busy(&one.rows)).collect();
    for one in directions.iter().take(MOST_TABLES) {
        columns(&direction_name(&one.link, &one.from, &one.to), label, TOTALS, f)?;
        for row in one.rows.0.iter().filter(|row| !row.is_empty()) {
            total(row.label, row, label, f)?;
            // Under the drops the reasons that changed.
            if row.label == "dropped" {
                for drop in &one.drops {
                    let differs = drop.rows.0.iter().filter(|row| row.differs());
                    differs
                        .into_iter()
                        .try_for_each(|row| total(&format!("  {}", drop.reason), row, label, f))?;
                }
            }
        }
    }
    more(directions.len(), "directions", f)?;
    for pair in totals.pairs.iter().take(MOST_TABLES) {
        columns(&format!("one-way delay, {} → {}", pair.from_port, pair.to_port), label, TOTALS, f)?;
        pair.delay.0.iter().try_for_each(|row| total(row.label, row, label, f))?;
    }
    more(totals.pairs.len(), "pairs of ports", f)?;
    if let Some(lateness) = &totals.lateness {
        columns("lateness", label, TOTALS, f)?;
        lateness.0.iter().try_for_each(|row| total(row.label, row, label, f))?;
    }
    only(&totals.only_a, &totals.only_b, look, f)?;
    match totals.is_same() {
        true => writeln!(f, "\nthe totals of both runs are the same"),
        false => Ok(()),
    }
}

fn more(all: usize, what: &str, f: &mut Formatter<'_>) -> fmt::Result {
    match all.saturating_sub(MOST_TABLES) {
        0 => Ok(()),
        more => writeln!(f, "\n{more} more {what}: --json has them"),
    }
}

fn only(a: &[String], b: &[String], look: Look, f: &mut Formatter<'_>) -> fmt::Result {
    for (letter, names) in [("A", a), ("B", b)] {
        if !names.is_empty() {
            let line = format!("only in {letter}: {}", names.join("; "));
            writeln!(f, "\n{}", shortened(&printable(&line), look.width))?;
        }
    }
    Ok(())
}

fn total(name: &str, row: &Row, label: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let [a, b, change, share] = TOTALS;
    let values = row.values;
    let text = |value: Option<f64>| value.map_or("-".into(), |value| plain(value, row.unit));
    let changed = values.change.map_or("-".into(), |change| match change {
        0.0 => "0".into(),
        change => format!("{}{}", if change < 0.0 { '-' } else { '+' }, in_points(change.abs(), row.unit)),
    });
    let part = values.change_share.filter(|share| *share != 0.0).map_or(String::new(), relative);
    let name = format!("  {}", printable(name));
    let line = format!(
        "{:<label$}{:>a$}{:>b$}{changed:>change$}{part:>share$}",
        shortened(&name, label - 1),
        text(values.a),
        text(values.b)
    );
    writeln!(f, "{}", line.trim_end())
}

fn plain(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Packets => count(value as u64),
        Unit::Share => percent(value),
        Unit::Rate => rate(value as u64),
        Unit::Span => span(value as u64),
    }
}

/// The same of a change: of shares in percentage points, which nobody takes for a part of the first value.
fn in_points(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Share => format!("{}p", percent(value)).replace("%p", "pp"),
        _ => plain(value, unit),
    }
}

/// `+12.3 %`; what became many times as much, `×1,234`.
fn relative(share: f64) -> String {
    let (percent, times) = (share * 100.0, 1.0 + share);
    match percent.abs() {
        ..99.95 => format!("{percent:+.1} %"),
        ..999.5 => format!("{percent:+.0} %"),
        _ if times >= 1e6 => "> ×1e6".into(),
        _ => format!("×{}", count(times.round() as u64)),
    }
}

fn means(means: &Means, look: Look, f: &mut Formatter<'_>) -> fmt::Result {
    let is_wide = look.width >= LABEL + MEANS.iter().sum::<usize>() + 2;
    let is_busy = |link: &&Link| link.rows().iter().any(|(_, _, compared)| !is_empty(compared));
    let busy: Vec<_> = means.links.iter().filter(is_busy).collect();
    for link in busy.iter().take(MOST_TABLES) {
        match is_wide {
            true => columns(&link.link, LABEL, MEANS, f)?,
            false => writeln!(f, "\n{}", printable(&link.link))?,
        }
        for (label, unit, compared) in link.rows() {
            if !is_empty(&compared) {
                mean(label, unit, &compared, is_wide, look, f)?;
            }
        }
        let used = |of: &Used| {
            let times = if of.batch_intervals == 1 { "" } else { "s" };
            let (from, to) = (run_span(of.start_ns), run_span(of.end_ns));
            format!("{} batches of {} interval{times}, {from} to {to}", of.batches, of.batch_intervals)
        };
        match link.a == link.b {
            true => writeln!(f, "  {}", used(&link.a))?,
            false => writeln!(f, "  A: {}\n  B: {}", used(&link.a), used(&link.b))?,
        }
    }
    more(busy.len(), "links", f)?;
    only(&means.only_a, &means.only_b, look, f)?;
    let by = if means.paired { "pairs of batches" } else { "Welch's t" };
    let legend =
        format!("±: 95 % confidence interval by batch means, of changes by {by}; *: it excludes zero");
    writeln!(f)?;
    sentence(&legend, look, f)?;
    match means.is_same() {
        true => writeln!(f, "no change differs from zero"),
        false => Ok(()),
    }
}

fn is_empty(compared: &Compared) -> bool {
    [compared.values.a, compared.values.b].into_iter().flatten().all(|ends| ends.0.mean == 0.0)
}

/// A line where that fits, else one for each value.
fn mean(
    label: &str,
    unit: Unit,
    compared: &Compared,
    is_wide: bool,
    look: Look,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let [a, b, change, share] = MEANS;
    let values = compared.values;
    let text = |ends: Option<Ends>| ends.map_or("-".into(), |ends| interval(ends, unit, false));
    let changed = values.change.map_or("-".into(), |ends| interval(ends, unit, true));
    let part = values.change_share.filter(|share| *share != 0.0).map_or(String::new(), relative);
    let mark = if compared.differs { " *" } else { "" };
    let (colour, plain) = match compared.differs && look.colour {
        true => (DIFFERS, PLAIN),
        false => ("", ""),
    };
    let (first, second) = (text(values.a), text(values.b));
    if is_wide {
        let line = format!("{changed:>change$}{part:>share$}{mark}");
        let label = format!("  {label}");
        return writeln!(f, "{label:<LABEL$}{first:>a$}{second:>b$}{colour}{}{plain}", line.trim_end());
    }
    writeln!(f, "  {label}\n    A      {first}\n    B      {second}")?;
    let line = format!("{changed}  {part}{mark}");
    writeln!(f, "    {colour}change {}{plain}", line.trim_end())
}

/// `+1.230 ± 0.120 ms`.
fn interval(ends: Ends, unit: Unit, is_change: bool) -> String {
    let (mean, half) = (ends.0.mean, ends.0.half);
    let (scale, units): (f64, &[&str]) = match unit {
        Unit::Packets => (1.0, &["pkt"]),
        Unit::Share => (100.0, if is_change { &["pp"] } else { &["%"] }),
        Unit::Rate => (1.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]),
        Unit::Span => (1.0, &["ns", "µs", "ms", "s"]),
    };
    let text = within(mean * scale, half * scale, units);
    if is_change && mean > 0.0 { format!("+{text}") } else { text }
}
