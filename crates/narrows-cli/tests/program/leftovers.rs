//! However a run ends, nothing of it is left: no process, namespace, interface or file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::{
    Finished, NARROWS, Scratch, Started, eventually, finish, narrows, run, run_folder, start,
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

/// A run folder of the test's own: what other tests do does not show there, nor the other way round.
pub(crate) struct RunFolder {
    scratch: Scratch,
}

impl RunFolder {
    pub(crate) fn new() -> Self {
        let folder = Self { scratch: Scratch::new() };
        fs::create_dir(folder.path()).unwrap();
        set_mode(&folder.path(), 0o700);
        folder
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.scratch.file("narrows")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// `narrows` with this run folder.
    pub(crate) fn narrows<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = narrows(arguments);
        command.env("NARROWS_CONTROL", self.file("none.sock"));
        command
    }

    pub(crate) fn clean(&self) -> Finished {
        finish(&mut self.narrows(["clean"]))
    }

    /// A socket that nobody listens at any more.
    fn dead_socket(&self, name: &str) -> PathBuf {
        drop(UnixListener::bind(self.file(name)).unwrap());
        self.file(name)
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A program that has this in its environment, and goes on.
fn bystander(variable: &str, value: &str) -> Started {
    let mut command = Command::new("sh");
    command.args(["-c", "echo ready; while :; do sleep 1; done"]).env(variable, value);
    let mut started = start(&mut command);
    started.until_it_says("ready");
    started
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
#[ignore = "needs namespaces"]
fn after_a_normal_end() {
    let (ended, traces) = ends(&[], "sleep 0.2", |_| {});
    ended.expect(0);
    traces.are_gone();
}

#[test]
#[ignore = "needs namespaces"]
fn after_cmd_left_children_behind() {
    // One is a daemon of its own session; both ignore the end of their parent.
    let (ended, traces) =
        ends(&["--on", "server", "setsid sleep 1000 &"], "setsid sleep 1000 & sleep 1000 &", |_| {});
    ended.expect(0);
    traces.are_gone();
}

#[test]
#[ignore = "needs namespaces"]
fn after_cmd_crashed() {
    let (ended, traces) = ends(&[], "sleep 1000 & kill -SEGV $$", |_| {});
    ended.expect(128 + 11);
    traces.are_gone();
}

#[test]
#[ignore = "needs namespaces"]
fn after_a_program_that_does_not_want_to_end() {
    let stubborn = "trap '' TERM INT HUP; while :; do sleep 0.1; done";
    let (ended, traces) = ends(&["--on", "server", stubborn], stubborn, |run| run.signal("TERM"));
    assert!([128 + 15, 128 + 9].contains(&ended.code()), "{ended}");
    traces.are_gone();
}

#[test]
#[ignore = "needs namespaces"]
fn after_ctrl_c() {
    let (ended, traces) = ends(&["--delay", "5ms"], "sleep 1000", |run| run.signal_group("INT"));
    assert_eq!(ended.code(), 128 + 2, "{ended}");
    assert!(ended.err.contains("link.up, client → server"), "it still reports: {ended}");
    traces.are_gone();
}

#[test]
#[ignore = "needs namespaces"]
fn after_sigterm_and_sighup() {
    for (signal, number) in [("TERM", 15), ("HUP", 1), ("QUIT", 3)] {
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
#[ignore = "needs namespaces, python3"]
fn after_its_terminal_was_closed() {
    let line = ["run", "--quiet", "--delay", "1ms", "--", "sh", "-c", "echo ready; sleep 1000"];
    assert_eq!(without_terminal("/bin/sh", &line), "129\n");
    // A shell that reads from the terminal finds out by itself as well, and may end first, with a status of its own.
    let shell = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/waiting-shell");
    assert_eq!(without_terminal(shell, &["shell", "--quiet", "--delay", "1ms"]), "129\n");
}

/// Also one that comes before narrows has started the program, which then never hears of it.
#[test]
#[ignore = "needs namespaces, python3"]
fn after_an_interrupt_at_the_terminal_at_any_moment() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/early_interrupt.py");
    let line = [script, NARROWS, "run", "--quiet", "--delay", "1ms", "--", "sleep", "1000"];
    let ended = finish(Command::new("python3").args(line)).expect(0);
    // By the signal itself, where nothing has been set up yet.
    assert!(matches!(ended.out.trim(), "130" | "-2 130"), "{ended}");
}

#[test]
#[ignore = "needs namespaces"]
fn after_cmd_was_not_found() {
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
#[ignore = "needs namespaces"]
fn after_kill_9_and_clean() {
    let _turn = turn();
    // The direct children die with narrows; daemons in sessions of their own do not.
    let line = "setsid sleep 1000 & exec sleep 1000";
    let (killed, traces) = ends(&["--on", "server", "setsid sleep 1000 &"], line, |run| run.signal("KILL"));
    assert_eq!(killed.ended_by(), Some(9), "{killed}");
    eventually("only the daemons are left", || marked(traces.run).len() == 2);
    assert!(traces.socket.exists(), "so that there is something to clean");
    assert_eq!(records_of(&traces).len(), 1, "by which its programs are known");

    // What another run has is not touched.
    let mut other = start(&mut run([], &saying("sleep 1000")));
    let others = Traces::of(&mut other, interfaces());
    let cleaned = clean();
    assert!(cleaned.out.contains(&format!("of run {}", traces.run)), "{cleaned}");
    assert!(cleaned.out.contains(&format!("removed {}", traces.socket.display())), "{cleaned}");
    assert_eq!(records_of(&traces), Vec::<PathBuf>::new());
    traces.are_gone();
    assert!(others.socket.exists() && !marked(others.run).is_empty());
    other.signal("TERM");
    other.wait().expect(143);
    others.are_gone();
}

/// The files that say which run it is.
fn records_of(traces: &Traces) -> Vec<PathBuf> {
    let begins = format!("{}.", traces.run);
    let is_record = |name: &str| name.starts_with(&begins) && name.ends_with(".run");
    let files = fs::read_dir(traces.socket.parent().unwrap()).unwrap().map(|entry| entry.unwrap());
    files.filter(|file| file.file_name().to_str().is_some_and(is_record)).map(|file| file.path()).collect()
}

#[test]
#[ignore = "needs root, su"]
fn after_kill_9_of_a_run_whose_program_changed_its_privileges() {
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
#[ignore = "needs namespaces"]
fn clean_has_nothing_to_do_twice() {
    let _turn = turn();
    clean();
    let again = clean();
    assert_eq!(again.out, "nothing to clean up\n", "{again}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_killed_shell_that_started_narrows_takes_nothing_with_it() {
    // The terminal goes away: the whole group gets a SIGHUP.
    let (ended, traces) = ends(&[], "sleep 1000", |run| run.signal_group("HUP"));
    assert_eq!(ended.code(), 128 + 1, "{ended}");
    traces.are_gone();
}

#[test]
fn clean_kills_nobody_for_a_number() {
    let folder = RunFolder::new();
    // Larger than any number that the kernel gives, and none at all.
    let number = "4194305";
    let dead = folder.dead_socket(&format!("{number}.sock"));
    let others = [".sock", "x.sock", ".a.b.feed"].map(|name| folder.dead_socket(name));
    let bystanders = [number, ""].map(|value| bystander("NARROWS_RUN", value));
    let cleaned = folder.clean().expect(0);
    assert_eq!(cleaned.out, format!("removed {}\n", dead.display()), "{cleaned}");
    assert!(!dead.exists() && others.iter().all(|other| other.exists()));
    for bystander in bystanders {
        bystander.signal("TERM");
        assert_eq!(bystander.wait().ended_by(), Some(15), "it was not killed before");
    }
}

#[test]
fn clean_kills_by_the_identifier_of_a_run_that_is_gone() {
    let folder = RunFolder::new();
    let [gone, other] = ["0123456789abcdef0123456789abcdef", "f123456789abcdef0123456789abcdef"];
    let (left, bystander) = (bystander("NARROWS_RUN_ID", gone), bystander("NARROWS_RUN_ID", other));
    // The number is that of another process by now.
    let (number, boot) = (bystander.id(), fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap());
    let pid_namespace = fs::metadata("/proc/self/ns/pid").unwrap().ino();
    let record = |id: &str, started: u64| {
        let text = serde_json::json!({
            "process": number, "started": started, "boot": boot.trim(), "pid-namespace": pid_namespace,
        });
        let path = folder.file(&format!("{number}.{id}.run"));
        fs::write(&path, text.to_string()).unwrap();
        path
    };
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap();
    let started: u64 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let (gone, going_on) = (record(gone, started - 1), record(other, started));
    let cleaned = folder.clean().expect(0);
    let killed = format!("killed process {} of run {number}\n", left.id());
    assert!(cleaned.out.contains(&killed), "{cleaned}");
    assert!(cleaned.out.ends_with(&format!("removed {}\n", gone.display())), "{cleaned}");
    assert_eq!(left.wait().ended_by(), Some(9));
    assert!(!gone.exists() && going_on.exists());
    bystander.signal("TERM");
    assert_eq!(bystander.wait().ended_by(), Some(15), "it was not killed before");
}

#[test]
fn clean_does_not_go_where_a_link_leads() {
    let folder = RunFolder::new();
    let victim = Scratch::new();
    for name in ["interfaces", "settings"] {
        fs::create_dir(victim.file(name)).unwrap();
        fs::write(victim.file(name).join("precious"), "").unwrap();
    }
    let are_there =
        || ["interfaces", "settings"].iter().all(|name| victim.file(name).join("precious").exists());
    // Folders in it, then the folder itself.
    let socket = folder.dead_socket("4194305.sock");
    for name in ["interfaces", "settings"] {
        symlink(victim.file(name), folder.file(name)).unwrap();
    }
    let cleaned = folder.clean().expect(2);
    for name in ["interfaces", "settings"] {
        assert!(cleaned.err.contains(&format!("{name} is not a folder")), "{cleaned}");
    }
    assert!(are_there() && !socket.exists(), "all else is done: {cleaned}");

    fs::remove_dir_all(folder.path()).unwrap();
    drop(UnixListener::bind(victim.file("4194305.sock")).unwrap());
    symlink(victim.path(), folder.path()).unwrap();
    let cleaned = folder.clean().expect(2);
    assert!(cleaned.err.contains("narrows is not a folder but a symbolic link"), "{cleaned}");
    assert_eq!(victim.names(), ["4194305.sock", "interfaces", "settings"]);
    assert!(are_there());
}

#[test]
fn clean_names_what_it_does_not_understand_and_does_the_rest() {
    let folder = RunFolder::new();
    for name in ["interfaces", "settings"] {
        fs::create_dir(folder.file(name)).unwrap();
        fs::write(folder.file(name).join("0-empty"), "").unwrap();
        fs::write(folder.file(name).join("1-notes"), "hello\n").unwrap();
    }
    let record = folder.file("4194305.0123456789abcdef0123456789abcdef.run");
    fs::write(&record, "hello\n").unwrap();
    let socket = folder.dead_socket("4194306.sock");
    let cleaned = folder.clean().expect(2);
    for name in ["interfaces", "settings"] {
        let [empty, notes] = ["0-empty", "1-notes"].map(|file| folder.file(name).join(file));
        assert!(!empty.exists() && cleaned.out.contains(empty.to_str().unwrap()), "{cleaned}");
        assert!(notes.exists() && cleaned.err.contains(notes.to_str().unwrap()), "{cleaned}");
        fs::remove_file(notes).unwrap();
    }
    assert!(record.exists() && cleaned.err.contains(record.to_str().unwrap()), "{cleaned}");
    assert!(!socket.exists(), "{cleaned}");
    fs::remove_file(record).unwrap();
    folder.clean().expect(0);
    assert!(!folder.path().exists(), "an empty run folder does not stay");
}

#[test]
#[ignore = "needs python3"]
fn clean_does_not_wait_for_a_run_that_is_stopped() {
    let folder = RunFolder::new();
    // As many wait at it as there is room for.
    let script = "import socket, sys, time
listener, waiting = (socket.socket(socket.AF_UNIX) for _ in range(2))
listener.bind(sys.argv[1]); listener.listen(0); waiting.connect(sys.argv[1])
print('ready', flush=True); time.sleep(1000)";
    let mut command = Command::new("python3");
    let mut stopped = start(command.args(["-c", script]).arg(folder.file("4194305.sock")));
    stopped.until_it_says("ready");
    assert_eq!(folder.clean().expect(0).out, "nothing to clean up\n");
    assert!(folder.file("4194305.sock").exists());
}

#[test]
#[ignore = "needs namespaces"]
fn a_run_folder_that_was_open_to_others_is_closed_and_does_not_stay() {
    let folder = RunFolder::new();
    set_mode(&folder.path(), 0o777);
    let line = ["run", "--quiet", "--", "sh", "-c", "stat -c %a $(dirname $NARROWS_CONTROL)"];
    let ended = finish(&mut folder.narrows(line)).expect(0);
    assert_eq!(ended.out, "700\n", "{ended}");
    assert!(!folder.path().exists(), "it goes with the last run");
}
