//! What is reported of rules, pipes, queues and routers, where it can be worked out by hand.
#![expect(
    clippy::unwrap_used,
    reason = "tests may unwrap, and the lint does not see that helpers here are tests"
)]

use std::net::Ipv4Addr;

use narrows_core::{Engine, FlowKey, Headers, Packet, Protocol, Time};
use narrows_report::{Count, Kind, Meter, Report, RunInfo};
use narrows_scenario::Scenario;

/// A scenario between a client and a server, its engine, and who watches it.
struct Bed {
    scenario: Scenario,
    engine: Engine<()>,
    meter: Meter,
    info: RunInfo,
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

fn millis(at: u64) -> Time {
    Time::from_nanos(at * 1_000_000)
}

/// From 10.0.0.`last` to 10.0.1.1, port 80.
fn key(transport: u8, last: u8) -> FlowKey {
    let bytes = |address: [u8; 4]| Ipv4Addr::from(address).to_ipv6_mapped().octets();
    FlowKey {
        source: bytes([10, 0, 0, last]),
        destination: bytes([10, 0, 1, 1]),
        source_port: 1000,
        destination_port: 80,
        network: Protocol::Ipv4,
        transport,
        ..FlowKey::default()
    }
}

impl Bed {
    /// The link `net` has these lines.
    fn new(lines: &str) -> Self {
        Self::of(&format!(
            "[hosts.client]\n[hosts.server]\n[links.net]\nbetween = [\"client\", \"server\"]\n{lines}\n"
        ))
    }

    fn of(text: &str) -> Self {
        let scenario = Scenario::parse(text, "net.toml").unwrap_or_else(|error| panic!("{error}"));
        let engine: Engine<()> = Engine::new(scenario.network()).unwrap();
        let (meter, info) = (Meter::new(engine.ports().len()), RunInfo::of(&scenario, Kind::Virtual));
        Self { scenario, engine, meter, info }
    }

    /// Does what commands of ipfw ask for.
    fn command(&mut self, ms: u64, text: &str) {
        for (command, _) in self.scenario.ipfw_commands(None, "ipfw", text).unwrap().commands {
            for change in self.scenario.ipfw_at(millis(ms), None, &command).unwrap() {
                change.make(&mut self.engine, millis(ms)).unwrap();
            }
        }
    }

    /// So many packets of 1000 bytes at once.
    fn send(&mut self, at: Time, port: &str, key: FlowKey, number: u32) {
        let port = self.engine.port(port).unwrap();
        for _ in 0..number {
            let headers = Headers::plain(&key, 0);
            let packet = Packet { length: 1000, link_header: 14, network_header: 20, headers, key, body: () };
            self.engine.hand_in(at, port, packet);
        }
    }

    /// The report at this instant, in which everything adds up.
    fn report(&mut self, at: Time) -> Report {
        while let Some(event) = self.engine.poll(at) {
            self.meter.verdict(&event);
        }
        self.info.span = (Time::ZERO, at);
        self.info.update(&self.scenario);
        let report = Report::new(&self.info, &self.engine, &self.meter);
        assert_eq!(report.conservation.violations, [""; 0]);
        report
    }
}

fn packets(number: u64) -> Count {
    Count { packets: number, bytes: number * 1000 }
}

#[test]
fn each_rule_and_what_became_of_packets() {
    let mut bed = Bed::new(
        "rules = [\"100 pipe 1 out\", \"200 deny icmp from any to any\", \"300 pipe tablearg tcp from any to table(1)\",
                  \"400 set 3 count udp from any to any\", \"500 allow udp from any to any\"]
         disabled-sets = [3]
         tables = { 1 = [\"10.0.1.1 7\"] }
         [links.net.pipes.1]
         rate = \"1mbit\"
         delay = \"50ms\"",
    );
    bed.send(Time::ZERO, "client.net", key(UDP, 2), 10);
    for (transport, number) in [(ICMP, 5), (TCP, 3), (UDP, 4)] {
        bed.send(millis(1), "server.net", key(transport, 2), number);
    }
    // 8 ms on the wire, and 50 ms further.
    let report = bed.report(millis(60));
    assert_eq!((report.rules[0].piped, report.rules[0].returned), (packets(10), packets(1)));

    let report = bed.report(millis(1000));
    let [rules] = &report.rules[..] else { panic!("{:?}", report.rules) };
    assert_eq!(rules.name, "net");
    assert_eq!((rules.from.as_deref(), rules.to.as_deref()), (Some("client"), Some("server")));
    assert_eq!((rules.arrived_out, rules.arrived_in), (packets(10), packets(12)));
    assert_eq!((rules.piped, rules.returned, rules.passed), (packets(10), packets(10), packets(14)));
    assert_eq!((rules.denied, rules.no_pipe, rules.looped), (packets(5), packets(3), packets(0)));
    let counted: Vec<_> = rules.rules.iter().map(|rule| (rule.number, rule.packets, rule.enabled)).collect();
    let expected =
        [(100, 10, true), (200, 5, true), (300, 3, true), (400, 0, false), (500, 4, true), (65_535, 0, true)];
    assert_eq!(counted, expected);
    assert_eq!((rules.rules[1].bytes, rules.rules[1].last_ns), (5000, Some(1_000_000)));
    let pipe = &report.directions[0];
    assert_eq!((pipe.link.as_str(), pipe.lane, pipe.rules.as_deref()), ("net.1", 0, Some("net")));
    assert_eq!((pipe.offered.packets, pipe.wire_bps), (10, Some(1_000_000)));

    let text = report.text().to_string();
    println!("{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    assert_eq!(text, include_str!("rules.txt"));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["rules"][0]["denied"]["packets"], 5);
    assert_eq!(json["rules"][0]["rules"][0]["rule"], "100 pipe 1 ip from any to any out");
}

#[test]
fn of_many_rules_those_are_shown_that_matched_most() {
    let rules: Vec<String> = (1..=10_000)
        .map(|number| format!("\"{number} count ip from 10.0.{}.{} to any\"", number >> 8, number & 0xff))
        .collect();
    let mut bed = Bed::new(&format!("rules = [{}]", rules.join(", ")));
    // Rules 1 to 20 match 1 to 20 packets.
    for last in 1..=20 {
        bed.send(Time::ZERO, "client.net", key(UDP, last), last.into());
    }
    let report = bed.report(millis(1));
    assert_eq!(report.rules[0].rules.len(), 10_001);
    let text = report.text().to_string();
    println!("{text}");
    assert!(text.lines().count() < 40, "{text}");
    // All 210 meet the last rule; eleven more lines are for 10 to 20.
    let expected = "              20    20.00 kB   20 count ip from 10.0.0.20 to any
             210    210.0 kB   65535 allow ip from any to any
                               9,989 more rules: 9,980 of them matched no packet
";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("   10 count ip from 10.0.0.10") && !text.contains("   9 count ip"), "{text}");
}

#[test]
fn dynamic_rules_and_what_limits_refused() {
    let mut bed = Bed::new("rules = [\"100 allow udp from any to any out limit src-addr 2\"]");
    for port in 1..=5 {
        bed.send(millis(port.into()), "client.net", FlowKey { source_port: port, ..key(UDP, 2) }, 3);
    }
    let report = bed.report(millis(10));
    let rules = &report.rules[0];
    // Two flows of three packets; the nine of the others are denied.
    assert_eq!((rules.passed, rules.denied), (packets(6), packets(9)));
    assert_eq!(rules.bounds.limit_packets, 9);
    let flows: Vec<_> = rules.dynamic_rules.iter().filter(|rule| rule.kind == "limited").collect();
    assert_eq!(flows.len(), 2);
    assert_eq!((flows[0].source_port, flows[0].packets, flows[0].rule), (1, 2, 100));
    assert_eq!(flows[0].source.to_string(), "10.0.0.2");
    // Ten seconds from the last packet, of which nine milliseconds have gone.
    assert_eq!(flows[0].remaining_ns, 10_000_000_000 - 9_000_000);
    let text = report.text().to_string();
    assert!(text.contains("  dynamic rules: alive 2, packets denied by a limit 9\n"), "{text}");
    // They have ended.
    let report = bed.report(millis(60_000));
    assert_eq!(report.rules[0].dynamic_rules, []);
}

#[test]
fn links_made_on_first_use() {
    let mut bed = Bed::new(
        "rules = [\"100 pipe 1 ip from any to any out\"]
         [links.net.pipes.1]
         rate = \"1mbit\"
         mask = { src-ip = \"0xff\" }
         most = 3
         idle = \"1s\"",
    );
    // 8 ms each; of four flows the last one shares the configured link. The wires of all work at once.
    for last in 1..=4 {
        bed.send(Time::ZERO, "client.net", key(UDP, last), last.into());
    }
    let report = bed.report(millis(4));
    let [out, back] = &report.directions[..] else { panic!("two lanes") };
    assert_eq!((out.offered.packets, out.inside_packets, back.offered.packets), (10, 10, 0));
    assert!(out.per_flow && back.per_flow && back.flows.is_none());
    let flows = out.flows.as_ref().unwrap();
    assert_eq!((flows.created, flows.expired, flows.overflowed_packets), (3, 0, 4));
    let there: Vec<_> = flows
        .active
        .iter()
        .map(|flow| (flow.flow.as_deref().unwrap(), flow.arrived_packets, flow.backlog_packets))
        .collect();
    assert_eq!(there, [("src-ip 0.0.0.1", 1, 0), ("src-ip 0.0.0.2", 2, 1), ("src-ip 0.0.0.3", 3, 2)]);
    let text = report.text().to_string();
    println!("{text}");
    let expected = "  links for flows: 3 created, 0 expired, 4 packets shared the overflow one
    src-ip 0.0.0.3             3 packets    3.000 kB  backlog 2
    src-ip 0.0.0.2             2 packets    2.000 kB  backlog 1
    src-ip 0.0.0.1              1 packet    1.000 kB
";
    assert!(text.contains(expected), "{text}");

    // Much later all have been idle, and one comes back.
    bed.send(millis(5000), "client.net", key(UDP, 2), 1);
    let report = bed.report(millis(6000));
    let out = &report.directions[0];
    let flows = out.flows.as_ref().unwrap();
    assert_eq!((flows.created, flows.expired, flows.active.len()), (4, 3, 1));
    assert_eq!((out.offered.packets, out.delivered.packets, out.utilisation_share), (11, 11, None));
    let text = report.text().to_string();
    assert!(text.contains(" of 1.000 Mbit/s each; counted: IP packets\n"), "{text}");
    assert!(
        text.contains("               a link for each flow (the last 8 bits of the IPv4 source"),
        "{text}"
    );
}

#[test]
fn queues_of_a_pipe_and_their_flows() {
    let mut bed = Bed::new(
        "rules = [\"100 queue 1 udp from any to any out\", \"200 queue 2 tcp from any to any out\"]
         [links.net.pipes.5]
         rate = \"1mbit\"
         [links.net.queues.1]
         pipe = 5
         weight = 10
         queue = \"2 packets\"
         [links.net.queues.2]
         pipe = 5
         mask = { src-ip = \"0xffffffff\" }",
    );
    // One goes on the wire, two wait, two are too many; of the other queue two flows wait.
    bed.send(Time::ZERO, "client.net", key(UDP, 1), 5);
    bed.send(Time::ZERO, "client.net", key(TCP, 1), 3);
    bed.send(Time::ZERO, "client.net", key(TCP, 2), 1);
    let report = bed.report(millis(1));
    let pipe = &report.directions[0];
    assert!(pipe.asked.starts_with("1mbit, wf2q+ of queues 1, 2"), "{}", pipe.asked);
    let queues: Vec<_> = pipe
        .classes
        .iter()
        .map(|class| (class.name.as_str(), class.queue, class.weight, class.arrived_packets))
        .collect();
    let expected = [
        ("the pipe itself", Some(0), None, 0),
        ("queue 1", Some(1), Some(10), 5),
        ("queue 2", Some(2), Some(1), 4),
    ];
    assert_eq!(queues, expected);
    let [_, one, two] = &pipe.classes[..] else { panic!("three") };
    assert_eq!((one.sent_packets, one.backlog_packets, one.dropped_packets), (1, 2, 2));
    assert_eq!(one.flows, None);
    let flows = two.flows.as_ref().unwrap();
    assert_eq!((flows.created, flows.expired), (2, 0));
    let there: Vec<_> =
        flows.active.iter().map(|flow| (flow.flow.as_deref().unwrap(), flow.backlog_packets)).collect();
    assert_eq!(there, [("src-ip 10.0.0.1", 3), ("src-ip 10.0.0.2", 1)]);
    let text = report.text().to_string();
    println!("{text}");
    assert!(!text.contains("the pipe itself"), "{text}");
    assert!(text.contains("  queues for flows of queue 2: 2 created, 0 expired\n"), "{text}");
}

/// A second pipe and a rule to it, while the run goes on.
#[test]
fn pipes_that_come_later_are_reported_behind_those_of_their_rules() {
    let mut bed = Bed::of(
        "[hosts.client]\n[hosts.server]\n[junctions.hub]
         [links.net]\nbetween = [\"client\", \"hub\"]\nrules = [\"100 pipe 1 out\"]\npipes.1 = { rate = \"1mbit\" }
         [links.wire]\nbetween = [\"hub\", \"server\"]",
    );
    bed.command(1, "pipe 2 config bw 2Mbit/s\nadd 200 pipe 2 ip from any to any in");
    bed.send(millis(2), "client.net", key(UDP, 1), 1);
    bed.send(millis(2), "server.wire", key(UDP, 1), 3);
    let report = bed.report(millis(100));
    let directions: Vec<_> =
        report.directions.iter().map(|d| (d.link.as_str(), d.lane, d.offered.packets)).collect();
    let expected = [
        ("net.1", 0, 1),
        ("net.1", 1, 0),
        ("net.2", 0, 0),
        ("net.2", 1, 3),
        ("wire.up", 0, 1),
        ("wire.down", 0, 3),
    ];
    assert_eq!(directions, expected);
    let later = &report.directions[3];
    assert_eq!((later.asked_rate_bps, later.wire_bps), (Some(2_000_000), Some(2_000_000)));
    assert_eq!(report.rules[0].rules[1].packets, 3);
    // What rules lead to that were deleted stays: packets were there.
    bed.command(100, "pipe 2 delete");
    bed.send(millis(101), "server.wire", key(UDP, 1), 2);
    let report = bed.report(millis(200));
    assert_eq!((report.directions[3].offered.packets, report.rules[0].no_pipe), (3, packets(2)));
}

#[test]
fn routers_count_what_came_and_round_trips_are_over_all_of_them() {
    let mut bed = Bed::of(
        "[hosts.client]\n[hosts.server]\n[routers.r1]\n[routers.r2]
         [links.access]\nbetween = [\"client\", \"r1\"]\ndelay = \"1ms\"
         [links.middle]\nbetween = [\"r1\", \"r2\"]\ndelay = \"10ms\"
         [links.lan]\nbetween = [\"r2\", \"server\"]\ndelay = \"100ms\"",
    );
    let address = |name: &str| {
        let port = bed.scenario.ports().iter().find(|port| port.name == name).unwrap();
        let four = port.addresses.iter().find(|address| address.ip.is_ipv4()).unwrap().ip;
        match four {
            std::net::IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
            std::net::IpAddr::V6(_) => unreachable!("it was looked for"),
        }
    };
    let there = FlowKey { destination: address("server.lan"), ..key(UDP, 1) };
    bed.send(Time::ZERO, "client.access", there, 3);
    bed.send(Time::ZERO, "client.access", FlowKey { destination: [9; 16], ..there }, 2);
    // From the second router itself.
    bed.send(Time::ZERO, "r2", there, 1);
    let report = bed.report(millis(500));
    assert_eq!(report.round_trips[0].round_trip_ns, 222_000_000);
    let counted: Vec<_> = report
        .routers
        .iter()
        .map(|r| (r.name.as_str(), r.arrived_packets, r.forwarded_packets, r.no_route_packets))
        .collect();
    assert_eq!(counted, [("r1", 5, 3, 2), ("r2", 4, 4, 0)]);
}
