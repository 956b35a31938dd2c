//! Virtual time: the same bytes at every run, and every kind of output.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use crate::common::{
    Scratch, direction, eventually, every_scenario, finish, narrows, pair, scenarios, sound, start,
};
use crate::traffic::rows;

/// What one run writes.
const OUTPUTS: [&str; 4] = ["report.json", "packets.csv", "series.csv", "all.pcapng"];

#[test]
fn two_runs_write_the_same_bytes() {
    for file in every_scenario() {
        let run = || {
            let scratch = Scratch::new();
            let [json, packets, series, capture] =
                OUTPUTS.map(|name| scratch.file(name).to_str().unwrap().to_owned());
            let mut arguments = vec!["sim", file.to_str().unwrap(), "--duration", "3s", "--seed", "5"];
            arguments.extend([
                "--json",
                &json,
                "--packets",
                &packets,
                "--series",
                &series,
                "--capture",
                &capture,
            ]);
            let ended = finish(&mut narrows(arguments)).expect(0);
            assert!(ended.err.is_empty(), "{ended}");
            let files = OUTPUTS.map(|name| fs::read(scratch.file(name)).unwrap());
            assert!(files.iter().all(|bytes| bytes.len() > 500));
            (ended.out, files)
        };
        let (first, again) = (run(), run());
        assert_eq!(first.0, again.0);
        for (name, (first, again)) in OUTPUTS.iter().zip(first.1.iter().zip(&again.1)) {
            assert!(first == again, "{name} of {}", file.display());
        }
    }
}

#[test]
fn json_alone_is_on_the_standard_output_and_the_seed_counts() {
    let adsl = scenarios().join("adsl.toml");
    let adsl = adsl.to_str().unwrap();
    let report = |seed: &[&str]| {
        let mut command = narrows(["sim", adsl, "--duration", "2s", "--json", "-"]);
        let ended = finish(command.args(seed)).expect(0);
        assert!(ended.err.is_empty(), "{ended}");
        let report = ended.json();
        sound(&report);
        report
    };
    let (own, same, other) = (report(&[]), report(&["--seed", "7"]), report(&["--seed", "8"]));
    assert_eq!(own["seed"], 7, "the scenario's");
    assert_eq!(own, same);
    assert_ne!(own["pairs"], other["pairs"]);
    assert_eq!(own["kind"], "virtual");
}

#[test]
fn the_outputs_agree_with_the_report() {
    let scratch = Scratch::new();
    let adsl = scenarios().join("adsl.toml");
    let [_, packets, series, capture] = OUTPUTS.map(|name| scratch.file(name).to_str().unwrap().to_owned());
    let mut arguments = vec!["sim", adsl.to_str().unwrap(), "--duration", "5s", "--json", "-"];
    arguments.extend(["--packets", &packets, "--series", &series, "--interval", "1s", "--capture", &capture]);
    let report = finish(&mut narrows(arguments)).expect(0).json();
    let of = |key: &str| report["conservation"][key].as_u64().unwrap() as usize;

    let text = fs::read_to_string(&packets).unwrap();
    let packets = rows(&text);
    let with = |verdict: &str| packets.iter().filter(|row| row["verdict"] == verdict).count();
    assert_eq!(with("delivered"), of("delivered_packets"));
    assert_eq!(with("dropped"), of("dropped_packets"));
    let number = |text: &str| text.parse::<u64>().unwrap();
    let shortest = packets
        .iter()
        .filter(|row| row["port"] == "client.access" && row["verdict"] == "delivered")
        .map(|row| number(row["departure_ns"]) - number(row["arrival_ns"]))
        .min();
    assert_eq!(shortest, pair(&report, "client.access", "server.access")["delay"]["min_ns"].as_u64());

    let text = fs::read_to_string(&series).unwrap();
    let down: Vec<_> = rows(&text).into_iter().filter(|row| row["name"] == "access.down").collect();
    assert_eq!(down.len(), 5, "one for each second");
    let delivered: u64 = down.iter().map(|row| number(row["delivered_packets"])).sum();
    assert_eq!(Some(delivered), direction(&report, "access.down")["delivered"]["packets"].as_u64());
}

#[test]
#[ignore = "needs tshark"]
fn a_capture_says_why_packets_were_dropped() {
    let scratch = Scratch::new();
    let (adsl, capture) = (scenarios().join("adsl.toml"), scratch.file("out.pcapng"));
    let capture = capture.to_str().unwrap();
    let arguments = ["sim", adsl.to_str().unwrap(), "--duration", "5s", "--json", "-", "--capture", capture];
    let report = finish(&mut narrows(arguments)).expect(0).json();
    let fields = ["-T", "fields", "-e", "frame.comment", "-e", "ip.src", "-e", "udp.length"];
    let read = Command::new("tshark").args(["-r", capture]).args(fields).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let read = String::from_utf8(read.stdout).unwrap();
    let drops = read.lines().filter(|line| line.contains("queue full") || line.contains("wire loss")).count();
    let dropped = report["conservation"]["dropped_packets"].as_u64().unwrap();
    assert_eq!(drops as u64, dropped, "each drop with its reason");
    assert_eq!(
        read.lines().filter(|line| line.contains("10.")).count(),
        read.lines().count(),
        "all are IPv4"
    );
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let adsl = scenarios().join("adsl.toml");
    let adsl = adsl.to_str().unwrap();
    let log = ["sim", adsl, "--packets", "-"];
    for arguments in
        [&log[..], &["sim", adsl, "--json", "-"], &["sim", adsl], &["check", adsl], &["check", "--schema"]]
    {
        let mut command = narrows(arguments.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // As `| head -0` does.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {:?}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let adsl = scenarios().join("adsl.toml");
    for output in ["--json", "--packets", "--series", "--capture"] {
        let ended = finish(&mut narrows(["sim", adsl.to_str().unwrap(), output, "/dev/full"])).expect(2);
        assert!(ended.err.contains("/dev/full") && ended.err.contains("No space left"), "{ended}");
    }
    let mut command = narrows(["check", adsl.to_str().unwrap()]);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"));
}

/// A fabric with datagrams between its hosts.
fn fabric(scratch: &Scratch) -> String {
    let made = finish(&mut narrows([
        "topology",
        "leaf-spine",
        "--size",
        "2x2",
        "--hosts",
        "4",
        "--rate",
        "40mbit",
        "--delay",
        "20us",
        "--edge-rate",
        "20mbit",
        "--edge-delay",
        "10us",
        "--loss",
        "1%",
    ]))
    .expect(0);
    let file = scratch.file("fabric.toml");
    fs::write(&file, made.out).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn several_threads_write_the_bytes_of_one() {
    let scratch = Scratch::new();
    let fabric = fabric(&scratch);
    let run = |threads: &str| {
        let outputs = ["report.json", "packets.csv", "packets.parquet", "all.pcapng"];
        let files = outputs.map(|name| scratch.file(name).to_str().unwrap().to_owned());
        let [json, csv, parquet, capture] = &files;
        let mut command = narrows(["sim", &fabric, "--traffic", "constant=18mbit", "--duration", "1s"]);
        command.args(["--threads", threads, "--json", json, "--capture", capture]);
        let ended = finish(command.args(["--packets", csv])).expect(0);
        assert_eq!(ended.err, "", "on {threads}");
        let mut again =
            narrows(["sim", &fabric, "--traffic", "constant=18mbit", "--duration", "1s", "--quiet"]);
        finish(again.args(["--threads", threads, "--packets", parquet])).expect(0);
        (ended.out, files.map(|file| fs::read(file).unwrap()))
    };
    let one = run("1");
    assert!(one.1.iter().all(|bytes| bytes.len() > 1000));
    assert!(run("3") == one && run("all") == one);
}

#[test]
fn a_run_on_threads_says_what_it_cannot_and_ends_when_told() {
    let scratch = Scratch::new();
    let fabric = fabric(&scratch);
    let sim = |arguments: &[&str]| {
        let mut command = narrows(["sim", &fabric, "--traffic", "constant=18mbit", "--threads", "2"]);
        command.args(arguments);
        command
    };
    let series = scratch.file("series.csv");
    let whole = finish(sim(&["--duration", "1s"]).arg("--series").arg(&series)).expect(0);
    assert!(
        whole.err.contains("one thread instead of 2: a time series looks at all links at once"),
        "{whole}"
    );
    for threads in ["0", "257", "x", "-1"] {
        let refused = finish(&mut narrows(["sim", &fabric, &format!("--threads={threads}")])).expect(2);
        assert!(refused.err.contains("a number from 1 to 256, or `all`"), "{refused}");
    }
    for output in ["--packets", "--capture"] {
        let ended = finish(&mut sim(&["--duration", "1000h", output, "/dev/full"])).expect(2);
        assert!(ended.err.contains("/dev/full") && ended.err.contains("No space left"), "{ended}");
    }
    // With outputs and without.
    for arguments in [&["--duration", "1000h"][..], &["--duration", "1000h", "--packets", "/dev/null"]] {
        let running = start(&mut sim(arguments));
        let meets = || fs::read_dir(format!("/proc/{}/task", running.id())).is_ok_and(|all| all.count() >= 3);
        eventually("its threads run", meets);
        running.signal("INT");
        let ended = running.wait().expect(130);
        assert!(ended.out.contains("interrupted after"), "{ended}");
    }
}

/// A run that has to begin again on one thread writes nothing twice; and a capture that comes through a pipe is read once.
#[test]
fn what_can_be_written_or_read_once_is() {
    let scratch = Scratch::new();
    let file = scratch.file("shorter.toml");
    let link = "rate = \"50mbit\"\ndelay = \"5ms\"";
    let text = scenario(link, "constant = \"40mbit\"\nlength = \"1000 bytes\"");
    let timeline = "\n[[timeline]]\nat = \"500ms\"\nset.wire.delay = \"1ms\"\n";
    fs::write(&file, format!("{text}{timeline}")).unwrap();
    let sim =
        |more: &[&str]| finish(narrows(["sim", "--duration", "1s", "--threads", "2"]).args(more).arg(&file));
    let again = sim(&["--packets", scratch.file("packets.csv").to_str().unwrap()]).expect(0);
    assert!(
        again.err.contains("one thread instead of 2: the timeline changes rules, or lets a link"),
        "{again}"
    );
    for output in ["-", "/dev/stdout"] {
        let mut command = narrows(["sim", "--duration", "1s", "--threads", "2", "--packets", output]);
        let command = command.arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
        let once = command.spawn().unwrap().wait_with_output().unwrap();
        let [out, err] = [&once.stdout, &once.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert_eq!(once.status.code(), Some(2), "{err}");
        assert!(err.contains("cannot go on with several threads: the timeline"), "{err}");
        assert!(err.contains("Use one thread") && out.matches("arrival_ns").count() <= 1, "{out}");
    }

    let capture = scratch.file("all.pcapng");
    let mut first = narrows(["sim", "--duration", "1s", "--quiet", "--capture"]);
    finish(first.arg(&capture).arg(&file)).expect(0);
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.wire]\nbetween = [\"client\", \"server\"]\n{link}\n\
         [[traffic]]\nfrom = \"client\"\nto = \"server\"\ncapture = \"/dev/stdin\"\n"
    );
    fs::write(&file, text).unwrap();
    let mut command = narrows(["sim", "--duration", "2s", "--threads", "2", "--json", "-"]);
    let command = command.arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = fs::read(&capture).unwrap();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &bytes));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.contains("a capture is not a regular file"), "{err}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["conservation"]["delivered_packets"].as_u64().unwrap() > 4_000, "{report}");
}

/// One link, both ways alike, and traffic from the client.
fn scenario(link: &str, traffic: &str) -> String {
    format!(
        "[hosts.client]\n[hosts.server]\n[links.wire]\nbetween = [\"client\", \"server\"]\n{link}\n\
         [[traffic]]\nname = \"there\"\nfrom = \"client\"\nto = \"server\"\n{traffic}\n\
         [[traffic]]\nname = \"back\"\nfrom = \"server\"\nto = \"client\"\n{traffic}\n"
    )
}

#[test]
fn pings_at_a_10_ms_pace_meet_exactly_the_delay_whatever_the_round_trip() {
    let scratch = Scratch::new();
    for (round_trip_ms, queue) in [(20, 17), (100, 84), (400, 334)] {
        let link =
            format!("rate = \"10mbit\"\ndelay = \"{}ms\"\nqueue = \"{queue} packets\"", round_trip_ms / 2);
        let traffic = "constant = \"100/s\"\nlength = \"84 bytes\"\npackets = 1000";
        let file = scratch.write("latency.toml", &scenario(&link, traffic));
        let report = finish(&mut narrows(["sim", file.to_str().unwrap(), "--json", "-"])).expect(0).json();
        sound(&report);
        assert_eq!(report["round_trips"][0]["round_trip_ns"], round_trip_ms * 1_000_000);
        for (from, to) in [("client.wire", "server.wire"), ("server.wire", "client.wire")] {
            let pair = pair(&report, from, to);
            let exact = round_trip_ms / 2 * 1_000_000 + 67_200;
            assert_eq!(pair["delivered"]["packets"], 1000, "{pair:#}");
            for key in ["min_ns", "max_ns", "mean_ns"] {
                assert_eq!(pair["delay"][key], exact, "{key} in {pair:#}");
            }
        }
    }
}

#[test]
fn the_worst_delay_under_overload_is_that_of_a_full_queue_and_not_ten_seconds() {
    let scratch = Scratch::new();
    let link = "rate = \"1mbit\"\ndelay = \"100ms\"\nqueue = \"10 packets\"";
    let traffic = "constant = \"10mbit\"\nlength = \"1500 bytes\"";
    let file = scratch.write("overload.toml", &scenario(link, traffic));
    let arguments = ["sim", file.to_str().unwrap(), "--duration", "10s", "--json", "-"];
    let report = finish(&mut narrows(arguments)).expect(0).json();
    sound(&report);
    let most = pair(&report, "client.wire", "server.wire")["delay"]["max_ns"].as_u64().unwrap();
    let bound = 100_000_000 + 11 * 12_000_000;
    assert!(most <= bound && most > bound - 12_000_000, "{most} ns: ten wait, and one is on the wire");
    let busy = direction(&report, "wire.up")["utilisation_share"].as_f64().unwrap();
    assert!(busy > 0.999, "{busy}");
}
