//! What commands of ipfw cost a run, beside the same at its start: `cargo bench -p narrows-scenario --bench commands`.
//!
//! The least of some rounds is shown, as the machine may be shared. `prepared` is what any thread can do; `made` is what the
//! one that moves packets does, with the first packet after it.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;

use narrows_core::{Engine, FlowKey, Packet, Protocol, Time};
use narrows_scenario::ipfw::Script;
use narrows_scenario::{EngineChange, Scenario};

const ROUNDS: usize = 7;

fn main() {
    println!("milliseconds; in one request, in the order of columns: read, prepared, made\n");
    for kind in Kind::ALL {
        println!("{}", kind.name());
        for lines in [500, 2_000, 4_000, 15_000] {
            show(kind, lines);
        }
    }
    println!("\none more rule where there are as many");
    for lines in [500, 15_000] {
        one_more(lines);
    }
}

fn show(kind: Kind, lines: u32) {
    let text = kind.script(lines);
    let [mut start, mut read, mut prepared, mut made] = [f64::INFINITY; 4];
    for _ in 0..ROUNDS {
        start = start.min(time(|| drop(black_box(started(&text)))));
        let (mut scenario, mut engine) = started(kind.before());
        let mut commands = None;
        read = read.min(time(|| commands = scenario.ipfw_commands(None, "bench", &text).ok()));
        let commands = commands.expect("commands that are right");
        let mut change = None;
        prepared = prepared.min(time(|| change = scenario.ipfw_change(Time::ZERO, &commands).ok()));
        let changes = scenario.take_up(change.expect("commands that can be done"));
        made = made.min(time_made(&mut engine, changes));
    }
    let ratio = (read + prepared + made) / start;
    println!(
        "{lines:>6} lines  at start {start:>8.2}  in one request {read:>7.2} {prepared:>7.2} {made:>7.2}  {ratio:>5.2}×"
    );
}

fn one_more(lines: u32) {
    let (mut scenario, mut engine) = started(&Kind::Rules.script(lines));
    let [mut prepared, mut made] = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for text in ["add 60000 deny ip from 10.9.9.9 to any", "delete 60000"] {
            let commands = scenario.ipfw_commands(None, "bench", text).expect("a command");
            let mut changes = Vec::new();
            prepared = prepared.min(time(|| {
                let change = scenario.ipfw_change(Time::ZERO, &commands).expect("a command that can be done");
                changes = scenario.take_up(change);
            }));
            made = made.min(time_made(&mut engine, changes));
        }
    }
    println!("{lines:>6} rules  prepared {prepared:>7.3}  made {made:>7.3}");
}

/// What the thread that moves packets does. What is left over of rules another one may drop.
fn time_made(engine: &mut Engine<()>, changes: Vec<EngineChange>) -> f64 {
    let mut left_over = Vec::new();
    time(|| {
        for change in changes {
            left_over.extend(change.make(engine, Time::ZERO).expect("a change that can be made"));
        }
        packet(engine);
    })
}

/// As `narrows run --ipfw FILE` begins.
fn started(text: &str) -> (Scenario, Engine<()>) {
    let script = Script::for_two_hosts(text, "bench").expect("a script that is right");
    let scenario = script.scenario("bench").expect("a scenario that is right");
    let mut engine = Engine::new(scenario.network()).expect("a network that can be built");
    packet(&mut engine);
    (scenario, engine)
}

/// A packet that no rule decides on crosses the network.
fn packet(engine: &mut Engine<()>) {
    let bytes = |address: [u8; 4]| Ipv4Addr::from(address).to_ipv6_mapped().octets();
    let key = FlowKey {
        source: bytes([172, 16, 0, 1]),
        destination: bytes([172, 16, 0, 2]),
        network: Protocol::Ipv4,
        transport: 17,
        ..FlowKey::default()
    };
    let port = engine.port("client.net").expect("the client's port");
    let packet = Packet {
        length: 100,
        link_header: 14,
        network_header: 20,
        headers: Default::default(),
        key,
        body: (),
    };
    engine.hand_in(Time::ZERO, port, packet);
    while engine.poll(Time::ZERO).is_some() {}
}

/// Seconds that something takes, in milliseconds.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures wall-clock time")]
fn time(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64() * 1e3
}

/// What a script is like.
#[derive(Clone, Copy)]
enum Kind {
    /// A pipe and a rule for each customer.
    Pipes,
    /// A queue at one pipe and a rule for each.
    Queues,
    Rules,
    Tables,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Pipes, Self::Queues, Self::Rules, Self::Tables];

    fn name(self) -> &'static str {
        match self {
            Self::Pipes => "a pipe and a rule for each customer",
            Self::Queues => "a queue at one pipe and a rule for each customer",
            Self::Rules => "rules",
            Self::Tables => "entries of a table",
        }
    }

    /// What is there before a request.
    fn before(self) -> &'static str {
        match self {
            Self::Queues => "pipe 1 config bw 1Gbit/s\n",
            _ => "",
        }
    }

    fn script(self, lines: u32) -> String {
        let customers = if matches!(self, Self::Pipes | Self::Queues) { lines / 2 } else { lines };
        let mut script = self.before().to_string();
        for number in 1..=customers {
            let [_, a, b, c] = number.to_be_bytes();
            let source = format!("10.{a}.{b}.{c}");
            script += &match self {
                Self::Pipes => format!(
                    "pipe {number} config bw {}Kbit/s delay 5ms\nadd {number} pipe {number} ip from {source} to any out\n",
                    100 + number
                ),
                Self::Queues => format!(
                    "queue {number} config pipe 1 weight {}\nadd {number} queue {number} ip from {source} to any out\n",
                    1 + number % 100
                ),
                Self::Rules => format!("add {number} count ip from {source} to any out\n"),
                Self::Tables => format!("table 1 add {source} {number}\n"),
            };
        }
        script
    }
}
