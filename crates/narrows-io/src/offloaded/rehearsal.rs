//! Trains without a kernel: arbitrary bytes as a frame with the kernel's description, split, changed on the way, joined
//! and split again by what the kernel would be told. For fuzzers and tests; nothing here makes a system call.

use super::join::{Headers, join};
use super::{Cut, Described, HEADER, Whole};
use crate::frame::{Frame, FramePool};

/// Receives and sends a frame. `bytes` are the kernel's description (10 bytes); how many bytes arrive in the first buffer,
/// in units of 16; which packets of a train are lost, one bit each; then the frame.
///
/// # Panics
/// If a wire behind the joined trains would carry other bytes than a wire behind the single packets.
pub fn rehearse(bytes: &[u8]) {
    let Some((described, rest)) = bytes.split_at_checked(HEADER) else { return };
    let Some((&[head, lost], frame)) = rest.split_first_chunk::<2>() else { return };
    let (head, tail) = frame.split_at(frame.len().min(16 * usize::from(head)));
    for tag in [&[][..], &[0x81, 0, 0, 7]] {
        let whole = Whole { described: Described::parse(described), head, tail, tag };
        let mut pool = FramePool::default();
        let mut frames = Vec::new();
        let count = Cut::default().cut(whole, &mut pool, |frame| frames.push(frame));
        assert_eq!(count.unwrap_or(1), frames.len());
        let mut number = 0;
        frames.retain(|_| {
            number += 1;
            count.is_none() || lost >> (number % 8) & 1 == 0
        });
        let single: Vec<_> = frames.iter().map(|frame| frame.on_the_wire(&mut Vec::new()).to_vec()).collect();
        assert_eq!(sent(frames), single);
    }
}

/// What a wire carries once the kernel has split what it was given.
fn sent(mut frames: Vec<Frame>) -> Vec<Vec<u8>> {
    let mut wire = Vec::new();
    let mut headers = Headers::EMPTY;
    let mut rest = &mut frames[..];
    while !rest.is_empty() {
        let taken = join(rest);
        let (mut now, later) = rest.split_at_mut(taken);
        rest = later;
        while !now.is_empty() {
            let count = 1 + now[1..].iter().take_while(|frame| frame.was_joined()).count();
            let (train, behind) = now.split_at_mut(count);
            now = behind;
            let from = headers.of(train);
            let mut bytes = headers.get().to_vec();
            train.iter().for_each(|frame| bytes.extend_from_slice(&frame[from..]));
            let (before, frame) = bytes.split_at(HEADER);
            assert!(train.len() == 1 || frame.len() <= 65_535, "longer than the kernel takes");
            let whole = Whole { described: Described::parse(before), head: frame, tail: &[], tag: &[] };
            Cut::default().cut(whole, &mut FramePool::default(), |mut frame| {
                frame.finish();
                wire.push(frame.to_vec());
            });
        }
    }
    wire
}
