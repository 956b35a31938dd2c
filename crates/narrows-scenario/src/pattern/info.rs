//! Statistics of a pattern.

use std::fmt;

use narrows_core::{Duration, Rate};
use serde::Serialize;

use crate::pattern::{Content, Pattern};

/// Statistics of a pattern.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PatternInfo {
    /// `loss`, `bit-errors`, `delay` or `rate`.
    pub about: &'static str,
    /// `packet`, `millisecond` or `bit`.
    pub per: &'static str,
    /// Number of places until it repeats.
    pub length: u64,
    /// For losses and bit errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hits: Option<Hits>,
    /// For delays in seconds, and rates in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
}

/// Statistics of the places that are hit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hits {
    /// Number of places.
    pub places: u64,
    /// Share of all places.
    pub share: f64,
    /// Number of bursts: runs of consecutive hits; a run from the end on into the start counts as two.
    pub bursts: u64,
    /// Mean burst length.
    pub mean_burst: Option<f64>,
    /// Longest burst.
    pub longest_burst: u64,
    /// Longest run of places that are not hit.
    pub longest_gap: u64,
}

/// Statistics of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Values {
    /// Number of values, including the first.
    pub changes: usize,
    /// Minimum.
    pub min: f64,
    /// Mean over all places; `None` if one is unlimited.
    pub mean: Option<f64>,
    /// Maximum; `None` if one is unlimited.
    pub max: Option<f64>,
}

impl Pattern {
    /// Statistics of the pattern.
    pub fn info(&self) -> PatternInfo {
        let (mut hits, mut values) = (None, None);
        match &self.content {
            Content::Loss(ranges) | Content::BitErrors(ranges) => {
                let lengths = || ranges.iter().map(|range| range.end - range.start);
                let places: u64 = lengths().sum();
                let bursts = ranges.len() as u64;
                let begins = ranges.iter().map(|range| range.start).chain([self.length]);
                let ends = [0].into_iter().chain(ranges.iter().map(|range| range.end));
                hits = Some(Hits {
                    places,
                    share: places as f64 / self.length as f64,
                    bursts,
                    mean_burst: (bursts > 0).then(|| places as f64 / bursts as f64),
                    longest_burst: lengths().max().unwrap_or(0),
                    longest_gap: begins.zip(ends).map(|(begin, end)| begin - end).max().unwrap_or(0),
                });
            }
            Content::Delay(changes) => values = Some(self.values(changes, |delay| Some(delay.seconds()))),
            Content::Rate(changes) => {
                let bits = |rate: Rate| (rate != Rate::UNLIMITED).then_some(rate.bits_per_second() as f64);
                values = Some(self.values(changes, bits));
            }
        }
        PatternInfo { about: self.about().name(), per: self.per.name(), length: self.length, hits, values }
    }

    fn values<T: Copy>(&self, changes: &[(u64, T)], value: impl Fn(T) -> Option<f64>) -> Values {
        let ends = changes.iter().skip(1).map(|change| change.0).chain([self.length]);
        let (mut sum, mut limited) = (0.0, true);
        let (mut minimum, mut maximum) = (f64::INFINITY, f64::NEG_INFINITY);
        for (change, end) in changes.iter().zip(ends) {
            let Some(value) = value(change.1) else {
                limited = false;
                continue;
            };
            sum += value * (end - change.0) as f64;
            (minimum, maximum) = (minimum.min(value), maximum.max(value));
        }
        Values {
            changes: changes.len(),
            min: minimum,
            mean: limited.then(|| sum / self.length as f64),
            max: limited.then_some(maximum),
        }
    }
}

impl fmt::Display for PatternInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} per {}, {} places, then from the beginning", self.about, self.per, self.length)?;
        if let Some(hits) = &self.hits {
            let share = hits.share * 100.0;
            writeln!(f, "  {} hit, {share:.4} % of them, in {} bursts", hits.places, hits.bursts)?;
            if let Some(mean) = hits.mean_burst {
                writeln!(
                    f,
                    "  bursts: mean {mean:.2}, max {}; gaps: max {}",
                    hits.longest_burst, hits.longest_gap
                )?;
            }
        }
        if let Some(values) = &self.values {
            let show = |value: Option<f64>| match (value, self.about) {
                (None, _) => "unlimited".to_owned(),
                (Some(seconds), "delay") => Duration::from_nanos((seconds * 1e9 + 0.5) as u64).to_string(),
                (Some(bits), _) => Rate::from_bits_per_second((bits + 0.5) as u64).to_string(),
            };
            let minimum = Some(values.min).filter(|value| value.is_finite());
            let (low, mean, high) = (show(minimum), show(values.mean), show(values.max));
            writeln!(f, "  {} values from {low} to {high}, mean {mean}", values.changes)?;
        }
        Ok(())
    }
}
