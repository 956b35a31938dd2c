//! Values in numbered slots, found by the hash of their key.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Means "no slot".
const NONE: u32 = u32::MAX;

/// Values with stable slots. Nothing depends on the order of hashes; code that needs an order must sort.
#[derive(Clone, Debug)]
pub(super) struct Store<V> {
    slots: Vec<Slot<V>>,
    /// The first slot of each chain. Their number is a power of two, and at least the number of values.
    chains: Vec<u32>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Slot<V> {
    hash: u32,
    /// The next slot of its chain.
    next: u32,
    value: Option<V>,
}

impl<V> Store<V> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), chains: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot of the value with this hash for which `is` holds.
    #[inline]
    pub(super) fn find(&self, hash: u32, is: impl Fn(&V) -> bool) -> Option<u32> {
        let mut at = *self.chains.get(self.chain(hash))?;
        while at != NONE {
            let slot = &self.slots[at as usize];
            if slot.hash == hash && slot.value.as_ref().is_some_and(&is) {
                return Some(at);
            }
            at = slot.next;
        }
        None
    }

    /// Inserts a value. Returns its slot.
    pub(super) fn insert(&mut self, hash: u32, value: V) -> u32 {
        if self.len() == self.chains.len() {
            self.grow();
        }
        let slot = Slot { hash, next: NONE, value: Some(value) };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.link(at);
        at
    }

    /// Removes the value in this slot.
    pub(super) fn remove(&mut self, at: u32) -> Option<V> {
        let Slot { hash, next, value } = &mut self.slots[at as usize];
        let (hash, next, value) = (*hash, *next, value.take()?);
        let chain = self.chain(hash);
        if self.chains[chain] == at {
            self.chains[chain] = next;
        } else {
            let mut before = self.chains[chain];
            while self.slots[before as usize].next != at {
                before = self.slots[before as usize].next;
            }
            self.slots[before as usize].next = next;
        }
        self.free.push(at);
        Some(value)
    }

    /// All values with their slots, in slot order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &V)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| Some((at as u32, slot.value.as_ref()?)))
    }

    fn chain(&self, hash: u32) -> usize {
        hash as usize & self.chains.len().wrapping_sub(1)
    }

    fn link(&mut self, at: u32) {
        let chain = self.chain(self.slots[at as usize].hash);
        self.slots[at as usize].next = core::mem::replace(&mut self.chains[chain], at);
    }

    fn grow(&mut self) {
        self.chains = alloc::vec![NONE; (self.chains.len() * 2).max(16)];
        for at in 0..self.slots.len() {
            if self.slots[at].value.is_some() {
                self.link(at as u32);
            }
        }
    }
}

impl<V> Index<u32> for Store<V> {
    type Output = V;
    fn index(&self, at: u32) -> &V {
        self.slots[at as usize].value.as_ref().expect("a slot that is in use")
    }
}

impl<V> IndexMut<u32> for Store<V> {
    fn index_mut(&mut self, at: u32) -> &mut V {
        self.slots[at as usize].value.as_mut().expect("a slot that is in use")
    }
}
