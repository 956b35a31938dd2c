//! Marks, routing tables, tables of flows, and dynamic rules that are only recorded: what ipfw(8) says of each.

use narrows_core::rules::{
    Action, Argument, Decision, Field, FlowEntry, FlowFields, Keep, Labels, NextHop, Passing, Place, Rule,
    RuleChange, RuleError, RuleSet, RuleSetConfig, Table, TableTest, Term, Test,
};
use narrows_core::{FlowKey, Headers, Protocol, Seed, Time};

const TCP: u8 = 6;
const UDP: u8 = 17;

fn rule(number: u16, action: Action, tests: impl IntoIterator<Item = Test>) -> Rule {
    Rule { terms: tests.into_iter().map(Term::from).collect(), ..Rule::new(number, action) }
}

fn number(number: u32) -> Argument {
    Argument::Number(number)
}

fn port(port: u16) -> Test {
    Test::DestinationPort(vec![port..=port])
}

fn set(rules: Vec<Rule>, tables: Vec<(&str, Table)>) -> RuleSet {
    let tables = tables.into_iter().map(|(name, table)| (name.into(), table)).collect();
    RuleSet::new(Seed(1), "net", RuleSetConfig { rules, tables, ..RuleSetConfig::default() })
        .expect("the rules are right")
}

/// From 10.0.0.1 to 10.0.1.1.
fn packet(transport: u8, ports: (u16, u16)) -> FlowKey {
    let address = |last: u128| (0xffff_0a00_0001 + last).to_be_bytes();
    FlowKey {
        source: address(0),
        destination: address(0x100),
        source_port: ports.0,
        destination_port: ports.1,
        network: Protocol::Ipv4,
        transport,
        ..FlowKey::default()
    }
}

fn walk(rules: &mut RuleSet, mut key: FlowKey, labels: &mut Labels, from: Place) -> Decision {
    let headers = Headers::plain(&key, 100);
    let mut passing = Passing {
        key: &mut key,
        whole: None,
        quoted: None,
        headers: &headers,
        length: 100,
        link_header: 14,
        incoming: false,
        labels,
        draw: &mut |stream| stream.draw(0, 1, 0, 0),
    };
    rules.walk(Time::ZERO, &mut passing, from)
}

/// The number of the pipe or queue that a packet goes to.
fn pipe(rules: &mut RuleSet, key: FlowKey) -> Option<u32> {
    match walk(rules, key, &mut Labels::default(), Place::default()) {
        Decision::Pipe { number, .. } | Decision::Queue { number, .. } => Some(number),
        Decision::Pass | Decision::Deny | Decision::Reject(_) | Decision::Translated { .. } => None,
    }
}

fn counts(rules: &RuleSet) -> Vec<(u16, u64)> {
    rules.rules().map(|view| (view.rule.number, view.counters.packets)).collect()
}

fn table(entries: &[(u32, u32)]) -> Table {
    let prefix = |number: u32| {
        narrows_core::classify::Prefix::new((0xffff_0000_0000 | u128::from(number)).to_be_bytes(), 128)
    };
    entries.iter().map(|&(key, value)| (prefix(key), value)).collect()
}

fn test_of(table: &str) -> TableTest {
    TableTest { table: table.into(), value: None }
}

/// RULE ACTIONS, setmark; RULE OPTIONS, mark value[:bitmask].
#[test]
fn a_mark_is_kept_through_pipes_and_compared_under_a_mask() {
    let mark = |value, mask| Test::Mark { value: number(value), mask };
    let mut rules = set(
        vec![
            rule(100, Action::SetMark(number(0x35)), [port(80)]),
            rule(200, Action::Pipe(number(1)), [mark(0x30, 0xf0)]),
            rule(300, Action::Deny, [mark(0x30, u32::MAX)]),
            rule(400, Action::Pipe(number(2)), [mark(0x35, u32::MAX)]),
            rule(500, Action::Pipe(number(3)), [mark(0, u32::MAX)]),
        ],
        vec![],
    );
    // Another packet has no mark, which is 0.
    assert_eq!(pipe(&mut rules, packet(TCP, (1, 81))), Some(3));
    let mut labels = Labels::default();
    let decision = walk(&mut rules, packet(TCP, (1, 80)), &mut labels, Place::default());
    let Decision::Pipe { number: 1, resume } = decision else { panic!("{decision:?}") };
    let decision = walk(&mut rules, packet(TCP, (1, 80)), &mut labels, resume);
    assert!(matches!(decision, Decision::Pipe { number: 2, .. }), "{decision:?}");
    assert_eq!(labels.mark, 0x35);
}

/// "Mark … can be looked up in a table"; the value of a lookup is a mark to set or to compare with.
#[test]
fn marks_come_from_tables_and_are_looked_up_in_them() {
    let by_port = |table: &str| Test::Lookup {
        field: Field::DestinationPort,
        mask: u128::MAX,
        table: TableTest { table: table.into(), value: None },
    };
    let by_mark = |mask| Test::Lookup { field: Field::Mark, mask, table: test_of("marks") };
    let low = u128::MAX << 32 | 0xff;
    let mut rules = set(
        vec![
            rule(100, Action::SetMark(Argument::TableArgument), [by_port("ports")]),
            rule(200, Action::Pipe(Argument::TableArgument), [by_mark(low)]),
            rule(
                300,
                Action::Pipe(number(9)),
                [by_port("wanted"), Test::Mark { value: Argument::TableArgument, mask: u32::MAX }],
            ),
        ],
        vec![
            ("ports", table(&[(80, 0x107), (81, 0x108), (82, 3)])),
            ("marks", table(&[(7, 70)])),
            ("wanted", table(&[(81, 0x108), (82, 4)])),
        ],
    );
    assert_eq!(pipe(&mut rules, packet(TCP, (1, 80))), Some(70));
    assert_eq!(pipe(&mut rules, packet(TCP, (1, 81))), Some(9));
    assert_eq!(pipe(&mut rules, packet(TCP, (1, 82))), None);

    let alone = rule(100, Action::Allow, [Test::Mark { value: Argument::TableArgument, mask: 1 }]);
    let config = RuleSetConfig { rules: vec![alone], ..RuleSetConfig::default() };
    let refused = RuleSet::new(Seed(1), "net", config).err();
    assert_eq!(refused, Some(RuleError::NoLookup { rule: 100 }));
}

/// RULE ACTIONS, setfib: "If the tablearg value is not within the compiled range of fibs, the packet's fib is set to 0."
/// RULE OPTIONS, fib: "Matches a packet that has been tagged to use the given FIB".
#[test]
fn a_routing_table_is_a_number_that_the_packet_carries() {
    let mut rules = set(
        vec![
            rule(100, Action::SetFib(number(3)), [port(80)]),
            rule(
                150,
                Action::SetFib(Argument::TableArgument),
                [Test::Lookup { field: Field::DestinationPort, mask: u128::MAX, table: test_of("fibs") }],
            ),
            rule(200, Action::Pipe(number(1)), [Test::Fib(vec![2..=3])]),
            rule(300, Action::Pipe(number(2)), [Test::Fib(vec![0..=0])]),
        ],
        vec![("fibs", table(&[(81, 2), (82, 65_536), (83, 4)]))],
    );
    let of = |rules: &mut RuleSet, to| pipe(rules, packet(UDP, (1, to)));
    assert_eq!([80, 81, 82, 83, 84].map(|to| of(&mut rules, to)), [Some(1), Some(1), Some(2), None, Some(2)]);

    let beyond = rule(100, Action::SetFib(number(65_536)), []);
    let config = RuleSetConfig { rules: vec![beyond], ..RuleSetConfig::default() };
    let refused = RuleSet::new(Seed(1), "net", config).err();
    assert_eq!(refused, Some(RuleError::Fib { rule: 100, fib: 65_536 }));
}

/// LOOKUP TABLES, flow: "Matches packet fields specified by flow type suboptions with table entries."
#[test]
fn a_table_of_flows_compares_its_fields_and_no_others() {
    let fields = FlowFields { source: true, protocol: true, destination_port: true, ..FlowFields::default() };
    let flow = |protocol, destination_port| FlowEntry {
        source: 0xffff_0a00_0001,
        protocol,
        destination_port,
        // Not a field of the table.
        source_port: 7,
        ..FlowEntry::default()
    };
    let mut flows = Table::of_flows(fields);
    assert_eq!(flows.insert_flow(flow(UDP, 53), 5), None);
    assert_eq!(flows.insert_flow(flow(UDP, 53), 6), Some(5));
    flows.insert_flow(flow(1, 0), 7);
    let mut rules = set(
        vec![
            rule(100, Action::Pipe(number(1)), [Test::Flow(TableTest { table: "f".into(), value: Some(5) })]),
            rule(200, Action::Pipe(Argument::TableArgument), [Test::Flow(test_of("f"))]),
        ],
        vec![("f", flows)],
    );
    assert_eq!(pipe(&mut rules, packet(UDP, (9, 53))), Some(6));
    assert_eq!(pipe(&mut rules, packet(TCP, (9, 53))), None);
    assert_eq!(pipe(&mut rules, packet(UDP, (9, 54))), None);
    // ICMP has no ports, which are 0: its type is none.
    assert_eq!(pipe(&mut rules, packet(1, (8 << 8, 0))), Some(7));

    let table = || "f".to_string();
    let change = |rules: &mut RuleSet, change| rules.change(Time::ZERO, change);
    let add = |value| RuleChange::FlowAdd { table: table(), flow: flow(TCP, 53), value };
    assert_eq!(change(&mut rules, add(4)), Ok(()));
    assert_eq!(change(&mut rules, add(5)), Err(RuleError::EntryExists { table: table(), value: 4 }));
    assert_eq!(pipe(&mut rules, packet(TCP, (9, 53))), Some(4));
    let delete = || RuleChange::FlowDelete { table: table(), flow: flow(TCP, 53) };
    assert_eq!(change(&mut rules, delete()), Ok(()));
    assert_eq!(change(&mut rules, delete()), Err(RuleError::NoSuchEntry { table: table() }));
    assert_eq!(change(&mut rules, RuleChange::TableFlush { table: table() }), Ok(()));
    assert_eq!(pipe(&mut rules, packet(UDP, (9, 53))), None);
    assert_eq!(change(&mut rules, add(4)), Ok(()), "it is still a table of flows");
    let other = RuleChange::FlowAdd { table: "g".into(), flow: flow(TCP, 53), value: 0 };
    assert_eq!(change(&mut rules, other), Err(RuleError::NotOfFlows { table: "g".into() }));
}

/// RULE OPTIONS, record-state: "Upon a match, the firewall will create a dynamic rule as if keep-state was specified.
/// However, this option doesn't imply an implicit check-state in contrast to keep-state."
#[test]
fn record_state_looks_no_dynamic_rule_up() {
    let keeps = Rule { keep: Some(Keep::State), ..rule(300, Action::Pipe(number(3)), [port(53)]) };
    let other = |records| Rule {
        keep: Some(Keep::State),
        records,
        ..rule(400, Action::Pipe(number(4)), [Test::Source(narrows_core::rules::Addresses::Any)])
    };
    let back = |key: FlowKey| FlowKey {
        source: key.destination,
        destination: key.source,
        source_port: key.destination_port,
        destination_port: key.source_port,
        ..key
    };
    let mut rules = set(vec![Rule { records: true, ..keeps.clone() }, other(true)], vec![]);
    assert_eq!(pipe(&mut rules, packet(UDP, (9, 53))), Some(3));
    // The answer does not find the state of rule 300, as no rule looks it up.
    assert_eq!(pipe(&mut rules, back(packet(UDP, (9, 53)))), Some(4));

    let mut rules = set(vec![Rule { records: true, ..keeps }, other(false)], vec![]);
    assert_eq!(pipe(&mut rules, packet(UDP, (9, 53))), Some(3));
    assert_eq!(pipe(&mut rules, back(packet(UDP, (9, 53)))), Some(3));
}

/// RULE OPTIONS, defer-immediate-action: "Rules with both record-state and defer-immediate-action create a dynamic rule and
/// continue with the next rule without actually performing the action part of this rule. When the rule is later activated via
/// the state table, the action is performed as usual."
#[test]
fn a_deferred_action_is_for_packets_of_the_dynamic_rule() {
    let made = Rule {
        keep: Some(Keep::State),
        records: true,
        defers: true,
        ..rule(200, Action::Pipe(number(2)), [port(80)])
    };
    let mut rules =
        set(vec![rule(100, Action::CheckState, []), made, rule(300, Action::Pipe(number(3)), [])], vec![]);
    assert_eq!(pipe(&mut rules, packet(TCP, (9, 80))), Some(3));
    assert_eq!(pipe(&mut rules, packet(TCP, (9, 80))), Some(2));
    assert_eq!(pipe(&mut rules, packet(TCP, (9, 81))), Some(3));
    assert_eq!(counts(&rules), [(100, 0), (200, 1), (300, 2), (65_535, 0)]);

    // The first rule may decide all packets, but not if its action is deferred.
    let never = Rule { defers: true, ..rule(100, Action::Deny, []) };
    let mut rules = set(vec![never, rule(200, Action::Pipe(number(5)), [])], vec![]);
    assert_eq!(pipe(&mut rules, packet(TCP, (9, 80))), Some(5));
}

/// RULE OPTIONS, lookup: a mask is "applied to the field before the lookup", also of the rule's own number.
#[test]
fn the_number_of_a_rule_is_looked_up_under_a_mask() {
    let by = |mask: u128| Test::Lookup {
        field: Field::RuleNumber,
        mask: u128::MAX << 32 | mask,
        table: test_of("numbers"),
    };
    let mut rules = set(
        vec![rule(100, Action::Pipe(number(1)), [by(0x20)]), rule(101, Action::Pipe(number(2)), [by(0x60)])],
        // 101 and 0x60 are 96.
        vec![("numbers", table(&[(96, 0), (101, 0)]))],
    );
    assert_eq!(pipe(&mut rules, packet(TCP, (1, 2))), Some(2));
}

/// RULE ACTIONS, fwd: "Change the next-hop on matching packets to ipaddr … The next hop can also be supplied by the last table
/// looked up … The search terminates if this rule matches." With a dynamic rule, the kernel forwards one way only.
#[test]
fn a_next_hop_is_for_packets_of_its_version_that_go_forward() {
    let v4 = |last: u8| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 9, last];
    let v6 = [0xfd; 16];
    let to = |port_| Test::Lookup {
        field: Field::DestinationPort,
        mask: u128::MAX,
        table: TableTest { value: Some(port_), ..test_of("hops") },
    };
    let hop = 0x0a00_0907;
    let keeping =
        Rule { keep: Some(Keep::State), ..rule(100, Action::Forward(NextHop::Address(v4(1))), [port(80)]) };
    let mut rules = set(
        vec![
            keeping,
            rule(200, Action::Forward(NextHop::TableArgument), [to(hop)]),
            rule(300, Action::Forward(NextHop::Address(v6)), [port(82)]),
            rule(400, Action::Deny, []),
        ],
        vec![("hops", table(&[(81, hop)]))],
    );
    let mut hop_of = |key: FlowKey| {
        let mut labels = Labels::default();
        let decision = walk(&mut rules, key, &mut labels, Place::default());
        (decision, labels.next_hop)
    };
    let key = packet(TCP, (9, 80));
    assert_eq!(hop_of(key), (Decision::Pass, Some(v4(1))));
    let back = FlowKey {
        source: key.destination,
        destination: key.source,
        source_port: 80,
        destination_port: 9,
        ..key
    };
    assert_eq!(hop_of(back), (Decision::Pass, None));
    assert_eq!(hop_of(packet(TCP, (9, 81))), (Decision::Pass, Some(v4(7))));
    assert_eq!(hop_of(packet(TCP, (9, 82))), (Decision::Pass, None), "not of IPv6");
    assert_eq!(hop_of(packet(TCP, (9, 83))), (Decision::Deny, None));
}
