//! What a run says of itself.

use std::fmt;
use std::path::PathBuf;

use narrows_scenario::Scenario;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::run_name::RunName;

/// More of a title is not in the record.
const LONGEST_TITLE: usize = 1000;

/// What is started by which command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// A program behind the network.
    #[default]
    Run,
    /// A shell behind it.
    Shell,
    /// A network that stays up.
    Up,
    /// A network between two interfaces.
    Bridge,
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
            Self::Attach => "attach",
        })
    }
}

/// How a run is to be called.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Its name; without one it picks one that no other run has.
    pub name: Option<RunName>,
    /// By which command.
    pub kind: RunKind,
    /// Where its output goes, if that is a file of its own.
    pub output: Option<PathBuf>,
    /// The folder in which its report will be kept.
    pub reports: Option<PathBuf>,
}

/// What a record says of a run beside which process it is. Runs of older versions say less.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct About {
    /// What it is called.
    pub name: Option<RunName>,
    /// By which command it was started.
    pub kind: RunKind,
    /// When, in nanoseconds since 1970.
    pub since_ns: u64,
    /// The title of its report.
    pub title: String,
    /// How many hosts the scenario has.
    pub hosts: usize,
    /// How many links.
    pub links: usize,
    /// Where its output goes, if that is a file of its own.
    pub output: Option<PathBuf>,
    /// The folder in which its report will be kept.
    pub reports: Option<PathBuf>,
}

impl About {
    /// What is known before the run has a name.
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
        }
    }

    /// How long ago it began: `3 min ago`.
    pub fn age(&self) -> String {
        ago(self.since_ns)
    }
}

/// How long ago that was, in nanoseconds since 1970: `3 min ago`.
pub fn ago(since_ns: u64) -> String {
    let seconds = clock::since_1970().saturating_sub(since_ns) / 1_000_000_000;
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86400),
    }
}
