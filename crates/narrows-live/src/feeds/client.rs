//! The writer's end of a feed, for `narrows feed`: it sends only what there is room for, so that nothing is in
//! transit when the run asks for something else.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use narrows_io::clock::MonotonicTime;
use narrows_io::unix_socket::connect_within;
use narrows_io::wait::{Waiting, wait};

use super::protocol::{ASK_ROOM, ASK_WAKE, Answer, INTEGER};

/// How long a run may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why nothing more can be sent to a feed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("no run listens there anymore")]
    Nobody,
    /// The run does not accept the connection.
    #[error("the run does not answer: is it stopped?")]
    Silent,
    /// Another writer is connected.
    #[error("another process writes to this feed: there is one writer at a time")]
    Refused,
    /// The run could not parse what was sent.
    #[error("the run rejected the values and closed the connection")]
    Malformed,
    /// The run is over, which is not an error.
    #[error("the run is over")]
    Over,
    /// The connection failed.
    #[error("the connection to the run broke: {0}")]
    Broken(io::Error),
}

/// A connection to a feed.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    /// How many values it accepts now.
    room: u64,
    /// The maximum that it ever accepted.
    most: u64,
    /// How many have been sent.
    sent: u64,
}

impl Client {
    /// Connects as the only writer.
    ///
    /// # Errors
    /// If nobody listens, or another writer is connected.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let stream = connect_within(path, PATIENCE).map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::NotFound => ClientError::Nobody,
            ErrorKind::WouldBlock => ClientError::Silent,
            _ => ClientError::Broken(error),
        })?;
        Ok(Self { stream, room: 0, most: 0, sent: 0 })
    }

    /// Sends values, each a delay in nanoseconds or −1, as room becomes available.
    ///
    /// # Errors
    /// If the run is over or rejects the writer.
    pub fn send(&mut self, mut values: &[i64]) -> Result<(), ClientError> {
        while !values.is_empty() {
            if self.room == 0 {
                // In chunks: half of the maximum room, or the rest.
                let level = (self.most / 2).min(values.len() as u64).max(1);
                self.write(&[ASK_WAKE, i64::try_from(level).unwrap_or(i64::MAX)])?;
                self.room = self.hear()?;
                self.most = self.most.max(self.room);
            }
            let count = usize::try_from(self.room).unwrap_or(usize::MAX).min(values.len());
            let (now, later) = values.split_at(count);
            self.write(now)?;
            self.room -= count as u64;
            self.sent += count as u64;
            values = later;
        }
        Ok(())
    }

    /// Asks how many values the run accepts now.
    ///
    /// # Errors
    /// Those of [`Client::send`].
    pub fn ask_room(&mut self) -> Result<u64, ClientError> {
        self.write(&[ASK_ROOM])?;
        self.room = self.hear()?;
        self.most = self.most.max(self.room);
        Ok(self.room)
    }

    /// Sends as many of these values as there is room for, and returns how many; does not wait for room.
    ///
    /// # Errors
    /// Those of [`Client::send`].
    pub fn send_what_fits(&mut self, values: &[i64]) -> Result<usize, ClientError> {
        let room = usize::try_from(self.ask_room()?).unwrap_or(usize::MAX);
        let fits = &values[..room.min(values.len())];
        self.send(fits)?;
        Ok(fits.len())
    }

    /// The maximum room seen.
    pub fn most_room(&self) -> u64 {
        self.most
    }

    /// Waits until the run has taken everything that was sent.
    ///
    /// # Errors
    /// Those of [`Client::send`].
    pub fn finish(&mut self) -> Result<(), ClientError> {
        // The run takes what is sent in order.
        self.write(&[ASK_ROOM])?;
        self.room = self.hear()?;
        Ok(())
    }

    /// How many values have been sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Checks for unsolicited messages of the run.
    ///
    /// # Errors
    /// The message, as an error.
    pub fn look(&mut self) -> Result<(), ClientError> {
        let ready = wait(&mut [Waiting::readable(&self.stream)], Some(MonotonicTime::default()));
        if ready.map_err(ClientError::Broken)? > 0 {
            self.hear()?;
        }
        Ok(())
    }

    fn write(&mut self, integers: &[i64]) -> Result<(), ClientError> {
        let bytes: Vec<u8> = integers.iter().flat_map(|integer| integer.to_le_bytes()).collect();
        match self.stream.write_all(&bytes) {
            Ok(()) => Ok(()),
            // It sent the reason before closing.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(match self.hear() {
                Ok(_) => ClientError::Broken(error),
                Err(why) => why,
            }),
            Err(error) => Err(ClientError::Broken(error)),
        }
    }

    fn hear(&mut self) -> Result<u64, ClientError> {
        let mut bytes = [0; INTEGER];
        match self.stream.read_exact(&mut bytes) {
            Ok(()) => {}
            // The run was killed.
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return Err(ClientError::Over);
            }
            Err(error) => return Err(ClientError::Broken(error)),
        }
        match Answer::decode(bytes) {
            Some(Answer::Room(room)) => Ok(room),
            Some(Answer::Refused) => Err(ClientError::Refused),
            Some(Answer::Malformed) => Err(ClientError::Malformed),
            Some(Answer::Over) => Err(ClientError::Over),
            None => {
                let what = "it is interactive and needs answers, not a stream of values";
                Err(ClientError::Broken(io::Error::new(ErrorKind::InvalidData, what)))
            }
        }
    }
}

impl AsFd for Client {
    /// Becomes readable when the run has sent something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
