//! Common to all token buckets.

use narrows_core::Bytes;

use crate::keys::quantity::Size;
use crate::problem::Problem;

/// Bucket size in bytes, above zero.
pub(crate) const BURST: Size = Size { low: 1, high: 1 << 32, expected: "a size from 1 byte to 4 GiB" };

/// The problem with a bucket too small for one packet.
pub(crate) fn below_one_packet(burst: Bytes, packet: Bytes) -> Problem {
    Problem::new(format!("a burst of {burst} is less than one packet of {packet}, which could never go"))
        .help("usual is what the rate is in 10 ms, and at least 1600 bytes")
}
