//! CAKE, "common applications kept enhanced": a shaper, priority tins, fair queueing with host isolation, and queue
//! management, in one queue.
//!
//! Sources: Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: A Comprehensive Queue Management Solution for Home
//! Gateways", LANMAN 2018; `net/sched/sch_cake.c` of Linux 6.12; tc-cake(8). A packet passes these parts:
//!
//! ```text
//! enqueue:  DSCP → tin → flow, by a set-associative hash → its queue → over the limit: head of the longest queue dropped
//! dequeue:  shaper: may a packet go? → tin → flow: DRR++ among flows and hosts → Cobalt → shaper and tin are charged
//! ```
//!
//! - **Lengths** ([`Framing`]). The shaper, the tins and the flows' deficits count L′(L): the frame, or the IP packet
//!   plus `overhead`, at least `mpu`, in cells of ATM (53 bytes for 48) or with the coding of PTM (65 for 64).
//! - **Shaper**. There is no bucket and no burst: after a packet of L′ bytes the next one may go at
//!
//!   ```text
//!   next ← next + L′·8 / bandwidth,     next ← now when a packet arrives at an empty queue and next is past
//!   ```
//!
//!   In `ingress` mode dropped packets are charged, too. So that drops cannot stop the flow, a second instant that
//!   counts sent packets only, at 1.5 times their duration, may allow a packet first.
//! - **Tins** ([`TinMode`]). Each has a threshold rate, a fraction of the bandwidth, and its own `next` at that rate.
//!   The tin with the highest number of those that keep to their threshold is served; if none does, the one that is
//!   due first. Without a bandwidth, tins share by deficit round robin, with the same fractions as weights.
//! - **Flows** ([`Isolation`]). Each tin has 1024 queues in sets of 8 ways; a flow gets another way of its set if its
//!   own is in use. DRR++: a flow that becomes active is *sparse* and goes first; when it has sent a quantum with more
//!   packets waiting, it is *bulk*, served in turns. With host isolation, a turn is
//!
//!   ```text
//!   quantum / max(1, bulk flows of its source host, bulk flows of its destination host)
//!   ```
//!
//!   where dual modes count one of the two. An emptied flow stays, *decaying*, until its Cobalt is at rest.
//! - **Filters** ([`CakeTarget`]) may choose a packet's tin, and give numbers to its hosts and its flow.
//! - **Cobalt** (`cobalt.rs`): CoDel for flows that respond, BLUE for those that do not.
//! - **Acknowledgements** ([`AckFilter`], `acks.rs`): those that a later one makes redundant are dropped as it arrives.
//!
//! A quantum is 1514 bytes, below 49.6 Mbit/s a 4096th of the bytes of a second, and 300 at least. Cobalt's target is
//! a twentieth of `rtt`, and 1.5 packets' time at the tin's threshold at least.
//!
//! Departures, and points to know:
//! - The limit is in bytes of IP packets. Linux counts the memory of its buffers, 2304 bytes for a frame of 1000.
//! - Linux rounds a flow's share of a quantum at random; here the remainder is carried. Remainders of a nanosecond are
//!   carried from packet to packet, too, where Linux truncates.
//! - The longest packet is that of an MTU of 1500 bytes, 1514 with its link header, whatever the link's MTU.
//! - Hashes are keyed by the seed and the link. Fragments, except the first, have no ports. Packets that are neither
//!   IPv4 nor IPv6 are best effort; Linux has ARP in the tin of CS7.
//! - An interval above 4.29 s is taken in full; Linux uses the lower 32 bits of its nanoseconds in its control law.
//! - Packets are segments, so there is nothing to split. If the link has a rate of its own, the shaper sends no faster.
//! - The estimate of the bandwidth (`estimate.rs`) is that of a host that has been up for half an hour: until the first window
//!   ends, there is no limit. The bound stays that of the first bandwidth. All packets of a frame's length count, where
//!   Linux subtracts acknowledgements that its filter drops.
//! - Filters that drop a packet do so with [`DropReason::NoClass`].
//!
//! Cost: a packet costs constant time if a turn is at least its length, and otherwise L′ divided by the turn. With the filter
//! of acknowledgements, each arriving segment of TCP looks at the packets of its flow. All queues of a tin exist from the
//! start and take 144 bytes each.
//!
//! ```
//! use narrows_core::queue::Queue;
//! use narrows_core::sched::{Cake, CakeConfig};
//! use narrows_core::{LinkConfig, Rate, Seed, Target};
//!
//! let config = CakeConfig { bandwidth: Rate::from_bits_per_second(20_000_000), ..CakeConfig::default() };
//! let mut link = LinkConfig::new("wire", Target::Port("b".into()));
//! link.queue = Box::new(Cake::new(config, config.limit(), Seed(1), "wire"));
//! assert_eq!(link.queue.classes().len(), 3); // bulk, best effort, voice
//! ```

mod acks;
mod cobalt;
mod config;
mod estimate;
mod flow;
mod shaper;
mod tin;
mod ways;

pub use config::{AckFilter, CakeConfig, CakeTarget, Cells, Framing, Isolation, TinMode};

use alloc::vec::Vec;

use crate::classify::{Classifier, FlowHash, Identity};
use crate::counters::DropReason;
use crate::packet::FlowKey;
use crate::pool::{PacketList, PacketRef, PacketState, Pool};
use crate::queue::{Backlog, Bound, ClassCounters, Context, Dequeue, Queue};
use crate::random::{Seed, Stream};
use crate::sched::longest::Longest;
use crate::sched::{FlowId, Flows, Waits};
use crate::time::Time;
use crate::units::Rate;
use config::QUEUES;
use estimate::Estimate;
use flow::CakeFlow;
use shaper::Shaper;
use tin::Tin;

/// CAKE, as a link's queue. Its classes are the tins, best effort first.
#[derive(Debug)]
pub struct Cake {
    config: CakeConfig,
    bound: Bound,
    /// Hashes of flows, of source hosts and of destination hosts.
    hashes: [FlowHash; 3],
    /// BLUE's draws.
    blue: Stream,
    shaper: Shaper,
    estimate: Estimate,
    tins: Vec<Tin>,
    /// The tin served last.
    turn: usize,
    /// The queues of all tins, [`QUEUES`] each.
    flows: Flows<CakeFlow>,
    /// Filters, and what the classes are that they choose.
    filters: Option<(Classifier, Vec<CakeTarget>)>,
    counters: Vec<ClassCounters>,
    backlog: Backlog,
    /// Set from the first overload on.
    longest: Option<Longest>,
}

impl Cake {
    /// A queue that holds at most `bound`. The seed and the link's name key its hashes and draws.
    pub fn new(config: CakeConfig, bound: Bound, seed: Seed, link: &str) -> Self {
        let hash = |identity| FlowHash::new(seed, link, u32::MAX, identity);
        let tins: Vec<Tin> = config.tins.shares().iter().map(|share| Tin::new(share, &config)).collect();
        let mut flows = Flows::default();
        (0..tins.len() * QUEUES).for_each(|_| _ = flows.add(CakeFlow::default()));
        Self {
            config,
            bound,
            hashes: [Identity::FiveTuple, Identity::Source, Identity::Destination].map(hash),
            blue: Stream::new(seed, link, "blue"),
            shaper: Shaper::new(config.bandwidth),
            estimate: Estimate::new(),
            turn: 0,
            filters: None,
            counters: tins.iter().map(|_| ClassCounters::default()).collect(),
            tins,
            flows,
            backlog: Backlog::default(),
            longest: None,
        }
    }

    /// With filters: a packet goes where the target says that has the number of its class, and is dropped if it has no class.
    pub fn with_filters(self, filters: Classifier, targets: Vec<CakeTarget>) -> Self {
        Self { filters: Some((filters, targets)), ..self }
    }

    /// Where the filters send a packet; `None` if they drop it.
    fn target(&self, packet: PacketRef, pool: &Pool) -> Option<CakeTarget> {
        let Some((filters, targets)) = &self.filters else { return Some(CakeTarget::default()) };
        let class = filters.class(packet, pool)?;
        Some(targets.get(class as usize).copied().unwrap_or_default())
    }

    fn set_bandwidth(&mut self, bandwidth: Rate) {
        self.config.bandwidth = bandwidth;
        self.shaper.set_rate(bandwidth);
        let shares = self.config.tins.shares();
        self.tins.iter_mut().zip(shares).for_each(|(tin, share)| tin.set_rate(share, &self.config));
    }

    fn is_shaped(&self) -> bool {
        self.config.bandwidth != Rate::UNLIMITED
    }

    fn tin_of(flow: FlowId) -> usize {
        flow.number() as usize / QUEUES
    }

    /// The flow's queue in its tin, reserved for it while it is active.
    fn queue_of(&mut self, tin: usize, key: &FlowKey, target: CakeTarget) -> FlowId {
        let isolation = self.config.isolation;
        let [flow, source, destination] = self.hashes.map(|hash| hash.class(key));
        // Numbers count from 1; as in Linux, they are hashes, and may meet those of others.
        let number = |number: Option<u16>| number.map(|number| u32::from(number.saturating_sub(1)));
        let [source, destination] = number(target.host).map_or([source, destination], |host| [host; 2]);
        let flow_or = |hash| number(target.flow).unwrap_or(hash);
        let hash = match isolation {
            Isolation::None => return FlowId::new((tin * QUEUES) as u32),
            Isolation::Source => flow_or(0) ^ source,
            Isolation::Destination => flow_or(0) ^ destination,
            Isolation::Hosts => flow_or(0) ^ source ^ destination,
            _ => flow_or(flow),
        };
        self.tins[tin].ways.reserve(tin, hash, [source, destination], isolation, &mut self.flows)
    }

    /// Appends a packet to its flow. Returns the flow.
    fn join(&mut self, packet: PacketRef, target: CakeTarget, context: &mut Context<'_>) -> FlowId {
        let state = context.pool.get_mut(packet);
        let named = target.tin.map(usize::from).filter(|tin| *tin < self.tins.len());
        let tin = named.unwrap_or_else(|| self.config.tins.tin(state.key.dscp()));
        if self.config.wash {
            state.key.traffic_class &= FlowKey::CONGESTION_EXPERIENCED;
        }
        let (key, length) = (state.key, state.length);
        let flow = self.queue_of(tin, &key, target);
        self.counters[tin].arrived.add(length);
        self.backlog.add(length);
        self.tins[tin].packets += 1;
        self.flows.push(flow, Waits { packet, length });
        if let Some(longest) = &mut self.longest {
            longest.grown(flow, &self.flows);
        }
        self.tins[tin].activate(flow, self.config.isolation, &mut self.flows);
        flow
    }

    /// Removes the first packet of a flow.
    fn pop(&mut self, flow: FlowId) -> Option<Waits> {
        let waits = self.flows.pop(flow)?;
        self.removed(flow, waits);
        Some(waits)
    }

    fn removed(&mut self, flow: FlowId, waits: Waits) {
        self.backlog.remove(waits.length);
        self.tins[Self::tin_of(flow)].packets -= 1;
    }

    /// Drops the acknowledgement that the packet, the last of its flow, makes redundant.
    fn filter_acks(&mut self, now: Time, flow: FlowId, packet: PacketRef, context: &mut Context<'_>) {
        if self.config.ack_filter == AckFilter::Off || self.flows.packets(flow) < 2 {
            return;
        }
        let aggressive = self.config.ack_filter == AckFilter::Aggressive;
        let waiting = self.flows.waiting_in(flow).map(|waits| waits.packet);
        let redundant = acks::redundant(waiting, packet, aggressive, context.pool);
        if let Some(waits) = redundant.and_then(|position| self.flows.remove_at(flow, position)) {
            self.removed(flow, waits);
            self.counters[Self::tin_of(flow)].redundant += 1;
            self.drop(now, flow, waits, DropReason::RedundantAck, context);
        }
    }

    /// Drops a packet that has been removed from its flow. Charged only in `ingress` mode.
    fn drop(
        &mut self,
        now: Time,
        flow: FlowId,
        waits: Waits,
        reason: DropReason,
        context: &mut Context<'_>,
    ) -> i64 {
        let tin = Self::tin_of(flow);
        self.counters[tin].dropped.add(waits.length);
        let charged =
            if self.config.ingress { self.charge(now, tin, context.pool.get(waits.packet), true) } else { 0 };
        context.drop(waits.packet, reason);
        charged
    }

    /// Charges a packet to its tin and to the shaper. Returns its adjusted length.
    fn charge(&mut self, now: Time, tin: usize, packet: &PacketState, dropped: bool) -> i64 {
        let length = self.config.framing.length(packet);
        if self.is_shaped() {
            self.tins[tin].charge(now, length);
            self.shaper.charge(length, dropped);
        }
        length as i64
    }

    fn is_beyond_bound(&self) -> bool {
        match self.bound {
            Bound::Packets(most) => self.backlog.packets > most,
            Bound::Bytes(most) => self.backlog.bytes > most.get(),
        }
    }

    /// Drops the first packet of the longest queue. Returns whether there was one.
    fn relieve(&mut self, now: Time, context: &mut Context<'_>) -> bool {
        let flows = &self.flows;
        let longest = self.longest.get_or_insert_with(|| Longest::of(flows)).find(flows);
        let Some((flow, waits)) = longest.and_then(|flow| Some((flow, self.pop(flow)?))) else {
            return false;
        };
        self.flows[flow].cobalt.full(&self.tins[Self::tin_of(flow)].cobalt, now);
        self.drop(now, flow, waits, DropReason::QueueFull, context);
        true
    }

    /// The tin to serve. There must be a packet.
    fn select_tin(&mut self, now: Time) -> usize {
        if self.is_shaped() {
            let active = (0..self.tins.len()).filter(|&tin| self.tins[tin].is_active());
            // Of those within their thresholds the last, else the one due first, and of several the last.
            let best = active.rev().min_by_key(|&tin| self.tins[tin].next.since(now));
            self.turn = best.unwrap_or(0);
            return self.turn;
        }
        // A packet is below 2¹⁷ bytes and a quantum at least 64: fewer than 2¹¹ rounds for each packet charged.
        while self.tins[self.turn].passes_turn() {
            self.turn = (self.turn + 1) % self.tins.len();
        }
        self.turn
    }

    /// Takes the next packet of a tin. `None` if the flow whose turn it was turned out to be empty.
    ///
    /// One decaying flow is looked at for each packet, before the others: `decaying` says whether this is still to be
    /// done.
    fn serve(
        &mut self,
        now: Time,
        tin: usize,
        decaying: &mut bool,
        context: &mut Context<'_>,
    ) -> Option<PacketRef> {
        let isolation = self.config.isolation;
        loop {
            let flow = self.tins[tin].front(core::mem::take(decaying))?;
            if self.flows[flow].deficit <= 0 {
                self.tins[tin].next_turn(flow, isolation, &mut self.flows);
                continue;
            }
            loop {
                let Some(waits) = self.pop(flow) else {
                    self.tins[tin].retire(now, flow, isolation, &mut self.flows);
                    return None;
                };
                if self.judge(now, flow, waits.packet, context) {
                    self.send(now, flow, waits, context.pool);
                    return Some(waits.packet);
                }
                let charged = self.drop(now, flow, waits, DropReason::QueueManagement, context);
                self.flows[flow].deficit -= charged;
                self.tins[tin].deficit -= charged;
                if self.config.ingress {
                    break;
                }
            }
        }
    }

    /// Whether Cobalt lets a packet pass that has been removed from its flow. It may mark it.
    fn judge(&mut self, now: Time, flow: FlowId, packet: PacketRef, context: &mut Context<'_>) -> bool {
        let tin = &self.tins[Self::tin_of(flow)];
        let state = context.pool.get(packet);
        let sojourn = now.since(state.entered);
        let markable = state.key.ecn() != FlowKey::NOT_ECN_CAPABLE;
        let bulk = if self.config.ingress { tin.bulk } else { 0 };
        let draw = || (context.draw(&self.blue, packet).bits() >> 32) as u32;
        let judged = self.flows[flow].cobalt.judge(&tin.cobalt, now, sojourn, bulk, markable, draw);
        // The last packet of a queue is never dropped.
        let passes = !judged.drop || self.flows.packets(flow) == 0;
        if passes && judged.mark {
            let before = context.marks();
            context.mark(packet);
            self.counters[Self::tin_of(flow)].marked += context.marks() - before;
        }
        passes
    }

    fn send(&mut self, now: Time, flow: FlowId, waits: Waits, pool: &Pool) {
        let (tin, packet) = (Self::tin_of(flow), pool.get(waits.packet));
        let charged = self.charge(now, tin, packet, false);
        self.flows[flow].deficit -= charged;
        self.tins[tin].deficit -= charged;
        let waited = now.since(packet.entered);
        let counters = &mut self.counters[tin];
        counters.sent.add(waits.length);
        counters.waited += waited;
        counters.longest_wait = counters.longest_wait.max(waited);
    }
}

impl Queue for Cake {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        let Some(target) = self.target(packet, context.pool) else {
            context.drop(packet, DropReason::NoClass);
            return;
        };
        let was_empty = self.backlog.packets == 0;
        let flow = self.join(packet, target, context);
        let tin = &mut self.tins[Self::tin_of(flow)];
        if tin.packets == 1 {
            tin.next = tin.next.max(now);
            if was_empty {
                self.shaper.restart(now);
            }
        }
        let state = context.pool.get(packet);
        let frame = u64::from(state.length) + u64::from(state.link_header);
        self.filter_acks(now, flow, packet, context);
        if let Some(bandwidth) = self.config.autorate.then(|| self.estimate.arrive(now, frame)).flatten() {
            self.set_bandwidth(bandwidth);
        }
        while self.is_beyond_bound() && self.relieve(now, context) {}
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        let mut decaying = true;
        // Each round that finds no packet retires an empty flow.
        loop {
            if self.backlog.packets == 0 {
                return Dequeue::Empty;
            }
            let due = self.shaper.due();
            if due > now {
                return Dequeue::NotBefore(due);
            }
            let tin = self.select_tin(now);
            if let Some(packet) = self.serve(now, tin, &mut decaying, context) {
                return Dequeue::Packet(packet);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.bound
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        let mut all = Vec::new();
        for flow in (0..self.tins.len() * QUEUES).map(|number| FlowId::new(number as u32)) {
            all.extend(core::iter::from_fn(|| self.pop(flow)).map(|waits| waits.packet));
        }
        PacketList::by_arrival(all, pool)
    }

    fn adopt(&mut self, now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        if !packets.is_empty() {
            self.shaper.restart(now);
        }
        while let Some(packet) = packets.pop_front(context.pool) {
            // What waits already is not dropped.
            let target = self.target(packet, context.pool).unwrap_or_default();
            let flow = self.join(packet, target, context);
            let tin = &mut self.tins[Self::tin_of(flow)];
            tin.next = tin.next.max(now);
        }
    }

    fn looks_at_headers(&self) -> bool {
        self.filters.as_ref().is_some_and(|(filters, _)| filters.looks_at_headers())
    }

    fn looks_at_tcp_options(&self) -> bool {
        self.config.ack_filter != AckFilter::Off
    }

    fn classes(&self) -> &[ClassCounters] {
        &self.counters
    }
}
