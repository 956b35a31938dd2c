//! Handles of qdiscs and classes: `1:`, `1:10`, in hexadecimal.

use std::fmt;

use crate::dialect::Word;
use crate::problem::{Found, Problem};

/// The handle of a qdisc (`1:`) or of a class in it (`1:10`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    /// Major number, of the qdisc; 0 if implied.
    pub major: u16,
    /// Minor number, of the class; 0 for the qdisc itself.
    pub minor: u16,
}

impl Handle {
    /// The first major number that tc assigns to a qdisc without one.
    pub const FIRST: u16 = 0x8001;
    pub(super) const ROOT: Self = Self { major: 0, minor: 0 };

    /// The handle of the qdisc that this is or belongs to.
    pub(super) const fn qdisc(self) -> Self {
        Self { major: self.major, minor: 0 }
    }

    pub(super) fn read(word: Word<'_>) -> Result<Self, Problem> {
        Self::from_text(word.text).ok_or_else(|| {
            word.problem(format!("{} is not a handle", Found(word.text)))
                .help("write it like 1: for a discipline and 1:10 for a class, in hexadecimal, up to ffff")
        })
    }

    /// Reads the handle of a class, as `get_tc_classid` of iproute2 does: `10` is the class 10 of a discipline that is implied,
    /// and `10010` is 1:10.
    pub(super) fn class(word: Word<'_>) -> Result<Self, Problem> {
        let digits = word.text.strip_prefix("0x").unwrap_or(word.text);
        match u32::from_str_radix(digits, 16) {
            Ok(number) if !digits.starts_with('+') => {
                Ok(Self { major: (number >> 16) as u16, minor: number as u16 })
            }
            _ => Self::read(word),
        }
    }

    /// Parses a handle.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let number = |text: &str| match text.strip_prefix("0x").unwrap_or(text) {
            "" => Some(0),
            digits if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
                u16::from_str_radix(digits, 16).ok()
            }
            _ => None,
        };
        let (major, minor) = text.split_once(':').unwrap_or((text, ""));
        match text {
            "" | ":" => None,
            _ => Some(Self { major: number(major)?, minor: number(minor)? }),
        }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            0 => write!(f, "{:x}:", self.major),
            minor => write!(f, "{:x}:{minor:x}", self.major),
        }
    }
}
