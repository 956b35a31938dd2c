//! Calendar queues: flows by instants, in slots.

use crate::sched::qfq::clock::is_after;
use crate::sched::{FlowId, Flows};

use super::GfqFlow;

/// No flow.
pub(super) const NONE: u32 = u32::MAX;

const SLOTS: u32 = 64;

/// A ring of slots of width `2^shift`. All its flows lie within 64 slots of the first one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calendar {
    /// Where the first non-empty slot begins.
    first: u64,
    /// Which slots are not empty. The slot that begins at `s` is number `s >> shift mod 64`.
    full: u64,
    heads: [u32; SLOTS as usize],
}

impl Default for Calendar {
    fn default() -> Self {
        Self { first: 0, full: 0, heads: [NONE; SLOTS as usize] }
    }
}

impl Calendar {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.full == 0
    }

    /// Where the first non-empty slot begins.
    #[inline]
    pub(super) const fn first(&self) -> Option<u64> {
        if self.full == 0 { None } else { Some(self.first) }
    }

    /// The flow that came last to the first slot.
    #[inline]
    pub(super) const fn head(&self, shift: u32) -> FlowId {
        FlowId::new(self.heads[(self.first >> shift) as usize % SLOTS as usize])
    }

    /// Adds a flow to the slot that contains `instant`.
    #[inline]
    pub(super) fn insert(&mut self, flow: FlowId, instant: u64, shift: u32, flows: &mut Flows<GfqFlow>) {
        let begin = instant >> shift << shift;
        let slot = (instant >> shift) as u32 % SLOTS;
        if self.full == 0 || is_after(self.first, begin) {
            debug_assert!(
                self.reach(shift) + (self.first.wrapping_sub(begin) >> shift) < 64 || self.full == 0
            );
            self.first = begin;
        }
        debug_assert!((begin.wrapping_sub(self.first) >> shift) < u64::from(SLOTS), "the ring is too short");
        let next = core::mem::replace(&mut self.heads[slot as usize], flow.number());
        if next != NONE {
            flows[FlowId::new(next)].previous = flow.number();
        }
        let state = &mut flows[flow];
        (state.next, state.slot) = (next, slot as u8);
        self.full |= 1 << slot;
    }

    /// The distance in slots from the first non-empty slot to the last.
    fn reach(&self, shift: u32) -> u64 {
        let from_first = self.full.rotate_right((self.first >> shift) as u32 % SLOTS);
        u64::from(from_first.checked_ilog2().unwrap_or(0))
    }

    /// Removes a flow.
    #[inline]
    pub(super) fn remove(&mut self, flow: FlowId, shift: u32, flows: &mut Flows<GfqFlow>) {
        let GfqFlow { next, previous, slot, .. } = flows[flow];
        let head = &mut self.heads[usize::from(slot) % SLOTS as usize];
        // The flow before this one may have left without updating it. Then this flow is the first.
        if *head == flow.number() {
            *head = next;
            if next == NONE {
                self.empty(u32::from(slot), shift);
            }
        } else {
            flows[FlowId::new(previous)].next = next;
            if next != NONE {
                flows[FlowId::new(next)].previous = previous;
            }
        }
    }

    /// Removes all flows of the first slot. Returns the one that came last; `next` leads to the others.
    #[inline]
    pub(super) const fn take_first(&mut self, shift: u32) -> u32 {
        let slot = (self.first >> shift) as u32 % SLOTS;
        let head = self.heads[slot as usize];
        self.heads[slot as usize] = NONE;
        self.empty(slot, shift);
        head
    }

    #[inline]
    const fn empty(&mut self, slot: u32, shift: u32) {
        self.full &= !(1 << slot);
        let skipped = self.full.rotate_right((self.first >> shift) as u32 % SLOTS).trailing_zeros();
        self.first = self.first.wrapping_add((skipped as u64 % SLOTS as u64) << shift);
    }
}
