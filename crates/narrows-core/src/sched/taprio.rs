//! TAPRIO, the time-aware shaper: strict priorities behind gates that open and close by a schedule.
//!
//! Sources: IEEE Std 802.1Q-2018, 8.6.8.4 and 8.6.9 (enhancements for scheduled traffic, first IEEE 802.1Qbv); Linux's
//! sch_taprio (6.12).
//!
//! ```text
//! start           300 µs          500 µs                 1 ms = one cycle
//!   | band 0 open   | all closed    | bands 1 and 2 open   | band 0 open …
//! ```
//!
//! The entries of the schedule follow each other, and begin anew after the cycle. A shorter cycle cuts the schedule off, in
//! a longer one the last entry lasts longer. The first packet of the lowest band is sent whose gate is open and stays open
//! until the packet's last bit is on the wire; if none is, the transmitter waits for the first instant at which that
//! holds. So no transmission reaches into a time in which its gate is closed, and no guard band is wasted on packets that
//! fit. Before the schedule starts, all gates are open.
//!
//! A packet that takes longer than its gate is ever open is dropped when it is the first of its flow, as Linux drops it
//! on arrival. While the transmitter's rate is 0 or unlimited, packets take no time.
//!
//! Differences from Linux: the transmission time is that on the link, with its exact rate and overhead, where Linux takes
//! the device's speed (of a link header, that of Ethernet without a tag is counted); the link sends what is selected at
//! once, so Linux's budget of bytes for an entry is not needed; a packet may end at the very instant at which its gate
//! closes.
//!
//! Flows of one band take turns, one packet each. A selection looks at each backlogged flow once, and at the times in which
//! its gate is open.

use alloc::vec::Vec;

use crate::counters::DropReason;
use crate::queue::Wire;
use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use crate::service::Overhead;
use crate::time::{Duration, Time};
use crate::units::Rate;

/// Bytes of link header, where the overhead counts them: a VLAN tag is not known here.
const ETHERNET: u8 = 14;

/// An entry of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaprioEntry {
    /// How long it lasts; above zero.
    pub lasts: Duration,
    /// The bands whose gates are open, one bit each.
    pub open: u64,
}

/// A time within the cycle in which a gate is open: from this offset, for so long. It may reach into the next cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    from: u64,
    lasts: u64,
}

/// When the gate of a band is open.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Gate {
    Always,
    /// In these windows, in order. None: never.
    In(Vec<Window>),
}

/// Strict priorities behind gates. Ignores weights.
#[derive(Debug)]
pub struct Taprio {
    start: Time,
    cycle: u64,
    gates: Vec<Gate>,
    wire: Wire,
    /// The backlogged flows, by band; those of a band in turn.
    flows: Vec<(u32, FlowId)>,
}

/// Per-flow state of [`Taprio`].
#[derive(Debug)]
pub struct TaprioFlow {
    band: u32,
    /// Whether it is among the backlogged flows.
    active: bool,
}

impl Taprio {
    /// The number of bands. They are numbered from 0 to one less.
    pub const BANDS: u32 = 64;

    /// A schedule that starts at `start`, with a cycle of the sum of its entries if `cycle` is `None`. `None` if there is
    /// no entry, or one that lasts no time, or the cycle does.
    pub fn new(start: Time, entries: &[TaprioEntry], cycle: Option<Duration>) -> Option<Self> {
        let sum = entries.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.lasts.nanos()));
        let cycle = cycle.map_or(sum, Duration::nanos);
        if cycle == 0 || entries.is_empty() || entries.iter().any(|entry| entry.lasts == Duration::ZERO) {
            return None;
        }
        let gates = (0..Self::BANDS).map(|band| gate(entries, cycle, band)).collect();
        let wire = Wire { rate: Rate::UNLIMITED, overhead: Overhead::IP };
        Some(Self { start, cycle, gates, wire, flows: Vec::new() })
    }

    /// How long a packet takes.
    fn takes(&self, length: u32) -> u64 {
        let rate = self.wire.rate.bits_per_second();
        if rate == 0 || self.wire.rate == Rate::UNLIMITED {
            return 0;
        }
        let bits = self.wire.overhead.bits(length, ETHERNET);
        (u128::from(bits) * 1_000_000_000).div_ceil(rate.into()).try_into().unwrap_or(u64::MAX)
    }

    /// The first instant from `now` on at which a packet of a band that takes so long may begin; `None` if there is none.
    fn begins(&self, now: Time, band: u32, takes: u64) -> Option<Time> {
        let windows = match &self.gates[band as usize] {
            Gate::Always => return Some(now),
            Gate::In(windows) => windows,
        };
        if now < self.start {
            return Some(now);
        }
        let longest = windows.iter().map(|window| window.lasts).max()?;
        if takes > longest {
            return None;
        }
        // Within the cycle of `now`, the one before, from which a window may last until now, and the one after.
        let phase = now.since(self.start).nanos() % self.cycle;
        let delay = |window: &Window, begin: i128| {
            let (begin, phase) = (begin + i128::from(window.from), i128::from(phase));
            let from = begin.max(phase);
            let end = begin + i128::from(window.lasts);
            (from < end && from + i128::from(takes) <= end).then_some((from - phase) as u64) // at most two cycles
        };
        let cycle = i128::from(self.cycle);
        let delays = windows.iter().flat_map(|window| [-cycle, 0, cycle].map(|begin| delay(window, begin)));
        delays.flatten().min().map(|delay| now + Duration::from_nanos(delay))
    }
}

/// When the gate of a band is open: entries in a row are one window.
fn gate(entries: &[TaprioEntry], cycle: u64, band: u32) -> Gate {
    let mut windows: Vec<Window> = Vec::new();
    let mut from = 0u64;
    for (at, entry) in entries.iter().enumerate() {
        let is_last = at + 1 == entries.len();
        let end = if is_last { cycle } else { from.saturating_add(entry.lasts.nanos()).min(cycle) };
        if end > from && entry.open >> band & 1 == 1 {
            match windows.last_mut().filter(|last| last.from + last.lasts == from) {
                Some(last) => last.lasts = end - last.from,
                None => windows.push(Window { from, lasts: end - from }),
            }
        }
        from = from.max(end);
    }
    // A window until the end of the cycle goes on at its begin.
    match &mut windows[..] {
        [one] if one.lasts == cycle => return Gate::Always,
        [first, .., last] if first.from == 0 && last.from + last.lasts == cycle => {
            last.lasts += first.lasts;
            windows.remove(0);
        }
        _ => {}
    }
    Gate::In(windows)
}

impl Scheduler for Taprio {
    type Flow = TaprioFlow;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, flow: FlowConfig) -> Result<TaprioFlow, Refused> {
        if flow.band >= Self::BANDS {
            return Err(Refused::Band { found: flow.band.into(), most: u64::from(Self::BANDS) - 1 });
        }
        Ok(TaprioFlow { band: flow.band, active: false })
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<TaprioFlow>) {}

    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<TaprioFlow>) {
        let state = &mut flows[flow];
        if !state.active {
            state.active = true;
            let band = state.band;
            self.insert(band, flow);
        }
    }

    fn select(&mut self, now: Time, flows: &mut Flows<TaprioFlow>) -> Selection {
        let mut next = Time::NEVER;
        for &(band, flow) in &self.flows {
            let Some(first) = flows.first(flow) else { continue };
            match self.begins(now, band, self.takes(first.length)) {
                Some(at) if at <= now => return Selection::Flow(flow),
                Some(at) => next = next.min(at),
                None => return Selection::GiveUp(flow, DropReason::BlackHole),
            }
        }
        if next == Time::NEVER { Selection::Empty } else { Selection::NotBefore(next) }
    }

    fn sent(&mut self, _now: Time, flow: FlowId, _length: u32, flows: &mut Flows<TaprioFlow>) {
        self.remove(flow);
        let (state, packets) = flows.state_and_packets(flow);
        state.active = packets > 0;
        if state.active {
            let band = state.band;
            self.insert(band, flow);
        }
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<TaprioFlow>) {
        // Dropped packets received no service, so the flow keeps its turn.
        if flows.packets(flow) == 0 && core::mem::replace(&mut flows[flow].active, false) {
            self.remove(flow);
        }
    }

    fn set_wire(&mut self, _now: Time, wire: Wire) {
        self.wire = wire;
    }
}

impl Taprio {
    /// Adds a flow behind the others of its band.
    fn insert(&mut self, band: u32, flow: FlowId) {
        let behind = self.flows.partition_point(|(other, _)| *other <= band);
        self.flows.insert(behind, (band, flow));
    }

    fn remove(&mut self, flow: FlowId) {
        self.flows.retain(|(_, other)| *other != flow);
    }
}

#[cfg(test)]
mod tests;
