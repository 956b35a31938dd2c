//! What `tc qdisc change` keeps of the previous settings.
//!
//! tc sends its options in parts, and sch_netem keeps the parts that are not sent (`netem_change` in
//! `net/sched/sch_netem.c`, Linux 6.1). One part is always sent, which resets every option in it that the
//! command does not name:
//!
//! | named or not | what is not named |
//! |---|---|
//! | `limit`, `delay`, `duplicate`, `loss` of any kind, `reorder`, `gap`, `seed` | is reset: `change loss 1%` also removes the delay |
//! | `distribution`, `rate`, `corrupt`, `slot`, `ecn` | stays |
//! | the correlations of delay, loss and duplication | stay, all three, if none of them is named |

use narrows_core::Duration;

use super::options::{LossOption, Netem};
use super::{Kind, Qdisc};
use crate::units::Share;

impl Qdisc {
    /// The settings after a change to this: settings of `before` that tc does not send stay.
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
        // A correlation has no effect on a constant value, or on an event that never happens.
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
        // Not tc's: what the link is stays.
        self.kernel = self.kernel.or(before.kernel);
        self.ecn |= before.ecn && self.loss.is_some();
        self
    }
}

/// The correlation of random loss; zero without loss.
fn random_correlation(loss: Option<LossOption>) -> Share {
    match loss {
        Some(LossOption::Random(chance)) => chance.correlation,
        _ => Share::ZERO,
    }
}
