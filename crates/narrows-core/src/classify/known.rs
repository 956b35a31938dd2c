//! The flows that a mask has told apart so far: each has a number, and those that are idle stand in the order in which they
//! became so.
//!
//! What a mask makes on first use (a scheduler's flow, a whole link) is kept under the number, by whoever has this.
//! Numbers count from 0; one that was given up is given out again, the latest first. Finding a flow costs a hash and a look
//! or two, whatever the number of flows; that of the longest idle costs nothing. The hash is keyed by the seed and a name,
//! so that a run repeats, and nothing that is said here depends on it.
//!
//! A flow takes 64 to 72 bytes, and 5 to 11 more in the table.
//!
//! ```
//! use narrows_core::classify::{Flow, Known};
//! use narrows_core::{Seed, Time};
//!
//! let mut known = Known::new(Seed(1), "pipe 1", 1000);
//! let (http, dns) = (Flow { source_port: 80, ..Flow::default() }, Flow { source_port: 53, ..Flow::default() });
//! assert_eq!((known.insert(http), known.insert(dns)), (Some(0), Some(1)));
//! assert_eq!(known.find(&dns), Some(1));
//!
//! known.idle(1, Time::from_nanos(10));
//! assert_eq!(known.expired(Time::from_nanos(9)), None);
//! assert_eq!(known.expired(Time::from_nanos(10)), Some(1));
//! known.remove(1);
//! assert_eq!(known.find(&dns), None);
//! ```

use alloc::vec::Vec;

use crate::classify::Flow;
use crate::random::{Seed, mix};
use crate::time::Time;

#[cfg(test)]
mod tests;

/// Flows by number.
#[derive(Debug)]
pub struct Known {
    keys: [u64; 6],
    most: u32,
    len: u32,
    entries: Vec<Entry>,
    /// The number given up last.
    free: u32,
    /// Numbers by hash, open addressing with linear probing: a power of two of places, at most three quarters of them taken.
    places: Vec<u32>,
    /// The ends of the row of idle flows.
    longest_idle: u32,
    latest_idle: u32,
}

#[derive(Debug)]
struct Entry {
    flow: Flow,
    /// Since when it has been idle. Means nothing while it is not.
    since: Time,
    /// Its neighbours in the row, [`BUSY`] where it is not in it, or [`FREE`].
    before: u32,
    /// Of a number given up, the one given up before.
    after: u32,
}

const NONE: u32 = u32::MAX;
const BUSY: u32 = u32::MAX - 1;
const FREE: u32 = u32::MAX - 2;

impl Known {
    /// The most flows that one of these may hold.
    pub const MOST: u32 = 1 << 30;

    /// Without flows. It takes `most` of them, and no more than [`MOST`](Self::MOST).
    pub fn new(seed: Seed, name: &str, most: u32) -> Self {
        let key = crate::random::key(seed, name, "known flows");
        Self {
            keys: core::array::from_fn(|part| mix(key.wrapping_add(part as u64))),
            most: most.min(Self::MOST),
            len: 0,
            entries: Vec::new(),
            free: NONE,
            places: Vec::new(),
            longest_idle: NONE,
            latest_idle: NONE,
        }
    }

    /// How many flows there are.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The most flows that there may be.
    pub const fn most(&self) -> u32 {
        self.most
    }

    /// The number of a flow.
    #[inline]
    pub fn find(&self, flow: &Flow) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let mut place = self.home(flow);
        loop {
            match self.places[place] {
                NONE => return None,
                number if self.entries[number as usize].flow == *flow => return Some(number),
                _ => place = (place + 1) & (self.places.len() - 1),
            }
        }
    }

    /// A flow that is not known yet gets a number, and is not idle; nothing when there are as many as there may be.
    pub fn insert(&mut self, flow: Flow) -> Option<u32> {
        debug_assert!(self.find(&flow).is_none(), "a flow that is known has its number");
        if self.len >= self.most {
            return None;
        }
        let entry = Entry { flow, since: Time::ZERO, before: BUSY, after: NONE };
        let number = match self.free {
            NONE => {
                if self.entries.len() == self.entries.capacity() {
                    // By an eighth rather than by doubling, to keep to the memory that a flow may take.
                    self.entries.reserve_exact((self.entries.len() / 8).max(4));
                }
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
            number => {
                let slot = &mut self.entries[number as usize];
                self.free = core::mem::replace(slot, entry).after;
                number
            }
        };
        self.len += 1;
        if self.len as usize * 4 > self.places.len() * 3 {
            self.grow();
        } else {
            self.enter(number);
        }
        Some(number)
    }

    /// Takes a flow away. Its number will be given to another one. Here and below, the number must be that of a flow.
    pub fn remove(&mut self, number: u32) {
        self.busy(number);
        self.vacate(number);
        let entry = &mut self.entries[number as usize];
        (entry.before, entry.after) = (FREE, self.free);
        self.free = number;
        self.len -= 1;
    }

    /// Which flow has that number.
    pub fn flow(&self, number: u32) -> &Flow {
        let entry = &self.entries[number as usize];
        debug_assert_ne!(entry.before, FREE, "the number of a flow");
        &entry.flow
    }

    /// All flows, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Flow)> {
        let numbered = (0..).zip(&self.entries);
        numbered.filter(|(_, entry)| entry.before != FREE).map(|(number, entry)| (number, &entry.flow))
    }

    /// A flow is idle from `at` on, even if it has been so before. `at` is never before that of an earlier call; if it were,
    /// that one would count.
    pub fn idle(&mut self, number: u32, at: Time) {
        self.busy(number);
        let last = self.latest_idle;
        let since = match last {
            NONE => at,
            last => at.max(self.entries[last as usize].since),
        };
        let entry = &mut self.entries[number as usize];
        (entry.since, entry.before, entry.after) = (since, last, NONE);
        match last {
            NONE => self.longest_idle = number,
            last => self.entries[last as usize].after = number,
        }
        self.latest_idle = number;
    }

    /// A flow is idle no longer. It may not have been so before.
    #[inline]
    pub fn busy(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        debug_assert_ne!(entry.before, FREE, "the number of a flow");
        let (before, after) = (core::mem::replace(&mut entry.before, BUSY), entry.after);
        if before == BUSY {
            return;
        }
        match before {
            NONE => self.longest_idle = after,
            before => self.entries[before as usize].after = after,
        }
        match after {
            NONE => self.latest_idle = before,
            after => self.entries[after as usize].before = before,
        }
    }

    /// Since when a flow has been idle, if it is.
    pub fn idle_since(&self, number: u32) -> Option<Time> {
        let entry = &self.entries[number as usize];
        (entry.before != BUSY && entry.before != FREE).then_some(entry.since)
    }

    /// The flow that has been idle longest, if it has been so since `before` or longer. It stays where it is.
    #[inline]
    pub fn expired(&self, before: Time) -> Option<u32> {
        match self.longest_idle {
            NONE => None,
            number => (self.entries[number as usize].since <= before).then_some(number),
        }
    }

    /// The bytes that all this takes.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.places.capacity() * size_of::<u32>()
    }

    /// The place where the search for a flow begins.
    #[inline]
    fn home(&self, flow: &Flow) -> usize {
        let Flow { source, destination, flow_label, queue, source_port, destination_port, protocol } = *flow;
        let numbers = u64::from(flow_label) << 32 | u64::from(queue);
        let ports = u64::from(source_port) << 32 | u64::from(destination_port) << 16 | u64::from(protocol);
        let [a, b, c, d, e, f] = self.keys;
        let source = folded((source >> 64) as u64 ^ a, source as u64 ^ b);
        let destination = folded((destination >> 64) as u64 ^ c, destination as u64 ^ d);
        let rest = folded(numbers ^ e, ports ^ f);
        // The parts are done side by side; what comes of them is spread once more.
        let hash = mix(source ^ destination.rotate_left(21) ^ rest.rotate_left(42));
        hash as usize & (self.places.len() - 1)
    }

    /// Puts a number into the table, where there is room.
    fn enter(&mut self, number: u32) {
        let mut place = self.home(&self.entries[number as usize].flow);
        while self.places[place] != NONE {
            place = (place + 1) & (self.places.len() - 1);
        }
        self.places[place] = number;
    }

    /// Takes a number out of the table. Those after it that a search would no longer reach move up.
    fn vacate(&mut self, number: u32) {
        let mask = self.places.len() - 1;
        let mut hole = self.home(&self.entries[number as usize].flow);
        while self.places[hole] != number {
            hole = (hole + 1) & mask;
        }
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let next = self.places[place];
            if next == NONE {
                break;
            }
            let home = self.home(&self.entries[next as usize].flow);
            // It is as far from home as that, and may go back no farther.
            if place.wrapping_sub(home) & mask >= place.wrapping_sub(hole) & mask {
                self.places[hole] = next;
                hole = place;
            }
        }
        self.places[hole] = NONE;
    }

    #[cold]
    fn grow(&mut self) {
        let places = (self.places.len() * 2).max(8);
        self.places = Vec::new();
        self.places.resize(places, NONE);
        // By number, not by place.
        for number in 0..self.entries.len() as u32 {
            if self.entries[number as usize].before != FREE {
                self.enter(number);
            }
        }
    }
}

/// The halves of a product, one laid over the other: each bit depends on most of both factors.
#[inline]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}
