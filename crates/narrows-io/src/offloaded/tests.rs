use std::cell::RefCell;

use proptest::collection::vec;
use proptest::prelude::*;

use super::join::{Headers, LONGEST_HEADERS, join};
use super::*;
use crate::frame::checksum::sum;
use crate::frame::{Frame, FramePool};

/// A train, and what the kernel would say of it.
#[derive(Clone, Debug)]
struct Sample {
    is_udp: bool,
    is_ipv4: bool,
    /// Tags in the frame, and one that the kernel keeps beside it.
    tags: usize,
    beside: bool,
    /// Words of TCP options.
    options: usize,
    payload: usize,
    segment: u16,
    /// TCP's flags.
    flags: u8,
    /// The first identification and sequence number.
    first: u32,
    /// Where the kernel's bytes are parted.
    head: usize,
}

impl Sample {
    fn simple(is_udp: bool, is_ipv4: bool, payload: usize) -> Self {
        // A sequence number and an identification that overflow within the train; CWR, ACK, PSH, FIN.
        let (flags, first) = (CWR | 0x10 | FIN_AND_PSH, 0xffff_fff0);
        Self {
            is_udp,
            is_ipv4,
            tags: 0,
            beside: false,
            options: 0,
            payload,
            segment: 1000,
            flags,
            first,
            head: 2038,
        }
    }

    fn any() -> impl Strategy<Value = Self> {
        let kinds = (any::<bool>(), any::<bool>(), 0..3_usize, any::<bool>(), 0..11_usize);
        let sizes = (1..12_000_usize, 200..1460_u16, any::<u8>(), any::<u32>(), 200..2038_usize);
        (kinds, sizes).prop_map(|(kinds, sizes)| {
            let (is_udp, is_ipv4, tags, beside, options) = kinds;
            let (payload, segment, flags, first, head) = sizes;
            Self { is_udp, is_ipv4, tags, beside, options, payload, segment, flags, first, head }
        })
    }

    fn tag(&self) -> &[u8] {
        if self.beside { &[0x81, 0, 0, 7] } else { &[] }
    }

    /// Where the transport header is, on the wire and as the kernel gives the frame.
    fn transport(&self) -> [usize; 2] {
        let as_given = 14 + 4 * self.tags + if self.is_ipv4 { 20 } else { 40 };
        [as_given + self.tag().len(), as_given]
    }

    /// Where the payload is on the wire.
    fn headers(&self) -> usize {
        self.transport()[0] + if self.is_udp { 8 } else { 20 + 4 * self.options }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut frame = vec![2; 12];
        (0..self.tags).for_each(|_| frame.extend([0x88, 0xa8, 0, 20]));
        frame.extend(if self.is_ipv4 { [0x08, 0x00] } else { [0x86, 0xdd] });
        let protocol = if self.is_udp { 17 } else { 6 };
        let network = frame.len();
        let transport = if self.is_udp { 8 } else { 20 + 4 * self.options };
        if self.is_ipv4 {
            let [.., high, low] = self.first.to_be_bytes();
            frame.extend([0x45, 0, 0, 0, high, low, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            mend_ipv4(&mut frame[network..]);
        } else {
            frame.extend([0x60, 0, 0, 0, 0, 0, protocol, 64]);
            frame.extend((0..32).map(|n| n * 7));
        }
        let addresses = if self.is_ipv4 { 12..20 } else { 8..40 };
        let covered = (transport + self.payload) as u64 + u64::from(protocol);
        let pseudo = sum(covered, &frame[network..][addresses]).to_be_bytes();
        frame.extend([0x12, 0x34, 0x56, 0x78]);
        if self.is_udp {
            frame.extend([0, 0]);
            frame.extend(pseudo);
        } else {
            frame.extend(self.first.to_be_bytes());
            frame.extend([0, 0, 0, 1, ((5 + self.options) << 4) as u8, self.flags, 1, 0]);
            frame.extend(pseudo);
            frame.extend([0, 0]);
            frame.extend((0..4 * self.options).map(|n| n as u8));
        }
        frame.extend((0..self.payload).map(|n| ((n * 31) >> 3) as u8));
        frame
    }

    fn described(&self) -> Described {
        let kind = match (self.is_udp, self.is_ipv4) {
            (true, _) => UDP,
            (_, true) => TCP_IPV4,
            _ => TCP_IPV6,
        };
        let field = if self.is_udp { UDP_CHECKSUM } else { TCP_CHECKSUM };
        let congested = !self.is_udp && self.flags & CWR != 0;
        let checksum = Some((self.transport()[1] as u16, field as u16));
        Described { kind, congested, headers: 0, segment: self.segment, checksum }
    }

    fn cut(&self) -> Vec<Frame> {
        let bytes = self.bytes();
        let (head, tail) = bytes.split_at(self.head.min(bytes.len()));
        let mut frames = Vec::new();
        let whole = Whole { described: self.described(), head, tail, tag: self.tag() };
        let count = Cut::default().cut(whole, &mut FramePool::default(), |frame| frames.push(frame));
        assert_eq!(count, Some(frames.len()));
        frames
    }

    /// Whether a receiver would believe the lengths and checksums of a frame of this train.
    fn is_sound(&self, frame: &[u8]) -> bool {
        let [transport, _] = self.transport();
        let network = transport - if self.is_ipv4 { 20 } else { 40 };
        let length = (frame.len() - transport) as u64;
        let word = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
        let (addresses, protocol, stated) = if self.is_ipv4 {
            (network + 12..network + 20, frame[network + 9], word(network + 2) + network)
        } else {
            (network + 8..network + 40, frame[network + 6], word(network + 4) + network + 40)
        };
        let header_is = !self.is_ipv4 || sum(0, &frame[network..network + 20]) == 0xffff;
        let datagram_is = !self.is_udp || word(transport + 4) as u64 == length;
        let pseudo = u64::from(sum(0, &frame[addresses])) + length + u64::from(protocol);
        header_is && datagram_is && stated == frame.len() && sum(pseudo, &frame[transport..]) == 0xffff
    }
}

fn finished(mut frame: Frame) -> Vec<u8> {
    frame.finish();
    frame.to_vec()
}

/// What a wire behind the kernel carries of frames that leave: they are joined, handed over as the kernel wants it, and cut
/// again. Gives how many went in one piece with others, too.
fn left(mut frames: Vec<Frame>) -> (Vec<Vec<u8>>, usize) {
    let (mut wire, mut joined, mut rest) = (Vec::new(), 0, &mut frames[..]);
    let mut headers = Headers::EMPTY;
    while !rest.is_empty() {
        let taken = join(rest);
        assert!(taken > 0);
        let (mut now, later) = rest.split_at_mut(taken);
        rest = later;
        while !now.is_empty() {
            let count = 1 + now[1..].iter().take_while(|frame| frame.was_joined()).count();
            joined += if count > 1 { count } else { 0 };
            let (one, behind) = now.split_at_mut(count);
            let from = headers.of(one);
            let mut bytes = headers.get().to_vec();
            one.iter().for_each(|frame| bytes.extend_from_slice(&frame[from..]));
            assert!(bytes.len() - HEADER <= 65_535);
            let (before, frame) = bytes.split_at(HEADER);
            let (head, tail) = frame.split_at(frame.len().min(300));
            let whole = Whole { described: Described::parse(before), head, tail, tag: &[] };
            Cut::default().cut(whole, &mut FramePool::default(), |frame| wire.push(finished(frame)));
            now = behind;
        }
    }
    (wire, joined)
}

#[test]
fn a_train_becomes_the_packets_that_a_wire_would_have_carried() {
    for (is_udp, is_ipv4) in [(false, true), (false, false), (true, true), (true, false)] {
        for payload in [1, 999, 1000, 1001, 5500, 60_000] {
            let sample = Sample::simple(is_udp, is_ipv4, payload);
            let packets: Vec<_> = sample.cut().into_iter().map(finished).collect();
            let ([transport, _], behind) = (sample.transport(), sample.headers());
            assert_eq!(packets.len(), payload.div_ceil(1000));
            let sent: Vec<u8> = packets.iter().flat_map(|packet| packet[behind..].to_vec()).collect();
            assert_eq!(sent, sample.bytes()[behind..], "nothing lost, nothing twice");
            for (number, packet) in packets.iter().enumerate() {
                assert!(sample.is_sound(packet), "udp {is_udp}, IPv4 {is_ipv4}: {number} of {payload}");
                if is_ipv4 {
                    assert_eq!(packet[18..20], (0xfff0_u16.wrapping_add(number as u16)).to_be_bytes());
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
        let sample = Sample::simple(is_udp, true, 101);
        let described = Described { kind: 0, ..sample.described() };
        let whole = sample.cut().remove(0);
        let cut = |described| {
            let frames = RefCell::new(Vec::new());
            let whole = Whole { described, head: &whole, tail: &[], tag: &[] };
            Cut::default().cut(whole, &mut FramePool::default(), |frame| frames.borrow_mut().push(frame));
            frames.into_inner().remove(0)
        };
        let open = cut(described);
        let mut room = Vec::new();
        assert!(sample.is_sound(open.on_the_wire(&mut room)));
        assert!(!sample.is_sound(&open), "still open");
        assert!(sample.is_sound(&finished(open)));
        let untouched = cut(Described::default());
        assert_eq!(finished(untouched), whole[..], "where the kernel says nothing, nothing is changed");
    }
}

#[test]
fn what_is_lost_changed_or_out_of_order_parts_a_train() {
    let sample = Sample::simple(false, true, 20_000);
    let (_, all) = left(sample.cut());
    assert_eq!(all, 20);
    let mut lossy = sample.cut();
    lossy.remove(10);
    assert_eq!(left(lossy).1, 19, "in two trains");
    let mut twice = sample.cut();
    twice.swap(0, 1);
    assert_eq!(left(twice).1, 18);
    let mut corrupted = sample.cut();
    corrupted[5].finish();
    corrupted[5][100] ^= 1;
    assert_eq!(left(corrupted).1, 19);
    let mut marked = sample.cut();
    marked[7][15] |= 3;
    mend_ipv4(&mut marked[7][14..34]);
    assert_eq!(left(marked).1, 19);
    let mut of_one_router = sample.cut();
    for frame in &mut of_one_router {
        frame[22] -= 1;
        mend_ipv4(&mut frame[14..34]);
    }
    assert_eq!(left(of_one_router).1, 20, "all alike");
}

#[test]
fn no_train_is_longer_than_a_packet_can_be() {
    let sample = Sample { segment: 1448, ..Sample::simple(true, true, 60_000) };
    let mut frames: Vec<_> = sample.cut();
    frames.pop();
    let (first, next) = (frames.len(), sample.cut());
    // As if the sender went on where it had stopped.
    for (number, mut frame) in (first..).zip(next) {
        frame[18..20].copy_from_slice(&0xfff0_u16.wrapping_add(number as u16).to_be_bytes());
        mend_ipv4(&mut frame[14..34]);
        frames.push(frame);
    }
    let count = frames.len();
    let (wire, joined) = left(frames);
    assert_eq!(wire.len(), count);
    assert_eq!(joined, count, "all of them, in two trains");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_of_any_train_is_sound_and_joins_to_the_same_bytes(sample in Sample::any()) {
        let frames = sample.cut();
        let wire: Vec<_> = sample.cut().into_iter().map(finished).collect();
        for packet in &wire {
            prop_assert!(sample.is_sound(packet));
        }
        let payload: Vec<u8> = wire.iter().flat_map(|packet| packet[sample.headers()..].to_vec()).collect();
        prop_assert_eq!(payload, &sample.bytes()[sample.headers() - sample.tag().len()..]);
        let count = frames.len();
        let (again, joined) = left(frames);
        prop_assert_eq!(again, wire);
        let joinable = sample.headers() <= LONGEST_HEADERS && count > 1;
        prop_assert_eq!(joined, if joinable { count } else { 0 });
    }

    /// Whatever happens to the packets of several trains on the way, those that leave are the same on the wire.
    #[test]
    fn joining_changes_no_byte_of_what_leaves(
        samples in vec(Sample::any(), 1..4),
        fates in vec((0..8_u8, any::<u16>()), 200),
    ) {
        let mut frames = Vec::new();
        for (frame, &(fate, place)) in samples.iter().flat_map(Sample::cut).zip(fates.iter().cycle()) {
            let mut frame = frame;
            match fate {
                0 => continue,
                1 => {
                    frame.finish();
                    let at = usize::from(place) % frame.len();
                    frame[at] ^= 1;
                }
                2 => {
                    // A bit of the network header, as marks and routers change them; here without mending anything.
                    let at = 14 + usize::from(place) % 20;
                    frame[at] ^= 1;
                    frame.finish();
                }
                3 => {
                    let copy = FramePool::default().instead_of(&frame, &frame);
                    frames.push(copy);
                }
                4 if !frames.is_empty() => {
                    let last: Frame = frames.pop().unwrap();
                    frames.push(frame);
                    frame = last;
                }
                _ => {}
            }
            frames.push(frame);
        }
        let copied: Vec<_> =
            frames.iter().map(|frame| FramePool::default().instead_of(frame, frame)).map(finished).collect();
        prop_assert_eq!(left(frames).0, copied);
    }

    #[test]
    fn any_bytes_pass_without_a_panic(
        header in vec(0..80_u8, 0..12),
        bytes in vec(any::<u8>(), 0..400),
        at in 0..400_usize,
        kind in 0..7_u8,
        tag in any::<bool>(),
    ) {
        let mut header = header;
        if let [flags, given, ..] = &mut header[..] {
            (*flags, *given) = (1, kind);
        }
        (3..header.len()).step_by(2).for_each(|high| header[high] = 0);
        let mut bytes = bytes;
        if let Some(ether_type) = bytes.get_mut(12..14) {
            ether_type.copy_from_slice(&[0x08, 0]);
        }
        let (head, tail) = bytes.split_at(at.min(bytes.len()));
        let tag: &[u8] = if tag { &[0x81, 0, 0, 7] } else { &[] };
        let whole = Whole { described: Described::parse(&header), head, tail, tag };
        let mut frames = Vec::new();
        Cut::default().cut(whole, &mut FramePool::default(), |frame| frames.push(frame));
        prop_assert!(!frames.is_empty());
        prop_assert_eq!(left(frames).0.is_empty(), false);
    }

    #[test]
    fn the_kernels_header_is_read_as_it_is_written(bytes in any::<[u8; HEADER]>()) {
        let mut bytes = bytes;
        bytes[0] &= NEEDS_CHECKSUM;
        if bytes[0] == 0 {
            bytes[6..].fill(0);
        }
        prop_assert_eq!(Described::parse(&bytes).bytes(), bytes);
    }
}
