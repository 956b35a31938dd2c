//! Sentences that several options share, and line wrapping.

use std::fmt;

use super::options::Chance;

/// Describes what happens with this probability: `what` names the packets, `more` is a further sentence
/// about them.
pub(super) fn chance(Chance { share, correlation }: Chance, what: &str, more: &str) -> Vec<String> {
    if share.is_zero() {
        return vec![format!("{what}: none.")];
    }
    if correlation.is_zero() {
        return vec![format!("{what}: {share}, independently of one another. {more}")];
    }
    vec![
        format!("{what}: {share}. {more}"),
        format!(
            "Consecutive draws have a rank correlation (Spearman's) of {correlation}, and the share stays {share}. (NetEm's formula changes a share other than 50%.)"
        ),
    ]
}

pub(super) fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Writes indented lines of at most a hundred characters.
pub(super) fn wrapped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    const WIDTH: usize = 100;
    let mut line = String::from("   ");
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(f, "{line}")?;
            line = "   ".into();
        }
        line.push(' ');
        line += word;
    }
    writeln!(f, "{line}")
}
