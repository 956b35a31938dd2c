//! Why a run fails.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use narrows_core::BuildError;
use narrows_io::process::SpawnError;

use crate::control::ControlError;
use crate::director::LoopError;
use crate::feeds::FeedError;
use crate::inline_error::InlineError;
use crate::nat_uplink::UplinkError;
use crate::testbed::TestbedError;

/// Why a run could not begin, or broke off.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario's network.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The hosts.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// The interfaces of a bridge, or the one that is attached to.
    #[error(transparent)]
    Inline(#[from] InlineError),
    /// The way to the outside.
    #[error(transparent)]
    Outside(#[from] UplinkError),
    /// The program.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A program beside CMD.
    #[error("`{line}`, started in host `{host}`, ended before CMD began: {status}")]
    Beside {
        /// Where.
        host: String,
        /// The program, as it was given.
        line: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// A file for what programs of a host write.
    #[error("--logs: cannot write {}: {cause}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// The loop.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// The control socket.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The sockets of feeds.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// There is no such host.
    #[error("no host `{found}`: the scenario has {}", hosts.join(", "))]
    NoSuchHost {
        /// As asked for.
        found: String,
        /// Those there are.
        hosts: Vec<String>,
    },
    /// A host without a link.
    #[error("host `{0}` has no link and therefore no uplink")]
    NoLink(String),
    /// A call to the system failed.
    #[error("cannot {action}: {cause}")]
    System {
        /// What was tried.
        action: &'static str,
        /// Why not.
        cause: io::Error,
    },
}

pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> RunError {
    move |cause| RunError::System { action, cause }
}
