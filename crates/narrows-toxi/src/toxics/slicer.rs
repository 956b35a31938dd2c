//! `slicer`: cuts pieces into slices of about `average_size` ± `size_variation` bytes, `delay` microseconds apart.
//!
//! A piece is halved, the cut moved by a uniform draw from `[−size_variation, size_variation)`, until a part is at
//! most `average_size + size_variation` long. Departures from Toxiproxy, which fails there: every slice has at least
//! one byte, however large the variation; an average size of 0 cuts nothing.

use std::collections::VecDeque;

use bytes::Bytes;
use narrows_core::{Draw, Duration, Stream, Time};

use super::{Around, MOST_CAUGHT_UP, Toxic, later};
use crate::piece::{Input, Item, Piece, Step};

#[derive(Debug)]
pub(crate) struct Slicer {
    average_size: u64,
    size_variation: u64,
    delay: Duration,
    draws: Stream,
    connection: u64,
    /// The number of the next piece.
    number: u64,
    /// When the next slice may leave.
    free: Time,
    rest: Bytes,
    /// When the rest arrived.
    at: Time,
    /// The lengths of the slices of the rest.
    slices: VecDeque<usize>,
}

impl Slicer {
    pub(crate) fn new(values: [i64; 3], name: &str, around: &Around) -> Self {
        let [average_size, size_variation, delay] = values.map(|value| u64::try_from(value).unwrap_or(0));
        Self {
            average_size,
            size_variation,
            delay: Duration::from_nanos(delay.saturating_mul(1000)),
            draws: Stream::new(around.seed, &around.element(name), "slices"),
            connection: around.connection,
            number: 0,
            free: Time::ZERO,
            rest: Bytes::new(),
            at: Time::ZERO,
            slices: VecDeque::new(),
        }
    }

    fn cut(&mut self, piece: Piece) {
        let mut draw: Draw = self.draws.draw(self.connection as u32, self.number, 0, 0);
        self.number += 1;
        self.slices = slices(piece.data.len(), self.average_size, self.size_variation, &mut draw);
        (self.rest, self.at) = (piece.data, piece.at);
    }
}

/// The lengths of the slices of a piece.
fn slices(length: usize, average_size: u64, variation: u64, draw: &mut Draw) -> VecDeque<usize> {
    if average_size == 0 {
        return [length].into();
    }
    let longest = usize::try_from(average_size.saturating_add(variation)).unwrap_or(usize::MAX);
    let (mut done, mut open) = (VecDeque::new(), vec![length]);
    while let Some(part) = open.pop() {
        if part <= longest || part < 2 {
            done.push_back(part);
            continue;
        }
        let moved = draw.below(variation.saturating_mul(2));
        let cut = (part as u64 / 2).saturating_add(moved).saturating_sub(variation);
        let cut = usize::try_from(cut).unwrap_or(usize::MAX).clamp(1, part - 1);
        open.push(part - cut);
        open.push(cut);
    }
    done
}

impl Toxic for Slicer {
    fn held(&self) -> usize {
        self.rest.len()
    }

    fn step(&mut self, now: Time, input: &mut Input) -> Step {
        if self.slices.is_empty() {
            match input.pop() {
                Some(Item::Piece(piece)) => self.cut(piece),
                Some(Item::End(at, end)) => return Step::End(later(at, self.free), end),
                None => return Step::Wait(None),
            }
        }
        let due = later(later(self.free, self.at), now.before(MOST_CAUGHT_UP));
        if due > now {
            return Step::Wait(Some(due));
        }
        let length = self.slices.pop_front().unwrap_or(self.rest.len());
        self.free = due + self.delay;
        Step::Pass(Piece { at: due, data: self.rest.split_to(length) })
    }

    fn release(&mut self, now: Time) -> Vec<Item> {
        self.slices.clear();
        let data = std::mem::take(&mut self.rest);
        if data.is_empty() { Vec::new() } else { vec![Item::Piece(Piece { at: now, data })] }
    }
}
