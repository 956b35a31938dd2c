//! `narrows sched fairness`: how far a scheduler deviates from the fluid system, compared with its proven bounds.
//!
//! Each algorithm serves each [`Pattern`] of traffic on a link of constant rate. B-WFI and T-WFI are measured exactly
//! (`measure`), the distance to the fluid system against [`Fluid`](crate::fluid::Fluid); `bound` has the bounds and
//! their sources.

mod bound;
mod drive;
mod figure;
mod judge;
mod measure;
mod recording;
mod report;
mod subject;
mod traffic;

pub use judge::{FlowResult, Index};
pub use traffic::Pattern;

use narrows_core::sched::Refused;
use narrows_core::{Bytes, Rate, Seed};
use narrows_scenario::SchedulerKind;

use crate::algorithm::Algorithm;
use crate::watch::{Step, Watch, go_on};
use drive::drive;
use judge::Judge;
use recording::Recording;
use subject::{Claim, claim};
use traffic::{Amount, Traffic};

/// The options of the tests.
#[derive(Clone, Debug, PartialEq)]
pub struct FairnessOptions {
    /// The algorithms.
    pub algorithms: Vec<Algorithm>,
    /// The traffic patterns.
    pub patterns: Vec<Pattern>,
    /// The number of flows, at least 2.
    pub flows: u32,
    /// The number of packets that each algorithm serves under each pattern.
    pub packets: u64,
    /// The maximum packet length, at least 28 bytes.
    pub longest: Bytes,
    /// The maximum weight.
    pub heaviest: u32,
    /// The rate of the link, used to convert delays into time.
    pub rate: Rate,
    /// The seed of all draws.
    pub seed: Seed,
}

impl Default for FairnessOptions {
    fn default() -> Self {
        Self {
            algorithms: vec![Algorithm::Of(SchedulerKind::Qfq)],
            patterns: Pattern::ALL.to_vec(),
            flows: 64,
            packets: 200_000,
            longest: Bytes::new(64 << 10),
            heaviest: 1 << 16,
            rate: Rate::from_bits_per_second(10_000_000_000),
            seed: Seed(1),
        }
    }
}

/// The algorithms that [`fairness`] can judge.
pub const JUDGED: &[Algorithm] = &subject::KNOWN;

/// The result of an algorithm under one traffic pattern.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The traffic.
    pub pattern: Pattern,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// The sum of all weights.
    pub weights: u64,
    /// The results of each flow.
    pub flows: Vec<FlowResult>,
}

impl Trial {
    /// The flow with the highest B-WFI relative to its bound, or without bounds the highest B-WFI.
    pub fn worst_service(&self) -> &FlowResult {
        self.worst(|flow| flow.service)
    }

    /// The flow with the highest shortfall relative to its bound, or without bounds the highest shortfall.
    pub fn worst_shortfall(&self) -> &FlowResult {
        self.worst(|flow| flow.shortfall)
    }

    fn worst(&self, index: fn(&FlowResult) -> Index) -> &FlowResult {
        let rank = |flow: &FlowResult| index(flow).share().unwrap_or(index(flow).worst);
        let worst = self.flows.iter().max_by(|a, b| rank(a).total_cmp(&rank(b)));
        worst.expect("there are two flows at least")
    }

    /// The flow with the highest T-WFI relative to its bound, or without bounds the highest T-WFI.
    pub fn worst_delay(&self) -> Option<(&FlowResult, Index)> {
        let indices = self.flows.iter().filter_map(|flow| Some((flow, flow.delay?)));
        let rank = |index: &Index| index.share().unwrap_or(index.worst);
        indices.max_by(|(_, a), (_, b)| rank(a).total_cmp(&rank(b)))
    }

    /// Whether all bounds hold; `None` if there are none.
    pub fn holds(&self) -> Option<bool> {
        let bounded = self.flows.iter().any(|flow| flow.service.bound.is_some());
        bounded.then(|| !self.flows.iter().any(FlowResult::is_broken))
    }
}

impl FlowResult {
    /// Whether any of its bounds is broken.
    pub fn is_broken(&self) -> bool {
        self.service.broken || self.shortfall.broken || self.delay.is_some_and(|delay| delay.broken)
    }
}

/// All trials.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fairness {
    /// The options.
    pub options: FairnessOptions,
    /// Each algorithm under each pattern, in the order requested.
    pub trials: Vec<Trial>,
}

/// Why a test is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FairnessError {
    /// An option is out of range.
    #[error("{what} is {found}: give {allowed}")]
    Range {
        /// The option.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The allowed range.
        allowed: &'static str,
    },
    /// A scheduler rejects the flows.
    #[error("{algorithm} does not take the flows of `{}`: {cause}", pattern.name())]
    Refused {
        /// The scheduler.
        algorithm: Algorithm,
        /// The pattern.
        pattern: Pattern,
        /// The reason.
        cause: Refused,
    },
}

/// Tests each algorithm under each pattern.
///
/// ```
/// use narrows_lab::Algorithm;
/// use narrows_lab::fairness::{FairnessOptions, fairness};
/// use narrows_scenario::SchedulerKind;
///
/// let algorithms = vec![Algorithm::Of(SchedulerKind::Drr)];
/// let options = FairnessOptions { algorithms, packets: 2000, ..FairnessOptions::default() };
/// assert!(fairness(&options)?.holds());
/// # Ok::<(), narrows_lab::fairness::FairnessError>(())
/// ```
///
/// # Errors
/// If an option is out of range or a scheduler rejects the flows.
pub fn fairness(options: &FairnessOptions) -> Result<Fairness, FairnessError> {
    fairness_watched(options, &mut go_on)
}

/// As [`fairness`], with a watch that can stop: only completed trials are returned.
///
/// # Errors
/// As for [`fairness`].
pub fn fairness_watched(options: &FairnessOptions, watch: Watch<'_>) -> Result<Fairness, FairnessError> {
    check(options)?;
    let patterns = &options.patterns;
    let pairs =
        options.algorithms.iter().flat_map(|one| patterns.iter().map(move |pattern| (*one, *pattern)));
    let total = options.algorithms.len() * patterns.len();
    let mut trials = Vec::new();
    for (done, (algorithm, pattern)) in pairs.enumerate() {
        let what = format!("{algorithm}, {}", pattern.name());
        if watch(&Step { done, total, what }).is_break() {
            break;
        }
        trials.push(trial(algorithm, pattern, options, None)?);
    }
    Ok(Fairness { options: options.clone(), trials })
}

fn check(options: &FairnessOptions) -> Result<(), FairnessError> {
    let FairnessOptions { flows, packets, longest, heaviest, rate, .. } = *options;
    let checks: [(&'static str, u64, bool, &'static str); 5] = [
        ("the number of flows", flows.into(), (2..=1 << 20).contains(&flows), "2 to 1048576"),
        ("the number of packets", packets, packets > 0, "1 or more"),
        ("the longest packet", longest.get(), (28..=1 << 16).contains(&longest.get()), "28 to 65536 bytes"),
        ("the greatest weight", heaviest.into(), (1..=1 << 24).contains(&heaviest), "1 to 16777216"),
        (
            "the rate",
            rate.bits_per_second(),
            rate != Rate::UNLIMITED && rate != Rate::DOWN,
            "a rate above zero and below unlimited",
        ),
    ];
    match checks.into_iter().find(|&(_, _, fits, _)| !fits) {
        Some((what, found, _, allowed)) => Err(FairnessError::Range { what, found, allowed }),
        None => Ok(()),
    }
}

fn trial(
    algorithm: Algorithm,
    pattern: Pattern,
    options: &FairnessOptions,
    recording: Option<&mut Recording>,
) -> Result<Trial, FairnessError> {
    let &FairnessOptions { flows, packets, longest, heaviest, rate, seed, .. } = options;
    let longest = u32::try_from(longest.get()).unwrap_or(u32::MAX);
    let mut traffic = Traffic::new(pattern, Amount { flows, packets, longest, heaviest, seed });
    let configs = traffic.flows.clone();
    let claimed = claim(algorithm, &configs);
    let Claim { mut subject, bounds } =
        claimed.map_err(|cause| FairnessError::Refused { algorithm, pattern, cause })?;
    let mut judge = Judge::new(&configs, recording);
    drive(&mut *subject, &mut traffic, rate, &mut judge);
    let (packets, bytes, flows) = judge.conclude(&bounds);
    let weights = configs.iter().map(|flow| u64::from(flow.weight.get())).sum();
    Ok(Trial { algorithm, pattern, packets, bytes, weights, flows })
}

impl Fairness {
    /// Whether no bound is broken.
    pub fn holds(&self) -> bool {
        !self.trials.iter().any(|trial| trial.holds() == Some(false))
    }
}

#[cfg(test)]
mod tests;
