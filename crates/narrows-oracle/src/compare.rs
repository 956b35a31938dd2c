//! A case's runs held beside one another.

use std::collections::BTreeMap;

use narrows_sim::ReplayResult;
use serde::Serialize;

use crate::case::{Bound, Case};
use crate::codel::{self, Law};
use crate::guest::Observed;
use crate::statistics::{Mean, STANDARD_ERRORS, distance, distance_by_chance};
use crate::trace::Trace;

/// How far the live run may be from the engine in virtual time, in nanoseconds: each time that the packet loop looks at the
/// guest's clock, that moves by 16 ns or a few more.
pub const LIVE: u64 = 500;

/// By how many more or fewer may be lost, or marked, of the first so many, where neighbours are in place of one another: several
/// such pairs may be open at once. Of some dozen runs two had 3, with PIE.
const NEIGHBOURS: usize = 4;

/// A figure of both, and whether they are near enough.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What is compared.
    pub what: &'static str,
    /// With the kernel.
    pub kernel: String,
    /// With narrows.
    pub narrows: String,
    /// How far they are apart.
    pub apart: String,
    /// How far they may be.
    pub bound: String,
    /// Whether they are no farther apart than that.
    pub holds: bool,
}

/// What came of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The case's name.
    pub case: &'static str,
    /// What tc was told.
    pub tc: Vec<&'static str>,
    /// How narrows was told.
    pub ours: String,
    /// How many datagrams were sent.
    pub packets: usize,
    /// Its figures.
    pub rows: Vec<Row>,
    /// Why the two differ by as much as they do.
    pub explanation: &'static str,
}

impl Outcome {
    /// Whether all figures are near enough.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.holds)
    }
}

/// Holds the kernel's run beside the engine's, `kernel_model` having been fed with its instants, the live run beside
/// `live_model`, which was fed with those of that run, and its log beside its replay.
pub fn compare(
    case: &Case,
    observed: &Observed,
    kernel_model: &Trace,
    live_model: &Trace,
    replayed: &ReplayResult,
) -> Outcome {
    let mut rows = rows(case, &observed.kernel, kernel_model);
    rows.push(live_row(&observed.live, live_model));
    rows.push(replay_row(replayed));
    Outcome {
        case: case.name,
        tc: case.tc.clone(),
        ours: case.ours.words(),
        packets: case.traffic.len(),
        rows,
        explanation: case.explanation,
    }
}

/// Holds the kernel's run beside the engine's.
pub fn rows(case: &Case, kernel: &Trace, ours: &Trace) -> Vec<Row> {
    case.bounds.iter().map(|bound| row(case, *bound, kernel, ours)).collect()
}

fn row(case: &Case, bound: Bound, kernel: &Trace, ours: &Trace) -> Row {
    // Datagrams before this one are on the way to the steady state.
    let first = case.traffic.partition_point(|datagram| datagram.at < case.steady_from) as u32;
    match bound {
        Bound::Delay(most, others) => {
            let (theirs, ours) = (kernel.delays(), ours.delays());
            let both = theirs.iter().filter_map(|(number, at)| Some((*at, *ours.get(number)?)));
            let mut apart: Vec<u64> = both.map(|(one, other)| one.abs_diff(other)).collect();
            apart.sort_unstable();
            let beyond = apart.len() - apart.partition_point(|apart| *apart <= most);
            let counted = if beyond <= others { apart.len() - beyond } else { apart.len() };
            let worst = apart[..counted].last().copied().unwrap_or(0);
            let longest =
                |delays: &BTreeMap<u32, u64>| nanoseconds(delays.values().copied().max().unwrap_or(0));
            exact(
                "longest delay; worst of any packet",
                longest(&theirs),
                longest(&ours),
                match beyond {
                    beyond if beyond > 0 && beyond <= others => {
                        format!("{}; {beyond} packets more", nanoseconds(worst))
                    }
                    _ => nanoseconds(worst),
                },
                match others {
                    0 => nanoseconds(most),
                    others => format!("{}; {others} packets more", nanoseconds(most)),
                },
                worst <= most,
            )
        }
        Bound::Service(most) => {
            let (theirs, ours) = (service(case, kernel), service(case, ours));
            let worst = theirs
                .iter()
                .map(|(flow, theirs)| {
                    let ours = ours.get(flow).map_or(&[][..], Vec::as_slice);
                    farthest(theirs, ours).max(farthest(ours, theirs))
                })
                .max()
                .unwrap_or(0);
            let all = |service: &BTreeMap<u16, Vec<(u64, u64)>>| {
                let bytes: u64 =
                    service.values().filter_map(|curve| curve.last()).map(|(_, bytes)| bytes).sum();
                format!("{bytes} bytes")
            };
            exact(
                "bytes of a flow, at any instant",
                all(&theirs),
                all(&ours),
                format!("{worst} bytes"),
                format!("{most} bytes"),
                worst <= most,
            )
        }
        Bound::Fates(most) => {
            let (theirs, ours_delays) = (kernel.delays(), ours.delays());
            let number = case.traffic.len() as u32;
            let apart = (0..number).filter(|n| theirs.contains_key(n) != ours_delays.contains_key(n)).count();
            counted("lost", kernel.lost(), ours.lost(), apart, most)
        }
        Bound::KernelsCodel(parameters, most) => {
            let reckoned = codel::run(&case.traffic, &kernel.sent, parameters, Law::Newton);
            let apart = apart(kernel, &reckoned);
            let words = |trace: &Trace| format!("{} lost, {} marked", trace.lost(), trace.marked());
            let (theirs, reckoned) =
                (words(kernel), format!("{} by the kernel's arithmetic", words(&reckoned)));
            exact(
                "the kernel's own arithmetic",
                theirs,
                reckoned,
                format!("{apart} packets"),
                format!("{most} packets"),
                apart <= most,
            )
        }
        Bound::Losses(most) => {
            let apart = kernel.lost().abs_diff(ours.lost());
            counted("lost in all", kernel.lost(), ours.lost(), apart, most)
        }
        Bound::MarkCount(most) => {
            let apart = kernel.marked().abs_diff(ours.marked());
            counted("marked in all", kernel.marked(), ours.marked(), apart, most)
        }
        Bound::Marks(most) => {
            let marks = |trace: &Trace| -> BTreeMap<u32, bool> {
                trace.came.iter().map(|came| (came.number, came.traffic_class & 3 == 3)).collect()
            };
            let (one, other) = (marks(kernel), marks(ours));
            let apart =
                one.iter().filter(|(n, mark)| other.get(n).is_some_and(|other| other != *mark)).count();
            counted("marked", kernel.marked(), ours.marked(), apart, most)
        }
        Bound::Order(most) => {
            let order = |trace: &Trace| -> Vec<u32> { trace.came.iter().map(|came| came.number).collect() };
            let (one, other) = (order(kernel), order(ours));
            let apart = one.iter().zip(&other).filter(|(one, other)| one != other).count();
            counted("in another place", one.len(), other.len(), apart, most)
        }
        Bound::LostShare => shares("lost", kernel, ours, |trace| {
            let delays = trace.delays();
            (first..trace.sent.len() as u32).map(|n| f64::from(!delays.contains_key(&n))).collect()
        }),
        Bound::LostOfFirst => shares("lost of flow 0", kernel, ours, |trace| {
            let delays = trace.delays();
            let own = (first..trace.sent.len() as u32).filter(|n| case.traffic[*n as usize].flow == 0);
            own.map(|n| f64::from(!delays.contains_key(&n))).collect()
        }),
        Bound::TwiceShare => shares("came twice", kernel, ours, |trace| {
            let mut times = vec![0u32; trace.sent.len()];
            trace.came.iter().for_each(|came| times[came.number as usize] += 1);
            times.iter().map(|times| f64::from(*times > 1)).collect()
        }),
        Bound::MarkedShare => shares("marked", kernel, ours, |trace| {
            let came = trace.came.iter().filter(|came| came.number >= first);
            came.map(|came| f64::from(came.traffic_class & 3 == 3)).collect()
        }),
        Bound::OvertakenShare => shares("overtaken", kernel, ours, |trace| {
            let mut latest = 0;
            let overtaken = trace.came.iter().map(|came| {
                let overtaken = came.number < latest;
                latest = latest.max(came.number);
                f64::from(overtaken)
            });
            overtaken.collect()
        }),
        Bound::MeanDelay => {
            let mean = |trace: &Trace| Mean::of(&milliseconds(trace, first));
            let (one, other) = (mean(kernel), mean(ours));
            let (apart, bound) =
                ((one.mean - other.mean).abs(), STANDARD_ERRORS * one.error_of_difference(other));
            let words = |value: f64| format!("{value:.3} ms");
            exact(
                "mean delay",
                words(one.mean),
                words(other.mean),
                words(apart),
                words(bound),
                apart <= bound,
            )
        }
        Bound::DelayDistribution => {
            let (one, other) = (milliseconds(kernel, first), milliseconds(ours, first));
            let (apart, bound) = (distance(&one, &other), distance_by_chance(one.len(), other.len()));
            let median = |values: &[f64]| {
                let mut values = values.to_vec();
                values.sort_by(f64::total_cmp);
                format!("median {:.3} ms", values.get(values.len() / 2).copied().unwrap_or(0.0))
            };
            exact(
                "delays (Kolmogorov, Smirnov)",
                median(&one),
                median(&other),
                format!("{apart:.4}"),
                format!("{bound:.4}"),
                apart <= bound,
            )
        }
    }
}

/// How many datagrams have another fate in one of two runs, or came with another mark.
pub fn apart(one: &Trace, other: &Trace) -> usize {
    let fates = |trace: &Trace| -> BTreeMap<u32, bool> {
        trace.came.iter().map(|came| (came.number, came.traffic_class & 3 == 3)).collect()
    };
    let (fates_of_one, fates_of_other) = (fates(one), fates(other));
    (0..one.sent.len() as u32).filter(|n| fates_of_one.get(n) != fates_of_other.get(n)).count()
}

/// By how many the datagrams lost, or marked, of the first so many differ in two runs, at worst.
fn astray(one: &Trace, other: &Trace) -> usize {
    let fates = |trace: &Trace| -> BTreeMap<u32, bool> {
        trace.came.iter().map(|came| (came.number, came.traffic_class & 3 == 3)).collect()
    };
    let (fates_of_one, fates_of_other) = (fates(one), fates(other));
    let (mut came, mut marked, mut worst) = (0i64, 0i64, 0);
    for n in 0..one.sent.len() as u32 {
        let (one, other) = (fates_of_one.get(&n), fates_of_other.get(&n));
        came += i64::from(one.is_some()) - i64::from(other.is_some());
        marked += i64::from(one == Some(&true)) - i64::from(other == Some(&true));
        worst = worst.max(came.abs()).max(marked.abs());
    }
    worst as usize
}

fn exact(
    what: &'static str,
    kernel: String,
    narrows: String,
    apart: String,
    bound: String,
    holds: bool,
) -> Row {
    Row { what, kernel, narrows, apart, bound, holds }
}

fn counted(what: &'static str, kernel: usize, ours: usize, apart: usize, most: usize) -> Row {
    exact(
        what,
        kernel.to_string(),
        ours.to_string(),
        format!("{apart} packets"),
        format!("{most} packets"),
        apart <= most,
    )
}

fn shares(what: &'static str, kernel: &Trace, ours: &Trace, of: impl Fn(&Trace) -> Vec<f64>) -> Row {
    let (one, other) = (Mean::of(&of(kernel)), Mean::of(&of(ours)));
    let (apart, bound) = ((one.mean - other.mean).abs(), STANDARD_ERRORS * one.error_of_difference(other));
    let words = |share: f64| format!("{:.2} %", 100.0 * share);
    exact(what, words(one.mean), words(other.mean), words(apart), words(bound), apart <= bound)
}

/// The live run beside the engine in virtual time, which knows when datagrams were sent and not when they came to narrows:
/// the same packets in the same order, marked alike, at the same instants. Where the nanoseconds between decide which of two
/// neighbours is lost or marked, as in DualPI2's and PIE's sums, it is as many of those sent up to any instant, but for a few.
fn live_row(live: &Trace, model: &Trace) -> Row {
    let key = |trace: &Trace| -> Vec<(u32, u8)> {
        trace.came.iter().map(|came| (came.number, came.traffic_class)).collect()
    };
    let (words, count) = ("live, beside virtual time", |trace: &Trace| format!("{} came", trace.came.len()));
    if key(live) != key(model) {
        let (came, most) = ((live.came.len(), model.came.len()), NEIGHBOURS);
        return counted(words, came.0, came.1, astray(live, model), most);
    }
    let worst =
        live.came.iter().zip(&model.came).map(|(one, other)| one.at.abs_diff(other.at)).max().unwrap_or(0);
    exact(words, count(live), count(model), nanoseconds(worst), nanoseconds(LIVE), worst <= LIVE)
}

/// The log of the live run, replayed.
fn replay_row(replayed: &ReplayResult) -> Row {
    let apart = replayed.different + replayed.unknown + u64::from(replayed.cut_short.is_some());
    exact(
        "live, replayed",
        format!("{} verdicts", replayed.same + replayed.different),
        format!("{} alike", replayed.same),
        format!("{apart} verdicts"),
        "0 verdicts".into(),
        apart == 0,
    )
}

fn milliseconds(trace: &Trace, first: u32) -> Vec<f64> {
    // In whole microseconds: a nanosecond's difference in what many packets have is none of their distribution.
    trace.delays().range(first..).map(|(_, delay)| ((delay + 500) / 1000) as f64 / 1e3).collect()
}

/// How long before or after an instant a packet may have come to count as come at it, in nanoseconds.
const AT_ONCE: u64 = 100;

/// How many bytes of each flow have come up to which instant.
fn service(case: &Case, trace: &Trace) -> BTreeMap<u16, Vec<(u64, u64)>> {
    let mut service: BTreeMap<u16, Vec<(u64, u64)>> = BTreeMap::new();
    for came in &trace.came {
        let datagram = case.traffic[came.number as usize];
        let curve = service.entry(datagram.flow).or_default();
        let before = curve.last().map_or(0, |(_, bytes)| *bytes);
        curve.push((came.at, before + u64::from(datagram.length)));
    }
    service
}

/// How far the other curve is from this one at worst, at the instants at which this one steps.
fn farthest(one: &[(u64, u64)], other: &[(u64, u64)]) -> u64 {
    let up_to = |instant: u64| match other.partition_point(|(at, _)| *at <= instant) {
        0 => 0,
        n => other[n - 1].1,
    };
    let apart = one.iter().map(|(at, bytes)| {
        let (least, most) = (up_to(at - AT_ONCE), up_to(at + AT_ONCE));
        least.saturating_sub(*bytes).max(bytes.saturating_sub(most))
    });
    apart.max().unwrap_or(0)
}

fn nanoseconds(time: u64) -> String {
    match time {
        0..10_000 => format!("{time} ns"),
        10_000..10_000_000 => format!("{}.{:03} µs", time / 1000, time % 1000),
        _ => format!("{}.{:03} ms", time / 1_000_000, time / 1000 % 1000),
    }
}
