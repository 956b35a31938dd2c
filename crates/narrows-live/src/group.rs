//! Groups of runs that are one network to the user, such as a lab: each run is one of its links.
//!
//! A run's record names its group and the ends of its link there. What made the group can also hold its [`Shape`], with
//! the links that have no run: a file `NUMBER.group` in the run folder, locked as long as its process lives.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::Path;
use std::process;

use narrows_io::own_folder::{Lock, OwnFolder, OwnFolderError};
use serde::{Deserialize, Serialize};

use crate::control::{KnownRun, Liveness, known_runs};
use crate::run_record::number;

/// The suffix of files with shapes, and their maximum length.
const SUFFIX: &str = ".group";
const LONGEST: u64 = 4 << 20;

/// The nodes and links of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The name of the group.
    pub group: String,
    /// All nodes, also those without links.
    pub nodes: Vec<String>,
    /// The ends of each link, `NODE` or `NODE:INTERFACE`.
    pub links: Vec<[String; 2]>,
}

/// A shape that others find as long as this value lives.
#[derive(Debug)]
pub struct HeldShape {
    folder: OwnFolder,
    name: String,
    _locked: File,
}

impl HeldShape {
    /// Writes it to the run folder, which is made if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn write(run_folder: &Path, shape: &Shape) -> Result<Self, OwnFolderError> {
        let folder = OwnFolder::make(run_folder)?;
        let name = format!("{}{SUFFIX}", process::id());
        let text = serde_json::to_string(shape).unwrap_or_default();
        let locked = folder.replace(&name, &text, Lock::Exclusive)?;
        Ok(Self { folder, name, _locked: locked })
    }
}

impl Drop for HeldShape {
    fn drop(&mut self) {
        // `narrows clean` removes what is left.
        let _ = self.folder.remove(&self.name);
    }
}

/// A link of a group.
#[derive(Clone, Debug)]
pub struct GroupLink {
    /// Its ends.
    pub ends: [String; 2],
    /// The run that is the link; `None` if packets cross it as they are.
    pub run: Option<KnownRun>,
}

/// A group, with its runs in progress.
#[derive(Clone, Debug, Default)]
pub struct KnownGroup {
    /// All of its nodes, in order.
    pub nodes: Vec<String>,
    /// All of its links: first those of its shape.
    pub links: Vec<GroupLink>,
}

/// The node of an end.
pub fn node(end: &str) -> &str {
    end.split(':').next().unwrap_or(end)
}

/// The group of this name; `None` if neither a run nor a shape has it.
///
/// # Errors
/// If the folder belongs to another user or cannot be read.
pub fn known_group(run_folder: &Path, name: &str) -> Result<Option<KnownGroup>, OwnFolderError> {
    let shape = shape(run_folder, name)?;
    let (runs, _) = known_runs(run_folder)?;
    let is_ours = |run: &KnownRun| {
        let membership = run.about.membership.as_ref();
        run.liveness == Liveness::GoingOn && membership.is_some_and(|membership| membership.group == name)
    };
    let runs = runs.into_iter().filter(is_ours).collect::<Vec<_>>();
    Ok((shape.is_some() || !runs.is_empty()).then(|| KnownGroup::of(shape.unwrap_or_default(), runs)))
}

impl KnownGroup {
    fn of(shape: Shape, runs: Vec<KnownRun>) -> Self {
        let plain = |ends| GroupLink { ends, run: None };
        let mut group = Self { nodes: shape.nodes, links: shape.links.into_iter().map(plain).collect() };
        for run in runs {
            let Some(membership) = &run.about.membership else { continue };
            let ends = membership.ends.clone();
            let own = group.links.iter_mut().find(|link| link.ends == ends && link.run.is_none());
            match own {
                Some(link) => link.run = Some(run),
                None => group.links.push(GroupLink { ends, run: Some(run) }),
            }
        }
        let mut seen: BTreeSet<String> = group.nodes.iter().cloned().collect();
        let of_links = group.links.iter().flat_map(|link| &link.ends).map(|end| node(end).to_owned());
        let further: Vec<_> = of_links.filter(|node| seen.insert(node.clone())).collect();
        group.nodes.extend(further);
        group
    }
}

/// The shape of this group that a process holds.
fn shape(run_folder: &Path, name: &str) -> Result<Option<Shape>, OwnFolderError> {
    let Some(folder) = OwnFolder::open(run_folder)? else { return Ok(None) };
    for file in folder.names()?.into_iter().filter(|name| is_shape(name)) {
        let Some(mut file) = folder.open_file(&file)? else { continue };
        if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            continue;
        }
        let mut text = String::new();
        // One that cannot be read is of another version.
        let read = Read::take(&mut file, LONGEST).read_to_string(&mut text);
        let shape: Option<Shape> = read.ok().and_then(|_| serde_json::from_str(&text).ok());
        if let Some(shape) = shape.filter(|shape| shape.group == name) {
            return Ok(Some(shape));
        }
    }
    Ok(None)
}

/// Whether a file of this name has a shape.
fn is_shape(name: &str) -> bool {
    name.strip_suffix(SUFFIX).and_then(number).is_some()
}

/// Removes the shapes of processes that were killed. Returns the names of their files.
///
/// # Errors
/// If the kernel refuses.
pub fn remove_left(folder: &OwnFolder) -> Result<Vec<String>, OwnFolderError> {
    folder.remove_unlocked(is_shape)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::run_record::{About, Membership};

    fn ends(from: &str, to: &str) -> [String; 2] {
        [from.into(), to.into()]
    }

    fn run(from: &str, to: &str) -> KnownRun {
        let membership = Some(Membership { group: "lab".into(), ends: ends(from, to) });
        KnownRun {
            number: 7,
            about: About { membership, ..About::default() },
            liveness: Liveness::GoingOn,
            socket: "7.sock".into(),
        }
    }

    #[test]
    fn runs_are_links_of_the_shape_and_others_are_added() {
        let links = vec![ends("a:eth1", "b:eth1"), ends("b:eth2", "c:eth1")];
        let shape = Shape { group: "lab".into(), nodes: vec!["z".into(), "a".into()], links };
        let runs = vec![run("b:eth2", "c:eth1"), run("c:eth9", "host")];
        let group = KnownGroup::of(shape, runs);
        assert_eq!(group.nodes, ["z", "a", "b", "c", "host"]);
        let shaped: Vec<_> = group.links.iter().map(|link| link.run.is_some()).collect();
        assert_eq!(shaped, [false, true, true]);
        assert_eq!(group.links[2].ends, ends("c:eth9", "host"));
    }

    #[test]
    fn a_shape_is_found_as_long_as_it_is_held() {
        let folder = std::env::temp_dir().join(format!("narrows-groups-{}", process::id()));
        let shape = Shape { group: "lab".into(), nodes: vec!["a".into()], links: Vec::new() };
        let found = |name| known_group(&folder, name).unwrap().map(|group| group.nodes);
        assert_eq!(found("lab"), None);
        let held = HeldShape::write(&folder, &shape).unwrap();
        assert_eq!((found("lab"), found("other")), (Some(vec!["a".to_owned()]), None));
        let own = OwnFolder::make(&folder).unwrap();
        assert!(remove_left(&own).unwrap().is_empty());
        // What a killed process leaves: the file, without its lock.
        let left = folder.join("7.group");
        fs::write(&left, serde_json::to_string(&shape).unwrap()).unwrap();
        drop(held);
        assert_eq!(found("lab"), None);
        assert_eq!(remove_left(&own).unwrap(), ["7.group"]);
        assert!(fs::read_dir(&folder).unwrap().next().is_none());
        fs::remove_dir(&folder).unwrap();
    }
}
