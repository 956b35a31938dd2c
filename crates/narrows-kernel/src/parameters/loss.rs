//! Losses (`struct narrows_loss` in `bpf/state.h`).

use std::ops::Range;

use narrows_core::Probability;
use narrows_core::model::selector::SelectorPlan;

use super::{Bytes, MOST_RANGES, NO_LIMIT};

/// Which packets are lost, with the key of the draws ([`narrows_core::Stream::key`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The model.
    pub model: LossModel,
    /// The key.
    pub key: [u32; 2],
}

/// A model of losses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LossModel {
    /// None.
    #[default]
    Never,
    /// Each packet with the same probability.
    Independent(Probability),
    /// Gilbert and Elliott's, in the words of [`SelectorPlan::GilbertElliott`].
    GilbertElliott {
        /// Of leaving each state.
        leaves: [Probability; 2],
        /// Of loss in each state.
        loses: [Probability; 2],
        /// Of starting in the bad state.
        starts_bad: Option<Probability>,
    },
    /// At places that repeat, at most [`MOST_RANGES`].
    Pattern {
        /// After this many packets.
        length: u64,
        /// The places.
        ranges: Vec<Range<u64>>,
    },
}

impl LossModel {
    /// `None` if it has too many places.
    pub fn of(plan: SelectorPlan<'_>) -> Option<Self> {
        match plan {
            SelectorPlan::Independent(chance) => Some(Self::Independent(chance)),
            SelectorPlan::GilbertElliott { leaves, selects, starts_bad } => {
                Some(Self::GilbertElliott { leaves, loses: selects, starts_bad })
            }
            SelectorPlan::Pattern { length, ranges } => {
                (ranges.len() <= MOST_RANGES).then(|| Self::Pattern { length, ranges: ranges.to_vec() })
            }
        }
    }
}

impl Loss {
    /// The places of a pattern.
    pub fn ranges(&self) -> &[Range<u64>] {
        match &self.model {
            LossModel::Pattern { ranges, .. } => ranges,
            _ => &[],
        }
    }

    pub(super) fn put(&self, bytes: &mut Bytes) {
        let none = Probability::ZERO;
        let (model, loses, leaves, starts_bad, length) = match &self.model {
            LossModel::Never => (0, [none; 2], [none; 2], None, 0),
            LossModel::Independent(chance) => (1, [*chance, none], [none; 2], None, 0),
            LossModel::GilbertElliott { leaves, loses, starts_bad } => (2, *loses, *leaves, *starts_bad, 0),
            LossModel::Pattern { length, .. } => (3, [none; 2], [none; 2], None, *length),
        };
        loses.into_iter().chain(leaves).for_each(|chance| bytes.long(chance.raw()));
        bytes.long(starts_bad.map_or(NO_LIMIT, Probability::raw));
        bytes.long(length);
        bytes.word(self.ranges().len() as u32);
        bytes.word(model);
        self.key.into_iter().for_each(|half| bytes.word(half));
    }
}
