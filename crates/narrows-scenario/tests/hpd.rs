//! Hybrid proportional delay in scenarios: what it becomes, what a change keeps, what is wrong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use narrows_core::sched::{ClassSettings, ErrorWidth, Estimator, Gamma, HpdClass, Per1024};
use narrows_core::{Change, Duration};
use narrows_scenario::{Direction, Scenario, Way};

fn text(lines: &str) -> String {
    format!("[hosts.client]\n[hosts.server]\n\n[links.access]\nbetween = [\"client\", \"server\"]\n{lines}\n")
}

fn link(lines: &str) -> Scenario {
    Scenario::parse(&text(lines), "net.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn down(scenario: &Scenario) -> &Direction {
    scenario.links[0].direction(Way::Down).expect("a wire")
}

/// The parameters of the thesis's class of calls, and others.
const CLASSES: &str = r#"rate = "10mbit"
queue = "50 packets"
[links.access.down]
scheduler = { type = "hpd", classes = [
    { name = "voip", match = { dscp = "ef" }, limit = "2ms", gamma = 896, g = 128, estimator = "ewma-r" },
    { name = "web", match = { dscp = "af21" }, ddp = 2, gamma = 768, g = 256, estimator = "ewma-pe" },
    { name = "ftp", match = { dscp = "af11" }, ddp = 4, estimator = { type = "ewma-pe", width = "12.5%" } },
    { name = "rest", ddp = 16 },
] }
"#;

#[test]
fn what_is_given_is_in_force_and_the_rest_is_the_default() {
    let scenario = link(CLASSES);
    let classes = down(&scenario).scheduler.as_ref().unwrap();
    let narrows_scenario::Division::Classes { classes, .. } = &classes.serves else { panic!("classes") };
    let parts = |parts| Per1024::new(parts).unwrap();
    let expected = [
        HpdClass {
            ddp: 1.try_into().unwrap(),
            gamma: Gamma::Fixed(parts(896)),
            g: parts(128),
            limit: Some(Duration::from_millis(2)),
            estimator: Estimator::EwmaR { threshold: 25, cycle: Duration::from_millis(2) },
        },
        HpdClass {
            ddp: 2.try_into().unwrap(),
            gamma: Gamma::Fixed(parts(768)),
            g: parts(256),
            limit: None,
            estimator: Estimator::EwmaPe { steps: 7, width: ErrorWidth::Tenth },
        },
        HpdClass {
            ddp: 4.try_into().unwrap(),
            estimator: Estimator::EwmaPe { steps: 8, width: ErrorWidth::Eighth },
            ..HpdClass::default()
        },
        HpdClass { ddp: 16.try_into().unwrap(), ..HpdClass::default() },
    ];
    let found: Vec<HpdClass> = classes.iter().map(|class| class.hpd).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_check_says() {
    let text = link(CLASSES).explain().to_string();
    for line in [
        "  scheduler hpd: proportional delays, with limits; a class whose limit would be missed by one packet more goes first, of several the last such class; bounded per class only\n",
        "    voip: dscp ef\n      queue 50 packets, drops at the tail\n      ddp 1, g 128/1024, limit 2ms; gamma 896/1024, exact for 25 packets, restarts after 2ms idle\n",
        "      ddp 2, g 256/1024, no limit; gamma 768/1024, up to 7 times that by steps of 10% error\n",
        "      ddp 4, g 512/1024, no limit; gamma by the backlog, up to 8 times that by steps of 12.5% error\n",
        "    rest: every other packet\n      queue 50 packets, drops at the tail\n      ddp 16, g 512/1024, no limit; gamma by the backlog\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_limit_below_the_time_of_a_packet_is_warned_of() {
    let warnings = |limit: &str, rate: &str, overhead: &str| {
        let lines = format!(
            "rate = \"{rate}\"\noverhead = \"{overhead}\"\nup.scheduler = {{ type = \"hpd\", classes = [{{ name = \"call\", limit = \"{limit}\", match = {{ dscp = \"ef\" }} }}, {{ name = \"rest\" }}] }}"
        );
        link(&lines).explain().warnings
    };
    // 1500 bytes at 10 Mbit/s take 1.2 ms.
    let words = |limit: &str| {
        vec![format!(
            "access.up: the limit of `call`, {limit}, is below the transmission time of 1500 bytes at 10mbit, 1.2ms: a packet already on the wire breaks it"
        )]
    };
    assert_eq!(warnings("1199us", "10mbit", "ip"), words("1.199ms"));
    assert_eq!(warnings("1200us", "10mbit", "ip"), Vec::<String>::new());
    assert_eq!(warnings("1200us", "10mbit", "ethernet").len(), 1, "1538 bytes take longer");
    assert_eq!(warnings("1199us", "20mbit", "ip"), Vec::<String>::new());
}

#[test]
fn parameters_of_a_class_change_without_another_queue() {
    for (assignment, expected) in [
        ("voip.ddp=3", HpdClass { ddp: 3.try_into().unwrap(), ..voip() }),
        ("voip.gamma=auto", HpdClass { gamma: Gamma::OfBacklog, ..voip() }),
        ("voip.g=1024", HpdClass { g: Per1024::ONE, ..voip() }),
        ("voip.limit=none", HpdClass { limit: None, ..voip() }),
        ("voip.limit=5ms", HpdClass { limit: Some(Duration::from_millis(5)), ..voip() }),
        ("voip.estimator=ewma", HpdClass { estimator: Estimator::Ewma, ..voip() }),
    ] {
        let mut scenario = link(CLASSES);
        let changes = scenario.assign(&format!("access.down.scheduler.{assignment}")).unwrap();
        let [(link, Change::Class { class: 0, settings: ClassSettings::Delay(found) })] = &changes[..] else {
            panic!("{assignment}: {changes:?}")
        };
        assert_eq!((link.as_str(), *found), ("access.down", expected), "{assignment}");
        let written = scenario.to_toml();
        assert!(Scenario::parse(&written, "net.toml").unwrap() == scenario, "{written}");
    }
    // Nor does another condition.
    let other = CLASSES.replacen("match = {", "match = { length = \"..500 bytes\", ", 1);
    assert_ne!(other, CLASSES);
    let mut scenario = link(CLASSES);
    let assignments = scenario.difference(&link(&other)).assignments;
    let changes = scenario.assign(&assignments[0]).unwrap();
    assert!(matches!(changes[..], [(_, Change::Classifier(_))]), "{changes:?}");
    let mut scenario = link(CLASSES);
    let whole = "access.down.scheduler={ type = \"hpd\", classes = [{ name = \"voip\" }] }";
    assert!(matches!(scenario.assign(whole).unwrap()[..], [(_, Change::Queue(_))]), "other classes");
}

fn voip() -> HpdClass {
    HpdClass {
        gamma: Gamma::Fixed(Per1024::new(896).unwrap()),
        g: Per1024::new(128).unwrap(),
        limit: Some(Duration::from_millis(2)),
        estimator: Estimator::EwmaR { threshold: 25, cycle: Duration::from_millis(2) },
        ..HpdClass::default()
    }
}

/// One problem with this title, at this column of line 7, with these words.
#[track_caller]
fn fails(class: &str, title: &str, column: usize, key: &str, says: &str) {
    let lines = format!("scheduler = {{ type = \"hpd\", classes = [\n{{ name = \"a\", {class} }}] }}");
    let error = Scenario::parse(&text(&lines), "net.toml").expect_err("it is wrong");
    let text = error.to_string();
    assert_eq!(error.count(), 1, "{text}");
    assert_eq!(text.lines().next(), Some(format!("error: {title}").as_str()), "{text}");
    for part in [&format!("--> net.toml:7:{column}\n"), &format!("scheduler.classes{key}`"), says] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn what_is_wrong() {
    fails(
        "ddp = 0",
        "found `0`, expected a delay differentiation parameter from 1 to 4294967295",
        21,
        ".ddp",
        "",
    );
    fails(
        "gamma = 1025",
        "found `1025`, expected \"auto\", or a number of 1024ths from 0 to 1024",
        23,
        ".gamma",
        "",
    );
    fails("g = 2000", "found `2000`, expected a number of 1024ths from 0 to 1024", 19, ".g", "");
    fails("limit = \"0ms\"", "found `0ms`, expected a time above zero", 23, ".limit", "");
    fails("estimator = \"ewmar\"", "`ewmar` is not an estimator", 27, ".estimator", "did you mean `ewma-r`?");
    fails("estimator = {}", "`type` is missing", 27, ".estimator", "");
    fails(
        "estimator = { type = \"ewma-pe\", steps = 0 }",
        "found `0`, expected a number of steps from 1 to 255",
        55,
        ".estimator.steps",
        "",
    );
    fails(
        "estimator = { type = \"ewma-r\", steps = 3 }",
        "unknown key `steps`",
        46,
        ".estimator",
        "allowed: `type`, `threshold` or `cycle`",
    );
    fails("weight = 2", "`hpd` does not use `weight`", 15, "", "set `ddp`; the smallest is served best");
    fails("longest = \"9 bytes\"", "`hpd` does not use `longest`", 15, "", "");
    let lines = "scheduler = { type = \"drr\", classes = [{ name = \"a\", ddp = 2 }] }";
    let error = Scenario::parse(&text(lines), "net.toml").expect_err("it is wrong").to_string();
    assert!(error.starts_with("error: `drr` does not use `ddp`\n"), "{error}");
    assert!(error.contains("it is a parameter of hybrid proportional delay: `hpd`"), "{error}");
    let error = Scenario::parse(&text("scheduler = { type = \"hpd\", bound-order = \"edf\" }"), "net.toml")
        .expect_err("it is wrong")
        .to_string();
    assert!(error.starts_with("error: `edf` is not an order of bounds\n"), "{error}");
}

#[test]
fn a_33rd_class_is_one_too_many() {
    let classes = |count: u32| {
        let class = |number| format!("{{ name = \"c{number}\", match = {{ dscp = {number} }} }},\n");
        let list: String = (0..count).map(class).collect();
        text(&format!("scheduler = {{ type = \"hpd\", default = \"drop\", classes = [\n{list}] }}"))
    };
    assert!(Scenario::parse(&classes(32), "net.toml").is_ok());
    let error = Scenario::parse(&classes(33), "net.toml").expect_err("it is wrong").to_string();
    assert!(error.starts_with("error: `hpd` has at most 32 classes\n"), "{error}");
    assert!(error.contains("--> net.toml:39:10\n"), "the last one\n{error}");
}

#[test]
fn the_class_that_takes_the_rest_is_needed() {
    let mut scenario = link(CLASSES);
    let without = "access.down.scheduler={ type = \"hpd\", classes = [{ name = \"voip\", match = { dscp = \"ef\" } }] }";
    let error = scenario.assign(without).unwrap_err().to_string();
    assert!(error.starts_with("error: unmatched packets have no class\n"), "{error}");
    assert!(error.contains("or drop them: default = \"drop\""), "{error}");
}
