//! What came of all cases, for people and for machines.

use std::fmt::Write;

use crate::compare::Outcome;

/// A table in Markdown, with a paragraph for each case that has something to explain.
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| case | packets | what | kernel | narrows | apart | bound |\n|---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        for (at, row) in outcome.rows.iter().enumerate() {
            let (case, packets) = match at {
                0 => (format!("`{}`", outcome.case), outcome.packets.to_string()),
                _ => (String::new(), String::new()),
            };
            let mark = if row.holds { "" } else { " **exceeded**" };
            let _ = writeln!(
                text,
                "| {case} | {packets} | {} | {} | {} | {} | {}{mark} |",
                row.what, row.kernel, row.narrows, row.apart, row.bound
            );
        }
    }
    text
}

/// What was configured, and why the two differ, for each case.
pub fn configurations(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let _ = writeln!(text, "**{}** ({}). {}\n\n```sh", outcome.case, outcome.ours, outcome.explanation);
        for line in &outcome.tc {
            let _ = writeln!(text, "tc {line}");
        }
        let _ = writeln!(text, "```\n");
    }
    text
}

/// All figures as JSON.
///
/// # Errors
/// Never for what [`compare`](crate::compare) makes.
pub fn json(outcomes: &[Outcome]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(outcomes)
}
