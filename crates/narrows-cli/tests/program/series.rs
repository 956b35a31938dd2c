//! `--series` of live runs, and `narrows plot`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::common::{Scratch, finish, narrows, quoted, run};

const NET: &str = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\nqueue = \"3 packets\"\n\
                   [[traffic]]\nname = \"much\"\nfrom = \"a\"\nto = \"b\"\nconstant = \"200/s\"\nlength = \"1000 bytes\"\n";

/// The sums of a column over the rows of each link.
fn sums(series: &str, column: &str) -> BTreeMap<String, u64> {
    let mut lines = series.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let mut sums = BTreeMap::new();
    for row in lines {
        *sums.entry(row[at("name")].to_owned()).or_default() += row[at(column)].parse::<u64>().unwrap();
    }
    sums
}

#[test]
#[ignore = "needs namespaces, ping"]
fn the_rows_of_a_series_add_up_to_the_report_and_are_drawn() {
    let scratch = Scratch::new();
    let (net, json) = (scratch.write("net.toml", NET), scratch.file("report.json"));
    let (file, log, picture) =
        (scratch.file("series.csv"), scratch.file("run.log"), scratch.file("plot.svg"));
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let flags = [
        &text(&net)[..],
        "--series",
        &text(&file),
        "--interval",
        "50ms",
        "--record",
        &text(&log),
        "--json",
        &text(&json),
    ];
    finish(&mut run(flags, "ping -q -c 10 -i 0.05 b; sleep 0.3")).expect(0);
    let series = fs::read_to_string(&file).unwrap();
    let report: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let totals = |of: fn(&Value) -> &Value| -> BTreeMap<String, u64> {
        let directions = report["directions"].as_array().unwrap().iter();
        directions.map(|one| (one["link"].as_str().unwrap().to_owned(), of(one).as_u64().unwrap())).collect()
    };
    assert_eq!(sums(&series, "delivered_packets"), totals(|one| &one["delivered"]["packets"]), "{series}");
    assert_eq!(sums(&series, "offered_packets"), totals(|one| &one["offered"]["packets"]));
    assert_eq!(sums(&series, "dropped_packets"), totals(|one| &one["dropped_packets"]));
    assert!(series.contains("queue full="), "{series}");
    // Intervals follow one another without a gap.
    let spans = series.lines().skip(1).filter(|line| line.contains(",l.up,"));
    let spans: Vec<(u64, u64)> = spans
        .map(|line| {
            let mut cells = line.split(',').map(|cell| cell.parse().unwrap_or_default());
            (cells.next().unwrap(), cells.next().unwrap())
        })
        .collect();
    assert!(spans.len() > 3 && spans.windows(2).all(|pair| pair[0].1 == pair[1].0), "{spans:?}");

    // A replay has the same packets in intervals of its own.
    let again = scratch.file("again.csv");
    finish(&mut narrows(["sim", "--replay", &text(&log), "--series", &text(&again)])).expect(0);
    let again = fs::read_to_string(&again).unwrap();
    let of_links = |line: &&str| line.split(',').nth(2) != Some("flow");
    let again: String = again.lines().filter(of_links).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(sums(&again, "delivered_packets"), sums(&series, "delivered_packets"));
    assert_eq!(again.lines().next(), series.lines().next());

    finish(&mut narrows(["plot", &text(&file), "--plot", &text(&picture)])).expect(0);
    let picture = fs::read_to_string(&picture).unwrap();
    for words in ["l.up", "throughput on the wire", "mean time in the queue", "drops"] {
        assert!(picture.contains(words), "{words}");
    }
    let refused =
        finish(&mut narrows(["plot", &text(&file), "--link", "no.up", "--plot", "x.svg"])).expect(2);
    assert!(refused.err.contains("--link no.up: no such link; links: l.down, l.up"), "{refused}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_series_that_cannot_be_kept_is_said_and_the_run_goes_on() {
    let full = finish(&mut run(["--series", "/dev/full"], "true")).expect(2);
    assert!(full.err.contains("the series /dev/full IS INCOMPLETE: No space left on device"), "{full}");
    let scratch = Scratch::new();
    let file = scratch.file("small.csv");
    let line = format!("sleep 0.3; wc -c < {}", quoted(file.to_str().unwrap()));
    let flags = ["--series", file.to_str().unwrap(), "--series-limit", "0", "--interval", "20ms"];
    let small = finish(&mut run(flags, &line)).expect(0);
    assert!(small.err.contains("reached its size limit: "), "{small}");
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1, "the head");
    for (flags, words) in [
        (&["--series", "-"][..], "the standard output is the program's"),
        (&["--series", "x.csv", "--interval", "1ms"], "--interval 1ms: at least 10ms in a live run"),
        (&["--interval", "1s"], "--series"),
        (&["--series", "/no/such/folder/x.csv"], "/no/such/folder/x.csv"),
    ] {
        let refused = finish(&mut run(flags.iter().copied(), "true"));
        assert!(refused.code() == 2 && refused.err.contains(words), "{words}: {refused}");
    }
}
