//! What holds for any text and any rule of ipfw's language.

use std::io;
use std::ops::RangeInclusive;

use narrows_core::Probability;
use narrows_core::rules::{
    Action, Addresses, Answer, Argument, By, Field, Flags, Keep, Literal, Masked, NextHop, Rule, TableTest,
    Tag, Term, Test, Tos,
};
use narrows_scenario::ipfw::{self, Command, Context, ListedRule, Listing, Script};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// No names, so that no test asks anybody.
fn context() -> Context<'static> {
    Context {
        interfaces: &["em0"],
        outside: &[],
        hosts: &[],
        resolve: |_| Err(io::Error::other("nobody knows it")),
        ..Context::default()
    }
}

/// Words that the grammar knows, and pieces of such.
const WORDS: &[&str] = &[
    "add",
    "100",
    "set",
    "prob",
    "0.5",
    "pipe",
    "queue",
    "sched",
    "config",
    "1",
    "bw",
    "1Mbit/s",
    "delay",
    "10ms",
    "mask",
    "src-ip",
    "0xff",
    "/24",
    "dst-port",
    "all",
    "red",
    "0.002/5/15/0.1",
    "codel",
    "target",
    "ecn",
    "type",
    "fq_codel",
    "limit",
    "src-addr",
    "allow",
    "deny",
    "skipto",
    "tablearg",
    "ip",
    "tcp",
    "from",
    "any",
    "to",
    "me6",
    "not",
    "{",
    "}",
    "or",
    "(",
    "!in",
    "in",
    "out",
    "10.0.0.0/24{1,5-9}",
    "table(1,2)",
    "2001:db8::/32",
    "80,443-500",
    "MAC",
    "0:1:2:3:4:5&ff:0:0:0:0:1",
    "tcpflags",
    "syn,!ack",
    "dscp",
    "ef",
    "keep-state",
    "//",
    "#",
    "\\",
    "\n",
    "\t",
    ",",
    "table",
    "delete",
    "flush",
    "list",
    "-t",
    "show",
    "enable",
    "one_pass",
    "sysctl",
    "net.inet.ip.fw.one_pass=0",
    "weight",
    "plr",
    "0.1,0.2,0.3,0.4",
    "burst",
    "15K",
    "via",
    "em*",
    "lookup",
    "src-mac",
    "rulenum",
    "create",
    "iface",
    "em0",
    "recv",
    "table(1)",
    "frag",
    "!mf,df",
    "ipoptions",
    "tcpoptions",
    "mss,!rr",
    "µ",
    "'",
    "\u{0}",
    "99999999999999999999999",
    "-1",
    "1e9",
    "0x",
    "",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn no_text_is_too_much(words in vec(prop::sample::select(WORDS), 0..24), joint in prop::sample::select(&[" ", "", "\n", "\n "][..])) {
        let text = words.join(joint);
        try_everything(&text);
    }

    #[test]
    fn no_bytes_are_too_much(bytes in vec(any::<u8>(), 0..200)) {
        try_everything(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn listed_rules_read_as_the_same(rule in rule()) {
        let listed = ipfw::rule_text(&rule);
        let read = ipfw::rule(&listed, &context()).map_err(|error| TestCaseError::fail(format!("{listed}\n{error}")))?;
        prop_assert_eq!(&read, &rule, "{}", listed);
        // So do the lines of `list`, with the zeros before their numbers.
        let shown = ListedRule { rule: &rule, packets: 1, bytes: 2, last: None, enabled: true };
        let line = ipfw::rule_lines(&[shown], &[], &Listing::default());
        prop_assert!(line.ends_with('\n') && line.lines().count() == 1, "{line:?}");
        let rest = match rule.set {
            0 => line.trim_end().to_owned(),
            // `list` prints no sets, but with -S.
            _ => ipfw::rule_lines(&[shown], &[], &Listing { sets: true, ..Listing::default() }).trim_end().to_owned(),
        };
        let (command, _) = Command::parse(&format!("add {rest}"), &context())
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(command, Command::Add(rule));
    }
}

/// Reads a text in every way, and writes what comes of it.
fn try_everything(text: &str) {
    match Script::parse(text, "any.conf", &context()) {
        Ok(script) => {
            script.lines.iter().for_each(|line| assert!(!line.to_string().is_empty()));
            assert!(script.to_toml("net", ["a", "b"]).contains("[links.net]"));
        }
        Err(error) => assert!(error.count() > 0 && !error.to_string().is_empty()),
    }
    if let Ok(rule) = ipfw::rule(text, &context()) {
        let listed = ipfw::rule_text(&rule);
        let read = ipfw::rule(&listed, &context()).unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_eq!(read, rule, "{text}\n{listed}");
    }
    if let Ok((command, _)) = Command::parse(text, &context()) {
        assert!(!command.explain().is_empty());
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    (
        (1..65_535_u16, 0..32_u8, option::of(probability()), any::<bool>(), option::of(tag())),
        (any::<bool>(), any::<bool>()),
        prop_oneof![
            9 => (action(), vec(term(), 0..6), option::of(keep())),
            1 => Just((Action::CheckState, Vec::new(), None)),
        ],
        option::of("[a-z]{1,5}( [a-z0-9]{1,5}){0,3}"),
    )
        .prop_map(
            |((number, set, probability, log, tag), (records, defers), (action, terms, keep), comment)| {
                let defers = defers && action != Action::CheckState;
                let action = match action {
                    // Forwards, if there is anywhere to go.
                    Action::SkipTo(Argument::Number(to)) if to <= number.into() => match number {
                        65_534 => Action::Count,
                        number => Action::SkipTo(Argument::Number(u32::from(number) + 1)),
                    },
                    action => action,
                };
                let records = records && keep.is_some();
                Rule { number, set, probability, action, log, tag, terms, keep, records, defers, comment }
            },
        )
        .prop_filter(
            "beside a direction, `via` means `recv` or `xmit`, which say it themselves",
            |rule| {
                let has = |wanted: fn(&Test) -> bool| {
                    rule.terms.iter().flat_map(|term| &term.0).any(|literal| wanted(&literal.test))
                };
                !(has(|test| {
                    matches!(test, Test::Lookup { field: Field::Received | Field::Sent | Field::Via, .. })
                }) && has(|test| matches!(test, Test::In | Test::Out)))
            },
        )
}

fn probability() -> impl Strategy<Value = Probability> {
    let exact = (1..u64::MAX).prop_filter_map("not always", |parts| Probability::from_ratio(parts, u64::MAX));
    let decimal = (1..1000_u64).prop_filter_map("it is one", |parts| Probability::from_ratio(parts, 1000));
    prop_oneof![exact, decimal].prop_filter("always is not said", |p| *p != Probability::ONE && !p.is_zero())
}

fn tag() -> impl Strategy<Value = Tag> {
    prop_oneof![(1..65_535_u16).prop_map(Tag::Add), (1..65_535_u16).prop_map(Tag::Remove)]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Reset),
        Just(Answer::Reset6),
        // Code 4 has an MTU.
        any::<u8>().prop_map(|code| Answer::Unreachable(if code == 4 { 1 } else { code })),
        any::<u8>().prop_map(Answer::Unreachable6),
        any::<u16>().prop_map(Answer::FragmentationNeeded),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let number =
        || prop_oneof![3 => (1..65_535_u32).prop_map(Argument::Number), 1 => Just(Argument::TableArgument)];
    let point = prop_oneof![3 => (0..64_u32).prop_map(Argument::Number), 1 => Just(Argument::TableArgument)];
    prop_oneof![
        Just(Action::Allow),
        Just(Action::Deny),
        answer().prop_map(Action::Reject),
        Just(Action::Count),
        Just(Action::Return),
        number().prop_map(Action::SkipTo),
        number().prop_map(Action::Call),
        number().prop_map(Action::Pipe),
        number().prop_map(Action::Queue),
        number().prop_map(Action::Nat),
        Just(Action::NatGlobal),
        point.prop_map(Action::SetDscp),
        mark().prop_map(Action::SetMark),
        prop_oneof![3 => (0..65_536_u32).prop_map(Argument::Number), 1 => Just(Argument::TableArgument)]
            .prop_map(Action::SetFib),
        prop_oneof![
            any::<u32>()
                .prop_filter("has programs", |ip| ip >> 24 != 127 && *ip != 0)
                .prop_map(|ip| { NextHop::Address((0xffff_0000_0000 | u128::from(ip)).to_be_bytes()) }),
            any::<u64>().prop_map(|ip| NextHop::Address((0xfd << 120 | u128::from(ip)).to_be_bytes())),
            Just(NextHop::TableArgument),
        ]
        .prop_map(Action::Forward),
    ]
}

fn mark() -> impl Strategy<Value = Argument> {
    prop_oneof![3 => any::<u32>().prop_map(Argument::Number), 1 => Just(Argument::TableArgument)]
}

fn keep() -> impl Strategy<Value = Keep> {
    let by = any::<[bool; 4]>().prop_filter("by something", |by| by.contains(&true));
    prop_oneof![
        Just(Keep::State),
        (1..65_535_u32, by).prop_map(|(most, [source, source_port, destination, destination_port])| {
            Keep::Limit { most, by: By { source, source_port, destination, destination_port } }
        }),
    ]
}

fn term() -> impl Strategy<Value = Term> {
    let literal = || (any::<bool>(), test()).prop_map(|(not, test)| Literal { not, test });
    // `any` by itself is no condition, and `not any` none that holds.
    let alone = literal().prop_filter("is not a condition", |literal| !is_any(&literal.test));
    let several = vec(literal(), 2..4)
        .prop_filter("holds never", |literals| !literals.iter().any(|literal| is_any(&literal.test)));
    prop_oneof![3 => alone.prop_map(|literal| Term(vec![literal])), 1 => several.prop_map(Term)]
}

fn is_any(test: &Test) -> bool {
    matches!(test, Test::Source(Addresses::Any) | Test::Destination(Addresses::Any))
}

fn ranges(least: u16, most: u16) -> impl Strategy<Value = Vec<RangeInclusive<u16>>> {
    let range = (least..=most, least..=most, any::<bool>()).prop_map(|(a, b, one)| match one {
        true => a..=a,
        false => a.min(b)..=a.max(b),
    });
    vec(range, 1..4)
}

fn addresses() -> impl Strategy<Value = Addresses> {
    let v4 = (any::<u32>(), prop_oneof![2 => Just(32), 2 => 1..32_u32, 1 => Just(0)], any::<u32>()).prop_map(
        |(address, bits, other)| {
            let mask = match bits {
                0 => other | 1, // such as 255.0.255.1
                bits => u32::MAX << (32 - bits),
            };
            let upper = u128::MAX << 32;
            Masked { address: 0xffff_0000_0000 | u128::from(address & mask), mask: upper | u128::from(mask) }
        },
    );
    let v6 = (any::<u128>(), 1..=128_u32).prop_map(|(address, bits)| {
        let mask = u128::MAX << (128 - bits);
        Masked { address: (0x2001 << 112 | address >> 16) & mask, mask }
    });
    // Some of one network of 24 bits, in order: what is printed as a set.
    let set = (any::<u32>(), prop::collection::btree_set(any::<u8>(), 3..20)).prop_map(|(network, last)| {
        let of = |last: &u8| u128::from(network & 0xffff_ff00 | u32::from(*last)) | 0xffff_0000_0000;
        last.iter().map(|last| Masked { address: of(last), mask: u128::MAX }).collect()
    });
    prop_oneof![
        1 => Just(Addresses::Me),
        3 => vec(prop_oneof![3 => v4, 1 => v6], 1..4).prop_map(Addresses::In),
        1 => set.prop_map(Addresses::In),
        1 => table().prop_map(Addresses::Table),
    ]
}

fn table() -> impl Strategy<Value = TableTest> {
    let name = prop_oneof![(0..100_u32).prop_map(|number| number.to_string()), "[a-z][a-z0-9_.-]{0,7}"];
    (name.prop_filter("is all of them", |name| name != "all"), option::of(any::<u32>()))
        .prop_map(|(table, value)| TableTest { table, value })
}

fn test() -> impl Strategy<Value = Test> {
    let link = || {
        (any::<[u8; 6]>(), prop_oneof![Just([0xff; 6]), any::<[u8; 6]>(), Just([0xff, 0xff, 0xe0, 0, 0, 0])])
            .prop_filter("some bits count", |(_, mask)| *mask != [0; 6])
            .prop_map(|(address, mask)| {
                let masked: Vec<u8> = address.iter().zip(mask).map(|(byte, mask)| byte & mask).collect();
                (masked.try_into().expect("six bytes"), mask)
            })
    };
    let flags = (any::<u8>(), any::<u8>()).prop_map(|(set, clear)| (set, clear & !set));
    let set = |least: u64| any::<[u64; 4]>().prop_map(move |set| [set[0] | least, set[1], set[2], set[3]]);
    let field = prop::sample::select(
        &[
            Field::Source,
            Field::Destination,
            Field::SourcePort,
            Field::DestinationPort,
            Field::Dscp,
            Field::Mark,
            Field::RuleNumber,
        ][..],
    );
    let unmasked = prop::sample::select(
        &[Field::LinkSource, Field::LinkDestination, Field::Received, Field::Sent, Field::Via][..],
    );
    let bits = |mask: u8| {
        (any::<u8>(), any::<u8>())
            .prop_map(move |(set, clear)| Flags { set: set & mask, clear: clear & !set & mask })
    };
    // `frag` alone is another condition.
    let fragment = bits(0xe1).prop_filter("is none", |bits| bits.clear | bits.set & 0xe0 != 0);
    let header = prop_oneof![
        fragment.prop_map(Test::FragmentBits),
        ranges(0, 65_535).prop_map(Test::IpId),
        bits(0xff).prop_map(Test::IpOptions),
        (1..=u8::MAX).prop_map(Test::ExtensionHeader),
        any::<u32>().prop_map(Test::TcpSequence),
        any::<u32>().prop_map(Test::TcpAcknowledgement),
        ranges(0, 65_535).prop_map(Test::TcpWindow),
        ranges(0, 65_535).prop_map(Test::TcpMss),
        bits(0xff).prop_map(Test::TcpOptions),
        (unmasked, table()).prop_map(|(field, table)| Test::Lookup { field, mask: u128::MAX, table }),
    ];
    let simple = prop::sample::select(vec![
        Test::Any,
        Test::Never,
        Test::In,
        Test::Out,
        Test::Layer2,
        Test::Fragment,
        Test::Setup,
        Test::Established,
        Test::IpVersion(4),
        Test::IpVersion(6),
    ]);
    let ip = prop_oneof![
        any::<u8>().prop_map(Test::Protocol),
        addresses().prop_map(Test::Source),
        addresses().prop_map(Test::Destination),
        ranges(0, 65_535).prop_map(Test::SourcePort),
        ranges(0, 65_535).prop_map(Test::DestinationPort),
        ranges(0, 65_535).prop_map(Test::Length),
        ranges(0, 255).prop_map(Test::HopLimit),
        flags.clone().prop_map(|(set, clear)| Test::Tos(Tos { set, clear })),
        (1..=u64::MAX).prop_map(Test::Dscp),
        (0..8_u8).prop_map(Test::Precedence),
    ];
    let other = prop_oneof![
        link().prop_map(|(address, mask)| Test::LinkSource { address, mask }),
        link().prop_map(|(address, mask)| Test::LinkDestination { address, mask }),
        ranges(0, 65_535).prop_map(Test::EtherType),
        flags.prop_map(|(set, clear)| Test::TcpFlags { set, clear }),
        ranges(0, 65_535).prop_map(Test::TcpDataLength),
        set(1).prop_map(Test::IcmpType),
        set(2).prop_map(Test::Icmp6Type),
        ranges(1, 65_534).prop_map(Test::Tagged),
        ranges(0, 65_535).prop_map(Test::Fib),
        (mark(), prop_oneof![Just(u32::MAX), any::<u32>()])
            .prop_map(|(value, mask)| Test::Mark { value, mask }),
        table().prop_map(Test::Flow),
        (field, any::<u32>(), table()).prop_map(|(field, mask, table)| {
            let mask = u128::MAX << 32 | u128::from(mask);
            Test::Lookup { field, mask, table }
        }),
        vec(0..0x10_0000_u32, 1..4).prop_map(Test::FlowLabel),
    ];
    prop_oneof![3 => ip, 2 => other, 2 => header, 1 => simple]
}
