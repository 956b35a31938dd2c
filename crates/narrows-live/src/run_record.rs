//! Identifies runs: the record that a run keeps beside its control socket.
//!
//! Process IDs are reused, quickly in a container with few of them. So each run draws a unique identifier. Its
//! programs carry it in their environment ([`ENVIRONMENT`]), and a file in the run folder, `NUMBER.ID.run`, contains
//! the process of the run and [its description](About). The file exists before any program is started, and until the
//! control socket is gone. The run holds a lock on it, which the kernel releases even after `kill -9`, and which is
//! visible from any PID namespace.

mod about;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use narrows_io::allocator::RemovedWhenFull;
use narrows_io::own_folder::{Lock, OwnFolder, OwnFolderError, UNFINISHED};
use narrows_io::process_identity::ProcessIdentity;
use narrows_io::random;
use serde::{Deserialize, Serialize};

use crate::run_name::RunName;

pub use about::{About, Identity, Membership, RunKind, ago};

/// The environment variable that marks every process of a run with the run's identifier.
pub const ENVIRONMENT: &str = "NARROWS_RUN_ID";

/// The environment variable with the number of the run, by which users refer to it.
pub const RUN_ENVIRONMENT: &str = "NARROWS_RUN";
/// The environment variable with its name.
pub const NAME_ENVIRONMENT: &str = "NARROWS_RUN_NAME";

/// The suffix of records.
const SUFFIX: &str = ".run";
/// The maximum length; records are far shorter.
const LONGEST: u64 = 1 << 16;

/// The unique identifier of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(u128);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl RunId {
    fn parse(text: &str) -> Option<Self> {
        let id = u128::from_str_radix(text, 16).ok().map(Self)?;
        // Only one spelling is accepted, without signs and capitals.
        (id.to_string() == text).then_some(id)
    }
}

/// The contents of a record.
#[derive(Serialize, Deserialize)]
struct Contents {
    #[serde(flatten)]
    process: ProcessIdentity,
    #[serde(flatten)]
    about: About,
}

/// The file name of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordName {
    /// The number of the run, which is its process ID.
    pub run: u32,
    /// Its identifier.
    pub id: RunId,
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}{SUFFIX}", self.run, self.id)
    }
}

impl RecordName {
    /// Parses a file name in the run folder; `None` if it is not a record's.
    pub fn parse(file: &str) -> Option<Self> {
        let (run, id) = file.strip_suffix(SUFFIX)?.split_once('.')?;
        Some(Self { run: number(run)?, id: RunId::parse(id)? })
    }
}

/// The number of a run, with which the names of its files begin.
pub fn number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunRecordError {
    /// The file cannot be accessed safely.
    #[error(transparent)]
    Folder(#[from] OwnFolderError),
    /// It cannot be read or locked.
    #[error("cannot {verb} {}: {cause}", path.display())]
    Refused {
        /// What was tried.
        verb: &'static str,
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
    /// It has unknown contents.
    #[error("{} is not a run record of narrows; check and remove it", .0.display())]
    Unreadable(PathBuf),
}

impl About {
    /// What a record says about its run; `None` if it is not a record.
    pub fn read(record: &str) -> Option<Self> {
        serde_json::from_str(record).ok().map(|contents: Contents| contents.about)
    }
}

/// Why a run cannot have a record.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Another run has that name.
    #[error("the name `{name}` is taken: run {run} has it, a narrows {} that began {}", about.kind, about.age())]
    Taken {
        /// The name.
        name: RunName,
        /// The run that has it.
        run: u32,
        /// What is known of that run.
        about: Box<About>,
    },
    /// The folder, or a file in it, cannot be used.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// The record of this run, as long as this value lives.
#[derive(Debug)]
pub struct HeldRecord {
    folder: OwnFolder,
    record: RecordName,
    name: RunName,
    _locked: File,
    _removed: RemovedWhenFull,
}

impl HeldRecord {
    /// Draws an identifier, takes the name or picks one, and writes the record. The folder must exist.
    ///
    /// # Errors
    /// If another run has the name, or the kernel refuses.
    pub fn write(path: &Path, mut about: About) -> Result<Self, HoldError> {
        let folder = OwnFolder::make(path).map_err(OwnFolderError::into_io)?;
        // Names are assigned one at a time. The lock belongs to its own descriptor, independent of the other.
        let turn = OwnFolder::make(path).map_err(OwnFolderError::into_io)?;
        turn.lock().map_err(OwnFolderError::into_io)?;
        let process = ProcessIdentity::own()?;
        let record = RecordName { run: process.process, id: RunId(random::bits()?) };
        let named = named(&folder).map_err(OwnFolderError::into_io)?;
        let name = match about.name.take() {
            Some(name) => match named.into_iter().find(|(_, about)| about.name.as_ref() == Some(&name)) {
                Some((other, about)) => {
                    return Err(HoldError::Taken { name, run: other.run, about: Box::new(about) });
                }
                None => name,
            },
            None => {
                let taken: BTreeSet<_> = named.into_iter().filter_map(|(_, about)| about.name).collect();
                RunName::pick(record.id.0, &taken)
            }
        };
        about.name = Some(name.clone());
        let text = serde_json::to_string(&Contents { process, about }).map_err(io::Error::from)? + "\n";
        let removed = RemovedWhenFull::new(&path.join(record.to_string()));
        let locked =
            folder.replace(&record.to_string(), &text, Lock::Exclusive).map_err(OwnFolderError::into_io)?;
        Ok(Self { folder, record, name, _locked: locked, _removed: removed })
    }

    /// The run's identifier.
    pub fn id(&self) -> RunId {
        self.record.id
    }

    /// The run's name.
    pub fn name(&self) -> &RunName {
        &self.name
    }
}

/// The running runs that have a name.
fn named(folder: &OwnFolder) -> Result<Vec<(RecordName, About)>, OwnFolderError> {
    let mut all = Vec::new();
    for record in records(folder)? {
        // A record that cannot be read has no name that anybody could use.
        if let Ok(Some((RunState::GoingOn, about))) = look(folder, &record) {
            all.push((record, about));
        }
    }
    Ok(all)
}

impl Drop for HeldRecord {
    fn drop(&mut self) {
        // `narrows clean` removes what is left.
        let _ = self.folder.remove(&self.record.to_string());
    }
}

/// Whether a run is still running.
#[derive(Debug)]
pub enum RunState {
    /// It is running.
    GoingOn,
    /// Its process is gone. The record is locked as long as this value lives, so that nobody else cleans up after it.
    Gone(File),
}

/// The records in the run folder.
///
/// # Errors
/// If it cannot be read.
pub fn records(folder: &OwnFolder) -> Result<Vec<RecordName>, OwnFolderError> {
    Ok(folder.names()?.iter().filter_map(|name| RecordName::parse(name)).collect())
}

/// Whether the run of this record is still running, and its description; `None` if the record is gone by now.
///
/// # Errors
/// If that cannot be determined.
pub fn look(folder: &OwnFolder, name: &RecordName) -> Result<Option<(RunState, About)>, RunRecordError> {
    let file_name = name.to_string();
    let path = folder.path().join(&file_name);
    let refused = |verb, cause| RunRecordError::Refused { verb, path: path.clone(), cause };
    let Some(mut file) = folder.open_file(&file_name)? else { return Ok(None) };
    let is_held = match file.try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(cause)) => return Err(refused("lock", cause)),
    };
    let mut text = String::new();
    let contents = match Read::take(&mut file, LONGEST).read_to_string(&mut text) {
        Err(cause) if cause.kind() == ErrorKind::InvalidData => None,
        read => {
            read.map_err(|cause| refused("read", cause))?;
            serde_json::from_str(&text)
                .ok()
                .filter(|contents: &Contents| contents.process.process == name.run)
        }
    };
    // If the lock is held, the run is running, whatever the record says.
    let Some(Contents { process, about }) = contents else {
        return if is_held {
            Ok(Some((RunState::GoingOn, About::default())))
        } else {
            Err(RunRecordError::Unreadable(path))
        };
    };
    if is_held {
        return Ok(Some((RunState::GoingOn, about)));
    }
    let is_running = process.is_running().map_err(|cause| refused("tell who wrote", cause))?;
    // From another PID namespace, only the lock tells.
    let standing = if is_running == Some(true) { RunState::GoingOn } else { RunState::Gone(file) };
    Ok(Some((standing, about)))
}

/// Removes unfinished records of killed runs, which had not started anything. Returns their names.
///
/// # Errors
/// If the kernel refuses.
pub fn remove_unfinished(folder: &OwnFolder) -> Result<Vec<String>, OwnFolderError> {
    // A run about to complete one will start over.
    folder.remove_unlocked(|name| {
        name.strip_prefix(UNFINISHED).is_some_and(|name| RecordName::parse(name).is_some())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> (Self, OwnFolder) {
            let path = std::env::temp_dir().join(format!("narrows-records-{}-{name}", std::process::id()));
            let folder = OwnFolder::make(&path).unwrap();
            (Self(path), folder)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn names_are_read_as_they_are_written_and_no_others() {
        let name = RecordName { run: 12, id: RunId(0xabc) };
        assert_eq!(name.to_string(), "12.00000000000000000000000000000abc.run");
        assert_eq!(RecordName::parse(&name.to_string()), Some(name));
        for other in [
            ".run",
            "12.run",
            "12..run",
            "+1.00000000000000000000000000000abc.run",
            "12.00000000000000000000000000000ABC.run",
            "12.abc.run",
            "12.00000000000000000000000000000abc.sock",
        ] {
            assert_eq!(RecordName::parse(other), None, "{other}");
        }
        assert_eq!([number("7"), number(""), number("07"), number("+7")], [Some(7), None, None, None]);
    }

    #[test]
    fn a_run_is_going_on_as_long_as_it_holds_its_record() {
        let (_scratch, folder) = Scratch::new("held");
        let record = HeldRecord::write(folder.path(), About::default()).unwrap();
        let [name] = &records(&folder).unwrap()[..] else { panic!("one record") };
        assert_eq!((name.run, name.id), (std::process::id(), record.id()));
        assert!(matches!(look(&folder, name), Ok(Some((RunState::GoingOn, _)))));
        // Even as seen from where its number means nothing.
        let path = folder.path().join(name.to_string());
        let text = fs::read_to_string(&path).unwrap();
        let mut elsewhere: serde_json::Value = serde_json::from_str(&text).unwrap();
        elsewhere["pid-namespace"] = 1.into();
        fs::write(&path, elsewhere.to_string()).unwrap();
        assert!(matches!(look(&folder, name), Ok(Some((RunState::GoingOn, _)))));
        drop(record);
        assert_eq!(records(&folder).unwrap(), []);
        assert!(look(&folder, name).unwrap().is_none());
    }

    #[test]
    fn a_name_belongs_to_one_run_at_a_time() {
        let (_scratch, folder) = Scratch::new("named");
        let lab = || About { name: Some("lab".parse().unwrap()), hosts: 3, ..About::default() };
        let first = HeldRecord::write(folder.path(), lab()).unwrap();
        let refused = HeldRecord::write(folder.path(), lab()).unwrap_err().to_string();
        let who =
            format!("the name `lab` is taken: run {} has it, a narrows run that began", std::process::id());
        assert!(refused.starts_with(&who), "{refused}");
        let others: Vec<_> =
            (0..3).map(|_| HeldRecord::write(folder.path(), About::default()).unwrap()).collect();
        let names: BTreeSet<_> = others.iter().map(HeldRecord::name).collect();
        assert_eq!(names.len(), 3);
        drop(first);
        // Neither does a killed run keep its name.
        let text = serde_json::to_string(&Contents {
            process: ProcessIdentity {
                process: 7,
                boot: "earlier".into(),
                ..ProcessIdentity::own().unwrap()
            },
            about: lab(),
        });
        let dead = RecordName { run: 7, id: RunId(1) };
        drop(folder.replace(&dead.to_string(), &text.unwrap(), Lock::Exclusive).unwrap());
        let Ok(Some((RunState::Gone(_), about))) = look(&folder, &dead) else { panic!("it is dead") };
        assert_eq!((about.name.unwrap().as_str(), about.hosts), ("lab", 3));
        assert_eq!(HeldRecord::write(folder.path(), lab()).unwrap().name().as_str(), "lab");
    }

    #[test]
    fn a_run_is_gone_when_nobody_holds_its_record_and_its_process_is_another() {
        let (_scratch, folder) = Scratch::new("gone");
        let own = ProcessIdentity::own().unwrap();
        let name = RecordName { run: own.process, id: RunId(1) };
        let put = |process: &ProcessIdentity| {
            let text = serde_json::to_string(process).unwrap();
            drop(folder.replace(&name.to_string(), &text, Lock::Exclusive).unwrap());
        };
        // A lock that got lost is not all that is looked at.
        put(&own);
        assert!(matches!(look(&folder, &name), Ok(Some((RunState::GoingOn, _)))));
        for gone in [
            ProcessIdentity { started: own.started - 1, ..own.clone() },
            ProcessIdentity { boot: "earlier".into(), ..own.clone() },
            ProcessIdentity { pid_namespace: 1, ..own.clone() },
        ] {
            put(&gone);
            let Ok(Some((RunState::Gone(_locked), _))) = look(&folder, &name) else { panic!("{gone:?}") };
            assert!(matches!(look(&folder, &name), Ok(Some((RunState::GoingOn, _)))), "somebody cleans up");
        }
        put(&ProcessIdentity { process: own.process + 1, ..own });
        assert!(matches!(look(&folder, &name), Err(RunRecordError::Unreadable(_))));
        for text in ["", "{", "hello"] {
            fs::write(folder.path().join(name.to_string()), text).unwrap();
            assert!(matches!(look(&folder, &name), Err(RunRecordError::Unreadable(_))), "{text:?}");
        }
    }

    #[test]
    fn what_was_not_put_in_place_is_removed_unless_somebody_is_about_to() {
        let (_scratch, folder) = Scratch::new("unfinished");
        let name = format!("{UNFINISHED}{}", RecordName { run: 7, id: RunId(1) });
        let file = folder.replace(&name, "", Lock::Exclusive).unwrap();
        assert_eq!(remove_unfinished(&folder).unwrap(), <[String; 0]>::default());
        drop(file);
        folder.replace("new.notes", "", Lock::Exclusive).unwrap();
        assert_eq!(remove_unfinished(&folder).unwrap(), [name]);
        assert_eq!(folder.names().unwrap(), ["new.notes"]);
    }
}
