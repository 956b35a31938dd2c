//! Two runs side by side: the totals of their reports, and the means of their series with confidence intervals.
//!
//! Links are matched by name. Totals are what each run counted, and say nothing about chance. Means come from the intervals
//! of the series, by [batch means](crate::statistics::BatchMeans).

mod means;
mod text;
mod totals;

use std::collections::BTreeMap;

use narrows_core::Duration;
use narrows_report::human::run_span;
use narrows_report::{LinkInterval, Report};
use serde::Serialize;

use means::Means;
use totals::Totals;

/// The confidence of all intervals.
const CONFIDENCE: f64 = 0.95;

/// What is known of a run: its report, its series, or both.
#[derive(Clone, Debug, Default)]
pub struct RunData {
    /// What errors and the text call it.
    pub name: String,
    /// Its report.
    pub report: Option<Report>,
    /// The rows of each of its links.
    pub series: Option<BTreeMap<String, Vec<LinkInterval>>>,
}

/// How series are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunComparisonOptions {
    /// Intervals that start earlier are left out: the warm-up.
    pub from: Option<Duration>,
    /// Intervals that end later are left out.
    pub to: Option<Duration>,
    /// Whether batches of the same instants are compared with one another.
    pub paired: bool,
}

/// Why two runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum RunComparisonError {
    /// One has what the other has not.
    #[error("{a} is {a_kind}, {b} is {b_kind}: give the same of both runs")]
    Kinds {
        /// The first run.
        a: String,
        /// What is known of it.
        a_kind: &'static str,
        /// The second run.
        b: String,
        /// What is known of it.
        b_kind: &'static str,
    },
    /// An option is for series.
    #[error(
        "--from, --to and --paired select intervals of series, and these are reports: add the series of both runs, as in a.json,a.csv"
    )]
    NoSeries,
    /// No interval can lie between.
    #[error("--from {} is not before --to {}", run_span(from.nanos()), run_span(to.nanos()))]
    EmptySpan {
        /// What was given.
        from: Duration,
        /// What was given.
        to: Duration,
    },
    /// They have no link in common.
    #[error("{a} and {b} have no link in common: {} and {}", few(a_links), few(b_links))]
    NoCommonLink {
        /// The first run.
        a: String,
        /// Its links.
        a_links: Vec<String>,
        /// The second run.
        b: String,
        /// Its links.
        b_links: Vec<String>,
    },
    /// Rows of two runs, or in no order.
    #[error(
        "{run}: an interval of {link} starts before the one before it has ended: are there several runs in the file?"
    )]
    Overlap {
        /// The run.
        run: String,
        /// The link.
        link: String,
    },
    /// A mean of one value has no interval.
    #[error(
        "{run}: {found} of {link} to compare; at least 2 are needed and 10 or more are useful: a longer run, or a shorter --interval, has more"
    )]
    TooFew {
        /// The run.
        run: String,
        /// The link.
        link: String,
        /// How many there are.
        found: String,
    },
    /// Pairs are of the same instants.
    #[error(
        "--paired: the intervals of {link} differ: {a_intervals} in {a}, {b_intervals} in {b}; without --paired they can be compared"
    )]
    OtherIntervals {
        /// The link.
        link: String,
        /// The first run.
        a: String,
        /// Its intervals, in words.
        a_intervals: String,
        /// The second run.
        b: String,
        /// Its intervals, in words.
        b_intervals: String,
    },
}

/// The names of some links, of many the first.
fn few(links: &[String]) -> String {
    const MOST: usize = 6;
    match links {
        [] => "none".into(),
        all if all.len() <= MOST => all.join(", "),
        all => format!("{}, … ({} in all)", all[..MOST].join(", "), all.len()),
    }
}

/// What two runs have in common, and by what they differ.
#[derive(Clone, Debug, Serialize)]
pub struct RunComparison {
    a: Head,
    b: Head,
    totals: Option<Totals>,
    series: Option<Means>,
    /// What a reader should know before drawing conclusions.
    notes: Vec<String>,
}

/// A run in one line.
#[derive(Clone, Debug, Serialize)]
struct Head {
    name: String,
    title: Option<String>,
    seed: Option<u64>,
    duration_ns: Option<u64>,
}

impl Head {
    fn new(run: &RunData) -> Self {
        let report = run.report.as_ref();
        Self {
            name: run.name.clone(),
            title: report.map(|report| report.title.clone()),
            seed: report.map(|report| report.seed),
            duration_ns: report.map(|report| report.end_ns.saturating_sub(report.start_ns)),
        }
    }
}

/// A value of each run, and the second minus the first.
#[derive(Clone, Copy, Debug, Serialize)]
struct Values<T> {
    a: Option<T>,
    b: Option<T>,
    change: Option<T>,
    /// Of the first; none where that is zero.
    change_share: Option<f64>,
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Packets,
    Share,
    Rate,
    Span,
}

/// Compares two runs.
///
/// # Errors
/// When they have nothing in common, or too little for an interval.
pub fn compare_runs(
    a: &RunData,
    b: &RunData,
    options: &RunComparisonOptions,
) -> Result<RunComparison, RunComparisonError> {
    let kind = |run: &RunData| match (&run.report, &run.series) {
        (Some(_), Some(_)) => "a report and a series",
        (Some(_), None) => "a report",
        _ => "a series",
    };
    if kind(a) != kind(b) {
        let (a_kind, b_kind) = (kind(a), kind(b));
        return Err(RunComparisonError::Kinds { a: a.name.clone(), a_kind, b: b.name.clone(), b_kind });
    }
    if a.series.is_none() && (options.from.is_some() || options.to.is_some() || options.paired) {
        return Err(RunComparisonError::NoSeries);
    }
    if let (Some(from), Some(to)) = (options.from, options.to)
        && from >= to
    {
        return Err(RunComparisonError::EmptySpan { from, to });
    }
    let totals = match (&a.report, &b.report) {
        (Some(first), Some(second)) => Some(Totals::new((a, first), (b, second))?),
        _ => None,
    };
    let series = match (&a.series, &b.series) {
        (Some(first), Some(second)) => Some(Means::new((a, first), (b, second), options)?),
        _ => None,
    };
    let (first, second) = (Head::new(a), Head::new(b));
    let notes = notes(&first, &second, series.as_ref(), options);
    Ok(RunComparison { a: first, b: second, totals, series, notes })
}

fn notes(a: &Head, b: &Head, series: Option<&Means>, options: &RunComparisonOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(first), Some(second)) = (a.duration_ns, b.duration_ns)
        && first != second
    {
        let (first, second) = (run_span(first), run_span(second));
        notes.push(format!(
            "the runs took {first} and {second}: compare rates and shares, not numbers of packets"
        ));
    }
    let Some(series) = series else { return notes };
    let seeds = a.seed.zip(b.seed);
    if seeds.is_some() && (options.from.is_some() || options.to.is_some()) {
        notes.push("the totals are of the whole runs: --from and --to select intervals of the series".into());
    }
    match (options.paired, seeds.map(|(first, second)| first == second)) {
        (true, Some(false)) => {
            notes.push("the seeds differ: pairs of batches have no more in common than others".into())
        }
        (false, Some(true)) if series.same_intervals => {
            notes.push(
                "the seed and the intervals are the same: if the traffic is as well, --paired gives narrower intervals".into(),
            );
        }
        _ => {}
    }
    notes.extend(series.few_batches());
    notes
}

#[cfg(test)]
mod tests;
