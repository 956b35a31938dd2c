//! Splitting: a train becomes the frames that a wire would have carried.

use super::{CWR, Described, FIN_AND_PSH, Layout, Open, TAG_AT, TCP_IPV4, TCP_IPV6, UDP};
use crate::frame::{Frame, FramePool};

/// A frame as received from the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole<'a> {
    /// The kernel's description of it.
    pub(crate) described: Described,
    /// Its first bytes: all headers.
    pub(crate) head: &'a [u8],
    /// The remaining bytes.
    pub(crate) tail: &'a [u8],
    /// A VLAN tag that the kernel has removed from it.
    pub(crate) tag: &'a [u8],
}

/// A buffer for the headers that all frames of a train share, reused for every train.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    headers: Vec<u8>,
}

impl Cut {
    /// Passes each frame that a wire would have carried to `emit`; its checksum stays incomplete if it is in `whole`.
    /// A frame that cannot be split because it does not match the kernel's description is passed whole. Returns the
    /// number of frames if it was a train, otherwise `None`.
    pub(crate) fn cut(
        &mut self,
        whole: Whole<'_>,
        pool: &mut FramePool,
        mut emit: impl FnMut(Frame),
    ) -> Option<usize> {
        let (addresses, rest) = whole.head.split_at(TAG_AT.min(whole.head.len()));
        let Some(train) = Train::of(whole) else {
            let mut frame = pool.joined(&[addresses, whole.tag, rest, whole.tail]);
            frame.open = Open::checksum(&frame, whole.described.shifted(whole.tag.len()));
            emit(frame);
            return None;
        };
        let from = train.layout.payload - whole.tag.len();
        self.headers.clear();
        for part in [addresses, whole.tag, &rest[..from - addresses.len()]] {
            self.headers.extend_from_slice(part);
        }
        let all = whole.head.len() + whole.tail.len() - from;
        let count = all.div_ceil(train.segment);
        for number in 0..count {
            let begin = number * train.segment;
            let payload = train.segment.min(all - begin);
            let [first, second] = between(whole.head, whole.tail, from + begin, from + begin + payload);
            let mut frame = pool.joined(&[&self.headers, first, second]);
            train.place(&mut frame, number, number + 1 == count);
            train.layout.set_payload(&mut frame, all, payload);
            frame.open = train.open;
            emit(frame);
        }
        Some(count)
    }
}

/// The bytes from `from` to `to` of `head` followed by `tail`.
fn between<'a>(head: &'a [u8], tail: &'a [u8], from: usize, to: usize) -> [&'a [u8]; 2] {
    let in_head = |at: usize| at.min(head.len());
    let in_tail = |at: usize| at.saturating_sub(head.len());
    [&head[in_head(from)..in_head(to)], &tail[in_tail(from)..in_tail(to)]]
}

struct Train {
    layout: Layout,
    segment: usize,
    /// The incomplete parts of each of its frames.
    open: Open,
}

impl Train {
    /// The positions of the headers once the tag is inserted.
    fn of(whole: Whole<'_>) -> Option<Self> {
        let Described { kind, segment, checksum, .. } = whole.described;
        if !matches!(kind, TCP_IPV4 | TCP_IPV6 | UDP) || segment == 0 {
            return None;
        }
        let (transport, _) = checksum?;
        let mut layout = Layout::of(whole.head, usize::from(transport), kind == UDP)?;
        if layout.payload >= whole.head.len() + whole.tail.len() {
            return None;
        }
        layout.network += whole.tag.len();
        layout.transport += whole.tag.len();
        layout.payload += whole.tag.len();
        let open = Open {
            transport: layout.transport as u16, // within a head of 2 KiB
            field: (layout.checksum() - layout.transport) as u16,
            kind,
            joins: false,
            payload: layout.payload as u16,
            segment,
        };
        Some(Self { layout, segment: usize::from(segment), open })
    }

    /// Sets the fields that depend on a frame's position in the train.
    fn place(&self, frame: &mut [u8], number: usize, is_last: bool) {
        let Layout { is_ipv4, is_udp, network, transport, .. } = self.layout;
        if is_ipv4 {
            let header = &mut frame[network..transport];
            let first = u16::from_be_bytes([header[4], header[5]]);
            header[4..6].copy_from_slice(&first.wrapping_add(number as u16).to_be_bytes());
        }
        if !is_udp {
            let sequence = &mut frame[transport + 4..transport + 8];
            let first = u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]);
            let own = first.wrapping_add((number * self.segment) as u32);
            sequence.copy_from_slice(&own.to_be_bytes());
            let flags = &mut frame[transport + 13];
            *flags &= if number > 0 { !CWR } else { !0 };
            *flags &= if is_last { !0 } else { !FIN_AND_PSH };
        }
    }
}
