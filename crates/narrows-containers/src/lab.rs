//! A containerlab lab: the links of its topology file that have settings for narrows.
//!
//! ```yaml
//! name: pair
//! topology:
//!   nodes: { a: { kind: linux }, b: { kind: linux } }
//!   links:
//!     - endpoints: ["a:eth1", "b:eth1"]
//!       vars:
//!         narrows: { rate: 10mbit, up: { delay: 20ms } }     # up: from a to b
//! ```
//!
//! The format is that of containerlab's `schemas/clab.schema.json` and its package `links`. `vars` is its place for
//! values that other programs read.

pub mod event;
pub(crate) mod events;
mod read;

use std::path::{Path, PathBuf};

use narrows_live::group::Shape;
use narrows_live::run_record::Membership;
use narrows_scenario::{Files, ScenarioError, read_text};

use crate::container::Container;
use crate::labels::Wish;
use crate::plan::Plan;

/// Labels that containerlab gives each container: its lab and its node.
pub const LAB: &str = "containerlab";
const NODE: &str = "clab-node-name";

/// A lab, as far as narrows is concerned.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Its name, as in the label of its containers.
    pub name: String,
    /// What names of containers begin with, before the name of the node.
    prefix: String,
    /// The folder that names of files are relative to.
    pub folder: PathBuf,
    /// The source of files.
    pub files: Files,
    /// The links with settings.
    pub links: Vec<LabLink>,
    /// All nodes and links, for the graph of the lab.
    pub shape: Shape,
    /// The program `containerlab`.
    pub program: PathBuf,
}

/// A link with settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabLink {
    /// Its ends. The network is attached at the first.
    pub ends: [LabEnd; 2],
    /// Its settings: up is from the first end to the second.
    pub wish: Wish,
}

/// An interface of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabEnd {
    /// The node.
    pub node: String,
    /// Its interface; empty for an end outside the lab that has none of its own.
    pub interface: String,
}

impl Lab {
    /// Reads a topology file. `name` overrides the name of the lab.
    ///
    /// # Errors
    /// All faults, with their lines.
    pub fn load(path: &Path, name: Option<&str>) -> Result<Self, ScenarioError> {
        let (text, file) = read_text(path, "topology file")?;
        let parsed = Self::parse_with(&text, &file, name, Files::beside(&file))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(Self { folder: folder.unwrap_or(Path::new(".")).to_path_buf(), ..parsed })
    }

    /// Parses the text of a topology file, with files taken from `files`.
    ///
    /// # Errors
    /// All faults, with their lines.
    pub fn parse_with(
        text: &str,
        file: &str,
        name: Option<&str>,
        files: Files,
    ) -> Result<Self, ScenarioError> {
        read::read(text, file, name, files)
    }

    /// The links that are attached at a container.
    pub fn at<'a>(&'a self, container: &'a Container) -> impl Iterator<Item = &'a LabLink> {
        let is_in_lab = container.labels.get(LAB).is_some_and(|lab| *lab == self.name);
        let named = container.labels.get(NODE).map(String::as_str);
        let node = named.or_else(|| container.name.strip_prefix(&self.prefix)).unwrap_or_default();
        self.links.iter().filter(move |link| is_in_lab && link.ends[0].node == node)
    }

    /// What the run of a link is shown as.
    pub fn title(&self, link: &LabLink) -> String {
        format!("{} {}", self.name, link.name())
    }

    /// The place of a link in the graph of the lab.
    pub fn membership(&self, link: &LabLink) -> Membership {
        Membership { group: self.name.clone(), ends: link.ends.each_ref().map(LabEnd::name) }
    }

    /// The scenario of each link, by its name.
    ///
    /// # Errors
    /// If keys contradict each other.
    pub fn plans(&self) -> Result<Vec<(String, String)>, ScenarioError> {
        let plan = |link: &LabLink| Ok((link.name(), Plan::of_labels(&link.wish, &self.files)?.scenario));
        self.links.iter().map(plan).collect()
    }
}

impl LabLink {
    /// Its ends, as in `a:eth1–b:eth1`.
    pub fn name(&self) -> String {
        let [from, to] = self.ends.each_ref().map(LabEnd::name);
        format!("{from}–{to}")
    }
}

impl LabEnd {
    fn name(&self) -> String {
        let Self { node, interface } = self;
        if interface.is_empty() { node.clone() } else { format!("{node}:{interface}") }
    }
}

#[cfg(test)]
mod tests;
