//! `bandwidth`: at most `rate` KB/s, of 1000 bytes.
//!
//! A piece leaves when its last byte has been sent: start + bytes / rate, where the start is the end of the piece
//! before or its own arrival. Pieces longer than what 100 ms carry leave in parts of that size; datagrams are never
//! split. Remainders of the division are carried, so the mean rate is exact. A rate of 0 lets nothing pass.

use bytes::Bytes;
use narrows_core::{Duration, Time};

use super::{Around, MOST_CAUGHT_UP, Toxic, later};
use crate::piece::{Input, Item, Piece, Step};

/// Parts are as long as what this many milliseconds carry. A KB/s is a byte per millisecond.
const PART: u64 = 100;

/// Pieces that may wait. What is read later than the end of the piece before counts as if the source had paused, so
/// the pieces here must last until a late timer: 20 ms at 100 MB/s.
const ROOM: usize = 64;

#[derive(Debug)]
pub(crate) struct Bandwidth {
    /// Bytes per millisecond.
    rate: u64,
    splits: bool,
    /// The end of the last transmission.
    free: Time,
    /// The remainder of the last division.
    carried: u128,
    /// What is left of the piece in transmission, its next part, and when that has been sent.
    sending: Option<(Bytes, usize, Time)>,
}

impl Bandwidth {
    pub(crate) fn new(rate: i64, around: &Around) -> Self {
        let rate = u64::try_from(rate).unwrap_or(0);
        let splits = around.datagrams.is_none();
        Self { rate, splits, free: Time::ZERO, carried: 0, sending: None }
    }

    /// Starts the next part of these bytes.
    fn send(&mut self, data: Bytes) {
        let most = usize::try_from(self.rate.saturating_mul(PART)).unwrap_or(usize::MAX);
        let part = if self.splits { data.len().min(most) } else { data.len() };
        // At most 2⁶⁴ bytes · 10⁶ + 2⁶⁴: within 128 bits.
        let work = part as u128 * 1_000_000 + self.carried;
        let nanos = u64::try_from(work / u128::from(self.rate)).unwrap_or(u64::MAX);
        self.carried = work % u128::from(self.rate);
        self.sending = Some((data, part, self.free + Duration::from_nanos(nanos)));
    }
}

impl Toxic for Bandwidth {
    fn room(&self) -> usize {
        ROOM
    }

    fn held(&self) -> usize {
        self.sending.as_ref().map_or(0, |(data, ..)| data.len())
    }

    fn step(&mut self, now: Time, input: &mut Input) -> Step {
        if self.sending.is_none() {
            match input.first() {
                None => return Step::Wait(None),
                Some(Item::Piece(_)) if self.rate == 0 => return Step::Wait(None),
                Some(_) => {}
            }
            match input.pop() {
                Some(Item::Piece(piece)) => {
                    self.free = later(later(self.free, piece.at), now.before(MOST_CAUGHT_UP));
                    self.send(piece.data);
                }
                Some(Item::End(at, end)) => return Step::End(later(at, self.free), end),
                None => return Step::Wait(None),
            }
        }
        match self.sending.take() {
            Some((mut data, part, end)) if end <= now => {
                self.free = end;
                let data_of_part = data.split_to(part);
                if !data.is_empty() {
                    self.free = later(end, now.before(MOST_CAUGHT_UP));
                    self.send(data);
                }
                Step::Pass(Piece { at: end, data: data_of_part })
            }
            sending => {
                let end = sending.as_ref().map(|(.., end)| *end);
                self.sending = sending;
                Step::Wait(end)
            }
        }
    }

    fn release(&mut self, now: Time) -> Vec<Item> {
        let rest = self.sending.take().map(|(data, ..)| Item::Piece(Piece { at: now, data }));
        rest.into_iter().collect()
    }
}
