//! Writes pcapng: one big-endian section, with nanosecond time stamps on each interface.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use super::pcapng::{MAGIC_OF_ORDER, block, option};
use super::{Captured, Interface};
use crate::LinkLayer;
use crate::file::WriteError;

/// A pcapng file being written. Call [`CaptureWriter::finish`], or the last packets may be missing.
pub struct CaptureWriter<W: Write> {
    writer: W,
    file: String,
    interfaces: u32,
    /// The block being written; kept to reuse its memory.
    block: Block,
}

impl CaptureWriter<BufWriter<File>> {
    /// Creates or truncates a file. `comment` describes the whole file; Wireshark shows it in the file's properties.
    ///
    /// # Errors
    /// If writing fails.
    pub fn create(path: impl AsRef<Path>, comment: &str) -> Result<Self, WriteError> {
        let file = path.as_ref().display().to_string();
        match File::create(path) {
            Ok(created) => Self::new(file, BufWriter::with_capacity(1 << 20, created), comment),
            Err(error) => Err(WriteError { file, error }),
        }
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Writes to `writer`, which should be buffered; `file` names it in errors, and `comment` is as for
    /// [`CaptureWriter::create`].
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(file: impl Into<String>, writer: W, comment: &str) -> Result<Self, WriteError> {
        const LENGTH_UNKNOWN: [u8; 8] = [0xff; 8];
        let mut new = Self { writer, file: file.into(), interfaces: 0, block: Block::default() };
        new.put(|header| {
            header.begin(block::SECTION);
            header.long(MAGIC_OF_ORDER);
            header.short(1);
            header.short(0);
            header.bytes(&LENGTH_UNKNOWN);
            header.option(option::COMMENT, comment.as_bytes())?;
            header.option(
                option::USER_APPLICATION,
                concat!("narrows ", env!("CARGO_PKG_VERSION")).as_bytes(),
            )?;
            header.end_options();
            Ok(())
        })?;
        Ok(new)
    }

    /// Adds an interface whose packets have link layer `layer`.
    ///
    /// # Errors
    /// If writing fails.
    pub fn interface(&mut self, name: &str, layer: LinkLayer) -> Result<Interface, WriteError> {
        const NANOSECONDS: u8 = 9;
        self.put(|description| {
            description.begin(block::INTERFACE);
            // All known link layers have 16-bit numbers, as the format requires.
            description.short(layer.link_type() as u16);
            description.short(0);
            description.long(0); // packets of any length
            description.option(option::NAME, name.as_bytes())?;
            description.option(option::RESOLUTION, &[NANOSECONDS])?;
            description.end_options();
            Ok(())
        })?;
        let interface = Interface { number: self.interfaces, layer };
        self.interfaces += 1;
        Ok(interface)
    }

    /// Adds a packet. Its interface must be one that this file's [`CaptureWriter::interface`] returned.
    ///
    /// # Errors
    /// If writing fails, the interface is not one of this file, or the comment is longer than 65,535 bytes.
    pub fn write(&mut self, packet: &Captured<'_>) -> Result<(), WriteError> {
        let interfaces = self.interfaces;
        self.put(|block| {
            let number = packet.interface.number;
            if number >= interfaces {
                return Err(refused(format!("a packet of interface {number}; this file has {interfaces}")));
            }
            let kept = u32::try_from(packet.bytes.len())
                .map_err(|_| refused(format!("a packet of {} bytes", packet.bytes.len())))?;
            let stamp = packet.instant.nanos();
            block.begin(block::PACKET);
            block.long(number);
            block.long((stamp >> 32) as u32);
            block.long(stamp as u32);
            block.long(kept);
            block.long(packet.length.max(kept));
            block.bytes(packet.bytes);
            if let Some(comment) = packet.comment {
                block.option(option::COMMENT, comment.as_bytes())?;
                block.end_options();
            }
            Ok(())
        })
    }

    /// Flushes buffered data.
    ///
    /// # Errors
    /// If writing fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.writer.flush().map_err(|error| self.failed(error))
    }

    /// Flushes buffered data and returns the writer.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.writer)
    }

    /// Writes the block that `build` builds; writes nothing if `build` fails.
    fn put(&mut self, build: impl FnOnce(&mut Block) -> io::Result<()>) -> Result<(), WriteError> {
        build(&mut self.block)
            .and_then(|()| self.block.end())
            .and_then(|()| self.writer.write_all(&self.block.bytes))
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> WriteError {
        WriteError { file: self.file.clone(), error }
    }
}

impl<W: Write> fmt::Debug for CaptureWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureWriter").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A block being built.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
}

impl Block {
    /// The offset of a block's length, which is repeated at its end.
    const LENGTH: usize = 4;

    /// Begins a block of a type from [`block`].
    fn begin(&mut self, kind: u32) {
        self.bytes.clear();
        self.long(kind);
        self.long(0); // the length, when it is known
    }

    fn short(&mut self, number: u16) {
        self.bytes.extend(number.to_be_bytes());
    }

    fn long(&mut self, number: u32) {
        self.bytes.extend(number.to_be_bytes());
    }

    /// Bytes, padded to a multiple of four.
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// An option with a code from [`option`].
    fn option(&mut self, kind: u16, value: &[u8]) -> io::Result<()> {
        let length = u16::try_from(value.len()).map_err(|_| {
            refused(format!("a text of {} bytes; the format takes {} at most", value.len(), u16::MAX))
        })?;
        self.short(kind);
        self.short(length);
        self.bytes(value);
        Ok(())
    }

    /// Ends a block's options; omitted if there are none.
    fn end_options(&mut self) {
        self.short(option::END);
        self.short(0);
    }

    fn end(&mut self) -> io::Result<()> {
        let length = u32::try_from(self.bytes.len() + 4)
            .map_err(|_| refused(format!("a block of {} bytes", self.bytes.len())))?;
        self.long(length);
        self.bytes[Self::LENGTH..][..4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

/// An error for something that the format cannot represent.
fn refused(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}
