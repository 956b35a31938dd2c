//! The program's output: read from the file to which the guest's serial line is connected, and carried to the
//! caller's streams.
//!
//! A file accepts every byte at once, so that writing takes no virtual time however slow the reader is. If too much
//! is unread, the whole guest is stopped until it is read, which the guest cannot notice.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Stderr, Stdout, stderr, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use narrows_io::clock::clock_monotonic;
use narrows_io::wait::{Waiting, wait};
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::signal::Signal;

use super::{Broken, Kernel, failed};
use crate::channel::{FromGuest, Incoming, Output};

/// How many bytes may be unread before the guest is stopped, and how few before it continues.
const MOST_UNREAD: u64 = 16 << 20;
const LITTLE_UNREAD: u64 = 4 << 20;
/// After this many bytes have been read, their memory is freed.
const GIVEN_BACK: u64 = 1 << 20;
const CHUNK: usize = 1 << 16;
/// How much is written at once: a pipe with any room has room for this much.
const PART: usize = 1 << 12;

/// What was received on the line.
#[derive(Debug)]
pub(super) enum Heard {
    Said(FromGuest),
    /// Nobody reads this stream any more.
    Closed(Output),
}

/// The caller's streams.
pub(super) struct Outputs {
    pub(super) output_is_terminal: bool,
    pub(super) error_is_terminal: bool,
    /// Whether both are the same pipe or file.
    pub(super) joined: bool,
    /// The caller's terminal, if one of the three streams is one.
    pub(super) terminal: Option<OwnedFd>,
}

impl Outputs {
    pub(super) fn find() -> Self {
        let (output_is_terminal, error_is_terminal) = (stdout().is_terminal(), stderr().is_terminal());
        let terminals = [
            output_is_terminal.then(|| stdout().as_fd().try_clone_to_owned()),
            error_is_terminal.then(|| stderr().as_fd().try_clone_to_owned()),
            stdin().is_terminal().then(|| stdin().as_fd().try_clone_to_owned()),
        ];
        let terminal = terminals.into_iter().flatten().find_map(Result::ok);
        let file = |descriptor: io::Result<OwnedFd>| {
            let what = File::from(descriptor.ok()?).metadata().ok()?;
            Some((what.dev(), what.ino()))
        };
        let (output, error) =
            (file(stdout().as_fd().try_clone_to_owned()), file(stderr().as_fd().try_clone_to_owned()));
        let joined = output.is_some() && output == error && !output_is_terminal;
        Self { output_is_terminal, error_is_terminal, joined, terminal }
    }

    /// Starts carrying the contents of the line's file.
    pub(super) fn carry(self, line: PathBuf) -> io::Result<Carrier> {
        let file = File::options().read(true).write(true).open(&line)?;
        let watch = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        watch.add_watch(&line, AddWatchFlags::IN_MODIFY)?;
        Ok(Carrier {
            file,
            watch,
            outputs: self,
            output: stdout(),
            error: stderr(),
            incoming: Incoming::default(),
            chunk: vec![0; CHUNK],
            pending: None,
            closed: Vec::new(),
            failed: Vec::new(),
            read: 0,
            given_back: 0,
            stopped: false,
        })
    }
}

pub(super) struct Carrier {
    file: File,
    watch: Inotify,
    outputs: Outputs,
    output: Stdout,
    error: Stderr,
    incoming: Incoming,
    chunk: Vec<u8>,
    /// The output being written, and how much of it has been.
    pending: Option<(Output, Vec<u8>, usize)>,
    /// Streams that nobody reads any more, and why others could not be written.
    closed: Vec<Output>,
    failed: Vec<(Output, io::Error)>,
    read: u64,
    given_back: u64,
    stopped: bool,
}

impl Carrier {
    /// The descriptor to wait for until there is more to carry.
    pub(super) fn awaits(&self) -> Waiting<'_> {
        match &self.pending {
            None => Waiting::readable(&self.watch),
            Some((output, ..)) => match (output, &self.outputs.terminal) {
                (Output::Standard, _) => Waiting::writable(&self.output),
                (Output::Error, _) => Waiting::writable(&self.error),
                (Output::Terminal, Some(terminal)) => Waiting::writable(terminal),
                (Output::Terminal, None) => Waiting::readable(&self.watch),
            },
        }
    }

    /// Carries pending output, as far as the streams accept it, up to the next message.
    pub(super) fn next(&mut self) -> Result<Option<Heard>, Broken> {
        loop {
            if let Some((output, bytes, done)) = &mut self.pending {
                let written = match (&*output, &self.outputs.terminal) {
                    (Output::Standard, _) => write(&self.output, &bytes[*done..]),
                    (Output::Error, _) => write(&self.error, &bytes[*done..]),
                    (Output::Terminal, Some(terminal)) => write(terminal, &bytes[*done..]),
                    (Output::Terminal, None) => Ok(bytes.len() - *done),
                };
                match written {
                    Ok(count) => *done += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                    Err(error) => {
                        let output = *output;
                        self.pending = None;
                        self.closed.push(output);
                        // A closed pipe is the reader's choice, and no loss.
                        if error.kind() != ErrorKind::BrokenPipe {
                            self.failed.push((output, error));
                        }
                        return Ok(Some(Heard::Closed(output)));
                    }
                }
                if *done == bytes.len() {
                    self.pending = None;
                }
                continue;
            }
            match self.incoming.guest_message()? {
                Some(FromGuest::Wrote(output, _)) if self.closed.contains(&output) => {}
                Some(FromGuest::Wrote(output, bytes)) => self.pending = Some((output, bytes, 0)),
                Some(message) => return Ok(Some(Heard::Said(message))),
                None if self.read().map_err(failed("follow the guest's line"))? => {}
                None => return Ok(None),
            }
        }
    }

    /// Reads more of the line. Returns whether there was any.
    fn read(&mut self) -> io::Result<bool> {
        // Before the read: data written after it is notified again.
        while self.watch.read_events().is_ok_and(|events| !events.is_empty()) {}
        let count = self.file.read(&mut self.chunk)?;
        self.incoming.push(&self.chunk[..count]);
        self.read += count as u64;
        let unneeded = self.read - self.given_back;
        if unneeded >= GIVEN_BACK {
            let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            // Offsets of files are below 2⁶³.
            fallocate(&self.file, flags, self.given_back as i64, unneeded as i64)?;
            self.given_back = self.read;
        }
        Ok(count > 0)
    }

    /// Stops the guest if too much is unread, or lets it continue. Returns whether it is stopped.
    pub(super) fn holds(&mut self, kernel: &Kernel) -> bool {
        let unread = self.file.metadata().map_or(0, |what| what.len()).saturating_sub(self.read);
        if !self.stopped && unread > MOST_UNREAD {
            kernel.signal(Signal::SIGSTOP);
            self.stopped = true;
        } else if self.stopped && unread < LITTLE_UNREAD {
            kernel.signal(Signal::SIGCONT);
            self.stopped = false;
        }
        self.stopped
    }

    /// What to say of output that could not be written.
    pub(super) fn lost(&self) -> impl Iterator<Item = String> + '_ {
        self.failed.iter().map(|(output, error)| {
            let stream = match output {
                Output::Standard => "the standard output",
                Output::Error => "the error output",
                Output::Terminal => "the terminal",
            };
            format!("a part of {stream} was lost: {error}")
        })
    }

    /// Whether output is waiting for its reader.
    pub(super) fn is_held_up(&self) -> bool {
        self.pending.is_some()
    }

    pub(super) fn terminal(&self) -> Option<&OwnedFd> {
        self.outputs.terminal.as_ref()
    }
}

/// Writes some of it, unbuffered, if that is possible without waiting.
fn write(to: &impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    if wait(&mut [Waiting::writable(to)], Some(clock_monotonic()))? == 0 {
        return Err(ErrorKind::WouldBlock.into());
    }
    match nix::unistd::write(to, &bytes[..bytes.len().min(PART)]) {
        Err(nix::Error::EINTR) => Ok(0),
        result => Ok(result?),
    }
}
