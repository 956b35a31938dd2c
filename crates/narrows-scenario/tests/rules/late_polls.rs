//! Commands of ipfw at any instants of a run: when and how often the engine is polled changes nothing, and nothing is lost.

use narrows_core::{Duration, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bed::{Bed, Left, from, net, to};

/// A run to begin with: rules of every kind that leads somewhere, and what they lead to.
const LINES: &str = r#"
rules = [
    "100 skipto 300 tagged 7",
    "200 queue 9 src-ip 10.0.0.0/30 out",
    "250 count tag 7 dst-port 5000 in",
    "300 pipe 2 in",
    "400 prob 0.5 pipe 1 out keep-state",
    "500 pipe 3 out",
]
one-pass = false
pipes.1 = { rate = "2mbit", delay = "3ms", queue = "20 packets" }
pipes.2 = { rate = "1mbit", delay = { uniform = { low = "1ms", high = "9ms" } } }
pipes.3 = { rate = "500kbit", mask = { src-ip = "0xff" }, queue = "4 packets" }
queues.9 = { pipe = 1, weight = 3, mask = { src-ip = "0xff" } }
"#;

/// What may be asked for; some of it cannot be at some times, and is refused then.
const COMMANDS: &[&str] = &[
    "pipe 1 config bw 300Kbit/s delay 1ms",
    "pipe 1 config bw 9Mbit/s delay 20ms queue 3",
    "pipe 2 config bw 4Mbit/s plr 0.3",
    "pipe 3 config bw 800Kbit/s mask src-ip 0x3",
    "pipe 3 config bw 800Kbit/s delay 2ms",
    "pipe 4 config bw 1Mbit/s",
    "pipe 4 delete",
    "pipe 3 delete",
    "queue 9 config pipe 1 weight 30",
    "queue 9 config pipe 4 weight 2",
    "queue 5 config pipe 1 weight 1 mask src-ip 0x1",
    "queue 9 delete",
    "sched 1 config type rr",
    "sched 1 config type prio",
    "add 350 deny src-ip 10.0.0.2",
    "add 150 pipe 4 dst-port 5000",
    "add 450 queue 5 out",
    "add 600 skipto 700 out",
    "delete 350",
    "delete 400",
    "delete 500",
    "set disable 0",
    "set enable 0",
    "table 1 add 10.0.0.0/24 4",
    "add 120 pipe tablearg src-ip table(1)",
    "flush",
    "zero",
];

#[derive(Clone, Copy, Debug)]
enum Input {
    Packet { out: bool, host: u8, length: u32 },
    Command(usize),
}

fn inputs() -> impl Strategy<Value = Vec<(u64, Input)>> {
    let packet = (any::<bool>(), 1..6_u8, 40..1500_u32).prop_map(|(out, host, length)| Input::Packet {
        out,
        host,
        length,
    });
    let input = prop_oneof![6 => packet, 1 => (0..COMMANDS.len()).prop_map(Input::Command)];
    vec((0..4_000_000_u64, input), 1..150)
}

/// How the engine is polled before an input.
#[derive(Clone, Copy, Debug)]
enum Poll {
    /// At each instant at which something happens, and at the input's own.
    Exactly,
    /// Not before there have been so many inputs.
    Seldom(usize),
}

#[derive(Debug, PartialEq)]
struct Outcome {
    left: Vec<Left>,
    sent: usize,
    refused: Vec<usize>,
    rules: Vec<(u16, u64, u64)>,
}

fn run(inputs: &[(u64, Input)], poll: Poll) -> Outcome {
    let mut scenario = net(LINES);
    let mut bed = Bed::new(&scenario);
    let (mut now, mut left, mut sent, mut refused) = (Time::ZERO, Vec::new(), 0, Vec::new());
    for (number, &(gap, input)) in inputs.iter().enumerate() {
        now = now + Duration::from_nanos(gap);
        match poll {
            Poll::Exactly => {
                while let Some(next) = bed.engine.next_event().filter(|&next| next < now) {
                    left.extend(bed.until(next));
                }
                left.extend(bed.until(now));
            }
            Poll::Seldom(every) if number % every == 0 => left.extend(bed.until(now)),
            Poll::Seldom(_) => {}
        }
        match input {
            Input::Packet { out, host, length } => {
                let (at, key) = match out {
                    true => ("client", from([10, 0, 0, host])),
                    false => ("server", to([10, 0, 0, host])),
                };
                bed.send(now, at, key, length);
                sent += 1;
            }
            Input::Command(which) => {
                let commands = scenario.ipfw_commands(None, "ipfw", COMMANDS[which]);
                let commands = commands.unwrap_or_else(|error| panic!("{error}"));
                match scenario.ipfw_at(now, None, &commands.commands[0].0) {
                    Ok(changes) => {
                        for change in changes {
                            change.make(&mut bed.engine, now).unwrap_or_else(|error| panic!("{error}"));
                        }
                    }
                    Err(_) => refused.push(number),
                }
            }
        }
    }
    left.extend(bed.rest());
    assert_eq!(bed.engine.inside(), 0);
    // At one instant the order in which things are told is the engine's; a late poll tells of them in the same one.
    let set = bed.engine.rule_set(bed.engine.rules_of("net").unwrap());
    let rules =
        set.rules().map(|view| (view.rule.number, view.counters.packets, view.counters.bytes)).collect();
    Outcome { left, sent, refused, rules }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn when_one_polls_changes_nothing(inputs in inputs(), every in 2..40_usize) {
        let exactly = run(&inputs, Poll::Exactly);
        // Each packet leaves once, by one verdict.
        let mut numbers: Vec<usize> = exactly.left.iter().map(|left| left.number).collect();
        numbers.sort_unstable();
        prop_assert!(numbers.iter().copied().eq(0..exactly.sent), "{numbers:?} of {}", exactly.sent);
        prop_assert_eq!(&run(&inputs, Poll::Seldom(every)), &exactly);
        prop_assert_eq!(&run(&inputs, Poll::Seldom(usize::MAX)), &exactly);
    }
}
