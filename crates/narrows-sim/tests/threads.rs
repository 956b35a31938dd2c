//! Runs on several threads: the same bytes as on one.

mod common;

use std::ops::ControlFlow;
use std::path::Path;

use narrows_core::Duration;
use narrows_scenario::{NetworkPlan, NetworkShape, Scenario};
use narrows_sim::{
    Destination, Observers, SeriesOptions, SimError, SimOptions, SimResult, Whole, observe, observe_all,
    simulate, simulate_watched,
};
use proptest::prelude::*;

/// All outputs that a run on several threads can have.
fn outputs(folder: &Path, threads: usize) -> SimOptions {
    let file = |name: &str| Some(Destination::File(folder.join(name)));
    SimOptions {
        packets: file("packets.csv"),
        capture: file("out.pcapng"),
        json: file("report.json"),
        threads,
        ..SimOptions::default()
    }
}

fn parsed(text: &str) -> Scenario {
    Scenario::parse(text, "threads.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// Runs with all outputs; returns their bytes, too.
fn run(name: &str, scenario: &Scenario, threads: usize) -> (SimResult, Vec<Vec<u8>>) {
    let folder = common::folder(&format!("threads-{name}-{threads}"));
    let result =
        simulate(scenario, &outputs(&folder, threads)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let files = ["packets.csv", "out.pcapng", "report.json"];
    let bytes = files.map(|file| std::fs::read(folder.join(file)).expect("it was just written"));
    std::fs::remove_dir_all(folder).expect("it was just made");
    (result, bytes.into())
}

/// Whatever the number of threads, the outputs are the same; returns the report, and the threads of the last run.
fn same(name: &str, scenario: &Scenario, threads: &[usize]) -> (narrows_report::Report, usize) {
    let (one, expected) = run(name, scenario, 1);
    assert_eq!((one.threads, one.whole), (1, None));
    assert_eq!(one.report.conservation.violations, [""; 0], "{name}");
    let mut last = 1;
    for &threads in threads {
        let (several, found) = run(name, scenario, threads);
        assert_eq!(several.report, one.report, "{name} on {threads} threads");
        assert!(found == expected, "{name}: other bytes on {threads} threads");
        last = several.threads;
    }
    (one.report, last)
}

fn topology(shape: NetworkShape, size: (usize, Option<usize>), hosts: usize, links: [&str; 4]) -> String {
    let mut plan = NetworkPlan { size: Some(size), hosts: Some(hosts), ..NetworkPlan::new(shape) };
    let [rate, delay, edge_rate, edge_delay] = links.map(|text| Some(text.to_owned()));
    let values = &mut plan.values;
    (values.rate, values.delay, values.edge_rate, values.edge_delay) = (rate, delay, edge_rate, edge_delay);
    plan.scenario().unwrap_or_else(|error| panic!("{error}"))
}

/// TCP, datagrams and senders of other kinds, over several paths.
#[test]
fn a_leaf_and_spine_with_responding_sources() {
    let mut text = topology(NetworkShape::LeafSpine, (4, Some(2)), 16, ["40mbit", "20us", "20mbit", "10us"]);
    text = format!("duration = \"600ms\"\n{text}");
    for host in 1..=16 {
        let to = (host * 5 + 3) % 16 + 1;
        let what = match host % 4 {
            0 => "voip = { users = 2, duration = \"200ms\" }",
            1 => "aimd = { ecn = true, size = \"400 kB\" }",
            2 => "file = { size = \"200 kB\", transactions = 3 }",
            _ => "poisson = \"400/s\"\nlength = \"700 bytes\"",
        };
        if to != host {
            text += &format!("[[traffic]]\nname = \"t{host}\"\nfrom = \"h{host}\"\nto = \"h{to}\"\n{what}\n");
        }
    }
    let (report, threads) = same("fabric", &parsed(&text), &[2, 3, 4]);
    assert_eq!(threads, 4);
    assert!(report.conservation.delivered_packets > 3_000);
    assert!(report.applications.iter().any(|app| app.name == "t2"));
}

/// Links that take no time, or all the same, and sources in step: at each instant much happens in all shares, and the order
/// of verdicts is that of one thread.
#[test]
fn events_at_one_instant_keep_their_order() {
    let mut text = String::from("duration = \"40ms\"\n[routers.left]\n[routers.middle]\n[routers.right]\n");
    for host in 1..=6 {
        let router = if host <= 3 { "left" } else { "right" };
        // Some cross the link to the host at once; at some a packet is lost whenever another arrives behind the delay.
        let delay = ["", "delay = \"100us\"\n", "rate = \"80mbit\"\ndelay = \"100us\"\n"][host % 3];
        text += &format!(
            "[hosts.h{host}]\n[links.a{host}]\nbetween = [\"h{host}\", \"{router}\"]\nloss = \"5%\"\n{delay}"
        );
    }
    for (name, a, b) in [("x", "left", "middle"), ("y", "middle", "right")] {
        text += &format!(
            "[links.{name}]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"80mbit\"\ndelay = \"100us\"\nqueue = \"3 packets\"\n"
        );
    }
    for host in 1..=6 {
        for step in 1..=5 {
            let to = (host + step - 1) % 6 + 1;
            text += &format!(
                "[[traffic]]\nname = \"{host}-{to}\"\nfrom = \"h{host}\"\nto = \"h{to}\"\nconstant = \"20000/s\"\nlength = \"86 bytes\"\n"
            );
        }
    }
    // A link that has no rate for a moment sends what waits at once, at the instant of the change.
    for at in (5..35).step_by(2) {
        let (one, other) = if at % 4 == 1 { ("x", "y") } else { ("y", "x") };
        text += &format!(
            "[[timeline]]\nat = \"{at}ms\"\nset.{one} = {{ rate = \"unlimited\", loss = \"40%\" }}\n\
             set.{other} = {{ rate = \"80mbit\", loss = \"40%\" }}\n"
        );
    }
    let (report, threads) = same("instants", &parsed(&text), &[2, 3, 5]);
    assert!(threads >= 3, "{threads}");
    let reasons = report.directions.iter().flat_map(|direction| &direction.drops);
    assert!(reasons.filter(|drop| drop.reason == "queue full").count() >= 2);
}

/// Delays that differ, jitter and bursts of losses, queues with schedulers, and a run until all is delivered.
#[test]
fn a_chain_without_a_duration() {
    let text = r#"
        seed = 7
        [hosts.a]
        [hosts.b]
        [hosts.c]
        [routers.r]
        [routers.s]
        [links.a]
        between = ["a", "r"]
        rate = "10mbit"
        delay = { normal = { mean = "5ms", sd = "2ms" } }
        loss = { gilbert-elliott = { p = "2%", r = "30%" } }
        [links.b]
        between = ["b", "r"]
        rate = "20mbit"
        delay = "3ms"
        scheduler = "fq_codel"
        [links.rs]
        between = ["r", "s"]
        rate = "12mbit"
        delay = "7ms"
        queue = { type = "red", bound = "60 kB", min = "10 kB", max = "30 kB", probability = "10%" }
        [links.c]
        between = ["s", "c"]
        rate = "15mbit"
        delay = "1ms"
        corrupt = "1%"
        [[traffic]]
        name = "one"
        from = "a"
        to = "c"
        poisson = "900/s"
        length = "900 bytes"
        packets = 4000
        [[traffic]]
        name = "two"
        from = "b"
        to = "c"
        constant = "8mbit"
        length = "1200 bytes"
        packets = 3000
        [[traffic]]
        name = "back"
        from = "c"
        to = "b"
        poisson = "3mbit"
        length = "300 bytes"
        packets = 2000
    "#;
    let (report, threads) = same("chain", &parsed(text), &[2, 3, 8]);
    assert!(threads >= 3, "{threads}");
    assert_eq!(report.conservation.inside_packets, 0);
    assert!(report.conservation.dropped_packets > 100);
}

/// Every scenario of the repository that brings traffic.
#[test]
fn the_scenarios_of_the_repository() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths: Vec<_> =
        std::fs::read_dir(scenarios).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut divided = 0;
    for path in paths {
        let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
        if scenario.traffic.is_empty() {
            continue;
        }
        let run = |threads| {
            let duration = Some(Duration::from_secs(2));
            let options = SimOptions { threads, duration, ..SimOptions::default() };
            simulate(&scenario, &options).unwrap_or_else(|error| panic!("{error}"))
        };
        let (one, several) = (run(1), run(4));
        assert_eq!(several.report, one.report, "{}", path.display());
        assert_eq!(several.threads == 1, several.whole.is_some(), "{}", path.display());
        divided += usize::from(several.threads > 1);
    }
    assert!(divided >= 3, "{divided}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Networks in the plane with delays by distance, and sources between any hosts.
    #[test]
    fn random_networks(
        seed in 0u64..1000,
        routers in 3usize..8,
        flows in proptest::collection::vec((0usize..8, 0usize..8, 0usize..4), 1..12),
        threads in 2usize..5,
    ) {
        let mut plan = NetworkPlan {
            size: Some((routers, None)),
            hosts: Some(8),
            ..NetworkPlan::new(NetworkShape::Waxman)
        };
        let values = &mut plan.values;
        (values.rate, values.delay, values.seed) = (Some("8mbit".into()), Some("4ms".into()), seed);
        (values.edge_rate, values.edge_delay) = (Some("10mbit".into()), Some("1ms".into()));
        values.loss = Some("1%".into());
        let mut text = format!("duration = \"700ms\"\n{}", plan.scenario().unwrap());
        for (number, (from, to, what)) in flows.into_iter().enumerate().filter(|(_, (from, to, _))| from != to) {
            let what = [
                "constant = \"3mbit\"\nlength = \"500 bytes\"",
                "poisson = \"2mbit\"\nlength = \"1000 bytes\"",
                "file = { size = \"50 kB\" }",
                "aimd = {}",
            ][what];
            text += &format!(
                "[[traffic]]\nname = \"t{number}\"\nfrom = \"h{}\"\nto = \"h{}\"\n{what}\n",
                from + 1, to + 1
            );
        }
        let scenario = parsed(&text);
        if !scenario.traffic.is_empty() {
            same(&format!("random-{seed}-{routers}-{threads}"), &scenario, &[threads]);
        }
    }
}

/// Two hosts on a link that delays, and a source.
fn link(keys: &str, more: &str) -> String {
    format!(
        "duration = \"1s\"\n[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"50mbit\"\ndelay = \"5ms\"\n{keys}\n\
         [[traffic]]\nfrom = \"a\"\nto = \"b\"\nconstant = \"40mbit\"\nlength = \"1000 bytes\"\n{more}"
    )
}

#[test]
fn what_cannot_be_divided_runs_on_one_thread_and_says_why() {
    let whole = |text: &str| {
        let (one, expected) = run("whole", &parsed(text), 1);
        let (several, found) = run("whole", &parsed(text), 2);
        assert!(one.report == several.report && expected == found);
        assert!(several.threads == 1 || several.whole.is_none());
        several.whole
    };
    assert_eq!(whole(&link("", "")), None);
    let timeline = |set: &str| link("", &format!("[[timeline]]\nat = \"200ms\"\nset.l.{set}\n"));
    assert_eq!(whole(&timeline("rate = \"20mbit\"")), None);
    assert_eq!(whole(&timeline("delay = \"7ms\"")), None);
    for set in ["delay = \"4ms\"", "jitter = \"1ms\"", "duplicate = \"1%\""] {
        assert_eq!(whole(&timeline(set)), Some(Whole::Timeline), "{set}");
    }
    let endless = timeline("rate = \"20mbit\"").replace("duration = \"1s\"", "");
    assert_eq!(whole(&endless.replace("length", "packets = 900\nlength")), Some(Whole::Endless));
    let jitter = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\ndelay = { uniform = { low = \"1ms\", high = \"2ms\" } }\n\
                  [[traffic]]\nfrom = \"a\"\nto = \"b\"\npoisson = \"1000/s\"\nlength = \"99 bytes\"\npackets = 500\n";
    assert_eq!(whole(jitter), Some(Whole::Undivided));
    // A responding source has both ends of the only link.
    let aimd = link("", "").replace("constant = \"40mbit\"\nlength = \"1000 bytes\"", "aimd = {}");
    assert_eq!(whole(&aimd), Some(Whole::Responding));

    let series = |folder: &Path| {
        Some(SeriesOptions {
            to: Destination::File(folder.join("series.csv")),
            interval: Duration::from_millis(100),
        })
    };
    let folder = common::folder("threads-series");
    let options = SimOptions { series: series(&folder), threads: 2, ..SimOptions::default() };
    let result = simulate(&parsed(&link("", "")), &options).unwrap();
    assert_eq!((result.threads, result.whole), (1, Some(Whole::Series)));
    let options = SimOptions { threads: 2, ..SimOptions::default() };
    let result =
        observe_all(&parsed(&link("", "")), &options, Some(&mut |_| ()), Observers::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(result.whole, Some(Whole::Adjusted));
}

/// A change sends what waits, at an instant at which no packet comes: the outputs are those of one thread.
#[test]
fn what_a_change_sends_at_once_crosses() {
    let text = r#"
        duration = "3s"
        [hosts.a]
        [hosts.b]
        [routers.r]
        [routers.s]
        [links]
        l = { between = ["a", "r"], rate = "10mbit", delay = "10ms" }
        m = { between = ["r", "s"], rate = "500kbit", delay = "30ms", queue = "500 packets" }
        n = { between = ["s", "b"], rate = "10mbit", delay = "10ms" }
        [[traffic]]
        from = "a"
        to = "b"
        constant = "1mbit"
        length = "1000 bytes"
        stop = "1500ms"
        [[timeline]]
        at = "1503217us"
        set.m.rate = "unlimited"
    "#;
    let (report, threads) = same("change", &parsed(text), &[2, 3]);
    assert_eq!(threads, 3);
    assert_eq!(report.conservation.inside_packets, 0);
}

/// Two pairs of hosts that have nothing to do with each other, and delays of a second: windows end early.
#[test]
fn windows_end_early_where_nothing_else_ends_them() {
    let pair = |a: &str, b: &str, delay: &str| {
        format!(
            "[hosts.{a}]\n[hosts.{b}]\n[links.{a}{b}]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"100mbit\"\ndelay = \"{delay}\"\n\
             loss = \"1%\"\n[[traffic]]\nname = \"{a}{b}\"\nfrom = \"{a}\"\nto = \"{b}\"\npoisson = \"90mbit\"\nlength = \"300 bytes\"\n"
        )
    };
    let apart = format!("duration = \"2s\"\n{}{}", pair("a", "b", "10ms"), pair("c", "d", "1s"));
    let (_, threads) = same("apart", &parsed(&apart), &[2, 4]);
    assert_eq!(threads, 4);
    let long = format!("duration = \"4s\"\n{}", pair("a", "b", "1s"));
    same("long", &parsed(&long), &[2]);
}

/// A link that is down for hours: sources that respond have given up on one thread, and what comes later must not reach them.
#[test]
fn a_pause_of_an_hour_ends_a_run_on_threads() {
    let text = |source: &str, every: &str| {
        format!(
            "duration = \"8000s\"\n[hosts.a]\n[hosts.b]\n[hosts.c]\n[hosts.d]\n\
             [links.l]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\ndelay = \"5ms\"\n\
             [links.m]\nbetween = [\"c\", \"d\"]\ndelay = \"5ms\"\n\
             [[traffic]]\nname = \"x\"\nfrom = \"a\"\nto = \"b\"\n{source}\n\
             [[traffic]]\nname = \"y\"\nfrom = \"c\"\nto = \"d\"\nconstant = \"10/s\"\nlength = \"99 bytes\"\nstop = \"1s\"\n\
             [[timeline]]\nat = \"200ms\"\nset.l.rate = \"down\"\n{every}\
             [[timeline]]\nat = \"7000s\"\nset.l.rate = \"1mbit\"\n"
        )
    };
    let every = "[[timeline]]\nat = \"1000s\"\nevery = \"1000s\"\nset.m.loss = \"1%\"\n";
    for (source, every, expected) in [
        ("aimd = {}", every, Some(Whole::Pause)),
        ("aimd = {}", "", Some(Whole::Pause)),
        ("constant = \"9/s\"\nlength = \"99 bytes\"\nstop = \"1s\"", every, None),
    ] {
        let scenario = parsed(&text(source, every));
        let (one, expected_bytes) = run("pause", &scenario, 1);
        let (several, found) = run("pause", &scenario, 2);
        assert_eq!(several.whole, expected, "{source}");
        assert_eq!(several.report, one.report, "{source}");
        assert!(expected_bytes == found, "{source}");
    }
}

/// A gigabyte inside: near the limit a run begins again, unless packets have been told of.
#[test]
fn near_the_limit_on_memory_a_run_begins_again() {
    let text = "duration = \"3s\"\n[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\ndelay = \"10s\"\nqueue = \"10 packets\"\n\
                [[traffic]]\nname = \"there\"\nfrom = \"a\"\nto = \"b\"\nconstant = \"10000/s\"\nlength = \"60000 bytes\"\n\
                [[traffic]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\nconstant = \"1000/s\"\nlength = \"60000 bytes\"\n";
    let scenario = parsed(text);
    let (one, expected) = run("memory", &scenario, 1);
    assert!(one.report.losses.refused_packets > 1000);
    let (several, found) = run("memory", &scenario, 2);
    assert_eq!((several.threads, several.whole), (1, Some(Whole::Memory)));
    assert!(one.report == several.report && expected == found);
    let options = SimOptions { threads: 2, ..SimOptions::default() };
    let told = observe(&scenario, &options, Box::new(|_| ()));
    assert!(matches!(told, Err(SimError::Whole(Whole::Memory))), "{told:?}");
    assert!(told.unwrap_err().to_string().ends_with("near the limit on memory. Use one thread"));
}

#[test]
fn a_watch_stops_all_threads_and_observers_see_all_packets_in_order() {
    let scenario = parsed(&link("", "").replace("duration = \"1s\"", "duration = \"100000s\""));
    let options = SimOptions { threads: 2, ..SimOptions::default() };
    let result = simulate_watched(&scenario, &options, &mut |_| ControlFlow::Break(())).unwrap();
    assert!(result.broken_off && result.threads == 2);
    assert!(result.report.notes[0].starts_with("interrupted after"), "{:?}", result.report.notes);
    assert_eq!(result.report.conservation.violations, [""; 0]);

    let scenario = parsed(&link("loss = \"3%\"", ""));
    let seen = |threads| {
        let seen = std::rc::Rc::<std::cell::RefCell<Vec<_>>>::default();
        let theirs = seen.clone();
        let options = SimOptions { threads, ..SimOptions::default() };
        let observer = move |row: &narrows_report::PacketRow<'_>| {
            theirs.borrow_mut().push((row.at, row.number, row.delivered, row.reason.to_owned()));
        };
        observe(&scenario, &options, Box::new(observer)).unwrap();
        seen.take()
    };
    assert!(seen(1) == seen(2) && seen(1).len() > 4_000);
}
