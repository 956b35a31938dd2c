//! Errors of rules and changes.

use alloc::string::String;
use core::fmt;

/// Why a rule set is invalid, or why a change was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// A rule has the number 65,535, which belongs to the default rule.
    Number,
    /// The set of a rule is greater than 31.
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
        /// The target number.
        to: u32,
    },
    /// A rule skips to, or calls, a number greater than 65,535.
    NoSuchNumber {
        /// The rule's number.
        rule: u16,
        /// The number.
        to: u32,
    },
    /// A DSCP code point is greater than 63.
    CodePoint {
        /// The rule's number.
        rule: u16,
        /// The code point.
        dscp: u32,
    },
    /// The number of a routing table is greater than 65,535.
    Fib {
        /// The rule's number.
        rule: u16,
        /// The number.
        fib: u32,
    },
    /// A tag is 0 or 65,535.
    Tag {
        /// The rule's number.
        rule: u16,
        /// The tag.
        tag: u16,
    },
    /// A limit of zero flows.
    NoFlows {
        /// The rule's number.
        rule: u16,
    },
    /// A `check-state` rule also has a `keep-state` or `limit` option.
    KeepsNothing {
        /// The rule's number.
        rule: u16,
    },
    /// A rule's action uses a value from a table, but the rule contains no table lookup.
    NoLookup {
        /// The rule's number.
        rule: u16,
    },
    /// Too many rules.
    TooMany,
    /// There is no rule with this number, or none in the set.
    NoSuchRule {
        /// The first requested number.
        number: u16,
    },
    /// The default rule cannot be deleted or moved.
    DefaultRule,
    /// Set 31 is always enabled.
    AlwaysEnabled,
    /// The set is greater than 31.
    NoSuchSet {
        /// The set.
        set: u8,
    },
    /// The table already has exactly this prefix.
    EntryExists {
        /// The table's name.
        table: String,
        /// The present value of the prefix.
        value: u32,
    },
    /// The table does not have exactly this prefix.
    NoSuchEntry {
        /// The table's name.
        table: String,
    },
    /// No rule uses a table with this name, and it has no entries.
    NoSuchTable {
        /// The name.
        table: String,
    },
    /// The table is not one of flows.
    NotOfFlows {
        /// The name.
        table: String,
    },
    /// A translator has no ports for new flows, or a redirection has none, or no inner host.
    NoPorts {
        /// The translator's number.
        nat: u32,
    },
    /// There is no translator with this number.
    NoSuchNat {
        /// The number.
        nat: u32,
    },
    /// Two tables have the same name.
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
            Self::Fib { rule, fib } => {
                write!(f, "rule {rule} sets routing table {fib}: numbers go from 0 to 65535")
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
                write!(f, "table `{table}` has this entry already, with the value {value}")
            }
            Self::NoSuchEntry { table } => write!(f, "table `{table}` has no such entry"),
            Self::NoSuchTable { table } => write!(f, "no table `{table}`"),
            Self::NotOfFlows { table } => write!(f, "table `{table}` is not one of flows"),
            Self::NoPorts { nat } => {
                write!(
                    f,
                    "translator {nat} has no ports for new flows, or a redirection without ports or inner hosts"
                )
            }
            Self::NoSuchNat { nat } => write!(f, "no translator {nat}"),
            Self::TableTwice { table } => write!(f, "two tables are called `{table}`"),
        }
    }
}

impl core::error::Error for RuleError {}
