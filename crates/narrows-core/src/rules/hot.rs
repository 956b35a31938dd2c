//! What a match needs of a rule, apart from the rest of it.

use super::book::Entry;
use super::test::{self, Changes};
use super::{Action, check};
use crate::time::Time;

/// What a match needs of a rule.
#[derive(Clone, Debug)]
pub(super) struct Hot {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Means nothing without packets.
    pub(super) last: Time,
    /// See [`position`](super::book::position).
    pub(super) position: u64,
    pub(super) action: Action,
    /// Where `skipto` and `call` of a number lead.
    pub(super) target: u32,
    /// How often the counters had been set to zero when they began.
    pub(super) zeroed: u32,
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

    pub(super) fn new(entry: &Entry, position: u64, target: u32, flags: u8) -> Self {
        let (action, zeroed, last) = (entry.rule.action, entry.zeroed, Time::ZERO);
        Self { packets: 0, bytes: 0, last, position, action, target, zeroed, flags }
    }

    pub(super) fn flags(Entry { rule, terms, .. }: &Entry, is_enabled: bool, changes: Changes) -> u8 {
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
