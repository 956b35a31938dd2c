//! Bands that exist by themselves, in `prio` and `ets`.

use narrows_core::classify::Families;

use crate::value::Match;

/// Bands, and the band of each of 16 priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bands {
    pub(super) bands: u8,
    pub(super) map: [u8; 16],
}

impl Bands {
    /// tc's default for `prio`.
    pub(super) const MAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    /// The priority, an index into the map, that the kernel assigns to packets by the low-delay and
    /// high-throughput bits of their code points (`ip_tos2prio` in net/ipv4/route.c).
    pub(super) const OF_POINTS: [(u8, usize); 4] = [(0b000, 0), (0b010, 2), (0b100, 6), (0b110, 4)];

    /// The condition of IPv4 packets with these bits: the kernel takes no priority from others.
    pub(super) fn asks(bits: u8) -> Match {
        Match { dscps: Self::points(bits).collect(), families: vec![Families::IPV4], ..Match::default() }
    }

    /// The code points with these low-delay and high-throughput bits.
    pub(super) fn points(bits: u8) -> impl Iterator<Item = u8> {
        (0..64).filter(move |point| point & 0b110 == bits)
    }
}
