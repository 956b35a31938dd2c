//! Public scripts as cases: those that the kernel and narrows both accept, with one plan of traffic that has the addresses,
//! ports and traffic classes that the script names.
//!
//! The scripts are those of `narrows-scenario/tests/corpus/tc.txt`.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use crate::case::{Bound, Case, Ours};
use crate::compare::Row;
use crate::traffic::{Datagram, Ends, Flow, LONGEST, merge, ms};

const TEXT: &str = include_str!("../../narrows-scenario/tests/corpus/tc.txt");
/// How far apart a packet's delay may be, in nanoseconds: rates are rounded in several places.
const NEAR: u64 = 1_000;
/// Flows of a plan.
const FLOWS: usize = 10;
/// The qdisc that a script without a rate is put into: without one no packet waits.
const BOTTLENECK: [&str; 2] = [
    "qdisc add dev near root handle f000: htb default 10",
    "class add dev near parent f000: classid f000:10 htb rate 10mbit ceil 10mbit burst 2000b cburst 2000b",
];
/// Words of a command that set a rate.
const RATES: [&str; 7] = ["rate", "bandwidth", "maxrate", "tbf", "htb", "hfsc", "cbq"];

/// Words of models that draw, or hash flows by a secret: two runs of the kernel's differ. CAKE draws how a host's turn is
/// rounded.
const RANDOM: [&str; 17] = [
    "loss",
    "duplicate",
    "corrupt",
    "reorder",
    "distribution",
    "random",
    "red",
    "gred",
    "choke",
    "pie",
    "fq_pie",
    "sfb",
    "hhf",
    "perturb",
    "sfq",
    "fq_codel",
    "cake",
];

/// A script that both accept.
#[derive(Clone, Debug)]
pub struct Public {
    /// Its line in the corpus.
    pub line: usize,
    /// Where it is from.
    pub source: &'static str,
    /// What the corpus says of its packets: `exact`, or why they are not compared.
    pub meaning: &'static str,
    commands: &'static str,
}

/// The scripts that both accept and whose words can be handed to `tc` without a shell.
pub fn scripts() -> Vec<Public> {
    let entries = TEXT.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    entries
        .filter_map(|(at, line)| {
            let columns: Vec<&str> = line.split('\t').collect();
            let ["accepted", "accepted", meaning, source, commands] = columns[..] else { return None };
            let plain = !commands.contains(['"', '\'', '$', '\\', '`', '|', '>']);
            let tc = commands
                .split("; ")
                .all(|command| command.starts_with("tc ") && !command.starts_with("tc -"));
            (plain && tc).then_some(Public { line: at + 1, source, meaning, commands })
        })
        .collect()
}

/// The corpus with `exact` at the lines of these scripts, but for those that are random, and `-` at those of all others.
pub fn marked(exact: &BTreeSet<usize>) -> String {
    let line = |(at, line): (usize, &str)| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [kernel, ours, _, source, commands] = columns[..] else { return format!("{line}\n") };
        let meaning = if exact.contains(&(at + 1)) && !is_random(commands) { "exact" } else { "-" };
        format!("{kernel}\t{ours}\t{meaning}\t{source}\t{commands}\n")
    };
    TEXT.lines().enumerate().map(line).collect()
}

fn is_random(commands: &str) -> bool {
    let words: Vec<&str> = commands.split([' ', ';']).collect();
    // `delay 10ms 2ms` has a jitter.
    let jitter = |three: &[&str]| three[0] == "delay" && three[2].starts_with(|c: char| c.is_ascii_digit());
    words.iter().any(|word| RANDOM.contains(word)) || words.windows(3).any(jitter)
}

/// The cases of a script: of its packets that leave, and of those that arrive.
pub fn cases(script: &Public) -> Vec<Case> {
    let arriving = ["ingress", "ffff:", "ifb0"].iter().any(|word| script.commands.contains(word));
    let leaving = script.commands.split("; ").any(|command| {
        command.contains("dev eth0") && !command.contains("ingress") && !command.contains("ffff:")
    });
    let mut cases = Vec::new();
    if leaving {
        cases.push(case(script, "out", "near", bottleneck(script)));
    }
    if arriving {
        cases.push(case(script, "in", "far", false));
    }
    cases
}

/// Whether packets would not wait in the script's disciplines, and it can be put into one with a rate.
fn bottleneck(script: &Public) -> bool {
    let commands = || script.commands.split("; ");
    let has = |word: &str| script.commands.split([' ', ';']).any(|other| other == word);
    !RATES.iter().any(|rate| has(rate))
        && commands().all(|command| !command.contains("filter") || command.contains("parent"))
        && commands().any(|command| command.contains(" root"))
}

fn case(script: &Public, way: &str, end: &str, bottleneck: bool) -> Case {
    let mut tc: Vec<&'static str> = Vec::new();
    if bottleneck {
        tc.extend(BOTTLENECK);
    }
    for command in script.commands.split("; ") {
        let words = command.split_whitespace().skip(1).collect::<Vec<_>>();
        if matches!(words.get(1), Some(&("show" | "ls" | "list"))) {
            continue;
        }
        let words = words.into_iter().map(|word| match word {
            "eth0" => end,
            "root" if bottleneck => "parent f000:10",
            word => word,
        });
        tc.push(kept(words.collect::<Vec<_>>().join(" ")));
    }
    let ours = if script.commands.contains("netem") { Ours::ExactNetem } else { Ours::SameWords };
    Case {
        name: kept(format!("line-{}-{way}", script.line)),
        tc,
        ours,
        traffic: traffic(script.commands),
        steady_from: 0,
        needs: None,
        bounds: vec![Bound::Fates(0), Bound::Order(0), Bound::Marks(0), Bound::Delay(NEAR, 0)],
        explanation: script.source,
    }
}

/// Cases are tables of constants; this is one that is worked out once.
fn kept(text: String) -> &'static str {
    text.leak()
}

/// A burst, a second of steady packets, a longer burst of two lengths, and single packets.
fn traffic(commands: &str) -> Vec<Datagram> {
    let flows = flows(commands);
    let mut parts = Vec::new();
    for flow in &flows {
        let n = u64::from(flow.number);
        let length = if n % 2 == 0 { LONGEST } else { 120 };
        // Not all at one instant: which one is first is then not left to the order of this loop.
        parts.push(flow.burst(n * 1_000, 14));
        parts.push(flow.mixed(ms(2_000) + n * 7_000, ms(3_000), 250));
        parts.push(flow.length(length).burst(ms(10_000) + n * 3_000, 25));
        parts.push(flow.length(400).burst(ms(10_040) + n * 1_000, 8));
        parts.extend((0..6).map(|at| flow.burst(ms(30_000) + at * ms(777) + n * 13_000, 1)));
    }
    merge(parts)
}

/// Flows that differ in what the script's filters look at.
fn flows(commands: &str) -> Vec<Flow> {
    let words: Vec<&str> = commands.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    let after = |names: &[&str]| -> BTreeSet<&str> {
        words.windows(2).filter(|pair| names.contains(&pair[0])).map(|pair| pair[1]).collect()
    };
    let mut kinds: Vec<(Ends, u8)> = [(7000, 0), (80, 0), (22, 0x10), (53, 0xb8), (7001, 0x08)]
        .map(|(port, class)| (Ends { destination_port: Some(port), ..Ends::default() }, class))
        .to_vec();
    let numbers = |names: &[&str]| after(names).into_iter().filter_map(number).collect::<Vec<u64>>();
    for port in numbers(&["dport", "dst_port"]).into_iter().filter_map(|port| u16::try_from(port).ok()) {
        kinds.push((Ends { destination_port: Some(port.max(1)), ..Ends::default() }, 0));
    }
    for port in numbers(&["sport", "src_port"]).into_iter().filter_map(|port| u16::try_from(port).ok()) {
        kinds.push((Ends { source_port: Some(port.max(1)), ..Ends::default() }, 0));
    }
    for class in
        numbers(&["tos", "dsfield", "ip_tos"]).into_iter().filter_map(|class| u8::try_from(class).ok())
    {
        kinds.push((Ends::default(), class));
    }
    let sources = after(&["src", "src_ip"]);
    for address in after(&["dst", "dst_ip"]).difference(&sources).filter_map(|word| address(word)) {
        kinds.push((Ends { destination: Some(address), ..Ends::default() }, 0));
    }
    for address in sources.iter().filter_map(|word| address(word)) {
        kinds.push((Ends { source: Some(address), ..Ends::default() }, 0));
    }
    let named = kinds.split_off(5);
    // What the script names comes first when there is not room for all.
    let kinds = named.into_iter().take(FLOWS - 3).chain(kinds).take(FLOWS);
    kinds.zip(0..).map(|((ends, class), number)| Flow::new(number).class(class).between(ends)).collect()
}

/// A case's figures on one line: kernel, narrows, how far apart.
pub fn words(rows: &[Row]) -> String {
    let words = |row: &Row| {
        let mark = if row.holds { "" } else { " !" };
        format!("{}: {} / {}, {}{mark}", row.what, row.kernel, row.narrows, row.apart)
    };
    rows.iter().map(words).collect::<Vec<_>>().join(" | ")
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// A host of this network that packets can come from and go to.
fn address(word: &str) -> Option<Ipv4Addr> {
    let (address, length) = word.split_once('/').unwrap_or((word, "32"));
    let (address, length): (Ipv4Addr, u32) = (address.parse().ok()?, length.parse().ok()?);
    let host = if length < 31 { address.to_bits() | 1 } else { address.to_bits() };
    let host = Ipv4Addr::from_bits(host);
    let ordinary =
        !host.is_loopback() && !host.is_multicast() && host.octets()[0] != 0 && host.octets()[0] < 240;
    (ordinary && host.octets()[..3] != [10, 213, 0]).then_some(host)
}
