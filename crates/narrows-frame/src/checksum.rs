//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

/// The one's complement sum of 16-bit words; carries are folded at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Adds bytes, padding an odd number with a zero byte: only the last piece may be odd.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(2);
        // 2^48 words of 16 bits fit in 64 bits: no input in memory overflows.
        self.0 += words.by_ref().map(|word| u64::from(word[0]) << 8 | u64::from(word[1])).sum::<u64>();
        if let [last] = words.remainder() {
            self.0 += u64::from(*last) << 8;
        }
        self
    }

    /// Adds a 32-bit number.
    pub(crate) fn number(self, number: u32) -> Self {
        Self(self.0 + u64::from(number >> 16) + u64::from(number & 0xffff))
    }

    /// Adds the pseudo header of RFC 768 or RFC 8200: addresses of 4 or 16 bytes each, the upper-layer length, and
    /// the protocol number.
    pub(crate) fn pseudo_header(
        self,
        source: &[u8],
        destination: &[u8],
        length: usize,
        protocol: u8,
    ) -> Self {
        self.bytes(source).bytes(destination).number(length as u32).number(u32::from(protocol))
    }

    /// The checksum: the complement of the sum. Zero if the summed bytes contain their own correct checksum.
    pub(crate) fn complement(self) -> u16 {
        let mut sum = self.0;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// Updates a checksum after one of the covered words changed from `old` to `new`: RFC 1624, equation 3. A wrong
/// checksum stays wrong by the same amount.
pub(crate) fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::default().number(u32::from(!checksum)).number(u32::from(!old)).number(u32::from(new)).complement()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let sum = Sum::default().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(!sum.complement(), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn a_change_in_place_gives_what_summing_again_gives(
            mut bytes in proptest::collection::vec(any::<u8>(), 20..60), at in 1usize..10, new: u16,
        ) {
            // A header has a byte that is not zero, so its sum is never the zero that has two forms.
            bytes[0] |= 0x40;
            let before = Sum::default().bytes(&bytes).complement();
            let old = u16::from_be_bytes([bytes[2 * at], bytes[2 * at + 1]]);
            bytes[2 * at..2 * at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(updated(before, old, new), Sum::default().bytes(&bytes).complement());
        }

        #[test]
        fn bytes_with_their_checksum_sum_to_nothing(mut bytes in proptest::collection::vec(any::<u8>(), 2..600)) {
            bytes[0] = 0;
            bytes[1] = 0;
            let checksum = Sum::default().bytes(&bytes).complement();
            bytes[..2].copy_from_slice(&checksum.to_be_bytes());
            prop_assert_eq!(Sum::default().bytes(&bytes).complement(), 0);
        }
    }
}
