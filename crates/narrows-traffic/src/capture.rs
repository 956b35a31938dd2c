//! A capture file as traffic: each packet enters at its own offset from the earliest one. In captures of several interfaces
//! packets may be some places away from their order in time, and are put into it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;

use narrows_core::{Packet, Time};
use narrows_frame::WallTime;
use narrows_frame::capture::CaptureReader;
use narrows_frame::parse::parse_cut;

use crate::body::Frame;
use crate::error::SourceError;

/// Packets that a thread reads ahead: half a second at 10,000 packets per second, less than a MiB.
const AHEAD: usize = 4096;
/// By how many places a packet may be away from its order in time.
const DISORDER: usize = 1024;

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
    Ahead(Receiver<Result<Captured, SourceError>>),
}

struct Captured {
    at: Time,
    packet: Packet<()>,
    frame: Option<Box<Frame>>,
}

struct Reader {
    reader: CaptureReader<BufReader<File>>,
    file: String,
    /// Whether the bytes are needed.
    keep: bool,
    start: Time,
    /// By how many places packets may be away from their order: none in a pipe, which may have no more of them yet.
    disorder: usize,
    /// Packets that are read, by their time and their number.
    waiting: BTreeMap<(WallTime, u64), Waiting>,
    /// Packets read so far.
    read: u64,
    /// How the file ended: with an error, or well.
    end: Option<Result<(), SourceError>>,
    /// The times of the earliest packet and of the last one that was given, by the clock of the capture.
    times: Option<(WallTime, WallTime)>,
}

struct Waiting {
    packet: Packet<()>,
    frame: Option<Box<Frame>>,
}

impl CaptureFeed {
    /// Opens a capture whose first packet enters at `start`. With `keep`, packets carry their bytes.
    pub(crate) fn open(file: &Path, start: Time, keep: bool, ahead: bool) -> Result<Self, SourceError> {
        let reader = CaptureReader::open(file)?;
        let mut reader = Reader {
            reader,
            file: file.display().to_string(),
            keep,
            start,
            disorder: if file.is_file() { DISORDER } else { 0 },
            waiting: BTreeMap::new(),
            read: 0,
            end: None,
            times: None,
        };
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
    fn read(&mut self) -> Result<Option<Captured>, SourceError> {
        while self.end.is_none() && self.waiting.len() <= self.disorder {
            self.fetch();
        }
        let Some(((time, number), Waiting { packet, frame })) = self.waiting.pop_first() else {
            return self.end.replace(Ok(())).unwrap_or(Ok(())).map(|()| None);
        };
        let (first, last) = *self.times.get_or_insert((time, time));
        if time < last {
            return Err(SourceError::Disordered { file: self.file.clone(), number, most: self.disorder });
        }
        self.times = Some((first, time));
        Ok(Some(Captured { at: self.start + time.since(first), packet, frame }))
    }

    /// Reads a packet from the file, or its end.
    fn fetch(&mut self) {
        let captured = match self.reader.read() {
            Ok(Some(captured)) => captured,
            Ok(None) => {
                self.end = Some(Ok(()));
                return;
            }
            Err(error) => {
                self.end = Some(Err(error.into()));
                return;
            }
        };
        self.read += 1;
        let layer = captured.interface.layer();
        let packet = parse_cut(layer, captured.bytes, captured.length).with(());
        let frame = || Frame { bytes: captured.bytes.to_vec(), original: captured.length, layer };
        let frame = self.keep.then(|| Box::new(frame()));
        self.waiting.insert((captured.instant, self.read), Waiting { packet, frame });
    }
}

/// Starts a thread that reads the rest; it ends with the file, or when no more packets are taken.
fn read_ahead(mut reader: Reader) -> std::io::Result<Receiver<Result<Captured, SourceError>>> {
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
