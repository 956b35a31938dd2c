//! The Internet checksum (RFC 1071) over whole packets.

/// Bytes added at once. The sum does not depend on the order of its words, nor, except for a swap at the end, on the
/// order of the bytes in them; so it is computed from 32-bit words in native byte order, several in parallel.
const STRIDE: usize = 32;

/// The one's complement sum of the bytes and of the words in `from`, in network order.
pub(crate) fn sum(from: u64, bytes: &[u8]) -> u16 {
    let (strides, rest) = bytes.as_chunks::<STRIDE>();
    // Each stride uses at most a 2^32nd part of a lane's range: no packet overflows it.
    let mut lanes = [0_u64; STRIDE / 4];
    for stride in strides {
        let (words, _) = stride.as_chunks::<4>();
        for (lane, &word) in lanes.iter_mut().zip(words) {
            *lane += u64::from(u32::from_ne_bytes(word));
        }
    }
    let (words, last) = rest.as_chunks::<2>();
    let mut native: u64 = words.iter().map(|&word| u64::from(u16::from_ne_bytes(word))).sum();
    if let [last] = last {
        native += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    native += lanes.iter().map(|lane| (lane >> 32) + (lane & 0xffff_ffff)).sum::<u64>();
    fold(from + u64::from(u16::from_be(fold(native))))
}

/// The one's complement sum of the 16-bit words of a number.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// As stored in a header: a UDP checksum is never zero, which would mean "no checksum".
pub(crate) fn stored(checksum: u16, is_udp: bool) -> [u8; 2] {
    if is_udp && checksum == 0 { [0xff; 2] } else { checksum.to_be_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Word by word, as the RFC has it.
    fn plain(bytes: &[u8]) -> u16 {
        let words = bytes
            .chunks(2)
            .map(|word| u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or_default()])));
        fold(words.sum())
    }

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(sum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn any_length_gives_what_the_plain_sum_gives() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for length in (0..200).chain([1447, 1448, 1449, 65_535, 70_000]) {
            let bytes = &bytes[bytes.len() - length..];
            assert_eq!(sum(0, bytes), plain(bytes), "{length}");
            assert_eq!(sum(0x1_2345, bytes), fold(0x1_2345 + u64::from(plain(bytes))), "{length}");
        }
        assert_eq!(sum(0, &[0xff; 4096]), 0xffff);
    }
}
