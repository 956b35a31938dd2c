//! `narrows sched compare`: the same traffic through several schedulers.
//!
//! A scenario runs in virtual time once for each algorithm, which replaces the scheduler of one link; nothing else
//! changes, and random draws are the same. Each traffic source that crosses the link is a flow here, with its offered
//! load, throughput, losses and delays.
//!
//! ```
//! use narrows_lab::Algorithm;
//! use narrows_scenario::SchedulerKind;
//! use narrows_lab::compare::{CompareOptions, compare};
//! # let text = r#"
//! #     [hosts.client]
//! #     [hosts.server]
//! #     [links.access]
//! #     between = ["client", "server"]
//! #     rate = "1mbit"
//! #     queue = "20 packets"
//! #     [[traffic]]
//! #     name = "flood"
//! #     from = "server"
//! #     to = "client"
//! #     constant = "2mbit"
//! #     length = "1250 bytes"
//! #     stop = "5s"
//! #     [[traffic]]
//! #     name = "call"
//! #     from = "server"
//! #     to = "client"
//! #     constant = "1/20ms"
//! #     length = "200 bytes"
//! #     stop = "5s"
//! # "#;
//! let scenario = narrows_scenario::Scenario::parse(text, "flood.toml")?;
//! let algorithms = vec![Algorithm::Of(SchedulerKind::Fifo), Algorithm::Of(SchedulerKind::Drr)];
//! let comparison = compare(&scenario, &CompareOptions { algorithms, ..CompareOptions::default() })?;
//! let [fifo, drr] = [0, 1].map(|run| &comparison.runs[run]);
//! assert!(fifo.jain < drr.jain);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Fairness
//! Jain's index (R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness and discrimination for resource allocation
//! in shared computer systems", DEC-TR-301, 1984) is
//!
//! ```text
//! J = (Σ x_k)² / (n · Σ x_k²)      x_k = T_k / O_k
//! ```
//!
//! with the throughput T_k of flow k and its fair throughput O_k: its share in a weighted max-min division of the
//! total throughput, in which no flow gets more than it offered. The index is 1 if all flows get their fair share,
//! and k/n if k of n get everything. Dividing by the weight alone would count it as unfair that a call sends less
//! than a download.

mod figure;
mod put;
mod report;
mod share;

use std::cell::RefCell;
use std::rc::Rc;

use narrows_core::sched::Weight;
use narrows_core::{Duration, Seed, Target};
use narrows_report::PacketRow;
use narrows_scenario::{Scenario, ScenarioError, Traffic, TrafficSource};
use narrows_sim::{SimError, SimOptions, SimResult, observe_watched};

use crate::algorithm::Algorithm;
use crate::watch::{Step, Watch, go_on};
use put::put;
use share::{Demand, jain, max_min};

/// The algorithms that [`compare`] can put into a link.
pub const COMPARED: &[Algorithm] = &Algorithm::SCHEDULERS;

/// The options of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompareOptions {
    /// The algorithms.
    pub algorithms: Vec<Algorithm>,
    /// The link, for example `access.down`; by default the link that most of the traffic crosses.
    pub link: Option<String>,
    /// Overrides the scenario's duration.
    pub duration: Option<Duration>,
    /// Overrides the scenario's seed.
    pub seed: Option<Seed>,
    /// The weights for the fair division, by the name of the traffic source; 1 for all others. Schedulers do not use
    /// them.
    pub weights: Vec<(String, Weight)>,
    /// Skip algorithms that the link cannot have, as for `all`. Otherwise they are an error.
    pub where_possible: bool,
}

/// The results for all algorithms.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The scenario's file.
    pub scenario: String,
    /// The link whose scheduler was replaced.
    pub link: String,
    /// The seed of all runs.
    pub seed: u64,
    /// The runs, in the order requested.
    pub runs: Vec<Run>,
    /// The algorithms that were skipped, and why the link cannot have them.
    pub left_out: Vec<(Algorithm, String)>,
}

/// The result for one algorithm.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Run {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The duration of the run.
    pub span: Duration,
    /// Jain's index; `None` if nothing was delivered.
    pub jain: Option<f64>,
    /// The flows, by name.
    pub flows: Vec<FlowStats>,
}

/// The offered load and the results of a flow.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlowStats {
    /// The traffic source.
    pub name: String,
    /// Its weight in the fair division.
    pub weight: u32,
    /// Whether it sends as much as it can get through.
    pub greedy: bool,
    /// Bytes delivered or dropped during the run, from the network header on.
    pub offered: u64,
    /// Bytes delivered.
    pub delivered: u64,
    /// Packets delivered.
    pub packets: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Its fair share of the total throughput, in bytes.
    pub fair: f64,
    /// The time in the network of each delivered packet, in nanoseconds, ascending.
    pub delays: Vec<u64>,
}

/// Why a comparison is impossible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The scenario has no traffic.
    #[error(
        "{0} has no traffic to compare schedulers with: add a [[traffic]] with from, to and poisson, constant, on-off, aimd or capture"
    )]
    NoTraffic(String),
    /// The link does not exist.
    #[error("{scenario} has no link `{found}`: there is {}", links.join(", "))]
    NoLink {
        /// The scenario.
        scenario: String,
        /// The requested link.
        found: String,
        /// The existing links.
        links: Vec<String>,
    },
    /// No traffic crosses the link.
    #[error("no traffic of {scenario} crosses `{link}`: there is some on {}", links.join(", "))]
    NotCrossed {
        /// The scenario.
        scenario: String,
        /// The link.
        link: String,
        /// The links with traffic.
        links: Vec<String>,
    },
    /// A weight names no traffic source that crosses the link.
    #[error("no traffic called `{found}` crosses {link}, that could have a weight: there is {}", flows.join(", "))]
    NoFlow {
        /// The name.
        found: String,
        /// The link.
        link: String,
        /// The existing sources.
        flows: Vec<String>,
    },
    /// The link cannot have this scheduler.
    #[error("with {algorithm}: {cause}")]
    Scheduler {
        /// The algorithm.
        algorithm: Algorithm,
        /// The reason.
        cause: ScenarioError,
    },
    /// A run failed.
    #[error(transparent)]
    Run(#[from] SimError),
}

/// Runs the scenario with each algorithm.
///
/// # Errors
/// If there is no traffic, the link does not exist, or the link cannot have such a scheduler and `where_possible` is
/// off; and as for [`simulate`](narrows_sim::simulate).
pub fn compare(scenario: &Scenario, options: &CompareOptions) -> Result<Comparison, CompareError> {
    compare_watched(scenario, options, &mut go_on)
}

/// As [`compare`], with a watch that is also called within each run and can stop; only completed runs are returned.
///
/// # Errors
/// As for [`compare`].
pub fn compare_watched(
    scenario: &Scenario,
    options: &CompareOptions,
    watch: Watch<'_>,
) -> Result<Comparison, CompareError> {
    let link = link(scenario, options.link.as_deref())?;
    let crossing = crossing(scenario, &link);
    let names = || crossing.iter().map(|&number| &scenario.traffic[number].name);
    if let Some((found, _)) = options.weights.iter().find(|(name, _)| !names().any(|known| known == name)) {
        return Err(CompareError::NoFlow { found: found.clone(), link, flows: names().cloned().collect() });
    }
    let (mut runs, mut left_out) = (Vec::new(), Vec::new());
    for (done, &algorithm) in options.algorithms.iter().enumerate() {
        let step = Step { done, total: options.algorithms.len(), what: algorithm.to_string() };
        if watch(&step).is_break() {
            break;
        }
        match put(scenario, &link, algorithm) {
            Ok(changed) => match run(&changed, &crossing, algorithm, options, &mut |_| watch(&step))? {
                Some(whole) => runs.push(whole),
                None => break,
            },
            Err(cause) if options.where_possible => left_out.push((algorithm, first_line(&cause))),
            Err(cause) => return Err(CompareError::Scheduler { algorithm, cause }),
        }
    }
    let seed = options.seed.map_or(scenario.seed, |seed| seed.0);
    Ok(Comparison { scenario: scenario.file.clone(), link, seed, runs, left_out })
}

/// The error message without its location and the help.
fn first_line(error: &ScenarioError) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// The engine's names of links.
fn names(targets: impl IntoIterator<Item = Target>) -> Vec<String> {
    let name = |target| if let Target::Link { name, .. } = target { Some(name) } else { None };
    targets.into_iter().filter_map(name).collect()
}

/// The links that a source's packets cross.
fn path(scenario: &Scenario, traffic: &Traffic) -> Vec<String> {
    let port = |name: &str| scenario.ports().iter().find(|port| port.name == name);
    let ends = port(&traffic.from).zip(port(&traffic.to));
    names(ends.map_or(Vec::new(), |(from, to)| scenario.links_between(from, to)))
}

/// The indices of the sources whose packets cross a link.
fn crossing(scenario: &Scenario, link: &str) -> Vec<usize> {
    let passes = |number: &usize| path(scenario, &scenario.traffic[*number]).iter().any(|name| name == link);
    (0..scenario.traffic.len()).filter(passes).collect()
}

/// The requested link, or else the first of those with the most sources.
fn link(scenario: &Scenario, wanted: Option<&str>) -> Result<String, CompareError> {
    if scenario.traffic.is_empty() {
        return Err(CompareError::NoTraffic(scenario.file.clone()));
    }
    let paths = scenario.ports().iter().map(|port| &port.path);
    let paths = paths.chain(scenario.interfaces().iter().map(|interface| &interface.path));
    let all = names(paths.flatten().cloned());
    let mut links: Vec<&str> = all.iter().map(String::as_str).collect();
    links.sort_unstable();
    links.dedup();
    let used = |link: &&str| crossing(scenario, link).len();
    let named = |links: &[&str]| links.iter().map(|&link| link.to_owned()).collect();
    match wanted {
        Some(wanted) if !links.contains(&wanted) => {
            let (scenario, found) = (scenario.file.clone(), wanted.to_owned());
            Err(CompareError::NoLink { scenario, found, links: named(&links) })
        }
        Some(wanted) if used(&wanted) == 0 => {
            links.retain(|link| used(link) > 0);
            let (scenario, link) = (scenario.file.clone(), wanted.to_owned());
            Err(CompareError::NotCrossed { scenario, link, links: named(&links) })
        }
        Some(wanted) => Ok(wanted.to_owned()),
        None => {
            let busiest = links.iter().rev().max_by_key(|link| used(link));
            Ok((*busiest.expect("traffic passes links")).to_owned())
        }
    }
}

/// The observations of a flow.
#[derive(Debug, Default)]
struct Seen {
    offered: u64,
    delivered: u64,
    dropped: u64,
    delays: Vec<u64>,
}

fn run(
    scenario: &Scenario,
    crossing: &[usize],
    algorithm: Algorithm,
    options: &CompareOptions,
    watch: narrows_sim::Watch<'_>,
) -> Result<Option<Run>, CompareError> {
    let names: Vec<(String, String)> = crossing
        .iter()
        .map(|&number| &scenario.traffic[number])
        .map(|traffic| (traffic.name.clone(), traffic.from.clone()))
        .collect();
    let seen: Rc<RefCell<Vec<Seen>>> = Rc::new(RefCell::new(names.iter().map(|_| Seen::default()).collect()));
    let (theirs, wanted) = (Rc::clone(&seen), names.clone());
    let observer = move |observed: &PacketRow<'_>| {
        // Acknowledgements come from the other end and are not compared.
        let is = |(feed, port): &(String, String)| feed == observed.feed && port == observed.port;
        let Some(number) = wanted.iter().position(is) else { return };
        let seen = &mut theirs.borrow_mut()[number];
        seen.offered += u64::from(observed.length);
        if observed.delivered {
            seen.delivered += u64::from(observed.length);
            seen.delays.push(observed.at.since(observed.arrival).nanos());
        } else {
            seen.dropped += 1;
        }
    };
    let sim = SimOptions { duration: options.duration, seed: options.seed, ..SimOptions::default() };
    let SimResult { report, broken_off, .. } = observe_watched(scenario, &sim, Box::new(observer), watch)?;
    if broken_off {
        return Ok(None);
    }
    let seen = seen.take();
    let greedy = |number: usize| matches!(scenario.traffic[number].source, TrafficSource::Aimd { .. });
    let weight =
        |name: &str| options.weights.iter().find(|(of, _)| of == name).map_or(1, |(_, weight)| weight.get());
    let weights: Vec<u32> = names.iter().map(|(name, _)| weight(name)).collect();
    let demands: Vec<Demand> = seen
        .iter()
        .zip(crossing)
        .zip(&weights)
        .map(|((seen, &number), &weight)| Demand {
            weight,
            most: most(&scenario.traffic[number].source, seen),
        })
        .collect();
    let fair = max_min(seen.iter().map(|seen| seen.delivered as f64).sum(), &demands);
    let index = jain(seen.iter().map(|seen| seen.delivered as f64).zip(fair.iter().copied()));
    let stats = |(number, mut seen): (usize, Seen)| {
        seen.delays.sort_unstable();
        FlowStats {
            name: names[number].0.clone(),
            weight: weights[number],
            greedy: greedy(crossing[number]),
            offered: seen.offered,
            delivered: seen.delivered,
            packets: seen.delays.len() as u64,
            dropped: seen.dropped,
            fair: fair[number],
            delays: seen.delays,
        }
    };
    let flows = seen.into_iter().enumerate().map(stats).collect();
    let span = Duration::from_nanos(report.end_ns - report.start_ns);
    Ok(Some(Run { algorithm, span, jain: index, flows }))
}

/// The most bytes that a source could have got through: what it offered or, of one that adapts, whole packets of its size,
/// and none if its time never came.
fn most(source: &TrafficSource, seen: &Seen) -> f64 {
    match source {
        TrafficSource::Aimd { config, .. } if seen.offered > 0 => config.size.map_or(f64::INFINITY, |size| {
            (size.get().div_ceil(config.length.into()) * u64::from(config.length)) as f64
        }),
        _ => seen.offered as f64,
    }
}

impl FlowStats {
    /// The delay that a share `q` of the packets does not exceed, in nanoseconds: the smallest such value. `None`
    /// without packets.
    pub fn delay(&self, q: f64) -> Option<u64> {
        let rank = libm::ceil(q * self.delays.len() as f64) as usize;
        self.delays.get(rank.saturating_sub(1)).copied()
    }

    /// Throughput in bits per second for a run of that duration, from the network header on.
    pub fn throughput(&self, span: Duration) -> f64 {
        if span == Duration::ZERO { 0.0 } else { self.delivered as f64 * 8.0 / span.seconds() }
    }

    /// The share of packets that were dropped, of those delivered or dropped.
    pub fn loss(&self) -> Option<f64> {
        let all = self.packets + self.dropped;
        (all > 0).then(|| self.dropped as f64 / all as f64)
    }
}

impl Run {
    /// A flow's share of the total throughput.
    pub fn share(&self, flow: &FlowStats) -> Option<f64> {
        let all: u64 = self.flows.iter().map(|flow| flow.delivered).sum();
        (all > 0).then(|| flow.delivered as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests;
