//! A writer's connection, which is never waited for.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use narrows_io::clock::MonotonicTime;
use narrows_io::wait::{Waiting, wait};

use super::protocol::{Answer, INTEGER};

/// The maximum read size.
const MOST: usize = 8192;
/// The minimum read size: with less than a complete request, no question about the room could be answered while there
/// is none.
const LEAST: usize = 2 * INTEGER;

/// A writer.
#[derive(Debug)]
pub(super) struct Writer {
    /// Its connection.
    pub(super) stream: UnixStream,
    /// Received bytes not taken yet.
    pub(super) unread: Vec<u8>,
    /// Answers not sent yet.
    pub(super) answers: Vec<u8>,
    /// It no longer reads; it may still write.
    deaf: bool,
}

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Something.
    Some,
    /// Nothing now.
    Nothing,
    /// Nothing any more.
    End,
}

impl Writer {
    /// For a new connection.
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, unread: Vec::new(), answers: Vec::new(), deaf: false })
    }

    /// Reads what is there, at most about this many values.
    pub(super) fn read(&mut self, values: usize) -> Read {
        let limit = values.saturating_mul(INTEGER).clamp(LEAST, MOST);
        let mut buffer = [0; MOST];
        loop {
            match self.stream.read(&mut buffer[..limit]) {
                Ok(0) => return Read::End,
                Ok(length) => {
                    self.unread.extend_from_slice(&buffer[..length]);
                    return Read::Some;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Read::Nothing,
                Err(_) => return Read::End,
            }
        }
    }

    /// Appends an answer to those pending.
    pub(super) fn answer(&mut self, answer: Answer) {
        self.answers.extend_from_slice(&answer.encode());
    }

    /// The last answer that it gets.
    pub(super) fn say(&mut self, answer: Answer) {
        self.answer(answer);
        self.send();
    }

    /// Sends as many answers as the connection accepts.
    pub(super) fn send(&mut self) {
        while !self.answers.is_empty() && !self.deaf {
            match self.stream.write(&self.answers) {
                Ok(length) => drop(self.answers.drain(..length)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.deaf = true,
            }
        }
        if self.deaf {
            self.answers.clear();
        }
    }

    /// Whether its end of the connection is closed. Data sent before may still be unread.
    pub(super) fn is_gone(&self) -> bool {
        wait(&mut [Waiting::gone(&self.stream)], Some(MonotonicTime::default())).is_ok_and(|ready| ready > 0)
    }
}
