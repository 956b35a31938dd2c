//! The control socket: the only interface to a running run.
//!
//! A Unix stream socket, one per run, accessible to its owner only, in the run folder (see [`run_folder`]). The
//! protocol is one JSON object per line: each [`Request`] is answered by one [`Reply`], in order, any number of them
//! per connection. `docs/control-socket.md` has examples. The run's end is a [`ControlSocket`], the client's end a
//! [`Client`].
//!
//! Each change of the configuration increments the run's generation. A client that changes what it has read sends the
//! generation it read: if the run has changed since, nothing is changed and the reply lists the changes.

mod activation;
mod client;
mod current;
mod events;
mod hosts;
mod packets;
mod reply_line;
mod runs;
mod server;

pub use activation::{PassedSocketError, activation_socket, passed_socket};
pub use client::{Client, ControlError};
pub use current::{CurrentDirection, CurrentLink, CurrentPort, CurrentScenario};
pub use events::{Event, EventsSince, Happening};
pub use hosts::{Entrance, HostOfRun, InterfaceOfRun};
pub use packets::{LinkPassed, PacketCounts, PacketRecord, PacketsSince};
pub use reply_line::ReplyLine;
pub use runs::{KnownRun, Liveness, known_runs};
pub use server::{ControlSocket, Peer};

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use narrows_io::own_folder::{OwnFolder, OwnFolderError};
use narrows_report::{Now, RecentRates, Report};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::run_record::number;

/// The suffix of control sockets.
const SUFFIX: &str = ".sock";

/// The environment variable by which programs inside a run find its control socket.
pub const ENVIRONMENT: &str = "NARROWS_CONTROL";

/// A request to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Change links, all at one instant: `access.down.rate=2mbit`. Answered by [`Changed`].
    Set {
        /// The assignments, in order. If one is invalid, none is made.
        assignments: Vec<String>,
        /// The generation that they are based on, if that matters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generation: Option<u64>,
        /// Whether they may name only files that the scenario uses already.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        known_files_only: bool,
    },
    /// Check whether assignments could be made, without making them. Answered by [`Checked`].
    Check {
        /// The assignments, in order.
        assignments: Vec<String>,
        /// As for `set`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        known_files_only: bool,
    },
    /// Execute ipfw commands. Answered by [`Changed`], with their output.
    Ipfw {
        /// The link whose rules they refer to; `None` if only one link has rules.
        link: Option<String>,
        /// The name of the commands in errors.
        file: String,
        /// One command per line. If one is invalid, none is executed.
        commands: String,
        /// The generation that they are based on, if that matters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generation: Option<u64>,
    },
    /// Get the sockets of feeds. Answered by a list of [`Place`](crate::feeds::Place).
    Feeds {},
    /// Get the current configuration: the scenario with its present values. Answered by [`CurrentScenario`].
    Scenario {},
    /// Get the report so far. Answered by [`Stats`].
    Stats {},
    /// Get a short status. Answered by [`Status`].
    Status {},
    /// Get the present state of the links. Answered by [`Now`].
    Now {},
    /// Get events. Answered by [`EventsSince`].
    Events {
        /// The number of the last known event, or 0.
        #[serde(default)]
        after: u64,
    },
    /// Get packets and what happened to them; they are recorded while somebody asks. Answered by [`PacketsSince`].
    Packets {
        /// The number of the last known packet, or 0.
        #[serde(default)]
        after: u64,
    },
    /// Get the hosts. Answered by a list of [`HostOfRun`].
    Hosts {},
    /// Get what is needed to start a program in a host. Answered by [`Entrance`].
    Enter {
        /// The host.
        host: String,
    },
    /// End the run, as on SIGTERM. Answered before that.
    End {},
}

/// A run's reply.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Success, with the requested data as JSON, which who has asked knows to read.
    Ok(Box<RawValue>),
    /// Failure, with the reason.
    Error(String),
    /// Failure, because the generation is not the one given.
    Stale(Stale),
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The run's generation after the change.
    pub generation: u64,
    /// The instant of the change on the run's clock; `None` if nothing was changed.
    pub at_ns: Option<u64>,
    /// The output of commands.
    #[serde(default)]
    pub text: String,
}

/// The effect of valid assignments, if they were made now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The run's generation before them.
    pub generation: u64,
    /// Assignments that undo them; empty if they change nothing, or if undoing takes more than assignments.
    pub undo: Vec<String>,
}

/// The report so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The run's generation.
    pub generation: u64,
    /// As data, for programs.
    pub report: Report,
    /// The present state of the links; `None` if there are very many.
    #[serde(default)]
    pub now: Option<Now>,
    /// As text, for people.
    pub text: String,
}

/// A short status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The run's generation.
    pub generation: u64,
    /// The accuracy of the figures: `accurate`, `mostly accurate`, `not accurate`, `exact`.
    pub trust: String,
    /// Packets inside the network.
    pub inside_packets: u64,
    /// The recent rate delivered to hosts.
    pub delivered: RecentRates,
}

/// Why a change based on another generation was not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stale {
    /// The run's generation.
    pub generation: u64,
    /// The changes since the given generation, oldest first; only the last ones if there are many.
    pub changes: Vec<String>,
}

/// The folder of control sockets: `/run/narrows` for root, otherwise `narrows` in the user's runtime directory,
/// otherwise a folder of the user's own in the directory for temporary files; inside a run, the run's folder if it
/// belongs to this user. Call it before entering a user namespace.
pub fn run_folder() -> PathBuf {
    let user = narrows_io::host::user();
    let owned_by_us =
        |folder: &Path| fs::metadata(folder).is_ok_and(|data| data.is_dir() && data.uid() == user);
    // Inside a run of an unprivileged user, that user appears to be root.
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

/// The control sockets in the run folder, by the number of the run, which is its process ID.
///
/// # Errors
/// If the folder belongs to another user or cannot be read.
pub fn sockets(folder: &Path) -> Result<Vec<(u32, PathBuf)>, OwnFolderError> {
    let Some(folder) = OwnFolder::open(folder)? else { return Ok(Vec::new()) };
    let names = folder.names()?.into_iter().filter(|name| folder.has_own_socket(name));
    let run = |name: &str| number(name.strip_suffix(SUFFIX)?);
    let mut found: Vec<_> = names.filter_map(|name| Some((run(&name)?, folder.path().join(name)))).collect();
    found.sort();
    Ok(found)
}

/// The file name of a run's control socket.
pub fn socket_name(run: u32) -> String {
    format!("{run}{SUFFIX}")
}
