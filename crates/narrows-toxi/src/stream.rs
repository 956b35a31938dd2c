//! The two streams of a connection.

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the client to the upstream.
    Upstream,
    /// From the upstream to the client.
    Downstream,
}

impl Way {
    pub(crate) const BOTH: [Self; 2] = [Self::Upstream, Self::Downstream];

    /// Reads the value of `stream`, in upper or lower case.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Self::BOTH.into_iter().find(|way| text.eq_ignore_ascii_case(way.name()))
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Downstream => "downstream",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}
