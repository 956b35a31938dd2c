//! The keys `mask` and `most` of pipes and queues.

use narrows_core::classify::FlowMask;

use crate::keys::kind::{ByHand, Integer, text};
use crate::node::Key;
use crate::problem::Problem;
use crate::value;

pub(super) const MASK: ByHand<Option<FlowMask>> = ByHand {
    words: || "`\"all\"` or table".into(),
    schema: value::mask_schema,
    read: value::read_mask,
    write: |mask| Some(mask.map_or(text("none"), value::mask_value)),
};

/// Maximum number of links or flows that a mask creates.
pub(super) const fn most(what: &'static str) -> Integer {
    Integer { what, low: 1, high: 1 << 20 }
}

/// The problem with a `most` without a mask.
pub(super) fn without_mask(most: &Key, what: &str) -> Problem {
    Problem::new(format!("`most` without a mask, which creates {what}"))
        .at(&most.span)
        .help("give the fields that separate flows: mask = { src-ip = \"0xffffffff\" }")
}
