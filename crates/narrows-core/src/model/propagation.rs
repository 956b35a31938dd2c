//! The result of a delay model.

use crate::time::Duration;

/// The fate of a packet in the delay line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// It arrives this much later.
    After(Duration),
    /// It is lost.
    Lost,
    /// It waits for an answer from the link's feed with this number.
    Asked(u32),
}
