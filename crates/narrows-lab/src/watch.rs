//! Somebody who watches an experiment of many runs, and may break it off.

use std::ops::ControlFlow;

/// Where an experiment has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Runs that are done.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
    /// The run that is next, in words.
    pub what: String,
}

/// Told before each run, and asked whether to go on. Changes no result of a run.
pub type Watch<'a> = &'a mut dyn FnMut(&Step) -> ControlFlow<()>;

/// Lets it be.
pub(crate) fn go_on(_: &Step) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
