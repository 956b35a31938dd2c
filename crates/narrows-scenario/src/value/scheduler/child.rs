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
}

impl Child {
    /// Short description.
    pub fn words(&self) -> String {
        match self {
            Self::Scheduler(inner) => format!("in `{}`", inner.kind.name()),
            Self::Netem(netem) => format!("in netem: {netem}"),
            Self::Delayed(delayed) => format!("in a delay line: {delayed}"),
        }
    }
}
