//! The scenario's own traffic, in addition to what arrives at ports.
//!
//! Its packets enter the engine at their due instants, however late the thread is: before any later input is handed
//! in, and before anything later is released. So what happens to them, and what they do to programs' packets, does
//! not depend on the host's load. No host receives them: while no program's packet is inside, the thread handles them
//! once a millisecond.
//!
//! A thread that cannot generate packets as fast as they are due falls behind with everything. Once it is a second
//! behind, it skips packets and counts them: the source could not send them in time.

use narrows_core::{Body as Kept, Duration, Event, Packet, Time};
use narrows_frame::log::Generated;
use narrows_report::{AppMeter, SourceMeter};
use narrows_traffic::{Body, Delivery, Sources};

use super::{DataLoop, LoopError};
use crate::load::Load;

/// The maximum number of packets generated in a turn, before it checks for orders again.
const MOST_A_TURN: u32 = 2048;
/// The maximum number of packets skipped in a turn; further ones are skipped later.
const MOST_MISSED_A_TURN: u32 = 1 << 15;
/// How far a thread may be behind before packets are skipped.
const BEHIND: Duration = Duration::from_secs(1);
/// How long generated packets may wait for the thread while no program's packet is inside.
const UNSEEN: Duration = Duration::from_millis(1);
/// The smallest time step.
const NANOSECOND: Duration = Duration::from_nanos(1);

/// The sources that send through this thread's part of the network.
pub(crate) struct Traffic {
    sources: Sources,
    /// Whether any source reacts to arrivals.
    responds: bool,
    /// The results of their packets, by source number.
    meters: Vec<SourceMeter>,
    /// When the next packet is due.
    next: Option<Time>,
    /// Everything up to this instant has been handed in.
    complete: Time,
    /// When the turn began.
    turn: Time,
    /// How many packets may still be generated or skipped in this turn.
    left: u32,
    left_out: u32,
}

/// Counters of traffic, each with its index among the scenario's traffic.
#[derive(Debug, Default)]
pub(crate) struct TrafficSample {
    /// Since the previous sample.
    pub(crate) sources: Vec<(u32, SourceMeter)>,
    /// Since the start.
    pub(crate) applications: Vec<(u32, AppMeter)>,
}

impl Traffic {
    /// `None` if there are no sources.
    pub(crate) fn of(mut sources: Sources) -> Option<Box<Self>> {
        let meters = (0..sources.len()).map(|_| SourceMeter::default()).collect();
        let (responds, next) = (sources.respond(), sources.peek());
        let (left, left_out) = (MOST_A_TURN, MOST_MISSED_A_TURN);
        let (complete, turn) = (Time::ZERO, Time::ZERO);
        let traffic = Self { sources, responds, meters, next, complete, turn, left, left_out };
        (!traffic.meters.is_empty()).then(|| Box::new(traffic))
    }

    /// A turn begins.
    pub(super) fn begin_turn(&mut self, now: Time) -> Result<(), LoopError> {
        self.turn = now;
        (self.left, self.left_out) = (MOST_A_TURN, MOST_MISSED_A_TURN);
        if self.sources.is_starved() {
            self.sources.refill()?;
            self.next = self.sources.peek();
        }
        Ok(())
    }

    /// The turn has reached this instant.
    pub(super) fn completed(&mut self, reached: Time) {
        self.complete = reached;
    }

    /// When it needs attention: `watched` says whether a program's packet is inside, `event` is the network's next
    /// event.
    pub(super) fn due(&self, watched: bool, event: Option<Time>) -> Time {
        let awaited = event.filter(|_| self.responds && !watched);
        let starved = self.sources.is_starved().then_some(self.complete + UNSEEN);
        let next = [self.next, awaited, starved].into_iter().flatten().min().unwrap_or(Time::NEVER);
        if watched { next } else { next.max(self.complete + UNSEEN) }
    }

    /// A packet has got its verdict.
    pub(super) fn decided(&mut self, event: Event<'_, Load>) {
        let is_last = matches!(event.body, Kept::Last(_));
        let Load::Generated(Body { source, .. }) = event.body.get() else { return };
        self.meters[*source as usize].verdict(&event, is_last);
        if !self.responds {
            return;
        }
        let Some(delivery) = Delivery::of(&event) else { return };
        self.sources.arrive(match event.body {
            Kept::Last(Load::Generated(body)) => delivery.with(body),
            Kept::Shared(Load::Generated(body)) => delivery.with_shared(body),
            Kept::Last(_) | Kept::Shared(_) => return,
        });
        self.next = self.sources.peek();
    }

    /// The traffic that sent a packet, by its index in the scenario; `None` for a program's packet.
    pub(super) fn sender(&self, load: &Load) -> Option<u32> {
        match load {
            Load::Generated(Body { source, .. }) => Some(self.sources.place(*source)),
            Load::Frame(_) => None,
        }
    }

    /// The counters since the last call.
    pub(super) fn sample(&mut self) -> TrafficSample {
        let sources = &self.sources;
        let counted = (0u32..).zip(&mut self.meters);
        TrafficSample {
            sources: counted.map(|(source, meter)| (sources.place(source), std::mem::take(meter))).collect(),
            applications: sources.applications().map(|(place, meter)| (place, meter.clone())).collect(),
        }
    }
}

impl DataLoop {
    /// Hands in what is due up to an instant, and tells responsive sources about arrivals until then. Returns whether
    /// that is all of it: otherwise the turn has generated enough.
    pub(super) fn generate(&mut self, until: Time) -> Result<bool, LoopError> {
        loop {
            let Some(traffic) = &mut self.traffic else { return Ok(true) };
            let due = traffic.next.filter(|&at| at <= until);
            if traffic.responds
                && let Some(event) = self.engine.next_event()
                && event <= due.unwrap_or(until)
            {
                self.release(event)?;
                continue;
            }
            let Some(due) = due else { return Ok(true) };
            // It may be a timer without a packet.
            let is_in_time =
                due >= self.engine.now() && (traffic.left > 0 || traffic.turn.since(due) <= BEHIND);
            let budget = if is_in_time { &mut traffic.left } else { &mut traffic.left_out };
            match budget.checked_sub(1) {
                Some(left) => *budget = left,
                None => return Ok(!is_in_time),
            }
            let taken = traffic.sources.take()?;
            traffic.next = traffic.sources.peek();
            let Some((at, port, packet)) = taken else { continue };
            let meter = &mut traffic.meters[packet.body.source as usize];
            if !is_in_time {
                meter.missed();
                continue;
            }
            meter.offered(packet.length);
            let options = self.engine.looks_at_tcp_options().then(|| Body::tcp_options(&packet));
            if let Some(recorder) = &mut self.recorder {
                let place = traffic.sources.place(packet.body.source);
                recorder.generated(Generated::of(at, place, port, &packet), options.as_ref());
            }
            if let Some(options) = options {
                self.engine.set_tcp_options(options);
            }
            let Packet { length, link_header, network_header, key, headers, body } = packet;
            let body = Load::Generated(body);
            let packet = Packet { length, link_header, network_header, key, headers, body };
            self.engine.hand_in(at, port, packet);
        }
    }

    /// The same, before an instant.
    pub(super) fn generate_before(&mut self, at: Time) -> Result<bool, LoopError> {
        if self.traffic.is_none() || at == Time::ZERO {
            return Ok(true);
        }
        self.generate(at.before(NANOSECOND))
    }

    /// When the scenario's own traffic needs attention.
    pub(super) fn traffic_due(&self) -> Time {
        let Some(traffic) = &self.traffic else { return Time::NEVER };
        traffic.due(self.is_watched(), self.engine.next_event())
    }

    /// Whether internal events need attention: a program's packet is inside, or feeds are asked at them.
    pub(super) fn is_watched(&self) -> bool {
        self.frames_inside > 0 || self.feeds.as_ref().is_some_and(|feeds| !feeds.is_empty())
    }
}
