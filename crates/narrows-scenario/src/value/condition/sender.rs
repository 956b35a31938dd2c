//! The sender on a shared medium, as a condition on packets.

use narrows_core::classify::Lanes;

use crate::way::Way;

/// Who sends on a shared medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A direction.
    Way(Way),
    /// One of the stations on a medium that several links share.
    Station {
        /// Its name.
        name: String,
        /// Its number.
        number: u8,
    },
}

impl Sender {
    /// As written.
    pub fn name(&self) -> &str {
        match self {
            Self::Way(way) => way.name(),
            Self::Station { name, .. } => name,
        }
    }

    /// The lanes of its packets: each link on a medium has one up and one down.
    pub(super) fn lanes(&self) -> Lanes {
        match *self {
            Self::Way(Way::Up) => Lanes::EVEN,
            Self::Way(Way::Down) => Lanes::ODD,
            Self::Station { number, .. } => Lanes::only(2 * number),
        }
    }
}
