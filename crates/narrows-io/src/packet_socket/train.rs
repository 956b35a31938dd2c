//! What the sender left for hardware to do, done here: checksums left open, and trains of segments in one piece.
//!
//! The other end of a cable may hand over up to 64 KiB of TCP or UDP as one frame, with one set of headers, to be cut
//! where a wire begins, and frames whose transport checksum is only the sum of the pseudo header. The kernel describes
//! both in a header before the frame (`struct virtio_net_hdr`, `PACKET_VNET_HDR`). Here they become the frames that a
//! wire would have carried: each with its own lengths, identification, sequence number, flags and checksums.

/// Length of `struct virtio_net_hdr`.
pub(super) const HEADER: usize = 10;
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
/// TCP's flags: CWR is for the first segment of a train alone, FIN and PSH for the last.
const CWR: u8 = 0x80;
const FIN_AND_PSH: u8 = 0x09;

/// What the kernel says about a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offloaded {
    kind: u8,
    /// Bytes of payload in each segment.
    segment: usize,
    /// From where to where the sum goes, if it is still to be made.
    checksum: Option<(usize, usize)>,
}

impl Offloaded {
    /// Reads the header.
    pub(super) fn parse(header: &[u8]) -> Self {
        let word = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        if header.len() < HEADER {
            return Self::default();
        }
        let checksum = (header[0] & NEEDS_CHECKSUM != 0).then(|| (word(6), word(6) + word(8)));
        Self { kind: header[1] & !ECN, segment: word(4), checksum }
    }

    /// Completes a frame without a VLAN tag beside it, and gives each frame that a wire would have carried to `emit`.
    /// What cannot be cut, as it is not what the kernel says, goes on whole.
    pub(super) fn finish(self, frame: &mut [u8], mut emit: impl FnMut(&[u8])) {
        let train = matches!(self.kind, TCP_IPV4 | TCP_IPV6 | UDP);
        if let Some(train) = train.then(|| Train::of(self, frame)).flatten() {
            return train.cut(frame, emit);
        }
        if let Some((from, at)) = self.checksum
            && at + 2 <= frame.len()
            && from <= at
        {
            // The field holds the sum of the pseudo header already.
            let sum = !sum(0, &frame[from..]);
            let is_udp = at - from == 6;
            frame[at..at + 2].copy_from_slice(&stored(sum, is_udp));
        }
        emit(frame);
    }
}

/// A train, and where its headers are.
struct Train {
    is_udp: bool,
    is_ipv4: bool,
    network: usize,
    transport: usize,
    payload: usize,
    segment: usize,
}

impl Train {
    fn of(offloaded: Offloaded, frame: &[u8]) -> Option<Self> {
        let (transport, _) = offloaded.checksum?;
        let mut at = 12;
        let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        while TAGS.contains(&word(at)?) {
            at += 4;
        }
        let (is_ipv4, is_udp, network) = (word(at)? == IPV4, offloaded.kind == UDP, at + 2);
        let header = if is_udp { 8 } else { usize::from(frame.get(transport + 12)? >> 4) * 4 };
        let payload = transport + header;
        let (least, own) = (if is_ipv4 { 20 } else { 40 }, if is_udp { 8 } else { 20 });
        let is_whole = transport >= network + least && header >= own && payload < frame.len();
        (is_whole && offloaded.segment > 0).then_some(Self {
            is_udp,
            is_ipv4,
            network,
            transport,
            payload,
            segment: offloaded.segment,
        })
    }

    fn cut(&self, frame: &[u8], mut emit: impl FnMut(&[u8])) {
        let (headers, payload) = frame.split_at(self.payload);
        let pieces = payload.len().div_ceil(self.segment);
        let mut whole = Vec::with_capacity(self.payload + self.segment);
        for (number, piece) in payload.chunks(self.segment).enumerate() {
            whole.clear();
            whole.extend_from_slice(headers);
            whole.extend_from_slice(piece);
            self.network_header(&mut whole, number as u16);
            if !self.is_udp {
                let sequence = self.transport + 4;
                let first = u32::from_be_bytes([0, 1, 2, 3].map(|at| headers[sequence + at]));
                let own = first.wrapping_add((number * self.segment) as u32);
                whole[sequence..sequence + 4].copy_from_slice(&own.to_be_bytes());
                let flags = &mut whole[self.transport + 13];
                *flags &= if number > 0 { !CWR } else { !0 };
                *flags &= if number + 1 < pieces { !FIN_AND_PSH } else { !0 };
            } else {
                let length = (whole.len() - self.transport) as u16;
                whole[self.transport + 4..self.transport + 6].copy_from_slice(&length.to_be_bytes());
            }
            self.transport_checksum(&mut whole);
            emit(&whole);
        }
    }

    /// Lengths, and in IPv4 the identification and the header's checksum.
    fn network_header(&self, frame: &mut [u8], number: u16) {
        let length = frame.len() - self.network;
        let header = &mut frame[self.network..self.transport];
        if self.is_ipv4 {
            header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            let first = u16::from_be_bytes([header[4], header[5]]);
            header[4..6].copy_from_slice(&first.wrapping_add(number).to_be_bytes());
            header[10..12].fill(0);
            let own = usize::from(header[0] & 0xf) * 4;
            let own = !sum(0, &header[..own.min(header.len())]);
            header[10..12].copy_from_slice(&own.to_be_bytes());
        } else {
            header[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        }
    }

    fn transport_checksum(&self, frame: &mut [u8]) {
        let at = self.transport + if self.is_udp { 6 } else { 16 };
        frame[at..at + 2].fill(0);
        let addresses = if self.is_ipv4 { 12..20 } else { 8..40 };
        let pseudo = sum(0, &frame[self.network..][addresses]);
        let protocol = if self.is_udp { 17 } else { 6 };
        let length = (frame.len() - self.transport) as u64;
        let sum = !sum(u64::from(pseudo) + length + protocol, &frame[self.transport..]);
        frame[at..at + 2].copy_from_slice(&stored(sum, self.is_udp));
    }
}

/// As it stands in a header: UDP has no checksum of zero, which would mean that there is none.
fn stored(sum: u16, is_udp: bool) -> [u8; 2] {
    if is_udp && sum == 0 { [0xff; 2] } else { sum.to_be_bytes() }
}

/// The one's complement sum of RFC 1071.
fn sum(from: u64, bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<2>();
    let mut sum = from + words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum::<u64>();
    sum += rest.first().map_or(0, |&last| u64::from(last) << 8);
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of TCP or UDP over IPv4 or IPv6 with `payload` bytes, and the header that goes before it.
    fn train(is_udp: bool, is_ipv4: bool, payload: usize, segment: u16) -> (Vec<u8>, Vec<u8>) {
        let mut frame = vec![2; 12];
        frame.extend(if is_ipv4 { [0x08, 0x00] } else { [0x86, 0xdd] });
        let protocol = if is_udp { 17 } else { 6 };
        if is_ipv4 {
            frame.extend([0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            frame.extend([0x60, 0, 0, 0, 0, 0, protocol, 64]);
            frame.extend((0..32).map(|n| n * 7));
        }
        let transport = frame.len();
        frame.extend([0x12, 0x34, 0x56, 0x78]);
        if is_udp {
            frame.extend([0, 0, 0, 0]);
        } else {
            // A sequence number that overflows within the train; CWR, ACK, PSH, FIN.
            frame.extend([
                0xff,
                0xff,
                0xff,
                0xf0,
                0,
                0,
                0,
                1,
                0x50,
                0x80 | 0x10 | FIN_AND_PSH,
                1,
                0,
                0,
                0,
                0,
                0,
            ]);
        }
        frame.extend((0..payload).map(|n| (n * 31) as u8));
        let kind = if is_udp {
            UDP
        } else if is_ipv4 {
            TCP_IPV4
        } else {
            TCP_IPV6
        };
        let mut header = vec![NEEDS_CHECKSUM, kind | ECN];
        for word in [0, segment, transport as u16, if is_udp { 6 } else { 16 }] {
            header.extend(word.to_ne_bytes());
        }
        (header, frame)
    }

    fn finished(header: &[u8], frame: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        Offloaded::parse(header).finish(&mut frame.to_vec(), |frame| all.push(frame.to_vec()));
        all
    }

    /// Whether a receiver would believe its checksums.
    fn is_sound(frame: &[u8], transport: usize) -> bool {
        let is_ipv4 = frame[12] == 8;
        let header_is = !is_ipv4 || sum(0, &frame[14..34]) == 0xffff;
        let (addresses, protocol) = if is_ipv4 { (26..34, frame[23]) } else { (22..54, frame[20]) };
        let length = (frame.len() - transport) as u64;
        let stated = if is_ipv4 {
            u16::from_be_bytes([frame[16], frame[17]]) as usize + 14
        } else {
            u16::from_be_bytes([frame[18], frame[19]]) as usize + 54
        };
        let pseudo = u64::from(sum(0, &frame[addresses])) + length + u64::from(protocol);
        header_is && stated == frame.len() && sum(pseudo, &frame[transport..]) == 0xffff
    }

    #[test]
    fn a_train_becomes_the_packets_that_a_wire_would_have_carried() {
        for (is_udp, is_ipv4) in [(false, true), (false, false), (true, true), (true, false)] {
            for payload in [1, 999, 1000, 1001, 5500, 60_000] {
                let (header, frame) = train(is_udp, is_ipv4, payload, 1000);
                let transport = if is_ipv4 { 34 } else { 54 };
                let behind = transport + if is_udp { 8 } else { 20 };
                let packets = finished(&header, &frame);
                assert_eq!(packets.len(), payload.div_ceil(1000));
                let sent: Vec<u8> = packets.iter().flat_map(|packet| packet[behind..].to_vec()).collect();
                assert_eq!(sent, frame[behind..], "nothing lost, nothing twice");
                for (number, packet) in packets.iter().enumerate() {
                    assert!(
                        is_sound(packet, transport),
                        "udp {is_udp}, IPv4 {is_ipv4}: {number} of {payload}"
                    );
                    if is_ipv4 {
                        assert_eq!(packet[18..20], (0xffff_u16.wrapping_add(number as u16)).to_be_bytes());
                    }
                    if is_udp {
                        continue;
                    }
                    let sequence = 0xffff_fff0_u32.wrapping_add(1000 * number as u32);
                    assert_eq!(packet[transport + 4..transport + 8], sequence.to_be_bytes());
                    let flags = packet[transport + 13];
                    assert_eq!(flags & CWR != 0, number == 0);
                    assert_eq!(flags & FIN_AND_PSH != 0, number + 1 == packets.len());
                }
            }
        }
    }

    #[test]
    fn an_open_checksum_is_made() {
        for is_udp in [true, false] {
            let (header, frame) = train(is_udp, true, 101, 1000);
            let [whole] = &finished(&header, &frame)[..] else { panic!("one packet") };
            // The same as the sender's stack leaves it: the pseudo header's sum in the field, no train.
            let at = 34 + if is_udp { 6 } else { 16 };
            let mut open = whole.clone();
            let length = (open.len() - 34) as u64 + if is_udp { 17 } else { 6 };
            let pseudo = sum(length, &open[26..34]);
            open[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
            let mut header = header;
            header[1] = 0;
            assert_eq!(&finished(&header, &open)[0], whole);
            header[0] = 0;
            assert_eq!(finished(&header, &open), [open], "where the kernel says nothing, nothing is changed");
        }
    }

    #[test]
    fn any_bytes_pass_without_a_panic() {
        let (header, frame) = train(false, true, 3000, 1000);
        for length in 0..frame.len().min(120) {
            assert!(!finished(&header, &frame[..length]).is_empty(), "{length} bytes");
        }
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u8
            };
            let header: Vec<u8> =
                (0..HEADER).map(|n| if n % 2 == 1 && n > 1 { 0 } else { next() % 80 }).collect();
            let frame: Vec<u8> = (0..usize::from(next())).map(|_| next()).collect();
            finished(&header, &frame);
        }
    }
}
