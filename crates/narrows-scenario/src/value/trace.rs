//! Traces that a link follows: `"cell.down"`, or `{ file = "cell.csv", format = "csv", then = "loop", start
//! = "30s" }`.

mod columns;

pub use columns::TraceColumns;

use std::sync::Arc;

use narrows_core::model::{DelaySteps, LossSteps, Selector};
use narrows_core::queue::Bound;
use narrows_core::service::{Opportunities, RateSteps, ServiceCurve};
use narrows_core::steps::{After, Steps};
use narrows_core::{Bytes, Duration, Probability, Rate, Time as Instant};
use serde_json::json;

use crate::files::NamedFile;
use crate::keys::compound::{Group, Short};
use crate::keys::kind::{ByHand, Choice, Given, Like, Or, text, words_of};
use crate::keys::quantity::Time;
use crate::keys::{Form, Keyed, Row, row};
use crate::node::Node;
use crate::problem::{Found, Problem};
use crate::trace::{Format, OPPORTUNITY, Points, Reading, Then, Trace};
use crate::value::condition::Surroundings;
use crate::value::file::{self, FILE};

/// A link's use of a trace. Its columns replace the link's rate, delay, loss on the wire, duplication and
/// queue bound.
#[derive(Clone, Debug)]
pub struct TraceUse {
    /// The file.
    pub file: NamedFile,
    /// The parsed trace.
    pub trace: Arc<Trace>,
    /// The format, if given.
    pub format: Option<Format>,
    /// What happens after its end.
    pub then: Then,
    /// Offset into the trace at which the link starts.
    pub start: Duration,
    /// The columns that the link follows, if given; `None` for all columns of the file.
    pub columns: Option<TraceColumns>,
    /// Instant of the run at which the link starts to follow it: when the trace was set.
    pub begins: Instant,
}

/// Uses are equal if their files, settings and start instants are.
impl PartialEq for TraceUse {
    fn eq(&self, other: &Self) -> bool {
        let key = |of: &Self| (of.format, of.then, of.start, of.begins);
        key(self) == key(other) && self.columns == other.columns && self.file == other.file
    }
}

const THEN: Choice<Then> = Choice {
    what: "value of `then`",
    choices: &[("loop", Then::Loop), ("hold", Then::Hold), ("end", Then::End)],
};
const FORMAT: ByHand<Format> = ByHand {
    words: || words_of(Format::names().into_iter()),
    schema: |_| json!({ "enum": Format::names() }),
    read: |node, _| {
        node.choice("format", &Format::ALL.iter().map(|format| (format.name(), *format)).collect::<Vec<_>>())
    },
    write: |format| Some(text(format)),
};

/// The keys of its table.
#[derive(Default)]
pub(crate) struct Parts {
    file: Option<NamedFile>,
    format: Option<Format>,
    then: Option<Then>,
    start: Duration,
    columns: Option<TraceColumns>,
}

impl Keyed for Parts {
    const ROWS: &'static [Row<Self>] = &[
        row!("file", file, FILE, "Trace file; `trace = \"cell.down\"` is short for a table with only this key.")
            .required(),
        row!("format", format, Given(FORMAT), "File format.").default("by its name and content"),
        row!(
            "then",
            then,
            Given(THEN),
            "After the end of the trace: repeat, keep the last values, or return to the link's own values."
        )
        .default("`\"loop\"` for mahimahi and mm-link, Pensieve, Sabre, AlphaRTC and endless patterns, else `\"hold\"`"),
        row!("start", start, Time::ANY, "Offset into the trace at which the link starts."),
        row!(
            "columns",
            columns,
            Given(columns::COLUMNS),
            "Columns to use: any of `rate`, `delay`, `loss`, `duplicate` and `queue`; the link's keys provide the rest. As a table, [which columns of any CSV](traces.md#any-csv) they are: `{ time = \"ts\", rate = \"dl\", unit = \"mbit\" }`."
        )
        .default("all that the file has"),
    ];
}

const PARTS: Short<Parts> = Short {
    key: "file",
    words: "name of a file",
    table: Group::new(
        "TraceParts",
        "A trace, and how it is used.",
        "{ file = \"path.csv\", then = \"loop\" }",
    ),
};

/// A trace name, or a table with it.
pub(crate) const TRACE: Or<Like<Short<Parts>, TraceUse>> = Or(
    "none",
    Like {
        kind: PARTS,
        read: TraceUse::read,
        write: |used| {
            let then = Some(used.then).filter(|then| *then != used.trace.then());
            let TraceUse { file, format, start, columns, .. } = used.clone();
            PARTS.write(&Parts { file: Some(file), format, then, start, columns })
        },
    },
);

impl TraceUse {
    fn read(node: &Node, around: Surroundings<'_>) -> Result<Self, Problem> {
        let Parts { format, then, start, columns, .. } = PARTS.read(node, around)?;
        let reading = match (&columns, format) {
            (Some(TraceColumns::Named(_)), Some(format)) if format != Format::CSV => {
                let problem = Problem::new(format!("named columns are those of a CSV file, not of {format}"));
                return Err(problem.at(&node.span).inside("columns"));
            }
            (Some(TraceColumns::Named(columns)), _) => Reading::Columns(Box::new(columns.clone())),
            (_, Some(format)) => Reading::Format(format),
            (_, None) => Reading::Detected,
        };
        let (file, mut trace) = around.files.trace(file::place(node), reading)?;
        if let Some(TraceColumns::Only(columns)) = &columns {
            let only = trace.only(columns);
            trace = Arc::new(only.map_err(|why| Problem::new(why).at(&node.span).inside("columns"))?);
        }
        let then = then.unwrap_or(trace.then());
        if start >= trace.length() && then != Then::Loop {
            let title =
                format!("the trace {} ends at {}, but `start` is {start}", Found(&file.name), trace.length());
            return Err(Problem::new(title).at(&node.span).inside("start"));
        }
        Ok(Self { file, trace, format, then, start, columns, begins: around.at })
    }

    /// A copy without these columns; `None` if no column is left.
    pub(crate) fn without(&self, names: &[&str]) -> Option<Self> {
        let columns = self.trace.columns();
        let left: Vec<_> = columns.iter().copied().filter(|name| !names.contains(name)).collect();
        if left.len() == columns.len() {
            return Some(self.clone());
        }
        let trace = self.trace.only(&left).ok().filter(|_| !left.is_empty())?;
        let columns = match &self.columns {
            Some(TraceColumns::Named(columns)) => TraceColumns::Named(columns.only(&left)),
            _ => TraceColumns::Only(left),
        };
        Some(Self { trace: Arc::new(trace), columns: Some(columns), ..self.clone() })
    }

    /// Whether it has a rate.
    pub fn has_rate(&self) -> bool {
        self.trace.rate().is_some() || self.trace.opportunities().is_some()
    }

    /// The engine's rate service, if the trace has a rate. `otherwise` is the rate after the end, if it
    /// ends.
    pub(crate) fn service(&self, otherwise: Rate) -> Option<Box<dyn ServiceCurve>> {
        if let Some(instants) = &self.trace.opportunities {
            let opportunities =
                Opportunities::new(instants.clone(), Bytes::new(OPPORTUNITY), self.after(otherwise));
            let opportunities = opportunities.expect("a trace's opportunities are in order");
            return Some(Box::new(opportunities.starting(self.begins, self.start)));
        }
        Some(Box::new(RateSteps::new(self.steps(self.trace.rate.as_ref()?, otherwise))))
    }

    /// The engine's propagation delays, if the trace has delays.
    pub(crate) fn delay(&self, otherwise: Duration) -> Option<DelaySteps> {
        Some(DelaySteps::new(self.steps(self.trace.delay.as_ref()?, otherwise)))
    }

    /// The engine's loss on the wire, if the trace has loss.
    pub(crate) fn loss(&self, otherwise: Probability) -> Option<LossSteps> {
        Some(LossSteps::new(self.steps(self.trace.loss.as_ref()?, otherwise)))
    }

    /// The engine's duplication, if the trace has it.
    pub(crate) fn duplication(&self, otherwise: Probability) -> Option<Box<dyn Selector>> {
        Some(Box::new(LossSteps::new(self.steps(self.trace.duplicate.as_ref()?, otherwise))))
    }

    /// The queue bound over time, if the trace has it.
    pub(crate) fn bound(&self, otherwise: Bound) -> Option<Steps<Bound>> {
        Some(self.steps(self.trace.bound.as_ref()?, otherwise))
    }

    fn steps<T>(&self, points: &Points<T>, otherwise: T) -> Steps<T> {
        let steps = Steps::shared(points.clone(), self.after(otherwise));
        steps.expect("a trace's columns are in order").starting(self.begins, self.start)
    }

    fn after<T>(&self, otherwise: T) -> After<T> {
        match self.then {
            Then::Loop => After::Loop(self.trace.length()),
            Then::Hold => After::Hold,
            Then::End => After::End(self.trace.length(), otherwise),
        }
    }

    /// Mean rate over the trace; `None` if it has no rate or is unlimited at times.
    pub fn mean_rate(&self) -> Option<Rate> {
        let seconds = self.trace.length().seconds();
        let bits = match (self.trace.opportunities(), self.trace.rate()) {
            (Some(instants), _) => instants.len() as f64 * (OPPORTUNITY * 8) as f64,
            (None, Some(rates)) if rates.iter().all(|(_, rate)| *rate != Rate::UNLIMITED) => {
                self.over_time(rates, |rate| rate.bits_per_second() as f64)
            }
            _ => return None,
        };
        Some(Rate::from_bits_per_second((bits / seconds + 0.5) as u64))
    }

    /// Mean delay over the trace, if it has delays.
    pub fn mean_delay(&self) -> Option<Duration> {
        let nanos =
            self.over_time(self.trace.delay()?, |delay| delay.nanos() as f64) / self.trace.length().seconds();
        Some(Duration::from_nanos((nanos + 0.5) as u64))
    }

    /// Largest delay, if it has delays.
    pub fn longest_delay(&self) -> Option<Duration> {
        self.trace.delay()?.iter().map(|(_, delay)| *delay).max()
    }

    /// Mean loss of evenly spaced packets, if it has loss.
    pub fn mean_loss(&self) -> Option<f64> {
        Some(self.over_time(self.trace.loss()?, |loss| loss.as_f64()) / self.trace.length().seconds())
    }

    /// The integral over the trace, in seconds.
    fn over_time<T>(&self, column: &[(Instant, T)], of: impl Fn(&T) -> f64) -> f64 {
        let end = Instant::ZERO + self.trace.length();
        let ends = column.iter().skip(1).map(|(at, _)| *at).chain([end]);
        column.iter().zip(ends).map(|((at, value), end)| of(value) * end.since(*at).seconds()).sum()
    }

    /// For display: its columns, its length, and what happens after its end.
    pub(crate) fn words(&self) -> String {
        let trace = &self.trace;
        let columns: Vec<&str> = [
            ("rate", trace.rate().is_some()),
            ("opportunities of 1504 bytes", trace.opportunities().is_some()),
            ("delay", trace.delay().is_some()),
            ("loss", trace.loss().is_some()),
            ("duplicates", trace.duplicate().is_some()),
            ("queue bound", trace.bound().is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_there)| is_there.then_some(name))
        .collect();
        let then = match self.then {
            Then::Loop => "then repeats",
            Then::Hold => "then keeps its last values",
            Then::End => "then the link's own values apply",
        };
        let mut words = format!("{}: {} for {}, {then}", self.file.name, columns.join(", "), trace.length());
        if let Some(share) = self.mean_loss().filter(|share| *share > 0.0) {
            words += &format!("; loses {:.2} % on average", share * 100.0);
        }
        if self.start > Duration::ZERO {
            words += &format!("; starts {} into it", self.start);
        }
        words
    }
}
