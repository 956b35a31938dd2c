//! The book's commands, as a reader types them: page by page, block by block, in a folder that looks like the repository.
//!
//! Of README and the pages named below, every `sh` block runs, but for those that say why not (`norun`) and those that need
//! a program that tests do without (`needs`). That all other commands of the documentation parse, the unit tests of `help.rs`
//! say.

mod markdown;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use self::markdown::{Block, blocks, pages, read, root};
use crate::common::{NARROWS, Scratch, finish, narrows};

/// All of them, and what is below a name that ends in a slash.
const BOOK: &[&str] = &[
    "README.md",
    "docs/install.md",
    "docs/tour.md",
    "docs/series.md",
    "docs/compare.md",
    "docs/citing.md",
    "docs/cookbook/",
];

/// A network namespace and a run folder of our own: no run of another test is seen, and none sees ours.
const ALONE: &str = "mount -t tmpfs tmpfs /run && ip link set lo up && exec \"$@\"";

#[derive(Clone, Copy, PartialEq)]
enum Clock {
    Real,
    Virtual,
}

/// Blocks that need the guest kernel are run where that is, all others here.
fn clock(block: &Block) -> Clock {
    let needs = block.attributes.get("needs").map(String::as_str).unwrap_or_default();
    if needs.split('+').any(|need| need == "guest-kernel") { Clock::Virtual } else { Clock::Real }
}

/// What a block needs that is not here.
fn lacking(block: &Block) -> Option<String> {
    let needs = block.attributes.get("needs")?;
    let is_here = |need: &str| match need {
        "guest-kernel" => true,
        "root" => is_root(),
        "aioquic" | "duckdb" => succeeds("python3", &["-c", &format!("import {need}")]),
        program => succeeds("sh", &["-c", &format!("command -v {program}")]),
    };
    needs.split('+').find(|need| !is_here(need)).map(str::to_owned)
}

fn is_root() -> bool {
    succeeds("sh", &["-c", "test $(id -u) = 0"])
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A folder with all that the repository has, and `bin/narrows`.
fn checkout() -> Scratch {
    let folder = Scratch::new();
    for entry in fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "target" {
            symlink(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    fs::create_dir(folder.file("bin")).unwrap();
    symlink(NARROWS, folder.file("bin/narrows")).unwrap();
    fs::create_dir(folder.file("run")).unwrap();
    folder
}

/// The block's commands, as a shell has them that ends at the first failure.
fn shell(folder: &Path, text: &str) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("unshare");
        command.args(["-mn", "--propagation", "private", "sh", "-c", ALONE, "sh"]);
        command
    } else {
        Command::new("env")
    };
    let path = std::env::var("PATH").unwrap();
    command.args(["sh", "-e", "-c", text]);
    command.current_dir(folder).stdin(Stdio::null());
    command.env("PATH", format!("{}:{path}", folder.join("bin").display()));
    // What a recipe leaves there, such as a browser's folder, goes with ours.
    command.env("TMPDIR", folder.join("run"));
    command.env("XDG_RUNTIME_DIR", folder.join("run")).env("XDG_STATE_HOME", folder.join("state"));
    for variable in ["NARROWS_CONTROL", "NARROWS_RUN", "NARROWS_REPORT"] {
        command.env_remove(variable);
    }
    command
}

/// Runs a page's blocks, and returns how many.
fn run_page(page: &str, when: Clock) -> usize {
    let folder = checkout();
    let mut count = 0;
    for block in blocks(&read(page)) {
        let at = format!("{page}:{}", block.line);
        if let Some(name) = block.attributes.get("file") {
            folder.write(name, &block.text);
            if name.ends_with(".toml") {
                finish(narrows(["check", name]).current_dir(folder.path())).expect(0);
            }
        }
        if block.language != "sh" || block.attributes.contains_key("norun") || clock(&block) != when {
            continue;
        }
        if let Some(need) = lacking(&block) {
            eprintln!("{at}: left out, as {need} is not here");
            continue;
        }
        let status = block.attributes.get("status").map_or(0, |status| status.parse().expect("a number"));
        eprintln!("{at}");
        let ended = finish(&mut shell(folder.path(), &block.text));
        assert_eq!(ended.code(), status, "{at}\n{ended}");
        count += 1;
    }
    count
}

fn the_book() -> Vec<String> {
    let is_of_it =
        |page: &String| BOOK.iter().any(|of| page == of || of.ends_with('/') && page.starts_with(of));
    pages().into_iter().filter(is_of_it).collect()
}

#[test]
#[ignore = "needs namespaces, unshare, ip, ping, iperf3, curl, traceroute, python3"]
fn a_reader_may_type_what_stands_there() {
    let count: usize = the_book().iter().map(|page| run_page(page, Clock::Real)).sum();
    assert!(count > 25, "only {count} blocks were run");
}

/// `scripts/test-kernel` runs what is called so.
mod in_virtual_time {
    use super::*;

    #[test]
    #[ignore = "needs guest kernel, unshare, ip, ping, curl, python3"]
    fn a_reader_has_a_guest_kernel() {
        let count: usize = the_book().iter().map(|page| run_page(page, Clock::Virtual)).sum();
        assert!(count > 1, "only {count} blocks were run");
    }
}

/// A block that does not run says so in words.
#[test]
fn what_does_not_run_says_why() {
    for page in the_book() {
        for block in blocks(&read(&page)) {
            if let Some(reason) = block.attributes.get("norun") {
                assert!(reason.split(' ').count() >= 3, "{page}:{}: why not?", block.line);
            }
        }
    }
}
