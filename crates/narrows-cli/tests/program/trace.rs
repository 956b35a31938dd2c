//! Traces, patterns, and paths that are measured into them.

use std::fs;

use serde_json::Value;

use crate::common::{Scratch, finish, narrows, quoted, run, scenarios};

fn example(name: &str) -> String {
    scenarios().join("traces").join(name).to_str().unwrap().to_owned()
}

#[test]
fn traces_are_converted_and_what_gets_lost_is_told() {
    let scratch = Scratch::new();
    let file = |name: &str| scratch.file(name).to_str().unwrap().to_owned();
    let (json, mahimahi) = (file("cell.json"), file("cell.mahi"));
    let done = finish(&mut narrows(["trace", "convert", &example("cell.csv"), &json])).expect(0);
    assert!(done.err.contains("note: the format cannot express delay, loss, queue bound"), "{done}");
    finish(&mut narrows(["trace", "convert", &json, &mahimahi])).expect(0);
    let info = finish(&mut narrows(["trace", "info", &mahimahi, "--json", "-"])).expect(0).json();
    let original =
        finish(&mut narrows(["trace", "info", &example("cell.csv"), "--json", "-"])).expect(0).json();
    let mean = |info: &Value| info["columns"][0]["mean"].as_f64().unwrap();
    // Whole packets of 1504 bytes over ten seconds: less than one is lost.
    let lost = (mean(&original) - mean(&info)) * 10.0;
    assert!((-0.1..12_032.1).contains(&lost), "{lost}");
    assert_eq!(original["outages"][0]["start_ns"], 4_000_000_000u64);

    let only = finish(&mut narrows([
        "trace",
        "convert",
        &example("cell.csv"),
        "-",
        "--to",
        "csv",
        "--columns",
        "loss",
    ]));
    assert_eq!(only.expect(0).out, "time_s,loss\n0,0.002\n3.5,0.03\n4.5,0.002\n10\n");
    let steps = ["trace", "convert", &example("fading.mahi"), "-", "--to", "csv", "--resample", "1s"];
    let steps = finish(&mut narrows(steps)).expect(0);
    // 505 and 400 opportunities.
    assert_eq!(steps.out, "time_s,rate_mbit\n0,6.07616\n1,4.8128\n2\n");
}

#[test]
fn any_csv_is_read_by_its_columns_and_written_in_every_format_that_can_hold_it() {
    let scratch = Scratch::new();
    let drive = scratch.write("drive.csv", "ts,cell,dl,rtt_ms\n0,7,8,40\n500,7,4,-\n1000,9,0,60\n");
    let drive = drive.to_str().unwrap();
    let columns = "time=ts,time-unit=ms,rate=dl,unit=mbit,delay=rtt_ms";
    let convert = |to: &str| {
        let words = ["trace", "convert", drive, "-", "--to", to, "--columns", columns];
        finish(&mut narrows(words)).expect(0)
    };
    let csv = convert("csv");
    assert_eq!(csv.out, "time_s,rate_mbit,delay_ms\n0,8,40\n0.5,4,\n1,0,60\n1.5\n");
    assert!(csv.err.contains("note: 1 values are missing"), "{csv}");
    assert_eq!(convert("pensieve").out, "0\t8\n0.5\t8\n1\t4\n1.5\t0\n");
    let sabre = convert("sabre");
    assert!(
        sabre.out.contains(r#"{"duration_ms": 500, "bandwidth_kbps": 4000, "latency_ms": 80}"#),
        "{sabre}"
    );
    // The same in a scenario, and what is wrong with the words.
    let table =
        r#"{ file = "drive.csv", columns = { time = "ts", time-unit = "ms", rate = "dl", unit = "mbit" } }"#;
    let text = format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\ndown.trace = {table}\n");
    let scenario = scratch.write("drive.toml", &text);
    let check = finish(&mut narrows(["check", scenario.to_str().unwrap()])).expect(0);
    assert!(check.out.contains("drive.csv: rate for 1.5s"), "{check}");
    for (columns, word) in
        [("time=ts,rate=dl", "`unit` is missing"), ("time=ts,rate=x,unit=bit", "no column `x`")]
    {
        let done = finish(&mut narrows(["trace", "info", drive, "--columns", columns])).expect(2);
        assert!(done.err.contains(word), "{done}");
    }
}

#[test]
fn a_table_that_is_not_understood_is_refused_with_the_columns_that_read_it() {
    let scratch = Scratch::new();
    for (name, text) in [
        ("plain.csv", "0,3.5,0.01\n1,4.5,0.01\n"),
        ("bits.txt", "0 3500000\n10 4500000\n"),
        (
            "drive.csv",
            "time,throughput,speed\n2023-04-05 11:03:07 CDT,3.5,2\n2023-04-05 11:03:08 CDT,4.5,1\n",
        ),
    ] {
        let file = scratch.write(name, text);
        let file = file.to_str().unwrap();
        let refused = finish(&mut narrows(["trace", "info", file])).expect(2);
        let (_, columns) = refused.err.split_once("`--columns ").unwrap();
        let (columns, _) = columns.split_once('`').unwrap();
        let read = finish(&mut narrows(["trace", "info", file, "--columns", columns])).expect(0);
        assert!(read.out.contains("3.5 Mbit/s") && read.out.contains("4.5 Mbit/s"), "{read}");
    }
    let bits = scratch.file("bits.txt");
    let insisted =
        finish(&mut narrows(["trace", "info", bits.to_str().unwrap(), "--from", "pensieve"])).expect(0);
    assert!(insisted.out.contains("4500 Gbit/s"), "{insisted}");
    let said = scratch.write("said.csv", "at_ms,throughput_mbps,note\n0,3.5,a\n1000,4.5,b\n");
    let said = finish(&mut narrows(["trace", "info", said.to_str().unwrap()])).expect(0);
    assert!(
        said.out.contains("note: columns: time `at_ms` in ms, rate `throughput_mbps` in Mbit/s"),
        "{said}"
    );
}

#[test]
fn a_cell_is_replayed_from_two_traces_by_a_flag() {
    let scratch = Scratch::new();
    let (light, heavy) = (example("phone.light"), example("phone.mahi"));
    let delay = format!("{{ cell = {{ light = '{light}', heavy = '{heavy}' }} }}");
    let check = finish(&mut narrows(["check", "--delay", &delay])).expect(0);
    assert!(check.out.contains("phone.light (26.8ms on average), or the heavy trace"), "{check}");
    // A packet takes the base delay of the light trace, 26 ms at first, and all of them arrive.
    let packets = scratch.file("packets.csv").to_str().unwrap().to_owned();
    let traffic = "{ from = 'server', to = 'client', constant = '100kbit' }";
    finish(&mut narrows([
        "sim",
        "--delay",
        &delay,
        "--duration",
        "1s",
        "--traffic",
        traffic,
        "--packets",
        &packets,
    ]))
    .expect(0);
    let rows = fs::read_to_string(&packets).unwrap();
    assert!(rows.lines().nth(1).unwrap().contains("26000000"), "{rows}");
}

#[test]
fn what_is_wrong_with_a_trace_or_a_pattern_is_said_and_exits_with_2() {
    let scratch = Scratch::new();
    let back = scratch.write("back.csv", "time_s,rate_mbit\n1,2\n0,1\n");
    let back = back.to_str().unwrap();
    for (arguments, words) in [
        (&["trace", "info", back][..], &["back.csv:3", "goes back"][..]),
        (&["trace", "info", "/nowhere/x.csv"], &["cannot read /nowhere/x.csv"]),
        (&["trace", "convert", &example("cell.csv"), "x.y"], &["unknown format", "--to"]),
        (
            &["trace", "convert", &example("cell.csv"), "-"],
            &[
                "-: unknown format; set it with --to: one of csv, mahimahi, netem-trace, theaterq, sabre, pensieve\n",
            ],
        ),
        (&["trace", "convert", &example("cell.csv"), "-", "--to", "mahimaji"], &["did you mean `mahimahi`?"]),
        (
            &["trace", "convert", &example("cell.csv"), "-", "--to", "csv", "--columns", "jitter"],
            &["`jitter`"],
        ),
        (
            &["trace", "convert", &example("cell.csv"), "-", "--to", "csv", "--resample", "0s"],
            &["--resample 0s"],
        ),
        (&["trace", "convert", &example("cell.csv"), "-", "--to", "csv", "--resample", "5"], &["no unit"]),
        (&["trace", "plot", &example("cell.csv"), "-o", "x.png"], &["SVG"]),
        (&["pattern", "make", "loss", "--length", "9", "--at", "10"], &["beyond the length, 9"]),
        (&["pattern", "make", "loss", "--length", "9"], &["--at"]),
        (&["pattern", "make", "delay", "--length", "9", "--random", "1%"], &["only losses and bit errors"]),
        (
            &["pattern", "make", "loss", "--length", "9", "--random", "60%", "--burst", "1"],
            &["at least 1.500"],
        ),
        (&["pattern", "make", "rate", "--per", "packet", "--runs", "9 1mbit"], &["not per packet"]),
        (&["pattern", "info", back], &["back.csv:1", "unknown word"]),
        (&["probe", "127.0.0.1", "--interval", "1us"], &["at least 1ms"]),
        (&["probe", "127.0.0.1", "--output", "/nowhere/x.csv"], &["there is no folder"]),
    ] {
        let done = finish(&mut narrows(arguments.iter().copied())).expect(2);
        for word in words {
            assert!(done.err.contains(word), "{word:?} is not said: {done}");
        }
        assert!(done.out.is_empty(), "{done}");
    }
}

#[test]
fn a_trace_is_described_and_drawn() {
    let scratch = Scratch::new();
    for (name, word) in [
        ("cell.csv", "1 outage, 500 ms in all"),
        ("fading.mahi", "begins again"),
        ("steps.json", "12 Mbit/s"),
        ("orbit.theaterq", "150 ms from 3 s on"),
    ] {
        let done = finish(&mut narrows(["trace", "info", &example(name)])).expect(0);
        assert!(done.out.contains(word), "{done}");
        let figure = scratch.file("figure.svg");
        finish(&mut narrows(["trace", "plot", &example(name), "-o", figure.to_str().unwrap()])).expect(0);
        let printed = finish(&mut narrows(["trace", "plot", &example(name), "--svg"])).expect(0);
        let written = fs::read_to_string(&figure).unwrap();
        assert_eq!(written, printed.out);
        assert!(written.starts_with("<svg") && written.contains("<path class=\"line"), "{name}");
    }
}

#[test]
fn a_long_trace_makes_a_figure_of_a_size_that_can_be_looked_at() {
    let scratch = Scratch::new();
    let rows: String = (0..100_000).map(|n| format!("{n},{}\n", 1 + n * 7919 % 101)).collect();
    let file = scratch.write("long.csv", &format!("time_ms,rate_mbit\n{rows}"));
    let done = finish(&mut narrows(["trace", "plot", file.to_str().unwrap(), "--svg"])).expect(0);
    // A thousand bars of a few places each.
    assert!(done.out.len() < 200_000, "{}", done.out.len());
}

#[test]
fn patterns_are_made_and_described() {
    let scratch = Scratch::new();
    let file = scratch.file("x.pattern");
    let file = file.to_str().unwrap();
    let made = ["pattern", "make", "loss", "--length", "1000", "--at", "101-105,640", "-o", file];
    finish(&mut narrows(made)).expect(0);
    let shipped = fs::read_to_string(example("bursts.pattern")).unwrap();
    let without_comments: String =
        shipped.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    assert_eq!(fs::read_to_string(file).unwrap(), without_comments);
    let info = finish(&mut narrows(["pattern", "info", file, "--json", "-"])).expect(0).json();
    assert_eq!((&info["hits"]["places"], &info["hits"]["longest_burst"]), (&6.into(), &5.into()));

    let random =
        ["pattern", "make", "loss", "--length", "2000", "--random", "5%", "--burst", "3", "--seed", "7"];
    let once = finish(&mut narrows(random)).expect(0).out;
    assert_eq!(finish(&mut narrows(random)).expect(0).out, once);
    let rates = finish(&mut narrows(["pattern", "make", "rate", "--runs", "250 4mbit, 250 down"])).expect(0);
    assert_eq!(rates.out, "pattern rate\nper millisecond\nlength 500\n1 4mbit\n251 down\n");
    let trace = scratch.write("rate.pattern", &rates.out);
    let info = finish(&mut narrows(["trace", "info", trace.to_str().unwrap()])).expect(0);
    assert!(info.out.contains("250 ms from 250 ms on"), "{info}");
}

/// The program itself, for a line of the shell.
fn program() -> String {
    quoted(crate::common::NARROWS)
}

#[test]
#[ignore = "needs namespaces"]
fn a_path_is_measured_into_a_trace_of_half_its_round_trips() {
    let scratch = Scratch::new();
    let narrows = program();
    let file = scratch.file("path.csv");
    let (four, six) = (scratch.file("4.json"), scratch.file("6.json"));
    let line = format!(
        "{narrows} probe $NARROWS_SERVER --count 20 --interval 5ms -o {} --json {} && \
         {narrows} probe $NARROWS_SERVER6 --count 20 --interval 5ms --size 1200 --whole --json {}",
        quoted(file.to_str().unwrap()),
        quoted(four.to_str().unwrap()),
        quoted(six.to_str().unwrap()),
    );
    let done = finish(&mut run(["--delay", "15ms", "--quiet"], &line)).expect(0);
    assert!(
        done.out.contains("20 asked, 20 answered, 0 lost") && done.out.contains("each way has half"),
        "{done}"
    );
    for path in [&four, &six] {
        let summary: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!((&summary["answered"], &summary["lost"]), (&20.into(), &0.into()), "{summary}");
        assert!(summary["min_ns"].as_u64().unwrap() >= 30_000_000, "{summary}");
    }
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("# measured by echoes to") && text.contains("half of the round-trip time"),
        "{text}"
    );
    let info = finish(&mut crate::common::narrows(["trace", "info", file.to_str().unwrap(), "--json", "-"]))
        .expect(0)
        .json();
    assert_eq!((&info["columns"][0]["name"], &info["columns"][1]["name"]), (&"delay".into(), &"loss".into()));
    assert!(info["columns"][0]["min"].as_f64().unwrap() >= 0.015, "{info}");
    assert_eq!(info["columns"][1]["max"], 0.0);
    assert!(info["length_ns"].as_u64().unwrap() >= 100_000_000, "{info}");
}

/// What a busy host makes of the gaps is another matter: here counts that it can say a rate at all, and that the scenario runs.
#[test]
#[ignore = "needs namespaces"]
fn a_path_is_written_as_a_scenario() {
    let scratch = Scratch::new();
    let narrows = program();
    let file = scratch.file("path.toml");
    let quoted_file = quoted(file.to_str().unwrap());
    let line = format!(
        "{narrows} probe $NARROWS_SERVER --count 3 --interval 5ms --trains 3 --scenario {quoted_file}"
    );
    let done = finish(&mut run(["--rate", "1mbit", "--delay", "15ms", "--quiet"], &line)).expect(0);
    assert!(done.out.contains("rate: p50 ") && done.out.contains(" (3 trains"), "{done}");
    let checked =
        finish(&mut crate::common::narrows(["check", file.to_str().unwrap(), "--json", "-"])).expect(0);
    assert!(checked.out.contains("path.csv"), "{checked}");
    for wrong in ["-", "path.csv"] {
        let line = format!("{narrows} probe 127.0.0.1 --count 1 --scenario {wrong}");
        let done = finish(&mut run(["--delay", "1ms", "--quiet"], &line)).expect(2);
        assert!(done.err.contains("a file such as path.toml"), "{done}");
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_ping_socket_is_used_where_it_is_allowed_and_losses_are_counted() {
    let narrows = program();
    let line = format!(
        "{narrows} probe $NARROWS_SERVER --count 3 --interval 2ms --trains 1 --json -; \
         echo '0 0' > /proc/sys/net/ipv4/ping_group_range; \
         {narrows} probe $NARROWS_SERVER --count 3 --interval 2ms --trains 1 --json -; \
         {narrows} probe $NARROWS_SERVER6 --count 3 --interval 2ms --trains 1 --json -"
    );
    let done = finish(&mut run(["--delay", "1ms", "--quiet"], &line)).expect(0);
    let summaries: Vec<Value> =
        serde_json::Deserializer::from_str(&done.out).into_iter().map(Result::unwrap).collect();
    let sockets: Vec<&str> = summaries.iter().map(|summary| summary["socket"].as_str().unwrap()).collect();
    assert_eq!(sockets, ["raw", "ping", "ping"], "{done}");
    assert!(summaries.iter().all(|summary| summary["answered"] == 3), "{done}");

    // Every second packet on the way there, by pattern.
    let scratch = Scratch::new();
    let pattern = scratch.write("half.pattern", "pattern loss\nper packet\nlength 2\n2\n");
    let network = scratch.write(
        "net.toml",
        &format!(
            "[hosts.client]\n[hosts.server]\n[links.l]\nbetween = [\"client\", \"server\"]\n\
             up = {{ loss = {{ pattern = {{ file = {:?} }} }} }}\n",
            pattern.to_str().unwrap()
        ),
    );
    let line = format!(
        "{narrows} probe $NARROWS_SERVER --count 10 --interval 2ms --timeout 1s --trains 0 --json -; \
         {narrows} probe $NARROWS_SERVER --count 1 --interval 2ms --timeout 50ms --trains 0; \
         {narrows} probe $NARROWS_SERVER --count 1 --interval 2ms --timeout 50ms --trains 0"
    );
    let done = finish(&mut run([network.to_str().unwrap(), "--quiet"], &line)).expect(2);
    let summary: Value = serde_json::Deserializer::from_str(&done.out).into_iter().next().unwrap().unwrap();
    // A packet of the hosts' own between two probes shifts the pattern by one.
    let lost = summary["lost"].as_u64().unwrap();
    assert!((3..=7).contains(&lost), "{done}");
    assert_eq!((&summary["asked"], &summary["answered"]), (&10.into(), &(10 - lost).into()), "{done}");
    assert!(done.err.contains("no answer from") && done.err.contains("to 1 probes"), "{done}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_link_is_driven_by_a_path_that_is_measured() {
    let scratch = Scratch::new();
    let network = scratch.write(
        "net.toml",
        "[hosts.client]\n[hosts.near]\n[hosts.far]\n\
         [links.path]\nbetween = [\"client\", \"near\"]\ndelay = \"10ms\"\n\
         [links.driven]\nbetween = [\"client\", \"far\"]\n",
    );
    let narrows = program();
    let line = format!(
        "{narrows} probe $NARROWS_HOST_NEAR --drive driven.down --count 5 --interval 5ms --window 10ms -q && \
         {narrows} probe $NARROWS_HOST_FAR --count 5 --interval 5ms --json -; \
         {narrows} probe $NARROWS_HOST_FAR --drive drivn --count 5"
    );
    let done = finish(&mut run([network.to_str().unwrap(), "--quiet"], &line)).expect(2);
    let summary: Value = serde_json::Deserializer::from_str(&done.out).into_iter().next().unwrap().unwrap();
    // Half of at least 20 ms has become the delay of the one direction that was named.
    assert!(summary["min_ns"].as_u64().unwrap() >= 10_000_000, "{done}");
    assert_eq!(summary["answered"], 5, "{done}");
    assert!(done.err.contains("`drivn`") && done.err.contains("`driven`"), "{done}");
}
