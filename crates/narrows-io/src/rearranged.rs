//! Interfaces of the host that a run rearranges, put back as they were.
//!
//! What is to be changed is written down first, in a file of a folder, which stays locked as long as the run lives; the
//! kernel lets go of the lock even after `kill -9`. So a second run on the same interface is refused, and
//! [`restore_abandoned`], or the next run on it, puts back what a killed one had changed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::bpf::{Direction, Program};
use crate::ledger::{LedgerError, Turn, at, inode, unheld};
use crate::link::{Interface, InterfaceIndex};
use crate::namespace::Namespace;
use crate::offload::{self, OffloadError};
use crate::route_socket::{NetlinkError, RouteSocket};

/// An interface that is ours, with what was changed about it, as long as this value lives.
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
/// then one for each offload that was on, for each barrier, and for a discipline that holds those.
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
    /// Where there are barriers.
    pub closed: Vec<Direction>,
    /// Whether the discipline that holds them is ours, too.
    pub clsact: bool,
}

/// Lines for barriers, which no offload is called like.
const BARRIERS: [(&str, Direction); 2] =
    [("closed ingress", Direction::Ingress), ("closed egress", Direction::Egress)];
const CLSACT: &str = "closed clsact";

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
        let turn = Turn::take(folder)?;
        let mut own = Self::take(namespace, reference, interface, folder)?;
        own.record.put_back(namespace)?;
        (own.record.closed, own.record.clsact) = (Vec::new(), false);
        own.record.offloads = offload::distorting(namespace, &interface.name)?;
        own.write()?;
        let changed = offload::plain_packets(namespace, &interface.name);
        own.stuck = changed.as_ref().map(|changed| changed.stuck.clone()).unwrap_or_default();
        // Where it was refused half-way, the drop puts back what was done; after the turn, which that needs.
        drop(turn);
        changed?;
        Ok(own)
    }

    /// Takes the interface, so that no other run does, and changes nothing about it. Barriers that a killed run left stay
    /// until [`Rearranged::close_only`] is called.
    ///
    /// # Errors
    /// As of [`Rearranged::plain_packets`].
    pub fn claim(
        namespace: &Namespace,
        reference: Option<&str>,
        interface: &Interface,
        folder: &Path,
    ) -> Result<Self, LedgerError> {
        let turn = Turn::take(folder)?;
        let mut own = Self::take(namespace, reference, interface, folder)?;
        own.record.put_back_offloads(namespace)?;
        own.record.offloads.clear();
        own.write()?;
        drop(turn);
        Ok(own)
    }

    /// Locks the interface's file, with what a killed run left in it; the folder's turn is the caller's.
    fn take(
        namespace: &Namespace,
        reference: Option<&str>,
        interface: &Interface,
        folder: &Path,
    ) -> Result<Self, LedgerError> {
        let inode = inode(namespace)?;
        let path = folder.join(format!("{inode}-{}", interface.index.0));
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
        let left = InterfaceRecord::read(&mut file);
        let (offloads, closed, clsact) =
            left.map(|left| (left.offloads, left.closed, left.clsact)).unwrap_or_default();
        let record = InterfaceRecord {
            namespace: inode,
            reference: reference.unwrap_or_default().into(),
            index: interface.index,
            interface: interface.name.clone(),
            offloads,
            closed,
            clsact,
        };
        let namespace = namespace.try_clone()?;
        let (stuck, is_restored) = (Vec::new(), false);
        Ok(Self { namespace, folder: folder.into(), path, file, record, stuck, is_restored })
    }

    fn write(&mut self) -> Result<(), LedgerError> {
        self.record.write(&mut self.file).map_err(at("write", &self.path))
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.record.interface
    }

    /// Offloads that cannot be switched off.
    pub fn stuck(&self) -> &[String] {
        &self.stuck
    }

    /// Whether there are barriers, of ours or of a killed run.
    pub fn is_closed(&self) -> bool {
        !self.record.closed.is_empty()
    }

    /// Raises a barrier, or changes the program of the one that stands. It stays there unless it is taken away:
    /// [`Rearranged::close_only`], [`Rearranged::restore`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn close(&mut self, direction: Direction, program: &Program) -> Result<(), LedgerError> {
        let (index, mut sockets) = (self.record.index, RouteSocket::open(&self.namespace).map_err(boxed)?);
        if !self.record.closed.contains(&direction) {
            self.record.closed.push(direction);
        }
        let is_there = sockets.has_clsact(index).map_err(boxed)?;
        self.record.clsact |= !is_there;
        self.write()?;
        if !is_there {
            sockets.add_clsact(index).map_err(boxed)?;
        }
        sockets.raise_barrier(index, direction, program).map_err(boxed)
    }

    /// Takes barriers away, those of a killed run as well, but for these.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn close_only(&mut self, directions: &[Direction]) -> Result<(), LedgerError> {
        self.record.open(&self.namespace, directions)?;
        self.record.closed.retain(|direction| directions.contains(direction));
        self.record.clsact &= !self.record.closed.is_empty();
        self.write()
    }

    /// Puts everything back, and looks whether it is.
    ///
    /// Dropping puts offloads back in silence, and leaves barriers where they are: who drops this has not come to an end in
    /// order.
    ///
    /// # Errors
    /// When the kernel refuses, or something is not as it was; the file then stays for another try.
    pub fn restore(mut self) -> Result<(), LedgerError> {
        self.close_only(&[])?;
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), LedgerError> {
        if std::mem::replace(&mut self.is_restored, true) {
            return Ok(());
        }
        let _turn = Turn::take(&self.folder)?;
        self.record.put_back_offloads(&self.namespace)?;
        self.record.offloads.clear();
        if self.record.closed.is_empty() && !self.record.clsact {
            fs::remove_file(&self.path).map_err(at("remove", &self.path))?;
        } else {
            self.write()?;
        }
        // The lock goes with the file, while the turn is ours.
        let _ = self.file.unlock();
        Ok(())
    }
}

fn boxed(error: NetlinkError) -> LedgerError {
    LedgerError::Interface(Box::new(error))
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
    /// Switches on what was on, and takes barriers away. An interface that is gone needs nothing.
    fn put_back(&self, namespace: &Namespace) -> Result<(), LedgerError> {
        self.put_back_offloads(namespace)?;
        self.open(namespace, &[])
    }

    /// Takes barriers away, all but these, and the discipline that held them if it holds nothing more.
    fn open(&self, namespace: &Namespace, but: &[Direction]) -> Result<(), LedgerError> {
        if self.closed.is_empty() && !self.clsact {
            return Ok(());
        }
        let mut sockets = RouteSocket::open(namespace).map_err(boxed)?;
        for direction in self.closed.iter().filter(|direction| !but.contains(direction)) {
            sockets.remove_barrier(self.index, *direction).map_err(boxed)?;
        }
        let is_empty = self.closed.iter().all(|direction| !but.contains(direction));
        if self.clsact && is_empty { sockets.remove_clsact(self.index).map_err(boxed) } else { Ok(()) }
    }

    fn put_back_offloads(&self, namespace: &Namespace) -> Result<(), LedgerError> {
        if self.offloads.is_empty() {
            return Ok(());
        }
        let all = RouteSocket::open(namespace).and_then(|mut sockets| sockets.interfaces());
        let all = all.map_err(boxed)?;
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
        let Self { namespace, reference, index, interface, offloads, closed, clsact } = self;
        let mut text = format!("{namespace}\n{reference}\n{}\n{interface}\n", index.0);
        let barriers = BARRIERS.iter().filter(|(_, direction)| closed.contains(direction));
        let held = clsact.then_some(CLSACT);
        let lines = offloads.iter().map(String::as_str).chain(barriers.map(|(line, _)| *line)).chain(held);
        lines.for_each(|line| text += &format!("{line}\n"));
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(text.as_bytes())
    }

    /// Nothing for a file that nobody got round to write.
    fn read(file: &mut File) -> Option<Self> {
        let mut text = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        let mut lines = text.lines();
        let mut record = Self {
            namespace: lines.next()?.parse().ok()?,
            reference: lines.next()?.into(),
            index: InterfaceIndex(lines.next()?.parse().ok()?),
            interface: lines.next()?.into(),
            offloads: Vec::new(),
            closed: Vec::new(),
            clsact: false,
        };
        for line in lines {
            match BARRIERS.iter().find(|(name, _)| *name == line) {
                Some((_, direction)) => record.closed.push(*direction),
                None if line == CLSACT => record.clsact = true,
                None => record.offloads.push(line.into()),
            }
        }
        Some(record)
    }
}
