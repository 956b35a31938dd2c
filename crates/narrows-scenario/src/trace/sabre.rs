//! Network traces of Sabre (Spiteri, Sitaraman, Sparacio, "From theory to practice: improving bitrate
//! adaptation in the DASH reference player", MMSys 2018; `UMass-LIDS/sabre`).
//!
//! ```json
//! [{"duration_ms": 1020, "bandwidth_kbps": 1051, "latency_ms": 100}, …]
//! ```
//! Each period has a rate in kbit/s for a time; the trace repeats. `latency_ms` passes once for each request
//! before its first bit arrives: it is a round trip, of which half is the one-way delay here.

use std::fmt::Write;
use std::ops::Range;

use narrows_core::{Duration, Rate, Time};

use crate::problem::Problem;
use crate::source::Source;
use crate::source::number::decimal;
use crate::trace::column::{Cells, filled, put};
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Then, Trace, json};
use crate::units::{LONGEST_NANOS, MOST_BITS};

/// Files are JSON lists of periods.
impl Format {
    /// Periods with a rate and a latency, in JSON, as Sabre reads them.
    pub const SABRE: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "sabre",
    begins: |beginning| {
        let head = beginning.head();
        beginning.first == '['
            && ["\"duration_ms\"", "\"bandwidth_kbps\""].iter().any(|key| head.contains(key))
    },
    always: &[],
    extensions: &["sabre"],
    read,
    write: |trace, remarks| trace.sabre(remarks),
    has_opportunities: false,
    says_loop: true,
};

const KEYS: [&str; 3] = ["duration_ms", "bandwidth_kbps", "latency_ms"];
const REMARK: &str = "latency_ms is a round trip: half of it is the one-way delay";

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    const LIST: &str =
        "a list of periods, such as [{\"duration_ms\": 1000, \"bandwidth_kbps\": 2500, \"latency_ms\": 100}]";
    if source.text.trim().is_empty() {
        return Err(source.empty());
    }
    let (mut rate, mut delay): (Column<Rate>, Column<Duration>) = Default::default();
    let (mut now, mut count) = (Time::ZERO, 0);
    // The first period with a latency, and the first without.
    let mut with: [Option<Range<usize>>; 2] = [None, None];
    json::each_item(source.text, LIST, |period| {
        count += 1;
        if count > MOST_POINTS / 2 {
            return Err(Problem::new(format!("more than {} periods", MOST_POINTS / 2)).at(&period.span));
        }
        let table = period.table(LIST)?;
        table.only(&KEYS)?;
        let lasts = json::required(period, table, KEYS[0], 6, LONGEST_NANOS, "a duration in milliseconds")?;
        let bits = json::required(period, table, KEYS[1], 3, MOST_BITS, "a rate in kbit/s")?;
        let latency = match table.get(KEYS[2]) {
            Some(node) => Some(json::number(node, 6, LONGEST_NANOS, "a round trip in milliseconds")?),
            None => None,
        };
        with[usize::from(latency.is_none())].get_or_insert_with(|| period.span.clone());
        if lasts == 0 {
            return Ok(());
        }
        put(&mut rate, now, Rate::from_bits_per_second(bits));
        if let Some(latency) = latency {
            put(&mut delay, now, Duration::from_nanos(latency / 2));
        }
        now = now + Duration::from_nanos(lasts);
        if now.nanos() > LONGEST_NANOS {
            let problem = Problem::new("the periods up to here last too long").at(&period.span);
            return Err(problem.help("a trace lasts for 876000h at most"));
        }
        Ok(())
    })?;
    if now == Time::ZERO {
        return Err(Problem::new("this trace has no duration").at(&(0..source.text.len())).help(LIST));
    }
    if let [Some(_), Some(without)] = with {
        return Err(Problem::new("`latency_ms` is missing, which other periods have").at(&without));
    }
    let mut trace = Trace::new(Format::SABRE, now.since(Time::ZERO));
    trace.rate = filled(rate);
    trace.delay = filled(delay);
    trace.then = Then::Loop;
    if trace.delay.is_some() {
        trace.remarks.push(REMARK.into());
    }
    Ok(trace)
}

impl Trace {
    /// A period for each stretch of one rate and one delay; times and rates are exact.
    pub(super) fn sabre(&self, remarks: &mut Vec<String>) -> Result<String, CannotWrite> {
        let (format, says) = (Format::SABRE, "a rate with a limit throughout");
        if self.rate.as_ref().is_none_or(|rates| rates.iter().any(|point| point.1 == Rate::UNLIMITED)) {
            return Err(CannotWrite::Nothing { format, says });
        }
        self.left_out(remarks, &[false, self.loss.is_some(), self.duplicate.is_some(), self.bound.is_some()]);
        remarks.push(match self.delay {
            Some(_) => "latency_ms is a round trip: twice the delay".into(),
            None => "the trace has no delay: latency_ms is 0".into(),
        });
        if self.then != Then::Loop {
            remarks.push("in Sabre the trace repeats".into());
        }
        let mut instants: Vec<Time> = Vec::new();
        instants.extend(self.rate.iter().flat_map(|points| points.iter()).map(|point| point.0));
        instants.extend(self.delay.iter().flat_map(|points| points.iter()).map(|point| point.0));
        instants.sort_unstable();
        instants.dedup();
        let (mut rate, mut delay) = (Cells::new(&self.rate), Cells::new(&self.delay));
        let ends: Vec<Time> = instants.iter().skip(1).copied().chain([Time::ZERO + self.length]).collect();
        let mut text = String::from("[");
        for (start, end) in instants.into_iter().zip(ends) {
            let comma = if start == Time::ZERO { "" } else { "," };
            let lasts = decimal(end.since(start).nanos(), 6);
            let rate = decimal(rate.held(start).unwrap_or(Rate::DOWN).bits_per_second(), 3);
            let latency = decimal(delay.held(start).unwrap_or_default().nanos().saturating_mul(2), 6);
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "{comma}\n{{\"duration_ms\": {lasts}, \"bandwidth_kbps\": {rate}, \"latency_ms\": {latency}}}"
            );
        }
        text += "\n]\n";
        Ok(text)
    }
}
