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
    run("rings", MUTATIONS);
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
