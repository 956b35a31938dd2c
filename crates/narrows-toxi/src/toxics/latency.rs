//! `latency`: delays every piece by `latency` ± `jitter`, in order.
//!
//! The delay of a piece counts from when it was read and is drawn uniformly from whole milliseconds in
//! `[latency − jitter, latency + jitter)`, not below 0. A piece never overtakes the one before: with jitter it leaves
//! at max(own time, time of the piece before). The end of the stream follows the last piece at once.

use narrows_core::{Draw, Duration, Stream, Time};

use super::{Around, Toxic, later, milliseconds};
use crate::piece::{Input, Item, Piece, Step};

/// Pieces that may be on the way, as in Toxiproxy: at up to 32 KiB each, 100 ms of more than 2 Gbit/s.
const ROOM: usize = 1024;

#[derive(Debug)]
pub(crate) struct Latency {
    latency: i64,
    jitter: i64,
    draws: Stream,
    connection: u64,
    /// The number of the next piece.
    number: u64,
    /// When the first piece of the input leaves.
    due: Option<Time>,
    /// When the piece before left.
    last: Time,
}

impl Latency {
    pub(crate) fn new(latency: i64, jitter: i64, name: &str, around: &Around) -> Self {
        let draws = Stream::new(around.seed, &around.element(name), "jitter");
        Self { latency, jitter, draws, connection: around.connection, number: 0, due: None, last: Time::ZERO }
    }

    fn delay(&mut self) -> Duration {
        let span = u64::try_from(self.jitter).unwrap_or(0).saturating_mul(2);
        let mut draw: Draw = self.draws.draw(self.connection as u32, self.number, 0, 0);
        self.number += 1;
        let drawn = i64::try_from(draw.below(span)).unwrap_or(i64::MAX).saturating_sub(self.jitter);
        milliseconds(if span == 0 { self.latency } else { self.latency.saturating_add(drawn) })
    }
}

impl Toxic for Latency {
    fn room(&self) -> usize {
        ROOM
    }

    fn step(&mut self, now: Time, input: &mut Input) -> Step {
        let due = match (input.first(), self.due) {
            (None, _) => return Step::Wait(None),
            (Some(Item::End(..)), _) => self.last,
            (Some(_), Some(due)) => due,
            (Some(Item::Piece(piece)), None) => {
                let due = later(piece.at + self.delay(), self.last);
                self.due = Some(due);
                due
            }
        };
        if due > now {
            return Step::Wait(Some(due));
        }
        self.due = None;
        match input.pop() {
            Some(Item::Piece(piece)) => {
                self.last = due;
                Step::Pass(Piece { at: due, ..piece })
            }
            Some(Item::End(at, end)) => Step::End(later(at, self.last), end),
            None => Step::Wait(None),
        }
    }
}
