//! Order and filter of directions.

use std::cmp::Ordering;

use super::model::{Line, Model};

/// A column to sort by.
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
    /// All columns, in display order.
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

    /// Display name.
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

    /// The column this many places further, wrapping around.
    pub(super) fn further(self, places: isize) -> Self {
        let at = Self::ALL.iter().position(|one| *one == self).unwrap_or(0) as isize;
        Self::ALL[(at + places).rem_euclid(Self::ALL.len() as isize) as usize]
    }
}

/// Order and filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) column: Column,
    /// Ascending; for links, last first.
    pub(super) reversed: bool,
    /// Shows only links and hosts with this text in their names, ignoring case.
    pub(super) filter: String,
}

impl Order {
    /// The lines to show: descending, equal ones in the order of the scenario.
    pub(super) fn lines<'a>(&self, model: &'a Model) -> Vec<&'a Line> {
        let filter = self.filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&filter);
        let mut lines: Vec<&Line> = model
            .lines
            .iter()
            .filter(|line| filter.is_empty() || has(&line.name) || has(&line.from) || has(&line.to))
            .collect();
        if self.column == Column::Link {
            if self.reversed {
                lines.reverse();
            }
            return lines;
        }
        let order = |a: &&Line, b: &&Line| match self.column {
            Column::Link => Ordering::Equal,
            Column::Utilisation => {
                let share = |line: &Line| line.utilisation.unwrap_or(-1.0);
                share(a).partial_cmp(&share(b)).unwrap_or(Ordering::Equal)
            }
            Column::Rate => a.bps.cmp(&b.bps),
            // Unlimited sorts as the maximum.
            Column::Configured => {
                let rate = |line: &Line| line.settings.rate_bps.unwrap_or(u64::MAX);
                rate(a).cmp(&rate(b))
            }
            Column::Queue => (a.backlog_packets, a.backlog_bytes).cmp(&(b.backlog_packets, b.backlog_bytes)),
            Column::Drops => a.drops.cmp(&b.drops),
            Column::Delay => a.settings.delay_ns.cmp(&b.settings.delay_ns),
            Column::Late => a.late.map(|late| late.p99_ns).cmp(&b.late.map(|late| late.p99_ns)),
        };
        lines.sort_by(|a, b| if self.reversed { order(a, b) } else { order(b, a) });
        lines
    }
}
