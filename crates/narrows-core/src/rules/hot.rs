//! The part of a rule that every match needs, separate from the rest.

use super::book::Entry;
use super::test::{self, Changes};
use super::{Action, check};
use crate::time::Time;

/// The part of a rule that every match needs.
#[derive(Clone, Debug)]
pub(super) struct Hot {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Meaningless without packets.
    pub(super) last: Time,
    /// See [`position`](super::book::position).
    pub(super) position: u64,
    pub(super) action: Action,
    /// Where `skipto` and `call` with a number lead.
    pub(super) target: u32,
    /// How often the counters had been zeroed when counting began.
    pub(super) zeroed: u32,
    pub(super) flags: u16,
}

impl Hot {
    /// The rule's set is enabled.
    pub(super) const ENABLED: u16 = 1;
    /// It has a probability.
    pub(super) const CHANCE: u16 = 1 << 1;
    /// It creates dynamic rules.
    pub(super) const KEEPS: u16 = 1 << 2;
    /// It adds or removes a tag.
    pub(super) const TAGS: u16 = 1 << 3;
    /// Its action uses the value of a table lookup.
    pub(super) const ARGUMENT: u16 = 1 << 4;
    /// A packet that matches once during a walk always matches.
    pub(super) const SETTLED: u16 = 1 << 5;
    /// Like `SETTLED`, and a match ends the walk.
    pub(super) const DECIDES: u16 = 1 << 6;
    /// Like `DECIDES`, with no tag, no table value, no next hop and no translation.
    pub(super) const PLAIN: u16 = 1 << 7;
    /// At this rule the packet's dynamic rule is looked up before the conditions are tested.
    pub(super) const ASKS: u16 = 1 << 8;
    /// Its action is only for packets of its dynamic rules.
    pub(super) const DEFERS: u16 = 1 << 9;

    pub(super) fn new(entry: &Entry, position: u64, target: u32, flags: u16) -> Self {
        let (action, zeroed, last) = (entry.rule.action, entry.zeroed, Time::ZERO);
        Self { packets: 0, bytes: 0, last, position, action, target, zeroed, flags }
    }

    pub(super) fn flags(Entry { rule, terms, .. }: &Entry, is_enabled: bool, changes: Changes) -> u16 {
        let is_settled = test::are_settled(terms, changes);
        let edits = matches!(rule.action, Action::Forward(_) | Action::Nat(_) | Action::NatGlobal);
        let ends = edits
            || matches!(
                rule.action,
                Action::Allow | Action::Deny | Action::Reject(_) | Action::Pipe(_) | Action::Queue(_)
            );
        let (by_chance, keeps) = (rule.probability.is_some(), rule.keep.is_some());
        let decides = is_settled && ends && !by_chance && !keeps && !rule.defers;
        let (tags, argument) = (rule.tag.is_some(), check::takes_argument(rule.action));
        let flags = [
            (Self::ENABLED, is_enabled),
            (Self::CHANCE, by_chance),
            (Self::KEEPS, keeps),
            (Self::TAGS, tags),
            (Self::ARGUMENT, argument),
            (Self::SETTLED, is_settled),
            (Self::DECIDES, decides),
            (Self::PLAIN, decides && !tags && !argument && !edits),
            (Self::ASKS, keeps && !rule.records),
            (Self::DEFERS, rule.defers),
        ];
        flags.into_iter().fold(0, |flags, (flag, so)| flags | if so { flag } else { 0 })
    }

    #[inline]
    pub(super) const fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}
