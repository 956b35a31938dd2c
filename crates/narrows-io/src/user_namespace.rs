//! Working without root: a user namespace of our own, in which we hold every capability.
//!
//! Network namespaces made inside it, their veth pairs and packet sockets need no privilege on the host.
//! What does not work there: entering the host's own namespaces, AF_XDP, receive buffers above
//! `net.core.rmem_max`.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// Who the programs we start believe to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerUser {
    /// Root, as with `unshare -r`: they may configure their own network.
    Root,
    /// The user who called us. They hold no capabilities.
    Same,
}

/// Why no user namespace could be had.
#[derive(Debug, thiserror::Error)]
pub enum UserNamespaceError {
    /// Threads exist already.
    #[error("a user namespace must be entered before any thread is started; {threads} are running")]
    Threads {
        /// How many.
        threads: usize,
    },
    /// This host does not let ordinary users make them.
    #[error(
        "this host does not allow user namespaces ({cause}): run as root, or have the administrator set \
         user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 or \
         kernel.apparmor_restrict_unprivileged_userns=0, whichever this host has"
    )]
    Forbidden {
        /// What the kernel said.
        cause: io::Error,
    },
    /// The users could not be mapped.
    #[error("cannot map the user into a new user namespace: writing {file}: {cause}")]
    Mapping {
        /// The file.
        file: &'static str,
        /// What the kernel said.
        cause: io::Error,
    },
}

/// Moves this process into a user namespace of its own. To be called first of all, while there is one thread.
pub fn enter_user_namespace(inner: InnerUser) -> Result<(), UserNamespaceError> {
    let threads = fs::read_dir("/proc/self/task").map(Iterator::count).unwrap_or(1);
    if threads > 1 {
        return Err(UserNamespaceError::Threads { threads });
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let (inner_user, inner_group) = match inner {
        InnerUser::Root => (0, 0),
        InnerUser::Same => (user, group),
    };
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|errno| UserNamespaceError::Forbidden { cause: errno.into() })?;
    // The kernel lets an ordinary user map groups only once setgroups is given up.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{inner_user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{inner_group} {group} 1"))
}

fn write(file: &'static str, value: &str) -> Result<(), UserNamespaceError> {
    fs::write(file, value).map_err(|cause| UserNamespaceError::Mapping { file, cause })
}
