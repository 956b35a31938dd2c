//! `--series` and `--packets` as Parquet, read by Polars and DuckDB.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{Scratch, finish, narrows, python, run, start};

const NET: &str = "duration = \"3s\"\n[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\n\
                   delay = \"3ms\"\nqueue = \"3 packets\"\nloss = \"1%\"\n\
                   [[traffic]]\nname = \"much\"\nfrom = \"a\"\nto = \"b\"\npoisson = \"200/s\"\nlength = \"1000 bytes\"\n";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The number of rows, checked against the CSV file; `None` without the programs.
fn read(what: &str, parquet: &Path, csv: Option<&Path>) -> Option<u64> {
    let files = [what, text(parquet)].into_iter().chain(csv.map(text));
    python("parquet_tables.py", &files.collect::<Vec<_>>()).map(|rows| rows.trim().parse().unwrap())
}

#[test]
#[ignore = "needs python3"]
fn in_virtual_time_every_value_is_that_of_the_csv_file() {
    let scratch = Scratch::new();
    let net = scratch.write("net.toml", NET);
    let [packets, series] = ["packets", "series"]
        .map(|name| ["parquet", "csv"].map(|ending| scratch.file(&format!("{name}.{ending}"))));
    for form in 0..2 {
        let flags = [
            "sim",
            text(&net),
            "--packets",
            text(&packets[form]),
            "--series",
            text(&series[form]),
            "--quiet",
        ];
        finish(&mut narrows(flags)).expect(0);
    }
    for [parquet, csv] in [packets, series] {
        let lines = fs::read_to_string(&csv).unwrap().lines().count() as u64;
        assert!(lines > 60, "{lines}");
        if let Some(rows) = read("equal", &parquet, Some(&csv)) {
            assert_eq!(rows, lines - 1);
        }
        assert!(fs::metadata(&parquet).unwrap().len() < fs::metadata(&csv).unwrap().len());
    }
}

#[test]
#[ignore = "needs namespaces, python3, ping"]
fn a_live_series_adds_up_to_the_replay_in_virtual_time() {
    let scratch = Scratch::new();
    let net = scratch.write("net.toml", NET);
    let [live, log, again, packets, packets_csv] =
        ["live.parquet", "run.log", "again.csv", "p.parquet", "p.csv"].map(|name| scratch.file(name));
    let flags = [text(&net), "--series", text(&live), "--interval", "50ms", "--record", text(&log)];
    finish(&mut run(flags, "ping -q -c 10 -i 0.05 b; sleep 0.3")).expect(0);
    for packets in [&packets, &packets_csv] {
        let flags =
            ["sim", "--quiet", "--replay", text(&log), "--series", text(&again), "--packets", text(packets)];
        finish(&mut narrows(flags)).expect(0);
    }
    if let Some(rows) = read("sums", &live, Some(&again)) {
        assert!(rows > 6, "{rows}");
    }
    read("equal", &packets, Some(&packets_csv));
}

/// The scenario's own traffic and a program's packets over two links, with copies and drops: what a live run records of
/// each packet is what its replay in virtual time says, byte for byte.
#[test]
#[ignore = "needs namespaces, python3, ping"]
fn live_packet_records_are_those_of_the_replay() {
    let scratch = Scratch::new();
    let net = NET.replace("between = [\"a\", \"b\"]", "between = [\"a\", \"r\"]\nduplicate = \"5%\"")
        + "[routers.r]\n[links.m]\nbetween = [\"r\", \"b\"]\nrate = \"2mbit\"\ndelay = \"5ms\"\n";
    let net = scratch.write("net.toml", &net);
    let [live, parquet, log, again] =
        ["live.csv", "live.parquet", "run.log", "again.csv"].map(|name| scratch.file(name));
    let ping = "ping -q -c 10 -i 0.05 b; sleep 0.3";
    let flags = [text(&net), "--packets", text(&live), "--record", text(&log)];
    finish(&mut run(flags, &format!("{ping}; true"))).expect(0);
    finish(&mut narrows(["sim", "--quiet", "--replay", text(&log), "--packets", text(&again)])).expect(0);
    let (rows, expected) = (fs::read_to_string(&live).unwrap(), fs::read_to_string(&again).unwrap());
    assert!(rows == expected, "{} and {} rows", rows.lines().count(), expected.lines().count());
    for part in [",much,udp,", ",0,,icmp", ",dropped,l.up,queue full,", ";m.up:"] {
        assert!(rows.contains(part), "no {part}");
    }
    // As Parquet, and the note of a file that reached its limit.
    let flags = [text(&net), "--packets", text(&parquet), "--record", text(&log)];
    finish(&mut run(flags, &format!("{ping}; true"))).expect(0);
    finish(&mut narrows(["sim", "--quiet", "--replay", text(&log), "--packets", text(&again)])).expect(0);
    read("equal", &parquet, Some(&again));
    let flags = [text(&net), "--packets", text(&live), "--packets-limit", "0"];
    let run = finish(&mut run(flags, "sleep 0.3")).expect(0);
    assert!(run.err.contains("live.csv reached their size limit: "), "{run}");
}

#[test]
#[ignore = "needs namespaces, python3"]
fn a_live_series_is_complete_after_each_orderly_end() {
    for signal in ["INT", "TERM", "HUP"] {
        let scratch = Scratch::new();
        let file = scratch.file("s.parquet");
        let flags = ["--rate", "1mbit", "--series", text(&file), "--interval", "20ms"];
        let mut started = start(&mut run(flags, "echo ready; sleep 1; echo over; sleep 60"));
        started.until_it_says("over");
        started.signal(signal);
        started.wait();
        let bytes = fs::read(&file).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        if let Some(rows) = read("rows", &file, None) {
            assert!(rows >= 20, "{rows} rows after {signal}");
        }
    }
}

#[test]
#[ignore = "needs namespaces"]
fn files_that_cannot_be_written_are_named() {
    let scratch = Scratch::new();
    let full = scratch.file("full.parquet");
    symlink("/dev/full", &full).unwrap();
    for refused in [
        finish(&mut run(["--series", text(&full)], "true")),
        finish(&mut narrows(["sim", "--rate", "1mbit", "--duration", "1s", "--packets", text(&full)])),
    ] {
        let named = format!("{}: No space left on device", text(&full));
        assert!(refused.code() == 2 && refused.err.contains(&named), "{refused}");
    }
    let file = scratch.file("s.parquet");
    finish(&mut narrows(["sim", "--rate", "1mbit", "--duration", "1s", "--quiet", "--series", text(&file)]))
        .expect(0);
    for refused in [
        finish(&mut narrows(["plot", text(&file), "--plot", "x.svg"])),
        finish(&mut narrows(["compare", text(&file), text(&file)])),
    ] {
        assert!(refused.code() == 2 && refused.err.contains("s.parquet: a Parquet file"), "{refused}");
    }
}
