//! Strict priorities: serves the lowest backlogged band, however long the others wait.
//!
//! Linux's `prio` has at most 16 bands; here there can be [`Priority::BANDS`]. Finding the first band in use costs
//! three lookups in a hierarchical bitmap, whatever the number of bands. The waiting time of a band behind lower ones
//! is unbounded.
//!
//! Flows of one band take turns, one packet each. In Linux a band is one queue, which its flows share in order of
//! arrival. For that behavior, give the band a single flow. With several flows, turns prevent one that floods its
//! band from taking all of it. Turns cost only two links of memory per flow.
//!
//! ```
//! # use narrows_core::{PacketRef, Time};
//! # use narrows_core::sched::{FlowConfig, Priority, Served, Server};
//! let mut server = Server::new(Priority::default());
//! let [low, high] = [7, 3].map(|band| {
//!     server.join(FlowConfig { band, ..FlowConfig::default() }).expect("there are that many bands")
//! });
//! server.enqueue(Time::ZERO, low, PacketRef::from_number(0), 100);
//! server.enqueue(Time::ZERO, high, PacketRef::from_number(1), 100);
//! assert!(matches!(server.dequeue(Time::ZERO), Served::Packet(flow, _) if flow == high));
//! ```

use alloc::vec::Vec;

use crate::sched::list::{Linked, Links, List};
use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, SchedulerPlan, Selection};
use crate::time::Time;

/// Serves the lowest band, and the flows of a band in turn. Ignores weights.
#[derive(Debug, Default)]
pub struct Priority {
    bands: Bands,
}

/// Per-flow state of [`Priority`].
#[derive(Debug)]
pub struct PriorityFlow {
    links: Links,
    band: u32,
    /// Whether it is in its band's list.
    active: bool,
}

impl Linked for PriorityFlow {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Priority {
    /// The number of bands. They are numbered from 0 to one less.
    pub const BANDS: u32 = 1 << 18;

    fn deactivate(&mut self, flow: FlowId, flows: &mut Flows<PriorityFlow>) {
        let state = &mut flows[flow];
        state.active = false;
        let band = state.band;
        self.bands.remove(band, flow, flows);
    }
}

impl Scheduler for Priority {
    type Flow = PriorityFlow;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, flow: FlowConfig) -> Result<PriorityFlow, Refused> {
        self.bands.grow(flow.band)?;
        Ok(PriorityFlow { links: Links::default(), band: flow.band, active: false })
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<PriorityFlow>) {}

    #[inline]
    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<PriorityFlow>) {
        let state = &mut flows[flow];
        if !state.active {
            state.active = true;
            let band = state.band;
            self.bands.insert(band, flow, flows);
        }
    }

    #[inline]
    fn select(&mut self, _now: Time, _flows: &mut Flows<PriorityFlow>) -> Selection {
        self.bands.first().map_or(Selection::Empty, Selection::Flow)
    }

    #[inline]
    fn sent(&mut self, _now: Time, flow: FlowId, _length: u32, flows: &mut Flows<PriorityFlow>) {
        let (state, packets) = flows.state_and_packets(flow);
        if packets == 0 {
            self.deactivate(flow, flows);
        } else {
            let band = state.band;
            self.bands.rotate(band, flows);
        }
    }

    fn plan(&self, flows: &Flows<PriorityFlow>) -> Option<SchedulerPlan> {
        Some(SchedulerPlan::Priority(flows.ids().map(|flow| flows[flow].band).collect()))
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<PriorityFlow>) {
        // Dropped packets received no service, so the flow keeps its turn.
        if flows.packets(flow) == 0 && flows[flow].active {
            self.deactivate(flow, flows);
        }
    }
}

/// Bands in strict priority, each with its backlogged flows in turn.
#[derive(Debug, Default)]
pub(super) struct Bands {
    /// The backlogged flows of each band, the next one first.
    lists: Vec<List>,
    in_use: BandSet,
    /// The lowest band in use.
    lowest: Option<u32>,
}

impl Bands {
    /// Makes room for a band.
    pub(super) fn grow(&mut self, band: u32) -> Result<(), Refused> {
        if band >= Priority::BANDS {
            return Err(Refused::Band { found: band.into(), most: u64::from(Priority::BANDS) - 1 });
        }
        let bands = band as usize + 1;
        if bands > self.lists.len() {
            self.lists.resize_with(bands, List::default);
            self.in_use.grow(bands);
        }
        Ok(())
    }

    /// The flow to serve.
    #[inline]
    pub(super) fn first(&self) -> Option<FlowId> {
        self.lowest.and_then(|band| self.lists[band as usize].front())
    }

    /// Adds a flow that is in no list.
    #[inline]
    pub(super) fn insert<F: Linked>(&mut self, band: u32, flow: FlowId, flows: &mut Flows<F>) {
        let list = &mut self.lists[band as usize];
        if list.front().is_none() {
            self.in_use.insert(band);
            self.lowest = Some(self.lowest.map_or(band, |lowest| lowest.min(band)));
        }
        list.push_back(flow, flows);
    }

    /// Removes a flow, which must be in this band's list.
    pub(super) fn remove<F: Linked>(&mut self, band: u32, flow: FlowId, flows: &mut Flows<F>) {
        let list = &mut self.lists[band as usize];
        list.remove(flow, flows);
        if list.front().is_none() {
            self.in_use.remove(band);
            self.lowest = self.in_use.first();
        }
    }

    /// Ends the turn of a band's first flow.
    #[inline]
    pub(super) fn rotate<F: Linked>(&mut self, band: u32, flows: &mut Flows<F>) {
        self.lists[band as usize].rotate(flows);
    }
}

/// A set of bands: one bit for each band, one bit for each word of these that is not zero, and so on, up to a single
/// word.
#[derive(Debug, Default)]
struct BandSet {
    top: u64,
    middle: Vec<u64>,
    bottom: Vec<u64>,
}

impl BandSet {
    fn grow(&mut self, bands: usize) {
        self.bottom.resize(bands.div_ceil(64), 0);
        self.middle.resize(self.bottom.len().div_ceil(64), 0);
    }

    #[inline]
    fn insert(&mut self, band: u32) {
        self.bottom[(band >> 6) as usize] |= 1 << (band & 63);
        self.middle[(band >> 12) as usize] |= 1 << (band >> 6 & 63);
        self.top |= 1 << (band >> 12);
    }

    #[inline]
    fn remove(&mut self, band: u32) {
        let bottom = &mut self.bottom[(band >> 6) as usize];
        *bottom &= !(1 << (band & 63));
        if *bottom == 0 {
            let middle = &mut self.middle[(band >> 12) as usize];
            *middle &= !(1 << (band >> 6 & 63));
            if *middle == 0 {
                self.top &= !(1 << (band >> 12));
            }
        }
    }

    /// The lowest band in the set.
    #[inline]
    fn first(&self) -> Option<u32> {
        if self.top == 0 {
            return None;
        }
        let middle = self.top.trailing_zeros();
        let bottom = middle << 6 | self.middle[middle as usize].trailing_zeros();
        Some(bottom << 6 | self.bottom[bottom as usize].trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn a_band_set_finds_the_lowest_as_a_sorted_set_does() {
        let mut set = BandSet::default();
        set.grow(Priority::BANDS as usize);
        let mut model = BTreeSet::new();
        for step in 0u32..30_000 {
            // Scattered over all words, with many in the same ones; a third of the steps takes the lowest out.
            let band = step.wrapping_mul(2_654_435_761) >> 14
                & [0x3f, 0xfff, Priority::BANDS - 1][step as usize % 3];
            if step % 3 == 2 {
                let first = model.pop_first();
                assert_eq!(set.first(), first);
                first.into_iter().for_each(|first| set.remove(first));
            } else {
                model.insert(band);
                set.insert(band);
            }
            assert_eq!(set.first(), model.first().copied());
        }
    }
}
