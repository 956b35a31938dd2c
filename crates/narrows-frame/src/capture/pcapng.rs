//! The newer format: blocks, each with its type at the start and its length at both ends.
//!
//! The crate `pcap-parser` would replace this file but is not used: its version 0.17 rejects time stamps in powers of
//! two, reads an interface's time offset in the wrong byte order, and cannot report where in the file an error is.

use std::io::Read;

use super::Interface;
use super::parts::{MOST_BYTES, Order, Place, layer_of};
use crate::WallTime;
use crate::bytes::byte;
use crate::file::{Input, ReadError};

#[derive(Debug)]
pub(super) struct PcapNg {
    order: Order,
    /// All interfaces of the file so far; those of the current section start at `section`.
    pub(super) interfaces: Vec<InterfaceDescription>,
    section: usize,
}

/// What the file says about an interface.
#[derive(Debug)]
pub(super) struct InterfaceDescription {
    link_type: u32,
    name: Option<String>,
    clock: Clock,
}

impl InterfaceDescription {
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// How to interpret an interface's time stamps.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Units per second.
    resolution: u128,
    /// Seconds from 1970 to time stamp 0.
    offset: i64,
}

/// Block types.
pub(super) mod block {
    pub(in crate::capture) const SECTION: u32 = 0x0a0d_0d0a;
    pub(in crate::capture) const INTERFACE: u32 = 1;
    pub(in crate::capture) const OLD_PACKET: u32 = 2;
    pub(in crate::capture) const SIMPLE_PACKET: u32 = 3;
    pub(in crate::capture) const PACKET: u32 = 6;
}

/// Option codes, by the blocks that they occur in.
pub(super) mod option {
    pub(in crate::capture) const END: u16 = 0;
    pub(in crate::capture) const COMMENT: u16 = 1;
    pub(in crate::capture) const NAME: u16 = 2;
    pub(in crate::capture) const USER_APPLICATION: u16 = 4;
    pub(in crate::capture) const RESOLUTION: u16 = 9;
    pub(in crate::capture) const OFFSET: u16 = 14;
}

/// The byte-order magic of a section, read in its own byte order.
pub(super) const MAGIC_OF_ORDER: u32 = 0x1a2b_3c4d;

/// More interfaces than a sane file has.
const MOST_INTERFACES: usize = 1 << 16;

const BLOCK: &str = "a block";
const TYPE_AND_LENGTH: usize = 8;

impl PcapNg {
    /// A section header's type, the same in both byte orders.
    pub(super) const MAGIC: [u8; 4] = block::SECTION.to_be_bytes();

    /// Reads the rest of the first section header, whose type is already in the buffer.
    pub(super) fn open<R: Read>(input: &mut Input<R>, buffer: &mut Vec<u8>) -> Result<Self, ReadError> {
        let mut file = Self { order: Order::Little, interfaces: Vec::new(), section: 0 };
        input.read_all(buffer, 4, 0, BLOCK)?;
        file.begin_section(input, buffer, 0)?;
        Ok(file)
    }

    pub(super) fn read<R: Read>(
        &mut self,
        input: &mut Input<R>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Place>, ReadError> {
        loop {
            let start = input.offset();
            buffer.clear();
            match input.read(buffer, TYPE_AND_LENGTH)? {
                0 => return Ok(None),
                TYPE_AND_LENGTH => {}
                _ => return Err(input.truncated(start, BLOCK, 12)),
            }
            match self.order.long(buffer, 0) {
                block::SECTION => self.begin_section(input, buffer, start)?,
                block::INTERFACE => {
                    self.read_body(input, buffer, start, 8)?;
                    self.add_interface(input, buffer, start)?;
                }
                kind @ (block::PACKET | block::OLD_PACKET) => {
                    self.read_body(input, buffer, start, 20)?;
                    return self.packet(input, buffer, start, kind).map(Some);
                }
                block::SIMPLE_PACKET => {
                    let what = "a simple packet block, whose packet has no instant";
                    return Err(input.malformed(start, what));
                }
                _ => self.skip(input, buffer, start)?,
            }
        }
    }

    /// Reads the rest of a section header, whose type is already in the buffer, and, while the byte order is unknown,
    /// the length.
    fn begin_section<R: Read>(
        &mut self,
        input: &mut Input<R>,
        buffer: &mut Vec<u8>,
        start: u64,
    ) -> Result<(), ReadError> {
        input.read_all(buffer, 4, start, BLOCK)?;
        self.order = match (Order::Big.long(buffer, 8), Order::Little.long(buffer, 8)) {
            (MAGIC_OF_ORDER, _) => Order::Big,
            (_, MAGIC_OF_ORDER) => Order::Little,
            (found, _) => {
                let what = format!("a section's mark of its byte order is {found:08x}");
                return Err(input.malformed(start + 8, what));
            }
        };
        self.read_body(input, buffer, start, 16)?;
        let major = self.order.short(buffer, 12);
        if major != 1 {
            let what = format!("the version of the format is {major}; known is 1");
            return Err(input.malformed(start + 12, what));
        }
        self.section = self.interfaces.len();
        Ok(())
    }

    /// Reads a block to its end, appending to what the buffer already has. The body has `least` bytes at least.
    fn read_body<R: Read>(
        &self,
        input: &mut Input<R>,
        buffer: &mut Vec<u8>,
        start: u64,
        least: u32,
    ) -> Result<(), ReadError> {
        let length = self.length(input, buffer, start)?;
        if !(12 + least..=MOST_BYTES).contains(&length) {
            return Err(input.malformed(start, format!("a block claims to have {length} bytes")));
        }
        input.read_all(buffer, length as usize - buffer.len(), start, BLOCK)?;
        self.check_end(input, buffer, start, length)?;
        buffer.truncate(length as usize - 4);
        Ok(())
    }

    /// Skips a block whose type and length are already in the buffer.
    fn skip<R: Read>(&self, input: &mut Input<R>, buffer: &mut Vec<u8>, start: u64) -> Result<(), ReadError> {
        let length = self.length(input, buffer, start)?;
        let body = u64::from(length) - 12;
        if input.skip(body)? < body {
            return Err(input.truncated(start, BLOCK, u64::from(length)));
        }
        input.read_all(buffer, 4, start, BLOCK)?;
        self.check_end(input, buffer, start, length)
    }

    fn length<R: Read>(&self, input: &Input<R>, buffer: &[u8], start: u64) -> Result<u32, ReadError> {
        let length = self.order.long(buffer, 4);
        if length < 12 || !length.is_multiple_of(4) {
            return Err(input.malformed(start, format!("a block claims to have {length} bytes")));
        }
        Ok(length)
    }

    /// Checks that the block's trailing length matches the leading one.
    fn check_end<R: Read>(
        &self,
        input: &Input<R>,
        buffer: &[u8],
        start: u64,
        length: u32,
    ) -> Result<(), ReadError> {
        let again = self.order.long(buffer, buffer.len() - 4);
        if again != length {
            let what = format!("a block has {length} bytes by its start and {again} by its end");
            return Err(input.malformed(start, what));
        }
        Ok(())
    }

    fn add_interface<R: Read>(
        &mut self,
        input: &Input<R>,
        buffer: &[u8],
        start: u64,
    ) -> Result<(), ReadError> {
        if self.interfaces.len() == MOST_INTERFACES {
            return Err(input.malformed(start, "too many interfaces"));
        }
        let link_type = u32::from(self.order.short(buffer, 8));
        let mut interface =
            InterfaceDescription { link_type, name: None, clock: Clock { resolution: 1_000_000, offset: 0 } };
        for (kind, (from, to)) in self.options(buffer, 16) {
            let value = &buffer[from..to];
            match (kind, byte(value, 0)) {
                (option::NAME, _) => interface.name = str::from_utf8(value).ok().map(Into::into),
                (option::RESOLUTION, Some(exponent)) => {
                    interface.clock.resolution = resolution(exponent).ok_or_else(|| {
                        input.malformed(start, format!("a resolution of time stamps of {exponent:#04x}"))
                    })?;
                }
                (option::OFFSET, _) if value.len() == 8 => {
                    let (first, second) = (self.order.long(value, 0), self.order.long(value, 4));
                    let (high, low) = match self.order {
                        Order::Big => (first, second),
                        Order::Little => (second, first),
                    };
                    interface.clock.offset = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn packet<R: Read>(
        &self,
        input: &Input<R>,
        buffer: &[u8],
        start: u64,
        kind: u32,
    ) -> Result<Place, ReadError> {
        const PACKET: usize = TYPE_AND_LENGTH + 20;
        let number = |at| self.order.long(buffer, at);
        let local = match kind {
            block::PACKET => number(8) as usize,
            _ => usize::from(self.order.short(buffer, 8)),
        };
        let interface = self.section.checked_add(local);
        let Some((number_in_file, interface)) = interface.and_then(|at| Some((at, self.interfaces.get(at)?)))
        else {
            return Err(
                input.malformed(start, format!("a packet of interface {local}, which was not described"))
            );
        };
        let layer = layer_of(interface.link_type).map_err(|what| input.malformed(start, what))?;
        let stamp = u64::from(number(12)) << 32 | u64::from(number(16));
        let instant = interface.clock.instant(stamp).ok_or_else(|| {
            input.malformed(start, format!("a time stamp of {stamp}, which is not between 1970 and 2554"))
        })?;
        let (kept, length) = (number(20), number(24));
        let end = PACKET.saturating_add(kept as usize);
        if end > buffer.len() {
            let what = format!("a packet claims to have {kept} bytes, more than its block");
            return Err(input.malformed(start, what));
        }
        let comment = self
            .options(buffer, end.next_multiple_of(4))
            .find(|(kind, _)| *kind == option::COMMENT)
            .map(|(_, place)| place);
        Ok(Place {
            instant,
            interface: Interface { number: number_in_file as u32, layer },
            length: length.max(kept),
            bytes: (PACKET, end),
            comment,
        })
    }

    /// The options from `at` on and the positions of their values, until the end-of-options mark or something that is
    /// not an option.
    fn options<'a>(
        &self,
        buffer: &'a [u8],
        mut at: usize,
    ) -> impl Iterator<Item = (u16, (usize, usize))> + 'a {
        let order = self.order;
        std::iter::from_fn(move || {
            let rest = buffer.get(at..).filter(|rest| rest.len() >= 4)?;
            let (kind, length) = (order.short(rest, 0), usize::from(order.short(rest, 2)));
            let (from, to) = (at + 4, at + 4 + length);
            if kind == option::END || to > buffer.len() {
                return None;
            }
            at = to.next_multiple_of(4);
            Some((kind, (from, to)))
        })
    }
}

/// Units per second: a power of ten, or of two if the top bit is set. Resolutions finer than 10⁻¹⁹ or 2⁻⁶³ seconds,
/// at which 64 bits span less than two seconds, are rejected.
fn resolution(exponent: u8) -> Option<u128> {
    match (exponent & 0x80, u32::from(exponent & 0x7f)) {
        (0, power @ 0..=19) => Some(10_u128.pow(power)),
        (0x80, power @ 0..=63) => Some(1 << power),
        _ => None,
    }
}

impl Clock {
    /// The instant of a time stamp, rounded down to a nanosecond; `None` if out of range.
    fn instant(self, stamp: u64) -> Option<WallTime> {
        // 2^64 times 10^9 is less than 2^94, and so is the offset in nanoseconds.
        let since = u128::from(stamp) * 1_000_000_000 / self.resolution;
        let nanos = since as i128 + i128::from(self.offset) * 1_000_000_000;
        u64::try_from(nanos).ok().map(WallTime::from_nanos)
    }
}
