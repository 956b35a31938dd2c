//! `narrows sched`: the scheduler lab.

mod bench;
mod compare;
mod differentiation;
mod fairness;

use clap::Subcommand;

use crate::output::Failure;

/// Version of the lab's JSON output.
const SCHEMA: u32 = 2;

/// What the lab does.
#[derive(Debug, Subcommand)]
pub(crate) enum Sched {
    /// Benchmark schedulers on the workload of Dummynet's tests: nanoseconds per packet
    Bench(bench::Bench),
    /// Measure a scheduler's deviation from the fluid system beside its proven bound; exit status 1 if broken
    Fairness(fairness::Fairness),
    /// Compare schedulers on the same traffic: delays, shares, Jain's index
    Compare(compare::Compare),
    /// Measure how closely hybrid proportional delay meets the configured delay ratios
    Differentiation(differentiation::Differentiation),
}

/// Runs a subcommand.
pub(crate) fn sched(sched: &Sched) -> Result<u8, Failure> {
    match sched {
        Sched::Bench(bench) => bench::bench(bench),
        Sched::Fairness(fairness) => fairness::fairness(fairness),
        Sched::Compare(compare) => compare::compare(compare),
        Sched::Differentiation(differentiation) => differentiation::differentiation(differentiation),
    }
}
