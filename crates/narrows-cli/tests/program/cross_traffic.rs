//! The scenario's own traffic beside real programs: it shares queues with their packets, and nobody receives it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Finished, Scratch, direction, finish, narrows, pair, quoted, run, sound};
use crate::roles::role;
use crate::traffic::rows;

/// What became of a source of traffic.
#[track_caller]
fn source<'a>(report: &'a Value, name: &str) -> &'a Value {
    let all = report["generated"].as_array().unwrap();
    all.iter().find(|source| source["name"] == name).unwrap_or_else(|| panic!("no {name}: {report:#}"))
}

#[track_caller]
fn number(report: &Value, name: &str, key: &str) -> u64 {
    source(report, name)[key].as_u64().unwrap_or_else(|| panic!("no {key}: {report:#}"))
}

/// A replay reaches the same verdict for every packet.
#[track_caller]
fn replays(log: &Path) -> Finished {
    let ended = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()])).expect(0);
    assert!(ended.out.contains("all identical, to the nanosecond"), "{ended}");
    ended
}

/// Each flow has half of the link: the source takes its half, and the program's burst, which would fill the link for 1.2 s,
/// takes 2.4 s.
#[test]
#[ignore = "needs namespaces"]
fn a_program_beside_a_source_at_half_the_rate_gets_the_other_half() {
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let server = role("udp-server");
    let flags = ["--rate", "20mbit", "--delay", "5ms", "--queue", "3000 packets", "--scheduler", "drr"];
    let traffic = r#"{ name = "half", constant = "10mbit", length = "1498 bytes" }"#;
    let mut all = flags.to_vec();
    all.extend(["--traffic", traffic, "--on", "server", &server, "--json", "-"]);
    all.extend(["--record", log.to_str().unwrap()]);
    let report = finish(&mut run(all, &role("udp-burst:2000"))).expect(0).json();
    sound(&report);
    // From the first departure to the last, by the engine's instants: it does not matter how fast this machine is.
    let program = pair(&report, "client.link", "server.link");
    assert_eq!(program["delivered"]["packets"], 2000, "generated packets are none of the program's");
    let rate = program["delivered"]["rate_bps"].as_f64().unwrap();
    assert!((rate / 10e6 - 1.0).abs() < 0.01, "{rate} bit/s");
    // The source sent what was due until the end, one packet each 1,198,400 ns, the first at 0; none was dropped.
    let due = report["end_ns"].as_u64().unwrap() / 1_198_400 + 1;
    assert_eq!(number(&report, "half", "offered_packets"), due);
    assert_eq!(number(&report, "half", "dropped_packets") + number(&report, "half", "missed_packets"), 0);
    let (delivered, inside) =
        (number(&report, "half", "delivered_packets"), number(&report, "half", "inside_packets"));
    assert_eq!(delivered + inside, due);
    assert_eq!(source(&report, "half")["delay"]["packets"], delivered);
    replays(&log);
}

/// Two links: real packets cross one of them. On the other there is each kind of source, and so the same as in virtual time.
const BOTH: &str = r#"
seed = 5
[hosts.client]
[hosts.server]
[hosts.left]
[hosts.right]
[links.busy]
between = ["client", "server"]
rate = "2mbit"
delay = "2ms"
loss = "2%"
[links.quiet]
between = ["left", "right"]
rate = "2mbit"
delay = "5ms"
jitter = "1ms"
loss = "1%"
duplicate = "1%"
[[timeline]]
at = "400ms"
set = { "quiet.rate" = "1mbit", "busy.delay" = "4ms" }
[[traffic]]
name = "even"
from = "left"
to = "right"
constant = "300kbit"
length = "500 bytes"
[[traffic]]
name = "mixed"
from = "right"
to = "left"
poisson = "100/s"
length = { mix = [{ length = "40 bytes", weight = 7 }, { length = "1500 bytes", weight = 1 }] }
[[traffic]]
name = "bursty"
from = "left"
to = "right"
on-off = { pace = "200/s", on = { exponential = "100ms" }, off = { pareto = { mean = "100ms", shape = 1.5 } } }
[[traffic]]
name = "flow"
from = "left"
to = "right"
aimd = {}
[[traffic]]
name = "pages"
from = "left"
to = "right"
web = { pace = "10/s", response = "20 kB" }
[[traffic]]
name = "names"
from = "left"
to = "right"
dns = { pace = "20/s" }
[[traffic]]
name = "beside"
from = "client"
to = "server"
poisson = "1mbit"
"#;

#[test]
#[ignore = "needs namespaces, ping"]
fn sources_send_the_same_live_as_in_virtual_time() {
    let scratch = Scratch::new();
    let scenario = scratch.write("both.toml", BOTH);
    let [log, live, virtual_csv] = ["run.log", "live.csv", "virtual.csv"].map(|name| scratch.file(name));
    let path = |file: &'static str| scratch.file(file).to_str().unwrap().to_owned();
    let arguments = ["run", scenario.to_str().unwrap(), "--record", log.to_str().unwrap(), "--json", "-"];
    let line = "exec >&2; ping -q -i 0.01 -c 150 $NARROWS_HOST_SERVER; true";
    let report = finish(&mut narrows(arguments.into_iter().chain(["--", "sh", "-c", line]))).expect(0).json();
    sound(&report);
    replays(&log);
    finish(&mut narrows(["sim", "--replay", &path("run.log"), "--packets", &path("live.csv")])).expect(0);
    let arguments = ["sim", scenario.to_str().unwrap(), "--packets", &path("virtual.csv")];
    let end = format!("{}ns", report["end_ns"]);
    finish(&mut narrows(arguments.into_iter().chain(["--duration", &end]))).expect(0);
    let (live, virtual_csv) = (fs::read_to_string(live).unwrap(), fs::read_to_string(virtual_csv).unwrap());
    let (live, virtual_time) = (rows(&live), rows(&virtual_csv));
    let end = report["end_ns"].as_u64().unwrap();
    for source in ["even", "mixed", "bursty", "flow", "pages", "names", "beside"] {
        // On the busy link, what was offered is the same, and not what became of it: there, pings were in the way.
        // Those that were inside at the end have no row: with more before them, those of the last tenths of a second.
        let (columns, end): (&[&str], u64) = match source {
            "beside" => (&["arrival_ns", "length_bytes"], end - 500_000_000),
            _ => (&["port", "number", "copy", "arrival_ns", "length_bytes", "verdict", "departure_ns"], end),
        };
        let of = |all: &[std::collections::BTreeMap<&str, &str>]| -> Vec<Vec<String>> {
            let mut its: Vec<Vec<String>> = all
                .iter()
                .filter(|row| row["feed"] == source && row["arrival_ns"].parse::<u64>().unwrap() < end)
                .map(|row| columns.iter().map(|column| row[column].into()).collect())
                .collect();
            its.sort();
            its
        };
        let (live, virtual_time) = (of(&live), of(&virtual_time));
        assert!(live.len() > 20, "{source}: {}", live.len());
        assert_eq!(live, virtual_time, "{source}");
        let offered = number(&report, source, "offered_packets");
        assert!(offered > 0 && number(&report, source, "missed_packets") == 0, "{source}");
    }
    // What the applications counted is in the report of the run, too.
    assert!(report["applications"].as_array().unwrap().iter().any(|app| app["succeeded"].as_u64() > Some(0)));
}

#[test]
#[ignore = "needs namespaces, ping"]
fn generated_packets_reach_no_interface_and_stats_shows_them() {
    let itself = quoted(crate::common::NARROWS);
    // What came to the client's interface, counted by the kernel; 500 packets a second are generated for it.
    let line = format!(
        "ping -q -i 0.05 -c 20 $NARROWS_SERVER >&2; {itself} stats --json > stats.json || exit 3; cat /proc/net/dev"
    );
    let scratch = Scratch::new();
    let flags = ["--rate", "10mbit", "--traffic", "down:constant=500/s", "--json", "report.json"];
    let ended = finish(run(flags, &line).current_dir(scratch.path())).expect(0);
    let received = |interface: &str| -> Option<u64> {
        let line = ended.out.lines().map(str::trim).find(|line| line.starts_with(interface))?;
        line.split_whitespace().nth(2)?.parse().ok()
    };
    let names = ended.out.lines().filter_map(|line| line.trim().split_once(':')).map(|(name, _)| name);
    let most = names.filter(|name| *name != "lo").filter_map(|name| received(&format!("{name}:"))).max();
    assert!(most.is_some_and(|packets| (20..200).contains(&packets)), "{most:?}: {ended}");
    let read =
        |name: &str| -> Value { serde_json::from_slice(&fs::read(scratch.file(name)).unwrap()).unwrap() };
    let (stats, report) = (read("stats.json"), read("report.json"));
    sound(&report);
    let early = number(&stats, "traffic-1", "offered_packets");
    assert!(early >= 400, "{stats:#}");
    assert!(early < number(&report, "traffic-1", "offered_packets"), "{report:#}");
    assert!(number(&report, "traffic-1", "delivered_packets") > 400);
}

/// A thousand million packets a second are beyond any machine: what is left out is counted, and programs get through.
#[test]
#[ignore = "needs namespaces, ping"]
fn what_cannot_be_generated_in_time_is_counted_and_named() {
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    // Two tenths of a second of it, which is 200 million packets, and then all is well again.
    let traffic = r#"{ name = "mad", constant = "1000000000/s", length = "100 bytes" }"#;
    let flags =
        ["--rate", "down/10mbit", "--traffic", traffic, "--json", "-", "--record", log.to_str().unwrap()];
    let line = "exec >&2; ping -q -c 1 -W 20 $NARROWS_SERVER; true";
    let ended = finish(&mut run(flags, line)).expect(0);
    let report = ended.json();
    sound(&report);
    assert!(number(&report, "mad", "missed_packets") > 0, "{report:#}");
    assert!(number(&report, "mad", "offered_packets") > 0, "{report:#}");
    let notes = report["notes"].as_array().unwrap();
    let said = |note: &Value| note.as_str().is_some_and(|note| note.contains("of mad were skipped"));
    assert!(notes.iter().any(said), "{notes:?}");
    replays(&log);
}

#[test]
#[ignore = "needs namespaces"]
fn a_capture_is_played_beside_programs() {
    let scratch = Scratch::new();
    let (capture, log) = (scratch.file("played.pcapng"), scratch.file("run.log"));
    let (capture, log) = (capture.to_str().unwrap(), log.to_str().unwrap());
    let flags = ["sim", "--rate", "100mbit", "--duration", "500ms", "--traffic", "up:poisson=1000/s"];
    let simulated = finish(&mut narrows(flags.into_iter().chain(["--capture", capture, "--json", "-"])));
    let delivered = direction(&simulated.expect(0).json(), "link.up")["delivered"]["packets"].clone();
    let traffic = format!("{{ name = \"played\", capture = {capture:?} }}");
    let flags = ["--rate", "10mbit", "--traffic", &traffic, "--json", "-", "--record", log];
    let report = finish(&mut run(flags, "sleep 1.5")).expect(0).json();
    sound(&report);
    let sum = number(&report, "played", "offered_packets") + number(&report, "played", "missed_packets");
    assert_eq!(delivered.as_u64(), Some(sum), "{report:#}");
    replays(Path::new(log));
}

/// Each packet thread has the sources of its own links; one record and one report have all.
#[test]
#[ignore = "needs namespaces, ping"]
fn sources_live_on_the_threads_of_their_links() {
    let scratch = Scratch::new();
    let scenario = scratch.write("both.toml", BOTH);
    let log = scratch.file("run.log");
    let itself = quoted(crate::common::NARROWS);
    let arguments = ["run", scenario.to_str().unwrap(), "--shards", "2", "--record", log.to_str().unwrap()];
    let line = format!(
        "exec >&2; ping -q -i 0.01 -c 50 $NARROWS_HOST_SERVER; {itself} set quiet.rate=500kbit busy.loss=5% || exit 3; \
         ping -q -i 0.01 -c 50 $NARROWS_HOST_SERVER; true"
    );
    let arguments = arguments.into_iter().chain(["--json", "-", "--", "sh", "-c", &line]);
    let report = finish(&mut narrows(arguments)).expect(0).json();
    sound(&report);
    assert_eq!(report["host"]["threads"].as_array().map(Vec::len), Some(2), "{report:#}");
    for source in ["even", "mixed", "bursty", "flow", "pages", "names", "beside"] {
        assert!(number(&report, source, "delivered_packets") > 0, "{source}: {report:#}");
    }
    replays(&log);
}

#[test]
fn what_is_no_traffic_is_refused() {
    for arguments in
        [["run", "--traffic", "flood=9mbit", "--", "true"], ["run", "--traffic", "constant=9", "--", "true"]]
    {
        let ended = finish(&mut narrows(arguments)).expect(2);
        assert!(ended.err.contains("--traffic"), "{ended}");
    }
}

/// A download whose acknowledgements wait for a slow uplink, with a filter of them: the segments in the log say enough for a
/// replay to drop the same ones.
#[test]
#[ignore = "needs namespaces, ping"]
fn acknowledgements_of_generated_tcp_are_filtered_live_and_in_the_replay() {
    const SCENARIO: &str = r#"
seed = 7
[hosts.client]
[hosts.server]
[links.dsl]
between = ["client", "server"]
down.rate = "10mbit"
delay = "10ms"
up.scheduler = { type = "cake", bandwidth = "100kbit", overhead = 0, ack-filter = "on" }
[[traffic]]
name = "download"
from = "client"
to = "server"
file = { size = "500 kB", users = 1, patience = "1000s" }
"#;
    let scratch = Scratch::new();
    let (file, log) = (scratch.write("dsl.toml", SCENARIO), scratch.file("run.log"));
    let (file, log_path) = (file.to_str().unwrap(), log.to_str().unwrap());
    let line = "ping -q -c 10 -i 0.2 $NARROWS_SERVER >&2";
    let live = ["run", file, "--record", log_path, "--json", "-", "--", "sh", "-c", line];
    let report = finish(&mut narrows(live)).expect(0).json();
    sound(&report);
    let redundant = |report: &Value| {
        let tin = &direction(report, "dsl.up")["classes"][0];
        (tin["name"].clone(), tin["redundant_acks"].as_u64().unwrap())
    };
    assert!(redundant(&report).1 > 10, "{report:#}");
    replays(&log);
    let again = finish(&mut narrows(["sim", "--json", "-", "--replay", log_path])).expect(0).json();
    assert_eq!(redundant(&again), redundant(&report));
    assert_eq!(direction(&again, "dsl.up")["drops"], direction(&report, "dsl.up")["drops"]);
    // Delays are those of the ping alone, in both.
    let packets = |report: &Value| {
        let pairs = report["pairs"].as_array().unwrap().iter();
        pairs
            .map(|pair| (pair["from_port"].clone(), pair["delivered"]["packets"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(packets(&again), packets(&report));
    assert!(packets(&again).iter().all(|(_, packets)| packets.as_u64().unwrap() <= 20), "{again:#}");
}
