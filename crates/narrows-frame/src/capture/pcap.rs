//! The older format: a 24-byte file header, and 16 bytes before each packet.

use std::io::Read;

use super::Interface;
use super::parts::{MOST_BYTES, Order, Place, layer_of};
use crate::WallTime;
use crate::file::{Input, ReadError};

#[derive(Debug)]
pub(super) struct Pcap {
    order: Order,
    /// Nanoseconds per unit of the sub-second part of a time stamp.
    unit: u64,
    interface: Interface,
}

impl Pcap {
    /// Reads the rest of the file header; `None` if the magic number is not pcap's.
    pub(super) fn open<R: Read>(
        magic: [u8; 4],
        input: &mut Input<R>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Self>, ReadError> {
        const MICROSECONDS: u32 = 0xa1b2_c3d4;
        const NANOSECONDS: u32 = 0xa1b2_3c4d;
        let (order, unit) = match (u32::from_be_bytes(magic), u32::from_le_bytes(magic)) {
            (MICROSECONDS, _) => (Order::Big, 1000),
            (_, MICROSECONDS) => (Order::Little, 1000),
            (NANOSECONDS, _) => (Order::Big, 1),
            (_, NANOSECONDS) => (Order::Little, 1),
            _ => return Ok(None),
        };
        input.read_all(buffer, 20, 0, "a pcap header")?;
        let major = order.short(buffer, 4);
        if major != 2 {
            return Err(input.malformed(4, format!("the version of the format is {major}; known is 2")));
        }
        // The upper bits tell whether frames include their check sequence.
        let layer = layer_of(order.long(buffer, 20) & 0xffff).map_err(|what| input.malformed(20, what))?;
        Ok(Some(Self { order, unit, interface: Interface { number: 0, layer } }))
    }

    pub(super) fn read<R: Read>(
        &self,
        input: &mut Input<R>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Place>, ReadError> {
        const WHAT: &str = "a packet with its header";
        let start = input.offset();
        buffer.clear();
        match input.read(buffer, 16)? {
            0 => return Ok(None),
            16 => {}
            _ => return Err(input.truncated(start, WHAT, 16)),
        }
        let number = |at| self.order.long(buffer, at);
        let (seconds, part, kept, length) = (number(0), number(4), number(8), number(12));
        if kept > MOST_BYTES {
            return Err(input.malformed(start, format!("a packet claims to have {kept} bytes")));
        }
        // 2^32 s and 2^32 µs are less than 2^63 ns.
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(part) * self.unit;
        buffer.clear();
        input.read_all(buffer, kept as usize, start, WHAT)?;
        Ok(Some(Place {
            instant: WallTime::from_nanos(nanos),
            interface: self.interface,
            length: length.max(kept),
            bytes: (0, buffer.len()),
            comment: None,
        }))
    }
}
