//! Sets of values as prefixes.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::address::Address;

/// Values with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece<A> {
    pub(super) value: A,
    pub(super) bits: u8,
}

/// Maximum number of pieces for one field of a rule. More pieces are replaced by their common prefix.
const MOST: usize = 8;

impl<A: Address> Piece<A> {
    /// All values.
    pub(super) fn all() -> Self {
        Self { value: A::default(), bits: 0 }
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.bits <= other.bits && other.value.first(self.bits) == self.value
    }

    /// The smallest piece that contains both.
    pub(super) fn over(self, other: Self) -> Self {
        let bits = self.bits.min(other.bits).min((self.value ^ other.value).leading_zeros());
        Self { value: self.value.first(bits), bits }
    }
}

/// The smallest piece that contains all of these.
pub(super) fn hull<A: Address>(pieces: &[Piece<A>]) -> Piece<A> {
    pieces.iter().copied().reduce(Piece::over).unwrap_or(Piece::all())
}

/// A few disjoint pieces that cover all values of these.
pub(super) fn apart<A: Address>(mut pieces: Vec<Piece<A>>) -> Vec<Piece<A>> {
    pieces.sort_unstable();
    // Pieces that another one contains come after it.
    pieces.dedup_by(|next, kept| kept.has(*next));
    if pieces.len() > MOST {
        pieces = alloc::vec![hull(&pieces)];
    }
    pieces
}

/// Pieces of addresses under masks: the contiguous leading bits of the masks.
pub(super) fn of_hosts<A: Address>(hosts: impl Iterator<Item = (A, A)>) -> Vec<Piece<A>> {
    let piece = |(address, mask): (A, A)| {
        let bits = mask.leading_ones();
        Piece { value: address.first(bits), bits }
    };
    hosts.map(piece).collect()
}

/// Pieces of ranges of ports.
pub(super) fn of_ports<A: Address>(ranges: &[RangeInclusive<u16>]) -> Vec<Piece<A>> {
    let mut pieces = Vec::new();
    for range in ranges {
        let (mut first, last) = (u32::from(*range.start()), u32::from(*range.end()));
        while first <= last {
            // The largest block that begins there and does not exceed the last value.
            let aligned = if first == 0 { 16 } else { first.trailing_zeros() };
            let block = aligned.min((last + 1 - first).ilog2());
            let bits = 16 - block as u8;
            pieces.push(Piece { value: A::top(first as u16, 16), bits });
            first += 1 << block;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_the_values_of_ranges_and_no_others() {
        for ranges in [
            alloc::vec![0..=65_535],
            alloc::vec![1..=65_534],
            alloc::vec![1024..=65_535],
            alloc::vec![80..=80, 443..=443, 80..=90],
            alloc::vec![RangeInclusive::new(5, 4)],
            alloc::vec![0..=0, 65_535..=65_535, 7..=700],
        ] {
            let pieces = of_ports::<u32>(&ranges);
            let within = |pieces: &[Piece<u32>], port| {
                let port = Piece { value: u32::top(port, 16), bits: 32 };
                pieces.iter().filter(|piece| piece.has(port)).count()
            };
            let few = apart(pieces.clone());
            assert!(few.len() <= MOST);
            for port in 0..=u16::MAX {
                let is_meant = ranges.iter().any(|range| range.contains(&port));
                assert_eq!(within(&pieces, port) > 0, is_meant, "{ranges:?} {port}");
                let found = within(&few, port);
                assert!(found <= 1 && (found == 1 || !is_meant), "{ranges:?} {port}");
            }
        }
    }

    #[test]
    fn hosts_with_gaps_in_their_masks_are_in_their_pieces() {
        let hosts = [(0x0a00_0005u32, 0xffff_00ff), (0x0a01_0000, 0xffff_0000), (0x0a01_0200, 0xffff_ff00)];
        let pieces = apart(of_hosts(hosts.into_iter()));
        assert_eq!(pieces, [Piece { value: 0x0a00_0000, bits: 16 }, Piece { value: 0x0a01_0000, bits: 16 }]);
        assert_eq!(hull(&pieces), Piece { value: 0x0a00_0000, bits: 15 });
        assert_eq!(hull::<u32>(&[]), Piece::all());
    }
}
