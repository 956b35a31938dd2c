//! TCP over links whose throughput is known, and what is to hold on all links.

mod common;

use narrows_core::Protocol;
use narrows_frame::LinkLayer;
use narrows_frame::capture::CaptureReader;
use narrows_frame::parse::parse;
use narrows_report::{ApplicationReport, Report};
use narrows_scenario::Scenario;
use narrows_sim::{Destination, SimOptions, simulate};

fn scenario(link: &str, traffic: &str) -> Scenario {
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.l]\nbetween = [\"client\", \"server\"]\n{link}\n\
         [[traffic]]\nname = \"t\"\nfrom = \"client\"\nto = \"server\"\n{traffic}\n"
    );
    Scenario::parse(&text, "tcp.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn run(link: &str, traffic: &str) -> Report {
    let options = SimOptions::default();
    let report = simulate(&scenario(link, traffic), &options).expect("nothing is written").report;
    assert_eq!(report.conservation.violations, [] as [String; 0]);
    report
}

fn app(report: &Report) -> &ApplicationReport {
    &report.applications[0]
}

/// Bits a second of a file, from the opening of the connection to its last byte.
fn throughput(report: &Report) -> f64 {
    let time = app(report).time.expect("it has got there");
    assert_eq!(time.packets, 1);
    app(report).down_bytes as f64 * 8e9 / time.mean_ns as f64
}

#[test]
fn one_flow_fills_a_clean_link() {
    // 1460 of 1500 bytes are left; acknowledgements go the other way.
    let ideal = 10e6 * 1460.0 / 1500.0;
    for congestion in ["cubic", "reno"] {
        let link = "rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = \"1000 packets\"";
        let traffic = format!(
            "file = {{ size = \"20 MB\", transactions = 1, tcp = {{ congestion = \"{congestion}\" }} }}"
        );
        let report = run(link, &traffic);
        let share = throughput(&report) / ideal;
        assert!((0.97..1.0).contains(&share), "{congestion}: {share}");
        assert_eq!(app(&report).retransmitted_segments, Some(0));
        assert_eq!(app(&report).down_bytes, 20_000_000);
    }
}

/// A segment of 10 Mbit/s takes 1.2 ms, and an acknowledgement, of every second one, 3.2 ms of the uplink.
#[test]
fn filtered_acknowledgements_do_not_wait() {
    let of = |filter: &str| {
        let link = format!(
            "down.rate = \"10mbit\"\ndelay = \"10ms\"\nqueue = \"1000 packets\"\n\
             up.scheduler = {{ type = \"cake\", bandwidth = \"100kbit\", overhead = 0, ack-filter = \"{filter}\" }}"
        );
        let report = run(&link, "file = { size = \"5 MB\", transactions = 1 }");
        assert_eq!(app(&report).down_bytes, 5_000_000);
        let up = report.directions.iter().find(|one| one.link == "l.up").expect("it has two");
        let tin = &up.classes[0];
        (throughput(&report) / 1e6, tin.redundant_acks, tin.queueing_mean_ns.expect("it sent some"))
    };
    let [off, on, aggressive] = ["off", "on", "aggressive"].map(of);
    assert!(on.0 > 9.0 && aggressive.0 > 9.0, "{off:?} {on:?} {aggressive:?}");
    assert!(off.1 == 0 && on.1 > 100 && aggressive.1 >= on.1, "{off:?} {on:?} {aggressive:?}");
    assert!(off.2 > 2 * on.2 && on.2 >= aggressive.2, "{off:?} {on:?} {aggressive:?}");
}

#[test]
fn over_ipv6_and_on_a_shared_medium_it_is_the_same_with_their_headers() {
    let link = "rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = \"1000 packets\"";
    let traffic = "source = \"fd6e:6172:726f::1\"\ndestination = \"fd6e:6172:726f::2\"\n\
                   file = { size = \"20 MB\", transactions = 1 }";
    let share = throughput(&run(link, traffic)) / (10e6 * 1440.0 / 1500.0);
    assert!((0.97..1.0).contains(&share), "{share}");
    // For two full segments there is an acknowledgement of 40 bytes on the same wire.
    let shared = format!("{link}\nshared = true");
    let report = run(&shared, "file = { size = \"20 MB\", transactions = 1 }");
    let share = throughput(&report) / (10e6 * 2920.0 / 3040.0);
    assert!((0.97..1.0).contains(&share), "{share}");
}

#[test]
fn the_window_bounds_what_a_long_path_carries() {
    // 64 KiB a round trip of 200 ms: 2.62 Mbit/s, of any rate.
    let report = run(
        "delay = \"100ms\"",
        "file = { size = \"10 MB\", transactions = 1, tcp = { buffer = \"64 KiB\" } }",
    );
    let share = throughput(&report) / (65_536.0 * 8.0 / 0.2);
    assert!((0.9..1.0).contains(&share), "{share}");
}

/// Mathis, Semke, Mahdavi, Ott: "The macroscopic behavior of the TCP congestion avoidance algorithm" (1997), equation 3,
/// with C = √(3/4): a window that grows with each acknowledgement, and two segments for each of these.
fn macroscopic(segment: f64, round_trip: f64, loss: f64) -> f64 {
    segment * 8.0 / round_trip * (0.75 / loss).sqrt()
}

/// The throughput of a file over a link with losses, to that of the law.
fn to_the_law(loss: &str, percent: f64, megabytes: u32) -> f64 {
    let link = format!("delay = \"50ms\"\ndown.loss = {loss}");
    let traffic = format!(
        "file = {{ size = \"{megabytes} MB\", transactions = 1, \
         tcp = {{ congestion = \"reno\", buffer = \"512 KiB\" }} }}"
    );
    let ratio = throughput(&run(&link, &traffic)) / macroscopic(1460.0, 0.1, percent / 100.0);
    println!("{loss}: {ratio:.3}");
    ratio
}

#[test]
fn throughput_falls_with_the_root_of_the_loss() {
    // The law is of losses at even intervals.
    let folder = common::folder("tcp-even-losses");
    for (every, megabytes) in [(1000, 40), (333, 20), (100, 8)] {
        let file = folder.join(format!("{every}.pattern"));
        std::fs::write(&file, format!("pattern loss\nper packet\nlength {every}\n{every}\n")).unwrap();
        let ratio = to_the_law(
            &format!("{{ pattern = {{ file = {file:?} }} }}"),
            100.0 / f64::from(every),
            megabytes,
        );
        assert!((0.9..1.1).contains(&ratio), "one of {every}: {ratio}");
    }
    // Dozens of random losses, but for the least loss, which has four: the window before the first one counts for more.
    for (percent, megabytes) in [(0.01, 60), (0.03, 60), (0.1, 30), (0.3, 20)] {
        let ratio = to_the_law(&format!("\"{percent}%\""), percent, megabytes);
        assert!((0.8..1.6).contains(&ratio), "{percent} %: {ratio}");
    }
}

/// Links on which everything goes wrong at times.
const BAD: &str = "rate = \"2mbit\"\ndelay = { uniform = { low = \"5ms\", high = \"40ms\" } }\norder = \"allow\"\n\
                   loss = \"5%\"\nduplicate = \"3%\"\ncorrupt = \"2%\"\nreorder = \"5%\"\nqueue = \"8 packets\"";

const APPLICATIONS: &[&str] = &[
    "web = { load = \"1.5mbit\", response = { exponential = \"10 kB\" }, transactions = 60 }",
    "web = { users = 4, response = \"3 kB\", requests = 4, pause = \"30ms\", service = \"3ms\", transactions = 40 }",
    "file = { users = 3, size = { exponential = \"100 kB\" }, transactions = 9 }",
    "file = { users = 3, size = \"60 kB\", put = true, transactions = 9, tcp = { nagle = false, delayed-ack = \"none\" } }",
    "stop = \"7s\"\nfile = { users = 2, size = \"endless\" }",
    "stop = \"7s\"\nfile = { users = 2, put = true }",
    "voip = { users = 4, duration = \"3s\", transactions = 12 }",
    "protocol = \"tcp\"\nvoip = { users = 4, duration = \"3s\", talk = \"300ms\", silence = \"200ms\", transactions = 12 }",
    "dns = { pace = \"40/s\", timeout = \"700ms\", tries = 3, service = { exponential = \"3ms\" }, transactions = 200 }",
    "telnet = { pace = \"5/s\", exchanges = 6, transactions = 30, patience = \"10s\" }",
];

#[test]
fn every_transaction_ends_whatever_the_network_does() {
    for traffic in APPLICATIONS {
        let report = run(BAD, traffic);
        let app = app(&report);
        let ended = app.succeeded + app.failed_reset + app.failed_timeout;
        assert!(app.begun > 1 && app.begun == ended && app.abandoned == 0, "{traffic}: {app:?}");
        assert!(app.succeeded * 2 > app.begun, "{traffic}: {app:?}");
        // No packet stays inside, and the last one leaves within the quarter of an hour that a dead connection takes.
        assert!(report.conservation.inside_packets == 0 && report.end_ns < 1_000_000_000_000, "{traffic}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let folder = common::folder("tcp-seeds");
    for (number, traffic) in APPLICATIONS.iter().enumerate() {
        let scenario = scenario(BAD, traffic);
        let outputs = |name: &str, seed| {
            let path = |kind: &str| folder.join(format!("{number}-{name}.{kind}"));
            let options = SimOptions {
                seed: Some(narrows_core::Seed(seed)),
                packets: Some(Destination::File(path("csv"))),
                capture: Some(Destination::File(path("pcapng"))),
                json: Some(Destination::File(path("json"))),
                ..SimOptions::default()
            };
            simulate(&scenario, &options).unwrap();
            ["csv", "pcapng", "json"].map(|kind| std::fs::read(path(kind)).unwrap())
        };
        let first = outputs("first", 1);
        assert!(first == outputs("again", 1), "{traffic}");
        assert!(first[0] != outputs("other", 2)[0], "{traffic}");
    }
}

#[test]
fn a_server_that_is_out_of_reach_is_given_up() {
    for traffic in [
        "web = { pace = \"10/s\", response = \"1 kB\", transactions = 20, patience = \"5s\" }",
        "dns = { pace = \"10/s\", transactions = 20 }",
        "voip = { pace = \"10/s\", duration = \"1s\", transactions = 20 }",
        "file = { users = 20, size = \"1 kB\", transactions = 20, patience = \"5s\" }",
    ] {
        let report = run("up.loss = \"100%\"", traffic);
        let app = app(&report);
        assert_eq!((app.begun, app.succeeded, app.failed_timeout), (20, 0, 20), "{traffic}");
        assert_eq!((app.up_bytes, app.down_bytes), (0, 0), "{traffic}");
    }
    // Without patience the host gives up after a quarter of an hour.
    let report = run("up.loss = \"100%\"", "file = { size = \"1 kB\", transactions = 1 }");
    assert_eq!(app(&report).failed_timeout, 1);
    assert!((900..1000).contains(&(report.end_ns / 1_000_000_000)), "{}", report.end_ns);
}

#[test]
fn what_is_offered_is_what_was_asked_for() {
    let traffic = "stop = \"100s\"\nweb = { load = \"1mbit\", request = \"500 bytes\", \
                   response = { exponential = \"2 kB\" } }";
    let report = run("delay = \"1ms\"", traffic);
    let app = app(&report);
    // 50 a second; 5000 in all have a standard error of 71, and the load one of 1.8 %.
    assert!(app.begun.abs_diff(5000) < 285, "{}", app.begun);
    assert_eq!(app.succeeded, app.begun);
    let load = (app.up_bytes + app.down_bytes) as f64 * 8.0 / 100.0;
    assert!((load / 1e6 - 1.0).abs() < 0.075, "{load}");
    assert_eq!(app.up_bytes, 500 * app.begun);
}

#[test]
fn a_transaction_takes_its_round_trips() {
    // Opening, request and response: two round trips of 100 ms.
    let report = run("delay = \"50ms\"", "web = { users = 1, response = \"1 kB\", transactions = 10 }");
    let time = app(&report).time.unwrap();
    assert_eq!((time.min_ns, time.max_ns, time.packets), (200_000_000, 200_000_000, 10));
    let report = run("delay = \"50ms\"", "dns = { users = 1, service = \"7ms\", transactions = 10 }");
    let time = app(&report).time.unwrap();
    assert_eq!((time.min_ns, time.max_ns), (107_000_000, 107_000_000));
    // Ten exchanges, nine pauses, and the opening.
    let report = run("delay = \"50ms\"", "telnet = { users = 1, transactions = 3 }");
    let time = app(&report).time.unwrap();
    assert_eq!((time.min_ns, time.max_ns), (2_900_000_000, 2_900_000_000));
    // A call of 2 s in messages of 20 ms, each way.
    for protocol in ["udp", "tcp"] {
        let traffic =
            format!("protocol = \"{protocol}\"\nvoip = {{ users = 1, duration = \"2s\", transactions = 3 }}");
        let report = run("delay = \"50ms\"", &traffic);
        let (app, messages) = (app(&report), app(&report).messages.unwrap());
        assert_eq!((messages.sent, messages.arrived, app.succeeded), (600, 600, 3), "{protocol}");
        assert_eq!((messages.delay.min_ns, messages.delay.max_ns), (50_000_000, 50_000_000), "{protocol}");
        let trips = if protocol == "udp" { 1 } else { 2 };
        assert_eq!(app.time.unwrap().mean_ns, trips * 100_000_000, "{protocol}");
        assert_eq!(
            (app.up_bytes, app.down_bytes),
            (3 * (100 * 172 + 100), 3 * (100 * 172 + 100)),
            "{protocol}"
        );
    }
}

#[test]
fn a_transaction_is_the_same_whatever_the_network_is_like() {
    let traffic =
        "web = { users = 2, response = { pareto = { mean = \"10 kB\", shape = 1.5 } }, transactions = 50 }";
    let (clean, slow) =
        (run("delay = \"1ms\"", traffic), run("delay = \"20ms\"\nrate = \"2mbit\"\nloss = \"1%\"", traffic));
    assert_eq!(app(&clean).succeeded, 50);
    assert_eq!((app(&clean).down_bytes, app(&slow).succeeded), (app(&slow).down_bytes, 50));
}

#[test]
fn no_more_are_open_than_may_be() {
    let traffic = "web = { pace = \"100/s\", arrivals = \"constant\", response = \"1 kB\", parallel = 5, transactions = 100 }";
    // Each takes 200 ms, in which 20 come: 5 find room, and the next ones when these have ended.
    let report = run("delay = \"50ms\"", traffic);
    let app = app(&report);
    assert_eq!((app.begun, app.refused, app.succeeded), (25, 75, 25));
}

/// The ones' complement sum of bytes (RFC 1071): 0xffff where a checksum among them is right.
fn sum(bytes: &[u8], pseudo_header: u32) -> u32 {
    let word = |word: &[u8]| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
    let mut sum = pseudo_header + bytes.chunks(2).map(word).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// Segments are what they would be on a wire, of both families.
#[test]
fn segments_have_headers_that_are_right() {
    let folder = common::folder("tcp-segments");
    for (family, addresses) in
        [("4", ""), ("6", "source = \"fd6e:6172:726f::1\"\ndestination = \"fd6e:6172:726f::2\"\n")]
    {
        let file = folder.join(format!("{family}.pcapng"));
        let traffic = format!(
            "{addresses}dscp = \"af31\"\nsource-port = 5000\nweb = {{ users = 1, response = \"9 kB\", transactions = 3 }}"
        );
        let options = SimOptions { capture: Some(Destination::File(file.clone())), ..SimOptions::default() };
        simulate(&scenario("delay = \"5ms\"\nrate = \"5mbit\"", &traffic), &options)
            .expect("it can be written");
        let mut reader = CaptureReader::open(&file).expect("it was written");
        let (mut opened, mut closed, mut data) = (0, 0, 0);
        while let Some(packet) = reader.read().expect("it is a capture") {
            let parsed = parse(LinkLayer::Ethernet, packet.bytes);
            let (key, ip) = (parsed.key, &packet.bytes[14..]);
            assert_eq!((key.transport, key.dscp(), key.ecn()), (6, 26, 0));
            let (header, addresses) = if family == "4" { (20, &ip[12..20]) } else { (40, &ip[8..40]) };
            if family == "4" {
                assert_eq!(key.network, Protocol::Ipv4DontFragment);
                assert_eq!(sum(&ip[..20], 0), 0xffff);
            }
            let tcp = &ip[header..];
            assert_eq!(sum(tcp, sum(addresses, 6 + tcp.len() as u32)), 0xffff);
            let (from_client, ports) = (key.destination_port == 80, [key.source_port, key.destination_port]);
            assert_eq!(ports.into_iter().filter(|port| (5000..5003).contains(port)).count(), 1);
            opened += u32::from(key.tcp_flags & 2 != 0);
            closed += u32::from(key.tcp_flags & 1 != 0);
            data += if from_client { 0 } else { u32::from(parsed.headers.tcp_data_length) };
        }
        // A SYN and a FIN of each end, of three connections.
        assert_eq!((opened, closed, data), (6, 6, 27_000), "{family}");
    }
}
