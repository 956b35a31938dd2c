//! Interleaved stratified timer wheels: flows by their rounded starts, one wheel for each stratum, and the earliest
//! deadline of all strata without a search.

use alloc::boxed::Box;
use alloc::vec;

use crate::sched::qfq::clock::{Clock, LEAST_SIGMA, MOST_LENGTH, UNIT_SHIFT, is_after};
use crate::sched::{FlowId, Flows};

use super::KpsFlow;

/// No flow.
pub(super) const NONE: u32 = u32::MAX;

/// A slot is σ/4 wide.
const SLOTS_OF_SIGMA: u32 = 2;
/// A deadline is this many slots after the rounded start: σ for the packet, and a slot for the rounding.
pub(super) const TERM: u32 = (1 << SLOTS_OF_SIGMA) + 1;
/// A due slot, TERM slots whose deadlines are ahead, TERM slots whose starts are ahead: 11 slots may have flows.
const SLOTS: u32 = 16;
/// σ from 2^19 to 2^60.
const STRATA: u32 = UNIT_SHIFT + MOST_LENGTH.ilog2() - LEAST_SIGMA + 1;
/// The length of a tick as a power of two: half a slot of the first stratum.
const TICK: u32 = LEAST_SIGMA - SLOTS_OF_SIGMA - 1;

/// All wheels, at one instant.
#[derive(Debug)]
pub(super) struct Wheels {
    /// The instant. It follows the virtual clock, and halts at a deadline until the flows with this deadline are
    /// served.
    now: u64,
    /// The stratum of that deadline.
    due: Option<u32>,
    /// For each of the next boundaries: which strata have flows with their deadline there.
    deadlines: [u64; TERM as usize],
    /// Which strata have flows.
    occupied: u64,
    strata: Box<[Stratum]>,
}

#[derive(Clone, Copy, Debug)]
struct Stratum {
    /// Which slots have flows: bit 0 for the slot whose deadline is the last boundary, bit 1 for the next, and so on.
    /// From bit TERM + 1 on, the starts are ahead.
    full: u32,
    heads: [u32; SLOTS as usize],
}

/// Half the width of a stratum's slots, as a power of two: its boundaries are the odd multiples.
#[inline]
const fn half(stratum: u32) -> u32 {
    TICK + stratum
}

/// The width of a stratum's slots.
#[inline]
pub(super) const fn slot(stratum: u32) -> u64 {
    2 << half(stratum)
}

/// The σ of a stratum.
#[inline]
pub(super) const fn sigma(stratum: u32) -> u64 {
    slot(stratum) << SLOTS_OF_SIGMA
}

/// The last boundary of a stratum that is not after an instant.
#[inline]
const fn boundary(stratum: u32, instant: u64) -> u64 {
    let (half, shift) = (1 << half(stratum), half(stratum) + 1);
    (instant.wrapping_sub(half) >> shift << shift).wrapping_add(half)
}

/// The ring position of the slot of a start.
#[inline]
const fn ring(stratum: u32, start: u64) -> usize {
    (start.wrapping_sub(1 << half(stratum)) >> (half(stratum) + 1)) as usize % SLOTS as usize
}

/// Whether two starts round to the same boundary.
#[inline]
pub(super) const fn is_same_slot(stratum: u32, one: u64, other: u64) -> bool {
    boundary(stratum, one) == boundary(stratum, other)
}

impl Default for Wheels {
    fn default() -> Self {
        let empty = Stratum { full: 0, heads: [NONE; SLOTS as usize] };
        Self {
            now: 0,
            due: None,
            deadlines: [0; TERM as usize],
            occupied: 0,
            strata: vec![empty; STRATA as usize].into_boxed_slice(),
        }
    }
}

impl Wheels {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// The first and the last start that a flow of a stratum may have at present.
    pub(super) const fn range(&self, stratum: u32) -> (u64, u64) {
        let (slot, sigma) = (slot(stratum), sigma(stratum));
        (self.now.wrapping_sub(sigma), self.now.wrapping_add(slot + sigma - 1))
    }

    /// The bit of `full` for the slot of a start.
    #[inline]
    const fn position(&self, stratum: u32, start: u64) -> u32 {
        let ahead = boundary(stratum, start).wrapping_sub(boundary(stratum, self.now)) as i64;
        ((ahead >> (half(stratum) + 1)) + TERM as i64) as u32
    }

    /// The started flow with the earliest deadline; on a tie, the one that came last.
    #[inline]
    pub(super) fn first(&self) -> Option<FlowId> {
        let (stratum, deadline) = match self.due {
            Some(stratum) => (stratum, self.now),
            None => self.earliest()?,
        };
        let start = deadline.wrapping_sub(u64::from(TERM) * slot(stratum));
        Some(FlowId::new(self.strata[stratum as usize].heads[ring(stratum, start)]))
    }

    /// The earliest deadline ahead, and its stratum.
    #[inline]
    fn earliest(&self) -> Option<(u32, u64)> {
        let mut earliest = self.nearest(self.deadlines[0]);
        for (boundaries, &strata) in (1..).zip(&self.deadlines[1..]) {
            if strata == 0 {
                continue;
            }
            // Every second boundary of a stratum lies before those of all wider ones.
            let stratum = strata.trailing_zeros();
            let deadline = boundary(stratum, self.now).wrapping_add((boundaries + 1) * slot(stratum));
            if earliest.is_none_or(|(_, earliest)| is_after(earliest, deadline)) {
                earliest = Some((stratum, deadline));
            }
        }
        earliest
    }

    /// The stratum of a set whose next boundary comes first, and that boundary.
    #[inline]
    fn nearest(&self, strata: u64) -> Option<(u32, u64)> {
        if strata == 0 {
            return None;
        }
        // If the bit of a stratum is 0, its next boundary is where the bit becomes 1: the lowest stratum comes first.
        // If it is 1, that is after the carry, for which again the lowest waits no longer than any other.
        let ticks = self.now >> TICK;
        let next = |strata: u64| {
            let stratum = strata.trailing_zeros();
            (stratum, boundary(stratum, self.now).wrapping_add(slot(stratum)))
        };
        match (strata & !ticks, strata & ticks) {
            (zeros, 0) => Some(next(zeros)),
            (0, ones) => Some(next(ones)),
            (zeros, ones) => {
                let (zero, one) = (next(zeros), next(ones));
                Some(if is_after(zero.1, one.1) { one } else { zero })
            }
        }
    }

    /// Adds a flow whose start is in the range of its stratum.
    #[inline]
    pub(super) fn insert(&mut self, flow: FlowId, flows: &mut Flows<KpsFlow>) {
        let KpsFlow { start, stratum: index, .. } = flows[flow];
        let index = u32::from(index);
        let position = self.position(index, start);
        debug_assert!(position <= 2 * TERM, "the wheel is too small");
        let stratum = &mut self.strata[index as usize];
        let next = core::mem::replace(&mut stratum.heads[ring(index, start)], flow.number());
        flows[flow].next = next;
        if next != NONE {
            flows[FlowId::new(next)].previous = flow.number();
            return;
        }
        stratum.full |= 1 << position;
        self.occupied |= 1 << index;
        if let Some(strata) = self.deadlines.get_mut((position as usize).wrapping_sub(1)) {
            *strata |= 1 << index;
        }
    }

    /// Removes a flow.
    #[inline]
    pub(super) fn remove(&mut self, flow: FlowId, flows: &mut Flows<KpsFlow>) {
        let KpsFlow { start, next, previous, stratum: index, .. } = flows[flow];
        let index = u32::from(index);
        let stratum = &mut self.strata[index as usize];
        let head = &mut stratum.heads[ring(index, start)];
        // The flow before this one may have left without updating it. Then this flow is the first.
        if *head != flow.number() {
            flows[FlowId::new(previous)].next = next;
            if next != NONE {
                flows[FlowId::new(next)].previous = previous;
            }
            return;
        }
        *head = next;
        if next == NONE {
            let position = self.position(index, start);
            let stratum = &mut self.strata[index as usize];
            stratum.full &= !(1 << position);
            self.occupied &= !(u64::from(stratum.full == 0) << index);
            if let Some(strata) = self.deadlines.get_mut((position as usize).wrapping_sub(1)) {
                *strata &= !(1 << index);
            }
        }
    }

    /// Catches up after the virtual clock has advanced, or flows have come or gone: turns the wheels up to the
    /// clock's present, or to a deadline that has not been met. If no flow has started, the clock jumps to the first
    /// start.
    #[inline]
    pub(super) fn catch_up(&mut self, clock: &mut Clock) {
        if let Some(stratum) = self.due
            && self.strata[stratum as usize].full & 1 != 0
        {
            return;
        }
        self.due = None;
        while self.due.is_none() {
            let present = clock.now();
            let Some((stratum, boundary)) = self.nearest(self.occupied) else {
                self.now = present;
                return;
            };
            let jumps = is_after(boundary, present);
            if jumps && self.deadlines.iter().any(|&strata| strata != 0) {
                self.now = present;
                return;
            }
            let boundary = self.last_of_run(stratum, boundary, present);
            if jumps {
                clock.jump(boundary);
            }
            self.turn(stratum, boundary);
        }
    }

    /// The last of the boundaries, starting with `boundary`, that can be passed at once. If only one stratum has
    /// flows, these are its boundaries up to the present, or up to the first start, at which a slot is due or has
    /// started.
    #[inline]
    fn last_of_run(&self, stratum: u32, boundary: u64, present: u64) -> u64 {
        if !self.occupied.is_power_of_two() {
            return boundary;
        }
        let slots = u64::from(self.strata[stratum as usize].full.trailing_zeros()) - 1;
        let slots = if is_after(boundary, present) {
            slots - u64::from(TERM)
        } else {
            slots.min(present.wrapping_sub(boundary) >> (half(stratum) + 1))
        };
        boundary.wrapping_add(slots * slot(stratum))
    }

    /// Advances to a boundary of a stratum.
    #[inline]
    fn turn(&mut self, index: u32, boundary: u64) {
        let passed = boundary.wrapping_sub(self::boundary(index, self.now)) >> (half(index) + 1);
        self.now = boundary;
        let stratum = &mut self.strata[index as usize];
        stratum.full >>= passed;
        for (position, strata) in (1..).zip(&mut self.deadlines) {
            *strata = *strata & !(1 << index) | u64::from(stratum.full >> position & 1) << index;
        }
        self.due = (stratum.full & 1 != 0).then_some(index);
    }
}
