//! What rules cost a packet: `cargo bench -p narrows-core --bench rules`.
//!
//! The machine may be shared and noisy, so every round measures each case for a moment, and medians over rounds are shown.
//! Ratios within one run mean something where times do not.

use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

use narrows_core::rules::{
    Action, Addresses, Argument, Labels, Literal, Masked, Passing, Place, PreparedRules, Rule, RuleBook,
    RuleChange, RuleSet, RuleSetConfig, Table, TableTest, Term, Test, Which,
};
use narrows_core::{FlowKey, Headers, Protocol, Seed, Time};

const ROUNDS: usize = 101;
/// Few, so that nothing else gets in between in most rounds.
const PACKETS: usize = 4_096;
/// Different packets, of as many flows.
const FLOWS: usize = 1_024;
/// More flows than what was found is kept of.
const MANY_FLOWS: usize = 65_536;

fn main() {
    let none = || Bench::new("no rule but the default one", Vec::new(), |_| udp_packet());
    println!("nanoseconds a packet\n\none rule, and 100 rules that do not match");
    let mut benches = vec![none(), Bench::new("one rule: pipe 1", vec![pipe(100, vec![])], |_| udp_packet())];
    for kind in Unmatched::ALL {
        let rules = (1..=100).map(|number| kind.rule(number)).collect();
        benches.push(Bench::new(kind.name(), rules, |_| udp_packet()));
    }
    show(&mut benches, 1);

    for style in Style::ALL {
        println!("\n{}, and packets of flows that match any of them", style.name());
        let counts = [(10, FLOWS), (100, FLOWS), (1_000, FLOWS), (10_000, FLOWS), (10_000, MANY_FLOWS)];
        let mut benches: Vec<_> =
            counts.into_iter().map(|(count, flows)| Bench::of_style(style, count, flows)).collect();
        show(&mut benches, 0);
    }

    println!("\n10,000 rules: a change, and the first packet after it");
    for style in Style::ALL {
        rebuild(style);
    }
}

/// Shows each, and its ratio to one of them.
fn show(benches: &mut [Bench], unit: usize) {
    let mut times = vec![Vec::with_capacity(ROUNDS); benches.len()];
    for _ in 0..ROUNDS {
        for (bench, times) in benches.iter_mut().zip(&mut times) {
            times.push(bench.round());
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    for (bench, ns) in benches.iter().zip(&medians) {
        let (ratio, kib) = (ns / medians[unit], bench.rules.bytes() / 1024);
        println!("{:<44}  {ns:>6.1}  {ratio:>5.2}×  {kib:>6} KiB", bench.name);
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Seconds that something takes.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures wall-clock time")]
fn time(mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

fn rebuild(style: Style) {
    let config = RuleSetConfig { rules: style.rules(10_000), ..RuleSetConfig::default() };
    let packets = style.packets(&config.rules, 1);
    let book = Arc::new(RuleBook::new(Seed(1), "net", &config).expect("rules"));
    let mut times = [const { Vec::new() }; 5];
    for _ in 0..11 {
        let config = config.clone();
        let mut rules = None;
        times[0].push(time(|| rules = Some(RuleSet::new(Seed(1), "net", config.clone()).expect("rules"))));
        let mut rules = rules.expect("just made");
        walk(&mut rules, &packets[0]);
        let add = RuleChange::Add(pipe(50, vec![is(Test::Protocol(200))]));
        times[1].push(time(|| rules.change(Time::ZERO, add.clone()).expect("a rule")));
        times[2].push(time(|| walk(&mut rules, &packets[0])));
        let out = Which { numbers: Some(50..=50), set: None };
        rules.change(Time::ZERO, RuleChange::Delete(out)).expect("it is there");
        let mut prepared = None;
        times[3].push(time(|| prepared = Some(PreparedRules::new(&book))));
        let mut before = None;
        times[4].push(time(|| {
            before = prepared.take().map(|prepared| rules.replace(prepared));
            walk(&mut rules, &packets[0]);
        }));
    }
    let [new, change, packet, prepared, replaced] = times.map(|times| median(times) * 1e3);
    let name = style.name();
    println!("{name:<44}  made {new:.2} ms, changed {change:.3} ms, first packet {packet:.2} ms");
    println!("{:<44}  prepared {prepared:.2} ms, put in place with the first packet {replaced:.3} ms", "");
}

struct Bench {
    name: String,
    rules: RuleSet,
    packets: Vec<(FlowKey, Headers)>,
    next: usize,
}

impl Bench {
    fn new(name: &str, rules: Vec<Rule>, packet: impl Fn(usize) -> (FlowKey, Headers)) -> Self {
        Self::with_flows(name, rules, FLOWS, packet)
    }

    fn with_flows(
        name: &str,
        rules: Vec<Rule>,
        flows: usize,
        packet: impl Fn(usize) -> (FlowKey, Headers),
    ) -> Self {
        let tables = (1..=100).map(|number| (format!("{number}"), table())).collect();
        let config = RuleSetConfig { rules, tables, ..RuleSetConfig::default() };
        let rules = RuleSet::new(Seed(1), "net", config).expect("the rules are right");
        Self { name: name.into(), rules, packets: (0..flows).map(packet).collect(), next: 0 }
    }

    fn of_style(style: Style, count: u16, flows: usize) -> Self {
        let rules = style.rules(count);
        let packets = style.packets(&rules, flows);
        Self::with_flows(&format!("{count} rules, {flows} flows"), rules, flows, |nth| packets[nth])
    }

    fn round(&mut self) -> f64 {
        // What other cases have left in the processor's caches is not what is measured.
        self.walk(FLOWS);
        time(|| self.walk(PACKETS)) * 1e9 / PACKETS as f64
    }

    fn walk(&mut self, packets: usize) {
        for _ in 0..packets {
            self.next = (self.next + 1) % self.packets.len();
            walk(&mut self.rules, &self.packets[self.next]);
        }
    }
}

fn walk(rules: &mut RuleSet, (key, headers): &(FlowKey, Headers)) {
    let mut key = *key;
    let mut labels = Labels::default();
    let mut packet = Passing {
        key: &mut key,
        whole: None,
        quoted: None,
        headers,
        length: 1_000,
        link_header: 14,
        incoming: false,
        labels: &mut labels,
        draw: &mut |stream| stream.nth(0),
    };
    black_box(rules.walk(Time::ZERO, black_box(&mut packet), Place::default()));
}

fn rule(number: u16, action: Action, terms: Vec<Term>) -> Rule {
    Rule { terms, ..Rule::new(number, action) }
}

fn pipe(number: u16, terms: Vec<Term>) -> Rule {
    rule(number, Action::Pipe(Argument::Number(1)), terms)
}

fn is(test: Test) -> Term {
    test.into()
}

fn v4(a: u8, b: u8, c: u8, d: u8) -> u128 {
    Ipv4Addr::new(a, b, c, d).to_ipv6_mapped().to_bits()
}

fn hosts(address: u128, bits: u32) -> Addresses {
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    Addresses::In(vec![Masked { address: address & mask, mask }])
}

fn key(protocol: u8, source: u128, source_port: u16, destination: u128, destination_port: u16) -> FlowKey {
    FlowKey {
        source: source.to_be_bytes(),
        destination: destination.to_be_bytes(),
        source_port,
        destination_port,
        network: if source >> 32 == 0xffff { Protocol::Ipv4 } else { Protocol::Ipv6 },
        transport: protocol,
        tcp_flags: if protocol == 6 { 16 } else { 0 },
        ..FlowKey::default()
    }
}

fn with_headers(key: FlowKey) -> (FlowKey, Headers) {
    (key, Headers::plain(&key, 1_000))
}

fn udp_packet() -> (FlowKey, Headers) {
    with_headers(key(17, v4(10, 9, 9, 9), 1_000, v4(10, 8, 8, 8), 2_000))
}

fn table() -> Table {
    let mut table = Table::default();
    let prefix = narrows_core::classify::Prefix::new(v4(192, 168, 0, 0).to_be_bytes(), 112);
    table.insert(prefix, 1);
    table
}

/// 100 rules that a packet does not match.
#[derive(Clone, Copy)]
enum Unmatched {
    Hosts,
    HostsAndPorts,
    SameProtocol,
    Ports,
    PortRanges,
    Protocols,
    Gaps,
    Not,
    Flags,
    Tables,
    Tags,
    Lengths,
    MacAddresses,
}

impl Unmatched {
    const ALL: [Self; 13] = [
        Self::Hosts,
        Self::HostsAndPorts,
        Self::SameProtocol,
        Self::Ports,
        Self::PortRanges,
        Self::Protocols,
        Self::Gaps,
        Self::Not,
        Self::Flags,
        Self::Tables,
        Self::Tags,
        Self::Lengths,
        Self::MacAddresses,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Hosts => "100 of other hosts",
            Self::HostsAndPorts => "100 of other hosts, its protocol and port",
            Self::SameProtocol => "100 of its direction, protocol and net",
            Self::Ports => "100 of other ports",
            Self::PortRanges => "100 of other ranges of ports, in each other",
            Self::Protocols => "100 of another protocol",
            Self::Gaps => "100 of masks with gaps",
            Self::Not => "100 of any host but its net",
            Self::Flags => "100 of TCP flags",
            Self::Tables => "100 of tables",
            Self::Tags => "100 of tags",
            Self::Lengths => "100 of other lengths",
            Self::MacAddresses => "100 of other link addresses",
        }
    }

    fn rule(self, number: u16) -> Rule {
        let low = number as u8;
        let terms = match self {
            Self::Hosts => vec![is(Test::Source(hosts(v4(10, 0, 0, low), 128)))],
            Self::HostsAndPorts => vec![
                is(Test::Protocol(17)),
                is(Test::Destination(hosts(v4(10, 0, 0, low), 128))),
                is(Test::DestinationPort(vec![2_000..=2_000])),
            ],
            Self::SameProtocol => vec![
                is(Test::Out),
                is(Test::Protocol(17)),
                is(Test::Destination(hosts(v4(10, 8, 8, 0), 120))),
                is(Test::DestinationPort(vec![number..=number])),
            ],
            Self::Ports => vec![is(Test::DestinationPort(vec![number..=number]))],
            Self::PortRanges => {
                let around = |port: u16| port - 1_000 + 5 * number..=port - 1;
                vec![
                    is(Test::SourcePort(vec![2_001 + number..=60_000])),
                    is(Test::DestinationPort(vec![around(2_000)])),
                ]
            }
            Self::Protocols => vec![is(Test::Protocol(6)), is(Test::Source(hosts(v4(10, 0, 0, 0), 104)))],
            Self::Gaps => {
                let (address, mask) = (v4(10, 0, 0, low), u128::MAX ^ 0xff00);
                vec![is(Test::Source(Addresses::In(vec![Masked { address, mask }])))]
            }
            Self::Not => {
                let test = Test::Source(hosts(v4(10, 9, 0, 0), 112));
                vec![Term(vec![Literal { not: true, test }])]
            }
            Self::Flags => vec![is(Test::TcpFlags { set: 1, clear: 2 })],
            Self::Tables => {
                let table = TableTest { table: format!("{number}"), value: None };
                vec![is(Test::Source(Addresses::Table(table)))]
            }
            Self::Tags => vec![is(Test::Tagged(vec![number..=number]))],
            Self::Lengths => vec![is(Test::Length(vec![number..=number]))],
            Self::MacAddresses => {
                vec![is(Test::LinkSource { address: [2, 0, 0, 0, 0, low], mask: [0xff; 6] })]
            }
        };
        rule(number, Action::Count, terms)
    }
}

/// What many rules are like.
#[derive(Clone, Copy)]
enum Style {
    /// Of a border router: nets, hosts and services of all sorts.
    Mixed,
    /// The same, for packets that go out and are TCP.
    Alike,
    /// Of a server: hosts that may use one of a few services, or that may not use any.
    Server,
    /// Traffic shaping: a pipe for each customer.
    Customers,
    /// As the first, of IPv6.
    Mixed6,
}

/// Xorshift (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * u64::from(limit)) >> 32) as u32
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize].clone()
    }
}

impl Style {
    const ALL: [Self; 5] = [Self::Mixed, Self::Alike, Self::Server, Self::Customers, Self::Mixed6];

    fn name(self) -> &'static str {
        match self {
            Self::Mixed => "nets, hosts and services",
            Self::Alike => "the same, all of them TCP that goes out",
            Self::Server => "clients of a server",
            Self::Customers => "a pipe for each customer",
            Self::Mixed6 => "nets, hosts and services of IPv6",
        }
    }

    /// In real sets (ClassBench, Taylor and Turner 2007) most sources are any or nets, most destinations hosts or nets of a
    /// few sites, most destination ports one service, and most source ports any.
    fn rules(self, count: u16) -> Vec<Rule> {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let actions = [Action::Allow, Action::Deny, Action::Pipe(Argument::Number(1)), Action::Allow];
        let one = |number| {
            let terms = self.terms(number, count, &mut random);
            // One in twenty counts only, and the packet goes on.
            let action = if random.below(20) == 0 { Action::Count } else { random.one_of(&actions) };
            rule(number, action, terms)
        };
        (1..=count).map(one).collect()
    }

    fn terms(self, number: u16, count: u16, random: &mut Random) -> Vec<Term> {
        let nearly = number > count - count / 50;
        match self {
            Self::Mixed | Self::Alike | Self::Mixed6 => {
                let v6 = matches!(self, Self::Mixed6);
                let mut terms = Vec::new();
                let tcp = matches!(self, Self::Alike);
                let protocol = if tcp { 6 } else { random.one_of(&[6, 6, 6, 6, 17, 17, 1, 0]) };
                terms.extend((protocol > 0).then(|| is(Test::Protocol(protocol))));
                terms.extend(tcp.then(|| is(Test::Out)));
                // The last few are the wide ones.
                let source = if nearly { 0 } else { random.one_of(&[0, 0, 0, 8, 16, 16, 24, 24, 32, 32]) };
                let destination =
                    if nearly { 16 } else { random.one_of(&[0, 16, 24, 24, 32, 32, 32, 32, 32]) };
                if source > 0 || destination > 0 || nearly {
                    let from = hosts(site(random, 40, v6), bits(source, v6));
                    let to = hosts(site(random, 10, v6), bits(destination, v6));
                    terms.extend((source > 0).then(|| is(Test::Source(from))));
                    terms.extend((destination > 0).then(|| is(Test::Destination(to))));
                }
                if matches!(protocol, 6 | 17) {
                    let ports: RangeInclusive<u16> = match random.below(20) {
                        0..6 => 0..=65_535,
                        6..8 => 1_024..=65_535,
                        8 => 6_000..=6_063,
                        _ => {
                            let service = random.below(200) as u16 * 41 + 21;
                            service..=service
                        }
                    };
                    terms.extend((ports != (0..=65_535)).then(|| is(Test::DestinationPort(vec![ports]))));
                    terms.extend((random.below(12) == 0).then(|| is(Test::SourcePort(vec![1_024..=65_535]))));
                }
                if terms.len() < 2 && !nearly {
                    terms.push(is(Test::Destination(hosts(site(random, 10, v6), bits(32, v6)))));
                }
                terms
            }
            Self::Server => {
                let service = random.one_of(&[22u16, 80, 443, 5432]);
                vec![
                    is(Test::Protocol(6)),
                    is(Test::Source(hosts(site(random, 4_000, false), 96 + random.one_of(&[24, 32, 32])))),
                    is(Test::Destination(hosts(v4(192, 0, 2, 1), 128))),
                    is(Test::DestinationPort(vec![service..=service])),
                ]
            }
            Self::Customers => {
                let [high, low] = number.to_be_bytes();
                let customer = hosts(v4(10, high, low, 0), 120);
                vec![if number.is_multiple_of(2) {
                    is(Test::Source(customer))
                } else {
                    is(Test::Destination(customer))
                }]
            }
        }
    }

    /// Packets that match a rule, each another one.
    fn packets(self, rules: &[Rule], flows: usize) -> Vec<(FlowKey, Headers)> {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let v6 = matches!(self, Self::Mixed6);
        (0..flows)
            .map(|_| {
                let rule = &rules[random.below(rules.len() as u32) as usize];
                let mut key = key(6, site(&mut random, 40, v6), 40_000, site(&mut random, 10, v6), 80);
                let mut within = |hosts: &Addresses, own: [u8; 16]| match hosts {
                    Addresses::In(masked) => {
                        let Masked { address, mask } = masked[0];
                        let other =
                            u128::from(random.below(u32::MAX)) << 64 | u128::from(random.below(u32::MAX));
                        (address | other & !mask).to_be_bytes()
                    }
                    _ => own,
                };
                for term in &rule.terms {
                    match &term.0[0].test {
                        Test::Source(hosts) => key.source = within(hosts, key.source),
                        Test::Destination(hosts) => key.destination = within(hosts, key.destination),
                        Test::Protocol(protocol) => key.transport = *protocol,
                        Test::DestinationPort(ports) => key.destination_port = *ports[0].start(),
                        _ => {}
                    }
                }
                with_headers(key)
            })
            .collect()
    }
}

/// A host in one of so many sites.
fn site(random: &mut Random, sites: u32, v6: bool) -> u128 {
    let (site, subnet, host) = (random.below(sites), random.below(20), random.below(254) + 1);
    if v6 {
        let net = Ipv6Addr::new(0x2001, 0xdb8, site as u16, subnet as u16, 0, 0, 0, host as u16);
        return net.to_bits();
    }
    v4(20 + (site / 200) as u8, (site % 200) as u8, subnet as u8, host as u8)
}

/// As many bits of the other version's address as so many of IPv4's are in a net.
fn bits(v4: u32, v6: bool) -> u32 {
    match (v4, v6) {
        (bits, false) => 96 + bits,
        (32, true) => 128,
        (bits, true) => 24 + bits,
    }
}
