//! Losses that come in bursts and singly: the four-state Markov chain of Salsano, Ludovici, Ordine and Giannuzzi
//! ("Definition of a general and intuitive loss model for packet networks", 2012), which NetEm has as `loss state`.
//!
//! ```text
//! 1 got through, in a gap      1 → 3: p13   1 → 4: p14
//! 2 got through, in a burst    2 → 3: p23
//! 3 lost, in a burst           3 → 1: p31   3 → 2: p32
//! 4 lost alone, in a gap       4 → 1: always
//! ```
//!
//! A packet's fate is the state in which it finds the chain. In the long run the states have shares in the proportions
//! `π₁ : π₂ : π₃ : π₄ = p31·p23 : p13·p32 : p13·p23 : p14·p31·p23`; the share lost is π₃ + π₄, a run of losses has
//! `(π₃ + π₄)/(π₃·(p31 + p32) + π₄)` packets on average and one of packets that get through has
//! `(π₁ + π₂)/(π₃·(p31 + p32) + π₄)`.
//!
//! The first packet finds a state with its share in the long run, where every state that can be reached can be left for
//! good; otherwise it is counted from state 1 on, as in NetEm. In the kernel's code a packet's fate is the state that it
//! moves the chain *to*, which is the same but for the first packet.
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

/// The probabilities of going from one state to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transitions {
    /// From a gap into a burst.
    pub p13: Probability,
    /// From a loss in a burst back into a gap.
    pub p31: Probability,
    /// From a loss in a burst to a packet that gets through there.
    pub p32: Probability,
    /// From a packet that gets through in a burst to the next loss there.
    pub p23: Probability,
    /// From a gap to a single loss.
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
    /// The shares of states 1, 1 and 2, and 1 to 3, until a packet has found one.
    start: Option<[Probability; 3]>,
}

impl FourState {
    /// The chain with these transitions.
    ///
    /// # Errors
    /// When p13 + p14 or p31 + p32 is more than 1.
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

    /// π₁ to π₄ of what can be reached from state 1.
    fn shares(&self) -> [f64; 4] {
        let Transitions { p13, p31, p32, p23, p14 } = self.transitions;
        let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(Probability::as_f64);
        let shares = if p13 == 0.0 {
            [1.0, 0.0, 0.0, p14]
        } else if p32 == 0.0 {
            [p31, 0.0, p13, p14 * p31]
        } else {
            // Where p23 is zero all that is left in the end is state 2.
            [p31 * p23, p13 * p32, p13 * p23, p14 * p31 * p23]
        };
        let sum: f64 = shares.iter().sum();
        shares.map(|share| share / sum)
    }

    /// The share of packets that are lost and followed by one that is not.
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
