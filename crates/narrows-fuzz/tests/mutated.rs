//! Each reader of bytes from outside, over mutations of its seeds: the same ones at each run. A fuzzer goes on from there
//! (`make fuzz`).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use narrows_fuzz::{TARGETS, Target};

/// How many mutations a target gets: seconds in all. Optimised, a hundred times as many are as quick.
const MUTATIONS: u32 = if cfg!(debug_assertions) { 2_000 } else { 200_000 };

fn run(name: &str, mutations: u32) {
    Target::named(name).unwrap().run(0x6e61_7272_6f77, mutations);
}

#[test]
fn frames() {
    // Parsed, edited and answered as each of four link layers.
    run("frame", 10 * MUTATIONS);
}

#[test]
fn networks() {
    // A mutation has some twenty frames.
    run("network", MUTATIONS / 5);
}

#[test]
fn captures_and_logs() {
    run("capture", MUTATIONS);
    run("log", MUTATIONS);
}

#[test]
fn scenarios() {
    run("scenario", MUTATIONS / 4);
}

#[test]
fn scripts_and_words() {
    run("ipfw", MUTATIONS);
    run("tc", MUTATIONS);
    run("netem", MUTATIONS);
}

#[test]
fn compose_files_and_engines() {
    run("compose", MUTATIONS / 10);
    run("cni", MUTATIONS / 10);
    run("engine", MUTATIONS / 2);
}

#[test]
fn tables() {
    run("table", MUTATIONS);
}

#[test]
fn protocols() {
    run("control", MUTATIONS / 2);
    run("toxic", MUTATIONS / 2);
    run("feed", MUTATIONS);
    run("guest", MUTATIONS);
    run("rings", MUTATIONS);
    run("trains", MUTATIONS);
    run("replies", MUTATIONS / 2);
}

/// Rules against an interpreter of them, and a replay against the run that was recorded.
#[test]
fn two_ways_agree() {
    run("rules", MUTATIONS / 5);
    run("replay", MUTATIONS / 10);
}

#[test]
fn networks_of_other_tools() {
    run("topology", MUTATIONS / 2);
    run("lab", MUTATIONS / 2);
}

#[test]
fn reports() {
    run("report", MUTATIONS / 4);
}

/// What fuzzers found before: `found/TARGET/NAME`.
#[test]
fn what_was_found() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found");
    let mut count = 0;
    for target in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let check = Target::named(target.file_name().to_str().unwrap()).unwrap().check;
        for input in std::fs::read_dir(target.path()).unwrap().map(Result::unwrap) {
            check(&std::fs::read(input.path()).unwrap());
            count += 1;
        }
    }
    assert!(count >= 3);
}

/// Reports whose numbers contradict each other, which a fuzzer found: they are shown, too.
#[test]
fn reports_that_cannot_be() {
    let report = narrows_fuzz::runs::reports().swap_remove(0);
    let text = String::from_utf8(report).unwrap();
    let last = u64::MAX.to_string();
    for name in ["fragment_packets", "start_ns", "in_packets", "receive_ring_dropped_packets", "packets"] {
        let name = format!("\"{name}\":");
        let mut wrong = text.clone();
        for (at, _) in text.rmatch_indices(&name) {
            let from = at + name.len();
            let to = from + wrong[from..].find([',', '}']).unwrap();
            wrong.replace_range(from..to, &last);
        }
        assert_ne!(wrong, text, "{name}");
        narrows_fuzz::runs::report(wrong.as_bytes());
    }
}

/// Each connection starts a runtime.
#[test]
fn requests() {
    run("web", MUTATIONS / 10);
    run("toxi", MUTATIONS / 10);
}

#[test]
fn modules() {
    run("module", MUTATIONS / 10);
}

/// A target that no test calls, or no fuzzer, would rot.
#[test]
fn every_target_has_a_fuzzer() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    // They are all built with counters that only a fuzzer reads: another program there would not link.
    let programs = manifest.lines().filter(|line| line.starts_with("path = "));
    assert!(programs.clone().all(|line| line.starts_with("path = \"fuzz_targets/")), "{manifest}");
    assert_eq!(programs.count(), TARGETS.len());
    for target in TARGETS {
        let path = format!("fuzz_targets/{}.rs", target.name);
        assert!(folder.join(&path).exists() && manifest.contains(&path), "{path}");
    }
}

/// The table of executions in `docs/trust.md` is that of `fuzz/executions.csv`; with NARROWS_BLESS=1 it is written.
#[test]
fn the_table_of_executions_is_that_of_the_counts() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let counts = std::fs::read_to_string(root.join("fuzz/executions.csv")).unwrap();
    let mut lines = counts.lines();
    assert_eq!(lines.next(), Some("target,executions,edges,features,inputs,findings"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut table =
        "| target | reads | executions | edges | inputs | findings |\n|---|---|---|---|---|---|\n".to_owned();
    let (mut all, mut found) = (0, 0);
    for target in TARGETS {
        let Some(row) = rows.iter().find(|row| row[0] == target.name) else {
            table += &format!("| `{}` | {} | – | – | – | – |\n", target.name, target.reads);
            continue;
        };
        let [executions, edges, inputs, findings] = [row[1], row[2], row[4], row[5]].map(number);
        (all, found) = (all + executions, found + findings);
        table += &format!(
            "| `{}` | {} | {} | {edges} | {inputs} | {findings} |\n",
            target.name,
            target.reads,
            grouped(executions)
        );
    }
    assert!(rows.iter().all(|row| Target::named(row[0]).is_some()), "a row of a target that is gone");
    table += &format!("| all | | {} | | | {found} |\n", grouped(all));
    let path = root.join("docs/trust.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- executions -->\n").unwrap();
    let (there, after) = rest.split_once("<!-- end -->\n").unwrap();
    if std::env::var_os("NARROWS_BLESS").is_some() {
        std::fs::write(&path, format!("{before}<!-- executions -->\n{table}<!-- end -->\n{after}")).unwrap();
    } else {
        assert_eq!(there, table, "NARROWS_BLESS=1 writes it");
    }
}

/// As in 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|part| str::from_utf8(part).unwrap()).collect();
    parts.join(",")
}
