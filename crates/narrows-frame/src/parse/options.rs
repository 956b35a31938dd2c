//! The options of IPv4 and TCP headers, as far as rules match them (RFC 791 section 3.1, RFC 9293 section 3.1).

use narrows_core::Headers;

use crate::bytes::{byte, word};

/// The kinds of an option that ends the list, and of one that fills a byte; both have no length.
const END: u8 = 0;
const FILL: u8 = 1;

/// The options of an IPv4 header as bits: see [`Headers::ip_options`].
pub(super) fn of_ipv4(mut options: &[u8]) -> u8 {
    let mut found = 0;
    while let Some((kind, rest)) = next(options) {
        let Some(rest) = rest else { return found | Headers::MALFORMED_OPTIONS };
        found |= match kind {
            131 => 1, // loose source route
            137 => 2, // strict source route
            7 => 4,   // record route
            68 => 8,  // timestamp
            _ => 0,
        };
        options = rest;
    }
    found
}

/// The options of a TCP header as bits, up to one with an impossible length, and the maximum segment size: see
/// [`Headers::tcp_options`].
pub(super) fn of_tcp(mut options: &[u8]) -> (u8, u16) {
    let (mut found, mut mss) = (0, 0);
    while let Some((kind, Some(rest))) = next(options) {
        found |= match kind {
            2 if options.len() - rest.len() == 4 => {
                mss = word(options, 2).unwrap_or_default();
                Headers::TCP_OPTION_MSS
            }
            3 => 2,        // window scale
            4 | 5 => 4,    // selective acknowledgement: permission, blocks
            8 => 8,        // timestamps
            11..=13 => 16, // connection counts of T/TCP
            _ => 0,
        };
        options = rest;
    }
    (found, mss)
}

/// The kind of the first option, and what follows it, unless its length is impossible: 0, or more than there is. As in
/// ipfw, an option of 1 byte is let pass.
fn next(options: &[u8]) -> Option<(u8, Option<&[u8]>)> {
    let kind = byte(options, 0).filter(|kind| *kind != END)?;
    let length = if kind == FILL { Some(1) } else { byte(options, 1).filter(|length| *length > 0) };
    Some((kind, length.and_then(|length| options.get(usize::from(length)..))))
}

#[cfg(test)]
mod tests {
    use super::{of_ipv4, of_tcp};

    #[test]
    fn options_are_read_up_to_their_end() {
        assert_eq!(of_ipv4(&[]), 0);
        assert_eq!(of_ipv4(&[1, 7, 3, 4, 0, 131, 3, 4]), 4);
        assert_eq!(of_ipv4(&[131, 3, 4, 137, 3, 4, 68, 4, 5, 0, 148, 4, 0, 0]), 1 | 2 | 8);
        assert_eq!(of_ipv4(&[7, 3, 4, 131]), 4 | 0x80);
        assert_eq!(of_ipv4(&[7, 0, 4, 0]), 0x80);
        assert_eq!(of_ipv4(&[7, 1, 0, 0]), 4);
        assert_eq!(of_ipv4(&[7, 9, 4, 0]), 0x80);
        // The options of a SYN of Linux: MSS 1460, permission, timestamps, fill, window scale 7.
        let syn = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(of_tcp(&syn), (1 | 2 | 4 | 8, 1460));
        assert_eq!(of_tcp(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]), (8, 0));
        assert_eq!(of_tcp(&[11, 6, 0, 0, 0, 1, 0, 2, 4, 5]), (16, 0));
        assert_eq!(of_tcp(&[2, 4, 5]), (0, 0));
        assert_eq!(of_tcp(&[3, 0, 2, 4, 5, 180]), (0, 0));
    }
}
