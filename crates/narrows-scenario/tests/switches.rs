//! Switches: what they join, what they know, what is wrong with them.

use std::net::IpAddr;

use narrows_core::{Engine, Packet, Seed, Target, Time, Verdict};
use narrows_scenario::{Port, Scenario};

fn read(text: &str) -> Scenario {
    match Scenario::parse(text, "net.toml") {
        Ok(scenario) => scenario,
        Err(error) => panic!("{error}"),
    }
}

fn port<'a>(scenario: &'a Scenario, host: &str) -> &'a Port {
    scenario.ports().iter().find(|port| port.host == host).expect("it has a port")
}

/// A packet of the scenario's own traffic from one host to another: where it and its copies are delivered.
fn sent(scenario: &Scenario, engine: &mut Engine<()>, from: &str, to: IpAddr) -> Vec<String> {
    let from = port(scenario, from);
    let [destination, source] = scenario.link_addresses(from, to).expect("it is on a switch");
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let key = narrows_core::FlowKey {
        source: octets(from.addresses[0].ip),
        destination: octets(to),
        network: narrows_core::Protocol::Ipv4,
        transport: 17,
        ..Default::default()
    };
    let mut headers = narrows_core::Headers::plain(&key, 100);
    (headers.link_destination, headers.link_source) = (destination, source);
    let packet = Packet { length: 100, link_header: 14, network_header: 20, key, headers, body: () };
    let id = engine.port(&from.name).expect("it is there");
    engine.hand_in(engine.now(), id, packet);
    let mut got = Vec::new();
    while let Some(next) = engine.next_event() {
        while let Some(event) = engine.poll(next) {
            if let Verdict::Delivered(to) = event.verdict {
                got.push(to);
            }
        }
    }
    let mut names: Vec<String> = got.into_iter().map(|to| engine.port_name(to).to_owned()).collect();
    names.sort();
    names
}

fn engine(scenario: &Scenario) -> Engine<()> {
    let engine = Engine::new(scenario.network()).expect("the network is whole");
    assert_eq!(engine.now(), Time::ZERO);
    engine
}

fn address(scenario: &Scenario, host: &str) -> IpAddr {
    port(scenario, host).addresses[0].ip
}

const LAN: &str = r#"
    [hosts.a]
    [hosts.b]
    [hosts.c]
    [switches.lan]
    hosts = ["a", "b"]
    link = { rate = "1gbit", delay = "1ms" }
    [links.slow]
    between = ["c", "lan"]
    rate = "10mbit"
    delay = "10ms"
"#;

#[test]
fn hosts_on_a_switch_are_in_one_network_and_reach_each_other() {
    let scenario = read(LAN);
    let networks: Vec<String> = scenario.ports().iter().map(|port| port.addresses[0].to_string()).collect();
    assert_eq!(networks, ["10.213.0.1/24", "10.213.0.2/24", "10.213.0.3/24"]);
    let a = port(&scenario, "a");
    assert_eq!(a.peer, "lan.lan-a");
    let names: Vec<_> = scenario.neighbours(a).into_iter().map(|other| (other.name, other.end)).collect();
    assert_eq!(names, [("b".to_owned(), "b.lan-b".to_owned()), ("c".to_owned(), "c.slow".to_owned())]);
    let delay = scenario.mean_delay(a, port(&scenario, "c")).expect("it is known");
    assert_eq!(delay.nanos(), 11_000_000);
    let way = scenario.only_way(port(&scenario, "c"), a).expect("there is one");
    assert_eq!(way, ["slow.up", "lan-a.down"]);

    let mut engine = engine(&scenario);
    assert_eq!(sent(&scenario, &mut engine, "a", address(&scenario, "c")), ["c.slow"]);
    let broadcast = "255.255.255.255".parse().unwrap();
    assert_eq!(sent(&scenario, &mut engine, "a", broadcast), ["b.lan-b", "c.slow"]);
    let group = "224.0.0.251".parse().unwrap();
    assert_eq!(sent(&scenario, &mut engine, "c", group), ["a.lan-a", "b.lan-b"]);
}

#[test]
fn a_switch_that_knows_nothing_floods_until_a_host_has_sent() {
    let scenario = read(&LAN.replace("hosts = [\"a\"", "known-hosts = false\nhosts = [\"a\""));
    let mut engine = engine(&scenario);
    let [a, b] = ["a", "b"].map(|host| address(&scenario, host));
    assert_eq!(sent(&scenario, &mut engine, "a", b), ["b.lan-b", "c.slow"]);
    assert_eq!(sent(&scenario, &mut engine, "b", a), ["a.lan-a"]);
    assert_eq!(sent(&scenario, &mut engine, "a", b), ["b.lan-b"]);
}

#[test]
fn what_is_written_is_read_again() {
    let text = format!(
        "{LAN}[switches.other]\nvlans = {{ lan = [2, 3], c = 9 }}\nageing = \"10s\"\n\
        [links.between]\nbetween = [\"lan\", \"other\"]\n[links.second]\nbetween = [\"c\", \"other\"]\n"
    );
    let text = text.replace("[hosts.c]", "[hosts.c]\naddresses = { slow = [\"10.9.0.1/24\"] }");
    let text = text.replace("[hosts.a]", "[hosts.a]\naddresses = [\"10.9.0.2/24\"]");
    let text = text.replace("[hosts.b]", "[hosts.b]\naddresses = [\"10.9.0.3/24\"]");
    let scenario = read(&text);
    let again = read(&scenario.to_toml());
    assert_eq!(again.switches, scenario.switches);
    // Those of `hosts` were the last, and are links like others.
    let sorted = |scenario: &Scenario| {
        let mut links = scenario.links.clone();
        links.sort_by(|a, b| a.name.cmp(&b.name));
        links
    };
    assert_eq!(sorted(&again), sorted(&scenario));
}

/// Two VLANs over two switches, joined by a router.
const VLANS: &str = r#"
    [hosts.a]
    [hosts.b]
    [hosts.c]
    [hosts.d]
    [routers.r]
    [switches.s1]
    hosts = ["a", "b"]
    vlans = { a = 10, b = 20, r10 = 10, r20 = 20 }
    [switches.s2]
    hosts = ["c", "d"]
    vlans = { c = 10, d = 20 }
    [links.trunk]
    between = ["s1", "s2"]
    delay = "1ms"
    [links.r10]
    between = ["r", "s1"]
    [links.r20]
    between = ["r", "s1"]
"#;

#[test]
fn vlans_are_networks_of_their_own_and_a_router_joins_them() {
    let scenario = read(VLANS);
    let network = |host: &str| port(&scenario, host).addresses[0].network();
    assert_eq!(network("a"), network("c"));
    assert_eq!(network("b"), network("d"));
    assert_ne!(network("a"), network("b"));
    let mut engine = engine(&scenario);
    let broadcast = "255.255.255.255".parse().unwrap();
    assert_eq!(sent(&scenario, &mut engine, "a", broadcast), ["c.s2-c"]);
    assert_eq!(sent(&scenario, &mut engine, "d", broadcast), ["b.s1-b"]);
    assert_eq!(sent(&scenario, &mut engine, "c", address(&scenario, "a")), ["a.s1-a"]);
    // To the router's link address, through it, and back over the same trunk.
    assert_eq!(sent(&scenario, &mut engine, "c", address(&scenario, "d")), ["d.s2-d"]);
    let router = engine.router_counters(engine.router("r").expect("it is there"));
    assert_eq!((router.forwarded.packets, router.filtered.packets), (1, 2), "two broadcasts");
    let ways = scenario.only_way(port(&scenario, "c"), port(&scenario, "d")).expect("there is one");
    assert_eq!(ways, ["s2-c.up", "trunk.down", "r10.down", "r20.up", "trunk.up", "s2-d.down"]);
    let explained = scenario.explain().to_string();
    assert!(
        explained.contains("s1: joins trunk (all VLANs), r10 (VLAN 10), r20 (VLAN 20), s1-a (VLAN 10)"),
        "{explained}"
    );
    assert!(explained.contains("c –s2-c→ s2 –trunk→ s1 –r10→ r –r20→ s1 –trunk→ s2 –s2-d→ d"), "{explained}");
}

#[test]
fn routers_find_each_other_over_a_switch() {
    let scenario = read(
        r#"
        [hosts.a]
        [hosts.b]
        [routers.r1]
        [routers.r2]
        [switches.core]
        [links.a]
        between = ["a", "r1"]
        [links.b]
        between = ["b", "r2"]
        [links.one]
        between = ["r1", "core"]
        delay = "3ms"
        [links.two]
        between = ["r2", "core"]
        delay = "4ms"
        "#,
    );
    let [a, b] = ["a", "b"].map(|host| port(&scenario, host));
    assert_eq!(scenario.only_way(a, b).expect("there is one"), ["a.up", "one.up", "two.down", "b.down"]);
    assert_eq!(scenario.mean_delay(b, a).expect("it is known").nanos(), 7_000_000);
    let config = scenario.network();
    assert_eq!(config.seed, Seed(1));
    let r1 = config.routers.iter().find(|router| router.name == "r1").expect("it is there");
    assert_eq!(r1.link_addresses.len(), 2, "those of both interfaces");
    let into_core = Target::Link { name: "one.up".into(), lane: 0 };
    let routed = r1.routes.iter().filter(|(_, route)| route.ways.iter().any(|(way, _)| *way == into_core));
    let addresses: Vec<_> = routed.map(|(_, route)| route.link_addresses.clone()).collect();
    assert!(
        !addresses.is_empty()
            && addresses.iter().all(|all| *all == [[[6, b'n', b'a', 0, 0, 3], [6, b'n', b'a', 0, 0, 1]]])
    );
}

#[test]
fn many_hosts_have_a_wider_network() {
    let mut text = String::from("[switches.lan]\nlink = { rate = \"1gbit\", delay = \"1us\" }\nhosts = [");
    let hosts: Vec<String> = (0..600).map(|host| format!("h{host}")).collect();
    hosts.iter().for_each(|host| text += &format!("\"{host}\", "));
    text += "]\n";
    hosts.iter().for_each(|host| text += &format!("[hosts.{host}]\n"));
    text += "[links.apart]\nbetween = [\"x\", \"y\"]\n[hosts.x]\n[hosts.y]\n";
    let scenario = read(&text);
    assert_eq!(port(&scenario, "h0").addresses[0].to_string(), "10.213.0.1/22");
    assert_eq!(port(&scenario, "h254").addresses[0].to_string(), "10.213.0.255/22");
    assert_eq!(port(&scenario, "h599").addresses[0].to_string(), "10.213.2.88/22");
    assert_eq!(port(&scenario, "x").addresses[0].to_string(), "10.213.4.1/24");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let ring = "[switches.s]\n[switches.t]\n[hosts.a]\n[hosts.b]\n[links.a]\nbetween = [\"a\", \"s\"]\n\
        [links.b]\nbetween = [\"b\", \"t\"]\n[links.first]\nbetween = [\"s\", \"t\"]\n[links.second]\nbetween = [\"t\", \"s\"]\n";
    let lan = |lines: &str| {
        format!(
            "[hosts.a]\n[hosts.b]\n[routers.r]\n[switches.lan]\n{lines}\n[links.up]\nbetween = [\"r\", \"lan\"]\n"
        )
    };
    let more = |lines: &str, more: &str| lan(lines) + more;
    for (text, title, help) in [
        (ring.to_owned(), "`second` closes a ring of switches", "remove one link"),
        (lan("hosts = [\"a\", \"sever\"]"), "there is no host `sever`", "in `switches.lan.hosts`"),
        (lan("hosts = [\"a\", \"a\"]"), "`a` is named twice", "switches.lan.hosts"),
        (lan("hosts = \"a\""), "found `a`", "a list of hosts"),
        (lan("link = { rate = \"1mbit\" }"), "`link` needs `hosts`", "hosts ="),
        (
            lan("hosts = [\"a\"]\nlink = { between = [\"a\", \"b\"] }"),
            "the links of `hosts` are between",
            "leave",
        ),
        (lan("hosts = [\"a\", \"b\"]\nlink = { rate = \"fast\" }"), "fast", "switches.lan.link.rate"),
        (lan("hosts = [\"a\"]\nlink = { rat = \"1mbit\" }"), "unknown key `rat`", "did you mean `rate`?"),
        (
            lan("hosts = [\"a\"]\nvlans = { b = 10 }"),
            "the switch `lan` has no port `b`",
            "switches.lan.vlans",
        ),
        (lan("hosts = [\"a\"]\nvlans = { a = 4095 }"), "4095", "a VLAN from 1 to 4094"),
        (lan("hosts = [\"a\"]\nvlans = { a = [] }"), "vlans.a", "a list of VLANs"),
        (lan("hosts = [\"a\"]\nvlans = { a = \"trunks\" }"), "trunks", "\"trunk\""),
        (
            lan("hosts = [\"a\"]\nvlans = { up = [10] }"),
            "`up` takes only tagged frames to the router",
            "one link for each",
        ),
        (
            more("hosts = [\"a\"]", "[links.lan-a]\nbetween = [\"b\", \"lan\"]\n"),
            "there is a link `lan-a` already",
            "leave the host out",
        ),
        (
            more("hosts = [\"a\"]\nvlans = { r = 2 }", "[links.again]\nbetween = [\"lan\", \"r\"]\n"),
            "several links join `lan` and `r`",
            "name the link",
        ),
        (lan("hosts = [\"a\"]\nageing = \"0s\""), "ageing", "switches.lan.ageing"),
        (lan("hosts = [\"a\"]\ntable-size = -1"), "table-size", "a number of addresses"),
        (lan("hosts = [\"a\"]\nhost = 1"), "unknown key `host`", "hosts"),
        (
            lan("hosts = [\"a\", \"b\"]")
                .replace("[hosts.a]", "[hosts.a]\naddresses = [\"10.0.0.1/24\"]")
                .replace("[hosts.b]", "[hosts.b]\naddresses = [\"10.0.0.1/24\"]")
                .replace("[routers.r]", "[routers.r]\naddresses = [\"10.0.0.9/24\"]"),
            "`b` and `a` have the address 10.0.0.1",
            "give each its own",
        ),
        (more("hosts = [\"a\"]", "[routers.lan]\n"), "share the name `lan`", ""),
        (more("hosts = [\"a\"]", "[links.lan]\nbetween = [\"a\", \"b\"]\n"), "share the name `lan`", ""),
    ] {
        let error = match Scenario::parse(&text, "net.toml") {
            Ok(_) => panic!("{title}: it was read\n{text}"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(title), "{title}\n{error}");
        assert!(error.contains(help), "{help}\n{error}");
        assert!(error.contains(" --> net.toml:"), "{error}");
    }
}
