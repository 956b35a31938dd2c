//! Programs that others started in the hosts of a run, which end with it.

use std::io;
use std::thread;
use std::time::Duration;

use narrows_io::marked::Mark;
use narrows_io::process::{Signal, is_descendant};

use crate::run_record::{self, RunId};

/// The interval between checks whether they have ended.
const PAUSE: Duration = Duration::from_millis(20);
/// How often killed ones are searched for: a killed program may have started another just before.
const LOOKS: u32 = 50;

/// The programs that carry a run's mark and are not our descendants.
pub(crate) struct Visitors {
    id: String,
}

impl Visitors {
    pub(crate) fn of(run: RunId) -> Self {
        Self { id: run.to_string() }
    }

    fn mark(&self) -> Mark<'_> {
        Mark { name: run_record::ENVIRONMENT, value: &self.id }
    }

    fn there(&self) -> io::Result<Vec<u32>> {
        let all = self.mark().processes()?;
        Ok(all.into_iter().filter(|process| !is_descendant(*process)).collect())
    }

    /// Asks them to end: with SIGTERM, and with SIGHUP, because interactive shells only react to that.
    pub(crate) fn ask(&self) -> io::Result<()> {
        for process in self.there()? {
            for signal in [Signal::SIGTERM, Signal::SIGHUP] {
                // A process that now belongs to another user is left to `narrows clean`.
                let _ = self.mark().signal(process, signal);
            }
        }
        Ok(())
    }

    /// Waits until they have ended, and kills those that have not after a while.
    pub(crate) fn end(&mut self, grace: Duration) -> io::Result<()> {
        let patience = grace.as_millis() / PAUSE.as_millis();
        for _ in 0..patience {
            if self.there()?.is_empty() {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        for _ in 0..LOOKS {
            let left = self.there()?;
            if left.is_empty() {
                return Ok(());
            }
            for process in left {
                let _ = self.mark().kill(process);
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}
