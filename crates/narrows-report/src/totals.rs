//! Totals over all ports: the sum of several meters of one run.

use crate::figures::{Spread, sum_of};
use crate::meter::{LATENESS_BOUNDS, LatenessMeter, Meter, PortMeter};
use crate::watch::{LatenessBound, Watch};

#[derive(Debug)]
pub(crate) struct Totals {
    /// Actual minus scheduled release.
    pub(crate) lateness: Option<Spread>,
    /// How many of these were later than each of [`LATENESS_BOUNDS`].
    pub(crate) later_than: [u64; LATENESS_BOUNDS.len()],
    /// Hand-in minus arrival.
    pub(crate) input_lateness: Option<Spread>,
    /// The instant when the call that sent a packet returned, minus its scheduled release.
    pub(crate) sent: Option<Spread>,
    /// How late stragglers were handed in.
    pub(crate) stragglers: Option<Spread>,
    /// Packets that were never released: lost before they were read, or refused on sending.
    pub(crate) lost: u64,
    /// Packets with implausible receive timestamps.
    pub(crate) implausible_stamps: u64,
    /// The same for all meters of a run.
    pub(crate) bounds: Vec<LatenessBound>,
    pub(crate) watches: Vec<Watch>,
}

impl Totals {
    pub(crate) fn of(meter: &Meter) -> Self {
        let each = || meter.ports().iter().filter_map(|port| port.lateness.as_deref());
        let mut later_than = [0; LATENESS_BOUNDS.len()];
        for LatenessMeter { later_than: counts, .. } in each() {
            later_than.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        Self {
            lateness: sum_of(each().map(|lateness| &lateness.spread)),
            later_than,
            input_lateness: sum_of(meter.ports().iter().filter_map(|port| port.input_lateness.as_deref())),
            sent: sum_of(meter.sent.as_deref().into_iter()),
            stragglers: sum_of(meter.stragglers.as_deref().into_iter()),
            lost: meter.ports().iter().map(PortMeter::lost_by_the_system).sum(),
            implausible_stamps: meter.implausible_stamps,
            bounds: meter.bounds.clone(),
            watches: meter.watches.clone(),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.lateness, &other.lateness),
            (&mut self.input_lateness, &other.input_lateness),
            (&mut self.sent, &other.sent),
            (&mut self.stragglers, &other.stragglers),
        ] {
            *sum = sum_of(sum.iter().chain(more));
        }
        self.later_than.iter_mut().zip(other.later_than).for_each(|(sum, more)| *sum += more);
        self.lost += other.lost;
        self.implausible_stamps += other.implausible_stamps;
        self.watches.iter_mut().zip(&other.watches).for_each(|(watch, more)| watch.add(more));
    }
}
