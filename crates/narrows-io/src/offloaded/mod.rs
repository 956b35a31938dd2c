//! What senders leave to hardware: trains of segments as one frame, and incomplete checksums.
//!
//! The other end of a cable may hand over up to 64 KiB of TCP or UDP as one frame with one set of headers, to be
//! split where a wire begins, and frames whose transport checksum is only the sum of the pseudo header. The kernel
//! describes both in a header before the frame (`struct virtio_net_hdr`), which packet sockets (`PACKET_VNET_HDR`)
//! and TAP devices (`IFF_VNET_HDR`) can return and accept.
//!
//! An emulated network handles packets, so a train is always split into those that a wire would have carried, each
//! with its own lengths, identification, sequence number and flags (`cut`). The costs determine the rest:
//! - The headers of a packet have some 60 bytes, its payload 1,400. Headers are built for each packet. The payload is
//!   copied once, from the buffer in which the train arrived; leaving it there would save that copy (a twentieth of
//!   the cost of the kernel's two), but would hold the whole train in memory as long as one of its packets waits.
//! - A checksum reads all of the payload again. If the frames leave through the same virtio header, it is not needed:
//!   it stays incomplete in each packet, with the packet's pseudo header sum in its field. It is completed
//!   ([`Frame::finish`](crate::frame::Frame::finish)) before the bytes are examined, or something it covers is
//!   changed.
//! - A system call for each packet is the most expensive: 1 to 2 µs compared with 0.1 µs. So consecutive packets that
//!   leave at the same instant are joined to a train again (`join`) if splitting that train gives exactly these
//!   bytes. Only their headers decide, not their origin: a gap from a lost packet is not bridged; packets that were
//!   marked or passed a router are still joined with equal ones; a corrupted packet no longer has an incomplete
//!   checksum and is sent singly.

mod cut;
pub(crate) mod join;
pub mod rehearsal;
#[cfg(test)]
mod tests;

pub(crate) use cut::{Cut, Whole};

use crate::frame::checksum::{fold, sum};
use crate::frame::open::{Open, UDP_CHECKSUM};

/// Length of `struct virtio_net_hdr`.
pub(crate) const HEADER: usize = 10;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_*`; the highest bit means that the first segment has CWR.
const TCP_IPV4: u8 = 1;
const TCP_IPV6: u8 = 4;
const UDP: u8 = 5;
const ECN: u8 = 0x80;
/// The EtherTypes at the end of an Ethernet header.
const IPV4: u16 = 0x0800;
const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// The offset of a VLAN tag: after the two link addresses.
pub(crate) const TAG_AT: usize = 12;
/// TCP flags: CWR only belongs to the first segment of a train, FIN and PSH only to the last.
const CWR: u8 = 0x80;
const FIN_AND_PSH: u8 = 0x09;
/// The offset of the checksum in the TCP header.
const TCP_CHECKSUM: usize = 16;

/// The kernel's description of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    /// One of the kinds above, or 0.
    kind: u8,
    /// Whether the first segment has CWR.
    congested: bool,
    /// Bytes before the payload of a train; only a hint.
    headers: u16,
    /// Bytes of payload in each segment.
    segment: u16,
    /// The start of the checksummed part, and the checksum's offset in it, if it is incomplete.
    checksum: Option<(u16, u16)>,
}

impl Described {
    /// Parses the header; a truncated one describes nothing.
    pub(crate) fn parse(header: &[u8]) -> Self {
        let Some(header) = header.first_chunk::<HEADER>() else { return Self::default() };
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        Self {
            kind: header[1] & !ECN,
            congested: header[1] & ECN != 0,
            headers: word(2),
            segment: word(4),
            checksum: (header[0] & NEEDS_CHECKSUM != 0).then(|| (word(6), word(8))),
        }
    }

    /// The header's bytes.
    pub(crate) fn bytes(self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[0] = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        header[1] = self.kind | if self.congested { ECN } else { 0 };
        let (from, at) = self.checksum.unwrap_or_default();
        for (place, word) in [(2, self.headers), (4, self.segment), (6, from), (8, at)] {
            header[place..place + 2].copy_from_slice(&word.to_ne_bytes());
        }
        header
    }

    /// The same for a frame with this many more bytes before its network header.
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        let by = by as u16; // the length of a tag
        self.headers = if self.headers > 0 { self.headers.saturating_add(by) } else { 0 };
        self.checksum = self.checksum.map(|(from, at)| (from.saturating_add(by), at));
        self
    }
}

impl Open {
    /// The description of an incomplete checksum; empty unless all of it is inside the frame.
    fn checksum(frame: &[u8], described: Described) -> Self {
        let Some((transport, field)) = described.checksum else { return Self::default() };
        let fits = usize::from(transport) + usize::from(field) + 2 <= frame.len();
        if fits { Self { transport, field, ..Self::default() } } else { Self::default() }
    }

    /// The description for the kernel of a frame that is sent singly.
    pub(crate) fn described(self) -> Described {
        let checksum = self.is_open().then_some((self.transport, self.field));
        Described { checksum, ..Described::default() }
    }
}

/// The positions of a segment's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    is_udp: bool,
    is_ipv4: bool,
    network: usize,
    transport: usize,
    payload: usize,
}

impl Layout {
    /// Of a frame, or of its headers, whose transport header begins at `transport`; `None` if they are incomplete.
    fn of(frame: &[u8], transport: usize, is_udp: bool) -> Option<Self> {
        let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let mut at = TAG_AT;
        while TAGS.contains(&word(at)?) {
            at += 4;
        }
        let (is_ipv4, network) = (word(at)? == IPV4, at + 2);
        let header = if is_udp { 8 } else { usize::from(frame.get(transport + 12)? >> 4) * 4 };
        let payload = transport + header;
        let (least, own) = (if is_ipv4 { 20 } else { 40 }, if is_udp { 8 } else { 20 });
        let is_whole = transport >= network + least && header >= own && payload <= frame.len();
        is_whole.then_some(Self { is_udp, is_ipv4, network, transport, payload })
    }

    /// The offset of the checksum.
    fn checksum(self) -> usize {
        self.transport + if self.is_udp { UDP_CHECKSUM } else { TCP_CHECKSUM }
    }

    /// Changes the headers of a frame with `before` bytes of payload and an incomplete checksum to those of a frame
    /// with `now` bytes.
    fn set_payload(self, headers: &mut [u8], before: usize, now: usize) {
        let length = self.payload - self.network + now;
        let header = &mut headers[self.network..self.transport];
        if self.is_ipv4 {
            header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            mend_ipv4(header);
        } else {
            header[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        }
        if self.is_udp {
            let length = (self.payload - self.transport + now) as u16;
            headers[self.transport + 4..][..2].copy_from_slice(&length.to_be_bytes());
        }
        let (at, own) = (self.checksum(), self.payload - self.transport);
        let open = u16::from_be_bytes([headers[at], headers[at + 1]]);
        let less = !fold((own + before) as u64);
        let open = fold(u64::from(open) + u64::from(less) + (own + now) as u64);
        headers[at..at + 2].copy_from_slice(&open.to_be_bytes());
    }
}

/// Computes the checksum of an IPv4 header.
fn mend_ipv4(header: &mut [u8]) {
    header[10..12].fill(0);
    let own = usize::from(header[0] & 0xf) * 4;
    let checksum = !sum(0, &header[..own.min(header.len())]);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}
