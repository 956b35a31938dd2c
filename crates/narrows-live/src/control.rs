//! The control socket: the one door to a run.
//!
//! A Unix stream socket, one per run, for its owner only, in the run folder (see [`run_folder`]). The protocol is one
//! JSON object a line: a [`Request`], answered by one [`Reply`], in order, any number of them on a connection.
//! `docs/control-socket.md` has examples. The run's end is a [`ControlSocket`], that of programs a [`Client`].
//!
//! Each change of what is in force raises the run's generation by one. A client that changes what it has read sends the
//! generation of that: where the run has moved on since, nothing is changed and the answer says what was.

mod client;
mod current;
mod events;
mod hosts;
mod runs;
mod server;

pub use client::{Client, ControlError};
pub use current::{CurrentDirection, CurrentLink, CurrentPort, CurrentScenario};
pub use events::{Event, EventsSince, Happening};
pub use hosts::{Entrance, HostOfRun, InterfaceOfRun};
pub use runs::{KnownRun, Liveness, known_runs};
pub use server::ControlSocket;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use narrows_io::own_folder::{OwnFolder, OwnFolderError};
use narrows_report::{Now, RecentRates, Report};
use serde::{Deserialize, Serialize};

use crate::run_record::number;

/// What the name of a control socket ends with.
const SUFFIX: &str = ".sock";

/// The variable by which programs inside a run find its control socket.
pub const ENVIRONMENT: &str = "NARROWS_CONTROL";

/// What may be asked of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Change links, all at one instant: `access.down.rate=2mbit`. Answered by [`Changed`].
    Set {
        /// In order. If one is wrong, none is done.
        assignments: Vec<String>,
        /// That of the state they are meant for, if that matters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generation: Option<u64>,
    },
    /// Say whether assignments could be made, and change nothing. Answered by [`Checked`].
    Check {
        /// In order.
        assignments: Vec<String>,
    },
    /// Do what commands of ipfw say. Answered by [`Changed`], with what they print.
    Ipfw {
        /// The link at which the rules are; nothing where only one has some.
        link: Option<String>,
        /// What the commands are called in errors.
        file: String,
        /// One a line. If one is wrong, none is done.
        commands: String,
        /// That of the state they are meant for, if that matters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generation: Option<u64>,
    },
    /// Say where the sockets of feeds are. Answered by a list of [`Place`](crate::feeds::Place).
    Feeds {},
    /// Say what is in force: the scenario with its present values. Answered by [`CurrentScenario`].
    Scenario {},
    /// Report what has happened so far. Answered by [`Stats`].
    Stats {},
    /// Say how things are, in few words. Answered by [`Status`].
    Status {},
    /// Say what the links do at present. Answered by [`Now`].
    Now {},
    /// Say what happened. Answered by [`EventsSince`].
    Events {
        /// The number of the last event that is known, or 0.
        #[serde(default)]
        after: u64,
    },
    /// Name the hosts. Answered by a list of [`HostOfRun`].
    Hosts {},
    /// Say how to start a program in a host. Answered by [`Entrance`].
    Enter {
        /// The host.
        host: String,
    },
    /// End, as at a SIGTERM. Answered before that.
    End {},
}

/// What a run answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Done, with what was asked for.
    Ok(serde_json::Value),
    /// Not done, and why.
    Error(String),
    /// Not done, as the state is not the one that was meant.
    Stale(Stale),
}

/// What a request has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The run's generation after it.
    pub generation: u64,
    /// When the change was made, on the run's clock; nothing where nothing was changed.
    pub at_ns: Option<u64>,
    /// What commands printed.
    #[serde(default)]
    pub text: String,
}

/// What assignments would do that could be made now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The run's generation, before them.
    pub generation: u64,
    /// Assignments that take them back; none where they change nothing, or where that needs more than assignments.
    pub undo: Vec<String>,
}

/// What has happened so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The run's generation.
    pub generation: u64,
    /// For a program.
    pub report: Report,
    /// What the links do at present; nothing where there are very many.
    #[serde(default)]
    pub now: Option<Now>,
    /// For a person.
    pub text: String,
}

/// How things are, in few words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The run's generation.
    pub generation: u64,
    /// How far its figures can be trusted: `accurate`, `mostly accurate`, `not accurate`, `exact`.
    pub trust: String,
    /// Packets inside the network.
    pub inside_packets: u64,
    /// What arrived at hosts of late.
    pub delivered: RecentRates,
}

/// Why a change was not made that was meant for another state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stale {
    /// The run's generation.
    pub generation: u64,
    /// What was changed since the generation that was named, oldest first; the last of them where they are many.
    pub changes: Vec<String>,
}

/// The folder of control sockets: `/run/narrows` for root, else `narrows` in the user's runtime folder, else a folder
/// of the user's own in the folder for temporary files; inside a run, that of the run, if it is ours. To be asked before
/// a user namespace is entered.
pub fn run_folder() -> PathBuf {
    let user = narrows_io::host::user();
    let owned_by_us =
        |folder: &Path| fs::metadata(folder).is_ok_and(|data| data.is_dir() && data.uid() == user);
    // Inside a run of an ordinary user, that user seems to be root.
    let outer = env::var_os(ENVIRONMENT).map(PathBuf::from);
    if let Some(folder) = outer.as_deref().and_then(Path::parent).filter(|folder| owned_by_us(folder)) {
        return folder.into();
    }
    if user == 0 && owned_by_us(Path::new("/run")) {
        return PathBuf::from("/run/narrows");
    }
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if owned_by_us(Path::new(&folder)) => Path::new(&folder).join("narrows"),
        _ => env::temp_dir().join(format!("narrows-{user}")),
    }
}

/// The control sockets in the run folder, by the number of the run, which is that of its process.
///
/// # Errors
/// When the folder is not this user's, or cannot be read.
pub fn sockets(folder: &Path) -> Result<Vec<(u32, PathBuf)>, OwnFolderError> {
    let Some(folder) = OwnFolder::open(folder)? else { return Ok(Vec::new()) };
    let names = folder.names()?.into_iter().filter(|name| folder.has_own_socket(name));
    let run = |name: &str| number(name.strip_suffix(SUFFIX)?);
    let mut found: Vec<_> = names.filter_map(|name| Some((run(&name)?, folder.path().join(name)))).collect();
    found.sort();
    Ok(found)
}

/// What the control socket of a run is called in the run folder.
pub fn socket_name(run: u32) -> String {
    format!("{run}{SUFFIX}")
}
