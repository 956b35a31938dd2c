//! Files that somebody else has written: captures, and logs of runs.

use narrows_core::{Duration, Seed, Time};
use narrows_frame::capture::{CaptureReader, CaptureWriter, Captured};
use narrows_frame::log::{
    Arrived, Changed, Decided, ElementNumber, Ended, Fed, FilePart, Header, Keep, LinkNumber, LogReader,
    LogWriter, LoggedFiles, Lost, Outcome, PacketNumber, Port, PortNumber, Record,
};
use narrows_frame::parse::parse_cut;
use narrows_frame::{LinkLayer, WallTime};

use crate::odd;

/// pcap and pcapng.
///
/// # Panics
/// When a packet has more bytes than it had on its wire.
pub fn capture(bytes: &[u8]) {
    let Ok(mut reader) = CaptureReader::new("fuzz", bytes) else { return };
    while let Ok(Some(packet)) = reader.read() {
        assert!(packet.bytes.len() <= packet.length as usize);
        parse_cut(packet.interface.layer(), packet.bytes, packet.length);
    }
    assert!(matches!(reader.read(), Ok(None)), "after an error there is nothing");
}

/// Captures of each format and byte order.
pub fn captures() -> Vec<Vec<u8>> {
    let frames = [odd::datagram(false, &[1; 30]), odd::datagram(true, &[2; 300]), Vec::new()];
    let mut writer = CaptureWriter::new("fuzz", Vec::new(), "fuzz").expect("a vector takes it");
    for layer in [LinkLayer::Ethernet, LinkLayer::Ip] {
        let interface = writer.interface("one", layer).expect("a vector takes it");
        for (number, frame) in (0..).zip(&frames) {
            let instant = WallTime::from_nanos(1_700_000_000_000_000_000 + number);
            let (length, comment) = (frame.len() as u32, (number == 1).then_some("dropped: queue full"));
            let packet = Captured { instant, interface, length, bytes: frame, comment };
            writer.write(&packet).expect("a vector takes it");
        }
    }
    let mut all = vec![writer.finish().expect("a vector takes it")];
    for magic in [0xa1b2_c3d4_u32, 0xa1b2_3c4d] {
        for order in [u32::to_le_bytes, u32::to_be_bytes] {
            let halves: [u32; 2] = if order(1) == [1, 0, 0, 0] { [0x0004_0002, 0] } else { [0x0002_0004, 0] };
            let mut file: Vec<u8> =
                [magic, halves[0], halves[1], 0, 65_535, 1].into_iter().flat_map(order).collect();
            for frame in &frames {
                let length = frame.len() as u32;
                file.extend([1_700_000_000, 5, length, length].into_iter().flat_map(order));
                file.extend(frame);
            }
            all.push(file);
        }
    }
    all
}

/// The log of a run.
///
/// # Panics
/// When something follows an error.
pub fn log(bytes: &[u8]) {
    let Ok(mut reader) = LogReader::new("fuzz", bytes) else { return };
    let mut files = LoggedFiles::default();
    loop {
        match reader.read() {
            Ok(Some(Record::Arrived(arrived))) => {
                parse_cut(LinkLayer::Ethernet, arrived.frame, arrived.length);
            }
            Ok(Some(Record::File(part))) => drop(files.take(part)),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    assert!(matches!(reader.read(), Ok(None)), "after the end there is nothing");
}

/// A log with every kind of record, with frames and with their headers alone.
pub fn logs() -> Vec<Vec<u8>> {
    [Keep::Headers, Keep::Whole].map(a_log).into()
}

fn a_log(keep: Keep) -> Vec<u8> {
    let header = Header {
        program: "narrows".into(),
        started: WallTime::from_nanos(1_700_000_000_000_000_000),
        seed: Seed(7),
        keep,
        scenario: "[hosts.a]\n[hosts.b]\n[links.one]\nbetween = [\"a\", \"b\"]\n".into(),
        ports: ["a.one", "b.one"].map(|name| Port { name: name.into(), layer: LinkLayer::Ethernet }).into(),
        links: ["one.up", "one.down"].map(Into::into).into(),
    };
    let mut writer = LogWriter::new("fuzz", Vec::new(), &header).expect("a vector takes it");
    let at = Time::from_nanos(1000);
    let (frame, port, link) = (odd::datagram(false, &[1; 30]), PortNumber(0), LinkNumber(1));
    let packet = PacketNumber { port, number: 0 };
    let decided = |outcome| Record::Decided(Decided { at, packet, copy: 0, outcome });
    let reason = narrows_core::DropReason::ALL[0];
    let length = frame.len() as u32;
    for record in [
        Record::Arrived(Arrived { at, late: Duration::ZERO, port, length, frame: &frame }),
        Record::Changed(Changed { at, text: "one.up.rate=2mbit" }),
        decided(Outcome::Delivered(PortNumber(1))),
        decided(Outcome::Dropped { at: Some(ElementNumber(1)), reason }),
        Record::Lost(Lost { at, port, packets: 3 }),
        Record::Fed(Fed { at, link, feed: "late", values: vec![5, -1, 0].into() }),
        Record::File(FilePart { name: "x", length: 2, offset: 0, bytes: b"1\n" }),
        Record::Ended(Ended { at, arrivals: 1, verdicts: 2, stragglers: 0, inside: 0 }),
    ] {
        writer.write(&record).expect("a vector takes it");
    }
    writer.finish().expect("a vector takes it")
}
