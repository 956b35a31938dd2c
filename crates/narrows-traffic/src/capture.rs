//! A capture file as traffic: each packet enters at its own offset from the first one.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use narrows_core::{Packet, Time};
use narrows_frame::capture::CaptureReader;
use narrows_frame::parse::parse_cut;
use narrows_frame::{ReadError, WallTime};

use crate::body::Frame;

/// A capture that is played. It reads one packet ahead.
pub(crate) struct CaptureFeed {
    reader: CaptureReader<BufReader<File>>,
    /// Whether anybody wants the bytes.
    keep: bool,
    start: Time,
    /// The instant of the first packet by the clock of the capture.
    first: Option<WallTime>,
    next: Option<Captured>,
}

struct Captured {
    at: Time,
    packet: Packet<()>,
    frame: Option<Box<Frame>>,
}

impl CaptureFeed {
    /// Opens a capture whose first packet enters at `start`. With `keep` the bytes of its packets go with them.
    pub(crate) fn open(file: &Path, start: Time, keep: bool) -> Result<Self, ReadError> {
        let reader = CaptureReader::open(file)?;
        let mut feed = Self { reader, keep, start, first: None, next: None };
        feed.advance()?;
        Ok(feed)
    }

    pub(crate) fn peek(&self) -> Option<Time> {
        self.next.as_ref().map(|next| next.at)
    }

    /// Takes the packet that was peeked at.
    pub(crate) fn take(&mut self) -> Result<(Packet<()>, Option<Box<Frame>>), ReadError> {
        let Captured { at, packet, frame } = self.next.take().expect("its instant was peeked at");
        self.advance()?;
        // A capture of several interfaces may be a little out of order. Time does not go back.
        if let Some(next) = &mut self.next {
            next.at = next.at.max(at);
        }
        Ok((packet, frame))
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        let Some(captured) = self.reader.read()? else { return Ok(()) };
        let first = *self.first.get_or_insert(captured.instant);
        let layer = captured.interface.layer();
        let parsed = parse_cut(layer, captured.bytes, captured.length);
        let frame = || Frame { bytes: captured.bytes.to_vec(), original: captured.length, layer };
        self.next = Some(Captured {
            at: self.start + captured.instant.since(first),
            packet: parsed.with(()),
            frame: self.keep.then(|| Box::new(frame())),
        });
        Ok(())
    }
}

impl fmt::Debug for CaptureFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureFeed").field("next", &self.peek()).finish_non_exhaustive()
    }
}
