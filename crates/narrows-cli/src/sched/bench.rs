//! `narrows sched bench`.

use clap::Args;

use crate::output::Failure;

/// Its arguments.
#[derive(Debug, Args)]
pub(crate) struct Bench {}

pub(crate) fn bench(_: &Bench) -> Result<u8, Failure> {
    Ok(0)
}
