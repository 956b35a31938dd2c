//! Classes that are put aside.
//!
//! The queue inside a class may have packets and yet nothing to send before some instant: it shapes, or delays. To the
//! scheduler such a class is idle until that instant or until a packet comes to it, whichever is first, so that the others
//! have the transmitter. Its entries stand here meanwhile; they still count as waiting in the whole.

use alloc::vec::Vec;

use crate::sched::flows::Row;
use crate::sched::tournament::Tournament;
use crate::sched::{FlowId, Scheduled, Scheduler};
use crate::time::Time;

/// The classes that are put aside, and until when.
#[derive(Debug, Default)]
pub(super) struct Parked {
    rows: Vec<Option<Row>>,
    until: Tournament,
}

impl Parked {
    fn put(&mut self, flow: FlowId, row: Row, until: Time) {
        let number = flow.number() as usize;
        if number >= self.rows.len() {
            self.rows.resize_with(number + 1, || None);
            self.until.make_room(flow);
        }
        self.rows[number] = Some(row);
        self.until.set(flow, until.nanos());
    }

    fn take(&mut self, flow: FlowId) -> Option<Row> {
        let row = self.rows.get_mut(flow.number() as usize)?.take()?;
        self.until.clear(flow);
        Some(row)
    }

    /// Which comes back next, and when.
    pub(super) fn next(&self) -> Option<(Time, FlowId)> {
        self.until.least().map(|(at, flow)| (Time::from_nanos(at), flow))
    }

    /// The most bytes that one of them has.
    fn longest(&self) -> u64 {
        self.rows.iter().flatten().map(Row::bytes).max().unwrap_or(0)
    }
}

impl<S: Scheduler> Scheduled<S> {
    /// Puts a class aside in which packets wait.
    pub(super) fn park(&mut self, now: Time, flow: FlowId, until: Time) {
        let (scheduler, flows) = self.server.parts();
        let row = flows.detach(flow);
        scheduler.head_dropped(now, flow, flows);
        self.parked.get_or_insert_default().put(flow, row, until);
    }

    /// Brings back a class, if it was put aside.
    pub(super) fn unpark(&mut self, now: Time, flow: FlowId) {
        let Some(row) = self.parked.as_mut().and_then(|parked| parked.take(flow)) else { return };
        let (scheduler, flows) = self.server.parts();
        flows.attach(flow, row, S::COUNTS_PACKETS, |flows| scheduler.enqueue(now, flow, flows));
        if let Some(longest) = &mut self.longest {
            longest.grown(flow, self.server.flows());
        }
    }

    /// Brings back all classes whose time has come, in the order of these times.
    pub(super) fn unpark_due(&mut self, now: Time) {
        while let Some((at, flow)) = self.next_parked()
            && at <= now
        {
            self.unpark(now, flow);
        }
    }

    /// Brings back all classes, for what they waited for may be another instant now.
    pub(super) fn unpark_all(&mut self, now: Time) {
        while let Some((_, flow)) = self.next_parked() {
            self.unpark(now, flow);
        }
    }

    /// The same without a word to the scheduler, which is not asked any more.
    pub(super) fn unpark_untold(&mut self) {
        let Some(parked) = &mut self.parked else { return };
        let (_, flows) = self.server.parts();
        while let Some((_, flow)) = parked.next()
            && let Some(row) = parked.take(flow)
        {
            flows.attach(flow, row, false, |_| ());
        }
    }

    pub(super) fn next_parked(&self) -> Option<(Time, FlowId)> {
        self.parked.as_ref().and_then(|parked| parked.next())
    }

    /// Whether a class that is put aside has more than this.
    pub(super) fn has_parked_more(&self, bytes: u64) -> bool {
        self.parked.as_ref().is_some_and(|parked| parked.longest() > bytes)
    }
}
