//! `limit_data`: the connection is closed after `bytes` bytes have passed. Of datagrams, only whole ones pass.

use bytes::Bytes;
use narrows_core::Time;

use super::{Around, Toxic, Values};
use crate::piece::{End, Input, Item, Piece, Step};

#[derive(Debug)]
pub(crate) struct LimitData {
    bytes: u64,
    splits: bool,
    passed: u64,
    /// When the limit was reached.
    reached: Option<Time>,
}

impl LimitData {
    pub(crate) fn new(bytes: i64, around: &Around) -> Self {
        let splits = around.datagrams.is_none();
        Self { bytes: u64::try_from(bytes).unwrap_or(0), splits, passed: 0, reached: None }
    }

    /// The part of a piece that may pass.
    fn allowed(&self, mut data: Bytes) -> Bytes {
        let left = usize::try_from(self.bytes.saturating_sub(self.passed)).unwrap_or(usize::MAX);
        if data.len() > left {
            data.truncate(if self.splits { left } else { 0 });
            return data;
        }
        data
    }
}

impl Toxic for LimitData {
    fn step(&mut self, _now: Time, input: &mut Input) -> Step {
        if let Some(at) = self.reached {
            return Step::End(at, End::Close);
        }
        match input.pop() {
            Some(Item::Piece(piece)) => {
                let (whole, at) = (piece.data.len(), piece.at);
                let data = self.allowed(piece.data);
                self.passed += data.len() as u64;
                if self.passed >= self.bytes || data.len() < whole {
                    self.reached = Some(at);
                }
                if data.is_empty() && whole > 0 {
                    Step::End(at, End::Close)
                } else {
                    Step::Pass(Piece { at, data })
                }
            }
            Some(Item::End(at, end)) => Step::End(at, end),
            None => Step::Wait(None),
        }
    }

    fn adopt(&mut self, values: &Values, _now: Time) -> bool {
        let Values::Numbers([bytes, ..]) = values else { return false };
        self.bytes = u64::try_from(*bytes).unwrap_or(0);
        true
    }
}
