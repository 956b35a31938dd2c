//! Writes the seeds of a target into a folder, for the fuzzer to begin with: `seeds TARGET FOLDER`.
//!
//! It is no program of `fuzz/`: those are built with counters that only a fuzzer reads, and do not link without one.

use std::fs;
use std::path::Path;

use narrows_fuzz::{TARGETS, Target};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, folder] = &arguments[..] else {
        eprintln!("seeds TARGET FOLDER; targets: {}", TARGETS.map(|target| target.name).join(", "));
        std::process::exit(2);
    };
    let Some(target) = Target::named(name) else {
        eprintln!("no target `{name}`; there are {}", TARGETS.map(|target| target.name).join(", "));
        std::process::exit(2);
    };
    fs::create_dir_all(folder)?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        fs::write(Path::new(folder).join(format!("seed-{number}")), seed)?;
    }
    let words: String = target.words.iter().map(|word| format!("\"{}\"\n", escaped(word))).collect();
    fs::write(Path::new(folder).with_extension("dict"), words)
}

/// As libFuzzer's dictionaries want it.
fn escaped(word: &str) -> String {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        0x20..0x7f => char::from(byte).into(),
        _ => format!("\\x{byte:02x}"),
    };
    word.bytes().map(byte).collect()
}
