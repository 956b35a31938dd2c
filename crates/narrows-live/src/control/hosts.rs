//! The hosts of a run, for clients.

use serde::{Deserialize, Serialize};

/// A host of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostOfRun {
    /// Its name in the scenario.
    pub host: String,
    /// Its interfaces, in the order of its links.
    pub interfaces: Vec<InterfaceOfRun>,
}

/// An interface of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceOfRun {
    /// Its name in the host.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// The host at the other end of its link.
    pub peer: String,
}

/// What a program needs in order to run in a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entrance {
    /// The run's file descriptor of the host's network namespace.
    pub namespace: i32,
    /// Environment variables of the run's programs.
    pub environment: Vec<(String, String)>,
    /// Files that replace those in the host's `/etc`: names and contents.
    pub files: Vec<(String, String)>,
    /// Whether name services of the host system are hidden.
    pub hides_services: bool,
}
