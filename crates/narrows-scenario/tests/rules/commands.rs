//! Commands of ipfw on a running network.

use narrows_core::{DropReason, Time};
use narrows_scenario::ipfw::Command;
use narrows_scenario::{EngineChange, Scenario, ScenarioError};

use crate::bed::{Bed, at, from, instants, net};

/// A run, and the scenario that is in step with it.
struct Run {
    scenario: Scenario,
    bed: Bed,
}

/// The command of this line.
fn read(scenario: &Scenario, line: &str) -> Result<Command, ScenarioError> {
    let mut commands = scenario.ipfw_commands(None, "ipfw", line)?.commands;
    assert_eq!(commands.len(), 1, "{line}");
    Ok(commands.remove(0).0)
}

impl Run {
    fn new(lines: &str) -> Self {
        let scenario = net(lines);
        Self { bed: Bed::new(&scenario), scenario }
    }

    /// Does what a command asks for, and tells what the engine was told.
    fn command(&mut self, now: Time, text: &str) -> Vec<String> {
        let command = read(&self.scenario, text).unwrap_or_else(|error| panic!("{error}"));
        let changes = self.scenario.ipfw_at(now, None, &command).unwrap_or_else(|error| panic!("{error}"));
        let mut words = Vec::new();
        for change in changes {
            words.push(match &change {
                EngineChange::Link { link, change } => {
                    format!("{link} {}", format!("{change:?}").split(['(', ' ']).next().unwrap())
                }
                EngineChange::AddLink(link) => format!("adds {}", link.name),
                EngineChange::ReplaceRules { .. } => "ReplaceRules".into(),
                EngineChange::Rules { change, .. } => {
                    format!("{change:?}").split(['(', ' ', ',']).next().unwrap().into()
                }
            });
            change.make(&mut self.bed.engine, now).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        words
    }

    /// When a packet of 1000 bytes leaves, counted from when it is sent, in microseconds; or why it does not.
    fn probe(&mut self, now: Time, host: &str) -> Result<u64, DropReason> {
        self.bed.send(now, host, from([10, 0, 0, 2]), 1000);
        let left = self.bed.rest();
        assert_eq!(left.len(), 1);
        let nanos = left[0].at.nanos() - now.nanos();
        left[0].dropped.map_or(Ok(nanos / 1000), Err)
    }

    fn fails(&mut self, text: &str, expected: &str) {
        let before = self.scenario.clone();
        let command = read(&self.scenario, text);
        let error = command.and_then(|command| self.scenario.ipfw_at(Time::ZERO, None, &command));
        let error = error.expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {expected}\nis not in\n{error}");
        assert_eq!(self.scenario, before, "{text}");
    }
}

#[test]
fn the_promise_of_two_commands_in_either_order() {
    let mut run = Run::new("rules = []");
    assert_eq!(run.probe(Time::ZERO, "client"), Ok(0));
    assert_eq!(run.command(at(1000), "add pipe 1 ip from any to any"), ["ReplaceRules"]);
    assert_eq!(run.probe(at(2000), "client"), Err(DropReason::NoPipe));
    assert!(
        run.scenario
            .explain()
            .to_string()
            .contains("rule 100 leads to a pipe, queue or translator that does not exist")
    );
    let told = run.command(at(3000), "pipe 1 config bw 3Mbit/s delay 32ms");
    assert_eq!(told, ["adds net.1", "Pipe"]);
    // 8000 bits at 3 Mbit/s are 2.667 ms.
    assert_eq!(run.probe(at(4000), "client"), Ok(34_666));
    assert_eq!(run.probe(at(100_000), "server"), Ok(34_666));
    // Again, with what it does not say by default.
    assert_eq!(run.command(at(200_000), "pipe 1 config bw 1Mbit/s"), ["net.1 Service", "net.1 Delay"]);
    assert_eq!(run.probe(at(200_000), "client"), Ok(8000));
    let text = run.scenario.to_toml();
    assert_eq!(Scenario::parse(&text, "net.toml").unwrap().to_toml(), text);
}

#[test]
fn rules_come_and_go() {
    let mut run = Run::new("rules = [\"100 pipe 1 out\", \"200 set 5 deny in\"]\npipes.1.delay = \"5ms\"");
    assert_eq!(run.command(at(0), "add deny out"), ["ReplaceRules"]);
    assert_eq!(run.scenario.links[0].rules().unwrap().rules[2].number, 300);
    assert_eq!(run.probe(at(1000), "client"), Ok(5000));
    assert_eq!(run.command(at(2000), "disable one_pass"), ["OnePass"]);
    assert_eq!(run.probe(at(10_000), "client"), Err(DropReason::Denied));
    run.command(at(20_000), "delete 300");
    assert_eq!(run.probe(at(30_000), "client"), Ok(5000));
    assert_eq!(run.probe(at(40_000), "server"), Err(DropReason::Denied));
    run.command(at(50_000), "set disable 5");
    assert_eq!(run.probe(at(50_000), "server"), Ok(0));
    run.command(at(60_000), "set move rule 200 to 6");
    assert_eq!(run.probe(at(60_000), "server"), Err(DropReason::Denied));
    run.command(at(70_000), "set swap 5 6");
    assert_eq!(run.probe(at(70_000), "server"), Ok(0));
    let again = Scenario::parse(&run.scenario.to_toml(), "net.toml").unwrap();
    assert_eq!(again, run.scenario);
    run.command(at(80_000), "flush");
    assert_eq!(run.probe(at(80_000), "client"), Ok(0));
    assert!(run.scenario.links[0].rules().unwrap().rules.is_empty());
    assert!(run.command(at(90_000), "list").is_empty());
}

#[test]
fn tables() {
    let mut run = Run::new(
        "rules = [\"100 pipe tablearg src-ip table(1)\"]\npipes.1.delay = \"1ms\"\npipes.2.delay = \"2ms\"\ntables.1 = [\"10.0.0.0/8 1\"]",
    );
    assert_eq!(run.probe(at(0), "client"), Ok(1000));
    run.command(at(10_000), "table 1 add 10.0.0.2 2");
    assert_eq!(run.probe(at(10_000), "client"), Ok(2000));
    run.command(at(20_000), "table 1 add 10.0.0.2 1");
    assert_eq!(run.probe(at(20_000), "client"), Ok(1000));
    run.command(at(30_000), "table 1 delete 10.0.0.2");
    run.command(at(30_000), "table 1 add 10.0.0.0/8 7");
    assert_eq!(run.probe(at(30_000), "client"), Err(DropReason::NoPipe));
    run.command(at(40_000), "table 1 flush");
    assert_eq!(run.probe(at(40_000), "client"), Ok(0));
}

#[test]
fn swapped_tables() {
    let mut run = Run::new(
        "rules = [\"100 pipe tablearg src-ip table(1)\"]\npipes.1.delay = \"1ms\"\npipes.2.delay = \"2ms\"\ntables.1 = [\"10.0.0.0/8 1\"]\ntables.2 = [\"10.0.0.2 2\"]",
    );
    assert_eq!(run.probe(at(0), "client"), Ok(1000));
    let told = run.command(at(10_000), "table 1 swap 2");
    assert_eq!(told, ["Rules"; 4]);
    assert_eq!(run.probe(at(10_000), "client"), Ok(2000));
    run.command(at(20_000), "table 1 swap 3");
    assert_eq!(run.probe(at(20_000), "client"), Ok(0));
    run.command(at(30_000), "table 1 swap 1");
    run.command(at(30_000), "table 3 swap 1");
    assert_eq!(run.probe(at(30_000), "client"), Ok(2000));
}

/// A port is looked up by the address of its bits, which a number in a table stands for.
#[test]
fn tables_of_numbers() {
    let mut run = Run::new(
        "rules = [\"100 pipe tablearg lookup dst-port ports\"]\npipes.1.delay = \"1ms\"\npipes.2.delay = \"2ms\"",
    );
    run.command(at(0), "table ports create type number");
    assert_eq!(run.probe(at(0), "client"), Ok(0));
    run.command(at(10_000), "table ports add 80 1 5000 2");
    assert_eq!(run.probe(at(10_000), "client"), Ok(2000));
    run.command(at(20_000), "table ports delete 5000");
    assert_eq!(run.probe(at(20_000), "client"), Ok(0));
    run.fails("table ports add 4294967296", "expected an address or the name of a host");
}

#[test]
fn queues_join_and_leave_a_pipe_with_backlog() {
    let mut run = Run::new(
        "rules = [\"100 queue 9 src-ip 10.0.0.1\", \"200 pipe 1 out\"]\npipes.1 = { rate = \"1mbit\", queue = \"900 packets\" }\nqueues.9 = { pipe = 1 }",
    );
    for _ in 0..200 {
        run.bed.send(Time::ZERO, "client", from([10, 0, 0, 1]), 125);
        run.bed.send(Time::ZERO, "client", from([10, 0, 0, 2]), 125);
    }
    assert_eq!(run.bed.until(at(50_000)).len(), 50);
    // A queue of a lower number takes no other's place, and nothing that waits is lost or goes elsewhere.
    assert_eq!(run.command(at(50_000), "queue 3 config pipe 1 weight 2 queue 500"), ["net.1 Queue", "Queue"]);
    run.command(at(50_000), "delete 200");
    run.command(at(50_000), "add 200 queue 3 out");
    run.bed.send(at(50_000), "client", from([10, 0, 0, 7]), 125);
    assert_eq!(run.command(at(60_000), "queue 9 config pipe 1 weight 50 queue 500"), ["net.1 Queue"]);
    let left = run.bed.until(at(110_000));
    let of_nine = left.iter().filter(|left| left.number % 2 == 0).count();
    assert!(of_nine >= 50, "{of_nine} of {}", left.len());
    assert_eq!(run.command(at(110_000), "queue 9 delete"), ["net.1 Queue", "Queue"]);
    assert_eq!(run.bed.rest().len(), 401 - 50 - left.len());
    run.bed.send(at(900_000), "client", from([10, 0, 0, 1]), 125);
    assert_eq!(run.bed.rest()[0].dropped, Some(DropReason::NoPipe));
}

#[test]
fn pipes_are_made_anew() {
    let mut run = Run::new("rules = [\"100 pipe 1 out\"]\npipes.1 = { rate = \"1mbit\" }");
    run.bed.send(Time::ZERO, "client", from([10, 0, 0, 1]), 1000);
    run.bed.send(Time::ZERO, "client", from([10, 0, 0, 2]), 1000);
    // With a mask it is another pipe; what was in the first one leaves it as before.
    let told = run.command(at(1000), "pipe 1 config bw 2Mbit/s mask src-ip 0xff");
    assert_eq!(told, ["adds net.1-2", "Pipe"]);
    run.bed.send(at(1000), "client", from([10, 0, 0, 1]), 1000);
    run.bed.send(at(1000), "client", from([10, 0, 0, 2]), 1000);
    assert_eq!(instants(&run.bed.rest()), [5_000_000, 5_000_000, 8_000_000, 16_000_000]);
    assert_eq!(run.command(at(50_000), "pipe 1 config bw 4Mbit/s mask src-ip 0xff"), ["net.1-2 Template"]);
    assert_eq!(run.probe(at(50_000), "client"), Ok(2000));
    assert_eq!(run.command(at(60_000), "pipe delete 1"), ["Pipe"]);
    assert_eq!(run.probe(at(60_000), "client"), Err(DropReason::NoPipe));
    assert_eq!(run.command(at(70_000), "pipe 1 config delay 7ms"), ["adds net.1-3", "Pipe"]);
    assert_eq!(run.probe(at(70_000), "client"), Ok(7000));
    assert_eq!(run.scenario.links[0].directions()[0].0, "net.1-3");
    run.scenario.assign("net.1.delay=9ms").unwrap();
}

#[test]
fn schedulers() {
    let mut run = Run::new(
        "rules = [\"100 queue 1 out\"]\npipes.5 = { rate = \"1mbit\" }\nqueues.1 = { pipe = 5, weight = 3 }",
    );
    assert_eq!(run.command(at(0), "sched 5 config type prio"), ["net.5 Queue"]);
    assert!(!run.scenario.to_toml().contains("weight"));
    assert_eq!(run.command(at(0), "sched 5 config type fq_codel"), ["net.5 Queue", "Queue"]);
    assert_eq!(run.probe(at(0), "client"), Ok(8000));
    assert_eq!(run.command(at(100_000), "sched 5 config type qfq"), ["net.5 Queue", "Queue"]);
    assert_eq!(run.probe(at(100_000), "client"), Ok(8000));
    assert!(run.command(at(200_000), "pipe flush").contains(&"Pipe".to_string()));
    assert_eq!(run.probe(at(200_000), "client"), Err(DropReason::NoPipe));
}

#[test]
fn what_cannot_be() {
    let mut run = Run::new("rules = [\"100 pipe 1 out\"]\npipes.1.delay = \"1ms\"");
    run.fails("delete 200", "there is no rule 200");
    // What has no effect in a script is an error where a person writes it.
    run.fails("sysctl net.inet.ip.dumynet", "did you mean");
    run.fails("sysctl net.inet.ip.fw.onepass=0", "did you mean `net.inet.ip.fw.one_pass`?");
    run.fails("sysctl net.inet.ipfw.one_pass=0", "unknown setting `net.inet.ipfw.one_pass`");
    run.fails("sysctl net.link.ether.ipfw=1", "unknown setting `net.link.ether.ipfw`");
    run.fails("sysctl nett.inet.tcp.tso=0", "unknown setting `nett.inet.tcp.tso`");
    run.fails("sysctl net.inet.ip.fw.enable=0", "`disable firewall` exists in ipfw but not in narrows");
    run.fails("disable firewall", "`disable firewall` exists in ipfw but not in narrows");
    run.fails("delete pipe 1", "found `pipe`, expected the number of a rule");
    run.fails("delete 65535", "rule 65535 is the default rule");
    run.fails("zero 7", "there is no rule 7");
    run.fails("pipe delete 7", "there is no pipe 7");
    run.fails("queue 3 config weight 7", "queue 3 has no scheduler");
    run.fails("queue 3 config sched 7", "queue 3 uses scheduler 7, which does not exist");
    run.fails("table 1 delete 10.0.0.1", "is not in table 1");
    run.fails("table 9 flush", "there is no table 9");
    run.fails("add pipe tablearg out", "looks up nothing");
    run.fails("nat 7 delete", "there is no translator 7");
    run.fails("nat config", "the number of a translator is missing");
    let mut wire = Scenario::from_flags(&narrows_scenario::LinkFlags::default()).unwrap();
    let command = read(&run.scenario, "flush").unwrap();
    let error = wire.ipfw_at(Time::ZERO, None, &command).expect_err("it has no rules").to_string();
    assert!(error.contains("no link has rules"), "{error}");
    let error =
        run.scenario.ipfw_at(Time::ZERO, Some("nett"), &command).expect_err("no such link").to_string();
    assert!(
        error.contains("there is no link `nett` with rules") && error.contains("did you mean `net`?"),
        "{error}"
    );
}

#[test]
fn a_command_that_is_refused_shows_its_line() {
    let mut run = Run::new("rules = []");
    let commands = run.scenario.ipfw_commands(None, "more.conf", "# rules\nlist\n\n  zero 77\n").unwrap();
    let error = run.scenario.ipfw_at(Time::ZERO, None, &commands.commands[1].0).unwrap_err();
    let error = commands.refused(1, error).to_string();
    assert!(error.contains("there is no rule 77") && error.contains("more.conf:4:3"), "{error}");
}
