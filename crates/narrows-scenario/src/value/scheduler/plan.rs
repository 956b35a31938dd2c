//! Inputs for building the engine's queue, and the error if it cannot be built.

use std::fmt;
use std::net::IpAddr;

use narrows_core::Seed;
use narrows_core::queue::Bound;
use narrows_core::sched::{Refused, ShapingError};
use narrows_plugin::LoadError;

use crate::value::queue::Queue;

/// What a scheduler's queue depends on besides its own settings.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) seed: Seed,
    /// The engine's name for the link.
    pub(crate) link: &'a str,
    /// The direction's queue, used by classes and flows that have none of their own.
    pub(crate) queue: Queue,
    /// The default bound of that queue.
    pub(crate) default: Bound,
    /// Looks up the addresses of a host.
    pub(crate) addresses: &'a dyn Fn(&str) -> Vec<IpAddr>,
}

/// Why an algorithm rejects its settings.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Index of the class among all named classes.
    pub(crate) class: Option<usize>,
    pub(crate) why: Why,
}

/// The reason.
#[derive(Debug)]
pub(crate) enum Why {
    Refused(Refused),
    Shaping(ShapingError),
    Load(LoadError),
    /// The schedule of gates.
    Schedule(String),
}

impl From<ShapingError> for Refusal {
    fn from(error: ShapingError) -> Self {
        Self { class: error.class, why: Why::Shaping(error) }
    }
}

impl From<LoadError> for Refusal {
    fn from(error: LoadError) -> Self {
        Self { class: None, why: Why::Load(error) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Refused(refused) => refused.fmt(f),
            Why::Shaping(error) => error.fault.fmt(f),
            Why::Load(error) => error.fmt(f),
            Why::Schedule(why) => why.fmt(f),
        }
    }
}
