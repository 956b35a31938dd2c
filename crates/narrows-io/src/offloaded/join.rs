//! Joining: frames that leave one behind the other become a train again, if cutting it gives their bytes.

use super::{CWR, Described, FIN_AND_PSH, HEADER, Layout, Open, UDP};
use crate::frame::Frame;

/// Room for the headers of a train. Longer ones (many extension headers) are not joined.
pub(crate) const LONGEST_HEADERS: usize = 160;
/// The most bytes of a train: the kernel cuts longer ones itself.
const LONGEST: usize = 65_535;
/// The most frames of one call.
pub(crate) const MOST: usize = 128;
/// With this many, a call begins no further train: what is joined should not be parted by where a call ends.
const ENOUGH: usize = 64;

/// Marks those of the first frames that are to leave as one with the frame before, and says how many of them one call
/// should take.
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

/// Whether a train that has `before` for its last frame could have `next` for one more.
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
        // The kernel leaves these to the last segment, and that to the first.
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
    // That of IPv4 is made anew on the way, so one that is wrong is not taken for it.
    layout.set_payload(wanted, segment, next.len() - payload);
    wanted == found
}

/// The header before a train, and the train's headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    bytes: [u8; HEADER + LONGEST_HEADERS],
    length: usize,
}

impl Headers {
    /// Nothing yet.
    pub(crate) const EMPTY: Self = Self { bytes: [0; HEADER + LONGEST_HEADERS], length: 0 };

    /// Those of frames that [`join`] has found to leave as one, or of one frame. Gives from where on the bytes of each frame
    /// follow them.
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

    /// Of a train with `others` bytes of payload behind those of the first frame.
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
