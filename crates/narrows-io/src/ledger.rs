//! What runs changed about the host, written down before it is changed, so that it is put back whatever ends them.
//!
//! Each change has a file in a folder, the ledger, which lies in a folder of the user's own. A run that needs the change
//! holds a lock on the file; the kernel lets go of the lock even after `kill -9`. So a file that nobody has locked was left by
//! a killed run, and what it says is put back. Files are written, locked, put back and removed one at a time, under
//! a lock on the folder. Both folders are made when they are needed, and go when nothing is in them.
//!
//! | a file | becomes of it |
//! |---|---|
//! | of a namespace that is there | what it says is put back; what is gone, or was changed by others since, is not, and it is said |
//! | of an earlier boot, or of a namespace that is gone | it is removed |
//! | of a namespace that cannot be seen from here | it is left |
//! | cut off, or not put in place ([`UNFINISHED`]) | it is removed: the change comes after its file is complete |
//! | anything else | it is left, and is an error |
//!
//! Files of versions that wrote down no boot ([`NamespaceIdentity`]) count as of this boot if they were changed since the
//! host started; else they are left until a run makes the same change.

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

/// Why something could not be changed or put back.
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
    /// Another run is on it.
    #[error(
        "another run of narrows is on the interface `{interface}`: end that first (`narrows clean` puts back what killed runs \
         left)"
    )]
    Taken {
        /// The interface.
        interface: String,
    },
    /// What was put back is not as it was.
    #[error(
        "the interface `{interface}` is not fully restored: {offloads} cannot be switched on again; try `ethtool -K`"
    )]
    NotAsBefore {
        /// The interface.
        interface: String,
        /// What is still off.
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
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
    /// Somebody else wrote the file, or changed it.
    #[error("{} is not a restore record of narrows; check and remove it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
}

/// What a file of a ledger says.
pub(crate) trait Record: Sized {
    /// What its file is called: it begins with the namespace's inode and a hyphen.
    fn name(&self) -> String;

    /// Whose namespace was changed.
    fn namespace(&mut self) -> &mut NamespaceIdentity;

    /// What that was opened by, if it was not the caller's.
    fn reference(&self) -> Option<&str>;

    /// As it is written.
    fn text(&self) -> String;

    /// As it is read; nothing of a text that this is not.
    fn parse(text: &str) -> Option<Self>;

    /// Undoes the change, if nobody else has changed it since.
    fn put_back(&self, namespace: &Namespace) -> Result<PutBack, LedgerError>;
}

/// What came of putting something back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// It is as it was.
    Done,
    /// There was nothing to put back, and why.
    Moot(String),
}

/// What became of the files that killed runs left.
#[derive(Debug)]
pub struct Cleared<R> {
    /// What was put back.
    pub put_back: Vec<R>,
    /// Files that were removed, as there was nothing to put back.
    pub removed: Vec<Entry>,
    /// Files that were left for somebody who sees their namespace.
    pub left: Vec<Entry>,
    /// What could not be done; those files were left, too.
    pub failed: Vec<LedgerError>,
}

/// A file of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is, or was.
    pub path: PathBuf,
    /// Why that became of it.
    pub why: String,
}

impl<R> Default for Cleared<R> {
    fn default() -> Self {
        Self { put_back: Vec::new(), removed: Vec::new(), left: Vec::new(), failed: Vec::new() }
    }
}

impl<R> Cleared<R> {
    /// Whether there was nothing.
    pub fn is_empty(&self) -> bool {
        let Self { put_back, removed, left, failed } = self;
        put_back.is_empty() && removed.is_empty() && left.is_empty() && failed.is_empty()
    }
}

/// Puts back what killed runs left changed: in `here`, and in namespaces that can still be found. What one file stands in
/// the way of, is done for the others.
///
/// # Errors
/// When the ledger cannot be read.
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

/// What becomes of one file.
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

/// Where a record's namespace is by now.
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

/// Locks a file for us alone, in the place of the lock that we have on it; whether nobody else has one.
pub(crate) fn try_lock(file: &File, path: &Path) -> Result<bool, LedgerError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(cause)) => Err(at("lock", path)(cause)),
    }
}
