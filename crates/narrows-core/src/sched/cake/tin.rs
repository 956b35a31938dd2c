//! A tin: flows of one priority, and what they may send.

use super::CakeConfig;
use super::cobalt::Parameters;
use super::config::{Isolation, Share};
use super::flow::{CakeFlow, Set};
use super::shaper::time_of;
use super::ways::Ways;
use crate::sched::list::List;
use crate::sched::{FlowId, Flows};
use crate::time::{Duration, Time};
use crate::units::Rate;

/// The longest frame.
pub(super) const LONGEST: u64 = 1514;

/// A tin.
#[derive(Debug)]
pub(super) struct Tin {
    pub(super) ways: Ways,
    pub(super) cobalt: Parameters,
    new: List,
    old: List,
    decaying: List,
    /// Flows that have packets or may soon have some again.
    sparse: u32,
    pub(super) bulk: u32,
    /// Packets that wait.
    pub(super) packets: u64,
    /// Up to when what it has sent takes at its threshold rate.
    pub(super) next: Time,
    threshold: Rate,
    /// Bytes per turn of a flow.
    flow_quantum: u64,
    /// Bytes per turn of the tin, without a bandwidth.
    quantum: i64,
    pub(super) deficit: i64,
}

impl Tin {
    pub(super) fn new(share: &Share, config: &CakeConfig) -> Self {
        let mut tin = Self {
            ways: Ways::default(),
            cobalt: Parameters {
                target: Duration::ZERO,
                interval: Duration::ZERO,
                packet_time: Duration::ZERO,
            },
            new: List::default(),
            old: List::default(),
            decaying: List::default(),
            sparse: 0,
            bulk: 0,
            packets: 0,
            next: Time::ZERO,
            threshold: Rate::UNLIMITED,
            flow_quantum: LONGEST,
            quantum: share.quantum,
            deficit: 0,
        };
        tin.set_rate(share, config);
        tin
    }

    /// Sets what follows from the bandwidth.
    pub(super) fn set_rate(&mut self, share: &Share, config: &CakeConfig) {
        let (mut threshold, mut packet_time, mut flow_quantum) = (Rate::UNLIMITED, Duration::ZERO, LONGEST);
        if config.bandwidth != Rate::UNLIMITED {
            threshold = share.of(config.bandwidth);
            packet_time = time_of(LONGEST, threshold);
            flow_quantum = (threshold.bits_per_second() >> 15).clamp(300, LONGEST);
        }
        let usual = config.target();
        let target = Duration::from_nanos(packet_time.nanos() * 3 / 2).max(usual);
        let interval = (config.rtt + (target - usual)).max(target + target);
        self.cobalt = Parameters { target, interval, packet_time };
        (self.threshold, self.flow_quantum) = (threshold, flow_quantum);
    }

    /// Whether it has flows to serve.
    pub(super) const fn is_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// Whether its turn is over or it has nothing to send, without a bandwidth. Then it gets a quantum if it needs one.
    pub(super) const fn passes_turn(&mut self) -> bool {
        let passes = self.deficit < 0 || !self.is_active();
        if passes && self.deficit <= 0 {
            self.deficit += self.quantum;
        }
        passes
    }

    /// Counts a packet against the threshold.
    pub(super) fn charge(&mut self, now: Time, length: u64) {
        let took = time_of(length, self.threshold);
        // A tin that is behind keeps its advantage; one that is ahead owes at most one packet.
        self.next = if self.next < now { self.next + took } else { self.next.max(now + took) };
    }

    /// The flow whose turn it is: a decaying one if one is to be looked at, else a new one, else an old one.
    pub(super) fn front(&self, decaying: bool) -> Option<FlowId> {
        let looked_at = self.decaying.front().filter(|_| decaying);
        looked_at.or(self.new.front()).or(self.old.front()).or(self.decaying.front())
    }

    /// A flow has got a packet.
    pub(super) fn activate(&mut self, flow: FlowId, isolation: Isolation, flows: &mut Flows<CakeFlow>) {
        match flows[flow].set {
            Set::Idle | Set::Decaying => {
                self.move_to(Set::Sparse, flow, isolation, flows);
                (flows[flow].deficit, flows[flow].rest) = (0, 0);
                self.credit(flow, isolation, flows);
            }
            Set::SparseWait => self.move_to(Set::Bulk, flow, isolation, flows),
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// A flow has used up its turn: it goes to the end of the old flows, with a quantum.
    pub(super) fn next_turn(&mut self, flow: FlowId, isolation: Isolation, flows: &mut Flows<CakeFlow>) {
        match flows[flow].set {
            Set::Sparse if flows.packets(flow) > 0 => self.move_to(Set::Bulk, flow, isolation, flows),
            // It counts as sparse until it has a packet again.
            Set::Sparse => self.move_to(Set::SparseWait, flow, isolation, flows),
            _ => self.old.rotate(flows),
        }
        self.credit(flow, isolation, flows);
    }

    /// A flow is empty at its turn.
    pub(super) fn retire(
        &mut self,
        now: Time,
        flow: FlowId,
        isolation: Isolation,
        flows: &mut Flows<CakeFlow>,
    ) {
        flows[flow].cobalt.empty(&self.cobalt, now);
        let to = if flows[flow].cobalt.is_at_rest(now) { Set::Idle } else { Set::Decaying };
        self.move_to(to, flow, isolation, flows);
    }

    /// Adds a turn's bytes. The remainder of the division among a host's flows is carried.
    fn credit(&self, flow: FlowId, isolation: Isolation, flows: &mut Flows<CakeFlow>) {
        let load = self.ways.load(&flows[flow], isolation);
        let flow = &mut flows[flow];
        // At most 1514 · 2¹⁶, and 2¹⁶.
        let bytes = (self.flow_quantum << 16) / load + u64::from(flow.rest);
        flow.deficit += (bytes >> 16) as i64;
        flow.rest = bytes as u16;
    }

    /// Moves a flow to the end of its set's list, and counts it there.
    fn move_to(&mut self, to: Set, flow: FlowId, isolation: Isolation, flows: &mut Flows<CakeFlow>) {
        let from = core::mem::replace(&mut flows[flow].set, to);
        // A flow that was sparse until it was empty is among the old flows, and keeps its place there.
        let stays = (from, to) == (Set::SparseWait, Set::Bulk);
        if let Some(list) = self.list(from).filter(|_| !stays) {
            list.remove(flow, flows);
        }
        if let Some(list) = self.list(to).filter(|_| !stays) {
            list.push_back(flow, flows);
        }
        for (set, more) in [(from, false), (to, true)] {
            let count = match set {
                Set::Sparse | Set::SparseWait => &mut self.sparse,
                Set::Bulk => {
                    self.ways.count(&flows[flow], isolation, more);
                    &mut self.bulk
                }
                Set::Idle | Set::Decaying => continue,
            };
            *count = if more { *count + 1 } else { *count - 1 };
        }
    }

    const fn list(&mut self, set: Set) -> Option<&mut List> {
        match set {
            Set::Idle => None,
            Set::Sparse => Some(&mut self.new),
            Set::SparseWait | Set::Bulk => Some(&mut self.old),
            Set::Decaying => Some(&mut self.decaying),
        }
    }
}
