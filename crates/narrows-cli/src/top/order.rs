//! The order of directions, and which of them are shown.

use std::cmp::{Ordering, Reverse};

use super::model::{Line, Model};

/// A column by which directions can be in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Column {
    /// The order of the scenario.
    #[default]
    Link,
    Utilisation,
    Rate,
    Configured,
    Queue,
    Drops,
    Delay,
    Late,
}

impl Column {
    /// Every one, in the order in which they stand.
    pub(super) const ALL: [Self; 8] = [
        Self::Link,
        Self::Utilisation,
        Self::Rate,
        Self::Configured,
        Self::Queue,
        Self::Drops,
        Self::Delay,
        Self::Late,
    ];

    /// Its name, for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Utilisation => "utilisation",
            Self::Rate => "rate",
            Self::Configured => "configured rate",
            Self::Queue => "queue",
            Self::Drops => "drops",
            Self::Delay => "delay",
            Self::Late => "lateness",
        }
    }

    /// The one so many places further, round the end.
    pub(super) fn further(self, places: isize) -> Self {
        let at = Self::ALL.iter().position(|one| *one == self).unwrap_or(0) as isize;
        Self::ALL[(at + places).rem_euclid(Self::ALL.len() as isize) as usize]
    }
}

/// What is shown, in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) column: Column,
    /// Least first; of links the last first.
    pub(super) reversed: bool,
    /// Only those whose link or host has this in its name, in capitals or not.
    pub(super) filter: String,
}

impl Order {
    /// The lines to show: the greatest first, those alike in the order of the scenario.
    pub(super) fn lines<'a>(&self, model: &'a Model) -> Vec<&'a Line> {
        let filter = self.filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&filter);
        let mut lines: Vec<&Line> = model
            .lines
            .iter()
            .filter(|line| filter.is_empty() || has(&line.name) || has(&line.from) || has(&line.to))
            .collect();
        let share = |line: &Line| line.utilisation.unwrap_or(-1.0);
        match self.column {
            Column::Link => {}
            Column::Utilisation => {
                lines.sort_by(|a, b| share(b).partial_cmp(&share(a)).unwrap_or(Ordering::Equal));
            }
            Column::Rate => lines.sort_by_key(|line| Reverse(line.bps)),
            // Unlimited is the greatest.
            Column::Configured => lines.sort_by_key(|line| Reverse(line.settings.rate_bps.unwrap_or(u64::MAX))),
            Column::Queue => lines.sort_by_key(|line| Reverse((line.waiting_packets, line.waiting_bytes))),
            Column::Drops => lines.sort_by_key(|line| Reverse(line.drops)),
            Column::Delay => lines.sort_by_key(|line| Reverse(line.settings.delay_ns)),
            Column::Late => lines.sort_by_key(|line| Reverse(line.late.map(|late| late.p99_ns))),
        }
        if self.reversed {
            lines.reverse();
        }
        lines
    }
}
