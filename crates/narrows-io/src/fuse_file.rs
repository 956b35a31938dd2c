//! A file served by this process: each `open`, `read`, `write` and `poll` of it becomes a [`Request`] here.
//!
//! It uses the kernel's FUSE, mounted over a single regular file instead of a folder: `rootmode` says so, and no name
//! is ever looked up below it. So to programs the path behaves like a character device: every read and write reaches
//! us, with its length and without caching; `open` may fail with "busy"; and `poll` waits. Unlike a device, it has no
//! device number, and `stat` reports a regular file.
//!
//! Source: `linux/fuse.h`, protocol 7.31; `message` defines the layouts.

mod message;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{getegid, geteuid};

use message::{Header, Incoming, attributes, header, opened};

/// The maximum length of a write request; a longer write of a program is split.
const LONGEST_WRITE: usize = 128 * 1024;
/// A request has a header in addition.
const BUFFER: usize = LONGEST_WRITE + 4096;
/// In `poll` events: data can be read.
pub const READABLE: u32 = libc::POLLIN as u32;
/// In `poll` events: data can be written.
pub const WRITABLE: u32 = libc::POLLOUT as u32;

/// What is mounted, in tables of mounts.
const SOURCE: &str = "narrows";

/// Why a file cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FuseFileError {
    /// Its path already exists.
    #[error("{} exists: name a path at which there is nothing", .0.display())]
    Exists(PathBuf),
    /// Its path cannot be created.
    #[error("cannot make {}: {cause}", path.display())]
    Make {
        /// The folder or the file.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
    /// FUSE is missing or may not be used.
    #[error(
        "cannot open /dev/fuse: {0}; the kernel needs FUSE (CONFIG_FUSE_FS) for a file that a program serves"
    )]
    NoFuse(io::Error),
    /// The kernel refused to mount it.
    #[error("cannot mount a served file at {}: {cause}; that needs root, or a shell inside a run", path.display())]
    Mount {
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// Identifies a request until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// Why a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `EAGAIN`: it would block.
    Again,
    /// `EBUSY`: another program has it open.
    Busy,
    /// `EINTR`: interrupted by a signal.
    Interrupted,
    /// `EINVAL`: invalid length.
    Invalid,
    /// `ENODEV`: there is nothing behind it any more.
    NoDevice,
}

impl Refusal {
    fn errno(self) -> Errno {
        match self {
            Self::Again => Errno::EAGAIN,
            Self::Busy => Errno::EBUSY,
            Self::Interrupted => Errno::EINTR,
            Self::Invalid => Errno::EINVAL,
            Self::NoDevice => Errno::ENODEV,
        }
    }
}

/// A request of a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Open the file. Answered by [`FuseFile::admit`] or [`FuseFile::refuse`].
    Open(Ticket),
    /// Read this many bytes. Answered by [`FuseFile::give`] or [`FuseFile::refuse`].
    Read(Ticket, usize),
    /// Write. Answered by [`FuseFile::took`] or [`FuseFile::refuse`].
    Write {
        /// Identifies the request.
        ticket: Ticket,
        /// The data.
        bytes: Vec<u8>,
        /// The program prefers `EAGAIN` to waiting.
        nonblocking: bool,
    },
    /// Get the ready events. Answered by [`FuseFile::is_ready`].
    Poll {
        /// Identifies the request.
        ticket: Ticket,
        /// For [`FuseFile::wake`], if the program is going to wait.
        waiter: Option<u64>,
    },
    /// Stop waiting for this request: a signal arrived. The request itself still needs an answer.
    Interrupt(Ticket),
    /// The program has closed the file, including all copies of the descriptor.
    Closed,
    /// The file was unmounted; there are no more requests.
    Gone,
}

/// A file served by this process until this is dropped.
#[derive(Debug)]
pub struct FuseFile {
    device: File,
    path: PathBuf,
    /// What was created for it: folders, outermost first, then the file.
    made: Vec<PathBuf>,
    buffer: Box<[u8]>,
}

impl FuseFile {
    /// Creates a file at `path`, and missing folders above it, for this user only.
    ///
    /// # Errors
    /// If the path exists, or the kernel refuses.
    pub fn mount(path: &Path) -> Result<Self, FuseFileError> {
        // Non-blocking: a request may be withdrawn between our wait and our read.
        let options = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).clone();
        let device = options.open("/dev/fuse").map_err(FuseFileError::NoFuse)?;
        let path = std::path::absolute(path)
            .map_err(|cause| FuseFileError::Make { path: path.to_owned(), cause })?;
        let mut file = Self { device, path, made: Vec::new(), buffer: vec![0; BUFFER].into_boxed_slice() };
        // What was created is removed with `file` if something fails.
        file.make()?;
        let (user, group, number) = (geteuid(), getegid(), file.device.as_raw_fd());
        let options = format!("fd={number},rootmode=100600,user_id={user},group_id={group}");
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let mounted = mount(Some(SOURCE), &file.path, Some("fuse"), flags, Some(options.as_str()));
        match mounted {
            Ok(()) => Ok(file),
            Err(errno) => Err(FuseFileError::Mount { path: file.path.clone(), cause: errno.into() }),
        }
    }

    fn make(&mut self) -> Result<(), FuseFileError> {
        let failed = |path: &Path, cause| FuseFileError::Make { path: path.to_owned(), cause };
        let above: Vec<_> = self.path.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
        for folder in above.into_iter().rev() {
            fs::DirBuilder::new().mode(0o755).create(folder).map_err(|cause| failed(folder, cause))?;
            self.made.push(folder.to_owned());
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path);
        match file {
            Ok(_) => self.made.push(self.path.clone()),
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
                return Err(FuseFileError::Exists(self.path.clone()));
            }
            Err(cause) => return Err(failed(&self.path, cause)),
        }
        Ok(())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next request, if there is one. Requests that need no decision are answered internally.
    ///
    /// # Errors
    /// If the connection to the kernel fails.
    pub fn take(&mut self) -> io::Result<Option<Request>> {
        loop {
            let length = match self.device.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                    Errno::EAGAIN => return Ok(None),
                    // Withdrawn before it was read, or a signal arrived.
                    Errno::ENOENT | Errno::EINTR => continue,
                    Errno::ENODEV => return Ok(Some(Request::Gone)),
                    _ => return Err(error),
                },
            };
            let Some(header) = Header::read(&self.buffer[..length]) else { continue };
            let ticket = Ticket(header.unique);
            match Incoming::read(&header, &self.buffer[message::HEADER..length]) {
                Incoming::Start { minor } => {
                    self.reply(ticket, &message::start(minor, LONGEST_WRITE as u32))?
                }
                Incoming::Attributes => self.reply(ticket, &attributes(geteuid(), getegid()))?,
                Incoming::Statistics => self.reply(ticket, &[0; message::STATISTICS])?,
                Incoming::Nothing => self.reply(ticket, &[])?,
                // No answer is expected.
                Incoming::Silent => {}
                Incoming::Unknown => self.fail(ticket, Errno::ENOSYS)?,
                Incoming::Open => return Ok(Some(Request::Open(ticket))),
                Incoming::Read { size } => return Ok(Some(Request::Read(ticket, size as usize))),
                Incoming::Write { bytes, flags } => {
                    let nonblocking = flags & libc::O_NONBLOCK as u32 != 0;
                    return Ok(Some(Request::Write { ticket, bytes: bytes.to_vec(), nonblocking }));
                }
                Incoming::Poll { waiter } => return Ok(Some(Request::Poll { ticket, waiter })),
                Incoming::Interrupt { of } => return Ok(Some(Request::Interrupt(Ticket(of)))),
                Incoming::Release => {
                    self.reply(ticket, &[])?;
                    return Ok(Some(Request::Closed));
                }
            }
        }
    }

    /// Lets a [`Request::Open`] succeed.
    ///
    /// # Errors
    /// Those of [`FuseFile::take`].
    pub fn admit(&mut self, ticket: Ticket) -> io::Result<()> {
        self.reply(ticket, &opened())
    }

    /// Answers a [`Request::Read`] with these bytes, at most as many as were requested.
    ///
    /// # Errors
    /// Those of [`FuseFile::take`].
    pub fn give(&mut self, ticket: Ticket, bytes: &[u8]) -> io::Result<()> {
        self.reply(ticket, bytes)
    }

    /// Answers a [`Request::Write`] with the number of bytes taken.
    ///
    /// # Errors
    /// Those of [`FuseFile::take`].
    pub fn took(&mut self, ticket: Ticket, bytes: usize) -> io::Result<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.reply(ticket, &bytes.to_le_bytes())
    }

    /// Answers a [`Request::Poll`] with the ready events: [`READABLE`], [`WRITABLE`].
    ///
    /// # Errors
    /// Those of [`FuseFile::take`].
    pub fn is_ready(&mut self, ticket: Ticket, events: u32) -> io::Result<()> {
        self.reply(ticket, &u64::from(events).to_le_bytes())
    }

    /// Makes any request fail.
    ///
    /// # Errors
    /// Those of [`FuseFile::take`].
    pub fn refuse(&mut self, ticket: Ticket, why: Refusal) -> io::Result<()> {
        self.fail(ticket, why.errno())
    }

    fn fail(&mut self, ticket: Ticket, errno: Errno) -> io::Result<()> {
        self.send(&header(ticket.0, -(errno as i32), 0), &[])
    }

    /// Makes a program waiting in `poll` ask again.
    ///
    /// # Errors
    /// Those of [`FuseFile::take`].
    pub fn wake(&mut self, waiter: u64) -> io::Result<()> {
        self.send(&header(0, message::WAKE, 8), &waiter.to_le_bytes())
    }

    fn reply(&mut self, ticket: Ticket, bytes: &[u8]) -> io::Result<()> {
        self.send(&header(ticket.0, 0, bytes.len()), bytes)
    }

    /// Sends a message, which must be written in one call.
    fn send(&mut self, header: &[u8], bytes: &[u8]) -> io::Result<()> {
        let message = [header, bytes].concat();
        // The kernel takes a message completely or not at all.
        match self.device.write_all(&message) {
            Ok(()) => Ok(()),
            // The program is gone, or nobody waits any more; the next read reports an unmounted file.
            Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                Errno::ENOENT | Errno::ENODEV | Errno::EINTR => Ok(()),
                _ => Err(error),
            },
        }
    }
}

/// Removes files whose server has been killed, in this mount namespace: the name of each, or an error that names it. Those of
/// other users stay.
///
/// # Errors
/// If the mounts cannot be listed.
pub fn remove_abandoned() -> io::Result<Vec<io::Result<PathBuf>>> {
    let mut removed = Vec::new();
    for path in served(&fs::read_to_string("/proc/self/mountinfo")?) {
        if !is_abandoned(&path) {
            continue;
        }
        let unmounted = match umount2(&path, MntFlags::MNT_DETACH) {
            // Another user's.
            Err(Errno::EPERM) => continue,
            other => other.map_err(io::Error::from),
        };
        let gone = unmounted.and_then(|()| fs::remove_file(&path));
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        removed.push(gone.map_err(named).map(|()| path.clone()));
    }
    Ok(removed)
}

/// Whether nobody serves a file any more. A server that is stopped does not answer, and is there all the same.
fn is_abandoned(path: &Path) -> bool {
    const PATIENCE: Duration = Duration::from_secs(1);
    let (answers, answer) = mpsc::channel();
    let path = path.to_owned();
    thread::spawn(move || answers.send(fs::metadata(path).map(drop)));
    matches!(answer.recv_timeout(PATIENCE), Ok(Err(error)) if error.raw_os_error() == Some(libc::ENOTCONN))
}

/// The mount points of ours in a table of mounts (proc_pid_mountinfo(5)).
fn served(table: &str) -> Vec<PathBuf> {
    let ours = format!("fuse {SOURCE}");
    let lines = table.lines().filter_map(|line| line.split_once(" - "));
    let lines = lines.filter(|(_, what)| what.strip_prefix(&ours).is_some_and(|rest| rest.starts_with(' ')));
    lines
        .filter_map(|(mount, _)| mount.split(' ').nth(4))
        .map(|path| PathBuf::from(unescaped(path)))
        .collect()
}

/// A path as it was before spaces and the like became `\\040`.
fn unescaped(text: &str) -> OsString {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        let code = behind
            .first_chunk::<3>()
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    OsString::from_vec(bytes)
}

impl AsFd for FuseFile {
    /// Becomes readable when there is a request.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl Drop for FuseFile {
    /// Programs that have it open get `ENOTCONN` from now on.
    fn drop(&mut self) {
        // If it was not mounted, this fails because it is not a mount point.
        if self.made.contains(&self.path) {
            let _ = umount2(&self.path, MntFlags::MNT_DETACH);
        }
        for path in self.made.iter().rev() {
            // A folder to which somebody has added something stays.
            let _ = if *path == self.path { fs::remove_file(path) } else { fs::remove_dir(path) };
        }
    }
}

#[cfg(test)]
mod tests;
