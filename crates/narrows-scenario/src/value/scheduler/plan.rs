//! What it takes to make the engine's queue, and why it may not be made.

use std::fmt;
use std::net::IpAddr;

use narrows_core::Seed;
use narrows_core::queue::Bound;
use narrows_core::sched::{Refused, ShapingError};
use narrows_plugin::LoadError;

use crate::value::queue::Queue;

/// What a scheduler's queue depends on besides its own values.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) seed: Seed,
    /// The engine's name of the link.
    pub(crate) link: &'a str,
    /// The direction's queue: that of classes and flows that have none of their own.
    pub(crate) queue: Queue,
    /// The bound of that where none is given.
    pub(crate) default: Bound,
    /// The addresses of a host.
    pub(crate) addresses: &'a dyn Fn(&str) -> Vec<IpAddr>,
}

/// Why an algorithm does not take what it is to serve.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The class, by its number among all that are named.
    pub(crate) class: Option<usize>,
    pub(crate) why: Why,
}

/// What is wrong.
#[derive(Debug)]
pub(crate) enum Why {
    Refused(Refused),
    Shaping(ShapingError),
    Load(LoadError),
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
        }
    }
}
