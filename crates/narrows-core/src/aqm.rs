//! Queue management: policies that drop or mark packets before a queue is full.
//!
//! [`Aqm`] is an open seam: a policy looks at packets on their way into and out of one FIFO, in a plain link
//! ([`Fifo::managed`](crate::queue::Fifo::managed)) or in a class of a scheduler, and judges each. It sees only what
//! waits for the transmitter, and scheduled instants only: how long a packet has waited is `now − entered`, whoever
//! polled whenever. What happens periodically is caught up at the next call.

mod codel;
mod dualpi2;
#[cfg(test)]
mod harness;
mod periodic;
mod pie;
mod red;

pub use crate::queue::{Aqm, Judgement, Waiting};
pub use codel::{Codel, CodelConfig};
pub use dualpi2::{DualPi2, DualPi2Config, LowLatency, Sharing};
pub use pie::{Pie, PieConfig};
pub use red::{Red, RedConfig, Thresholds};

use crate::pool::PacketState;
use crate::time::{Duration, Time};

/// How long a packet has waited in its queue.
pub fn sojourn(now: Time, packet: &PacketState) -> Duration {
    now.since(packet.entered)
}
