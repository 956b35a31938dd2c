//! `timeout`: no data passes; the connection is closed `timeout` milliseconds after the last data, or after the toxic
//! came. With 0 it stays open. The removal of the toxic closes the connection, because data is missing from it.

use narrows_core::{Duration, Time};

use super::{Removed, Toxic, Values, later, milliseconds};
use crate::piece::{End, Input, Item, Step};

#[derive(Debug)]
pub(crate) struct Timeout {
    timeout: Duration,
    since: Time,
}

impl Timeout {
    pub(crate) fn new(timeout: i64, now: Time) -> Self {
        Self { timeout: milliseconds(timeout), since: now }
    }

    fn due(&self) -> Option<Time> {
        (self.timeout > Duration::ZERO).then(|| self.since + self.timeout)
    }
}

impl Toxic for Timeout {
    fn step(&mut self, now: Time, input: &mut Input) -> Step {
        loop {
            let due = self.due();
            let next = match input.first() {
                Some(Item::Piece(piece)) => Some(piece.at),
                Some(Item::End(at, _)) => Some(*at),
                None => None,
            };
            if let Some(due) = due.filter(|due| *due <= next.unwrap_or(now)) {
                return Step::End(due, End::Close);
            }
            match input.pop() {
                Some(Item::Piece(piece)) => self.since = later(self.since, piece.at),
                Some(Item::End(at, end)) => return Step::End(at, end),
                None => return Step::Wait(due),
            }
        }
    }

    fn adopt(&mut self, values: &Values, now: Time) -> bool {
        let Values::Numbers([timeout, ..]) = values else { return false };
        *self = Self::new(*timeout, now);
        true
    }

    fn remove(&mut self, _now: Time) -> Removed {
        Removed { items: Vec::new(), end: Some(End::Close) }
    }
}
