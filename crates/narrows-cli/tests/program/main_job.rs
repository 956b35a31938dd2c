//! The main job: a program behind a modelled network.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use crate::common::{Scratch, direction, every_scenario, finish, live, narrows, pair, run, sound, start};

/// 84 bytes of IPv4 or 104 of IPv6 at 10 Mbit/s, and then 25 ms.
const PING4_NS: u64 = 67_200 + 25_000_000;
const PING6_NS: u64 = 83_200 + 25_000_000;

#[test]
#[ignore = "needs namespaces, ping"]
fn a_ping_meets_the_delay_to_the_nanosecond() {
    for (server, least) in [("$NARROWS_SERVER", PING4_NS), ("$NARROWS_SERVER6", PING6_NS)] {
        let line = format!("ping -c 5 -i 0.1 {server} >&2");
        let ended = finish(&mut run(["--rate", "10mbit", "--delay", "25ms", "--json", "-"], &line)).expect(0);
        assert!(ended.err.contains("5 received, 0% packet loss"), "{ended}");
        let report = ended.json();
        sound(&report);
        for (from, to) in [("client.link", "server.link"), ("server.link", "client.link")] {
            let pair = pair(&report, from, to);
            assert_eq!(pair["delivered"]["packets"], 5, "{pair:#}");
            assert_eq!(pair["delay"]["min_ns"], least, "{pair:#}");
        }
        assert_eq!(report["round_trips"][0]["round_trip_ns"], 50_000_000);
        // "rtt min/avg/max/mdev = 50.4/…": what a program sees is no less.
        let (_, times) = ended.err.split_once("mdev = ").unwrap();
        let fastest: f64 = times.split('/').next().unwrap().parse().unwrap();
        assert!(fastest >= 2.0 * least as f64 / 1e6 - 0.001, "{fastest} ms");
    }
}

#[test]
#[ignore = "needs namespaces"]
fn programs_have_the_timers_that_they_would_have_elsewhere() {
    // Our own slack is what the program would inherit without narrows.
    let usual = fs::read_to_string("/proc/self/timerslack_ns").unwrap();
    let ended = finish(&mut run([], "cat /proc/self/timerslack_ns")).expect(0);
    assert_eq!(ended.out, usual, "{ended}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn the_directions_are_the_flags_own() {
    let flags = ["--rate", "2mbit/1mbit", "--delay", "7ms/3ms", "--queue", "13 packets", "--json", "-"];
    let ended = finish(&mut run(flags, "ping -c 3 -i 0.1 $NARROWS_SERVER >&2")).expect(0);
    let report = ended.json();
    let (up, down) = (direction(&report, "link.up"), direction(&report, "link.down"));
    assert_eq!(
        (up["asked_rate_bps"].as_u64(), down["asked_rate_bps"].as_u64()),
        (Some(1_000_000), Some(2_000_000))
    );
    assert_eq!((&up["from"], &down["from"]), (&"client".into(), &"server".into()));
    assert_eq!(pair(&report, "client.link", "server.link")["delay"]["min_ns"], 672_000 + 3_000_000);
    assert_eq!(pair(&report, "server.link", "client.link")["delay"]["min_ns"], 336_000 + 7_000_000);
}

#[test]
#[ignore = "needs namespaces"]
fn the_programs_exit_status_and_outputs_come_through() {
    let cases =
        [("exit 0", 0), ("exit 37", 37), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("false", 1)];
    for (line, code) in cases {
        let line = format!("echo said; echo complained >&2; {line}");
        let ended = finish(&mut run([], &line)).expect(code);
        assert_eq!(ended.out, "said\n");
        assert!(ended.err.starts_with("complained\n"), "{ended}");
        assert!(ended.err.contains("link.up, client → server"), "the report is on the error output: {ended}");
    }
    let ended = finish(&mut run(["--quiet"], "echo said; echo complained >&2")).expect(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("said\n", "complained\n"));
}

#[test]
#[ignore = "needs namespaces"]
fn the_standard_input_comes_through() {
    let mut started = start(run(["--quiet"], "read line; echo got $line; cat").stdin(Stdio::piped()));
    started.tell("one");
    started.until_it_says("got one");
    started.tell("two");
    assert_eq!(started.wait().expect(0).out, "got one\ntwo\n", "and it ends");
}

#[test]
#[ignore = "needs namespaces"]
fn json_goes_to_a_file_or_to_the_standard_output() {
    let scratch = Scratch::new();
    let file = scratch.file("report.json");
    let flags = ["--seed", "18446744073709551615", "--json", file.to_str().unwrap()];
    let ended = finish(&mut run(flags, "echo said")).expect(0);
    assert_eq!(ended.out, "said\n");
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(report["seed"], u64::MAX);
    assert_eq!(report["kind"], "live");
    // A shorter one replaces it whole.
    fs::write(&file, "x".repeat(100_000)).unwrap();
    finish(&mut run(["--quiet", "--json", file.to_str().unwrap()], "true")).expect(0);
    serde_json::from_str::<serde_json::Value>(&fs::read_to_string(&file).unwrap()).unwrap();
}

#[test]
#[ignore = "needs namespaces"]
fn programs_learn_addresses_and_the_run_from_their_environment() {
    let line = "test -S $NARROWS_CONTROL && env | grep ^NARROWS_ | sort";
    let started = start(&mut run(["--quiet"], line));
    let id = started.id();
    let ended = started.wait().expect(0);
    let of = |name: &str| {
        let line =
            ended.out.lines().find(|line| line.starts_with(&format!("{name}="))).unwrap_or_else(|| {
                panic!("no {name}: {ended}");
            });
        line.split_once('=').unwrap().1.to_owned()
    };
    assert_eq!(of("NARROWS_RUN"), id.to_string());
    let run_id = of("NARROWS_RUN_ID");
    assert!(run_id.len() == 32 && run_id.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')), "{run_id}");
    assert!(of("NARROWS_CONTROL").ends_with(&format!("/{id}.sock")));
    for end in ["CLIENT", "SERVER"] {
        let four = of(&format!("NARROWS_{end}"));
        let six = of(&format!("NARROWS_{end}6"));
        assert!(four.parse::<std::net::Ipv4Addr>().is_ok() && six.parse::<std::net::Ipv6Addr>().is_ok());
        assert_eq!(of(&format!("NARROWS_HOST_{end}")), four);
        assert_eq!(of(&format!("NARROWS_HOST_{end}6")), six);
    }
    assert!(!std::path::Path::new(&of("NARROWS_CONTROL")).exists(), "gone with the run");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_program_runs_in_the_host_that_is_named() {
    let line = "test $NARROWS_SERVER = $NARROWS_HOST_CLIENT && ping -c 1 $NARROWS_SERVER >&2";
    let report =
        finish(&mut run(["--host", "server", "--delay", "1ms", "--json", "-"], line)).expect(0).json();
    for (from, to) in [("client.link", "server.link"), ("server.link", "client.link")] {
        assert_eq!(pair(&report, from, to)["delivered"]["packets"], 1);
    }
    assert_eq!(report["round_trips"][0]["round_trip_ns"], 2_000_000);
}

#[test]
#[ignore = "needs namespaces"]
fn programs_beside_start_first_and_end_with_the_run() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.file("one"), scratch.file("two"));
    let beside = |file: &std::path::Path| {
        format!("readlink /proc/self/ns/net > {0}.part; mv {0}.part {0}; exec sleep 1000", file.display())
    };
    let (first, second) = (beside(&one), beside(&two));
    let line = format!(
        "while ! test -f {0} -a -f {1}; do sleep 0.01; done; readlink /proc/self/ns/net",
        one.display(),
        two.display()
    );
    let flags = ["--quiet", "--on", "server", &first, "--on", "client", &second];
    let ended = finish(&mut run(flags, &line)).expect(0);
    let (server, client) = (fs::read_to_string(one).unwrap(), fs::read_to_string(two).unwrap());
    assert_eq!(client, ended.out, "with CMD in the client");
    assert_ne!(server, client, "the server is another namespace");
}

#[test]
#[ignore = "needs namespaces"]
fn probes_tell_delay_and_loss_both_ways() {
    let flags = ["--rate", "10mbit", "--delay", "20ms/10ms", "--probe=200", "--json", "-"];
    let ended = finish(&mut run(flags, "sleep 0.5")).expect(0);
    let report = ended.json();
    let probes = report["probes"].as_array().unwrap();
    assert_eq!(probes.len(), 2, "{report:#}");
    for probe in probes {
        let least = if probe["from"] == "client" { 10_000_000 } else { 20_000_000 };
        assert!(probe["sent_packets"].as_u64() > Some(0), "{probe:#}");
        assert_eq!(probe["lost_packets"], 0, "{probe:#}");
        assert!(probe["delay"]["min_ns"].as_u64() >= Some(least), "{probe:#}");
    }
    assert!(ended.err.contains("probes, one way"), "{ended}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn every_scenario_of_the_repository_runs_live() {
    // In one of them no packet gets to the server; what it shows instead is tested with the hops.
    for file in every_scenario().into_iter().filter(|file| !file.ends_with("loop.toml")) {
        // One of ten is enough: some of them lose packets, in bursts even.
        let line = "ping -c 10 -i 0.1 -W 5 $NARROWS_SERVER >&2; ping -c 10 -i 0.1 -W 5 $NARROWS_SERVER6 >&2";
        let mut command = narrows(["run", file.to_str().unwrap(), "--json", "-", "--", "sh", "-c", line]);
        let report = finish(&mut command).expect(0).json();
        sound(&report);
        assert!(report["pairs"].as_array().unwrap().len() >= 2, "{}: {report:#}", file.display());
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_shell_runs_in_the_network() {
    let mut command = narrows(["shell", "--delay", "3ms"]);
    let mut started = start(command.env("SHELL", "/bin/sh").stdin(Stdio::piped()));
    started.tell("echo from $NARROWS_CLIENT to $NARROWS_SERVER");
    let said = started.until_it_says("to ");
    assert_eq!(said.matches('.').count(), 6, "two addresses: {said}");
    started.tell("exit 3");
    let ended = started.wait().expect(3);
    assert!(ended.err.contains("exit ends the run") && ended.err.contains("round trip"), "{ended}");
}

#[test]
#[ignore = "needs namespaces, ip"]
fn the_ends_of_a_cable_have_different_numbers() {
    // Else the kernel takes up to a second to notice that a cable carries: each run would begin that late.
    for host in ["client", "server"] {
        let ended = finish(&mut run(["--quiet", "--host", host], "ip -oneline link show link")).expect(0);
        // "2: link@if1048576: <BROADCAST,…"
        let (own, rest) = ended.out.split_once(": link@if").unwrap_or_else(|| panic!("{ended}"));
        let (far, _) = rest.split_once(':').unwrap();
        assert_ne!(own.trim(), far);
    }
}

#[test]
fn help_says_how_to_reach_the_server() {
    let help = finish(&mut narrows(["run", "--help"])).expect(0).out;
    assert!(help.contains("NARROWS_SERVER6") && help.contains("Examples:"), "{help}");
}

#[test]
fn doctor_says_whether_live_runs_work() {
    let ended = finish(&mut narrows(["doctor"]));
    let works = ended.out.contains("live runs work");
    assert_eq!(ended.code(), i32::from(!works), "{ended}");
    assert_eq!(works, live(), "{ended}");
    let words = findings(&ended.out);
    let modes =
        ["run, shell", "bridge, route", "attach", "--backend af_packet", "--backend af_xdp", "--backend tap"];
    for mode in modes.into_iter().chain(["--internet", "--priority high", "--priority real-time"]) {
        assert!(words[mode].starts_with("yes") || words[mode].starts_with("no"), "{mode}: {ended}");
    }
    assert!(words.contains_key("locked memory"), "{ended}");
    assert!(ended.out.lines().all(|line| line.chars().count() <= 100), "{ended}");
}

/// What `doctor` says of each topic.
pub(crate) fn findings(page: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut topic = String::new();
    for line in page.lines().filter(|line| line.len() > 24) {
        let (left, right) = line.split_at(24);
        if !left.trim().is_empty() {
            topic = left.trim().to_owned();
        }
        let finding: &mut String = all.entry(topic.clone()).or_default();
        *finding = format!("{finding} {right}").trim().to_owned();
    }
    all
}

#[test]
#[ignore = "needs namespaces, ip, ping"]
fn an_interface_that_is_taken_away_ends_the_run_with_its_report() {
    let line = "ping -c 3 -i 0.1 $NARROWS_SERVER >&2; ip link delete dev link; sleep 60";
    let ended = finish(&mut run(["--delay", "1ms", "--json", "-"], line)).expect(2);
    assert!(ended.err.contains("the run ended early: the interface"), "{ended}");
    let report = ended.json();
    sound(&report);
    assert!(pair(&report, "client.link", "server.link")["delivered"]["packets"].as_u64() >= Some(3));
}
