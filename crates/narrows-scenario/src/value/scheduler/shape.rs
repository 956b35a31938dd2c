//! Shaping parameters of a class.

use narrows_core::Rate;

use super::cbq::CbqClass;
use super::hfsc::HfscClass;
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
    /// Service curves.
    Hfsc(HfscClass),
}

impl ShapedBy {
    /// All defaults, as far as there are any.
    pub(super) fn plain(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Htb => Some(Self::Htb(HtbClass::default())),
            Kind::Cbq => Some(Self::Cbq(CbqClass::default())),
            Kind::Hfsc => Some(Self::Hfsc(HfscClass::default())),
            _ => None,
        }
    }

    pub(super) fn parameters(&self) -> &dyn Parameters {
        match self {
            Self::Htb(class) => class,
            Self::Cbq(class) => class,
            Self::Hfsc(class) => class,
        }
    }

    pub(super) fn parameters_mut(&mut self) -> &mut dyn Parameters {
        match self {
            Self::Htb(class) => class,
            Self::Cbq(class) => class,
            Self::Hfsc(class) => class,
        }
    }

    /// The configured rate; `None` for service curves.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Self::Htb(class) => Some(class.rate),
            Self::Cbq(class) => Some(class.rate),
            Self::Hfsc(_) => None,
        }
    }

    /// The effective settings in one line.
    pub(crate) fn effective(&self, is_leaf: bool) -> String {
        match self {
            Self::Htb(class) => class.effective(is_leaf),
            Self::Cbq(class) => class.effective(is_leaf),
            Self::Hfsc(class) => class.effective(is_leaf),
        }
    }
}
