//! `narrows kernel info`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use narrows_guest::kernel::{Kept, KernelError, Store};
use serde::Serialize;

use crate::json::Json;
use crate::output::Failure;

/// Version of the JSON output.
const SCHEMA: u32 = 2;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows kernel info
  narrows kernel info --json | jq -r '.kernels[].version'")]
pub(crate) struct Info {
    #[command(flatten)]
    json: Json,
}

/// All kernels, in JSON.
#[derive(Serialize)]
struct All<'a> {
    kernels: &'a [Entry],
}

/// A kernel, in JSON.
#[derive(Debug, Serialize)]
struct Entry {
    version: String,
    path: PathBuf,
    bytes: u64,
    /// Unix time in seconds.
    built: u64,
    source: String,
    recipe: String,
    older_recipe: bool,
    edits: Vec<String>,
    queueing_disciplines: Vec<String>,
    congestion_controls: Vec<String>,
}

impl Entry {
    fn of(kept: &Kept) -> Result<Self, KernelError> {
        let about = kept.about.clone();
        Ok(Self {
            version: about.version,
            path: kept.executable(),
            bytes: kept.size()?,
            built: about.built,
            source: about.source,
            recipe: about.recipe,
            older_recipe: kept.is_of_older_recipe(),
            edits: about.edits,
            queueing_disciplines: kept.queueing_disciplines()?,
            congestion_controls: kept.congestion_controls()?,
        })
    }

    fn describe(&self, text: &mut String) {
        let recipe = if self.older_recipe {
            "of an older recipe: `narrows kernel build` makes a new one"
        } else {
            "of this narrows"
        };
        let megabytes = (self.bytes as f64) / 1e6;
        for (topic, finding) in [
            ("file", format!("{}, {megabytes:.1} MB", self.path.display())),
            ("built", format!("{} from {}", date(self.built), self.source)),
            ("recipe", format!("{}, {recipe}", self.recipe)),
            ("edits", self.edits.join(", ")),
            ("qdiscs", self.queueing_disciplines.join(" ")),
            ("congestion controls", self.congestion_controls.join(" ")),
        ] {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {topic:20}{finding}");
        }
    }
}

pub(crate) fn info(args: &Info, store: &Store) -> Result<u8, Failure> {
    let kept = store.list()?;
    let entries = kept.iter().map(Entry::of).collect::<Result<Vec<_>, _>>()?;
    args.json.probe()?;
    if entries.is_empty() && args.json.path().is_none() {
        return Err(KernelError::None.into());
    }
    let mut text = String::new();
    for entry in &entries {
        let _ = writeln!(text, "{}", entry.version);
        entry.describe(&mut text);
    }
    args.json.put(SCHEMA, &All { kernels: &entries }, || text)?;
    Ok(0)
}

/// The date in the Gregorian calendar, in UTC, from a Unix time in seconds (Hinnant's `civil_from_days`:
/// years start in March).
fn date(seconds: u64) -> String {
    const DAYS_BEFORE_1970: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = seconds / 86_400 + DAYS_BEFORE_1970;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_704_067_199, "2023-12-31"),
            (1_709_164_800, "2024-02-29"),
        ];
        for (seconds, day) in days {
            assert_eq!(date(seconds), day);
        }
    }
}
