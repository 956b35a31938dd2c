//! The program as a user starts it, and what a test needs around that.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use narrows_io::host::{Capabilities, user_namespaces};
use serde_json::Value;

/// Looked at this often, and this often in all: a test that hangs ends after a minute, under any load.
const LOOK: Duration = Duration::from_millis(5);
const LOOKS: u32 = 12_000;

/// Whether runs on real packets can be made here: as root, or by user namespaces.
pub(crate) fn live() -> bool {
    Capabilities::effective().unwrap().all() || user_namespaces().is_ok()
}

/// A folder that everybody may read and that goes with the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("narrows-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The folder of scenarios that come with the program.
pub(crate) fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").canonicalize().unwrap()
}

/// All of them.
pub(crate) fn every_scenario() -> Vec<PathBuf> {
    let files = fs::read_dir(scenarios()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "toml")).collect()
}

pub(crate) const NARROWS: &str = env!("CARGO_BIN_EXE_narrows");

/// `narrows` with these arguments, as if started outside any run.
pub(crate) fn narrows<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(NARROWS);
    command.args(arguments).env_remove("NARROWS_CONTROL").env_remove("NARROWS_RUN").stdin(Stdio::null());
    // Most tests look at figures that a summary leaves out; and none is to push a person's reports out of their folder.
    command
        .env("NARROWS_REPORT", "full")
        .env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

/// `narrows run`, with these flags, of a line for the shell.
pub(crate) fn run<'a>(flags: impl IntoIterator<Item = &'a str>, line: &'a str) -> Command {
    narrows(["run"].into_iter().chain(flags).chain(["--", "sh", "-c", line]))
}

/// Starts the command in a process group of its own and waits until it has ended.
pub(crate) fn finish(command: &mut Command) -> Finished {
    start(command).wait()
}

pub(crate) fn start(command: &mut Command) -> Started {
    let (out, err) = (nameless_file(), nameless_file());
    command.stdout(out.try_clone().unwrap()).stderr(err.try_clone().unwrap()).process_group(0);
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Started { child, out, err, line: format!("{command:?}") }
}

/// A program under way. Its output goes to files, not pipes: what it leaves behind cannot hold the test up.
pub(crate) struct Started {
    child: Child,
    out: File,
    err: File,
    line: String,
}

impl Started {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn out(&self) -> String {
        read(&self.out)
    }

    /// Writes a line to its standard input, which was asked to be a pipe.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits until it has printed this.
    pub(crate) fn until_it_says(&mut self, text: &str) -> String {
        self.until(text, |started| read(&started.out))
    }

    /// The same, on its error output.
    pub(crate) fn until_it_complains(&mut self, text: &str) -> String {
        self.until(text, |started| read(&started.err))
    }

    fn until(&mut self, text: &str, output: impl Fn(&Self) -> String) -> String {
        for _ in 0..LOOKS {
            let output = output(self);
            if output.contains(text) {
                return output;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "ended early: {}", self.describe());
            sleep(LOOK);
        }
        panic!("never said {text}: {}", self.describe());
    }

    pub(crate) fn signal(&self, name: &str) {
        kill(name, &self.id().to_string());
    }

    /// As the terminal does with a Ctrl-C.
    pub(crate) fn signal_group(&self, name: &str) {
        kill(name, &format!("-{}", self.id()));
    }

    pub(crate) fn wait(mut self) -> Finished {
        drop(self.child.stdin.take());
        for _ in 0..LOOKS {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Finished {
                    status,
                    out: read(&self.out),
                    err: read(&self.err),
                    line: self.line.clone(),
                };
            }
            sleep(LOOK);
        }
        panic!("has not ended after a minute: {}", self.describe());
    }

    fn describe(&self) -> String {
        format!("{}\n{}\n{}", self.line, read(&self.out), read(&self.err))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // A run that is told to end leaves nothing; one that is killed leaves its socket.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal("TERM");
        }
        for _ in 0..500 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a program did.
#[derive(Debug)]
pub(crate) struct Finished {
    status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
    line: String,
}

impl Finished {
    /// The exit status, of a program that ended by itself.
    #[track_caller]
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self}"))
    }

    pub(crate) fn ended_by(&self) -> Option<i32> {
        self.status.signal()
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{self}");
        self
    }

    /// The report that it printed for a program.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}\n--- out\n{}\n--- err\n{}", self.line, self.status, self.out, self.err)
    }
}

/// By the shell, which is everywhere.
pub(crate) fn kill(name: &str, process: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -s {name} -- {process}")]).status().unwrap();
    assert!(status.success(), "kill -{name} {process}");
}

/// Looks until `holds` does.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if holds() {
            return;
        }
        sleep(LOOK);
    }
    panic!("a minute later still not: {what}");
}

/// What the report says of the packets from one port to another.
#[track_caller]
pub(crate) fn pair<'a>(report: &'a Value, from: &str, to: &str) -> &'a Value {
    let all = report["pairs"].as_array().unwrap();
    let found = all.iter().find(|pair| pair["from_port"] == from && pair["to_port"] == to);
    found.unwrap_or_else(|| panic!("nothing from {from} to {to}: {report:#}"))
}

/// What the report says of a link.
#[track_caller]
pub(crate) fn direction<'a>(report: &'a Value, link: &str) -> &'a Value {
    let all = report["directions"].as_array().unwrap();
    all.iter().find(|direction| direction["link"] == link).unwrap_or_else(|| panic!("no {link}: {report:#}"))
}

/// What holds of every report, whatever happened.
#[track_caller]
pub(crate) fn sound(report: &Value) {
    let of = |key: &str| report["conservation"][key].as_u64().unwrap();
    let accounted = of("delivered_packets") + of("dropped_packets") + of("inside_packets");
    assert_eq!(of("in_packets") + of("duplicated_packets"), accounted, "{report:#}");
    assert_eq!(report["conservation"]["violations"], Value::Array(Vec::new()));
    assert_eq!(report["losses"]["receive_ring_dropped_packets"], 0);
    assert_eq!(report["losses"]["send_failed_packets"], 0);
    let read: narrows_report::Report = serde_json::from_value(report.clone()).unwrap();
    let mut report = report.clone();
    // What `stats` adds to it.
    report.as_object_mut().unwrap().remove("now");
    assert_eq!(serde_json::to_value(read).unwrap(), report, "a report that is read says the same");
}

fn nameless_file() -> File {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("narrows-output-{}-{number}", std::process::id()));
    let file = File::options().read(true).append(true).create_new(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file
}

fn read(file: &File) -> String {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A word for the shell.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Where control sockets are, by asking a run.
pub(crate) fn run_folder() -> PathBuf {
    let ended = finish(&mut run(["--quiet"], "dirname $NARROWS_CONTROL")).expect(0);
    ended.out.trim().into()
}

/// Runs a Python program of these tests; nothing where a module that it needs is missing.
pub(crate) fn python(file: &str, arguments: &[&str]) -> Option<String> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program").join(file);
    let ended = finish(Command::new("python3").arg(program).args(arguments));
    if ended.code() == 77 {
        eprintln!("left out: {}", ended.out);
        return None;
    }
    Some(ended.expect(0).out.clone())
}
