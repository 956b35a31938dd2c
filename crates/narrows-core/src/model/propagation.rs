//! What delay models answer.

use crate::time::Duration;

/// What becomes of a packet in the delay line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// It arrives this much later.
    After(Duration),
    /// It is lost.
    Lost,
    /// It waits for an answer from the feed of this number in the link.
    Asked(u32),
}
