//! Which lines to read.
//!
//! With few, each turn reads one after the other. With many, the kernel's list of ready ones ([`ReadySet`]) is
//! used, so the cost depends on the arrivals and not on their number. In virtual time nothing arrives while
//! the loop is awake, so the lines due are those that the last wait found ready; a system call is expensive there
//! while its work is not, so more are polled individually.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use narrows_io::cable_end::CableEnd;
use narrows_io::host::time_is_virtual;
use narrows_io::ready_set::ReadySet;

use super::lines::Lines;

/// With more cables than this, reading each takes longer than asking the kernel which are ready.
const FEW: usize = 4;
/// The same in virtual time.
const FEW_IN_VIRTUAL_TIME: usize = 16;

/// Lines, by index.
#[derive(Default)]
pub(super) struct PollSet {
    /// Those to read in this turn.
    pub(super) due: Vec<usize>,
    all: Vec<usize>,
    ready: Option<ReadySet>,
    /// The result of the last wait, where only that counts: one entry per descriptor.
    woken: Option<Vec<bool>>,
}

impl PollSet {
    pub(super) fn new(lines: &Lines) -> Self {
        let listed = || {
            let mut ready = ReadySet::new()?;
            lines.iter().enumerate().try_for_each(|(at, line)| ready.add(&line.end, at))?;
            io::Result::Ok(ready)
        };
        // If the kernel has no descriptor left for a list, all are read.
        let few = if time_is_virtual() { FEW_IN_VIRTUAL_TIME } else { FEW };
        // Nothing is ever ready at a link inside the kernel: its records are looked at.
        let is_in_kernel = lines.iter().any(|line| matches!(line.end, CableEnd::Kernel(_)));
        let ready = if lines.count() > few && !is_in_kernel { listed().ok() } else { None };
        Self { due: Vec::new(), all: (0..lines.count()).collect(), ready, woken: None }
    }

    /// From now on only lines found ready by waits are read. A turn without a wait, such as the last, still reads
    /// all.
    pub(super) fn rely_on_waits(&mut self) {
        self.woken = Some(Vec::new());
    }

    /// Records the result of a wait.
    pub(super) fn woken(&mut self, found: impl Iterator<Item = bool>) {
        if let Some(woken) = &mut self.woken {
            woken.clear();
            woken.extend(found);
        }
    }

    /// Determines which are due. Those with unsent frames always are, because some send more when they are read.
    pub(super) fn find_due(&mut self, sending: &[usize]) -> io::Result<()> {
        self.due.clear();
        let woken = self.woken.as_deref().filter(|woken| !woken.is_empty());
        match (&mut self.ready, woken) {
            (None, None) => self.due.extend(&self.all),
            (None, Some(woken)) => {
                let found = self.all.iter().zip(woken).filter(|&(_, &found)| found);
                self.due.extend(sending.iter().chain(found.map(|(at, _)| at)));
            }
            (Some(ready), woken) => {
                self.due.extend(sending);
                if woken.is_none_or(|woken| woken[0]) {
                    self.due.extend(ready.ready()?);
                }
            }
        }
        if let Some(woken) = &mut self.woken {
            woken.clear();
        }
        Ok(())
    }

    /// All, if each is polled individually.
    pub(super) fn waited_for(&self) -> &[usize] {
        if self.ready.is_some() { &[] } else { &self.all }
    }

    /// Becomes readable when a frame arrives at any of them.
    pub(super) fn descriptors<'a>(&'a self, lines: &'a Lines) -> Vec<BorrowedFd<'a>> {
        match &self.ready {
            Some(ready) => vec![ready.as_fd()],
            None => lines.iter().map(|line| line.end.as_fd()).collect(),
        }
    }
}
