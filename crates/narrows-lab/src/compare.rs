//! `narrows sched compare`: the same traffic through several schedulers.
//!
//! A scenario runs in virtual time once for each algorithm, which takes the place of the scheduler of one link; nothing else
//! changes, and neither do random draws. Each source of traffic that crosses the link is a flow here: what it offered,
//! what it got, what it lost, how long its packets took.
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
//! with the throughput T_k of flow k over the throughput O_k that would be fair: its part in a weighted max-min division of
//! what all flows got together, where no flow is given more than it offered. It is 1 when all got what is fair, and k/n
//! when k of n got all. Dividing by the weight alone would call it unfair that a call sends less than a download.

mod figure;
mod put;
mod report;
mod share;

use std::cell::RefCell;
use std::rc::Rc;

use narrows_core::sched::Weight;
use narrows_core::{Duration, Seed, Target};
use narrows_scenario::{Scenario, ScenarioError, Traffic, TrafficSource};
use narrows_sim::{Observed, SimError, SimOptions, SimResult, observe_watched};

use crate::algorithm::Algorithm;
use crate::watch::{Step, Watch, go_on};
use put::put;
use share::{Demand, jain, max_min};

/// The algorithms that [`compare`] can put into a link.
pub const COMPARED: &[Algorithm] = &Algorithm::SCHEDULERS;

/// What is to be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompareOptions {
    /// Which algorithms.
    pub algorithms: Vec<Algorithm>,
    /// The link, as in `access.down`; without one, the link that most of the traffic crosses.
    pub link: Option<String>,
    /// How long each run lasts, instead of what the scenario says.
    pub duration: Option<Duration>,
    /// The seed, instead of the scenario's.
    pub seed: Option<Seed>,
    /// By which weights a division is fair, for the sources of traffic that are named; 1 for all others. The schedulers are
    /// not told of them.
    pub weights: Vec<(String, Weight)>,
    /// Whether algorithms that the link cannot have are left out, as for `all`. Else they are an error.
    pub where_possible: bool,
}

/// What came of each algorithm.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The scenario's file.
    pub scenario: String,
    /// The link whose scheduler was replaced.
    pub link: String,
    /// The seed of all runs.
    pub seed: u64,
    /// In the order asked for.
    pub runs: Vec<Run>,
    /// The algorithms that were left out, and why the link cannot have them.
    pub left_out: Vec<(Algorithm, String)>,
}

/// What came of one algorithm.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Run {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// How long the run was.
    pub span: Duration,
    /// Jain's index; nothing if nobody got anything.
    pub jain: Option<f64>,
    /// The flows, by name.
    pub flows: Vec<FlowStats>,
}

/// What a flow offered and got.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlowStats {
    /// The source of traffic.
    pub name: String,
    /// By which a division is fair.
    pub weight: u32,
    /// Whether it sends whatever it can get across.
    pub greedy: bool,
    /// Bytes whose fate was decided in the run, from the network header on.
    pub offered: u64,
    /// Bytes that were delivered.
    pub delivered: u64,
    /// Packets that were delivered.
    pub packets: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// What it would have got in a fair division of what all got, in bytes.
    pub fair: f64,
    /// Of each packet delivered, the time in the network, in nanoseconds, the shortest first.
    pub delays: Vec<u64>,
}

/// Why nothing could be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The scenario brings no traffic.
    #[error(
        "{0} has no traffic to compare schedulers with: add a [[traffic]] with from, to and poisson, constant, on-off, aimd or capture"
    )]
    NoTraffic(String),
    /// There is no such link.
    #[error("{scenario} has no link `{found}`: there is {}", links.join(", "))]
    NoLink {
        /// The scenario.
        scenario: String,
        /// What was asked for.
        found: String,
        /// The links that there are.
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
    /// A weight is for no source of traffic that crosses the link.
    #[error("no traffic called `{found}` crosses {link}, that could have a weight: there is {}", flows.join(", "))]
    NoFlow {
        /// What was named.
        found: String,
        /// The link.
        link: String,
        /// The sources that there are.
        flows: Vec<String>,
    },
    /// The link cannot have this scheduler.
    #[error("with {algorithm}: {cause}")]
    Scheduler {
        /// The algorithm.
        algorithm: Algorithm,
        /// Why.
        cause: ScenarioError,
    },
    /// A run failed.
    #[error(transparent)]
    Run(#[from] SimError),
}

/// Runs the scenario with each algorithm.
///
/// # Errors
/// When there is no traffic or no such link, or the link cannot have such a scheduler and `where_possible` is off; and as
/// [`simulate`](narrows_sim::simulate).
pub fn compare(scenario: &Scenario, options: &CompareOptions) -> Result<Comparison, CompareError> {
    compare_watched(scenario, options, &mut go_on)
}

/// The same, while somebody watches, also within each run, who may break it off: runs are those that were whole until then.
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

/// What is wrong, without the place and the help.
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

/// Those that a source's packets pass.
fn path(scenario: &Scenario, traffic: &Traffic) -> Vec<String> {
    let port = |name: &str| scenario.ports().iter().find(|port| port.name == name);
    let ends = port(&traffic.from).zip(port(&traffic.to));
    names(ends.map_or(Vec::new(), |(from, to)| scenario.links_between(from, to)))
}

/// The numbers of the sources whose packets pass a link.
fn crossing(scenario: &Scenario, link: &str) -> Vec<usize> {
    let passes = |number: &usize| path(scenario, &scenario.traffic[*number]).iter().any(|name| name == link);
    (0..scenario.traffic.len()).filter(passes).collect()
}

/// The link that is asked for, or else the one with the most sources; the first of these.
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

/// What has been seen of a flow.
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
    let observer = move |observed: &Observed<'_>| {
        // Acknowledgements come from the other end, and are not what the link is compared by.
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
            most: if greedy(number) { f64::INFINITY } else { seen.offered as f64 },
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

impl FlowStats {
    /// The delay that the share `q` of the packets had at most, in nanoseconds: the least such one. Nothing without packets.
    pub fn delay(&self, q: f64) -> Option<u64> {
        let rank = libm::ceil(q * self.delays.len() as f64) as usize;
        self.delays.get(rank.saturating_sub(1)).copied()
    }

    /// Bits a second that were delivered in a run of that length, from the network header on.
    pub fn throughput(&self, span: Duration) -> f64 {
        if span == Duration::ZERO { 0.0 } else { self.delivered as f64 * 8.0 / span.seconds() }
    }

    /// Which part of its packets was dropped, of those whose fate was decided.
    pub fn loss(&self) -> Option<f64> {
        let all = self.packets + self.dropped;
        (all > 0).then(|| self.dropped as f64 / all as f64)
    }
}

impl Run {
    /// Which part a flow got of what all got.
    pub fn share(&self, flow: &FlowStats) -> Option<f64> {
        let all: u64 = self.flows.iter().map(|flow| flow.delivered).sum();
        (all > 0).then(|| flow.delivered as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests;
