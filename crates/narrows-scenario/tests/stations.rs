//! Stations of a radio cell: rates of their own, and who hears whom.

use narrows_core::sched::ClassSettings;
use narrows_core::{Change, Rate};
use narrows_scenario::{Division, Scenario};

fn cell() -> Scenario {
    let text = r#"
        [hosts.a]
        [hosts.b]
        [links.radio]
        between = ["a", "b"]
        shared = true
        rate = "11mbit"
        scheduler = { type = "dcf", classes = [
            { name = "far", match = { dscp = "ef" }, rate = "1mbit", hidden-from = ["near", "rest"] },
            { name = "near", match = { dscp = "cs1" }, hidden-from = "far" },
            { name = "rest" },
        ] }
    "#;
    Scenario::parse(text, "cell.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn they_are_read_shown_and_written() {
    let scenario = cell();
    let scheduler =
        scenario.links[0].direction(narrows_scenario::Way::Up).unwrap().scheduler.as_ref().unwrap();
    let Division::Classes { classes, .. } = &scheduler.serves else { panic!("classes") };
    assert_eq!(classes[0].station.rate, Some(Rate::from_bits_per_second(1_000_000)));
    assert_eq!(classes[0].station.hidden_from, ["near", "rest"]);
    assert_eq!(classes[1].station.hidden_from, ["far"]);
    let text = scenario.explain().to_string();
    assert!(text.contains("      rate 1mbit, hidden from near, rest\n"), "{text}");
    assert_eq!(text.matches("      hidden from far\n").count(), 2, "{text}");
    let written = scenario.to_toml();
    assert!(Scenario::parse(&written, "cell.toml").unwrap() == scenario, "{written}");
}

#[test]
fn rates_change_without_another_queue() {
    for (rate, expected) in [("2mbit", 2_000_000), ("11mbit", 11_000_000)] {
        let mut scenario = cell();
        let changes = scenario.assign(&format!("radio.scheduler.far.rate={rate}")).unwrap();
        let [(_, Change::Class { class: 0, settings: ClassSettings::StationRate(Some(found)) })] =
            &changes[..]
        else {
            panic!("{rate}: {changes:?}")
        };
        assert_eq!(found.bits_per_second(), expected);
        let written = scenario.to_toml();
        assert!(Scenario::parse(&written, "cell.toml").unwrap() == scenario, "{written}");
    }
    let changes = cell().assign("radio.scheduler.near.hidden-from=[]").unwrap();
    assert!(matches!(changes[..], [(_, Change::Queue(_))]), "who hears whom is another queue: {changes:?}");
    let error = cell().assign("radio.rate=5.5mbit").err();
    assert!(error.is_none(), "the slow station stays below the link's rate");
    let error = cell().assign_all(&["radio.scheduler.near.rate=11mbit", "radio.rate=2mbit"]).unwrap_err();
    assert!(error.to_string().contains("the station `near` of `dcf` is faster than the link"), "{error}");
}
