//! Parked classes.
//!
//! The queue inside a class may hold packets but have nothing to send before some instant, because it shapes or
//! delays. The scheduler sees such a class as idle until that instant or until the class's next arrival, whichever is
//! first, so that the other classes use the transmitter. The class's entries are stored here in the meantime. They
//! still count toward the backlog of the whole queue.

use alloc::vec::Vec;

use crate::sched::flows::Row;
use crate::sched::tournament::Tournament;
use crate::sched::{FlowId, Scheduled, Scheduler};
use crate::time::Time;

/// The parked classes, and until when each is parked.
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

    /// The next class to return, and when.
    pub(super) fn next(&self) -> Option<(Time, FlowId)> {
        self.until.least().map(|(at, flow)| (Time::from_nanos(at), flow))
    }

    /// The most bytes that a parked class has.
    fn longest(&self) -> u64 {
        self.rows.iter().flatten().map(Row::bytes).max().unwrap_or(0)
    }
}

impl<S: Scheduler> Scheduled<S> {
    /// Parks a class that has packets.
    pub(super) fn park(&mut self, now: Time, flow: FlowId, until: Time) {
        let (scheduler, flows) = self.server.parts();
        let row = flows.detach(flow);
        scheduler.head_dropped(now, flow, flows);
        self.parked.get_or_insert_default().put(flow, row, until);
    }

    /// Brings back a class if it was parked.
    pub(super) fn unpark(&mut self, now: Time, flow: FlowId) {
        let Some(row) = self.parked.as_mut().and_then(|parked| parked.take(flow)) else { return };
        let (scheduler, flows) = self.server.parts();
        flows.attach(flow, row, S::COUNTS_PACKETS, |flows| scheduler.enqueue(now, flow, flows));
        if let Some(longest) = &mut self.longest {
            longest.grown(flow, self.server.flows());
        }
    }

    /// Brings back all classes that are due, in order of their instants.
    pub(super) fn unpark_due(&mut self, now: Time) {
        while let Some((at, flow)) = self.next_parked()
            && at <= now
        {
            self.unpark(now, flow);
        }
    }

    /// Brings back all classes, because the instants for which they wait may have changed.
    pub(super) fn unpark_all(&mut self, now: Time) {
        while let Some((_, flow)) = self.next_parked() {
            self.unpark(now, flow);
        }
    }

    /// Like [`Self::unpark_all`], without telling the scheduler, which is no longer called.
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

    /// Whether a parked class has more than this many bytes.
    pub(super) fn has_parked_more(&self, bytes: u64) -> bool {
        self.parked.as_ref().is_some_and(|parked| parked.longest() > bytes)
    }
}
