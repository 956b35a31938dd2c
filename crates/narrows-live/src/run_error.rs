//! Errors of a run.

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

/// Why a run could not start, or failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario's network cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The scenario or an option does not fit into the kernel.
    #[error(transparent)]
    Misfits(#[from] narrows_kernel::Misfits),
    /// An option that needs the packets themselves.
    #[error("{0} does not work with --backend kernel: {1}")]
    NotInKernel(&'static str, &'static str),
    /// Something that a network without a process cannot have.
    #[error("--persist: {0} needs a process, and the network stays without one")]
    NeedsProcess(&'static str),
    /// A mount namespace of its own.
    #[error(
        "--persist: this process has mounts of its own, as under `ip netns exec` or `unshare -m`, and names that it makes would vanish with \
         them: run it outside, with --netns or --pid for the interface"
    )]
    NeedsHostMounts,
    /// There is one already.
    #[error("a network stays at the interface `{0}` already: take it off with --remove")]
    Stays(String),
    /// There is no network to take off.
    #[error("no network of --persist is at the interface `{0}`; `narrows ls` shows what there is")]
    NothingStays(String),
    /// The hosts cannot be created.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// The interfaces of a bridge or attachment cannot be used.
    #[error(transparent)]
    Inline(#[from] InlineError),
    /// The uplink cannot be created.
    #[error(transparent)]
    Outside(#[from] UplinkError),
    /// The program cannot be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A program beside CMD failed.
    #[error("`{line}`, started in host `{host}`, ended before CMD began: {status}")]
    Beside {
        /// Its host.
        host: String,
        /// Its command line.
        line: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// A log file for a host's programs cannot be written.
    #[error("--logs: cannot write {}: {cause}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// The packet loop failed.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// The control socket cannot be created.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The sockets of feeds cannot be created.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The host does not exist.
    #[error("no host `{found}`: the scenario has {}", hosts.join(", "))]
    NoSuchHost {
        /// The requested one.
        found: String,
        /// The existing ones.
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
        /// The cause.
        cause: io::Error,
    },
}

pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> RunError {
    move |cause| RunError::System { action, cause }
}
