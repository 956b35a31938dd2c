//! Chance, bounds, refusals, and where packets go on after changes.

use std::sync::Arc;

use narrows_core::rules::{
    Action, Addresses, Argument, Decision, Exceeded, Keep, Labels, Masked, Passing, Place, PreparedRules,
    Rule, RuleBook, RuleChange, RuleError, RuleSet, RuleSetConfig, Tag, Term, Test, Which,
};
use narrows_core::{FlowKey, Headers, Probability, Protocol, Seed, Time};

fn to(number: u32) -> Argument {
    Argument::Number(number)
}

fn pipe(number: u16, pipe: u32) -> Rule {
    Rule::new(number, Action::Pipe(to(pipe)))
}

fn by_chance(percent: u64, rule: Rule) -> Rule {
    Rule { probability: Some(Probability::from_ratio(percent, 100).expect("a percentage")), ..rule }
}

fn rules(rules: Vec<Rule>) -> RuleSet {
    RuleSet::new(Seed(1), "net", RuleSetConfig { rules, ..RuleSetConfig::default() })
        .expect("rules are right")
}

fn walk(rules: &mut RuleSet, number: u64, from: Place) -> Decision {
    let mut key = FlowKey { network: Protocol::Ipv4, transport: 17, ..FlowKey::default() };
    let mut packet = Passing {
        key: &mut key,
        whole: None,
        quoted: None,
        headers: &Headers::default(),
        length: 100,
        link_header: 14,
        incoming: false,
        labels: &mut Labels::default(),
        draw: &mut |stream| stream.draw(0, number, 0, 0),
    };
    rules.walk(Time::ZERO, &mut packet, from)
}

/// How many of so many packets go into each of pipes 1 to 3.
fn shares(rules: &mut RuleSet, packets: u64) -> [u64; 3] {
    let mut shares = [0; 3];
    for packet in 0..packets {
        if let Decision::Pipe { number, .. } = walk(rules, packet, Place::default()) {
            shares[number as usize - 1] += 1;
        }
    }
    shares
}

#[test]
fn chances_multiply_along_the_rules() {
    // The reference's example: 0.2, 0.7 of the rest, and the rest: 20, 56 and 24 %.
    let packets = 1_000_000;
    let mut rules = rules(vec![by_chance(20, pipe(100, 1)), by_chance(70, pipe(200, 2)), pipe(300, 3)]);
    for (share, percent) in shares(&mut rules, packets).into_iter().zip([20.0, 56.0, 24.0]) {
        let (expected, p) = (packets as f64 * percent / 100.0, percent / 100.0);
        // Five standard deviations of a binomial count.
        let bound = 5.0 * (packets as f64 * p * (1.0 - p)).sqrt();
        assert!((share as f64 - expected).abs() < bound, "{share} for {percent} %");
    }
}

#[test]
fn other_rules_change_no_draws() {
    let decisions =
        |rules: &mut RuleSet| (0..500).map(|n| walk(rules, n, Place::default())).collect::<Vec<_>>();
    let chosen = || by_chance(40, Rule::new(200, Action::Deny));
    let alone = decisions(&mut rules(vec![chosen()]));
    let more = vec![
        by_chance(30, Rule::new(100, Action::Count)),
        chosen(),
        by_chance(50, Rule::new(200, Action::Count)),
    ];
    assert_eq!(alone, decisions(&mut rules(more)));
    let mut changed = rules(vec![chosen()]);
    changed.change(Time::ZERO, RuleChange::Add(by_chance(50, Rule::new(50, Action::Count)))).expect("a rule");
    assert_eq!(alone, decisions(&mut changed));
    // Two rules of one number draw apart.
    let mut twice =
        rules(vec![by_chance(50, Rule::new(100, Action::Deny)), by_chance(50, Rule::new(100, Action::Deny))]);
    let denied = decisions(&mut twice).iter().filter(|&&one| one == Decision::Deny).count();
    assert!((325..425).contains(&denied), "{denied} of 500, not 375");
}

#[test]
fn a_rule_that_a_call_leads_back_to_draws_anew() {
    // Each time round, half of the packets leave; those of 16 calls go on to the end.
    let again = vec![by_chance(50, Rule::new(100, Action::Deny)), Rule::new(200, Action::Call(to(100)))];
    let mut rules = rules(again);
    let packets = 4_000;
    let denied = (0..packets).filter(|&n| walk(&mut rules, n, Place::default()) == Decision::Deny).count();
    assert!(denied >= packets as usize - 2, "{denied} of {packets}");
}

#[test]
fn calls_that_double_with_each_other_end() {
    let calls =
        (1..60).map(|number| Rule::new(number, Action::Call(to(1)))).chain([Rule::new(60, Action::Return)]);
    let mut rules = rules(calls.collect());
    assert_eq!(walk(&mut rules, 0, Place::default()), Decision::Deny);
    let Exceeded { calls, depth, .. } = rules.exceeded();
    assert_eq!(calls, 1);
    assert!(depth > 0);
    let counted: u64 = rules.rules().map(|view| view.counters.packets).sum();
    assert!(counted <= 2 * u64::from(RuleSet::MOST_CALLS) + 100, "{counted}");
}

#[test]
fn a_packet_in_a_pipe_keeps_its_place_and_its_calls() {
    let mut rules = rules(vec![
        Rule::new(100, Action::Call(to(1_000))),
        pipe(200, 2),
        Rule::new(300, Action::Deny),
        pipe(1_000, 1),
        Rule::new(1_000, Action::Return),
        Rule::new(2_000, Action::Deny),
    ]);
    let Decision::Pipe { number: 1, resume } = walk(&mut rules, 0, Place::default()) else {
        panic!("pipe 1")
    };
    // The rule that sent it there is gone, another has its number, and so has one before.
    let out = |number| RuleChange::Delete(Which { numbers: Some(number..=number), set: None });
    rules.change(Time::ZERO, out(1_000)).expect("it is there");
    for number in [1_000, 999] {
        rules.change(Time::ZERO, RuleChange::Add(Rule::new(number, Action::Return))).expect("a rule");
    }
    let Decision::Pipe { number: 2, resume } = walk(&mut rules, 0, resume) else { panic!("pipe 2") };
    assert_eq!(walk(&mut rules, 0, resume), Decision::Deny);
}

#[test]
fn many_rules_are_as_few_as_long_as_nothing_else_matches() {
    // So many that they are indexed, and what was found for a flow is kept.
    let host = |last: u32| {
        let masked = Masked { address: 0xffff_0a00_0000 | u128::from(last), mask: u128::MAX };
        Term::from(Test::Source(Addresses::In(vec![masked])))
    };
    let blocked = |n: u16| Rule { terms: vec![host(n.into())], ..Rule::new(n, Action::Deny) };
    let mut rules = rules((1..2_000).map(blocked).collect());
    for _ in 0..3 {
        assert_eq!(walk(&mut rules, 0, Place::default()), Decision::Pass);
    }
    // A change is seen at once.
    rules.change(Time::ZERO, RuleChange::Add(pipe(1_500, 7))).expect("a rule");
    assert!(matches!(walk(&mut rules, 0, Place::default()), Decision::Pipe { number: 7, .. }));
    rules.change(Time::ZERO, RuleChange::Flush).expect("always");
    assert_eq!(walk(&mut rules, 0, Place::default()), Decision::Pass);
    assert_eq!(rules.rules().len(), 1);
}

#[test]
fn what_is_no_rule_is_refused_and_nothing_changes() {
    let refused = |rule: Rule| {
        let config = RuleSetConfig { rules: vec![rule.clone()], ..RuleSetConfig::default() };
        let error = RuleSet::new(Seed(1), "net", config).expect_err("it is no rule");
        let mut own = rules(vec![pipe(100, 1)]);
        assert_eq!(own.change(Time::ZERO, RuleChange::Add(rule)), Err(error.clone()));
        assert_eq!(own.rules().len(), 2);
        error
    };
    let two = Rule::new(200, Action::Allow);
    assert_eq!(refused(Rule::new(65_535, Action::Allow)), RuleError::Number);
    assert_eq!(refused(Rule { set: 32, ..two.clone() }), RuleError::Set { rule: 200, set: 32 });
    assert_eq!(
        refused(Rule::new(200, Action::SkipTo(to(200)))),
        RuleError::SkipsBackwards { rule: 200, to: 200 }
    );
    assert_eq!(
        refused(Rule::new(200, Action::Call(to(65_536)))),
        RuleError::NoSuchNumber { rule: 200, to: 65_536 }
    );
    assert_eq!(
        refused(Rule::new(200, Action::SetDscp(to(64)))),
        RuleError::CodePoint { rule: 200, dscp: 64 }
    );
    assert_eq!(
        refused(Rule::new(200, Action::Pipe(Argument::TableArgument))),
        RuleError::NoLookup { rule: 200 }
    );
    assert_eq!(refused(Rule { tag: Some(Tag::Add(0)), ..two.clone() }), RuleError::Tag { rule: 200, tag: 0 });
    let none = Keep::Limit { most: 0, by: Default::default() };
    assert_eq!(refused(Rule { keep: Some(none), ..two }), RuleError::NoFlows { rule: 200 });
    let checks = Rule { keep: Some(Keep::State), ..Rule::new(200, Action::CheckState) };
    assert_eq!(refused(checks), RuleError::KeepsNothing { rule: 200 });
}

#[test]
fn a_change_of_what_is_not_there_is_refused() {
    let mut rules = rules(vec![pipe(100, 1)]);
    let which = |number: u16| Which { numbers: Some(number..=number), set: None };
    let mut change = |change| rules.change(Time::ZERO, change);
    assert_eq!(change(RuleChange::Delete(which(200))), Err(RuleError::NoSuchRule { number: 200 }));
    assert_eq!(change(RuleChange::Zero(which(200))), Err(RuleError::NoSuchRule { number: 200 }));
    assert_eq!(change(RuleChange::Delete(which(65_535))), Err(RuleError::DefaultRule));
    assert_eq!(change(RuleChange::Move { which: which(100), to: 32 }), Err(RuleError::NoSuchSet { set: 32 }));
    assert_eq!(change(RuleChange::Sets { enable: 0, disable: 1 << 31 }), Err(RuleError::AlwaysEnabled));
    let prefix = narrows_core::classify::Prefix::new([0; 16], 0);
    let table = || String::from("1");
    let add = |value| RuleChange::TableAdd { table: table(), prefix, value };
    assert_eq!(
        change(RuleChange::TableDelete { table: table(), prefix }),
        Err(RuleError::NoSuchTable { table: table() })
    );
    assert_eq!(change(add(3)), Ok(()));
    assert_eq!(change(add(4)), Err(RuleError::EntryExists { table: table(), value: 3 }));
    assert_eq!(change(RuleChange::TableDelete { table: table(), prefix }), Ok(()));
    assert_eq!(
        change(RuleChange::TableDelete { table: table(), prefix }),
        Err(RuleError::NoSuchEntry { table: table() })
    );
}

/// What was built for the packets so far shows in the memory that it takes.
#[test]
fn rules_that_are_handed_over_have_their_trees() {
    let host = |number: u16| {
        let address = 0xffff_0a00_0000 + u128::from(number);
        let test = Test::Source(Addresses::In(vec![Masked { address, mask: u128::MAX }]));
        let terms = vec![test.into(), Test::Out.into()];
        Rule { terms, ..pipe(number, 1) }
    };
    let config = RuleSetConfig { rules: (1..=200).map(host).collect(), ..RuleSetConfig::default() };
    let mut book = Arc::new(RuleBook::new(Seed(1), "net", &config).expect("rules are right"));
    let mut set = rules(config.rules);
    walk(&mut set, 0, Place::default());
    for number in 201..=300 {
        let change = RuleChange::Add(host(number));
        set.change(Time::ZERO, change.clone()).expect("a rule");
        Arc::make_mut(&mut book).change(change).expect("a rule");
    }
    let before = set.bytes();
    walk(&mut set, 0, Place::default());
    assert!(set.bytes() > before + 1_000, "a change leaves trees to the first packet");

    set.replace(PreparedRules::new(&book));
    let before = set.bytes();
    for network in [Protocol::Ipv4, Protocol::Ipv6, Protocol::Other] {
        for incoming in [false, true] {
            let mut key = FlowKey { network, transport: 17, ..FlowKey::default() };
            let mut packet = Passing {
                key: &mut key,
                whole: None,
                quoted: None,
                headers: &Headers::default(),
                length: 100,
                link_header: 14,
                incoming,
                labels: &mut Labels::default(),
                draw: &mut |stream| stream.nth(0),
            };
            assert_eq!(set.walk(Time::ZERO, &mut packet, Place::default()), Decision::Pass);
        }
    }
    assert_eq!(set.bytes(), before, "what is handed over leaves nothing to packets");
}
