//! Record and replay of a cell under two loads: CellReplay (Sentosa, Chandrasekaran, Godfrey, Hassanieh,
//! "CellReplay: towards accurate record-and-replay for cellular networks", NSDI 2025; `cellular_queue.cc` of
//! `williamsentosa95/cellreplay`).
//!
//! A base station gives a phone that was idle less than a phone that has data all the time. So two traces are
//! recorded: a *light* one, of short packet trains with pauses between them, and a *heavy* one, of a saturated
//! link. The replay takes a packet's opportunity from the one or the other, as the workload at that time
//! demands:
//!
//! 1. A packet that finds the light stage empty begins a **session**. It takes the base delay b that the light
//!    trace has at that instant, linear between trains, and leaves at once: `r = t + b`.
//! 2. A packet behind it takes the session's next light opportunity, at an offset o from its beginning s:
//!    `r = t + b + max(o − (t − s), 0)`. Opportunities pass unused; a packet that does not fit in the rest
//!    of one takes the next.
//! 3. When these are used up, a packet leaves the light stage at `t + b` for the **heavy queue**, where it
//!    waits for the opportunities of the heavy trace, as in mahimahi. So does a packet of a session that finds
//!    a packet in the heavy queue.
//!
//! The light stage is empty if `t + b` is at least `idle` after the last packet left it. The tool counts whole
//! milliseconds, and "later" is a millisecond later: its timer of n ms is an `idle` of n + 1 ms.
//!
//! A packet counts four bytes more than its IP packet, as in mahimahi.
//!
//! Everything is decided when a packet arrives, since no later packet changes it: packets keep their order,
//! and the heavy queue drops its tail. So the model is a delay, and polling cannot change it.
//!
//! Departures from the tool: times are nanoseconds, and the base delay is not rounded to milliseconds; an
//! offset of o ms still serves a packet that arrives before o + 1 ms, as a whole millisecond does there. Both
//! traces begin with the run, there with the first packet. When the light opportunities are used up, the tool
//! delays a packet at least by the last offset, even if the session began long before; here by b. Packets
//! may be longer than an opportunity, and then take several.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use super::{DelayModel, Propagation};
use crate::pool::PacketState;
use crate::random::Draw;
use crate::service::{ServiceCurve, Work};
use crate::time::{Duration, Time};
use crate::units::Bytes;

/// Bytes that a packet counts beyond its IP packet.
const EXTRA: u64 = 4;
/// The resolution of a light trace.
const MILLISECOND: Duration = Duration::from_millis(1);

/// A packet train of a light trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// When it was sent, from the start of the trace.
    pub at: Time,
    /// The one-way delay of its first packet.
    pub base: Duration,
    /// Its first opportunity, as an index into the offsets. They end where those of the next train begin.
    pub first: u32,
}

/// A light trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LightTrace {
    trains: Arc<[Train]>,
    offsets: Arc<[Duration]>,
}

impl LightTrace {
    /// Trains, and the offsets of all their opportunities from the first packet of the train, in order. The
    /// last train ends the trace, which then repeats: only its base delay counts. `None` unless there are two
    /// trains or more, the first at zero, each later than the one before, and offsets increase in each.
    pub fn new(trains: impl Into<Arc<[Train]>>, offsets: impl Into<Arc<[Duration]>>) -> Option<Self> {
        let (trains, offsets) = (trains.into(), offsets.into());
        let grows = trains.windows(2).all(|pair| {
            let range = pair[0].first as usize..pair[1].first as usize;
            let of_train = offsets.get(range).is_some_and(|of| of.windows(2).all(|two| two[0] <= two[1]));
            of_train && pair[0].at < pair[1].at
        });
        let begins = trains.first().is_some_and(|first| first.at == Time::ZERO);
        (grows && begins && trains.len() > 1).then_some(Self { trains, offsets })
    }

    /// The length of the trace.
    pub fn length(&self) -> Duration {
        self.trains[self.trains.len() - 1].at.since(Time::ZERO)
    }

    /// The trains. The last one ends the trace.
    pub fn trains(&self) -> &[Train] {
        &self.trains
    }

    /// The mean base delay over time.
    pub fn mean_base(&self) -> Duration {
        // Below 2⁶² each, and the times sum to the length.
        let area = |pair: &[Train]| {
            let sum = u128::from(pair[0].base.nanos()) + u128::from(pair[1].base.nanos());
            sum * u128::from(pair[1].at.since(pair[0].at).nanos())
        };
        let doubled: u128 = self.trains.windows(2).map(area).sum();
        Duration::from_nanos((doubled / 2 / u128::from(self.length().nanos())) as u64)
    }

    /// The train at an instant of the trace, and the base delay there.
    fn at(&self, place: Time) -> (usize, Duration) {
        let next = self.trains.partition_point(|train| train.at <= place).min(self.trains.len() - 1);
        let [from, to] = [self.trains[next - 1], self.trains[next]];
        let (part, whole) = (place.since(from.at).nanos(), to.at.since(from.at).nanos());
        let [low, high] = [from.base.nanos(), to.base.nanos()].map(i128::from);
        let base = low + (high - low) * i128::from(part) / i128::from(whole);
        (next - 1, Duration::from_nanos(base as u64))
    }

    fn opportunities(&self, train: usize) -> &[Duration] {
        let end = self.trains.get(train + 1).map_or(self.offsets.len(), |next| next.first as usize);
        &self.offsets[self.trains[train].first as usize..end]
    }
}

/// Settings of a [`Cell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellConfig {
    /// Bytes of a light opportunity: 1400 in the tool.
    pub opportunity: Bytes,
    /// A session ends when the light stage has been empty for this long.
    pub idle: Duration,
    /// Bounds of the heavy queue, if it has any.
    pub most_packets: Option<u64>,
    /// See `most_packets`.
    pub most_bytes: Option<Bytes>,
    /// When the traces begin, and at which of their instants.
    pub start: Time,
    /// See `start`.
    pub skipped: Duration,
}

/// Delays of a cell that follow the workload. Packets that do not fit in the heavy queue are lost.
#[derive(Debug)]
pub struct Cell {
    light: LightTrace,
    heavy: Box<dyn ServiceCurve>,
    config: CellConfig,
    session: Option<Session>,
    /// When the last packet left the light stage, and when it entered the heavy queue or left the cell.
    light_left: Time,
    entered: Time,
    /// Packets in the heavy queue: when they leave, and their bytes.
    queue: VecDeque<(Time, u64)>,
    queued_bytes: u64,
    /// When the last packet left the heavy queue, and what it left of its opportunity.
    freed: (Time, Work),
}

/// A session of the light stage.
#[derive(Clone, Copy, Debug)]
struct Session {
    start: Time,
    base: Duration,
    train: usize,
    /// The opportunity in use, and its remaining bytes.
    next: usize,
    left: u64,
}

impl Cell {
    /// A cell with these traces.
    pub fn new(light: LightTrace, heavy: Box<dyn ServiceCurve>, config: CellConfig) -> Self {
        Self {
            light,
            heavy,
            config,
            session: None,
            light_left: Time::ZERO,
            entered: Time::ZERO,
            queue: VecDeque::new(),
            queued_bytes: 0,
            freed: (Time::ZERO, Work::default()),
        }
    }

    /// When a packet of this many bytes that arrives at `now` leaves the cell; `None` if the heavy queue is
    /// full, or never moves again.
    fn leaves(&mut self, now: Time, bytes: u64) -> Option<Time> {
        let (release, is_light) = self.release(now, bytes);
        let enters = release.max(self.entered);
        while self.queue.front().is_some_and(|first| first.0 <= enters) {
            self.queued_bytes -= self.queue.pop_front().map_or(0, |first| first.1);
        }
        // As in the tool, a packet that would overtake is no longer a light one.
        if is_light && release >= self.entered && self.queue.is_empty() {
            self.entered = enters;
            return Some(enters);
        }
        let CellConfig { most_packets, most_bytes, .. } = self.config;
        let fits = most_packets.is_none_or(|most| (self.queue.len() as u64) < most)
            && most_bytes.is_none_or(|most| self.queued_bytes.saturating_add(bytes) <= most.get());
        if !fits {
            return None;
        }
        let waits = enters < self.freed.0;
        let start = enters.max(self.freed.0);
        let same = enters == self.freed.0 && self.heavy.keeps_surplus();
        let surplus = if waits || same { self.freed.1 } else { Work::default() };
        let work = Work::bits(bytes * 8);
        let (at, left) = match surplus.0.checked_sub(work.0) {
            Some(rest) if surplus.0 > 0 => (start, Work(rest)),
            _ => {
                let finish = self.heavy.finish(start, Work(work.0 - surplus.0.min(work.0)))?;
                (finish.at.max(start), finish.surplus)
            }
        };
        (self.entered, self.freed) = (enters, (at, left));
        self.queue.push_back((at, bytes));
        self.queued_bytes += bytes;
        Some(at)
    }

    /// When a packet leaves the light stage, and whether it had a light opportunity.
    fn release(&mut self, now: Time, bytes: u64) -> (Time, bool) {
        let opportunity = self.config.opportunity.get().max(1);
        let goes_on = |session: &Session| now + session.base < self.light_left + self.config.idle;
        let Some(session) = self.session.as_mut().filter(|session| goes_on(session)) else {
            let waited = now.since(self.config.start).nanos();
            let place = (waited.saturating_add(self.config.skipped.nanos())) % self.light.length().nanos();
            let (train, base) = self.light.at(Time::from_nanos(place));
            // The first packet takes the first opportunities, however many it needs.
            let whole = bytes.saturating_sub(1) / opportunity;
            let left = opportunity - (bytes - whole * opportunity);
            self.session = Some(Session { start: now, base, train, next: whole as usize, left });
            self.light_left = now + base;
            return (self.light_left, true);
        };
        let offsets = self.light.opportunities(session.train);
        let since = now.since(session.start);
        let over = |offset: &Duration| *offset + MILLISECOND <= since;
        if offsets.get(session.next).is_some_and(over) {
            session.next += offsets[session.next..].partition_point(over);
            session.left = opportunity;
        }
        let mut need = bytes;
        if session.left < need.min(opportunity) {
            (session.next, session.left) = (session.next.saturating_add(1), opportunity);
        }
        if need > opportunity {
            let more = (need - 1) / opportunity;
            session.next = session.next.saturating_add(more as usize);
            need -= more * opportunity;
            session.left = opportunity;
        }
        session.left -= need;
        let (base, offset) = (session.base, offsets.get(session.next));
        // Nothing leaves before what came earlier.
        let release = now + base + offset.map_or(Duration::ZERO, |offset| offset.saturating_sub(since));
        self.light_left = self.light_left.max(release);
        (release, offset.is_some())
    }
}

impl DelayModel for Cell {
    fn delay(&mut self, now: Time, packet: &PacketState, _: &mut Draw) -> Propagation {
        match self.leaves(now, u64::from(packet.length) + EXTRA) {
            Some(at) => Propagation::After(at.since(now)),
            None => Propagation::Lost,
        }
    }

    /// The mean base delay.
    fn mean(&self) -> Option<Duration> {
        Some(self.light.mean_base())
    }
}

#[cfg(test)]
mod tests;
