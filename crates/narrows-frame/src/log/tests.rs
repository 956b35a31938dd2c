use super::*;
use crate::file::ReadError;
use crate::parse::{parse, parse_cut};
use crate::{LinkLayer, WallTime, samples};
use narrows_core::{DropReason, Duration, FlowKey, Headers, Protocol, Seed, TcpOptions, Time};
use proptest::collection::vec;
use proptest::prelude::*;

fn header(keep: Keep) -> Header {
    let port = |name: &str, layer| Port { name: name.into(), layer };
    Header {
        program: "narrows 0.1.0".into(),
        started: WallTime::from_nanos(1_700_000_000_000_000_000),
        seed: Seed(u64::MAX),
        keep,
        scenario: "seed = 7\n[hosts.client]\n".into(),
        ports: vec![port("client.access", LinkLayer::Ethernet), port("server.access", LinkLayer::Ip)],
        links: vec!["access.down".into(), "access.up".into()],
    }
}

fn generated(network: Protocol, transport: u8) -> Generated {
    let key = FlowKey {
        source: [1; 16],
        destination: [0xff; 16],
        source_port: u16::MAX,
        traffic_class: 0xb8,
        network,
        transport,
        ..FlowKey::default()
    };
    let headers = GeneratedHeaders(Headers::plain(&key, 1500));
    let (at, port) = (Time::from_nanos(430), PortNumber(1));
    Generated { at, source: 3, port, length: 1500, link_header: 14, network_header: 20, key, headers }
}

/// One record of each kind and alternative.
fn records() -> Vec<Record<'static>> {
    let at = Time::from_nanos;
    let packet = PacketNumber { port: PortNumber(1), number: 1 << 40 };
    let decided = |outcome| Record::Decided(Decided { at: at(300), packet, copy: 2, outcome });
    let mut records = vec![
        Record::Arrived(Arrived {
            at: at(100),
            late: Duration::ZERO,
            port: PortNumber(0),
            length: 1514,
            frame: &[1, 2, 3, 0xff],
        }),
        Record::Arrived(Arrived {
            at: Time::NEVER,
            late: Duration::from_nanos(77),
            port: PortNumber(u16::MAX),
            length: 0,
            frame: &[],
        }),
        Record::Changed(Changed { at: at(200), text: "access.down.rate=2mbit" }),
        decided(Outcome::Delivered(PortNumber(1))),
        decided(Outcome::Dropped { at: None, reason: DropReason::Memory }),
    ];
    for reason in DropReason::ALL {
        records.push(decided(Outcome::Dropped { at: Some(ElementNumber(u32::MAX)), reason }));
    }
    records.push(Record::Lost(Lost { at: at(400), port: PortNumber(0), packets: 3 }));
    let (link, feed) = (LinkNumber(1), "jitter");
    records.push(Record::Fed(Fed { at: at(410), link, feed, values: vec![200_000, -1, 0, i64::MAX].into() }));
    records.push(Record::Fed(Fed { at: at(420), link, feed: "", values: vec![].into() }));
    records.push(Record::File(FilePart { name: "x.csv", length: 1 << 40, offset: 7, bytes: b"0,1\n" }));
    records.push(Record::Generated(generated(Protocol::Ipv4, 6)));
    records.push(Record::Generated(generated(Protocol::Ipv6, 17)));
    let mut options = TcpOptions::new(Some([1 << 31, 9]), false);
    assert!(options.add_block([u32::MAX, 1460]));
    records.push(Record::Segment(Segment::of(generated(Protocol::Ipv4, 6), &options)));
    records.push(Record::Ended(Ended { at: at(500), arrivals: 2, verdicts: 10, stragglers: 1, inside: 0 }));
    records
}

fn written(header: &Header, records: &[Record<'_>]) -> Vec<u8> {
    let mut writer = LogWriter::new("f", Vec::new(), header).expect("a vector takes it");
    for record in records {
        writer.write(record).expect("a vector takes it");
    }
    writer.finish().expect("a vector takes it")
}

/// Reads a log and compares it with what was written, as far as it goes.
fn compare(file: &[u8], records: &[Record<'_>]) -> (usize, Option<ReadError>) {
    let mut reader = match LogReader::new("f", file) {
        Ok(reader) => reader,
        Err(error) => return (0, Some(error)),
    };
    let mut count = 0;
    loop {
        match reader.read() {
            Ok(Some(record)) => assert_eq!(Some(&record), records.get(count)),
            Ok(None) => return (count, None),
            Err(error) => {
                assert!(matches!(reader.read(), Ok(None)), "an error is the end");
                return (count, Some(error));
            }
        }
        count += 1;
    }
}

#[test]
fn what_was_written_is_read() {
    for keep in [Keep::Headers, Keep::Bytes(96), Keep::Whole] {
        let file = written(&header(keep), &records());
        assert_eq!(LogReader::new("f", &file[..]).expect("it is a log").header(), &header(keep));
        let (count, error) = compare(&file, &records());
        assert_eq!(count, records().len());
        assert!(error.is_none());
    }
}

/// The bytes are those of `docs/input-log.md`.
#[test]
fn the_format_stays_as_it_is() {
    let header = Header {
        program: "n".into(),
        started: WallTime::from_nanos(300),
        seed: Seed(7),
        keep: Keep::Bytes(64),
        scenario: "s".into(),
        ports: vec![Port { name: "c.a".into(), layer: LinkLayer::Ethernet }],
        links: vec!["a.up".into()],
    };
    let mut three = vec![records()[0].clone(), records()[2].clone(), records()[4].clone()];
    let fed = Fed { at: Time::from_nanos(5), link: LinkNumber(2), feed: "f", values: vec![-1, 300].into() };
    three.push(Record::Fed(fed));
    three.push(Record::File(FilePart { name: "t", length: 200, offset: 198, bytes: &[7, 8] }));
    let file = written(&header, &three);
    let mut expected = b"narr\x05\0\0\0".to_vec();
    expected.extend_from_slice(b"\x15\0\0\0\x01n\xac\x02\x07\x01\x40\x01s\x01\x03c.a\0\x01\x04a.up");
    expected.extend_from_slice(b"\x0b\0\0\0\0\x64\0\0\xea\x0b\x04\x01\x02\x03\xff");
    expected.extend_from_slice(b"\x1a\0\0\0\x01\xc8\x01\x16access.down.rate=2mbit");
    expected.extend_from_slice(b"\x14\0\0\0\x02\xac\x02\x01\x80\x80\x80\x80\x80\x20\x02\x01\0\x06memory");
    expected.extend_from_slice(b"\x09\0\0\0\x05\x05\x02\x01f\x02\x01\xd8\x04");
    expected.extend_from_slice(b"\x0a\0\0\0\x06\x01t\xc8\x01\xc6\x01\x02\x07\x08");
    assert_eq!(file, expected);
}

/// What version 1 has, later ones have in the same bytes.
#[test]
fn a_log_of_version_1_is_read() {
    let mut records = records();
    records.retain(|record| {
        !matches!(record, Record::Fed(_) | Record::File(_) | Record::Generated(_) | Record::Segment(_))
    });
    let mut file = written(&header(Keep::Whole), &records);
    file[4] = 1;
    assert!(matches!(compare(&file, &records), (count, None) if count == records.len()));
    for version in [0, 6] {
        file[4] = version;
        let error = LogReader::new("f", &file[..]).expect_err("no such version");
        let expected = format!("it is one of version {version}, and this program reads versions 1 to 5");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

#[test]
fn many_values_make_several_records() {
    let values: Vec<i64> = (0..200_000).map(|n| i64::MAX - n).collect();
    let mut writer = LogWriter::new("f", Vec::new(), &header(Keep::Whole)).expect("a vector takes it");
    writer.fed(Time::from_nanos(9), LinkNumber(1), "jitter", &values).expect("it is cut");
    writer.write(&Record::Ended(Ended::default())).expect("a vector takes it");
    let file = writer.finish().expect("a vector takes it");
    let mut reader = LogReader::new("f", &file[..]).expect("it is a log");
    let (mut read, mut count) = (Vec::new(), 0);
    while let Some(Record::Fed(fed)) = reader.read().expect("it is whole") {
        assert_eq!((fed.at, fed.link, fed.feed), (Time::from_nanos(9), LinkNumber(1), "jitter"));
        read.extend_from_slice(&fed.values);
        count += 1;
    }
    assert_eq!((read, count), (values, 4));
}

#[test]
fn files_come_back_whole_and_what_follows_them_is_still_there() {
    let long: Vec<u8> = (0..3_000_000u32).map(|n| (n / 7) as u8).collect();
    let files = [("a.csv", &b""[..]), ("folder/long.trace", &long), ("a.csv", b"again")];
    let mut writer = LogWriter::new("f", Vec::new(), &header(Keep::Whole)).expect("a vector takes it");
    for (name, content) in files {
        writer.file(name, content).expect("it is cut");
    }
    writer.write(&Record::Ended(Ended::default())).expect("a vector takes it");
    let file = writer.finish().expect("a vector takes it");

    let mut reader = LogReader::new("f", &file[..]).expect("it is a log");
    let read = reader.read_files().expect("they are whole");
    let read: Vec<_> =
        read.whole().iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
    assert_eq!(read, [("a.csv", &b"again"[..]), ("folder/long.trace", &long)]);
    assert!(reader.read_files().expect("there are no more").whole().is_empty());
    assert!(matches!(reader.read(), Ok(Some(Record::Ended(_)))));
    assert!(matches!(reader.read(), Ok(None)));
    assert!(reader.read_files().expect("it is at its end").whole().is_empty());

    // A log that is cut short behind its files says so when it is read on.
    let mut reader = LogReader::new("f", &file[..file.len() - 1]).expect("it is a log");
    assert_eq!(reader.read_files().expect("they are whole").whole().len(), 2);
    assert!(matches!(reader.read(), Err(ReadError::Truncated { .. })));
    assert!(matches!(reader.read(), Ok(None)));
}

#[test]
fn a_file_that_is_not_whole_is_an_error() {
    let part = |name, length, offset, bytes| Record::File(FilePart { name, length, offset, bytes });
    let ended = || Record::Ended(Ended::default());
    for records in [
        [part("a", 4, 1, b"bcd"), ended()],
        [part("a", 4, 0, b"abcde"), ended()],
        [part("a", 4, 0, b"abc"), ended()],
        [part("a", 4, 0, b"abc"), part("a", 4, 2, b"cd")],
        [part("a", 4, 0, b"abc"), part("b", 4, 3, b"d")],
        [part("a", 4, 0, b"abc"), part("a", 5, 3, b"d")],
    ] {
        let file = written(&header(Keep::Whole), &records);
        let mut reader = LogReader::new("f", &file[..]).expect("it is a log");
        assert!(matches!(reader.read_files(), Err(ReadError::Malformed { .. })), "{records:?}");
        assert!(matches!(reader.read(), Ok(None)), "an error is the end");
    }
}

#[test]
fn a_log_cut_at_any_byte_gives_its_whole_records_and_says_where_it_ends() {
    let (header, records) = (header(Keep::Whole), records());
    let file = written(&header, &records);
    // Where each record begins: after the header and all records before it.
    let starts: Vec<_> = (0..=records.len()).map(|count| written(&header, &records[..count]).len()).collect();
    for end in 0..file.len() {
        let (count, error) = compare(&file[..end], &records);
        let whole = starts.iter().rposition(|&start| start <= end);
        assert_eq!(count, whole.unwrap_or(0), "cut at {end}");
        match error {
            Some(ReadError::Truncated { offset, wanted, found, .. }) => {
                let expected = whole.map_or(if end < 8 { 0 } else { 8 }, |whole| starts[whole]);
                assert_eq!((offset, offset + found), (expected as u64, end as u64));
                assert!(found < wanted);
            }
            Some(ReadError::Foreign { .. }) => assert!(end < 4),
            other => panic!("cut at {end}: {other:?}"),
        }
    }
}

#[test]
fn damage_and_foreign_files_are_named_with_their_place() {
    let error = |file: &[u8]| compare(file, &records()).1.expect("it is not a good log").to_string();
    assert_eq!(error(b""), "f is not an input log of narrows: it is empty");
    assert_eq!(error(&[0x0a, 0x0d, 0x0d, 0x0a]), "f is not an input log of narrows: it is a pcapng capture");
    let later = "f is not an input log that can be read here: it is one of version 6, and this program reads versions 1 to 5";
    assert_eq!(error(b"narr\x06\0\0\0"), later);

    let file = written(&header(Keep::Whole), &[]);
    let at = format!("f is damaged: at byte {}, ", file.len());
    let behind = |bytes: &[u8]| error(&[&file[..], bytes].concat());
    assert_eq!(behind(&[0xff; 8]), format!("{at}a record claims to have 4294967295 bytes"));
    assert!(behind(&[1, 0, 0, 0, 9]).starts_with(&format!("{at}a record makes no sense")));
    assert!(behind(&[0, 0, 0, 0]).starts_with(&format!("{at}a record makes no sense")));
    assert_eq!(behind(&[7, 0, 0, 0, 4, 1, 2, 3, 4, 5, 6]), format!("{at}a record has 1 bytes too many"));
    let reason = [&[14, 0, 0, 0, 2, 1, 0, 1, 0, 1, 0, 6][..], b"whales"].concat();
    assert!(behind(&reason).starts_with(&format!("{at}a record makes no sense")), "{}", behind(&reason));
    let whole = written(&header(Keep::Whole), &records());
    let trailing = error(&[&whole[..], &[0]].concat());
    assert_eq!(
        trailing,
        format!("f is damaged: at byte {}, there is something behind the last record", whole.len())
    );
}

#[test]
fn a_record_that_is_too_long_is_refused() {
    let mut writer = LogWriter::new("f", Vec::new(), &header(Keep::Whole)).expect("a vector takes it");
    let frame = vec![0; MOST_RECORD as usize];
    let (at, late) = (Time::ZERO, Duration::ZERO);
    writer.arrived(at, late, PortNumber(0), &frame, 60).expect_err("it does not fit");
    // And nothing of it was written.
    assert_eq!(writer.finish().expect("a vector takes it"), written(&header(Keep::Whole), &[]));
}

proptest! {
    #[test]
    fn kept_headers_are_parsed_to_the_same_packet(
        frames in vec(prop_oneof![samples::ipv4(), samples::ipv6(), samples::bytes()], 1..6), keep in 0u32..200,
    ) {
        for keep in [Keep::Headers, Keep::Bytes(keep), Keep::Whole] {
            let mut writer = LogWriter::new("f", Vec::new(), &header(keep)).expect("a vector takes it");
            for frame in &frames {
                let headers = parse(LinkLayer::Ethernet, frame).examined;
                writer.arrived(Time::ZERO, Duration::ZERO, PortNumber(0), frame, headers).expect("a vector takes it");
            }
            let file = writer.finish().expect("a vector takes it");
            let mut reader = LogReader::new("f", &file[..]).expect("it is a log");
            for frame in &frames {
                let Some(Record::Arrived(arrived)) = reader.read().expect("it is whole") else { panic!("an arrival") };
                prop_assert_eq!(parse_cut(LinkLayer::Ethernet, arrived.frame, arrived.length), parse(LinkLayer::Ethernet, frame));
                prop_assert!(frame.starts_with(arrived.frame));
                match keep {
                    Keep::Headers => {}
                    Keep::Bytes(keep) => prop_assert!(arrived.frame.len() >= frame.len().min(keep as usize)),
                    Keep::Whole => prop_assert_eq!(arrived.frame, frame),
                }
            }
        }
    }

    #[test]
    fn damaged_logs_never_panic_or_exhaust_memory(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = written(&header(Keep::Whole), &records());
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        if let Ok(mut reader) = LogReader::new("f", &file[..]) {
            while let Ok(Some(_)) = reader.read() {}
            prop_assert!(reader.offset() <= file.len() as u64);
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in vec(any::<u8>(), 0..100)) {
        let start = written(&header(Keep::Whole), &[]);
        for file in [bytes.clone(), [b"narr\x01\0\0\0", &bytes[..]].concat(), [start, bytes].concat()] {
            if let Ok(mut reader) = LogReader::new("f", &file[..]) {
                while let Ok(Some(_)) = reader.read() {}
            }
        }
    }
}
