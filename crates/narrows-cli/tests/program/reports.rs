//! What is printed when a run has ended, and reports that are kept.

use std::fs;
use std::process::Command;

use crate::common::{Finished, Scratch, finish, narrows, run};

/// A state folder of its own, and the program's defaults.
fn with(scratch: &Scratch, mut command: Command) -> Finished {
    finish(command.env_remove("NARROWS_REPORT").env("XDG_STATE_HOME", scratch.file("state")))
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_run_ends_with_a_summary_and_its_report_is_kept() {
    let scratch = Scratch::new();
    let line = "ping -q -c 5 -i 0.02 $NARROWS_SERVER";
    let command = run(["--rate", "10mbit", "--delay", "5ms", "--loss", "1%"], line);
    let ended = with(&scratch, command).expect(0);
    let lines: Vec<&str> = ended.err.trim_start().lines().collect();
    assert!(lines.len() <= 12, "{ended}");
    assert!(lines[0].starts_with("--rate 10mbit --delay 5ms --loss 1%: live, "), "{ended}");
    assert!(lines[1].starts_with("link ") && lines[2].starts_with("link.up  "), "{ended}");
    assert!(lines[2].contains(" of 10.00 Mbit/s"), "{ended}");
    assert!(ended.err.contains("client → server     5.0") && ended.err.contains("  5 ms\n"), "{ended}");
    let trust = lines[lines.len() - 2];
    assert!(trust.contains("accurate: p99 lateness "), "{ended}");
    assert!(!ended.err.contains('\x1b'), "colours are for terminals: {ended}");
    assert_eq!(lines[lines.len() - 1], "(narrows report shows everything)");
    // The last run in full, and as it was written for programs.
    let full = with(&scratch, narrows(["report"])).expect(0).out;
    assert!(full.contains("\nlink.up, client → server\n") && full.contains("\nlateness "), "{full}");
    let json = with(&scratch, narrows(["report", "--json"])).expect(0);
    let file = scratch.write("run.json", &json.out);
    let again = with(&scratch, narrows(["report", file.to_str().unwrap()])).expect(0).out;
    assert_eq!(again, full);
    let summary = with(&scratch, narrows(["report", file.to_str().unwrap(), "--summary"])).expect(0).out;
    assert!(ended.err.contains(&summary), "{summary}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_report_that_cannot_be_written_is_printed_and_kept() {
    let scratch = Scratch::new();
    let ended = with(&scratch, run(["--delay", "1ms", "--json", "/dev/full"], "true")).expect(2);
    assert!(ended.err.contains("--delay 1ms: live, ") && ended.err.contains("/dev/full"), "{ended}");
    assert!(with(&scratch, narrows(["report"])).expect(0).out.starts_with("--delay 1ms: live, "));
}

#[test]
fn how_much_is_printed() {
    let scratch = Scratch::new();
    let simulated = |flags: &[&str]| {
        let mut command = narrows(["sim", concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/adsl.toml")]);
        command.args(["--duration", "100ms"]).args(flags);
        command
    };
    let full = with(&scratch, simulated(&["--report", "full"])).expect(0).out;
    assert!(full.contains("\naccess.down, "), "{full}");
    let summary = with(&scratch, simulated(&[])).expect(0).out;
    assert!(summary.lines().count() <= 12 && summary.ends_with("exact: each event has its exact instant\n"));
    assert_eq!(with(&scratch, simulated(&["--report", "summary"])).expect(0).out, summary);
    for nothing in [&["--report", "none"][..], &["--quiet"]] {
        assert_eq!(with(&scratch, simulated(nothing)).expect(0).out, "");
    }
    // The variable says what holds without a flag.
    let state = scratch.file("state");
    let by_variable = |value: &str, flags: &[&str]| {
        finish(simulated(flags).env("NARROWS_REPORT", value).env("XDG_STATE_HOME", &state))
    };
    assert_eq!(by_variable("full", &[]).expect(0).out, full);
    assert_eq!(by_variable("full", &["--report", "summary"]).expect(0).out, summary);
    let wrong = by_variable("some", &[]).expect(2);
    assert!(wrong.err.contains("NARROWS_REPORT=some: expected full, summary or none"), "{wrong}");
    let both = with(&scratch, simulated(&["--quiet", "--report", "full"])).expect(2);
    assert!(both.err.contains("cannot be used with"), "{both}");
}

#[test]
fn the_last_twenty_reports_are_kept() {
    let scratch = Scratch::new();
    let nothing = with(&scratch, narrows(["report"])).expect(2);
    assert!(nothing.err.starts_with("narrows: no report to show: 0 are kept in "), "{nothing}");
    for seed in 0..23 {
        let mut command = narrows(["sim", concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/adsl.toml")]);
        command.args(["--quiet", "--duration", "10ms", "--seed", &seed.to_string()]);
        with(&scratch, command).expect(0);
    }
    let folder = scratch.file("state").join("narrows/reports");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 20);
    let list = with(&scratch, narrows(["report", "--list"])).expect(0).out;
    assert_eq!(list.lines().count(), 20, "{list}");
    assert!(list.starts_with("  1  ") && list.contains("adsl.toml: exact: "), "{list}");
    for (number, seed) in [("1", 22), ("20", 3)] {
        let one = with(&scratch, narrows(["report", number])).expect(0).out;
        assert!(one.lines().next().unwrap().ends_with(&format!("seed {seed}")), "{one}");
    }
    let beyond = with(&scratch, narrows(["report", "21"])).expect(2);
    assert!(beyond.err.contains("there is no kept report 21: 20 are kept in "), "{beyond}");
    // What cannot be kept is no worse for that.
    let file = scratch.write("file", "");
    let mut command = narrows(["sim", concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/adsl.toml")]);
    command.args(["--duration", "10ms"]).env("XDG_STATE_HOME", &file);
    assert!(finish(&mut command).expect(0).err.is_empty());
}

#[test]
fn what_is_no_report_is_said() {
    let scratch = Scratch::new();
    let file = |name: &str, text: &str| scratch.write(name, text).to_str().unwrap().to_owned();
    for (text, expected) in [
        ("nonsense", "expected ident at line 1"),
        ("{}", "missing field `schema`"),
        ("{\"schema\":7}", "a report of schema 7, expected schema 1 to 3"),
    ] {
        let ended = with(&scratch, narrows(["report", &file("one.json", text)])).expect(2);
        assert!(ended.err.contains(expected) && ended.err.contains("one.json: "), "{ended}");
        assert!(ended.err.contains("expected a report as `narrows run --json FILE` writes it"), "{ended}");
    }
    let ended = with(&scratch, narrows(["report", "no/such.json"])).expect(2);
    assert!(ended.err.contains("the report no/such.json cannot be read: No such file"), "{ended}");
}
