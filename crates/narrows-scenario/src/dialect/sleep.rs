//! `sleep` in scripts: what follows happens later.

use narrows_core::Duration;

use super::Word;
use crate::problem::{Found, Problem};
use crate::units::LONGEST_NANOS;
use crate::units::decimal::{Decimal, Misfit};

/// The name of the program.
pub(crate) const SLEEP: &str = "sleep";

/// A time, in seconds unless it has another unit.
pub(crate) fn time(word: Word<'_>) -> Result<Duration, Problem> {
    const EXPECTED: &str = "a time such as 5, 0.5 or 2m";
    let (number, unit) = match Decimal::split(word.text) {
        (Some(number), unit) => (number, unit),
        (None, _) => return Err(word.expected(EXPECTED)),
    };
    let seconds: u128 = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(word.expected(EXPECTED)),
    };
    let found = Found(word.text);
    match number.times(seconds * 1_000_000_000) {
        Ok(nanos) if nanos <= LONGEST_NANOS.into() => Ok(Duration::from_nanos(nanos as u64)),
        Ok(_) | Err(Misfit::TooLarge) => {
            Err(word.problem(format!("{found} is too large")).help("at most a hundred years"))
        }
        Err(Misfit::Negative) => Err(word.problem(format!("{found} is below zero"))),
        Err(Misfit::NotWhole) => Err(word.problem(format!("{found} is not a whole number of nanoseconds"))),
    }
}
