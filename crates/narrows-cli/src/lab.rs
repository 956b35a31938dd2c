//! `narrows lab`: published evaluations of schedulers, run again.

mod dbhpd;

use clap::Subcommand;

use crate::output::Failure;

/// Which evaluation.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Delay-bounded hybrid proportional delay scheduling, by the thesis that put it into Linux
    Dbhpd(dbhpd::Dbhpd),
}

/// Runs one of them.
pub(crate) fn lab(lab: &Lab) -> Result<u8, Failure> {
    match lab {
        Lab::Dbhpd(args) => dbhpd::dbhpd(args),
    }
}
