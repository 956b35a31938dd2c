//! Which ports to look at for what has come.
//!
//! A few are looked at one after the other in each turn; many through the kernel's list of those that are ready
//! ([`ReadySet`]), so that a turn costs what has come and not what there is. In virtual time, where nothing comes while the
//! loop is awake, those are due that the wait before the turn found ready; and as a system call is dear there and what it
//! does is not, more are waited for one by one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use narrows_io::host::time_is_virtual;
use narrows_io::ready_set::ReadySet;

use super::Port;

/// With more cables than this, looking at each takes longer than asking the kernel which are ready.
const FEW: usize = 4;
/// The same in virtual time.
const FEW_IN_VIRTUAL_TIME: usize = 16;

/// Ports by their places.
#[derive(Default)]
pub(super) struct PollSet {
    /// Those to look at in this turn.
    pub(super) due: Vec<usize>,
    cabled: Vec<usize>,
    ready: Option<ReadySet>,
    /// What the last wait has found, where only that is looked at: one for each of the descriptors.
    woken: Option<Vec<bool>>,
}

impl PollSet {
    pub(super) fn new(ports: &[Port]) -> Self {
        let cabled = || ports.iter().enumerate().filter_map(|(at, port)| Some((at, port.cable.as_ref()?)));
        let listed = || {
            let mut ready = ReadySet::new()?;
            cabled().try_for_each(|(at, cable)| ready.add(&cable.end, at))?;
            io::Result::Ok(ready)
        };
        // Where the kernel has no descriptor left for a list, all are looked at.
        let few = if time_is_virtual() { FEW_IN_VIRTUAL_TIME } else { FEW };
        let ready = if cabled().count() > few { listed().ok() } else { None };
        let cabled = cabled().map(|(at, _)| at).collect();
        Self { due: Vec::new(), cabled, ready, woken: None }
    }

    /// From here on looks at nothing but what waits have found. A turn without one, as the last, still looks at all.
    pub(super) fn rely_on_waits(&mut self) {
        self.woken = Some(Vec::new());
    }

    /// What a wait has found.
    pub(super) fn woken(&mut self, found: impl Iterator<Item = bool>) {
        if let Some(woken) = &mut self.woken {
            woken.clear();
            woken.extend(found);
        }
    }

    /// Finds out which are due; those that have not sent everything yet are in any case, as some send more when they are
    /// looked at.
    pub(super) fn find_due(&mut self, sending: &[u16]) -> io::Result<()> {
        self.due.clear();
        let woken = self.woken.as_deref().filter(|woken| !woken.is_empty());
        let sending = || sending.iter().map(|&at| usize::from(at));
        match (&mut self.ready, woken) {
            (None, None) => self.due.extend(&self.cabled),
            (None, Some(woken)) => {
                let found = self.cabled.iter().zip(woken).filter(|&(_, &found)| found);
                self.due.extend(sending().chain(found.map(|(&at, _)| at)));
            }
            (Some(ready), woken) => {
                self.due.extend(sending());
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

    /// Those with cables, where each is waited for by itself.
    pub(super) fn waited_for(&self) -> &[usize] {
        if self.ready.is_some() { &[] } else { &self.cabled }
    }

    /// What becomes readable when a frame comes to any of the ports.
    pub(super) fn descriptors<'a>(&'a self, ports: &'a [Port]) -> Vec<BorrowedFd<'a>> {
        match &self.ready {
            Some(ready) => vec![ready.as_fd()],
            None => {
                ports.iter().filter_map(|port| port.cable.as_ref()).map(|cable| cable.end.as_fd()).collect()
            }
        }
    }
}
