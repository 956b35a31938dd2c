//! Joining: frames sent directly after each other become a train again, if splitting it would give the same bytes.

use super::{CWR, Described, FIN_AND_PSH, HEADER, Layout, Open, UDP};
use crate::frame::Frame;

/// The maximum length of a train's headers. Trains with longer ones (many extension headers) are not joined.
pub(crate) const LONGEST_HEADERS: usize = 160;
/// The maximum length of a train: the kernel splits longer ones itself.
const LONGEST: usize = 65_535;
/// The maximum number of frames per call.
pub(crate) const MOST: usize = 128;
/// From this number on, a call starts no further train, so that trains are not divided by the end of a call.
const ENOUGH: usize = 64;

/// Marks those of the first frames that are to be sent joined to the frame before, and returns how many of them one
/// call should take.
pub(crate) fn join<F: AsMut<Frame>>(frames: &mut [F]) -> usize {
    let (mut length, mut taken) = (0, 0);
    while taken < frames.len().min(MOST) {
        let (before, from) = frames.split_at_mut(taken);
        let Some(next) = from.first_mut().map(AsMut::as_mut) else { break };
        let added = next.len().saturating_sub(usize::from(next.open.payload));
        let joins = match before.last_mut() {
            Some(last) => length + added <= LONGEST && continues(last.as_mut(), next),
            None => false,
        };
        if !joins && taken >= ENOUGH {
            break;
        }
        next.open.joins = joins;
        length = if joins { length + added } else { next.len() };
        taken += 1;
    }
    taken
}

/// Whether a train whose last frame is `before` can be extended by `next`.
fn continues(before: &Frame, next: &Frame) -> bool {
    let open = Open { joins: false, ..before.open };
    let (payload, segment) = (usize::from(open.payload), usize::from(open.segment));
    if open.kind == 0
        || open != (Open { joins: false, ..next.open })
        || payload > LONGEST_HEADERS
        || before.len() != payload + segment
        || next.len() <= payload
        || next.len() > payload + segment
    {
        return false;
    }
    let Some(layout) = Layout::of(before, usize::from(open.transport), open.kind == UDP) else {
        return false;
    };
    if layout.payload != payload {
        return false;
    }
    let (mut wanted, mut found) = ([0; LONGEST_HEADERS], [0; LONGEST_HEADERS]);
    let (wanted, found) = (&mut wanted[..payload], &mut found[..payload]);
    wanted.copy_from_slice(&before[..payload]);
    found.copy_from_slice(&next[..payload]);
    if !layout.is_udp {
        let flags = layout.transport + 13;
        // The kernel keeps these flags only in the last segment, and that one only in the first.
        if wanted[flags] & FIN_AND_PSH != 0 || found[flags] & CWR != 0 {
            return false;
        }
        wanted[flags] &= !CWR;
        found[flags] &= !FIN_AND_PSH;
        let sequence = &mut wanted[layout.transport + 4..layout.transport + 8];
        let own = u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]);
        sequence.copy_from_slice(&own.wrapping_add(open.segment.into()).to_be_bytes());
    }
    if layout.is_ipv4 {
        let identification = &mut wanted[layout.network + 4..layout.network + 6];
        let own = u16::from_be_bytes([identification[0], identification[1]]);
        identification.copy_from_slice(&own.wrapping_add(1).to_be_bytes());
    }
    // The IPv4 checksum is recomputed on the path, so an incorrect one prevents joining.
    layout.set_payload(wanted, segment, next.len() - payload);
    wanted == found
}

/// The virtio header of a train, and the train's headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    bytes: [u8; HEADER + LONGEST_HEADERS],
    length: usize,
}

impl Headers {
    /// Empty.
    pub(crate) const EMPTY: Self = Self { bytes: [0; HEADER + LONGEST_HEADERS], length: 0 };

    /// The headers of frames that [`join`] has marked for joining, or of one frame. Returns the offset from which
    /// each frame's bytes follow them.
    pub(crate) fn of<F: AsMut<Frame>>(&mut self, frames: &mut [F]) -> usize {
        match frames {
            [] => self.of_one(Open::default()),
            [one] => self.of_one(one.as_mut().open),
            [first, between @ .., last] => {
                let at = usize::from(first.as_mut().open.payload);
                let added = |frame: &mut F| frame.as_mut().len() - at;
                let others: usize = between.iter_mut().map(added).sum();
                let last = last.as_mut();
                self.of_train(first.as_mut(), last, others + last.len() - at)
            }
        }
    }

    fn of_one(&mut self, open: Open) -> usize {
        self.bytes[..HEADER].copy_from_slice(&open.described().bytes());
        self.length = HEADER;
        0
    }

    /// For a train with `others` bytes of payload after the first frame's.
    fn of_train(&mut self, first: &Frame, last: &Frame, others: usize) -> usize {
        let open = first.open;
        let at = usize::from(open.payload);
        self.length = HEADER + at;
        let (before, headers) = self.bytes[..HEADER + at].split_at_mut(HEADER);
        headers.copy_from_slice(&first[..at]);
        let mut congested = false;
        if let Some(layout) = Layout::of(headers, usize::from(open.transport), open.kind == UDP) {
            let own = first.len() - at;
            layout.set_payload(headers, own, own + others);
            if !layout.is_udp {
                let flags = layout.transport + 13;
                headers[flags] |= last[flags] & FIN_AND_PSH;
                congested = headers[flags] & CWR != 0;
            }
        }
        let described = Described {
            kind: open.kind,
            congested,
            headers: open.payload,
            segment: open.segment,
            checksum: Some((open.transport, open.field)),
        };
        before.copy_from_slice(&described.bytes());
        at
    }

    /// The bytes.
    pub(crate) fn get(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
