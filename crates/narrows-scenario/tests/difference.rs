//! What makes one scenario of another.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use narrows_scenario::{Difference, Differing, Scenario};

const BEFORE: &str = r#"
[hosts.a]
[hosts.b]
[hosts.c]
[links.ab]
between = ["a", "b"]
delay = "20ms"
[links.ab.up]
rate = "1mbit"
queue = "20 packets"
[links.ab.down]
rate = "10mbit"
queue = { bound = "100 packets", type = "codel" }
loss = { gilbert-elliott = { p = "1%", r = "30%" } }
[links.bc]
between = ["b", "c"]
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "net.toml").unwrap()
}

fn between(before: &str, after: &str) -> Difference {
    scenario(before).difference(&scenario(after))
}

/// The keys of links and their values in another scenario.
fn changed(replaced: &[(&str, &str)]) -> String {
    let mut text = BEFORE.to_owned();
    for (from, to) in replaced {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

#[test]
fn nothing_is_between_a_scenario_and_itself() {
    let difference = between(BEFORE, BEFORE);
    assert!(difference.is_none(), "{difference}");
    assert_eq!(difference.to_string(), "no difference\n");
}

#[test]
fn what_a_run_can_have_is_made_by_set_and_then_nothing_is_left() {
    let cases = [
        (vec![("rate = \"1mbit\"", "rate = \"2mbit\"")], vec!["ab.up.rate=2mbit"]),
        (
            vec![("delay = \"20ms\"", "delay = \"5ms\"\njitter = \"1ms\"")],
            vec!["ab.delay=5ms", "ab.jitter=1ms"],
        ),
        (vec![("type = \"codel\"", "type = \"pie\", target = \"20ms\"")], vec![]),
        (
            vec![
                ("queue = { bound = \"100 packets\", type = \"codel\" }\n", ""),
                ("loss = { gilbert-elliott = { p = \"1%\", r = \"30%\" } }", "scheduler = \"fq_codel\""),
            ],
            vec![],
        ),
        (
            vec![("between = [\"b\", \"c\"]", "between = [\"b\", \"c\"]\nloss = \"1%\"\nmtu = 1400")],
            vec!["bc.loss=1%", "bc.mtu=1400"],
        ),
    ];
    for (replaced, expected) in cases {
        let mut before = scenario(BEFORE);
        let after = scenario(&changed(&replaced));
        let difference = before.difference(&after);
        assert_eq!(difference.others, [], "{replaced:?}");
        if !expected.is_empty() {
            assert_eq!(difference.assignments, expected);
        }
        assert!(!before.assign_all(&difference.assignments).unwrap().is_empty(), "{difference}");
        let rest = before.difference(&after);
        assert!(rest.is_none(), "{replaced:?} leaves {rest}");
        // And back again.
        let back = before.difference(&scenario(BEFORE)).assignments;
        before.assign_all(&back).unwrap();
        let rest: Vec<String> = before.difference(&scenario(BEFORE)).assignments;
        assert_eq!(rest, Vec::<String>::new(), "{replaced:?} back by {back:?}");
    }
}

#[test]
fn what_only_another_run_can_have_is_named_by_its_place() {
    let differing = |path: &str, before: Option<&str>, after: Option<&str>| Differing {
        path: path.into(),
        before: before.map(Into::into),
        after: after.map(Into::into),
    };
    let another_host = between(BEFORE, &format!("{BEFORE}\n[hosts.d]\n"));
    assert_eq!(another_host.others, [differing("hosts.d", None, Some("{}"))]);
    assert_eq!(another_host.assignments, Vec::<String>::new());

    let elsewhere = between(BEFORE, &changed(&[("between = [\"b\", \"c\"]", "between = [\"a\", \"c\"]")]));
    let [other] = &elsewhere.others[..] else { panic!("{elsewhere}") };
    assert_eq!(other.path, "links.bc.between");
    assert!(
        elsewhere.to_string().contains("links.bc.between: [\"b\", \"c\"] → [\"a\", \"c\"]"),
        "{elsewhere}"
    );

    let seed = between(BEFORE, &format!("seed = 7\n{BEFORE}"));
    assert_eq!(seed.others, [differing("seed", None, Some("7"))]);

    let plain =
        "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\ndelay = \"20ms\"\n";
    let bound = between(plain, &plain.replace("1mbit", "100mbit"));
    assert_eq!(bound.assignments, ["l.rate=100mbit"]);
    let paths: Vec<&str> = bound.others.iter().map(|other| other.path.as_str()).collect();
    assert_eq!(paths, ["links.l.up.queue", "links.l.down.queue"], "a default bound stays in a run");
}
