//! Losses that do not come from a full queue.

use core::fmt;

use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::Time;
use crate::units::Probability;

/// Which packets are lost. A model with state advances once for each packet that it sees.
pub trait LossModel: fmt::Debug + Send {
    /// Whether this packet is lost. `draw` has the random numbers of this packet at this link.
    fn loses(&mut self, now: Time, packet: &PacketState, draw: &mut Draw) -> bool;

    /// The share of packets lost in the long run, for estimates.
    fn mean(&self) -> f64;
}

/// Each packet is lost with the same probability, independently of the others.
#[derive(Clone, Copy, Debug)]
pub struct Independent(pub Probability);

impl LossModel for Independent {
    fn loses(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> bool {
        draw.chance(self.0)
    }

    fn mean(&self) -> f64 {
        self.0.as_f64()
    }
}
