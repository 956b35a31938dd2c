//! The same packets through rule sets and through the oracle: decisions, counters, tables, tags and dynamic rules must agree,
//! whether changes are made in the rule set or in a book that is handed over.

use std::sync::Arc;

use narrows_core::rules::{
    Decision, Masked, Passing, Place, PreparedRules, RuleBook, RuleChange, RuleSet, StateKind, StateView,
    Which,
};
use narrows_core::{Duration, FlowKey, Seed, Time};

use super::generate::{self, Style, TABLES};
use super::oracle::{Oracle, Outcome, Spot, Walker};
use super::random::Random;

/// A bit of the number of a packet that goes on behind a pipe: it draws anew.
const RESUMED: u64 = 1 << 32;

/// What happened in comparisons, so that nothing is compared that never is.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    packets: u64,
    passed: u64,
    denied: u64,
    piped: u64,
    queued: u64,
    resumed: u64,
    /// Packets that no rule decided on.
    by_default: u64,
    /// Packets of dynamic rules that were alive in the end.
    stateful: u64,
    refused: u64,
    depth: u64,
    /// How often several changes were handed over at once.
    replaced: u64,
}

impl Seen {
    pub(crate) fn counts(&self) -> [u64; 11] {
        let Self { packets, passed, denied, piped, queued, resumed, .. } = *self;
        let Self { by_default, stateful, refused, depth, replaced, .. } = *self;
        [packets, passed, denied, piped, queued, resumed, by_default, stateful, refused, depth, replaced]
    }
}

pub(crate) struct Comparison {
    random: Random,
    style: Style,
    seed: u64,
    rules: RuleSet,
    /// The same rules, apart from the packets.
    book: Arc<RuleBook>,
    oracle: Oracle,
    now: Time,
    /// Packets in pipes.
    waiting: Vec<(u64, Walker, Place, Spot)>,
    seen: Seen,
    recent: Vec<(FlowKey, bool)>,
}

impl Comparison {
    /// Of `count` rules, and of everything that `random` draws.
    pub(crate) fn new(mut random: Random, seed: u64, style: Style, count: u64) -> Self {
        let config = generate::config(&mut random, style, count);
        let rules = RuleSet::new(Seed(seed), "net", config.clone()).expect("generated rules are right");
        let book = RuleBook::new(Seed(seed), "net", &config).expect("generated rules are right");
        let oracle = Oracle::new(Seed(seed), "net", config);
        Self {
            random,
            style,
            seed,
            rules,
            book: Arc::new(book),
            oracle,
            now: Time::ZERO,
            waiting: Vec::new(),
            seen: Seen::default(),
            recent: Vec::new(),
        }
    }

    /// So many packets.
    pub(crate) fn run(mut self, packets: u64) -> Seen {
        for number in 0..packets {
            self.now = self.now + Duration::from_nanos(self.random.below(20_000));
            // Less often where it takes long to work out what follows.
            if self.random.percent(if self.oracle.rules.len() > 200 { 1 } else { 3 }) {
                self.change_some();
            }
            let walker = self.walker();
            self.packet(number, walker, Place::default(), &Spot::default());
            if !self.waiting.is_empty() && self.random.percent(40) {
                let at = self.random.below(self.waiting.len() as u64) as usize;
                let (number, walker, place, spot) = self.waiting.swap_remove(at);
                self.seen.resumed += 1;
                self.packet(number | RESUMED, walker, place, &spot);
            }
            if number % 50 == 0 {
                self.agree();
            }
        }
        self.agree();
        let exceeded = self.rules.exceeded();
        Seen {
            by_default: self.oracle.default.packets,
            stateful: self.oracle.dynamics.all.iter().map(|one| one.packets).sum(),
            refused: exceeded.states.full + exceeded.states.limit,
            depth: exceeded.depth,
            ..self.seen
        }
    }

    /// A new packet, or one of a flow that was seen lately, with other things that do not tell flows apart.
    fn walker(&mut self) -> Walker {
        let mut walker = generate::walker(&mut self.random);
        if self.random.percent(50) && !self.recent.is_empty() {
            let (key, is_later_fragment) = self.random.one_of(&self.recent);
            walker.key = key;
            walker.headers.is_later_fragment = is_later_fragment;
        }
        self.recent.push((walker.key, walker.headers.is_later_fragment));
        if self.recent.len() > 12 {
            self.recent.remove(0);
        }
        walker
    }

    fn packet(&mut self, number: u64, mut walker: Walker, place: Place, spot: &Spot) {
        let mut other = walker.clone();
        let before = walker.clone();
        let decision = self.rules.walk(
            self.now,
            &mut Passing {
                key: &mut walker.key,
                whole: None,
                quoted: None,
                headers: &walker.headers,
                length: walker.length,
                link_header: walker.link_header,
                incoming: walker.incoming,
                labels: &mut walker.labels,
                draw: &mut |stream| stream.draw(0, number, 0, 0),
            },
            place,
        );
        let outcome =
            self.oracle.walk(self.now, &mut other, spot, &mut |stream| stream.draw(0, number, 0, 0));
        self.seen.packets += 1;
        *match outcome {
            Outcome::Pass => &mut self.seen.passed,
            Outcome::Deny | Outcome::Reject(_) => &mut self.seen.denied,
            Outcome::Pipe(..) => &mut self.seen.piped,
            Outcome::Queue(..) => &mut self.seen.queued,
        } += 1;
        let told = || format!("set {}: packet {number} from {spot:?}: {before:?}", self.seed);
        assert!(outcome.agrees(&decision), "{}: {outcome:?}, not {decision:?}", told());
        assert_eq!(walker.key, other.key, "{}", told());
        walker.labels.tags.sort_unstable();
        other.labels.tags.sort_unstable();
        assert_eq!(walker.labels, other.labels, "{}", told());
        if let (
            Outcome::Pipe(_, spot) | Outcome::Queue(_, spot),
            Decision::Pipe { resume, .. } | Decision::Queue { resume, .. },
        ) = (outcome, decision)
        {
            self.waiting.push((number & !RESUMED, walker, resume, spot));
        }
    }

    fn agree(&self) {
        let seed = self.seed;
        let views: Vec<_> = self.rules.rules().collect();
        let (default, own) = views.split_last().expect("there is the default rule");
        assert_eq!(own.len(), self.oracle.rules.len());
        for (view, other) in own.iter().zip(&self.oracle.rules) {
            assert_eq!(*view.rule, other.rule, "set {seed}");
            assert_eq!(view.counters, other.counters, "set {seed}: {:?}", view.rule);
        }
        assert_eq!(default.counters, self.oracle.default, "set {seed}");
        for name in TABLES {
            let mut own: Vec<_> = self.rules.table(name).into_iter().flat_map(|table| table.iter()).collect();
            own.sort_unstable_by_key(|(prefix, _)| (prefix.address(), prefix.bits()));
            let mut others = self.oracle.tables.get(name).cloned().unwrap_or_default();
            others.sort_unstable();
            let own: Vec<_> = own
                .iter()
                .map(|(prefix, value)| {
                    (u128::from_be_bytes(prefix.address()), u32::from(prefix.bits()), *value)
                })
                .collect();
            let others: Vec<_> =
                others.iter().map(|&(address, mask, value)| (address, mask.count_ones(), value)).collect();
            assert_eq!(own, others, "set {seed}: table {name}");
        }
        let mut states: Vec<_> = self
            .rules
            .states(self.now)
            .into_iter()
            .filter(|view| !matches!(view.kind, StateKind::Limit { .. }))
            .map(|StateView { rule, protocol, source, destination, packets, bytes, .. }| {
                (rule, protocol, source, destination, packets, bytes)
            })
            .collect();
        let mut others: Vec<_> = self
            .oracle
            .dynamics
            .alive(self.now)
            .map(|one| {
                let key = one.first;
                (one.rule.1, key.transport, key.source, key.destination, one.packets, one.bytes)
            })
            .collect();
        states.sort_unstable();
        others.sort_unstable();
        assert_eq!(states, others, "set {seed}");
        let exceeded = self.rules.exceeded();
        assert_eq!((exceeded.calls, exceeded.depth), (self.oracle.calls, self.oracle.depth), "set {seed}");
    }

    /// Makes some changes, each by itself or all at once.
    fn change_some(&mut self) {
        let is_handed_over = self.random.percent(50);
        for _ in 0..=self.random.below(3) {
            let change = self.change();
            self.oracle.change(&change);
            Arc::make_mut(&mut self.book).change(change.clone()).expect("the change is right");
            let is_of_table = matches!(
                change,
                RuleChange::Table { .. }
                    | RuleChange::TableAdd { .. }
                    | RuleChange::TableDelete { .. }
                    | RuleChange::TableFlush { .. }
            );
            if is_of_table || !is_handed_over {
                self.rules.change(self.now, change).expect("the change is right");
            }
        }
        if is_handed_over {
            self.rules.replace(PreparedRules::new(&self.book));
            self.seen.replaced += 1;
        }
    }

    fn change(&mut self) -> RuleChange {
        let random = &mut self.random;
        let numbers = (self.oracle.rules.len() as u64 * 2).clamp(20, 6_000);
        let any = |random: &mut Random, oracle: &Oracle| {
            let all: Vec<_> = oracle.rules.iter().map(|one| one.rule.number).collect();
            random.one_of(&all)
        };
        let set = random.below(4) as u8;
        match random.below(24) {
            0..8 => RuleChange::Add(generate::rule(random, self.style, numbers)),
            8..13 if !self.oracle.rules.is_empty() => {
                let number = any(random, &self.oracle);
                RuleChange::Delete(Which { numbers: Some(number..=number), set: None })
            }
            13 => RuleChange::Delete(Which { numbers: None, set: Some(set) }),
            14 if random.percent(10) => RuleChange::Flush,
            15 => RuleChange::Zero(Which::default()),
            16 if !self.oracle.rules.is_empty() => {
                let number = any(random, &self.oracle);
                RuleChange::Zero(Which { numbers: Some(number..=65_535), set: None })
            }
            17 => RuleChange::Sets { enable: random.below(8) as u32, disable: random.below(8) as u32 },
            18 if !self.oracle.rules.is_empty() => {
                let number = any(random, &self.oracle);
                RuleChange::Move { which: Which { numbers: Some(number..=number), set: None }, to: set }
            }
            19 => RuleChange::Swap(set, random.below(4) as u8),
            21 if random.percent(20) => {
                let table = random.one_of(&TABLES).to_string();
                let entries = (0..random.below(4)).map(|value| (generate::prefix(random), value as u32));
                RuleChange::Table { table, entries: Box::new(entries.collect()) }
            }
            20 | 21 => {
                let (table, prefix) = (random.one_of(&TABLES).to_string(), generate::prefix(random));
                let value = random.below(6) as u32;
                let there = self.rules.table(&table).is_some_and(|table| table.get(prefix).is_some());
                if there {
                    RuleChange::TableDelete { table, prefix }
                } else {
                    RuleChange::TableAdd { table, prefix, value }
                }
            }
            22 if self.rules.table("2").is_some() => RuleChange::TableFlush { table: "2".into() },
            23 => RuleChange::Me(generate::me(random)),
            _ => RuleChange::Me(vec![Masked { address: 0xffff_0a00_0000, mask: u128::MAX }]),
        }
    }
}
