use super::*;
use crate::file::ReadError;
use proptest::collection::vec;
use proptest::prelude::*;

/// A packet, with all that is borrowed owned.
#[derive(Clone, Debug, PartialEq)]
struct Owned {
    nanos: u64,
    interface: usize,
    layer: LinkLayer,
    length: u32,
    bytes: Vec<u8>,
    comment: Option<String>,
}

/// All packets that can be read, and what came then.
fn read(file: &[u8]) -> (Vec<Owned>, Option<ReadError>) {
    let mut reader = match CaptureReader::new("f", file) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut packets = Vec::new();
    loop {
        match reader.read() {
            Ok(Some(packet)) => packets.push(Owned {
                nanos: packet.instant.nanos(),
                interface: packet.interface.number(),
                layer: packet.interface.layer(),
                length: packet.length,
                bytes: packet.bytes.to_vec(),
                comment: packet.comment.map(Into::into),
            }),
            Ok(None) => return (packets, None),
            Err(error) => {
                assert!(matches!(reader.read(), Ok(None)), "an error is the end");
                return (packets, Some(error));
            }
        }
    }
}

fn packet(nanos: u64, length: u32, bytes: &[u8]) -> Owned {
    let (interface, layer) = (0, LinkLayer::Ethernet);
    Owned { nanos, interface, layer, length, bytes: bytes.to_vec(), comment: None }
}

#[derive(Clone, Copy)]
struct Bytes {
    big: bool,
}

impl Bytes {
    fn short(self, number: u16) -> [u8; 2] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn long(self, number: u32) -> [u8; 4] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn pcap(self, magic: u32, link_type: u32, packets: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
        let mut file = self.long(magic).to_vec();
        file.extend([self.short(2), self.short(4)].concat());
        file.extend([0, 0, 65_535, link_type].map(|number| self.long(number)).concat());
        for (seconds, part, length, bytes) in packets {
            file.extend(
                [*seconds, *part, bytes.len() as u32, *length].map(|number| self.long(number)).concat(),
            );
            file.extend_from_slice(bytes);
        }
        file
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let length = self.long(12 + body.len() as u32);
        [&self.long(kind), &length, body, &length].concat()
    }

    fn section(self) -> Vec<u8> {
        let body = [
            &self.long(0x1a2b_3c4d)[..],
            &self.short(1),
            &self.short(0),
            &[0xff; 8],
            &self.option(4, b"by hand"),
        ]
        .concat();
        self.block(0x0a0d_0d0a, &body)
    }

    fn option(self, kind: u16, value: &[u8]) -> Vec<u8> {
        let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
        [&self.short(kind)[..], &self.short(value.len() as u16), value, &padding].concat()
    }

    fn interface(self, link_type: u16, options: &[Vec<u8>]) -> Vec<u8> {
        let body = [&self.short(link_type)[..], &[0; 6], &options.concat(), &[0; 4]].concat();
        self.block(1, &body)
    }

    fn packet(self, interface: u32, stamp: u64, length: u32, bytes: &[u8], options: &[Vec<u8>]) -> Vec<u8> {
        let numbers = [interface, (stamp >> 32) as u32, stamp as u32, bytes.len() as u32, length];
        let padding = vec![0; bytes.len().next_multiple_of(4) - bytes.len()];
        let body =
            [&numbers.map(|number| self.long(number)).concat(), bytes, &padding, &options.concat()].concat();
        self.block(6, &body)
    }
}

const LITTLE: Bytes = Bytes { big: false };
const BIG: Bytes = Bytes { big: true };

#[test]
fn pcap_of_both_byte_orders_and_resolutions() {
    for order in [LITTLE, BIG] {
        let packets = [(1_700_000_000, 123_456, 60, &b"short"[..]), (1_700_000_001, 0, 3, b"all")];
        let (micros, _) = read(&order.pcap(0xa1b2_c3d4, 1, &packets));
        let second = packet(1_700_000_001_000_000_000, 3, b"all");
        assert_eq!(micros, [packet(1_700_000_000_123_456_000, 60, b"short"), second.clone()]);
        let (nanos, error) = read(&order.pcap(0xa1b2_3c4d, 1, &packets));
        assert_eq!(nanos, [packet(1_700_000_000_000_123_456, 60, b"short"), second]);
        assert!(error.is_none());
    }
}

#[test]
fn pcap_of_other_link_layers() {
    for (number, layer) in [
        (101, LinkLayer::Ip),
        (228, LinkLayer::Ip),
        (113, LinkLayer::LinuxCooked),
        (276, LinkLayer::LinuxCooked2),
        (1 | 0x2400_0000, LinkLayer::Ethernet), // with a check sequence of four bytes
    ] {
        let (packets, error) = read(&LITTLE.pcap(0xa1b2_c3d4, number, &[(1, 2, 3, b"abc")]));
        assert_eq!((packets[0].layer, packets[0].interface), (layer, 0));
        assert!(error.is_none());
    }
    let error =
        read(&LITTLE.pcap(0xa1b2_c3d4, 105, &[])).1.expect("wireless frames are not known").to_string();
    assert!(error.contains("at byte 20") && error.contains("105"), "{error}");
}

/// 2^-10 s with an offset, microseconds by default, and nanoseconds, in two sections of both byte orders.
fn pcapng() -> (Vec<u8>, Vec<Owned>) {
    let stamps = |order: Bytes| {
        let offset = if order.big { 1000i64.to_be_bytes() } else { 1000i64.to_le_bytes() };
        let binary = order.interface(1, &[order.option(9, &[0x80 | 10]), order.option(14, &offset)]);
        let plain = order.interface(101, &[order.option(2, b"wan0")]);
        let nano = order.interface(113, &[order.option(9, &[9])]);
        [order.section(), binary, order.block(0xbad, &[1; 8]), plain, nano].concat()
    };
    let comment = |order: Bytes| [order.option(2, &[0; 4]), order.option(1, b"why"), order.option(0, &[])];
    let mut file = stamps(LITTLE);
    file.extend(LITTLE.packet(0, 1024 * 5 + 1, 9, b"binary", &[]));
    file.extend(LITTLE.packet(1, 7, 4, b"bare", &comment(LITTLE)));
    file.extend(stamps(BIG));
    file.extend(BIG.packet(2, (5 << 32) | 6, 6, b"cooked", &comment(BIG)));
    file.extend(BIG.packet(0, 0, 2, b"at", &[]));
    // The packet block of old: interface and drops have 16 bits each.
    let old = [&[0, 1, 0, 0][..], &[0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 1], b"o\0\0\0"].concat();
    file.extend(BIG.block(2, &old));
    let expected = |interface, layer, nanos, length, bytes: &[u8], comment: Option<&str>| Owned {
        interface,
        layer,
        comment: comment.map(Into::into),
        ..packet(nanos, length, bytes)
    };
    let packets = vec![
        expected(0, LinkLayer::Ethernet, 1_005_000_976_562, 9, b"binary", None),
        expected(1, LinkLayer::Ip, 7_000, 4, b"bare", Some("why")),
        expected(5, LinkLayer::LinuxCooked, (5 << 32) | 6, 6, b"cooked", Some("why")),
        expected(3, LinkLayer::Ethernet, 1_000_000_000_000, 2, b"at", None),
        expected(4, LinkLayer::Ip, 8_000, 1, b"o", None),
    ];
    (file, packets)
}

#[test]
fn pcapng_with_sections_interfaces_and_resolutions() {
    let (file, expected) = pcapng();
    let (packets, error) = read(&file);
    assert_eq!(packets, expected);
    assert!(error.is_none());

    let mut reader = CaptureReader::new("f", &file[..]).expect("it is a capture");
    reader.read().expect("a packet");
    let second = reader.read().expect("a packet").expect("another").interface;
    assert_eq!(reader.interface_name(second), Some("wan0"));
}

#[test]
fn a_file_cut_at_any_byte_gives_the_whole_packets_and_says_where_it_ends() {
    let pcap = LITTLE.pcap(0xa1b2_c3d4, 1, &[(1, 2, 3, b"abc"), (4, 5, 60, b"defgh")]);
    // Behind the header and a packet; behind each of the 15 blocks but the last.
    for (file, expected) in [(pcap, 2), (pcapng().0, 14)] {
        let (all, _) = read(&file);
        let mut boundaries = 0;
        for end in 0..file.len() {
            let (packets, error) = read(&file[..end]);
            assert_eq!(packets, all[..packets.len()]);
            match error {
                None => boundaries += 1,
                Some(ReadError::Foreign { .. }) => assert!(end < 4),
                Some(ReadError::Truncated { offset, wanted, found, .. }) => {
                    assert!(
                        offset + found == end as u64 && found < wanted,
                        "{offset} {found} {wanted} {end}"
                    );
                }
                Some(error) => panic!("{end}: {error}"),
            }
        }
        assert_eq!(boundaries, expected);
    }
}

#[test]
fn damage_is_named_with_its_place() {
    let error = |file: Vec<u8>| read(&file).1.expect("it is damaged").to_string();
    let start = [LITTLE.section(), LITTLE.interface(1, &[])].concat();
    let behind = |block: Vec<u8>| error([start.clone(), block].concat());
    let at = format!("f is damaged: at byte {}, ", start.len());
    assert_eq!(
        behind(LITTLE.packet(1, 0, 1, b"x", &[])),
        format!("{at}a packet of interface 1, which was not described")
    );
    assert_eq!(
        behind(LITTLE.block(3, &[0; 8])),
        format!("{at}a simple packet block, whose packet has no instant")
    );
    assert_eq!(
        behind(LITTLE.interface(1, &[LITTLE.option(9, &[20])])),
        format!("{at}a resolution of time stamps of 0x14")
    );
    let mut block = LITTLE.packet(0, 0, 1, b"x", &[]);
    *block.last_mut().expect("it is not empty") = 1;
    assert_eq!(behind(block), format!("{at}a block has 36 bytes by its start and 16777252 by its end"));
    let mut block = LITTLE.packet(0, 0, 1, b"x", &[]);
    block[20] = 5;
    assert_eq!(behind(block), format!("{at}a packet claims to have 5 bytes, more than its block"));
    assert_eq!(
        behind([6, 0, 0, 0, 0xff, 0xff, 0xff, 0xfc].into()),
        format!("{at}a block claims to have 4244635647 bytes")
    );
    assert!(behind([6, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff].into()).contains("claims to have 4294967292 bytes"));
    assert!(behind([7, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff].into()).contains("cut short"));
    let early = LITTLE.interface(1, &[LITTLE.option(14, &(-10i64).to_le_bytes())]);
    assert!(behind([early, LITTLE.packet(1, 0, 1, b"x", &[])].concat()).contains("between 1970 and 2554"));
    let mut pcap = LITTLE.pcap(0xa1b2_c3d4, 1, &[(1, 2, 3, b"abc")]);
    pcap[24 + 11] = 0xff;
    assert_eq!(error(pcap), "f is damaged: at byte 24, a packet claims to have 4278190083 bytes");
}

#[test]
fn foreign_files_are_told_apart() {
    for (file, found) in [
        (&b""[..], "it is empty"),
        (b"\x1f\x8b\x08\0\0", "it is compressed with gzip: unpack it first"),
        (b"# a text", "it begins with the bytes 23 20 61 20"),
    ] {
        let error = read(file).1.expect("it is not a capture").to_string();
        assert_eq!(error, format!("f is not a pcap or pcapng capture: {found}"));
    }
    let error = CaptureReader::open("/no/such/file").expect_err("there is none").to_string();
    assert!(error.starts_with("cannot read /no/such/file: "), "{error}");
}

fn written(interfaces: &[LinkLayer], packets: &[Owned]) -> Vec<u8> {
    let mut writer = CaptureWriter::new("f", Vec::new(), "a test").expect("a vector takes it");
    let mut known = Vec::new();
    for (number, layer) in interfaces.iter().enumerate() {
        known.push(writer.interface(&format!("eth{number}"), *layer).expect("a vector takes it"));
    }
    for packet in packets {
        let captured = Captured {
            instant: WallTime::from_nanos(packet.nanos),
            interface: known[packet.interface],
            length: packet.length,
            bytes: &packet.bytes,
            comment: packet.comment.as_deref(),
        };
        writer.write(&captured).expect("a vector takes it");
    }
    writer.finish().expect("a vector takes it")
}

/// The capture below, by the crate pcap-file 3.0.0-rc.3.
const WRITTEN_BY_PCAP_FILE: &[u8] = include_bytes!("written-by-pcap-file.pcapng");

#[test]
fn files_are_as_another_implementation_writes_them() {
    let comment = "written by pcap-file 3.0.0-rc.3";
    let mut writer = CaptureWriter::new("f", Vec::new(), comment).unwrap();
    let mut interface = |name, layer| writer.interface(name, layer).unwrap();
    let client = interface("client", LinkLayer::Ethernet);
    let server = interface("server", LinkLayer::Ip);
    let any = interface("any", LinkLayer::LinuxCooked);
    let all = interface("all", LinkLayer::LinuxCooked2);
    let mut packet = |nanos, interface, length, bytes: &[u8], comment| {
        let instant = WallTime::from_nanos(nanos);
        writer.write(&Captured { instant, interface, length, bytes, comment }).unwrap();
    };
    packet(0, client, 0, b"", None);
    packet(1_700_000_000_123_456_789, server, 60, b"cut", Some("dropped at access.down: queue full"));
    packet(1_700_000_000_123_456_790, any, 4, b"even", Some(""));
    packet(u64::MAX, all, 6, b"padded", Some("four"));
    packet(1 << 32, client, 1, b"1", Some("nach 4 µs"));
    let file = writer.finish().unwrap();

    let program = concat!("narrows ", env!("CARGO_PKG_VERSION"));
    let options = [BIG.option(1, comment.as_bytes()), BIG.option(4, program.as_bytes()), vec![0; 4]].concat();
    let header = [&BIG.long(0x1a2b_3c4d)[..], &BIG.short(1), &BIG.short(0), &[0xff; 8], &options].concat();
    let header = BIG.block(0x0a0d_0d0a, &header);
    assert_eq!(&file[..header.len()], header);
    // The other one's header has the version of narrows that wrote it.
    let others = u32::from_be_bytes(WRITTEN_BY_PCAP_FILE[4..8].try_into().unwrap());
    assert_eq!(file[header.len()..], WRITTEN_BY_PCAP_FILE[others as usize..]);
}

#[test]
fn a_packet_that_cannot_be_written_is_an_error() {
    let mut writer = CaptureWriter::new("f", Vec::new(), "").expect("a vector takes it");
    let interface = writer.interface("eth0", LinkLayer::Ip).expect("a vector takes it");
    let packet = Captured { instant: WallTime::default(), interface, length: 0, bytes: &[], comment: None };
    let long = "x".repeat(70_000);
    let error = writer.write(&Captured { comment: Some(&long), ..packet }).expect_err("it is too long");
    assert_eq!(error.to_string(), "cannot write f: a text of 70000 bytes; the format takes 65535 at most");
    let other = Interface { number: 1, layer: LinkLayer::Ip };
    let error =
        writer.write(&Captured { interface: other, ..packet }).expect_err("there is no such interface");
    assert_eq!(error.to_string(), "cannot write f: a packet of interface 1; this file has 1");

    writer.write(&packet).expect("nothing was written of the others");
    let (packets, error) = read(&writer.finish().expect("a vector takes it"));
    assert!(packets.len() == 1 && error.is_none(), "{packets:?} {error:?}");
}

fn packets() -> impl Strategy<Value = Vec<Owned>> {
    let one = (any::<u64>(), 0usize..3, vec(any::<u8>(), 0..70), 0u32..100, any::<Option<String>>());
    vec(one, 0..8).prop_map(|packets| {
        let own =
            |(nanos, interface, bytes, more, comment): (u64, usize, Vec<u8>, u32, Option<String>)| Owned {
                nanos,
                interface,
                layer: LAYERS[interface],
                length: bytes.len() as u32 + more,
                bytes,
                comment,
            };
        packets.into_iter().map(own).collect()
    })
}

const LAYERS: [LinkLayer; 3] = [LinkLayer::Ethernet, LinkLayer::Ip, LinkLayer::LinuxCooked];

proptest! {
    #[test]
    fn what_was_written_is_read(packets in packets()) {
        let file = written(&LAYERS, &packets);
        let (read, error) = read(&file);
        prop_assert_eq!(&read, &packets);
        prop_assert!(error.is_none());
    }

    #[test]
    fn damaged_files_never_panic_or_exhaust_memory(
        which in 0..3, changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), end: prop::sample::Index,
    ) {
        let mut file = match which {
            0 => pcapng().0,
            1 => BIG.pcap(0xa1b2_3c4d, 1, &[(1, 2, 3, b"abc"), (4, 5, 60, b"defgh")]),
            _ => written(&[LinkLayer::Ethernet], &[packet(5, 5, b"hello")]),
        };
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        file.truncate(end.index(2 * file.len()).min(file.len()));
        let length = file.len();
        let (packets, _) = read(&file);
        let kept: usize = packets.iter().map(|packet| packet.bytes.len()).sum();
        prop_assert!(kept <= length);
    }

    #[test]
    fn any_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        read(&bytes);
        for start in [LITTLE.section(), BIG.section(), LITTLE.pcap(0xa1b2_c3d4, 1, &[])] {
            read(&[&start[..], &bytes].concat());
        }
    }
}
