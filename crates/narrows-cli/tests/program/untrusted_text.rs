//! Text from outside that would steer a terminal: whatever way it comes in, it does not come out.

use std::fs;

use serde_json::Value;

use crate::common::{NARROWS, Scratch, finish, narrows, run};

/// Clears a screen in seven bits and in eight, ends a line, turns the order round.
const NASTY: &str = "n\x1b[2J\u{9b}2J\x07\r\u{202e}x";

#[track_caller]
fn harmless(what: &str, text: &str) {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
    assert!(!text.contains(steers), "{what}: {text:?}");
    // The rest of it is what a person looks for.
    assert!(text.contains("2J"), "{what} does not show it: {text:?}");
}

#[test]
fn what_comes_in_does_not_steer_the_terminal() {
    let scratch = Scratch::new();
    let nasty_file = |name: &str, text: &str| {
        let path = scratch.file(&format!("{NASTY}{name}"));
        fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let scenario = nasty_file(
        "scenario.toml",
        &format!("[hosts.client]\n[hosts.server]\n[links.a]\nrate = \"{NASTY}\"\n"),
    );
    let keys = scratch.write(
        "keys.toml",
        "[hosts.\"n\\u001b[2J\\u009b\"]\n[hosts.b]\n[links.l]\nbetween = [\"n\\u001b[2J\\u009b\", \"b\"]\n",
    );
    let keys = keys.to_str().unwrap();
    let trace = nasty_file("trace.mahi", "1\n2\nx\n");
    let tc = format!("tc qdisc add dev {} root netem delay 10ms\n", NASTY.replace('\r', ""));
    let script = nasty_file("script.sh", &tc);
    let ipfw = nasty_file(
        "script.conf",
        &format!("pipe 1 config bw 1Mbit/s # {NASTY}\nadd 1 pipe 1 ip from any to any // {NASTY}\n"),
    );
    let text = format!("delay {NASTY}");
    let rate = format!("--rate={NASTY}");
    let cases: Vec<Vec<&str>> = vec![
        vec!["check", &scenario],
        vec!["check", keys],
        vec!["check", NASTY],
        vec!["sim", keys],
        vec!["run", &scenario, "--", "true"],
        vec!["run", "--trace", &trace, "--", "true"],
        vec!["run", "--trace", NASTY, "--", "true"],
        vec!["run", &rate, "--", "true"],
        vec!["run", "--ipfw", NASTY, "--", "true"],
        vec!["run", NASTY, "--", "true"],
        vec!["tc", "check", &script],
        vec!["tc", "check", &tc],
        vec!["tc", "check", &text],
        vec!["ipfw", "check", &ipfw],
        vec!["ipfw", "check", NASTY],
        vec!["set", "--run", NASTY, "a.rate=1mbit"],
        vec!["report", NASTY],
        vec!["pattern", "info", NASTY],
        vec!["profile", "info", NASTY],
        vec!["dist", "fit", NASTY],
        vec![NASTY],
    ];
    for arguments in cases {
        let ended = finish(&mut narrows(arguments.iter().copied()));
        harmless(&format!("{arguments:?}"), &format!("{}{}", ended.out, ended.err));
    }
}

/// Names of hosts, services, columns, rules: whatever the format in which they come.
#[test]
fn names_of_other_formats_do_not_steer_the_terminal() {
    let scratch = Scratch::new();
    let quoted = serde_json::to_string(NASTY).unwrap();
    let end = serde_json::to_string(&format!("{NASTY}:e")).unwrap();
    let plain = NASTY.replace('\r', "");
    // XML has no other control characters.
    let xml = "n&#x9b;2J&#x202e;x";
    let link = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\n";
    let cases = [
        (
            "topology graphml",
            format!(
                "<graphml><graph><node id=\"0\"/><edge source=\"0\" target=\"{xml}\"/></graph></graphml>"
            ),
        ),
        (
            "topology graphml",
            format!(
                "<graphml><key attr.name=\"label\" for=\"node\" id=\"l\"/><graph><node id=\"0\"><data key=\"l\">{xml}</data></node>\
                 <node id=\"1\"/><edge source=\"0\" target=\"1\"/></graph></graphml>"
            ),
        ),
        ("topology csv", format!("a,b\n{plain},b\n")),
        ("topology csv", format!("a,{plain}\n")),
        (
            "topology containerlab",
            format!(
                "name: x\ntopology:\n  nodes: {{ {quoted}: {{}}, b: {{}} }}\n  links: [ {{ endpoints: [ {end}, \"b:e\" ] }} ]\n"
            ),
        ),
        (
            "topology mininet",
            format!(
                "{{\"hosts\":[{{\"opts\":{{\"hostname\":\"a\"}}}}],\"links\":[{{\"src\":{quoted},\"dest\":\"a\"}}]}}"
            ),
        ),
        ("compose --check -f", format!("services: {{ {quoted}: {{ labels: {{ narrows.delay: 1ms }} }} }}\n")),
        ("compose --check -f", format!("services: {{ a: {{ labels: {{ narrows.delay: {quoted} }} }} }}\n")),
        ("trace info", format!("time_s,{plain}\n0,1\n")),
        ("pattern info", format!("pattern {plain}\n")),
        ("profile info", format!("{plain} 3\n")),
        ("check", format!("{link}{quoted} = 1\n")),
        ("check", format!("{link}delay = {{ feed = {quoted} }}\n")),
        ("check", format!("{link}scheduler = {{ type = \"drr\", classes = [{{ name = {quoted} }}] }}\n")),
        ("check", format!("{link}scheduler = {{ plugin = {quoted} }}\n")),
        (
            "check",
            format!("{link}rules = [{}]\n", quoted.replacen('"', "\"add allow ip from any to any // ", 1)),
        ),
        (
            "toxi --port 0 --config",
            format!("[{{\"name\":\"p\",\"listen\":{quoted},\"upstream\":\"127.0.0.1:1\"}}]"),
        ),
    ];
    for (command, text) in cases {
        let file = scratch.write("input", &text);
        let arguments = command.split(' ').chain([file.to_str().unwrap()]);
        let ended = finish(&mut narrows(arguments));
        harmless(&format!("{command} {text:?}"), &format!("{}{}", ended.out, ended.err));
    }
}

#[test]
fn a_report_of_somebody_else_does_not_steer_the_terminal() {
    let scratch = Scratch::new();
    let file = scratch.file("report.json");
    let adsl = crate::common::scenarios().join("adsl.toml");
    let arguments = ["sim", adsl.to_str().unwrap(), "--duration", "1s", "--json", file.to_str().unwrap()];
    finish(&mut narrows(arguments)).expect(0);
    let mut report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    report["title"] = NASTY.into();
    report["notes"] = Value::Array(vec![NASTY.into()]);
    fs::write(&file, report.to_string()).unwrap();
    for form in [&[][..], &["--summary"], &["--json"]] {
        let arguments = ["report", file.to_str().unwrap()].into_iter().chain(form.iter().copied());
        let ended = finish(&mut narrows(arguments)).expect(0);
        harmless(&format!("{form:?}"), &format!("{}{}", ended.out, ended.err));
        if form.contains(&"--json") {
            assert_eq!(ended.json()["title"], NASTY, "for a program it is as it was");
        }
    }
}

#[test]
#[ignore = "needs namespaces"]
fn names_in_a_live_run_do_not_steer_the_terminal() {
    let scratch = Scratch::new();
    let line = format!("tc qdisc add dev {} root netem delay 10ms\n", NASTY.replace('\r', ""));
    let tc = scratch.write("script.sh", &line);
    let keys = scratch.write(
        "keys.toml",
        "[hosts.\"n\\u001b[2J\\u009b\"]\n[hosts.b]\n[links.l]\nbetween = [\"n\\u001b[2J\\u009b\", \"b\"]\n",
    );
    let set = format!(
        "{NARROWS} set {NASTY}=1 || {NARROWS} tc qdisc show dev {}; true",
        crate::common::quoted(NASTY)
    );
    for flags in [
        vec!["--host", NASTY, "--delay", "1ms"],
        vec!["--on", NASTY, "true", "--delay", "1ms"],
        vec!["--tc", tc.to_str().unwrap()],
        vec![keys.to_str().unwrap()],
    ] {
        let ended = finish(&mut run(flags.iter().copied(), "true"));
        harmless(&format!("{flags:?}"), &format!("{}{}", ended.out, ended.err));
    }
    let ended = finish(&mut run(["--delay", "1ms", "--quiet"], &set));
    harmless("set", &format!("{}{}", ended.out, ended.err));
}
