//! What a user is told when something is wrong: where, what was found, what is allowed or to be done. Exit status 2, and
//! nothing is left behind.

use std::fs;
use std::process::Command;

use crate::common::{Finished, NARROWS, Scratch, finish, narrows, quoted, run, scenarios};

/// Two hosts, a link between them, and `rest` in the link's table.
fn with(rest: &str) -> String {
    format!("[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n{rest}\n")
}

/// The program says all these words on its error output alone, and ends with 2.
#[track_caller]
fn refused(ended: Finished, words: &[&str]) {
    assert_eq!(ended.code(), 2, "{ended}");
    assert!(ended.out.is_empty(), "{ended}");
    assert!(ended.err.starts_with("narrows: ") || ended.err.starts_with("error: "), "{ended}");
    for word in words {
        assert!(ended.err.contains(word), "does not say `{word}`: {ended}");
    }
    assert!(!ended.err.contains("panicked"), "{ended}");
}

#[test]
fn scenarios_with_a_mistake() {
    let twice = "[links.access]\nbetween = [\"client\", \"server\"]";
    let cases: &[(&str, &[&str])] = &[
        (
            "raet = \"1mbit\"",
            &["unknown key `raet`", ":5:1", "5 | raet = ", "did you mean `rate`?", "allowed: "],
        ),
        ("rate = 10", &["`10` has no unit", ":5:8", "links.access.rate", "10mbit", "kbit, mbit, gbit"]),
        ("delay = \"10\"", &["`10` has no unit", ":5:9", "links.access.delay", "10ms"]),
        ("delay = \"-5ms\"", &["`-5ms` is below zero", ":5:9", "links.access.delay"]),
        ("loss = 1.5", &["`1.5` is more than 1", ":5:8", "from 0% to 100%", "did you mean \"1.5%\"?"]),
        ("loss = \"150%\"", &["150%", "more than 100%", "from 0% to 100%"]),
        (twice, &["duplicate links: `access`", ":5:8", "a unique name"]),
        ("rate = ", &[":5:", "rate = "]),
        (
            "[[traffic]]\nfrom = \"client\"\nto = \"server\"\ncapture = \"no.pcap\"",
            &["cannot read", "no.pcap", "No such file"],
        ),
    ];
    for (rest, words) in cases {
        let scratch = Scratch::new();
        let file = scratch.write("bad.toml", &with(rest));
        let file = file.to_str().unwrap();
        for command in [&["check", file][..], &["sim", file], &["run", file, "--", "true"]] {
            refused(finish(&mut narrows(command.iter().copied())), words);
        }
        assert_eq!(scratch.names(), ["bad.toml"]);
    }
    let scratch = Scratch::new();
    let file = scratch
        .write("bad.toml", "[hosts.client]\n[hosts.server]\n[links.x]\nbetween = [\"client\", \"sever\"]\n");
    refused(
        finish(&mut narrows(["run", file.to_str().unwrap(), "--", "true"])),
        &["there is no host, junction, router or switch `sever`", ":4:", "links.x.between"],
    );
}

#[test]
fn a_timeline_that_would_take_all_the_time() {
    let scratch = Scratch::new();
    let round = "[[timeline]]\nat = \"1s\"\nevery = \"1ns\"\nset = { \"access.rate\" = \"1mbit\" }";
    let file = scratch.write("bad.toml", &with(round));
    refused(
        finish(&mut narrows(["check", file.to_str().unwrap()])),
        &["`1ns`", "1ms or more", "timeline.every"],
    );
}

#[test]
#[ignore = "needs namespaces"]
fn a_program_beside_the_command_that_fails_is_named() {
    let ended = finish(&mut narrows(["run", "--on", "server", "exit 3", "--", "true"]));
    refused(ended, &["`exit 3`", "host `server`", "ended before CMD began", "3"]);
}

#[test]
fn a_command_that_is_not_there_leaves_an_old_log_as_it_was() {
    let scratch = Scratch::new();
    let log = scratch.write("keep.log", "precious");
    let ended = finish(&mut narrows(["run", "--record", log.to_str().unwrap(), "--", "no-such-command"]));
    refused(ended, &["command not found", "`no-such-command`"]);
    assert_eq!(fs::read_to_string(log).unwrap(), "precious");
}

#[test]
fn every_mistake_of_a_file_is_shown_at_once() {
    let scratch = Scratch::new();
    let file = scratch.write("bad.toml", &with("raet = \"1mbit\"\ndelay = \"10\"\nloss = 7"));
    let ended = finish(&mut narrows(["check", file.to_str().unwrap()]));
    refused(ended, &["`raet`", "`10` has no unit", "`7`"]);
}

#[test]
fn flags_with_a_mistake() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--rate", "10"], &["`10` has no unit", "--rate 10", "10mbit"]),
        (&["--delay", "-5ms"], &["`-5ms` is below zero", "--delay -5ms"]),
        (&["--delay", "5ms/-6ms"], &["`-6ms` is below zero"]),
        (&["--loss", "101%"], &["101%", "from 0% to 100%"]),
        (&["--loss", "-1%"], &["-1%"]),
        (&["--queue", "13"], &["13", "--queue", "packets"]),
        (&["--order", "never"], &["never", "keep", "allow"]),
        (&["--overhead", "token-ring"], &["token-ring", "ethernet", "atm"]),
        (&["--mtu", "12"], &["12", "--mtu"]),
        (&["--rte", "10mbit"], &["--rte", "--rate"]),
        (&["--seed", "-1"], &["-1"]),
        (&["--on", "server"], &["--on", "2 values"]),
        (&["--probe=0"], &["0", "--probe"]),
        (&["--probe", "--probe-dscp", "efg"], &["--probe-dscp", "`efg`", "ef", "63"]),
        (&["--probe", "--probe-dscp", "64"], &["--probe-dscp", "`64`"]),
        (&["--probe", "--probe-length", "63"], &["63", "--probe-length", "64"]),
        (&["--probe-length", "200"], &["--probe"]),
        (&["--set", "link.rate"], &["has no `=`", "link.rate"]),
        (&["--set", "lnk.rate=1mbit"], &["lnk", "did you mean `link`"]),
        (&["--set", "link.raet=1mbit"], &["raet", "did you mean `rate`"]),
        (&["--record-whole"], &["--record"]),
    ];
    for (flags, words) in cases {
        let arguments = ["run"].iter().chain(*flags).chain(&["--", "true"]).copied();
        refused(finish(&mut narrows(arguments)), words);
    }
    refused(
        finish(&mut narrows(["run", "--rate", "1mbit"])),
        &["say what to run", "-- sh -c", "$NARROWS_SERVER"],
    );
    refused(finish(&mut narrows(["rum"])), &["rum", "run"]);
    refused(finish(&mut narrows(["sim"])), &["narrows sim scenarios/adsl.toml", "narrows sim --rate"]);
    let adsl = scenarios().join("adsl.toml");
    let adsl = adsl.to_str().unwrap();
    refused(
        finish(&mut narrows(["run", adsl, "--rate", "1mbit", "--", "true"])),
        &["a scenario file with link flags"],
    );
    refused(finish(&mut narrows(["sim", "--seed", "3", "--replay", "a.log"])), &["--seed", "--replay"]);
    refused(
        finish(&mut narrows(["sim", adsl, "--interval", "5", "--series", "/dev/null"])),
        &["`5` has no unit"],
    );
    refused(finish(&mut narrows(["sim", adsl, "--duration", "soon"])), &["soon", "--duration", "10ms"]);
}

#[test]
fn files_that_are_not_there_or_cannot_be_written() {
    let scratch = Scratch::new();
    let nowhere = scratch.file("no/such/file");
    let nowhere = nowhere.to_str().unwrap();
    let folder = scratch.path().to_str().unwrap();
    let adsl = scenarios().join("adsl.toml");
    let adsl = adsl.to_str().unwrap();
    refused(finish(&mut narrows(["check", nowhere])), &[nowhere, "no such file"]);
    refused(finish(&mut narrows(["run", nowhere, "--", "true"])), &[nowhere, "no such file"]);
    refused(finish(&mut narrows(["sim", "--replay", nowhere])), &[nowhere, "No such file"]);
    refused(finish(&mut narrows(["check", adsl, "--json", nowhere])), &[nowhere, "there is no folder"]);
    for flag in ["--json", "--packets", "--series", "--capture"] {
        refused(finish(&mut narrows(["sim", adsl, flag, nowhere])), &["cannot write", nowhere]);
        refused(finish(&mut narrows(["sim", adsl, flag, folder])), &["cannot write", folder]);
    }
    assert!(scratch.names().is_empty(), "{:?}", scratch.names());
}

#[test]
#[ignore = "needs namespaces"]
fn files_that_a_run_cannot_write() {
    let scratch = Scratch::new();
    let nowhere = scratch.file("nowhere/file");
    for flag in ["--json", "--record"] {
        for file in [nowhere.as_path(), scratch.path()] {
            let file = file.to_str().unwrap();
            let ended = finish(&mut narrows(["run", flag, file, "--", "echo", "never"]));
            refused(ended, &["cannot write", file]);
        }
    }
    assert!(scratch.names().is_empty(), "{:?}", scratch.names());
}

#[test]
#[ignore = "needs namespaces"]
fn a_full_disk_is_an_error() {
    for flag in ["--json", "--capture"] {
        let ended = finish(&mut narrows(["run", "--quiet", flag, "/dev/full", "--", "true"]));
        refused(ended, &["cannot write", "/dev/full", "No space left"]);
    }
    for flag in ["--record", "--series", "--packets"] {
        let ended = finish(&mut narrows(["run", "--quiet", flag, "/dev/full", "--", "true"])).expect(2);
        assert!(
            ended.err.contains("/dev/full") && ended.err.contains("INCOMPLETE: No space left"),
            "{ended}"
        );
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_limit_on_the_size_of_files_is_an_error() {
    let scratch = Scratch::new();
    let file = scratch.file("out");
    // The beginning of each fits, but for the report.
    for (flag, blocks) in [("--json", 1), ("--record", 16), ("--capture", 16)] {
        // What it says goes to a pipe: the limit is on files.
        let words = format!(
            "{{ (ulimit -f {blocks}; exec {NARROWS} run --quiet --delay 1ms --probe=1000 {flag} {} -- sleep 0.5) 2>&1; \
             echo status $?; }} | cat",
            file.display()
        );
        let said = finish(Command::new("sh").args(["-c", &words])).out;
        assert!(said.contains("/out") && said.contains("File too large"), "{flag}: {said}");
        assert!(said.ends_with("status 2\n"), "{flag}: {said}");
    }
    // A program is ended by the signal as always.
    assert_eq!(finish(&mut run(["--quiet"], "kill -s XFSZ $$")).code(), 128 + 25);
}

#[test]
#[ignore = "needs namespaces"]
fn programs_and_hosts_that_are_not_there() {
    let scratch = Scratch::new();
    let json = scratch.file("report.json");
    let json = json.to_str().unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["--", "no-such-command"], &["command not found: `no-such-command`"]),
        (&["--", "ls -l"], &["command not found: `ls -l`", "separate words"]),
        (&["--", "/etc/passwd"], &["not allowed to execute `/etc/passwd`"]),
        (&["--host", "nowhere", "--", "true"], &["no host `nowhere`", "`client`, `server`"]),
        (&["--on", "nowhere", "true", "--", "true"], &["no host `nowhere`", "`client`, `server`"]),
    ];
    for (arguments, words) in cases {
        refused(finish(narrows(["run", "--json", json]).args(*arguments)), words);
        assert!(scratch.names().is_empty(), "an empty report is none: {:?}", scratch.names());
    }
}

#[test]
fn runs_that_are_not_there() {
    refused(finish(&mut narrows(["set", "--run", "1", "link.rate=1mbit"])), &["no active run `1`"]);
    refused(finish(&mut narrows(["stats", "--run", "1"])), &["no active run `1`"]);
    let mut inside = narrows(["set", "link.rate=1mbit"]);
    refused(
        finish(inside.env("NARROWS_CONTROL", "/no/such.sock")),
        &["no run answers at /no/such.sock", "has ended"],
    );
}

#[test]
fn captures_and_logs_that_are_cut_short_or_something_else() {
    let scratch = Scratch::new();
    let capture = scratch.file("part.pcapng");
    let adsl = scenarios().join("adsl.toml");
    let arguments = ["sim", adsl.to_str().unwrap(), "--duration", "1s", "--quiet", "--capture"];
    finish(narrows(arguments).arg(&capture)).expect(0);
    let whole = fs::read(&capture).unwrap();
    fs::write(&capture, &whole[..1000]).unwrap();
    let played =
        with("[[traffic]]\nname = \"t\"\nfrom = \"client\"\nto = \"server\"\ncapture = \"part.pcapng\"");
    let file = scratch.write("played.toml", &played);
    let file = file.to_str().unwrap();
    refused(finish(&mut narrows(["sim", file])), &["part.pcapng is cut short", "at byte ", "only "]);
    fs::write(&capture, "no capture at all").unwrap();
    refused(finish(&mut narrows(["sim", file])), &["part.pcapng"]);
    fs::remove_file(&capture).unwrap();
    refused(finish(&mut narrows(["sim", file])), &["part.pcapng", "No such file"]);

    let log = scratch.file("run.log");
    for (bytes, word) in [(&b""[..], "it is empty"), (b"root:x:0:0", "is not an input log of narrows")] {
        fs::write(&log, bytes).unwrap();
        refused(finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()])), &["run.log", word]);
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_log_that_is_cut_in_its_header() {
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let log_path = log.to_str().unwrap();
    finish(&mut narrows(["run", "--quiet", "--record", log_path, "--", "true"])).expect(0);
    let whole = fs::read(&log).unwrap();
    for length in [5, 40] {
        fs::write(&log, &whole[..length]).unwrap();
        refused(finish(&mut narrows(["sim", "--replay", log_path])), &["run.log is cut short", "at byte "]);
    }
}

/// A named namespace, which goes with the value.
struct Named(String);

impl Named {
    fn new(purpose: &str) -> Self {
        let named = Self(format!("narrows-{purpose}-{}", std::process::id()));
        named.ip(&["netns", "add", &named.0]);
        named
    }

    #[track_caller]
    fn ip(&self, arguments: &[&str]) -> String {
        let output = Command::new("ip").args(arguments).output().unwrap();
        assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn interfaces(&self) -> String {
        self.ip(&["-n", &self.0, "-brief", "link"])
    }

    /// A scenario with the client in it.
    fn scenario(&self, scratch: &Scratch) -> String {
        let text = with("").replace("[hosts.client]", &format!("[hosts.client]\nnamespace = \"{}\"", self.0));
        scratch.write("named.toml", &text).to_str().unwrap().to_owned()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

#[test]
#[ignore = "needs root, ip, ping"]
fn an_existing_namespace_is_used_and_left_as_it_was() {
    let (scratch, named) = (Scratch::new(), Named::new("used"));
    let before = named.interfaces();
    let file = named.scenario(&scratch);
    let line = "exec >&2; ip netns identify $$; ping -c 1 $NARROWS_SERVER";
    let ended = finish(&mut narrows(["run", &file, "--json", "-", "--", "sh", "-c", line])).expect(0);
    assert!(ended.err.contains(&named.0) && ended.err.contains("1 received"), "{ended}");
    assert_eq!(named.interfaces(), before);

    // Also when narrows is killed.
    let _turn = crate::leftovers::turn();
    let mut started =
        crate::common::start(&mut narrows(["run", &file, "--", "sh", "-c", "echo ready; exec sleep 1000"]));
    started.until_it_says("ready");
    assert_ne!(named.interfaces(), before);
    started.signal("KILL");
    assert_eq!(started.wait().ended_by(), Some(9));
    crate::common::eventually("the interface is gone", || named.interfaces() == before);
    crate::leftovers::clean();
}

#[test]
#[ignore = "needs root, ip"]
fn an_interface_of_that_name_is_there_already() {
    let (scratch, named) = (Scratch::new(), Named::new("taken"));
    named.ip(&["-n", &named.0, "link", "add", "access", "type", "veth", "peer", "name", "other"]);
    let before = named.interfaces();
    let ended = finish(&mut narrows(["run", &named.scenario(&scratch), "--", "true"]));
    refused(ended, &["host `client`", "access", "exists"]);
    assert_eq!(named.interfaces(), before);
}

#[test]
#[ignore = "needs namespaces"]
fn namespaces_that_are_not_there() {
    let scratch = Scratch::new();
    let cases = [
        (
            "namespace = \"no-such-namespace\"",
            &["no network namespace `no-such-namespace`", "/run/netns/"][..],
        ),
        ("namespace = \"/etc/passwd\"", &["`/etc/passwd` is not a network namespace"]),
        ("pid = 2147483647", &["2147483647", "does not exist"]),
    ];
    for (place, words) in cases {
        let file = scratch
            .write("bad.toml", &with("").replace("[hosts.client]", &format!("[hosts.client]\n{place}")));
        let ended = finish(&mut narrows(["run", file.to_str().unwrap(), "--", "true"]));
        refused(ended, &[&["host `client`"][..], words].concat());
    }
}

#[test]
#[ignore = "needs root, ip, su"]
fn an_ordinary_user_lacks_the_privilege_for_a_namespace_of_root() {
    let (scratch, named) = (Scratch::new(), Named::new("closed"));
    let file = named.scenario(&scratch);
    let program = scratch.file("narrows");
    fs::copy(NARROWS, &program).unwrap();
    let line = format!("{} run {} -- true", quoted(program.to_str().unwrap()), quoted(&file));
    let ended = finish(Command::new("su").args(["nobody", "-s", "/bin/sh", "-c", &line]));
    refused(ended, &["host `client`", "not allowed to", "CAP_", "run it as root"]);
}
