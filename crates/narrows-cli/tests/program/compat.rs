//! Files of earlier versions: they are read, and mean what they meant (docs/stability.md). A folder of `tests/compat` has what its
//! version read and wrote; it stays as it is when later versions come.

use std::fs;
use std::path::{Path, PathBuf};

use narrows_live::control::Request;

use crate::common::{Scratch, finish, narrows};

fn versions() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat");
    let mut found: Vec<PathBuf> = fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// FNV-1a, of 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The columns of the packet records as they were then; later ones come behind.
fn columns(csv: &str, count: usize) -> String {
    let line = |line: &str| line.split(',').take(count).collect::<Vec<_>>().join(",");
    csv.lines().map(|text| line(text) + "\n").collect()
}

/// `verdicts.txt` has a line for each scenario: its name, the number of columns and of packets, and the hash of the records of
/// three seconds with seed 5. If a mended fault changes one on purpose, change the line, and say so in the changelog.
#[test]
fn scenarios_of_earlier_versions_give_the_same_verdicts() {
    for folder in versions() {
        let kept = fs::read_to_string(folder.join("verdicts.txt")).unwrap();
        let mut wrong = Vec::new();
        for line in kept.lines() {
            let mut words = line.split(' ');
            let mut word = || words.next().unwrap();
            let (name, count) = (word(), word().parse().unwrap());
            let scratch = Scratch::new();
            let packets = scratch.file("packets.csv");
            let file = folder.join(name);
            let (file, packets) = (file.to_str().unwrap(), packets.to_str().unwrap());
            finish(&mut narrows(["sim", file, "--duration", "3s", "--seed", "5", "--packets", packets]))
                .expect(0);
            let found = columns(&fs::read_to_string(packets).unwrap(), count);
            let found = format!("{name} {count} {} {:016x}", found.lines().count() - 1, hash(&found));
            if found != line {
                wrong.push(format!("- {line}\n+ {found}"));
            }
        }
        assert!(wrong.is_empty(), "{}:\n{}", folder.display(), wrong.join("\n"));
        let scenarios = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let scenarios = scenarios.filter(|path| path.extension().is_some_and(|kind| kind == "toml"));
        assert_eq!(scenarios.count(), kept.lines().count());
    }
}

#[test]
fn logs_and_reports_of_earlier_versions_are_read() {
    for folder in versions() {
        let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let out = finish(&mut narrows(["sim", "--replay", &file("run.log")])).expect(0).out;
        assert!(out.contains("same verdicts") || out.contains("identical"), "{out}");
        let out = finish(&mut narrows(["report", &file("report.json")])).expect(0).out;
        assert!(out.contains("delivered"), "{out}");
        finish(&mut narrows(["compare", &file("report.json"), &file("report.json")])).expect(0);
    }
}

#[test]
fn requests_of_earlier_versions_are_understood() {
    for folder in versions() {
        let requests = fs::read_to_string(folder.join("requests.jsonl")).unwrap();
        assert!(requests.lines().count() > 10);
        for line in requests.lines() {
            let request: Result<Request, _> = serde_json::from_str(line);
            assert!(request.is_ok(), "{line}: {request:?}");
        }
    }
}
