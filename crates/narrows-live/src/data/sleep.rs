//! Sleeping, and the kernel's counters of lost packets.

use narrows_core::{Duration, PortId, Time};
use narrows_io::cable_end::CableEndError;
use narrows_io::packet_socket::{PacketSocket, ReceiveBatch, Received};
use narrows_io::wait::{Waiting, wait_from};

use super::{DataLoop, LoopError, WAKE_EARLY, exchange};
use crate::cabling::FarEnd;

/// How soon a port whose interface is full is retried.
const RETRY: Duration = Duration::from_micros(100);
/// How often, at most, losses of shared lines are split among their ports.
const SPLIT_EVERY: Duration = Duration::from_secs(1);
/// At the end: for how long, and up to how many frames per line, unread frames are counted.
const COUNTING_TAKES: Duration = Duration::from_millis(200);
const MOST_COUNTED: usize = 1 << 20;

impl DataLoop {
    /// Sleeps until an instant, a frame, an answer of a feed, or an order.
    pub(super) fn sleep(&mut self, until: Time) -> Result<(), LoopError> {
        let called = self.inbox.called.clone();
        let sends_in_waiting = self.sends_in_waiting();
        let mut waiting = vec![Waiting::readable(&*called)];
        let caller = self.feeds.as_ref().map(|feeds| feeds.caller());
        waiting.extend(caller.iter().map(Waiting::readable));
        let wall_clock = self.batch.steady_offset();
        waiting.extend(wall_clock.iter().map(|&clock| Waiting::readable(clock)));
        let now = self.clock.now();
        // A port whose interface is full must be retried soon.
        let until = if self.is_stuck { until.min(now + RETRY) } else { until };
        let gathers = self.may_gather(now, until);
        let ends = if gathers { Vec::new() } else { self.poll_set.descriptors(&self.lines) };
        waiting.extend(ends.iter().map(Waiting::readable));
        let deadline = (until < Time::NEVER).then(|| self.clock.reading(until));
        let from = self.clock.reading(now);
        let exchanged = match &mut self.exchange {
            Some(exchange) if sends_in_waiting => {
                let sockets = exchange::sockets(&self.lines, &self.poll_set);
                Some(exchange.exchange(&sockets, from, &mut waiting, deadline).map_err(LoopError::Wait)?)
            }
            _ => None,
        };
        let ready_count = match &exchanged {
            Some(exchanged) => exchanged.waited.map(|(ready_count, _)| ready_count),
            None => Some(wait_from(from, &mut waiting, deadline).map_err(LoopError::Wait)?),
        };
        let found: Vec<bool> = waiting.iter().map(Waiting::is_ready).collect();
        drop(waiting);
        match exchanged {
            Some(exchanged) => self.exchanged(exchanged)?,
            None => self.clock.go_on(),
        }
        let mut rest = found.into_iter();
        if rest.next() == Some(true) {
            called.clear();
        }
        if let Some(feeds) = &self.feeds
            && rest.next() == Some(true)
        {
            feeds.called();
        }
        if self.batch.steady_offset().is_some() && rest.next() == Some(true) {
            self.batch.sample_offset_anew().map_err(LoopError::Wait)?;
        }
        if gathers {
            self.gathered_until = self.clock.now();
            // If the wait was broken off, nothing was received.
            let is_unread = ready_count.is_none();
            rest = vec![is_unread; self.poll_set.waited_for().len()].into_iter();
        }
        let exchange = self.exchange.as_ref();
        let has_come = |place| exchange.is_some_and(|exchange| exchange.holds(place));
        self.poll_set.woken(rest.enumerate().map(|(place, found)| found || has_come(place)));
        if now < until && ready_count == Some(0) {
            self.learn_from(self.clock.now().since(until));
        }
        Ok(())
    }

    /// A timer was this late: the next sleep ends earlier at once; sleeps become longer again gradually.
    fn learn_from(&mut self, late: Duration) {
        let (now, wanted) = (self.wake_early.nanos(), late.nanos().saturating_mul(2));
        let next = if wanted > now { wanted } else { now - (now - wanted) / 16 };
        self.wake_early = Duration::from_nanos(next.clamp(*WAKE_EARLY.start(), *WAKE_EARLY.end()));
    }

    /// Reads from the sockets how many packets the kernel dropped.
    pub(super) fn count_lost(&mut self) -> Result<(), LoopError> {
        if let Some(agreement) = &self.in_kernel {
            let ends: Vec<_> =
                self.lines.iter_mut().filter_map(|line| line.end.kernel_end_mut()).map(|end| &*end).collect();
            agreement.count(&ends);
        }
        for at in 0..self.lines.count() {
            let line = &mut self.lines[at];
            let statistics = line.end.statistics()?;
            self.meter.send_failed(line.port, statistics.refused - line.refused);
            line.refused = statistics.refused;
            let dropped = statistics.dropped + line.far.as_mut().map_or(0, FarEnd::dropped);
            let new = dropped.saturating_sub(line.lost);
            line.lost = dropped.max(line.lost);
            if line.is_shared() {
                line.unsplit += new;
                continue;
            }
            let (port, now) = (line.port, self.engine.now());
            self.lose(port, now, new);
        }
        Ok(())
    }

    /// Counts what had arrived by `end` and was not read: it is lost.
    pub(super) fn lose_unread(&mut self, end: Time) -> Result<(), LoopError> {
        for input in self.inputs.extract_if(.., |input| input.at <= end) {
            self.gateway.iter_mut().for_each(|gateway| gateway.lost(1));
            self.meter.receive_ring_dropped(input.port, 1);
            self.frames.recycle(input.received.frame);
        }
        let give_up = self.clock.now() + COUNTING_TAKES;
        for at in 0..self.lines.count() {
            let socket = self.lines[at].end.packet_socket_mut();
            let unread = socket.map_or(Ok(0), PacketSocket::unread).map_err(CableEndError::from)?;
            let mut counted = 0;
            loop {
                if counted >= MOST_COUNTED || self.clock.now() >= give_up {
                    // There is no time to look when the others came.
                    let lost = unread.saturating_sub(counted as u64);
                    for (port, lost) in self.lines.losers(at, lost, &mut self.ports) {
                        self.lose(port, end, lost);
                    }
                    break;
                }
                let line = &mut self.lines[at];
                let count = line.end.receive(&mut self.batch, &mut self.frames, &mut self.received)?;
                counted += count;
                let clock = self.clock;
                let came =
                    |received: &&Received| received.stamp.is_none_or(|stamp| clock.instant(stamp) <= end);
                let mut lost = Vec::new();
                for received in self.received.drain(..) {
                    lost.extend(self.lines[at].port_of(&received).filter(|_| came(&&received)));
                    self.frames.recycle(received.frame);
                }
                for port in lost {
                    self.ports[usize::from(port.index())].came += 1;
                    self.lose(port, end, 1);
                }
                if count < ReceiveBatch::FRAMES {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Splits what shared lines have lost among their ports, unless that was done a moment ago: asking what each host has
    /// sent takes some microseconds, and there may be a thousand.
    pub(super) fn split_some_losses(&mut self) -> Result<(), LoopError> {
        let now = self.clock.now();
        if now.since(self.lines.split_at) < SPLIT_EVERY {
            return Ok(());
        }
        self.lines.split_at = now;
        self.split_losses()
    }

    /// Splits what shared lines have lost among their ports.
    pub(super) fn split_losses(&mut self) -> Result<(), LoopError> {
        for at in 0..self.lines.count() {
            let unsplit = std::mem::take(&mut self.lines[at].unsplit);
            for (port, lost) in self.lines.losers(at, unsplit, &mut self.ports) {
                self.lose(port, self.engine.now(), lost);
            }
        }
        Ok(())
    }

    fn lose(&mut self, port: PortId, at: Time, lost: u64) {
        self.meter.receive_ring_dropped(port, lost);
        if let Some(recorder) = self.recorder.as_mut().filter(|_| lost > 0) {
            recorder.lost(at, port, lost);
        }
    }
}
