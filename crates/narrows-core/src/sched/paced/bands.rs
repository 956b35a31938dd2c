//! A band: its lists of flows and its credit.

use super::flow::Flow;
use crate::packet::{FlowKey, Protocol};
use crate::queue::Backlog;

/// The number of bands.
pub(super) const BANDS: usize = 3;
/// The minimum of a weight.
pub(super) const LEAST_WEIGHT: u32 = 1 << 14;

/// A band.
#[derive(Debug)]
pub(super) struct Band {
    new: List,
    old: List,
    /// Bytes that it may still send in this turn. It may overdraw by less than one packet.
    pub(super) credit: i64,
    /// What its credit grows by.
    weight: i64,
    /// Its packets, without those that are served before all flows.
    pub(super) backlog: Backlog,
}

/// One of the lists of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    New,
    Old,
}

/// The first and the last flow.
#[derive(Clone, Copy, Debug, Default)]
struct List(Option<(u32, u32)>);

impl Band {
    pub(super) fn new(weight: u32) -> Self {
        let weight = weight.clamp(LEAST_WEIGHT, i32::MAX as u32).into();
        Self { new: List::default(), old: List::default(), credit: 0, weight, backlog: Backlog::default() }
    }

    /// The flow that is next in this band, if the band has credit.
    pub(super) fn first(&self) -> Option<(u32, Kind)> {
        let of = |list: &List, kind| list.0.map(|(first, _)| (first, kind));
        (self.credit > 0).then(|| of(&self.new, Kind::New).or(of(&self.old, Kind::Old))).flatten()
    }

    pub(super) fn push_back(&mut self, kind: Kind, flow: u32, flows: &mut [Flow]) {
        let list = self.list(kind);
        if let Some((_, last)) = list.0 {
            flows[last as usize].behind = flow;
        }
        list.0 = Some((list.0.map_or(flow, |(first, _)| first), flow));
    }

    /// Removes the first flow.
    pub(super) fn pop_front(&mut self, kind: Kind, flows: &[Flow]) {
        let list = self.list(kind);
        list.0 = list
            .0
            .filter(|(first, last)| first != last)
            .map(|(first, last)| (flows[first as usize].behind, last));
    }

    /// Its turn begins.
    pub(super) fn grant(&mut self) {
        self.credit = (self.credit + self.weight).min(self.weight);
    }

    /// No flow may send, so that rounds pass.
    pub(super) fn fill(&mut self) {
        self.credit = self.weight;
    }

    fn list(&mut self, kind: Kind) -> &mut List {
        match kind {
            Kind::New => &mut self.new,
            Kind::Old => &mut self.old,
        }
    }
}

/// The priorities that Linux assigns to packets by their low-delay and high-throughput bits (`ip_tos2prio`).
const PRIORITIES: [usize; 4] = [0, 2, 6, 4];

/// The band of a packet. Packets other than those of IPv4 have the priority 0, whatever they ask for.
pub(super) fn band_of(priorities: &[u8; 16], key: &FlowKey) -> u8 {
    let bits = match key.network {
        Protocol::Ipv4 | Protocol::Ipv4DontFragment => usize::from(key.traffic_class >> 3 & 0b11),
        Protocol::Ipv6 | Protocol::Other => 0,
    };
    priorities[PRIORITIES[bits]].min(BANDS as u8 - 1)
}
