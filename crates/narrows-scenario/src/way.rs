//! The two ways along a link.

/// Which way along a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From the first to the second of `between`.
    Up,
    /// From the second to the first.
    Down,
}

impl Way {
    /// `up` or `down`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}
