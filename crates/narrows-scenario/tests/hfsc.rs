//! Hierarchical fair service curves in scenarios: what a curve becomes, what `check` says, what is wrong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use narrows_core::sched::HfscCurve;
use narrows_core::{Duration, Rate};
use narrows_scenario::{Class, Direction, Division, HfscClass, Scenario, ShapedBy, Way};

fn text(lines: &str) -> String {
    format!("[hosts.client]\n[hosts.server]\n\n[links.access]\nbetween = [\"client\", \"server\"]\n{lines}\n")
}

fn link(lines: &str) -> Scenario {
    Scenario::parse(&text(lines), "net.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn down(scenario: &Scenario) -> &Direction {
    scenario.links[0].direction(Way::Down).expect("a wire")
}

fn shape(scenario: &Scenario, name: &str) -> HfscClass {
    let Division::Classes { classes, .. } = &down(scenario).scheduler.as_ref().unwrap().serves else {
        panic!("classes")
    };
    let of = |class: &&Class| class.name == name;
    let Some(ShapedBy::Hfsc(class)) = classes.iter().find(of).unwrap().shape else { panic!("of an hfsc") };
    class
}

const TREE: &str = r#"rate = "2mbit"
[links.access.down]
scheduler = { type = "hfsc", classes = [
    { name = "voice", rt = { umax = "250 bytes", dmax = "5ms", rate = "200kbit" }, match = { dscp = "ef" }, queue = "20 packets" },
    { name = "site", ls = "1800kbit", ul = "1800kbit" },
    { name = "web", parent = "site", ls = { m1 = "1200kbit", d = "100ms", m2 = "600kbit" }, match = { port = 80 } },
    { name = "late", parent = "site", sc = { d = "10ms", m2 = "300kbit" }, match = { port = 25 } },
    { name = "rest", parent = "site", ls = { umax = "1500 bytes", dmax = "30ms", rate = "1mbit" }, scheduler = "fq_codel" },
] }"#;

fn curve(m1: u64, d: Duration, m2: u64) -> HfscCurve {
    let rate = Rate::from_bits_per_second;
    HfscCurve { m1: rate(m1), d, m2: rate(m2) }
}

#[test]
fn curves_by_slope_and_by_delay() {
    let scenario = link(TREE);
    // 250 bytes in 5 ms are 400 kbit/s, above the rate.
    assert_eq!(
        shape(&scenario, "voice").rt().unwrap().pieces(),
        curve(400_000, Duration::from_millis(5), 200_000)
    );
    assert_eq!(shape(&scenario, "voice").ls(), None);
    assert_eq!(
        shape(&scenario, "site").ls().unwrap().pieces(),
        HfscCurve::linear(Rate::from_bits_per_second(1_800_000))
    );
    let late = shape(&scenario, "late");
    assert_eq!((late.rt(), late.ls()), (late.sc, late.sc));
    assert_eq!(late.ls().unwrap().pieces(), curve(0, Duration::from_millis(10), 300_000));
    // 1500 bytes at 1 Mbit/s are 12 ms: nothing for the 18 ms before.
    assert_eq!(
        shape(&scenario, "rest").ls().unwrap().pieces(),
        curve(0, Duration::from_millis(18), 1_000_000)
    );
}

#[test]
fn what_is_written_is_read_again_and_curves_can_be_set() {
    let mut scenario = link(TREE);
    for assignment in [
        "web.ls={ m1 = \"1200kbit\", d = \"50ms\", m2 = \"600kbit\" }",
        "site.ul=1500kbit",
        "late.sc={ m1 = \"0bit\", d = \"1ms\", m2 = \"1mbit\" }",
    ] {
        scenario
            .assign(&format!("access.down.scheduler.{assignment}"))
            .unwrap_or_else(|error| panic!("{error}"));
        let again =
            Scenario::parse(&scenario.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.links, again.links, "{}", scenario.to_toml());
    }
    assert_eq!(
        shape(&scenario, "web").ls().unwrap().pieces(),
        curve(1_200_000, Duration::from_millis(50), 600_000)
    );
    assert!(scenario.to_toml().contains("ul = \"1.5mbit\""), "{}", scenario.to_toml());
}

#[test]
fn what_check_says() {
    let text = link(TREE).explain().to_string();
    for lines in [
        "  scheduler hfsc: a tree of service curves: guarantees, shares and limits; bounded per class only\n",
        "    voice: dscp ef\n      real time 400kbit for 5ms, then 200kbit; queue 20 packets",
        "    site: the classes below it\n      link share 1.8mbit; at most 1.8mbit\n",
        "link share 1.2mbit for 100ms, then 600kbit",
        "real time nothing for 10ms, then 300kbit; link share nothing for 10ms, then 300kbit",
    ] {
        assert!(text.contains(lines), "{lines}\n{text}");
    }
    assert!(!text.contains("guarantees of `hfsc`") && !text.contains("no effect"), "{text}");
    let classes = |rate: &str, classes: &str| {
        let text = format!(
            "rate = \"{rate}\"\nscheduler = {{ type = \"hfsc\", classes = [{classes}, {{ name = \"rest\", ls = \"1mbit\" }}] }}"
        );
        link(&text).explain().to_string()
    };
    let two = |curve: &str| {
        format!(
            "{{ name = \"a\", rt = {curve}, match = {{ port = 1 }} }}, {{ name = \"b\", rt = {curve}, match = {{ port = 2 }} }}"
        )
    };
    let text = classes("1mbit", &two("\"600kbit\""));
    let warning =
        "the guarantees of `hfsc` are 1.2mbit in total, above the link's 1mbit: not all can be kept";
    assert!(text.contains(warning), "{text}");
    let text = classes("1mbit", &two("{ m1 = \"600kbit\", d = \"10ms\", m2 = \"100kbit\" }"));
    let warning = "the guarantees of `hfsc` are 1500 bytes within 10ms, more than the link sends at 1mbit";
    assert!(text.contains(warning), "{text}");
    let text = classes("1mbit", &two("{ m1 = \"500kbit\", d = \"10ms\", m2 = \"100kbit\" }"));
    assert!(!text.contains("the guarantees"), "{text}");
    // Shares alone delay nothing on a link without a rate.
    let text = classes("unlimited", "{ name = \"a\", ls = \"1mbit\", match = { port = 1 } }");
    assert!(text.contains("so `hfsc` has no effect"), "{text}");
}

#[test]
fn what_is_wrong() {
    let fails = |class: &str, title: &str, help: &str| {
        let lines = format!("scheduler = {{ type = \"hfsc\", classes = [{{ name = \"a\", {class} }}] }}");
        let error = Scenario::parse(&text(&lines), "net.toml").expect_err("it is wrong").to_string();
        assert!(error.contains(title) && error.contains(help), "{error}");
    };
    fails("queue = \"9 packets\"", "a class of `hfsc` without a service curve", "sc = \"1mbit\"");
    fails("rt = \"1mbit\", ul = \"1mbit\"", "`ul` without `ls`", "applies to link sharing");
    fails(
        "sc = \"1mbit\", ls = \"1mbit\"",
        "both `sc` and `ls` in one class",
        "`sc` stands for `rt` and `ls`",
    );
    fails("ls = { m1 = \"1mbit\", m2 = \"2mbit\" }", "`m1` without `d`", "d = \"10ms\"");
    fails("ls = { umax = \"99 bytes\", rate = \"2mbit\" }", "`umax` without `dmax`", "dmax = \"10ms\"");
    fails(
        "ls = { m1 = \"1mbit\", d = \"1ms\", rate = \"2mbit\" }",
        "both `m1` and `rate` in one curve",
        "{ m1, d, m2 }",
    );
    fails("ls = { m1 = \"1mbit\", d = \"1ms\" }", "a service curve without a rate", "or only a rate");
    fails("ls = { m1 = \"1mbit\", d = \"1ms\", m2 = \"0bit\" }", "found `0bit`, expected a rate", "");
    fails("ls = \"1mbit\", rate = \"1mbit\"", "unknown key `rate`", "applies to classes of `dcf`, `htb`");
    fails("ls = \"1mbit\", weight = 3", "`hfsc` does not use `weight`", "their curves: `ls`");
    let error =
        Scenario::parse(&text("scheduler = \"hfsc\""), "net.toml").expect_err("no classes").to_string();
    assert!(error.contains("`hfsc` has no classes") && error.contains("sc = {"), "{error}");
}
