//! `narrows compare`: two simulated runs, and what cannot be compared.

use std::fs;

use serde_json::Value;

use crate::common::{Finished, Scratch, finish, narrows};

/// A transmission takes a millisecond.
const SERVICE_NS: f64 = 1e6;

/// Packets of constant length that come by Poisson: M/D/1 at this load. Writes NAME.json and NAME.csv.
fn simulate(scratch: &Scratch, name: &str, load: f64, flags: &str) -> (String, String) {
    let file = |end: &str| scratch.file(&format!("{name}.{end}")).to_str().unwrap().to_owned();
    let (json, csv) = (file("json"), file("csv"));
    let traffic = format!("{{ poisson = \"{}/s\", length = \"1000 bytes\" }}", load * 1000.0);
    let mut command = narrows(["sim", "--queue", "100000 packets", "--traffic", &traffic, "--quiet"]);
    finish(command.args(["--series", &csv, "--json", &json]).args(flags.split(' '))).expect(0);
    (json, csv)
}

const LONG: &str = "--rate 8mbit --duration 200s --interval 1s";

fn compare(arguments: &[&str]) -> Finished {
    finish(&mut narrows(["compare"].into_iter().chain(arguments.iter().copied())))
}

/// The mean wait of M/D/1 (Pollaczek and Khinchin).
fn wait(load: f64) -> f64 {
    load / (2.0 * (1.0 - load)) * SERVICE_NS
}

fn link<'a>(found: &'a Value, name: &str) -> &'a Value {
    found["series"]["links"].as_array().unwrap().iter().find(|link| link["link"] == name).unwrap()
}

#[track_caller]
fn covers(ends: &Value, expected: f64) {
    let end = |key: &str| ends[key].as_f64().unwrap();
    assert!(end("low") <= expected && expected <= end("high"), "{expected} is not in {ends}");
}

#[test]
fn queues_at_two_loads_differ_by_the_closed_form() {
    let scratch = Scratch::new();
    let (a_json, a) = simulate(&scratch, "a", 0.5, LONG);
    let (b_json, b) = simulate(&scratch, "b", 0.8, &format!("{LONG} --seed 2"));
    let found = compare(&[&a, &b, "--from", "20s", "--json"]).expect(0).json();
    assert_eq!((&found["schema"], &found["totals"]), (&1.into(), &Value::Null));
    let up = link(&found, "link.up");
    let sojourn = &up["sojourn_mean_ns"];
    covers(&sojourn["a"], wait(0.5));
    covers(&sojourn["b"], wait(0.8));
    covers(&sojourn["change"], wait(0.8) - wait(0.5));
    assert_eq!(sojourn["differs"], true);
    // Little: as many wait as come in the time that one waits.
    covers(&up["backlog_packets"]["change"], 0.8 * wait(0.8) / SERVICE_NS - 0.5 * wait(0.5) / SERVICE_NS);
    covers(&up["throughput_bps"]["change"], 0.3 * 8e6);
    assert_eq!(up["dropped_share"]["differs"], false);
    assert_eq!(up["a"]["batches"], 20);

    let (both_a, both_b) = (format!("{a_json},{a}"), format!("{b},{b_json}"));
    let text = compare(&[&both_a, &both_b]).expect(0).out;
    for words in [
        "A  ",
        ", seed 2\n",
        "link.up, client → server ",
        "one-way delay, ",
        "time in queue ",
        " *\n",
        "batches of 10",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let totals = compare(&[&a_json, &b_json, "--json"]).expect(0).json();
    let offered = &totals["totals"]["directions"][0]["offered_packets"];
    assert_eq!(
        offered["change"].as_i64().unwrap(),
        offered["b"].as_i64().unwrap() - offered["a"].as_i64().unwrap()
    );
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let scratch = Scratch::new();
    let (a_json, a) = simulate(&scratch, "a", 0.5, LONG);
    let (b_json, b) = simulate(&scratch, "b", 0.5, LONG);
    let (a, b) = (format!("{a_json},{a}"), format!("{b_json},{b}"));
    let unpaired = compare(&[&a, &b]).expect(0).out;
    assert!(unpaired.contains("--paired gives"), "{unpaired}");
    let paired = compare(&[&a, &b, "--paired"]).expect(0);
    assert!(paired.out.contains("the totals of both runs are the same"), "{paired}");
    assert!(paired.out.contains("no change differs from zero"), "{paired}");
    assert!(!paired.out.contains("note: ") && !paired.out.contains('\x1b'), "{paired}");
    let found = compare(&[&a, &b, "--paired", "--json"]).expect(0).json();
    for key in ["throughput_bps", "backlog_packets", "sojourn_mean_ns", "dropped_share"] {
        let change = &link(&found, "link.up")[key]["change"];
        assert_eq!([&change["low"], &change["high"]], [&Value::from(0.0); 2], "{key}");
    }
    // A seed's own chances are in both: what pairs see is the little that changed.
    let (_, a) = simulate(&scratch, "a", 0.5, LONG);
    let (_, c) = simulate(&scratch, "c", 0.5, &LONG.replace("8mbit", "7.9mbit"));
    let length = |flags: &[&str]| {
        let found = compare(&[&[&a, &c, "--json"], flags].concat()).expect(0).json();
        let change = link(&found, "link.up")["sojourn_mean_ns"]["change"].clone();
        change["high"].as_f64().unwrap() - change["low"].as_f64().unwrap()
    };
    assert!(length(&["--paired"]) < length(&[]) / 4.0);
}

#[test]
fn kept_reports_are_compared_by_number() {
    let scratch = Scratch::new();
    let state = scratch.file("state");
    for seed in ["1", "2"] {
        let mut command = narrows(["sim", "--rate", "1mbit", "--duration", "1s", "--quiet", "--seed", seed]);
        finish(command.env("XDG_STATE_HOME", &state)).expect(0);
    }
    let compared = finish(narrows(["compare", "2", "1"]).env("XDG_STATE_HOME", &state)).expect(0);
    assert!(compared.out.starts_with("A  2: ") && compared.out.contains("1 s, seed 2\n"), "{compared}");
    let refused = finish(narrows(["compare", "2", "3"]).env("XDG_STATE_HOME", &state)).expect(2);
    assert!(refused.err.contains("there is no kept report 3: 2 are kept in"), "{refused}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let scratch = Scratch::new();
    let (json, csv) = simulate(&scratch, "a", 0.5, "--rate 8mbit --duration 5s --interval 1s");
    let (_, other) = simulate(&scratch, "b", 0.5, "--rate 8mbit --duration 5s --interval 500ms");
    let file = |name: &str, text: &str| scratch.write(name, text).to_str().unwrap().to_owned();
    let nothing = file("nothing.txt", "a,b\n1,2\n");
    let elsewhere = file("elsewhere.csv", &fs::read_to_string(&csv).unwrap().replace("link.", "net."));
    let broken = file("broken.json", "{\"schema\":7}");
    for (arguments, expected) in [
        (&[&csv[..], &json][..], "is a series, "),
        (&[&csv, &nothing], "nothing.txt:1: no column kind: expected a file of --series\nneither a report"),
        (&[&json, &broken], "a report of schema 7, expected schema 1 to 3"),
        (&[&csv, "no/such.csv"], "cannot read no/such.csv: No such file"),
        (&[&csv, &elsewhere], "have no link in common: link.down, link.up and net.down, net.up"),
        (&[&csv, &csv, "--from", "4s"], "1 interval of link.down to compare; at least 2 are needed"),
        (&[&csv, &csv, "--from", "4s", "--to", "4s"], "--from 4 s is not before --to 4 s"),
        (&[&csv, &csv, "--from", "soon"], "--from: found `soon`, expected a time"),
        (&[&csv, &other, "--paired"], "differ: 5 of 1 s from 0 in "),
        (&[&json, &json, "--paired"], "add the series of both runs"),
        (&[&format!("{csv},{csv}"), &csv], "two of a kind, expected a report and a series"),
    ] {
        let refused = compare(arguments);
        assert!(refused.code() == 2 && refused.err.contains(expected), "{expected}: {refused}");
        assert_eq!(refused.out, "");
    }
    let few = compare(&[&csv, &other]).expect(0).out;
    assert!(few.contains("note: only 5 batches: the intervals are rough"), "{few}");
}
