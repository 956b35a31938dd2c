//! Acknowledgements of TCP connections that do not exist.

use narrows_core::{Seed, Stream};

use crate::segment::Segment;
use crate::traffic::{Datagram, Flow, LONGEST};

/// ECE and CWR.
const CONGESTION: [u8; 2] = [0x40, 0x80];
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;
const FIN: u8 = 0x01;

/// The segments of a receiver that acknowledges more and more, at gaps of half a millisecond on average: with timestamps in
/// flows of even numbers, with losses that it acknowledges selectively, duplicates, congestion, and data of its own.
pub(super) fn acknowledgements(number: u16, from: u64, until: u64) -> Vec<Datagram> {
    const SEGMENT: u32 = 1448;
    let draws = Stream::new(Seed(3), "oracle", "acknowledgements");
    let mut at = from;
    // It passes the end of the numbers on the way.
    let mut acknowledged = 0_u32.wrapping_sub(300 * SEGMENT);
    let mut gap: Option<[u32; 2]> = None;
    let mut clock = u32::MAX - 500;
    let mut segments = Vec::new();
    for step in 0.. {
        let draw = |purpose: u64, below: u64| {
            draws.nth(u64::from(number) << 40 | step << 8 | purpose).below(below) as u32
        };
        at += 100_000 + u64::from(draw(0, 800_000));
        if at >= until {
            break;
        }
        clock = clock.wrapping_add(draw(1, 2));
        let mut segment = Segment { flags: ACK, ..Segment::default() };
        let mut data = 0;
        if let Some([first, end]) = gap {
            // More arrived behind what is missing, or what was missing.
            if draw(3, 8) > 0 {
                gap = Some([first, end.wrapping_add(SEGMENT * draw(4, 3))]);
            } else {
                (acknowledged, gap) = (end, None);
            }
        } else {
            match draw(2, 100) {
                0..60 => acknowledged = acknowledged.wrapping_add(SEGMENT * (1 + draw(5, 2))),
                60..70 => {
                    let first = acknowledged.wrapping_add(SEGMENT);
                    gap = Some([first, first.wrapping_add(SEGMENT)]);
                }
                // A duplicate that came is reported.
                70..74 => segment.blocks[1] = Some([acknowledged.wrapping_sub(SEGMENT), acknowledged]),
                74..80 => segment.flags |= CONGESTION[draw(6, 2) as usize],
                80..84 => segment.flags |= PSH,
                84..92 => data = 1 + draw(7, 600),
                92..95 => segment.is_odd = true,
                95..97 => segment.flags |= FIN,
                // The window only.
                _ => {}
            }
        }
        segment.blocks[0] = gap;
        segment.acknowledgement = acknowledged;
        segment.timestamps = number.is_multiple_of(2).then(|| [clock, clock.wrapping_sub(draw(8, 3))]);
        let length = segment.frame(data).min(LONGEST);
        segments.push(Flow::new(number).length(length).segment(at, segment));
    }
    segments
}
