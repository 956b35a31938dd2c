//! Which packets something happens to: a loss, a duplicate, a flipped bit, a skipped delay.

use core::fmt;

use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::Time;
use crate::units::Probability;

/// Selects packets: those that are lost, duplicated, corrupted or reordered. A selector with state advances once for
/// each packet that it sees.
pub trait Selector: fmt::Debug + Send {
    /// Whether this packet is selected. `draw` has the random numbers of this packet at this link for this purpose.
    fn selects(&mut self, now: Time, packet: &PacketState, draw: &mut Draw) -> bool;

    /// The share of packets selected in the long run, for estimates.
    fn mean(&self) -> f64;
}

/// Each packet with the same probability, independently of the others.
#[derive(Clone, Copy, Debug)]
pub struct Independent(pub Probability);

impl Selector for Independent {
    fn selects(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> bool {
        draw.chance(self.0)
    }

    fn mean(&self) -> f64 {
        self.0.as_f64()
    }
}
