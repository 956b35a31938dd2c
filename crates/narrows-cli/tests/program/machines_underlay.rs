//! Machines whose network has trouble: they are hosts of a narrows network, which changes during the run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::common::{NARROWS, Scratch, narrows};
use crate::machines::{EXAMPLE, Up, exec};

const UNDERLAY: &str = "\
hosts.alpha.addresses = [\"10.78.0.1/24\"]
hosts.beta.addresses = [\"10.78.0.2/24\"]
links.wire = { between = [\"alpha\", \"beta\"], delay = \"5ms\", mtu = 1600 }
";

/// Two machines, which are hosts of a run.
struct Bed {
    scratch: Scratch,
    ssh: PathBuf,
    /// The example, with a link that is longer than the underlay takes under any load.
    example: PathBuf,
    run: String,
}

impl Bed {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let run = format!("underlay-{}-{}", id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let scratch = Scratch::new();
        let file = scratch.write("underlay.toml", UNDERLAY);
        let mut up = narrows(["up", "--detach", "--ttl", "10min", "--name", &run]);
        let output = up.arg(file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let script = format!("#!/bin/sh\nexec {NARROWS} exec {run} \"$1\" -- {NARROWS} agent\n");
        let ssh = scratch.write("ssh", &script);
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let text = fs::read_to_string(EXAMPLE).unwrap();
        assert!(text.contains("delay = \"20ms\""));
        let example = scratch.write("example.toml", &text.replace("\"20ms\"", "\"400ms\""));
        Self { scratch, ssh, example, run }
    }

    /// Starts the example across the machines.
    fn up(&self, tolerance: &str) -> Up {
        let mut command = narrows(["up", "--machines", "alpha=10.78.0.1,beta=10.78.0.2"]);
        command
            .arg(&self.example)
            .args(["--underlay-tolerance", tolerance, "--json"])
            .arg(self.scratch.file("report.json"));
        command.arg("--ssh").arg(&self.ssh).stderr(Stdio::piped()).stdout(Stdio::piped());
        Up::start(command)
    }

    /// Changes the network between the machines.
    fn set(&self, change: &str) {
        let output = narrows(["set", "--run", &self.run, change]).output().unwrap();
        assert!(output.status.success(), "{change}: {output:?}");
    }

    /// Ends a run; its exit status, what it said, and its report.
    fn end(&self, up: Up) -> (Option<i32>, String, Value) {
        up.signal("-INT");
        let (status, said) = up.end();
        let report =
            fs::read_to_string(self.scratch.file("report.json")).unwrap_or_else(|_| panic!("{said}"));
        (status, said, serde_json::from_str(&report).unwrap())
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = narrows(["down", &self.run]).output();
    }
}

fn ping(up: &Up, arguments: &[&str]) -> String {
    let output = exec(&up.runs[0], &[&["client", "--", "ping", "-q"], arguments, &["server"]].concat());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The smallest round trip of pings, in milliseconds.
fn smallest(said: &str) -> f64 {
    let times = said.split(" = ").nth(1).unwrap_or_else(|| panic!("{said}"));
    times.split('/').next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "needs root, ping"]
fn an_excursion_of_the_delay_fails_the_run() {
    let bed = Bed::new();
    // Within what is tolerated.
    let up = bed.up("2s");
    let said = ping(&up, &["-c", "40", "-i", "0.05"]);
    // 1, 400 and 0.2 ms there and back: the 5 ms of the underlay are part of the 400. Added to them it would be 812 ms.
    assert!((780.0..810.0).contains(&smallest(&said)), "{said}");
    bed.set("wire.delay=100ms");
    sleep(Duration::from_secs(1));
    let (status, said, report) = bed.end(up);
    assert_eq!(status, Some(0), "{said}");
    let figures = &report["machines"]["alpha"]["underlay"]["beta"];
    assert!(figures["max_ns"].as_u64() >= Some(100_000_000), "{figures}");
    assert!(report["accurate"] == true && figures["excursions"] == 0, "{report}");

    bed.set("wire.delay=5ms");
    let up = bed.up("50ms");
    bed.set("wire.delay=250ms");
    sleep(Duration::from_secs(2));
    let (status, said, report) = bed.end(up);
    assert_eq!(status, Some(75), "{said}");
    assert!(said.contains("not accurate: from alpha to beta the network took up to 2"), "{said}");
    assert!(said.contains("not accurate: from beta to alpha"), "{said}");
    let figures = &report["machines"]["alpha"]["underlay"]["beta"];
    assert!(figures["max_ns"].as_u64() >= Some(250_000_000), "{figures}");
    assert!(report["accurate"] == false && figures["excursions"].as_u64() > Some(0), "{report}");
}

#[test]
#[ignore = "needs root, ping"]
fn an_outage_fails_the_run_and_passes() {
    let bed = Bed::new();
    let up = bed.up("200ms");
    bed.set("wire.outage=true");
    let said = ping(&up, &["-c", "3", "-W", "1"]);
    assert!(said.contains(" 100% packet loss"), "{said}");
    bed.set("wire.outage=false");
    let said = ping(&up, &["-c", "5", "-W", "20"]);
    assert!(said.contains(" 0% packet loss"), "{said}");
    let (status, said, report) = bed.end(up);
    assert_eq!(status, Some(75), "{said}");
    assert!(said.contains("and none was answered for up to "), "{said}");
    let underlay = &report["machines"]["alpha"]["underlay"]["beta"];
    // They have one clock. Reading it may be interrupted.
    let (offset, bound) =
        (underlay["clock_offset_ns"].as_i64().unwrap(), underlay["min_ns"].as_u64().unwrap());
    assert!(offset.unsigned_abs() <= bound + 500_000_000, "{underlay}");
    let gap = underlay["longest_gap_ns"].as_u64();
    assert!(gap >= Some(2_000_000_000), "{report}");
}

#[test]
#[ignore = "needs root, ping"]
fn loss_on_the_way_is_counted_and_fails_the_run() {
    let bed = Bed::new();
    let up = bed.up("5s");
    let said = ping(&up, &["-c", "5", "-i", "0.1"]);
    assert!(said.contains(" 0% packet loss"), "{said}");
    bed.set("wire.loss=30%");
    let said = ping(&up, &["-c", "200", "-i", "0.01", "-W", "5"]);
    assert!(!said.contains(" 0% packet loss"), "{said}");
    bed.set("wire.loss=0%");
    // Shows what is missing before.
    let said = ping(&up, &["-c", "5", "-W", "20"]);
    assert!(said.contains(" 0% packet loss"), "{said}");
    let (status, said, report) = bed.end(up);
    assert_eq!(status, Some(75), "{said}");
    assert!(said.contains("packets of the link `backbone` were lost on their way to beta"), "{said}");
    assert!(report["accurate"] == false, "{report}");
    let of = |machine: &str| report["machines"][machine]["report"].clone();
    let ports = of("beta")["ports"].as_array().unwrap().clone();
    let tunnel = ports.iter().find(|port| port["name"] == "tunnel:backbone").unwrap();
    let lost = tunnel["receive_ring_dropped_packets"].as_u64().unwrap();
    let arrived = tunnel["arrived_packets"].as_u64().unwrap();
    let sent = of("alpha")["directions"].as_array().unwrap().clone();
    let sent = sent.iter().find(|direction| direction["link"] == "backbone.up").unwrap().clone();
    let sent = sent["delivered"]["packets"].as_u64().unwrap_or_else(|| panic!("{sent}"));
    assert!(lost >= 20 && sent.abs_diff(arrived + lost) <= 2, "{arrived} + {lost} of {sent}");
}
