//! Several hops: routers that programs can see, and packets that they send on.

use std::fs;

use serde_json::Value;

use crate::common::{Finished, Scratch, direction, finish, narrows, pair, scenarios, sound};
use crate::roles::role;

/// Three routers in a row, with addresses that tests can name. One way: 1, 2, 4 and 8 ms.
const ROW: &str = r#"
seed = 4
[hosts.client]
addresses = ["198.18.1.1/24", "2001:db8:1::1/64"]
[hosts.server]
addresses = ["198.18.4.2/24", "2001:db8:4::2/64"]
[routers.r1]
addresses = { access = ["198.18.1.2/24", "2001:db8:1::2/64"], upper = ["198.18.2.1/24", "2001:db8:2::1/64"] }
[routers.r2]
addresses = { upper = ["198.18.2.2/24", "2001:db8:2::2/64"], lower = ["198.18.3.1/24", "2001:db8:3::1/64"] }
[routers.r3]
addresses = { lower = ["198.18.3.2/24", "2001:db8:3::2/64"], office = ["198.18.4.1/24", "2001:db8:4::1/64"] }
[links.access]
between = ["client", "r1"]
delay = "1ms"
[links.upper]
between = ["r1", "r2"]
delay = "2ms"
[links.lower]
between = ["r2", "r3"]
delay = "4ms"
[links.office]
between = ["r3", "server"]
delay = "8ms"
"#;

/// The addresses with which the routers answer the client: those that face it.
const ROUTERS: [&str; 3] = ["198.18.1.2", "198.18.2.2", "198.18.3.2"];
const ROUTERS6: [&str; 3] = ["2001:db8:1::2", "2001:db8:2::2", "2001:db8:3::2"];

/// Runs a line in the client of a scenario, with a JSON report on the standard output.
fn run_in(scratch: &Scratch, scenario: &str, flags: &[&str], line: &str) -> Finished {
    let file = scratch.write("hops.toml", scenario);
    let mut arguments = vec!["run", file.to_str().unwrap(), "--json", "-"];
    arguments.extend(flags);
    arguments.extend(["--", "sh", "-c", line]);
    finish(&mut narrows(arguments))
}

#[test]
#[ignore = "needs namespaces, ping"]
fn each_router_shows_itself_where_a_packet_has_no_hops_left() {
    let scratch = Scratch::new();
    let line = "for hops in 1 2 3 4; do
        ping -n -c 1 -W 5 -t $hops $NARROWS_SERVER; ping -n -c 1 -W 5 -t $hops $NARROWS_SERVER6; done >&2; true";
    let ended = run_in(&scratch, ROW, &[], line).expect(0);
    let report = ended.json();
    sound(&report);
    for routers in [ROUTERS, ROUTERS6] {
        for router in routers {
            assert!(ended.err.contains(&format!("From {router}")), "{router}: {ended}");
        }
    }
    let exceeded = ended.err.matches("exceeded").count();
    assert_eq!(exceeded, 6, "one for each hop that is no host: {ended}");
    // Both replies have passed three routers of 64 hops.
    assert_eq!(ended.err.matches("ttl=61").count(), 2, "{ended}");
    // Said at the very instant of the drop, and over the same links back.
    for (number, millis) in [(1, 1), (2, 3), (3, 7)] {
        let answers = pair(&report, &format!("r{number}"), "client.access");
        assert_eq!(answers["delivered"]["packets"], 2, "{answers:#}");
        assert_eq!(answers["delay"]["min_ns"], millis * 1_000_000, "{answers:#}");
    }
    assert_eq!(pair(&report, "client.access", "server.office")["delay"]["min_ns"], 15_000_000);
}

#[test]
#[ignore = "needs namespaces, traceroute"]
fn traceroute_finds_the_way() {
    let scratch = Scratch::new();
    let line = "traceroute -n -w 5 $NARROWS_SERVER; traceroute -n -6 -w 5 $NARROWS_SERVER6; \
                traceroute -n -I -w 5 $NARROWS_SERVER";
    let ended = run_in(&scratch, ROW, &["--quiet"], &format!("({line}) >&2")).expect(0);
    sound(&ended.json());
    let way =
        |routers: [&str; 3], server: &str| routers.map(str::to_owned).into_iter().chain([server.to_owned()]);
    let expected =
        way(ROUTERS, "198.18.4.2").chain(way(ROUTERS6, "2001:db8:4::2")).chain(way(ROUTERS, "198.18.4.2"));
    // " 2  198.18.2.2  6.123 ms  6.118 ms  6.114 ms"
    let hops = ended.err.lines().filter(|line| line.starts_with(' '));
    let found = hops.map(|line| line.split_whitespace().nth(1).unwrap_or_default().to_owned());
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{ended}");
    assert!(!ended.err.contains('*'), "every probe is answered: {ended}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn routers_answer_echoes_and_say_what_they_do_not_reach() {
    let scratch = Scratch::new();
    let narrow = ROW.replace("delay = \"4ms\"", "delay = \"4ms\"\nmtu = 1300");
    let line = "exec >&2
        ping -n -c 2 -i 0.1 198.18.3.1 || exit 3
        ping -n -c 2 -i 0.1 2001:db8:4::1 || exit 4
        ping -n -c 1 -W 5 203.0.113.1 && exit 5
        ping -n -c 1 -W 5 2001:db8:ffff::1 && exit 6
        ping -n -c 1 -W 5 -M do -s 1400 $NARROWS_SERVER && exit 7
        ping -n -c 1 -W 5 -M do -s 1400 $NARROWS_SERVER6 && exit 8
        true";
    let ended = run_in(&scratch, &narrow, &[], line).expect(0);
    sound(&ended.json());
    for said in [
        // They have passed one router, and two.
        "64 bytes from 198.18.3.1: icmp_seq=2 ttl=63",
        "64 bytes from 2001:db8:4::1: icmp_seq=2 ttl=62",
        "From 198.18.1.2 icmp_seq=1 Destination Net Unreachable",
        "From 2001:db8:1::2 icmp_seq=1 Destination unreachable: No route",
        // By the router before the link.
        "From 198.18.2.2 icmp_seq=1 Frag needed and DF set (mtu = 1300)",
        "From 2001:db8:2::2 icmp_seq=1 Packet too big: mtu=1300",
    ] {
        // Programs break their lines after this or that.
        let flat = ended.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(said), "{said}: {ended}");
    }
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_loop_ends_by_the_hop_limit_and_shows_itself() {
    let file = crate::common::scenarios().join("loop.toml");
    let line = "ping -n -c 2 -i 0.1 -W 5 -t 7 $NARROWS_SERVER >&2; ping -n -c 1 -W 5 $NARROWS_SERVER >&2";
    let arguments = ["run", file.to_str().unwrap(), "--json", "-", "--", "sh", "-c", line];
    let ended = finish(&mut narrows(arguments)).expect(1);
    let report = ended.json();
    sound(&report);
    assert_eq!(ended.err.matches("Time to live exceeded").count(), 3, "{ended}");
    // 7 hops are r1, r2, r1, …, r1; 64 end at r2.
    for (router, packets) in [("r1", 2), ("r2", 1)] {
        assert_eq!(pair(&report, router, "client.access")["delivered"]["packets"], packets, "{report:#}");
    }
    assert_eq!(direction(&report, "middle.up")["offered"]["packets"], 2 * 3 + 32, "{report:#}");
}

#[test]
#[ignore = "needs namespaces"]
fn nothing_listens_at_a_router() {
    let scratch = Scratch::new();
    let ended = run_in(&scratch, ROW, &[], &role("refused")).expect(0);
    let report = ended.json();
    sound(&report);
    // A reset and an unreachable port for each version of IP.
    assert_eq!(pair(&report, "r2", "client.access")["delivered"]["packets"], 4, "{report:#}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn tcp_crosses_routers_and_a_replay_gives_the_same_verdicts() {
    let scratch = Scratch::new();
    let rates = ROW.replace("delay = \"2ms\"", "delay = \"2ms\"\nrate = \"20mbit\"\nloss = \"1%\"");
    let log = scratch.file("run.log");
    let log = log.to_str().unwrap();
    let server = role("tcp-server");
    // What routers say is an input like any other: drops on their side links are drawn for it, too.
    let line = format!(
        "ping -q -c 20 -i 0.01 -t 2 $NARROWS_SERVER >&2; ping -q -c 20 -i 0.01 198.18.3.2 >&2; {}",
        role("tcp-client")
    );
    for flags in [
        &["--record", log, "--on", "server", &server][..],
        &["--record", log, "--record-whole", "--on", "server", &server],
    ] {
        let ended = run_in(&scratch, &rates, flags, &line).expect(0);
        let report = ended.json();
        sound(&report);
        assert!(direction(&report, "upper.up")["dropped_packets"].as_u64() > Some(0), "{report:#}");
        assert!(
            pair(&report, "r2", "client.access")["delivered"]["packets"].as_u64() > Some(5),
            "{report:#}"
        );
        replays(log, &report);
    }
}

/// The log gives the same verdicts again, to the nanosecond, and the same report of pairs.
#[track_caller]
fn replays(log: &str, report: &Value) {
    let again = finish(&mut narrows(["sim", "--json", "-", "--replay", log])).expect(0).json();
    assert_eq!(report["pairs"], again["pairs"]);
    assert_eq!(report["conservation"]["in_packets"], again["conservation"]["in_packets"]);
    assert_eq!(again["conservation"]["violations"], Value::Array(Vec::new()));
}

/// Connections to port 80 go the long way by `fwd`; pings, and all replies, go the short one.
#[test]
#[ignore = "needs namespaces, ping, curl"]
fn a_next_hop_of_rules_holds_live_and_in_the_replay() {
    let scratch = Scratch::new();
    let (log, scenario) = (scratch.file("run.log"), scenarios().join("policy-routing.toml"));
    let (log, scenario) = (log.to_str().unwrap(), scenario.to_str().unwrap());
    let line = "ping -4 -q -c 5 -i 0.05 server >&2; curl -4 -s --max-time 20 http://server:80/";
    let mut command = narrows(["run", scenario, "--record", log, "--json", "-", "--", "sh", "-c", line]);
    // Nobody listens there: curl is refused.
    let ended = finish(&mut command).expect(7);
    assert!(ended.err.contains(" 0% packet loss"), "{ended}");
    let report = ended.json();
    sound(&report);
    let of = |link: &str| direction(&report, link)["delivered"]["packets"].as_u64().unwrap();
    // Only the SYN, which is sent again if its answer is late.
    assert!(of("north.up") >= 1 && of("south.up") == of("north.up") && of("north.down") == 0, "{report:#}");
    assert!(of("short.up") >= 5 && of("short.down") >= 6, "{report:#}");
    replays(log, &report);
}

/// Addresses that a run picks because others are in use are those of its replay: routes go by them.
#[test]
#[ignore = "needs namespaces, ping"]
fn a_run_inside_a_run_has_addresses_of_its_own_and_replays() {
    let scratch = Scratch::new();
    let automatic: String =
        ROW.lines().filter(|line| !line.starts_with("addresses")).map(|line| format!("{line}\n")).collect();
    let file = scratch.write("hops.toml", &automatic);
    let log = scratch.file("inner.log");
    let narrows_itself = crate::common::quoted(crate::common::NARROWS);
    let line = format!(
        "{narrows_itself} run {} --quiet --record {} -- sh -c 'test $NARROWS_SERVER != $NARROWS_OUTER_SERVER && \
         ping -c 3 -i 0.05 $NARROWS_SERVER >&2 && ping -c 1 -t 2 $NARROWS_SERVER >&2; test $? = 1'",
        file.display(),
        log.display()
    );
    run_in(&scratch, &automatic, &[], &line).expect(0);
    let ended = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()])).expect(0);
    assert!(ended.out.contains("all identical, to the nanosecond"), "{ended}");
}

#[test]
#[ignore = "needs namespaces, iperf3"]
fn iperf3_crosses_two_paths_of_three_hops() {
    const PATHS: &str = r#"
seed = 9
[hosts.client]
[hosts.server]
[routers.r1]
multipath = "flow"
[routers.left]
[routers.right]
[routers.r3]
multipath = "flow"
[links.access]
between = ["client", "r1"]
delay = "1ms"
[links.left-in]
between = ["r1", "left"]
rate = "20mbit"
delay = "2ms"
[links.left-out]
between = ["left", "r3"]
[links.right-in]
between = ["r1", "right"]
rate = "10mbit"
delay = "3ms"
[links.right-out]
between = ["right", "r3"]
[links.office]
between = ["r3", "server"]
"#;
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let flags = ["--on", "server", "iperf3 -s -1 >&2", "--record", log.to_str().unwrap()];
    // Sixteen flows, whose ports are different in each run: in one run of 2^15, all take one way.
    let ended = run_in(&scratch, PATHS, &flags, "iperf3 -c $NARROWS_SERVER -P 16 -n 8M >&2").expect(0);
    let report = ended.json();
    sound(&report);
    for link in ["left-in.up", "right-in.up"] {
        assert!(direction(&report, link)["delivered"]["packets"].as_u64() > Some(20), "{link}: {report:#}");
    }
    replays(log.to_str().unwrap(), &report);
}

#[test]
#[ignore = "needs namespaces"]
fn probes_cross_routers() {
    let scratch = Scratch::new();
    let report = run_in(&scratch, ROW, &["--probe=100"], "sleep 0.3").expect(0).json();
    let probes = report["probes"].as_array().unwrap();
    assert_eq!(probes.len(), 2, "{report:#}");
    for probe in probes {
        assert!(probe["delay"]["min_ns"].as_u64() >= Some(15_000_000), "{probe:#}");
        assert_eq!(probe["lost_packets"], 0, "{probe:#}");
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_host_behind_a_router_has_no_way_outside_and_is_told_why() {
    let scratch = Scratch::new();
    let ended = run_in(&scratch, ROW, &["--internet"], "true").expect(2);
    assert!(ended.err.contains("host `client` is linked to the router `r1`"), "{ended}");
}

#[test]
#[ignore = "needs root, ip, ping"]
fn an_existing_namespace_gets_routes_to_the_scenario_alone_and_loses_them() {
    let scratch = Scratch::new();
    let name = format!("narrows-hops-{}", std::process::id());
    let ip = |line: &str| {
        let words = format!("-n {name} {line}");
        finish(std::process::Command::new("ip").args(words.split_whitespace())).expect(0).out
    };
    finish(std::process::Command::new("ip").args(["netns", "add", &name])).expect(0);
    let scenario = ROW.replace("[hosts.server]", &format!("[hosts.server]\nnamespace = \"{name}\""));
    let line = format!(
        "ping -c 2 -i 0.1 $NARROWS_SERVER >&2 || exit 3; ping -c 2 -i 0.1 $NARROWS_SERVER6 >&2 || exit 4
         ip -n {name} route >{0}; ip -n {name} -6 route >>{0}",
        scratch.file("routes").display()
    );
    let ended = run_in(&scratch, &scenario, &["--quiet"], &line);
    let left = ip("-oneline address") + &ip("route") + &ip("-6 route");
    finish(std::process::Command::new("ip").args(["netns", "delete", &name])).expect(0);
    sound(&ended.expect(0).json());
    let routes = fs::read_to_string(scratch.file("routes")).unwrap();
    for network in ["198.18.1.0/24", "198.18.2.0/24", "198.18.3.0/24"] {
        assert!(routes.contains(&format!("{network} via 198.18.4.1")), "{routes}");
    }
    assert!(routes.contains("2001:db8:1::/64 via 2001:db8:4::1"), "{routes}");
    assert!(!routes.contains("default"), "{routes}");
    assert!(!left.contains("198.18") && !left.contains("2001:db8"), "{left}");
}
