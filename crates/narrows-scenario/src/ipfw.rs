//! ipfw commands of FreeBSD's firewall and Dummynet: `add pipe 1 ip from any to any`, `pipe 1 config bw
//! 3Mbit/s delay 32ms`.
//!
//! [`Script::parse`] reads a script and computes its final state. [`Script::lines`] explains it line by
//! line, and [`Script::to_toml`] converts it to a scenario. [`rule`] parses a rule and [`rule_text`] writes
//! one; [`Command::parse`] parses a command; [`rule_lines`] and similar functions print in ipfw's layout.
//! `docs/ipfw.md` lists what matches ipfw and what differs. Sources: ipfw(8), and for the layouts
//! `ipfw/ipfw2.c` and `ipfw/dummynet.c` of Dummynet.
//!
//! ```
//! use narrows_scenario::ipfw::{self, Context};
//!
//! let rule = ipfw::rule("100 prob 0.5 pipe 1 out dst-ip 10.0.0.0/8", &Context::default())?;
//! assert_eq!(ipfw::rule_text(&rule), "100 prob 0.500000 pipe 1 ip from any to any out dst-ip 10.0.0.0/8");
//! # Ok::<(), narrows_scenario::ScenarioError>(())
//! ```

mod address;
mod command;
mod config;
mod directions;
mod flows;
mod interfaces;
mod lexer;
mod listing;
mod mask;
mod names;
mod nat;
mod network;
mod numbers;
mod options;
mod pf;
mod programs;
mod quantity;
mod reader;
mod rule;
mod script;
mod sets;
mod shown;
mod source;
mod table;
mod text;
mod translation;
mod verbs;
mod words;
mod written;

pub use address::Context;
pub use command::{Command, Listing, Rules, Times, setting_lines};
pub(crate) use command::{disabled, read_all};
pub use config::{Config, Object};
pub(crate) use config::{gilbert_elliott, of_type};
pub use flows::TableKey;
pub(crate) use flows::{entry_of as flow_entry, fields_of as flow_fields, kind_text as flow_kind};
pub(crate) use interfaces::Named;
pub use listing::{
    ListedFlow, ListedRule, ListedState, StateKind, object_lines, rule_lines, sets_line, table_info,
    table_lines,
};
pub use nat::{NatCommand, nat_flow_lines, nat_lines};
pub(crate) use nat::{explained as explained_nat, is_usable, redirect as read_redirect, redirect_text};
pub use network::Network;
pub(crate) use options::fits;
pub(crate) use script::LaterCommand;
pub use script::{ExplainedLine, Script};
pub use sets::SetCommand;
pub use table::TableCommand;
pub use text::rule_text;
pub(crate) use written::{Written, split as split_written};

use narrows_core::rules::Rule;

use crate::problem::{Problem, ScenarioError};

/// Name of the text in errors.
const NAME: &str = "ipfw";

/// Parses a rule, with or without a leading `add`. Its number is 0 if none is given.
///
/// # Errors
/// The error points at the word, and says what is allowed there.
pub fn rule(text: &str, context: &Context<'_>) -> Result<Rule, ScenarioError> {
    read_rule(text, context)
        .map(|(rule, _)| rule)
        .map_err(|problem| ScenarioError::new(NAME, text, vec![problem]))
}

/// Same, with the assumptions made, and with a bare problem whose place counts from the start of the text.
pub(crate) fn read_rule(text: &str, context: &Context<'_>) -> Result<(Rule, Vec<String>), Problem> {
    let mut lines = lexer::lines(text);
    let line = match (lines.pop(), lines.pop()) {
        (None, _) => return Err(Problem::new("the rule is missing").at(&(0..text.len()))),
        (Some(line), None) => line,
        (Some(line), Some(_)) => {
            return Err(Problem::new("a second rule in one text")
                .at(&line.span)
                .help("write each rule as a separate text"));
        }
    };
    let mut remarks = Vec::new();
    let rule = rule::read_line(&line, context, &mut remarks).map_err(|problem| problem.at(&line.span))?;
    Ok((rule, remarks))
}

impl Command {
    /// Parses one command, with or without a leading `ipfw`; also returns the assumptions made.
    ///
    /// # Errors
    /// The error points at the word, and says what is allowed there.
    pub fn parse(text: &str, context: &Context<'_>) -> Result<(Self, Vec<String>), ScenarioError> {
        let read = || {
            let mut lines = lexer::lines(text);
            lines.retain(|line| !line.words.is_empty());
            let line = match (lines.pop(), lines.pop()) {
                (None, _) => return Err(Problem::new("the command is missing").at(&(0..text.len()))),
                (Some(line), None) => line,
                (Some(line), Some(_)) => return Err(Problem::new("a second command").at(&line.span)),
            };
            let mut remarks = Vec::new();
            command::read(&line, context, &mut remarks)
                .map(|command| (command, remarks))
                .map_err(|problem| problem.at(&line.span))
        };
        read().map_err(|problem| ScenarioError::new(NAME, text, vec![problem]))
    }

    /// Explains the command in words.
    pub fn explain(&self) -> String {
        words::command(self)
    }
}

#[cfg(test)]
mod tests;
