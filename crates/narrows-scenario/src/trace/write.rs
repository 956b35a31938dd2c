//! Traces as files.

use std::fmt::Write;

use narrows_core::queue::Bound;
use narrows_core::{Duration, Probability, Rate, Time};

use crate::trace::number::{decimal, share};
use crate::trace::theaterq::{ALWAYS, MICROSECOND};
use crate::trace::{Column, Format, MOST_POINTS, OPPORTUNITY, Then, Trace};

/// A trace as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub text: String,
    /// What of the trace the file does not say, or not exactly.
    pub remarks: Vec<String>,
}

/// Why a trace cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotWrite {
    /// It has nothing that the format can say.
    #[error("a {format} file says {says}, and this trace has no such column")]
    Nothing {
        /// The format.
        format: Format,
        /// What it has columns for.
        says: &'static str,
    },
    /// The format is for reading only.
    #[error("a pattern is not written from a trace: `narrows pattern make` makes patterns")]
    ReadOnly,
    /// It would be too long.
    #[error("that comes to more than {MOST_POINTS} points; --resample makes them fewer")]
    TooLong,
    /// No opportunity comes up.
    #[error(
        "the rate lets no packet of {OPPORTUNITY} bytes through in all of the trace's {0}: a mahimahi file has at least one"
    )]
    NoOpportunity(Duration),
}

/// The step in which opportunities become a rate where none is given.
const FINEST: Duration = Duration::from_millis(1);

impl Trace {
    /// Writes the trace. CSV is read again as the same trace; what others leave out is told.
    ///
    /// # Errors
    /// When nothing would be left, or too much.
    pub fn write(&self, format: Format) -> Result<Written, CannotWrite> {
        let mut remarks = Vec::new();
        // A mahimahi file has opportunities, all others a rate.
        let spread = match &self.opportunities {
            Some(_) if !format.about().has_opportunities => {
                let before = self.remarks.len();
                let trace = self.resample(FINEST).ok_or(CannotWrite::TooLong)?;
                remarks.extend(trace.remarks.iter().skip(before).cloned());
                Some(trace)
            }
            _ => None,
        };
        let trace = spread.as_ref().unwrap_or(self);
        let text = (format.about().write)(trace, &mut remarks)?;
        if self.then == Then::Loop && !format.about().says_loop {
            remarks.push(
                "the file does not say that the trace repeats: a scenario says it by `then = \"loop\"`"
                    .into(),
            );
        }
        Ok(Written { text, remarks })
    }

    /// The instants at which any column has a point, in order.
    fn instants(&self) -> Vec<Time> {
        fn add<T>(instants: &mut Vec<Time>, column: &Option<Column<T>>) {
            instants.extend(column.iter().flatten().map(|point| point.0));
        }
        let mut instants = Vec::new();
        add(&mut instants, &self.rate);
        add(&mut instants, &self.delay);
        add(&mut instants, &self.loss);
        add(&mut instants, &self.duplicate);
        add(&mut instants, &self.bound);
        instants.sort_unstable();
        instants.dedup();
        instants
    }

    /// Times in seconds, rates in Mbit/s, delays in ms, shares as they are; the last row says when it ends.
    pub(super) fn csv(&self) -> String {
        let bytes = self.bound.as_ref().is_some_and(|column| matches!(column[0].1, Bound::Bytes(_)));
        let columns = [
            (self.rate.is_some(), "rate_mbit"),
            (self.delay.is_some(), "delay_ms"),
            (self.loss.is_some(), "loss"),
            (self.duplicate.is_some(), "duplicate"),
            (self.bound.is_some(), if bytes { "queue_bytes" } else { "queue_packets" }),
        ];
        let mut text = String::from("time_s");
        for (_, name) in columns.iter().filter(|(there, _)| *there) {
            text.push(',');
            text.push_str(name);
        }
        text.push('\n');
        let mut rate = Cells::new(&self.rate);
        let mut delay = Cells::new(&self.delay);
        let mut loss = Cells::new(&self.loss);
        let mut duplicate = Cells::new(&self.duplicate);
        let mut bound = Cells::new(&self.bound);
        for time in self.instants() {
            text.push_str(&decimal(time.nanos(), 9));
            rate.cell(&mut text, time, |rate| match rate {
                Rate::UNLIMITED => "unlimited".into(),
                rate => decimal(rate.bits_per_second(), 6),
            });
            delay.cell(&mut text, time, |delay| decimal(delay.nanos(), 6));
            loss.cell(&mut text, time, share);
            duplicate.cell(&mut text, time, share);
            bound.cell(&mut text, time, |bound| match bound {
                Bound::Packets(packets) => packets.to_string(),
                Bound::Bytes(bytes) => bytes.get().to_string(),
            });
            text.push('\n');
        }
        text.push_str(&decimal(self.length.nanos(), 9));
        text.push('\n');
        text
    }

    /// The first column there is, in this order: rate, delay, loss, duplicates.
    pub(super) fn netem_trace(&self, remarks: &mut Vec<String>) -> Result<String, CannotWrite> {
        const SAYS: &str = "one of rate, delay, loss and duplicates";
        let models: Vec<(Duration, String)>;
        let kind;
        if let Some(rates) = &self.rate {
            kind = "Bw";
            let unlimited = rates.iter().filter(|point| point.1 == Rate::UNLIMITED).count();
            if unlimited > 0 {
                remarks.push(format!(
                    "{unlimited} rates without a limit are written as the most that there is, 1000 Tbps"
                ));
            }
            models = self.steps(rates, |rate| {
                let bits = match rate {
                    Rate::UNLIMITED => crate::units::MOST_BITS,
                    rate => rate.bits_per_second(),
                };
                format!("\"bw\":\"{bits}bps\"")
            });
            self.left_out(
                remarks,
                &[self.delay.is_some(), self.loss.is_some(), self.duplicate.is_some(), self.bound.is_some()],
            );
        } else if let Some(delays) = &self.delay {
            kind = "Delay";
            models = self.steps(delays, |delay| format!("\"delay\":\"{}ns\"", delay.nanos()));
            self.left_out(
                remarks,
                &[false, self.loss.is_some(), self.duplicate.is_some(), self.bound.is_some()],
            );
        } else if let Some(shares) = self.loss.as_ref().or(self.duplicate.as_ref()) {
            let (name, key) = if self.loss.is_some() { ("Loss", "loss") } else { ("Duplicate", "duplicate") };
            kind = name;
            models = self.steps(shares, |value| format!("\"{key}\":[{}]", share(value)));
            let others = self.loss.is_some() && self.duplicate.is_some();
            self.left_out(remarks, &[false, false, others, self.bound.is_some()]);
        } else {
            return Err(CannotWrite::Nothing { format: Format::NetemTrace, says: SAYS });
        }
        let count = u32::from(self.then != Then::Loop);
        let mut text = format!("{{\"Repeated{kind}PatternConfig\":{{\"pattern\":[");
        for (index, (lasts, value)) in models.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let nanos = lasts.nanos();
            // A String takes all that is written to it.
            let _ =
                write!(text, "{comma}\n{{\"Static{kind}Config\":{{{value},\"duration\":\"{nanos}ns\"}}}}");
        }
        let _ = writeln!(text, "\n],\"count\":{count}}}}}");
        Ok(text)
    }

    /// How long each value lasts, and the value.
    fn steps<T: Copy>(&self, column: &Column<T>, value: impl Fn(T) -> String) -> Vec<(Duration, String)> {
        let end = Time::ZERO + self.length;
        let ends = column.iter().skip(1).map(|point| point.0).chain([end]);
        column.iter().zip(ends).map(|(point, end)| (end.since(point.0), value(point.1))).collect()
    }

    /// Simple rows where that is enough, or else extended ones.
    pub(super) fn theaterq(&self, remarks: &mut Vec<String>) -> String {
        let mut instants = self.instants();
        if instants.is_empty() {
            instants.push(Time::ZERO);
        }
        let extended = self.duplicate.is_some();
        let mut bytes = false;
        let mut rounded = false;
        let mut text = String::new();
        let mut rate = Cells::new(&self.rate);
        let mut delay = Cells::new(&self.delay);
        let mut loss = Cells::new(&self.loss);
        let mut duplicate = Cells::new(&self.duplicate);
        let mut bound = Cells::new(&self.bound);
        let micros = |time: Time| (time.nanos() + MICROSECOND / 2) / MICROSECOND;
        let ends: Vec<Time> = instants.iter().skip(1).copied().chain([Time::ZERO + self.length]).collect();
        for (start, end) in instants.into_iter().zip(ends) {
            let rate = match rate.held(start) {
                None | Some(Rate::UNLIMITED) => -1,
                Some(rate) => rate.bits_per_second() as i64,
            };
            let delay = delay.held(start).unwrap_or_default().nanos();
            let loss = of_always(loss.held(start));
            let limit = match bound.held(start) {
                None => 0,
                Some(Bound::Packets(packets)) => packets.min(u64::from(u32::MAX)),
                Some(Bound::Bytes(size)) => {
                    bytes = true;
                    size.get().min(u64::from(u32::MAX))
                }
            };
            let keep = micros(end) - micros(start);
            rounded |= end.since(start) != Duration::from_nanos(keep * MICROSECOND);
            if keep == 0 {
                continue; // less than half a microsecond
            }
            // A String takes all that is written to it.
            let _ = match extended {
                false => writeln!(text, "{keep},{delay},{rate},{loss},{limit}"),
                true => {
                    let duplicate = of_always(duplicate.held(start));
                    writeln!(text, "{keep},{delay},0,{rate},{loss},{limit},{duplicate},0,0,0")
                }
            };
        }
        if extended {
            remarks.push("the rows are extended ones: TheaterQ takes them with `ingest EXTENDED`".into());
        }
        if bytes {
            remarks.push("the limit is in bytes: TheaterQ takes it so with `byteqlen`".into());
        }
        if rounded {
            remarks.push("instants are rounded to microseconds".into());
        }
        text
    }

    /// Tells which of the columns for delay, loss, duplicates and bound are not in the file.
    pub(super) fn left_out(&self, remarks: &mut Vec<String>, there: &[bool; 4]) {
        let names = ["delay", "loss", "duplicates", "queue bound"];
        let left: Vec<&str> =
            names.into_iter().zip(there).filter(|(_, there)| **there).map(|(name, _)| name).collect();
        if !left.is_empty() {
            remarks.push(format!("the file cannot say {}: left out", left.join(", ")));
        }
    }
}

/// A share as TheaterQ has it, rounded.
fn of_always(share: Option<Probability>) -> u64 {
    (share.unwrap_or_default().as_f64() * ALWAYS as f64 + 0.5) as u64
}

/// Goes through a column in the order of time.
struct Cells<'a, T> {
    column: Option<&'a Column<T>>,
    next: usize,
}

impl<'a, T: Copy> Cells<'a, T> {
    const fn new(column: &'a Option<Column<T>>) -> Self {
        Self { column: column.as_ref(), next: 0 }
    }

    /// Writes the value that begins to hold at `time`, or an empty cell; nothing where there is no such column.
    fn cell(&mut self, text: &mut String, time: Time, value: impl Fn(T) -> String) {
        let Some(column) = self.column else { return };
        text.push(',');
        if let Some(point) = column.get(self.next).filter(|point| point.0 == time) {
            text.push_str(&value(point.1));
            self.next += 1;
        }
    }

    /// The value that holds at `time`.
    fn held(&mut self, time: Time) -> Option<T> {
        let column = self.column?;
        while column.get(self.next).is_some_and(|point| point.0 <= time) {
            self.next += 1;
        }
        self.next.checked_sub(1).map(|index| column[index].1)
    }
}
