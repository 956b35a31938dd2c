//! What all token buckets have in common.

use narrows_core::Bytes;

use crate::keys::quantity::Size;
use crate::problem::Problem;

/// A number of bytes above zero, which a bucket holds.
pub(crate) const BURST: Size = Size { low: 1, high: 1 << 32, expected: "a size from 1 byte to 4 GiB" };

/// That a bucket does not hold a packet.
pub(crate) fn below_one_packet(burst: Bytes, packet: Bytes) -> Problem {
    Problem::new(format!("a burst of {burst} is less than one packet of {packet}, which could never go"))
        .help("usual is what the rate is in 10 ms, and at least 1600 bytes")
}
