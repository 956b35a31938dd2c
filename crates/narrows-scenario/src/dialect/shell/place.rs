//! Where texts that are executed stand in the script.

use std::ops::Range;

/// Where a text stands in the script.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// It is a part of it, from there on.
    Offset(usize),
    /// It comes from this part, but is not as it stands there.
    Whole(Range<usize>),
}

impl Place {
    /// The place of what is behind so many bytes.
    pub(super) fn at(&self, length: usize) -> Self {
        match self {
            Self::Offset(start) => Self::Offset(start + length),
            whole @ Self::Whole(_) => whole.clone(),
        }
    }

    pub(super) fn of(&self, span: &Range<usize>) -> Range<usize> {
        match self {
            Self::Offset(start) => start + span.start..start + span.end,
            Self::Whole(whole) => whole.clone(),
        }
    }
}
