//! Rules as they are tried.

use super::test::{self, Changes, Terms};
use super::{Action, Rule, check};
use crate::random::Stream;
use crate::time::Time;

/// A rule, and what follows from it alone.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Rule,
    pub(super) order: u32,
    pub(super) stream: Option<Stream>,
    pub(super) terms: Terms,
}

/// What a match needs of a rule.
#[derive(Clone, Debug)]
pub(super) struct Hot {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Means nothing without packets.
    pub(super) last: Time,
    /// See [`position`].
    pub(super) position: u64,
    pub(super) action: Action,
    /// Where `skipto` and `call` of a number lead.
    pub(super) target: u32,
    pub(super) flags: u8,
}

impl Hot {
    /// The rule's set is enabled.
    pub(super) const ENABLED: u8 = 1;
    /// It matches by chance.
    pub(super) const CHANCE: u8 = 1 << 1;
    /// It makes dynamic rules.
    pub(super) const KEEPS: u8 = 1 << 2;
    /// It writes or takes off a tag.
    pub(super) const TAGS: u8 = 1 << 3;
    /// Its action needs the value of a look-up.
    pub(super) const ARGUMENT: u8 = 1 << 4;
    /// What matches once during a walk does so always.
    pub(super) const SETTLED: u8 = 1 << 5;
    /// The same, and no rule is tried behind it.
    pub(super) const DECIDES: u8 = 1 << 6;
    /// The same, and there is nothing to be known for that.
    pub(super) const PLAIN: u8 = 1 << 7;

    pub(super) fn new(rule: &Rule, position: u64) -> Self {
        let (action, last) = (rule.action, Time::ZERO);
        Self { packets: 0, bytes: 0, last, position, action, target: 0, flags: 0 }
    }

    pub(super) fn flags(Compiled { rule, terms, .. }: &Compiled, is_enabled: bool, changes: Changes) -> u8 {
        let is_settled = test::are_settled(terms, changes);
        let ends = matches!(rule.action, Action::Allow | Action::Deny | Action::Pipe(_) | Action::Queue(_));
        let (by_chance, keeps) = (rule.probability.is_some(), rule.keep.is_some());
        let decides = is_settled && ends && !by_chance && !keeps;
        let (tags, argument) = (rule.tag.is_some(), check::takes_argument(rule.action));
        let flags = [
            (Self::ENABLED, is_enabled),
            (Self::CHANCE, by_chance),
            (Self::KEEPS, keeps),
            (Self::TAGS, tags),
            (Self::ARGUMENT, argument),
            (Self::SETTLED, is_settled),
            (Self::DECIDES, decides),
            (Self::PLAIN, decides && !tags && !argument),
        ];
        flags.into_iter().fold(0, |flags, (flag, so)| flags | if so { flag } else { 0 })
    }

    #[inline]
    pub(super) const fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Where a rule is among others: by its number, and then in the order in which they came.
pub(super) const fn position(number: u16, order: u32) -> u64 {
    (number as u64) << 32 | order as u64
}
