//! `run --virtual`: what is outside is the same inside, two runs are one, and nothing is left behind. Needs a guest kernel;
//! `make test-kernel` insists on one, `NARROWS_KERNEL` names it.

use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use narrows_guest::kernel::GuestKernel;
use serde_json::Value;

use crate::common::{NARROWS, Scratch, finish, narrows, quoted, run, start};
use crate::leftovers::without_terminal;

/// A run inside a guest with these flags, of a line for the shell.
fn inside<'a>(flags: impl IntoIterator<Item = &'a str>, line: &'a str) -> Command {
    run(["--virtual", "--quiet", "--delay", "5ms"].into_iter().chain(flags), line)
}

#[test]
#[ignore = "needs guest kernel"]
fn a_program_meets_its_caller_s_world() {
    let folder = Scratch::new();
    folder.write("in", "some\0bytes");
    let line = "echo \"$WORD\"; pwd; umask; cat in; echo wrong >&2; id -u; exit 7";
    let mut command = inside([], line);
    let ended = finish(command.env("WORD", "a b").current_dir(folder.path()));
    let here = folder.path().display();
    assert_eq!(ended.code(), 7, "{}", ended.err);
    let lines: Vec<_> = ended.out.lines().collect();
    assert_eq!((lines[0], lines[1]), ("a b", here.to_string().as_str()));
    assert!(lines[3].starts_with("some\0bytes"), "{}", ended.out);
    assert_eq!(ended.err, "wrong\n");
    assert_eq!(finish(&mut inside([], "kill -9 $$")).code(), 137);
}

#[test]
#[ignore = "needs guest kernel"]
fn standard_input_is_read_whatever_it_is() {
    let folder = Scratch::new();
    let file = fs::File::open(folder.write("in", "of a file\n")).unwrap();
    assert_eq!(finish(inside([], "cat").stdin(file)).out, "of a file\n");
    assert_eq!(finish(&mut inside([], "cat; echo end")).out, "end\n");
    let mut late = start(inside([], "echo ready; cat").stdin(Stdio::piped()));
    late.until_it_says("ready");
    late.tell("typed late");
    assert_eq!(late.wait().out, "ready\ntyped late\n");
    // Pipes that stay open for longer than narrows waits at the start, with more than the guest's line holds at once.
    for (writer, reader, read) in [
        ("(head -c 200000 /dev/zero; sleep 0.5)", "wc -c", "200000\n"),
        ("(head -c 4000 /dev/zero; sleep 0.5)", "wc -c", "4000\n"),
        ("yes", "head -n 1", "y\n"),
    ] {
        let line = format!("{writer} | {NARROWS} run --virtual --quiet -- {reader}");
        assert_eq!(finish(Command::new("sh").args(["-c", &line])).expect(0).out, read, "{line}");
    }
}

#[test]
#[ignore = "needs guest kernel"]
fn output_that_cannot_be_written_is_told() {
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let child = inside([], "echo hi").stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("a part of the standard output was lost: No space left on device"), "{said}");
    // A program's own status stays.
    let mut failing = inside([], "echo hi; exit 7");
    assert_eq!(failing.stdout(full()).stderr(Stdio::null()).status().unwrap().code(), Some(7));
}

#[test]
#[ignore = "needs guest kernel"]
fn a_second_signal_ends_a_guest_at_once_with_its_status() {
    let mut busy = start(&mut inside([], "echo ready; sleep 1; while :; do :; done"));
    busy.until_it_says("ready");
    // Long after virtual time has come to the loop, where it stops.
    sleep(Duration::from_secs(2));
    busy.signal("TERM");
    // One signal may come twice within 0.3 s, and after 2 s such a guest is ended anyway.
    sleep(Duration::from_secs(1));
    busy.signal("TERM");
    let ended = busy.wait().expect(143);
    assert!(ended.err.contains("asked to end twice"), "{ended}");
}

#[test]
#[ignore = "needs guest kernel"]
fn only_what_is_named_is_written() {
    let folder = Scratch::new();
    fs::create_dir(folder.file("open")).unwrap();
    folder.write("kept", "as it was");
    let line = "echo new > open/made; echo no > kept; echo no > other; cat kept other; rm open/made; echo again > open/made";
    let mut command = inside(["--write", "open", "--json", "report.json"], line);
    let ended = finish(command.current_dir(folder.path()));
    assert_eq!(ended.out, "no\nno\n", "{}", ended.err);
    assert_eq!(folder.names(), ["kept", "open", "report.json"]);
    assert_eq!(fs::read_to_string(folder.file("kept")).unwrap(), "as it was");
    assert_eq!(fs::read_to_string(folder.file("open/made")).unwrap(), "again\n");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.file("report.json")).unwrap()).unwrap();
    assert_eq!(report["kind"], "exact-virtual");
}

/// A path and its copy are measured alike: the rate to a thousandth, the delay to the clock of the guest.
#[test]
#[ignore = "needs guest kernel"]
fn a_path_is_copied_by_one_command() {
    let folder = Scratch::new();
    let flags = ["--rate", "8mbit", "--seed", "1", "--write", "."];
    let line = format!("{NARROWS} probe $NARROWS_SERVER --count 5 --scenario path.toml --json -");
    let measured = finish(inside(flags, &line).current_dir(folder.path())).expect(0).json();
    let copy = ["--virtual", "--quiet", "path.toml"];
    let line = format!("{NARROWS} probe $NARROWS_SERVER --count 5 --json -");
    let copied = finish(run(copy, &line).current_dir(folder.path())).expect(0).json();
    for summary in [measured, copied] {
        let rate = summary["rate"]["p50_bps"].as_f64().unwrap();
        assert!((rate / 8e6 - 1.0).abs() < 1e-3, "{summary:#}");
        // 84 bytes take 84 µs at 8 Mbit/s, each way.
        let round_trip = summary["p50_ns"].as_f64().unwrap();
        assert!((round_trip / 10.168e6 - 1.0).abs() < 0.05, "{summary:#}");
    }
}

#[test]
#[ignore = "needs guest kernel, ping"]
fn round_trips_are_exact_from_the_first_and_a_second_apart() {
    let ended = finish(&mut inside([], "ping -c 3 $NARROWS_SERVER")).expect(0);
    let took = ended.out.split_once("0% packet loss, time ").unwrap().1.split_once("ms").unwrap().0;
    assert!((2000..2010).contains(&took.parse::<u32>().unwrap()), "{ended}");
    assert_round_trips(&ended.out, 10.0);
}

/// That each took as long, in milliseconds, within 1 µs.
fn assert_round_trips(said: &str, took: f64) {
    // Least, mean, most.
    let figures = said.split_once("rtt min/avg/max/mdev = ").unwrap().1;
    for figure in figures.split('/').take(3) {
        let apart = figure.parse::<f64>().unwrap() - took;
        assert!((0.0..0.0015).contains(&(apart + 1e-9)), "{said}");
    }
}

/// More cables than are looked at one by one, and a program beside, which narrows looks after while it runs.
#[test]
#[ignore = "needs guest kernel, ping"]
fn round_trips_are_exact_between_many_hosts_and_of_programs_beside() {
    let delays = [5, 10, 1, 1, 1, 1, 1, 1, 1];
    let pairs: Vec<_> = ('a'..='r').step_by(2).zip(('b'..='r').step_by(2)).collect();
    let link = |((near, far), delay): (&(char, char), i32)| {
        format!("links.{near}{far} = {{ between = ['{near}', '{far}'], delay = '{delay}ms' }}\n")
    };
    let links: String = pairs.iter().zip(delays).map(link).collect();
    let hosts: String = ('a'..='r').map(|host| format!("[hosts.{host}]\n")).collect();
    let folder = Scratch::new();
    let scenario = folder.write("net.toml", &format!("{links}{hosts}"));
    let beside = "ping -q -c 3 $NARROWS_HOST_D | tail -1";
    let flags = ["--virtual", "--quiet", scenario.to_str().unwrap(), "--on", "c", beside];
    let ended = finish(&mut run(flags, "sleep 1; ping -q -c 3 $NARROWS_HOST_B | tail -1")).expect(0);
    let (first, second) = ended.out.trim_end().split_once('\n').expect("two lines");
    assert_round_trips(first, 20.0);
    assert_round_trips(second, 10.0);
}

/// That a C program of `guest/`, which tries what the guest kernel's edits have changed for programs, says this at its end.
fn assert_says(name: &str, wanted: &str) {
    let folder = Scratch::new();
    let source = format!("{}/tests/program/guest/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let program = folder.file(name);
    let mut compile = Command::new("gcc");
    compile.args(["-O1", "-pthread", "-o", program.to_str().unwrap(), &source]);
    finish(&mut compile).expect(0);
    let ended = finish(&mut inside([], program.to_str().unwrap())).expect(0);
    assert_eq!(ended.out, format!("{wanted}\n"), "{ended}");
}

#[test]
#[ignore = "needs guest kernel, gcc"]
fn floating_point_registers_are_a_program_s_own() {
    assert_says("registers", "kept");
}

#[test]
#[ignore = "needs guest kernel, gcc"]
fn looks_at_clocks_agree_whichever_way_they_are_made() {
    assert_says("clocks", "agree");
}

#[test]
#[ignore = "needs guest kernel, python3"]
fn a_shell_at_a_terminal_keeps_to_real_time_at_its_prompt() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/guest/terminal.py");
    let mut shell = Command::new("python3");
    shell.args([script, NARROWS, "shell", "--virtual", "--quiet", "--delay", "5ms"]);
    assert_eq!(finish(&mut shell).expect(0).out, "as a terminal\n");
}

#[test]
#[ignore = "needs guest kernel, python3"]
fn a_shell_ends_with_its_terminal() {
    let line = ["shell", "--virtual", "--quiet", "--delay", "5ms"];
    assert_eq!(without_terminal("/bin/sh", &line), "129\n");
}

#[test]
#[ignore = "needs guest kernel, ping"]
fn the_wall_clock_may_be_set() {
    let line = "ping -q -c 1 $NARROWS_SERVER >before; date -s '2030-01-01 00:00:03' >/dev/null; ping -q -c 3 $NARROWS_SERVER; date +%Y";
    let ended = finish(&mut inside([], line)).expect(0);
    assert!(ended.out.ends_with("2030\n"), "{ended}");
    assert_round_trips(&ended.out, 10.0);
}

#[test]
#[ignore = "needs guest kernel"]
fn a_guest_kernel_that_panics_shows_its_last_lines() {
    let ended = finish(&mut inside([], "echo c >/proc/sysrq-trigger"));
    assert_eq!(ended.code(), 2, "{ended}");
    for words in ["the guest kernel crashed", "Kernel panic - not syncing: sysrq triggered crash"] {
        assert!(ended.err.contains(words), "{ended}");
    }
}

#[test]
#[ignore = "needs guest kernel, ping"]
fn two_runs_are_one_and_their_record_is_replayed() {
    let folders = [Scratch::new(), Scratch::new()];
    let ends = folders.each_ref().map(|folder| {
        let flags = [
            "--virtual",
            "--rate",
            "10mbit",
            "--delay",
            "25ms",
            "--loss",
            "5%",
            "--seed",
            "1",
            "--json",
            "report",
        ];
        let files = ["--capture", "packets.pcapng", "--record", "log", "--packets", "packets.csv"];
        let line = "ping -c 20 -i 0.1 $NARROWS_SERVER";
        let ended = finish(run(flags.into_iter().chain(files), line).current_dir(folder.path()));
        // The last line says how long it took.
        let (report, last) = ended.err.trim_end().rsplit_once('\n').unwrap();
        assert!(last.contains("virtual seconds in a real one"), "{last}");
        assert!(report.contains("live in exact virtual time"), "{report}");
        (ended.out, report.to_owned())
    });
    assert!(ends[0].0.contains("packets transmitted"));
    assert_eq!(ends[0], ends[1]);
    for file in ["report", "packets.pcapng", "packets.csv", "log"] {
        let [one, other] = folders.each_ref().map(|folder| fs::read(folder.file(file)).unwrap());
        assert!(one == other, "{file}");
    }
    let log = folders[0].file("log");
    let replayed = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()]));
    assert!(replayed.code() == 0, "{}", replayed.err);
}

/// Packets that come while others are about to leave are read late, which delays none.
#[test]
#[ignore = "needs guest kernel"]
fn packets_are_on_time_where_each_leaves_before_the_next_is_read() {
    let folder = Scratch::new();
    let flags = ["--virtual", "--delay", "3ms", "--rate", "100mbit", "--probe=4000"];
    let files = ["--json", "report", "--record", "log"];
    finish(run(flags.into_iter().chain(files), "sleep 0.5").current_dir(folder.path())).expect(0);
    let report: Value = serde_json::from_slice(&fs::read(folder.file("report")).unwrap()).unwrap();
    for probes in report["probes"].as_array().unwrap() {
        let [sent, lost] = ["sent_packets", "lost_packets"].map(|count| probes[count].as_u64().unwrap());
        assert!(sent > 2000 && lost == 0, "{probes}");
        // 64 bytes take 5.12 µs at 100 Mbit/s.
        for quantile in ["min_ns", "p50_ns", "max_ns"] {
            let took = probes["delay"][quantile].as_u64().unwrap();
            assert!((3_005_120..3_006_120).contains(&took), "{quantile}: {probes}");
        }
    }
    let log = folder.file("log");
    let replay = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()])).expect(0);
    assert!(replay.out.contains("all identical, to the nanosecond"), "{replay}");
}

/// A change is in force from an instant of virtual time on, which does not pass while it is worked out.
#[test]
#[ignore = "needs guest kernel, ping"]
fn a_run_is_changed_from_within_at_the_same_instant_each_time() {
    let folder = Scratch::new();
    let itself = quoted(NARROWS);
    let line = format!(
        "ping -q -c 2 $NARROWS_SERVER; {itself} set link.up.delay=15ms link.down.rate=1mbit || exit 3; \
         ping -q -c 2 $NARROWS_SERVER; {itself} tc qdisc change dev link.up root netem delay 35ms || exit 4; \
         ping -q -c 2 $NARROWS_SERVER; {itself} stats --json > /dev/null || exit 5"
    );
    let mut logs = Vec::new();
    for run in ["one", "two"] {
        let (log, report) = (format!("{run}.log"), format!("{run}.json"));
        let mut command = inside(["--record", &log, "--json", &report], &line);
        let ended = finish(command.current_dir(folder.path())).expect(0);
        let mut said = ended.out.split("rtt min/avg/max/mdev = ").skip(1);
        // 98 bytes of a frame, 84 of them IP, take 0.672 ms at 1 Mbit/s.
        for took in [10.0, 20.672, 40.672] {
            assert_round_trips(&format!("rtt min/avg/max/mdev = {}", said.next().unwrap()), took);
        }
        let replay = finish(&mut narrows(["sim", "--replay", folder.file(&log).to_str().unwrap()])).expect(0);
        assert!(replay.out.contains("all identical, to the nanosecond"), "{replay}");
        logs.push((fs::read(folder.file(&log)).unwrap(), fs::read(folder.file(&report)).unwrap()));
    }
    assert!(logs[0] == logs[1], "two runs are one");
}

#[test]
#[ignore = "needs guest kernel"]
fn signals_are_handed_on_and_idle_time_is_short() {
    let mut waiting =
        start(&mut inside([], "trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 1; done"));
    waiting.until_it_says("ready");
    waiting.signal("TERM");
    let ended = waiting.wait();
    assert_eq!((ended.code(), ended.out.as_str()), (3, "ready\ntold\n"), "{}", ended.err);
    // An hour, of which a test may take a minute.
    assert!(finish(&mut inside([], "sleep 3600")).code() == 0);
}

#[test]
#[ignore = "needs guest kernel"]
fn a_program_that_spins_is_ended() {
    let ended = finish(&mut inside(["--stall", "1s"], "while :; do :; done"));
    // What it wrote just before nobody could carry any more: it has the guest's only processor.
    assert_eq!(ended.code(), 74, "{}", ended.err);
    assert!(ended.err.contains("virtual time has been stopped for 1 s"), "{}", ended.err);
    assert!(ended.err.contains(" of the run, in `sh` (process "), "{}", ended.err);
}

#[test]
#[ignore = "needs guest kernel"]
fn a_program_that_spins_ends_when_it_is_asked_to() {
    let mut busy = start(&mut inside([], "echo ready; sleep 1; while :; do :; done"));
    busy.until_it_says("ready");
    // Long after virtual time has come to the loop.
    sleep(Duration::from_secs(2));
    busy.signal("TERM");
    let ended = busy.wait();
    assert_eq!(ended.code(), 128 + 15, "{}", ended.err);
    assert!(ended.err.contains("a program is computing, which stops virtual time"), "{}", ended.err);
}

#[test]
#[ignore = "needs guest kernel"]
fn a_folder_where_the_guest_has_its_own_is_seen_even_so() {
    for place in ["/run", "/dev/shm"] {
        let folder = format!("{place}/narrows-test-{}/inner", std::process::id());
        if fs::create_dir_all(&folder).is_err() {
            // Not everybody may write there.
            continue;
        }
        fs::write(
            format!("{folder}/net.toml"),
            "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n",
        )
        .unwrap();
        let mut command = narrows(["run", "--virtual", "--quiet", "net.toml", "--", "sh", "-c"]);
        command.arg("pwd; ls; echo changed > net.toml; cat net.toml").current_dir(&folder);
        let ended = finish(&mut command);
        let kept = fs::read_to_string(format!("{folder}/net.toml")).unwrap();
        let mut gone = narrows(["run", "--virtual", "--quiet", "--", "true"]);
        let gone = finish(gone.current_dir("/proc/self/task"));
        fs::remove_dir_all(folder.strip_suffix("/inner").unwrap()).unwrap();
        assert_eq!((ended.code(), ended.out), (0, format!("{folder}\nnet.toml\nchanged\n")), "{}", ended.err);
        assert!(kept.starts_with("[hosts.a]"), "nothing of it reaches the host");
        assert!(gone.err.contains("there is no folder /proc/"), "{gone}");
    }
}

#[test]
#[ignore = "needs guest kernel"]
fn memory_that_runs_out_is_said() {
    let ended = finish(&mut inside(["--memory", "128M"], "head -c 600M /dev/zero | tail | wc -c"));
    assert!(
        ended.err.contains("ran out of its 128 MiB of memory") && ended.err.contains("--memory 256M"),
        "{}",
        ended.err
    );
}

#[test]
#[ignore = "needs guest kernel"]
fn nothing_is_left_of_a_killed_run() {
    let folder = Scratch::new();
    for victim in ["caller", "supervisor"] {
        let mut command = inside(["--json", "report"], "echo ready; while :; do sleep 1; done");
        let mut running = start(command.current_dir(folder.path()).env("NARROWS_TEST_MARK", victim));
        running.until_it_says("ready");
        let supervisor = child_of(running.id());
        let kernel = child_of(supervisor);
        let killed = if victim == "caller" { running.id() } else { supervisor };
        assert!(Command::new("kill").args(["-9", &killed.to_string()]).status().unwrap().success());
        running.wait();
        for process in [supervisor, kernel] {
            for _ in 0..1000 {
                if !is_running(process) {
                    break;
                }
                sleep(Duration::from_millis(5));
            }
            assert!(!is_running(process), "{victim}");
        }
    }
}

#[test]
#[ignore = "needs guest kernel, root, setpriv"]
fn an_ordinary_user_has_it_too() {
    let folder = Scratch::new();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    // The programs may lie where only root looks.
    let kernel = GuestKernel::find(env::var_os("NARROWS_KERNEL").as_deref()).unwrap().path;
    for (from, name) in [(kernel.as_path(), "linux"), (NARROWS.as_ref(), "narrows")] {
        fs::copy(from, folder.file(name)).unwrap();
    }
    let narrows = folder.file("narrows");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "1000", "--regid", "1000", "--clear-groups"]).arg(narrows);
    command.args(["run", "--virtual", "--delay", "5ms", "--kernel"]).arg(folder.file("linux"));
    command.args(["--json", "report", "--", "sh", "-c", "id -u; head -c 1 /etc/shadow"]).stdin(Stdio::null());
    let ended = finish(command.current_dir(folder.path()).env("HOME", folder.path()));
    assert_eq!(ended.out, "0\n", "{}", ended.err);
    assert!(ended.err.contains("Permission denied"), "{}", ended.err);
    assert!(folder.names().contains(&"report".to_owned()));
}

#[test]
fn what_a_guest_lacks_is_said_by_name() {
    for (flags, word) in [
        (["--backend", "af_xdp"], "--backend af_xdp"),
        (["--wait", "spin"], "--wait"),
        (["--cpu", "0"], "--cpu"),
        (["--priority", "high"], "--priority"),
        (["--shards", "2"], "--shards"),
        (["--stall", "1ms"], "--stall"),
    ] {
        let ended = finish(&mut inside(flags, "true"));
        assert_eq!(ended.code(), 2);
        assert!(ended.err.contains(word), "{}", ended.err);
    }
    let ended = finish(&mut inside(["--kernel", "/nowhere/linux"], "true"));
    assert_eq!(ended.code(), 2);
    assert!(ended.err.contains("/nowhere/linux"), "{}", ended.err);
}

fn child_of(process: u32) -> u32 {
    let ps = Command::new("pgrep").args(["-P", &process.to_string()]).output().unwrap();
    String::from_utf8(ps.stdout).unwrap().lines().next().unwrap().parse().unwrap()
}

fn is_running(process: u32) -> bool {
    // One that has ended and was not waited for has no memory.
    fs::read_to_string(format!("/proc/{process}/status")).is_ok_and(|status| status.contains("VmRSS"))
}
