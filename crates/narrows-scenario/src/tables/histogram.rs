//! Histograms in the format of `sch_delay` (DETERMINISTIC6G's NetworkDelayEmulator,
//! `userspace_delay/histograms`).
//!
//! A row is `lower bound,count,unit`, without a header; a bin ends where the next one starts. So the last
//! row only ends the bin before it, and has count 0. The original unit is `ns`; here any unit is accepted,
//! and a row may omit it if the file has a default.

use narrows_core::Duration;

use super::error::TableError;
use super::quantity::{self, TimeUnit, is_name};
use super::rows::{self, Separator};
use crate::problem::Found;

/// Reads a histogram: (start, end, weight) of each bin, in increasing order, without gaps. `file` is its
/// name, for errors, and `unit` the default unit of bounds.
///
/// # Errors
/// If a row is invalid, bounds do not increase, the last count is not 0, or all counts are 0.
pub fn read_histogram(
    file: &str,
    bytes: &[u8],
    unit: Option<TimeUnit>,
) -> Result<Vec<(Duration, Duration, f64)>, TableError> {
    let mut rows: Vec<(usize, Duration, f64)> = Vec::new();
    for (line, text) in rows::lines(rows::text(file, bytes)?) {
        let fields = Separator::of(text).fields(text);
        if rows.is_empty() && fields.iter().all(|field| is_name(field)) {
            continue;
        }
        let (bound, count, unit) = match fields[..] {
            [bound, count] => (bound, count, unit),
            [bound, count, own] => {
                let own = TimeUnit::named(own)
                    .ok_or_else(|| TableError::found(file, line, own, "a unit: ns, us, ms or s"))?;
                (bound, count, Some(own))
            }
            _ => return Err(TableError::found(file, line, text, "lower bound,count,unit")),
        };
        let bound = time(file, line, bound, unit)?;
        if let Some((_, before, _)) = rows.last().filter(|(_, before, _)| *before >= bound) {
            let what = format!("the bound {bound} is not above the previous one, {before}");
            return Err(TableError::line_of(file, line, what));
        }
        let weight = match quantity::split(count) {
            Some((weight, "")) if weight >= 0.0 => weight,
            _ => return Err(TableError::found(file, line, count, "a count, 0 or more")),
        };
        rows.push((line, bound, weight));
    }
    match rows.last() {
        None => return Err(TableError::whole(file, "there is no row in this file")),
        Some(&(line, _, weight)) if weight > 0.0 => {
            let what = "the last row ends the last bin, so its count has to be 0";
            return Err(TableError::line_of(file, line, what));
        }
        _ => {}
    }
    if rows.iter().all(|&(_, _, weight)| weight == 0.0) {
        return Err(TableError::whole(file, "all counts are 0"));
    }
    Ok(rows.windows(2).map(|pair| (pair[0].1, pair[1].1, pair[0].2)).collect())
}

/// A delay with its own unit or the file's, rounded to a nanosecond.
pub(super) fn time(
    file: &str,
    line: usize,
    field: &str,
    unit: Option<TimeUnit>,
) -> Result<Duration, TableError> {
    let Some((number, suffix)) = quantity::split(field) else {
        return Err(TableError::found(file, line, field, "a delay"));
    };
    let unit = match suffix {
        "" => unit.ok_or_else(|| {
            TableError::line_of(file, line, format!("{} has no unit: ns, us, ms or s", Found(field)))
        })?,
        own => TimeUnit::named(own)
            .ok_or_else(|| TableError::found(file, line, field, "a delay in ns, us, ms or s"))?,
    };
    let nanoseconds = number * unit.nanoseconds();
    if !(0.0..=super::samples::LONGEST).contains(&nanoseconds) {
        return Err(TableError::found(file, line, field, "a delay from zero to a day"));
    }
    Ok(Duration::from_nanos(nanoseconds.round() as u64))
}
