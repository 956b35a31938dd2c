//! Whole scenarios from beginning to end, those of the repository among them.

mod common;

use std::path::Path;

use narrows_core::{Duration, Seed};
use narrows_scenario::Scenario;
use narrows_sim::{Destination, SeriesOptions, SimError, SimOptions, SimResult, simulate};

/// All outputs into a folder.
fn all_outputs(folder: &Path) -> SimOptions {
    let file = |name: &str| Destination::File(folder.join(name));
    SimOptions {
        packets: Some(file("packets.csv")),
        series: Some(SeriesOptions { to: file("series.csv"), interval: Duration::from_millis(100) }),
        capture: Some(file("out.pcapng")),
        json: Some(file("report.json")),
        ..SimOptions::default()
    }
}

fn run(scenario: &Scenario, options: &SimOptions) -> SimResult {
    simulate(scenario, options).unwrap_or_else(|error| panic!("{}: {error}", scenario.file))
}

/// Every scenario of the repository that brings traffic: nothing is lost unaccounted for, and a second run writes the
/// same bytes.
#[test]
fn the_scenarios_of_the_repository_run_and_run_again() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut ran = 0;
    let mut paths: Vec<_> =
        std::fs::read_dir(scenarios).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    for path in paths {
        let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
        if scenario.traffic.is_empty() {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        let once = common::folder(&format!("scenario-{name}-once"));
        let twice = common::folder(&format!("scenario-{name}-twice"));
        let result = run(&scenario, &all_outputs(&once));
        assert_eq!(result.report.conservation.violations, [""; 0], "{name}");
        assert!(result.report.conservation.delivered_packets > 0, "{name}");
        let text = result.report.text().to_string();
        println!("{text}");
        // The first names the file, with its whole path here.
        assert!(text.lines().skip(1).all(|line| line.chars().count() <= 100), "{name}");
        assert_eq!(result.report, run(&scenario, &all_outputs(&twice)).report);
        for file in ["packets.csv", "series.csv", "out.pcapng", "report.json"] {
            let [once, twice] = [&once, &twice].map(|folder| std::fs::read(folder.join(file)).unwrap());
            assert!(!once.is_empty() && once == twice, "{name}: {file}");
        }
        // Some have hundreds of megabytes.
        for folder in [once, twice] {
            std::fs::remove_dir_all(folder).unwrap();
        }
        ran += 1;
    }
    assert!(ran > 0);
}

/// What the comment in `hidden-stations.toml` says, in packets of 1500 bytes over 20 s.
#[test]
fn rts_protects_hidden_stations() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/hidden-stations.toml");
    let delivered = |assignment: &str| {
        let mut scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
        scenario.assign(assignment).unwrap_or_else(|error| panic!("{error}"));
        let report = run(&scenario, &SimOptions::default()).report;
        assert_eq!(report.conservation.violations, [""; 0]);
        report.conservation.delivered_packets as f64 * 12_000.0 / 20e6
    };
    let (none, rts) = ("radio.scheduler.rts-threshold=none", "radio.scheduler.rts-threshold=500B");
    let found = [none, rts, "radio.scheduler.left.hidden-from=[]"].map(delivered);
    for (found, said) in found.into_iter().zip([0.27, 1.54, 1.70]) {
        assert!((found / said - 1.0).abs() < 0.05, "{found} Mbit/s, and the comment says {said}");
    }
}

const SMALL: &str = r#"
    [hosts.client]
    [hosts.server]
    [links.access]
    between = ["client", "server"]
    rate = "1mbit"
    loss = "10%"
    [[traffic]]
    from = "client"
    to = "server"
    poisson = "100/s"
    length = "500 bytes"
"#;

fn small(rest: &str) -> Scenario {
    Scenario::parse(&format!("{SMALL}{rest}"), "small.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn traffic_without_an_end_needs_a_duration() {
    let error = simulate(&small(""), &SimOptions::default()).unwrap_err();
    assert!(matches!(error, SimError::Endless(_)));
    let options = SimOptions { duration: Some(Duration::from_secs(10)), ..SimOptions::default() };
    assert_eq!(run(&small(""), &options).report.end_ns, 10_000_000_000);
    assert!(run(&small("packets = 10"), &SimOptions::default()).report.end_ns < 1_000_000_000);
}

/// A duration takes in its first instant and not its last, so that a packet every 10 ms makes 100 in a second.
#[test]
fn a_duration_has_as_many_packets_as_fit() {
    let scenario = Scenario::parse(&SMALL.replace("poisson", "constant"), "even.toml").unwrap();
    let options = SimOptions { duration: Some(Duration::from_secs(1)), ..SimOptions::default() };
    assert_eq!(run(&scenario, &options).report.conservation.in_packets, 100);
}

/// What was asked for changes on the way, and the wire is down at the end: the report says both.
#[test]
fn the_reader_is_told_what_happened_on_the_way() {
    let rest = "packets = 100\n[[timeline]]\nat = \"500ms\"\nset = { \"access.rate\" = \"0bit\" }";
    let report = run(&small(rest), &SimOptions::default()).report;
    assert!(report.conservation.inside_packets > 0);
    assert!(report.notes[0].ends_with("stuck inside: a link is down"), "{:?}", report.notes);
    assert!(report.notes[1].starts_with("the timeline changed the network once;"), "{:?}", report.notes);
}

#[test]
fn a_series_needs_an_interval() {
    let to = Destination::File(common::folder("interval").join("series.csv"));
    let series = Some(SeriesOptions { to, interval: Duration::ZERO });
    let error = simulate(&small("packets = 1"), &SimOptions { series, ..SimOptions::default() }).unwrap_err();
    assert!(matches!(error, SimError::NoInterval));
}

#[test]
fn a_scenario_without_traffic_is_refused() {
    let text = SMALL.split("[[traffic]]").next().unwrap();
    let error = simulate(&Scenario::parse(text, "silent.toml").unwrap(), &SimOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("silent.toml has no traffic"), "{error}");
}

/// The seed of the options is that of every draw, of the traffic and the network, and is in the report.
#[test]
fn the_seed_can_be_given() {
    let with = |seed| {
        let options = SimOptions { seed: Some(Seed(seed)), ..SimOptions::default() };
        run(&small("packets = 1000"), &options).report
    };
    assert_eq!(with(1), run(&small("packets = 1000"), &SimOptions::default()).report);
    let other = with(2);
    assert_eq!(other.seed, 2);
    assert_ne!(other.end_ns, with(1).end_ns, "other gaps");
    assert_ne!(other.directions[0].dropped_packets, with(1).directions[0].dropped_packets, "other losses");
}

/// An entry of the timeline that counts from the first packet.
#[test]
fn the_timeline_can_count_from_the_first_packet() {
    let timeline = "packets = 1000\nstart = \"3s\"\n\
                    [[timeline]]\nat = \"1s\"\nfrom = \"first-packet\"\nset = { \"access.up.loss\" = \"100%\" }";
    let folder = common::folder("first-packet");
    let options =
        SimOptions { packets: Some(Destination::File(folder.join("packets.csv"))), ..SimOptions::default() };
    run(&small(timeline), &options);
    let records = std::fs::read_to_string(folder.join("packets.csv")).unwrap();
    let rows: Vec<Vec<&str>> = records.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let first: u64 = rows.iter().map(|row| row[10].parse().unwrap()).min().unwrap();
    assert!(first > 3_000_000_000);
    let last: u64 =
        rows.iter().filter(|row| row[12] == "delivered").map(|row| row[16].parse().unwrap()).max().unwrap();
    // Nothing that is sent from then on arrives; ten packets a tenth of a second.
    assert!(last <= first + 1_000_000_000 && last > first + 800_000_000, "{first} {last}");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let options = SimOptions {
        json: Some(Destination::File("/nonexistent/report.json".into())),
        ..SimOptions::default()
    };
    let error = simulate(&small("packets = 1"), &options).unwrap_err();
    assert!(error.to_string().starts_with("cannot write /nonexistent/report.json: "), "{error}");
}

/// Rules and pipes that come and go: packets are where they belong, and the report has every pipe that ever was.
#[test]
fn commands_of_a_timeline_change_rules_and_pipes() {
    let text = r#"
        duration = "4s"
        [hosts.client]
        [hosts.server]
        [links.net]
        between = ["client", "server"]
        rules = ["100 pipe 1 out"]
        pipes.1 = { rate = "8mbit" }
        [[traffic]]
        from = "client"
        to = "server"
        constant = "100/s"
        length = "1000B"
        [[timeline]]
        at = "1s"
        ipfw.net = ["add 50 deny ip from any to any out"]
        [[timeline]]
        at = "2s"
        ipfw.net = ["delete 50", "pipe 2 config bw 0.4Mbit/s queue 2", "add 90 pipe 2 ip from any to any out"]
        [[timeline]]
        at = "3s"
        ipfw.net = ["flush", "pipe flush"]
    "#;
    let report = run(&Scenario::parse(text, "net.toml").unwrap(), &SimOptions::default()).report;
    assert_eq!(report.conservation.violations, [""; 0]);
    let rules = &report.rules[0];
    assert_eq!(rules.denied.packets, 100, "a second of all");
    let pipes: Vec<_> = report.directions.iter().filter(|pipe| pipe.from == "client").collect();
    let through: Vec<_> = pipes.iter().map(|pipe| (pipe.link.as_str(), pipe.offered.packets)).collect();
    assert_eq!(through, [("net.1", 100), ("net.2", 100)]);
    let dropped: u64 = report.conservation.dropped_packets;
    assert!(dropped > 140 && dropped < 160, "{dropped}: half of what pipe 2 got, too");
}

/// A frame of 1014 bytes counts 1142: a mebibyte holds 918 of them.
#[test]
fn packets_inside_take_no_more_memory_than_the_scenario_allows() {
    let text = |memory: &str| {
        format!(
            "{memory}duration = \"5s\"\n[hosts.a]\n[hosts.b]\n[links.far]\nbetween = [\"a\", \"b\"]\ndelay = \"10s\"\n\
             [[traffic]]\nfrom = \"a\"\nto = \"b\"\nconstant = \"1000/s\"\nlength = \"1000 bytes\"\n"
        )
    };
    let inside = |memory: &str| {
        let scenario = Scenario::parse(&text(memory), "t").unwrap_or_else(|error| panic!("{error}"));
        simulate(&scenario, &SimOptions::default()).unwrap().report.generated[0].inside_packets
    };
    assert_eq!(inside("memory = \"1 MiB\"\n"), 918);
    assert_eq!(inside(""), 5000);
    let error = Scenario::parse(&text("memory = \"1 kB\"\n"), "t").unwrap_err().to_string();
    assert!(error.contains("expected a size from 1 MiB to 1000 GB"), "{error}");
}

/// A wire that is down is not in use.
#[test]
fn an_outage_is_no_use_of_the_wire() {
    for down in ["outage = true", "rate = \"down\""] {
        let up = if down.starts_with("outage") { "outage = false" } else { "rate = \"10mbit\"" };
        let text = format!(
            "duration = \"30s\"\n[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"10mbit\"\nqueue = \"10 packets\"\n\
             [[traffic]]\nfrom = \"a\"\nto = \"b\"\nconstant = \"100/s\"\nlength = \"125 bytes\"\n\
             [[timeline]]\nat = \"10s\"\n[timeline.set]\n\"l.{}\n[[timeline]]\nat = \"20s\"\n[timeline.set]\n\"l.{}\n",
            down.replacen(' ', "\" ", 1),
            up.replacen(' ', "\" ", 1),
        );
        let scenario = Scenario::parse(&text, "outage").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let report = run(&scenario, &SimOptions::default()).report;
        let up = report.directions.iter().find(|one| one.link == "l.up").unwrap();
        // Some 2000 packets of 1000 bits, in 30 s at 10 Mbit/s.
        let share = up.utilisation_share.unwrap();
        assert!((0.006..0.008).contains(&share), "{down}: {share}");
    }
}

/// Rules and their pipes are visits of their own, as many as a path has.
#[test]
fn packets_pass_a_long_path_of_rules() {
    let chain = |links: usize| {
        let mut text = String::from("duration = \"1s\"\n[hosts.a]\n[hosts.b]\n");
        (1..links).for_each(|number| text += &format!("[junctions.j{number}]\n"));
        for number in 0..links {
            let end = |number: usize| match number {
                0 => "a".to_owned(),
                _ if number == links => "b".to_owned(),
                _ => format!("j{number}"),
            };
            text += &format!(
                "[links.l{number}]\nbetween = [\"{}\", \"{}\"]\nrules = [\"100 pipe 1 ip from any to any\"]\n\
                 [links.l{number}.pipes.1]\nrate = \"100mbit\"\n",
                end(number),
                end(number + 1)
            );
        }
        text + "[[traffic]]\nfrom = \"a\"\nto = \"b\"\nconstant = \"100/s\"\nlength = \"125 bytes\"\n"
    };
    let scenario = Scenario::parse(&chain(100), "long").unwrap();
    let report = run(&scenario, &SimOptions::default()).report;
    assert!(report.generated[0].delivered_packets >= 99, "{:?}", report.generated[0]);
    let error = Scenario::parse(&chain(128), "long").unwrap_err().to_string();
    assert!(error.contains("128 links, 128 of them with rules, in a row"), "{error}");
}
