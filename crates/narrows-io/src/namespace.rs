//! Network namespaces, held only by a file descriptor.
//!
//! A namespace created here has no name in the file system: the kernel removes it, and every interface in it, when
//! the last descriptor and the last process in it are gone. So nothing is left on the host even after `kill -9`. Only
//! [`Namespace::keep`] gives one a name, with which it stays.

use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::fstat;

/// The directory where `ip netns` keeps named namespaces.
const NAMED: &str = "/run/netns";

/// Why a namespace could not be created, found or entered.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// This process may not create or enter namespaces.
    #[error(
        "not allowed to {action}: this needs the capability CAP_SYS_ADMIN; \
         run it as root, or where the host allows user namespaces as an ordinary user"
    )]
    Permission {
        /// What was tried.
        action: String,
    },
    /// The namespace does not exist.
    #[error("no network namespace `{reference}`: {} does not exist", path.display())]
    NotFound {
        /// The given reference.
        reference: String,
        /// The path searched.
        path: PathBuf,
    },
    /// The file is there but is not a network namespace.
    #[error("`{reference}` is not a network namespace ({})", path.display())]
    NotANamespace {
        /// The given reference.
        reference: String,
        /// The path.
        path: PathBuf,
    },
    /// The loopback interface of a new namespace could not be brought up, or its settings were refused.
    #[error("cannot prepare a new network namespace: {0}")]
    Unprepared(Box<dyn Error + Send + Sync>),
    /// The kernel refused for another reason.
    #[error("cannot {action}: {cause}")]
    Refused {
        /// What was tried.
        action: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

impl NamespaceError {
    fn new(action: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        let (action, cause) = (action.into(), cause.into());
        match cause.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission { action },
            _ => Self::Refused { action, cause },
        }
    }
}

/// A network namespace, which exists as long as this value (or a process in it).
pub struct Namespace {
    descriptor: OwnedFd,
    label: String,
}

impl Namespace {
    /// A new, anonymous namespace, with the kernel's defaults; the calling thread is in it from now on.
    pub(crate) fn unshare() -> Result<Self, NamespaceError> {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|errno| NamespaceError::new("make a network namespace", errno))?;
        Ok(Self { descriptor: open_own()?, label: "a new namespace".into() })
    }

    /// Opens an existing namespace: a name as `ip netns` gives them, a path (anything with a `/`), or
    /// `pid:N` for the one that process N is in.
    pub fn open(reference: &str) -> Result<Self, NamespaceError> {
        let path = match reference.strip_prefix("pid:") {
            Some(process) => PathBuf::from(format!("/proc/{process}/ns/net")),
            None if reference.contains('/') => PathBuf::from(reference),
            None => Path::new(NAMED).join(reference),
        };
        let file = File::open(&path).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => {
                NamespaceError::NotFound { reference: reference.into(), path: path.clone() }
            }
            _ => NamespaceError::new(format!("open the network namespace `{reference}`"), cause),
        })?;
        if !is_network_namespace(file.as_fd()) {
            return Err(NamespaceError::NotANamespace { reference: reference.into(), path });
        }
        Ok(Self { descriptor: file.into(), label: reference.into() })
    }

    /// The namespace of the calling thread.
    pub fn current() -> Result<Self, NamespaceError> {
        Ok(Self { descriptor: open_own()?, label: "the current namespace".into() })
    }

    /// Another handle on the same namespace.
    pub fn try_clone(&self) -> Result<Self, NamespaceError> {
        let descriptor = self
            .descriptor
            .try_clone()
            .map_err(|cause| NamespaceError::new("duplicate a namespace descriptor", cause))?;
        Ok(Self { descriptor, label: self.label.clone() })
    }

    /// Runs `action` inside this namespace: on the calling thread if it is already in it, otherwise on a temporary
    /// thread. So an outer call saves threads for inner ones.
    ///
    /// Sockets opened there stay in the namespace. So do threads and processes started there, but a process must not
    /// be started here with a death signal: that fires when its *thread* ends ([`crate::process`] does it otherwise).
    pub fn run<R: Send>(&self, action: impl FnOnce() -> R + Send) -> Result<R, NamespaceError> {
        // An unprivileged user may not enter the namespace that it is already in.
        if self.is_here()? {
            return Ok(action());
        }
        on_helper_thread(|| {
            setns(&self.descriptor, CloneFlags::CLONE_NEWNET)
                .map_err(|errno| NamespaceError::new(format!("enter {self}"), errno))?;
            Ok(action())
        })?
    }

    /// Gives it a name as `ip netns add` does: it stays until [`Namespace::let_go`], or `ip netns delete`.
    ///
    /// # Errors
    /// If there is one of this name, or a privilege is missing.
    pub fn keep(&self, name: &str) -> Result<(), NamespaceError> {
        let refused =
            |cause: io::Error| NamespaceError::new(format!("name a network namespace `{name}`"), cause);
        fs::create_dir_all(NAMED).map_err(refused)?;
        let share =
            || mount(None::<&str>, NAMED, None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
        let shared = match share() {
            // Not a mount point yet.
            Err(Errno::EINVAL) => {
                mount(Some(NAMED), NAMED, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
                    .and_then(|()| share())
            }
            other => other,
        };
        shared.map_err(|errno| refused(errno.into()))?;
        let path = Path::new(NAMED).join(name);
        File::create_new(&path).map_err(refused)?;
        let own = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        mount(Some(own.as_str()), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(|errno| {
            let _ = fs::remove_file(&path);
            refused(errno.into())
        })
    }

    /// Removes such a name. Whether there was one.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn let_go(name: &str) -> Result<bool, NamespaceError> {
        let refused = |cause: io::Error| {
            NamespaceError::new(format!("remove the name of the network namespace `{name}`"), cause)
        };
        let path = Path::new(NAMED).join(name);
        if !path.exists() {
            return Ok(false);
        }
        match umount2(&path, MntFlags::MNT_DETACH) {
            // A file that nothing was mounted on yet.
            Ok(()) | Err(Errno::EINVAL) => {}
            Err(errno) => return Err(refused(errno.into())),
        }
        fs::remove_file(&path).map_err(refused)?;
        Ok(true)
    }

    /// Whether the calling thread is in this namespace.
    pub(crate) fn is_here(&self) -> Result<bool, NamespaceError> {
        let identity = |descriptor: BorrowedFd<'_>| {
            fstat(descriptor)
                .map(|status| (status.st_dev, status.st_ino))
                .map_err(|errno| NamespaceError::new("identify a network namespace", errno))
        };
        Ok(identity(self.as_fd())? == identity(open_own()?.as_fd())?)
    }

    /// The name of this namespace in messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Sets another name for messages, such as the host's name in a scenario.
    pub fn labelled(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Namespace({:?}, fd {})", self.label, self.descriptor.as_raw_fd())
    }
}

/// The calling thread's own namespace; the process's would be `/proc/self/ns/net`.
fn open_own() -> Result<OwnedFd, NamespaceError> {
    File::open("/proc/thread-self/ns/net")
        .map(OwnedFd::from)
        .map_err(|cause| NamespaceError::new("open the thread's own network namespace", cause))
}

/// Namespaces belong to threads: code that changes one runs on a temporary thread.
pub(crate) fn on_helper_thread<R: Send>(action: impl FnOnce() -> R + Send) -> Result<R, NamespaceError> {
    thread::scope(|scope| {
        let helper = thread::Builder::new()
            .name("namespace".into())
            .spawn_scoped(scope, action)
            .map_err(|cause| NamespaceError::new("start a helper thread", cause))?;
        helper.join().map_err(|panic| resume_unwind(panic))
    })
}

#[expect(unsafe_code, reason = "an ioctl that no crate wraps")]
fn is_network_namespace(descriptor: BorrowedFd<'_>) -> bool {
    /// `_IO(0xb7, 0x3)` of `linux/nsfs.h`.
    const NS_GET_NSTYPE: libc::c_ulong = 0xb703;
    // SAFETY: this ioctl takes no argument and returns the kind of namespace, or an error on any other file.
    unsafe { libc::ioctl(descriptor.as_raw_fd(), NS_GET_NSTYPE as _) == libc::CLONE_NEWNET }
}
