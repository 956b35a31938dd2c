//! The context in which a value is read.

use narrows_core::Time;

use crate::files::Files;

/// What the values of a link may refer to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    /// The names of all hosts.
    pub(crate) hosts: &'a [String],
    /// Whether the link is a shared medium.
    pub(crate) shared: bool,
    /// The names of the stations on a medium that several links share, in order.
    pub(crate) stations: &'a [String],
    /// The source of files.
    pub(crate) files: &'a Files,
    /// The instant at which the value takes effect.
    pub(crate) at: Time,
}

impl<'a> Surroundings<'a> {
    /// The context of values that take effect at the start of a run and belong to no link.
    pub(crate) const fn of_files(files: &'a Files) -> Self {
        Self { hosts: &[], shared: false, stations: &[], files, at: Time::ZERO }
    }
}
