//! The present state of the network: once a second packet threads report what their links have delivered.

use narrows_core::{Duration, Time};
use narrows_io::host::time_is_virtual;
use narrows_report::{Now, RecentRates, RunInfo};

use super::Director;
use super::requests::Hurry;
use crate::data::LoopError;
use crate::data::orders::{Answer, Order};

/// The interval between queries.
const APART: Duration = Duration::from_secs(1);
/// With more directions than this they are not queried, because it would take them too long.
const MOST_DIRECTIONS: usize = 256;

impl Director {
    /// Queries packet threads when it is time.
    pub(super) fn keep_recent(&mut self) {
        let now = self.clock.now();
        if now < self.next_snapshot || self.is_halted {
            return;
        }
        if time_is_virtual() || !self.is_looked_at() {
            self.next_snapshot = Time::NEVER;
            return;
        }
        self.next_snapshot = now + APART;
        self.look_at_feeds();
        self.pool.tell(|_| Order::Snapshot { counts: false });
        self.pool.call();
    }

    /// Asks packet threads for a row of the series when it is time.
    pub(super) fn keep_series_going(&mut self) {
        let now = self.clock.now();
        let Some(series) = self.series.as_mut().filter(|series| series.next() <= now) else { return };
        if self.is_halted {
            return;
        }
        series.asked(now);
        self.pool.tell(|_| Order::Snapshot { counts: true });
        self.pool.call();
    }

    fn is_looked_at(&self) -> bool {
        let directions = self.plan.scenario().links.iter().map(|link| link.directions().len());
        directions.sum::<usize>() <= MOST_DIRECTIONS
    }

    /// The recent rate delivered to hosts, as of the last query.
    pub(super) fn recent_rates(&self) -> RecentRates {
        Now::delivered(self.pool.workers.iter().map(|worker| &worker.recent))
    }

    /// The present state of the network; `None` if it has too many links.
    pub(super) fn present(&mut self, info: &RunInfo, hurry: Hurry<'_>) -> Result<Option<Now>, LoopError> {
        if !self.is_looked_at() {
            return Ok(None);
        }
        self.pool.tell(|_| Order::Snapshot { counts: false });
        self.pool.call();
        let mut missing = self.pool.len();
        self.gather(hurry, |director, number, answer| {
            missing = missing.saturating_sub(usize::from(matches!(answer, Answer::Snapshot(..))));
            director.take(number, answer)?;
            Ok(missing == 0)
        })?;
        let configured = RunInfo::of(self.plan.scenario(), info.kind);
        Ok(Some(Now::of(&configured, self.pool.workers.iter().map(|worker| &worker.recent))))
    }
}
