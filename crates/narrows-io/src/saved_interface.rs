//! Host interfaces that a run reconfigures, and their restoration.
//!
//! Changes are recorded first, in a file that stays locked as long as the run lives; the kernel releases the lock
//! even after `kill -9`. So a second run on the same interface is refused, and [`restore_abandoned`], or the next run
//! on it, restores what a killed run had changed.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::bpf::{Direction, Program};
use crate::ledger::{Cleared, Existing, LedgerError, PutBack, Record, Turn, clear};
use crate::link::{Interface, InterfaceIndex};
use crate::namespace::Namespace;
use crate::namespace_identity::NamespaceIdentity;
use crate::offload::{self, OffloadError};
use crate::own_folder::Lock;
use crate::route_socket::{NetlinkError, RouteSocket};

/// An interface in our use, with its recorded changes, as long as this value lives.
#[derive(Debug)]
pub struct SavedInterface {
    namespace: Namespace,
    ledger: PathBuf,
    file: File,
    record: InterfaceRecord,
    stuck: Vec<String>,
    is_restored: bool,
}

/// The contents of a record: a line each for the namespace's inode, what it was opened by, the interface's number and
/// name; then one for each offload that was on, for each barrier, for a qdisc that holds the barriers, and for the
/// rest of the namespace's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceRecord {
    /// The interface's network namespace.
    pub namespace: NamespaceIdentity,
    /// What the namespace was opened by; empty for the one in which the run was started.
    pub reference: String,
    /// The interface's number.
    pub index: InterfaceIndex,
    /// Its name when it was changed.
    pub interface: String,
    /// Offloads that were on.
    pub offloads: Vec<String>,
    /// The directions with barriers.
    pub closed: Vec<Direction>,
    /// Whether we also created the qdisc that holds them.
    pub clsact: bool,
}

/// Lines for barriers; no offload has these names.
const BARRIERS: [(&str, Direction); 2] =
    [("closed ingress", Direction::Ingress), ("closed egress", Direction::Egress)];
const CLSACT: &str = "closed clsact";

impl SavedInterface {
    /// Disables every offload of the interface that makes frames differ from those on a wire
    /// ([`offload::plain_packets`]), and records that in `ledger`. `reference` says what the namespace was opened by,
    /// if it is not the caller's.
    ///
    /// # Errors
    /// If another run uses the interface, or anything is refused; then nothing is changed.
    pub fn plain_packets(
        namespace: &Namespace,
        reference: Option<&str>,
        interface: &Interface,
        ledger: &Path,
    ) -> Result<Self, LedgerError> {
        let turn = Turn::take(ledger)?;
        let mut record = InterfaceRecord::begun(&turn, namespace, reference, interface)?;
        record.put_back(namespace)?;
        (record.closed, record.clsact) = (Vec::new(), false);
        record.offloads = offload::distorting(namespace, &interface.name)?;
        let mut own = Self::hold(&turn, namespace, record, ledger)?;
        let changed = offload::plain_packets(namespace, &interface.name);
        own.stuck = changed.as_ref().map(|changed| changed.stuck.clone()).unwrap_or_default();
        // If it was refused half-way, the drop reverts what was done; after releasing the turn, which that needs.
        drop(turn);
        changed?;
        Ok(own)
    }

    /// Claims the interface, so that no other run uses it, without changing it. Barriers that a killed run left stay
    /// until [`SavedInterface::close_only`] is called.
    ///
    /// # Errors
    /// Those of [`SavedInterface::plain_packets`].
    pub fn claim(
        namespace: &Namespace,
        reference: Option<&str>,
        interface: &Interface,
        ledger: &Path,
    ) -> Result<Self, LedgerError> {
        let turn = Turn::take(ledger)?;
        let mut record = InterfaceRecord::begun(&turn, namespace, reference, interface)?;
        record.put_back_offloads(namespace)?;
        record.offloads.clear();
        Self::hold(&turn, namespace, record, ledger)
    }

    /// Writes the record, which claims the interface.
    fn hold(
        turn: &Turn,
        namespace: &Namespace,
        record: InterfaceRecord,
        ledger: &Path,
    ) -> Result<Self, LedgerError> {
        let namespace = namespace.try_clone()?;
        let file = turn.write(&record, Lock::Exclusive)?;
        Ok(Self { namespace, ledger: ledger.into(), file, record, stuck: Vec::new(), is_restored: false })
    }

    /// Records changes before they are made.
    fn write(&mut self, turn: &Turn) -> Result<(), LedgerError> {
        self.file = turn.write(&self.record, Lock::Exclusive)?;
        Ok(())
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.record.interface
    }

    /// Offloads that cannot be disabled.
    pub fn stuck(&self) -> &[String] {
        &self.stuck
    }

    /// Whether there are barriers, ours or a killed run's.
    pub fn is_closed(&self) -> bool {
        !self.record.closed.is_empty()
    }

    /// Creates a barrier, or replaces the program of an existing one. It stays until it is removed:
    /// [`SavedInterface::close_only`], [`SavedInterface::restore`].
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn close(&mut self, direction: Direction, program: &Program) -> Result<(), LedgerError> {
        let (index, mut sockets) = (self.record.index, RouteSocket::open(&self.namespace).map_err(boxed)?);
        if !self.record.closed.contains(&direction) {
            self.record.closed.push(direction);
        }
        let is_there = sockets.has_clsact(index).map_err(boxed)?;
        self.record.clsact |= !is_there;
        self.write(&Turn::take(&self.ledger)?)?;
        if !is_there {
            sockets.add_clsact(index).map_err(boxed)?;
        }
        sockets.raise_barrier(index, direction, program).map_err(boxed)
    }

    /// Removes all barriers except these, including those of a killed run.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn close_only(&mut self, directions: &[Direction]) -> Result<(), LedgerError> {
        self.record.open(&self.namespace, directions)?;
        self.record.closed.retain(|direction| directions.contains(direction));
        self.record.clsact &= !self.record.closed.is_empty();
        self.write(&Turn::take(&self.ledger)?)
    }

    /// Restores everything and verifies it. If the interface is no longer in its namespace, the result says so.
    ///
    /// Dropping this restores offloads silently and leaves barriers in place: a drop is not an orderly end.
    ///
    /// # Errors
    /// If the kernel refuses, or something is not as before; the file then stays for another try.
    pub fn restore(mut self) -> Result<PutBack, LedgerError> {
        if !self.is_gone()? {
            self.close_only(&[])?;
        }
        self.put_back()
    }

    /// Whether changes were made to an interface that is no longer in its namespace.
    ///
    /// # Errors
    /// If the interfaces cannot be listed.
    pub fn is_gone(&self) -> Result<bool, LedgerError> {
        Ok(self.record.now(&self.namespace)?.is_none() && self.record.gone() != PutBack::Done)
    }

    fn put_back(&mut self) -> Result<PutBack, LedgerError> {
        if std::mem::replace(&mut self.is_restored, true) {
            return Ok(PutBack::Done);
        }
        let turn = Turn::take(&self.ledger)?;
        let done = self.record.put_back_offloads(&self.namespace)?;
        if done == PutBack::Done {
            self.record.offloads.clear();
        }
        // A barrier is removed with its interface.
        if done != PutBack::Done || self.record.closed.is_empty() && !self.record.clsact {
            turn.remove(&self.record.name())?;
        } else {
            self.write(&turn)?;
        }
        // The lock is released with the file, while the turn is ours.
        let _ = self.file.unlock();
        Ok(done)
    }
}

fn boxed(error: NetlinkError) -> LedgerError {
    LedgerError::Interface(Box::new(error))
}

impl Drop for SavedInterface {
    fn drop(&mut self) {
        let _ = self.put_back();
    }
}

/// Restores what killed runs left changed: interfaces in `here`, and in namespaces that can still be found.
///
/// # Errors
/// If the ledger cannot be read.
pub fn restore_abandoned(here: &Namespace, ledger: &Path) -> Result<Cleared<InterfaceRecord>, LedgerError> {
    clear(here, ledger)
}

impl InterfaceRecord {
    /// A record for this interface, including what a killed run left changed.
    fn begun(
        turn: &Turn,
        namespace: &Namespace,
        reference: Option<&str>,
        interface: &Interface,
    ) -> Result<Self, LedgerError> {
        let mut record = Self {
            namespace: NamespaceIdentity::of(namespace)?,
            reference: reference.unwrap_or_default().into(),
            index: interface.index,
            interface: interface.name.clone(),
            offloads: Vec::new(),
            closed: Vec::new(),
            clsact: false,
        };
        match turn.existing::<Self>(&record.name(), &record.namespace)? {
            Some(Existing::Held(..)) => return Err(LedgerError::Taken { interface: interface.name.clone() }),
            Some(Existing::Left(_, left)) => {
                (record.offloads, record.closed, record.clsact) = (left.offloads, left.closed, left.clsact);
            }
            None => {}
        }
        Ok(record)
    }

    /// Removes barriers, all except these, and the qdisc that held them if it is empty.
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

    /// The present interface, possibly under another name, if it is in its namespace.
    fn now(&self, namespace: &Namespace) -> Result<Option<Interface>, LedgerError> {
        let all = RouteSocket::open(namespace).and_then(|mut sockets| sockets.interfaces());
        Ok(all.map_err(boxed)?.into_iter().find(|interface| interface.index == self.index))
    }

    /// The state of the changes when the interface is no longer in its namespace. The kernel removes filters from an
    /// interface that moves, and leaves its offloads as they are.
    fn gone(&self) -> PutBack {
        if self.offloads.is_empty() && self.closed.is_empty() {
            return PutBack::Done;
        }
        let mut text = format!("{} was removed, or moved to another namespace", self.interface);
        if !self.closed.is_empty() {
            text += "; its barrier is gone too, so everything passes there now";
        }
        if !self.offloads.is_empty() {
            let on: Vec<_> = self.offloads.iter().map(|name| format!("{name} on")).collect();
            text += &format!(
                "; its offloads are still off wherever it is now; switch them on with: ethtool -K {} {}",
                self.interface,
                on.join(" ")
            );
        }
        PutBack::Moot(text)
    }

    fn put_back_offloads(&self, namespace: &Namespace) -> Result<PutBack, LedgerError> {
        let Some(now) = self.now(namespace)? else { return Ok(self.gone()) };
        if self.offloads.is_empty() {
            return Ok(PutBack::Done);
        }
        let changes: Vec<_> = self.offloads.iter().map(|name| (name.clone(), true)).collect();
        let still_off = |features: Vec<offload::Feature>| {
            let off = features.into_iter().filter(|f| !f.requested && self.offloads.contains(&f.name));
            off.map(|feature| feature.name).collect::<Vec<_>>()
        };
        let result = offload::set(namespace, &now.name, &changes)
            .and_then(|_| offload::features(namespace, &now.name).map(still_off));
        match result {
            Ok(off) if off.is_empty() => Ok(PutBack::Done),
            Ok(off) => {
                Err(LedgerError::NotAsBefore { interface: now.name.clone(), offloads: off.join(", ") })
            }
            // Removed since it was looked up.
            Err(OffloadError::Refused { cause, .. }) if cause.raw_os_error() == Some(libc::ENODEV) => {
                Ok(self.gone())
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Record for InterfaceRecord {
    fn name(&self) -> String {
        format!("{}-{}", self.namespace.inode, self.index.0)
    }

    fn namespace(&mut self) -> &mut NamespaceIdentity {
        &mut self.namespace
    }

    fn reference(&self) -> Option<&str> {
        Some(self.reference.as_str()).filter(|reference| !reference.is_empty())
    }

    fn text(&self) -> String {
        let Self { namespace, reference, index, interface, offloads, closed, clsact } = self;
        let mut text = format!("{}\n{reference}\n{}\n{interface}\n", namespace.inode, index.0);
        let barriers = BARRIERS.iter().filter(|(_, direction)| closed.contains(direction));
        let held = clsact.then_some(CLSACT);
        let lines = offloads.iter().map(String::as_str).chain(barriers.map(|(line, _)| *line)).chain(held);
        lines.for_each(|line| text += &format!("{line}\n"));
        text + &namespace.lines()
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let mut record = Self {
            namespace: NamespaceIdentity { inode: lines.next()?.parse().ok()?, boot: None, cookie: None },
            reference: lines.next()?.into(),
            index: InterfaceIndex(lines.next()?.parse().ok()?),
            interface: lines.next()?.into(),
            offloads: Vec::new(),
            closed: Vec::new(),
            clsact: false,
        };
        for line in lines {
            if record.namespace.read_line(line) {
                continue;
            }
            match BARRIERS.iter().find(|(name, _)| *name == line) {
                Some((_, direction)) => record.closed.push(*direction),
                None if line == CLSACT => record.clsact = true,
                None => record.offloads.push(line.into()),
            }
        }
        Some(record)
    }

    /// Enables what was on, and removes barriers.
    fn put_back(&self, namespace: &Namespace) -> Result<PutBack, LedgerError> {
        let done = self.put_back_offloads(namespace)?;
        if done == PutBack::Done {
            self.open(namespace, &[])?;
        }
        Ok(done)
    }
}
