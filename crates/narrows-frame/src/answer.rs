//! Frames that the network itself sends to a host: it answers address resolution in place of the far end, and tells
//! senders of packets that are too long.

mod resolution;
mod too_big;

pub use resolution::{answer_resolution, asked_address, is_address_resolution};
pub use too_big::too_big;
