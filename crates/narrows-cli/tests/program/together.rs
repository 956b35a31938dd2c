//! Several runs at once on one host, and talking to each.

use std::process::Stdio;

use crate::common::{Started, finish, narrows, pair, run, start};

/// A run that says when it is ready and then waits for a line before it pings.
fn waiting(delay: &str) -> Started {
    let line = "echo ready >&2; read go; ping -q -c 5 -i 0.05 $NARROWS_SERVER >&2";
    let mut command = run(["--rate", "10mbit", "--delay", delay, "--json", "-"], line);
    start(command.stdin(Stdio::piped()))
}

#[test]
#[ignore = "needs namespaces, ping"]
fn four_runs_do_not_disturb_one_another() {
    let mut runs: Vec<_> = ["10ms", "20ms", "30ms", "40ms"]
        .into_iter()
        .zip([10, 20, 30, 40])
        .map(|(text, ms)| (waiting(text), ms))
        .collect();
    for (started, _) in &mut runs {
        started.until_it_complains("ready");
    }
    let names: Vec<_> = runs.iter().map(|(started, _)| started.id().to_string()).collect();

    // Which one is meant must be said, and the choice is there to read.
    let ended = finish(&mut narrows(["set", "link.delay=1ms"])).expect(2);
    assert!(ended.err.contains("several runs are active: select one with --run"), "{ended}");
    assert!(names.iter().all(|name| ended.err.contains(name)), "{ended}");
    finish(&mut narrows(["set", "--run", &names[2], "link.down.delay=5ms", "link.up.delay=6ms"])).expect(0);
    let ended = finish(&mut narrows(["stats", "--run", &names[2]])).expect(0);
    assert!(ended.out.contains("link.down.delay=5ms, link.up.delay=6ms"), "{ended}");
    let ended = finish(&mut narrows(["stats", "--run", &names[1]])).expect(0);
    assert!(!ended.out.contains("changed at"), "{ended}");

    for (started, _) in &mut runs {
        started.tell("go");
    }
    for (number, (started, ms)) in runs.into_iter().enumerate() {
        let report = started.wait().expect(0).json();
        let (up, down) = if number == 2 { (6, 5) } else { (ms, ms) };
        for (from, to, delay) in [("client.link", "server.link", up), ("server.link", "client.link", down)] {
            let pair = pair(&report, from, to);
            assert_eq!(pair["delivered"]["packets"], 5, "{pair:#}");
            assert_eq!(pair["delay"]["min_ns"], 67_200 + delay * 1_000_000, "{pair:#}");
        }
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_run_is_talked_to_from_inside_and_from_outside() {
    let narrows_itself = crate::common::quoted(crate::common::NARROWS);
    let line = format!("{narrows_itself} stats --json; echo ready >&2; read go; {narrows_itself} stats");
    let mut started = start(run(["--rate", "1mbit", "--seed", "99"], &line).stdin(Stdio::piped()));
    started.until_it_complains("ready");
    let report: serde_json::Value = serde_json::from_str(&started.out()).unwrap();
    assert_eq!((&report["seed"], &report["kind"]), (&99.into(), &"live".into()));

    let name = started.id().to_string();
    let refused = [
        ("link.rate=5", "no unit"),
        ("link.rate", "`=`"),
        ("lonk.rate=5mbit", "lonk"),
        ("link.up.raet=5mbit", "raet"),
        ("link.sideways.rate=5mbit", "sideways"),
        ("link.loss=120%", "120%"),
    ];
    for (assignment, word) in refused {
        let ended = finish(&mut narrows(["set", "--run", &name, "link.rate=3mbit", assignment])).expect(2);
        assert!(ended.err.starts_with("narrows: ") && ended.err.contains(word), "{ended}");
        assert!(ended.out.is_empty(), "{ended}");
    }
    finish(&mut narrows(["set", "--run", &name, "link.rate=2mbit", "link.up.loss=1%"])).expect(0);
    started.tell("go");
    let ended = started.wait().expect(0);
    let changes: Vec<_> = ended.out.lines().filter(|line| line.contains("changed at")).collect();
    assert_eq!(changes.len(), 1, "what was refused changed nothing, not even in part: {ended}");
    assert!(changes[0].ends_with(": link.rate=2mbit, link.up.loss=1%"), "{ended}");
    assert!(!changes[0].contains("at 0s"), "dated by the clock, and not by the last packet: {ended}");

    let ended = finish(&mut narrows(["set", "--run", &name, "link.rate=2mbit"])).expect(2);
    assert!(ended.err.contains(&format!("no active run `{name}`")), "{ended}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_run_inside_a_run_adds_its_delay() {
    let inner = crate::common::quoted(crate::common::NARROWS);
    let line = format!(
        "outer=$NARROWS_SERVER; export outer
         {inner} run --delay 7ms --quiet -- sh -c 'test $outer != $NARROWS_SERVER && ping -c 2 -i 0.1 $NARROWS_SERVER' >&2 &&
         ping -c 1 $outer >&2"
    );
    let ended = finish(&mut run(["--delay", "11ms", "--json", "-"], &line)).expect(0);
    let report = ended.json();
    assert_eq!(pair(&report, "client.link", "server.link")["delay"]["min_ns"], 11_000_000);
    assert!(ended.err.contains("2 received") && ended.err.contains("1 received"), "{ended}");
}

/// The line of a run that is this deep in others, each with a link of 3 ms: pings all servers, the outermost first.
fn nested(depth: u32) -> String {
    let servers = "export servers=\"$servers $NARROWS_SERVER\"";
    if depth == 0 {
        return format!("{servers}; for server in $servers; do ping -q -c 2 -i 0.1 $server; done");
    }
    let (inner, line) =
        (crate::common::quoted(crate::common::NARROWS), crate::common::quoted(&nested(depth - 1)));
    format!("{servers}; exec {inner} run --delay 3ms --quiet -- sh -c {line}")
}

#[test]
#[ignore = "needs namespaces, nf_tables, ping"]
fn five_runs_one_inside_the_other_reach_the_servers_of_all() {
    let line = nested(4);
    let ended = finish(&mut run(["--delay", "3ms", "--quiet"], &line)).expect(0);
    assert_eq!(ended.out.matches(" 2 received").count(), 5, "{ended}");
    let rtts = ended
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("rtt ")?.split(" = ").nth(1)?.split('/').next());
    let rtts: Vec<f64> = rtts.map(|least| least.parse().unwrap()).collect();
    // The outermost server is behind all links.
    let links = [5, 4, 3, 2, 1].map(f64::from);
    assert!(rtts.iter().zip(links).all(|(rtt, links)| *rtt >= 6.0 * links), "{rtts:?}");
}
