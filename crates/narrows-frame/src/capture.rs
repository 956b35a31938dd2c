//! Captures: reads pcap and pcapng files, writes pcapng.
//!
//! The reader accepts pcap (microseconds and nanoseconds, both byte orders) and pcapng (both byte orders, several
//! sections and interfaces, any time stamp resolution and offset) with Ethernet, raw IP or Linux cooked link headers.
//! Packets come in file order. A frame check sequence that a capture kept stays at the end of the bytes.
//!
//! The writer produces pcapng with nanosecond time stamps. Each packet can have a comment, which Wireshark shows
//! (`frame.comment`): this is where the reason for a drop is recorded ([`verdicts`]).
//!
//! Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
//!
//! ```
//! use narrows_core::Duration;
//! use narrows_frame::{LinkLayer, WallTime};
//! use narrows_frame::capture::{CaptureReader, CaptureWriter, Captured};
//!
//! let mut writer = CaptureWriter::new("memory", Vec::new(), "an example")?;
//! let interface = writer.interface("client.access", LinkLayer::Ip)?;
//! let start = WallTime::from_nanos(1_700_000_000_000_000_001);
//! let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
//! let instant = start + Duration::from_millis(3);
//! let comment = Some("dropped: queue full");
//! writer.write(&Captured { instant, interface, length: 20, bytes: &packet, comment })?;
//! let file = writer.finish()?;
//!
//! let mut reader = CaptureReader::new("memory", &file[..])?;
//! let read = reader.read()?.expect("one packet was written");
//! assert_eq!((read.instant.since(start), read.bytes), (Duration::from_millis(3), &packet[..]));
//! assert_eq!(read.comment, Some("dropped: queue full"));
//! assert!(reader.read()?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod parts;
mod pcap;
mod pcapng;
mod read;
pub mod verdicts;
mod write;

pub use read::CaptureReader;
pub use write::CaptureWriter;

use crate::{LinkLayer, WallTime};

/// A packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'a> {
    /// The capture time.
    pub instant: WallTime,
    /// The interface it was captured on.
    pub interface: Interface,
    /// Its original length in bytes, link header included.
    pub length: u32,
    /// Its bytes, or as many of them as the capture kept.
    pub bytes: &'a [u8],
    /// The packet's comment.
    pub comment: Option<&'a str>,
}

/// An interface of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interface {
    number: u32,
    layer: LinkLayer,
}

impl Interface {
    /// Its index among the interfaces of the file, from 0.
    pub const fn number(self) -> usize {
        self.number as usize
    }

    /// Its link layer.
    pub const fn layer(self) -> LinkLayer {
        self.layer
    }
}

#[cfg(test)]
mod tests;
