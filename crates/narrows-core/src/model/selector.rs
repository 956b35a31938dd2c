//! Which packets something happens to: a loss, a duplicate, a flipped bit, a skipped delay.
//!
//! Every selector has the same marginal at every packet, so that a short run has the share that a long one has: those
//! with a memory start from their stationary law where they have one. Their memory is the only thing beside the
//! packet's own draw that decides, and it advances once for each packet seen, so that a packet less before a selector
//! shifts its states though not its random numbers.

mod bit_errors;
mod conditional;
mod correlated;
mod four_state;
mod gilbert_elliott;
mod loss;
mod pattern;

pub use bit_errors::BitErrors;
pub use conditional::Conditional;
pub use correlated::Correlated;
pub use four_state::{FourState, Transitions};
pub use gilbert_elliott::GilbertElliott;
pub use loss::Loss;
pub use pattern::{BitPattern, Pattern, Per};

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

    /// How many packets are selected in a row on average, where that is known: of the runs of at least one.
    fn mean_burst(&self) -> Option<f64> {
        None
    }
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

    /// 1/(1 − p).
    fn mean_burst(&self) -> Option<f64> {
        let some = !self.0.is_zero() && self.0 != Probability::ONE;
        some.then(|| 1.0 / (1.0 - self.mean()))
    }
}

/// Why a selector cannot be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SelectorError {
    /// A correlation that is not above −1 and below 1. At 1 the first packet would decide for all.
    Correlation(f64),
    /// The probabilities of leaving a state, p13 and p14 or p31 and p32, sum to more than 1.
    Leaves {
        /// The state's number.
        state: u8,
        /// What they sum to.
        sum: f64,
    },
    /// A list without a probability.
    NoProbabilities,
    /// A pattern of no length, or in units of no time.
    NoLength,
    /// A place of a pattern that lies beyond its length.
    BeyondLength {
        /// The place.
        place: u64,
        /// The length.
        length: u64,
    },
    /// Places of a pattern that do not ascend.
    NotAscending {
        /// The first that does not.
        place: u64,
    },
    /// A rate of bit errors above [`BitErrors::MOST`].
    BitErrors(Probability),
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Correlation(rho) => write!(f, "a correlation of {rho}: it must be above -1 and below 1"),
            Self::Leaves { state, sum } => {
                // Without the last bits of a sum of doubles.
                let sum = libm::round(sum * 1e9) / 1e9;
                write!(
                    f,
                    "the probabilities of leaving state {state} sum to {sum}: no more than 1 is possible"
                )
            }
            Self::NoProbabilities => f.write_str("a list without a probability"),
            Self::NoLength => f.write_str("a pattern without a length"),
            Self::BeyondLength { place, length } => {
                write!(f, "place {place} of a pattern of length {length}: the last is {}", length - 1)
            }
            Self::NotAscending { place } => write!(f, "place {place} comes after a later one"),
            Self::BitErrors(rate) => {
                write!(f, "a bit error rate of {rate}: no more than {} is taken", BitErrors::MOST)
            }
        }
    }
}

impl core::error::Error for SelectorError {}
