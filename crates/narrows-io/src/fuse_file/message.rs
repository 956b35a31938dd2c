//! FUSE messages, as far as a single regular file needs them. Integers are in host byte order, as in `linux/fuse.h`;
//! this program runs on little-endian hosts.

use nix::unistd::{Gid, Uid};

/// The length of a request header.
pub(super) const HEADER: usize = 40;
/// The length of an answer header.
const ANSWER: usize = 16;
/// The length of the answer to `statfs`.
pub(super) const STATISTICS: usize = 80;
/// In place of an error code: this message makes waiters poll again.
pub(super) const WAKE: i32 = 1;

/// Every read and write reaches us.
const DIRECT: u32 = 1;
/// The file has no positions.
const STREAM: u32 = (1 << 2) | (1 << 4);
/// `open` may truncate, which has no effect here.
const ATOMIC_TRUNCATE: u32 = 1 << 3;
/// Writes longer than a page are not split.
const BIG_WRITES: u32 = 1 << 5;
/// In a poll: the program is going to wait.
const GOES_TO_WAIT: u32 = 1;
/// The inode number: the root's, which the file is.
const NUMBER: u64 = 1;

/// A regular file, accessible to its owner only.
const MODE: u32 = 0o100_600;

/// The header of every request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    opcode: u32,
    pub(super) unique: u64,
}

impl Header {
    /// Of a complete message; `None` if it is too short.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        (message.len() >= HEADER).then(|| Self { opcode: u32_at(message, 4), unique: u64_at(message, 8) })
    }
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming<'a> {
    Start {
        minor: u32,
    },
    Attributes,
    Statistics,
    /// Something that succeeds without effect.
    Nothing,
    /// Something that needs no answer.
    Silent,
    Open,
    Read {
        size: u32,
    },
    Write {
        bytes: &'a [u8],
        flags: u32,
    },
    Poll {
        waiter: Option<u64>,
    },
    Interrupt {
        of: u64,
    },
    Release,
    Unknown,
}

impl<'a> Incoming<'a> {
    /// Parses what follows the header.
    pub(super) fn read(header: &Header, body: &'a [u8]) -> Self {
        match header.opcode {
            // Forget, single or multiple.
            2 | 42 => Self::Silent,
            // Get attributes; setting them (truncation, times) has no effect.
            3 | 4 => Self::Attributes,
            14 => Self::Open,
            15 => Self::Read { size: u32_at(body, 16) },
            16 => {
                let size = u32_at(body, 16) as usize;
                let bytes = body.get(40..).unwrap_or_default();
                Self::Write { bytes: &bytes[..size.min(bytes.len())], flags: u32_at(body, 32) }
            }
            17 => Self::Statistics,
            18 => Self::Release,
            // Flush, fsync, destroy.
            20 | 25 | 38 => Self::Nothing,
            26 => Self::Start { minor: u32_at(body, 4) },
            36 => Self::Interrupt { of: u64_at(body, 0) },
            40 => {
                let waits = u32_at(body, 16) & GOES_TO_WAIT != 0;
                Self::Poll { waiter: waits.then(|| u64_at(body, 8)) }
            }
            _ => Self::Unknown,
        }
    }
}

/// The header of an answer with this many bytes.
pub(super) fn header(unique: u64, error: i32, bytes: usize) -> [u8; ANSWER] {
    let mut message = [0; ANSWER];
    let length = u32::try_from(ANSWER + bytes).unwrap_or(u32::MAX);
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..8].copy_from_slice(&error.to_ne_bytes());
    message[8..].copy_from_slice(&unique.to_ne_bytes());
    message
}

/// Our capabilities, for a kernel with protocol 7.`minor`.
pub(super) fn start(minor: u32, longest_write: u32) -> Vec<u8> {
    let mut body = Vec::with_capacity(64);
    for word in [7, minor.min(31), 0, ATOMIC_TRUNCATE | BIG_WRITES] {
        body.extend(u32::to_ne_bytes(word));
    }
    // The number of background requests: the kernel's default.
    body.extend([0; 4]);
    body.extend(longest_write.to_ne_bytes());
    body.extend(1_u32.to_ne_bytes());
    body.resize(64, 0);
    body
}

/// The attributes of an empty regular file, which are not cached.
pub(super) fn attributes(user: Uid, group: Gid) -> Vec<u8> {
    let mut body = vec![0; 16];
    body.extend(NUMBER.to_ne_bytes());
    // Size, blocks and times.
    body.extend([0; 52]);
    for word in [MODE, 1, user.as_raw(), group.as_raw(), 0, 4096, 0] {
        body.extend(word.to_ne_bytes());
    }
    body
}

/// The answer to an open.
pub(super) fn opened() -> Vec<u8> {
    let mut body = vec![0; 8];
    body.extend((DIRECT | STREAM).to_ne_bytes());
    body.extend([0; 4]);
    body
}

/// Zero beyond the end: requests of older kernels are shorter.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_ne_bytes)
}
