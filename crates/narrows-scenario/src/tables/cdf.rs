//! Distribution functions as points: one `delay,probability` per row, interpolated linearly.

use narrows_core::Duration;

use super::error::TableError;
use super::histogram::time;
use super::quantity::{self, TimeUnit, is_name};
use super::rows::{self, Separator};

/// Reads the points of a distribution function, the last of which has probability 1. `file` is its name,
/// for errors, and `unit` the default unit of delays. Probabilities are from 0 to 1, or in percent with
/// `%`.
///
/// # Errors
/// If a row is invalid, delays or probabilities decrease, or the last probability is not 1.
pub fn read_cdf(
    file: &str,
    bytes: &[u8],
    unit: Option<TimeUnit>,
) -> Result<Vec<(Duration, f64)>, TableError> {
    let mut points: Vec<(Duration, f64)> = Vec::new();
    let mut last = None;
    for (line, text) in rows::lines(rows::text(file, bytes)?) {
        let fields = Separator::of(text).fields(text);
        if points.is_empty() && fields.iter().all(|field| is_name(field)) {
            continue;
        }
        let [delay, probability] = fields[..] else {
            return Err(TableError::found(file, line, text, "delay,probability"));
        };
        let delay = time(file, line, delay, unit)?;
        let share = match quantity::split(probability) {
            Some((share, "")) => share,
            Some((share, "%")) => share / 100.0,
            _ => f64::NAN,
        };
        if !(0.0..=1.0).contains(&share) {
            return Err(TableError::found(file, line, probability, "a probability from 0 to 1"));
        }
        if let Some(&(before, least)) = points.last() {
            let falls = |what: String| Err(TableError::line_of(file, line, what));
            if delay < before {
                return falls(format!("the delay falls, from {before} to {delay}"));
            }
            if share < least {
                return falls(format!("the probability falls, from {least} to {share}"));
            }
        }
        points.push((delay, share));
        last = Some((line, share));
    }
    match last {
        None => Err(TableError::whole(file, "there is no point in this file")),
        Some((line, share)) if share < 1.0 => {
            Err(TableError::line_of(file, line, format!("the last probability is {share}, not 1")))
        }
        Some(_) => Ok(points),
    }
}
