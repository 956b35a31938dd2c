//! Runs that are kept and run again in virtual time: the same verdict for every packet.

use std::fs;
use std::path::Path;

use crate::common::{Finished, Scratch, direction, eventually, finish, narrows, run, start};

/// Everything that a link can do, and a timeline.
const SCENARIO: &str = r#"
seed = 11
[hosts.client]
[hosts.server]
[links.access]
between = ["client", "server"]
rate = "10mbit"
delay = "5ms"
jitter = "1ms"
order = "allow"
loss = "3%"
duplicate = "3%"
corrupt = "3%"
reorder = "3%"
[[timeline]]
at = "300ms"
set = { "access.rate" = "2mbit", "access.down.queue" = "3 packets" }
[[timeline]]
at = "600ms"
set = { "access.up.delay" = "9ms", "access.up.order" = "keep" }
"#;

fn replay(log: &Path) -> Finished {
    finish(&mut narrows(["sim", "--json", "-", "--replay", log.to_str().unwrap()]))
}

/// How many packets and changes the replay found, and how many verdicts it compared, all of them the same.
#[track_caller]
fn compared(log: &Path) -> (u64, u64, u64) {
    let ended = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()])).expect(0);
    let number = |before: &str, after: &str| -> u64 {
        let words = ended.out.split(after).next().unwrap();
        let word = words.rsplit(before).next().unwrap();
        word.trim().parse().unwrap_or_else(|error| panic!("{error}: no number before `{after}`: {ended}"))
    };
    assert!(ended.out.contains("all identical, to the nanosecond"), "{ended}");
    (number(":", " packets and"), number("and", " changes came in"), number("\n", " verdicts compared"))
}

/// A run of the scenario with two changes from inside, kept.
fn recorded(scratch: &Scratch, flags: &[&str]) -> Finished {
    let scenario = scratch.write("all.toml", SCENARIO);
    let log = scratch.file("run.log");
    let narrows_itself = crate::common::quoted(crate::common::NARROWS);
    let line = format!(
        "exec >&2; ping -q -i 0.01 -c 40 $NARROWS_SERVER
         {narrows_itself} set access.down.delay=20ms access.loss=20% || exit 3
         ping -q -i 0.01 -s 1400 -c 60 $NARROWS_SERVER6
         {narrows_itself} set access.up.corrupt=0% access.down.rate=unlimited || exit 4
         true"
    );
    let mut arguments =
        vec!["run", scenario.to_str().unwrap(), "--json", "-", "--record", log.to_str().unwrap()];
    arguments.extend(flags);
    arguments.extend(["--", "sh", "-c", &line]);
    finish(&mut narrows(arguments)).expect(0)
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_replay_gives_every_packet_its_verdict_again() {
    for flags in [&[][..], &["--record-whole"][..]] {
        let scratch = Scratch::new();
        let ended = recorded(&scratch, flags);
        let report = ended.json();
        let (packets, changes, verdicts) = compared(&scratch.file("run.log"));
        let conservation = &report["conservation"];
        assert_eq!(Some(packets), conservation["in_packets"].as_u64(), "{report:#}");
        let decided = ["delivered_packets", "dropped_packets"].map(|key| conservation[key].as_u64().unwrap());
        assert_eq!(verdicts, decided.iter().sum::<u64>());
        assert_eq!(changes, 4, "the timeline's two and the two from inside");
        assert!(
            ended.err.contains("access.down.delay=20ms, access.loss=20%"),
            "noted in the report: {ended}"
        );
        for key in ["dropped_packets", "corrupted_packets", "duplicated_packets"] {
            let count: u64 = ["access.up", "access.down"]
                .map(|link| direction(&report, link)[key].as_u64().unwrap())
                .iter()
                .sum();
            assert!(count > 0, "no {key}: {report:#}");
        }

        // Not only the verdicts: what the links did is the same.
        let again = replay(&scratch.file("run.log")).expect(0).json();
        assert_eq!(again["kind"], "replay");
        for link in ["access.up", "access.down"] {
            let (first, second) = (direction(&report, link), direction(&again, link));
            for key in
                ["offered", "delivered", "drops", "duplicated_packets", "corrupted_packets", "wire_bits"]
            {
                assert_eq!(first[key], second[key], "{key} of {link}");
            }
        }
        assert_eq!(report["pairs"], again["pairs"], "delays to the nanosecond");
    }
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_log_that_was_cut_in_the_middle_replays_as_far_as_it_goes() {
    let scratch = Scratch::new();
    recorded(&scratch, &[]);
    let log = fs::read(scratch.file("run.log")).unwrap();
    let (all, _, _) = compared(&scratch.file("run.log"));
    let half = scratch.file("half.log");
    fs::write(&half, &log[..log.len() / 2]).unwrap();
    let (packets, _, verdicts) = compared(&half);
    assert!(packets > 0 && packets < all && verdicts > 0, "{packets} of {all}, {verdicts} compared");
    let ended = finish(&mut narrows(["sim", "--replay", half.to_str().unwrap()])).expect(0);
    assert!(ended.out.contains("the log ends early"), "{ended}");
}

#[test]
#[ignore = "needs namespaces, ping"]
fn the_log_of_a_killed_run_replays() {
    let _turn = crate::leftovers::turn();
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let line = "ping -q -i 0.01 -c 50 $NARROWS_SERVER; echo ready; exec sleep 1000";
    let flags = ["--rate", "1mbit", "--delay", "1ms", "--loss", "10%", "--record", log.to_str().unwrap()];
    let mut started = start(&mut run(flags, line));
    started.until_it_says("ready");
    eventually("something is on the disk", || fs::metadata(&log).is_ok_and(|data| data.len() > 1000));
    started.signal("KILL");
    assert_eq!(started.wait().ended_by(), Some(9));
    let (packets, _, verdicts) = compared(&log);
    assert!(packets > 10 && verdicts > 10, "{packets} packets, {verdicts} verdicts");
    crate::leftovers::clean();
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_replay_writes_every_output() {
    let scratch = Scratch::new();
    recorded(&scratch, &["--record-whole"]);
    let [log, csv, series, capture] =
        ["run.log", "packets.csv", "series.csv", "all.pcapng"].map(|name| scratch.file(name));
    let mut arguments = vec!["sim", "--quiet", "--replay", log.to_str().unwrap()];
    arguments.extend(["--packets", csv.to_str().unwrap(), "--series", series.to_str().unwrap()]);
    arguments.extend(["--capture", capture.to_str().unwrap()]);
    let ended = finish(&mut narrows(arguments)).expect(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", ""));
    let (_, _, verdicts) = compared(&log);
    let csv = fs::read_to_string(csv).unwrap();
    let decided = crate::traffic::rows(&csv).iter().filter(|row| row["verdict"] != "inside").count();
    assert_eq!(decided as u64, verdicts);
    assert!(fs::read_to_string(series).unwrap().lines().count() > 2);
    assert!(fs::metadata(capture).unwrap().len() > 1000);
}
