//! Numbered rules like those of FreeBSD's ipfw(8): which packets pass, which are dropped, and which go through a pipe
//! or queue.
//!
//! A [`RuleSet`] knows about headers, not about links. A [`Decision`] names pipes and queues by number, and the
//! network maps the numbers to links.
//!
//! Source: ipfw(8) and its engine in Dummynet's distribution. Semantics that a rule's text does not show:
//!
//! - The probability is tested first. Then, at the first rule that creates or checks dynamic rules, the packet's
//!   dynamic rule is looked up. Then the conditions are tested in order; each "or block" is tested up to its first
//!   match.
//! - A packet with a dynamic rule gets the action of the parent rule and is counted there. If that action continues,
//!   the packet continues after the parent rule. This also holds if the parent rule's set has been disabled.
//! - For a packet that returns from a pipe, the dynamic rule is looked up again. The packet keeps its open calls.
//! - Random draws come from the stream `rule N K` of the rule set's name, where N is the rule's number and K is how
//!   many earlier rules have had this number. So other rules do not change draws. Each time a packet jumps backwards,
//!   it draws the next word.
//!
//! Differences from the reference: options that are IPv4-only there (TOS, length, hop limit, tables, …) also apply to
//! IPv6. `established` means what the manual says, RST or ACK. Ports include those of DCCP, SCTP and UDP-Lite. A
//! packet that no rule decides passes. A rule that uses a table's value must contain a table lookup. A packet with
//! too many calls is denied.

mod book;
mod calls;
mod change;
mod check;
mod config;
mod error;
mod facts;
mod hot;
mod index;
mod nat;
mod passing;
mod program;
mod rule;
mod ruleset;
mod state;
mod table;
mod tables;
mod test;
mod walk;
mod which;

pub use crate::labels::Labels;
pub use crate::place::Place;
pub use book::RuleBook;
pub use change::RuleChange;
pub use config::RuleSetConfig;
pub use error::RuleError;
pub use nat::{Inner, Lifetimes, NatConfig, Redirect, Remote};
pub use passing::Passing;
pub use program::PreparedRules;
pub use rule::{
    Action, Addresses, Answer, Argument, By, Field, Flags, Keep, Literal, Masked, NextHop, Ranges, Rule,
    TableTest, Tag, Term, Test, Tos,
};
pub use ruleset::{Exceeded, NatView, RuleCounters, RuleSet, RuleView};
pub use state::{Parent, Refused, RefusedCounts, StateConfig, StateKind, StateView, States};
pub use table::{FlowEntry, FlowFields, Lpm, Matches, Prefixes, Side, SpecialKey, Table};
pub use walk::Decision;
pub use which::Which;
