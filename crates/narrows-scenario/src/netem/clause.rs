//! What was said, word for word, beside what it came to: for the explanation.

/// An option of NetEm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Limit,
    Delay,
    Loss,
    Corrupt,
    Duplicate,
    Ecn,
    Reorder,
    Gap,
    Distribution,
    Rate,
    Slot,
    Seed,
}

/// One option as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clause {
    pub(super) topic: Topic,
    /// Its words, with one space between them.
    pub(super) text: String,
    /// Numbers that had no unit, each with what it was taken as.
    pub(super) bare: Vec<(String, String)>,
}
