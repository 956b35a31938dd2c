//! `slow_close`: the end of the stream comes `delay` milliseconds later.

use narrows_core::{Duration, Time};

use super::{Toxic, milliseconds};
use crate::piece::{Input, Item, Step};

#[derive(Debug)]
pub(crate) struct SlowClose {
    delay: Duration,
}

impl SlowClose {
    pub(crate) fn new(delay: i64) -> Self {
        Self { delay: milliseconds(delay) }
    }
}

impl Toxic for SlowClose {
    fn step(&mut self, now: Time, input: &mut Input) -> Step {
        if let Some(Item::End(at, end)) = input.first() {
            let (due, end) = (*at + self.delay, *end);
            return if due <= now { Step::End(due, end) } else { Step::Wait(Some(due)) };
        }
        match input.pop() {
            Some(Item::Piece(piece)) => Step::Pass(piece),
            _ => Step::Wait(None),
        }
    }
}
