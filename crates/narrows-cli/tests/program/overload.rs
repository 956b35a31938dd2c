//! More packets than the host can carry: whoever asks gets an answer, whoever ends the run is heard, and the report says what
//! was lost.

use std::fmt::Write;

use serde_json::Value;

use crate::common::{Scratch, eventually, finish, narrows, start};

/// Hosts in a chain. Each link is a component of its own, so that two threads share them.
const HOSTS: usize = 8;

fn chain() -> String {
    let mut text = String::from("seed = 3\n");
    for host in 0..HOSTS {
        writeln!(text, "[hosts.h{host}]").unwrap();
    }
    for link in 1..HOSTS {
        let (from, to) = (link - 1, link);
        writeln!(
            text,
            "[links.l{link}]\nbetween = [\"h{from}\", \"h{to}\"]\nrate = \"100mbit\"\ndelay = \"1ms\""
        )
        .unwrap();
    }
    text
}

/// Probes that two processors cannot carry; they go both ways over each link.
const LOAD: [&str; 3] = ["--shards", "2", "--probe=8000"];

/// What the run says of itself. Where other tests have the processors, a client may have waited its five seconds for nothing:
/// then it says so.
fn stats(number: &str) -> Option<Value> {
    let ended = finish(&mut narrows(["stats", "--run", number, "--json"]));
    if ended.code() != 0 {
        assert!(ended.err.contains("does not answer"), "{ended}");
        return None;
    }
    Some(ended.json())
}

#[test]
#[ignore = "needs namespaces"]
fn a_run_that_is_overloaded_answers_and_ends_when_its_program_does() {
    let scratch = Scratch::new();
    let (scenario, report) = (scratch.write("chain.toml", &chain()), scratch.file("report.json"));
    let mut arguments = vec!["run", scenario.to_str().unwrap()];
    arguments.extend(LOAD);
    let line = "echo number $NARROWS_RUN ready; read line";
    arguments.extend(["--json", report.to_str().unwrap(), "--", "sh", "-c", line]);
    let mut command = narrows(arguments);
    let mut run = start(command.stdin(std::process::Stdio::piped()));
    let number = run.until_it_says("ready").split_whitespace().nth(1).unwrap().to_owned();
    let answered: Vec<Value> = (0..10).filter_map(|_| stats(&number)).collect();
    let changed = finish(&mut narrows(["set", "--run", &number, "l1.up.delay=2ms"]));
    let is_refused = changed.err.contains("too busy") || changed.err.contains("does not answer");
    assert!(changed.code() == 0 || is_refused, "{changed}");
    assert!(answered.iter().any(|report| report["conservation"]["in_packets"].as_u64() > Some(0)));
    run.tell("end");
    let ended = run.wait().expect(0);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["conservation"]["violations"], Value::Array(Vec::new()), "{report:#}");
    assert!(report["host"]["threads"].as_array().unwrap().len() == 2, "{ended}");
    // Where it was overloaded, it says so, and where packets were lost.
    let late = report["input_lateness"]["p50_ns"].as_u64().unwrap() > 10_000_000;
    assert_eq!(ended.err.contains("overloaded: p50 of read delay is"), late, "{ended}");
    let lost = report["losses"]["receive_ring_dropped_packets"].as_u64().unwrap();
    if late && lost > 0 {
        assert!(ended.err.contains(&format!("; {lost} lost before they could be read: ")), "{ended}");
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_run_that_is_overloaded_hears_signals() {
    let scratch = Scratch::new();
    let scenario = scratch.write("chain.toml", &chain());
    for (signal, status) in [("TERM", 143), ("INT", 130)] {
        let mut arguments = vec!["run", scenario.to_str().unwrap()];
        arguments.extend(LOAD);
        arguments.extend(["--", "sh", "-c", "echo number $NARROWS_RUN ready; exec sleep 1000"]);
        let mut run = start(&mut narrows(arguments));
        let number = run.until_it_says("ready").split_whitespace().nth(1).unwrap().to_owned();
        // It has packets to carry.
        eventually("packets cross", || {
            let report = stats(&number);
            report.is_some_and(|report| report["conservation"]["delivered_packets"].as_u64() > Some(1000))
        });
        run.signal(signal);
        let ended = run.wait().expect(status);
        assert!(ended.err.contains("one-way delay"), "there is a report: {ended}");
    }
}

/// Sends datagrams as fast as it can until it is told to end; then it says how many.
const FLOOD: &str = r#"
import os, signal, socket
sent = 0
def end(*_):
    os.write(2, b"sent %d\n" % sent)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
out, to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), (os.environ["NARROWS_SERVER"], 9)
os.write(2, b"ready\n")
while True:
    try:
        out.sendto(b"x" * 64, to)
        sent += 1
    except OSError:
        pass
"#;

/// Far more than a twentieth of a processor carries: memory is bounded, a signal is obeyed, and each packet is accounted for.
#[test]
#[ignore = "needs namespaces, python3"]
fn of_a_flood_every_packet_is_delivered_or_counted_as_lost() {
    let scratch = Scratch::new();
    let flood = scratch.write("flood.py", FLOOD);
    for backend in ["af_packet", "af_xdp"] {
        let report = scratch.file("report.json");
        let mut command =
            narrows(["run", "--rate", "10gbit", "--delay", "1ms", "--max-cpu", "5%", "--backend", backend]);
        command.arg("--json").arg(&report).args(["--", "python3"]).arg(&flood);
        let mut run = start(&mut command);
        run.until_it_complains("ready");
        let number = run.id().to_string();
        eventually("packets are lost", || {
            let report = stats(&number);
            report.is_some_and(|report| {
                report["losses"]["receive_ring_dropped_packets"].as_u64() > Some(10_000)
            })
        });
        let status = std::fs::read_to_string(format!("/proc/{number}/status")).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak < 512 << 10, "{peak} KiB");
        run.signal("TERM");
        let ended = run.wait().expect(0);
        let sent = ended.err.split("sent ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
        let sent: u64 = sent.parse().unwrap();
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
        assert_eq!(report["conservation"]["violations"], Value::Array(Vec::new()), "{report:#}");
        let lost = report["losses"]["receive_ring_dropped_packets"].as_u64().unwrap();
        let carried = report["conservation"]["in_packets"].as_u64().unwrap();
        assert!(ended.err.contains(&format!("; {lost} lost before they could be read: ")), "{ended}");
        // Replies of the server and address resolution come on top.
        let all = lost + carried;
        assert!(
            (sent..sent + 10_000).contains(&all),
            "{backend}: sent {sent}, lost {lost}, carried {carried}"
        );
    }
}
