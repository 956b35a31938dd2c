//! Searches for a recorded network namespace.
//!
//! A namespace exists as long as a thread is in it, a descriptor is open on it, or it is mounted somewhere. All three
//! are visible under `/proc`, for processes that may be inspected. (Sockets hold a namespace, too, but it cannot be
//! entered through them.)

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::namespace::Namespace;
use crate::namespace_identity::{NamespaceIdentity, Relation};

/// The result of a search.
#[derive(Debug)]
pub(crate) enum Found {
    /// The namespace.
    Open(Namespace),
    /// It no longer exists.
    Gone,
    /// It may be where this process cannot search.
    Unseen,
}

/// Searches through all processes.
pub(crate) fn find(wanted: &NamespaceIdentity) -> Found {
    let Ok(processes) = fs::read_dir("/proc") else { return Found::Unseen };
    let mut search = Search { wanted, sees_all: sees_every_process(), mounts: BTreeSet::new() };
    let numbered =
        |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()).is_some();
    let processes = processes.flatten().map(|entry| entry.path()).filter(numbered);
    for process in processes {
        if let Some(found) = search.process(&process) {
            return Found::Open(found);
        }
    }
    if search.sees_all { Found::Gone } else { Found::Unseen }
}

struct Search<'a> {
    wanted: &'a NamespaceIdentity,
    sees_all: bool,
    /// Mount namespaces already searched.
    mounts: BTreeSet<u64>,
}

impl Search<'_> {
    fn process(&mut self, process: &Path) -> Option<Namespace> {
        let tasks = self.entries(&process.join("task")).into_iter().map(|task| task.join("ns/net"));
        let places: Vec<_> = tasks.chain(self.entries(&process.join("fd"))).collect();
        let mounted = self.mounted(process);
        let link = format!("net:[{}]", self.wanted.inode);
        for place in &places {
            let leads_there =
                self.seen(fs::read_link(place)).is_some_and(|to| to.as_os_str() == link.as_str());
            if leads_there && let Some(found) = self.open(place) {
                return Some(found);
            }
        }
        mounted.iter().find_map(|place| self.open(place))
    }

    /// The mount points of the namespace, as seen by this process.
    fn mounted(&mut self, process: &Path) -> Vec<PathBuf> {
        let Some(mounts) = self.seen(fs::metadata(process.join("ns/mnt"))) else { return Vec::new() };
        if !self.mounts.insert(mounts.ino()) {
            return Vec::new();
        }
        let table = self.seen(fs::read_to_string(process.join("mountinfo"))).unwrap_or_default();
        let root = format!("net:[{}]", self.wanted.inode);
        // Number, parent, device, root, mount point, …
        let points = table.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(3);
            (fields.next()? == root).then(|| fields.next())?
        });
        points.map(|point| process.join("root").join(point.trim_start_matches('/'))).collect()
    }

    fn entries(&mut self, folder: &Path) -> Vec<PathBuf> {
        let listing = self.seen(fs::read_dir(folder));
        listing.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    fn open(&self, place: &Path) -> Option<Namespace> {
        let found = Namespace::open(place.to_str()?).ok()?;
        let identity = NamespaceIdentity::of(&found).ok()?;
        (self.wanted.compare(&identity) == Relation::Same).then_some(found)
    }

    /// Notes what could not be inspected. A process that has ended meanwhile hides nothing.
    fn seen<T>(&mut self, result: io::Result<T>) -> Option<T> {
        let hides = |error: &io::Error| {
            error.kind() != io::ErrorKind::NotFound && error.raw_os_error() != Some(libc::ESRCH)
        };
        self.sees_all &= !result.as_ref().is_err_and(hides);
        result.ok()
    }
}

/// Whether `/proc` shows all processes of the host.
fn sees_every_process() -> bool {
    /// The inode of the first PID namespace, `PROC_PID_INIT_INO` of `linux/proc_ns.h`.
    const FIRST: u64 = 0xEFFF_FFFC;
    fs::metadata("/proc/self/ns/pid").is_ok_and(|namespace| namespace.ino() == FIRST)
}
