//! A capture file as traffic: each packet enters at its own offset from the first one.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;

use narrows_core::{Packet, Time};
use narrows_frame::capture::CaptureReader;
use narrows_frame::parse::parse_cut;
use narrows_frame::{ReadError, WallTime};

use crate::body::Frame;
use crate::error::SourceError;

/// Packets that a thread reads ahead: half a second at 10,000 packets per second, less than a MiB.
const AHEAD: usize = 4096;

/// A capture being played.
pub(crate) struct CaptureFeed {
    packets: Packets,
    next: Option<Captured>,
    /// The read-ahead thread has no packet ready yet.
    is_starved: bool,
}

/// Where the file is read.
enum Packets {
    /// In the thread that takes packets.
    Here(Box<Reader>),
    /// In a read-ahead thread, so that taking a packet never waits for the disk.
    Ahead(Receiver<Result<Captured, ReadError>>),
}

struct Captured {
    at: Time,
    packet: Packet<()>,
    frame: Option<Box<Frame>>,
}

struct Reader {
    reader: CaptureReader<BufReader<File>>,
    /// Whether the bytes are needed.
    keep: bool,
    start: Time,
    /// The time of the first packet, by the clock of the capture.
    first: Option<WallTime>,
    /// The instant of the last packet read.
    last: Time,
}

impl CaptureFeed {
    /// Opens a capture whose first packet enters at `start`. With `keep`, packets carry their bytes.
    pub(crate) fn open(file: &Path, start: Time, keep: bool, ahead: bool) -> Result<Self, SourceError> {
        let reader = CaptureReader::open(file)?;
        let mut reader = Reader { reader, keep, start, first: None, last: start };
        let next = reader.read()?;
        let packets = match ahead {
            true => Packets::Ahead(read_ahead(reader).map_err(SourceError::Thread)?),
            false => Packets::Here(Box::new(reader)),
        };
        Ok(Self { packets, next, is_starved: false })
    }

    pub(crate) fn peek(&self) -> Option<Time> {
        self.next.as_ref().map(|next| next.at)
    }

    /// Takes the packet that was peeked at.
    pub(crate) fn take(&mut self) -> Result<(Packet<()>, Option<Box<Frame>>), SourceError> {
        let Captured { packet, frame, .. } = self.next.take().expect("its instant was peeked at");
        self.advance()?;
        Ok((packet, frame))
    }

    /// Whether the next packet is still to be read from the file.
    pub(crate) fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// Fetches the next packet, if there is none yet.
    pub(crate) fn advance(&mut self) -> Result<(), SourceError> {
        self.is_starved = false;
        self.next = match &mut self.packets {
            Packets::Here(reader) => reader.read()?,
            Packets::Ahead(packets) => match packets.try_recv() {
                Ok(captured) => Some(captured?),
                Err(TryRecvError::Disconnected) => None,
                Err(TryRecvError::Empty) => {
                    self.is_starved = true;
                    None
                }
            },
        };
        Ok(())
    }
}

impl Reader {
    fn read(&mut self) -> Result<Option<Captured>, ReadError> {
        let Some(captured) = self.reader.read()? else { return Ok(None) };
        let first = *self.first.get_or_insert(captured.instant);
        let layer = captured.interface.layer();
        let parsed = parse_cut(layer, captured.bytes, captured.length);
        let frame = || Frame { bytes: captured.bytes.to_vec(), original: captured.length, layer };
        // A capture from several interfaces may be slightly out of order. Instants never go back.
        self.last = self.last.max(self.start + captured.instant.since(first));
        let frame = self.keep.then(|| Box::new(frame()));
        Ok(Some(Captured { at: self.last, packet: parsed.with(()), frame }))
    }
}

/// Starts a thread that reads the rest; it ends with the file, or when no more packets are taken.
fn read_ahead(mut reader: Reader) -> std::io::Result<Receiver<Result<Captured, ReadError>>> {
    let (sender, packets) = mpsc::sync_channel(AHEAD);
    thread::Builder::new().name("capture".into()).spawn(move || {
        while let Some(read) = reader.read().transpose() {
            let is_broken = read.is_err();
            if sender.send(read).is_err() || is_broken {
                return;
            }
        }
    })?;
    Ok(packets)
}

impl fmt::Debug for CaptureFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureFeed").field("next", &self.peek()).finish_non_exhaustive()
    }
}
