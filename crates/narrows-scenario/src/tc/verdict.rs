//! What filters decide about packets.

use super::Handle;

/// Where packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Class(Handle),
    /// To the host and the flow of CAKE that this class means.
    Flow(Handle),
    /// To a tin of CAKE, by its number from 1 on.
    Tin(u16),
    Drop,
    /// As packets that no rule matches.
    Rest,
}

/// What happens to packets that a filter matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They go to the filter's class, or without one to the default class.
    Class,
    Drop,
    /// Later filters are tried.
    Next,
}

/// How it goes on after an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// With the next action; after the last one as [`Verdict::Class`].
    Pipe,
    Ends(Verdict),
}

impl Control {
    pub(super) fn read(word: &str) -> Option<Self> {
        match word {
            "pipe" => Some(Self::Pipe),
            "pass" | "ok" => Some(Self::Ends(Verdict::Class)),
            "drop" | "shot" => Some(Self::Ends(Verdict::Drop)),
            "continue" => Some(Self::Ends(Verdict::Next)),
            _ => None,
        }
    }
}
