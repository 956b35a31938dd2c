//! HHF, the heavy-hitter filter: flows that send much are served behind all others (Lam and Dukkipati's sch_hhf in
//! Linux, 6.12, with the multistage filter of Estan and Varghese, "New directions in traffic measurement and accounting",
//! SIGCOMM 2002).
//!
//! Packets wait in one of two FIFOs, of heavy flows and of all others. Four arrays of 1024 counters find heavy flows. A
//! flow has a counter in each, by parts of its hash. A packet of length L adds to them by the rule of conservative update:
//!
//! ```text
//! m = L + least of the flow's counters
//! m > admit:  the flow is heavy from this packet on, and no longer counted
//! otherwise:  counter ← max(counter, m), in each array
//! ```
//!
//! Counters are cleared once `reset` has passed since the last time. So a flow that sends more than `admit` bytes in
//! that time is found, never too late, and one that sends less is taken for heavy only if others have raised all of its
//! counters. A heavy flow that sends nothing for `evict` is forgotten. At most `heavy_limit` flows are heavy at a time;
//! others stay where they are, and are counted in [`Hhf::refused`].
//!
//! The two FIFOs take turns by deficit round robin, as flows do in FQ-CoDel: the light one has `weight` quanta a turn,
//! the heavy one a quantum. When it was empty, the light one goes first. If the bound is exceeded, the heavy FIFO loses
//! its oldest packet, or the light one if the heavy one is empty.
//!
//! Lengths are those of frames with their link header, as in Linux. A flow is told by addresses, ports and protocol; only the
//! first fragment of a packet has ports. The hash is keyed by the seed and the link's name.
//!
//! Differences from Linux:
//! - Times are exact; Linux counts jiffies, so that `reset` and `evict` are up to a jiffy longer.
//! - The hash is another one, so other flows collide.
//!
//! ```
//! use narrows_core::sched::{Hhf, HhfConfig};
//! use narrows_core::{LinkConfig, Target};
//!
//! let mut link = LinkConfig::new("wire", Target::Port("b".into()));
//! link.queue = Box::new(Hhf::new(HhfConfig::default()));
//! ```

mod filter;

use alloc::collections::VecDeque;

use crate::counters::DropReason;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::queue::{Backlog, Bound, ClassCounters, Context, Dequeue, Queue};
use crate::time::{Duration, Time};
use crate::units::Bytes;
use filter::Filter;

/// The parameters of [`Hhf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HhfConfig {
    /// Maximum backlog. Default: 1000 packets.
    pub bound: Bound,
    /// Bytes per turn of the heavy FIFO, 1 to 2²⁰. Default: 1514, a full Ethernet frame.
    pub quantum: Bytes,
    /// Quanta per turn of the light FIFO, 1 to 1000. Default: 2.
    pub weight: u32,
    /// At most this many flows are heavy at a time. Default: 2048.
    pub heavy_limit: u32,
    /// A flow that sends more than this before the counters are cleared is heavy. Default: 131,072.
    pub admit: Bytes,
    /// The interval at which counters are cleared. Default: 40 ms.
    pub reset: Duration,
    /// A heavy flow that sends nothing for longer is forgotten. Default: 1 s.
    pub evict: Duration,
}

impl Default for HhfConfig {
    fn default() -> Self {
        Self {
            bound: Bound::Packets(1000),
            quantum: Bytes::new(1514),
            weight: 2,
            heavy_limit: 2048,
            admit: Bytes::new(131_072),
            reset: Duration::from_millis(40),
            evict: Duration::from_secs(1),
        }
    }
}

impl HhfConfig {
    /// The most that [`Self::weight`] may be.
    pub const MOST_WEIGHT: u32 = 1000;
    /// The most that [`Self::heavy_limit`] may be.
    pub const MOST_HEAVY: u32 = 65_536;
}

/// The classes: heavy flows, and all others.
const HEAVY: usize = 0;
const LIGHT: usize = 1;

/// Two FIFOs with a filter before them.
#[derive(Debug)]
pub struct Hhf {
    config: HhfConfig,
    filter: Filter,
    waiting: [PacketList; 2],
    deficits: [i64; 2],
    /// FIFOs whose turn comes first, and those that have had one. Some may be empty.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    counters: [ClassCounters; 2],
}

impl Hhf {
    /// An empty queue.
    pub fn new(config: HhfConfig) -> Self {
        Self {
            config,
            filter: Filter::new(),
            waiting: Default::default(),
            deficits: [0; 2],
            new: VecDeque::with_capacity(2),
            old: VecDeque::with_capacity(2),
            counters: Default::default(),
        }
    }

    /// How many flows were found heavy so far.
    pub const fn found(&self) -> u64 {
        self.filter.found
    }

    /// How often a flow was not made heavy because there were too many.
    pub const fn refused(&self) -> u64 {
        self.filter.refused
    }

    /// Bytes per turn of a FIFO.
    fn turn(&self, of: usize) -> i64 {
        let quantum = self.config.quantum.get().clamp(1, 1 << 20) as i64;
        match of {
            HEAVY => quantum,
            _ => quantum * i64::from(self.config.weight.clamp(1, HhfConfig::MOST_WEIGHT)),
        }
    }

    fn join(&mut self, of: usize, packet: PacketRef, pool: &mut Pool) {
        self.counters[of].arrived.add(pool.get(packet).length);
        self.waiting[of].push_back(packet, pool);
        if !self.new.contains(&of) && !self.old.contains(&of) {
            self.deficits[of] = self.turn(of);
            // Heavy flows never go first.
            if of == HEAVY { &mut self.old } else { &mut self.new }.push_back(of);
        }
    }

    /// Drops the oldest packet of heavy flows, or of others if there is none.
    fn drop_first(&mut self, context: &mut Context<'_>) {
        let of = if self.waiting[HEAVY].is_empty() { LIGHT } else { HEAVY };
        if let Some(packet) = self.waiting[of].pop_front(context.pool) {
            self.counters[of].dropped.add(context.pool.get(packet).length);
            context.drop(packet, DropReason::QueueFull);
        }
    }

    fn is_beyond_bound(&self) -> bool {
        let backlog = self.backlog();
        match self.config.bound {
            Bound::Packets(most) => backlog.packets > most,
            Bound::Bytes(most) => backlog.bytes > most.get(),
        }
    }

    fn send(&mut self, now: Time, of: usize, packet: PacketRef, pool: &Pool) {
        let state = pool.get(packet);
        self.deficits[of] -= state.frame_length() as i64; // below 2³³
        let waited = now.since(state.entered);
        let counters = &mut self.counters[of];
        counters.sent.add(state.length);
        counters.waited += waited;
        counters.longest_wait = counters.longest_wait.max(waited);
    }
}

impl Queue for Hhf {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        let of = self.filter.class(now, &self.config, packet, context);
        self.join(of, packet, context.pool);
        while self.is_beyond_bound() {
            self.drop_first(context);
        }
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let Some(&of) = list.front() else { return Dequeue::Empty };
            // A deficit is above −2³³ and a turn above zero, so this ends; usually at once, as a turn is a frame or more.
            if self.deficits[of] <= 0 {
                list.pop_front();
                self.deficits[of] += self.turn(of);
                self.old.push_back(of);
                continue;
            }
            if let Some(packet) = self.waiting[of].pop_front(context.pool) {
                self.send(now, of, packet, context.pool);
                return Dequeue::Packet(packet);
            }
            list.pop_front();
            // Others have a turn before it is new again.
            if is_new && !self.old.is_empty() {
                self.old.push_back(of);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        let [heavy, light] = &self.waiting;
        Backlog { packets: heavy.len() + light.len(), bytes: heavy.bytes() + light.bytes() }
    }

    fn set_bound(&mut self, bound: Bound) {
        self.config.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.config.bound
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        let mut all = alloc::vec::Vec::new();
        for list in &mut self.waiting {
            all.extend(core::iter::from_fn(|| list.pop_front(pool)));
        }
        PacketList::by_arrival(all, pool)
    }

    fn adopt(&mut self, now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        while let Some(packet) = packets.pop_front(context.pool) {
            let of = self.filter.class(now, &self.config, packet, context);
            self.join(of, packet, context.pool);
        }
    }

    fn classes(&self) -> &[ClassCounters] {
        &self.counters
    }
}

#[cfg(test)]
mod tests;
