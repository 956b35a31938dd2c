//! Presets in files and flags: what they set, and that keys and flags beside them count for more.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use narrows_core::{Duration, Rate};
use narrows_scenario::{Direction, LinkFlags, Preset, Scenario, Way};

fn text(keys: &str) -> String {
    format!("[hosts.client]\n[hosts.server]\n[links.link]\nbetween = [\"client\", \"server\"]\n{keys}\n")
}

fn file(keys: &str) -> Scenario {
    Scenario::parse(&text(keys), "net.toml").unwrap_or_else(|error| panic!("{keys}\n{error}"))
}

fn refused(keys: &str) -> String {
    Scenario::parse(&text(keys), "net.toml").expect_err(keys).to_string()
}

fn flags(all: &[(&str, &str)]) -> Scenario {
    let flags = all.iter().fold(LinkFlags::default(), |flags, (name, value)| flags.with(name, *value));
    Scenario::from_flags(&flags).unwrap_or_else(|error| panic!("{all:?}\n{error}"))
}

fn way(scenario: &Scenario, way: Way) -> &Direction {
    scenario.links[0].direction(way).unwrap()
}

fn ms(text: &str) -> Duration {
    let nanos = text.parse::<f64>().unwrap() * 1e6;
    Duration::from_nanos(nanos as u64)
}

/// File and flags mean the same, the rates and delays are those of the figures, and what is written back is read again as
/// the same.
#[test]
fn every_preset_is_read_checked_and_written_back() {
    for name in Preset::names() {
        let preset = Preset::named(name).unwrap();
        let (by_file, by_flag) = (file(&format!("preset = \"{name}\"")), flags(&[("preset", name)]));
        assert_eq!(by_file.links, by_flag.links, "{name}");
        let figures = preset.figures;
        for (at, rate) in [(Way::Down, figures.down), (Way::Up, figures.up)] {
            let direction = way(&by_file, at);
            let own = match &direction.trace {
                Some(trace) if trace.has_rate() => trace.mean_rate().unwrap(),
                _ => direction.effective_rate(),
            };
            let right = rate.unwrap_or(Rate::UNLIMITED).bits_per_second() as f64;
            let found = own.bits_per_second() as f64;
            assert!((found / right - 1.0).abs() < 0.001, "{name} {at:?}: {found} for {right}");
            assert!(direction.mean_delay().is_some(), "{name}");
        }
        let explanation = by_file.explain();
        assert!(!explanation.to_string().is_empty());
        let written = by_file.to_toml();
        assert!(!written.contains("preset ="), "{written}");
        let again =
            Scenario::parse(&written, "net.toml").unwrap_or_else(|error| panic!("{written}\n{error}"));
        assert_eq!(again.links, by_file.links, "{written}");
    }
}

#[test]
fn keys_beside_a_preset_win_wherever_they_stand() {
    for keys in [
        "preset = \"4g\"\nrate = \"1mbit\"\ndown.delay = \"5ms\"\nup.queue = \"7 packets\"",
        "rate = \"1mbit\"\ndown.delay = \"5ms\"\nup.queue = \"7 packets\"\npreset = \"4g\"",
    ] {
        let scenario = file(keys);
        let (up, down) = (way(&scenario, Way::Up), way(&scenario, Way::Down));
        assert_eq!([up, down].map(|way| way.rate.to_string()), ["1mbit"; 2]);
        assert_eq!(down.mean_delay(), Some(ms("5")));
        assert_eq!(up.mean_delay(), Some(ms("26.55")), "the preset's");
        assert_eq!(up.bound().to_string(), "7 packets");
    }
}

#[test]
fn flags_beside_a_preset_win() {
    let scenario = flags(&[("preset", "dsl"), ("rate", "10mbit/1mbit"), ("loss", "1%")]);
    let (up, down) = (way(&scenario, Way::Up), way(&scenario, Way::Down));
    assert_eq!([down, up].map(|way| way.rate.to_string()), ["10mbit", "1mbit"]);
    assert_eq!([down, up].map(Direction::mean_delay), [Some(ms("18.525")); 2]);
    assert!(down.loss.wire.is_some() && up.loss.wire.is_some());
    assert_eq!(scenario.file, "--preset dsl --rate 10mbit/1mbit --loss 1%");

    // NetEm's words are keys, too.
    let scenario = flags(&[("preset", "leo-satellite"), ("netem-down", "delay 10ms")]);
    let (up, down) = (way(&scenario, Way::Up), way(&scenario, Way::Down));
    assert_eq!(down.mean_delay(), Some(ms("10")));
    assert_eq!(down.trace.as_ref().unwrap().trace.columns(), ["loss"]);
    assert_eq!(up.trace.as_ref().unwrap().trace.columns(), ["delay", "loss"]);
}

#[test]
fn what_a_key_gives_the_trace_of_a_preset_does_not() {
    let scenario = file("preset = \"leo-satellite\"\ndelay = \"30ms\"");
    let down = way(&scenario, Way::Down);
    assert_eq!(down.mean_delay(), Some(ms("30")));
    assert_eq!(down.trace.as_ref().unwrap().trace.columns(), ["loss"], "handovers still drop packets");
    let again = Scenario::parse(&scenario.to_toml(), "net.toml").unwrap();
    assert_eq!(again.links, scenario.links, "the columns are written");

    let scenario = file("preset = \"train\"\nrate = \"10mbit\"\njitter = \"1ms\"\ndelay = \"20ms\"");
    assert!(way(&scenario, Way::Down).trace.is_none(), "nothing is left of it");
    let scenario = file("preset = \"train\"\ntrace = \"none\"");
    assert!(way(&scenario, Way::Up).trace.is_none());
}

#[test]
fn a_trace_of_ones_own_takes_the_place_of_what_it_gives() {
    let trace = "trace = { file = \"preset:train-down.csv\", then = \"loop\", columns = [\"rate\"] }";
    let scenario = file(&format!("preset = \"4g\"\n{trace}"));
    let down = way(&scenario, Way::Down);
    assert_eq!((down.rate, down.mean_delay()), (Rate::UNLIMITED, Some(ms("26.55"))));
    // What is said beside it is still said twice.
    let error = refused(&format!("preset = \"4g\"\nrate = \"1mbit\"\n{trace}"));
    assert!(error.contains("`rate` set the rate"), "{error}");

    let scenario = file("preset = \"dsl\"\nup.exact-netem = \"delay 100ms\"");
    assert_eq!(way(&scenario, Way::Up).rate, Rate::UNLIMITED);
    assert_eq!(way(&scenario, Way::Down).rate.to_string(), "5.66mbit");
}

#[test]
fn a_preset_that_there_is_not_is_refused_with_the_nearest() {
    let error = refused("preset = \"fiber\"");
    for words in ["`fiber` is not a preset", "did you mean `fibre`?", "net.toml:5", "links.link.preset"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    for (keys, words) in [
        ("preset = 4", "found `4`, expected the name of a preset"),
        ("preset = \"4g\"\nshared = true", "a shared medium has no preset"),
        ("up.preset = \"4g\"", "unknown key `preset`"),
        ("trace = \"preset:nothing.csv\"", "preset:nothing.csv` cannot be read"),
        ("trace = { file = \"preset:train-up.csv\", columns = [\"loss\"] }", "no column `loss`"),
        ("trace = { file = \"preset:train-up.csv\", columns = [\"speed\"] }", "`speed` is not a column"),
        ("trace = { file = \"preset:train-up.csv\", columns = [] }", "the list is empty"),
    ] {
        let error = refused(keys);
        assert!(error.contains(words), "{words}: {error}");
    }
    let wrong = LinkFlags::default().with("preset", "5gg").with("rate", "1mbit");
    let error = Scenario::from_flags(&wrong).unwrap_err().to_string();
    assert!(error.contains("`5gg` is not a preset") && error.contains("did you mean `5g`?"), "{error}");
    assert!(error.contains("--preset"), "{error}");
    assert_eq!(Preset::named("lte").unwrap_err().count(), 1);
}

#[test]
fn a_preset_tells_where_its_values_come_from() {
    let preset = Preset::named("cable").unwrap();
    let shown = preset.to_string();
    for words in [
        "233.25mbit down, 21.83mbit up, round trip 25ms",
        "queue = \"614kB\"",
        "arxiv.org",
        "250 ms",
        "not measured",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let is_link = |line: &str| line.contains("http");
    assert!(shown.lines().all(|line| is_link(line) || line.chars().count() <= 98), "{shown}");
    assert_eq!(preset.json()["up"]["queue"], "\"614kB\"");
    assert_eq!(preset.json()["round_trip_ns"], 25_000_000);
    assert_eq!(preset.measured, "rates, round trip, uplink queue");
    assert_eq!(Preset::named("webpagetest-3g").unwrap().measured, "nothing: a convention");
}

/// The traces hold what the presets say of them.
#[test]
fn the_traces_that_are_made_up_follow_their_rules() {
    let scenario = file("preset = \"leo-satellite\"");
    let trace = &way(&scenario, Way::Up).trace.as_ref().unwrap().trace;
    assert_eq!(trace.length(), Duration::from_secs(60));
    let handovers = trace.loss().unwrap().iter().filter(|(_, loss)| loss.as_f64() == 0.5);
    let at: Vec<_> = handovers.map(|(at, _)| at.seconds()).collect();
    assert_eq!(at, [0.0, 15.0, 30.0, 45.0]);
    // The round trip is 45 ms on average, and 40 ms longer for a tenth of a second at each handover.
    let one_way = |at| way(&scenario, at).mean_delay().unwrap().seconds() * 1e3;
    let mean = one_way(Way::Up) + one_way(Way::Down);
    assert!((mean - (45.0 + 4.0 * 0.1 * 40.0 / 60.0)).abs() < 0.01, "{mean}");

    let scenario = file("preset = \"train\"");
    let trace = &way(&scenario, Way::Down).trace.as_ref().unwrap().trace;
    let down: Vec<_> =
        trace.rate().unwrap().iter().map(|(at, rate)| (at.seconds(), rate.to_string())).collect();
    let right = [(0.0, "down"), (1.0, "14.7mbit"), (34.8, "down"), (35.8, "5.9mbit")];
    assert_eq!(down, right.map(|(at, rate)| (at, rate.to_string())));
}
