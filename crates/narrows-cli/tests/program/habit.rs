//! What is alike in every command: `--json`, flags of a link, the end by Ctrl-C, help, suggestions.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Finished, NARROWS, Scratch, eventually, finish, narrows, run, scenarios, sound, start};

fn scenario(name: &str) -> String {
    scenarios().join(name).to_str().unwrap().to_owned()
}

/// Commands with a result that need neither a run nor a host that allows one.
fn with_results() -> Vec<Vec<String>> {
    let samples = concat!(env!("CARGO_TARGET_TMPDIR"), "/habit-samples").to_owned();
    fs::write(&samples, "1\n2\n3\n4\n5\n9\n").unwrap();
    let ipfw = scenario("ipfw/adsl.conf");
    let (mahi, cell) = (scenario("traces/fading.mahi"), scenario("traces/cell.csv"));
    let (pattern, profile) =
        (scenario("traces/bursts.pattern"), scenario("profiles/802.11b-11-long.profile"));
    let adsl = scenario("adsl.toml");
    [
        &["check", &adsl][..],
        &["check", "--rate", "1mbit"],
        &["sim", &adsl, "--duration", "200ms"],
        &["sim", "--rate", "1mbit", "--duration", "200ms"],
        &["sched", "bench", "--algorithms", "fifo", "--flows", "1", "--packets", "10k", "--runs", "1"],
        &["sched", "fairness", "--algorithms", "drr", "--packets", "2000"],
        &["sched", "compare", "--algorithms", "fifo", "--duration", "200ms"],
        &["sched", "differentiation", "--packets", "1000", "--loads", "70"],
        &["trace", "info", &mahi],
        &["trace", "info", &cell],
        &["pattern", "info", &pattern],
        &["profile", "info", &profile],
        &["dist", "fit", &samples, "--unit", "ms"],
        &["tc", "check", "delay 10ms loss 1%"],
        &["ipfw", "check", &ipfw],
    ]
    .into_iter()
    .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
    .collect()
}

fn command(words: &[String], more: &[&str]) -> Finished {
    finish(&mut narrows(words.iter().map(String::as_str).chain(more.iter().copied())))
}

#[test]
fn json_is_asked_for_in_one_way() {
    let scratch = Scratch::new();
    for words in with_results() {
        let file = scratch.file("out.json");
        let alone = command(&words, &["--json"]).expect(0).json();
        let dash = command(&words, &["--json", "-"]).expect(0).json();
        let beside = command(&words, &["--json", file.to_str().unwrap()]).expect(0);
        let written: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert!(alone["schema"].as_u64().is_some(), "{words:?}: no version");
        assert_eq!((keys(&alone), keys(&alone)), (keys(&dash), keys(&written)), "{words:?}");
        // The text stands beside a file; of what is timed, but for the figures.
        let lines = |text: &str| {
            text.lines().map(|line| line.replace(|c: char| c.is_ascii_digit(), "")).collect::<Vec<_>>()
        };
        assert_eq!(lines(&beside.out).first(), lines(&command(&words, &[]).out).first(), "{words:?}");
        assert_eq!(beside.out.lines().count(), command(&words, &[]).out.lines().count(), "{words:?}");
        assert!(!beside.out.trim().is_empty() && !beside.out.starts_with('{'), "{words:?}");
        units_end_names(&alone, &words);
    }
}

/// Times are nanoseconds and say so, rates are bits a second, extremes are `min` and `max`.
fn units_end_names(value: &Value, words: &[String]) {
    const OTHERS: [&str; 9] = [
        "_seconds",
        "_ms",
        "_us",
        "bits_per_second",
        "minimum",
        "maximum",
        "least_ns",
        "greatest_ns",
        "median_ns",
    ];
    match value {
        Value::Object(entries) => {
            for (key, value) in entries.iter().filter(|(key, _)| *key != "parameters") {
                assert!(!OTHERS.iter().any(|other| key.ends_with(other)), "{words:?}: {key}");
                units_end_names(value, words);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| units_end_names(item, words)),
        _ => {}
    }
}

#[test]
fn what_the_host_can_do_is_json_too() {
    let found = finish(&mut narrows(["doctor", "--json"]));
    let json = found.json();
    assert_eq!(json["works"].as_bool(), Some(found.code() == 0));
    assert!(json["modes"]["sim, check and others"]["works"].as_bool().unwrap(), "{json}");
    assert!(json["host"]["kernel"]["finding"].is_string() && json["user"]["acts as"]["finding"].is_string());
    assert_eq!(json["schema"], 1);
}

#[test]
#[ignore = "needs namespaces"]
fn the_output_of_programs_does_not_mix_with_json() {
    let flags = ["--rate", "10mbit", "--on", "server", "echo beside", "--json", "-"];
    let mut piped = run(flags, "echo noise; ping -c 1 -W 9 $NARROWS_SERVER >&2; echo more");
    let done = finish(&mut piped).expect(0);
    sound(&done.json());
    for word in ["noise", "more", "beside"] {
        assert!(done.err.contains(&format!("{word}\n")) && !done.out.contains(word), "{done}");
    }
    // Without JSON there, it is the programs'.
    let done = finish(&mut run(["--on", "server", "echo beside"], "echo noise")).expect(0);
    assert!(done.out.contains("noise") && done.out.contains("beside"), "{done}");
}

#[test]
fn json_takes_the_place_of_no_scenario() {
    let scratch = Scratch::new();
    let text = "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n";
    let file = scratch.write("net.toml", text);
    let name = file.to_str().unwrap();
    for words in [&["check"][..], &["sim"], &["sched", "compare"]] {
        let refused = finish(narrows(words.iter().copied()).args(["--json", name])).expect(2);
        assert!(
            refused.err.contains(name) && refused.err.contains("put the file before the flag"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    let report = scratch.write("run.json", "{}");
    let refused = finish(narrows(["report", "--json"]).arg(&report)).expect(2);
    assert!(
        refused.err.contains("narrows report") && fs::read_to_string(&report).unwrap() == "{}",
        "{refused}"
    );
    let both = finish(&mut narrows(["sim", "--rate", "1mbit", "--json", "--packets", "-"])).expect(2);
    assert!(both.err.contains("--json and --packets"), "{both}");
}

#[test]
fn plots_are_asked_for_in_one_way() {
    let scratch = Scratch::new();
    let (cell, profile) = (scenario("traces/cell.csv"), scenario("profiles/802.11b-11-long.profile"));
    let figure = scratch.file("figure.svg");
    let figure = figure.to_str().unwrap();
    for words in [
        &["trace", "plot", &cell, "--plot"][..],
        &["trace", "plot", &cell, "-o"],
        &["profile", "plot", &profile, "--plot"],
        &["profile", "plot", &profile, "--output"],
        &["sched", "compare", "--algorithms", "fifo", "--duration", "200ms", "--plot"],
    ] {
        finish(narrows(words.iter().copied()).arg(figure)).expect(0);
        assert!(fs::read_to_string(figure).unwrap().starts_with("<svg"), "{words:?}");
        fs::remove_file(figure).unwrap();
    }
    for words in [&["trace", "plot", &cell, "--plot", "-"][..], &["trace", "plot", &cell, "--svg"]] {
        assert!(finish(&mut narrows(words.iter().copied())).expect(0).out.starts_with("<svg"));
    }
    let by_flag =
        finish(&mut narrows(["trace", "convert", &cell, "-o", "-", "--to", "netem-trace"])).expect(0);
    assert_eq!(
        by_flag.out,
        finish(&mut narrows(["trace", "convert", &cell, "-", "--to", "netem-trace"])).out
    );
}

const LINK: [&str; 8] = ["--rate", "2mbit/500kbit", "--delay", "20ms", "--jitter", "4ms", "--loss", "2%"];

#[test]
fn flags_of_a_link_are_the_scenario_that_they_make() {
    let scratch = Scratch::new();
    let file = scratch.write(
        "net.toml",
        r#"
        seed = 7
        duration = "2s"
        [hosts.client]
        [hosts.server]
        [links.link]
        between = ["client", "server"]
        delay = "20ms"
        jitter = "4ms"
        loss = "2%"
        up = { rate = "500kbit" }
        down = { rate = "2mbit" }
        [[traffic]]
        from = "client"
        to = "server"
        aimd = {}
        [[traffic]]
        from = "server"
        to = "client"
        aimd = {}
        [[traffic]]
        from = "server"
        to = "client"
        poisson = "100/s"
        length = "200 bytes"
        "#,
    );
    let traffic = r#"{ poisson = "100/s", length = "200 bytes", from = "server", to = "client" }"#;
    let by_flags = finish(
        narrows(["sim"])
            .args(LINK)
            .args(["--seed", "7", "--duration", "2s", "--traffic", "aimd", "--traffic", traffic])
            .args(["--packets", "-"]),
    );
    let by_file = finish(narrows(["sim"]).arg(&file).args(["--packets", "-"]));
    // A row for each packet: arrival, verdict, instant.
    assert!(by_file.out.lines().count() > 300, "{by_file}");
    assert_eq!(by_flags.expect(0).out, by_file.expect(0).out);
}

#[test]
fn flags_alone_offer_most_of_the_rate() {
    let done = finish(narrows(["sim"]).args(LINK).arg("--json")).expect(0);
    let report = done.json();
    assert!(done.err.contains("450kbit up") && done.err.contains("1.8mbit down"), "{done}");
    assert_eq!(report["end_ns"], 10_000_000_000u64);
    let down = crate::common::direction(&report, "link.down");
    let offered = down["offered"]["rate_bps"].as_u64().unwrap();
    assert!((1_790_000..=1_810_000).contains(&offered), "{offered}");
    let none = finish(&mut narrows(["sim", "--delay", "5ms"])).expect(2);
    assert!(none.err.contains("--traffic constant=10mbit"), "{none}");
}

#[test]
fn a_ctrl_c_gives_what_there_is() {
    let long =
        ["sim", "--rate", "10mbit", "--duration", "200h", "--series", "/dev/stderr", "--interval", "1s"];
    let mut sim = start(&mut narrows(long));
    // It is under way: this is a row, not the message about the traffic, which comes before signals are caught.
    sim.until_it_complains(",link.up,");
    sim.signal("INT");
    let sim = sim.wait().expect(130);
    assert!(sim.out.contains("interrupted after") && sim.out.contains("of 720000.0 s"), "{sim}");
    assert!(sim.err.contains("narrows: interrupted") && !sim.err.contains("left:"), "{sim}");

    let lab = start(&mut narrows(["sched", "compare", "--duration", "200h", "--json"]));
    eventually("it computes", || fs::read_to_string(format!("/proc/{}/status", lab.id())).is_ok_and(catches));
    lab.signal("TERM");
    let lab = lab.wait().expect(143);
    let json = lab.json();
    assert_eq!(
        (json["interrupted"].as_bool(), json["algorithms"].as_array().map(Vec::len)),
        (Some(true), Some(0))
    );
}

/// Whether a process catches SIGTERM.
fn catches(status: String) -> bool {
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << 14) != 0)
}

#[test]
#[ignore = "needs namespaces"]
fn programs_beside_the_command_are_asked_after_it() {
    let scratch = Scratch::new();
    let order = scratch.file("order");
    let order = order.to_str().unwrap();
    // CMD takes its time: whoever were asked at the same instant would be there before it.
    let who = |name: &str, way: &str, first: &str| {
        format!("trap '{first}echo {name} {way} >> {order}; exit 0' {way}")
    };
    let [by_int, by_term] = ["INT", "TERM"].map(|way| who("server", way, ""));
    let beside = format!("{by_int}; {by_term}; while :; do sleep 0.02; done");
    let line = format!("{}; echo ready; while :; do sleep 0.02; done", who("client", "INT", "sleep 0.1; "));
    let mut going = start(&mut run(["--on", "server", &beside], &line));
    going.until_it_says("ready");
    // As a terminal does: to all in front of it.
    going.signal_group("INT");
    going.wait().expect(0);
    assert_eq!(fs::read_to_string(order).unwrap(), "client INT\nserver INT\n");

    fs::remove_file(order).unwrap();
    finish(&mut run(["--on", "server", &beside], "exit 3")).expect(3);
    assert_eq!(fs::read_to_string(order).unwrap(), "server TERM\n");
}

#[test]
fn suggestions_help_or_are_not_made() {
    let says = |words: &[&str], expected: &[&str]| {
        let done = finish(&mut narrows(words.iter().copied())).expect(2);
        for word in expected {
            assert!(done.err.contains(word), "does not say `{word}`: {done}");
        }
        done.err
    };
    says(
        &["run", "--rate", "10mbit", "sh", "-c", "exit 0"],
        &[
            "`sh` is the command to run, and `--` is missing before it",
            "narrows run --rate 10mbit -- sh -c 'exit 0'",
        ],
    );
    says(&["run", "sleep", "5"], &["`sleep` is the command", "narrows run -- sleep 5"]);
    says(&["run", "--rate", "1mbit", "true"], &["`true` is the command", "narrows run --rate 1mbit -- true"]);
    says(&["run", "--latency", "5ms", "--", "true"], &["'--delay'"]);
    says(&["run", "--bandwidth", "5mbit", "--", "true"], &["'--rate'"]);
    says(&["sim", "--bandwith", "5mbit"], &["--bandwith"]);
    says(&["rn"], &["'run'"]);
    says(&["list"], &["'ls'"]);
    says(&["sched", "bnech"], &["'bench'"]);
    for (words, wrong) in [
        (&["frobnicate"][..], "tip"),
        (&["run", "--frobnicate", "--", "true"], "tip"),
        (&["run", "--latency", "5ms", "--", "true"], "--rate"),
        (&["run", "--rate", "1mbit", "no-such-program-here", "-c"], "missing before it"),
    ] {
        let err = says(words, &[]);
        assert!(!err.replace("--rate <RATE>", "").contains(wrong), "{words:?}: {err}");
    }
}

#[test]
fn many_links_are_a_table() {
    let scratch = Scratch::new();
    let links = (0..30).map(|n| {
        format!(
            "[hosts.h{n}]\n[links.l{n}]\nbetween = [\"h{n}\", \"r\"]\nrate = \"10mbit\"\ndelay = \"{n}ms\"\n"
        )
    });
    let file = scratch.write("star.toml", &format!("[routers.r]\n{}", links.collect::<String>()));
    let file = file.to_str().unwrap();
    let table = finish(&mut narrows(["check", file])).expect(0).out;
    assert!(table.lines().count() < 40 && table.contains("\nl29 ") && table.contains("--full"), "{table}");
    let full = finish(&mut narrows(["check", "--full", file])).expect(0).out;
    assert!(full.lines().count() > 2_000 && full.contains("\nl29.up: h29 → r\n"));
    // What fits is shown.
    let small = finish(&mut narrows(["check", &scenario("three-hops.toml")])).expect(0).out;
    assert_eq!(small, finish(&mut narrows(["check", "--full", &scenario("three-hops.toml")])).out);
}

#[test]
fn help_is_never_an_error() {
    for words in [
        &["--help"][..],
        &["tc", "--help"],
        &["tc", "check", "--help"],
        &["ipfw", "check", "-h"],
        &["lab", "--help"],
        &["kernel", "build", "--help"],
        &["help", "sched", "bench"],
    ] {
        let done = finish(&mut narrows(words.iter().copied())).expect(0);
        assert!(done.out.contains("Usage: narrows") && done.err.is_empty(), "{done}");
    }
    let whole = finish(&mut narrows(["--help"])).out;
    assert!(whole.contains("Run programs behind an emulated network:\n  run "), "{whole}");
    let version = finish(&mut narrows(["--version"])).expect(0).out;
    assert!(version.starts_with("narrows 0.") && version.contains("features: "), "{version}");
}

#[test]
fn manual_and_completions_are_written() {
    let scratch = Scratch::new();
    let folder = scratch.file("man");
    finish(narrows(["man"]).arg(&folder)).expect(0);
    for page in ["narrows.1", "narrows-run.1", "narrows-sched-compare.1", "narrows-tc-check.1"] {
        assert!(fs::read_to_string(folder.join(page)).unwrap().contains(".SH"), "{page}");
    }
    let script = finish(&mut narrows(["completions", "bash"])).expect(0).out;
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
    finish(&mut narrows(["completions", "tcsh"])).expect(2);
}

#[test]
fn an_installation_is_whole_and_goes_to_its_last_file() {
    let root = Scratch::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/install");
    let installed = || {
        let listed = Command::new("find").current_dir(root.path()).args(["-type", "f"]).output().unwrap();
        String::from_utf8(listed.stdout).unwrap()
    };
    finish(Command::new(script).args(["/opt/lab", NARROWS]).arg(root.path())).expect(0);
    let files = installed();
    for file in ["bin/narrows", "share/man/man1/narrows-run.1", "share/bash-completion/completions/narrows"] {
        assert!(files.contains(&format!("./opt/lab/{file}\n")), "{files}");
    }
    let unit = fs::read_to_string(root.file("opt/lab/lib/systemd/system/narrows@.service")).unwrap();
    assert!(unit.contains("ExecStart=/opt/lab/bin/narrows up ") && !unit.contains("/usr/local"), "{unit}");
    finish(Command::new(script).arg("--remove").arg(root.file("opt/lab"))).expect(0);
    assert_eq!(installed(), "");
}

#[test]
#[ignore = "needs namespaces, bash"]
fn a_shell_shows_where_one_is() {
    let home = Scratch::new();
    home.write(".bashrc", "PS1='mine> '\nalias mine='echo from my rc'\nPROMPT_COMMAND='PS1=\"again> \"'\n");
    let shell = |line: &str, program: &str| {
        let mut shell = Command::new("sh");
        let line = format!("printf '%s\\n' \"{line}\" | {NARROWS} shell -q");
        shell.args(["-c", &line]).env("HOME", home.path()).env("SHELL", program).env("TMPDIR", home.path());
        finish(shell.env_remove("NARROWS_CONTROL").env_remove("NARROWS_RUN").env_remove("NARROWS_PROMPT"))
    };
    let done = shell("mine; ls $HOME", "/bin/bash");
    // What the user's own start file makes of the prompt, each time anew, stands behind it.
    assert!(done.err.contains("(client) again> ") && done.out.contains("from my rc\n"), "{done}");
    assert!(!left_behind(&home), "{:?}: {done}", home.names());
}

#[test]
#[ignore = "needs namespaces, script"]
fn a_plain_shell_shows_where_one_is() {
    let home = Scratch::new();
    home.write("mine", "PS1='mine> '\n");
    let line = format!("{NARROWS} shell -q");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("(echo 'echo $ENV is mine'; echo exit) | script -qec '{line}' /dev/null")]);
    shell.env("HOME", home.path()).env("SHELL", "/bin/sh").env("TMPDIR", home.path());
    shell.env("ENV", home.file("mine")).env_remove("NARROWS_CONTROL").env_remove("NARROWS_RUN");
    let done = finish(shell.env_remove("NARROWS_PROMPT"));
    assert!(done.out.contains("(client) mine> ") && done.out.contains("/mine is mine"), "{done}");
    assert!(!left_behind(&home), "{:?}: {done}", home.names());
}

fn left_behind(folder: &Scratch) -> bool {
    folder.names().iter().any(|name| name.starts_with("narrows-"))
}
