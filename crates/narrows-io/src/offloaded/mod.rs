//! What a sender left for hardware to do: trains of segments in one piece, and checksums left open.
//!
//! The other end of a cable may hand over up to 64 KiB of TCP or UDP as one frame, with one set of headers, to be cut
//! where a wire begins, and frames whose transport checksum is only the sum of the pseudo header. The kernel describes
//! both in a header before the frame (`struct virtio_net_hdr`), which packet sockets (`PACKET_VNET_HDR`) and TAP devices
//! (`IFF_VNET_HDR`) can give and take.
//!
//! A network in between is about packets, so a train is always cut into those that a wire would have carried, each with
//! its own lengths, identification, sequence number and flags ([`unload`]). What that costs decides what else is done:
//! - The headers of a packet are some 60 bytes, its payload 1,400. Headers are made for each packet. The payload is
//!   copied once, out of the buffer in which the train came; leaving it there would save that copy (a twentieth of what
//!   the kernel needs for its two), and hold the whole train in memory as long as one of its packets waits.
//! - A checksum reads all of the payload again. Where the frames leave by way of the same header, nobody needs it: it
//!   stays open in each packet, with the pseudo header's sum of that packet in its field. It is finished
//!   ([`Frame::finish`](crate::frame::Frame::finish)) where somebody looks at the bytes, or changes what it covers.
//! - A call of the kernel's for each packet is the dearest of all: 1 to 2 µs beside 0.1 µs. So packets that leave at one
//!   instant, one behind the other, are handed over as a train again ([`join`]) if cutting that train gives these very
//!   bytes. Only their headers decide, not where they came from: what was lost is not bridged, what was marked or passed a
//!   router still joins its like, what was corrupted has no open checksum any more and goes alone.

mod cut;
pub(crate) mod join;
#[cfg(test)]
mod tests;

pub(crate) use cut::{Cut, Whole};

use crate::frame::checksum::{fold, sum};
use crate::frame::open::{Open, UDP_CHECKSUM};

/// Length of `struct virtio_net_hdr`.
pub(crate) const HEADER: usize = 10;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_*`; the highest bit says that the first segment has CWR.
const TCP_IPV4: u8 = 1;
const TCP_IPV6: u8 = 4;
const UDP: u8 = 5;
const ECN: u8 = 0x80;
/// What an Ethernet header ends with.
const IPV4: u16 = 0x0800;
const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// Where a VLAN tag belongs: behind the two link addresses.
pub(crate) const TAG_AT: usize = 12;
/// TCP's flags: CWR is for the first segment of a train alone, FIN and PSH for the last.
const CWR: u8 = 0x80;
const FIN_AND_PSH: u8 = 0x09;
/// Where the checksum is in the transport header.
const TCP_CHECKSUM: usize = 16;

/// What the kernel says about a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    /// One of the kinds above, or 0.
    kind: u8,
    /// Whether the first segment has CWR.
    congested: bool,
    /// Bytes before the payload of a train; a hint.
    headers: u16,
    /// Bytes of payload in each segment.
    segment: u16,
    /// From where the sum goes, and where in that it stands, if it is still to be made.
    checksum: Option<(u16, u16)>,
}

impl Described {
    /// Reads the header; of one that is cut short, nothing.
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

    /// The same of a frame with this many more bytes before its network header.
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        let by = by as u16; // the length of a tag
        self.headers = if self.headers > 0 { self.headers.saturating_add(by) } else { 0 };
        self.checksum = self.checksum.map(|(from, at)| (from.saturating_add(by), at));
        self
    }
}

impl Open {
    /// Nothing, unless all of it lies in the frame.
    fn checksum(frame: &[u8], described: Described) -> Self {
        let Some((transport, field)) = described.checksum else { return Self::default() };
        let fits = usize::from(transport) + usize::from(field) + 2 <= frame.len();
        if fits { Self { transport, field, ..Self::default() } } else { Self::default() }
    }

    /// What the kernel is told of a frame that leaves by itself.
    pub(crate) fn described(self) -> Described {
        let checksum = self.is_open().then_some((self.transport, self.field));
        Described { checksum, ..Described::default() }
    }
}

/// Where the headers of a segment are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    is_udp: bool,
    is_ipv4: bool,
    network: usize,
    transport: usize,
    payload: usize,
}

impl Layout {
    /// Of a frame, or of its headers, whose transport header begins at `transport`; nothing where they are not whole.
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

    /// Where the checksum is.
    fn checksum(self) -> usize {
        self.transport + if self.is_udp { UDP_CHECKSUM } else { TCP_CHECKSUM }
    }

    /// Changes the headers of a frame with `before` bytes of payload, whose checksum is open, to those of one with `now`.
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

/// Makes the checksum of an IPv4 header.
fn mend_ipv4(header: &mut [u8]) {
    header[10..12].fill(0);
    let own = usize::from(header[0] & 0xf) * 4;
    let checksum = !sum(0, &header[..own.min(header.len())]);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}
