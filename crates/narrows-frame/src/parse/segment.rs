//! The options of a TCP segment that a filter of acknowledgements compares (RFC 7323, RFC 2018).

use narrows_core::TcpOptions;

use super::{Found, TCP_HEADER, protocol};
use crate::LinkLayer;
use crate::bytes::{array, byte};

const END: u8 = 0;
const FILL: u8 = 1;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// A signature (RFC 2385): it says nothing but who sent the segment.
const SIGNATURE: u8 = 19;

/// The options of the TCP segment of a frame of `original` bytes, of which `frame` has the first. `None` if there is no segment,
/// or it has no options and no reserved bits.
pub fn tcp_options(layer: LinkLayer, frame: &[u8], original: u32) -> Option<TcpOptions> {
    let found = Found::new(layer, frame, original);
    let segment = found.transport(frame).filter(|_| found.is_of(protocol::TCP))?;
    let offset = byte(segment, 12)?;
    let header = usize::from(offset >> 4) * 4;
    // Reserved bits, and a header that is not all there.
    let is_odd = offset & 0xf != 0 || header < TCP_HEADER || header > segment.len();
    let mut options = TcpOptions::new(None, is_odd);
    read(segment.get(TCP_HEADER..header.min(segment.len())).unwrap_or_default(), &mut options);
    (options != TcpOptions::default()).then_some(options)
}

/// As Linux, reads up to an impossible length.
fn read(mut list: &[u8], options: &mut TcpOptions) {
    let mut has_sack = false;
    while let Some(kind) = byte(list, 0).filter(|kind| *kind != END) {
        if kind == FILL {
            list = &list[1..];
            continue;
        }
        let Some(whole) = byte(list, 1).and_then(|length| list.get(..usize::from(length))) else { return };
        let Some(value) = whole.get(2..) else { return };
        match kind {
            SIGNATURE => {}
            SACK if !has_sack => {
                has_sack = true;
                let blocks = value.chunks_exact(8);
                options.has_others |= !blocks.remainder().is_empty();
                for block in blocks {
                    let number = |at| array(block, at).map(u32::from_be_bytes).unwrap_or_default();
                    options.has_others |= !options.add_block([number(0), number(4)]);
                }
            }
            TIMESTAMPS if value.len() == 8 && options.timestamps.is_none() => {
                options.timestamps = Some([0, 4].map(|at| array(value, at).map_or(0, u32::from_be_bytes)));
            }
            _ => options.has_others = true,
        }
        list = &list[whole.len()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[u8]) -> TcpOptions {
        let mut options = TcpOptions::default();
        read(list, &mut options);
        options
    }

    #[test]
    fn timestamps_and_blocks_are_read() {
        let list = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 1, 0, 1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let options = of(&list);
        assert_eq!((options.timestamps, options.blocks()), (Some([7, 256]), &[[1, 2]][..]));
        assert!(!options.has_others);
        let four: Vec<u8> = [5, 34].into_iter().chain((0..32).map(|at| at / 4)).collect();
        assert_eq!(of(&four).blocks().len(), 4);
        assert!(!of(&four).has_others);
    }

    /// An acknowledgement with any of these is never dropped.
    #[test]
    fn other_options_are_noticed() {
        for list in [
            &[2, 4, 5, 180][..],
            &[3, 3, 7],
            &[4, 2],
            &[34, 2],
            &[5, 9, 0, 0, 0, 1, 0, 0, 0],
            &[8, 6, 0, 0, 0, 1],
            &[8, 10, 0, 0, 0, 1, 0, 0, 0, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1],
        ] {
            assert!(of(list).has_others, "{list:?}");
        }
        // MD5, and lists that end: nothing behind is read.
        let signature: Vec<u8> = [19, 18].into_iter().chain([0; 16]).collect();
        for list in [&signature[..], &[0, 2, 4, 5, 180], &[8, 1, 2, 4], &[8, 11, 0], &[5]] {
            assert_eq!(of(list), TcpOptions::default(), "{list:?}");
        }
    }
}
