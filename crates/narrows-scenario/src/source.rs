//! The text of a trace or a pattern, with positions for errors.

pub(crate) mod number;

use std::ops::Range;

use crate::problem::{Found, Problem, ScenarioError};
use number::{Fault, scaled};

/// Lines in a portion: some 50 µs of work.
const PORTION: usize = 256;

/// Maximum number of points of a trace, over all columns, or of a pattern; more indicate a mistake.
pub const MOST_POINTS: usize = 10_000_000;

/// The text being parsed.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
}

impl<'a> Source<'a> {
    /// Parses the file with this name with `read`.
    pub(crate) fn read<T>(
        name: &str,
        bytes: &[u8],
        read: impl FnOnce(&Source<'_>) -> Result<T, Problem>,
    ) -> Result<T, ScenarioError> {
        let text = String::from_utf8_lossy(bytes);
        let fail = |problem| ScenarioError::new(name, &text, vec![problem]);
        if let Err(error) = std::str::from_utf8(bytes) {
            let at = error.valid_up_to();
            let problem = Problem::new(format!("byte 0x{:02x}: not UTF-8 text", bytes[at]));
            return Err(fail(problem.at(&(at..at + 1)).help("expected a text file")));
        }
        read(&Source { text: &text }).map_err(fail)
    }

    /// The lines, without line endings and byte order mark. Between portions of a long file other threads can run: it may
    /// be read while a network is up, on a processor that packets need.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let lines = self.text.strip_prefix('\u{feff}').unwrap_or(self.text).lines();
        lines.enumerate().map(|(number, line)| {
            if number % PORTION == PORTION - 1 {
                std::thread::yield_now();
            }
            line
        })
    }

    /// The span of a part of the text.
    pub(crate) fn span(&self, part: &str) -> Range<usize> {
        let start = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        start..start + part.len()
    }

    /// The error for an empty text.
    pub(crate) fn empty(&self) -> Problem {
        let problem = Problem::new("the file is empty");
        problem.at(&(0..self.text.len()))
    }

    /// The error for a part of the text. `allowed` starts the text after "expected".
    pub(crate) fn expected(&self, part: &str, allowed: &str) -> Problem {
        Problem::new(format!("found {}, expected {allowed}", Found(part))).at(&self.span(part))
    }

    /// A number times 10 to the `power`, rounded to the nearest integer; at most `most`. `what` is a noun
    /// with its article.
    pub(crate) fn number(&self, part: &str, power: i32, most: u64, what: &str) -> Result<u64, Problem> {
        let found = || Found(part).to_string();
        let too_large = || {
            let problem = Problem::new(format!("{} is too large for {what}", found())).at(&self.span(part));
            problem.help(format!("at most {}", Scaled { value: most, power }))
        };
        match scaled(part, power) {
            Ok(value) => u64::try_from(value).ok().filter(|value| *value <= most).ok_or_else(too_large),
            Err(Fault::TooLarge) => Err(too_large()),
            Err(Fault::Negative) => {
                Err(Problem::new(format!("{} is below zero", found())).at(&self.span(part)))
            }
            Err(Fault::NoNumber) => Err(self.expected(part, what)),
        }
    }

    /// A whole number, in digits only; at most `most`. `what` is a noun with its article.
    pub(crate) fn whole(&self, part: &str, most: u64, what: &str) -> Result<u64, Problem> {
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.expected(part, what));
        }
        self.number(part, 0, most, what)
    }
}

/// `value · 10^−power`, for display.
struct Scaled {
    value: u64,
    power: i32,
}

impl std::fmt::Display for Scaled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Powers are within ±20: units of time, rates and shares.
        let factor = 10u128.pow(self.power.unsigned_abs());
        if self.power >= 0 {
            write!(f, "{}", u128::from(self.value) / factor)
        } else {
            write!(f, "{}", u128::from(self.value) * factor)
        }
    }
}
