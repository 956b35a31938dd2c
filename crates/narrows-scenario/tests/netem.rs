//! NetEm's language as people write it: published command lines, and the keys `netem` and `exact-netem` of files.

use narrows_scenario::netem::{self, Command};
use narrows_scenario::{LinkFlags, Scenario};

const PUBLISHED: &str = include_str!("netem/published.txt");

fn published() -> impl Iterator<Item = &'static str> {
    PUBLISHED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// A scenario with these lines in its link's table.
fn file(lines: &str) -> String {
    format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{lines}\n")
}

fn error(lines: &str) -> String {
    Scenario::parse(&file(lines), "net.toml").expect_err(lines).to_string()
}

#[test]
fn published_lines_are_read_explained_and_become_scenarios() {
    let mut count = 0;
    for line in published() {
        count += 1;
        let command = Command::parse(line).unwrap_or_else(|error| panic!("{error}"));
        let qdisc = command.qdisc.unwrap_or_else(|| panic!("{line}: no options"));
        let explanation = qdisc.explain();
        // Each option is there word for word, and each has a meaning.
        let options =
            line.split_once(" netem").or(line.split_once(" delay")).map_or("", |(_, options)| options.trim());
        let said: Vec<&str> = explanation.options.iter().map(|option| option.text.as_str()).collect();
        assert_eq!(said.join(" "), options.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(explanation.options.iter().all(|option| !option.meaning.is_empty()), "{line}\n{explanation}");

        // The keys that it is explained with are a scenario, and as much as the key `netem`.
        let keys: String =
            qdisc.assignments().unwrap().iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        let by_keys =
            Scenario::parse(&file(&keys), "net.toml").unwrap_or_else(|error| panic!("{line}\n{error}"));
        let by_words = format!("netem = '{}'", qdisc.text());
        let by_words =
            Scenario::parse(&file(&by_words), "net.toml").unwrap_or_else(|error| panic!("{line}\n{error}"));
        assert_eq!(by_keys.links, by_words.links, "{line}");
        assert!(by_keys.explain().to_string().contains("l.up: a → b"));
        // It is written and read again as the same.
        assert_eq!(netem::parse(&qdisc.text()).unwrap(), qdisc, "{line}");
    }
    assert!(count >= 40, "{count}");
}

#[test]
fn flags_are_for_both_ways_or_one() {
    let flags = |flags: LinkFlags| Scenario::from_flags(&flags);
    let text = || Some("delay 10ms 1ms loss 1%".to_owned());
    let said = |scenario: &Scenario| {
        let of = |(_, direction): (String, &narrows_scenario::Direction)| {
            direction.netem().qdisc.map(|qdisc| qdisc.text()).unwrap_or_default()
        };
        scenario.links[0].directions().into_iter().map(of).collect::<Vec<_>>()
    };
    let both = flags(LinkFlags::default().given("netem", text())).unwrap();
    assert_eq!(said(&both), ["delay 10ms 1ms loss 1%", "delay 10ms 1ms loss 1%"]);
    let up = flags(LinkFlags::default().given("netem-up", text())).unwrap();
    assert_eq!(said(&up), ["delay 10ms 1ms loss 1%", ""]);
    let each = LinkFlags::default().given("netem-up", text()).with("netem-down", "rate 1mbit");
    assert_eq!(said(&flags(each).unwrap()), ["delay 10ms 1ms loss 1%", "limit 1000 rate 1mbit"]);
    // What netem does not say may be said beside it.
    let rate = LinkFlags::default().given("netem", text()).with("rate", "10mbit");
    assert!(said(&flags(rate).unwrap())[0].contains("rate 10mbit"));
    let exact = flags(LinkFlags::default().with("exact-netem", "delay 5ms seed 7")).unwrap();
    assert_eq!((exact.seed, exact.links[0].directions()[0].1.exact_netem.is_some()), (7, true));

    let refused = |refused: LinkFlags| flags(refused).unwrap_err().to_string();
    let twice = refused(LinkFlags::default().given("netem", text()).with("delay", "5ms"));
    assert!(twice.contains("`--delay` with `--netem`, which sets delay"), "{twice}");
    let same_way = refused(LinkFlags::default().given("netem", text()).given("netem-up", text()));
    assert!(same_way.contains("set the same direction"), "{same_way}");
    let typo = refused(LinkFlags::default().with("netem-down", "delay 10ms los 1% dely 5ms"));
    assert!(
        typo.contains("`dely` is not an option of netem") && typo.contains("command line:1:33"),
        "{typo}"
    );
    let beside = refused(LinkFlags::default().given("exact-netem", text()).with("rate", "1mbit"));
    assert!(beside.contains("with `exact-netem`"), "{beside}");
    let both = refused(LinkFlags::default().given("exact-netem", text()).given("netem-up", text()));
    assert!(both.contains("`--netem-up` with `--exact-netem`"), "{both}");
    assert!(!both.contains("--delay"), "no flag that was not given is named: {both}");
}

#[test]
fn errors_in_a_file_point_into_the_text() {
    let message = error("netem = \"delay 10ms los 1% dely 5ms\"");
    assert!(message.contains("net.toml:5:28") && message.contains("did you mean `delay`?"), "{message}");
    let message = error("exact-netem = 'loss gemodl 1%'");
    assert!(message.contains("net.toml:5:21") && message.contains("did you mean `gemodel`?"), "{message}");
    let message = error("netem = \"delay 10ms\"\ndelay = \"5ms\"");
    assert!(message.contains("`delay` with `netem`"), "{message}");
    let message = error("exact-netem = \"delay 10ms\"\nloss = \"1%\"");
    assert!(message.contains("`loss` with `exact-netem`"), "{message}");
    let message = error("exact-netem = \"root delay limit 5\"");
    assert!(message.contains("a queueing discipline of its own"), "{message}");
    let message = error("netem = \"delay 9ms 1ms distribution none.dist\"");
    assert!(message.contains("none.dist") && message.contains("cannot be read"), "{message}");
    let message = error("netem = \"delay 10ms seed 7\"");
    assert!(message.contains("`seed` in one link"), "{message}");
    let message = error("netem = \"loss 1% 100%\"");
    assert!(message.contains("below 100%"), "{message}");
}

#[test]
fn the_single_queue_comes_and_goes_while_a_link_runs() {
    let mut scenario = Scenario::from_flags(&LinkFlags::default()).unwrap();
    let names = |scenario: &mut Scenario, text: &str| {
        let changes = scenario.assign(text).unwrap_or_else(|error| panic!("{error}"));
        let name = |change: &narrows_core::Change| {
            format!("{change:?}").chars().take_while(char::is_ascii_alphabetic).collect::<String>()
        };
        changes
            .iter()
            .filter(|(link, _)| link == "link.up")
            .map(|(_, change)| name(change))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&mut scenario, "link.up.exact-netem=delay 5ms loss 1% 25%"), ["Netem"]);
    assert_eq!(names(&mut scenario, "link.up.exact-netem=delay 6ms rate 1mbit"), ["Netem"]);
    // It is gone first, and what comes after it is set in a plain link.
    assert_eq!(names(&mut scenario, "link.up.exact-netem=none"), ["Netem", "Queue"]);
    let back = Scenario::parse(&scenario.to_toml(), "net.toml").unwrap();
    assert_eq!(back.links, scenario.links);
}
