//! `narrows sched fairness`.

use clap::Args;

use crate::output::Failure;

/// Its arguments.
#[derive(Debug, Args)]
pub(crate) struct Fairness {}

pub(crate) fn fairness(_: &Fairness) -> Result<u8, Failure> {
    Ok(0)
}
