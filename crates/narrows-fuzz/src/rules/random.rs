//! What the generator draws from.

/// Bytes, and once they are used up, a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    /// In reverse.
    bytes: Vec<u8>,
    state: u64,
}

impl Random {
    pub(super) fn over(bytes: &[u8]) -> Self {
        Self { bytes: bytes.iter().rev().copied().collect(), state: 0x9e37_79b9_7f4a_7c15 }
    }

    fn byte(&mut self) -> u64 {
        self.bytes.pop().map_or_else(|| self.next(), u64::from)
    }

    /// Xorshift (Marsaglia 2003).
    pub(crate) fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// As few bytes as the limit needs, so that a change of one byte changes one decision.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        let first = self.byte();
        let drawn = if limit <= 256 { first } else { first << 8 | self.byte() };
        drawn % limit
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}
