//! An ordinary user needs no privilege for a network of the run's own.
//!
//! Where the tests themselves are an ordinary user's, all of them show this.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::common::{Finished, NARROWS, Scratch, finish, pair, quoted};

/// Runs a line for the shell as `nobody`, with `narrows` in the path.
pub(crate) fn as_nobody(line: &str) -> Finished {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(NARROWS, scratch.file("narrows")).unwrap();
    let line = format!("PATH={}:$PATH; {line}", quoted(scratch.path().to_str().unwrap()));
    let mut command = Command::new("su");
    command.args(["nobody", "-s", "/bin/sh", "-c", &line]).current_dir("/");
    finish(command.env_remove("XDG_RUNTIME_DIR").env_remove("NARROWS_CONTROL").env_remove("NARROWS_RUN"))
}

#[test]
#[ignore = "needs root, user namespaces, su, ping"]
fn runs_work() {
    let line =
        "narrows run --rate 10mbit --delay 5ms --json - -- sh -c 'ping -c 2 -i 0.2 $NARROWS_SERVER6 >&2'";
    let ended = as_nobody(line);
    let report = ended.expect(0).json();
    assert_eq!(pair(&report, "client.link", "server.link")["delay"]["min_ns"], 83_200 + 5_000_000);
    assert_eq!(pair(&report, "server.link", "client.link")["delivered"]["packets"], 2);
}

#[test]
#[ignore = "needs root, user namespaces, su, ping"]
fn runs_nest_and_are_talked_to() {
    let line = "narrows run --quiet --delay 5ms -- sh -c '
        narrows run --delay 3ms -- sh -c \"narrows set link.delay=4ms && narrows stats && ls -d \\$NARROWS_CONTROL\"
        narrows stats; echo $NARROWS_CONTROL'; narrows clean";
    let ended = as_nobody(line).expect(0);
    let notes: Vec<_> = ended.out.lines().filter(|line| line.contains("link.delay=4ms")).collect();
    assert_eq!(notes.len(), 1, "of the inner run alone: {ended}");
    let sockets: Vec<_> = ended.out.lines().filter(|line| line.ends_with(".sock")).collect();
    assert_eq!(sockets.len(), 2, "{ended}");
    assert!(sockets.iter().all(|socket| !fs::exists(socket).unwrap()), "{ended}");
    assert!(ended.out.ends_with("nothing to clean up\n"), "{ended}");
}

#[test]
#[ignore = "needs root, user namespaces, su, ping"]
fn doctor_says_so() {
    let ended = as_nobody("narrows doctor").expect(0);
    assert!(ended.out.contains("without CAP_NET_ADMIN") && ended.out.contains("live runs work"), "{ended}");
    let words = crate::main_job::findings(&ended.out);
    assert_eq!(words["run, shell"], "yes, in a user namespace", "{ended}");
    for mode in ["existing hosts", "--internet", "bridge, route"] {
        assert!(words[mode].ends_with("needs root, or these capabilities"), "{mode}: {ended}");
    }
    assert!(words["--backend af_xdp"].starts_with("no"), "{ended}");
}
