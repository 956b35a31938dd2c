//! Numbered rules, as those of FreeBSD's ipfw(8): which packets pass, which are dropped, which go through a pipe or queue.
//!
//! A [`RuleSet`] knows headers and no links: a [`Decision`] names pipes and queues by their numbers, and the network knows
//! where they are.
//!
//! Source: ipfw(8) and its engine in Dummynet's distribution. What cannot be read off a rule:
//!
//! - Chance comes first, then the packet's dynamic rule, at the first rule that makes or checks them; then the conditions in
//!   their order, each row of alternatives up to the first that holds.
//! - A packet that has a dynamic rule gets the action of the rule that made it, is counted there, and goes on behind it where
//!   that action goes on, also if that rule's set is disabled by now.
//! - A packet that comes back from a pipe is asked for its dynamic rule anew, and its open calls come with it.
//! - Random draws are those of the stream `rule N K` of the rule set's name, N being the rule's number and K how many rules
//!   have had the number before it: other rules change no draws. Each time a packet has gone back, it draws the next word.
//!
//! Departures: options for IPv4 alone in the reference (TOS, length, hop limit, tables, …) count for IPv6, too; `established`
//! is what the manual says, RST or ACK; ports are also those of DCCP, SCTP and UDP-Lite; a packet that no rule decides on
//! passes; a rule that takes the value of a look-up must look up something; a packet that has called too often is denied.

mod book;
mod calls;
mod change;
mod check;
mod config;
mod error;
mod facts;
mod hot;
mod index;
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

pub use crate::place::Place;
pub use book::RuleBook;
pub use change::RuleChange;
pub use config::RuleSetConfig;
pub use error::RuleError;
pub use passing::Passing;
pub use program::PreparedRules;
pub use rule::{
    Action, Addresses, Argument, By, Field, Keep, Literal, Masked, Ranges, Rule, TableTest, Tag, Term, Test,
    Tos,
};
pub use ruleset::{Exceeded, RuleCounters, RuleSet, RuleView};
pub use state::{Parent, Refused, RefusedCounts, StateConfig, StateKind, StateView, States};
pub use table::{Lpm, Matches, Prefixes, Table};
pub use walk::Decision;
pub use which::Which;
