//! Commands of one request: they come to what each by itself at the same instant comes to, and to less work.

use narrows_core::{Duration, RulesChange, Time};
use narrows_scenario::{EngineChange, IpfwChange, Scenario};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bed::{Bed, Left, at, from, net, to};

/// A run to begin with: rules of every kind that leads somewhere, and what they lead to.
const LINES: &str = r#"
rules = [
    "100 skipto 300 tagged 7",
    "200 queue 9 src-ip 10.0.0.0/30 out",
    "250 count tag 7 dst-port 5000 in",
    "300 pipe 2 in",
    "400 set 3 prob 0.5 pipe 1 out keep-state",
    "500 pipe 3 out",
]
one-pass = false
pipes.1 = { rate = "2mbit", delay = "3ms", queue = "20 packets" }
pipes.2 = { rate = "1mbit", delay = { uniform = { low = "1ms", high = "9ms" } } }
pipes.3 = { rate = "500kbit", mask = { src-ip = "0xff" }, queue = "4 packets" }
queues.9 = { pipe = 1, weight = 3, mask = { src-ip = "0xff" } }
tables.1 = ["10.0.0.1 2"]
"#;

/// What may be asked for; some of it cannot be at some times, and is refused then.
const COMMANDS: &[&str] = &[
    "pipe 1 config bw 300Kbit/s delay 1ms",
    "pipe 1 config bw 9Mbit/s delay 20ms queue 3",
    "pipe 1 config",
    "pipe 2 config bw 4Mbit/s plr 0.3",
    "pipe 2 config plr 0.1,0.2,0.5,0.9",
    "pipe 3 config bw 800Kbit/s mask src-ip 0x3",
    "pipe 3 config bw 800Kbit/s delay 2ms",
    "pipe 4 config bw 1Mbit/s",
    "pipe 4 config bw 2Mbit/s delay 1ms",
    "pipe 4 delete",
    "pipe 3 delete",
    "pipe flush",
    "queue 9 config pipe 1 weight 30",
    "queue 9 config pipe 1 weight 4 mask src-ip 0xff",
    "queue 9 config pipe 4 weight 2",
    "queue 9 config pipe 1 pri 7",
    "queue 5 config pipe 1 weight 1 mask src-ip 0x1",
    "queue 5 config pipe 1 weight 12",
    "queue 5 config pipe 4 weight 9 queue 7",
    "queue 6 config pipe 3 weight 2",
    "queue 9 delete",
    "queue 5 delete",
    "sched 1 config type rr",
    "sched 1 config type prio",
    "sched 1 config type qfq",
    "sched 1 config type kps",
    "sched 1 config type fq_codel",
    "sched 1 config type wf2q+",
    "add 350 deny src-ip 10.0.0.2",
    "add 150 pipe 4 dst-port 5000",
    "add 450 queue 5 out",
    "add 210 prob 0.3 queue 9 in",
    "add 600 skipto 700 out",
    "add pipe 4 in",
    "add 350 set 5 count keep-state",
    "delete 350",
    "delete 400",
    "delete 500",
    "delete 300-500",
    "delete set 5",
    "set disable 0",
    "set enable 0",
    "set move rule 400 to 5",
    "set swap 0 3",
    "table 1 add 10.0.0.0/24 4",
    "table 1 add 10.0.0.2 1",
    "table 1 delete 10.0.0.2",
    "table other add 10.0.0.3 3",
    "table 1 flush",
    "table 1 destroy",
    "add 120 pipe tablearg src-ip table(1)",
    "add 110 pipe tablearg src-ip table(other)",
    "enable one_pass",
    "disable one_pass",
    "flush",
    "zero",
    "zero 200",
];

#[derive(Clone, Debug)]
enum Input {
    Packet { out: bool, host: u8, length: u32 },
    Commands(Vec<usize>),
}

fn inputs() -> impl Strategy<Value = Vec<(u64, Input)>> {
    let packet = (any::<bool>(), 1..6_u8, 40..1500_u32).prop_map(|(out, host, length)| Input::Packet {
        out,
        host,
        length,
    });
    let commands = vec(0..COMMANDS.len(), 1..9).prop_map(Input::Commands);
    let gap = prop_oneof![1 => Just(0), 3 => 0..4_000_000_u64];
    vec((gap, prop_oneof![6 => packet, 1 => commands]), 1..150)
}

/// How the commands of a request are done.
#[derive(Clone, Copy, Debug)]
enum Way {
    AtOnce,
    OneByOne,
}

#[derive(Debug, Default, PartialEq)]
struct Outcome {
    left: Vec<Left>,
    refused: Vec<String>,
    scenarios: Vec<String>,
    listings: Vec<String>,
}

struct Run {
    scenario: Scenario,
    bed: Bed,
    way: Way,
    outcome: Outcome,
}

impl Run {
    fn new(lines: &str, way: Way) -> Self {
        let scenario = net(lines);
        Self { bed: Bed::new(&scenario), scenario, way, outcome: Outcome::default() }
    }

    fn request(&mut self, now: Time, text: &str) {
        let done = match self.way {
            Way::AtOnce => self.at_once(now, text),
            Way::OneByOne => self.one_by_one(now, text),
        };
        match done {
            Ok(changes) => {
                for change in changes {
                    change.make(&mut self.bed.engine, now).unwrap_or_else(|error| panic!("{error}"));
                }
            }
            Err(error) => self.outcome.refused.push(error),
        }
        self.outcome.scenarios.push(self.scenario.to_toml());
        self.outcome.listings.push(self.listing(now));
    }

    fn at_once(&mut self, now: Time, text: &str) -> Result<Vec<EngineChange>, String> {
        let commands = self.scenario.ipfw_commands(None, "ipfw", text).unwrap();
        let change = self.scenario.ipfw_change(now, &commands).map_err(|error| error.to_string())?;
        Ok(self.scenario.take_up(change))
    }

    fn one_by_one(&mut self, now: Time, text: &str) -> Result<Vec<EngineChange>, String> {
        let commands = self.scenario.ipfw_commands(None, "ipfw", text).unwrap();
        let (mut scenario, mut changes) = (self.scenario.clone(), Vec::new());
        for (number, (command, _)) in commands.commands.iter().enumerate() {
            let refused = |error| commands.refused(number, error).to_string();
            changes.extend(scenario.ipfw_at(now, None, command).map_err(refused)?);
        }
        self.scenario = scenario;
        Ok(changes)
    }

    /// What can be seen of the engine's rules, pipes and links.
    fn listing(&self, now: Time) -> String {
        let engine = &self.bed.engine;
        let set = engine.rule_set(engine.rules_of("net").unwrap());
        let rules: Vec<_> =
            set.rules().map(|view| (view.rule.clone(), view.counters, view.enabled)).collect();
        let tables: Vec<_> = set.tables().filter(|(_, table)| !table.is_empty()).collect();
        let links: Vec<_> = engine
            .links()
            .map(|link| (engine.view(link).name().to_string(), engine.view(link).backlog()))
            .collect();
        let states = set.states(now);
        format!("{rules:?} {tables:?} {states:?} {links:?} {:?}", set.disabled_sets())
    }
}

fn run(inputs: &[(u64, Input)], way: Way) -> Outcome {
    let mut run = Run::new(LINES, way);
    let mut now = Time::ZERO;
    for (gap, input) in inputs {
        now = now + Duration::from_nanos(*gap);
        let left = run.bed.until(now);
        run.outcome.left.extend(left);
        match input {
            &Input::Packet { out, host, length } => {
                let (at, key) = match out {
                    true => ("client", from([10, 0, 0, host])),
                    false => ("server", to([10, 0, 0, host])),
                };
                run.bed.send(now, at, key, length);
            }
            Input::Commands(which) => {
                let texts: Vec<&str> = which.iter().map(|&one| COMMANDS[one]).collect();
                run.request(now, &texts.join("\n"));
            }
        }
    }
    let left = run.bed.rest();
    run.outcome.left.extend(left);
    run.outcome
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_request_comes_to_what_its_commands_do_one_by_one(inputs in inputs()) {
        prop_assert_eq!(run(&inputs, Way::AtOnce), run(&inputs, Way::OneByOne));
    }
}

/// It meets the commands before the one that lets it go, and not those behind.
#[test]
fn a_packet_that_a_command_lets_go_comes_between_commands() {
    let lines = "rules = [\"100 pipe 1 out\"]\none-pass = false\npipes.1 = { rate = \"1mbit\" }";
    for way in [Way::AtOnce, Way::OneByOne] {
        let mut run = Run::new(lines, way);
        run.bed.send(Time::ZERO, "client", from([10, 0, 0, 2]), 1000);
        run.request(at(4000), "add 200 count out\npipe 1 config\nadd 300 deny out\nadd 400 count out\n");
        let left = run.bed.rest();
        assert_eq!((left[0].dropped, left[0].at), (None, at(4000)), "{way:?}");
        let set = run.bed.engine.rule_set(run.bed.engine.rules_of("net").unwrap());
        let counted: Vec<u64> = set.rules().map(|view| view.counters.packets).collect();
        assert_eq!(counted, [1, 1, 0, 0, 1], "{way:?}");
    }
}

/// The queue that comes has the weights of its moment: a scheduler may tell a weight that changes from one that was there.
#[test]
fn a_weight_that_changes_behind_a_queue_that_joins_is_told_behind_it() {
    let lines = "rules = []\npipes.1 = { rate = \"1mbit\" }\nqueues.1 = { pipe = 1 }";
    let join: String = (3..40).map(|number| format!("queue {number} config pipe 1\n")).collect();
    let text = &(join + "queue 1 config weight 50\nqueue 1 config weight 60\n");
    // As ipfw has it: 50 slots.
    let text = &("queue 1 config pipe 1\n".to_string() + text);
    let told = |changes: Vec<EngineChange>| -> Vec<String> {
        let links = changes.iter().filter(|change| matches!(change, EngineChange::Link { .. }));
        links.map(|change| format!("{change:?}")).collect()
    };
    let at_once = told(Run::new(lines, Way::AtOnce).at_once(Time::ZERO, text).unwrap());
    let one_by_one = told(Run::new(lines, Way::OneByOne).one_by_one(Time::ZERO, text).unwrap());
    assert_eq!((at_once.len(), one_by_one.len()), (16 + 3, 38 + 2));
    assert_eq!(at_once[16..], one_by_one[37..]);
}

/// A script of so many lines, of which half are pipes and half are rules.
fn customers(lines: u32) -> String {
    let one = |number: u32| {
        let [_, a, b, c] = number.to_be_bytes();
        let pipe = format!("pipe {number} config bw {}Kbit/s delay 5ms", 100 + number);
        format!("{pipe}\nadd {number} pipe {number} ip from 10.{a}.{b}.{c} to any out\n")
    };
    (1..=lines / 2).map(one).collect()
}

fn prepared(scenario: &Scenario, text: &str) -> IpfwChange {
    let commands = scenario.ipfw_commands(None, "ipfw", text).unwrap();
    scenario.ipfw_change(Time::ZERO, &commands).unwrap()
}

/// How many changes of each kind there are.
fn kinds(changes: &[EngineChange]) -> [usize; 4] {
    let count = |is: fn(&EngineChange) -> bool| changes.iter().filter(|change| is(change)).count();
    [
        count(|change| matches!(change, EngineChange::Link { .. })),
        count(|change| matches!(change, EngineChange::AddLink(_))),
        count(|change| matches!(change, EngineChange::ReplaceRules { .. })),
        count(|change| matches!(change, EngineChange::Rules { change: RulesChange::Rules(_), .. })),
    ]
}

#[test]
fn rules_are_made_ready_once_for_a_request() {
    let mut scenario = net("rules = []");
    let mut changes = |text: &str| {
        let change = prepared(&scenario, text);
        scenario.take_up(change)
    };
    assert_eq!(kinds(&changes(&customers(200))), [0, 100, 1, 0]);
    // The same once more: rules come twice, and pipes are as they were.
    assert_eq!(kinds(&changes(&customers(200))), [0, 0, 1, 0]);
    // A rate that changes may let packets go, which meet the rules that came before it.
    let faster = "add 1 count out\npipe 7 config bw 9Mbit/s\nadd 2 count out\n";
    assert_eq!(kinds(&changes(faster)), [2, 0, 1, 1]);
}

#[test]
fn of_many_queues_in_turn_the_last_one_comes() {
    let mut scenario = net("rules = []\npipes.1 = { rate = \"1mbit\" }");
    let text: String = (1..=100).map(|number| format!("queue {number} config pipe 1 weight 5\n")).collect();
    let change = prepared(&scenario, &text);
    // The first 16, and the last one.
    assert_eq!(kinds(&scenario.take_up(change)), [17, 0, 0, 0]);
    // Weights alone need no other queue.
    let text = text.replace("weight 5", "weight 6") + "queue 101 config pipe 1\nqueue 3 config weight 9\n";
    let change = prepared(&scenario, &text);
    assert_eq!(kinds(&scenario.take_up(change)), [102, 0, 0, 0]);
}

#[test]
fn many_entries_of_a_table_come_at_once() {
    let mut scenario = net("rules = []\ntables.1 = [\"10.0.0.1 7\"]");
    let add =
        |count: u32| -> String { (0..count).map(|n| format!("table 1 add 10.1.0.{n} {n}\n")).collect() };
    let change = prepared(&scenario, &add(10));
    assert_eq!(kinds(&scenario.take_up(change)), [0, 0, 0, 10]);
    let change = prepared(&scenario, &(add(200) + "table 2 add 10.0.0.1\n"));
    assert_eq!(kinds(&scenario.take_up(change)), [0, 0, 0, 2]);
}

#[test]
fn what_is_prepared_is_made_elsewhere_and_later() {
    fn can_be_sent<T: Send>(value: T) -> T {
        value
    }
    let scenario = net("rules = [\"1 pipe 1 out\"]\npipes.1.delay = \"1ms\"");
    let before = scenario.clone();
    let change = can_be_sent(prepared(&scenario, "pipe 1 config delay 2ms\nlist\nadd 2 deny in\n"));
    assert_eq!(scenario, before, "it has not been taken up");
    assert_eq!(change.texts(), ["ipfw net pipe 1 config delay 2ms", "ipfw net add 2 deny in"]);
    assert_eq!(change.link(), "net");
    // The same for a second engine of the same network.
    for change in [change, prepared(&scenario, "pipe 1 config delay 2ms\nadd 2 deny in\n")] {
        let (mut scenario, mut bed) = (scenario.clone(), Bed::new(&scenario));
        let changes = can_be_sent(scenario.take_up(change));
        changes.into_iter().for_each(|change| drop(change.make(&mut bed.engine, at(10)).unwrap()));
        bed.send(at(10), "client", from([10, 0, 0, 2]), 100);
        bed.send(at(10), "server", to([10, 0, 0, 2]), 100);
        let left = bed.rest();
        assert_eq!(left.iter().map(|left| left.dropped.is_some()).collect::<Vec<_>>(), [true, false]);
        assert_eq!(left[1].at, at(2010));
    }
    assert!(!prepared(&scenario, "list\npipe show\n").changes_something());
}

#[test]
fn a_request_with_a_wrong_line_does_nothing() {
    let scenario = net("rules = []");
    let commands = scenario.ipfw_commands(None, "more.conf", "pipe 1 config\nlist\ndelete 7\n").unwrap();
    let error = scenario.ipfw_change(Time::ZERO, &commands).unwrap_err().to_string();
    assert!(error.contains("there is no rule 7") && error.contains("more.conf:3:1"), "{error}");
}
