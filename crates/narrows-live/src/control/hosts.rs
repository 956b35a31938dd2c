//! The hosts of a run, as clients hear of them.

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
    /// Who is at the other end of its link.
    pub peer: String,
}

/// What a program needs that is to run in a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entrance {
    /// The run's descriptor of the host's network namespace.
    pub namespace: i32,
    /// What programs of the run find in their environment.
    pub environment: Vec<(String, String)>,
    /// Files of `/etc` in place of the host's own: names and contents.
    pub files: Vec<(String, String)>,
    /// Whether name services of the host are hidden.
    pub hides_services: bool,
}
