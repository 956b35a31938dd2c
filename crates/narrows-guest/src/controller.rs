//! The controller of the guest's clock: UML's `time-travel=ext:` (the kernel's `include/uapi/linux/um_timetravel.h`).
//!
//! The guest requests the instant of its next event and waits; the controller lets it advance to that instant and
//! then run freely for a slice of virtual time, so that requests are cheap. Between two slices the controller sees
//! time pass, may hold it, and knows when it stands still.

use std::io::{self, ErrorKind, Read, Write};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use narrows_io::clock::MonotonicTime;

/// How far the guest may run without a request, in nanoseconds of virtual time.
///
/// A guest makes some fourteen requests while its next tick, every 10 ms, is beyond that; each takes some 30 µs of real time.
const SLICE: RangeInclusive<u64> = 10_000_000..=80_000_000;

/// A slice that took less real time than the first is followed by one of twice its length, one that took more than the
/// second by the shortest, so that time is seen to pass often enough. In nanoseconds.
const BRISK: RangeInclusive<u64> = 50_000_000..=200_000_000;

const LENGTH: usize = 16;

/// `enum um_timetravel_ops`.
mod op {
    pub(super) const ACK: u32 = 0;
    pub(super) const START: u32 = 1;
    pub(super) const REQUEST: u32 = 2;
    pub(super) const WAIT: u32 = 3;
    pub(super) const GET: u32 = 4;
    pub(super) const UPDATE: u32 = 5;
    pub(super) const RUN: u32 = 6;
    pub(super) const FREE_UNTIL: u32 = 7;
    pub(super) const GET_TOD: u32 = 8;
}

/// `struct um_timetravel_msg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    op: u32,
    sequence: u32,
    time: u64,
}

impl Message {
    fn to_bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&self.op.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; LENGTH]) -> Self {
        let [o0, o1, o2, o3, s0, s1, s2, s3, time @ ..] = bytes;
        Self {
            op: u32::from_ne_bytes([o0, o1, o2, o3]),
            sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
            time: u64::from_ne_bytes(time),
        }
    }
}

/// Why the guest's clock can no longer be controlled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControllerError {
    #[error(
        "the guest kernel speaks another protocol of time: it sent message {0}, where 1 to 5 and 8 are known"
    )]
    Unknown(u32),
    #[error("cannot speak with the guest kernel about time: {0}")]
    Broken(#[from] io::Error),
}

/// One guest's clock.
#[derive(Debug)]
pub(crate) struct Controller {
    stream: UnixStream,
    /// The received part of a message.
    part: Vec<u8>,
    /// The wall clock at virtual time zero, in nanoseconds since 1970.
    wall_clock: u64,
    /// The latest instant that the guest is known to have reached.
    time: u64,
    /// The instant of the guest's next event.
    requested: u64,
    waiting: bool,
    sequence: u32,
    gone: bool,
    slice: u64,
    /// The real time of the last grant.
    granted: Option<MonotonicTime>,
}

impl Controller {
    /// For a guest that has connected; its wall clock starts at this many nanoseconds since 1970.
    pub(crate) fn new(stream: UnixStream, wall_clock: u64) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            part: Vec::new(),
            wall_clock,
            time: 0,
            requested: 0,
            waiting: false,
            sequence: 0,
            gone: false,
            slice: *SLICE.start(),
            granted: None,
        })
    }

    /// The instant that the guest has reached at least, in nanoseconds of virtual time since its start.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// The instant that the guest waits for, if it is waiting.
    pub(crate) fn waits_for(&self) -> Option<u64> {
        self.waiting.then_some(self.requested)
    }

    /// Reads the guest's messages, and answers them. Returns whether there were any.
    pub(crate) fn attend(&mut self) -> Result<bool, ControllerError> {
        let mut heard = false;
        while let Some(message) = self.read()? {
            heard = true;
            self.handle(message)?;
        }
        Ok(heard)
    }

    /// Lets a waiting guest run: to its next event, and freely for a slice after it, the shortest if it is `held` now and
    /// then.
    pub(crate) fn grant(&mut self, now: MonotonicTime, held: bool) -> Result<(), ControllerError> {
        debug_assert!(self.waiting, "only a guest that waits is let go");
        self.waiting = false;
        let took = self.granted.replace(now).map(|then| now.as_nanos().saturating_sub(then.as_nanos()));
        self.slice = match took {
            Some(took) if !held && took < *BRISK.start() => (2 * self.slice).min(*SLICE.end()),
            Some(took) if !held && took <= *BRISK.end() => self.slice,
            _ => *SLICE.start(),
        };
        // Requests are never in the past; a guest that requested nothing may run without limit.
        self.time = self.time.max(self.requested);
        let until = self.time.saturating_add(self.slice);
        self.say(op::FREE_UNTIL, until)?;
        self.say(op::RUN, self.time)
    }

    fn handle(&mut self, message: Message) -> Result<(), ControllerError> {
        let mut answer = 0;
        match message.op {
            op::ACK => return Ok(()),
            op::START => {}
            op::REQUEST => self.requested = message.time,
            op::WAIT => self.waiting = true,
            op::GET => answer = self.time,
            op::UPDATE => self.time = self.time.max(message.time),
            op::GET_TOD => answer = self.wall_clock.saturating_add(self.time),
            other => return Err(ControllerError::Unknown(other)),
        }
        self.write(Message { op: op::ACK, sequence: message.sequence, time: answer })
    }

    fn say(&mut self, op: u32, time: u64) -> Result<(), ControllerError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.write(Message { op, sequence: self.sequence, time })
    }

    /// A message fits in the socket's buffer: at most three are unread by the guest.
    fn write(&mut self, message: Message) -> Result<(), ControllerError> {
        match self.stream.write_all(&message.to_bytes()) {
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                self.gone = true;
                Ok(())
            }
            result => Ok(result?),
        }
    }

    fn read(&mut self) -> Result<Option<Message>, ControllerError> {
        let mut bytes = [0; LENGTH];
        match self.stream.read(&mut bytes[..LENGTH - self.part.len()]) {
            Ok(0) => {
                self.gone = true;
                return Ok(None);
            }
            Ok(count) => self.part.extend(&bytes[..count]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => return Ok(None),
                ErrorKind::ConnectionReset => {
                    self.gone = true;
                    return Ok(None);
                }
                _ => return Err(error.into()),
            },
        }
        let Ok(whole) = <[u8; LENGTH]>::try_from(&self.part[..]) else { return Ok(None) };
        self.part.clear();
        Ok(Some(Message::from_bytes(whole)))
    }
}

impl AsFd for Controller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Guest(UnixStream);

    impl Guest {
        fn says(&mut self, op: u32, time: u64) {
            self.0.write_all(&Message { op, sequence: 5, time }.to_bytes()).unwrap();
        }

        fn hears(&mut self) -> (u32, u64) {
            let mut bytes = [0; LENGTH];
            self.0.read_exact(&mut bytes).unwrap();
            let message = Message::from_bytes(bytes);
            assert!(message.op != op::ACK || message.sequence == 5, "an answer says to what");
            (message.op, message.time)
        }
    }

    fn pair() -> (Guest, Controller) {
        let (guest, host) = UnixStream::pair().unwrap();
        (Guest(guest), Controller::new(host, 1_000).unwrap())
    }

    #[test]
    fn a_guest_starts_asks_waits_and_runs() {
        let (mut guest, mut controller) = pair();
        guest.says(op::START, u64::MAX);
        guest.says(op::GET_TOD, 0);
        guest.says(op::REQUEST, 40);
        guest.says(op::WAIT, u64::MAX);
        assert!(controller.attend().unwrap());
        assert_eq!(controller.waits_for(), Some(40));
        let heard: Vec<_> = (0..4).map(|_| guest.hears()).collect();
        assert_eq!(heard, [(op::ACK, 0), (op::ACK, 1_000), (op::ACK, 0), (op::ACK, 0)]);
        controller.grant(MonotonicTime::from_nanos(7), false).unwrap();
        assert_eq!((guest.hears(), guest.hears()), ((op::FREE_UNTIL, 40 + SLICE.start()), (op::RUN, 40)));
        assert_eq!((controller.time(), controller.waits_for()), (40, None));
        guest.says(op::GET, 0);
        controller.attend().unwrap();
        assert_eq!(guest.hears(), (op::ACK, 40));
    }

    #[test]
    fn slices_grow_while_they_take_little_time_and_nobody_holds_the_clock() {
        let (mut guest, mut controller) = pair();
        let mut slice_after = |real: u64, held: bool| {
            guest.says(op::WAIT, u64::MAX);
            controller.attend().unwrap();
            controller.grant(MonotonicTime::from_nanos(real * 1_000_000), held).unwrap();
            let heard: Vec<_> = (0..3).map(|_| guest.hears()).collect();
            assert_eq!((heard[0].0, heard[2].0), (op::ACK, op::RUN));
            (heard[1].1 - heard[2].1) / 1_000_000
        };
        let calls =
            [(0, false), (49, false), (60, false), (61, false), (62, false), (202, false), (403, false)];
        assert_eq!(calls.map(|(real, held)| slice_after(real, held)), [10, 20, 40, 80, 80, 80, 10]);
        assert_eq!((slice_after(404, false), slice_after(405, true)), (20, 10));
    }

    #[test]
    fn half_a_message_waits_for_the_rest() {
        let (mut guest, mut controller) = pair();
        let bytes = Message { op: op::UPDATE, sequence: 5, time: 9 }.to_bytes();
        guest.0.write_all(&bytes[..7]).unwrap();
        assert!(!controller.attend().unwrap());
        guest.0.write_all(&bytes[7..]).unwrap();
        assert!(controller.attend().unwrap());
        assert_eq!(controller.time(), 9);
    }

    #[test]
    fn a_guest_that_is_gone_is_noticed() {
        let (guest, mut controller) = pair();
        drop(guest);
        assert!(!controller.attend().unwrap());
        assert!(controller.gone);
    }

    #[test]
    fn another_protocol_is_an_error() {
        let (mut guest, mut controller) = pair();
        guest.says(77, 0);
        assert!(matches!(controller.attend(), Err(ControllerError::Unknown(77))));
    }
}
