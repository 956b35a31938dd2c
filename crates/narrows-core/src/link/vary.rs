//! A rate and a bound that vary by themselves. They have no events: the queue is told of changes when it is
//! next needed.

use alloc::boxed::Box;

use super::Link;
use crate::queue::{Bound, Wire};
use crate::steps::{Segment, Steps};
use crate::time::Time;
use crate::units::Rate;

/// A queue bound that follows a trace, and its current segment.
#[derive(Debug)]
pub(super) struct BoundSteps {
    steps: Steps<Bound>,
    segment: Segment,
}

impl BoundSteps {
    pub(super) fn new(steps: Steps<Bound>) -> Box<Self> {
        Box::new(Self { steps, segment: Segment::NOWHERE })
    }
}

impl Link {
    /// Tells the queue the current wire, and until when it stays the same. If the rate varies by itself, this
    /// is called when the queue is next needed, and also reports the rates in between.
    #[cold]
    pub(super) fn vary(&mut self, now: Time) {
        self.catch_up(now);
        self.set_wire(now);
        self.set_bound(now);
    }

    /// Tells the queue the rates since it was last told, because idle time counts by what could have been
    /// sent. After 64 changes at once, the mean of the others is used; otherwise a fast trace and a long idle
    /// time would take forever.
    pub(super) fn catch_up(&mut self, now: Time) {
        const MOST: usize = 64;
        let mut at = self.varies;
        for _ in 0..MOST {
            if at >= now {
                return;
            }
            self.set_wire(at);
            at = self.service.next_change(at);
        }
        let nanos = now.since(at).nanos();
        if nanos > 0 {
            let mean = self.service.served(at, now).0 / u128::from(nanos);
            let rate = Rate::from_bits_per_second(u64::try_from(mean).unwrap_or(u64::MAX));
            self.queue.set_wire(at, Wire { rate, overhead: self.overhead });
        }
    }

    pub(super) fn set_wire(&mut self, now: Time) {
        let wire = self.wire(now);
        self.queue.set_wire(now, wire);
    }

    /// Sets the queue's bound at `now`, if it follows a trace.
    pub(super) fn set_bound(&mut self, now: Time) {
        self.varies = self.service.next_change(now);
        if let Some(BoundSteps { steps, segment }) = self.bounds.as_deref_mut() {
            steps.seek(segment, now);
            self.queue.set_bound(*steps.value(segment));
            self.varies = self.varies.min(segment.until);
        }
    }

    pub(super) fn change_bounds(&mut self, now: Time, steps: Option<Steps<Bound>>) {
        self.bounds = steps.map(BoundSteps::new);
        self.vary(now);
    }
}
