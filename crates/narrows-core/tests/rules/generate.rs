//! Random rules, packets and changes, from few addresses and ports, so that much of it meets.

use std::ops::RangeInclusive;

use narrows_core::classify::Prefix;
use narrows_core::rules::{
    Action, Addresses, Answer, Argument, By, Field, Flags, FlowEntry, FlowFields, Keep, Labels, Literal,
    Masked, NextHop, Rule, RuleSetConfig, Side, SpecialKey, StateConfig, Table, TableTest, Tag, Term, Test,
    Tos,
};
use narrows_core::{Duration, FlowKey, Headers, Probability, Protocol};

use super::oracle::Walker;
use super::random::Random;

/// What rules of a set are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Style {
    /// Everything that there is.
    Wild,
    /// Addresses, ports and protocols, as in real sets, and few actions that go on.
    Plain,
    /// The same, and all for one direction, protocol and destination.
    Alike,
}

pub(crate) const TABLES: [&str; 4] = ["1", "2", "3", "hosts"];

const PROTOCOLS: [u8; 8] = [6, 6, 6, 17, 17, 1, 58, 132];

fn v4(random: &mut Random) -> u128 {
    let [a, b, c] = [random.below(3), random.below(3), random.below(12)].map(u128::from);
    0xffff_0a00_0000 | a << 16 | b << 8 | c
}

fn v6(random: &mut Random) -> u128 {
    let [a, b] = [random.below(3), random.below(8)].map(u128::from);
    0x2001_0db8_0000_0000_0000_0000_0000_0000 | a << 64 | b
}

fn address(random: &mut Random, is_v6: bool) -> u128 {
    if is_v6 { v6(random) } else { v4(random) }
}

fn prefix_mask(bits: u32) -> u128 {
    if bits == 0 { 0 } else { u128::MAX << (128 - bits) }
}

fn masked(random: &mut Random) -> Masked {
    let is_v6 = random.percent(20);
    let mask = if is_v6 {
        prefix_mask(random.one_of(&[128, 128, 127, 64, 48, 0]))
    } else if random.percent(8) {
        // Bits that are not side by side.
        u128::MAX ^ u128::from(random.one_of(&[0x0000_ff00u32, 0x0000_00f0, 0xffff_fffe, 0x0055_00aa]))
    } else {
        prefix_mask(random.one_of(&[128, 128, 128, 127, 126, 120, 112, 104, 96]))
    };
    Masked { address: address(random, is_v6) & mask, mask }
}

fn hosts(random: &mut Random, style: Style) -> Addresses {
    let list = |random: &mut Random, most| {
        Addresses::In((0..1 + random.below(most)).map(|_| masked(random)).collect())
    };
    match (style, random.below(20)) {
        (Style::Wild, 0) => Addresses::Any,
        (Style::Wild, 1..3) => Addresses::Me,
        (Style::Wild, 3..6) => Addresses::Table(table_test(random)),
        (Style::Wild, 6..10) => list(random, 5),
        (_, 19) => list(random, 3),
        _ => list(random, 1),
    }
}

fn table_test(random: &mut Random) -> TableTest {
    let value = random.percent(25).then(|| random.below(6) as u32);
    TableTest { table: random.one_of(&TABLES).into(), value }
}

fn port(random: &mut Random) -> u16 {
    random.one_of(&[0, 1, 7, 22, 53, 80, 443, 1023, 1024, 5001, 40_000, 65_535])
}

fn range(random: &mut Random) -> RangeInclusive<u16> {
    let (a, b) = (port(random), port(random));
    match random.below(4) {
        0 => a.min(b)..=a.max(b),
        1 => random.one_of(&[0..=1023, 1024..=65_535, 0..=65_535, 1..=65_534, 7..=8]),
        _ => a..=a,
    }
}

fn ranges(random: &mut Random) -> Vec<RangeInclusive<u16>> {
    let count = 1 + random.below(10).saturating_sub(7);
    (0..count).map(|_| range(random)).collect()
}

fn small(random: &mut Random, most: u64) -> Vec<RangeInclusive<u16>> {
    let (a, b) = (random.below(most) as u16, random.below(most) as u16);
    vec![a.min(b)..=a.max(b)]
}

fn link_address(random: &mut Random) -> [u8; 6] {
    [2, 0, 0, 0, 0, random.below(3) as u8]
}

fn bitmap(random: &mut Random) -> [u64; 4] {
    let mut set = [0; 4];
    for _ in 0..1 + random.below(3) {
        let kind = random.one_of(&[0usize, 3, 8, 11, 128, 129, 135]);
        set[kind / 64] |= 1 << (kind % 64);
    }
    set
}

fn flags(random: &mut Random) -> u8 {
    random.one_of(&[1, 2, 4, 16, 18, 0])
}

/// What most published rules have.
fn common(random: &mut Random, style: Style) -> Test {
    match random.below(10) {
        0..2 => Test::Protocol(random.one_of(&PROTOCOLS)),
        2..5 => Test::Source(hosts(random, style)),
        5..8 => Test::Destination(hosts(random, style)),
        8 => Test::SourcePort(ranges(random)),
        _ => Test::DestinationPort(ranges(random)),
    }
}

fn test(random: &mut Random, style: Style) -> Test {
    if style != Style::Wild || random.percent(45) {
        return common(random, style);
    }
    let table = table_test(random);
    match random.below(45) {
        0 => Test::Any,
        1 => Test::Never,
        2 => Test::IpVersion(random.one_of(&[4, 4, 6, 5])),
        3..5 => Test::In,
        5..7 => Test::Out,
        7 => Test::Layer2,
        8 => Test::LinkSource { address: link_address(random), mask: [0xff, 0, 0, 0, 0, 0xff] },
        9 => Test::LinkDestination { address: link_address(random), mask: [0xff; 6] },
        10 => Test::EtherType(vec![random.one_of(&[0x800..=0x800, 0x86dd..=0x86dd, 0x600..=0xffff])]),
        11 => Test::Length(small(random, 1600)),
        12 => Test::HopLimit(small(random, 70)),
        13 => Test::Tos(Tos { set: random.one_of(&[0, 0x10, 4]), clear: random.one_of(&[0, 8, 4, 0x80]) }),
        14 => Test::Dscp(random.next() | random.next() << 32),
        15 => Test::Precedence(random.below(9) as u8),
        16 => Test::Fragment,
        17 => Test::Setup,
        18 => Test::Established,
        19 => Test::TcpFlags { set: flags(random), clear: flags(random) },
        20 => Test::TcpDataLength(small(random, 1500)),
        21 => Test::IcmpType(bitmap(random)),
        22 => Test::Icmp6Type(bitmap(random)),
        23..25 => Test::Tagged(small(random, 5)),
        25 => {
            let fields = [
                Field::Source,
                Field::Destination,
                Field::SourcePort,
                Field::DestinationPort,
                Field::Dscp,
                Field::Mark,
                Field::RuleNumber,
            ];
            let mask = random.one_of(&[u128::MAX, u128::MAX, !0xff, !0xff00, u128::MAX << 8 | 0b101]);
            Test::Lookup { field: random.one_of(&fields), mask, table }
        }
        26 => Test::FragmentBits(bits(random, &[0x80, 0x40, 0x20, 1])),
        27 => Test::IpId(vec![0..=random.below(4) as u16]),
        28 => Test::IpOptions(bits(random, &[1, 2, 4, 8])),
        29 => Test::TcpSequence(random.below(2) as u32),
        30 => Test::TcpAcknowledgement(random.below(2) as u32),
        31 => Test::TcpWindow(vec![random.below(2) as u16..=2]),
        32 => Test::TcpMss(vec![0..=random.below(3) as u16]),
        33 => Test::TcpOptions(bits(random, &[1, 2, 4, 8])),
        34 => Test::ExtensionHeader(random.one_of(&[1, 2, 0x14, 0x80])),
        35..38 => {
            let fields = [
                Field::LinkSource,
                Field::LinkDestination,
                Field::RuleNumber,
                Field::Received,
                Field::Sent,
                Field::Via,
            ];
            Test::Lookup { field: random.one_of(&fields), mask: u128::MAX, table }
        }
        38..40 => {
            Test::Mark { value: Argument::Number(mark(random)), mask: random.one_of(&[u32::MAX, 1, 6]) }
        }
        40..42 => Test::Fib(small(random, 4)),
        42..44 => Test::Flow(TableTest { table: FLOWS.into(), value: table.value }),
        _ => Test::FlowLabel(vec![random.below(4) as u32, random.below(4) as u32]),
    }
}

/// Few of them, so that they meet.
fn mark(random: &mut Random) -> u32 {
    random.one_of(&[0, 1, 2, 7, 0x10])
}

/// A table of flows.
pub(crate) const FLOWS: &str = "flows";

fn flows(random: &mut Random) -> Table {
    let fields = FlowFields {
        source: random.percent(40),
        protocol: random.percent(60),
        source_port: random.percent(30),
        destination: random.percent(60),
        destination_port: random.percent(30),
    };
    let mut table = Table::of_flows(fields);
    for _ in 0..random.below(30) {
        let is_v6 = random.percent(20);
        let flow = FlowEntry {
            source: address(random, is_v6),
            destination: address(random, is_v6),
            protocol: random.one_of(&PROTOCOLS),
            source_port: port(random),
            destination_port: port(random),
        };
        table.insert_flow(flow, random.below(6) as u32);
    }
    table
}

fn bits(random: &mut Random, all: &[u8]) -> Flags {
    let (set, clear) = (random.one_of(all), random.one_of(all));
    if random.percent(50) { Flags { set, clear: 0 } } else { Flags { set: 0, clear: clear | set } }
}

fn term(random: &mut Random, style: Style) -> Term {
    let literals = 1 + random.below(12).saturating_sub(9);
    let not = if style == Style::Wild { 15 } else { 4 };
    Term((0..literals).map(|_| Literal { not: random.percent(not), test: test(random, style) }).collect())
}

fn looks_up(terms: &[Term]) -> bool {
    terms.iter().flat_map(|term| &term.0).any(|literal| match &literal.test {
        Test::Lookup { .. } | Test::Flow(_) => true,
        Test::Source(addresses) | Test::Destination(addresses) => matches!(addresses, Addresses::Table(_)),
        _ => false,
    })
}

fn action(random: &mut Random, style: Style, number: u16, argument: bool) -> Action {
    let chosen = |random: &mut Random, number| {
        if argument && random.percent(60) { Argument::TableArgument } else { Argument::Number(number) }
    };
    let ahead = u32::from(number) + 1 + random.below(1_500) as u32;
    let anywhere = random.below(6_500) as u32;
    let one = random.below(5) as u32;
    let goes_on = if style == Style::Wild { 60 } else { 12 };
    if random.percent(goes_on) {
        return match random.below(22) {
            0..7 => Action::Count,
            7 => {
                let mark = mark(random);
                Action::SetMark(chosen(random, mark))
            }
            8 => {
                let fib = random.below(4) as u32;
                Action::SetFib(chosen(random, fib))
            }
            9..12 => Action::SkipTo(chosen(random, ahead)),
            12..14 => Action::Call(chosen(random, anywhere)),
            14..16 => Action::Return,
            16..18 => {
                let dscp = random.below(64) as u32;
                Action::SetDscp(chosen(random, dscp))
            }
            _ => Action::CheckState,
        };
    }
    match random.below(4) {
        0 if random.percent(30) => Action::Forward(match argument && random.percent(50) {
            true => NextHop::TableArgument,
            false => {
                let is_v6 = random.percent(50);
                NextHop::Address(address(random, is_v6).to_be_bytes())
            }
        }),
        0 => Action::Allow,
        1 if random.percent(30) => Action::Reject(Answer::Unreachable(random.below(16) as u8)),
        1 => Action::Deny,
        2 => Action::Pipe(chosen(random, one)),
        _ => Action::Queue(chosen(random, one)),
    }
}

pub(crate) fn rule(random: &mut Random, style: Style, numbers: u64) -> Rule {
    let number = 100 + 10 * random.below(numbers) as u16;
    let most = if style == Style::Wild { 4 } else { 5 };
    let mut terms: Vec<_> = (0..1 + random.below(most)).map(|_| term(random, style)).collect();
    if style == Style::Alike {
        terms.push(Term::from(Test::Protocol(6)));
        terms.push(Term::from(Test::In));
        terms.push(Term::from(Test::Destination(Addresses::In(vec![Masked {
            address: 0xffff_0a00_0000,
            mask: prefix_mask(120),
        }]))));
    }
    let action = action(random, style, number, looks_up(&terms));
    let by = By {
        source: random.percent(60),
        source_port: random.percent(20),
        destination: random.percent(40),
        destination_port: random.percent(20),
    };
    let limit = Keep::Limit { most: 1 + random.below(3) as u32, by };
    let stateful = if style == Style::Wild { 12 } else { 2 };
    let keep = random.percent(stateful).then(|| random.one_of(&[Keep::State, limit]));
    let tag = random.below(5) as u16 + 1;
    let rare = if style == Style::Wild { 12 } else { 2 };
    Rule {
        number,
        set: random.one_of(&[0, 0, 0, 1, 2, 31]),
        probability: random
            .percent(rare)
            .then(|| Probability::from_ratio(random.below(101), 100).expect("a percentage")),
        action,
        log: random.percent(5),
        tag: random.percent(rare).then(|| random.one_of(&[Tag::Add(tag), Tag::Add(tag), Tag::Remove(tag)])),
        terms,
        keep: keep.filter(|_| action != Action::CheckState),
        records: random.percent(20),
        defers: action != Action::CheckState && random.percent(if keep.is_some() { 25 } else { 1 }),
        comment: None,
    }
}

pub(crate) fn prefix(random: &mut Random) -> Prefix {
    if random.percent(20) {
        // The numbers of ports and code points.
        return Prefix::new((0xffff_0000_0000 | u128::from(port(random))).to_be_bytes(), 128);
    }
    if random.percent(20) {
        return special(random).prefix().expect("a key");
    }
    let one = masked(random);
    Prefix::new(one.address.to_be_bytes(), one.mask.leading_ones() as u8)
}

fn special(random: &mut Random) -> SpecialKey {
    match random.percent(50) {
        true => SpecialKey::LinkAddress {
            address: if random.percent(80) { link_address(random) } else { [2, 0, 0, 0, 0, 0] },
            bits: random.one_of(&[48, 48, 40]),
        },
        false => SpecialKey::Interface {
            side: random.one_of(&[Side::Inside, Side::Outside, Side::Elsewhere]),
            name: random.one_of(&["em0", "em1", "a-name-of-15-by"]).into(),
        },
    }
}

fn table(random: &mut Random) -> Table {
    let mut table = Table::default();
    for _ in 0..random.below(12) {
        let value = random.below(6) as u32;
        let value = if random.percent(20) { 100 + 1_000 * value } else { value };
        table.insert(prefix(random), value);
    }
    table
}

pub(crate) fn me(random: &mut Random) -> Vec<Masked> {
    (0..random.below(3))
        .map(|_| {
            let is_v6 = random.percent(30);
            Masked { address: address(random, is_v6), mask: u128::MAX }
        })
        .collect()
}

pub(crate) fn config(random: &mut Random, style: Style, rules: u64) -> RuleSetConfig {
    let tables = TABLES[..random.below(5) as usize].iter().map(|&name| (name.into(), table(random)));
    let mut tables: Vec<(String, Table)> = tables.collect();
    tables.push((FLOWS.into(), flows(random)));
    let numbers = (rules * 2).clamp(20, 6_000);
    RuleSetConfig {
        rules: (0..rules).map(|_| rule(random, style, numbers)).collect(),
        tables,
        nats: Vec::new(),
        me: me(random),
        states: StateConfig {
            most: random.one_of(&[3, 40, 40]),
            // Short, so that some end within a run.
            tcp_syn: Duration::from_micros(200),
            tcp_established: Duration::from_micros(900),
            udp: Duration::from_micros(300),
            other: Duration::from_micros(100),
            ..StateConfig::default()
        },
        disabled_sets: random.one_of(&[0, 0, 2, 6]),
    }
}

pub(crate) fn walker(random: &mut Random) -> Walker {
    let is_v6 = random.percent(20);
    let transport = random.one_of(&PROTOCOLS);
    let (mut source_port, mut destination_port) = (port(random), port(random));
    if matches!(transport, 1 | 58) {
        source_port = u16::from(random.one_of(&[0u8, 3, 8, 11, 128, 129, 135])) << 8;
        destination_port = 0;
    }
    let is_later_fragment = random.percent(5);
    if is_later_fragment {
        (source_port, destination_port) = (0, 0);
    }
    let tcp = transport == 6 && !is_later_fragment;
    let mut key = FlowKey {
        source: address(random, is_v6).to_be_bytes(),
        destination: address(random, is_v6).to_be_bytes(),
        mark: 0,
        source_port,
        destination_port,
        network: if is_v6 {
            Protocol::Ipv6
        } else {
            random.one_of(&[Protocol::Ipv4, Protocol::Ipv4DontFragment])
        },
        transport,
        traffic_class: random.below(256) as u8,
        tcp_flags: if tcp { random.one_of(&[2, 18, 16, 17, 4, 16, 16]) } else { 0 },
    };
    let link_header = random.one_of(&[0, 14, 14, 18]);
    let mut headers = Headers {
        hop_limit: random.below(70) as u8,
        tcp_data_length: if tcp { random.below(1500) as u16 } else { 0 },
        flow_label: if is_v6 { random.below(4) as u32 } else { 0 },
        is_later_fragment,
        ..Headers::default()
    };
    if is_v6 {
        headers.extension_headers = random.one_of(&[0, 0, 1, 2, 0x44]);
    } else {
        headers.fragment = random.one_of(&[0, 0, 0x20, 0x80]) | u8::from(is_later_fragment);
        headers.ip_id = random.below(4) as u16;
        headers.ip_options = random.one_of(&[0, 0, 1, 2, 4, 12, 0x84]);
    }
    if tcp {
        headers.tcp_sequence = random.below(3) as u32;
        headers.tcp_acknowledgement = random.below(3) as u32;
        headers.tcp_window = random.below(4) as u16;
        headers.tcp_options = random.one_of(&[0, 1, 2, 9, 15]);
        headers.tcp_mss = random.below(4) as u16;
    }
    if random.percent(3) {
        (key, headers) = (FlowKey::default(), Headers::default());
    }
    if link_header > 0 {
        headers.link_source = link_address(random);
        headers.link_destination = link_address(random);
        headers.ether_type = match key.network {
            Protocol::Other => 0x806,
            Protocol::Ipv6 => 0x86dd,
            _ => 0x800,
        };
    }
    let tags = if random.percent(10) { vec![random.below(5) as u16 + 1] } else { Vec::new() };
    let (mark, fib) = if random.percent(10) { (mark(random), random.below(4) as u16) } else { (0, 0) };
    Walker {
        key,
        headers,
        length: 40 + random.below(1_560) as u32,
        link_header,
        incoming: random.percent(50),
        labels: Labels { tags, mark, fib, next_hop: None },
    }
}
