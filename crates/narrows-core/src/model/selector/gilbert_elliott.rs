//! Burst losses: the channel of Gilbert (1960) and Elliott (1963).
//!
//! Two states, good and bad. A packet is lost with the probability of the current state, then the state
//! changes: from good to bad with probability p, back with probability r. Elliott writes k and h for the
//! probabilities that a packet is received in the good and the bad state. NetEm's `loss gemodel p r 1-h 1-k`
//! is this model; Gilbert's channel has k = 1; with h = 0 as well, it is the "simple Gilbert" channel.
//!
//! With g = 1 − k and b = 1 − h the probabilities of loss in the two states, and the stationary shares π_G =
//! r/(p + r) and π_B = p/(p + r) of packets that find them:
//! - the share lost is `m = π_G·g + π_B·b`,
//! - two in a row are lost with probability `m₂ = π_G·g·((1 − p)·g + p·b) + π_B·b·(r·g + (1 − r)·b)`,
//! - a run of losses has `m/(m − m₂)` packets on average, a run of received packets `(1 − m)/(m − m₂)`.
//!
//! With g = 0 and b = 1 these are p/(p + r), 1/r and 1/p, and both kinds of run are geometric.
//!
//! The first packet finds either state with its stationary share. If p or r is zero, the chain starts in the
//! good state, as in NetEm.
//!
//! ```
//! use narrows_core::Probability;
//! use narrows_core::model::selector::{GilbertElliott, Selector};
//!
//! let percent = |n| Probability::from_ratio(n, 100).unwrap();
//! let loss = GilbertElliott::new(percent(1), percent(25), percent(100), percent(0));
//! assert!((loss.mean() - 1.0 / 26.0).abs() < 1e-15);
//! assert_eq!(loss.mean_burst(), Some(4.0));
//! ```

use super::{Selector, SelectorPlan};
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::Time;
use crate::units::Probability;

/// The Gilbert–Elliott model.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    /// The probability of leaving the good state (p) and the bad one (r).
    leaves: [Probability; 2],
    /// The probability of loss in the good state (1 − k) and the bad one (1 − h).
    loses: [Probability; 2],
    bad: bool,
    /// The stationary share of the bad state, until the first packet has found its state.
    start: Option<Probability>,
}

impl GilbertElliott {
    /// Changes from good to bad with probability `p`, back with `r`; loses packets with probability
    /// `loss_in_bad` (1 − h) and `loss_in_good` (1 − k).
    pub fn new(p: Probability, r: Probability, loss_in_bad: Probability, loss_in_good: Probability) -> Self {
        let mut this = Self { leaves: [p, r], loses: [loss_in_good, loss_in_bad], bad: false, start: None };
        if !p.is_zero() && !r.is_zero() {
            this.start = Some(Probability::nearest(this.share_bad()));
        }
        this
    }

    /// π_B.
    fn share_bad(&self) -> f64 {
        let [p, r] = self.leaves.map(Probability::as_f64);
        if p == 0.0 { 0.0 } else { p / (p + r) }
    }

    /// m and m₂.
    fn lost(&self) -> (f64, f64) {
        let [p, r] = self.leaves.map(Probability::as_f64);
        let [good, bad] = self.loses.map(Probability::as_f64);
        let share_bad = self.share_bad();
        let (from_good, from_bad) = ((1.0 - share_bad) * good, share_bad * bad);
        let twice = from_good * ((1.0 - p) * good + p * bad) + from_bad * (r * good + (1.0 - r) * bad);
        (from_good + from_bad, twice)
    }
}

impl Selector for GilbertElliott {
    #[inline]
    fn selects(&mut self, _: Time, _: &PacketState, draw: &mut Draw) -> bool {
        let (lost, left) = (draw.bits(), draw.bits());
        if let Some(start) = self.start.take() {
            self.bad = start.decides(draw.bits());
        }
        let state = usize::from(self.bad);
        self.bad ^= self.leaves[state].decides(left);
        self.loses[state].decides(lost)
    }

    fn plan(&self) -> Option<SelectorPlan> {
        let Self { leaves, loses: selects, start: starts_bad, .. } = *self;
        Some(SelectorPlan::GilbertElliott { leaves, selects, starts_bad })
    }

    fn mean(&self) -> f64 {
        self.lost().0
    }

    fn mean_burst(&self) -> Option<f64> {
        let (once, twice) = self.lost();
        (once > twice).then(|| once / (once - twice))
    }
}
