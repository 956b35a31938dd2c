//! What `tc qdisc change` keeps of what was there.
//!
//! tc sends its options in parts, and sch_netem keeps a part that it is not sent (`netem_change` in `net/sched/sch_netem.c`,
//! Linux 6.1). But one part is always sent, and with it what is not named in it is set back:
//!
//! | named or not | what is not named |
//! |---|---|
//! | `limit`, `delay`, `duplicate`, `loss` of any kind, `reorder`, `gap`, `seed` | is as if nothing had been there: `change loss 1%` also takes the delay away |
//! | `distribution`, `rate`, `corrupt`, `slot`, `ecn` | stays |
//! | the correlations of delay, loss and duplication | stay, all three, where none of them is named |

use narrows_core::Duration;

use super::options::{LossOption, Netem};
use super::{Kind, Qdisc};
use crate::units::Share;

impl Qdisc {
    /// What is there after a change to this: what `before` had and tc does not send again stays.
    pub fn changed_from(self, before: &Self) -> Self {
        let kind = match (self.kind, &before.kind) {
            (Kind::Netem(netem), Kind::Netem(before)) => Kind::Netem(Box::new(netem.changed_from(before))),
            (kind, _) => kind,
        };
        Self { kind, clauses: self.clauses }
    }
}

impl Netem {
    fn changed_from(mut self, before: &Self) -> Self {
        let old_loss = random_correlation(before.loss);
        let none_named = self.delay_correlation.is_zero()
            && random_correlation(self.loss).is_zero()
            && self.duplicate.correlation.is_zero();
        if none_named {
            self.delay_correlation = before.delay_correlation;
            self.duplicate.correlation = before.duplicate.correlation;
            if let Some(LossOption::Random(chance)) = &mut self.loss {
                chance.correlation = old_loss;
            }
        }
        // Of what does not vary, or never happens, a correlation is nothing.
        if self.jitter == Duration::ZERO {
            self.delay_correlation = Share::ZERO;
        }
        if self.duplicate.share.is_zero() {
            self.duplicate.correlation = Share::ZERO;
        }
        if self.jitter > Duration::ZERO && self.distribution.is_none() {
            self.distribution = before.distribution.clone();
        }
        self.rate = self.rate.or(before.rate);
        self.slot = self.slot.or_else(|| before.slot.clone());
        if self.corrupt.share.is_zero() {
            self.corrupt = before.corrupt;
        }
        self.ecn |= before.ecn && self.loss.is_some();
        self
    }
}

/// The correlation of random losses; zero where there are none.
fn random_correlation(loss: Option<LossOption>) -> Share {
    match loss {
        Some(LossOption::Random(chance)) => chance.correlation,
        _ => Share::ZERO,
    }
}
