//! Wireshark's tools read what we write, and we read what they write.

use std::path::{Path, PathBuf};
use std::process::Command;

use narrows_core::Duration;
use narrows_frame::capture::{CaptureReader, CaptureWriter, Captured};
use narrows_frame::craft::Udp;
use narrows_frame::{LinkLayer, MacAddress, WallTime};

const START: WallTime = WallTime::from_nanos(1_700_000_000_123_456_789);

/// What a tool prints.
fn output(tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool).args(arguments).output().expect("it is installed");
    assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let probe = Udp::new(([10, 0, 0, 1], 4000).into(), ([10, 0, 0, 2], 5000).into());
    probe.ethernet(MacAddress([2, 0, 0, 0, 0, 2]), MacAddress([2, 0, 0, 0, 0, 1]), payload)
}

#[test]
#[ignore = "needs tshark"]
fn tshark_reads_instants_interfaces_and_comments() {
    let path = place("written.pcapng");
    let mut writer = CaptureWriter::create(&path, "seed 7").expect("it can be created");
    let client = writer.interface("client.access", LinkLayer::Ethernet).expect("it can be written");
    let server = writer.interface("server.access", LinkLayer::Ip).expect("it can be written");
    let bytes = frame(b"a payload");
    let first = Captured {
        instant: START,
        interface: client,
        length: bytes.len() as u32,
        bytes: &bytes,
        comment: None,
    };
    writer.write(&first).expect("it can be written");
    let comment = Some("dropped at access.up: queue full");
    writer
        .write(&Captured { instant: START + Duration::from_nanos(1), comment, ..first })
        .expect("it can be written");
    let cut = Captured { interface: server, length: 1500, bytes: &bytes[14..14 + 28], ..first };
    writer.write(&Captured { instant: START + Duration::from_secs(2), ..cut }).expect("it can be written");
    writer.finish().expect("it can be written");

    let name = path.to_str().expect("a plain name");
    let fields =
        ["interface_name", "time_epoch", "len", "cap_len", "comment"].map(|field| format!("frame.{field}"));
    let mut arguments = vec!["-r", name, "-T", "fields", "-e", "udp.dstport", "-e", "ip.checksum.status"];
    arguments.extend(["-o", "ip.check_checksum:TRUE"]);
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let printed = output("tshark", &arguments);
    std::fs::remove_file(&path).expect("it was created");
    let expected = [
        "5000\t1\tclient.access\t1700000000.123456789\t51\t51\t",
        "5000\t1\tclient.access\t1700000000.123456790\t51\t51\tdropped at access.up: queue full",
        "5000\t1\tserver.access\t1700000002.123456789\t1500\t28\t",
    ];
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

#[test]
#[ignore = "needs editcap"]
fn files_of_editcap_are_read() {
    let (path, converted) = (place("source.pcapng"), place("converted"));
    let mut writer = CaptureWriter::create(&path, "").expect("it can be created");
    let interface = writer.interface("eth0", LinkLayer::Ethernet).expect("it can be written");
    let frames: Vec<_> = (0..20).map(|size| frame(&vec![size; usize::from(size) * 7])).collect();
    for (number, bytes) in frames.iter().enumerate() {
        let instant = START + Duration::from_micros(1500 * number as u64);
        let length = bytes.len() as u32;
        writer
            .write(&Captured { instant, interface, length, bytes, comment: None })
            .expect("it can be written");
    }
    writer.finish().expect("it can be written");

    let names = [&path, &converted].map(|path| path.to_str().expect("a plain name").to_owned());
    for (format, unit) in [("pcap", 1000), ("nsecpcap", 1), ("pcapng", 1)] {
        output("editcap", &["-s", "60", "-F", format, &names[0], &names[1]]);
        let mut reader = CaptureReader::open(&converted).expect("it is a capture");
        for (number, bytes) in frames.iter().enumerate() {
            let packet = reader.read().expect("it is whole").expect("there are twenty");
            let exact = (START + Duration::from_micros(1500 * number as u64)).nanos();
            assert_eq!(packet.instant.nanos(), exact / unit * unit, "{format}");
            assert_eq!(packet.length as usize, bytes.len());
            assert_eq!(packet.bytes, &bytes[..bytes.len().min(60)]);
        }
        assert!(reader.read().expect("it is whole").is_none());
        std::fs::remove_file(&converted).expect("it was created");
    }
    std::fs::remove_file(&path).expect("it was created");
}
