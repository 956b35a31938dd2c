use narrows_report::{Look, SERIES_HEAD, read_series};
use narrows_scenario::Scenario;
use narrows_sim::{SimOptions, simulate};
use serde_json::Value;

use super::*;

/// A series of `link`, each interval of 100 ms: backlog, sojourn in ns, throughput in bit/s, dropped, offered.
fn series(name: &str, link: &str, rows: impl IntoIterator<Item = (u64, u64, u64, u64, u64)>) -> RunData {
    let mut text = SERIES_HEAD.to_owned();
    for (at, (backlog, sojourn, bps, dropped, offered)) in (0..).zip(rows) {
        let (start, end) = (at * 100_000_000_u64, (at + 1) * 100_000_000);
        text +=
            &format!("{start},{end},link,{link},,{backlog},0,0,{sojourn},{bps},9,{dropped},0,{offered},\n");
    }
    RunData { name: name.into(), report: None, series: Some(read_series(&text).unwrap()) }
}

/// Values that go up and down about 1000 · level.
fn waves(name: &str, level: u64) -> RunData {
    series(
        name,
        "l",
        (0..200_u64).map(|at| (level, level * 1000 + at * 7 % 11, 1_000_000 * level, level, 100)),
    )
}

fn json(a: &RunData, b: &RunData, options: &RunComparisonOptions) -> Value {
    serde_json::to_value(compare_runs(a, b, options).unwrap()).unwrap()
}

fn refused(a: &RunData, b: &RunData, options: &RunComparisonOptions) -> String {
    compare_runs(a, b, options).unwrap_err().to_string()
}

#[test]
fn means_of_series_and_their_change() {
    let found = json(&waves("a", 2), &waves("b", 3), &RunComparisonOptions::default());
    let link = &found["series"]["links"][0];
    assert_eq!((&link["a"]["batches"], &link["a"]["batch_intervals"]), (&20.into(), &10.into()));
    for (key, a, b) in
        [("throughput_bps", 2e6, 3e6), ("backlog_packets", 2.0, 3.0), ("dropped_share", 0.02, 0.03)]
    {
        let row = &link[key];
        let near = |found: &Value, expected: f64| (found.as_f64().unwrap() - expected).abs() < 1e-6 * b;
        assert!(
            near(&row["a"]["mean"], a) && near(&row["b"]["mean"], b) && near(&row["change"]["mean"], b - a)
        );
        assert!(near(&row["change_share"], 0.5) || key == "backlog_packets", "{row}");
        assert_eq!(row["differs"], true, "{row}");
    }
    let sojourn = &link["sojourn_mean_ns"];
    assert!((sojourn["a"]["mean"].as_f64().unwrap() - 2005.0).abs() < 1.0, "{sojourn}");
    assert!(sojourn["change"]["low"].as_f64().unwrap() > 990.0, "{sojourn}");
    let same = json(&waves("a", 2), &waves("b", 2), &RunComparisonOptions::default());
    assert_eq!(same["series"]["links"][0]["sojourn_mean_ns"]["change"]["mean"], 0.0);
    assert_eq!(same["series"]["links"][0]["sojourn_mean_ns"]["differs"], false);
}

#[test]
fn the_time_that_counts_is_chosen() {
    // Nothing in the first second, and a rest that fills no batch.
    let a = series("a", "l", (0..60).map(|at| (0, 0, if at < 10 { 0 } else { 1000 }, 0, 0)));
    let options = RunComparisonOptions {
        from: Some(Duration::from_secs(1)),
        to: Some(Duration::from_millis(5100)),
        paired: false,
    };
    let found = json(&a, &a, &options);
    let link = &found["series"]["links"][0];
    assert!((link["throughput_bps"]["a"]["mean"].as_f64().unwrap() - 1000.0).abs() < 1e-9, "{link}");
    let used = serde_json::json!({"start_ns": 1_100_000_000_u64, "end_ns": 5_100_000_000_u64, "batches": 20, "batch_intervals": 2});
    assert_eq!(link["a"], used);
    // Nothing was offered, nothing waited: no share, no sojourn.
    assert_eq!(link["dropped_share"]["a"], Value::Null);
    let late = RunComparisonOptions { from: Some(Duration::from_secs(6)), ..options };
    assert_eq!(refused(&a, &a, &late), "--from 6 s is not before --to 5.1 s");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let plain = RunComparisonOptions::default();
    let paired = RunComparisonOptions { paired: true, ..plain };
    let (a, other) = (waves("a", 2), series("b", "m", [(0, 0, 0, 0, 0); 5]));
    assert_eq!(refused(&a, &other, &plain), "a and b have no link in common: l and m");
    let one = series("b", "l", [(0, 0, 0, 0, 0)]);
    assert!(refused(&a, &one, &plain).starts_with("b: 1 interval of l to compare; at least 2 are needed"));
    let few = series("b", "l", [(0, 0, 0, 0, 0); 5]);
    let notes = json(&a, &few, &plain)["notes"].to_string();
    assert!(notes.contains("only 5 batches"), "{notes}");
    assert!(
        refused(&a, &few, &paired).contains("the intervals of l differ: 200 of 100 ms from 0 in a, 5 of")
    );
    let mut twice = few.clone();
    let rows = twice.series.as_mut().unwrap().get_mut("l").unwrap();
    rows.extend(rows.clone());
    assert!(refused(&a, &twice, &plain).starts_with("b: an interval of l starts before"));
    let report = RunData { name: "c".into(), report: Some(simulated("1mbit")), series: None };
    assert_eq!(refused(&a, &report, &plain), "a is a series, c is a report: give the same of both runs");
    assert!(refused(&report, &report, &paired).contains("add the series of both runs"));
}

fn simulated(rate: &str) -> Report {
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.link]\nbetween = [\"client\", \"server\"]\nrate = \"{rate}\"\n\
         [[traffic]]\nname = \"t\"\nfrom = \"client\"\nto = \"server\"\nconstant = \"1mbit\"\n"
    );
    let options = SimOptions { duration: Some(Duration::from_secs(1)), ..SimOptions::default() };
    simulate(&Scenario::parse(&text, "x.toml").unwrap(), &options).unwrap().report
}

#[test]
fn totals_and_their_text() {
    let run =
        |name: &str, rate: &str| RunData { name: name.into(), report: Some(simulated(rate)), series: None };
    let (a, b) = (run("a", "1mbit"), run("b\x1b[31m", "2mbit"));
    let plain = RunComparisonOptions::default();
    let found = json(&a, &b, &plain);
    let up = &found["totals"]["directions"][0];
    assert_eq!((&up["link"], &found["b"]["seed"]), (&"link.up".into(), &1.into()));
    let offered = &up["offered_packets"];
    let of = |key: &str| offered[key].as_i64().unwrap();
    assert_eq!(of("change"), of("b") - of("a"));
    let text = compare_runs(&a, &b, &plain).unwrap().text(Look::default()).to_string();
    assert!(text.contains("\nlink.up, client → server") && text.contains("one-way delay"), "{text}");
    assert!(!text.contains('\x1b') && text.contains("B  b\\u001b[31m"), "{text}");
    let same = compare_runs(&a, &a, &plain).unwrap().text(Look::default()).to_string();
    assert!(same.contains("the totals of both runs are the same"), "{same}");
}

#[test]
fn text_fits_its_width() {
    let comparison = compare_runs(&waves("a", 2), &waves("b", 3), &RunComparisonOptions::default()).unwrap();
    for width in [60, 80, 100, 200] {
        for colour in [false, true] {
            let text = comparison.text(Look { width, colour }).to_string();
            assert_eq!(text.contains('\x1b'), colour, "{text}");
            let text = text.replace(super::text::DIFFERS, "").replace(super::text::PLAIN, "");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(text.contains(" *\n"), "{text}");
        }
    }
}
