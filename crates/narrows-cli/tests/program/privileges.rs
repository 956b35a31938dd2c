//! What a run may do once it stands, and what its programs may: these, all that they could before.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::common::{Finished, NARROWS, Scratch, finish, narrows, quoted};

/// A set of capabilities, of what a process's `status` says.
#[track_caller]
fn set(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    u64::from_str_radix(line.unwrap_or_else(|| panic!("no {name}: {status}")).trim(), 16).unwrap()
}

const SETS: [&str; 5] = ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"];

/// All sets of a program that is run by itself, and of one that is run behind a network.
fn of_programs(before: &[&str], flags: &[&str]) -> (Finished, Finished) {
    let by = |words: &[&str]| {
        let all: Vec<_> = before.iter().chain(words).copied().collect();
        let mut command = Command::new(all[0]);
        command.args(&all[1..]).env_remove("NARROWS_CONTROL").env_remove("NARROWS_RUN");
        finish(&mut command).expect(0)
    };
    let own = by(&["cat", "/proc/self/status"]);
    let run = [&[NARROWS, "run", "--quiet", "--delay", "1ms"], flags, &["--", "cat", "/proc/self/status"]];
    (own, by(&run.concat()))
}

#[test]
#[ignore = "needs root, setpriv"]
fn programs_of_a_run_have_what_they_would_have_without() {
    for before in [
        &["env"][..],
        // Inheritable and ambient ones, which are for programs, and beyond what narrows needs.
        &["setpriv", "--inh-caps", "+sys_time,+net_admin", "--ambient-caps", "+sys_time"],
        // Nothing is regained at exec here.
        &["setpriv", "--no-new-privs"],
        &["setpriv", "--bounding-set", "-sys_time,-sys_module"],
    ] {
        let (own, inside) = of_programs(before, &[]);
        for name in SETS {
            assert_eq!(set(&own.out, name), set(&inside.out, name), "{name} {before:?}: {inside}");
        }
    }
}

/// A program of another user's that does not end by itself is ended all the same, and privileged ones work.
#[test]
#[ignore = "needs root, setpriv, ping"]
fn programs_may_change_users_and_are_ended() {
    let line = "setpriv --reuid 65534 --clear-groups sleep 1000 & echo $!; setpriv --reuid 65534 --clear-groups id -u;
        mount -t tmpfs none /mnt 2>/dev/null && umount /mnt; ping -q -c 1 $NARROWS_SERVER >&2";
    let ended =
        finish(&mut narrows(["run", "--quiet", "--delay", "1ms", "--", "unshare", "-m", "sh", "-c", line]))
            .expect(0);
    let lines: Vec<_> = ended.out.lines().collect();
    assert_eq!(lines[1], "65534", "{ended}");
    assert!(!fs::exists(format!("/proc/{}", lines[0])).unwrap(), "it was ended: {ended}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_run_keeps_what_it_needs_and_its_threads_nothing() {
    let scratch = Scratch::new();
    let [capture, log] = ["a.pcapng", "a.log"].map(|name| scratch.file(name));
    // The loop gives them up when CMD has begun.
    let line = "n=0; until grep -q '^CapEff:.*0281022$' /proc/$PPID/status || [ $n = 1000 ]; do n=$((n+1)); sleep 0.01; done
        for task in /proc/$PPID/task/*; do echo thread $(cat $task/comm); cat $task/status; done";
    let ended = finish(&mut narrows([
        "run",
        "--delay",
        "1ms",
        "--capture",
        capture.to_str().unwrap(),
        "--record",
        log.to_str().unwrap(),
        "--json",
        "/dev/stderr",
        "--quiet",
        "--",
        "sh",
        "-c",
        line,
    ]))
    .expect(0);
    let report: serde_json::Value = serde_json::from_str(&ended.err).unwrap();
    let kept = ["CAP_DAC_OVERRIDE", "CAP_KILL", "CAP_NET_ADMIN", "CAP_SYS_PTRACE", "CAP_SYS_ADMIN"];
    assert_eq!(report["host"]["capabilities"], serde_json::json!(kept), "{ended}");
    let needed = 1 << 1 | 1 << 5 | 1 << 12 | 1 << 19 | 1 << 21;
    let threads: Vec<_> = ended.out.split("thread ").skip(1).collect();
    let of = |name: &str| {
        let thread = threads.iter().find(|thread| thread.starts_with(name));
        set(thread.unwrap_or_else(|| panic!("no {name}: {ended}")), "CapEff:")
    };
    assert_eq!((of("narrows"), of("recorder"), of("capture"), of("packets 0")), (needed, 0, 0, 0), "{ended}");
    // A filter of system calls, where the kernel has them: not for the thread that serves commands, nor for CMD.
    let filtered = |name: &str| {
        let thread = threads.iter().find(|thread| thread.starts_with(name)).unwrap();
        thread.lines().find_map(|line| line.strip_prefix("Seccomp:")).map(|mode| mode.trim() == "2")
    };
    let own = fs::read_to_string("/proc/self/status").unwrap();
    if let Some(mode) = own.lines().find_map(|line| line.strip_prefix("Seccomp:")) {
        let outside = mode.trim() == "2";
        let all = ["narrows", "recorder", "capture", "packets 0"].map(|name| filtered(name).unwrap());
        assert_eq!(all, [outside, true, true, true], "{ended}");
        assert_eq!(report["host"]["confined"], true, "{ended}");
    }
}

/// An ordinary user, where the program has its capabilities by its file: no user namespace is made, and the programs have no
/// privilege.
#[test]
#[ignore = "needs root, setcap, setpriv, ping"]
fn with_capabilities_of_the_file_an_ordinary_user_needs_no_user_namespace() {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = scratch.file("narrows");
    fs::copy(NARROWS, &program).unwrap();
    let program = program.to_str().unwrap();
    let mut setcap = Command::new("setcap");
    setcap.args(["cap_net_admin,cap_net_raw,cap_sys_admin+ep", program]);
    finish(&mut setcap).expect(0);
    let line = "readlink /proc/self/ns/user; cat /proc/self/status; ping -q -c 2 -i 0.2 $NARROWS_SERVER >&2";
    let all = format!(
        "cd /; XDG_RUNTIME_DIR={}; export XDG_RUNTIME_DIR; {program} run --delay 2ms --json - -- sh -c {} && {program} doctor >&2",
        quoted(scratch.path().to_str().unwrap()),
        quoted(line)
    );
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", &all]);
    let ended = finish(command.env_remove("NARROWS_CONTROL").env_remove("NARROWS_RUN")).expect(0);
    let here = fs::read_link("/proc/self/ns/user").unwrap();
    assert!(ended.err.contains(here.to_str().unwrap()), "in the user namespace of the host: {ended}");
    for name in ["CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(set(&ended.err, name), 0, "{ended}");
    }
    let report = ended.json();
    assert_eq!(report["pairs"][0]["delivered"]["packets"], 2, "{report:#}");
    assert_eq!(report["host"]["capabilities"], serde_json::json!(["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]));
}
