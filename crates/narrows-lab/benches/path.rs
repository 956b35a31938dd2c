//! What a packet's whole way costs: rules, pipes, links made on first use. `cargo bench -p narrows-lab --bench path`.
//!
//! The cases are those of Carbone and Rizzo, "Dummynet Revisited" (2010), section 4.2: a packet that is dropped before it
//! meets a rule (A), by the first rule (B), by the last of 100 (B100), that goes through a pipe without delay or rate (C0),
//! with a delay (Cd), with a rate (Cr), and 1,000 flows to 1,000 pipes. Here A is the generation of packets alone, NONE of
//! `narrows sched bench`, to which all others are a ratio. The last column has the ratio of Dummynet's own code in user space
//! to its NONE.
//!
//! Each figure is the least of several runs that take turns.

use std::hint::black_box;
use std::time::Instant;

use narrows_core::classify::FlowMask;
use narrows_core::queue::{Bound, DropAt, Fifo};
use narrows_core::rules::{Action, Addresses, Argument, Masked, Rule, RuleSetConfig, Test};
use narrows_core::service::ConstantRate;
use narrows_core::{
    Change, Duration, Engine, FlowKey, Headers, Instances, LinkConfig, LinkTemplate, NetworkConfig, Packet,
    PipeConfig, PortConfig, PortId, Protocol, Rate, RulesConfig, Seed, Target, Time, model,
};
use narrows_lab::bench::{Chain, Workload, columns, quantity, time};

/// Runs are short, so that some of them are undisturbed on a machine that is shared.
const RUNS: u32 = 101;
const PACKETS: u64 = 20_000;
const LENGTH: u32 = 1000;
/// Between packets.
const GAP: u64 = 1_000;

/// Dummynet's own code in user space, nanoseconds a packet over its 15 of NONE.
const REFERENCE_NONE: f64 = 15.0;

#[derive(Debug)]
struct Case {
    name: &'static str,
    /// Rules before the one that decides, which match no packet.
    others: u16,
    /// What the last rule does.
    action: Action,
    pipe: Pipe,
    /// Packets come from so many addresses, by turns.
    flows: u32,
    /// A link for each of them.
    masked: bool,
    /// Packets that wait in each pipe.
    backlog: u32,
    /// Dummynet's nanoseconds.
    reference: Option<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pipe {
    delay: Duration,
    rate: Option<Rate>,
}

const TO_PIPE: Action = Action::Pipe(Argument::Number(1));

impl Pipe {
    fn put(self, link: &mut LinkConfig) {
        link.delay = Box::new(model::Constant(self.delay));
        if let Some(rate) = self.rate {
            link.service = Box::new(ConstantRate(rate));
        }
        link.queue = Box::new(Fifo::new(Bound::Packets(1_000), DropAt::Tail));
    }
}

impl LinkTemplate for Pipe {
    fn link(&self) -> LinkConfig {
        let mut link = LinkConfig::new("", Target::Port("out".into()));
        self.put(&mut link);
        link
    }

    fn changes(&self) -> Vec<Change> {
        Vec::new()
    }
}

fn address(number: u32) -> [u8; 16] {
    let mapped = 0xffff_0a00_0000 + u128::from(number);
    mapped.to_be_bytes()
}

/// `deny ip from any to 192.168.x.y`: no packet goes there.
fn other(number: u16) -> Rule {
    let address = 0xffff_c0a8_0000 + u128::from(number);
    let test = Test::Destination(Addresses::In(vec![Masked { address, mask: u128::MAX }]));
    Rule { terms: vec![test.into()], ..Rule::new(number, Action::Deny) }
}

/// A network that a stream of packets goes through.
struct Stream {
    engine: Engine<u32>,
    port: PortId,
    packet: Packet<u32>,
    at: u64,
    flows: u32,
    next: u32,
}

impl Stream {
    fn new(case: &Case) -> Self {
        let mut config = NetworkConfig::new(Seed(1));
        config.memory = narrows_core::Bytes::new(8 << 30);
        let mut link = LinkConfig::new("pipe", Target::FromPipe { rules: "rules".into(), incoming: false });
        link.lanes.push(Target::FromPipe { rules: "rules".into(), incoming: true });
        case.pipe.put(&mut link);
        if case.masked {
            let mask = FlowMask { source_v4: u32::MAX, ..FlowMask::NONE };
            let (most, idle) = (1 << 20, Duration::from_nanos(1_000_000_000));
            link.instances = Some(Box::new(Instances { mask, most, idle, template: Box::new(case.pipe) }));
        }
        config.links.push(link);
        let mut rules: Vec<_> = (1..=case.others).map(other).collect();
        rules.push(Rule::new(65_000, case.action));
        config.rules.push(RulesConfig {
            name: "rules".into(),
            rules: RuleSetConfig { rules, ..RuleSetConfig::default() },
            pipes: vec![(1, PipeConfig { link: "pipe".into(), mark: 0 })],
            queues: Vec::new(),
            one_pass: true,
            exits: [Target::Port("out".into()), Target::Port("in".into())],
        });
        let entry = Target::Rules { name: "rules".into(), incoming: false };
        config.ports.push(PortConfig { name: "in".into(), entry });
        config.ports.push(PortConfig { name: "out".into(), entry: Target::Port("out".into()) });
        let engine = Engine::new(config).expect("the network is whole");
        let port = engine.port("in").expect("it was just configured");
        let key = FlowKey {
            source: address(0),
            destination: address(u32::from(u16::MAX)),
            network: Protocol::Ipv4,
            transport: 17,
            source_port: 1,
            destination_port: 2,
            ..FlowKey::default()
        };
        let headers = Headers::plain(&key, LENGTH);
        let packet = Packet { length: LENGTH, link_header: 14, network_header: 20, key, headers, body: 7 };
        let mut stream = Self { engine, port, packet, at: 0, flows: case.flows, next: 0 };
        for _ in 0..case.backlog * case.flows {
            stream.hand_in();
        }
        stream
    }

    fn hand_in(&mut self) {
        self.engine.hand_in(Time::from_nanos(self.at), self.port, black_box(&self.packet).clone());
        self.next += 1;
        if self.next == self.flows {
            self.next = 0;
        }
        // Long before the packet is read as a whole: a processor has to wait for what was written just now in parts.
        self.packet.key.source = address(self.next);
    }

    /// Nanoseconds a packet.
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures wall-clock time")]
    fn time(&mut self, packets: u64) -> f64 {
        let start = Instant::now();
        for _ in 0..packets {
            self.at += GAP;
            while let Some(event) = &self.engine.poll(Time::from_nanos(self.at)) {
                black_box(event);
            }
            self.hand_in();
        }
        start.elapsed().as_nanos() as f64 / packets as f64
    }
}

/// A rate at which `pipes` pipes together send as fast as packets come.
fn share(pipes: u64) -> Option<Rate> {
    Some(Rate::from_bits_per_second(u64::from(LENGTH) * 8 * 1_000_000_000 / GAP / pipes))
}

fn main() {
    let case = |name, others, action, pipe, reference| Case {
        name,
        others,
        action,
        pipe,
        flows: 1,
        masked: false,
        backlog: 0,
        reference,
    };
    let none = Pipe::default();
    let delayed = Pipe { delay: Duration::from_millis(1), rate: None };
    let with_rate = Pipe { delay: Duration::ZERO, rate: share(1) };
    let pipes = |name, flows, masked| Case {
        flows,
        masked,
        backlog: 10,
        ..case(name, 0, TO_PIPE, Pipe { delay: Duration::ZERO, rate: share(flows.into()) }, None)
    };
    let cases = [
        case("B: dropped by one rule", 0, Action::Deny, none, Some((36.0, 51.0))),
        case("B100: after 100 rules", 99, Action::Deny, none, Some((370.0, 495.0))),
        case("after 1,000 rules", 999, Action::Deny, none, None),
        case("after 10,000 rules", 9_999, Action::Deny, none, None),
        case("C0: a pipe, no delay or rate", 0, TO_PIPE, none, None),
        case("Cd: a pipe with 1 ms", 0, TO_PIPE, delayed, Some((119.0, 168.0))),
        case("Cr: a pipe with a rate", 0, TO_PIPE, with_rate, None),
        pipes("a pipe with backlog", 1, false),
        pipes("one masked pipe with backlog", 1, true),
        pipes("C'r: 1,000 flows, 1,000 pipes", 1_000, true),
        pipes("100,000 flows, 100,000 pipes", 100_000, true),
    ];
    if let [case, packets] =
        std::env::args().filter_map(|argument| argument.parse().ok()).collect::<Vec<_>>()[..]
    {
        // To count instructions: nothing but that case.
        let case = cases.get(case as usize).expect("the number of a case");
        Stream::new(case).time(packets);
        return;
    }
    let mut streams: Vec<_> = cases.iter().map(Stream::new).collect();
    let column = columns("1").expect("a number of flows").remove(0);
    let (qmin, qmax) = (quantity("0").expect("a number"), quantity("20n").expect("a number"));
    let workload = Workload::new(&column, qmin, qmax).expect("it fits");
    let mut least_none = f64::INFINITY;
    let mut least = vec![f64::INFINITY; cases.len()];
    for _ in 0..RUNS {
        let run = time(&workload, PACKETS, &mut Chain::default()).expect("it serves");
        least_none = least_none.min(run.nanoseconds_per_packet());
        for (stream, least) in streams.iter_mut().zip(&mut least) {
            *least = least.min(stream.time(PACKETS));
        }
    }
    println!("{:<32}  ns a packet   to NONE   Dummynet's", "");
    println!("{:<32}  {least_none:>11.1}      1.00         1.00", "A: generation alone (NONE)");
    for (case, least) in cases.iter().zip(&least) {
        let reference = case.reference.map_or(String::new(), |(from, to)| {
            format!("{:.1} to {:.1}", from / REFERENCE_NONE, to / REFERENCE_NONE)
        });
        println!("{:<32}  {least:>11.1}  {:>8.2}   {reference}", case.name, least / least_none);
    }
    let of = |name: &str| cases.iter().position(|case| case.name.starts_with(name)).map(|at| least[at]);
    if let (Some(one), Some(thousand), Some(many)) = (of("one masked"), of("C'r"), of("100,000")) {
        println!("\npipes with backlog, to one: 1,000 {:.2}×, 100,000 {:.2}×", thousand / one, many / one);
    }
}
