//! Changes that runs make to the host, recorded beforehand, so that they are reverted whatever ends the runs.
//!
//! Each change has a file in a folder, the ledger, inside a folder of the user's own. A run that needs the change
//! holds a lock on the file, which the kernel releases even after `kill -9`. So a file that nobody has locked was
//! left by a killed run, and its change is reverted. Files are written, locked, reverted and removed one at a time,
//! under a lock on the folder. Both folders are created when needed, and removed when empty.
//!
//! | a file | is handled so |
//! |---|---|
//! | of an existing namespace | its change is reverted; what no longer exists, or was changed by others since, is not, and this is reported |
//! | of an earlier boot, or of a namespace that is gone | removed |
//! | of a namespace that is not visible from here | left |
//! | truncated, or unfinished ([`UNFINISHED`]) | removed: a change is made after its file is complete |
//! | any other | left, and reported as an error |
//!
//! Files of versions that did not record the boot ([`NamespaceIdentity`]) count as of this boot if they were modified
//! since the host started; otherwise they are left until a run makes the same change.

mod setting;
mod turn;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::namespace::{Namespace, NamespaceError};
use crate::namespace_identity::{NamespaceIdentity, Relation};
use crate::namespace_search::{Found, find};
use crate::offload::OffloadError;
use crate::own_folder::{OwnFolderError, UNFINISHED};
use crate::route_socket::NetlinkError;
use crate::sysctl::SysctlError;

use turn::{Content, inode_in};

pub use setting::{RaisedSetting, SettingRecord, restore_abandoned};
pub(crate) use turn::{Existing, Turn};

/// Why something could not be changed or reverted.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The setting could not be read or written.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// An interface's offloads could not be read or changed.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// The interfaces cannot be listed.
    #[error(transparent)]
    Interface(Box<NetlinkError>),
    /// Another run uses it.
    #[error(
        "another run of narrows is on the interface `{interface}`: end that first (`narrows clean` puts back what killed runs \
         left)"
    )]
    Taken {
        /// The interface.
        interface: String,
    },
    /// The interface was not fully restored.
    #[error(
        "the interface `{interface}` is not fully restored: {offloads} cannot be switched on again; try `ethtool -K`"
    )]
    NotAsBefore {
        /// The interface.
        interface: String,
        /// The offloads that are still off.
        offloads: String,
    },
    /// The folder or a file in it could not be used.
    #[error("what to restore is unknown: {0}")]
    Folder(#[from] OwnFolderError),
    /// A file could not be locked or read.
    #[error("cannot {verb} {}, the record of what to restore: {cause}", path.display())]
    File {
        /// What was tried.
        verb: &'static str,
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The file was written or modified by something else.
    #[error("{} is not a restore record of narrows; check and remove it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
}

/// The contents of a ledger file.
pub(crate) trait Record: Sized {
    /// Its file name: it begins with the namespace's inode and a hyphen.
    fn name(&self) -> String;

    /// The namespace that was changed.
    fn namespace(&mut self) -> &mut NamespaceIdentity;

    /// What the namespace was opened by, if it was not the caller's.
    fn reference(&self) -> Option<&str>;

    /// Its text.
    fn text(&self) -> String;

    /// Parses its text; `None` if it is not such a record.
    fn parse(text: &str) -> Option<Self>;

    /// Reverts the change, unless somebody else has changed it since.
    fn put_back(&self, namespace: &Namespace) -> Result<PutBack, LedgerError>;
}

/// The result of reverting a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// It is as before.
    Done,
    /// There was nothing to revert, and why.
    Moot(String),
}

/// How the files left by killed runs were handled.
#[derive(Debug)]
pub struct Cleared<R> {
    /// Changes that were reverted.
    pub put_back: Vec<R>,
    /// Files that were removed because there was nothing to revert.
    pub removed: Vec<Entry>,
    /// Files that were left because their namespace is not visible.
    pub left: Vec<Entry>,
    /// Failures; those files were left, too.
    pub failed: Vec<LedgerError>,
}

/// A file of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

impl<R> Default for Cleared<R> {
    fn default() -> Self {
        Self { put_back: Vec::new(), removed: Vec::new(), left: Vec::new(), failed: Vec::new() }
    }
}

impl<R> Cleared<R> {
    /// Whether there were no files.
    pub fn is_empty(&self) -> bool {
        let Self { put_back, removed, left, failed } = self;
        put_back.is_empty() && removed.is_empty() && left.is_empty() && failed.is_empty()
    }
}

/// Reverts changes left by killed runs, in `here` and in namespaces that can still be found. An error with one file
/// does not affect the others.
///
/// # Errors
/// If the ledger cannot be read.
pub(crate) fn clear<R: Record>(here: &Namespace, ledger: &Path) -> Result<Cleared<R>, LedgerError> {
    let mut cleared = Cleared::default();
    let Some(turn) = Turn::find(ledger)? else { return Ok(cleared) };
    let own = NamespaceIdentity::of(here)?;
    for name in turn.ledger().names()? {
        if let Err(error) = clear_one(&turn, &name, (here, &own), &mut cleared) {
            cleared.failed.push(error);
        }
    }
    Ok(cleared)
}

/// Handles one file.
fn clear_one<R: Record>(
    turn: &Turn,
    name: &str,
    (here, own): (&Namespace, &NamespaceIdentity),
    cleared: &mut Cleared<R>,
) -> Result<(), LedgerError> {
    let path = turn.ledger().path().join(name);
    let Some(mut file) = turn.ledger().open_file(name)? else { return Ok(()) };
    if turn.is_held(&file, name)? {
        return Ok(());
    }
    let remove = |cleared: &mut Cleared<R>, why: &str| {
        turn.remove(name)?;
        cleared.removed.push(Entry { path: path.clone(), why: why.into() });
        Ok(())
    };
    if name.strip_prefix(UNFINISHED).is_some_and(|name| inode_in(name).is_some()) {
        return remove(cleared, "it was not complete, so nothing had been changed");
    }
    let mut record = match turn.content::<R>(&mut file, name)? {
        Content::Record(record) => record,
        Content::CutOff => return remove(cleared, "it was cut off, so nothing had been changed"),
        Content::Foreign => return Err(LedgerError::Unreadable { path }),
    };
    match whereabouts(&mut record, here, own)? {
        Whereabouts::At(namespace) => match record.put_back(&namespace)? {
            PutBack::Done => {
                turn.remove(name)?;
                cleared.put_back.push(record);
            }
            PutBack::Moot(why) => remove(cleared, &why)?,
        },
        Whereabouts::Gone(why) => remove(cleared, why)?,
        Whereabouts::Unseen(why) => cleared.left.push(Entry { path, why: why.into() }),
    }
    Ok(())
}

/// The present location of a record's namespace.
enum Whereabouts {
    At(Namespace),
    Gone(&'static str),
    Unseen(&'static str),
}

fn whereabouts(
    record: &mut impl Record,
    here: &Namespace,
    own: &NamespaceIdentity,
) -> Result<Whereabouts, LedgerError> {
    const GONE: &str = "its network namespace is gone";
    match record.namespace().compare(own) {
        Relation::Same => return Ok(Whereabouts::At(here.try_clone()?)),
        Relation::EarlierBoot => return Ok(Whereabouts::Gone("the host has been rebooted since")),
        Relation::Succeeded => return Ok(Whereabouts::Gone(GONE)),
        Relation::Unknown => {
            let why = "written by an older version, perhaps before a reboot; check and remove it";
            return Ok(Whereabouts::Unseen(why));
        }
        Relation::Other => {}
    }
    let opened = record.reference().and_then(|reference| Namespace::open(reference).ok());
    if let Some(there) = opened {
        match record.namespace().compare(&NamespaceIdentity::of(&there)?) {
            Relation::Same => return Ok(Whereabouts::At(there)),
            Relation::Succeeded => return Ok(Whereabouts::Gone(GONE)),
            _ => {}
        }
    }
    Ok(match find(record.namespace()) {
        Found::Open(there) => Whereabouts::At(there),
        Found::Gone => Whereabouts::Gone(GONE),
        Found::Unseen => Whereabouts::Unseen("its network namespace is not visible from here"),
    })
}

fn at<'a>(verb: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> LedgerError + 'a {
    move |cause| LedgerError::File { verb, path: path.into(), cause }
}

pub(crate) fn lock_shared(file: &File, path: &Path) -> Result<(), LedgerError> {
    file.lock_shared().map_err(at("lock", path))
}

/// Converts our lock on a file into an exclusive one; returns whether that succeeded because nobody else has a lock.
pub(crate) fn try_lock(file: &File, path: &Path) -> Result<bool, LedgerError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(cause)) => Err(at("lock", path)(cause)),
    }
}
