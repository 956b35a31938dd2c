//! The two directions along a link.

/// Direction along a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From the first end in `between` to the second.
    Up,
    /// From the second end in `between` to the first.
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
