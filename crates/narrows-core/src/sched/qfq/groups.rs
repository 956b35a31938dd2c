//! The groups of QFQ: selects the flow to serve with a few words of bits.
//!
//! Units are those of [`super`]: virtual time in multiples of 2⁻⁴³ bytes per weight, modulo 2⁶⁴. Instants are
//! compared by the sign of their difference. All instants in use lie within less than 2⁶³ of each other, see there.

#[cfg(test)]
mod tests;

use crate::sched::{FlowId, Flows};

use super::QfqFlow;
use super::clock::{LEAST_SIGMA, is_after};

/// The width of group 0's slots as a power of two.
pub(super) const FIRST_SHIFT: u32 = LEAST_SIGMA - 1;

/// No flow.
pub(super) const NONE: u32 = u32::MAX;

const SLOTS: u32 = 8;

/// A calendar of flows with similar `longest / weight`. Its slots are 2^(18 + index) wide, which is σ/2. One cache
/// line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Group {
    /// Where the first non-empty slot begins: the least rounded start.
    start: u64,
    /// The first flow of each slot, a ring: the slot that begins at `s` is number `s / width mod 8`.
    slots: [u32; SLOTS as usize],
    /// Which slots are not empty.
    full: u8,
    /// The slot that begins at `start`.
    front: u8,
}

impl Group {
    /// Moves the start to the first non-empty slot.
    #[inline]
    const fn move_start(&mut self, index: u32) {
        let empty = self.full.rotate_right(self.front as u32).trailing_zeros();
        self.start = self.start.wrapping_add((empty as u64) << shift(index));
        self.front = (self.front + empty as u8) % SLOTS as u8;
    }
}

/// All groups, and the sets of those that have flows.
///
/// A group is *eligible* when its start is not after the virtual time. It is *blocked* when an eligible group of a
/// higher index finishes before it.
#[derive(Debug)]
pub(super) struct Groups {
    /// Eligible groups. The finishes of those not blocked rise with their indices: serve the lowest.
    eligible: u64,
    /// Groups that have flows and are not eligible.
    later: u64,
    /// Groups of either kind that are blocked.
    blocked: u64,
    /// Groups of `later` that begin not at the next boundary of their slots but at the one after it.
    far: u64,
    groups: [Group; 64],
}

impl Default for Groups {
    fn default() -> Self {
        let group = Group { start: 0, slots: [NONE; SLOTS as usize], full: 0, front: 0 };
        Self { eligible: 0, later: 0, blocked: 0, far: 0, groups: [group; 64] }
    }
}

/// The width of a group's slots, as a power of two.
#[inline]
pub(super) const fn shift(index: u32) -> u32 {
    FIRST_SHIFT + index
}

/// Finish minus start of a group: 3 slots, which is σ plus a slot's width for the rounding of the start.
#[inline]
const fn span(index: u32) -> u64 {
    3 << shift(index)
}

#[inline]
const fn round_down(start: u64, index: u32) -> u64 {
    start >> shift(index) << shift(index)
}

#[inline]
const fn slot(start: u64, index: u32) -> u32 {
    (start >> shift(index)) as u32 % SLOTS
}

impl Groups {
    /// Whether no flow is backlogged.
    #[inline]
    pub(super) const fn is_idle(&self) -> bool {
        self.eligible | self.later == 0
    }

    /// Whether flows are backlogged but none is eligible.
    #[inline]
    pub(super) const fn is_stuck(&self) -> bool {
        self.eligible == 0 && self.later != 0
    }

    /// Eligible and not blocked.
    #[inline]
    const fn ready(&self) -> u64 {
        self.eligible & !self.blocked
    }

    /// The flow to serve.
    #[inline]
    pub(super) const fn first(&self) -> Option<FlowId> {
        let ready = self.ready();
        if ready == 0 {
            return None;
        }
        let group = &self.groups[ready.trailing_zeros() as usize];
        Some(FlowId::new(group.slots[group.front as usize % SLOTS as usize]))
    }

    /// The finish of the lowest ready group from `index` on. A flow of group `index` that starts at or after it would
    /// violate the order of the sets.
    #[inline]
    pub(super) const fn limit(&self, index: u32) -> Option<u64> {
        let above = self.ready() & (u64::MAX << index);
        if above == 0 {
            return None;
        }
        Some(self.finish(above.trailing_zeros()))
    }

    #[inline]
    const fn finish(&self, index: u32) -> u64 {
        self.groups[index as usize % 64].start.wrapping_add(span(index))
    }

    /// If no group is eligible, the first instant at which one is. It can only be the lowest group that begins at the
    /// next boundary or the lowest that begins at the one after it, because a boundary of wide slots is also one of
    /// narrow slots.
    pub(super) fn next_start(&self) -> u64 {
        let start = |mask: u64| self.groups[mask.trailing_zeros() as usize % 64].start;
        match (self.later & !self.far, self.later & self.far) {
            (0, far) => start(far),
            (near, 0) => start(near),
            (near, far) if is_after(start(near), start(far)) => start(far),
            (near, _) => start(near),
        }
    }

    /// Virtual time advances from `from` to `to`: groups become eligible.
    ///
    /// The highest bit that changes tells which groups' boundaries were passed. The distance tells for which of them
    /// two boundaries were passed.
    #[inline]
    pub(super) const fn advance(&mut self, from: u64, to: u64) {
        let changed = (from ^ to) >> FIRST_SHIFT;
        // Below the lowest of them; the whole word if there is none.
        if changed <= (self.later & self.later.wrapping_neg()).wrapping_sub(1) {
            return;
        }
        let once = u64::MAX >> changed.leading_zeros();
        let step = to.wrapping_sub(from);
        let top = step.ilog2();
        // Slots of width 2^top: the step is at least one and less than two of them.
        let passed = ((from & ((1 << top) - 1)) + step) >> top;
        let twice = (1 << (top + passed as u32 - 1).saturating_sub(FIRST_SHIFT)) - 1;
        let begun = self.later & once & (!self.far | twice);
        self.eligible |= begun;
        self.later ^= begun;
        self.far &= !once;
    }

    /// Puts a group into its sets. It must be in none, have flows, and block no group that is not blocked already.
    #[inline]
    fn settle(&mut self, index: u32, now: u64) {
        let bit = 1 << index;
        let ahead = self.groups[index as usize % 64].start.wrapping_sub(now) as i64;
        if ahead > 0 {
            self.later |= bit;
            self.far |= u64::from(ahead > 1 << shift(index)) << index;
        } else {
            self.eligible |= bit;
        }
        let above = self.ready() & (u64::MAX - 1) << index;
        if above != 0 && is_after(self.finish(index), self.finish(above.trailing_zeros())) {
            self.blocked |= bit;
        }
    }

    /// Removes a group from its sets.
    #[inline]
    const fn unsettle(&mut self, index: u32) {
        let others = !(1 << index);
        self.eligible &= others;
        self.later &= others;
        self.blocked &= others;
        self.far &= others;
    }

    /// A flow that starts at `start` becomes backlogged.
    #[inline]
    pub(super) fn insert(&mut self, flow: FlowId, now: u64, flows: &mut Flows<QfqFlow>) {
        let QfqFlow { start, group: index, .. } = flows[flow];
        let index = u32::from(index);
        let group = &mut self.groups[index as usize % 64];
        let rounded = round_down(start, index);
        if group.full == 0 {
            (group.start, group.front) = (rounded, slot(rounded, index) as u8);
            self.settle(index, now);
        } else if is_after(group.start, rounded) {
            (group.start, group.front) = (rounded, slot(rounded, index) as u8);
            self.unsettle(index);
            self.settle(index, now);
        }
        self.link(flow, index, start, flows);
    }

    #[inline]
    fn link(&mut self, flow: FlowId, index: u32, start: u64, flows: &mut Flows<QfqFlow>) {
        let group = &mut self.groups[index as usize % 64];
        let slot = slot(start, index);
        let head = core::mem::replace(&mut group.slots[slot as usize], flow.number());
        if head != NONE {
            flows[FlowId::new(head)].previous = flow.number();
        }
        flows[flow].next = head;
        group.full |= 1 << slot;
    }

    /// Removes a flow from its slot. The group's start does not change.
    #[inline]
    fn unlink(&mut self, flow: FlowId, index: u32, start: u64, flows: &mut Flows<QfqFlow>) {
        let group = &mut self.groups[index as usize % 64];
        let slot = slot(start, index);
        let QfqFlow { next, previous, .. } = flows[flow];
        // The flow before this one may have left without updating it. Then this flow is the first.
        if group.slots[slot as usize] == flow.number() {
            group.slots[slot as usize] = next;
            group.full &= !(u8::from(next == NONE) << slot);
        } else {
            flows[FlowId::new(previous)].next = next;
            if next != NONE {
                flows[FlowId::new(next)].previous = previous;
            }
        }
    }

    /// The flow that was [`first`](Self::first) and started at `from` has been served, and virtual time advanced from
    /// `earlier` to `now`. If the flow is still backlogged, it starts at `to`. Returns whether virtual time must jump
    /// to the [next start](Self::next_start).
    #[inline]
    pub(super) fn serve(
        &mut self,
        flow: FlowId,
        index: u32,
        (from, to): (u64, Option<u64>),
        (earlier, now): (u64, u64),
        flows: &mut Flows<QfqFlow>,
    ) -> bool {
        let group = &mut self.groups[index as usize % 64];
        let slot = u32::from(group.front) % SLOTS;
        debug_assert_eq!(slot, self::slot(from, index), "the first flow is in the first slot");
        debug_assert_eq!(group.slots[slot as usize], flow.number(), "and there the first");
        let mut full = group.full;
        if let Some(to) = to {
            if (from ^ to) >> shift(index) == 0 {
                self.advance(earlier, now);
                return false;
            }
            let to = self::slot(to, index);
            let head = core::mem::replace(&mut group.slots[to as usize], flow.number());
            let state = &mut flows[flow];
            let next = core::mem::replace(&mut state.next, head);
            if head != NONE {
                flows[FlowId::new(head)].previous = flow.number();
            }
            group.slots[slot as usize] = next;
            full = (full | 1 << to) & !(u8::from(next == NONE) << slot);
        } else {
            let next = flows[flow].next;
            group.slots[slot as usize] = next;
            full &= !(u8::from(next == NONE) << slot);
        }
        group.full = full;
        if full >> slot & 1 == 1 {
            self.advance(earlier, now);
            return false;
        }
        let finish = group.start.wrapping_add(span(index));
        group.move_start(index);
        let start = group.start;
        self.advance(earlier, now);
        if full != 0 && !is_after(start, now) && self.eligible >> index == 1 && self.blocked == 0 {
            return false; // nothing above that might block it, nothing below that it blocked
        }
        self.settle_served(index, finish, full != 0, now);
        self.is_stuck()
    }

    /// The group that was served begins later, or has no flows any more.
    #[inline(never)]
    fn settle_served(&mut self, index: u32, finish: u64, has_flows: bool, now: u64) {
        self.eligible &= !(1 << index);
        self.unblock(index, finish);
        if has_flows {
            self.settle(index, now);
        }
    }

    /// The ready group `index`, which finished at `finish`, has gone or finishes later. Lower groups that it blocked
    /// are no longer blocked, unless the next ready group blocks them.
    #[inline]
    const fn unblock(&mut self, index: u32, finish: u64) {
        let below = (1 << index) - 1;
        if self.blocked & below == 0 {
            return;
        }
        let above = self.ready() & !below;
        if above == 0 || is_after(self.finish(above.trailing_zeros()), finish) {
            self.blocked &= !below;
        }
    }

    /// Removes any backlogged flow.
    #[cold]
    pub(super) fn remove(&mut self, flow: FlowId, now: u64, flows: &mut Flows<QfqFlow>) {
        let QfqFlow { start, group: index, .. } = flows[flow];
        self.unlink(flow, u32::from(index), start, flows);
        self.groups[usize::from(index) % 64].move_start(index.into());
        self.sort_out(now);
    }

    /// Recomputes the sets of all groups: one walk over the groups, for rare events.
    #[cold]
    pub(super) fn sort_out(&mut self, now: u64) {
        let mut here = self.eligible | self.later;
        (self.eligible, self.later, self.blocked, self.far) = (0, 0, 0, 0);
        while here != 0 {
            let index = here.ilog2();
            here &= !(1 << index);
            if self.groups[index as usize].full != 0 {
                self.settle(index, now);
            }
        }
    }
}
