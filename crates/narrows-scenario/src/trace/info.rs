//! Statistics of a trace.

use std::fmt;

use narrows_core::queue::Bound;
use narrows_core::{Duration, Rate, Time};
use serde::Serialize;

use crate::trace::{OPPORTUNITY, Then, Trace};

/// Statistics of a trace. Means are over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Format of the file.
    pub format: &'static str,
    /// Length.
    pub length_ns: u64,
    /// Number of values in all columns, opportunities included.
    pub points: usize,
    /// What happens after its end unless a scenario overrides it: `loop` or `hold`.
    pub then: &'static str,
    /// Statistics of each column.
    pub columns: Vec<ColumnInfo>,
    /// Periods in which the link sends nothing: its rate is zero, or its loss 100%. For opportunities, gaps
    /// of a second or more.
    pub outages: Vec<Outage>,
    /// Content of the file that a trace cannot express, and assumptions made.
    pub remarks: Vec<String>,
}

/// Statistics of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnInfo {
    /// `rate`, `delay`, `loss`, `duplicate`, `queue`, or `opportunities`.
    pub name: &'static str,
    /// Unit of the numbers: bits per second, seconds, packets, bytes, or empty for a share.
    pub unit: &'static str,
    /// Number of points.
    pub points: usize,
    /// Mean over time, without unlimited periods.
    pub mean: Option<f64>,
    /// Minimum; `None` if always unlimited.
    pub min: Option<f64>,
    /// Maximum; `None` if always unlimited.
    pub max: Option<f64>,
    /// Share of time that is unlimited.
    pub unlimited: f64,
}

/// A period in which no packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// Start, from the start of the trace.
    pub start_ns: u64,
    /// Duration.
    pub length_ns: u64,
}

/// Minimum gap between opportunities that counts as an outage.
const GAP: Duration = Duration::from_secs(1);
/// Maximum number of outages printed.
const MOST_SHOWN: usize = 10;

impl Trace {
    /// Statistics of the trace.
    pub fn info(&self) -> TraceInfo {
        let mut columns = Vec::new();
        let mut outages: Vec<Spell> = Vec::new();
        if let Some(rates) = &self.rate {
            let limit = |rate: Rate| (rate != Rate::UNLIMITED).then_some(rate.bits_per_second() as f64);
            columns.push(self.column("rate", "bit/s", rates, limit));
            self.spells(rates, |rate| rate == Rate::DOWN, &mut outages);
        }
        if let Some(opportunities) = &self.opportunities {
            columns.push(self.rate_of(opportunities));
            let starts = [Time::ZERO].into_iter().chain(opportunities.iter().copied());
            let gaps = starts.zip(opportunities.iter()).map(|(start, end)| (start, end.since(start)));
            let gaps = gaps.filter(|(_, gap)| *gap >= GAP);
            outages.extend(gaps.map(|(start, gap)| Spell { start, end: start + gap, is_gap: true }));
        }
        if let Some(delays) = &self.delay {
            columns.push(self.column("delay", "s", delays, |delay| Some(delay.seconds())));
        }
        if let Some(losses) = &self.loss {
            columns.push(self.column("loss", "", losses, |loss| Some(loss.as_f64())));
            self.spells(losses, |loss| loss.as_f64() >= 1.0, &mut outages);
        }
        if let Some(shares) = &self.duplicate {
            columns.push(self.column("duplicate", "", shares, |share| Some(share.as_f64())));
        }
        if let Some(bounds) = &self.bound {
            let bytes = matches!(bounds[0].1, Bound::Bytes(_));
            let limit = |bound: Bound| match bound {
                Bound::Packets(packets) => Some(packets as f64),
                Bound::Bytes(bytes) => Some(bytes.get() as f64),
            };
            columns.push(self.column("queue", if bytes { "bytes" } else { "packets" }, bounds, limit));
        }
        let outages = joined(outages).into_iter().map(Spell::outage).collect();
        TraceInfo {
            format: self.format.name(),
            length_ns: self.length.nanos(),
            points: columns.iter().map(|column| column.points).sum(),
            then: self.then.name(),
            columns,
            outages,
            remarks: self.remarks.clone(),
        }
    }

    /// The points of a column, each with the time for which it holds.
    fn spans<'a, T: Copy>(
        &self,
        column: &'a [(Time, T)],
    ) -> impl Iterator<Item = (Time, Duration, T)> + use<'a, T> {
        let ends = column.iter().skip(1).map(|point| point.0).chain([Time::ZERO + self.length]);
        column.iter().zip(ends).map(|(point, end)| (point.0, end.since(point.0), point.1))
    }

    fn column<T: Copy>(
        &self,
        name: &'static str,
        unit: &'static str,
        column: &[(Time, T)],
        value: impl Fn(T) -> Option<f64>,
    ) -> ColumnInfo {
        let (mut sum, mut time, mut unlimited) = (0.0, 0.0, 0.0);
        let (mut minimum, mut maximum) = (f64::INFINITY, f64::NEG_INFINITY);
        for (_, lasts, point) in self.spans(column) {
            let Some(value) = value(point) else {
                unlimited += lasts.seconds();
                continue;
            };
            sum += value * lasts.seconds();
            time += lasts.seconds();
            (minimum, maximum) = (minimum.min(value), maximum.max(value));
        }
        let some = minimum.is_finite();
        ColumnInfo {
            name,
            unit,
            points: column.len(),
            mean: (time > 0.0).then(|| sum / time),
            min: some.then_some(minimum),
            max: some.then_some(maximum),
            unlimited: unlimited / self.length.seconds(),
        }
    }

    /// The mean rate of opportunities, and the minimum and maximum over the trace's seconds.
    fn rate_of(&self, opportunities: &[Time]) -> ColumnInfo {
        let bits = |count: usize| count as f64 * OPPORTUNITY as f64 * 8.0;
        let seconds = self.resample(Duration::from_secs(1)).and_then(|trace| trace.rate);
        // A last incomplete second is skipped.
        let whole = (self.length.nanos() / 1_000_000_000) as usize;
        let rates = || {
            seconds
                .iter()
                .flat_map(|rates| rates.iter())
                .take(whole)
                .map(|point| point.1.bits_per_second() as f64)
        };
        let mean = bits(opportunities.len()) / self.length.seconds();
        ColumnInfo {
            name: "opportunities",
            unit: "bit/s",
            points: opportunities.len(),
            mean: Some(mean),
            min: Some(rates().fold(mean, f64::min)),
            max: Some(rates().fold(mean, f64::max)),
            unlimited: 0.0,
        }
    }

    /// Adds the periods in which `is_one` holds for the column's value; adjacent periods are merged.
    fn spells<T: Copy>(&self, column: &[(Time, T)], is_one: impl Fn(T) -> bool, outages: &mut Vec<Spell>) {
        let mut open: Option<Spell> = None;
        for (at, lasts, value) in self.spans(column) {
            if is_one(value) {
                let start = open.as_ref().map_or(at, |spell| spell.start);
                open = Some(Spell { start, end: at + lasts, is_gap: false });
            } else {
                outages.extend(open.take());
            }
        }
        outages.extend(open);
    }
}

/// A period in which no packet passes.
struct Spell {
    start: Time,
    end: Time,
    /// Whether it is between two opportunities, so that something is sent at its ends.
    is_gap: bool,
}

impl Spell {
    fn outage(self) -> Outage {
        Outage { start_ns: self.start.nanos(), length_ns: self.end.since(self.start).nanos() }
    }
}

/// Sorts the periods and merges those that overlap, and those that touch without a packet sent in between.
fn joined(mut spells: Vec<Spell>) -> Vec<Spell> {
    spells.sort_by_key(|spell| spell.start);
    let mut joined: Vec<Spell> = Vec::new();
    for spell in spells {
        let goes_on = |last: &&mut Spell| {
            spell.start < last.end || spell.start == last.end && !(last.is_gap || spell.is_gap)
        };
        match joined.last_mut().filter(goes_on) {
            Some(last) if spell.end > last.end => (last.end, last.is_gap) = (spell.end, spell.is_gap),
            Some(_) => {}
            None => joined.push(spell),
        }
    }
    joined
}

impl fmt::Display for TraceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = match self.then {
            then if then == Then::Loop.name() => "begins again",
            _ => "holds its last values",
        };
        let length = seconds(self.length_ns);
        writeln!(f, "{} trace of {length}, {} points; at its end it {after}", self.format, self.points)?;
        writeln!(f, "\n  {:<14} {:>8} {:>13} {:>13} {:>13}", "", "points", "min", "mean", "max")?;
        for column in &self.columns {
            let show = |value| Number(value, column.unit).to_string();
            let (low, mean, high) = (show(column.min), show(column.mean), show(column.max));
            write!(f, "  {:<14} {:>8} {low:>13} {mean:>13} {high:>13}", column.name, column.points)?;
            if column.unlimited > 0.0 {
                write!(f, "  unlimited for {}", Number(Some(column.unlimited), ""))?;
            }
            writeln!(f)?;
        }
        if self.columns.iter().any(|column| column.name == "opportunities") {
            writeln!(f, "  (opportunities of {OPPORTUNITY} bytes: mean, and min and max in one second)")?;
        }
        writeln!(f)?;
        match self.outages.len() {
            0 => writeln!(f, "no outage")?,
            count => {
                let total: u64 = self.outages.iter().map(|outage| outage.length_ns).sum();
                let longest = self.outages.iter().map(|outage| outage.length_ns).max().unwrap_or(0);
                let (total, longest) = (seconds(total), seconds(longest));
                let plural = if count == 1 { "" } else { "s" };
                writeln!(f, "{count} outage{plural}, {total} in all, the longest {longest}:")?;
                for outage in self.outages.iter().take(MOST_SHOWN) {
                    let (start, length) = (seconds(outage.start_ns), seconds(outage.length_ns));
                    writeln!(f, "  {length} from {start} on")?;
                }
                if count > MOST_SHOWN {
                    writeln!(f, "  and {} more", count - MOST_SHOWN)?;
                }
            }
        }
        for remark in &self.remarks {
            writeln!(f, "note: {remark}")?;
        }
        Ok(())
    }
}

/// A number for display: three or four digits, with a prefix if the unit has one; shares in percent.
pub(super) struct Number(pub(super) Option<f64>, pub(super) &'static str);

fn seconds(nanos: u64) -> Number {
    Number(Some(Duration::from_nanos(nanos).seconds()), "s")
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(value) = self.0 else { return write!(f, "–") };
        let (value, unit) = match self.1 {
            "" => (value * 100.0, "%"),
            "bit/s" => match value {
                value if value >= 1e9 => (value / 1e9, " Gbit/s"),
                value if value >= 1e6 => (value / 1e6, " Mbit/s"),
                value if value >= 1e3 => (value / 1e3, " kbit/s"),
                value => (value, " bit/s"),
            },
            "s" => match value {
                value if value >= 1.0 || value == 0.0 => (value, " s"),
                value if value >= 1e-3 => (value * 1e3, " ms"),
                value => (value * 1e6, " µs"),
            },
            "bytes" => (value, " bytes"),
            _ => (value, " packets"),
        };
        let places = match value {
            value if value >= 1000.0 => 0,
            value if value >= 100.0 => 1,
            value if value >= 10.0 => 2,
            _ => 3,
        };
        let text = format!("{value:.places$}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        write!(f, "{text}{unit}")
    }
}
