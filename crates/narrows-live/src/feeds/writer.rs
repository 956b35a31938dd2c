//! A writer's connection, without ever waiting for it.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use narrows_io::clock::MonotonicTime;
use narrows_io::wait::{Waiting, wait};

use super::protocol::{Answer, INTEGER};

/// As much is read at once at most.
const MOST: usize = 8192;
/// And at least: with less than a whole request, no question about the room could be answered while there is none.
const LEAST: usize = 2 * INTEGER;

/// A writer.
#[derive(Debug)]
pub(super) struct Writer {
    /// Its connection.
    pub(super) stream: UnixStream,
    /// What came and has not been taken.
    pub(super) unread: Vec<u8>,
    /// What it is to be told and has not gone out.
    pub(super) answers: Vec<u8>,
    /// It has closed its ear; it may still talk.
    deaf: bool,
}

/// What came of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Something.
    Some,
    /// Nothing now.
    Nothing,
    /// Nothing ever again.
    End,
}

impl Writer {
    /// On a connection that was just made.
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, unread: Vec::new(), answers: Vec::new(), deaf: false })
    }

    /// Reads what is there, no more than about so many values.
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

    /// Puts an answer behind those that wait.
    pub(super) fn answer(&mut self, answer: Answer) {
        self.answers.extend_from_slice(&answer.encode());
    }

    /// The last that it hears.
    pub(super) fn say(&mut self, answer: Answer) {
        self.answer(answer);
        self.send();
    }

    /// Sends of the answers what the connection takes.
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

    /// Whether its end of the connection is closed. What it sent before may still be there.
    pub(super) fn is_gone(&self) -> bool {
        wait(&mut [Waiting::gone(&self.stream)], Some(MonotonicTime::default())).is_ok_and(|ready| ready > 0)
    }
}
