//! Interfaces of the host that a run rearranges, put back as they were.
//!
//! What is to be changed is written down first, in a file of a folder, which stays locked as long as the run lives; the
//! kernel lets go of the lock even after `kill -9`. So a second run on the same interface is refused, and
//! [`restore_abandoned`], or the next run on it, puts back what a killed one had changed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::ledger::{LedgerError, Turn, at, inode, unheld};
use crate::link::{Interface, InterfaceIndex};
use crate::namespace::Namespace;
use crate::offload::{self, OffloadError};
use crate::route_socket::RouteSocket;

/// An interface without offloads as long as this value lives.
#[derive(Debug)]
pub struct Rearranged {
    namespace: Namespace,
    folder: PathBuf,
    path: PathBuf,
    file: File,
    record: InterfaceRecord,
    stuck: Vec<String>,
    is_restored: bool,
}

/// What a file says: a line each for the namespace's inode, what it was opened by, the interface's number and name, and
/// then one for each offload that was on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceRecord {
    /// The inode of the interface's network namespace.
    pub namespace: u64,
    /// What that was opened by; empty for the one that the run was started in.
    pub reference: String,
    /// The interface's number.
    pub index: InterfaceIndex,
    /// Its name when it was changed.
    pub interface: String,
    /// Offloads that were on.
    pub offloads: Vec<String>,
}

impl Rearranged {
    /// Switches off every offload of the interface that makes frames other than a wire would carry
    /// ([`offload::plain_packets`]), and remembers that in `folder`. `reference` says what the namespace was opened by, if
    /// it is not that of the caller.
    ///
    /// # Errors
    /// When another run has the interface, or anything is refused; then nothing is changed.
    pub fn plain_packets(
        namespace: &Namespace,
        reference: Option<&str>,
        interface: &Interface,
        folder: &Path,
    ) -> Result<Self, LedgerError> {
        let inode = inode(namespace)?;
        let path = folder.join(format!("{inode}-{}", interface.index.0));
        let _turn = Turn::take(folder)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(at("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LedgerError::Taken { interface: interface.name.clone() });
            }
            Err(TryLockError::Error(cause)) => return Err(at("lock", &path)(cause)),
        }
        if let Some(left) = InterfaceRecord::read(&mut file) {
            left.put_back(namespace)?;
        }
        let record = InterfaceRecord {
            namespace: inode,
            reference: reference.unwrap_or_default().into(),
            index: interface.index,
            interface: interface.name.clone(),
            offloads: offload::distorting(namespace, &interface.name)?,
        };
        record.write(&mut file).map_err(at("write", &path))?;
        let changed = offload::plain_packets(namespace, &interface.name);
        let (namespace, folder) = (namespace.try_clone()?, folder.into());
        let stuck = changed.as_ref().map(|changed| changed.stuck.clone()).unwrap_or_default();
        let rearranged = Self { namespace, folder, path, file, record, stuck, is_restored: false };
        // Where it was refused half-way, the drop puts back what was done; after the turn, which that needs.
        drop(_turn);
        changed?;
        Ok(rearranged)
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.record.interface
    }

    /// Offloads that cannot be switched off.
    pub fn stuck(&self) -> &[String] {
        &self.stuck
    }

    /// Puts everything back, and looks whether it is. Dropping does the same in silence.
    ///
    /// # Errors
    /// When the kernel refuses, or something is not as it was; the file then stays for another try.
    pub fn restore(mut self) -> Result<(), LedgerError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), LedgerError> {
        if std::mem::replace(&mut self.is_restored, true) {
            return Ok(());
        }
        let _turn = Turn::take(&self.folder)?;
        self.record.put_back(&self.namespace)?;
        fs::remove_file(&self.path).map_err(at("remove", &self.path))?;
        // The lock goes with the file, while the turn is ours.
        let _ = self.file.unlock();
        Ok(())
    }
}

impl Drop for Rearranged {
    fn drop(&mut self) {
        let _ = self.put_back();
    }
}

/// Puts back what killed runs left changed: of interfaces in `here`, and in namespaces that can still be opened. Gives what
/// was put back.
///
/// # Errors
/// When a file cannot be read, or the kernel refuses.
pub fn restore_abandoned(here: &Namespace, folder: &Path) -> Result<Vec<InterfaceRecord>, LedgerError> {
    let own = inode(here)?;
    let mut restored = Vec::new();
    if !folder.is_dir() {
        return Ok(restored);
    }
    let _turn = Turn::take(folder)?;
    for (path, mut file) in unheld(folder)? {
        if let Some(record) = InterfaceRecord::read(&mut file) {
            let opened = (!record.reference.is_empty()).then(|| Namespace::open(&record.reference));
            match opened {
                _ if record.namespace == own => record.put_back(here)?,
                // Of a namespace that only whoever started the run is in.
                None => continue,
                Some(Ok(there)) if inode(&there)? == record.namespace => record.put_back(&there)?,
                // The namespace is gone, and its interfaces with it.
                Some(_) => {}
            }
            restored.push(record);
        }
        fs::remove_file(&path).map_err(at("remove", &path))?;
    }
    Ok(restored)
}

impl InterfaceRecord {
    /// Switches on what was on. An interface that is gone needs nothing.
    fn put_back(&self, namespace: &Namespace) -> Result<(), LedgerError> {
        let all = RouteSocket::open(namespace).and_then(|mut sockets| sockets.interfaces());
        let all = all.map_err(|error| LedgerError::Interface(Box::new(error)))?;
        // It may have another name by now.
        let Some(now) = all.iter().find(|interface| interface.index == self.index) else { return Ok(()) };
        let changes: Vec<_> = self.offloads.iter().map(|name| (name.clone(), true)).collect();
        let still_off = |features: Vec<offload::Feature>| {
            let off = features.into_iter().filter(|f| !f.requested && self.offloads.contains(&f.name));
            off.map(|feature| feature.name).collect::<Vec<_>>()
        };
        let result = offload::set(namespace, &now.name, &changes)
            .and_then(|_| offload::features(namespace, &now.name).map(still_off));
        match result {
            Ok(off) if off.is_empty() => Ok(()),
            Ok(off) => {
                Err(LedgerError::NotAsBefore { interface: now.name.clone(), offloads: off.join(", ") })
            }
            // Gone since it was looked for.
            Err(OffloadError::Refused { cause, .. }) if cause.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&self, file: &mut File) -> io::Result<()> {
        let Self { namespace, reference, index, interface, offloads } = self;
        let mut text = format!("{namespace}\n{reference}\n{}\n{interface}\n", index.0);
        offloads.iter().for_each(|name| text += &format!("{name}\n"));
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(text.as_bytes())
    }

    /// Nothing for a file that nobody got round to write.
    fn read(file: &mut File) -> Option<Self> {
        let mut text = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        let mut lines = text.lines().map(str::to_owned);
        Some(Self {
            namespace: lines.next()?.parse().ok()?,
            reference: lines.next()?,
            index: InterfaceIndex(lines.next()?.parse().ok()?),
            interface: lines.next()?,
            offloads: lines.collect(),
        })
    }
}
