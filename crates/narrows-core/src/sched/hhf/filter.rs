//! The filter of HHF, and the table of heavy flows.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{HEAVY, HhfConfig, LIGHT};
use crate::classify;
use crate::pool::PacketRef;
use crate::queue::Context;
use crate::time::Time;

/// Arrays of the filter, and counters of each; also chains of the table.
pub(super) const ARRAYS: usize = 4;
pub(super) const COUNTERS: usize = 1 << BITS;
const BITS: u32 = 10;

/// A heavy flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    hash: u32,
    /// When it last sent.
    seen: Time,
}

/// The filter.
#[derive(Debug)]
pub(super) struct Filter {
    counters: Box<[[u64; COUNTERS]; ARRAYS]>,
    /// When the counters were cleared. `None` until the first packet.
    cleared: Option<Time>,
    /// Heavy flows, by the lower bits of their hashes.
    table: Vec<Vec<Flow>>,
    /// How many entries the table has, some of which may be too old.
    entries: u32,
    pub(super) found: u64,
    pub(super) refused: u64,
}

impl Filter {
    pub(super) fn new() -> Self {
        Self {
            counters: Box::new([[0; COUNTERS]; ARRAYS]),
            cleared: None,
            table: (0..COUNTERS).map(|_| Vec::new()).collect(),
            entries: 0,
            found: 0,
            refused: 0,
        }
    }

    /// The class of an arriving packet, which is counted.
    pub(super) fn class(
        &mut self,
        now: Time,
        config: &HhfConfig,
        packet: PacketRef,
        context: &Context<'_>,
    ) -> usize {
        let state = context.pool.get(packet);
        let hash = classify::five_tuple(&state.seen_key(), context.hash_key(0));
        self.judge(now, config, hash as u32, state.frame_length())
    }

    pub(super) fn judge(&mut self, now: Time, config: &HhfConfig, hash: u32, length: u64) -> usize {
        if now.since(*self.cleared.get_or_insert(now)) > config.reset {
            self.counters.iter_mut().for_each(|array| array.fill(0));
            self.cleared = Some(now);
        }
        if self.seek(now, config, hash) {
            return HEAVY;
        }
        let places = places(hash);
        let least = length + (0..ARRAYS).map(|n| self.counters[n][places[n]]).min().unwrap_or(0);
        if least > config.admit.get() {
            return if self.admit(now, config, hash) { HEAVY } else { LIGHT };
        }
        for (array, place) in self.counters.iter_mut().zip(places) {
            array[place] = array[place].max(least);
        }
        LIGHT
    }

    /// Whether a flow is heavy. Entries of its chain that are too old are removed up to it, but for the last one.
    fn seek(&mut self, now: Time, config: &HhfConfig, hash: u32) -> bool {
        let chain = &mut self.table[hash as usize % COUNTERS];
        let mut at = 0;
        while at < chain.len() {
            if now.since(chain[at].seen) > config.evict {
                if at + 1 == chain.len() {
                    return false;
                }
                chain.remove(at);
                self.entries -= 1;
            } else if chain[at].hash == hash {
                chain[at].seen = now;
                return true;
            } else {
                at += 1;
            }
        }
        false
    }

    /// Makes a flow heavy, in the place of one that is too old or in one more. Returns whether there was one.
    fn admit(&mut self, now: Time, config: &HhfConfig, hash: u32) -> bool {
        let chain = &mut self.table[hash as usize % COUNTERS];
        let flow = Flow { hash, seen: now };
        if let Some(old) = chain.iter_mut().find(|flow| now.since(flow.seen) > config.evict) {
            *old = flow;
        } else if self.entries < config.heavy_limit {
            chain.push(flow);
            self.entries += 1;
        } else {
            self.refused += 1;
            return false;
        }
        self.found += 1;
        true
    }
}

/// The flow's counter in each array: three parts of ten bits of its hash, and all parts combined by exclusive or.
fn places(hash: u32) -> [usize; ARRAYS] {
    let part = |number: u32| (hash >> (BITS * number)) as usize % COUNTERS;
    let [a, b, c] = [part(0), part(1), part(2)];
    [a, b, c, a ^ b ^ c ^ part(3)]
}
