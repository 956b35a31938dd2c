//! Rules made ready for packets.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::book::{Entry, RuleBook};
use super::check::DEFAULT;
use super::hot::Hot;
use super::index::{Index, Rules};
use super::test::{self, Changes};
use super::{Action, Argument};

/// The rules of a [`RuleBook`], and all that follows from them together, trees for every kind of packet included: with
/// [`RuleSet::replace`](super::RuleSet::replace) a running rule set goes on with them. To make it takes some microseconds a
/// rule, anywhere; to hand it over takes some nanoseconds a rule.
///
/// What clones have in common is shared.
#[derive(Clone, Debug)]
pub struct PreparedRules {
    pub(super) book: Arc<RuleBook>,
    pub(super) program: Program,
}

impl PreparedRules {
    /// Of the rules as they are in a book.
    pub fn new(book: &Arc<RuleBook>) -> Self {
        let mut program = Program::new(book);
        program.index.complete(Rules { rules: &program.rules, hot: &program.hot });
        Self { book: book.clone(), program }
    }
}

/// What a walk goes by.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// In order; the default rule is the last one.
    pub(super) rules: Vec<Entry>,
    /// What is needed of each of them whenever it matches.
    pub(super) hot: Vec<Hot>,
    /// Where each of them is: see [`position`](super::book::position).
    pub(super) positions: Vec<u64>,
    /// Orders of the rules that may have dynamic ones, and which they are.
    pub(super) parents: Vec<(u32, u32)>,
    /// Rules at which a packet is first asked for its dynamic rule, whatever else they ask for.
    pub(super) asking: Vec<u32>,
    /// The rule that decides on all outgoing packets, and the one for all incoming ones, if the first that any of them may
    /// match does: they need not be looked at.
    pub(super) heads: [Option<u32>; 2],
    pub(super) index: Index,
}

impl Program {
    /// Without any tree yet, and with all counters at zero.
    pub(super) fn new(book: &RuleBook) -> Self {
        let rules: Vec<Entry> = book.entries().map(|(_, entry)| entry.clone()).collect();
        let positions: Vec<u64> = book.entries().map(|(position, _)| position).collect();
        let changes = Changes {
            dscp: rules.iter().any(|one| matches!(one.rule.action, Action::SetDscp(_))),
            tags: rules.iter().any(|one| one.rule.tag.is_some()),
        };
        let (mut parents, mut asking, mut hot) = (Vec::new(), Vec::new(), Vec::with_capacity(rules.len()));
        // There are fewer than 2^32 rules.
        for (at, (entry, &place)) in (0..).zip(rules.iter().zip(&positions)) {
            let is_enabled = book.is_enabled(entry.rule.set);
            if entry.rule.keep.is_some() {
                parents.push((entry.order, at));
                asking.extend(is_enabled.then_some(at));
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

    /// The first rule of at least this number. There is always one.
    pub(super) fn first_of(&self, number: u32) -> usize {
        first_of(&self.positions, number)
    }

    /// Counters go on from those of the same rules before.
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

    /// About how many bytes it takes.
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
            // Where a rule keeps, packets are asked for their dynamic rules.
            Some(false) if !hot.is(Hot::KEEPS) => {}
            Some(true) if hot.is(Hot::PLAIN) => return Some(at),
            _ => return None,
        }
    }
    None
}
