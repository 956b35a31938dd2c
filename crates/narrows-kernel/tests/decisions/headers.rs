//! What the program reads of headers, and which conditions hold, against the parser and the conditions of the engine.

use narrows_core::Protocol;
use narrows_frame::LinkLayer;
use narrows_frame::parse::parse_cut;

use super::harness::{HEAD, Harness, Random};

/// Frames of all kinds: right ones, with options, extension headers and fragments, cut, and with bytes changed.
fn frames(count: usize) -> Vec<Vec<u8>> {
    let mut random = Random::default();
    (0..count)
        .map(|_| {
            let mut frame = match random.below(4) {
                0 => random.udp(),
                1 => ipv4(&mut random),
                _ => ipv6(&mut random),
            };
            if random.below(4) == 0 {
                let most = frame.len() as u64;
                let length = 34 + random.below(most.saturating_sub(33).max(1)) as usize;
                frame.resize(length.max(34), 0);
            }
            for _ in 0..random.below(3) {
                let at = 12 + random.below((frame.len() as u64 - 12).min(80)) as usize;
                frame[at] = random.of(&[0, 1, 6, 17, 43, 44, 51, 60, 0x40, 0x45, 0x60, 0xff]);
            }
            frame
        })
        // Tagged frames do not enter the link.
        .filter(|frame| !matches!(frame[12..14], [0x81, 0] | [0x88, 0xa8] | [0x91, 0]))
        .collect()
}

fn transport(random: &mut Random, frame: &mut Vec<u8>) {
    for _ in 0..20 + random.below(40) {
        frame.push(random.below(256) as u8);
    }
}

fn ipv4(random: &mut Random) -> Vec<u8> {
    let words = 5 + random.below(4) as usize;
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x40 | words as u8, random.below(256) as u8, 0, 0, 0, 0]);
    frame.extend(random.of(&[[0, 0], [0x40, 0], [0x20, 0], [0, 3], [0x20, 9]]));
    frame.extend([64, random.of(&[1, 6, 17, 33, 47, 132, 136]), 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.resize(14 + 4 * words, 1);
    transport(random, &mut frame);
    let length = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    frame
}

fn ipv6(random: &mut Random) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x86, 0xdd, 0x60 | random.below(16) as u8, random.below(256) as u8, 0, 0, 0, 0, 0, 64]);
    frame.extend((0..32).map(|_| random.below(256) as u8));
    let kinds = [0, 43, 44, 51, 60, 135];
    let mut chain: Vec<u8> = (0..random.below(4)).map(|_| random.of(&kinds)).collect();
    chain.push(random.of(&[6, 17, 58, 59, 132]));
    frame[20] = chain[0];
    for pair in chain.windows(2) {
        let (kind, next) = (pair[0], pair[1]);
        let size = random.below(2) as u8;
        let (size, length) = match kind {
            44 => (0, 8),
            51 => (size + 2, (usize::from(size) + 4) * 4),
            _ => (size, (usize::from(size) + 1) * 8),
        };
        let offset = if kind == 44 && random.below(3) == 0 { 8 } else { 0 };
        let from = frame.len();
        frame.extend([next, size, 0, offset]);
        frame.resize(from + length, 0);
    }
    transport(random, &mut frame);
    let length = (frame.len() - 54) as u16;
    frame[18..20].copy_from_slice(&length.to_be_bytes());
    frame
}

#[test]
fn headers_are_read_as_the_engines_parser_reads_them() {
    let frames = frames(100_000);
    let mut input = Vec::new();
    for frame in &frames {
        input.extend((frame.len() as u32).to_ne_bytes());
        input.extend(frame.iter().copied().chain(std::iter::repeat(0)).take(HEAD));
    }
    let output = Harness::new("headers").run(&["headers"], input);
    let (read, []) = output.as_chunks::<48>() else { panic!("half a header") };
    assert_eq!(read.len(), frames.len());
    let mut seen = [0; 4];
    for (frame, read) in frames.iter().zip(read) {
        // As the packet loop does: what is not known of a frame is zero.
        let mut known: Vec<u8> = frame.iter().copied().take(HEAD).collect();
        known.resize(frame.len(), 0);
        let parsed = parse_cut(LinkLayer::Ethernet, &known, frame.len() as u32);
        let family = match parsed.key.network {
            Protocol::Ipv4 | Protocol::Ipv4DontFragment => 1,
            Protocol::Ipv6 => 2,
            Protocol::Other => 4,
        };
        seen[family / 2] += 1;
        let address = |address: [u8; 16]| u128::from_be_bytes(address);
        let half = |at: usize| u64::from_ne_bytes(read[at..at + 8].try_into().unwrap());
        let whole = |at: usize| u128::from(half(at)) << 64 | u128::from(half(at + 8));
        let short = |at: usize| u16::from_ne_bytes([read[at], read[at + 1]]);
        let found = (whole(0), whole(16), u32::from_ne_bytes(read[32..36].try_into().unwrap()));
        assert_eq!(
            found,
            (address(parsed.key.source), address(parsed.key.destination), parsed.length),
            "{frame:02x?}"
        );
        let [found_family, protocol, class, flags] = read[40..44].try_into().unwrap();
        let has_ports = matches!(parsed.key.transport, 6 | 17 | 33 | 132 | 136);
        // Of ICMP, classes look at no type.
        let ports = if has_ports { (parsed.key.source_port, parsed.key.destination_port) } else { (0, 0) };
        assert_eq!(
            (usize::from(found_family), protocol, class, flags, (short(36), short(38))),
            (family, parsed.key.transport, parsed.key.traffic_class, parsed.key.tcp_flags, ports),
            "{frame:02x?}"
        );
        seen[3] += usize::from(ports != (0, 0));
    }
    assert!(seen.iter().all(|&count| count > 1000), "{seen:?}");
}
