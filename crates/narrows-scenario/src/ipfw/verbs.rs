//! The first words of commands.

use super::lexer::Word;
use crate::dialect::shell::raises_rights;

/// First words of commands.
pub(super) const VERBS: &[&str] = &[
    "add", "delete", "list", "show", "print", "zero", "resetlog", "flush", "set", "pipe", "queue", "sched",
    "table", "enable", "disable", "sysctl", "link", "flowset", "nat",
];

/// Whether the words of an indented line are a command of their own, rather than a continuation.
pub(super) fn is_command(words: &[Word]) -> bool {
    let is =
        |at: usize, texts: &[&str]| words.get(at).is_some_and(|word| texts.contains(&word.text.as_str()));
    let number =
        |at: usize| words.get(at).is_some_and(|word| word.text.starts_with(|c: char| c.is_ascii_digit()));
    match words.first().map(|word| word.text.as_str()) {
        // `queue 20` and `pipe 5` may continue a configuration line.
        Some("pipe" | "queue" | "sched" | "link" | "flowset" | "nat") => {
            let verbs = ["config", "delete", "list", "show", "flush"];
            is(1, &verbs) || number(1) && is(2, &verbs)
        }
        Some("set") => is(1, &["enable", "disable", "move", "swap", "show"]) || number(1) && is(2, VERBS),
        // ipfw's old syntax has a number before `add`.
        Some(_) if number(0) => is(1, &["add", "delete"]),
        Some(text) => VERBS.contains(&text) || is_program(text) || raises_rights(text),
        None => false,
    }
}

pub(super) fn is_program(text: &str) -> bool {
    matches!(text.rsplit('/').next(), Some("ipfw" | "dnctl")) && !text.ends_with('/')
}
