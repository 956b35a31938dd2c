//! The parts of a frame that its sender left incomplete.

use super::checksum::{stored, sum};

/// The offset of the checksum in the UDP header.
pub(crate) const UDP_CHECKSUM: usize = 6;

/// What is incomplete in a frame, and how it can be joined with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Open {
    /// The offset of the transport header, where the checksum starts; 0 if nothing is incomplete.
    pub(crate) transport: u16,
    /// The offset of the checksum in it. Until it is completed, it contains the sum of the pseudo header.
    pub(crate) field: u16,
    /// The kind of the train that the frame was split from; 0 for a single frame.
    pub(crate) kind: u8,
    /// Whether it is to be sent joined to the frame before it.
    pub(crate) joins: bool,
    /// The offset of a segment's payload.
    pub(crate) payload: u16,
    /// Bytes of payload in each segment of its train except the last.
    pub(crate) segment: u16,
}

impl Open {
    /// Whether the checksum is incomplete.
    pub(crate) fn is_open(self) -> bool {
        self.transport > 0
    }

    /// Completes the checksum of a frame.
    pub(crate) fn finish(self, frame: &mut [u8]) {
        let (from, field) = (usize::from(self.transport), usize::from(self.field));
        if !self.is_open() || from + field + 2 > frame.len() {
            return;
        }
        let sum = !sum(0, &frame[from..]);
        frame[from + field..][..2].copy_from_slice(&stored(sum, field == UDP_CHECKSUM));
    }
}
