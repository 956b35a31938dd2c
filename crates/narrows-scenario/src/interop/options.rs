//! Options in the syntax of ns-3's `CommandLine`: `--name=value`, or `--name` for a flag.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use narrows_core::Duration;

use super::{InteropError, quantity};

/// The options of a scenario.
pub(super) struct Options(BTreeMap<String, String>);

impl Options {
    /// Of `allowed` options, those with `*` must be there.
    pub(super) fn read<'a>(
        scenario: &str,
        words: impl Iterator<Item = &'a str>,
        allowed: &[&str],
    ) -> Result<Self, InteropError> {
        let mut found = BTreeMap::new();
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let known = |name: &str| allowed.iter().any(|one| one.trim_end_matches('*') == name);
            match name.strip_prefix("--").filter(|name| known(name)) {
                // Of several, ns-3 takes the last one.
                Some(name) => found.insert(name.to_owned(), value.to_owned()),
                None => {
                    let all: Vec<_> =
                        allowed.iter().map(|one| format!("`--{}`", one.trim_end_matches('*'))).collect();
                    return Err(InteropError(format!(
                        "found the option `{word}`, expected one of {} for {scenario}",
                        all.join(", ")
                    )));
                }
            };
        }
        for required in allowed.iter().filter_map(|one| one.strip_suffix('*')) {
            if found.get(required).is_none_or(String::is_empty) {
                return Err(InteropError(format!("{scenario} needs `--{required}=VALUE`")));
            }
        }
        Ok(Self(found))
    }

    /// The value, if given; empty for a flag.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of a required option.
    pub(super) fn required(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// A time.
    pub(super) fn time(&self, name: &str) -> Result<Duration, InteropError> {
        quantity::time(name, self.required(name))
    }
}

/// A whole number in a range.
pub(super) fn number(name: &str, text: &str, allowed: RangeInclusive<u64>) -> Result<u64, InteropError> {
    text.parse().ok().filter(|number| allowed.contains(number)).ok_or_else(|| {
        let (least, most) = (allowed.start(), allowed.end());
        InteropError(format!("--{name}: expected a whole number from {least} to {most}, found `{text}`"))
    })
}
