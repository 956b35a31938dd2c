//! The real-time criterion: of the leaves whose eligible time has come, the one with the earliest deadline.

use alloc::collections::BTreeSet;

use super::HfscCurve;
use super::curve::Path;
use crate::service::Work;
use crate::time::Time;

/// The real-time part of a leaf.
#[derive(Debug)]
pub(super) struct Guarantee {
    curve: HfscCurve,
    deadlines: Path,
    /// The work done by the real-time criterion.
    work: Work,
    eligible: u64,
    deadline: u64,
    /// When it was put into its list, relative to others.
    order: u64,
    list: List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    /// It has no packets.
    Neither,
    Waiting,
    Ready,
}

impl Guarantee {
    pub(super) fn new(curve: HfscCurve) -> Self {
        let deadlines = Path::new(&curve);
        Self { curve, deadlines, work: Work(0), eligible: 0, deadline: 0, order: 0, list: List::Neither }
    }

    /// A concave curve is its own eligible curve; that of a convex one is the line of its second slope, so that work
    /// is done ahead of the steeper end.
    fn set_eligible(&mut self) {
        let curve =
            if self.curve.is_convex() { self.deadlines.without_first_piece() } else { self.deadlines };
        self.eligible = curve.when(self.work);
    }

    fn set_deadline(&mut self, next: Work) {
        self.deadline = self.deadlines.when(Work(self.work.0 + next.0));
    }
}

/// The backlogged leaves with a guarantee.
#[derive(Debug, Default)]
pub(super) struct Guarantees {
    /// By eligible time: those that are not eligible yet. Of equals, the one put here first.
    waiting: BTreeSet<(u64, u64, u32)>,
    /// By deadline: the eligible ones. Of equals, the one that was eligible first.
    ready: BTreeSet<(u64, u64, u64, u32)>,
    orders: u64,
}

impl Guarantees {
    /// A leaf becomes backlogged; its first packet costs `next`.
    pub(super) fn activate(&mut self, now: Time, leaf: u32, of: &mut Guarantee, next: Work) {
        of.deadlines.lower(&of.curve, now.nanos(), of.work);
        self.put(leaf, of, next);
    }

    /// A leaf was served by this criterion, and has another packet, which costs `next`.
    pub(super) fn served(&mut self, leaf: u32, of: &mut Guarantee, cost: Work, next: Option<Work>) {
        of.work.0 += cost.0;
        self.remove(leaf, of);
        if let Some(next) = next {
            self.put(leaf, of, next);
        }
    }

    /// Another packet is the first, without service by this criterion.
    pub(super) fn next_is(&mut self, leaf: u32, of: &mut Guarantee, next: Work) {
        let is_ready = of.list == List::Ready;
        if is_ready {
            self.ready.remove(&ready(leaf, of));
        }
        of.set_deadline(next);
        if is_ready {
            self.ready.insert(ready(leaf, of));
        }
    }

    fn put(&mut self, leaf: u32, of: &mut Guarantee, next: Work) {
        of.set_eligible();
        of.set_deadline(next);
        of.order = self.orders;
        self.orders += 1;
        of.list = List::Waiting;
        self.waiting.insert((of.eligible, of.order, leaf));
    }

    /// A leaf has no packets, or is put anew.
    pub(super) fn remove(&mut self, leaf: u32, of: &mut Guarantee) {
        match of.list {
            List::Neither => {}
            List::Waiting => {
                self.waiting.remove(&(of.eligible, of.order, leaf));
            }
            List::Ready => {
                self.ready.remove(&ready(leaf, of));
            }
        }
        of.list = List::Neither;
    }

    /// Takes out the next leaf whose eligible time has come by now. [`Self::make_ready`] puts it back.
    pub(super) fn take_due(&mut self, now: Time) -> Option<u32> {
        self.waiting.first().filter(|(at, ..)| *at <= now.nanos())?;
        self.waiting.pop_first().map(|(.., leaf)| leaf)
    }

    /// That leaf becomes eligible.
    pub(super) fn make_ready(&mut self, leaf: u32, of: &mut Guarantee) {
        of.list = List::Ready;
        self.ready.insert(ready(leaf, of));
    }

    /// The eligible leaf with the earliest deadline.
    pub(super) fn first(&self) -> Option<u32> {
        self.ready.first().map(|(.., leaf)| *leaf)
    }

    /// When the next leaf becomes eligible.
    pub(super) fn next(&self) -> Option<u64> {
        self.waiting.first().map(|(at, ..)| *at)
    }
}

const fn ready(leaf: u32, of: &Guarantee) -> (u64, u64, u64, u32) {
    (of.deadline, of.eligible, of.order, leaf)
}
