//! Frames: what reads their headers, what changes and answers them, and whole networks.

use std::sync::OnceLock;

use narrows_core::{Body, Bytes, Duration, Engine, Event, FlowKey, Fragment, Quoted, Time};
use narrows_frame::answer::{self, IcmpError, Neighbour, Notice};
use narrows_frame::edit::{Edits, Tag};
use narrows_frame::forward::IpHeader;
use narrows_frame::nat::{Nat, Outcome};
use narrows_frame::parse::{Parsed, parse, parse_cut};
use narrows_frame::translate::{self, End, Endpoint, kind, quoted, replace};
use narrows_frame::{LinkLayer, MacAddress};
use narrows_live::neighbor_proxy::NeighborProxy;
use narrows_report::{Kind, Meter, Report, RunInfo};
use narrows_scenario::{Files, Scenario};

use crate::odd;

const LAYERS: [LinkLayer; 4] =
    [LinkLayer::Ethernet, LinkLayer::Ip, LinkLayer::LinuxCooked, LinkLayer::LinuxCooked2];

/// One frame, of each link layer: headers, edits of every kind, answers of every kind.
///
/// # Panics
/// When a length does not fit, an edit changes what it should not, or an answer is none.
pub fn frame(bytes: &[u8]) {
    let mut out = Vec::new();
    for layer in LAYERS {
        let parsed = parse(layer, bytes);
        assert!(usize::from(parsed.link_header) + parsed.length as usize <= bytes.len());
        assert!(parsed.examined as usize <= bytes.len());
        let kept = &bytes[..parsed.examined as usize];
        assert_eq!(
            parse_cut(layer, kept, bytes.len() as u32),
            parsed,
            "what was not examined does not matter"
        );
        parse_cut(layer, bytes, u32::MAX);
        edits(&parsed, bytes, &mut out);
        answers(layer, bytes, &mut out);
    }
    routed(bytes, &mut out);
    let mut neighbours = NeighborProxy::default();
    neighbours.judge(bytes, &mut out);
    neighbours.add("198.18.0.2".parse().expect("an address"), MacAddress(odd::STATIONS[0]));
    neighbours.add("2001:2::2".parse().expect("an address"), MacAddress(odd::STATIONS[0]));
    neighbours.judge(bytes, &mut out);
    for neighbours in [neighbours, NeighborProxy::transparent()] {
        if neighbours.tell(bytes, Notice::Error(IcmpError::TooBig(Bytes::new(1400))), &mut out) {
            parse(LinkLayer::Ethernet, &out);
        }
    }
}

fn edits(parsed: &Parsed, bytes: &[u8], out: &mut Vec<u8>) {
    let same = Edits {
        link_header: parsed.link_header,
        network: parsed.key.network,
        traffic_class: parsed.key.traffic_class,
        hop_limit: None,
        hops: 0,
        length: parsed.length,
        fragment: None,
        flips: &[],
        stations: None,
        ether_type: None,
        ends: None,
        quoted: None,
        tag: Tag::Stays,
    };
    assert!(!same.needed(bytes), "a frame that stays as it is needs no edit");
    same.render(bytes, out);
    assert_eq!(out, bytes);
    let stations = Some((MacAddress([2; 6]), MacAddress([4; 6])));
    let all = Edits {
        traffic_class: !parsed.key.traffic_class,
        hops: 3,
        flips: &[0, 7, 8 * 20, u32::MAX],
        stations,
        hop_limit: Some(9),
        ether_type: Some(0xbeef),
        quoted: quoted(LinkLayer::Ethernet, bytes, 0)
            .map(|quoted| Quoted { source: quoted.destination, ..quoted }),
        ends: Some(FlowKey { source: [7; 16], destination: [9; 16], source_port: 5, ..parsed.key }),
        ..same
    };
    all.render(bytes, out);
    assert_eq!(out.len(), bytes.len(), "only a piece has another length");
    let header = u32::from(parsed.network_header);
    if header == 0 || parsed.length <= header + 8 {
        return;
    }
    for (offset, length) in [(0, 8), (8, parsed.length - header - 8)] {
        let piece = Fragment { offset, more: offset == 0 };
        let edits = Edits { length: header + length, fragment: Some(piece), ..all };
        edits.render(bytes, out);
        assert_eq!(out.len() as u32, u32::from(parsed.link_header) + header + length);
    }
}

/// What a router reads, asks, learns and translates.
fn routed(bytes: &[u8], out: &mut Vec<u8>) {
    let mac = MacAddress(odd::STATIONS[0]);
    for outer in ["198.18.0.9", "2001:2::9"].map(|outer| outer.parse().expect("an address")) {
        let own = Neighbour { address: outer, mac };
        if let Ok(header) = IpHeader::read(bytes) {
            header.is_forwardable();
            if answer::ask_neighbour(header.destination, own, None, out) {
                assert!(answer::is_address_resolution(out));
                assert_eq!(answer::heard_neighbour(out), Some(own), "who asks tells its address");
            }
        }
        answer::heard_neighbour(bytes);
        let mut nat = Nat::new(&[outer]);
        let mut frame = bytes.to_vec();
        if nat.outbound(Time::ZERO, &mut frame) == Outcome::Translated
            && let translate::Kind::Flow(flow) = kind(&frame)
        {
            assert_eq!(flow.source.address, outer);
            let inner = match kind(bytes) {
                translate::Kind::Flow(flow) => flow.source,
                other => panic!("a flow was {other:?}"),
            };
            assert!(replace(&mut frame, End::Source, inner));
            assert_eq!(kind(&frame), kind(bytes), "and back");
        }
        assert_eq!(frame.len(), bytes.len());
        for end in [End::Source, End::Destination] {
            replace(&mut frame, end, Endpoint { address: outer, port: 61_000 });
        }
        nat.inbound(Time::ZERO, &mut frame);
        nat.undo_inbound(&mut frame);
        assert_eq!(frame.len(), bytes.len());
    }
}

fn answers(layer: LinkLayer, bytes: &[u8], out: &mut Vec<u8>) {
    let sources = ["198.18.0.9", "2001:2::9"].map(|source| source.parse().expect("an address"));
    let too_big = IcmpError::TooBig(Bytes::new(1280));
    for error in [
        too_big,
        IcmpError::HopLimit,
        IcmpError::NoRoute,
        IcmpError::NoHost,
        IcmpError::NoPort,
        IcmpError::NoProtocol,
        IcmpError::Unreachable(13),
    ] {
        for source in sources {
            if answer::icmp_error(layer, bytes, error, source, out) {
                let parsed = parse(layer, out);
                assert_eq!(usize::from(parsed.link_header) + parsed.length as usize, out.len());
            }
        }
    }
    for answered in [answer::echo_reply, answer::tcp_reset] {
        if answered(layer, bytes, out) {
            assert_ne!(parse(layer, out).key.source, [0; 16]);
        }
    }
    if answer::answer_resolution(bytes, MacAddress(odd::STATIONS[0]), out) {
        assert!(answer::is_address_resolution(bytes) && answer::is_address_resolution(out));
        assert!(answer::asked_address(bytes).is_some());
    }
}

/// Networks that look at headers, cut, mark, flip, duplicate, reorder, drop and answer.
const NETWORKS: [&str; 6] = [
    // Everything that one wire does, and a second one that cuts pieces again.
    r#"
    [junctions.j]
    [links.one]
    between = ["a", "j"]
    rate = "100mbit"
    delay = { uniform = { low = "0ms", high = "2ms" }, order = "allow" }
    queue = { type = "codel", target = "50us", interval = "1ms", bound = "40 packets" }
    loss = { wire = { rate = "5%", ecn = true } }
    duplicate = "20%"
    corrupt = { bit-errors = "0.1%" }
    reorder = "10%"
    mtu = 700
    policer = { rate = "50mbit", burst = "9000B", mtu = "9000B", exceed = "mark" }
    overhead = "ethernet"
    [links.two]
    between = ["j", "b"]
    rate = "80mbit"
    mtu = 92
    duplicate = "10%"
    queue = { type = "red", min = "2 packets", max = "20 packets", bound = "30 packets" }
    "#,
    // Classes by every part of a header.
    r#"
    [links.one]
    between = ["a", "b"]
    rate = "40mbit"
    mtu = { bytes = 1400, policy = "answer" }
    scheduler = { type = "qfq", bound = "60 packets", classes = [
        { name = "voice", match = { protocol = "udp", dscp = "ef", length = "..300 bytes" } },
        { name = "port", match = { port = [1000, "2000-2100"] }, queue = "pie" },
        { name = "host", match = { source = "198.18.0.0/15", protocol = "tcp" } },
        { name = "other", queue = { type = "codel", bound = "20 packets" } },
    ] }
    "#,
    // Flows by a hash, with marks.
    r#"
    [links.one]
    between = ["a", "b"]
    rate = "30mbit"
    scheduler = { type = "fq_codel", flows = 16, bound = "50 packets", target = "100us", interval = "1ms" }
    up.mtu = { bytes = 576, policy = "black-hole" }
    down.scheduler = { type = "hpd", classes = [
        { name = "a", match = { dscp = 46 }, ddp = 1 }, { name = "b", ddp = 4 },
    ] }
    "#,
    // Rules and pipes, which routers pass back into.
    r#"
    [links.one]
    between = ["a", "b"]
    one-pass = false
    rules = [
        "100 check-state",
        "200 pipe 1 tcp from any to any out setup limit dst-addr 4",
        "250 prob 0.5 deny ip from any to any frag",
        "300 pipe 2 ip from any to any iplen 0-200",
        "400 deny ip from any to any ipttl 0-3",
        "500 queue 3 ip from table(t) to any",
        "600 pipe 2 udp from any 1000 to any keep-state",
        "700 pipe 4 layer2 mac-type 0x0806",
    ]
    [links.one.pipes.1]
    delay = "1ms"
    [links.one.pipes.2]
    rate = "20mbit"
    mask = { src-ip = "0xff", dst-port = "0xffff" }
    most = 8
    duplicate = "10%"
    [links.one.pipes.3]
    rate = "20mbit"
    scheduler = { type = "wf2q+" }
    [links.one.pipes.4]
    corrupt = "50%"
    [links.one.queues.3]
    pipe = 3
    mask = "all"
    [links.one.tables]
    t = ["198.18.0.0/15", "2001:2::/48 7"]
    "#,
    // Routers, which count hops and have no route for most.
    r#"
    [routers.r]
    addresses = { one = ["198.18.1.2/24", "2001:2:0:1::2/64"] }
    [routers.s]
    addresses = { three = ["198.18.0.9/24", "2001:2::9/64"] }
    [links.one]
    between = ["a", "r"]
    mtu = 300
    [links.two]
    between = ["r", "s"]
    duplicate = "30%"
    corrupt = "30%"
    [links.three]
    between = ["s", "b"]
    delay = "1ms"
    "#,
    // NetEm's single queue, and a shared medium.
    r#"
    [junctions.j]
    [links.one]
    between = ["a", "j"]
    exact-netem = "delay 1ms 1ms 25% loss 5% duplicate 10% corrupt 20% reorder 25% 50% rate 50mbit limit 50"
    mtu = 1000
    [links.two]
    between = ["j", "b"]
    shared = true
    rate = "11mbit"
    scheduler = { type = "dcf", classes = [{ name = "a", match = { from = "up" } }, { name = "b" }] }
    "#,
];

/// What each network begins with. The addresses are those of the frames in [`odd`].
const HOSTS: &str = r#"
    seed = 11
    [hosts.a]
    addresses = ["198.18.0.1/24", "2001:2::1/64"]
    [hosts.b]
    addresses = ["198.18.0.2/24", "2001:2::2/64"]
"#;
/// Routers stand between two networks.
const ROUTED: &str = r#"
    seed = 11
    [hosts.a]
    addresses = ["198.18.1.1/24", "2001:2:0:1::1/64"]
    [hosts.b]
    addresses = ["198.18.0.2/24", "2001:2::2/64"]
"#;

fn networks() -> &'static [Scenario] {
    static ALL: OnceLock<Vec<Scenario>> = OnceLock::new();
    let read = |text: &&str| {
        let scenario = Scenario::parse_with(&whole(text), "fuzz.toml", Files::default());
        scenario.unwrap_or_else(|error| panic!("{error}"))
    };
    ALL.get_or_init(|| NETWORKS.iter().map(read).collect())
}

/// The text of a network's scenario.
fn whole(text: &str) -> String {
    let hosts = if text.contains("routers") { ROUTED } else { HOSTS };
    format!("{hosts}{text}")
}

/// The network of this number, as text and read.
pub(crate) fn scenario(which: u8) -> (String, Scenario) {
    let number = usize::from(which) % NETWORKS.len();
    (whole(NETWORKS[number]), networks()[number].clone())
}

/// Frames through a network: the first byte says which. Then each frame has its length in two bytes, the most significant
/// one first, and one for the port that it comes to and the time since the last one, in units of 16 µs.
///
/// # Panics
/// When packets do not add up, anywhere in the network; when the network does not come to rest; when what leaves has not
/// the length that the engine says.
pub fn network(bytes: &[u8]) {
    let Some((&which, mut rest)) = bytes.split_first() else { return };
    let scenario = &networks()[usize::from(which) % NETWORKS.len()];
    let mut engine: Engine<Vec<u8>> = Engine::new(scenario.network()).expect("a network");
    let ports: Vec<_> = engine.ports().collect();
    let mut meter = Meter::new(ports.len());
    let (mut at, mut out) = (Time::ZERO, Vec::new());
    while let Some(([high, low, place], more)) = rest.split_first_chunk::<3>() {
        let (frame, behind) = more.split_at(more.len().min(usize::from(u16::from_be_bytes([*high, *low]))));
        rest = behind;
        at = at + Duration::from_micros(16 * u64::from(place >> 1));
        let port = ports[usize::from(place & 1)];
        let packet = parse(LinkLayer::Ethernet, frame);
        engine.hand_in(at, port, packet.with(frame.to_vec()));
        while let Some(event) = engine.poll(at) {
            take(event, &mut meter, &mut out);
        }
    }
    let mut last = at;
    while let Some(next) = engine.next_event() {
        assert!(next < at + Duration::from_secs(3600), "it does not come to rest");
        while let Some(event) = engine.poll(next) {
            take(event, &mut meter, &mut out);
        }
        last = next.max(last);
    }
    assert_eq!(engine.inside(), 0, "nothing stays inside");
    let mut info = RunInfo::of(scenario, Kind::Live);
    info.span = (Time::ZERO, last);
    let report = Report::new(&info, &engine, &meter);
    assert!(report.conservation.violations.is_empty(), "{:#?}", report.conservation);
}

fn take(event: Event<'_, Vec<u8>>, meter: &mut Meter, out: &mut Vec<u8>) {
    meter.verdict(&event);
    let frame = event.body.get();
    let edits = Edits::of(&event);
    if edits.needed(frame) {
        edits.render(frame, out);
        match event.fragment {
            Some(_) => assert_eq!(out.len() as u32, u32::from(event.link_header) + event.length),
            None => assert_eq!(out.len(), frame.len()),
        }
    }
    if let Body::Last(frame) = event.body {
        drop(frame);
    }
}

/// Each kind of frames through each network.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for which in 0..NETWORKS.len() as u8 {
        for kind in odd::kinds() {
            for few in kind.frames.chunks(20) {
                let mut bytes = vec![which];
                for (number, frame) in (0..).zip(few) {
                    bytes.extend((frame.len() as u16).to_be_bytes());
                    bytes.push(number);
                    bytes.extend(frame);
                }
                all.push(bytes);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_frame_crosses_every_network() {
        for (scenario, text) in networks().iter().zip(NETWORKS) {
            let mut engine: Engine<()> = Engine::new(scenario.network()).expect("a network");
            let port = engine.ports().next().expect("a port");
            for number in 0..100 {
                let frame = odd::datagram(number % 2 == 0, &[1; 30]);
                engine.hand_in(
                    Time::ZERO + Duration::from_millis(number),
                    port,
                    parse(LinkLayer::Ethernet, &frame).with(()),
                );
            }
            let mut delivered = 0;
            while let Some(event) = engine.poll(Time::NEVER) {
                delivered += u64::from(matches!(event.verdict, narrows_core::Verdict::Delivered(_)));
            }
            assert!(delivered > 30, "{delivered} through {text}");
        }
    }
}
