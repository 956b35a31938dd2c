//! Mutual exclusion: the right to read and change a ledger, and its files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{LedgerError, Record, at, try_lock};
use crate::host;
use crate::namespace_identity::{NamespaceIdentity, Relation};
use crate::own_folder::{Lock, OwnFolder, OwnFolderError, remove_if_empty};

/// The maximum length of a ledger file; they are far shorter.
const LONGEST: u64 = 1 << 16;
/// How often taking the turn is tried: its previous owner may remove the folder.
const TRIES: usize = 1000;

/// A file that already exists.
pub(crate) enum Existing<R> {
    /// A live run holds it.
    Held(File, R),
    /// A killed run left it, and it is about this namespace. It is locked.
    Left(File, R),
}

/// The kind of a file's text.
pub(super) enum Content<R> {
    Record(R),
    CutOff,
    Foreign,
}

/// The right to read and change the ledger, held by one process of this host at a time; for well under a millisecond,
/// unless there is something to revert.
pub(crate) struct Turn {
    ledger: OwnFolder,
    parent: OwnFolder,
}

impl Turn {
    /// Takes the turn; the ledger is created if necessary.
    pub(crate) fn take(ledger: &Path) -> Result<Self, LedgerError> {
        let (parent, name) = parts(ledger)?;
        let make = || {
            let parent = OwnFolder::make(parent)?;
            Ok((parent.make_folder(name)?, parent))
        };
        for _ in 0..TRIES {
            match make() {
                // The previous owner of the turn has just removed one of the folders.
                Err(error) if OwnFolderError::is_missing(&error) => {}
                Err(error) => return Err(error.into()),
                Ok((folder, parent)) => {
                    if let Some(turn) = Self::of(parent, folder, name)? {
                        return Ok(turn);
                    }
                }
            }
        }
        Err(at("make", ledger)(io::Error::other("it keeps being removed")))
    }

    /// Takes the turn, if there is a ledger.
    pub(super) fn find(ledger: &Path) -> Result<Option<Self>, LedgerError> {
        let (parent, name) = parts(ledger)?;
        loop {
            let Some(parent) = OwnFolder::open(parent)? else { return Ok(None) };
            let Some(folder) = parent.open_folder(name)? else { return Ok(None) };
            if let Some(turn) = Self::of(parent, folder, name)? {
                return Ok(Some(turn));
            }
        }
    }

    /// Waits for the turn; `None` if its previous owner has removed the folder.
    fn of(parent: OwnFolder, ledger: OwnFolder, name: &OsStr) -> Result<Option<Self>, LedgerError> {
        ledger.lock()?;
        let is_there = parent.open_folder(name)?.is_some_and(|there| there.is(&ledger));
        // Without the turn it must not be dropped: what exists by now is another process's to remove.
        if is_there { Ok(Some(Self { ledger, parent })) } else { Ok(None) }
    }

    /// The file of that name, if it is about the present namespace. A file that a killed run left about an earlier
    /// namespace with the same inode does not count.
    pub(crate) fn existing<R: Record>(
        &self,
        name: &str,
        now: &NamespaceIdentity,
    ) -> Result<Option<Existing<R>>, LedgerError> {
        let Some(mut file) = self.ledger.open_file(name)? else { return Ok(None) };
        let is_held = self.is_held(&file, name)?;
        match (self.content::<R>(&mut file, name)?, is_held) {
            (Content::Record(record), true) => Ok(Some(Existing::Held(file, record))),
            (Content::Record(mut record), false) => {
                let is_same = record.namespace().compare(now) == Relation::Same;
                Ok(is_same.then_some(Existing::Left(file, record)))
            }
            (Content::CutOff, false) => Ok(None),
            _ => Err(LedgerError::Unreadable { path: self.ledger.path().join(name) }),
        }
    }

    /// Writes a record to its file and locks it.
    pub(crate) fn write(&self, record: &impl Record, lock: Lock) -> Result<File, LedgerError> {
        Ok(self.ledger.replace(&record.name(), &record.text(), lock)?)
    }

    /// The ledger's folder.
    pub(super) fn ledger(&self) -> &OwnFolder {
        &self.ledger
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), LedgerError> {
        Ok(self.ledger.remove(name).map(drop)?)
    }

    /// Whether a live run holds the file; otherwise it is ours as long as it is open.
    pub(super) fn is_held(&self, file: &File, name: &str) -> Result<bool, LedgerError> {
        Ok(!try_lock(file, &self.ledger.path().join(name))?)
    }

    /// The contents of the file of that name.
    pub(super) fn content<R: Record>(&self, file: &mut File, name: &str) -> Result<Content<R>, LedgerError> {
        let path = self.ledger.path().join(name);
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes).map_err(at("read", &path))?;
        let Ok(text) = String::from_utf8(bytes) else { return Ok(Content::Foreign) };
        let Some(mut record) = R::parse(&text).filter(|record| record.name() == name) else {
            return Ok(if is_cut_off(name, &text) { Content::CutOff } else { Content::Foreign });
        };
        let changed = file.metadata().map_err(at("look at", &path))?.ctime();
        let namespace = record.namespace();
        if namespace.boot.is_none() && host::boot_time().is_ok_and(|start| changed >= start) {
            namespace.boot = host::boot().ok();
        }
        Ok(Content::Record(record))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Both fail for a folder that is not empty.
        if let Some(name) = self.ledger.path().file_name() {
            self.parent.remove_empty_folder(name);
        }
        remove_if_empty(self.parent.path());
    }
}

/// Whether a file holds the beginning of a record: older versions left such files when the disk was full or they were
/// killed.
fn is_cut_off(name: &str, text: &str) -> bool {
    /// The number of lines that every record has.
    const LEAST: usize = 4;
    let Some(inode) = inode_in(name) else { return false };
    let first = format!("{inode}\n");
    let is_a_beginning = first.starts_with(text) || text.starts_with(&first);
    is_a_beginning && (text.lines().count() < LEAST || !text.ends_with('\n'))
}

/// The namespace's inode, with which the name of a record's file begins.
pub(super) fn inode_in(name: &str) -> Option<u64> {
    name.split_once('-')?.0.parse().ok()
}

fn parts(ledger: &Path) -> Result<(&Path, &OsStr), LedgerError> {
    ledger
        .parent()
        .zip(ledger.file_name())
        .ok_or_else(|| at("use", ledger)(io::ErrorKind::InvalidInput.into()))
}

#[cfg(test)]
mod tests {
    use super::is_cut_off;

    #[test]
    fn only_the_beginning_of_a_record_is_cut_off() {
        let name = "4026531840-net-ipv4-conf-eth0-forwarding";
        for text in
            ["", "4026", "4026531840", "4026531840\n", "4026531840\nnet/ipv4", "4026531840\nkey\n0\n1"]
        {
            assert!(is_cut_off(name, text), "{text:?}");
        }
        for text in ["\n", "hello", "4026531841\n", "4026531840\nkey\n0\n1\n"] {
            assert!(!is_cut_off(name, text), "{text:?}");
        }
        assert!(!is_cut_off("passwd", ""));
    }
}
