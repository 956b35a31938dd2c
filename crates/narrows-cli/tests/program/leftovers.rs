//! However a run ends, nothing of it is left: no process, namespace, interface or file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::{
    Finished, NARROWS, Started, eventually, finish, has, is_root, live, narrows, run, start,
};

/// `clean` removes what any killed run left: tests that kill runs or clean up take turns.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed has nothing to do with the next.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what killed runs left.
pub(crate) fn clean() -> Finished {
    finish(&mut narrows(["clean"])).expect(0)
}

/// What exists of a run while it is going on.
struct Traces {
    run: u32,
    /// Its namespaces, by their names, and open: the kernel gives the number of one that is gone to the next.
    namespaces: BTreeMap<String, File>,
    socket: PathBuf,
    interfaces: BTreeSet<String>,
}

/// A shell line that says where the control socket is and then does `rest`.
fn saying(rest: &str) -> String {
    format!("echo socket $NARROWS_CONTROL ready; {rest}")
}

impl Traces {
    /// Of a run whose CMD does what [`saying`] gives.
    fn of(started: &mut Started, interfaces: BTreeSet<String>) -> Self {
        let out = started.until_it_says("ready");
        let socket = out.split_whitespace().nth(1).unwrap().into();
        let run = started.id();
        let traces = Self { run, namespaces: namespaces_held_by(run), socket, interfaces };
        assert!(traces.namespaces.len() >= 3, "its own, the client's, the server's: {:?}", traces.namespaces);
        assert!(traces.socket.exists());
        traces
    }

    #[track_caller]
    fn are_gone(mut self) {
        eventually("no process of the run", || marked(self.run).is_empty());
        for namespace in self.namespaces.keys() {
            eventually("nobody else in or at the namespace", || !is_anybody_else_in(namespace));
        }
        // What the kernel removes with them, it removes now.
        self.namespaces.clear();
        assert!(!self.socket.exists(), "{} is left", self.socket.display());
        eventually("no new interface", || interfaces().is_subset(&self.interfaces));
    }
}

/// Network namespaces that a process holds descriptors of, its own where it was started left out.
fn namespaces_held_by(process: u32) -> BTreeMap<String, File> {
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    let all = links(Path::new(&format!("/proc/{process}/fd"))).filter(|(link, _)| Path::new(link) != own);
    all.filter_map(|(link, path)| Some((link, File::open(path).ok()?))).collect()
}

/// A folder's links to namespaces: where they lead, and where they are. None for a process that has ended.
fn links(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let links = paths
        .filter_map(|path| Some((fs::read_link(&path).ok()?.into_os_string().into_string().ok()?, path)));
    links.filter(|(link, _)| link.starts_with("net:["))
}

/// Whether another process than this one lives in the network namespace `net:[…]`, or holds a descriptor of it.
fn is_anybody_else_in(namespace: &str) -> bool {
    let this = Path::new("/proc").join(std::process::id().to_string());
    processes().filter(|process| *process != this).any(|process| {
        let inside = fs::read_link(process.join("ns/net")).is_ok_and(|link| link == Path::new(namespace));
        inside || links(&process.join("fd")).any(|(link, _)| link == namespace)
    })
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<u32>().is_ok())
    })
}

/// The processes that were started as part of a run.
fn marked(run: u32) -> Vec<PathBuf> {
    let mark = format!("NARROWS_RUN={run}").into_bytes();
    processes()
        .filter(|process| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == mark)
        })
        .collect()
}

fn interfaces() -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/self/net/dev").unwrap();
    table.lines().skip(2).map(|line| line.split(':').next().unwrap().trim().to_owned()).collect()
}

/// Runs `line`, does `then` once it is under way, and looks at how it ends and at what is left.
#[track_caller]
fn ends(flags: &[&str], line: &str, then: impl FnOnce(&Started)) -> (Finished, Traces) {
    let before = interfaces();
    let mut started = start(&mut run(flags.iter().copied(), &saying(line)));
    let traces = Traces::of(&mut started, before);
    then(&started);
    (started.wait(), traces)
}

#[test]
fn after_a_normal_end() {
    if !live() {
        return;
    }
    let (ended, traces) = ends(&[], "sleep 0.2", |_| {});
    ended.expect(0);
    traces.are_gone();
}

#[test]
fn after_cmd_left_children_behind() {
    if !live() {
        return;
    }
    // One is a daemon of its own session; both ignore the end of their parent.
    let (ended, traces) =
        ends(&["--on", "server", "setsid sleep 1000 &"], "setsid sleep 1000 & sleep 1000 &", |_| {});
    ended.expect(0);
    traces.are_gone();
}

#[test]
fn after_cmd_crashed() {
    if !live() {
        return;
    }
    let (ended, traces) = ends(&[], "sleep 1000 & kill -SEGV $$", |_| {});
    ended.expect(128 + 11);
    traces.are_gone();
}

#[test]
fn after_a_program_that_does_not_want_to_end() {
    if !live() {
        return;
    }
    let stubborn = "trap '' TERM INT HUP; while :; do sleep 0.1; done";
    let (ended, traces) = ends(&["--on", "server", stubborn], stubborn, |run| run.signal("TERM"));
    assert!([128 + 15, 128 + 9].contains(&ended.code()), "{ended}");
    traces.are_gone();
}

#[test]
fn after_ctrl_c() {
    if !live() {
        return;
    }
    let (ended, traces) = ends(&["--delay", "5ms"], "sleep 1000", |run| run.signal_group("INT"));
    assert_eq!(ended.code(), 128 + 2, "{ended}");
    assert!(ended.err.contains("link.up, client → server"), "it still reports: {ended}");
    traces.are_gone();
}

#[test]
fn after_sigterm_and_sighup() {
    if !live() {
        return;
    }
    for (signal, number) in [("TERM", 15), ("HUP", 1)] {
        let (ended, traces) = ends(&[], "sleep 1000 & wait", |run| run.signal(signal));
        assert_eq!(ended.code(), 128 + number, "{ended}");
        traces.are_gone();
    }
}

/// A command that `hangup.py` starts at a terminal of its own, which goes when it says that it is ready: its exit status.
pub(crate) fn without_terminal(shell: &str, narrows: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/hangup.py");
    let mut command = Command::new("python3");
    finish(command.args([script, NARROWS]).args(narrows).env("SHELL", shell)).expect(0).out
}

#[test]
fn after_its_terminal_was_closed() {
    if !live() || !has("python3") {
        return;
    }
    let line = ["run", "--quiet", "--delay", "1ms", "--", "sh", "-c", "echo ready; sleep 1000"];
    assert_eq!(without_terminal("/bin/sh", &line), "129\n");
    // A shell that reads from the terminal finds out by itself as well, and may end first, with a status of its own.
    let shell = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/waiting-shell");
    assert_eq!(without_terminal(shell, &["shell", "--quiet", "--delay", "1ms"]), "129\n");
}

#[test]
fn after_cmd_was_not_found() {
    if !live() {
        return;
    }
    let before = interfaces();
    let started = start(&mut narrows(["run", "--on", "server", "sleep 1000", "--", "no-such-command"]));
    let id = started.id();
    let ended = started.wait().expect(2);
    assert!(ended.err.contains("command not found: `no-such-command`"), "{ended}");
    assert!(marked(id).is_empty() && interfaces().is_subset(&before));
    let socket = run_folder().join(format!("{id}.sock"));
    assert!(!socket.exists(), "{}", socket.display());
}

#[test]
fn after_kill_9_and_clean() {
    if !live() {
        return;
    }
    let _turn = turn();
    // The direct children die with narrows; daemons in sessions of their own do not.
    let line = "setsid sleep 1000 & exec sleep 1000";
    let (killed, traces) = ends(&["--on", "server", "setsid sleep 1000 &"], line, |run| run.signal("KILL"));
    assert_eq!(killed.ended_by(), Some(9), "{killed}");
    eventually("only the daemons are left", || marked(traces.run).len() == 2);
    assert!(traces.socket.exists(), "so that there is something to clean");

    // What another run has is not touched.
    let mut other = start(&mut run([], &saying("sleep 1000")));
    let others = Traces::of(&mut other, interfaces());
    let cleaned = clean();
    assert!(cleaned.out.contains(&format!("of run {}", traces.run)), "{cleaned}");
    assert!(cleaned.out.contains(&format!("removed {}", traces.socket.display())), "{cleaned}");
    traces.are_gone();
    assert!(others.socket.exists() && !marked(others.run).is_empty());
    other.signal("TERM");
    other.wait().expect(143);
    others.are_gone();
}

#[test]
fn after_kill_9_of_a_run_whose_program_changed_its_privileges() {
    if !live() || !is_root() || !has("su") {
        return;
    }
    let _turn = turn();
    // Changing the user takes away the death signal of a direct child.
    let line = [
        "run",
        "--",
        "su",
        "nobody",
        "-s",
        "/bin/sh",
        "-c",
        "echo socket $NARROWS_CONTROL ready; sleep 1000",
    ];
    let before = interfaces();
    let mut started = start(&mut narrows(line));
    let traces = Traces::of(&mut started, before);
    started.signal("KILL");
    assert_eq!(started.wait().ended_by(), Some(9));
    clean();
    traces.are_gone();
}

#[test]
fn clean_has_nothing_to_do_twice() {
    if !live() {
        return;
    }
    let _turn = turn();
    clean();
    let again = clean();
    assert_eq!(again.out, "nothing was left behind\n", "{again}");
}

/// Where control sockets are, by asking a run.
fn run_folder() -> PathBuf {
    let ended = finish(&mut run(["--quiet"], "dirname $NARROWS_CONTROL")).expect(0);
    ended.out.trim().into()
}

#[test]
fn a_killed_shell_that_started_narrows_takes_nothing_with_it() {
    if !live() {
        return;
    }
    // The terminal goes away: the whole group gets a SIGHUP.
    let (ended, traces) = ends(&[], "sleep 1000", |run| run.signal_group("HUP"));
    assert_eq!(ended.code(), 128 + 1, "{ended}");
    traces.are_gone();
}
