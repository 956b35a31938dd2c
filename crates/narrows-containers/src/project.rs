//! A compose file: its services, their labels, and its block `x-narrows`.
//!
//! ```yaml
//! x-narrows:
//!   defaults: { delay: 5ms }               # the own link of every service
//!   services:
//!     web: { preset: 4g }                  # the own link of one
//!   links:
//!     "web -> db": { delay: 20ms, loss: 1% }
//!     "web <-> cache": { delay: 2ms }
//!   timeline:
//!     - at: 10s
//!       set: { "web -> db": { delay: 200ms } }
//! ```

mod block;
mod ends;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use narrows_scenario::{Fault, Files, ScenarioError, read_text};

use crate::labels::{PREFIX, Wish};
use crate::link_keys::LinkKeys;
use crate::yaml::{Node, Value, fault};
pub use ends::{End, Pair};

/// The key of the block.
pub const BLOCK: &str = "x-narrows";
/// Names of compose files, in the order in which they are looked for.
pub const FILES: [&str; 4] = ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];

/// A compose project, as far as narrows is concerned.
#[derive(Clone, Debug)]
pub struct Project {
    /// Its name, as in the label of its containers.
    pub name: String,
    /// Its services.
    pub services: BTreeSet<String>,
    /// The folder that names of files are relative to.
    pub folder: PathBuf,
    /// The source of files.
    pub files: Files,
    /// The seed, if it is given.
    pub seed: Option<u64>,
    /// The own link of every service.
    pub defaults: LinkKeys,
    /// What the block says of each service.
    pub wishes: BTreeMap<String, Wish>,
    /// The labels of each service that are for narrows; its containers have them too.
    pub labels: BTreeMap<String, Wish>,
    /// Links from one end to another.
    pub pairs: Vec<PairLink>,
    /// Changes over time.
    pub timeline: Vec<Step>,
}

/// The link from one end to another, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct PairLink {
    /// The ends.
    pub pair: Pair,
    /// The settings of the direction, as the table of a pipe.
    pub pipe: toml::Table,
}

/// A step of the timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The instant, since the start, in nanoseconds.
    pub at_ns: u64,
    /// Changes: whose link, key, value.
    pub set: Vec<(Whose, String, String)>,
}

/// The link that a step changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The own link of a service.
    Service(String),
    /// The link of a pair.
    Pair(Pair),
}

impl Project {
    /// Reads a compose file. `name` overrides the name of the project.
    ///
    /// # Errors
    /// All faults, with their lines.
    pub fn load(path: &Path, name: Option<&str>) -> Result<Self, ScenarioError> {
        let (text, file) = read_text(path, "compose file")?;
        let parsed = Self::parse(&text, &file, name)?;
        // For the name of the folder.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.map_or_else(|| std::env::current_dir().unwrap_or_default(), Path::to_path_buf);
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let of_folder = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = if parsed.name.is_empty() { normalized(&of_folder) } else { parsed.name.clone() };
        Ok(Self { name, folder, ..parsed })
    }

    /// Parses the text of a compose file. Without `name` or a key `name`, the project has none.
    ///
    /// # Errors
    /// All faults, with their lines.
    pub fn parse(text: &str, file: &str, name: Option<&str>) -> Result<Self, ScenarioError> {
        Self::parse_with(text, file, name, Files::beside(file))
    }

    /// The same, with its files taken from `files`.
    ///
    /// # Errors
    /// All faults, with their lines.
    pub fn parse_with(
        text: &str,
        file: &str,
        name: Option<&str>,
        files: Files,
    ) -> Result<Self, ScenarioError> {
        let root = Node::document(text, file)?;
        let error = |faults: Vec<Fault>| ScenarioError::of_faults(file, text, faults);
        let services = root.get("services");
        let Some(listed) = services.and_then(Node::map).filter(|all| !all.is_empty()) else {
            let span = services.map_or(0..0, |node| node.span.clone());
            return Err(error(vec![fault(
                "no services: this is not a compose file",
                &span,
                &["a compose file has a map `services`, as in: services: { web: { image: nginx } }"],
            )]));
        };
        let named = root.get("name").and_then(Node::text).map(normalized).unwrap_or_default();
        let mut project = Self {
            name: name.map_or(named, str::to_owned),
            services: listed.iter().map(|(key, _)| key.name.clone()).collect(),
            folder: PathBuf::new(),
            files,
            seed: None,
            defaults: LinkKeys::default(),
            wishes: BTreeMap::new(),
            labels: BTreeMap::new(),
            pairs: Vec::new(),
            timeline: Vec::new(),
        };
        let mut faults = Vec::new();
        for (key, service) in listed {
            if let Some(wish) = labels(&key.name, service, &project.files, &mut faults) {
                project.labels.insert(key.name.clone(), wish);
            }
        }
        match root.get(BLOCK) {
            Some(block) => block::read(&mut project, block, &mut faults),
            None if project.labels.is_empty() => faults.push(fault(
                format!("neither a block `{BLOCK}` nor a label `{PREFIX}…`: there is nothing to do"),
                &(0..0),
                &["add, at the top level: x-narrows: { defaults: { delay: 20ms } }"],
            )),
            None => {}
        }
        faults.sort_by_key(|fault| fault.span.as_ref().map(|span| span.start));
        if faults.is_empty() { Ok(project) } else { Err(error(faults)) }
    }

    /// What the block says of a service.
    pub fn own_wish(&self, service: &str) -> Wish {
        let own = self.wishes.get(service).cloned().unwrap_or_default();
        Wish { keys: own.keys.over(&self.defaults), ..own }
    }
}

/// The labels of a service that are for narrows, in either form; `None` if there are none.
fn labels(service: &str, node: &Node, files: &Files, faults: &mut Vec<Fault>) -> Option<Wish> {
    let labels = node.get("labels")?;
    let mut found = Vec::new();
    match &labels.value {
        Value::Map(all) => {
            for (key, value) in all {
                found.push((key.name.clone(), value.typed(), key.span.start..value.span.end));
            }
        }
        Value::List(all) => {
            for one in all {
                let text = one.text().unwrap_or_default();
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                found.push((name.into(), value.into(), one.span.clone()));
            }
        }
        _ => {}
    }
    let mut wish = Wish::default();
    let mut is_any = false;
    for (label, value, span) in found {
        let Some(name) = label.strip_prefix(PREFIX) else { continue };
        is_any = true;
        // Compose substitutes variables itself.
        if value.contains("${") {
            continue;
        }
        if let Err(fault) = wish.set(name, &value, span) {
            faults.push(Fault { key: format!("services.{service}.labels"), ..fault });
        }
    }
    for fault in wish.keys.faults(files, &labels.span) {
        faults.push(Fault { key: format!("services.{service}.labels.{PREFIX}{}", fault.key), ..fault });
    }
    is_any.then_some(wish)
}

/// The name of a project as compose makes it from that of a folder.
pub fn normalized(name: &str) -> String {
    let lower = name.to_lowercase();
    let known = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let kept: String = lower.chars().filter(known).collect();
    kept.trim_start_matches(['_', '-']).to_owned()
}

#[cfg(test)]
mod tests;
