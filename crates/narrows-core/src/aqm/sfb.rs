//! SFB, "stochastic fair Blue": one FIFO in which flows that do not respond to losses are found and limited (Feng,
//! Kandlur, Saha and Shin, "Stochastic Fair Blue: a queue management algorithm for enforcing fairness", INFOCOM 2001),
//! as in Linux (sch_sfb.c, 6.12).
//!
//! There are L = 8 levels of N = 16 bins. A hash maps each flow to one bin of every level. A bin counts the packets of
//! its flows that wait, and has a probability p as in Blue. On an arrival, in each of the flow's bins,
//!
//! ```text
//! p ← p + increment   at least `bin_target` packets of the bin wait
//! p ← p − decrement   none waits
//! ```
//!
//! p_min, the least p of the flow's bins, is the probability that the packet is marked, or dropped if it cannot be
//! marked. Above one half, ECN-capable packets are dropped as well, with the probability 2·(p_min − ½). If even the bin
//! with the fewest packets has `bin_max`, the packet is dropped. A flow that does not respond drives the p of all its
//! bins to 1, and is then limited to `penalty_rate` packets a second together with all others of the kind, by a bucket of
//! `penalty_burst` packets. Another flow suffers only if all of its bins belong to such flows, too. With B of these,
//! that has the probability
//!
//! ```text
//! (1 − (1 − 1/N)^B)^L
//! ```
//!
//! So that it does not last, the hash function changes every `rehash`. For the last `warmup` before a change, flows
//! with p_min = 1 are counted in the bins of the next function as well.
//!
//! As in Linux, probabilities are multiples of 1/65535, and the bins that come into use again at a second change still
//! have their probabilities from before. A flow is told by addresses, ports and protocol; only the first fragment of a packet
//! has ports. The hash is keyed by the seed and the link's name.
//!
//! Differences from Linux:
//! - Times are exact; Linux counts jiffies.
//! - Linux fills the bucket only when it is empty, by whole packets for the jiffies since it last tried. If packets
//!   come more often than once in 1/`penalty_rate`, and that is more than a jiffy, it stays empty. Here the bucket fills
//!   all the time.
//! - The queue inside is a FIFO with the bound of the whole, as Linux makes it. Other disciplines cannot be put there.
//!
//! ```
//! use narrows_core::aqm::{Sfb, SfbConfig};
//! use narrows_core::queue::Bound;
//! use narrows_core::{LinkConfig, Target};
//!
//! let mut link = LinkConfig::new("wire", Target::Port("b".into()));
//! link.queue = Box::new(Sfb::new(SfbConfig::default(), Bound::Packets(1000)));
//! ```

mod bins;

use alloc::collections::VecDeque;

use crate::aqm::Judgement;
use crate::counters::DropReason;
use crate::pool::{PacketList, PacketRef, PacketState, Pool};
use crate::queue::{Backlog, Bound, Context, Dequeue, Queue};
use crate::time::{Duration, Time};
use crate::units::Probability;
use bins::{Bins, CERTAIN, Place};

/// The parameters of SFB. The defaults are those of Linux's tc.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SfbConfig {
    /// From this many waiting packets of a bin on, its probability rises. Default: 20.
    pub bin_target: u64,
    /// Drop a packet if this many packets wait in each of its bins. Default: 25.
    pub bin_max: u64,
    /// How much the probability rises, as a multiple of 1/65535. Default: 0.05 %.
    pub increment: Probability,
    /// How much it falls, likewise. Default: 0.005 %.
    pub decrement: Probability,
    /// Packets a second of all flows that do not respond. Default: 10.
    pub penalty_rate: u32,
    /// How many of them may come at once. Default: 20.
    pub penalty_burst: u32,
    /// The interval between changes of the hash function; `None` for never. Default: 10 minutes.
    pub rehash: Option<Duration>,
    /// For how long before a change flows that do not respond are counted in the next bins, too. Default: 1 minute.
    pub warmup: Duration,
    /// Mark ECN-capable packets instead of dropping them, up to p = ½. Default: true.
    pub ecn: bool,
}

impl Default for SfbConfig {
    fn default() -> Self {
        let in_20_000 = |parts| Probability::from_ratio(parts, 20_000).expect("a probability");
        Self {
            bin_target: 20,
            bin_max: 25,
            increment: in_20_000(10),
            decrement: in_20_000(1),
            penalty_rate: 10,
            penalty_burst: 20,
            rehash: Some(Duration::from_secs(600)),
            warmup: Duration::from_secs(60),
            ecn: true,
        }
    }
}

/// A FIFO managed by SFB. A packet that does not fit is dropped on arrival.
#[derive(Debug)]
pub struct Sfb {
    config: SfbConfig,
    bound: Bound,
    packets: VecDeque<Waits>,
    bytes: u64,
    /// Bins in use and bins for the next hash function, in turns.
    bins: [Bins; 2],
    active: usize,
    /// How often the function has changed.
    changes: u64,
    /// Since when the present function is in use. `None` until the first packet.
    since: Option<Time>,
    penalty: Bucket,
}

/// A waiting packet, and where it counts in the two sets of bins.
#[derive(Clone, Copy, Debug)]
struct Waits {
    packet: PacketRef,
    places: [Option<Place>; 2],
}

/// The bucket of flows that do not respond, in packets times nanoseconds a second.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u64,
    at: Time,
}

const PACKET: u64 = 1_000_000_000;

impl Bucket {
    /// Takes a packet from it, if there is one.
    fn take(&mut self, now: Time, rate: u32, burst: u32) -> bool {
        let most = u64::from(burst) * PACKET; // below 2⁶²
        let filled = now.since(self.at).nanos().saturating_mul(rate.into());
        (self.tokens, self.at) = (self.tokens.saturating_add(filled).min(most), now);
        let takes = rate > 0 && self.tokens >= PACKET;
        if takes {
            self.tokens -= PACKET;
        }
        takes
    }
}

impl Sfb {
    /// An empty queue, with a full bucket.
    pub fn new(config: SfbConfig, bound: Bound) -> Self {
        Self {
            config,
            bound,
            packets: VecDeque::new(),
            bytes: 0,
            bins: Default::default(),
            active: 0,
            changes: 0,
            since: None,
            penalty: Bucket { tokens: u64::from(config.penalty_burst) * PACKET, at: Time::ZERO },
        }
    }

    /// Changes the hash function if it is time. Returns whether it will be soon, and flows warm up.
    fn rehash(&mut self, now: Time) -> bool {
        let since = *self.since.get_or_insert(now);
        let Some(interval) = self.config.rehash else { return false };
        let age = now.since(since);
        if age > interval {
            self.active ^= 1;
            self.changes += 1;
            self.since = Some(now);
            return false;
        }
        self.config.warmup > Duration::ZERO && age + self.config.warmup > interval
    }

    /// Where a packet counts in one of the sets of bins.
    fn place(&self, set: usize, packet: &PacketState, context: &Context<'_>) -> Place {
        // Each time that a set comes into use, it has another function.
        let next = u64::from(set != self.active);
        Place::of(packet, context.hash_key(self.changes + next))
    }

    /// What to do with an arriving packet, and where it counts if it stays.
    fn judge(
        &mut self,
        now: Time,
        packet: PacketRef,
        context: &Context<'_>,
    ) -> (Judgement, [Option<Place>; 2]) {
        let warms_up = self.rehash(now);
        let state = context.pool.get(packet);
        let (active, next) = (self.active, self.active ^ 1);
        let mut places = [None; 2];
        let place = self.place(active, state, context);
        places[active] = Some(place);
        let (fewest, chance) = self.bins[active].observe(place, &self.config);
        if fewest >= self.config.bin_max {
            return (Judgement::Drop, places);
        }
        if chance >= CERTAIN {
            if warms_up {
                let place = self.place(next, state, context);
                places[next] = Some(place);
                self.bins[next].observe(place, &self.config);
            }
            let passes = self.penalty.take(now, self.config.penalty_rate, self.config.penalty_burst);
            return (if passes { Judgement::Pass } else { Judgement::Drop }, places);
        }
        let drawn = context.draw_at_arrival(packet).below(u64::from(CERTAIN) + 1) as u32;
        let judgement = match Judgement::congestion(self.config.ecn, state) {
            _ if drawn >= chance => Judgement::Pass,
            _ if chance > CERTAIN / 2 && drawn < (chance - CERTAIN / 2) * 2 => Judgement::Drop,
            judgement => judgement,
        };
        (judgement, places)
    }

    fn accept(&mut self, packet: PacketRef, places: [Option<Place>; 2], pool: &Pool) {
        for (bins, place) in self.bins.iter_mut().zip(places) {
            place.inspect(|place| bins.join(*place));
        }
        self.bytes += u64::from(pool.get(packet).length);
        self.packets.push_back(Waits { packet, places });
    }

    fn next(&mut self, pool: &Pool) -> Option<PacketRef> {
        let Waits { packet, places } = self.packets.pop_front()?;
        for (bins, place) in self.bins.iter_mut().zip(places) {
            place.inspect(|place| bins.leave(*place));
        }
        self.bytes -= u64::from(pool.get(packet).length);
        Some(packet)
    }
}

impl Queue for Sfb {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        if !self.bound.admits(self.backlog(), context.pool.get(packet).length) {
            return context.drop(packet, DropReason::QueueFull);
        }
        let (judgement, places) = self.judge(now, packet, context);
        if judgement.carry_out(packet, context) {
            self.accept(packet, places, context.pool);
        }
    }

    fn dequeue(&mut self, _now: Time, context: &mut Context<'_>) -> Dequeue {
        self.next(context.pool).map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u64, bytes: self.bytes }
    }

    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.bound
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        let mut all = PacketList::default();
        while let Some(packet) = self.next(pool) {
            all.push_back(packet, pool);
        }
        all
    }

    fn adopt(&mut self, _now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        while let Some(packet) = packets.pop_front(context.pool) {
            let mut places = [None; 2];
            places[self.active] = Some(self.place(self.active, context.pool.get(packet), context));
            self.accept(packet, places, context.pool);
        }
    }
}

#[cfg(test)]
mod tests;
