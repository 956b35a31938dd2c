//! Bounds on lateness, and when packets were later.

use std::str::FromStr;

use narrows_core::{Duration, Time};
use serde::{Deserialize, Serialize};

/// Late packets that are no further apart than this belong to one interval.
const GAP: Duration = Duration::from_millis(10);
/// Intervals that are kept for a bound. Where there were more, those that are nearest to one another are joined.
pub(crate) const MOST_INTERVALS: usize = 16;
/// The bound for which a run that was asked for none says when it was broken.
pub(crate) const USUAL_BOUND: Duration = Duration::from_millis(1);

/// Which part of all packets has to be within a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantile {
    /// Half of them.
    #[serde(rename = "p50", alias = "median")]
    Median,
    /// Nine in ten.
    P90,
    /// All but one in a hundred.
    P99,
    /// All but one in a thousand.
    #[serde(rename = "p99.9", alias = "p999")]
    P999,
    /// All.
    Max,
}

impl Quantile {
    /// Every one there is.
    pub const ALL: [Self; 5] = [Self::Median, Self::P90, Self::P99, Self::P999, Self::Max];

    /// As it is written: `p50`, `p90`, `p99`, `p99.9`, `max`.
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
        // As they were called before.
        let name = match text {
            "median" => "p50",
            "p999" => "p99.9",
            name => name,
        };
        Self::ALL.into_iter().find(|quantile| quantile.name() == name).ok_or(())
    }
}

/// A bound on lateness that a run is to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatenessBound {
    /// Which part of all packets.
    pub quantile: Quantile,
    /// How late these may be.
    pub at_most: Duration,
}

/// A time in which packets were later than a bound, no two of them more than 10 ms apart unless intervals were joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViolationInterval {
    /// The instant at which the first of them should have been released.
    pub start_ns: u64,
    /// The instant at which the last of them was.
    pub end_ns: u64,
    /// How many of them.
    pub packets: u64,
    /// How late the latest of them was.
    #[serde(alias = "most_ns")]
    pub max_ns: u64,
    /// What the hypervisor gave to others in the seconds that it touches, over all processors; nothing where the kernel does
    /// not say.
    pub stolen_ns: Option<u64>,
    /// What the packet loop waited in these seconds for a processor that others of this host had.
    pub waited_ns: Option<u64>,
}

/// Takes note of packets that were later than a bound.
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

    /// For the same bound, with nothing noted.
    pub(crate) fn anew(&self) -> Self {
        Self::new(self.bound)
    }

    /// A packet that was scheduled at an instant was released so much later.
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
            // Ports are sent to in turns, so that a packet may have been due before the one that came before it.
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
            // Who knows the host fills them in.
            stolen_ns: None,
            waited_ns: None,
        });
        if self.intervals.len() > MOST_INTERVALS {
            self.join_the_nearest();
        }
    }

    /// Adds what another watch for the same bound took note of, at the same time or another.
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
    /// Takes in one that begins later.
    fn join(&mut self, later: &Self) {
        self.end_ns = self.end_ns.max(later.end_ns);
        self.packets += later.packets;
        self.max_ns = self.max_ns.max(later.max_ns);
    }
}
