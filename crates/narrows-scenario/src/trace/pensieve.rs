//! Traces of Pensieve's simulator (Mao, Netravali, Alizadeh, "Neural adaptive video streaming with Pensieve",
//! SIGCOMM 2017; `sim/fixed_env.py`), which many others read, too (Comyco, Oboe, the video traces of the
//! SIGCOMM 2021 study of 5G).
//!
//! ```text
//! 0.0     4.03
//! 0.5     3.61
//! ```
//! A time in seconds and a rate in Mbit/s, separated by a tab or blanks. In the simulator **a row's rate holds
//! from the time of the row before up to its own**; the first row only says where the trace begins. After the
//! last row the trace repeats.
//!
//! Two columns of numbers may have other units. A file is taken to be Pensieve's if the values are plausible in
//! seconds and Mbit/s ([`Sample::doubt`]); named as the format, any file is.

use std::fmt::Write;

use narrows_core::{Duration, Rate, Time};

use crate::problem::{Found, Problem};
use crate::source::Source;
use crate::source::number::decimal;
use crate::trace::column::points;
use crate::trace::column::put;
use crate::trace::format::{Beginning, Entry};
use crate::trace::info::Number;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Then, Trace, table};
use crate::units::{LONGEST_NANOS, MOST_BITS};

/// Rows have two numbers separated by blanks.
impl Format {
    /// Times in seconds and rates in Mbit/s, as Pensieve's simulator reads them.
    pub const PENSIEVE: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "pensieve",
    begins: |beginning| {
        let is_plausible = || Sample::of(beginning.text).is_none_or(|sample| sample.doubt().is_none());
        Sample::begins(&beginning) && is_plausible()
    },
    always: &["pensieve"],
    extensions: &["pensieve"],
    read,
    write: |trace, remarks| trace.pensieve(remarks),
    has_opportunities: false,
    says_loop: true,
};

/// Two columns of numbers, by which their units are judged.
pub(super) struct Sample {
    rows: Vec<(f64, f64)>,
}

impl Sample {
    /// The number of rows that are looked at.
    const MOST: usize = 100_000;
    /// A mean above this many Mbit/s is no path that anybody has measured.
    const MOST_MBIT: f64 = 100_000.0;
    /// From this mean in Mbit/s on, other units are as likely: kbit/s.
    const FAST: f64 = 100.0;
    /// From so many seconds between rows on, likewise: milliseconds.
    const SLOW: f64 = 100.0;
    /// More seconds between rows say nothing about a link.
    const LONGEST_STEP: f64 = 3600.0;

    /// Whether the first line has two numbers separated by blanks.
    pub(super) fn begins(beginning: &Beginning<'_>) -> bool {
        let cells: Vec<&str> = beginning.line.split_ascii_whitespace().take(3).collect();
        let is_number = |cell: &&str| {
            let digits = cell.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
            digits && cell.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        };
        cells.len() == 2 && cells.iter().all(is_number)
    }

    /// The rows up to the first that is no pair of numbers; `None` if there are fewer than two.
    pub(super) fn of(text: &str) -> Option<Self> {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let row = |line: &str| {
            let mut cells = line.split_ascii_whitespace();
            Some((cells.next()?.parse::<f64>().ok()?, cells.next()?.parse::<f64>().ok()?))
        };
        let rows: Vec<_> = lines.map_while(row).take(Self::MOST).collect();
        (rows.len() > 1).then_some(Self { rows })
    }

    /// Why the values are no seconds and Mbit/s.
    pub(super) fn doubt(&self) -> Option<String> {
        let (step, rate) = (self.median_step(), self.mean_rate());
        let rated = Number(Some(rate * 1e6), "bit/s");
        let stepped = Number(Some(step), "s");
        if rate > Self::MOST_MBIT {
            return Some(format!("the mean would be {rated}"));
        }
        if step > Self::LONGEST_STEP {
            return Some(format!("rows would be {stepped} apart"));
        }
        // Links that fast are measured in steps of a second or less. Two rows are a constant rate.
        let step = step.max(self.mean_step());
        (self.rows.len() > 2 && step >= Self::SLOW && rate >= 100.0).then(|| {
            let stepped = Number(Some(step), "s");
            format!("rows would be {stepped} apart, with a mean of {rated}")
        })
    }

    /// Whether each two rows have the same rate, but for a last one alone.
    pub(super) fn is_paired(&self) -> bool {
        self.rows.len() > 3 && self.rows.chunks_exact(2).all(|pair| pair[0].1 == pair[1].1)
    }

    /// Whether times in milliseconds and rates in kbit/s are plausible, and Pensieve's units are not.
    pub(super) fn is_milliseconds(&self) -> bool {
        self.mean_step() >= 100.0
            && self.mean_step() <= 600_000.0
            && (100.0..=1e7).contains(&self.mean_rate())
    }

    fn mean_step(&self) -> f64 {
        let ends = self.rows.first().zip(self.rows.last());
        ends.map_or(0.0, |(first, last)| (last.0 - first.0) / (self.rows.len() - 1) as f64)
    }

    fn median_step(&self) -> f64 {
        let mut steps: Vec<f64> = self.rows.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        steps.sort_by(f64::total_cmp);
        steps.get(steps.len() / 2).copied().unwrap_or(0.0)
    }

    fn mean_rate(&self) -> f64 {
        self.rows.iter().map(|row| row.1).sum::<f64>() / self.rows.len() as f64
    }
}

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let mut rate: Column<Rate> = Vec::new();
    let (mut origin, mut now, mut together, mut last) = (None, Time::ZERO, 0, "");
    for line in table::lines(source) {
        let mut cells = line.split_ascii_whitespace();
        let (Some(time), Some(mbit), None) = (cells.next(), cells.next(), cells.next()) else {
            return Err(source.expected(line.trim(), "a time in seconds and a rate in Mbit/s"));
        };
        let nanos = source.number(time, 9, LONGEST_NANOS, "a time in seconds")?;
        let bits = source.number(mbit, 6, MOST_BITS, "a rate in Mbit/s")?;
        last = line;
        let Some(origin) = origin else {
            origin = Some(nanos);
            continue;
        };
        let end = nanos.checked_sub(origin).map(Time::from_nanos).filter(|end| *end >= now);
        let end = end.ok_or_else(|| {
            let before = now + Duration::from_nanos(origin);
            let problem =
                Problem::new(format!("the time {} goes back: the previous row is at {before}", Found(time)));
            problem.at(&source.span(time)).help("rows are in order of time")
        })?;
        if end == now {
            together += 1;
            continue;
        }
        put(&mut rate, now, Rate::from_bits_per_second(bits));
        now = end;
        if rate.len() > MOST_POINTS {
            return Err(Problem::new(format!("more than {MOST_POINTS} rows")).at(&source.span(line)));
        }
    }
    if rate.is_empty() {
        return Err(match origin {
            None => source.empty(),
            Some(_) => {
                let problem = Problem::new("this trace has no duration").at(&source.span(last));
                problem.help("two rows or more: the rate of a row holds from the row before on")
            }
        });
    }
    let mut trace = Trace::new(Format::PENSIEVE, now.since(Time::ZERO));
    trace.rate = Some(points(rate));
    trace.then = Then::Loop;
    trace
        .remarks
        .push("as in Pensieve, a row's rate holds up to its time, so that of the first row is unused".into());
    if let Some(sample) = Sample::of(source.text) {
        // Those are as likely in other units.
        let is_doubtful = sample.mean_step() >= Sample::SLOW || sample.mean_rate() >= Sample::FAST;
        let other = if is_doubtful { ",time-unit=ms,rate=2,unit=kbit" } else { ",rate=2,unit=kbit" };
        trace.remarks.push(format!(
            "taken to be in s and Mbit/s: rows {} apart, {} on average; `--columns time=1{other}`, for example, says \
             otherwise",
            Number(Some(sample.mean_step()), "s"),
            Number(Some(sample.mean_rate() * 1e6), "bit/s")
        ));
    }
    if let Some(origin) = origin.filter(|origin| *origin > 0) {
        let origin = Duration::from_nanos(origin);
        trace.remarks.push(format!("the first row is at {origin}; the trace begins there"));
    }
    if together > 0 {
        trace.remarks.push(format!("{together} rows have the time of the previous row: they last 0 s"));
    }
    Ok(trace)
}

impl Trace {
    /// A row at the end of each stretch of one rate; times and rates are exact.
    pub(super) fn pensieve(&self, remarks: &mut Vec<String>) -> Result<String, CannotWrite> {
        let (format, says) = (Format::PENSIEVE, "a rate with a limit throughout");
        let Some(rates) =
            self.rate.as_ref().filter(|rates| rates.iter().all(|point| point.1 != Rate::UNLIMITED))
        else {
            return Err(CannotWrite::Nothing { format, says });
        };
        self.left_out(
            remarks,
            &[self.delay.is_some(), self.loss.is_some(), self.duplicate.is_some(), self.bound.is_some()],
        );
        if self.then != Then::Loop {
            remarks.push("in Pensieve the trace repeats".into());
        }
        let mut text = String::new();
        let mut row = |nanos: u64, rate: Rate| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}\t{}", decimal(nanos, 9), decimal(rate.bits_per_second(), 6));
        };
        row(0, rates[0].1);
        let ends = rates.iter().skip(1).map(|point| point.0.nanos()).chain([self.length.nanos()]);
        for (point, end) in rates.iter().zip(ends) {
            row(end, point.1);
        }
        Ok(text)
    }
}
