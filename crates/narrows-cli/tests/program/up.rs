//! Networks that stay up: brought up, listed, entered, changed, ended, killed.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Finished, NARROWS, Scratch, Started, eventually, finish, kill, quoted, start};
use crate::leftovers::{RunFolder, turn};

/// A file by which the run folder stays when no run is active.
const STAYS: &str = "stays";

/// A run folder and a state folder of a test's own, in which all networks go down with it.
struct Place {
    folder: RunFolder,
    state: Scratch,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: RunFolder::new(), state: Scratch::new() };
        // Without the folder it would be that of everybody.
        fs::write(place.folder.file(STAYS), "").unwrap();
        place
    }

    /// What is in the run folder.
    fn left(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        names.filter(|name| name != STAYS).collect()
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.folder.narrows(arguments);
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }

    fn narrows<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Finished {
        finish(&mut self.command(arguments))
    }

    /// The networks as `ls` lists them.
    fn runs(&self) -> Vec<Value> {
        let listed = self.narrows(["ls", "--json"]).expect(0).json();
        listed["runs"].as_array().unwrap().clone()
    }

    fn outputs(&self) -> Vec<String> {
        let folder = fs::read_dir(self.state.file("narrows/output"));
        let names = folder.into_iter().flatten().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        finish(&mut self.command(["down", "--all", "--quiet"]));
    }
}

/// Warnings before the network is up reach the terminal of the caller.
#[test]
#[ignore = "needs namespaces"]
fn warnings_of_a_network_in_the_background_are_seen() {
    let place = Place::new();
    let service = ["--on", "server", "sleep 1000", "--on-timeout", "100ms"];
    let up =
        place.narrows([&["up", "--delay", "5ms", "--name", "slow", "-d"][..], &service].concat()).expect(0);
    assert_eq!(up.out, "slow\n");
    assert!(
        up.err.starts_with("narrows: `sleep 1000` in host `server` did not listen")
            && up.err.lines().count() == 1,
        "{up}"
    );
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_network_stays_up_is_entered_changed_and_taken_down() {
    let place = Place::new();
    let up = place.narrows(["up", "--rate", "10mbit", "--delay", "5ms", "--name", "lab", "-d"]).expect(0);
    assert_eq!((up.out.as_str(), up.err.as_str()), ("lab\n", ""));

    let runs = place.runs();
    let [lab] = &runs[..] else { panic!("{runs:?}") };
    let of = |key: &str| lab[key].clone();
    assert_eq!([of("name"), of("command"), of("state")], ["lab", "up", "running"].map(Value::from));
    assert_eq!([of("hosts"), of("links"), of("generation")], [2, 1, 0].map(Value::from));
    assert_eq!(of("title"), "--rate 10mbit --delay 5ms");
    assert!(of("since_ns").as_u64() > Some(0) && of("trust").is_string(), "{lab:#}");
    let output = of("output").as_str().unwrap().to_owned();
    assert!(output.starts_with(place.state.path().to_str().unwrap()), "{output}");
    let hosts = place.narrows(["ls", "lab", "--quiet"]).expect(0).out;
    assert_eq!(hosts, "client\nserver\n");
    assert_eq!(place.narrows(["ls", "--quiet"]).expect(0).out, "lab\n");
    let number = of("run").to_string();

    // By name and by number, each host reaches the other by its name.
    for (run, from, to) in [("lab", "client", "server"), (&number, "server", "client")] {
        let ended = place.narrows(["exec", run, from, "--", "ping", "-c", "1", to]).expect(0);
        assert!(ended.out.contains("1 received"), "{ended}");
    }
    let line = "echo $NARROWS_RUN_NAME $NARROWS_RUN $NARROWS_CLIENT $NARROWS_SERVER";
    let said = place.narrows(["exec", "lab", "server", "sh", "-c", line]).expect(0).out;
    assert_eq!(said, format!("lab {number} 10.213.0.2 10.213.0.1\n"));
    // From inside it is talked to without being named.
    let inner = format!("{} set link.delay=9ms", quoted(NARROWS));
    place.narrows(["exec", "lab", "client", "sh", "-c", &inner]).expect(0);
    place.narrows(["set", "--run", "lab", "link.up.loss=0.5%"]).expect(0);
    let shown = place.narrows(["tc", "--run", "lab", "qdisc", "show", "dev", "link.up"]).expect(0).out;
    assert!(shown.contains("netem") && shown.contains("delay 9ms"), "{shown}");
    let report = place.narrows(["stats", "--run", "lab", "--json"]).expect(0).json();
    let notes = report["notes"].to_string();
    assert!(notes.contains("link.delay=9ms") && notes.contains("link.up.loss=0.5%"), "{notes}");
    assert_eq!(place.runs()[0]["generation"], 2);

    // What is configured now, and what went over it.
    let configured = |link: usize| report["now"]["links"][link]["configured"].as_str().unwrap().to_owned();
    assert!(configured(0).contains("9ms") && configured(0).contains("loss 0.5%"), "{report:#}");
    assert!(configured(1).contains("9ms") && !configured(1).contains("loss"), "{report:#}");
    assert!(report["now"]["delivered"]["ten_seconds_bps"].as_u64() > Some(0), "{report:#}");
    let watched = place.narrows(["stats", "--run", "lab", "--watch", "--count", "2"]).expect(0).out;
    assert_eq!(watched.matches("last second").count(), 2, "{watched}");
    let mut watching = start(&mut place.command(["stats", "--run", "lab", "--watch", "--json"]));
    watching.until_it_says("link.down");

    let down = place.narrows(["down", "lab"]).expect(0);
    let watched = watching.wait().expect(0);
    assert!(watched.err.contains("lab has ended"), "{watched}");
    assert!(watched.out.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{watched}");
    assert!(down.out.starts_with(&format!("lab ({number}) is down\n")), "{down}");
    assert!(down.out.contains("accurate") && down.out.contains("link.up"), "the summary: {down}");
    assert_eq!(place.runs(), <[Value; 0]>::default());
    assert_eq!(place.narrows(["ls"]).expect(0).out, "no run is active\n");
    assert!(fs::read_to_string(output).unwrap().contains("narrows run lab is up"));
    assert_eq!(place.left(), <[String; 0]>::default());
    let kept = place.narrows(["report", "--list"]).expect(0).out;
    assert!(kept.contains("--rate 10mbit --delay 5ms"), "{kept}");
}

#[test]
#[ignore = "needs namespaces"]
fn exec_ends_as_its_command_and_passes_signals_on() {
    let place = Place::new();
    place.narrows(["up", "--name", "lab", "-d"]).expect(0);
    let exec = |line: &str| place.narrows(["exec", "lab", "client", "--", "sh", "-c", line]);
    exec("exit 7").expect(7);
    exec("kill -s KILL $$").expect(137);
    let mut started = start(&mut place.command([
        "exec",
        "lab",
        "client",
        "sh",
        "-c",
        "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.01; done",
    ]));
    started.until_it_says("ready");
    started.signal("TERM");
    let ended = started.wait().expect(3);
    assert_eq!(ended.out, "ready\nasked\n");

    let wrong = place.narrows(["exec", "lab", "nowhere", "true"]).expect(2).err;
    assert_eq!(wrong, "narrows: no host `nowhere`: the run has `client`, `server`\n");
    let wrong = place.narrows(["exec", "lab", "client", "no-such-program"]).expect(2).err;
    assert!(wrong.contains("command not found: `no-such-program`"), "{wrong}");
    let wrong = place.narrows(["exec", "lob", "client", "true"]).expect(2).err;
    assert!(wrong.contains("no active run `lob`; active: lab ("), "{wrong}");
}

#[test]
#[ignore = "needs namespaces, python3, bash"]
fn exec_opens_a_shell_on_the_terminal() {
    let place = Place::new();
    place.narrows(["up", "--name", "lab", "-d"]).expect(0);
    let helper = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/exec_terminal.py");
    let mut command = Command::new("python3");
    let with_folder = place.command([]);
    let environment = with_folder.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(environment).env("SHELL", "/bin/bash").env("HOME", place.state.path());
    let ended = finish(command.arg(helper).args([NARROWS, "exec", "lab", "client"])).expect(0);
    assert!(ended.out.ends_with("status 5\n") && !ended.out.contains("slept 0"), "{ended}");
}

#[test]
#[ignore = "needs namespaces"]
fn programs_in_the_hosts_end_with_the_network() {
    let place = Place::new();
    place.narrows(["up", "--name", "lab", "-d", "--on", "server", "echo started; exec sleep 1000"]).expect(0);
    // One that heeds a SIGTERM, one that heeds nothing, and one that has left its parent.
    let lines =
        ["exec sleep 1000", "trap '' TERM HUP; while :; do sleep 0.01; done", "setsid sleep 1000 & wait"];
    let sleepers: Vec<_> = lines
        .iter()
        .map(|line| {
            let line = format!("echo ready; {line}");
            let mut started = start(&mut place.command(["exec", "lab", "client", "sh", "-c", &line]));
            started.until_it_says("ready");
            started
        })
        .collect();
    let id = place.narrows(["exec", "lab", "client", "sh", "-c", "echo $NARROWS_RUN_ID"]).expect(0).out;
    place.narrows(["down", "lab", "--quiet"]).expect(0);
    let ended: Vec<_> = sleepers.into_iter().map(Started::wait).collect();
    // The one for which the run had to wait sees it end.
    assert!(ended[1].err.contains("the run lab has ended"), "{}", ended[1]);
    let codes: Vec<_> = ended.iter().map(Finished::code).collect();
    assert_eq!(codes[..2], [143, 137], "{codes:?}");
    let marked = |process: &str| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|one| one == format!("NARROWS_RUN_ID={}", id.trim()).as_bytes())
    };
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = processes.filter(|name| name.to_str().is_some_and(marked)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_killed_network_is_known_as_such_and_cleaned_up() {
    let _turn = turn();
    let place = Place::new();
    place.narrows(["up", "--name", "lab", "-d"]).expect(0);
    let mut visitor =
        start(&mut place.command(["exec", "lab", "client", "sh", "-c", "echo ready; exec sleep 1000"]));
    visitor.until_it_says("ready");
    let number = place.runs()[0]["run"].to_string();
    kill("KILL", &number);
    let ended = visitor.wait().expect(143);
    assert!(ended.err.contains("the run lab has ended"), "{ended}");

    eventually("it is known as killed", || place.runs()[0]["state"] == "killed");
    let listed = place.narrows(["ls"]).expect(0);
    assert!(listed.out.contains("killed: narrows clean"), "{listed}");
    assert!(listed.err.contains("narrows clean removes it"), "{listed}");
    for command in [&["down", "lab"][..], &["exec", "lab", "client", "true"], &["stats", "--run", "lab"]] {
        place.narrows(command.iter().copied()).expect(2);
    }
    // Its name is free, and it is the new one that has it.
    place.narrows(["up", "--name", "lab", "-d"]).expect(0);
    place.narrows(["exec", "lab", "client", "true"]).expect(0);
    let cleaned = place.folder.clean().expect(0).out;
    assert!(cleaned.contains(&format!("{number}.")), "{cleaned}");
    let runs = place.runs();
    assert_eq!((runs.len(), &runs[0]["state"]), (1, &"running".into()), "{runs:?}");
    place.narrows(["down", "lab"]).expect(0);
    assert_eq!(place.left(), <[String; 0]>::default());
}

#[test]
#[ignore = "needs namespaces"]
fn a_name_is_one_runs_and_the_caller_hears_what_goes_wrong() {
    let place = Place::new();
    place.narrows(["up", "--name", "lab", "-d"]).expect(0);
    for command in [
        &["up", "--name", "lab", "-d"][..],
        &["up", "--name", "lab"],
        &["run", "--name", "lab", "--", "true"],
    ] {
        let refused = place.narrows(command.iter().copied()).expect(2);
        assert!(refused.err.contains("the name `lab` is taken: run "), "{refused}");
        assert!(refused.err.contains("a narrows up that began ") && refused.out.is_empty(), "{refused}");
    }
    assert_eq!(place.outputs().len(), 1, "that of the one that is up");
    let wrong = place.narrows(["up", "--name", "4711", "-d"]).expect(2).err;
    assert!(wrong.contains("`4711` is not a valid run name"), "{wrong}");
    let wrong = place.narrows(["up", "/nowhere.toml", "-d"]).expect(2).err;
    assert!(wrong.contains("/nowhere.toml"), "{wrong}");
    let wrong = place.narrows(["up", "-d", "--on", "server", "exit 3"]).expect(2).err;
    assert!(wrong.contains("exit status: 3"), "{wrong}");
    let wrong = place.narrows(["up", "-d", "--ttl", "2"]).expect(2).err;
    assert!(wrong.contains("--ttl"), "{wrong}");
    // One without a name gets one, and no two the same.
    let names = [0, 1].map(|_| place.narrows(["up", "-d"]).expect(0).out);
    assert!(names[0] != names[1] && names.iter().all(|name| name.contains('-')), "{names:?}");
    assert_eq!(place.runs().len(), 3);
    let down = place.narrows(["down", "--all"]).expect(0).out;
    assert_eq!(down.matches(" is down\n").count(), 3, "{down}");
    assert_eq!(place.narrows(["down", "--all"]).expect(0).out, "no network is up\n");
    let wrong = place.narrows(["down", "lab"]).expect(2).err;
    assert_eq!(wrong, "narrows: no active run `lab`; active: none\n");
}

#[test]
#[ignore = "needs namespaces"]
fn in_the_foreground_it_ends_by_a_signal_and_after_its_time() {
    let place = Place::new();
    for (signal, code) in [("INT", 0), ("TERM", 0), ("HUP", 129)] {
        let mut started = start(&mut place.command(["up", "--name", "lab"]));
        started.until_it_complains("narrows run lab is up");
        eventually("it is there", || place.runs().iter().any(|run| run["state"] == "running"));
        started.signal(signal);
        let ended = started.wait().expect(code);
        assert!(ended.err.contains("no traffic"), "{ended}");
    }
    let ended = place.narrows(["up", "--ttl", "300ms", "--json", "-"]).expect(0);
    assert!(ended.json()["end_ns"].as_u64() >= Some(300_000_000), "{ended}");
}

#[test]
#[ignore = "needs root, user namespaces, su, ping"]
fn an_ordinary_user_keeps_a_network_up_that_nobody_else_enters() {
    let place = Place::new();
    place.narrows(["up", "--name", "of-root", "-d"]).expect(0);
    let number = place.runs()[0]["run"].to_string();
    let line = format!(
        "export XDG_STATE_HOME=/nowhere TMPDIR=$(mktemp -d); unset NARROWS_REPORT
         narrows up --delay 5ms --name lab -d && narrows ls -q && narrows exec lab client ping -c 1 server &&
         narrows exec lab server sh -c 'ip -br addr show dev link; exit 9'; echo status $?
         narrows exec {number} client true; echo status $?
         narrows up -d --rate 5; echo status $?
         ls {} ; echo status $?
         ls -ld $TMPDIR/narrows-* $TMPDIR/narrows-*/*
         narrows down lab; narrows ls; rm -r $TMPDIR",
        quoted(place.folder.path().to_str().unwrap()),
    );
    let ended = crate::ordinary_user::as_nobody(&line).expect(0);
    assert!(ended.out.starts_with("lab\nlab\n") && ended.out.contains("1 received"), "{ended}");
    assert!(ended.out.contains("10.213.0.2/24") && ended.out.contains("status 9\nstatus 2\n"), "{ended}");
    assert!(ended.err.contains(&format!("no active run `{number}`")), "{ended}");
    assert!(ended.err.contains("`5` has no unit"), "where there is no file for it, too: {ended}");
    assert!(ended.err.contains("Permission denied"), "the run folder of another user: {ended}");
    assert!(ended.out.contains("drwx------") && ended.out.contains("srw-------"), "{ended}");
    assert!(ended.out.ends_with("no run is active\n") && ended.out.contains(" is down\n"), "{ended}");
}

#[test]
#[ignore = "needs namespaces"]
fn an_edited_scenario_is_applied_to_the_network_of_its_name() {
    const NET: &str = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\ndelay = \"1ms\"\n";
    let place = Place::new();
    let file = place.state.write("net.toml", NET);
    let file = file.to_str().unwrap();
    let replace = |flags: &[&str]| {
        place.narrows(["up", file, "--name", "lab", "--replace"].into_iter().chain(flags.iter().copied()))
    };
    // Where there is none, one comes up.
    assert_eq!(replace(&["-d"]).expect(0).out, "lab\n");
    let number = place.runs()[0]["run"].clone();
    assert_eq!(replace(&["-d"]).expect(0).out, "lab: no difference\n");
    fs::write(file, NET.replace("1ms", "3ms")).unwrap();
    assert_eq!(replace(&[]).expect(0).out, "lab: changed l.delay=3ms\n");
    assert_eq!(replace(&["--set", "l.loss=1%"]).expect(0).out, "lab: changed l.loss=1%\n");
    fs::write(file, NET.replace("1ms", "5ms") + "[hosts.c]\n").unwrap();
    let partly = replace(&[]).expect(1);
    assert!(partly.out.contains("l.delay=5ms") && partly.err.contains("hosts.c: nothing → {}"), "{partly}");
    assert!(partly.err.contains("narrows down lab"), "{partly}");
    fs::write(file, "nonsense").unwrap();
    assert!(replace(&[]).expect(2).err.contains("net.toml"));
    let runs = place.runs();
    assert_eq!((runs.len(), &runs[0]["run"], &runs[0]["generation"]), (1, &number, &3.into()), "{runs:?}");
    let nameless = place.narrows(["up", file, "--replace"]).expect(2).err;
    assert!(nameless.contains("--name"), "{nameless}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_service_manager_is_told_when_the_network_is_up_and_when_it_goes() {
    let place = Place::new();
    let socket = place.state.file("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let told = || {
        let mut text = [0; 256];
        let length = manager.recv(&mut text).unwrap();
        String::from_utf8(text[..length].to_vec()).unwrap()
    };
    let mut command = place.command(["up", "--name", "lab", "--quiet"]);
    let started = start(command.env("NOTIFY_SOCKET", &socket));
    assert_eq!(told(), "READY=1\nSTATUS=the network lab is up");
    place.narrows(["exec", "lab", "server", "true"]).expect(0);
    started.signal("TERM");
    assert_eq!(told(), "STOPPING=1");
    started.wait().expect(0);

    // The unit starts, changes and cleans up by commands that there are.
    let unit = include_str!("../../../../packaging/systemd/narrows@.service");
    let lines: Vec<_> = unit.lines().filter(|line| line.starts_with("Exec")).collect();
    assert_eq!(lines.len(), 3, "{unit}");
    for line in lines {
        let (_, words) = line.split_once("/usr/local/bin/narrows ").unwrap();
        let words = words.replace("%i", "lab").replace("%E", "/etc") + " --help";
        place.narrows(words.split_whitespace()).expect(0);
    }
}

#[test]
#[ignore = "needs namespaces, ping"]
fn events_say_what_happens_as_it_happens() {
    let place = Place::new();
    let file = place.state.write(
        "net.toml",
        "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\ndelay = { feed = \"radio\" }\n\
         [[timeline]]\nat = \"1ms\"\nset = { \"l.up.rate\" = \"3mbit\" }\n",
    );
    // No packet is so little late.
    let bound = ["--max-lateness", "max=1ns"];
    place.narrows(["up", file.to_str().unwrap(), "--name", "lab", "-d"].into_iter().chain(bound)).expect(0);
    let mut following = start(&mut place.command(["events", "lab"]));
    following.until_it_says("started");
    following.until_it_says("generation 1: changed at 1ms: l.up.rate=3mbit\n");
    place.narrows(["set", "--run", "lab", "l.up.rate=2mbit"]).expect(0);
    following.until_it_says(": l.up.rate=2mbit (narrows set --run lab l.up.rate=2mbit)\n");
    let values = place.state.write("values", "5ms\n6ms\n");
    let mut feed = place.command(["feed", "l.up/radio", "--run", "lab"]);
    finish(feed.stdin(fs::File::open(values).unwrap())).expect(0);
    following.until_it_says("feed-connected  a writer of l.up/radio\n");
    following.until_it_says("feed-gone       a writer of l.up/radio\n");
    place.narrows(["exec", "lab", "b", "true"]).expect(0);
    following.until_it_says("a program for host b (narrows exec lab b true)\n");
    place.narrows(["exec", "lab", "b", "ping", "-c", "1", "-W", "5", "a"]).expect(0);
    following.until_it_says(" released more than 1ns late\n");

    let past = place.narrows(["events", "lab", "--no-follow", "--json"]).expect(0).out;
    let past: Vec<Value> = past.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<_> = past.iter().filter_map(|event| event["number"].as_u64()).collect();
    assert_eq!(numbers, (1..=past.len() as u64).collect::<Vec<_>>());
    let changed = past.iter().find(|event| event["what"] == "changed").unwrap();
    assert_eq!(
        (&changed["generation"], &changed["by"]),
        (&2.into(), &"narrows set --run lab l.up.rate=2mbit".into())
    );
    place.narrows(["down", "lab"]).expect(0);
    assert!(following.wait().expect(0).out.ends_with("ended\n"));
    place.narrows(["events", "lab"]).expect(2);
}
