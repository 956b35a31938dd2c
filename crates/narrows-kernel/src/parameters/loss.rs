//! Losses (`struct narrows_loss` in `bpf/state.h`).

use std::ops::Range;

use narrows_core::Probability;
use narrows_core::model::selector::SelectorPlan;

use super::{Bytes, NO_LIMIT};

/// Which packets are lost, with the key of the draws ([`narrows_core::Stream::key`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The model; none loses nothing. A pattern has at most [`MOST_RANGES`](super::MOST_RANGES).
    pub model: Option<SelectorPlan>,
    /// The key.
    pub key: [u32; 2],
}

impl Loss {
    /// The places of a pattern.
    pub fn ranges(&self) -> &[Range<u64>] {
        match &self.model {
            Some(SelectorPlan::Pattern { ranges, .. }) => ranges,
            _ => &[],
        }
    }

    pub(super) fn put(&self, bytes: &mut Bytes) {
        let none = Probability::ZERO;
        let (model, loses, leaves, starts_bad, length) = match &self.model {
            None => (0, [none; 2], [none; 2], None, 0),
            Some(SelectorPlan::Independent(chance)) => (1, [*chance, none], [none; 2], None, 0),
            Some(SelectorPlan::GilbertElliott { leaves, selects, starts_bad }) => {
                (2, *selects, *leaves, *starts_bad, 0)
            }
            Some(SelectorPlan::Pattern { length, .. }) => (3, [none; 2], [none; 2], None, *length),
        };
        loses.into_iter().chain(leaves).for_each(|chance| bytes.long(chance.raw()));
        bytes.long(starts_bad.map_or(NO_LIMIT, Probability::raw));
        bytes.long(length);
        bytes.word(self.ranges().len() as u32);
        bytes.word(model);
        self.key.into_iter().for_each(|half| bytes.word(half));
    }
}
