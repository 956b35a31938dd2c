//! The program's input: a file, nothing, or data that arrives while it runs.

use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal, Read, Seek, Stdin, stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::Duration;

use narrows_io::clock::clock_monotonic;
use narrows_io::terminal::Settings;
use narrows_io::wait::{Waiting, wait};

use super::rootfs::GuestRootfs;
use super::{Broken, Kind, failed, later};
use crate::channel::FromHost;
use crate::init::INPUT;

/// How long an unfinished pipe is awaited at the start: a pipe whose writer is done is read like a file, so that its
/// bytes are available at the same instant in every run.
const PATIENCE: Duration = Duration::from_millis(50);
/// The maximum number of bytes read in this way.
const MOST: usize = 64 << 20;
/// How many bytes are read at once at the start.
const EARLY_CHUNK: usize = 1 << 16;
/// The maximum number of bytes in transit to the program. The guest's serial line holds 4096 with their headers; a kernel
/// that has stopped reading the line, because it holds nearly as many, does not begin again.
const AHEAD: usize = 3000;
/// The maximum number of bytes sent at once.
const CHUNK: usize = 1000;
/// The device number of `/dev/null`.
const NULL: u64 = (1 << 8) | 3;

pub(super) struct Input {
    stdin: Stdin,
    kind: Kind,
    /// Read at the start and not sent yet.
    early: Vec<u8>,
    begun: bool,
    ended: bool,
    ahead: usize,
    /// The terminal's original settings, once it is raw.
    before: Option<Settings>,
}

impl Input {
    pub(super) fn open(rootfs: &GuestRootfs) -> Result<Self, Broken> {
        let mut input = Self {
            stdin: stdin(),
            kind: Kind::Nothing,
            early: Vec::new(),
            begun: false,
            ended: false,
            ahead: 0,
            before: None,
        };
        if input.stdin.is_terminal() {
            input.kind = Kind::Terminal;
            return Ok(input);
        }
        let Ok(found) = input.stdin.as_fd().try_clone_to_owned() else { return Ok(input) };
        let mut found = File::from(found);
        let what = found.metadata().map_err(failed("look at the standard input"))?;
        if what.is_file() {
            let offset = found.stream_position().map_err(failed("look at the standard input"))?;
            input.kind = Kind::File { offset };
            rootfs.share("/proc/self/fd/0", INPUT).map_err(failed("give the standard input to the guest"))?;
        } else if !(what.file_type().is_char_device() && what.rdev() == NULL) {
            input.kind = Kind::Stream;
            if input.read_early(&mut found).map_err(failed("read the standard input"))? {
                fs::write(rootfs.path(INPUT), &input.early).map_err(failed("copy the standard input"))?;
                input.kind = Kind::File { offset: 0 };
            }
        }
        Ok(input)
    }

    /// Reads what is available. Returns whether that is everything.
    fn read_early(&mut self, from: &mut File) -> io::Result<bool> {
        let deadline = later(clock_monotonic(), PATIENCE);
        let mut chunk = vec![0; EARLY_CHUNK];
        while self.early.len() < MOST {
            if wait(&mut [Waiting::readable(&*from)], Some(deadline))? == 0 {
                return Ok(false);
            }
            match from.read(&mut chunk) {
                Ok(0) => return Ok(true),
                Ok(count) => self.early.extend(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// The program runs: input belongs to it from now on.
    pub(super) fn begin(&mut self) {
        self.begun = true;
        if self.kind == Kind::Terminal
            && let Ok(before) = Settings::of(&self.stdin)
        {
            // A terminal that is gone ends the input.
            let _ = before.raw().set(&self.stdin);
            self.before = Some(before);
        }
    }

    /// The program has read this many bytes. Returns whether that is everything that was sent.
    pub(super) fn taken(&mut self, count: u32) -> bool {
        self.ahead = self.ahead.saturating_sub(count as usize);
        self.ahead == 0
    }

    /// The descriptor to wait for, if more can be forwarded.
    pub(super) fn awaits(&self) -> Option<Waiting<'_>> {
        self.takes_more().then(|| Waiting::readable(&self.stdin))
    }

    fn takes_more(&self) -> bool {
        let streams = matches!(self.kind, Kind::Terminal | Kind::Stream);
        streams && self.begun && !self.ended && self.ahead < AHEAD
    }

    /// The next available input, without waiting.
    pub(super) fn next(&mut self) -> io::Result<Option<FromHost>> {
        if !self.takes_more() {
            return Ok(None);
        }
        let most = CHUNK.min(AHEAD - self.ahead);
        let bytes = if self.early.is_empty() {
            let mut descriptors = [Waiting::readable(&self.stdin)];
            if wait(&mut descriptors, Some(clock_monotonic()))? == 0 {
                return Ok(None);
            }
            let mut bytes = vec![0; most];
            let read = match nix::unistd::read(&self.stdin, &mut bytes) {
                // The terminal hung up.
                Err(nix::Error::EIO) => 0,
                Err(nix::Error::EINTR | nix::Error::EAGAIN) => return Ok(None),
                other => other?,
            };
            bytes.truncate(read);
            bytes
        } else {
            let rest = self.early.split_off(most.min(self.early.len()));
            std::mem::replace(&mut self.early, rest)
        };
        if bytes.is_empty() {
            self.ended = true;
            return Ok(Some(FromHost::InputEnded));
        }
        self.ahead += bytes.len();
        Ok(Some(FromHost::Input(bytes)))
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A terminal that is gone needs no settings.
            let _ = before.set(&self.stdin);
        }
    }
}
