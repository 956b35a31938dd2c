//! Rules prepared for packets.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::book::{Entry, RuleBook};
use super::check::DEFAULT;
use super::hot::Hot;
use super::index::{Index, Rules};
use super::test::{self, Changes};
use super::{Action, Argument};

/// The rules of a [`RuleBook`], compiled completely, including the trees for every kind of packet.
/// [`RuleSet::replace`](super::RuleSet::replace) installs them in a running rule set. Preparing them takes some
/// microseconds per rule and can happen anywhere; installing them takes some nanoseconds per rule.
///
/// Clones share their common data.
#[derive(Clone, Debug)]
pub struct PreparedRules {
    pub(super) book: Arc<RuleBook>,
    pub(super) program: Program,
}

impl PreparedRules {
    /// Prepares the present rules of a book.
    pub fn new(book: &Arc<RuleBook>) -> Self {
        let mut program = Program::new(book);
        program.index.complete(Rules { rules: &program.rules, hot: &program.hot });
        Self { book: book.clone(), program }
    }
}

/// The compiled form that a walk uses.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// In order; the default rule is last.
    pub(super) rules: Vec<Entry>,
    /// The part of each rule that every match needs.
    pub(super) hot: Vec<Hot>,
    /// The position of each rule: see [`position`](super::book::position).
    pub(super) positions: Vec<u64>,
    /// Orders of the rules that may have dynamic rules, with their indices.
    pub(super) parents: Vec<(u32, u32)>,
    /// Rules at which a packet's dynamic rule is looked up first, independent of their conditions.
    pub(super) asking: Vec<u32>,
    /// The rule that decides all outgoing packets, and the one for all incoming packets, if the first rule that any
    /// of them can match decides. Such packets need not be inspected.
    pub(super) heads: [Option<u32>; 2],
    pub(super) index: Index,
}

impl Program {
    /// Without any tree yet, and with all counters at zero.
    pub(super) fn new(book: &RuleBook) -> Self {
        let rules: Vec<Entry> = book.entries().map(|(_, entry)| entry.clone()).collect();
        let positions: Vec<u64> = book.entries().map(|(position, _)| position).collect();
        let changes = rules.iter().map(|one| Changes::by(&one.rule)).fold(Changes::NONE, Changes::and);
        let (mut parents, mut asking, mut hot) = (Vec::new(), Vec::new(), Vec::with_capacity(rules.len()));
        // There are fewer than 2^32 rules.
        for (at, (entry, &place)) in (0..).zip(rules.iter().zip(&positions)) {
            let is_enabled = book.is_enabled(entry.rule.set);
            if entry.rule.keep.is_some() {
                parents.push((entry.order, at));
                asking.extend((is_enabled && !entry.rule.records).then_some(at));
            }
            let target = match entry.rule.action {
                Action::SkipTo(Argument::Number(to)) | Action::Call(Argument::Number(to)) => {
                    first_of(&positions, to) as u32
                }
                _ => 0,
            };
            hot.push(Hot::new(entry, place, target, Hot::flags(entry, is_enabled, changes)));
        }
        parents.sort_unstable();
        let heads = [head(&rules, &hot, false), head(&rules, &hot, true)];
        let index = Index::new(Rules { rules: &rules, hot: &hot });
        Self { rules, hot, positions, parents, asking, heads, index }
    }

    /// The first rule with at least this number. There is always one.
    pub(super) fn first_of(&self, number: u32) -> usize {
        first_of(&self.positions, number)
    }

    /// Carries over the counters of rules that were there before.
    pub(super) fn carry_on(&mut self, before: &Self) {
        let mut before = before.hot.iter().peekable();
        for hot in &mut self.hot {
            while before.next_if(|then| then.position < hot.position).is_some() {}
            if let Some(then) = before.next_if(|then| then.position == hot.position)
                && then.zeroed == hot.zeroed
            {
                (hot.packets, hot.bytes, hot.last) = (then.packets, then.bytes, then.last);
            }
        }
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let terms = |one: &Entry| size_of_val(&*one.terms);
        let rules = self.rules.capacity() * size_of::<Entry>() + self.hot.capacity() * size_of::<Hot>();
        rules + self.rules.iter().map(terms).sum::<usize>() + self.index.bytes()
    }
}

fn first_of(positions: &[u64], number: u32) -> usize {
    let first = u64::from(number.min(DEFAULT.into())) << 32;
    positions.partition_point(|&one| one < first)
}

fn head(rules: &[Entry], hot: &[Hot], incoming: bool) -> Option<u32> {
    for (at, (entry, hot)) in (0..).zip(rules.iter().zip(hot)).filter(|(_, (_, hot))| hot.is(Hot::ENABLED)) {
        match test::hold_by_direction(&entry.terms, incoming) {
            // At a rule with `keep`, dynamic rules are looked up.
            Some(false) if !hot.is(Hot::ASKS) => {}
            Some(true) if hot.is(Hot::PLAIN) => return Some(at),
            _ => return None,
        }
    }
    None
}
