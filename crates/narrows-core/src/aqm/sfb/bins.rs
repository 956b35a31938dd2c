//! The bins of SFB, and the hash that maps flows to them.

use crate::classify;
use crate::pool::PacketState;
use crate::units::Probability;

use super::SfbConfig;

/// Levels, and bins of each.
pub(super) const LEVELS: usize = 8;
pub(super) const BINS: usize = 16;

/// The greatest probability, in units of itself.
pub(super) const CERTAIN: u32 = 65_535;

/// A probability as a multiple of 1/65535, rounded.
pub(super) fn fixed(probability: Probability) -> u32 {
    (probability.as_f64() * f64::from(CERTAIN) + 0.5) as u32
}

/// The bins of one hash function.
#[derive(Clone, Debug, Default)]
pub(super) struct Bins([[Bin; BINS]; LEVELS]);

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    /// Its packets that wait.
    packets: u64,
    /// p.
    chance: u32,
}

/// The bins of a flow: four bits of a hash for each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    /// Those of a packet's flow under the hash function with this key.
    pub(super) fn of(packet: &PacketState, key: u64) -> Self {
        Self(classify::five_tuple(&packet.seen_key(), key) as u32)
    }

    /// The number of its bin at each level.
    fn numbers(self) -> [usize; LEVELS] {
        core::array::from_fn(|level| (self.0 >> (4 * level)) as usize % BINS)
    }
}

impl Bins {
    fn of(&mut self, place: Place) -> impl Iterator<Item = &mut Bin> {
        self.0.iter_mut().zip(place.numbers()).map(|(level, number)| &mut level[number])
    }

    /// Adjusts the probabilities on an arrival. Returns the fewest packets of any of the flow's bins, and the least p.
    pub(super) fn observe(&mut self, place: Place, config: &SfbConfig) -> (u64, u32) {
        let (mut fewest, mut least) = (u64::MAX, CERTAIN);
        for bin in self.of(place) {
            if bin.packets == 0 {
                bin.chance = bin.chance.saturating_sub(fixed(config.decrement));
            } else if bin.packets >= config.bin_target {
                bin.chance = (bin.chance + fixed(config.increment)).min(CERTAIN);
            }
            fewest = fewest.min(bin.packets);
            least = least.min(bin.chance);
        }
        (fewest, least)
    }

    /// A packet begins to wait.
    pub(super) fn join(&mut self, place: Place) {
        self.of(place).for_each(|bin| bin.packets += 1);
    }

    /// A packet that joined leaves.
    pub(super) fn leave(&mut self, place: Place) {
        self.of(place).for_each(|bin| bin.packets -= 1);
    }

    /// The least p of a flow's bins.
    #[cfg(test)]
    pub(super) fn least(&mut self, place: Place) -> u32 {
        self.of(place).map(|bin| bin.chance).min().unwrap_or(0)
    }

    /// Sets p in all bins of a flow.
    #[cfg(test)]
    pub(super) fn set(&mut self, place: Place, chance: u32) {
        self.of(place).for_each(|bin| bin.chance = chance);
    }
}
