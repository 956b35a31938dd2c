//! What a sender left open in a frame.

use super::checksum::{stored, sum};

/// Where the checksum is in the header of UDP.
pub(crate) const UDP_CHECKSUM: usize = 6;

/// What is open in a frame, and how it can be joined with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Open {
    /// Where the transport header begins, from which on the sum is to be made; 0 where nothing is open.
    pub(crate) transport: u16,
    /// Where in that the sum stands. Until it is made, that of the pseudo header stands there.
    pub(crate) field: u16,
    /// The kind of the train that the frame was cut from; 0 for one that came by itself.
    pub(crate) kind: u8,
    /// Whether it is to leave as one with the frame before it.
    pub(crate) joins: bool,
    /// Where the payload of a segment begins.
    pub(crate) payload: u16,
    /// Bytes of payload in each segment of its train but the last.
    pub(crate) segment: u16,
}

impl Open {
    /// Whether there is a checksum to be made.
    pub(crate) fn is_open(self) -> bool {
        self.transport > 0
    }

    /// Makes the checksum of a frame in which it is open.
    pub(crate) fn finish(self, frame: &mut [u8]) {
        let (from, field) = (usize::from(self.transport), usize::from(self.field));
        if !self.is_open() || from + field + 2 > frame.len() {
            return;
        }
        let sum = !sum(0, &frame[from..]);
        frame[from + field..][..2].copy_from_slice(&stored(sum, field == UDP_CHECKSUM));
    }
}
