//! Releases of Linux.

use std::fmt;

use narrows_core::netem::Generation;

/// A release of Linux whose sch_netem is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linux {
    major: u32,
    minor: u32,
    generation: Generation,
}

impl Linux {
    /// A major and a minor number, such as `6.1`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        let number =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let (major, minor) = (number(major)?, number(minor)?);
        Some(Self { major, minor, generation: Generation::of_linux(major, minor)? })
    }

    /// What its sch_netem does.
    pub(super) const fn generation(self) -> Generation {
        self.generation
    }
}

/// As in options: `6.1`.
impl fmt::Display for Linux {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
