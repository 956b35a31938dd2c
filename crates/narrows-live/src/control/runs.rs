//! All runs of this user, as the run folder has them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use narrows_io::own_folder::{OwnFolder, OwnFolderError};
use narrows_io::unix_socket::{Listener, listener};

use super::{socket_name, sockets};
use crate::run_name::RunName;
use crate::run_record::{About, RecordName, RunRecordError, RunState, look, number, records};

/// Whether a run is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It goes on.
    GoingOn,
    /// It has a record, and no control socket: it begins, or ends.
    Silent,
    /// It was killed, and `narrows clean` removes what it left.
    Dead,
}

/// A run as its record says.
#[derive(Clone, Debug)]
pub struct KnownRun {
    /// Its number, which is that of its process.
    pub number: u32,
    /// What is known of it.
    pub about: About,
    /// Whether it is there.
    pub liveness: Liveness,
    /// Where its control socket is.
    pub socket: PathBuf,
}

impl KnownRun {
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

/// The runs of this user, the oldest first; and records that cannot be understood.
///
/// # Errors
/// When the folder is not this user's, or cannot be read.
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
    // Runs of older versions had none.
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

/// What the runs that go on are called, by their numbers.
pub(super) fn names(folder: &Path) -> Result<BTreeMap<u32, RunName>, OwnFolderError> {
    let (all, _) = known_runs(folder)?;
    let alive = all.into_iter().filter(|run| run.liveness != Liveness::Dead);
    Ok(alive.filter_map(|run| Some((run.number, run.about.name?))).collect())
}
