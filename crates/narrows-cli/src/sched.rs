//! `narrows sched`: the scheduler lab.

mod bench;
mod compare;
mod differentiation;
mod fairness;

use clap::Subcommand;

use crate::output::Failure;

/// The version of the lab's JSON.
const SCHEMA: u32 = 2;

/// What the lab does.
#[derive(Debug, Subcommand)]
pub(crate) enum Sched {
    /// Time schedulers on the workload of Dummynet's scheduler tests: nanoseconds for each packet
    Bench(bench::Bench),
    /// Measure how far a scheduler is from the fluid system, beside its proven bound; exit with 1 if a bound is broken
    Fairness(fairness::Fairness),
    /// Send the same traffic through several schedulers: delays, shares, Jain's index
    Compare(compare::Compare),
    /// Measure how near hybrid proportional delay comes to the ratios of delays that it was asked for
    Differentiation(differentiation::Differentiation),
}

/// Runs one of them.
pub(crate) fn sched(sched: &Sched) -> Result<u8, Failure> {
    match sched {
        Sched::Bench(bench) => bench::bench(bench),
        Sched::Fairness(fairness) => fairness::fairness(fairness),
        Sched::Compare(compare) => compare::compare(compare),
        Sched::Differentiation(differentiation) => differentiation::differentiation(differentiation),
    }
}
