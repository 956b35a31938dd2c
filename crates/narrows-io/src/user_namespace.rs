//! Working without root: our own user namespace, in which we hold every capability.
//!
//! Network namespaces created inside it, their veth pairs and packet sockets need no privilege on the host. Not
//! possible there: entering the host's own namespaces, AF_XDP, receive buffers above `net.core.rmem_max`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl;
use nix::unistd::{getegid, geteuid};

/// The user that started programs appear to run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerUser {
    /// Root, as with `unshare -r`: they may configure their own network.
    Root,
    /// The calling user. They hold no capabilities.
    Same,
}

/// Why no user namespace could be created.
#[derive(Debug, thiserror::Error)]
pub enum UserNamespaceError {
    /// The process already has threads.
    #[error("a user namespace must be entered before any thread is started; {threads} are running")]
    Threads {
        /// Their number.
        threads: usize,
    },
    /// This host does not let unprivileged users create them.
    #[error(
        "this host does not allow user namespaces ({cause}): run as root, or have the administrator set \
         user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 or \
         kernel.apparmor_restrict_unprivileged_userns=0, whichever this host has"
    )]
    Forbidden {
        /// The kernel's error.
        cause: io::Error,
    },
    /// The users could not be mapped.
    #[error("cannot map the user into a new user namespace: writing {file}: {cause}")]
    Mapping {
        /// The file.
        file: &'static str,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// Moves this process into its own user namespace. Call it first, while the process has one thread.
pub fn enter_user_namespace(inner: InnerUser) -> Result<(), UserNamespaceError> {
    let threads = fs::read_dir("/proc/self/task").map(Iterator::count).unwrap_or(1);
    if threads > 1 {
        return Err(UserNamespaceError::Threads { threads });
    }
    let users = Users::now(inner);
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|errno| UserNamespaceError::Forbidden { cause: errno.into() })?;
    users.map().map_err(|(file, cause)| UserNamespaceError::Mapping { file, cause })
}

/// Moves this process into the user namespace of another process, unless it is already there. Call it while this
/// process has one thread.
///
/// # Errors
/// If the other process is gone, or the kernel refuses.
pub fn join_user_namespace(process: u32) -> io::Result<()> {
    let other = File::open(format!("/proc/{process}/ns/user"))?;
    let identity = |data: &fs::Metadata| (data.dev(), data.ino());
    if identity(&other.metadata()?) == identity(&fs::metadata("/proc/self/ns/user")?) {
        return Ok(());
    }
    Ok(setns(other, CloneFlags::CLONE_NEWUSER)?)
}

/// Makes `command` start in its own user namespace; for programs with threads, which cannot enter one themselves.
/// Failures are reported as the error of starting the command.
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn start_in_user_namespace(command: &mut Command, inner: InnerUser) {
    let enter = move || {
        // A process that has just given up root may not write its own maps; exec resets this.
        prctl::set_dumpable(true)?;
        let users = Users::now(inner);
        unshare(CloneFlags::CLONE_NEWUSER)?;
        users.map().map_err(|(_, cause)| cause)
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(enter) };
}

/// Our IDs outside and inside.
struct Users {
    outer: (u32, u32),
    inner: (u32, u32),
}

impl Users {
    fn now(inner: InnerUser) -> Self {
        let outer = (geteuid().as_raw(), getegid().as_raw());
        let inner = match inner {
            InnerUser::Root => (0, 0),
            InnerUser::Same => outer,
        };
        Self { outer, inner }
    }

    /// Writes the ID maps of the namespace just entered.
    fn map(self) -> Result<(), (&'static str, io::Error)> {
        // An unprivileged user may map groups only after disabling setgroups.
        write_line("/proc/self/setgroups", format_args!("deny"))?;
        write_line("/proc/self/uid_map", format_args!("{} {} 1", self.inner.0, self.outer.0))?;
        write_line("/proc/self/gid_map", format_args!("{} {} 1", self.inner.1, self.outer.1))
    }
}

/// A single `write` call, as the kernel requires, without an allocation.
fn write_line(file: &'static str, line: std::fmt::Arguments<'_>) -> Result<(), (&'static str, io::Error)> {
    let mut buffer = [0; 64];
    let mut room = &mut buffer[..];
    room.write_fmt(line).expect("three numbers fit 64 bytes");
    let length = 64 - room.len();
    let written =
        File::options().write(true).open(file).and_then(|mut file| file.write_all(&buffer[..length]));
    written.map_err(|cause| (file, cause))
}
