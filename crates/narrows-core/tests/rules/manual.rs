//! What ipfw(8) says, case by case. Each test names the section.

use narrows_core::classify::Prefix;
use narrows_core::rules::{
    Action, Addresses, Argument, By, Decision, Field, Keep, Labels, Masked, Passing, Place, Rule, RuleChange,
    RuleSet, RuleSetConfig, StateKind, Table, TableTest, Tag, Term, Test, Which,
};
use narrows_core::{Duration, FlowKey, Headers, Probability, Protocol, Seed, Stream, Time};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const LENGTH: u32 = 100;

fn rule(number: u16, action: Action, tests: impl IntoIterator<Item = Test>) -> Rule {
    Rule { terms: tests.into_iter().map(Term::from).collect(), ..Rule::new(number, action) }
}

fn keeping(rule: Rule, keep: Keep) -> Rule {
    Rule { keep: Some(keep), ..rule }
}

fn v4(a: u8, b: u8, c: u8, d: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

fn net(address: [u8; 16], bits: u8) -> Addresses {
    let bits = u128::MAX << (32 - bits);
    Addresses::In(vec![Masked { address: u128::from_be_bytes(address) & bits, mask: bits }])
}

fn number(number: u32) -> Argument {
    Argument::Number(number)
}

/// A segment from 10.0.0.1 to 10.0.1.1, or a datagram.
fn packet(transport: u8, ports: (u16, u16), tcp_flags: u8) -> FlowKey {
    FlowKey {
        source: v4(10, 0, 0, 1),
        destination: v4(10, 0, 1, 1),
        source_port: ports.0,
        destination_port: ports.1,
        network: Protocol::Ipv4,
        transport,
        tcp_flags,
        ..FlowKey::default()
    }
}

fn back(key: FlowKey) -> FlowKey {
    FlowKey {
        source: key.destination,
        destination: key.source,
        source_port: key.destination_port,
        destination_port: key.source_port,
        ..key
    }
}

struct Host {
    rules: RuleSet,
    now: Time,
    packets: u64,
}

impl Host {
    fn new(rules: Vec<Rule>) -> Self {
        Self::with(RuleSetConfig { rules, ..RuleSetConfig::default() })
    }

    fn with(config: RuleSetConfig) -> Self {
        let rules = RuleSet::new(Seed(4), "host", config).expect("the rules are right");
        Self { rules, now: Time::ZERO, packets: 0 }
    }

    fn walk(&mut self, key: FlowKey) -> Decision {
        self.walk_from(&mut key.clone(), &mut Labels::default(), Place::default())
    }

    fn walk_from(&mut self, key: &mut FlowKey, labels: &mut Labels, from: Place) -> Decision {
        let headers = Headers::plain(key, LENGTH);
        self.packets += 1;
        let nth = self.packets;
        let mut passing = Passing {
            key,
            whole: None,
            quoted: None,
            headers: &headers,
            length: LENGTH,
            link_header: 14,
            incoming: false,
            labels,
            draw: &mut |stream: &Stream| stream.draw(0, nth, 0, 0),
        };
        self.rules.walk(self.now, &mut passing, from)
    }

    fn later(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    /// Packets that each rule has counted, by number.
    fn counts(&self) -> Vec<(u16, u64)> {
        self.rules.rules().map(|view| (view.rule.number, view.counters.packets)).collect()
    }

    fn numbers(&self) -> Vec<u16> {
        self.rules.rules().map(|view| view.rule.number).collect()
    }
}

/// Whether a decision is that pipe.
fn is_pipe(decision: Decision, pipe: u32) -> bool {
    matches!(decision, Decision::Pipe { number, .. } if number == pipe)
}

/// DESCRIPTION: "multiple rules with the same number are permitted, in which case they are processed in order of insertion"
#[test]
fn rules_of_one_number_are_tried_in_the_order_of_insertion() {
    let mut host = Host::new(vec![
        rule(200, Action::Deny, []),
        rule(100, Action::Pipe(number(1)), []),
        rule(100, Action::Pipe(number(2)), []),
    ]);
    assert!(is_pipe(host.walk(packet(UDP, (1, 2), 0)), 1));
    assert_eq!(host.numbers(), [100, 100, 200, 65_535]);
}

/// RULE FORMAT: "Automatic rule numbers are assigned by incrementing the last non-default rule number by […] 100. If this is
/// not possible […], the number of the last non-default value is used instead."
#[test]
fn automatic_numbers_are_a_hundred_on_or_the_last_one() {
    let mut host = Host::new(vec![rule(0, Action::Count, []), rule(250, Action::Count, [])]);
    for _ in 0..2 {
        host.rules.change(host.now, RuleChange::Add(rule(0, Action::Count, []))).unwrap();
    }
    host.rules.change(host.now, RuleChange::Add(rule(65_500, Action::Count, []))).unwrap();
    host.rules.change(host.now, RuleChange::Add(rule(0, Action::Count, []))).unwrap();
    assert_eq!(host.numbers(), [100, 250, 350, 450, 65_500, 65_500, 65_535]);
}

/// RULE ACTIONS, skipto: "The search continues with the first rule numbered number or higher."
#[test]
fn skipto_leads_to_the_first_rule_of_the_number_or_higher() {
    let mut host = Host::new(vec![
        rule(100, Action::SkipTo(number(250)), []),
        rule(200, Action::Deny, []),
        rule(300, Action::Pipe(number(3)), []),
    ]);
    assert!(is_pipe(host.walk(packet(UDP, (1, 2), 0)), 3));
    assert_eq!(host.counts(), [(100, 1), (200, 0), (300, 1), (65_535, 0)]);
}

/// RULE ACTIONS, call: "the processing returns to the first rule with number of this call rule plus one or higher", "Rule
/// with any number could be called"
#[test]
fn return_goes_behind_the_number_of_the_call() {
    let mut host = Host::new(vec![
        rule(100, Action::SkipTo(number(1000)), []),
        rule(500, Action::Count, []),
        rule(510, Action::Return, []),
        rule(520, Action::Deny, []),
        rule(1000, Action::Call(number(500)), []),
        rule(1000, Action::Deny, []),
        rule(1001, Action::Pipe(number(1)), []),
    ]);
    assert!(is_pipe(host.walk(packet(UDP, (1, 2), 0)), 1));
    let counted = host.counts().into_iter().filter(|&(_, packets)| packets == 1).map(|(number, _)| number);
    assert_eq!(counted.collect::<Vec<_>>(), [100, 500, 510, 1000, 1001]);
}

/// RULE ACTIONS, call: "both call and return actions don't do any jumps and simply go to the next rule if memory cannot be
/// allocated or stack overflowed/underflowed […] currently has size of 16 entries"
#[test]
fn a_call_beyond_sixteen_goes_to_the_next_rule() {
    let mut host = Host::new(vec![
        rule(50, Action::Return, []),
        rule(100, Action::Call(number(100)), []),
        rule(200, Action::Pipe(number(1)), []),
    ]);
    assert!(is_pipe(host.walk(packet(UDP, (1, 2), 0)), 1));
    assert_eq!(host.counts(), [(50, 1), (100, 17), (200, 1), (65_535, 0)]);
}

/// RULE ACTIONS, check-state: "If a match is found, execute the action associated with the rule which generated this dynamic
/// rule, otherwise move to the next rule."; STATEFUL FIREWALL, the closed configuration.
#[test]
fn a_closed_firewall_lets_answers_to_the_inside_in() {
    let inside = Test::Source(net(v4(10, 0, 0, 0), 24));
    let mut host = Host::new(vec![
        rule(100, Action::CheckState, []),
        keeping(rule(200, Action::Allow, [Test::Protocol(TCP), inside, Test::Setup]), Keep::State),
        rule(300, Action::Deny, [Test::Protocol(TCP)]),
    ]);
    let open = packet(TCP, (1024, 80), SYN);
    assert_eq!(host.walk(back(FlowKey { tcp_flags: SYN | ACK, ..open })), Decision::Deny);
    assert_eq!(host.walk(open), Decision::Pass);
    assert_eq!(host.walk(back(FlowKey { tcp_flags: SYN | ACK, ..open })), Decision::Pass);
    assert_eq!(host.walk(FlowKey { tcp_flags: ACK, ..open }), Decision::Pass);
    host.later(299_999);
    assert_eq!(host.walk(back(FlowKey { tcp_flags: ACK, ..open })), Decision::Pass);
    assert_eq!(host.walk(FlowKey { source_port: 1025, tcp_flags: ACK, ..open }), Decision::Deny);
    host.later(300_000);
    assert_eq!(host.walk(back(FlowKey { tcp_flags: ACK, ..open })), Decision::Deny);
    // Those of the flow are counted where its rule is.
    assert_eq!(host.counts(), [(100, 0), (200, 4), (300, 3), (65_535, 0)]);
}

/// STATEFUL FIREWALL: "Dynamic rules will be checked at the first check-state, keep-state or limit occurrence"
#[test]
fn without_check_state_dynamic_rules_count_at_the_first_keep_state() {
    let of = |port| Test::SourcePort(vec![port..=port]);
    let mut host = Host::new(vec![
        rule(100, Action::Count, []),
        keeping(rule(200, Action::Allow, [of(9)]), Keep::State),
        rule(300, Action::Deny, [Test::Source(net(v4(10, 0, 1, 1), 32))]),
        keeping(rule(400, Action::Pipe(number(4)), [of(7)]), Keep::State),
    ]);
    assert!(is_pipe(host.walk(packet(UDP, (7, 53), 0)), 4));
    // The answer meets rule 200, which does not match it, but asks for dynamic rules before 300 is tried.
    assert!(is_pipe(host.walk(back(packet(UDP, (7, 53), 0))), 4));
    assert_eq!(host.counts(), [(100, 2), (200, 0), (300, 0), (400, 2), (65_535, 0)]);
}

/// RULE FORMAT, prob: "this condition is checked before any other condition, including ones such as keep-state or
/// check-state which might have side effects"
#[test]
fn no_dynamic_rule_without_luck() {
    let probability = Probability::from_ratio(1, 2);
    let luck = Rule { probability, ..rule(100, Action::Allow, []) };
    let mut host = Host::new(vec![keeping(luck, Keep::State), rule(200, Action::Deny, [])]);
    let passed = (0..1000).filter(|&port| host.walk(packet(UDP, (port, 53), 0)) == Decision::Pass).count();
    assert_eq!(host.rules.states(host.now).len(), passed);
    // Five standard deviations.
    assert!((421..=579).contains(&passed), "{passed} of 1000");
    // A packet of such a flow needs luck again to be asked for.
    let again = (0..1000).filter(|&port| host.walk(packet(UDP, (port, 53), 0)) == Decision::Pass).count();
    assert!((421..=579).contains(&again), "{again} of 1000");
}

/// SETS OF RULES: "When you disable a set, its rules behave as if they do not exist […], with only one exception: dynamic
/// rules created from a rule before it had been disabled will still be active until they expire. In order to delete dynamic
/// rules you have to explicitly delete the parent rule which generated them."
#[test]
fn dynamic_rules_outlive_their_sets_but_not_their_rules() {
    let made = Rule { set: 5, ..keeping(rule(200, Action::Allow, []), Keep::State) };
    let mut host =
        Host::new(vec![rule(100, Action::CheckState, []), made, rule(300, Action::Deny, [Test::Any])]);
    assert_eq!(host.walk(packet(UDP, (7, 53), 0)), Decision::Pass);
    host.rules.change(host.now, RuleChange::Sets { enable: 0, disable: 1 << 5 }).unwrap();
    assert_eq!(host.walk(packet(UDP, (7, 53), 0)), Decision::Pass);
    assert_eq!(host.walk(packet(UDP, (8, 53), 0)), Decision::Deny);
    let which = Which { numbers: Some(200..=200), set: None };
    host.rules.change(host.now, RuleChange::Delete(which)).unwrap();
    assert_eq!(host.walk(packet(UDP, (7, 53), 0)), Decision::Deny);
}

/// "DYNAMIC RULES": "allow each host on a /24 network to open at most 10 TCP connections"
#[test]
fn limits_deny_the_connection_beyond() {
    let limit = Keep::Limit { most: 10, by: By { source: true, ..By::default() } };
    let tests = [Test::Protocol(TCP), Test::Source(net(v4(10, 0, 0, 0), 24)), Test::Setup];
    let mut host = Host::new(vec![keeping(rule(100, Action::Allow, tests), limit)]);
    for port in 0..10 {
        assert_eq!(host.walk(packet(TCP, (port, 80), SYN)), Decision::Pass);
    }
    assert_eq!(host.walk(packet(TCP, (10, 80), SYN)), Decision::Deny);
    let other = FlowKey { source: v4(10, 0, 0, 2), ..packet(TCP, (10, 80), SYN) };
    assert_eq!(host.walk(other), Decision::Pass);
    // Another that is refused is none of a dynamic rule, and none is made.
    let states = host.rules.states(host.now);
    assert_eq!(states.iter().filter(|view| view.kind == StateKind::Limited).count(), 11);
    assert_eq!(host.rules.exceeded().states.limit, 1);
}

/// STATEFUL FIREWALL: "the action performed upon a match will be the same as in the parent rule". The parent's action was to
/// send the packet into the pipe that the table has for it.
#[test]
fn a_dynamic_rule_keeps_the_argument_of_its_table() {
    let table = Table::from_iter([(Prefix::new(v4(10, 0, 0, 0), 96 + 24), 7)]);
    let from = Test::Source(Addresses::Table(TableTest { table: "1".into(), value: None }));
    let shaped = rule(100, Action::Pipe(Argument::TableArgument), [from]);
    let mut host = Host::with(RuleSetConfig {
        rules: vec![keeping(shaped, Keep::State)],
        tables: vec![("1".into(), table)],
        ..RuleSetConfig::default()
    });
    let there = packet(UDP, (1024, 53), 0);
    assert!(is_pipe(host.walk(there), 7));
    assert!(is_pipe(host.walk(there), 7), "the second packet of the flow");
    assert!(is_pipe(host.walk(back(there)), 7), "the answer");
}

/// LOOKUP TABLES: "When looking up an IP address in a table, the most specific entry will match"; "tablearg" gives the pipe.
#[test]
fn tables_lead_to_pipes() {
    let entries = [
        (Prefix::new(v4(192, 168, 2, 0), 96 + 24), 1),
        (Prefix::new(v4(192, 168, 0, 0), 96 + 27), 4),
        (Prefix::new(v4(192, 168, 0, 2), 128), 1),
    ];
    let from = Test::Source(Addresses::Table(TableTest { table: "1".into(), value: None }));
    let mut host = Host::with(RuleSetConfig {
        rules: vec![rule(100, Action::Pipe(Argument::TableArgument), [from])],
        tables: vec![("1".into(), Table::from_iter(entries))],
        ..RuleSetConfig::default()
    });
    let mut of = |source| host.walk(FlowKey { source, ..packet(UDP, (1, 2), 0) });
    assert!(is_pipe(of(v4(192, 168, 2, 200)), 1));
    assert!(is_pipe(of(v4(192, 168, 0, 30)), 4));
    assert!(is_pipe(of(v4(192, 168, 0, 2)), 1));
    assert_eq!(of(v4(192, 168, 0, 32)), Decision::Pass);
}

/// LOOKUP TABLES: "If two tables are used in a rule, the result of the second (destination) is used."
#[test]
fn the_second_table_gives_the_argument() {
    let table = |name: &str| TableTest { table: name.into(), value: None };
    let tests = [Test::Source(Addresses::Table(table("1"))), Test::Destination(Addresses::Table(table("2")))];
    let mut host = Host::with(RuleSetConfig {
        rules: vec![rule(100, Action::Pipe(Argument::TableArgument), tests)],
        tables: vec![
            ("1".into(), Table::from_iter([(Prefix::new(v4(10, 0, 0, 1), 128), 11)])),
            ("2".into(), Table::from_iter([(Prefix::new(v4(10, 0, 1, 1), 128), 22)])),
        ],
        ..RuleSetConfig::default()
    });
    assert!(is_pipe(host.walk(packet(UDP, (1, 2), 0)), 22));
}

/// RULE OPTIONS, lookup: "Otherwise, the match succeeds and tablearg is set to the value extracted from the table."; LOOKUP
/// TABLES: an address may be "an unsigned integer".
#[test]
fn ports_are_looked_up_as_numbers() {
    let table = TableTest { table: "1".into(), value: None };
    let lookup = Test::Lookup { field: Field::DestinationPort, mask: u128::MAX, table };
    let mut host = Host::with(RuleSetConfig {
        rules: vec![rule(100, Action::Pipe(Argument::TableArgument), [lookup])],
        tables: vec![("1".into(), Table::from_iter([(Prefix::new(v4(0, 0, 0, 80), 128), 8)]))],
        ..RuleSetConfig::default()
    });
    assert!(is_pipe(host.walk(packet(TCP, (1024, 80), SYN)), 8));
    assert_eq!(host.walk(packet(TCP, (1024, 81), SYN)), Decision::Pass);
    assert_eq!(host.walk(packet(1, (0x800, 80), 0)), Decision::Pass);
}

/// LOOKUP TABLES: "There may be up to 65535 different lookup tables": they are there, if empty, without being made, and many
/// a script begins with `ipfw table 1 flush`.
#[test]
fn a_table_without_entries_can_be_flushed() {
    let mut host = Host::new(Vec::new());
    assert_eq!(host.rules.change(host.now, RuleChange::TableFlush { table: "1".into() }), Ok(()));
}

/// RULE FORMAT, tag: "A packet can have multiple tags at the same time. Tags are "sticky", meaning once a tag is applied to a
/// packet by a matching rule it exists until explicit removal."; RULE ACTIONS, pipe: "on exit from the pipe and if […]
/// one_pass is not set, the packet is passed again to the firewall code starting from the next rule".
#[test]
fn tags_go_through_pipes_with_the_packet() {
    let tagging = |rule, tag| Rule { tag: Some(tag), ..rule };
    let mut host = Host::new(vec![
        tagging(rule(100, Action::Count, []), Tag::Add(1)),
        tagging(rule(200, Action::Pipe(number(1)), []), Tag::Add(2)),
        tagging(rule(200, Action::Count, []), Tag::Remove(1)),
        rule(300, Action::Deny, [Test::Tagged(vec![1..=1])]),
        rule(400, Action::Pipe(number(4)), [Test::Tagged(vec![2..=9])]),
    ]);
    let (mut key, mut labels) = (packet(UDP, (1, 2), 0), Labels::default());
    let decision = host.walk_from(&mut key, &mut labels, Place::default());
    let Decision::Pipe { number: 1, resume } = decision else { panic!("{decision:?}") };
    assert_eq!(labels.tags, [1, 2]);
    // The rule is gone when it comes back, and another stands in its place.
    let which = Which { numbers: Some(200..=200), set: None };
    assert!(is_pipe(host.walk_from(&mut key, &mut labels.clone(), resume), 4));
    host.rules.change(host.now, RuleChange::Delete(which)).unwrap();
    host.rules.change(host.now, RuleChange::Add(rule(200, Action::Count, []))).unwrap();
    assert_eq!(host.walk_from(&mut key, &mut labels, resume), Decision::Deny);
}

/// RULE OPTIONS, established: "Matches TCP packets that have the RST or ACK bits set"; setup: "SYN bit set but no ACK bit".
#[test]
fn segments_open_or_belong() {
    let mut host = Host::new(vec![
        rule(100, Action::Pipe(number(1)), [Test::Setup]),
        rule(200, Action::Pipe(number(2)), [Test::Established]),
    ]);
    for (flags, pipe) in [(SYN, 1), (SYN | ACK, 2), (ACK, 2), (RST, 2), (SYN | RST, 1)] {
        assert!(is_pipe(host.walk(packet(TCP, (1, 2), flags)), pipe), "{flags:#x}");
    }
    assert_eq!(host.walk(packet(TCP, (1, 2), 8)), Decision::Pass);
    assert_eq!(host.walk(packet(UDP, (1, 2), ACK)), Decision::Pass);
}

/// "ports": "Fragmented packets which have a non-zero offset (i.e., not the first fragment) will never match a rule which has
/// one or more port specifications."
#[test]
fn a_later_fragment_has_no_ports() {
    let mut host = Host::new(vec![
        rule(100, Action::Deny, [Test::DestinationPort(vec![0..=u16::MAX])]),
        rule(200, Action::Deny, [Test::Setup]),
        rule(300, Action::Pipe(number(3)), [Test::Protocol(TCP), Test::Fragment]),
    ]);
    let mut key = FlowKey { source_port: 0, destination_port: 0, ..packet(TCP, (0, 0), SYN) };
    let headers = Headers { is_later_fragment: true, ..Headers::plain(&key, LENGTH) };
    let mut passing = Passing {
        key: &mut key,
        whole: None,
        quoted: None,
        headers: &headers,
        length: LENGTH,
        link_header: 14,
        incoming: false,
        labels: &mut Labels::default(),
        draw: &mut |stream: &Stream| stream.draw(0, 0, 0, 0),
    };
    assert!(is_pipe(host.rules.walk(Time::ZERO, &mut passing, Place::default()), 3));
}

/// RULE ACTIONS, setdscp: "Set specified DiffServ codepoint for an IPv4/IPv6 packet. Processing continues at the next rule."
#[test]
fn a_code_point_that_is_set_is_seen_by_later_rules() {
    let mut host = Host::new(vec![
        rule(100, Action::SetDscp(number(46)), [Test::Dscp(1)]),
        rule(200, Action::Pipe(number(2)), [Test::Dscp(1 << 46)]),
    ]);
    let mut key = FlowKey { traffic_class: 1, ..packet(UDP, (1, 2), 0) };
    assert!(is_pipe(host.walk_from(&mut key, &mut Labels::default(), Place::default()), 2));
    // The bits of explicit congestion notification stay.
    assert_eq!(key.traffic_class, 46 << 2 | 1);
}

/// SETS OF RULES: "Set 31 is special in that it cannot be disabled, and rules in set 31 are not deleted by the ipfw flush
/// command (but you can delete them with the ipfw delete set 31 command)."
#[test]
fn set_31_stays_until_it_is_named() {
    let in_set = |number, set| Rule { set, ..rule(number, Action::Count, []) };
    let mut host = Host::new(vec![in_set(100, 0), in_set(200, 31), in_set(300, 7)]);
    assert!(host.rules.change(host.now, RuleChange::Sets { enable: 0, disable: 1 << 31 }).is_err());
    host.rules.change(host.now, RuleChange::Flush).unwrap();
    assert_eq!(host.numbers(), [200, 65_535]);
    host.rules.change(host.now, RuleChange::Delete(Which { numbers: None, set: Some(31) })).unwrap();
    assert_eq!(host.numbers(), [65_535]);
}

/// SETS OF RULES: "you can atomically swap two rulesets"; "move rule rule-number | old-set to new-set".
#[test]
fn sets_are_swapped_and_moved() {
    let in_set = |number, set| Rule { set, ..rule(number, Action::Count, []) };
    let mut host = Host::new(vec![in_set(100, 1), in_set(200, 2), in_set(300, 3)]);
    let mut change = |change| host.rules.change(host.now, change).unwrap();
    change(RuleChange::Swap(1, 2));
    change(RuleChange::Move { which: Which { numbers: Some(300..=300), set: None }, to: 1 });
    change(RuleChange::Move { which: Which { numbers: None, set: Some(1) }, to: 9 });
    let sets = host.rules.rules().map(|view| view.rule.set).collect::<Vec<_>>();
    assert_eq!(sets, [2, 9, 9, 31]);
}
