//! Trains of segments: how many arrived and left as one frame.

use narrows_core::{Duration, Time};
use narrows_report::TrainsReport;

use super::{DataLoop, Outgoing};

/// The counters of trains on one line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trains {
    left: u64,
    joined: u64,
    /// The maximum span between the first and the last packet of a train that left.
    apart: Duration,
}

impl Trains {
    /// These frames have left, some joined with the frame before.
    pub(super) fn left(&mut self, frames: &[Outgoing]) {
        let (mut first, mut is_one): (Option<Time>, _) = (None, true);
        for outgoing in frames {
            if !outgoing.frame.was_joined() {
                (first, is_one) = (outgoing.passage.map(|passage| passage.scheduled), true);
                continue;
            }
            self.left += u64::from(is_one);
            self.joined += 1 + u64::from(is_one);
            is_one = false;
            if let Some((first, last)) = first.zip(outgoing.passage.map(|passage| passage.scheduled)) {
                self.apart = self.apart.max(last.since(first));
            }
        }
    }
}

impl DataLoop {
    /// The report's counters of trains, if they are carried.
    pub(super) fn trains(&self) -> Option<TrainsReport> {
        let came: Vec<_> = self.lines.iter().filter_map(|line| line.end.trains()).collect();
        let sum = |of: fn(&Trains) -> u64| self.lines.iter().map(|line| of(&line.trains)).sum();
        (!came.is_empty()).then(|| TrainsReport {
            received: came.iter().map(|trains| trains.came).sum(),
            received_packets: came.iter().map(|trains| trains.cut).sum(),
            sent: sum(|trains| trains.left),
            sent_packets: sum(|trains| trains.joined),
            spread_max_ns: self.lines.iter().map(|line| line.trains.apart.nanos()).max().unwrap_or(0),
        })
    }
}
