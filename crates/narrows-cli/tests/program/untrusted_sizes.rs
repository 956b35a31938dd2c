//! Scenarios and scripts of absurd sizes: told or refused, within a test's patience and without a crash.

use std::fmt::Write;
use std::fs::{self, File};
use std::process::Command;

use crate::common::{NARROWS, Scratch, finish, narrows, run_folder};

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn tens_of_thousands_of_links_and_hosts_are_told() {
    const LINKS: usize = 20_000;
    let scratch = Scratch::new();
    let parallel = lines(LINKS, |link| {
        format!("[links.l{link}]\nbetween = [\"a\", \"b\"]\nrate = \"10mbit\"\ndelay = \"1ms\"\n")
    });
    let parallel = scratch.write("parallel.toml", &format!("[hosts.a]\n[hosts.b]\n{parallel}"));
    let mut row = lines(LINKS + 1, |host| format!("[hosts.h{host}]\n"));
    for link in 0..LINKS {
        let _ = writeln!(row, "[links.l{link}]\nbetween = [\"h{link}\", \"h{}\"]", link + 1);
    }
    let row = scratch.write("row.toml", &row);
    for (file, more) in [(parallel, LINKS - 1000), (row, LINKS - 1000)] {
        let ended = finish(&mut narrows(["check", "--full", file.to_str().unwrap()])).expect(0);
        assert!(ended.out.ends_with(&format!("and {more} more paths\n")), "{}", &ended.out[..200]);
    }
}

#[test]
fn scripts_of_tc_without_end_are_refused_in_words() {
    let scratch = Scratch::new();
    let devices = lines(60_000, |device| format!("tc qdisc add dev e{device} root netem delay 1ms\n"));
    let htb = "tc qdisc add dev e root handle 1: htb default 1\ntc class add dev e parent 1: classid 1:1 htb rate 1gbit\n";
    let below = |class: usize| {
        format!("tc class add dev e parent 1:{:x} classid 1:{:x} htb rate 1gbit\n", class + 1, class + 2)
    };
    let prio = |at: usize| format!("tc qdisc add dev e parent {:x}:1 handle {:x}: prio\n", at + 1, at + 2);
    let root = "tc qdisc add dev e root handle 1: prio\n";
    let cases = [
        (devices, "60000 devices, the most that a script may configure is 256"),
        (format!("{htb}{}", lines(3000, below)), "below 8 classes or more"),
        (format!("{root}{}", lines(3000, prio)), "disciplines nested 17 deep"),
    ];
    for (script, words) in cases {
        let script = scratch.write("script.sh", &script);
        let ended = finish(&mut narrows(["tc", "check", script.to_str().unwrap()])).expect(2);
        assert!(ended.err.contains(words), "{}", ended.err);
    }
    // As many as may be are taken, and all go with the outermost.
    let most = format!("{root}{}", lines(15, prio));
    let script = scratch.write("script.sh", &format!("{most}tc qdisc del dev e root\n{most}"));
    finish(&mut narrows(["tc", "check", script.to_str().unwrap()])).expect(0);
}

#[test]
fn a_scenario_without_end_is_refused() {
    let scratch = Scratch::new();
    let sparse = scratch.file("sparse");
    File::create(&sparse).unwrap().set_len((128 << 20) + 1).unwrap();
    let commands = [(&["check"][..], 16), (&["sim"], 16), (&["ipfw", "check"], 128), (&["run", "--tc"], 128)];
    for (command, most) in commands {
        for file in [sparse.to_str().unwrap(), "/dev/zero"] {
            let rest = if command[0] == "run" { &["--", "true"][..] } else { &[] };
            let arguments = command.iter().chain([&file]).chain(rest).copied();
            let ended = finish(&mut narrows(arguments)).expect(2);
            let longer = format!("cannot be read: it is longer than {most} MiB");
            assert!(ended.err.contains(&longer), "{}", ended.err);
        }
    }
    // A pipe is as good as a file.
    let adsl = crate::common::scenarios().join("adsl.toml");
    let line = format!("cat {} | {NARROWS} check /dev/stdin", adsl.display());
    finish(Command::new("sh").args(["-c", &line])).expect(0);
}

/// Input that would take gigabytes or minutes is refused by its size, its depth or its counts.
#[test]
fn absurd_input_is_refused_with_little_memory() {
    let scratch = Scratch::new();
    let gigabyte = scratch.file("gigabyte");
    File::create(&gigabyte).unwrap().set_len(1 << 30).unwrap();
    let link = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n";
    let deep = |open: &str, close: &str| [open.repeat(100_000), close.repeat(100_000)].concat();
    let bomb = lines(12, |at| {
        let (name, inner) = (b'b' + at as u8, b'a' + at as u8);
        let inner = vec![format!("*{}", char::from(inner)); 9].join(",");
        format!("{}: &{0} [{inner}]\n", char::from(name))
    });
    let rules = |count: usize| {
        lines(count, |rule| format!("add {} count ip from any to any\n", 65_000 - rule % 65_000))
    };
    let cases: [(&str, String, &str); 15] = [
        ("check", format!("{link}loss = {}\n", deep("[", "]")), "max recursion depth"),
        ("check", format!("{link}a{} = 1\n", ".a".repeat(100_000)), "recursion limit"),
        ("check", "\n".repeat(2_100_000), "2100000 lines and items: at most 2000000"),
        ("check", format!("{link}loss = [{}]\n", "0,".repeat(2_100_000)), "lines and items: at most 2000000"),
        ("check", format!("{link}{}", lines(100_000, |key| format!("k{key}=1\n"))), "and 99980 more"),
        ("check", format!("{link}queue = \"1000000000000 packets\"\n"), "too many packets"),
        ("topology graphml", format!("<graphml>{}</graphml>", deep("<a>", "</a>")), "there is no <graph>"),
        (
            "topology csv",
            format!("a,b\n{}", lines(100_000, |n| format!("a,n{n}\n"))),
            "more than 50000 links",
        ),
        ("topology mininet", deep("[", "]"), "recursion limit exceeded"),
        ("topology containerlab", deep("[", "]"), "recursion limit exceeded"),
        (
            "compose --check -f",
            format!("a: &a [x]\n{bomb}services: {{ x: {{ labels: *m }} }}\n"),
            "alias expansion",
        ),
        ("compose --check -f", "\n".repeat(200_000), "more than 100000 lines"),
        ("tc check", "for i in {1..1000000000}; do\ntc qdisc show\ndone\n".into(), "more than 65536 numbers"),
        ("report", deep("[", "]"), "expected a report"),
        ("toxi --port 0 --config", deep("[", "]"), "recursion limit exceeded"),
    ];
    let bounded = |command: &str, file: &std::path::Path| {
        // What the program itself takes, with its debug information, is a third of it.
        let line = format!("ulimit -v 400000; exec {NARROWS} {command} {}", file.display());
        finish(Command::new("sh").args(["-c", &line]))
    };
    for (command, text, words) in cases {
        let ended = bounded(command, &scratch.write("input", &text)).expect(2);
        assert!(ended.err.contains(words), "{command}: {}", &ended.err[..ended.err.len().min(2000)]);
        assert!(ended.err.len() < 20_000, "{command}: {} bytes", ended.err.len());
    }
    for command in [
        "report",
        "compare",
        "trace info",
        "pattern info",
        "profile info",
        "dist fit",
        "sim --replay",
        "topology csv",
        "topology graphml",
        "compose --check -f",
        "tc check",
    ] {
        let second = if command == "compare" { gigabyte.to_str().unwrap() } else { "" };
        let ended = bounded(&format!("{command} {second}"), &gigabyte).expect(2);
        assert!(
            ended.err.starts_with("narrows: ") && ended.err.lines().count() < 12,
            "{command}: {}",
            ended.err
        );
    }
    // The rules of a script stand in order, whatever the order of its lines.
    let script = scratch.write("script.conf", &rules(20_000));
    finish(&mut narrows(["ipfw", "check", script.to_str().unwrap()])).expect(0);
}

#[test]
#[ignore = "needs namespaces"]
fn memory_that_runs_out_is_an_error_in_a_line() {
    let starts = |kilobytes: &u32| {
        let line = format!("ulimit -v {kilobytes}; exec {NARROWS} --version");
        let ended = finish(Command::new("sh").args(["-c", &line]));
        ended.ended_by().is_none() && ended.code() == 0
    };
    // With less, this build is not even loaded.
    let least = (50_000..200_000).step_by(1_000).find(starts).expect("it starts with some limit");
    for kilobytes in [least, 100_000, 135_000, 160_000] {
        // The shell's number becomes that of the run, with which the names of its files begin.
        let line = format!("ulimit -v {kilobytes}; echo $$; exec {NARROWS} run --quiet --delay 1ms -- true");
        let ended = finish(Command::new("sh").args(["-c", &line]));
        let number = format!("{}.", ended.out.lines().next().unwrap());
        let left = fs::read_dir(run_folder()).map_or(Vec::new(), |files| {
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
        });
        assert!(!left.iter().any(|name| name.starts_with(&number)), "{ended}\n{left:?}");
        // Never by a signal.
        let code = ended.code();
        assert!(code == 0 || code == 2, "{ended}");
        if code == 2 {
            assert!(ended.err.starts_with("narrows: ") && ended.err.lines().count() == 1, "{ended}");
        }
    }
}
