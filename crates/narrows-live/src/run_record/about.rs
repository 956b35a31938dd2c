//! The description of a run.

use std::fmt;
use std::path::PathBuf;

use narrows_scenario::Scenario;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::run_name::RunName;

/// The maximum length of a title in the record.
const LONGEST_TITLE: usize = 1000;

/// The command that started a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// A program behind the network.
    #[default]
    Run,
    /// A shell behind the network.
    Shell,
    /// A network that stays up.
    Up,
    /// A network between two interfaces.
    Bridge,
    /// A router between two interfaces.
    Route,
    /// A network on an interface in use.
    Attach,
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Run => "run",
            Self::Shell => "shell",
            Self::Up => "up",
            Self::Bridge => "bridge",
            Self::Route => "route",
            Self::Attach => "attach",
        })
    }
}

/// A group that a run belongs to, such as a lab, and the ends of its link there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Membership {
    /// The name of the group.
    pub group: String,
    /// The ends, `NODE` or `NODE:INTERFACE`. What the first sends is the first direction of the run.
    pub ends: [String; 2],
}

/// The identity of a new run.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Its name; by default a generated one that no other run has.
    pub name: Option<RunName>,
    /// The command.
    pub kind: RunKind,
    /// Its output file, if it has one.
    pub output: Option<PathBuf>,
    /// The folder where its report will be kept.
    pub reports: Option<PathBuf>,
    /// What it was started for, if by a program that finds it by this again.
    pub owner: Option<String>,
    /// The group that it belongs to.
    pub membership: Option<Membership>,
}

/// The description of a run in its record, apart from its process. Runs of older versions have fewer fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct About {
    /// Its name.
    pub name: Option<RunName>,
    /// The command that started it.
    pub kind: RunKind,
    /// Its start, in nanoseconds since 1970.
    pub since_ns: u64,
    /// The title of its report.
    pub title: String,
    /// The number of hosts in the scenario.
    pub hosts: usize,
    /// The number of links.
    pub links: usize,
    /// Its output file, if it has one.
    pub output: Option<PathBuf>,
    /// The folder where its report will be kept.
    pub reports: Option<PathBuf>,
    /// What it was started for, if by a program that finds it by this again.
    pub owner: Option<String>,
    /// The group that it belongs to.
    pub membership: Option<Membership>,
}

impl About {
    /// The description before the run has a name.
    pub fn new(identity: &Identity, scenario: &Scenario, title: &str) -> Self {
        Self {
            name: identity.name.clone(),
            kind: identity.kind,
            since_ns: clock::since_1970(),
            title: title.chars().take(LONGEST_TITLE).collect(),
            hosts: scenario.hosts.len(),
            links: scenario.links.len(),
            output: identity.output.clone(),
            reports: identity.reports.clone(),
            owner: identity.owner.clone(),
            membership: identity.membership.clone(),
        }
    }

    /// The time since its start: `3 min ago`.
    pub fn age(&self) -> String {
        ago(self.since_ns)
    }
}

/// The time since an instant in nanoseconds since 1970: `3 min ago`.
pub fn ago(since_ns: u64) -> String {
    let seconds = clock::since_1970().saturating_sub(since_ns) / 1_000_000_000;
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86400),
    }
}
