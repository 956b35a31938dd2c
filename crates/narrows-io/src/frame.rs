//! Frames: the bytes of a packet from the Ethernet header on, in reusable buffers.
//!
//! A frame stays with its owner as long as the network delays it, so it is in a buffer of a suitable size class (a
//! 64-byte packet that waits a second should not occupy two kilobytes). A [`FramePool`] keeps the buffers of finished
//! frames: in the steady state no packet needs an allocation.
//!
//! A frame from an AF_XDP socket stays where the kernel put it ([`crate::xdp`]) as long as there is room.

pub(crate) mod checksum;
pub(crate) mod open;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use self::open::Open;
use crate::umem::{Chunk, Umem};

/// The bytes of one packet, from the Ethernet header on, without the frame check sequence.
///
/// With trains, its transport checksum may be incomplete: see [`Frame::finish`].
#[derive(Debug, Default)]
pub struct Frame {
    bytes: Bytes,
    /// Its incomplete parts.
    pub(crate) open: Open,
}

/// The location of the bytes.
#[derive(Debug)]
enum Bytes {
    /// In a buffer of ours.
    Buffer(Vec<u8>),
    /// In memory shared with the kernel.
    Chunk(Chunk),
}

impl Default for Bytes {
    fn default() -> Self {
        Self::Buffer(Vec::new())
    }
}

impl Frame {
    /// Computes the transport checksum if it is incomplete. Call it before changing anything that the checksum
    /// covers; changes of the network header leave it incomplete.
    pub fn finish(&mut self) {
        let open = std::mem::take(&mut self.open);
        open.finish(self);
    }

    /// Its bytes as on the wire: if its checksum is incomplete, a copy in `room` with the checksum completed.
    pub fn on_the_wire<'a>(&'a self, room: &'a mut Vec<u8>) -> &'a [u8] {
        if !self.open.is_open() {
            return self;
        }
        room.clear();
        room.extend_from_slice(self);
        self.open.finish(room);
        room
    }

    /// Whether its transport checksum is incomplete.
    pub fn is_open(&self) -> bool {
        self.open.is_open()
    }

    /// Whether it was sent joined to the frame before it.
    pub fn was_joined(&self) -> bool {
        self.open.joins
    }

    /// Whether it is in memory shared with the kernel.
    pub fn is_shared(&self) -> bool {
        matches!(self.bytes, Bytes::Chunk(_))
    }

    /// Takes the frame's memory, if that is a chunk of `umem`; the frame is then empty.
    pub(crate) fn take_chunk(&mut self, umem: &Arc<Umem>) -> Option<Chunk> {
        match &self.bytes {
            Bytes::Chunk(chunk) if chunk.is_of(umem) => match std::mem::take(&mut self.bytes) {
                Bytes::Chunk(chunk) => Some(chunk),
                Bytes::Buffer(_) => None,
            },
            _ => None,
        }
    }
}

impl From<Chunk> for Frame {
    fn from(chunk: Chunk) -> Self {
        Self { bytes: Bytes::Chunk(chunk), open: Open::default() }
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Buffer(bytes) => bytes,
            Bytes::Chunk(chunk) => chunk,
        }
    }
}

impl DerefMut for Frame {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.bytes {
            Bytes::Buffer(bytes) => bytes,
            Bytes::Chunk(chunk) => chunk,
        }
    }
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Frame {}

impl AsMut<Self> for Frame {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Buffers of finished frames, for reuse.
#[derive(Debug)]
pub struct FramePool {
    /// By size class: the n-th holds buffers of `SMALLEST << n` bytes.
    classes: [Vec<Vec<u8>>; CLASSES],
    retained: usize,
    retain_at_most: usize,
}

/// The smallest buffer: a TCP acknowledgement and most voice packets fit it.
const SMALLEST: usize = 128;
/// 128 bytes to 128 KiB: the largest holds the largest packet there is, 64 KiB and its headers.
const CLASSES: usize = 11;

impl FramePool {
    /// A pool that keeps at most this many bytes of unused buffers; buffers beyond that are freed.
    pub fn new(retain_at_most: usize) -> Self {
        Self { classes: Default::default(), retained: 0, retain_at_most }
    }

    /// A frame with these bytes.
    pub fn frame(&mut self, bytes: &[u8]) -> Frame {
        self.joined(&[bytes])
    }

    /// A frame with the concatenated bytes of all parts.
    pub fn joined(&mut self, parts: &[&[u8]]) -> Frame {
        let length = parts.iter().map(|part| part.len()).sum();
        let mut bytes = self.take(length);
        for part in parts {
            bytes.extend_from_slice(part);
        }
        Frame { bytes: Bytes::Buffer(bytes), open: Open::default() }
    }

    /// A frame that replaces another, differing at most in the network header: an incomplete checksum stays
    /// incomplete.
    pub fn instead_of(&mut self, other: &Frame, bytes: &[u8]) -> Frame {
        let mut frame = self.frame(bytes);
        frame.open = other.open;
        frame.open.joins = false;
        frame
    }

    /// Takes back the buffer of a finished frame. A frame that is dropped instead frees its buffer. A chunk shared
    /// with the kernel becomes free either way.
    pub fn recycle(&mut self, frame: Frame) {
        let Bytes::Buffer(mut bytes) = frame.bytes else { return };
        let capacity = bytes.capacity();
        let class = class_of(capacity);
        let fits = class < CLASSES && capacity == SMALLEST << class;
        if fits && self.retained + capacity <= self.retain_at_most {
            bytes.clear();
            self.retained += capacity;
            self.classes[class].push(bytes);
        }
    }

    /// Bytes of unused buffers in the pool.
    pub fn retained(&self) -> usize {
        self.retained
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let class = class_of(length);
        match self.classes.get_mut(class).and_then(Vec::pop) {
            Some(buffer) => {
                self.retained -= buffer.capacity();
                buffer
            }
            None => Vec::with_capacity(SMALLEST << class),
        }
    }
}

impl Default for FramePool {
    /// Keeps up to 64 MiB: a 10 Gbit/s stream delayed by 50 ms.
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

/// The class of the smallest buffer that holds `length` bytes; beyond the largest, a class that is not kept.
fn class_of(length: usize) -> usize {
    let power = length.max(SMALLEST).next_power_of_two();
    (power / SMALLEST).trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycled_buffer_is_used_again() {
        let mut pool = FramePool::default();
        let frame = pool.joined(&[b"ab", b"", b"cde"]);
        assert_eq!(&frame[..], b"abcde");
        let address = frame.as_ptr();
        pool.recycle(frame);
        assert_eq!(pool.retained(), SMALLEST);
        let again = pool.frame(&[7; 128]);
        assert_eq!(again.as_ptr(), address);
        assert_eq!(again.len(), 128);
        assert_eq!(pool.retained(), 0);
    }

    #[test]
    fn sizes_have_their_classes() {
        for (length, class) in [(0, 0), (128, 0), (129, 1), (1514, 4), (2048, 4), (9018, 7), (65_554, 10)] {
            assert_eq!(class_of(length), class, "{length}");
        }
        let mut pool = FramePool::default();
        let huge = pool.frame(&vec![0; 600_000]);
        pool.recycle(huge);
        assert_eq!(pool.retained(), 0, "beyond the largest class nothing is kept");
    }

    #[test]
    fn the_pool_keeps_no_more_than_told() {
        let mut pool = FramePool::new(3 * SMALLEST);
        let frames: Vec<_> = (0..10).map(|_| pool.frame(b"x")).collect();
        frames.into_iter().for_each(|frame| pool.recycle(frame));
        assert_eq!(pool.retained(), 3 * SMALLEST);
    }
}
