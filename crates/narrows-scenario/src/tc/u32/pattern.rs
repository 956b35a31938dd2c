//! What `u32` compares: bits at offsets from the network header, which must have certain values.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::problem::Problem;

/// Bytes by their offset from the network header: which bits count, and their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pattern(BTreeMap<i32, (u8, u8)>);

/// Bits of a field that count, and their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tc) struct Field {
    pub(in crate::tc) mask: u32,
    pub(in crate::tc) value: u32,
}

impl Pattern {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the bits of a field of `bytes` bytes; returns whether a packet can still match.
    pub(super) fn add(&mut self, at: i32, bytes: u8, field: Field) -> bool {
        let mut possible = true;
        for index in 0..i32::from(bytes) {
            let shift = 8 * (i32::from(bytes) - 1 - index);
            let (mask, value) = ((field.mask >> shift) as u8, (field.value >> shift) as u8);
            if mask == 0 {
                continue;
            }
            let there = self.0.entry(at + index).or_default();
            possible &= (there.1 ^ value) & there.0 & mask == 0;
            *there = (there.0 | mask, there.1 | value & mask);
        }
        possible
    }

    /// Takes the field of `bytes` bytes at an offset; `None` if none of its bits counts.
    pub(super) fn take(&mut self, at: i32, bytes: u8) -> Option<Field> {
        let mut field = Field { mask: 0, value: 0 };
        for index in 0..i32::from(bytes) {
            let (mask, value) = self.0.remove(&(at + index)).unwrap_or_default();
            field =
                Field { mask: field.mask << 8 | u32::from(mask), value: field.value << 8 | u32::from(value) };
        }
        (field.mask != 0).then_some(field)
    }

    /// The offset of a byte that is left.
    pub(super) fn left(&self) -> Option<i32> {
        self.0.keys().next().copied()
    }
}

/// The most ranges that a mask may stand for.
const MOST_RANGES: u32 = 256;

impl Field {
    /// The numbers of 16 bits that have these bits, as ranges.
    pub(super) fn ranges(self) -> Result<Vec<RangeInclusive<u16>>, Problem> {
        let (mask, value) = (self.mask as u16, self.value as u16);
        if mask == 0 {
            return Ok(vec![0..=u16::MAX]);
        }
        let run = (1_u32 << mask.trailing_zeros()) as u16;
        // Each bit above the lowest one that does not count doubles the ranges.
        let free: Vec<u16> =
            (0..16).map(|bit| 1 << bit).filter(|bit| *bit >= run && mask & bit == 0).collect();
        if 1_u32.checked_shl(free.len() as u32).is_none_or(|count| count > MOST_RANGES) {
            return Err(Problem::new(format!(
                "the mask {mask:#06x} stands for more than {MOST_RANGES} ranges"
            ))
            .help("use a mask with leading ones, such as 0xffff or 0xfff0, or several filters"));
        }
        let mut all = vec![value & mask];
        for bit in free {
            let more: Vec<u16> = all.iter().map(|low| low | bit).collect();
            all.extend(more);
        }
        Ok(all.into_iter().map(|low| low..=low | (run - 1)).collect())
    }

    /// The numbers of 8 bits that have these bits, as ranges.
    pub(super) fn byte_ranges(self) -> Result<Vec<RangeInclusive<u8>>, Problem> {
        let ranges = Self { mask: self.mask << 8 | 0xff, value: self.value << 8 }.ranges()?;
        Ok(ranges.into_iter().map(|range| (range.start() >> 8) as u8..=(range.end() >> 8) as u8).collect())
    }

    /// The number of 8 bits, if all of them count.
    pub(super) fn whole_byte(self) -> Option<u8> {
        (self.mask == 0xff).then_some(self.value as u8)
    }
}
