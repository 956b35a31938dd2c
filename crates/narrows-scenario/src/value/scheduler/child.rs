//! What replaces the queue of a class: `scheduler = { … }`, NetEm's single queue with `netem = "delay
//! 10ms"`, or a delay line with `delay = { feed = "radio" }`.

use crate::value::exact_netem::ExactNetem;
use crate::value::scheduler::{Delayed, Scheduler};

/// What replaces the queue of a class.
#[derive(Clone, Debug, PartialEq)]
pub enum Child {
    /// Another scheduler.
    Scheduler(Box<Scheduler>),
    /// NetEm's single queue, emulated exactly.
    Netem(ExactNetem),
    /// A delay line.
    Delayed(Box<Delayed>),
    /// NetEm's single queue around another scheduler.
    Around(Box<Around>),
}

/// NetEm's single queue around a scheduler, which takes packets when they are due.
#[derive(Clone, Debug, PartialEq)]
pub struct Around {
    /// The single queue.
    pub netem: ExactNetem,
    /// What is inside.
    pub inner: Scheduler,
}

impl Child {
    /// The scheduler in it.
    pub fn scheduler(&self) -> Option<&Scheduler> {
        match self {
            Self::Scheduler(inner) => Some(inner),
            Self::Around(around) => Some(&around.inner),
            Self::Netem(_) | Self::Delayed(_) => None,
        }
    }

    /// NetEm's single queue in it.
    pub fn netem(&self) -> Option<&ExactNetem> {
        match self {
            Self::Netem(netem) => Some(netem),
            Self::Around(around) => Some(&around.netem),
            Self::Scheduler(_) | Self::Delayed(_) => None,
        }
    }

    /// Short description.
    pub fn words(&self) -> String {
        match self {
            Self::Scheduler(inner) => format!("in `{}`", inner.kind.name()),
            Self::Netem(netem) => format!("in netem: {netem}"),
            Self::Around(around) => {
                format!("in netem: {}, around `{}`", around.netem, around.inner.kind.name())
            }
            Self::Delayed(delayed) => format!("in a delay line: {delayed}"),
        }
    }
}
