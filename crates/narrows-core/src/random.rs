//! Keyed random draws.
//!
//! Every draw is a function of (seed, element name, purpose, packet, visit, copy) and nothing else. So adding
//! an element, enabling an impairment or losing a packet earlier changes no other draw. A copy is identified
//! by its lineage (what it is a copy of, and where it was made), not by its number, which depends on what
//! else was copied. The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
//! easy as 1, 2, 3", SC 2011): the first three parts of the key make its 64-bit key, the last three its
//! 128-bit counter.

use crate::units::Probability;

/// The seed of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed(pub u64);

/// All draws of one purpose at one element.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    key: [u32; 2],
}

impl Stream {
    /// The stream of `purpose` at the element named `element`.
    pub fn new(seed: Seed, element: &str, purpose: &str) -> Self {
        let key = key(seed, element, purpose);
        Self { key: [key as u32, (key >> 32) as u32] }
    }

    /// The key of the generator, for what draws the same elsewhere: the first draw of a packet is the first half of the
    /// block with the counter (number, upper half of the number, [`port_origin`], 0).
    pub const fn key(&self) -> [u32; 2] {
        self.key
    }

    /// The draws for one packet at its `visit`th visit, from 0. `origin` is the hash of the port where the
    /// packet came in, and `number` its number there, of 48 bits. `lineage` is 0 for the packet itself.
    pub fn draw(&self, origin: u32, number: u64, visit: u8, lineage: u32) -> Draw {
        // Two packets with the same number share a draw if their origins and lineages, which are hashes, have
        // the same difference. The probability is 2⁻³², and zero for packets that are not copies.
        let counter = [number as u32, (number >> 32) as u32, origin ^ lineage, u32::from(visit) << 24];
        Draw { key: self.key, counter, spare: None }
    }

    /// The lineage of a copy, which identifies it in the keys of its draws: computed from its parent's
    /// lineage and from where, at which visit and as which copy it was made. Never 0.
    pub(crate) fn lineage(&self, parent: u32, visit: u8, nth: u16) -> u32 {
        let made = u64::from(parent) << 32 | u64::from(visit) << 16 | u64::from(nth);
        let maker = u64::from(self.key[0]) | u64::from(self.key[1]) << 32;
        (mix(maker ^ mix(made)) as u32).max(1)
    }

    /// The `index`th draw of a sequence that belongs to no packet, such as the gaps of a traffic source.
    pub fn nth(&self, index: u64) -> Draw {
        // The upper bit of the last word separates these from packets' draws of a stream with the same name.
        let counter = [index as u32, (index >> 32) as u32, 0, 1 << 23];
        Draw { key: self.key, counter, spare: None }
    }
}

/// The key for a seed, an element and a purpose.
pub(crate) fn key(seed: Seed, element: &str, purpose: &str) -> u64 {
    let named = hash(element.as_bytes().iter().chain(&[0xff]).chain(purpose.as_bytes()));
    mix(seed.0 ^ mix(named))
}

/// The key of a port in draws: a hash of its name, so that adding a port changes no other port's.
pub(crate) fn origin(port: &str) -> u32 {
    mix(hash(port.as_bytes().iter())) as u32
}

/// The key of a port in the counters of draws, by its name.
pub fn port_origin(port: &str) -> u32 {
    origin(port)
}

/// The draws for one decision: as many words as requested, in order.
#[derive(Clone, Debug)]
pub struct Draw {
    key: [u32; 2],
    counter: [u32; 4],
    /// The unused half of a block.
    spare: Option<u64>,
}

impl Draw {
    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let [a, b, c, d] = rand_philox::philox4x32_10(self.counter, self.key);
        // The lower 23 bits of the last word number the blocks of one decision.
        self.counter[3] += 1;
        self.spare = Some(u64::from(c) | u64::from(d) << 32);
        u64::from(a) | u64::from(b) << 32
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: Probability) -> bool {
        p.decides(self.bits())
    }

    /// Uniform in the open interval (0, 1): a multiple of 2⁻⁵³ plus 2⁻⁵⁴, rounded, and never 0 or 1.
    pub fn uniform(&mut self) -> f64 {
        unit(self.bits())
    }

    /// An integer below `limit` (zero if `limit` is zero). The bias is below `limit`·2⁻⁶⁴.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }
}

/// See [`Draw::uniform`]. From ½ on, a float has no room for the 2⁻⁵⁴, and the last value would be rounded to
/// 1.
fn unit(bits: u64) -> f64 {
    const LAST: f64 = 1.0 - f64::EPSILON / 2.0;
    (((bits >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)).min(LAST)
}

/// FNV-1a, 64 bits: names are short, and [`mix`] spreads the bits.
fn hash<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014), after its increment.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // Known answers from Random123's kat_vectors for philox4x32, 10 rounds.
        assert_eq!(
            rand_philox::philox4x32_10([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            rand_philox::philox4x32_10(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn every_part_of_the_key_changes_the_draw() {
        let first = |seed, element, purpose, origin, number, visit, lineage| {
            Stream::new(Seed(seed), element, purpose).draw(origin, number, visit, lineage).bits()
        };
        let base = first(1, "a", "loss", 0, 0, 0, 0);
        assert_eq!(base, first(1, "a", "loss", 0, 0, 0, 0));
        for other in [
            first(2, "a", "loss", 0, 0, 0, 0),
            first(1, "b", "loss", 0, 0, 0, 0),
            first(1, "a", "delay", 0, 0, 0, 0),
            first(1, "a", "loss", 1, 0, 0, 0),
            first(1, "a", "loss", 0, 1, 0, 0),
            first(1, "a", "loss", 0, 1 << 40, 0, 0),
            first(1, "a", "loss", 0, 0, 1, 0),
            first(1, "a", "loss", 0, 0, 0, 1),
            Stream::new(Seed(1), "a", "loss").nth(0).bits(),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn the_ends_of_the_unit_interval_are_never_drawn() {
        assert_eq!(unit(0), 0.5 / (1u64 << 53) as f64);
        assert_eq!(unit(u64::MAX), 1.0 - 1.0 / (1u64 << 53) as f64);
        assert_eq!(unit(1 << 63), 0.5);
    }

    #[test]
    fn draws_stay_in_range_and_do_not_repeat() {
        let mut draw = Stream::new(Seed(3), "x", "y").nth(0);
        let mut last = 0;
        for _ in 0..1000 {
            let u = draw.uniform();
            assert!(u > 0.0 && u < 1.0);
            assert!(draw.below(7) < 7);
            let bits = draw.bits();
            assert_ne!(bits, last);
            last = bits;
        }
        assert_eq!(draw.below(0), 0);
    }
}
