//! The traffic of a measurement: frames from one host to another through packet sockets. Each contains its number and
//! the instant at which it was handed to the kernel; the kernel timestamps it at the receiver's interface.
//!
//! A single thread sends and receives, which leaves the other processor to the emulator. When it reads arrivals makes
//! no difference: the timestamps are the kernel's.

use std::hint::spin_loop;
use std::net::SocketAddr;

use narrows_frame::MacAddress;
use narrows_frame::craft::Udp;
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::frame::FramePool;
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::{PacketSocket, PacketSocketOptions, ReceiveBatch, Received};
use narrows_io::wait::wait;

use crate::CalibrateError;

/// An address that no host has: the receiver's kernel ignores such frames, so that only the path is measured.
const NOBODY: MacAddress = MacAddress([0x02, b'n', b'a', b'r', 0xff, 0xff]);
const SENDER: MacAddress = MacAddress([0x02, b'n', b'a', b'r', 0xff, 0xfe]);
/// The length of a frame in bytes: at 130,000 a second the 100 MB/s of the evaluation in Grohmann 2023.
const LENGTH: usize = 769;
/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;
/// The port that identifies our frames, so that others are not counted.
const PORT: u16 = 27_183;
/// How long the last packets are awaited.
const PATIENCE: u64 = 300_000_000;
/// No packet takes this long: its timestamp is wrong because the wall clock was set before it was read.
const ABSURD: u64 = 10_000_000_000;
/// Before a packet is due, the sender reads arrivals only if at least this much time is left: reading takes some
/// microseconds.
const ROOM_TO_LOOK: u64 = 4_000;
/// It reads at least this often, so that the receiver's buffer does not overflow.
const UNLOOKED: u32 = 1_024;

/// The two ends.
pub(crate) struct Ends {
    pub(crate) near: PacketSocket,
    pub(crate) far: PacketSocket,
    batch: ReceiveBatch,
    pool: FramePool,
    received: Vec<Received>,
    frame: Vec<u8>,
}

/// The measurements of a packet stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// Packets handed to the kernel.
    pub(crate) sent: u64,
    /// The time from the first packet to the last, in nanoseconds.
    pub(crate) span: u64,
    /// Number and one-way time of each packet that arrived, in order of arrival.
    pub(crate) one_ways: Vec<(u32, i64)>,
}

impl Ends {
    pub(crate) fn open(near: (&Namespace, &str), far: (&Namespace, &str)) -> Result<Self, CalibrateError> {
        Self::open_with(near, far, PacketSocketOptions::default())
    }

    /// The same with other options for the near end.
    pub(crate) fn open_with(
        near: (&Namespace, &str),
        far: (&Namespace, &str),
        options: PacketSocketOptions,
    ) -> Result<Self, CalibrateError> {
        Ok(Self {
            near: PacketSocket::open_with(near.0, near.1, options)?,
            far: PacketSocket::open(far.0, far.1)?,
            batch: ReceiveBatch::new(),
            pool: FramePool::default(),
            received: Vec::new(),
            frame: frame(),
        })
    }

    /// Sends this many packets, evenly spaced as far as the host keeps up, and returns the arrivals.
    pub(crate) fn stream(&mut self, gap: u64, packets: u32, spin: bool) -> Result<Stream, CalibrateError> {
        let mut seen = Stream { one_ways: Vec::with_capacity(packets as usize), ..Stream::default() };
        let start = clock_monotonic().as_nanos() + 1_000_000;
        let mut unlooked = 0;
        for number in 0..packets {
            let due = start + u64::from(number) * gap;
            let mut now = clock_monotonic().as_nanos();
            while now < due {
                if !spin {
                    wait(&mut [], Some(MonotonicTime::from_nanos(due))).map_err(CalibrateError::System)?;
                } else if due - now > ROOM_TO_LOOK {
                    self.look(&mut seen)?;
                    unlooked = 0;
                } else {
                    spin_loop();
                }
                now = clock_monotonic().as_nanos();
            }
            self.send(number, false)?;
            seen.span = now - start;
            seen.sent += 1;
            unlooked += 1;
            if unlooked >= UNLOOKED {
                self.look(&mut seen)?;
                unlooked = 0;
            }
        }
        self.await_rest(&mut seen)?;
        Ok(seen)
    }

    /// Sends each packet as soon as the previous one has arrived.
    pub(crate) fn flood(&mut self, packets: u32) -> Result<Stream, CalibrateError> {
        let mut seen = Stream::default();
        for number in 0..packets {
            self.send(number, false)?;
            seen.sent += 1;
            let asked = clock_monotonic().as_nanos();
            while seen.one_ways.len() < seen.sent as usize {
                self.look(&mut seen)?;
                if clock_monotonic().as_nanos() - asked > PATIENCE {
                    return Ok(seen);
                }
            }
        }
        Ok(seen)
    }

    /// Consecutive round trips: each packet is sent back from the far end as soon as it has arrived there.
    pub(crate) fn round_trips(&mut self, packets: u32) -> Result<Vec<i64>, CalibrateError> {
        let mut trips = Vec::with_capacity(packets as usize);
        for number in 0..packets {
            let sent = self.send(number, false)?;
            if self.await_number(number, true)?.is_none() {
                continue;
            }
            self.send(number, true)?;
            if let Some(stamp) = self.await_number(number, false)? {
                trips.push(stamp as i64 - sent as i64);
            }
        }
        Ok(trips)
    }

    /// Sends one packet, and returns the instant just before.
    fn send(&mut self, number: u32, from_far: bool) -> Result<u64, CalibrateError> {
        let from = if from_far { &mut self.far } else { &mut self.near };
        self.frame[HEADERS..HEADERS + 4].copy_from_slice(&number.to_le_bytes());
        let now = clock_monotonic().as_nanos();
        self.frame[HEADERS + 8..HEADERS + 16].copy_from_slice(&now.to_le_bytes());
        // A packet that the kernel does not accept is a packet that does not arrive.
        match from.send(std::slice::from_ref(&self.frame)).stopped {
            None | Some(narrows_io::packet_socket::SendStop::Full) => Ok(now),
            Some(other) => Err(CalibrateError::Send(other.to_string())),
        }
    }

    /// Reads the arrivals at the far end.
    fn look(&mut self, seen: &mut Stream) -> Result<(), CalibrateError> {
        loop {
            let count = self.far.receive(&mut self.batch, &mut self.pool, &mut self.received)?;
            for received in self.received.drain(..) {
                if let Some((number, sent)) = ours(&received.frame)
                    && let Some(stamp) = received.stamp
                    && stamp.as_nanos().abs_diff(sent) < ABSURD
                {
                    seen.one_ways.push((number, stamp.as_nanos() as i64 - sent as i64));
                }
                self.pool.recycle(received.frame);
            }
            if count < ReceiveBatch::FRAMES {
                return Ok(());
            }
        }
    }

    fn await_rest(&mut self, seen: &mut Stream) -> Result<(), CalibrateError> {
        let mut last = (seen.one_ways.len(), clock_monotonic().as_nanos());
        while (seen.one_ways.len() as u64) < seen.sent && clock_monotonic().as_nanos() - last.1 < PATIENCE {
            self.look(seen)?;
            if seen.one_ways.len() > last.0 {
                last = (seen.one_ways.len(), clock_monotonic().as_nanos());
            }
        }
        Ok(())
    }

    /// The timestamp of the packet with this number at one end; `None` if it does not arrive.
    fn await_number(&mut self, number: u32, at_far: bool) -> Result<Option<u64>, CalibrateError> {
        let asked = clock_monotonic().as_nanos();
        let mut found = None;
        while found.is_none() && clock_monotonic().as_nanos() - asked < PATIENCE {
            let socket = if at_far { &mut self.far } else { &mut self.near };
            socket.receive(&mut self.batch, &mut self.pool, &mut self.received)?;
            for received in self.received.drain(..) {
                if ours(&received.frame).is_some_and(|(other, _)| other == number) {
                    found = received.stamp.map(MonotonicTime::as_nanos);
                }
                self.pool.recycle(received.frame);
            }
        }
        Ok(found)
    }
}

/// A frame without its number.
pub(crate) fn frame() -> Vec<u8> {
    let address = |host: u8| SocketAddr::from(([192, 0, 2, host], PORT));
    Udp::new(address(1), address(2)).ethernet(NOBODY, SENDER, &[0; LENGTH - HEADERS])
}

/// The number and the instant in one of our frames.
pub(crate) fn ours(frame: &[u8]) -> Option<(u32, u64)> {
    let port = frame.get(HEADERS - 6..HEADERS - 4)?;
    let number = frame.get(HEADERS..HEADERS + 4)?.try_into().ok()?;
    let sent = frame.get(HEADERS + 8..HEADERS + 16)?.try_into().ok()?;
    (port == PORT.to_be_bytes() && frame.get(..6)? == NOBODY.0)
        .then(|| (u32::from_le_bytes(number), u64::from_le_bytes(sent)))
}
