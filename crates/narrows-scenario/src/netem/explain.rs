//! Explains NetEm options in words, one by one, including how each number without a unit was interpreted.

use std::fmt;

use narrows_core::Duration;

use super::options::{DEFAULT_LIMIT, Netem};
use super::row::{Clause, Row};
use super::words::wrapped;
use super::{FedDelay, Kind, OPTIONS, Qdisc, fed};

/// Explanation of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The options in the order in which they were written.
    pub options: Vec<ExplainedOption>,
    /// Notes about defaults that apply.
    pub notes: Vec<String>,
}

/// Explanation of one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedOption {
    /// The option as written.
    pub text: String,
    /// Numbers without a unit, and how each was interpreted.
    pub bare_numbers: Vec<(String, String)>,
    /// What it does, in sentences.
    pub meaning: Vec<String>,
}

impl Qdisc {
    /// Explains each option.
    pub fn explain(&self) -> Explanation {
        let (options, notes) = match &self.kind {
            Kind::Netem(netem) => {
                (explained(&self.clauses, OPTIONS, netem.as_ref()), netem.notes(&self.clauses))
            }
            Kind::Delay(delay) => (explained(&self.clauses, fed::OPTIONS, delay), FedDelay::notes()),
        };
        Explanation { options, notes }
    }
}

fn explained<T>(clauses: &[Clause], rows: &[Row<T>], options: &T) -> Vec<ExplainedOption> {
    let meaning = |clause: &Clause| {
        let row = rows.iter().find(|row| row.words[0] == clause.option);
        row.map_or(Vec::new(), |row| (row.explain)(options))
    };
    let option = |clause: &Clause| ExplainedOption {
        text: clause.text.clone(),
        bare_numbers: clause.bare.clone(),
        meaning: meaning(clause),
    };
    clauses.iter().map(option).collect()
}

impl Netem {
    /// Notes about defaults that apply.
    fn notes(&self, clauses: &[Clause]) -> Vec<String> {
        let said = |option| clauses.iter().any(|clause| clause.option == option);
        let mut notes = Vec::new();
        if clauses.is_empty() {
            notes.push("No option is given: the link does nothing to packets.".into());
        }
        if !said("limit") {
            notes.push(if self.has_rate() {
                format!("No limit is given: {DEFAULT_LIMIT} packets may wait for the rate, tc's default. Packets in flight do not count. (In tc's netem they do.)")
            } else {
                format!("No limit is given and there is no rate to wait for: no packet is dropped for lack of room. (tc's netem holds at most {DEFAULT_LIMIT} packets.)")
            });
        }
        if said("delay") && !said("distribution") && self.jitter > Duration::ZERO {
            notes.push(super::UNIFORM.into());
        }
        notes
    }
}

/// One paragraph for each option, for people.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for option in &self.options {
            writeln!(f, "{}", option.text)?;
            for (number, taken) in &option.bare_numbers {
                writeln!(f, "    {number} is taken as {taken}")?;
            }
            option.meaning.iter().try_for_each(|words| wrapped(f, words))?;
        }
        if !self.notes.is_empty() {
            writeln!(f, "not said")?;
            self.notes.iter().try_for_each(|note| wrapped(f, note))?;
        }
        Ok(())
    }
}
