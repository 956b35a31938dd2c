//! Linux's `fq`: fair queueing of flows with a maximum rate for each.
//!
//! Source: E. Dumazet's sch_fq in Linux 6.12. Packets are hashed to flows. A packet's TOS byte selects one of three
//! bands. Each band has a list of new and a list of old flows, as in [`Fair`](super::Fair), and a credit:
//!
//! ```text
//! flow:  credit ← initial_quantum when it first appears; + quantum at each turn; − L for a packet of L bytes
//! band:  credit ← min(credit + weight, weight) at its turn in the round; − L for a packet of L bytes
//! ```
//!
//! - The band whose turn it is sends while its credit is above 0 and it has a flow on a list. Then the next band, in a
//!   circle, has its turn.
//! - In a band, the first new flow sends, or the first old one if there is no new one. A flow whose credit is used up
//!   gets a quantum and moves to the end of the old flows. An emptied new flow moves there, too; an emptied old one
//!   leaves the lists and keeps its credit. If it then stays away for longer than `refill_delay`, it has at least a
//!   quantum when it returns.
//! - With a maximum rate, a packet sent sets the instant before which the flow's next one may not be sent:
//!
//! ```text
//! rate > low_rate:  next ← now + max(L, quantum) / rate − drift, once the credit is used up
//! rate ≤ low_rate:  next ← now + L / rate − drift, for each packet; the credit becomes 0
//! drift = min(half of that span, now − the last next)       makes up for turns that came late
//! ```
//!
//!   The span is a second at most. A flow that may not send leaves the lists and returns to the end of the old flows
//!   at that instant. Without a maximum rate no flow waits for an instant.
//! - A packet that arrives while no packet waits goes into a queue of its own that is served before all flows, and
//!   costs no credit. So do further ones while no flow has a packet, up to eight. Not with a maximum rate.
//! - A band holds up to `bound`, a flow up to `flow_limit` packets. An arriving packet beyond either is dropped.
//! - A packet sent more than `ce_threshold` after it could have been sent is marked if it is ECN-capable.
//!
//! Lengths L, and with them quanta, weights and credits, are bytes on the wire, as the link's overhead counts them.
//! Other schedulers count quanta in bytes of IP packets; here the quantum also measures the time at the maximum rate.
//!
//! As in Linux, a flow joins the list of the band of its previous packet, and its first packet that of band 0, whatever
//! its own band. It goes on in its own band after its first turn.
//!
//! # Differences from the source
//! - In Linux a flow is a socket, and a hash only for packets without one: forwarded ones, and those of unconnected
//!   sockets. Here it is always a hash.
//! - Linux also paces each packet to the rate or departure time of its socket (`SO_MAX_PACING_RATE`, `SO_TXTIME`). These
//!   do not leave the sender's host, so `horizon` and the like have no equivalent. A sender's packets arrive as its own
//!   stack has paced them.
//! - Instants are exact. Linux's timer may fire up to `timer_slack` late, and `refill_delay` counts jiffies.
//! - Linux forgets a flow that has been idle for three seconds when it looks up another one near it. Here no flow is
//!   forgotten.
//! - While no flow may send, the credit of each band is its weight. Linux adds a weight to each band at every attempt.
//! - A span at the maximum rate is cut to whole nanoseconds, as in Linux, so a flow may gain a nanosecond per turn.
//!
//! ```
//! use narrows_core::classify::{FlowHash, Identity};
//! use narrows_core::sched::{PacedFq, PacedFqConfig};
//! use narrows_core::{LinkConfig, Rate, Seed, Target};
//!
//! let mut link = LinkConfig::new("wire", Target::Port("b".into()));
//! let config = PacedFqConfig { max_rate: Some(Rate::from_bits_per_second(1_000_000)), ..PacedFqConfig::default() };
//! link.queue = Box::new(PacedFq::new(config, FlowHash::new(Seed(1), "wire", 1024, Identity::FiveTuple)));
//! ```

mod bands;
mod flow;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::classify::FlowHash;
use crate::counters::DropReason;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::queue::{Backlog, Bound, Context, Dequeue, Queue, Wire};
use crate::sched::bucket;
use crate::service::Overhead;
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};
use bands::{BANDS, Band, Kind, band_of};
use flow::{Flow, Place};

/// The parameters of [`PacedFq`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacedFqConfig {
    /// Maximum backlog of each band. Default: 10,000 packets.
    pub bound: Bound,
    /// Maximum number of packets of a flow. Default: 100.
    pub flow_limit: u64,
    /// Bytes per turn of a flow, 1 to 2²⁰. Default: 3028, two full Ethernet frames.
    pub quantum: Bytes,
    /// Bytes that a flow may send when it first appears, up to 2³¹ − 1. Default: 15,140.
    pub initial_quantum: Bytes,
    /// Maximum rate of a flow. `None`: unlimited.
    pub max_rate: Option<Rate>,
    /// Up to this maximum rate, packets are paced one by one rather than by quanta. Default: 550 kbit/s.
    pub low_rate: Rate,
    /// A flow that was idle for longer has at least a quantum when it returns. Default: 40 ms.
    pub refill_delay: Duration,
    /// Mark packets sent more than this after they could have been sent. Default: none.
    pub ce_threshold: Option<Duration>,
    /// The bytes that each band sends per turn, 16,384 to 2³¹ − 1. Default: 9, 3 and 1 times 65,536.
    pub weights: [u32; BANDS],
    /// The band of each of Linux's 16 priorities, 0 to 2. Packets have the priorities 0, 2, 4 and 6, by their TOS bits.
    pub priorities: [u8; 16],
}

impl Default for PacedFqConfig {
    fn default() -> Self {
        Self {
            bound: Bound::Packets(10_000),
            flow_limit: 100,
            quantum: Bytes::new(3028),
            initial_quantum: Bytes::new(15_140),
            max_rate: None,
            low_rate: Rate::from_bits_per_second(550_000),
            refill_delay: Duration::from_millis(40),
            ce_threshold: None,
            weights: [9 << 16, 3 << 16, 1 << 16],
            priorities: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
        }
    }
}

/// Fair queueing of flows with a maximum rate for each.
#[derive(Debug)]
pub struct PacedFq {
    config: PacedFqConfig,
    hash: FlowHash,
    overhead: Overhead,
    flows: Vec<Flow>,
    bands: [Band; BANDS],
    /// The band whose turn it is.
    turn: usize,
    /// Packets that are served before all flows.
    fast: PacketList,
    /// Flows that wait for an instant, in its order, those of one instant in the order in which they began to wait.
    delayed: BTreeMap<(Time, u64), u32>,
    /// How many flows have begun to wait.
    waits: u64,
    /// Flows on the lists of bands, some of which may be empty.
    listed: usize,
    /// Flows with packets that do not wait for an instant.
    ready: usize,
    backlog: Backlog,
}

/// The most packets served before all flows.
const MOST_FAST: u64 = 8;

impl PacedFq {
    /// An empty queue. The hash sorts packets into flows.
    pub fn new(config: PacedFqConfig, hash: FlowHash) -> Self {
        let initial = clamped(config.initial_quantum, 0, i32::MAX as u64);
        let flows = (0..hash.classes()).map(|_| Flow::new(initial)).collect();
        let bands = config.weights.map(Band::new);
        Self {
            config,
            hash,
            overhead: Overhead::IP,
            flows,
            bands,
            turn: 0,
            fast: PacketList::default(),
            delayed: BTreeMap::new(),
            waits: 0,
            listed: 0,
            ready: 0,
            backlog: Backlog::default(),
        }
    }

    /// The minimum of [`PacedFqConfig::weights`].
    pub const LEAST_WEIGHT: u32 = bands::LEAST_WEIGHT;

    fn quantum(&self) -> i64 {
        clamped(self.config.quantum, 1, 1 << 20)
    }

    /// Whether a packet that arrives now is served before all flows.
    fn is_fast(&self, now: Time) -> bool {
        let is_due = self.delayed.first_key_value().is_some_and(|(&(at, _), _)| at <= now);
        let others = self.ready == 0 && self.fast.len() < MOST_FAST && !is_due;
        self.config.max_rate.is_none() && (self.backlog.packets == 0 || others)
    }

    fn add_to_list(&mut self, flow: u32, kind: Kind) {
        let band = usize::from(self.flows[flow as usize].band);
        self.bands[band].push_back(kind, flow, &mut self.flows);
        self.flows[flow as usize].place = Place::Listed;
        self.listed += 1;
    }

    /// Takes the flow whose turn it is from its list.
    fn take_from_list(&mut self, kind: Kind) {
        self.bands[self.turn].pop_front(kind, &self.flows);
        self.listed -= 1;
    }

    /// Puts a packet into its flow, whatever the bounds.
    fn join(&mut self, now: Time, number: u32, band: u8, packet: PacketRef, pool: &mut Pool) {
        let quantum = self.quantum();
        if self.flows[number as usize].place == Place::Nowhere {
            self.add_to_list(number, Kind::New);
            let flow = &mut self.flows[number as usize];
            if flow.emptied.is_some_and(|emptied| now.since(emptied) > self.config.refill_delay) {
                flow.credit = flow.credit.max(quantum);
            }
        }
        let flow = &mut self.flows[number as usize];
        flow.band = band;
        if flow.packets.is_empty() {
            self.ready += 1;
        }
        flow.packets.push_back(packet, pool);
        let length = pool.get(packet).length;
        self.bands[usize::from(band)].backlog.add(length);
        self.backlog.add(length);
    }

    /// Returns flows to the lists whose instants have come.
    fn release(&mut self, now: Time) {
        while let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
            let flow = entry.remove();
            self.ready += 1;
            self.add_to_list(flow, Kind::Old);
        }
    }

    /// The flow that sends now. `None` if none may. Passes over flows and bands that have
    /// used up their credit: a flow's is below 0 by less than a packet, so this takes a few rounds if the quantum is not
    /// far below that.
    fn select(&mut self, now: Time, pool: &Pool) -> Option<u32> {
        while self.listed > 0 {
            let Some((number, kind)) = self.bands[self.turn].first() else {
                self.turn = (self.turn + 1) % BANDS;
                self.bands[self.turn].grant();
                continue;
            };
            let quantum = self.quantum();
            let flow = &mut self.flows[number as usize];
            if flow.credit <= 0 {
                flow.credit += quantum;
                self.take_from_list(kind);
                self.add_to_list(number, Kind::Old);
                continue;
            }
            let Some(first) = flow.packets.front() else {
                self.take_from_list(kind);
                match kind {
                    Kind::New => self.add_to_list(number, Kind::Old),
                    Kind::Old => {
                        let flow = &mut self.flows[number as usize];
                        (flow.place, flow.emptied) = (Place::Nowhere, Some(now));
                    }
                }
                continue;
            };
            let at = flow.allowed(pool.get(first).entered);
            if at <= now {
                return Some(number);
            }
            (flow.next, flow.place) = (Some(at), Place::Delayed);
            self.take_from_list(kind);
            self.ready -= 1;
            self.delayed.insert((at, self.waits), number);
            self.waits += 1;
        }
        self.bands.iter_mut().for_each(Band::fill);
        None
    }

    /// The selected flow sends its first packet.
    fn send(&mut self, now: Time, number: u32, context: &mut Context<'_>) -> Option<PacketRef> {
        let quantum = self.quantum();
        let flow = &mut self.flows[number as usize];
        let packet = flow.packets.pop_front(context.pool)?;
        let (length, entered) = (context.pool.get(packet).length, context.pool.get(packet).entered);
        let band = band_of(&self.config.priorities, &context.pool.get(packet).key);
        self.bands[usize::from(band)].backlog.remove(length);
        self.backlog.remove(length);
        if flow.packets.is_empty() {
            self.ready -= 1;
        }
        let threshold = self.config.ce_threshold.unwrap_or(Duration::MAX);
        if now.since(flow.allowed(entered)) > threshold {
            context.mark(packet);
        }
        let on_wire = (bucket::cost(length, &self.overhead, Bytes::new(0)).0 / 8_000_000_000) as i64; // below 2³³
        flow.credit -= on_wire;
        self.bands[self.turn].credit -= on_wire;
        if let Some(rate) = self.config.max_rate {
            flow.pace(now, on_wire, quantum, rate, self.config.low_rate);
        }
        Some(packet)
    }

    fn number_and_band(&self, packet: PacketRef, pool: &Pool) -> (u32, u8) {
        let key = &pool.get(packet).key;
        (self.hash.class(key), band_of(&self.config.priorities, key))
    }
}

fn clamped(bytes: Bytes, low: u64, high: u64) -> i64 {
    bytes.get().clamp(low, high) as i64
}

impl Queue for PacedFq {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        let (number, band) = self.number_and_band(packet, context.pool);
        let length = context.pool.get(packet).length;
        if !self.config.bound.admits(self.bands[usize::from(band)].backlog, length) {
            return context.drop(packet, DropReason::QueueFull);
        }
        if self.is_fast(now) {
            self.fast.push_back(packet, context.pool);
            return self.backlog.add(length);
        }
        if self.flows[number as usize].packets.len() >= self.config.flow_limit {
            return context.drop(packet, DropReason::QueueFull);
        }
        self.join(now, number, band, packet, context.pool);
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        if self.backlog.packets == 0 {
            return Dequeue::Empty;
        }
        if let Some(packet) = self.fast.pop_front(context.pool) {
            self.backlog.remove(context.pool.get(packet).length);
            return Dequeue::Packet(packet);
        }
        self.release(now);
        let sent = self.select(now, context.pool).and_then(|number| self.send(now, number, context));
        match (sent, self.delayed.first_key_value()) {
            (Some(packet), _) => Dequeue::Packet(packet),
            (None, Some((&(at, _), _))) => Dequeue::NotBefore(at),
            (None, None) => Dequeue::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn set_bound(&mut self, bound: Bound) {
        self.config.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.config.bound
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        let mut all: Vec<PacketRef> = core::iter::from_fn(|| self.fast.pop_front(pool)).collect();
        for flow in &mut self.flows {
            all.extend(core::iter::from_fn(|| flow.packets.pop_front(pool)));
        }
        *self = Self { overhead: self.overhead, ..Self::new(self.config.clone(), self.hash) };
        PacketList::by_arrival(all, pool)
    }

    fn adopt(&mut self, now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        while let Some(packet) = packets.pop_front(context.pool) {
            let (number, band) = self.number_and_band(packet, context.pool);
            self.join(now, number, band, packet, context.pool);
        }
    }

    fn set_wire(&mut self, _now: Time, wire: Wire) {
        self.overhead = wire.overhead;
    }
}

#[cfg(test)]
mod tests;
