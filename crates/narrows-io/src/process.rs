//! Programs inside a namespace.
//!
//! The child enters the namespace between fork and exec, so it is a child of the calling thread. It gets a death
//! signal: it is killed when the *thread* that started it ends, so start programs from a thread that lives long
//! enough (the main thread). The kernel clears the death signal when a program gains or drops privileges at exec
//! (`ping` with file capabilities, `su`); such programs, and grandchildren, are ended by [`end_descendants`] on an
//! orderly exit and found by [`crate::marked`] after a `kill -9`.
//!
//! The child stays in our process group, so that Ctrl-C at the terminal reaches it as usual, unless its command
//! requests its own group. In that case it may still write to the terminal.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
pub use nix::sys::signal::Signal;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, kill, killpg, signal, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{AccessFlags, Pid, access, getpgid, getpgrp, getpid, getppid};

use crate::clock::{MonotonicTime, clock_monotonic};
use crate::descriptors;
use crate::etc_files::EtcFiles;
use crate::namespace::{Namespace, NamespaceError};
use crate::scheduling;
use crate::wait::{Waiting, wait, wake_as_usual};

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program does not exist.
    #[error("command not found: `{program}`{}", remedy(program))]
    NotFound {
        /// Its given name.
        program: String,
    },
    /// The script exists, but not the interpreter in its first line.
    #[error("cannot run {}: the interpreter named in its first line does not exist", path.display())]
    NoInterpreter {
        /// The script.
        path: PathBuf,
    },
    /// It exists but may not be executed.
    #[error(
        "not allowed to execute `{program}`: it is not an executable file, or a folder on the way is closed"
    )]
    NotExecutable {
        /// Its given name.
        program: String,
    },
    /// Its working directory does not exist.
    #[error("cannot run `{program}` in {}: there is no such directory", directory.display())]
    NoDirectory {
        /// Its given name.
        program: String,
        /// The working directory.
        directory: PathBuf,
    },
    /// The namespace cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The kernel refused for another reason.
    #[error("cannot run `{program}`: {cause}")]
    Refused {
        /// Its given name.
        program: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

fn remedy(program: &str) -> &'static str {
    if program.contains(' ') { " (the command and its arguments are separate words)" } else { "" }
}

/// A process that somebody else started, held by a descriptor, which never refers to another one.
#[derive(Debug)]
pub struct OtherProcess {
    pidfd: OwnedFd,
}

impl OtherProcess {
    /// The process that has this ID now.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(process: u32) -> io::Result<Self> {
        Ok(Self { pidfd: open_pidfd(process)? })
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn is_over(&self) -> io::Result<bool> {
        let mut look = [Waiting::readable(self)];
        wait(&mut look, Some(MonotonicTime::default()))?;
        Ok(look[0].is_ready())
    }
}

impl AsFd for OtherProcess {
    /// A descriptor that becomes readable when it ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Whether a killed process still has open files, which it closes within some milliseconds: its memory, with its command
/// line, is gone, but not all of its threads. Threads of the kernel look the same.
pub fn is_dying(process: u32) -> bool {
    let has_no_memory = fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| line.is_empty());
    has_no_memory && OtherProcess::open(process).and_then(|process| process.is_over()).is_ok_and(|over| !over)
}

/// Whether the process descends from this one.
pub fn is_descendant(process: u32) -> bool {
    let mut above = parent(Pid::from_raw(process as i32));
    while let Some(process) = above.filter(|process| process.as_raw() > 0) {
        if process == getpid() {
            return true;
        }
        above = parent(process);
    }
    false
}

/// A started program. Dropping this kills it, unless it is left to [`end_descendants`].
#[derive(Debug)]
pub struct Running {
    child: Child,
    pidfd: OwnedFd,
    is_left: bool,
}

/// Makes writes beyond the file size limit (`ulimit -f`) fail with an error, in this thread and in those started
/// later; by default the kernel would end the process. Programs started by [`spawn`] are ended as usual.
///
/// # Errors
/// The kernel's.
pub fn outlive_file_limit() -> io::Result<()> {
    let signals: SigSet = [Signal::SIGXFSZ].into_iter().collect();
    Ok(signals.thread_block()?)
}

/// Whether the program exists, to be checked before anything is set up for it.
///
/// # Errors
/// Those of [`spawn`], as far as they can be determined in advance.
pub fn check(command: &Command) -> Result<(), SpawnError> {
    let Some(path) = find(command) else { return Err(SpawnError::NotFound { program: name_of(command) }) };
    match access(&path, AccessFlags::X_OK) {
        Ok(()) => Ok(()),
        Err(_) => Err(SpawnError::NotExecutable { program: name_of(command) }),
    }
}

/// Starts `command` inside `namespace`.
pub fn spawn(command: Command, namespace: &Namespace) -> Result<Running, SpawnError> {
    spawn_with(command, namespace, None)
}

/// Starts `command` inside `namespace`, with these replacement files in `/etc`.
pub fn spawn_with(
    mut command: Command,
    namespace: &Namespace,
    files: Option<&Arc<EtcFiles>>,
) -> Result<Running, SpawnError> {
    // Failing to enter is detected here, where it can be distinguished from the program's own errors.
    namespace.run(|| ())?;
    enter_before_exec(&mut command, namespace)?;
    if let Some(files) = files {
        see_before_exec(&mut command, files.clone());
    }
    let child = command.spawn().map_err(|cause| explain(&command, cause))?;
    match open_pidfd(child.id()) {
        Ok(pidfd) => Ok(Running { child, pidfd, is_left: false }),
        Err(cause) => {
            let mut child = child;
            let _ = child.kill();
            let _ = child.wait();
            Err(SpawnError::Refused { program: name_of(&command), cause })
        }
    }
}

impl Running {
    /// The process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits until it ends.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Sends it a signal; no effect if it has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match kill(Pid::from_raw(self.child.id() as i32), signal) {
            Err(nix::Error::ESRCH) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Lets it run until [`end_descendants`] asks it to end.
    pub fn leave(mut self) {
        self.is_left = true;
    }

    /// The child with its pipes, if the command requested any.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl AsFd for Running {
    /// A descriptor that becomes readable when the program ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        // Both only fail for a program that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes this process the parent of every descendant whose own parent ends, so that [`end_descendants`]
/// finds them.
pub fn adopt_descendants() -> io::Result<()> {
    Ok(prctl::set_child_subreaper(true)?)
}

/// Ends every child of this process, and after [`adopt_descendants`] every descendant: asks with `first`, after
/// `grace` with `SIGTERM` if that was another signal, and after as long again kills. For a process group leader, its
/// whole group gets all of these signals; a process that only now becomes a child because its parent has ended is
/// asked when it does. Returns how many had to be killed.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn end_descendants(first: Signal, grace: Duration) -> io::Result<usize> {
    const PAUSE: Duration = Duration::from_millis(2);
    let mut ways = vec![first, Signal::SIGTERM, Signal::SIGKILL];
    ways.dedup();
    let mut killed = BTreeSet::new();
    for way in ways {
        let deadline = later(clock_monotonic(), grace);
        let mut asked = BTreeSet::new();
        // Processes that cannot be killed yet will be.
        while way == Signal::SIGKILL || clock_monotonic() < deadline {
            reap();
            let left = children(getpid())?;
            if left.is_empty() {
                return Ok(killed.len());
            }
            for process in left {
                if asked.insert(process) {
                    ask(process, way);
                }
                if way == Signal::SIGKILL {
                    killed.insert(process);
                }
            }
            std::thread::sleep(PAUSE);
        }
    }
    Ok(killed.len())
}

/// Sends a signal to a child, and to its group if it leads one.
fn ask(process: Pid, signal: Signal) {
    // A process that has ended meanwhile needs no signal.
    let _ = match getpgid(Some(process)) {
        Ok(group) if group == process && process != getpid() => killpg(group, signal),
        _ => kill(process, signal),
    };
}

fn later(now: MonotonicTime, by: Duration) -> MonotonicTime {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    MonotonicTime::from_nanos(now.as_nanos().saturating_add(by))
}

/// Reaps children that have ended, so that they leave the list.
fn reap() {
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            return;
        }
    }
}

fn children(of: Pid) -> io::Result<Vec<Pid>> {
    Ok(processes()?.filter(|process| parent(*process) == Some(of)).collect())
}

pub(crate) fn processes() -> io::Result<impl Iterator<Item = Pid>> {
    let entries = fs::read_dir("/proc")?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().map(Pid::from_raw)))
}

fn parent(process: Pid) -> Option<Pid> {
    let stat = Stat::of(process.as_raw() as u32)?;
    stat.field(4)?.parse().ok().map(Pid::from_raw)
}

/// The kernel's information on a process, from `/proc/N/stat`.
pub(crate) struct Stat(String);

impl Stat {
    /// `None` if the process does not exist.
    pub(crate) fn of(process: u32) -> Option<Self> {
        fs::read_to_string(format!("/proc/{process}/stat")).ok().map(Self)
    }

    /// A field by its number in proc_pid_stat(5), starting with 3, the state.
    pub(crate) fn field(&self, number: usize) -> Option<&str> {
        // The name, in brackets, may itself contain brackets and spaces.
        let (_, behind_name) = self.0.rsplit_once(')')?;
        behind_name.split_whitespace().nth(number.checked_sub(3)?)
    }
}

#[expect(unsafe_code, reason = "code between fork and exec")]
fn enter_before_exec(command: &mut Command, namespace: &Namespace) -> Result<(), NamespaceError> {
    let parent = getpid();
    // The child begins in the namespace of this thread. To enter it again would take CAP_SYS_ADMIN.
    let is_elsewhere = !namespace.is_here()?;
    let descriptor = namespace.as_fd().as_raw_fd();
    let enter = move || {
        // SAFETY: `spawn` borrows the namespace and consumes the command, so the descriptor is open whenever
        // this runs.
        let namespace = unsafe { BorrowedFd::borrow_raw(descriptor) };
        if is_elsewhere {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
        }
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() != parent {
            // The parent ended before the line above; the signal would never be sent.
            return Err(io::Error::from_raw_os_error(libc::EOWNERDEAD));
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        if getpgrp() == getpid() {
            // In a group of its own it is in the background of the terminal: `stty tostop` would stop it at its first word.
            // SAFETY: no handler of ours is installed.
            unsafe { signal(Signal::SIGTTOU, SigHandler::SigIgn)? };
        }
        wake_as_usual()?;
        scheduling::as_usual()?;
        descriptors::as_usual()?;
        Ok(())
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

#[expect(unsafe_code, reason = "a system call that no crate wraps")]
pub(crate) fn open_pidfd(process: u32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed. A child that was not waited for has its number for itself; of another process the
    // caller bears with the number's being somebody else's by now.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, 0) };
    let descriptor = nix::errno::Errno::result(result)? as i32;
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Registered after entering the network namespace, which needs privileges of the same kind.
#[expect(unsafe_code, reason = "code between fork and exec")]
fn see_before_exec(command: &mut Command, files: Arc<EtcFiles>) {
    let see = move || files.mount().map_err(io::Error::from);
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(see) };
}

fn name_of(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// "No such file" can mean the program, its interpreter or the directory: finds out which.
fn explain(command: &Command, cause: io::Error) -> SpawnError {
    let program = name_of(command);
    match cause.kind() {
        io::ErrorKind::NotFound => {
            if let Some(directory) = command.get_current_dir().filter(|directory| !directory.is_dir()) {
                return SpawnError::NoDirectory { program, directory: directory.into() };
            }
            match find(command) {
                Some(path) => SpawnError::NoInterpreter { path },
                None => SpawnError::NotFound { program },
            }
        }
        // With an unreadable folder in PATH, the kernel says "not allowed" for a program that does not exist.
        io::ErrorKind::PermissionDenied if find(command).is_none() && !program.contains('/') => {
            SpawnError::NotFound { program }
        }
        io::ErrorKind::PermissionDenied => SpawnError::NotExecutable { program },
        _ => SpawnError::Refused { program, cause },
    }
}

fn find(command: &Command) -> Option<PathBuf> {
    let program = Path::new(command.get_program());
    if program.components().count() > 1 {
        return program.exists().then(|| program.into());
    }
    let own = command.get_envs().find(|(name, _)| *name == OsStr::new("PATH")).and_then(|(_, value)| value);
    let path = own.map(OsStr::to_os_string).or_else(|| std::env::var_os("PATH"))?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}
