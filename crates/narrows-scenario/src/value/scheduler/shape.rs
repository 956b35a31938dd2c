//! What a shaper lets a class send.

use narrows_core::Rate;

use super::cbq::CbqClass;
use super::htb::HtbClass;
use super::kind::Kind;
use crate::keys::Parameters;

/// How a class of a shaper is shaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapedBy {
    /// By token buckets.
    Htb(HtbClass),
    /// By its idle times.
    Cbq(CbqClass),
}

impl ShapedBy {
    /// With every default, as far as there are some.
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

    /// The rate that is its own.
    pub fn rate(&self) -> Rate {
        match self {
            Self::Htb(class) => class.rate,
            Self::Cbq(class) => class.rate,
        }
    }

    /// What it may do, in one line.
    pub(crate) fn effective(&self, is_leaf: bool) -> String {
        match self {
            Self::Htb(class) => class.effective(is_leaf),
            Self::Cbq(class) => class.effective(is_leaf),
        }
    }
}
