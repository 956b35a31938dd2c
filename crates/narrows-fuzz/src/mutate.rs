//! Bytes with a few changes in them, as fuzzers make them: drawn from a seed, so that what failed fails again.

/// A source of mutations.
#[derive(Clone, Debug)]
pub struct Mutations(u64);

/// Numbers at which lengths, counts and offsets go wrong.
const EDGES: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, u64::MAX];
/// Changes of one input at most.
const MOST_CHANGES: usize = 6;
/// An input gets no longer than this by insertion.
const LONGEST: usize = 1 << 17;

impl Mutations {
    /// The same seed gives the same mutations.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number: SplitMix64 of Steele, Lea and Flood.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end.max(1) as u64) as usize
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.number() as u8).collect()
    }

    /// One of the seeds with changes, or, seldom, bytes without any sense.
    pub fn mutated(&mut self, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
        if seeds.is_empty() || self.below(32) == 0 {
            let count = self.below(200);
            return self.bytes(count);
        }
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(MOST_CHANGES) {
            self.change(&mut bytes, seeds, words);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&str]) {
        let at = self.below(bytes.len() + 1);
        let span = at..bytes.len().min(at + 1 + self.below(12));
        match self.below(if words.is_empty() { 9 } else { 12 }) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 if at < bytes.len() => bytes[at] = self.number() as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(span)),
            4 => {
                let again = bytes[span].to_vec();
                self.insert(bytes, at, &again);
            }
            5 | 6 => self.overwrite_number(bytes, at),
            7 => {
                // The rest becomes that of another seed.
                let other = &seeds[self.below(seeds.len())];
                let from = self.below(other.len() + 1);
                bytes.truncate(at);
                self.insert(bytes, at, &other[from..]);
            }
            8 => {
                let count = 1 + self.below(8);
                let drawn = self.bytes(count);
                self.insert(bytes, at, &drawn);
            }
            9.. => {
                // At the beginning of a word, if there is one before this.
                let is_blank = |&&byte: &&u8| byte.is_ascii_whitespace();
                let back = bytes[..at].iter().rev().take_while(|byte| !is_blank(byte)).count();
                let word = format!("{} ", words[self.below(words.len())]);
                self.insert(bytes, at - back, word.as_bytes());
            }
            _ => {}
        }
    }

    fn insert(&mut self, bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
        if bytes.len() + new.len() <= LONGEST {
            bytes.splice(at..at, new.iter().copied());
        }
    }

    /// A number of 1, 2, 4 or 8 bytes, in either order, from where lengths go wrong.
    fn overwrite_number(&mut self, bytes: &mut [u8], at: usize) {
        let width = 1 << self.below(4);
        let number = EDGES[self.below(EDGES.len())].wrapping_add(self.number() % 3).wrapping_sub(1);
        let Some(place) = bytes.get_mut(at..at + width) else { return };
        match self.below(2) {
            0 => place.copy_from_slice(&number.to_le_bytes()[..width]),
            _ => place.copy_from_slice(&number.to_be_bytes()[8 - width..]),
        }
    }
}
