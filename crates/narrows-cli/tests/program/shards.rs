//! Independent parts of a network, each on its own thread.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Scratch, direction, eventually, finish, narrows, quoted, sound, start};

/// Three links of their own, with all that draws; what changes by itself is in the third one, and so in another thread than
/// the record's first part.
const SCENARIO: &str = r#"
seed = 11
[hosts.client]
[hosts.one]
[hosts.two]
[hosts.three]
[links.first]
between = ["client", "one"]
rate = "10mbit"
delay = "5ms"
jitter = "1ms"
order = "allow"
loss = "3%"
duplicate = "3%"
[links.second]
between = ["client", "two"]
rate = "10mbit"
delay = "3ms"
duplicate = "5%"
reorder = "3%"
[links.third]
between = ["client", "three"]
rate = "5mbit"
delay = "2ms"
loss = "5%"
[[timeline]]
at = "300ms"
set = { "third.rate" = "2mbit", "second.down.queue" = "3 packets" }
"#;

/// Pings over all links at once, more of them after a change of each.
fn line() -> String {
    let itself = quoted(crate::common::NARROWS);
    let pings = |count: u32| {
        let of = |host: &str| format!("ping -q -i 0.01 -s 500 -c {count} $NARROWS_HOST_{host} & ");
        format!("{}wait; ", ["ONE", "TWO", "THREE"].map(of).concat())
    };
    format!(
        "exec >&2; {}{itself} set first.delay=8ms second.up.delay=1ms third.down.loss=50% || exit 3; \
         {itself} set third.rate=never; {}{itself} stats --json >&3 || exit 4; true",
        pings(40),
        pings(30)
    )
}

fn replayed(log: &Path) -> (u64, String) {
    let ended = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()])).expect(0);
    assert!(ended.out.contains("all identical, to the nanosecond"), "{ended}");
    let verdicts = ended.out.lines().find_map(|line| line.split_once(" verdicts compared")).unwrap().0;
    (verdicts.trim().parse().unwrap(), ended.out)
}

fn threads(report: &Value) -> Vec<u64> {
    let all = report["host"]["threads"].as_array().unwrap();
    all.iter().map(|thread| thread["ports"].as_u64().unwrap()).collect()
}

#[test]
#[ignore = "needs namespaces, ping"]
fn what_several_threads_decide_one_engine_decides_again() {
    let ways = [
        ("3", "own", &[2, 2, 2][..]),
        ("2", "own", &[4, 2]),
        ("1", "own", &[6]),
        ("3", "shared", &[2, 2, 2]),
        ("2", "shared", &[4, 2]),
    ];
    for (shards, sockets, ports) in ways {
        let scratch = Scratch::new();
        let scenario = scratch.write("three.toml", SCENARIO);
        let (log, stats, line) = (scratch.file("run.log"), scratch.file("stats"), line());
        let line = format!("exec 3>{}; {line}", quoted(stats.to_str().unwrap()));
        let mut arguments = vec!["run", scenario.to_str().unwrap(), "--shards", shards, "--sockets", sockets];
        arguments.extend(["--json", "-", "--record", log.to_str().unwrap(), "--", "sh", "-c", &line]);
        let ended = finish(&mut narrows(arguments)).expect(0);
        // In + duplicated = delivered + dropped + inside, with all threads together, at the end and before.
        let report = ended.json();
        sound(&report);
        assert_eq!(threads(&report), ports, "{report:#}");
        let before: Value = serde_json::from_str(&fs::read_to_string(stats).unwrap()).unwrap();
        sound(&before);
        assert_eq!(threads(&before), ports);
        for link in ["first.up", "first.down", "second.up", "second.down", "third.up", "third.down"] {
            for report in [&before, &report] {
                let came = direction(report, link)["offered"]["packets"].as_u64().unwrap();
                assert!(came >= 35, "{link}: {came} packets, shards {shards}: {report:#}");
            }
        }
        let pairs = report["pairs"].as_array().unwrap();
        assert_eq!(pairs.len(), 6, "{pairs:#?}");
        let names: Vec<_> = report["directions"].as_array().unwrap().iter().map(|d| &d["link"]).collect();
        assert_eq!(names, ["first.up", "first.down", "second.up", "second.down", "third.up", "third.down"]);
        // The change came to each of them: what pings met before and after lies as far apart as that.
        let third = direction(&report, "third.down");
        assert!(third["drops"].to_string().contains("loss"), "{third:#}");
        let first = pairs.iter().find(|pair| pair["from_port"] == "one.first").unwrap();
        assert!(first["delay"]["max_ns"].as_u64().unwrap() > 8_000_000, "{first:#}");
        assert!(ended.err.contains("third.rate") && ended.err.contains("never"), "refused in words: {ended}");
        // One record, in order, with the changes once.
        assert_eq!(scratch.names(), ["run.log", "stats", "three.toml"]);
        let (verdicts, text) = replayed(&log);
        assert!(text.contains("and 2 changes came in"), "{text}");
        let conservation = &report["conservation"];
        let decided = ["delivered_packets", "dropped_packets"].map(|key| conservation[key].as_u64().unwrap());
        assert_eq!(verdicts, decided.iter().sum::<u64>());
    }
}

#[test]
#[ignore = "needs namespaces, ping"]
fn each_thread_of_a_killed_run_leaves_a_record_that_replays() {
    let _turn = crate::leftovers::turn();
    let scratch = Scratch::new();
    let (scenario, log) = (scratch.write("three.toml", SCENARIO), scratch.file("run.log"));
    let line = "for host in ONE TWO THREE; do eval ping -q -i 0.01 -c 50 \\$NARROWS_HOST_$host & done; wait; echo ready; \
                exec sleep 1000";
    let mut arguments = vec!["run", scenario.to_str().unwrap(), "--shards", "3", "--record"];
    arguments.extend([log.to_str().unwrap(), "--", "sh", "-c", line]);
    let mut started = start(&mut narrows(arguments));
    started.until_it_says("ready");
    let parts = ["run.log", "run.log.part-1", "run.log.part-2"].map(|name| scratch.file(name));
    for part in &parts {
        eventually("something is on the disk", || fs::metadata(part).is_ok_and(|data| data.len() > 1000));
    }
    started.signal("KILL");
    assert_eq!(started.wait().ended_by(), Some(9));
    for part in parts {
        assert!(replayed(&part).0 > 10, "{}", part.display());
    }
    crate::leftovers::clean();
}

#[test]
#[ignore = "needs namespaces"]
fn a_signal_ends_all_threads() {
    let scratch = Scratch::new();
    let scenario = scratch.write("three.toml", SCENARIO);
    let arguments =
        ["run", scenario.to_str().unwrap(), "--shards", "3", "--", "sh", "-c", "echo ready; exec sleep 1000"];
    let mut started = start(&mut narrows(arguments));
    started.until_it_says("ready");
    let tasks = fs::read_dir(format!("/proc/{}/task", started.id())).unwrap().count();
    assert!(tasks >= 3, "{tasks} threads");
    started.signal("TERM");
    let ended = started.wait();
    assert_eq!(ended.code(), 143, "{ended}");
    assert!(ended.err.contains("in 3 threads"), "{ended}");
}

#[test]
#[ignore = "needs namespaces, ip"]
fn what_fails_in_one_thread_ends_the_run_in_order() {
    let scratch = Scratch::new();
    let scenario = scratch.write("three.toml", SCENARIO);
    for link in ["first", "third"] {
        let line = format!("ip link delete {link}; exec sleep 1000");
        let arguments = ["run", scenario.to_str().unwrap(), "--shards", "3", "--", "sh", "-c", &line];
        let ended = finish(&mut narrows(arguments)).expect(2);
        assert!(ended.err.contains("switched off, removed"), "{ended}");
    }
}

#[test]
#[ignore = "needs namespaces"]
fn threads_and_processors_that_do_not_fit_are_refused() {
    let scratch = Scratch::new();
    let scenario = scratch.write("three.toml", SCENARIO);
    let scenario = scenario.to_str().unwrap();
    let refused = |flags: &[&str]| {
        let arguments = ["run", scenario].into_iter().chain(flags.iter().copied()).chain(["--", "true"]);
        finish(&mut narrows(arguments)).expect(2).err
    };
    for flag in ["0", "many", "-1"] {
        let error = refused(&[&format!("--shards={flag}")]);
        assert!(error.contains("from 1 to 1024, or auto"), "{error}");
    }
    let error = refused(&["--shards", "3", "--cpu", "0,0"]);
    assert!(error.contains("2 processors for 3 threads"), "{error}");
    let error = refused(&["--shards", "3", "--cpu", "0,0,1023"]);
    assert!(error.contains("--cpu 1023"), "{error}");
    let arguments = ["run", scenario, "--cpu", "0,0", "--json", "-", "--", "true"];
    assert_eq!(threads(&finish(&mut narrows(arguments)).expect(0).json()), [4, 2]);
    let arguments = ["run", "--shards", "3", "--json", "-", "--", "true"];
    assert_eq!(threads(&finish(&mut narrows(arguments)).expect(0).json()), [2], "one part, one thread");
}
