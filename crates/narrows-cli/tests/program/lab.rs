//! `narrows lab` as a user meets it.

use std::fs;

use crate::common::{Finished, Scratch, finish, narrows};

fn dbhpd<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Finished {
    finish(&mut narrows(["lab", "dbhpd"].into_iter().chain(arguments)))
}

#[test]
fn the_tail_is_tables_and_figures_in_a_folder_that_it_makes() {
    let scratch = Scratch::new();
    let folder = scratch.file("new/tail");
    let ended = dbhpd(["tail", "--duration", "1s", "--out", folder.to_str().unwrap()]).expect(0);
    let text = fs::read_to_string(folder.join("tail.md")).unwrap();
    assert!(ended.out.starts_with(&text), "{ended}");
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
    let ended = dbhpd(["averages", "--quick"]).expect(0);
    let rows: Vec<&str> =
        ended.out.lines().filter(|line| line.contains(" % | ") && line.contains(" 80 % ")).collect();
    assert_eq!(rows.len(), 4, "{ended}");
    for row in rows {
        assert_eq!(row.contains("times 1024"), row.contains("| no |"), "{row}");
        assert_eq!(row.contains("times 1024"), !row.ends_with("| 0.0 % |"), "{row}");
    }
}

#[test]
fn a_run_has_a_length_that_makes_sense() {
    let ended = dbhpd(["averages", "--duration", "2h"]).expect(2);
    assert!(ended.err.contains("--duration: a run lasts from 1s to 3600s"), "{ended}");
}

/// The whole, shortened: a page that needs no other file, and scenarios that run by themselves.
#[test]
fn the_evaluation_is_a_page_and_its_scenarios() {
    let scratch = Scratch::new();
    let folder = scratch.file("dbhpd");
    let ended = dbhpd(["--quick", "--duration", "2s", "--out", folder.to_str().unwrap()]).expect(0);
    assert_eq!(ended.out.matches("\nmix ").count(), 4, "{ended}");
    let page = fs::read_to_string(folder.join("index.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(page.contains("Table 7.2") && page.contains("Table 7.3"));
    assert!(!page.contains("NaN") && !page.contains("src=\"mix") && !page.contains("http://127"));
    // Four mixes through four schedulers, and the delay tests: five lengths, with FIFO once and the others with one class and
    // with three.
    let scenarios: Vec<_> =
        fs::read_dir(folder.join("scenarios")).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(scenarios.len(), 16 + 35);
    for name in ["mix-2-7-mbit-half-cbq.toml", "chain-80-bytes-3-classes-hpd.toml"] {
        let file = folder.join("scenarios").join(name);
        let ended = finish(&mut narrows(["sim", "--duration", "1s", file.to_str().unwrap()])).expect(0);
        assert!(ended.err.is_empty(), "{ended}");
    }
    // The same seed, the same files.
    let again = scratch.file("again");
    dbhpd(["--quick", "--duration", "2s", "--out", again.to_str().unwrap()]).expect(0);
    assert_eq!(page, fs::read_to_string(again.join("index.html")).unwrap());
}
