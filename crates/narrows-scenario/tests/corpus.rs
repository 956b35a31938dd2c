//! Public tc scripts, with the verdicts of the kernel and of narrows: a change of a verdict is seen.
//!
//! `tests/corpus/tc.txt` says what its columns are. `NARROWS_BLESS=1 cargo test -p narrows-scenario --test corpus` writes the
//! column of narrows again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};

use narrows_scenario::tc::Script;
use narrows_scenario::{Scenario, ScenarioError};

/// Of 1000 scripts that the kernel accepts, so many are accepted here at least.
const LEAST_ACCEPTED: usize = 920;

/// A line of the corpus.
struct Entry<'a> {
    kernel: &'a str,
    ours: &'a str,
    meaning: &'a str,
    source: &'a str,
    commands: &'a str,
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/tc.txt")
}

fn entry(line: &str) -> Option<Entry<'_>> {
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let columns: Vec<&str> = line.split('\t').collect();
    let [kernel, ours, meaning, source, commands] = columns[..] else { panic!("five columns: {line}") };
    assert!(matches!(kernel, "accepted" | "refused" | "lacks" | "unchecked"), "{kernel}: {line}");
    Some(Entry { kernel, ours, meaning, source, commands })
}

/// `accepted`, or `refused` and the word that the first error points at.
fn verdict(commands: &str) -> String {
    let script = commands.replace("; ", "\n");
    match accept(&script) {
        Ok(()) => "accepted".into(),
        Err(error) => format!("refused {}", word(&script, &error.to_string())).trim_end().to_owned(),
    }
}

fn accept(script: &str) -> Result<(), ScenarioError> {
    let scenario = Script::parse(script, "x.sh")?.scenario_text(false)?;
    Scenario::parse(&scenario, "scenario").map(drop)
}

/// What an error underlines in the script; nothing when it points elsewhere.
fn word<'a>(script: &'a str, error: &str) -> &'a str {
    let place = error.lines().find_map(|line| line.trim_start().strip_prefix("--> x.sh:"));
    let Some((line, column)) = place.and_then(|place| place.split_once(':')) else { return "" };
    let text = script.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
    let from: usize = column.parse().unwrap();
    let underline = error.lines().find_map(|line| line.split_once("| ")?.1.trim_start().strip_prefix('^'));
    let length = 1 + underline.map_or(0, |rest| rest.bytes().take_while(|byte| *byte == b'^').count());
    text.get(from - 1..(from - 1 + length).min(text.len())).unwrap_or(text)
}

#[test]
fn verdicts_are_those_of_the_corpus() {
    let text = std::fs::read_to_string(path()).unwrap();
    let judged = |line| entry(line).map(|entry| (verdict(entry.commands), entry));
    let lines: Vec<_> = text.lines().map(|line| (line, judged(line))).collect();
    let entries = || lines.iter().filter_map(|(_, entry)| entry.as_ref());
    let count = |kernel: &str, accepted: bool| {
        entries().filter(|(now, entry)| entry.kernel == kernel && (now == "accepted") == accepted).count()
    };
    let (both, refused) = (count("accepted", true), count("accepted", false));
    println!(
        "of {} scripts that the kernel accepts, {both} are accepted; of {} that it refuses, {}; of {} that it lacks words of, {}; of {} that it has not been asked about, {}",
        both + refused,
        count("refused", true) + count("refused", false),
        count("refused", true),
        count("lacks", true) + count("lacks", false),
        count("lacks", true),
        count("unchecked", true) + count("unchecked", false),
        count("unchecked", true),
    );
    if std::env::var_os("NARROWS_BLESS").is_some() {
        let renewed: String = lines
            .iter()
            .map(|(line, entry)| match entry {
                Some((now, Entry { kernel, meaning, source, commands, .. })) => {
                    format!("{kernel}\t{now}\t{meaning}\t{source}\t{commands}\n")
                }
                None => format!("{line}\n"),
            })
            .collect();
        std::fs::write(path(), renewed).unwrap();
    } else {
        let changed: Vec<String> = entries()
            .filter(|(now, entry)| entry.ours != now)
            .map(|(now, entry)| {
                format!("was {}, is {now}: [{}] {}", entry.ours, entry.source, entry.commands)
            })
            .collect();
        assert!(changed.is_empty(), "NARROWS_BLESS=1 renews the column:\n{}", changed.join("\n"));
    }
    assert!(both * 1000 >= (both + refused) * LEAST_ACCEPTED, "{both} of {}", both + refused);
}
