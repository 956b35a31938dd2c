//! Pipes and queues that change while packets are in them.

use narrows_core::{Change, FlowKey, Time};
use narrows_scenario::Scenario;

use crate::bed::{Bed, at, from, instants, net};

fn assign(scenario: &mut Scenario, bed: &mut Bed, now: Time, text: &str) -> Vec<String> {
    let changes = scenario.assign_at(now, &[text]).unwrap_or_else(|error| panic!("{error}"));
    let mut kinds = Vec::new();
    for (name, change) in changes {
        let kind = format!("{change:?}");
        kinds.push(format!("{name} {}", kind.split(['(', ' ']).next().unwrap()));
        let link = bed.engine.link(&name).unwrap();
        bed.engine.change(now, link, change);
    }
    kinds
}

#[test]
fn of_a_rate() {
    let mut scenario = net("rules = [\"pipe 1 out\"]\npipes.1 = { rate = \"1mbit\" }");
    let mut bed = Bed::new(&scenario);
    bed.send(Time::ZERO, "client", from([10, 0, 0, 2]), 1000);
    let kinds = assign(&mut scenario, &mut bed, at(4000), "net.1.rate=2mbit");
    assert_eq!(kinds, ["net.1 Service"]);
    // Half of the bits in 4 ms, the rest in 2 ms.
    assert_eq!(instants(&bed.rest()), [6_000_000]);
    assert!(scenario.to_toml().contains("rate = \"2mbit\""));
}

#[test]
fn of_all_links_that_a_mask_has_made_and_will_make() {
    let mut scenario =
        net("rules = [\"pipe 1 out\"]\npipes.1 = { rate = \"1mbit\", mask = { src-ip = \"0xff\" } }");
    let mut bed = Bed::new(&scenario);
    for sender in 1..=2 {
        bed.send(Time::ZERO, "client", from([10, 0, 0, sender]), 1000);
    }
    let kinds = assign(&mut scenario, &mut bed, at(4000), "net.1.rate=2mbit");
    assert_eq!(kinds, ["net.1 Template"]);
    assert_eq!(instants(&bed.rest()), [6_000_000, 6_000_000]);
    bed.send(at(10_000), "client", from([10, 0, 0, 3]), 1000);
    assert_eq!(instants(&bed.rest()), [14_000_000]);
    assert_eq!(assign(&mut scenario, &mut bed, at(20_000), "net.1.rate=2mbit"), [""; 0], "nothing is new");
    // Only what changed: a delay leaves the queue alone.
    let changes = scenario.assign("net.1.delay=5ms").unwrap();
    let Change::Template(template) = &changes[0].1 else { panic!("a masked pipe changes by its template") };
    let parts: Vec<String> = template.changes().iter().map(|change| format!("{change:?}")).collect();
    assert!(parts.len() == 1 && parts[0].starts_with("Delay"), "{parts:?}");
}

#[test]
fn of_weights_bounds_and_schedulers() {
    let mut scenario = net(r#"rules = ["queue 10 src-ip 10.0.0.1", "queue 11 out"]
        pipes.5 = { rate = "1mbit" }
        queues.10 = { pipe = 5, queue = "1000 packets" }
        queues.11 = { pipe = 5, queue = "1000 packets" }"#);
    let mut bed = Bed::new(&scenario);
    for _ in 0..400 {
        bed.send(Time::ZERO, "client", from([10, 0, 0, 1]), 125);
        bed.send(Time::ZERO, "client", from([10, 0, 0, 2]), 125);
    }
    let share = |left: &[crate::bed::Left]| left.iter().filter(|left| left.number % 2 == 0).count();
    let alike = share(&bed.until(at(100_000)));
    assert!((49..=51).contains(&alike), "{alike}");
    let kinds = assign(&mut scenario, &mut bed, at(100_000), "net.queue-10.weight=3");
    assert_eq!(kinds, ["net.5 Weight"]);
    let heavier = share(&bed.until(at(200_000)));
    assert!((73..=77).contains(&heavier), "{heavier}");
    // Another scheduler takes what waits, and weights that it knows.
    assert_eq!(assign(&mut scenario, &mut bed, at(200_000), "net.5.scheduler=drr"), ["net.5 Queue"]);
    let heavier = share(&bed.until(at(300_000)));
    assert!((60..=90).contains(&heavier), "{heavier}");
    assert_eq!(assign(&mut scenario, &mut bed, at(300_000), "net.5.scheduler=prio"), ["net.5 Queue"]);
    assert!(!scenario.to_toml().contains("weight"), "what `prio` has no use for is gone");
    assert_eq!(assign(&mut scenario, &mut bed, at(300_000), "net.queue-11.priority=1"), ["net.5 Queue"]);
    let first = share(&bed.until(at(400_000)));
    assert_eq!(first, 100);
    assert_eq!(
        assign(&mut scenario, &mut bed, at(400_000), "net.queue-11.queue.bound=7 packets"),
        ["net.5 Queue"]
    );
    assert_eq!(bed.rest().len(), 400, "nothing that waits is lost");
    let again = Scenario::parse(&scenario.to_toml(), "net.toml").unwrap();
    assert_eq!(again, scenario);
}

#[test]
fn a_timeline_changes_pipes_and_queues() {
    let text = r#"
        [hosts.client]
        [hosts.server]
        [links.net]
        between = ["client", "server"]
        rules = ["queue 10 out"]
        pipes.5 = { rate = "1mbit" }
        queues.10.pipe = 5
        [[timeline]]
        at = "1s"
        set = { "net.5.rate" = "2mbit", net = { queue-10 = { weight = 7 }, "5" = { delay = "3ms" } } }
    "#;
    let mut scenario = Scenario::parse(text, "net.toml").unwrap();
    let again = Scenario::parse(&scenario.to_toml(), "net.toml").unwrap();
    assert_eq!(again, scenario);
    let event = scenario.timeline().next().unwrap();
    assert_eq!(event.changes, ["net.5.rate=2mbit", "net.queue-10.weight=7", "net.5.delay=3ms"]);
    assert_eq!(scenario.assign_all(&event.changes).unwrap().len(), 3);
}

#[test]
fn a_timeline_executes_commands() {
    let text = r#"
        [hosts.client]
        [hosts.server]
        [links.net]
        between = ["client", "server"]
        rules = ["100 pipe 5 out"]
        pipes.5 = { rate = "1mbit" }
        [[timeline]]
        at = "1s"
        set = { "net.5.rate" = "2mbit" }
        ipfw.net = ["delete 100", " add deny out dst-ip server ", "pipe 6 config bw 3Mbit/s"]
    "#;
    let mut scenario = Scenario::parse(text, "net.toml").unwrap();
    let again = Scenario::parse(&scenario.to_toml(), "net.toml").unwrap();
    assert_eq!(again, scenario);
    let event = scenario.timeline().next().unwrap();
    assert_eq!(
        event.changes,
        [
            "net.5.rate=2mbit",
            "ipfw net delete 100",
            "ipfw net add deny out dst-ip server",
            "ipfw net pipe 6 config bw 3Mbit/s",
        ]
    );
    // All of them, or none.
    let before = scenario.clone();
    let wrong = [&event.changes[0], "ipfw net delete 7"];
    let error = scenario.change_at(Time::ZERO, &wrong).unwrap_err().to_string();
    assert!(error.contains("there is no rule 7") && scenario == before, "{error}");
    scenario.change_at(event.at, &event.changes).unwrap();
    let rules = scenario.links[0].rules().unwrap();
    assert_eq!((rules.rules[0].number, rules.pipes.len()), (100, 2));
    assert_eq!(rules.pipes[&5].direction.rate.to_string(), "2mbit");
}

#[test]
fn a_command_of_a_timeline_that_cannot_be_executed_is_an_error() {
    let head = "[hosts.client]\n[hosts.server]\n[links.net]\nbetween = [\"client\", \"server\"]\nrules = []\n\
                [links.plain]\nbetween = [\"client\", \"server\"]\n[[timeline]]\nat = \"1s\"\n";
    for (line, at, said) in [
        ("ipfw.net = [\"add 1 allow\", \"delete 2\"]", "10:28", "there is no rule 2"),
        ("ipfw.net = [\"add 1 alow\"]", "10:13", "found `alow`"),
        ("ipfw.plain = [\"add 1 allow\"]", "10:15", "there is no link `plain` with rules"),
        ("ipfw.net = \"add 1 allow\"", "10:12", "expected a list of commands of ipfw"),
        ("ipfw.net = [\"\"\"add 1 allow\ndelete 1\"\"\"]", "10:13", "a command is one line"),
        ("ipfw.net = [\"add 1 allow \\\\\"]", "10:13", "a command is one line"),
        ("ipfw.net = [\"add 1 allow\", \"list\"]", "10:28", "`list` changes nothing"),
        ("ipfw.net = [\"echo x\"]", "10:13", "`echo x` changes nothing"),
        ("ipfw.net = []", "10:1", "no commands"),
        ("ipfw.net = [7]", "10:13", "expected a command of ipfw"),
        ("", "8:1", "nothing changes"),
    ] {
        let error = Scenario::parse(&format!("{head}{line}"), "net.toml").expect_err(line).to_string();
        assert!(error.contains(said) && error.contains(&format!("net.toml:{at}\n")), "{line}\n{error}");
    }
}

#[test]
fn the_flow_that_a_packet_is_in_does_not_change_its_key() {
    // The mark that leads to a queue is the engine's: what leaves has the addresses and ports that it came with.
    let mut bed =
        Bed::new(&net("rules = [\"queue 10 out\"]\npipes.5 = { rate = \"1mbit\" }\nqueues.10.pipe = 5"));
    let key = from([10, 0, 0, 1]);
    bed.send(Time::ZERO, "client", key, 125);
    let event = bed.engine.poll(at(1000)).unwrap();
    assert_eq!(FlowKey { mark: 0, ..event.key }, key);
}
