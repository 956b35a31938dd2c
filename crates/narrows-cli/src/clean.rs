//! `narrows clean`: removes what killed runs left behind.
//!
//! Namespaces, interfaces and address translation vanish with the process that created them, however it
//! ends. A `kill -9` can leave behind: control sockets, sockets of feeds, programs that reset their
//! parent-death signal, settings of the host that `--internet` changed, offloads of interfaces that
//! `bridge` and `route` switched off, barriers of `attach --fail closed`, and the file of `feed --device`. A network of `attach --persist` is no left-over, unless
//! its interface is gone.
//!
//! Anything that does not certainly belong to a killed run is left alone. Problems are reported at the end,
//! after everything else is done.

use std::fmt::Display;
use std::fs::File;
use std::thread;
use std::time::Duration;

use narrows_io::fuse_file;
use narrows_io::ledger::{self, Cleared, LedgerError};
use narrows_io::marked::Mark;
use narrows_io::namespace::Namespace;
use narrows_io::own_folder::{OwnFolder, remove_if_empty};
use narrows_io::process::is_dying;
use narrows_io::saved_interface;
use narrows_io::unix_socket::{Listener, listener};
use narrows_live::attach::remove_orphans;
use narrows_live::control;
use narrows_live::feeds;
use narrows_live::group;
use narrows_live::inline::INTERFACES;
use narrows_live::run::SETTINGS;
use narrows_live::run_record::{self, RecordName, RunState, look, records};

use crate::output::{Failure, print};

pub(crate) fn clean() -> Result<u8, Failure> {
    let path = control::run_folder();
    let mut said = Said::default();
    if let Some(folder) = OwnFolder::open(&path).map_err(other)? {
        let mut cleaning = Cleaning { folder, said };
        cleaning.everything()?;
        said = cleaning.said;
        // Stays while runs exist.
        remove_if_empty(&path);
    }
    // These are in no folder of ours.
    for interface in said.note(remove_orphans()).unwrap_or_default() {
        said.say(&format!("removed the network that stayed at {interface}, which is gone"))?;
    }
    for removed in said.note(fuse_file::remove_abandoned()).unwrap_or_default() {
        if let Some(path) = said.note(removed) {
            said.say(&format!("removed {}", path.display()))?;
        }
    }
    if said.lines == 0 && said.failed.is_empty() {
        print("nothing to clean up\n")?;
    }
    if said.failed.is_empty() { Ok(0) } else { Err(Failure::Other(said.failed.join("\n"))) }
}

/// Removes what killed runs of this owner left, without a word about it, except for barriers at interfaces. Whether
/// there was such a run.
pub(crate) fn killed_runs_of(owner: &str) -> Result<bool, Failure> {
    let path = control::run_folder();
    let Some(folder) = OwnFolder::open(&path).map_err(other)? else { return Ok(false) };
    let mut cleaning = Cleaning { folder, said: Said { is_quiet: true, ..Said::default() } };
    cleaning.await_the_dying();
    let mut found = false;
    for run in records(&cleaning.folder).map_err(other)? {
        if let Some((RunState::Gone(locked), about)) = look(&cleaning.folder, &run).map_err(other)?
            && about.owner.as_deref() == Some(owner)
        {
            found = true;
            cleaning.run(&run, &locked)?;
        }
    }
    if found {
        cleaning.feeds()?;
        remove_if_empty(&path);
    }
    if cleaning.said.failed.is_empty() {
        Ok(found)
    } else {
        Err(Failure::Other(cleaning.said.failed.join("\n")))
    }
}

/// Messages for people.
#[derive(Default)]
struct Said {
    is_quiet: bool,
    lines: usize,
    /// What could not be done.
    failed: Vec<String>,
}

impl Said {
    fn say(&mut self, line: &str) -> Result<(), Failure> {
        self.lines += 1;
        if self.is_quiet { Ok(()) } else { print(&format!("{line}\n")) }
    }

    /// Returns the result; records an error for the end.
    fn note<T>(&mut self, result: Result<T, impl Display>) -> Option<T> {
        result.map_err(|error| self.failed.push(error.to_string())).ok()
    }
}

struct Cleaning {
    folder: OwnFolder,
    said: Said,
}

impl Cleaning {
    fn everything(&mut self) -> Result<(), Failure> {
        self.await_the_dying();
        self.runs()?;
        self.control_sockets()?;
        self.feeds()?;
        for left in [run_record::remove_unfinished(&self.folder), group::remove_left(&self.folder)] {
            for name in self.said.note(left).unwrap_or_default() {
                self.said.say(&format!("removed {}", self.folder.path().join(name).display()))?;
            }
        }
        let here = Namespace::current();
        let Some(here) = self.said.note(here) else { return Ok(()) };
        let settings = ledger::restore_abandoned(&here, &self.folder.path().join(SETTINGS));
        self.put_back(settings, |setting| format!("restored {} to {}", setting.key, setting.before))?;
        let interfaces = saved_interface::restore_abandoned(&here, &self.folder.path().join(INTERFACES));
        self.put_back(interfaces, |interface| format!("restored {}", interface.interface))
    }

    /// Waits until runs that have just been killed have closed their files: until then they look alive.
    fn await_the_dying(&mut self) {
        const PAUSE: Duration = Duration::from_millis(10);
        const PAUSES: u32 = 100;
        let sockets = control::sockets(self.folder.path());
        let mut runs: Vec<u32> =
            self.said.note(sockets).unwrap_or_default().into_iter().map(|(run, _)| run).collect();
        runs.extend(self.recorded().unwrap_or_default());
        for _ in 0..PAUSES {
            if !runs.iter().any(|run| is_dying(*run)) {
                break;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Terminates programs of killed runs, and removes the control sockets and records of these runs.
    fn runs(&mut self) -> Result<(), Failure> {
        let mut seen = Vec::new();
        // A killed process may itself be a run nested in the killed one: repeat until no more are found.
        loop {
            let all = records(&self.folder);
            let all = self.said.note(all).unwrap_or_default();
            let before = seen.len();
            for run in all {
                if seen.contains(&run) {
                    continue;
                }
                match look(&self.folder, &run) {
                    Ok(Some((RunState::Gone(locked), _))) => {
                        self.run(&run, &locked)?;
                        seen.push(run);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        self.said.failed.push(error.to_string());
                        seen.push(run);
                    }
                }
            }
            if seen.len() == before {
                return Ok(());
            }
        }
    }

    /// Cleans up after a killed run; its record is locked meanwhile.
    fn run(&mut self, run: &RecordName, _locked: &File) -> Result<(), Failure> {
        let left = self.kill(run)?;
        if !left.is_empty() {
            let left: Vec<_> = left.iter().map(u32::to_string).collect();
            let what =
                format!("cannot end what run {} left: process {} still runs", run.run, left.join(", "));
            self.said.failed.push(what);
            return Ok(());
        }
        let socket = control::socket_name(run.run);
        // Another run may have the same number by now, in another PID namespace.
        if self.is_dead(&socket) {
            self.remove(&socket)?;
        }
        self.remove(&run.to_string())
    }

    /// Kills all processes that the run marked as its own. Returns those that survive.
    fn kill(&mut self, run: &RecordName) -> Result<Vec<u32>, Failure> {
        const PAUSE: Duration = Duration::from_millis(2);
        const PAUSES: u32 = 1000;
        let id = run.id.to_string();
        let mark = Mark { name: run_record::ENVIRONMENT, value: &id };
        let mut told = Vec::new();
        let mut left = Vec::new();
        // A killed process may have started another one just before, and the kernel needs time.
        for _ in 0..PAUSES {
            left = mark
                .processes()
                .map_err(|error| other(format!("cannot look through the processes: {error}")))?;
            if left.is_empty() {
                break;
            }
            for &process in &left {
                if mark.kill(process).unwrap_or(false) && !told.contains(&process) {
                    self.said.say(&format!("killed process {process} of run {}", run.run))?;
                    told.push(process);
                }
            }
            thread::sleep(PAUSE);
        }
        Ok(left)
    }

    /// Removes control sockets of runs without a record, from older versions. What else they left behind is
    /// unknown.
    fn control_sockets(&mut self) -> Result<(), Failure> {
        // Collected first: the record of a run that starts meanwhile is then in the list below.
        let sockets = control::sockets(self.folder.path());
        let sockets = self.said.note(sockets).unwrap_or_default();
        let Some(recorded) = self.recorded() else { return Ok(()) };
        for (run, _) in sockets.iter().filter(|(run, _)| !recorded.contains(run)) {
            let name = control::socket_name(*run);
            if self.is_dead(&name) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Removes sockets of feeds whose run has neither a record nor a control socket: a run creates these
    /// before the sockets of its feeds, and removes them after.
    fn feeds(&mut self) -> Result<(), Failure> {
        // Collected first, as above.
        let feeds = feeds::leftovers(&self.folder);
        let feeds = self.said.note(feeds).unwrap_or_default();
        let sockets = control::sockets(self.folder.path());
        let (Some(sockets), Some(recorded)) = (self.said.note(sockets), self.recorded()) else {
            return Ok(());
        };
        for feed in feeds {
            let has_run = recorded.contains(&feed.run) || sockets.iter().any(|(run, _)| *run == feed.run);
            if !has_run && self.is_dead(&feed.name) {
                self.remove(&feed.name)?;
            }
        }
        Ok(())
    }

    /// The numbers of runs with a record.
    fn recorded(&mut self) -> Option<Vec<u32>> {
        let all = records(&self.folder);
        Some(self.said.note(all)?.into_iter().map(|run| run.run).collect())
    }

    /// Whether this is a socket of ours that nobody listens on.
    fn is_dead(&self, name: &str) -> bool {
        self.folder.has_own_socket(name) && listener(&self.folder.path().join(name)) == Listener::Dead
    }

    fn remove(&mut self, name: &str) -> Result<(), Failure> {
        let removed = self.folder.remove(name);
        match self.said.note(removed) {
            Some(true) => self.said.say(&format!("removed {}", self.folder.path().join(name).display())),
            // A concurrent cleanup removed it first.
            _ => Ok(()),
        }
    }

    /// Reports the outcome for a ledger.
    fn put_back<R>(
        &mut self,
        cleared: Result<Cleared<R>, LedgerError>,
        words: impl Fn(&R) -> String,
    ) -> Result<(), Failure> {
        let Some(cleared) = self.said.note(cleared) else { return Ok(()) };
        for record in &cleared.put_back {
            self.said.say(&words(record))?;
        }
        for (verb, entries) in [("removed", &cleared.removed), ("left", &cleared.left)] {
            for entry in entries {
                self.said.say(&format!("{verb} {}: {}", entry.path.display(), entry.why))?;
            }
        }
        self.said.failed.extend(cleared.failed.iter().map(LedgerError::to_string));
        Ok(())
    }
}

fn other(error: impl Display) -> Failure {
    Failure::Other(error.to_string())
}
