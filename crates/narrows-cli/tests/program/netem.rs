//! NetEm's language: `narrows tc`, `--netem`, `--exact-netem`.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::common::{Scratch, direction, finish, narrows, pair, quoted, run, sound, start};

const PUBLISHED: &str = include_str!("../../../narrows-scenario/tests/netem/published.txt");

fn published() -> impl Iterator<Item = &'static str> {
    PUBLISHED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The options of a published line, from the name of the discipline on where it is not netem.
fn options(line: &str) -> String {
    match line.split_once(" netem") {
        Some((_, options)) => options.trim().into(),
        None => line.split_once("> ").unwrap().1.into(),
    }
}

#[test]
fn tc_check_explains_and_prints_a_scenario() {
    let scratch = Scratch::new();
    for line in [
        "delay 100ms 20ms 25% distribution normal loss 0.3% 25% rate 1mbit limit 50",
        "root delay limit 1500 reorder true",
    ] {
        let ended = finish(&mut narrows(["tc", "check", line])).expect(0);
        let (words, scenario) = ended.out.split_once("[hosts.client]").unwrap();
        assert!(words.contains("\nlimit ") || words.starts_with("limit "), "{ended}");
        assert!(words.contains("is taken as"), "{ended}");
        let file = scratch.file("printed.toml");
        fs::write(&file, format!("[hosts.client]{scenario}")).unwrap();
        finish(&mut narrows(["check", file.to_str().unwrap()])).expect(0);
    }
    let ended = finish(&mut narrows([
        "tc", "check", "tc", "qdisc", "change", "dev", "eth0", "root", "netem", "loss", "5",
    ]));
    let ended = ended.expect(0);
    assert!(ended.out.contains("changes eth0") && ended.out.contains("5 is taken as 5%"), "{ended}");
    for (text, place, help) in [
        ("delay 10ms los 1% dely 5ms", "netem:1:19", "did you mean `delay`?"),
        ("tc qdisc add dev eth0 root netem loss gemodl 1%", "tc:1:39", "did you mean `gemodel`?"),
    ] {
        let ended = finish(&mut narrows(["tc", "check", text])).expect(2);
        assert!(
            ended.err.starts_with("narrows: ") && ended.err.contains(place) && ended.err.contains(help),
            "{ended}"
        );
        assert!(ended.out.is_empty(), "{ended}");
    }
}

/// A lone command is explained for both ways, with a remark on its device; several on one line are a script.
#[test]
fn tc_check_says_which_way_a_command_shapes() {
    let one = "tc qdisc add dev eth0 root netem delay 10ms";
    let ended = finish(&mut narrows(["tc", "check", one])).expect(0);
    let remark = "in a script (--tc FILE) it shapes one way alone: eth0 is the client's device";
    assert!(ended.out.contains(remark) && ended.out.contains("for both ways"), "{ended}");
    let both = format!("{one} rate 1mbit; tc qdisc add dev eth1 root netem delay 2ms");
    let ended = finish(&mut narrows(["tc", "check", &both])).expect(0);
    assert!(ended.out.contains("eth1 is the server's device"), "{ended}");
}

/// A network of one link for each published line, all at once in virtual time.
#[test]
fn published_lines_run_in_virtual_time() {
    let scratch = Scratch::new();
    for key in ["netem", "exact-netem"] {
        let mut scenario = String::from("duration = \"2s\"\n");
        let lines: Vec<String> =
            published().map(options).filter(|line| key == "netem" || !line.starts_with("root")).collect();
        for (number, line) in lines.iter().enumerate() {
            scenario += &format!(
                "[hosts.a{number}]\n[hosts.b{number}]\n[links.l{number}]\nbetween = [\"a{number}\", \"b{number}\"]\n\
                 up = {{ {key} = \"{line}\" }}\n"
            );
        }
        for number in 0..lines.len() {
            scenario += &format!(
                "[[traffic]]\nfrom = \"a{number}\"\nto = \"b{number}\"\nconstant = \"1/80ms\"\nlength = \"1000 bytes\"\n"
            );
        }
        let file = scratch.file(key);
        fs::write(&file, scenario).unwrap();
        let report = finish(&mut narrows(["sim", file.to_str().unwrap(), "--json", "-"])).expect(0).json();
        sound(&report);
        for (number, line) in lines.iter().enumerate() {
            let up = direction(&report, &format!("l{number}.up"));
            let of = |key: &str| up[key]["packets"].as_u64().unwrap();
            assert_eq!(of("offered"), 25, "{key} {line}");
            // The slowest sends one in two seconds, the most lossy loses one in six.
            let slow = ["kbit", "KBps", "20000"].iter().any(|rate| line.contains(rate));
            let least = if slow { 0 } else { 10 };
            assert!(of("delivered") > least, "{key} {line}: {up:#}");
            let (delay, asked) = (
                &pair(&report, &format!("a{number}.l{number}"), &format!("b{number}.l{number}"))["delay"],
                line,
            );
            if asked.ends_with("delay 100ms") {
                let least = if asked.contains("rate") { 100_000_000 + 1014 * 8 * 1000 } else { 100_000_000 };
                let exactly =
                    if key == "exact-netem" && asked.contains("rate") { 100_000_000 } else { least };
                assert!(delay["min_ns"].as_u64().unwrap() >= exactly, "{key} {line}: {delay:#}");
            }
        }
    }
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_run_says_what_netem_means_once() {
    let line = "ping -q -c 3 -i 0.02 $NARROWS_SERVER >&2";
    let ended = finish(&mut run(["--netem", "delay 5ms", "--json", "-"], line)).expect(0);
    assert_eq!(ended.err.matches("maps to two queues").count(), 1, "{ended}");
    for (from, to) in [("client.link", "server.link"), ("server.link", "client.link")] {
        assert_eq!(pair(&ended.json(), from, to)["delay"]["min_ns"], 5_000_000);
    }
    let ended = finish(&mut run(["--exact-netem", "delay 6ms", "--json", "-"], line)).expect(0);
    assert!(!ended.err.contains("maps to two queues"), "{ended}");
    assert_eq!(pair(&ended.json(), "client.link", "server.link")["delay"]["min_ns"], 6_000_000);
    let one_way = ["--netem-up", "delay 7ms", "--json", "-"];
    let report = finish(&mut run(one_way, line)).expect(0).json();
    assert_eq!(pair(&report, "client.link", "server.link")["delay"]["min_ns"], 7_000_000);
    assert_eq!(pair(&report, "server.link", "client.link")["delay"]["min_ns"], 0);
}

/// `tc qdisc` against a run, as a user of tc goes about it.
#[test]
#[ignore = "needs namespaces, ping"]
fn tc_changes_a_run() {
    let mut started = start(
        run(["--json", "-"], "echo ready >&2; read go; ping -q -c 4 -i 0.02 $NARROWS_SERVER >&2")
            .stdin(Stdio::piped()),
    );
    started.until_it_complains("ready");
    let name = started.id().to_string();
    let tc = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        finish(&mut narrows(["tc", "--run", &name].into_iter().chain(words)))
    };
    let shown = |line: &str| tc(line).expect(0).out;
    let refused = |line: &str, why: &str| {
        let ended = tc(line).expect(2);
        assert!(ended.err.starts_with("narrows: ") && ended.err.contains(why), "{ended}");
    };
    assert_eq!(shown("qdisc show dev client"), "qdisc noqueue 0: root refcnt 2\n");
    refused("qdisc change dev client root netem delay 1ms", "no queueing discipline at link.up to change");
    refused("qdisc del dev client root", "no queueing discipline at link.up to delete");
    shown("qdisc add dev client root netem delay 50ms 10ms 25% distribution normal loss 1% rate 100mbit");
    let up = "limit 1000 delay 50ms 10ms 25% distribution normal loss 1% rate 100mbit";
    assert_eq!(shown("qdisc show dev client"), format!("qdisc netem 8001: root refcnt 2 {up}\n"));
    assert_eq!(shown("qdisc show dev link.up"), shown("qdisc ls dev client.link"));
    refused("qdisc add dev link.up root netem delay 1ms", "a queueing discipline already exists at link.up");
    // What tc does not send again stays, and the delay is sent always.
    shown("qdisc change dev link.up root netem loss 2%");
    assert_eq!(
        shown("qdisc show dev link.up"),
        "qdisc netem 8001: root refcnt 2 limit 1000 loss 2% rate 100mbit\n"
    );
    shown("qdisc replace dev server root netem delay 3ms");
    // What is shown can be fed in again.
    shown("qdisc replace dev link.up root handle 1: netem limit 1000 delay 20ms");
    refused("qdisc change dev link.up root delay limit 5", "another kind of queueing discipline");
    refused("qdisc add dev link root netem delay 1ms", "name one of link.up and link.down");
    refused("qdisc add dev sever root netem delay 1ms", "there is no device `sever`");
    refused("qdisc add dev link.up parent 1:1 netem delay 1ms", "there is no discipline 1:");
    refused("qdisc change dev link.up root netem dely 1ms", "did you mean `delay`?");
    refused("qdisc change dev link.up root netem delay 1ms seed 4", "`seed`");
    started.tell("go");
    let ended = started.wait().expect(0);
    let report: Value = ended.json();
    sound(&report);
    assert_eq!(pair(&report, "client.link", "server.link")["delay"]["min_ns"], 20_000_000);
    assert_eq!(pair(&report, "server.link", "client.link")["delay"]["min_ns"], 3_000_000);
}

#[test]
#[ignore = "needs namespaces, ping"]
fn tc_shows_counters_and_what_netem_cannot_say() {
    let narrows = quoted(crate::common::NARROWS);
    let line = format!(
        "ping -q -c 5 -i 0.02 $NARROWS_SERVER >&2; {narrows} tc -s qdisc show; {narrows} tc qdisc del dev link.up root; {narrows} tc qdisc show"
    );
    let flags = ["--netem", "delay 1ms duplicate 100%", "--mtu", "1400", "--scheduler", "fq_codel"];
    let ended = finish(&mut run(flags, &line)).expect(0);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(
        lines[0],
        "qdisc netem 8001: dev link.up root refcnt 2 delay 1ms duplicate 100%  # besides, not in NetEm's words: scheduler, mtu",
        "{ended}"
    );
    assert!(lines[1].starts_with(" Sent 840 bytes 10 pkt (dropped 0,"), "{ended}");
    assert_eq!(lines[2], " backlog 0b 0p requeues 0", "{ended}");
    assert!(lines[3].contains("duplicated 5 reordered 0"), "{ended}");
    let plain = "qdisc noqueue 0: dev link.up root refcnt 2  # besides, not in NetEm's words: mtu";
    assert_eq!(lines[lines.len() - 2], plain, "{ended}");
    assert!(lines[lines.len() - 1].starts_with("qdisc netem 8002: dev link.down"), "{ended}");
}

/// What tc could take comes first, and a change leaves the release as it is.
#[test]
#[ignore = "needs namespaces"]
fn exact_mode_is_shown_with_the_release_that_it_is_of() {
    let narrows = quoted(crate::common::NARROWS);
    let line = format!(
        "{narrows} tc qdisc show dev client; {narrows} tc qdisc change dev client root netem loss 1%; {narrows} tc qdisc show dev client"
    );
    let ended = finish(&mut run(["--exact-netem", "delay 5ms kernel 6.1"], &line)).expect(0);
    let lines: Vec<&str> = ended.out.lines().collect();
    let shown = |options: &str| {
        format!(
            "qdisc netem 8001: root refcnt 2 limit 1000 {options}  # exact-netem: the single queue of Linux 6.1"
        )
    };
    assert_eq!(lines[..2], [shown("delay 5ms"), shown("loss 1%")], "{ended}");
    let ended = finish(&mut crate::common::narrows(["tc", "check", "--exact-netem", "delay 5ms kernel 6.1"]))
        .expect(0);
    assert!(
        ended.out.contains("As Linux 6.1 was")
            && ended.out.contains("exact-netem = \"delay 5ms kernel 6.1\""),
        "{ended}"
    );
    let ended = finish(&mut run(["--netem", "delay 5ms kernel 6.1"], "true")).expect(2);
    assert!(
        ended.err.contains("`kernel 6.1` without exact mode") && ended.err.contains("--netem"),
        "{ended}"
    );
}

/// As the documents of sch_delay and NetEm have it: the interface's own name, in the host that has it.
#[test]
#[ignore = "needs namespaces, ping"]
fn tc_knows_the_interfaces_of_the_host_that_it_runs_in() {
    let narrows = quoted(crate::common::NARROWS);
    let line = format!(
        "{narrows} tc qdisc add dev link root netem delay 7ms; {narrows} tc qdisc show; \
         ip link show dev link >/dev/null && echo there; echo number $NARROWS_RUN ready; read go"
    );
    let mut started = start(run([], &line).stdin(Stdio::piped()));
    let shown = started.until_it_says("ready");
    assert!(
        shown.contains("netem 8001: dev link.up root refcnt 2 delay 7ms") && shown.contains("there"),
        "{shown}"
    );
    let number = started.id().to_string();
    let refused =
        finish(&mut crate::common::narrows(["tc", "--run", &number, "qdisc", "show", "dev", "link"]))
            .expect(2);
    assert!(refused.err.contains("name one of link.up and link.down"), "{refused}");
    started.tell("go");
    started.wait().expect(0);
}
