//! Reads captures in either format.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::pcap::Pcap;
use super::pcapng::{InterfaceDescription, PcapNg};
use super::{Captured, Interface};
use crate::file::{Input, ReadError, recognised};

/// A pcap or pcapng file, read sequentially. A packet is borrowed until the next one is read, and memory does not
/// grow with the file.
#[derive(Debug)]
pub struct CaptureReader<R> {
    input: Input<R>,
    format: Format,
    buffer: Vec<u8>,
    done: bool,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

const WANTED: &str = "a pcap or pcapng capture";

impl CaptureReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// If the file cannot be opened or is not a capture.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let file = path.as_ref().display().to_string();
        match File::open(path) {
            Ok(opened) => Self::new(file, BufReader::with_capacity(1 << 20, opened)),
            Err(error) => Err(ReadError::Open { file, error }),
        }
    }
}

impl<R: Read> CaptureReader<R> {
    /// Reads from `reader`, which should be buffered; `file` names it in errors.
    ///
    /// # Errors
    /// If it is not a capture.
    pub fn new(file: impl Into<String>, reader: R) -> Result<Self, ReadError> {
        let mut input = Input::new(file.into(), reader);
        let mut buffer = Vec::new();
        input.read(&mut buffer, 4)?;
        let magic = buffer.first_chunk().copied();
        let format = match magic {
            Some(PcapNg::MAGIC) => Format::PcapNg(PcapNg::open(&mut input, &mut buffer)?),
            Some(magic) => match Pcap::open(magic, &mut input, &mut buffer)? {
                Some(pcap) => Format::Pcap(pcap),
                None => return Err(input.foreign(WANTED, recognised(&buffer))),
            },
            None => return Err(input.foreign(WANTED, recognised(&buffer))),
        };
        Ok(Self { input, format, buffer, done: false })
    }

    /// The next packet; `None` at the end of the file and after an error.
    ///
    /// # Errors
    /// If the file ends within a packet, is damaged, or has a packet with an unsupported link layer. Packets read
    /// before are valid.
    pub fn read(&mut self) -> Result<Option<Captured<'_>>, ReadError> {
        if self.done {
            return Ok(None);
        }
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.read(&mut self.input, &mut self.buffer),
            Format::PcapNg(pcapng) => pcapng.read(&mut self.input, &mut self.buffer),
        };
        self.done = !matches!(found, Ok(Some(_)));
        let Some(place) = found? else { return Ok(None) };
        Ok(Some(Captured {
            instant: place.instant,
            interface: place.interface,
            length: place.length,
            bytes: &self.buffer[place.bytes.0..place.bytes.1],
            comment: place.comment.and_then(|(from, to)| str::from_utf8(&self.buffer[from..to]).ok()),
        }))
    }

    /// How many bytes of the file have been read.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// The name of an interface, if the file has one.
    pub fn interface_name(&self, interface: Interface) -> Option<&str> {
        match &self.format {
            Format::Pcap(_) => None,
            Format::PcapNg(pcapng) => {
                pcapng.interfaces.get(interface.number()).and_then(InterfaceDescription::name)
            }
        }
    }
}
