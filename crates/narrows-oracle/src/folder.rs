//! What guests left in a folder, compared.

use std::fs;
use std::path::{Path, PathBuf};

use narrows_frame::log::LogReader;
use narrows_sim::{SimOptions, replay};

use crate::case::Case;
use crate::compare::{Outcome, Row, compare, rows};
use crate::guest::{Observed, kernel};
use crate::model;
use crate::trace::Trace;

/// What a guest observed of a case.
///
/// # Errors
/// When there is no such file, or it is none of a guest's.
pub fn observed(folder: &Path, case: &Case) -> Result<Observed, String> {
    let path = folder.join(format!("{}.json", case.name));
    let json = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&json).map_err(|error| format!("{}: {error}", path.display()))
}

/// Notes what `tc` said in a guest that lacks what the case needs.
///
/// # Errors
/// When the folder cannot be written.
pub fn leave_out(folder: &Path, case: &Case, said: &str) -> Result<(), String> {
    let path = note(folder, case);
    fs::write(&path, said).map_err(|error| format!("{}: {error}", path.display()))
}

/// Why a case was left out, if it was.
pub fn left_out(folder: &Path, case: &Case) -> Option<String> {
    let said = fs::read_to_string(note(folder, case)).ok()?;
    let needs = case.needs.unwrap_or_default();
    Some(format!("{}: left out, as the guest's kernel or its tc has no {needs}: {said}", case.name))
}

fn note(folder: &Path, case: &Case) -> PathBuf {
    folder.join(format!("{}.left-out", case.name))
}

/// Holds what a guest observed of a case beside the engine in virtual time, and replays the log of its live run.
///
/// # Errors
/// When a file is missing or damaged, or the case is not understood.
pub fn outcome(folder: &Path, case: &Case) -> Result<Outcome, String> {
    let observed = observed(folder, case)?;
    let log = folder.join(format!("{}.log", case.name));
    let reader = LogReader::open(&log).map_err(|error| error.to_string())?;
    let began = reader.header().started.nanos();
    let wrong = |error| format!("{}: {error}", case.name);
    let kernel = model::run(case, &observed.kernel.sent).map_err(wrong)?;
    let live = model::run_from(case, &observed.live.sent, began).map_err(wrong)?;
    let replayed =
        replay(&log, &SimOptions::default()).map_err(|error| format!("{}: {error}", log.display()))?;
    Ok(compare(case, &observed, &kernel, &live, &replayed))
}

/// Runs a case through the kernel alone, in a guest, and leaves what came of it, or why it could not be run.
///
/// # Errors
/// When the folder cannot be written.
pub fn leave_kernel(folder: &Path, case: &Case) -> Result<(), String> {
    let ran = kernel(case).map_err(|failure| failure.to_string());
    let path = folder.join(format!("{}.kernel", case.name));
    let json = serde_json::to_vec(&ran).map_err(|error| error.to_string())?;
    fs::write(&path, json).map_err(|error| format!("{}: {error}", path.display()))
}

/// Holds what the kernel made of a case beside the engine in virtual time.
///
/// # Errors
/// When the case could not be run, its file is damaged, or narrows does not understand it.
pub fn kernel_rows(folder: &Path, case: &Case) -> Result<Vec<Row>, String> {
    let path = folder.join(format!("{}.kernel", case.name));
    let json = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let ran: Result<Trace, String> =
        serde_json::from_slice(&json).map_err(|error| format!("{}: {error}", path.display()))?;
    let kernel = ran.map_err(|error| format!("kernel: {error}"))?;
    let ours = model::run(case, &kernel.sent).map_err(|error| format!("narrows: {error}"))?;
    Ok(rows(case, &kernel, &ours))
}
