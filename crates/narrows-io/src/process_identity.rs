//! Identifies a recorded process, so that it is never confused with a later one with the same ID.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

use crate::host;
use crate::process::Stat;

/// A process, as recorded. Its ID alone is not unique: it is reused after a restart of the host, in another PID
/// namespace, or when IDs wrap around.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProcessIdentity {
    /// Its process ID.
    pub process: u32,
    /// Its start time, in kernel ticks since the host's start.
    pub started: u64,
    /// The ID of the boot in which it ran.
    pub boot: String,
    /// The inode of the PID namespace in which it has that ID.
    pub pid_namespace: u64,
}

impl ProcessIdentity {
    /// The identity of this process.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn own() -> io::Result<Self> {
        let process = std::process::id();
        let started = Stat::of(process).and_then(|stat| started(&stat));
        let started = started
            .ok_or_else(|| io::Error::other(format!("no start of this process in /proc/{process}/stat")))?;
        Ok(Self { process, started, boot: host::boot()?, pid_namespace: pid_namespace()? })
    }

    /// Whether it is still running; `None` if that cannot be determined from another PID namespace.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn is_running(&self) -> io::Result<Option<bool>> {
        if self.boot != host::boot()? {
            return Ok(Some(false));
        }
        if self.pid_namespace != pid_namespace()? {
            return Ok(None);
        }
        // A zombie or dead process is not running.
        let runs = |stat: &Stat| !matches!(stat.field(3), Some("Z" | "X") | None);
        let is_this = |stat: &Stat| started(stat) == Some(self.started);
        Ok(Some(Stat::of(self.process).is_some_and(|stat| runs(&stat) && is_this(&stat))))
    }
}

fn started(stat: &Stat) -> Option<u64> {
    stat.field(22)?.parse().ok()
}

fn pid_namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_number_that_comes_again_is_another_process() {
        let own = ProcessIdentity::own().unwrap();
        assert_eq!(own.is_running().unwrap(), Some(true));
        let earlier = ProcessIdentity { started: own.started - 1, ..own.clone() };
        assert_eq!(earlier.is_running().unwrap(), Some(false));
        let other_boot = ProcessIdentity { boot: "another".into(), ..own.clone() };
        assert_eq!(other_boot.is_running().unwrap(), Some(false));
        let elsewhere = ProcessIdentity { pid_namespace: 1, ..own };
        assert_eq!(elsewhere.is_running().unwrap(), None);
    }

    #[test]
    fn what_has_ended_runs_no_more_though_nobody_has_waited_for_it() {
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let process = child.id();
        let started = Stat::of(process).and_then(|stat| started(&stat)).unwrap();
        let identity = ProcessIdentity { process, started, ..ProcessIdentity::own().unwrap() };
        assert_eq!(identity.is_running().unwrap(), Some(true));
        drop(child.stdin.take());
        while Stat::of(process).and_then(|stat| Some(stat.field(3)? != "Z")) == Some(true) {
            std::thread::yield_now();
        }
        assert_eq!(identity.is_running().unwrap(), Some(false));
        child.wait().unwrap();
        assert_eq!(identity.is_running().unwrap(), Some(false));
    }
}
