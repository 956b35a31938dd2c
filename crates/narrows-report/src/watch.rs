//! Bounds on lateness, and when they were exceeded.

use std::str::FromStr;

use narrows_core::{Duration, Time};
use serde::{Deserialize, Serialize};

/// Late packets no further apart than this belong to the same interval.
const GAP: Duration = Duration::from_millis(10);
/// The maximum number of intervals kept for a bound. Beyond it, the nearest ones are merged.
pub(crate) const MOST_INTERVALS: usize = 16;
/// The default bound, which is watched if none was requested.
pub(crate) const USUAL_BOUND: Duration = Duration::from_millis(1);

/// The quantile that a bound applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantile {
    /// The median, p50.
    #[serde(rename = "p50", alias = "median")]
    Median,
    /// p90.
    P90,
    /// p99.
    P99,
    /// p99.9.
    #[serde(rename = "p99.9", alias = "p999")]
    P999,
    /// The maximum.
    Max,
}

impl Quantile {
    /// All quantiles.
    pub const ALL: [Self; 5] = [Self::Median, Self::P90, Self::P99, Self::P999, Self::Max];

    /// The name: `p50`, `p90`, `p99`, `p99.9`, `max`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
        }
    }

    /// In thousandths.
    pub(crate) fn thousandths(self) -> u64 {
        match self {
            Self::Median => 500,
            Self::P90 => 900,
            Self::P99 => 990,
            Self::P999 => 999,
            Self::Max => 1000,
        }
    }
}

impl FromStr for Quantile {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        // Earlier names.
        let name = match text {
            "median" => "p50",
            "p999" => "p99.9",
            name => name,
        };
        Self::ALL.into_iter().find(|quantile| quantile.name() == name).ok_or(())
    }
}

/// A bound on lateness, requested for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatenessBound {
    /// The quantile that it applies to.
    pub quantile: Quantile,
    /// The maximum lateness at that quantile.
    pub at_most: Duration,
}

/// A period in which packets were later than a bound, no two consecutive ones more than 10 ms apart unless intervals
/// were merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViolationInterval {
    /// The scheduled instant of the first of them.
    pub start_ns: u64,
    /// The instant at which the last of them was released.
    pub end_ns: u64,
    /// How many there were.
    pub packets: u64,
    /// The maximum lateness.
    #[serde(alias = "most_ns")]
    pub max_ns: u64,
    /// CPU steal in the seconds that the period touches, over all processors; `None` if the kernel does not report
    /// it.
    #[serde(alias = "stolen_ns")]
    pub steal_ns: Option<u64>,
    /// The run-queue wait of the packet loop in these seconds.
    #[serde(alias = "waited_ns")]
    pub run_queue_wait_ns: Option<u64>,
}

/// Records packets that were later than a bound.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) bound: Duration,
    pub(crate) packets: u64,
    pub(crate) intervals: Vec<ViolationInterval>,
}

impl Watch {
    pub(crate) fn new(bound: Duration) -> Self {
        Self { bound, packets: 0, intervals: Vec::new() }
    }

    /// The bound, and how many packets were later.
    pub(crate) fn count(&self) -> (Duration, u64) {
        (self.bound, self.packets)
    }

    /// A watch for the same bound without records.
    pub(crate) fn anew(&self) -> Self {
        Self::new(self.bound)
    }

    /// A packet scheduled at an instant was released this much later.
    pub(crate) fn released(&mut self, scheduled: Time, lateness: Duration) {
        if lateness > self.bound {
            self.late(scheduled, lateness);
        }
    }

    #[cold]
    fn late(&mut self, scheduled: Time, lateness: Duration) {
        self.packets += 1;
        let (start, end) = (scheduled.nanos(), (scheduled + lateness).nanos());
        if let Some(last) = self.intervals.last_mut()
            && start <= last.end_ns.saturating_add(GAP.nanos())
        {
            // Ports are served in turn, so a packet may have been due earlier than the one released before it.
            last.start_ns = last.start_ns.min(start);
            last.end_ns = last.end_ns.max(end);
            last.packets += 1;
            last.max_ns = last.max_ns.max(lateness.nanos());
            return;
        }
        self.intervals.push(ViolationInterval {
            start_ns: start,
            end_ns: end,
            packets: 1,
            max_ns: lateness.nanos(),
            // Filled in by the code that monitors the host.
            steal_ns: None,
            run_queue_wait_ns: None,
        });
        if self.intervals.len() > MOST_INTERVALS {
            self.join_the_nearest();
        }
    }

    /// Adds the records of another watch for the same bound, from the same time or another.
    pub(crate) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.intervals.extend_from_slice(&other.intervals);
        self.intervals.sort_by_key(|interval| interval.start_ns);
        self.intervals.dedup_by(|next, before| {
            let overlaps = next.start_ns <= before.end_ns.saturating_add(GAP.nanos());
            if overlaps {
                before.join(next);
            }
            overlaps
        });
        while self.intervals.len() > MOST_INTERVALS {
            self.join_the_nearest();
        }
    }

    fn join_the_nearest(&mut self) {
        let gaps = self.intervals.windows(2).map(|pair| pair[1].start_ns.saturating_sub(pair[0].end_ns));
        let Some((first, _)) = gaps.enumerate().min_by_key(|&(_, gap)| gap) else { return };
        let second = self.intervals.remove(first + 1);
        self.intervals[first].join(&second);
    }
}

impl ViolationInterval {
    /// Merges an interval that begins later.
    fn join(&mut self, later: &Self) {
        self.end_ns = self.end_ns.max(later.end_ns);
        self.packets += later.packets;
        self.max_ns = self.max_ns.max(later.max_ns);
    }
}
