//! What two series come to on average, with confidence intervals.

use std::collections::BTreeMap;

use narrows_report::LinkInterval;
use narrows_report::human::{count, run_span};
use serde::{Serialize, Serializer};

use super::{CONFIDENCE, RunComparisonError, RunComparisonOptions, RunData, Unit, Values};
use crate::statistics::{BatchMeans, Batching, Interval, Part};

/// With fewer batches an interval is rough.
const FEW_BATCHES: usize = 10;

type Links = BTreeMap<String, Vec<LinkInterval>>;

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Means {
    confidence: f64,
    pub(super) paired: bool,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
    /// Whether all links in common have the same intervals in both runs.
    pub(super) same_intervals: bool,
    pub(super) links: Vec<Link>,
    pub(super) only_a: Vec<String>,
    pub(super) only_b: Vec<String>,
}

/// A link of both runs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Link {
    pub(super) link: String,
    pub(super) a: Used,
    pub(super) b: Used,
    throughput_bps: Compared,
    backlog_packets: Compared,
    sojourn_mean_ns: Compared,
    dropped_share: Compared,
}

/// What of a series was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Used {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) batches: usize,
    pub(super) batch_intervals: usize,
}

/// A mean of both runs.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Compared {
    #[serde(flatten)]
    pub(super) values: Values<Ends>,
    /// Whether the interval of the change has no zero.
    pub(super) differs: bool,
}

/// An interval, for a program by its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends(pub(super) Interval);

impl Serialize for Ends {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields {
            mean: f64,
            low: f64,
            high: f64,
        }
        Fields { mean: self.0.mean, low: self.0.low(), high: self.0.high() }.serialize(to)
    }
}

impl Link {
    /// For a table.
    pub(super) fn rows(&self) -> [(&'static str, Unit, Compared); 4] {
        [
            ("throughput", Unit::Rate, self.throughput_bps),
            ("backlog", Unit::Packets, self.backlog_packets),
            ("time in queue", Unit::Span, self.sojourn_mean_ns),
            ("dropped, share", Unit::Share, self.dropped_share),
        ]
    }
}

/// Which is counted, and what it is divided by. Nothing for an interval without it.
type Quantity = fn(&LinkInterval) -> Option<Part>;

fn throughput(row: &LinkInterval) -> Option<Part> {
    let seconds = row.seconds();
    row.throughput_bps.map(|bps| Part { sum: bps as f64 * seconds, weight: seconds })
}

fn backlog(row: &LinkInterval) -> Option<Part> {
    let seconds = row.seconds();
    Some(Part { sum: row.backlog_packets as f64 * seconds, weight: seconds })
}

/// A series has no number of the packets that began to be sent: intervals weigh by the bits sent in them.
fn sojourn(row: &LinkInterval) -> Option<Part> {
    let bits = row.throughput_bps? as f64 * row.seconds();
    row.sojourn_mean_ns.map(|nanos| Part { sum: nanos as f64 * bits, weight: bits })
}

fn dropped(row: &LinkInterval) -> Option<Part> {
    let offered = row.offered_packets?;
    Some(Part { sum: row.dropped_packets as f64, weight: offered as f64 })
}

impl Means {
    pub(super) fn new(
        (a_run, a): (&RunData, &Links),
        (b_run, b): (&RunData, &Links),
        options: &RunComparisonOptions,
    ) -> Result<Self, RunComparisonError> {
        let only = |all: &Links, other: &Links| -> Vec<String> {
            all.keys().filter(|name| !other.contains_key(*name)).cloned().collect()
        };
        let common: Vec<_> = a.iter().filter_map(|(name, rows)| Some((name, rows, b.get(name)?))).collect();
        if common.is_empty() {
            return Err(RunComparisonError::NoCommonLink {
                a: a_run.name.clone(),
                a_links: a.keys().cloned().collect(),
                b: b_run.name.clone(),
                b_links: b.keys().cloned().collect(),
            });
        }
        let (mut links, mut same_intervals) = (Vec::new(), true);
        for (name, first, second) in common {
            let first = selected(a_run, name, first, options)?;
            let second = selected(b_run, name, second, options)?;
            let instants =
                |rows: &[LinkInterval]| rows.iter().map(|row| (row.start_ns, row.end_ns)).collect::<Vec<_>>();
            let same = instants(first) == instants(second);
            if options.paired && !same {
                return Err(RunComparisonError::OtherIntervals {
                    link: name.clone(),
                    a: a_run.name.clone(),
                    a_intervals: in_words(first),
                    b: b_run.name.clone(),
                    b_intervals: in_words(second),
                });
            }
            same_intervals &= same;
            let compared = |quantity| compared(first, second, quantity, options.paired);
            links.push(Link {
                link: name.clone(),
                a: Used::of(first),
                b: Used::of(second),
                throughput_bps: compared(throughput),
                backlog_packets: compared(backlog),
                sojourn_mean_ns: compared(sojourn),
                dropped_share: compared(dropped),
            });
        }
        Ok(Self {
            confidence: CONFIDENCE,
            paired: options.paired,
            from_ns: options.from.map(|from| from.nanos()),
            to_ns: options.to.map(|to| to.nanos()),
            same_intervals,
            links,
            only_a: only(a, b),
            only_b: only(b, a),
        })
    }

    /// A warning, where there are too few batches.
    pub(super) fn few_batches(&self) -> Option<String> {
        let fewest = self.links.iter().map(|link| link.a.batches.min(link.b.batches)).min()?;
        (fewest < FEW_BATCHES).then(|| {
            format!("only {fewest} batches: the intervals are rough; a longer run or a shorter --interval makes more, up to 20")
        })
    }

    /// Whether no interval of a change is without zero.
    pub(super) fn is_same(&self) -> bool {
        self.links.iter().all(|link| link.rows().iter().all(|(_, _, compared)| !compared.differs))
    }
}

impl Used {
    fn of(rows: &[LinkInterval]) -> Self {
        let batching = Batching::of(rows.len());
        Self {
            start_ns: rows[batching.left_out(rows.len())].start_ns,
            end_ns: rows[rows.len() - 1].end_ns,
            batches: batching.batches,
            batch_intervals: batching.length,
        }
    }
}

/// The rows between `from` and `to`, two at least.
fn selected<'a>(
    run: &RunData,
    link: &str,
    rows: &'a [LinkInterval],
    options: &RunComparisonOptions,
) -> Result<&'a [LinkInterval], RunComparisonError> {
    if rows.windows(2).any(|pair| pair[1].start_ns < pair[0].end_ns) {
        return Err(RunComparisonError::Overlap { run: run.name.clone(), link: link.to_owned() });
    }
    let (from, to) =
        (options.from.map_or(0, |from| from.nanos()), options.to.map_or(u64::MAX, |to| to.nanos()));
    let first = rows.partition_point(|row| row.start_ns < from);
    let last = rows.partition_point(|row| row.end_ns <= to).max(first);
    let rows = &rows[first..last];
    if rows.len() < 2 {
        let found = match rows.len() {
            0 => "no interval".into(),
            one => format!("{one} interval"),
        };
        return Err(RunComparisonError::TooFew { run: run.name.clone(), link: link.to_owned(), found });
    }
    Ok(rows)
}

/// `100 of 100 ms from 0`.
fn in_words(rows: &[LinkInterval]) -> String {
    let first = &rows[0];
    let (length, start) = (first.end_ns - first.start_ns, first.start_ns);
    format!("{} of {} from {}", count(rows.len() as u64), run_span(length), run_span(start))
}

fn compared(a: &[LinkInterval], b: &[LinkInterval], quantity: Quantity, paired: bool) -> Compared {
    let means = |rows: &[LinkInterval]| {
        BatchMeans::new(&rows.iter().map(|row| quantity(row).unwrap_or_default()).collect::<Vec<_>>())
    };
    let (a, b) = (means(a), means(b));
    let change = a.as_ref().zip(b.as_ref()).map(|(a, b)| match paired {
        true => a.paired_difference_to(b, CONFIDENCE).expect("the intervals are the same"),
        false => a.difference_to(b, CONFIDENCE),
    });
    let relative = a.as_ref().zip(change).filter(|(a, _)| a.mean() != 0.0);
    let change_share = relative.map(|(a, change)| change.mean / a.mean());
    // What is left of rounding is no difference.
    let noise = a.as_ref().map_or(0.0, |a| a.mean().abs() * 1e-12);
    let differs = change.is_some_and(|change| change.excludes_zero() && change.mean.abs() > noise);
    let of = |means: Option<BatchMeans>| means.map(|means| Ends(means.interval(CONFIDENCE)));
    Compared { values: Values { a: of(a), b: of(b), change: change.map(Ends), change_share }, differs }
}
