//! What can be wrong with a rule or a change.

use alloc::string::String;
use core::fmt;

/// Why there is no such rule set, or why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// A rule has the number 65,535, which is that of the default rule.
    Number,
    /// A rule is in a set beyond 31.
    Set {
        /// The rule's number.
        rule: u16,
        /// The set.
        set: u8,
    },
    /// A rule skips backwards, or to itself.
    SkipsBackwards {
        /// The rule's number.
        rule: u16,
        /// Where it skips to.
        to: u32,
    },
    /// A rule skips to, or calls, a number beyond 65,535.
    NoSuchNumber {
        /// The rule's number.
        rule: u16,
        /// The number.
        to: u32,
    },
    /// A code point is beyond 63.
    CodePoint {
        /// The rule's number.
        rule: u16,
        /// The code point.
        dscp: u32,
    },
    /// A tag is 0 or 65,535.
    Tag {
        /// The rule's number.
        rule: u16,
        /// The tag.
        tag: u16,
    },
    /// A limit of no flows at all.
    NoFlows {
        /// The rule's number.
        rule: u16,
    },
    /// A rule keeps state and checks it only.
    KeepsNothing {
        /// The rule's number.
        rule: u16,
    },
    /// A rule's action takes a value from a table, and the rule looks up nothing.
    NoLookup {
        /// The rule's number.
        rule: u16,
    },
    /// More rules than can be told apart.
    TooMany,
    /// No rule has this number, or none of the set.
    NoSuchRule {
        /// The first number that was asked for.
        number: u16,
    },
    /// The default rule can be neither taken out nor moved.
    DefaultRule,
    /// Set 31 is always enabled.
    AlwaysEnabled,
    /// There is no set beyond 31.
    NoSuchSet {
        /// The set.
        set: u8,
    },
    /// The table has this very prefix already.
    EntryExists {
        /// The table's name.
        table: String,
        /// The value that the prefix has there.
        value: u32,
    },
    /// The table does not have this very prefix.
    NoSuchEntry {
        /// The table's name.
        table: String,
    },
    /// No rule knows a table of this name, and it has no entries.
    NoSuchTable {
        /// The name.
        table: String,
    },
    /// Two tables have this name.
    TableTwice {
        /// The name.
        table: String,
    },
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number => write!(f, "rule 65535 is the default rule: numbers go from 1 to 65534"),
            Self::Set { rule, set } => write!(f, "rule {rule}: no set {set}: sets go from 0 to 31"),
            Self::SkipsBackwards { rule, to } => {
                write!(f, "rule {rule} skips to {to}: only a rule of a greater number can be skipped to")
            }
            Self::NoSuchNumber { rule, to } => {
                write!(f, "rule {rule} goes on at {to}: numbers of rules go up to 65535")
            }
            Self::CodePoint { rule, dscp } => {
                write!(f, "rule {rule} sets code point {dscp}: code points go from 0 to 63")
            }
            Self::Tag { rule, tag } => write!(f, "rule {rule}: no tag {tag}: tags go from 1 to 65534"),
            Self::NoFlows { rule } => write!(f, "rule {rule}: a limit of 0 flows: at least 1 is needed"),
            Self::KeepsNothing { rule } => {
                write!(f, "rule {rule} keeps state, but `check-state` does nothing that could be kept")
            }
            Self::NoLookup { rule } => {
                write!(f, "rule {rule} takes the value of a look-up in a table, and looks up nothing")
            }
            Self::TooMany => write!(f, "too many rules: no more than a million, and 2³² ever added"),
            Self::NoSuchRule { number } => write!(f, "no rule {number}"),
            Self::DefaultRule => write!(f, "the default rule, 65535, can be neither deleted nor moved"),
            Self::AlwaysEnabled => {
                write!(f, "set 31 cannot be disabled, moved to by a swap, or moved away from")
            }
            Self::NoSuchSet { set } => write!(f, "no set {set}: sets go from 0 to 31"),
            Self::EntryExists { table, value } => {
                write!(f, "table `{table}` has an entry for this prefix already, with the value {value}")
            }
            Self::NoSuchEntry { table } => write!(f, "table `{table}` has no entry for this very prefix"),
            Self::NoSuchTable { table } => write!(f, "no table `{table}`"),
            Self::TableTwice { table } => write!(f, "two tables are called `{table}`"),
        }
    }
}

impl core::error::Error for RuleError {}
