//! That a packet thread moves packets and does nothing else, as far as its sources tell.

use std::fs;
use std::path::Path;

/// What is not done on a packet thread, by the words that it would take: putting into words, parsing texts, opening files,
/// waiting for other threads, starting programs, knowing what a scenario is.
const FORBIDDEN: &[&str] = &[
    "format!",
    "write!",
    "println!",
    "to_string(",
    "serde",
    "Scenario",
    "fs::",
    "File::",
    "OpenOptions",
    "Mutex",
    "RwLock",
    ".lock(",
    "Command::",
    "thread::sleep",
    ".join()",
    "Barrier",
    "Condvar",
    "from_str",
    ".parse::",
];

#[test]
fn nothing_but_packets_on_a_packet_thread() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![folder.join("data.rs")];
    files.extend(fs::read_dir(folder.join("data")).unwrap().map(|entry| entry.unwrap().path()));
    files.retain(|file| !file.ends_with("tests.rs"));
    assert!(files.len() > 10, "{files:?}");
    let mut found = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (number, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap();
            let words = FORBIDDEN.iter().filter(|word| line.contains(**word));
            found.extend(words.map(|word| format!("{name}:{}: {word}", number + 1)));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
