//! A file that this process serves: each `open`, `read`, `write` and `poll` of it becomes a [`Request`] here.
//!
//! The kernel's FUSE does it, mounted over one regular file instead of a folder: `rootmode` says so, and no name is ever looked
//! up below it. So a program meets a path that behaves as a character device does: every read and write reaches us, with its
//! length and nothing cached, `open` may say that it is busy, and `poll` waits. What a device has and this has not: a device
//! number, and `stat` calls it a regular file.
//!
//! Source: `linux/fuse.h`, protocol 7.31; `message` has the layouts.

mod message;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{getegid, geteuid};

use message::{Header, Incoming, attributes, header, opened};

/// The most that one write of a program is handed over as; a longer one comes in parts.
const LONGEST_WRITE: usize = 128 * 1024;
/// Beside that, a request has a header.
const BUFFER: usize = LONGEST_WRITE + 4096;
/// In `poll`'s events: something can be read.
pub const READABLE: u32 = libc::POLLIN as u32;
/// In `poll`'s events: something can be written.
pub const WRITABLE: u32 = libc::POLLOUT as u32;

/// Why a file cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FuseFileError {
    /// There is something at its path already.
    #[error("{} exists: name a path at which there is nothing", .0.display())]
    Exists(PathBuf),
    /// The place for it could not be made.
    #[error("cannot make {}: {cause}", path.display())]
    Make {
        /// The folder or the file.
        path: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
    /// There is no FUSE, or it is for others.
    #[error(
        "cannot open /dev/fuse: {0}; the kernel needs FUSE (CONFIG_FUSE_FS) for a file that a program serves"
    )]
    NoFuse(io::Error),
    /// The kernel refused to mount it.
    #[error("cannot mount a served file at {}: {cause}; that needs root, or a shell inside a run", path.display())]
    Mount {
        /// Where.
        path: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
}

/// Names a request until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// Why a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `EAGAIN`: it would have to wait.
    Again,
    /// `EBUSY`: somebody else has it open.
    Busy,
    /// `EINTR`: a signal came first.
    Interrupted,
    /// `EINVAL`: that is no length.
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

/// What a program wants.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// To open the file. Answered by [`FuseFile::admit`] or [`FuseFile::refuse`].
    Open(Ticket),
    /// To read so many bytes. Answered by [`FuseFile::give`] or [`FuseFile::refuse`].
    Read(Ticket, usize),
    /// To write. Answered by [`FuseFile::took`] or [`FuseFile::refuse`].
    Write {
        /// Its name.
        ticket: Ticket,
        /// What.
        bytes: Vec<u8>,
        /// The program would rather hear `EAGAIN` than wait.
        nonblocking: bool,
    },
    /// To know what it can do now. Answered by [`FuseFile::is_ready`].
    Poll {
        /// Its name.
        ticket: Ticket,
        /// For [`FuseFile::wake`], where the program is going to wait.
        waiter: Option<u64>,
    },
    /// To wait no longer for this one: a signal came. The request itself still wants an answer.
    Interrupt(Ticket),
    /// It has closed the file, all copies of the descriptor included.
    Closed,
    /// Nothing any more: somebody has unmounted the file.
    Gone,
}

/// A file that this process serves, until it is dropped.
#[derive(Debug)]
pub struct FuseFile {
    device: File,
    path: PathBuf,
    /// What was made for it: folders, outermost first, then the file.
    made: Vec<PathBuf>,
    buffer: Box<[u8]>,
}

impl FuseFile {
    /// Makes a file at `path`, and folders above it where they are missing, for this user alone.
    ///
    /// # Errors
    /// When there is something already, or the kernel refuses.
    pub fn mount(path: &Path) -> Result<Self, FuseFileError> {
        // Nonblocking: a request may be taken back between our wait and our read.
        let options = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).clone();
        let device = options.open("/dev/fuse").map_err(FuseFileError::NoFuse)?;
        let path = std::path::absolute(path)
            .map_err(|cause| FuseFileError::Make { path: path.to_owned(), cause })?;
        let mut file = Self { device, path, made: Vec::new(), buffer: vec![0; BUFFER].into_boxed_slice() };
        // What was made goes with `file` if something fails.
        file.make()?;
        let (user, group, number) = (geteuid(), getegid(), file.device.as_raw_fd());
        let options = format!("fd={number},rootmode=100600,user_id={user},group_id={group}");
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let mounted = mount(Some("narrows"), &file.path, Some("fuse"), flags, Some(options.as_str()));
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next request, if there is one. What needs no decision is answered in here.
    ///
    /// # Errors
    /// When the kernel's end broke.
    pub fn take(&mut self) -> io::Result<Option<Request>> {
        loop {
            let length = match self.device.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                    Errno::EAGAIN => return Ok(None),
                    // Taken back before it was read, or a signal of ours.
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
                // No answer is wanted.
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

    /// Lets an [`Request::Open`] succeed.
    ///
    /// # Errors
    /// As of [`FuseFile::take`].
    pub fn admit(&mut self, ticket: Ticket) -> io::Result<()> {
        self.reply(ticket, &opened())
    }

    /// Answers a [`Request::Read`] with these bytes, no more than were asked for.
    ///
    /// # Errors
    /// As of [`FuseFile::take`].
    pub fn give(&mut self, ticket: Ticket, bytes: &[u8]) -> io::Result<()> {
        self.reply(ticket, bytes)
    }

    /// Says of a [`Request::Write`] how many bytes were taken.
    ///
    /// # Errors
    /// As of [`FuseFile::take`].
    pub fn took(&mut self, ticket: Ticket, bytes: usize) -> io::Result<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.reply(ticket, &bytes.to_le_bytes())
    }

    /// Answers a [`Request::Poll`] with what is ready: [`READABLE`], [`WRITABLE`].
    ///
    /// # Errors
    /// As of [`FuseFile::take`].
    pub fn is_ready(&mut self, ticket: Ticket, events: u32) -> io::Result<()> {
        self.reply(ticket, &u64::from(events).to_le_bytes())
    }

    /// Lets any request fail.
    ///
    /// # Errors
    /// As of [`FuseFile::take`].
    pub fn refuse(&mut self, ticket: Ticket, why: Refusal) -> io::Result<()> {
        self.fail(ticket, why.errno())
    }

    fn fail(&mut self, ticket: Ticket, errno: Errno) -> io::Result<()> {
        self.send(&header(ticket.0, -(errno as i32), 0), &[])
    }

    /// Has a program that waits in `poll` ask again.
    ///
    /// # Errors
    /// As of [`FuseFile::take`].
    pub fn wake(&mut self, waiter: u64) -> io::Result<()> {
        self.send(&header(0, message::WAKE, 8), &waiter.to_le_bytes())
    }

    fn reply(&mut self, ticket: Ticket, bytes: &[u8]) -> io::Result<()> {
        self.send(&header(ticket.0, 0, bytes.len()), bytes)
    }

    /// Sends a message, which must go by one call.
    fn send(&mut self, header: &[u8], bytes: &[u8]) -> io::Result<()> {
        let message = [header, bytes].concat();
        // The kernel takes a message whole or not at all.
        match self.device.write_all(&message) {
            Ok(()) => Ok(()),
            // Whoever asked is gone, or nobody waits any more; the next read tells of a file that is.
            Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                Errno::ENOENT | Errno::ENODEV | Errno::EINTR => Ok(()),
                _ => Err(error),
            },
        }
    }
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
        // Where it was not mounted, this says that it is no mount point.
        if self.made.contains(&self.path) {
            let _ = umount2(&self.path, MntFlags::MNT_DETACH);
        }
        for path in self.made.iter().rev() {
            // A folder in which somebody has put something stays.
            let _ = if *path == self.path { fs::remove_file(path) } else { fs::remove_dir(path) };
        }
    }
}

#[cfg(test)]
mod tests;
