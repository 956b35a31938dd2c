//! What guests left in a folder, compared.

use std::fs;
use std::path::Path;

use narrows_sim::{SimOptions, replay};

use crate::case::Case;
use crate::compare::{Outcome, compare};
use crate::guest::Observed;
use crate::model;

/// What a guest observed of a case.
///
/// # Errors
/// When there is no such file, or it is none of a guest's.
pub fn observed(folder: &Path, case: &Case) -> Result<Observed, String> {
    let path = folder.join(format!("{}.json", case.name));
    let json = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&json).map_err(|error| format!("{}: {error}", path.display()))
}

/// Holds what a guest observed of a case beside the engine in virtual time, and replays the log of its live run.
///
/// # Errors
/// When a file is missing or damaged, or the case is not understood.
pub fn outcome(folder: &Path, case: &Case) -> Result<Outcome, String> {
    let observed = observed(folder, case)?;
    let run = |sent: &[u64]| model::run(case, sent).map_err(|error| format!("{}: {error}", case.name));
    let (kernel, live) = (run(&observed.kernel.sent)?, run(&observed.live.sent)?);
    let log = folder.join(format!("{}.log", case.name));
    let replayed =
        replay(&log, &SimOptions::default()).map_err(|error| format!("{}: {error}", log.display()))?;
    Ok(compare(case, &observed, &kernel, &live, &replayed))
}
