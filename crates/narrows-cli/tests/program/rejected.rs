//! Rules of ipfw that answer: what programs are told, by whom, and that a replay agrees.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Scratch, finish, narrows, pair, run, sound};

/// Prints how programs learn that they are not heard: `tcp 81 ECONNREFUSED`.
const ASK: &str = r#"
import errno, socket, sys
peers = sys.argv[1].split(',')
for word in sys.argv[2:]:
    kind, port = word.split(':')
    kind, six = kind.rstrip('6'), kind.endswith('6')
    socket_type = socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM
    one = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket_type)
    one.settimeout(20)
    try:
        one.connect((peers[six], int(port)))
        one.send(b'x')
        one.recv(1)
        said = 'nothing'
    except TimeoutError:
        said = 'timeout'
    except OSError as error:
        said = errno.errorcode[error.errno]
    print(word, said, flush=True)
"#;

/// Each question, and the answer.
const ANSWERS: [(&str, &str); 7] = [
    ("tcp:81", "ECONNREFUSED"),
    ("udp:82", "ECONNREFUSED"),
    ("tcp:83", "EHOSTUNREACH"),
    ("tcp:84", "ENETUNREACH"),
    ("tcp6:85", "ECONNREFUSED"),
    ("udp6:86", "EACCES"),
    ("tcp6:86", "EACCES"),
];

const RULES: [&str; 6] = [
    "100 reset tcp from any to any dst-port 81",
    "110 unreach port udp from any to any dst-port 82",
    "120 reject tcp from any to any dst-port 83",
    "130 unreach net ip from any to any dst-port 84",
    "140 reset6 tcp from any to any dst-port 85",
    "150 unreach6 admin-prohib ip6 from any to any dst-port 86",
];

/// Asks all questions in a host whose peer has the addresses in two variables.
fn asking(scratch: &Scratch, peer: &str) -> String {
    let words = ANSWERS.map(|(question, _)| question).join(" ");
    let script = scratch.write("ask.py", ASK);
    format!("python3 {} ${peer},${peer}6 {words}", script.display())
}

#[track_caller]
fn answered(said: &str) {
    for (question, answer) in ANSWERS {
        assert!(said.contains(&format!("{question} {answer}\n")), "{question} {answer}: {said}");
    }
}

/// A script with the rules, and with a pipe for all other packets.
fn script(scratch: &Scratch) -> PathBuf {
    let rules = RULES.join("\nadd ");
    let text = format!("pipe 1 config delay 20ms\nadd {rules}\nadd 200 pipe 1 ip from any to any\n");
    scratch.write("reject.conf", &text)
}

fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

#[track_caller]
fn replays(log: &str, report: &Value) {
    let again = finish(&mut narrows(["sim", "--json", "-", "--replay", log])).expect(0).json();
    for part in ["pairs", "rules"] {
        assert_eq!(report[part], again[part], "{part}");
    }
    assert_eq!(report["conservation"]["in_packets"], again["conservation"]["in_packets"]);
    let ended = finish(&mut narrows(["sim", "--replay", log])).expect(0);
    assert!(ended.out.contains("all identical, to the nanosecond"), "{ended}");
}

#[test]
#[ignore = "needs namespaces, python3"]
fn rules_between_two_hosts_answer_at_once_and_the_replay_drops_the_same() {
    let scratch = Scratch::new();
    let script = script(&scratch);
    let (log, report) = (scratch.file("run.log"), scratch.file("report.json"));
    let flags = [
        "--ipfw",
        script.to_str().unwrap(),
        "--record",
        log.to_str().unwrap(),
        "--json",
        report.to_str().unwrap(),
        "-q",
    ];
    // What a rule denies silently gets no answer, nor does what a rule of the other IP version rejects.
    let line = format!(
        "{}; {narrows} ipfw delete 100; {narrows} ipfw add 100 reset6 tcp from any to any dst-port 81; \
         timeout 2 python3 {} $NARROWS_SERVER tcp:81; test $? = 124; {narrows} ipfw list",
        asking(&scratch, "NARROWS_SERVER"),
        scratch.file("ask.py").display(),
        narrows = crate::common::NARROWS,
    );
    let done = finish(&mut run(flags, &line)).expect(0);
    answered(&done.out);
    assert_eq!(done.out.matches("tcp:81 ").count(), 1, "{done}");
    assert!(done.out.contains("00120 unreach host tcp from any to any dst-port 83"), "{done}");
    assert!(done.out.contains("00150 unreach6 admin-prohib ip6 from any to any dst-port 86"), "{done}");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    sound(&report);
    let rules = &report["rules"][0];
    assert!(rules["denied"]["packets"].as_u64() > Some(7), "{rules:#}");
    assert!(notes(&report).contains("rules: 7 TCP resets and ICMP errors"), "{}", notes(&report));
    replays(log.to_str().unwrap(), &report);
}

#[test]
#[ignore = "needs guest kernel, python3"]
fn in_exact_virtual_time_rules_answer_as_in_a_live_run() {
    let scratch = Scratch::new();
    let script = script(&scratch);
    let flags = ["--virtual", "--ipfw", script.to_str().unwrap(), "-q"];
    let done = finish(&mut run(flags, &asking(&scratch, "NARROWS_SERVER"))).expect(0);
    answered(&done.out);
}

#[test]
#[ignore = "needs namespaces, python3"]
fn a_router_answers_for_the_rules_of_its_link_and_the_answers_cross_the_network() {
    let scratch = Scratch::new();
    let rules = RULES.map(|rule| format!("{rule:?}")).join(", ");
    let scenario = scratch.write(
        "routers.toml",
        &format!(
            r#"seed = 4
[hosts.client]
[hosts.server]
[routers.r1]
[routers.r2]
[links.access]
between = ["client", "r1"]
delay = "3ms"
[links.upper]
between = ["r1", "r2"]
rules = [{rules}]
[links.office]
between = ["r2", "server"]
delay = "5ms"
"#
        ),
    );
    let log = scratch.file("run.log");
    let [client, server] = ["NARROWS_SERVER", "NARROWS_CLIENT"].map(|peer| asking(&scratch, peer));
    let answers = scratch.file("answers");
    let server = format!("{server} > {}", answers.display());
    let line = format!("{client} >&2; until grep -q tcp6:86 {}; do sleep 0.1; done", answers.display());
    let flags = ["--on", "server", &server, "--record", log.to_str().unwrap(), "--json", "-"];
    let arguments = ["run", scenario.to_str().unwrap()].into_iter().chain(flags);
    let done = finish(&mut narrows(arguments.chain(["--", "sh", "-c", &line]))).expect(0);
    answered(&done.err);
    answered(&std::fs::read_to_string(answers).unwrap());
    let report = done.json();
    sound(&report);
    // In both directions, the router that would send the packet tells its sender, over the links back.
    for (router, host, millis) in [("r1", "client.access", 3), ("r2", "server.office", 5)] {
        let answers = pair(&report, router, host);
        assert_eq!(answers["delivered"]["packets"], ANSWERS.len(), "{answers:#}");
        assert_eq!(answers["delay"]["min_ns"], millis * 1_000_000, "{answers:#}");
    }
    assert!(notes(&report).contains("rules: 14 TCP resets and ICMP errors"), "{}", notes(&report));
    replays(log.to_str().unwrap(), &report);
}
