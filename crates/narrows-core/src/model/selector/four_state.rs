//! Burst and isolated losses: the four-state Markov chain of Salsano, Ludovici, Ordine and Giannuzzi
//! ("Definition of a general and intuitive loss model for packet networks", 2012), NetEm's `loss state`.
//!
//! ```text
//! 1 got through, in a gap      1 → 3: p13   1 → 4: p14
//! 2 got through, in a burst    2 → 3: p23
//! 3 lost, in a burst           3 → 1: p31   3 → 2: p32
//! 4 lost alone, in a gap       4 → 1: always
//! ```
//!
//! A packet's fate is the state in which it finds the chain. The long-run shares of the states are in the
//! proportions `π₁ : π₂ : π₃ : π₄ = p31·p23 : p13·p32 : p13·p23 : p14·p31·p23`. The share lost is π₃ + π₄. A
//! run of losses has `(π₃ + π₄)/(π₃·(p31 + p32) + π₄)` packets on average, a run of received packets
//! `(π₁ + π₂)/(π₃·(p31 + p32) + π₄)`.
//!
//! If the chain can enter a burst (p13 above 0) and always returns from it to a gap, the first packet finds a
//! state with its long-run share; otherwise the chain starts in state 1, as in NetEm. In the kernel's code a
//! packet's fate is the state that it moves the chain *to*, which differs only for the first packet.
//!
//! ```
//! use narrows_core::Probability;
//! use narrows_core::model::selector::{FourState, Selector, Transitions};
//!
//! let percent = |n| Probability::from_ratio(n, 100).unwrap();
//! let simple = Transitions { p13: percent(1), p31: percent(25), p23: percent(100), ..Transitions::default() };
//! assert_eq!(FourState::new(simple)?.mean_burst(), Some(4.0));
//! # Ok::<(), narrows_core::model::selector::SelectorError>(())
//! ```

use super::{Selector, SelectorError};
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::Time;
use crate::units::Probability;

/// The transition probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transitions {
    /// From a gap into a burst.
    pub p13: Probability,
    /// From a loss in a burst back into a gap.
    pub p31: Probability,
    /// From a loss in a burst to a received packet in the burst.
    pub p32: Probability,
    /// From a received packet in a burst to the next loss in the burst.
    pub p23: Probability,
    /// From a gap to an isolated loss.
    pub p14: Probability,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Gap,
    ThroughBurst,
    Burst,
    Single,
}

/// The four-state Markov chain.
#[derive(Clone, Debug)]
pub struct FourState {
    transitions: Transitions,
    /// p13 + p14 and p31 + p32.
    leave_gap: Probability,
    leave_burst: Probability,
    state: State,
    /// The cumulative shares of states 1, 1 to 2, and 1 to 3, until the first packet has found its state.
    start: Option<[Probability; 3]>,
}

impl FourState {
    /// The chain with these transitions.
    ///
    /// # Errors
    /// If p13 + p14 or p31 + p32 is more than 1.
    pub fn new(transitions: Transitions) -> Result<Self, SelectorError> {
        let Transitions { p13, p31, p32, p14, p23 } = transitions;
        let sum = |state, a: Probability, b: Probability| {
            let sum = a.as_f64() + b.as_f64();
            a.plus(b).ok_or(SelectorError::Leaves { state, sum })
        };
        let (leave_gap, leave_burst) = (sum(1, p13, p14)?, sum(3, p31, p32)?);
        let mut this = Self { transitions, leave_gap, leave_burst, state: State::Gap, start: None };
        let comes_back = !p31.is_zero() && (p32.is_zero() || !p23.is_zero());
        if comes_back && !p13.is_zero() {
            let [gap, through, burst, _] = this.shares();
            let ends = [gap, gap + through, gap + through + burst];
            this.start = Some(ends.map(Probability::nearest));
        }
        Ok(this)
    }

    /// π₁ to π₄ of the states reachable from state 1.
    fn shares(&self) -> [f64; 4] {
        let Transitions { p13, p31, p32, p23, p14 } = self.transitions;
        let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(Probability::as_f64);
        let shares = if p13 == 0.0 {
            [1.0, 0.0, 0.0, p14]
        } else if p32 == 0.0 {
            [p31, 0.0, p13, p14 * p31]
        } else {
            // If p23 is zero, only state 2 remains in the long run.
            [p31 * p23, p13 * p32, p13 * p23, p14 * p31 * p23]
        };
        let sum: f64 = shares.iter().sum();
        shares.map(|share| share / sum)
    }

    /// The share of packets that are lost and followed by a received one.
    fn ends_of_bursts(&self) -> f64 {
        let [_, _, burst, single] = self.shares();
        burst * self.leave_burst.as_f64() + single
    }
}

impl Selector for FourState {
    fn selects(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> bool {
        let (moves, Transitions { p32, p23, p14, .. }) = (draw.bits(), self.transitions);
        if let Some(ends) = self.start.take() {
            let found = draw.bits();
            let states = [State::Gap, State::ThroughBurst, State::Burst];
            let below = states.into_iter().zip(ends).find(|(_, end)| end.decides(found));
            self.state = below.map_or(State::Single, |(state, _)| state);
        }
        let found = self.state;
        self.state = match found {
            State::Gap if p14.decides(moves) => State::Single,
            State::Gap if self.leave_gap.decides(moves) => State::Burst,
            State::ThroughBurst if p23.decides(moves) => State::Burst,
            State::Burst if p32.decides(moves) => State::ThroughBurst,
            State::Burst if self.leave_burst.decides(moves) => State::Gap,
            State::Single => State::Gap,
            stays => stays,
        };
        matches!(found, State::Burst | State::Single)
    }

    fn mean(&self) -> f64 {
        let [_, _, burst, single] = self.shares();
        burst + single
    }

    fn mean_burst(&self) -> Option<f64> {
        let ends = self.ends_of_bursts();
        (ends > 0.0).then(|| self.mean() / ends)
    }
}
