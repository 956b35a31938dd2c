//! Writes pcapng, with `pcap-file`.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time;

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};

use super::{Captured, Interface};
use crate::LinkLayer;
use crate::file::WriteError;

/// A pcapng file that is written. [`CaptureWriter::finish`] it, or the last packets may be missing.
pub struct CaptureWriter<W: Write> {
    writer: PcapNgWriter<W>,
    file: String,
    interfaces: u32,
}

impl CaptureWriter<BufWriter<File>> {
    /// Creates a file, or empties the one that is there. `comment` describes it as a whole, as Wireshark shows in its
    /// properties.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: impl AsRef<Path>, comment: &str) -> Result<Self, WriteError> {
        let file = path.as_ref().display().to_string();
        match File::create(path) {
            Ok(created) => Self::new(file, BufWriter::with_capacity(1 << 20, created), comment),
            Err(error) => Err(WriteError { file, error }),
        }
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Writes to `writer`, which had better be buffered; `file` names it in errors, and `comment` is as for
    /// [`CaptureWriter::create`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(file: impl Into<String>, writer: W, comment: &str) -> Result<Self, WriteError> {
        let program = concat!("narrows ", env!("CARGO_PKG_VERSION"));
        let comment = CommonOption::Comment(comment.into());
        let options =
            vec![SectionHeaderOption::Common(comment), SectionHeaderOption::UserApplication(program.into())];
        let section = SectionHeaderBlock { options, ..SectionHeaderBlock::default() };
        let file = file.into();
        match PcapNgWriter::with_section_header(writer, section) {
            Ok(writer) => Ok(Self { writer, file, interfaces: 0 }),
            Err(error) => Err(WriteError { file, error: plain(error) }),
        }
    }

    /// Adds an interface, whose packets begin with `layer`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn interface(&mut self, name: &str, layer: LinkLayer) -> Result<Interface, WriteError> {
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::from(layer.link_type()),
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
            ],
        };
        self.writer.write_pcapng_block(block).map_err(|error| self.failed(plain(error)))?;
        let interface = Interface { number: self.interfaces, layer };
        self.interfaces += 1;
        Ok(interface)
    }

    /// Adds a packet. Its interface is one that this file's [`CaptureWriter::interface`] returned.
    ///
    /// # Errors
    /// When it cannot be written, its interface is not one of this file, or its comment is longer than 65,535 bytes.
    pub fn write(&mut self, packet: &Captured<'_>) -> Result<(), WriteError> {
        let comment = |text| EnhancedPacketOption::Common(CommonOption::Comment(Cow::Borrowed(text)));
        let block = EnhancedPacketBlock {
            interface_id: packet.interface.number,
            timestamp: time::Duration::from_nanos(packet.instant.nanos()),
            original_len: packet.length.max(packet.bytes.len() as u32),
            data: packet.bytes.into(),
            options: packet.comment.map(comment).into_iter().collect(),
        };
        self.writer.write_pcapng_block(block).map_err(|error| self.failed(plain(error)))?;
        Ok(())
    }

    /// Writes what is still buffered.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.writer.get_mut().flush().map_err(|error| self.failed(error))
    }

    /// Writes what is still buffered, and gives the writer back.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<W, WriteError> {
        let mut writer = self.writer.into_inner();
        match writer.flush() {
            Ok(()) => Ok(writer),
            Err(error) => Err(WriteError { file: self.file, error }),
        }
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

/// The system's error, or what the library objects to.
fn plain(error: PcapNgWriteError) -> io::Error {
    match error {
        PcapNgWriteError::Io(error) => error,
        PcapNgWriteError::Validation { field, source } => {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{field}: {source}"))
        }
        other => io::Error::new(io::ErrorKind::InvalidInput, other),
    }
}
