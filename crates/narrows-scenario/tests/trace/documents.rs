//! The documentation's examples, and the files that come with the program, are read.

use std::fs;
use std::path::{Path, PathBuf};

use narrows_scenario::pattern::Pattern;
use narrows_scenario::trace::{Format, Trace};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_examples_of_the_documentation_are_right() {
    let page = fs::read_to_string(root().join("docs/traces.md")).expect("there is a page");
    let mut read = 0;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```").filter(|language| !language.is_empty()) else {
            continue;
        };
        let block: String =
            lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        let format = match language {
            "pattern" => {
                Pattern::read("docs/traces.md", block.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
                read += 1;
                continue;
            }
            "csv" => Format::CSV,
            "mahimahi" => Format::MAHIMAHI,
            "mm-link" => Format::MM_LINK,
            "json" => Format::NETEM_TRACE,
            "theaterq" => Format::THEATERQ,
            "sabre" => Format::SABRE,
            "pensieve" => Format::PENSIEVE,
            "alphartc" => Format::ALPHARTC,
            "genet" => Format::GENET,
            "ping" => Format::PING,
            "iperf" => Format::IPERF_TEXT,
            "speedtest-cli" => Format::SPEEDTEST_CLI,
            _ => continue,
        };
        let trace =
            Trace::read("docs/traces.md", block.as_bytes(), None).unwrap_or_else(|error| panic!("{error}"));
        // Of what the block itself says, a note would be odd; of the format's meaning, it is right.
        let remarks = match format.name() {
            // The direction, the round trip, and a test without a result, with its values.
            "speedtest-cli" => 4,
            // The round trip, the interval and the losses.
            "ping" => 3,
            // Rows hold up to their times, and the units.
            "pensieve" => 2,
            "sabre" | "alphartc" => 1,
            _ => 0,
        };
        assert_eq!((trace.format(), trace.remarks().len()), (format, remarks), "{block}");
        read += 1;
    }
    assert_eq!(read, 15);
}

#[test]
fn the_traces_that_come_along_are_what_their_names_say() {
    let mut formats = Vec::new();
    for entry in fs::read_dir(root().join("scenarios/traces")).expect("there are examples") {
        let path = entry.expect("it can be read").path();
        let (name, bytes) = (path.display().to_string(), fs::read(&path).expect("it can be read"));
        if name.ends_with(".light") {
            continue; // half of a cell: `scenarios/cell.toml` has both
        }
        if name.ends_with(".pattern") {
            Pattern::read(&name, &bytes).unwrap_or_else(|error| panic!("{error}"));
            continue;
        }
        let trace = Trace::read(&name, &bytes, None).unwrap_or_else(|error| panic!("{error}"));
        assert!(trace.remarks().is_empty(), "{name}: {:?}", trace.remarks());
        formats.push(trace.format().name());
    }
    formats.sort_unstable();
    formats.dedup();
    assert_eq!(formats, ["csv", "mahimahi", "netem-trace", "theaterq"]);
}
