//! Active queue management (AQM): policies that drop or mark packets before a queue is full.
//!
//! Implement [`Aqm`] to add a policy. A policy judges each packet on its way into and out of one FIFO, either in a
//! plain link ([`Fifo::managed`](crate::queue::Fifo::managed)) or in a class of a scheduler. It sees only packets
//! that wait for the transmitter, and only scheduled instants: a packet's sojourn time is `now − entered`,
//! independent of when the network is polled. Periodic work is caught up at the next call.

mod choke;
mod codel;
mod dualpi2;
#[cfg(test)]
mod harness;
mod periodic;
mod pie;
mod red;
mod sfb;

pub use crate::queue::{Aqm, AqmSettings, Judgement, Waiting};
pub use choke::{Choke, ChokeConfig};
pub use codel::{Codel, CodelConfig};
pub use dualpi2::{DualPi2, DualPi2Config, LowLatency, Sharing};
pub use pie::{MeasuredPie, Pie, PieConfig};
pub use red::{Red, RedConfig, Thresholds};
pub use sfb::{Sfb, SfbConfig};

use crate::pool::PacketState;
use crate::time::{Duration, Time};

/// The sojourn time of a packet: how long it has waited in its queue.
pub fn sojourn(now: Time, packet: &PacketState) -> Duration {
    now.since(packet.entered)
}
