//! Selectors: which packets are lost, duplicated, corrupted or skip the delay.
//!
//! Every selector has the same marginal probability at every packet, so a short run has the same expected
//! share as a long one: selectors with memory start from their stationary distribution if they have one. A
//! decision depends only on the packet's own draw and the selector's memory. The memory advances once per
//! packet seen, so losing a packet before a selector shifts its states but not its random numbers.

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

use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;

use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::Time;
use crate::units::Probability;

/// Selects packets to be lost, duplicated, corrupted or reordered. A selector with state advances once for
/// each packet that it sees.
pub trait Selector: fmt::Debug + Send {
    /// Whether this packet is selected. `draw` supplies the random numbers of this packet at this link for
    /// this purpose.
    fn selects(&mut self, now: Time, packet: &PacketState, draw: &mut Draw) -> bool;

    /// The long-run share of packets selected, for estimates.
    fn mean(&self) -> f64;

    /// The probability, if the selector is [`Independent`].
    fn independent(&self) -> Option<Probability> {
        None
    }

    /// What it is made of, if it is of a kind that [`SelectorPlan`] has, and has seen no packet yet.
    fn plan(&self) -> Option<SelectorPlan> {
        self.independent().map(SelectorPlan::Independent)
    }

    /// The mean length of runs of selected packets, if known.
    fn mean_burst(&self) -> Option<f64> {
        None
    }
}

/// What a selector is made of, for those who select the same packets elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectorPlan {
    /// [`Independent`].
    Independent(Probability),
    /// [`GilbertElliott`].
    GilbertElliott {
        /// The probability of leaving the good state, and the bad one.
        leaves: [Probability; 2],
        /// The probability of selection in the good state, and in the bad one.
        selects: [Probability; 2],
        /// The probability of starting in the bad state. `None`: it starts in the good one, without a draw.
        starts_bad: Option<Probability>,
    },
    /// A [`Pattern`] of packets.
    Pattern {
        /// After how many packets it repeats.
        length: u64,
        /// The selected places, ascending, with gaps between them.
        ranges: Arc<[Range<u64>]>,
    },
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

    fn independent(&self) -> Option<Probability> {
        Some(self.0)
    }

    /// 1/(1 − p).
    fn mean_burst(&self) -> Option<f64> {
        let some = !self.0.is_zero() && self.0 != Probability::ONE;
        some.then(|| 1.0 / (1.0 - self.mean()))
    }
}

/// Why a selector is invalid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SelectorError {
    /// A correlation that is not above −1 and below 1. At 1 the first packet would decide for all.
    Correlation(f64),
    /// The probabilities of leaving a state, p13 and p14 or p31 and p32, sum to more than 1.
    Leaves {
        /// The state's number.
        state: u8,
        /// Their sum.
        sum: f64,
    },
    /// A list without a probability.
    NoProbabilities,
    /// A pattern of zero length, or with a time unit of zero.
    NoLength,
    /// A place of a pattern beyond its length.
    BeyondLength {
        /// The place.
        place: u64,
        /// The length.
        length: u64,
    },
    /// Places of a pattern that are not in ascending order.
    NotAscending {
        /// The first one out of order.
        place: u64,
    },
    /// A bit error rate above [`BitErrors::MOST`].
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
                write!(f, "a bit error rate of {rate} is too high: at most {} is allowed", BitErrors::MOST)
            }
        }
    }
}

impl core::error::Error for SelectorError {}
