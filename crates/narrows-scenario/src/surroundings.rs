//! What is around a value that is read.

use narrows_core::Time;

use crate::files::Files;

/// What the values of a link may refer to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    /// The names of all hosts.
    pub(crate) hosts: &'a [String],
    /// Whether the link is a shared medium.
    pub(crate) shared: bool,
    /// Where files come from.
    pub(crate) files: &'a Files,
    /// The instant at which what is read comes into force.
    pub(crate) at: Time,
}

impl<'a> Surroundings<'a> {
    /// Those of values that come into force when a run begins and are of no link.
    pub(crate) const fn of_files(files: &'a Files) -> Self {
        Self { hosts: &[], shared: false, files, at: Time::ZERO }
    }
}
