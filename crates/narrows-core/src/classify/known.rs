//! The known flows of a mask. Each has a number, and idle flows are kept in the order in which they became idle.
//!
//! The owner stores whatever a mask creates on first use (a scheduler's flow, a whole link) under the number. Numbers
//! count from 0; removed numbers are reused, the latest first. Finding a flow costs a hash and one or two lookups,
//! whatever the number of flows. Finding the flow that has been idle longest takes constant time. The hash is keyed
//! by the seed and a name, so that runs are repeatable. No result depends on the hash.
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

/// A table of flows by number.
#[derive(Debug)]
pub struct Known {
    keys: [u64; 6],
    most: u32,
    len: u32,
    entries: Vec<Entry>,
    /// The number that was freed last.
    free: u32,
    /// Numbers by hash, with open addressing and linear probing. The size is a power of two, and at most three
    /// quarters are used.
    places: Vec<u32>,
    /// The ends of the list of idle flows.
    longest_idle: u32,
    latest_idle: u32,
}

#[derive(Debug)]
struct Entry {
    flow: Flow,
    /// Since when it has been idle. Meaningless while it is not.
    since: Time,
    /// Its neighbours in the idle list. `before` is [`BUSY`] if it is not in that list, or [`FREE`].
    before: u32,
    /// For a free number: the number freed before it.
    after: u32,
}

const NONE: u32 = u32::MAX;
const BUSY: u32 = u32::MAX - 1;
const FREE: u32 = u32::MAX - 2;

impl Known {
    /// Maximum number of flows of any table.
    pub const MOST: u32 = 1 << 30;

    /// An empty table for up to `most` flows, limited to [`MOST`](Self::MOST).
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

    /// The number of flows.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no flows.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The maximum number of flows.
    pub const fn most(&self) -> u32 {
        self.most
    }

    /// Finds the number of a flow.
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

    /// Assigns a number to an unknown flow. The flow is not idle. `None` if the table is full.
    pub fn insert(&mut self, flow: Flow) -> Option<u32> {
        debug_assert!(self.find(&flow).is_none(), "a flow that is known has its number");
        if self.len >= self.most {
            return None;
        }
        let entry = Entry { flow, since: Time::ZERO, before: BUSY, after: NONE };
        let number = match self.free {
            NONE => {
                if self.entries.len() == self.entries.capacity() {
                    // Grow by an eighth instead of doubling, to limit the memory per flow.
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

    /// Removes a flow. Its number will be reused. Here and below, the number must be that of a flow.
    pub fn remove(&mut self, number: u32) {
        self.busy(number);
        self.vacate(number);
        let entry = &mut self.entries[number as usize];
        (entry.before, entry.after) = (FREE, self.free);
        self.free = number;
        self.len -= 1;
    }

    /// The flow with this number.
    pub fn flow(&self, number: u32) -> &Flow {
        let entry = &self.entries[number as usize];
        debug_assert_ne!(entry.before, FREE, "the number of a flow");
        &entry.flow
    }

    /// All flows, in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Flow)> {
        let numbered = (0..).zip(&self.entries);
        numbered.filter(|(_, entry)| entry.before != FREE).map(|(number, entry)| (number, &entry.flow))
    }

    /// Marks a flow as idle from `at` on, even if it was idle before. `at` must not be earlier than in any previous
    /// call; if it is, the previous instant counts.
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

    /// Marks a flow as not idle. It need not have been idle.
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

    /// Since when a flow has been idle, if it is idle.
    pub fn idle_since(&self, number: u32) -> Option<Time> {
        let entry = &self.entries[number as usize];
        (entry.before != BUSY && entry.before != FREE).then_some(entry.since)
    }

    /// The flow that has been idle longest, if it has been idle since `before` or earlier. It stays in the table.
    #[inline]
    pub fn expired(&self, before: Time) -> Option<u32> {
        match self.longest_idle {
            NONE => None,
            number => (self.entries[number as usize].since <= before).then_some(number),
        }
    }

    /// Memory in bytes used by the table.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.places.capacity() * size_of::<u32>()
    }

    /// Where the search for a flow begins.
    #[inline]
    fn home(&self, flow: &Flow) -> usize {
        let Flow { source, destination, flow_label, queue, source_port, destination_port, protocol } = *flow;
        let numbers = u64::from(flow_label) << 32 | u64::from(queue);
        let ports = u64::from(source_port) << 32 | u64::from(destination_port) << 16 | u64::from(protocol);
        let [a, b, c, d, e, f] = self.keys;
        let source = folded((source >> 64) as u64 ^ a, source as u64 ^ b);
        let destination = folded((destination >> 64) as u64 ^ c, destination as u64 ^ d);
        let rest = folded(numbers ^ e, ports ^ f);
        // The parts are computed independently; the result is mixed once more.
        let hash = mix(source ^ destination.rotate_left(21) ^ rest.rotate_left(42));
        hash as usize & (self.places.len() - 1)
    }

    /// Puts a number into the table, which must have room.
    fn enter(&mut self, number: u32) {
        let mut place = self.home(&self.entries[number as usize].flow);
        while self.places[place] != NONE {
            place = (place + 1) & (self.places.len() - 1);
        }
        self.places[place] = number;
    }

    /// Removes a number from the table. Later entries that a search would no longer reach move up.
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
            // It is at least that far from home, and may move back no farther than its home.
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
        // By number, not by position.
        for number in 0..self.entries.len() as u32 {
            if self.entries[number as usize].before != FREE {
                self.enter(number);
            }
        }
    }
}

/// The two halves of a product, XORed: each bit depends on most bits of both factors.
#[inline]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}
