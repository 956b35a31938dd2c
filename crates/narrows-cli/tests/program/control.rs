//! The control socket as other programs use it: changes that are meant for one state of a run.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use narrows_io::unix_socket::connect_within;
use serde_json::{Value, json};

use crate::common::{NARROWS, Scratch, Started, finish, narrows, quoted, sound, start};
use crate::leftovers::RunFolder;

/// A run that waits for a line on its standard input, and a connection to it.
struct Run {
    started: Started,
    lines: BufReader<UnixStream>,
}

impl Run {
    fn start(flags: &[&str]) -> Self {
        Self::start_by(narrows(["run", "--quiet"]), flags)
    }

    fn start_by(mut command: Command, flags: &[&str]) -> Self {
        let line = "echo socket $NARROWS_CONTROL ready; read go; true";
        command.args(flags).args(["--", "sh", "-c", line]);
        let mut started = start(command.stdin(Stdio::piped()));
        let out = started.until_it_says("ready");
        let stream = UnixStream::connect(out.split_whitespace().nth(1).unwrap()).unwrap();
        Self { started, lines: BufReader::new(stream) }
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.lines.get_mut(), "{request}").unwrap();
        let mut answer = String::new();
        self.lines.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    fn set(&mut self, assignment: &str, generation: Option<u64>) -> Value {
        let mut request = json!({ "command": "set", "assignments": [assignment] });
        if let Some(generation) = generation {
            request["generation"] = generation.into();
        }
        self.ask(&request)
    }

    fn generation(&mut self) -> u64 {
        let of_scenario = self.ask(&json!({ "command": "scenario" }))["ok"]["generation"].clone();
        let stats = self.ask(&json!({ "command": "stats" }))["ok"].clone();
        assert!(of_scenario.as_u64() <= stats["generation"].as_u64(), "{of_scenario} {stats}");
        sound(&stats["report"]);
        of_scenario.as_u64().unwrap()
    }

    fn end(mut self) {
        self.started.tell("go");
        self.started.wait().expect(0);
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_change_for_a_state_that_is_no_more_is_refused_with_what_changed() {
    let mut run = Run::start(&["--rate", "10mbit"]);
    assert_eq!(run.generation(), 0);
    let first = run.set("link.up.delay=1ms", Some(0));
    assert_eq!(first["ok"]["generation"], 1, "{first}");
    assert!(first["ok"]["at_ns"].as_u64() > Some(0), "{first}");
    // Without a generation it is meant for any state.
    assert_eq!(run.set("link.up.delay=2ms", None)["ok"]["generation"], 2);
    let stale = run.set("link.up.delay=9ms", Some(1));
    assert_eq!(stale["stale"]["generation"], 2, "{stale}");
    let changes = stale["stale"]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{stale}");
    assert!(changes[0].as_str().unwrap().ends_with(": link.up.delay=2ms"), "{stale}");
    // Neither is what is wrong a change.
    assert!(run.set("link.up.delay=soon", None)["error"].is_string());
    let nothing = run.ask(&json!({ "command": "set", "assignments": [] }));
    assert_eq!(nothing, json!({ "ok": { "generation": 2, "at_ns": null, "text": "" } }));
    assert_eq!(run.generation(), 2);
    let toml = run.ask(&json!({ "command": "scenario" }))["ok"]["toml"].as_str().unwrap().to_owned();
    assert!(toml.contains("2ms") && !toml.contains("9ms"), "{toml}");
    run.end();
}

#[test]
#[ignore = "needs namespaces"]
fn steps_of_the_timeline_are_changes_too() {
    let scratch = Scratch::new();
    let file = scratch.write(
        "steps.toml",
        "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n\
         [[timeline]]\nat = \"1ms\"\nset = { \"l.up.delay\" = \"3ms\" }\n",
    );
    let mut run = Run::start(&[file.to_str().unwrap()]);
    assert_eq!(run.generation(), 1);
    let stale = run.set("l.up.delay=4ms", Some(0));
    assert_eq!(stale["stale"]["changes"], json!(["changed at 1ms: l.up.delay=3ms"]), "{stale}");
    assert_eq!(run.set("l.up.delay=4ms", Some(1))["ok"]["generation"], 2);
    run.end();
}

#[test]
#[ignore = "needs namespaces"]
fn effective_settings_are_those_in_force_defaults_included() {
    let mut run = Run::start(&["--rate", "10mbit", "--delay", "5ms"]);
    let mut up = |assignments: &[&str]| {
        let changed = run.ask(&json!({ "command": "set", "assignments": assignments }));
        assert!(changed["ok"].is_object(), "{changed}");
        let scenario = run.ask(&json!({ "command": "scenario" }));
        let directions = scenario["ok"]["directions"].as_array().unwrap();
        assert_eq!(directions.len(), 2, "{scenario}");
        directions.iter().find(|direction| direction["link"] == "link.up").unwrap().clone()
    };
    let mut wanted = json!({
        "link": "link.up", "lane": 0, "from": "client", "to": "server", "rate_bps": 10_000_000, "delay_ns": 5_000_000,
        "bound_packets": 20, "bound_bytes": null, "outage": false, "configured": "10mbit, queue 20 packets, delay 5ms"
    });
    assert_eq!(up(&[]), wanted);
    // A default bound is worked out when the run begins, and stays.
    wanted["rate_bps"] = json!(1_000_000);
    wanted["configured"] = json!("1mbit, queue 20 packets, delay 5ms");
    assert_eq!(up(&["link.up.rate=1mbit"]), wanted);
    let down = up(&["link.up.outage=true", "link.up.queue=9kB", "link.up.delay=1ms"]);
    let keys =
        ["rate_bps", "delay_ns", "bound_packets", "bound_bytes", "outage"].map(|key| down[key].clone());
    assert_eq!(json!(keys), json!([0, 1_000_000, null, 9000, true]), "{down}");
    run.end();
}

/// Each of two programs changes one option of NetEm again and again that `change` leaves as it is where it is not named.
#[test]
#[ignore = "needs namespaces"]
fn commands_of_tc_lose_nothing_of_one_another() {
    let run = Run::start(&["--netem", "delay 1ms"]);
    let number = run.started.id().to_string();
    std::thread::scope(|scope| {
        for [option, unit] in [["rate", "mbit"], ["corrupt", "%"]] {
            let number = &number;
            scope.spawn(move || {
                for value in 1..=12 {
                    let options = format!("delay 1ms {option} {value}{unit}");
                    let line =
                        format!("exec {NARROWS} tc --run {number} qdisc change dev link.up root netem");
                    let mut command = std::process::Command::new("sh");
                    finish(command.args(["-c", &format!("{line} {options}")])).expect(0);
                }
            });
        }
    });
    let shown =
        finish(&mut narrows(["tc", "--run", &number, "qdisc", "show", "dev", "link.up"])).expect(0).out;
    assert!(shown.contains("corrupt 12%") && shown.contains("rate 12mbit"), "{shown}");
    run.end();
}

#[test]
#[ignore = "needs namespaces"]
fn a_run_becomes_like_a_scenario_that_was_edited() {
    const NET: &str = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\ndelay = \"1ms\"\n";
    let scratch = Scratch::new();
    let file = scratch.write("net.toml", NET);
    let mut run = Run::start(&[file.to_str().unwrap()]);
    let number = run.started.id().to_string();
    let diff = || narrows(["diff", "--run", &number, file.to_str().unwrap()]);
    let set = || narrows(["set", "--run", &number, "--to", file.to_str().unwrap()]);
    assert_eq!(finish(&mut diff()).expect(0).out, "no difference\n");

    std::fs::write(&file, NET.replace("1ms", "3ms") + "loss = \"2%\"\n").unwrap();
    let shown = finish(&mut diff()).expect(1).out;
    assert_eq!(shown, "applicable while running:\n  l.delay=3ms\n  l.loss=2%\n");
    finish(&mut set()).expect(0);
    assert_eq!(run.generation(), 1, "one change at one instant");
    assert_eq!(finish(&mut diff()).expect(0).out, "no difference\n");

    // A host more is another run's; the rest goes, if that is wanted.
    std::fs::write(&file, NET.to_owned() + "[hosts.c]\n").unwrap();
    let refused = finish(&mut set()).expect(2).err;
    assert!(refused.contains("needs a new run:\n  hosts.c: nothing → {}\n"), "{refused}");
    assert_eq!(run.generation(), 1);
    let partly = finish(set().arg("--partly")).expect(0).err;
    assert!(partly.contains("hosts.c"), "{partly}");
    assert_eq!(run.generation(), 2);
    assert_eq!(finish(&mut diff()).expect(1).out, "needs a new run:\n  hosts.c: nothing → {}\n");
    run.end();

    let before = scratch.write("before.toml", NET);
    let both = [before.to_str().unwrap(), file.to_str().unwrap()];
    let json = finish(narrows(["diff", "--json", "-"]).args(both)).expect(1).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["others"][0]["path"], "hosts.c", "{json}");
    let wrong = finish(&mut narrows(["diff", "/nowhere.toml", before.to_str().unwrap()])).expect(2).err;
    assert!(wrong.contains("/nowhere.toml"), "{wrong}");
}

#[test]
#[ignore = "needs namespaces"]
fn thousands_of_requests_at_once_are_answered_while_the_run_hears_others() {
    const REQUESTS: usize = 2000;
    let run = Run::start(&["--delay", "1ms"]);
    let socket = run.lines.get_ref().peer_addr().unwrap().as_pathname().unwrap().to_owned();
    let mut flood = UnixStream::connect(&socket).unwrap();
    flood.write_all(&b"{\"command\":\"stats\"}\n".repeat(REQUESTS)).unwrap();
    let mut other =
        Run { started: run.started, lines: BufReader::new(UnixStream::connect(&socket).unwrap()) };
    // Long before the other has had its 2,000 answers, which nobody reads yet.
    assert_eq!(other.set("link.up.delay=2ms", None)["ok"]["generation"], 1);
    let answers = BufReader::new(flood).lines().map(Result::unwrap).take(REQUESTS);
    assert_eq!(answers.filter(|line| line.starts_with("{\"ok\"")).count(), REQUESTS);
    other.end();
}

#[test]
#[ignore = "needs namespaces"]
fn a_stopped_run_keeps_nobody_waiting_and_is_named() {
    let run = Run::start(&["--delay", "1ms"]);
    let socket = run.lines.get_ref().peer_addr().unwrap().as_pathname().unwrap().to_owned();
    let number = run.started.id();
    run.started.signal("STOP");
    // Until the kernel has room for no more of them.
    let mut waiting = Vec::new();
    loop {
        let stream = connect_within(&socket, Duration::from_millis(1));
        match stream {
            Ok(stream) => waiting.push(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("after {}: {error}", waiting.len()),
        }
    }
    let id = number.to_string();
    let set = ["set", "--run", &id, "link.up.delay=2ms"];
    for command in [&["stats", "--run", &id][..], &set] {
        let err = finish(&mut narrows(command.iter().copied())).expect(2).err;
        assert!(err.contains(&format!("run {id} does not answer within")), "{err}");
    }
    finish(&mut narrows(["clean"])).expect(0);
    drop(waiting);
    run.started.signal("CONT");
    run.end();
}

/// The owner may make a socket reachable for others: here by another name, with another mode.
#[test]
#[ignore = "needs root, su"]
fn nothing_is_read_for_a_client_with_fewer_rights() {
    let (folder, open) = (RunFolder::new(), Scratch::new());
    let (known, secret) =
        (open.write("known.txt", "10\n12.345\n11\n"), open.write("secret.txt", "10\nhunter2\n"));
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let program = open.file("narrows");
    fs::copy(NARROWS, &program).unwrap();
    let run = Run::start_by(folder.narrows(["run", "--quiet"]), &["--rate", "10mbit"]);
    let address = run.lines.get_ref().peer_addr().unwrap();
    let socket = open.file("lab.sock");
    fs::hard_link(address.as_pathname().unwrap(), &socket).unwrap();
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
    let samples = |file: &Path| {
        format!("link.delay={{ samples = {{ file = \"{}\", unit = \"ms\" }} }}", file.display())
    };
    let set = |user: &str, assignment: &str| {
        let words = [
            "env",
            &format!("NARROWS_CONTROL={}", socket.display()),
            program.to_str().unwrap(),
            "set",
            assignment,
        ];
        let line = words.map(quoted).join(" ");
        finish(Command::new("su").args([user, "-s", "/bin/sh", "-c", &line]))
    };
    set("nobody", "link.rate=5mbit").expect(0);
    for (file, at) in
        [(secret.as_path(), "hunter2"), (known.as_path(), "12.345"), (Path::new("/missing"), "no such")]
    {
        let err = set("nobody", &samples(file)).expect(2).err;
        assert!(err.contains("only files that the scenario uses already"), "{err}");
        assert!(!err.contains(at), "{err}");
    }
    assert!(set("root", &samples(&secret)).expect(2).err.contains("hunter2"));
    set("root", &samples(&known)).expect(0);
    // It is known now.
    set("nobody", "link.delay=1ms").expect(0);
    set("nobody", &samples(&known)).expect(0);
    run.end();
}
