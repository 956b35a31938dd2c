//! A feed as the device file of Grohmann's queueing discipline `delay`, so that programs written for that work here.
//!
//! Source: L. Grohmann, *Design and Implementation of a Network Emulator with Stochastic Network Delay Support* (Stuttgart
//! 2023), section 5.2.2:
//!
//! | call | effect |
//! |---|---|
//! | `open` | one process at a time; others get `EBUSY` |
//! | `read` | the number of delays there is room for: 4 bytes, little-endian, whatever length was requested |
//! | `write` | delays in nanoseconds, 8 bytes each, little-endian; always reported as written in full |
//!
//! Differences from the source: there, values without room are silently lost. Here `write` waits (or returns
//! `EAGAIN`); [`WhenFull::Discard`] behaves as the source and counts the losses. `poll`, which the source mentions as
//! a promising option, is implemented: `POLLIN` always, `POLLOUT` from a level of room on. A last value of fewer than
//! 8 bytes is ignored; the source reads past the end of the program's buffer. A negative delay means no delay, as in
//! the source; to signal a loss, use the feed's own socket.
//!
//! The device is placed between the file and the feed's socket, so the run itself does not know of it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use narrows_core::Duration;
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::fuse_file::{FuseFile, READABLE, Refusal, Request, Ticket, WRITABLE};
use narrows_io::wait::{Waiting, wait};

use super::client::{Client, ClientError};
use super::protocol::INTEGER;

/// While a program waits for room, the room is checked this often: at a million packets per second it is half of the
/// default lead.
const LOOK: Duration = Duration::from_millis(2);
/// The length of what `read` returns.
const COUNT: usize = 4;

/// What happens to values without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// `write` waits until there is room.
    #[default]
    Wait,
    /// They are lost, and `write` succeeds, as in the source.
    Discard,
}

/// How a device behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceConfig {
    /// What happens to values without room.
    pub when_full: WhenFull,
    /// From this much room on, `poll` reports the file as writable; default: half of the maximum room seen.
    pub wake_level: Option<u64>,
}

/// Counters of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DeviceCounts {
    /// Values sent to the feed.
    pub values: u64,
    /// Values for which there was no room.
    pub discarded: u64,
    /// Negative values, which count as no delay.
    pub negative: u64,
}

/// Why [`Device::serve`] returned.
#[derive(Debug)]
pub enum Served {
    /// One of the given descriptors is readable.
    Told,
    /// The run is over, the feed was removed, or the file was unmounted.
    Over,
}

/// The file and the feed behind it.
#[derive(Debug)]
pub struct Device {
    file: FuseFile,
    socket: PathBuf,
    config: DeviceConfig,
    counts: DeviceCounts,
    /// While a program has it open.
    client: Option<Client>,
    /// Writes that wait for room, oldest first.
    writes: VecDeque<Pending>,
    /// A program waiting in `poll`.
    waiter: Option<u64>,
}

/// A waiting write.
#[derive(Debug)]
struct Pending {
    ticket: Ticket,
    values: Vec<i64>,
    sent: usize,
}

impl Device {
    /// Serves `file` for the feed with this socket.
    pub fn new(file: FuseFile, socket: &Path, config: DeviceConfig) -> Self {
        let counts = DeviceCounts::default();
        let (client, writes, waiter) = (None, VecDeque::new(), None);
        Self { file, socket: socket.to_owned(), config, counts, client, writes, waiter }
    }

    /// The counters so far.
    pub fn counts(&self) -> DeviceCounts {
        self.counts
    }

    /// Serves programs until one of `told` is readable or the run is over.
    ///
    /// # Errors
    /// If the file or the connection to the run fails.
    pub fn serve(&mut self, told: &[&dyn AsFd]) -> Result<Served, ClientError> {
        loop {
            match self.file.take().map_err(ClientError::Broken)? {
                Some(Request::Gone) => return Ok(Served::Over),
                Some(request) => {
                    if let Some(over) = self.answer(request)? {
                        return Ok(over);
                    }
                    continue;
                }
                None => {}
            }
            match self.look() {
                Err(ClientError::Over) => return Ok(Served::Over),
                other => other?,
            }
            if self.sleep(told).map_err(ClientError::Broken)? {
                return Ok(Served::Told);
            }
        }
    }

    /// Sleeps until there is a request or other work; returns whether one of `told` is readable.
    fn sleep(&self, told: &[&dyn AsFd]) -> io::Result<bool> {
        let told: Vec<_> = told.iter().map(|descriptor| descriptor.as_fd()).collect();
        let mut all: Vec<_> = told.iter().map(Waiting::readable).collect();
        all.push(Waiting::readable(&self.file));
        all.extend(self.client.as_ref().map(Waiting::readable));
        let waits = !self.writes.is_empty() || self.waiter.is_some();
        let until = waits.then(|| MonotonicTime::from_nanos(clock_monotonic().as_nanos() + LOOK.nanos()));
        wait(&mut all, until)?;
        Ok(all[..told.len()].iter().any(Waiting::is_ready))
    }

    /// Answers or defers a request; returns whether that was the end.
    fn answer(&mut self, request: Request) -> Result<Option<Served>, ClientError> {
        let answered = match request {
            Request::Open(ticket) => self.open(ticket),
            Request::Read(ticket, size) => self.read(ticket, size),
            Request::Write { ticket, bytes, nonblocking } => self.write(ticket, &bytes, nonblocking),
            Request::Poll { ticket, waiter } => self.poll(ticket, waiter),
            Request::Interrupt(ticket) => self.interrupt(ticket),
            Request::Closed => {
                (self.client, self.waiter) = (None, None);
                Ok(())
            }
            Request::Gone => return Ok(Some(Served::Over)),
        };
        match answered {
            Ok(()) => Ok(None),
            Err(ClientError::Over | ClientError::Nobody) => Ok(Some(Served::Over)),
            Err(error) => Err(error),
        }
    }

    fn open(&mut self, ticket: Ticket) -> Result<(), ClientError> {
        let refusal = if self.client.is_some() {
            Refusal::Busy
        } else {
            let connected = Client::connect(&self.socket).and_then(|mut client| {
                client.ask_room()?;
                Ok(client)
            });
            match connected {
                Ok(client) => {
                    self.client = Some(client);
                    return self.file.admit(ticket).map_err(ClientError::Broken);
                }
                // Another writer uses the feed's own socket.
                Err(ClientError::Refused) => Refusal::Busy,
                Err(error) => {
                    self.refuse(ticket, Refusal::NoDevice)?;
                    return Err(error);
                }
            }
        };
        self.refuse(ticket, refusal)
    }

    fn read(&mut self, ticket: Ticket, size: usize) -> Result<(), ClientError> {
        if size < COUNT {
            return self.refuse(ticket, Refusal::Invalid);
        }
        let room = self.room(ticket)?;
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        self.file.give(ticket, &room.to_le_bytes()).map_err(ClientError::Broken)
    }

    /// The room not yet promised to waiting writes.
    fn room(&mut self, ticket: Ticket) -> Result<u64, ClientError> {
        if !self.writes.is_empty() {
            return Ok(0);
        }
        let asked = self.client.as_mut().map_or(Err(ClientError::Over), Client::ask_room);
        if asked.is_err() {
            self.refuse(ticket, Refusal::NoDevice)?;
        }
        asked
    }

    fn write(&mut self, ticket: Ticket, bytes: &[u8], nonblocking: bool) -> Result<(), ClientError> {
        let (whole, _) = bytes.as_chunks::<INTEGER>();
        if whole.is_empty() && !bytes.is_empty() {
            return self.refuse(ticket, Refusal::Invalid);
        }
        let read: Vec<i64> = whole.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
        self.counts.negative += read.iter().filter(|&&value| value < 0).count() as u64;
        let values = read.iter().map(|&value| value.max(0)).collect();
        self.writes.push_back(Pending { ticket, values, sent: 0 });
        self.go_on()?;
        // It may be waiting behind others.
        let waits = self.writes.back().is_some_and(|last| last.ticket == ticket);
        if !waits {
            return Ok(());
        }
        if self.config.when_full == WhenFull::Discard {
            let Some(pending) = self.writes.pop_back() else { return Ok(()) };
            self.counts.discarded += (pending.values.len() - pending.sent) as u64;
            return self.took(ticket, pending.values.len());
        }
        if nonblocking { self.give_up(ticket, Refusal::Again) } else { Ok(()) }
    }

    /// Sends as much of the waiting writes as there is room for.
    fn go_on(&mut self) -> Result<(), ClientError> {
        while let Some(first) = self.writes.front_mut() {
            let Some(client) = &mut self.client else { return Err(ClientError::Over) };
            let sent = match client.send_what_fits(&first.values[first.sent..]) {
                Ok(sent) => sent,
                Err(error) => {
                    let ticket = first.ticket;
                    self.writes.pop_front();
                    self.refuse(ticket, Refusal::NoDevice)?;
                    return Err(error);
                }
            };
            self.counts.values += sent as u64;
            first.sent += sent;
            if first.sent < first.values.len() {
                return Ok(());
            }
            let (ticket, count) = (first.ticket, first.sent);
            self.writes.pop_front();
            self.took(ticket, count)?;
        }
        Ok(())
    }

    fn poll(&mut self, ticket: Ticket, waiter: Option<u64>) -> Result<(), ClientError> {
        let room = self.room(ticket)?;
        let writable = room >= self.wake_level();
        self.waiter = waiter.filter(|_| !writable);
        let events = if writable { READABLE | WRITABLE } else { READABLE };
        self.file.is_ready(ticket, events).map_err(ClientError::Broken)
    }

    fn wake_level(&self) -> u64 {
        let half = self.client.as_ref().map_or(1, |client| client.most_room() / 2);
        self.config.wake_level.unwrap_or(half).max(1)
    }

    /// A waiting write returns with what has been sent of it.
    fn interrupt(&mut self, ticket: Ticket) -> Result<(), ClientError> {
        self.give_up(ticket, Refusal::Interrupted)
    }

    fn give_up(&mut self, ticket: Ticket, why: Refusal) -> Result<(), ClientError> {
        let Some(at) = self.writes.iter().position(|pending| pending.ticket == ticket) else { return Ok(()) };
        match self.writes.remove(at) {
            Some(pending) if pending.sent > 0 => self.took(ticket, pending.sent),
            _ => self.refuse(ticket, why),
        }
    }

    /// Checks for room for waiting writes, and whether the run still exists.
    fn look(&mut self) -> Result<(), ClientError> {
        if let Some(client) = &mut self.client {
            client.look()?;
        }
        self.go_on()?;
        let (Some(waiter), Some(client)) = (self.waiter, &mut self.client) else { return Ok(()) };
        if client.ask_room()? >= self.wake_level() {
            self.waiter = None;
            self.file.wake(waiter).map_err(ClientError::Broken)?;
        }
        Ok(())
    }

    fn took(&mut self, ticket: Ticket, values: usize) -> Result<(), ClientError> {
        self.file.took(ticket, values * INTEGER).map_err(ClientError::Broken)
    }

    fn refuse(&mut self, ticket: Ticket, why: Refusal) -> Result<(), ClientError> {
        self.file.refuse(ticket, why).map_err(ClientError::Broken)
    }
}
