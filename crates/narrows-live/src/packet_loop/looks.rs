//! Which ports to look at for what has come.
//!
//! A few are looked at one after the other in each turn; many through the kernel's list of those that are ready
//! ([`ReadySet`]), so that a turn costs what has come and not what there is.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use narrows_io::ready_set::ReadySet;

use super::Port;

/// With more cables than this, looking at each takes longer than asking the kernel which are ready.
const FEW: usize = 4;

/// Ports by their places.
#[derive(Default)]
pub(super) struct Looks {
    /// Those to look at in this turn. Without a list of the kernel's, these are always all that have a cable.
    pub(super) due: Vec<usize>,
    ready: Option<ReadySet>,
}

impl Looks {
    pub(super) fn new(ports: &[Port]) -> Self {
        let cabled = || ports.iter().enumerate().filter_map(|(at, port)| Some((at, port.cable.as_ref()?)));
        let listed = || {
            let mut ready = ReadySet::new()?;
            cabled().try_for_each(|(at, cable)| ready.add(&cable.end, at))?;
            io::Result::Ok(ready)
        };
        // Where the kernel has no descriptor left for a list, all are looked at.
        let ready = if cabled().count() > FEW { listed().ok() } else { None };
        Self { due: cabled().map(|(at, _)| at).collect(), ready }
    }

    /// Finds out which are due; those that have not sent everything yet are in any case, as some send more when they are
    /// looked at.
    pub(super) fn find_due(&mut self, sending: &[u16]) -> io::Result<()> {
        if let Some(ready) = &mut self.ready {
            self.due.clear();
            self.due.extend(sending.iter().map(|&at| usize::from(at)));
            self.due.extend(ready.ready()?);
        }
        Ok(())
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
