//! Traces: the behaviour of a link over time, measured or synthetic.
//!
//! A [`Trace`] has columns (rate, delay, loss, duplicates, queue bound). Each is a list of instants and
//! values; a value holds from its instant to the next one of its column. Instead of a rate, a trace may
//! have opportunities: the instants at which a mahimahi trace lets 1504 bytes pass. Instants count from the
//! start of the trace in nanoseconds; each column has a value at the start. The length is the end of the
//! trace, and [`Then`] what happens after it.
//!
//! Formats: see [`Format`] and `docs/traces.md`. [`Trace::remarks`] lists what a file has and a trace
//! cannot express.
//!
//! ```
//! use narrows_scenario::trace::Trace;
//!
//! let trace = Trace::read("cell.csv", b"time_s,rate_mbit,delay_ms\n0,10,20\n0.5,2.5,80\n2,,\n", None)?;
//! assert_eq!(trace.length().seconds(), 2.0);
//! assert_eq!(trace.rate().map(|column| column[1].1.to_string()), Some("2.5mbit".into()));
//! # Ok::<(), narrows_scenario::ScenarioError>(())
//! ```

mod alphartc;
mod column;
mod columns;
mod csv;
mod date;
mod described;
mod fcc;
mod format;
mod genet;
mod info;
mod iperf3;
mod iperf_text;
mod json;
mod json_rows;
pub(crate) mod light;
mod look;
mod lumos5g;
mod mahimahi;
mod mm_link;
mod names;
mod netem_trace;
mod norway;
mod ntrace;
mod nyu_mets;
mod oboe;
mod pattern;
mod pensieve;
mod ping;
mod registry;
mod resample;
mod sabre;
mod sigcomm21_5g;
mod speedtest_cli;
mod table;
mod theaterq;
mod ucc;
mod unknown;

use std::fmt;
use std::sync::Arc;

use narrows_core::queue::Bound;
use narrows_core::{Duration, Probability, Rate, Time};

pub use columns::Columns;
pub use format::{CannotWrite, Format};
pub use info::{ColumnInfo, Outage, TraceInfo};
pub use registry::Written;

use crate::problem::{ScenarioError, one_of};
pub use crate::source::MOST_POINTS;
use crate::source::Source;

/// A millisecond in nanoseconds.
const MILLISECOND: u64 = 1_000_000;

/// Bytes per opportunity of a mahimahi trace.
pub const OPPORTUNITY: u64 = 1504;

/// Values, each with the instant at which it takes effect. Instants increase; the first one is zero.
pub type Column<T> = Vec<(Time, T)>;

/// A complete column, shared by all links that follow the trace.
pub(crate) use narrows_core::steps::Points;

/// The behaviour of a link over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    format: Format,
    length: Duration,
    then: Then,
    pub(crate) rate: Option<Points<Rate>>,
    pub(crate) opportunities: Option<Arc<[Time]>>,
    pub(crate) delay: Option<Points<Duration>>,
    pub(crate) loss: Option<Points<Probability>>,
    pub(crate) duplicate: Option<Points<Probability>>,
    pub(crate) bound: Option<Points<Bound>>,
    remarks: Vec<String>,
}

/// How a file is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reading {
    /// As its name and content say.
    Detected,
    Format(Format),
    Columns(Box<Columns>),
}

/// What happens after the end of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    /// The trace repeats.
    Loop,
    /// The last values stay.
    #[default]
    Hold,
    /// The link's settings without the trace apply.
    End,
}

impl Trace {
    /// The names of all columns; `rate` includes opportunities.
    pub const COLUMNS: [&str; 5] = ["rate", "delay", "loss", "duplicate", "queue"];

    /// Parses a trace. `name` is that of the file, for errors and to guess the format if none is given.
    ///
    /// # Errors
    /// If the file is invalid: the error has the line, what was found there, and what is allowed.
    pub fn read(name: &str, bytes: &[u8], format: Option<Format>) -> Result<Self, ScenarioError> {
        Source::read(name, bytes, |source| {
            let format = match format {
                Some(format) => format,
                None => Format::guess(name, source)?,
            };
            (format.0.read)(source)
        })
    }

    /// Parses a table of measurements, or JSON objects, of which these columns make the trace. `name` is that of the
    /// file, for errors.
    ///
    /// # Errors
    /// If the file is invalid, or has no such column.
    pub fn read_columns(name: &str, bytes: &[u8], columns: &Columns) -> Result<Self, ScenarioError> {
        Source::read(name, bytes, |source| {
            let json = json_rows::read_columns(source, columns);
            json.unwrap_or_else(|| table::read(source, columns, Format::CSV))
        })
    }

    /// Parses a trace as said: by its columns, by its format, or as its name and content say.
    pub(crate) fn read_as(name: &str, bytes: &[u8], reading: &Reading) -> Result<Self, ScenarioError> {
        match reading {
            Reading::Columns(columns) => Self::read_columns(name, bytes, columns),
            Reading::Format(format) => Self::read(name, bytes, Some(*format)),
            Reading::Detected => Self::read(name, bytes, None),
        }
    }

    /// An empty trace, to which columns are added.
    fn new(format: Format, length: Duration) -> Self {
        Self {
            format,
            length,
            then: Then::default(),
            rate: None,
            opportunities: None,
            delay: None,
            loss: None,
            duplicate: None,
            bound: None,
            remarks: Vec::new(),
        }
    }

    /// A trace from measurements: a delay and a loss probability for each interval, starting at zero.
    /// `None` if there are no intervals or the length is zero.
    pub fn measured(
        delay: Column<Duration>,
        loss: Column<Probability>,
        length: Duration,
        remark: impl Into<String>,
    ) -> Option<Self> {
        let starts = |at: Option<Time>| at == Some(Time::ZERO);
        let whole = starts(delay.first().map(|point| point.0)) && starts(loss.first().map(|point| point.0));
        if !whole || length == Duration::ZERO {
            return None;
        }
        let mut trace = Self::new(Format::CSV, length);
        trace.delay = Some(column::points(delay));
        trace.loss = Some(column::points(loss));
        trace.remarks.push(remark.into());
        Some(trace)
    }

    /// The names of its columns, out of [`Trace::COLUMNS`].
    pub fn columns(&self) -> Vec<&'static str> {
        let there = [
            self.rate.is_some() || self.opportunities.is_some(),
            self.delay.is_some(),
            self.loss.is_some(),
            self.duplicate.is_some(),
            self.bound.is_some(),
        ];
        Self::COLUMNS.into_iter().zip(there).filter_map(|(name, is_there)| is_there.then_some(name)).collect()
    }

    /// The trace with these columns only.
    ///
    /// # Errors
    /// If a name is not in [`Trace::COLUMNS`], or the trace does not have that column.
    pub fn only(&self, names: &[&str]) -> Result<Self, String> {
        let there = self.columns();
        for name in names {
            if !Self::COLUMNS.contains(name) {
                return Err(format!("`{name}` is none of {}", one_of(&Self::COLUMNS)));
            }
            if !there.contains(name) {
                return Err(format!("the trace has no column `{name}`"));
            }
        }
        let mut trace = self.clone();
        let drop = |name| !names.contains(&name);
        if drop("rate") {
            (trace.rate, trace.opportunities) = (None, None);
        }
        trace.delay.take_if(|_| drop("delay"));
        trace.loss.take_if(|_| drop("loss"));
        trace.duplicate.take_if(|_| drop("duplicate"));
        trace.bound.take_if(|_| drop("queue"));
        Ok(trace)
    }

    /// The format of its file.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Its length, or its period if it repeats. Above zero.
    pub const fn length(&self) -> Duration {
        self.length
    }

    /// Default for what happens after its end: traces of mahimahi (and its logs), Pensieve, Sabre and AlphaRTC and endless
    /// patterns repeat, all others hold their last values.
    pub const fn then(&self) -> Then {
        self.then
    }

    /// Rate in bits per second.
    pub fn rate(&self) -> Option<&[(Time, Rate)]> {
        self.rate.as_deref()
    }

    /// The instants at which [`OPPORTUNITY`] bytes may pass, instead of a rate. Unused ones are lost.
    /// Several may be at one instant; the last one is at [`Trace::length`].
    pub fn opportunities(&self) -> Option<&[Time]> {
        self.opportunities.as_deref()
    }

    /// One-way propagation delay.
    pub fn delay(&self) -> Option<&[(Time, Duration)]> {
        self.delay.as_deref()
    }

    /// Share of packets lost on the wire.
    pub fn loss(&self) -> Option<&[(Time, Probability)]> {
        self.loss.as_deref()
    }

    /// Share of packets duplicated.
    pub fn duplicate(&self) -> Option<&[(Time, Probability)]> {
        self.duplicate.as_deref()
    }

    /// Queue bound.
    pub fn bound(&self) -> Option<&[(Time, Bound)]> {
        self.bound.as_deref()
    }

    /// Content of the file that a trace cannot express, and assumptions made.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }
}

impl Then {
    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Hold => "hold",
            Self::End => "end",
        }
    }
}

impl fmt::Display for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
