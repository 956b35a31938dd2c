//! `reset_peer`: the connection is reset (RST) `timeout` milliseconds after the first data or the end of the stream.
//! No data passes.

use narrows_core::{Duration, Time};

use super::{Toxic, Values, milliseconds};
use crate::piece::{End, Input, Item, Step};

#[derive(Debug)]
pub(crate) struct ResetPeer {
    timeout: Duration,
    first: Option<Time>,
}

impl ResetPeer {
    pub(crate) fn new(timeout: i64) -> Self {
        Self { timeout: milliseconds(timeout), first: None }
    }
}

impl Toxic for ResetPeer {
    fn step(&mut self, now: Time, input: &mut Input) -> Step {
        while let Some(item) = input.pop() {
            let at = match item {
                Item::Piece(piece) => piece.at,
                Item::End(at, _) => at,
            };
            self.first.get_or_insert(at);
        }
        match self.first.map(|first| first + self.timeout) {
            Some(due) if due <= now => Step::End(due, End::Reset),
            due => Step::Wait(due),
        }
    }

    fn adopt(&mut self, values: &Values, _now: Time) -> bool {
        let Values::Numbers([timeout, ..]) = values else { return false };
        self.timeout = milliseconds(*timeout);
        true
    }
}
