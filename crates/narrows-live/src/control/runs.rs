//! All runs of this user, from the run folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use narrows_io::own_folder::{OwnFolder, OwnFolderError};
use narrows_io::unix_socket::{Listener, listener};

use super::{socket_name, sockets};
use crate::run_name::RunName;
use crate::run_record::{About, RecordName, RunRecordError, RunState, look, number, records};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// In progress.
    GoingOn,
    /// It has a record but no control socket: it is starting or ending.
    Silent,
    /// It was killed; `narrows clean` removes what it left.
    Dead,
}

/// A run, from its record.
#[derive(Clone, Debug)]
pub struct KnownRun {
    /// Its number, which is its process ID.
    pub number: u32,
    /// Its description.
    pub about: About,
    /// Its state.
    pub liveness: Liveness,
    /// The path of its control socket.
    pub socket: PathBuf,
}

impl KnownRun {
    /// Its name, or its number.
    pub fn name(&self) -> String {
        self.about.name.as_ref().map_or_else(|| self.number.to_string(), ToString::to_string)
    }

    /// `lab (4711)`, or the number of a run without a name.
    pub fn called(&self) -> String {
        match &self.about.name {
            Some(name) => format!("{name} ({})", self.number),
            None => self.number.to_string(),
        }
    }

    /// Whether this is its name or number.
    pub fn is_called(&self, name: &str) -> bool {
        number(name) == Some(self.number) || self.about.name.as_ref().is_some_and(|own| own.as_str() == name)
    }
}

/// The runs of this user, oldest first; and records that cannot be parsed.
///
/// # Errors
/// If the folder belongs to another user or cannot be read.
pub fn known_runs(folder: &Path) -> Result<(Vec<KnownRun>, Vec<RunRecordError>), OwnFolderError> {
    let Some(own) = OwnFolder::open(folder)? else { return Ok((Vec::new(), Vec::new())) };
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for RecordName { run, id } in records(&own)? {
        let socket = folder.join(socket_name(run));
        match look(&own, &RecordName { run, id }) {
            Ok(Some((standing, about))) => {
                let liveness = match standing {
                    RunState::Gone(_) => Liveness::Dead,
                    RunState::GoingOn if listener(&socket) == Listener::There => Liveness::GoingOn,
                    RunState::GoingOn => Liveness::Silent,
                };
                all.push(KnownRun { number: run, about, liveness, socket });
            }
            Ok(None) => {}
            Err(error) => failed.push(error),
        }
    }
    // Runs of older versions have no record.
    for (number, socket) in sockets(folder)? {
        if !all.iter().any(|run| run.number == number) {
            let is_there = listener(&socket) == Listener::There;
            let liveness = if is_there { Liveness::GoingOn } else { Liveness::Dead };
            all.push(KnownRun { number, about: About::default(), liveness, socket });
        }
    }
    all.sort_by_key(|run| (run.about.since_ns, run.number));
    Ok((all, failed))
}

/// The names of the runs in progress, by number.
pub(super) fn names(folder: &Path) -> Result<BTreeMap<u32, RunName>, OwnFolderError> {
    let (all, _) = known_runs(folder)?;
    let alive = all.into_iter().filter(|run| run.liveness != Liveness::Dead);
    Ok(alive.filter_map(|run| Some((run.number, run.about.name?))).collect())
}
