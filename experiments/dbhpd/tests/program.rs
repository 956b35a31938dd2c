//! `dbhpd` as a user meets it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use narrows_core::Duration;
use narrows_scenario::Scenario;
use narrows_sim::{SimOptions, simulate};

/// Its exit status, standard output and error output.
fn dbhpd(arguments: &[&str]) -> (Option<i32>, String, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_dbhpd")).args(arguments).output().expect("it starts");
    let [out, err] =
        [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).expect("it prints text"));
    (ended.status.code(), out, err)
}

/// A folder for a test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn the_tail_is_tables_and_figures_in_a_folder_that_it_makes() {
    let folder = folder("tail/new");
    let (status, out, err) = dbhpd(&["tail", "--duration", "1s", "--out", folder.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{err}");
    let text = fs::read_to_string(folder.join("tail.md")).unwrap();
    assert!(out.starts_with(&text), "{out}");
    // Two mixes at two loads, and in each 19 schedulers and arithmetics.
    assert_eq!(text.matches("\n## Mix ").count(), 4);
    assert_eq!(text.matches("\n| as printed, 32 bits |").count(), 4);
    let figures = fs::read_dir(&folder).unwrap().filter(|file| {
        let path = file.as_ref().unwrap().path();
        path.extension().is_some_and(|end| end == "svg")
            && fs::read_to_string(path).unwrap().ends_with("</svg>\n")
    });
    assert_eq!(figures.count(), 12);
}

#[test]
fn only_an_average_times_1024_is_near_the_thesiss_figure() {
    let (_, out, err) = dbhpd(&["averages", "--quick"]);
    let rows: Vec<&str> =
        out.lines().filter(|line| line.contains(" % | ") && line.contains(" 80 % ")).collect();
    assert_eq!(rows.len(), 4, "{out}{err}");
    for row in rows {
        assert_eq!(row.contains("times 1024"), row.contains("| no |"), "{row}");
        assert_eq!(row.contains("times 1024"), !row.ends_with("| 0.0 % |"), "{row}");
    }
}

#[test]
fn a_run_has_a_length_that_makes_sense() {
    let (status, _, err) = dbhpd(&["averages", "--duration", "2h"]);
    assert_eq!((status, err.as_str()), (Some(2), "dbhpd: --duration: a run lasts from 1s to 3600s\n"));
}

/// The whole, shortened: a page that needs no other file, and scenarios that run by themselves.
#[test]
fn the_evaluation_is_a_page_and_its_scenarios() {
    let (first, again) = (folder("evaluation"), folder("evaluation-again"));
    let (status, out, err) = dbhpd(&["--quick", "--duration", "2s", "--out", first.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(out.matches("\nmix ").count(), 4, "{out}");
    let page = fs::read_to_string(first.join("index.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(page.contains("Table 7.2") && page.contains("Table 7.3"));
    assert!(!page.contains("NaN") && !page.contains("src=\"mix") && !page.contains("http://127"));
    // Four mixes through four schedulers, and the delay tests: five lengths, with FIFO once and the others with one class and
    // with three.
    let scenarios: Vec<_> =
        fs::read_dir(first.join("scenarios")).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(scenarios.len(), 16 + 35);
    for name in ["mix-2-7-mbit-half-cbq.toml", "chain-80-bytes-3-classes-hpd.toml"] {
        let file = first.join("scenarios").join(name);
        let mut scenario = Scenario::parse(&fs::read_to_string(file).unwrap(), name).unwrap();
        scenario.duration = Some(Duration::from_secs(1));
        simulate(&scenario, &SimOptions::default()).unwrap();
    }
    // The same seed, the same files.
    dbhpd(&["--quick", "--duration", "2s", "--out", again.to_str().unwrap()]);
    assert_eq!(page, fs::read_to_string(again.join("index.html")).unwrap());
}
