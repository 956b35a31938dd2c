//! Shaping parameters of a class.

use narrows_core::Rate;

use super::cbq::CbqClass;
use super::htb::HtbClass;
use super::kind::Kind;
use crate::keys::Parameters;

/// Shaping parameters of a class, by shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapedBy {
    /// Token buckets.
    Htb(HtbClass),
    /// Idle times.
    Cbq(CbqClass),
}

impl ShapedBy {
    /// All defaults, as far as there are any.
    pub(super) fn plain(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Htb => Some(Self::Htb(HtbClass::default())),
            Kind::Cbq => Some(Self::Cbq(CbqClass::default())),
            _ => None,
        }
    }

    pub(super) fn parameters(&self) -> &dyn Parameters {
        match self {
            Self::Htb(class) => class,
            Self::Cbq(class) => class,
        }
    }

    pub(super) fn parameters_mut(&mut self) -> &mut dyn Parameters {
        match self {
            Self::Htb(class) => class,
            Self::Cbq(class) => class,
        }
    }

    /// The configured rate.
    pub fn rate(&self) -> Rate {
        match self {
            Self::Htb(class) => class.rate,
            Self::Cbq(class) => class.rate,
        }
    }

    /// The effective settings in one line.
    pub(crate) fn effective(&self, is_leaf: bool) -> String {
        match self {
            Self::Htb(class) => class.effective(is_leaf),
            Self::Cbq(class) => class.effective(is_leaf),
        }
    }
}
