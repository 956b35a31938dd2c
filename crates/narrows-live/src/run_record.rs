//! Which run is which: the record that a run keeps beside its control socket.
//!
//! Numbers of processes come again, soon where a container has few of them. So each run draws an identifier that no other
//! has. Its programs carry it in their environment ([`ENVIRONMENT`]), and a file in the run folder, `NUMBER.ID.run`, says
//! which process the run is. The file is there before any program is started, and until the control socket is gone. The run
//! holds a lock on it, which the kernel lets go of even after `kill -9`, and which can be seen from any PID namespace.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use narrows_io::own_folder::{Lock, OwnFolder, OwnFolderError, UNFINISHED};
use narrows_io::process_identity::ProcessIdentity;
use narrows_io::random;

/// The variable that marks every process of a run, with the run's identifier.
pub const ENVIRONMENT: &str = "NARROWS_RUN_ID";

/// What the name of a record ends with.
const SUFFIX: &str = ".run";
/// A record is far shorter.
const LONGEST: u64 = 1 << 12;

/// An identifier that no other run has.
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
        // One spelling for each, without signs and capitals.
        (id.to_string() == text).then_some(id)
    }
}

/// What a record is called by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunName {
    /// The number of the run, which is that of its process.
    pub run: u32,
    /// Its identifier.
    pub id: RunId,
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}{SUFFIX}", self.run, self.id)
    }
}

impl RunName {
    /// Of a file in the run folder, if it is a record.
    pub fn parse(file: &str) -> Option<Self> {
        let (run, id) = file.strip_suffix(SUFFIX)?.split_once('.')?;
        Some(Self { run: number(run)?, id: RunId::parse(id)? })
    }
}

/// The number of a run, as the names of its files begin with it.
pub fn number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Why a record cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum RunRecordError {
    /// The file.
    #[error(transparent)]
    Folder(#[from] OwnFolderError),
    /// It could not be read or locked.
    #[error("cannot {verb} {}: {cause}", path.display())]
    Refused {
        /// What was tried.
        verb: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
    /// It says something else.
    #[error("{} does not say which process a run is, as narrows writes it; look at it and remove it", .0.display())]
    Unreadable(PathBuf),
}

/// The record of this run, as long as this value lives.
#[derive(Debug)]
pub struct HeldRecord {
    folder: OwnFolder,
    name: RunName,
    _locked: File,
}

impl HeldRecord {
    /// Draws an identifier and writes the record.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn write(folder: OwnFolder) -> io::Result<Self> {
        let process = ProcessIdentity::own()?;
        let name = RunName { run: process.process, id: RunId(random::bits()?) };
        let text = serde_json::to_string(&process)? + "\n";
        let locked =
            folder.replace(&name.to_string(), &text, Lock::Exclusive).map_err(OwnFolderError::into_io)?;
        Ok(Self { folder, name, _locked: locked })
    }

    /// The run's identifier.
    pub fn id(&self) -> RunId {
        self.name.id
    }
}

impl Drop for HeldRecord {
    fn drop(&mut self) {
        // What is left is removed by `narrows clean`.
        let _ = self.folder.remove(&self.name.to_string());
    }
}

/// Whether a run is still going on.
#[derive(Debug)]
pub enum Standing {
    /// It is.
    GoingOn,
    /// Its process is gone. The record is locked as long as this value lives, so that nobody else cleans up after it.
    Gone(File),
}

/// The records in the run folder.
///
/// # Errors
/// When it cannot be read.
pub fn records(folder: &OwnFolder) -> Result<Vec<RunName>, OwnFolderError> {
    Ok(folder.names()?.iter().filter_map(|name| RunName::parse(name)).collect())
}

/// Whether the run of this record is still going on; nothing if the record is gone by now.
///
/// # Errors
/// When that cannot be told.
pub fn look(folder: &OwnFolder, name: &RunName) -> Result<Option<Standing>, RunRecordError> {
    let file_name = name.to_string();
    let path = folder.path().join(&file_name);
    let refused = |verb, cause| RunRecordError::Refused { verb, path: path.clone(), cause };
    let Some(mut file) = folder.open_file(&file_name)? else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Some(Standing::GoingOn)),
        Err(TryLockError::Error(cause)) => return Err(refused("lock", cause)),
    }
    let mut text = String::new();
    match Read::take(&mut file, LONGEST).read_to_string(&mut text) {
        Err(cause) if cause.kind() == ErrorKind::InvalidData => return Err(RunRecordError::Unreadable(path)),
        read => drop(read.map_err(|cause| refused("read", cause))?),
    }
    let process: ProcessIdentity = serde_json::from_str(&text)
        .ok()
        .filter(|process: &ProcessIdentity| process.process == name.run)
        .ok_or_else(|| RunRecordError::Unreadable(path.clone()))?;
    let is_running = process.is_running().map_err(|cause| refused("tell who wrote", cause))?;
    // From another PID namespace the lock alone tells.
    Ok(Some(if is_running == Some(true) { Standing::GoingOn } else { Standing::Gone(file) }))
}

/// Removes records that killed runs had not put in place yet: those had started nothing. Gives their names.
///
/// # Errors
/// When the kernel refuses.
pub fn remove_unfinished(folder: &OwnFolder) -> Result<Vec<String>, OwnFolderError> {
    let is_unfinished =
        |name: &String| name.strip_prefix(UNFINISHED).is_some_and(|name| RunName::parse(name).is_some());
    let mut removed = Vec::new();
    for name in folder.names()?.into_iter().filter(is_unfinished) {
        // A run that is about to put it in place then begins again.
        let Some(file) = folder.open_file(&name)? else { continue };
        if file.try_lock().is_ok() && folder.remove(&name)? {
            removed.push(name);
        }
    }
    Ok(removed)
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

    fn again(folder: &OwnFolder) -> OwnFolder {
        OwnFolder::open(folder.path()).unwrap().unwrap()
    }

    #[test]
    fn names_are_read_as_they_are_written_and_no_others() {
        let name = RunName { run: 12, id: RunId(0xabc) };
        assert_eq!(name.to_string(), "12.00000000000000000000000000000abc.run");
        assert_eq!(RunName::parse(&name.to_string()), Some(name));
        for other in [
            ".run",
            "12.run",
            "12..run",
            "+1.00000000000000000000000000000abc.run",
            "12.00000000000000000000000000000ABC.run",
            "12.abc.run",
            "12.00000000000000000000000000000abc.sock",
        ] {
            assert_eq!(RunName::parse(other), None, "{other}");
        }
        assert_eq!([number("7"), number(""), number("07"), number("+7")], [Some(7), None, None, None]);
    }

    #[test]
    fn a_run_is_going_on_as_long_as_it_holds_its_record() {
        let (_scratch, folder) = Scratch::new("held");
        let record = HeldRecord::write(again(&folder)).unwrap();
        let [name] = &records(&folder).unwrap()[..] else { panic!("one record") };
        assert_eq!((name.run, name.id), (std::process::id(), record.id()));
        assert!(matches!(look(&folder, name), Ok(Some(Standing::GoingOn))));
        // Even as seen from where its number means nothing.
        let path = folder.path().join(name.to_string());
        let text = fs::read_to_string(&path).unwrap();
        let mut elsewhere: serde_json::Value = serde_json::from_str(&text).unwrap();
        elsewhere["pid-namespace"] = 1.into();
        fs::write(&path, elsewhere.to_string()).unwrap();
        assert!(matches!(look(&folder, name), Ok(Some(Standing::GoingOn))));
        drop(record);
        assert_eq!(records(&folder).unwrap(), []);
        assert!(look(&folder, name).unwrap().is_none());
    }

    #[test]
    fn a_run_is_gone_when_nobody_holds_its_record_and_its_process_is_another() {
        let (_scratch, folder) = Scratch::new("gone");
        let own = ProcessIdentity::own().unwrap();
        let name = RunName { run: own.process, id: RunId(1) };
        let put = |process: &ProcessIdentity| {
            let text = serde_json::to_string(process).unwrap();
            drop(folder.replace(&name.to_string(), &text, Lock::Exclusive).unwrap());
        };
        // A lock that got lost is not all that is looked at.
        put(&own);
        assert!(matches!(look(&folder, &name), Ok(Some(Standing::GoingOn))));
        for gone in [
            ProcessIdentity { started: own.started - 1, ..own.clone() },
            ProcessIdentity { boot: "earlier".into(), ..own.clone() },
            ProcessIdentity { pid_namespace: 1, ..own.clone() },
        ] {
            put(&gone);
            let Ok(Some(Standing::Gone(_locked))) = look(&folder, &name) else { panic!("{gone:?}") };
            assert!(matches!(look(&folder, &name), Ok(Some(Standing::GoingOn))), "somebody cleans up");
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
        let name = format!("{UNFINISHED}{}", RunName { run: 7, id: RunId(1) });
        let file = folder.replace(&name, "", Lock::Exclusive).unwrap();
        assert_eq!(remove_unfinished(&folder).unwrap(), <[String; 0]>::default());
        drop(file);
        folder.replace("new.notes", "", Lock::Exclusive).unwrap();
        assert_eq!(remove_unfinished(&folder).unwrap(), [name]);
        assert_eq!(folder.names().unwrap(), ["new.notes"]);
    }
}
