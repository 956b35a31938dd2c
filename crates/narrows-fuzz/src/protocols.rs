//! What other programs say to a run, by the control socket and by feeds; and what the kernel says by rings.

use narrows_live::control::Request;
use narrows_live::feeds::protocol::{Answer, Decoded, decode};
use narrows_live::run_name::RunName;
use narrows_live::run_record::About;
use narrows_scenario::{LinkFlags, Scenario};

use crate::odd;

/// Lines of the control socket: each is a request, or an error; a request for changes is tried on a plain link.
///
/// # Panics
/// When a request that was read is written as another.
pub fn control(bytes: &[u8]) {
    let Ok(mut scenario) = Scenario::from_flags(&LinkFlags::default()) else { return };
    for line in bytes.split(|&byte| byte == b'\n').take(20) {
        if let Ok(text) = str::from_utf8(line) {
            // Records of runs are such lines, too; what names a run is none that could be a path or a number.
            let name =
                About::read(text).and_then(|about| about.name).or_else(|| text.parse::<RunName>().ok());
            assert!(name.is_none_or(|name| name.as_str().starts_with(|c: char| c.is_ascii_alphabetic())));
        }
        let Ok(request) = serde_json::from_slice::<Request>(line) else { continue };
        let again = serde_json::to_vec(&request).expect("a vector takes it");
        assert_eq!(serde_json::from_slice::<Request>(&again).expect("it was written"), request);
        if let Request::Set { assignments, .. } = request {
            let before = scenario.clone();
            // Files are not for a request from nowhere.
            if !assignments.iter().any(|text| text.contains(['/', '.', '{']) && text.contains("file"))
                && scenario.assign_all(&assignments).is_err()
            {
                assert_eq!(scenario, before, "all changes or none");
            }
        }
    }
}

/// The body of a request to `narrows toxi` that adds or changes a toxic.
///
/// # Panics
/// When the same bytes are read as two things.
pub fn toxic(bytes: &[u8]) {
    assert_eq!(narrows_toxi::read_toxic(bytes), narrows_toxi::read_toxic(bytes));
}

/// Words of toxics.
pub const OF_TOXICS: &[&str] = &[
    "\"type\":\"link\"",
    "\"attributes\":{",
    "\"toxicity\":",
    "\"delay\":\"1ms\"",
    "\"queue\":{\"bound\":\"3 packets\"}",
    "\"scheduler\":\"fq_codel\"",
    "\"preset\":\"dsl\"",
    "\"trace\":\"/dev/zero\"",
    "null",
    "1e400",
    "-1",
    "\"\\u0000\"",
    "\u{7f}",
];

/// One of each.
pub fn toxics() -> Vec<Vec<u8>> {
    [
        r#"{"type":"latency","stream":"upstream","toxicity":0.5,"attributes":{"latency":100,"jitter":10}}"#,
        r#"{"type":"slicer","attributes":{"average_size":100,"size_variation":50,"delay":10}}"#,
        r#"{"type":"link","attributes":{"rate":"10mbit","delay":{"gamma":{"mean":"30ms","sd":"8ms"}},"loss":0.01}}"#,
        r#"{"type":"link","attributes":{"preset":"3g","queue":"30 packets","outage":false,"mtu":1400}}"#,
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Words of requests.
pub const OF_JSON: &[&str] = &[
    "{\"command\":\"stats\"}\n",
    "\"set\"",
    "\"assignments\":",
    "[",
    "]",
    "{",
    "}",
    "\"link.up.rate=2mbit\"",
    "null",
    "\"link.delay=1ms\"",
    "\"ipfw\"",
    "1e400",
    "\"\\ud800\"",
    "\n",
];

/// One of each.
pub fn requests() -> Vec<Vec<u8>> {
    [
        r#"{"command":"set","assignments":["link.up.rate=2mbit","link.down.delay=5ms","link.loss=1%"]}"#,
        r#"{"command":"ipfw","link":null,"file":"x","commands":"pipe 1 config bw 1Mbit/s"}"#,
        r#"{"command":"feeds"}"#,
        r#"{"command":"scenario"}"#,
        r#"{"command":"stats"}"#,
        r#"{"command":"status"}"#,
        r#"{"command":"now"}"#,
        r#"{"command":"check","assignments":["access.down.rate=2mbit"]}"#,
        r#"{"command":"events","after":7}"#,
        r#"{"command":"hosts"}"#,
        r#"{"command":"enter","host":"client"}"#,
        r#"{"command":"end"}"#,
        r#"{"process":7,"started":1,"boot":"b","pid-namespace":1,"name":"lab","kind":"up","since-ns":1,"hosts":2,"links":1}"#,
    ]
    .map(|line| [line.as_bytes(), b"\n"].concat())
    .into()
}

/// What a feed's writer sends, in pieces as they come; and what a run answers.
///
/// # Panics
/// When a message has more bytes than there are, or an answer is written as another.
pub fn feed(bytes: &[u8]) {
    let mut rest = bytes;
    while let Decoded::Whole(_, length) = decode(rest) {
        assert!((1..=rest.len()).contains(&length));
        for cut in 1..length {
            assert_eq!(decode(&rest[..cut.min(7)]), Decoded::Part, "a part is not a message yet");
        }
        rest = &rest[length..];
    }
    for eight in bytes.as_chunks::<8>().0 {
        if let Some(answer) = Answer::decode(*eight) {
            assert_eq!(answer.encode(), *eight);
        }
    }
}

/// Messages of every kind.
pub fn messages() -> Vec<Vec<u8>> {
    let integers: [&[i64]; 4] = [&[0, 200_000, i64::MAX], &[-1, -2, -3, 7, 5], &[-3, 0], &[-4, i64::MIN]];
    integers.map(|all| all.iter().flat_map(|integer| integer.to_le_bytes()).collect()).into()
}

/// What a guest kernel's first process and its supervisor say to each other.
///
/// # Panics
/// When the messages depend on how they are cut.
pub fn guest(bytes: &[u8]) {
    narrows_guest::channel::rehearse(bytes);
}

/// Messages of every kind, behind the length of the pieces.
pub fn guest_messages() -> Vec<Vec<u8>> {
    let bodies: [&[u8]; 8] = [
        &[7; 8],
        b"\x01text",
        &[1, 2, 0, 0],
        &[1],
        &[143, 9, 9, 9, 9, 9, 9, 9, 9],
        b"no such program",
        &[],
        &[24, 0, 80, 0],
    ];
    let one = |kind: u8, body: &[u8]| {
        let length = (body.len() as u32).to_le_bytes();
        [&[3, 0, kind][..], &length, body].concat()
    };
    let mut all: Vec<_> = (1..=6).flat_map(|kind| bodies.map(|body| one(kind, body))).collect();
    all.push([one(1, &[7; 8]), one(2, b"\0out")[1..].to_vec(), one(5, &[0; 9])[1..].to_vec()].concat());
    all
}

/// The rings between the kernel and us, and the memory for frames.
///
/// # Panics
/// When a frame's memory is lost or had twice.
pub fn rings(bytes: &[u8]) {
    narrows_io::xdp::rehearsal::rehearse(bytes);
}

/// A kernel that does what it should, and one that gives back what it never had.
pub fn steps() -> Vec<Vec<u8>> {
    vec![
        vec![0x20, 1, 1, 1, 0x0b, 0x0b, 0x0b, 6, 5, 5, 0x20, 1, 0x0b],
        vec![0x40, 2, 0, 8, 0, 0, 0, 0, 0, 0, 3, 7, 9, 0, 0, 0, 3],
    ]
}

/// Frames as the kernel hands them over, with its description: trains of segments, checksums that are not complete.
///
/// # Panics
/// When a wire would carry other bytes after they were joined.
pub fn trains(bytes: &[u8]) {
    narrows_io::offloaded::rehearsal::rehearse(bytes);
}

/// Trains of TCP and UDP, over IPv4 and IPv6, and a single frame with an incomplete checksum.
pub fn offloads() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for is_ipv6 in [false, true] {
        let transport = if is_ipv6 { 54 } else { 34_u16 };
        for (protocol, kind, field) in [(17, 5, 6), (6, if is_ipv6 { 4 } else { 1 }, 16), (17, 0, 6)] {
            let mut frame = odd::datagram(is_ipv6, &[9; 3000]);
            frame[if is_ipv6 { 20 } else { 23 }] = protocol;
            // The length of TCP's header, without options.
            frame[usize::from(transport) + 12] = 0x50;
            let mut bytes = vec![1, kind];
            bytes.extend([0, 1000, transport, field].iter().flat_map(|word: &u16| word.to_ne_bytes()));
            // All headers in the first buffer; the second packet lost.
            bytes.extend([10, 2]);
            bytes.extend(frame);
            all.push(bytes);
        }
    }
    all
}
