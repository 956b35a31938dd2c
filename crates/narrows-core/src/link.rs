//! A link: one direction of a wire, or a medium that several directions share.
//!
//! ```text
//! arrive → loss at ingress → filters → policer → MTU → queue → (air time) transmitter → loss, corruption, duplication → delay line → slots → leave
//! ```
//!
//! The queue holds only packets that wait for the transmitter. The transmitter takes the next packet at the
//! exact time at which it finishes the last one. The delay line holds packets for their propagation delay.
//! Instead of this pipeline a link can be the single queue of sch_netem ([`netem`]).

mod air;
mod air_time;
mod asked;
mod change;
mod config;
mod constant;
mod corruption;
mod crossing;
mod delayed;
mod edit;
mod feeds;
mod fragment;

mod impairments;
mod ingress;
pub(crate) mod instances;
mod line;
mod policer;
mod settings;
mod slots;
mod switch;
mod target;
mod timed_gate;
mod transmitter;
mod vary;
mod view;
mod waiting;

pub mod netem;

pub use crate::model::selector::{BitErrors, Loss};
pub use air_time::{AirTime, AirTimeError};
pub use asked::Question;
pub use config::{Change, Instances, LinkConfig, LinkTemplate, Reorder};
pub use corruption::Corruption;
pub use delayed::DelayQueue;
pub use edit::HeaderChange;
pub use feeds::FeedView;

pub use ingress::{Ingress, IngressFilter};
pub use instances::InstanceCounts;
pub use netem::{NetemAround, NetemQueue};
pub use policer::{Exceed, Policer, PolicerConfig, PolicerCounts};
pub use settings::{LinkSettings, Mtu, MtuPolicy, Order};
pub use slots::{SlotGap, Slots};
pub use target::Target;
pub use timed_gate::{GateEntry, TimedGate};
pub use view::{Instance, LinkView};

use alloc::boxed::Box;
use alloc::string::String;

use crate::counters::{Counters, DropReason};
use crate::model::Propagation;
use crate::pool::{PacketRef, Pool};
use crate::queue::context::{Draws, Noted};
use crate::queue::{Context, Drops, Wire};
use crate::random::{Seed, Stream};
use crate::service::{Overhead, Work};
use crate::time::{Duration, Time};
use air::Air;
use asked::Asked;
use constant::{Delay, Service};
use impairments::Impairments;
use line::DelayLine;
use slots::Gate;
use vary::BoundSteps;
use waiting::Waiting;

/// The packet on the wire.
#[derive(Debug)]
struct Transmission {
    packet: PacketRef,
    /// When its remaining work began: after its air time, or at the last rate change.
    since: Time,
    work: Work,
    /// When the packet went on the wire, and the bits it occupies there.
    began: Time,
    bits: u64,
    /// When the transmission ends if the rate stays the same; never if the wire is down for good.
    end: Time,
    /// Work left over for a successor that starts at once. At a rate, it comes from rounding `end` up and is
    /// less than a nanosecond's work; with delivery opportunities, it is the unused part of them, and many
    /// may coincide.
    surplus: Work,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    counters: Box<[Counters]>,
    queue: Waiting,
    draws: Draws,
    service: Service,
    overhead: Overhead,
    impairments: Option<Box<Impairments>>,
    air: Option<Box<Air>>,
    delay: Delay,
    settings: LinkSettings,
    bounds: Option<Box<BoundSteps>>,
    seed: Seed,
    streams: Streams,

    transmission: Option<Transmission>,
    /// When the last transmission ended, and its surplus.
    freed: (Time, Work),
    /// When the queue releases the packet that it withholds while the wire is free.
    not_before: Time,
    /// When the rate or the queue's bound changes next.
    varies: Time,
    line: DelayLine,
    /// The latest due time of any packet that did not skip the delay. With order kept, no later packet is due
    /// before it.
    last_due: Time,
    /// Packets that are due and wait for a slot.
    gate: Option<Box<Gate>>,
    /// How many slots earlier gates and earlier single queues asked for, so that no slot number is drawn
    /// twice.
    slots: slots::Numbers,
    /// Packets in flight whose delay has been asked for.
    asked: Option<Box<Asked>>,
    /// When the next slot opens for waiting packets, or the next answer times out.
    deadline: Time,
}

#[derive(Debug)]
struct Streams {
    fragments: Stream,
    delay: Stream,
}

impl Link {
    /// The link exists from `since` on. For `cyclic` see [`Link::tell_visits_apart`].
    pub(crate) fn new(config: LinkConfig, seed: Seed, cyclic: Option<u32>, since: Time) -> Self {
        let slots = slots::Numbers::since(since);
        let (config, single) = switch::replace(config, seed, since, &slots);
        let stream = |purpose| Stream::new(seed, &config.name, purpose);
        let streams = Streams { fragments: stream("fragments"), delay: stream("delay") };
        let draws = Draws { arrival: stream("queue arrival"), cyclic };
        let mut link = Self {
            counters: config.lanes.iter().map(|_| Counters::default()).collect(),
            name: config.name,
            queue: single.map_or_else(|| config.queue.into(), Waiting::Single),
            draws,
            service: config.service.into(),
            overhead: config.overhead,
            impairments: None,
            air: None,
            delay: config.delay.into(),
            settings: config.settings,
            bounds: None,
            seed,
            streams,
            transmission: None,
            freed: (Time::ZERO, Work::default()),
            not_before: Time::NEVER,
            varies: Time::ZERO,
            line: DelayLine::default(),
            last_due: Time::ZERO,
            gate: None,
            slots,
            asked: None,
            deadline: Time::NEVER,
        };
        link.impair(config.ingress_loss, |link| &mut link.ingress_loss);
        link.impair(config.ingress, |link| &mut link.ingress);
        link.impair(config.policer, |link| &mut link.policer);
        link.impair(config.wire_loss, |link| &mut link.wire_loss);
        link.impair(config.corruption, |link| &mut link.corruption);
        link.impair(config.duplication, |link| &mut link.duplication);
        link.impair(config.reorder, |link| &mut link.reorder);
        link.set_air_time(config.air_time);
        link.set_burst(Time::ZERO, config.burst);
        link.change_slots(Time::ZERO, config.slots);
        link.meet_feeds(&[]);
        link.bounds = config.bound_steps.map(BoundSteps::new);
        link.vary(Time::ZERO);
        link
    }

    /// Sets one of the impairments.
    fn impair<T>(&mut self, to: Option<T>, which: impl FnOnce(&mut Impairments) -> &mut Option<T>) {
        if to.is_some() || self.impairments.is_some() {
            let new = || Box::new(Impairments::new(self.seed, &self.name));
            *which(self.impairments.get_or_insert_with(new)) = to;
        }
    }

    pub(crate) fn counters(&self) -> &[Counters] {
        &self.counters
    }

    /// The link's number, if a packet may visit it more than once.
    pub(crate) const fn cyclic(&self) -> Option<u32> {
        self.draws.cyclic
    }

    /// From now on a packet may visit this link more than once, so draws must be keyed by the visit, under
    /// this link number. The draws of a first visit do not change.
    pub(crate) const fn tell_visits_apart(&mut self, number: u32) {
        self.draws.cyclic = Some(number);
    }

    /// Whether no packet is inside.
    pub(crate) fn is_idle(&self) -> bool {
        self.transmission.is_none() && self.in_flight() == 0 && self.queue.backlog().packets == 0
    }

    fn wire(&self, now: Time) -> Wire {
        Wire { rate: self.service.rate(now), overhead: self.overhead }
    }

    /// When [`Link::step`] has something to do. Any call that changes the link may move it.
    #[inline]
    pub(crate) fn next_event(&self) -> Time {
        let wire = self.transmission.as_ref().map_or(self.not_before, |transmission| transmission.end);
        wire.min(self.line.next_due()).min(self.deadline)
    }

    /// No packet leaves before this time unless one arrives or something changes: the packet whose
    /// transmission ends next still has the whole delay ahead of it.
    pub(crate) fn next_exit(&self) -> Time {
        let skips = self.impairments.as_ref().is_some_and(|impairments| impairments.reorder.is_some());
        let least = match &self.delay {
            Delay::Constant(delay) if !skips => delay.0,
            _ => Duration::ZERO,
        };
        let wire = self.transmission.as_ref().map_or(self.not_before, |transmission| transmission.end);
        (wire + least).min(self.line.next_due()).min(self.deadline)
    }

    /// Takes a packet that arrives at `now`, or drops it if it has already visited `most` elements. All events up to
    /// `now` have been handled.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        packet: PacketRef,
        lane: u8,
        most: u8,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let state = pool.get_mut(packet);
        (state.lane, state.entered) = (lane, now);
        self.counters[usize::from(lane)].arrive(now, state.length);
        if !state.count_visit(most) {
            return drops.push(packet, DropReason::Loop);
        }
        if let Some(link) = self.draws.cyclic {
            pool.count_visit(packet, link);
        }
        if let Some(impairments) = &mut self.impairments {
            if let Some(loss) = &mut impairments.ingress_loss {
                let stream = &impairments.streams.ingress_loss;
                let mut draw = pool.draw(stream, packet, visit(self.draws.cyclic, pool, packet));
                if loss.selector.selects(now, pool.get(packet), &mut draw)
                    && !(loss.mark && Context::new(pool, drops, &self.draws).mark(packet))
                {
                    return drops.push(packet, DropReason::IngressLoss);
                }
            }
            if let Some(ingress) = &mut impairments.ingress
                && !ingress.admit(now, packet, &self.overhead, &mut Context::new(pool, drops, &self.draws))
            {
                return;
            }
            if let Some(policer) = &mut impairments.policer
                && !policer.admit(now, packet, &self.overhead, &mut Context::new(pool, drops, &self.draws))
            {
                return;
            }
        }
        match self.settings.mtu {
            Some(mtu) if pool.get(packet).length > mtu.bytes => self.too_long(now, packet, mtu, pool, drops),
            _ => self.enqueue(now, packet, pool, drops),
        }
    }

    /// Handles one event that is due at `now`, the time that [`Link::next_event`] returned. Order of events
    /// at one instant: packets leave the delay line in the order in which they entered it, a slot releases
    /// its packets, an answer times out, the transmitter moves on. Returns the packet that left and its lane,
    /// if one did.
    #[inline(always)]
    pub(crate) fn step(&mut self, now: Time, pool: &mut Pool, drops: &mut Drops) -> Option<(PacketRef, u8)> {
        if self.line.next_due() == now {
            let packet = self.line.pop(pool)?;
            if self.gate.is_some() && !self.passes_gate(now, packet, pool) {
                return None;
            }
            return Some(self.depart(now, packet, pool));
        }
        if self.deadline == now {
            if let Some(packet) = self.pass_next(now, pool) {
                return Some(self.depart(now, packet, pool));
            }
            self.expire(now, pool, drops);
            return None;
        }
        self.serve(now, pool, drops);
        None
    }

    /// Call this whenever the gate or a question has changed.
    fn attend(&mut self) {
        let answers = self.asked.as_ref().map_or(Time::NEVER, |asked| asked.deadline().0);
        self.deadline = self.gate_opens().min(answers);
    }

    #[inline]
    fn depart(&mut self, now: Time, packet: PacketRef, pool: &Pool) -> (PacketRef, u8) {
        let state = pool.get(packet);
        self.counters[usize::from(state.lane)].depart(now, state.length);
        (packet, state.lane)
    }

    /// As [`Link::propagate`], for a duplicate.
    #[cold]
    fn propagate_twin(&mut self, now: Time, twin: PacketRef, visit: u8, pool: &mut Pool, drops: &mut Drops) {
        self.propagate(now, twin, visit, pool, drops);
    }

    /// Puts a packet into the delay line.
    #[inline(always)]
    fn propagate(&mut self, now: Time, packet: PacketRef, visit: u8, pool: &mut Pool, drops: &mut Drops) {
        if self.settings.line_limit.is_some_and(|limit| self.in_flight() >= limit) {
            return drops.push(packet, DropReason::LineFull);
        }
        if let Some(impairments) = &mut self.impairments
            && impairments.skips(now, packet, visit, pool)
        {
            self.counters[usize::from(pool.get(packet).lane)].reordered += 1;
            return self.line.push(now, packet, pool);
        }
        let delay = match &mut self.delay {
            Delay::Constant(delay) => delay.0,
            Delay::Any(model) => {
                let mut draw = pool.draw(&self.streams.delay, packet, visit);
                match model.delay(now, pool.get(packet), &mut draw) {
                    Propagation::After(delay) => delay,
                    Propagation::Lost => return drops.push(packet, DropReason::DelayModel),
                    Propagation::Asked(feed) => return self.ask(now, packet, feed, pool),
                }
            }
        };
        let keeps = self.settings.order == Order::Keep;
        if keeps && let Some(asked) = self.asked.as_mut().filter(|asked| !asked.is_empty()) {
            pool.get_mut(packet).entered = now + delay;
            return asked.wait_behind(packet);
        }
        self.put_in_line(now + delay, packet, keeps, pool);
    }

    /// Puts a packet into the delay line, due at `due` or, with order kept, when the packets before it are.
    #[inline(always)]
    fn put_in_line(&mut self, mut due: Time, packet: PacketRef, keeps: bool, pool: &mut Pool) {
        if keeps && due < self.last_due {
            due = self.last_due;
            self.counters[usize::from(pool.get(packet).lane)].delayed_to_keep_order += 1;
        }
        // Also updated while order is not kept, in case it is kept later.
        self.last_due = self.last_due.max(due);
        self.line.push(due, packet, pool);
    }

    /// Packets in the delay line, including those that wait for an answer or a slot.
    fn in_flight(&self) -> u64 {
        let asked = self.asked.as_ref().map_or(0, |asked| asked.len());
        self.line.len() + self.gate.as_ref().map_or(0, |gate| gate.len()) + asked
    }

    #[inline(always)]
    fn enqueue(&mut self, now: Time, packet: PacketRef, pool: &mut Pool, drops: &mut Drops) {
        if self.varies <= now {
            self.vary(now);
        }
        let context = &mut Context::new(pool, drops, &self.draws);
        match &self.transmission {
            Some(transmission) => {
                let ends = transmission.end == now;
                self.queue.enqueue(now, packet, context);
                if ends {
                    self.serve_late(now, pool, drops);
                }
            }
            None => {
                self.not_before = Time::NEVER;
                let next = self.queue.pass(now, packet, context);
                if self.follow(now, next, pool, drops) {
                    self.serve_next(now, pool, drops);
                }
            }
        }
    }

    /// Counts a packet that the link or its queue dropped.
    pub(crate) fn count_drop(&mut self, packet: PacketRef, reason: DropReason, pool: &Pool) {
        let state = pool.get(packet);
        self.counters[usize::from(state.lane)].drop_packet(reason, state.length);
    }

    /// Counts what the queue did to a packet.
    pub(crate) fn count(&mut self, lane: u8, what: Noted) {
        let counters = &mut self.counters[usize::from(lane)];
        match what {
            Noted::Marked => counters.marked += 1,
            Noted::Corrupted => {
                counters.corrupted += 1;
                counters.flipped += 1;
            }
            Noted::Duplicated(length) => counters.duplicated.add(length),
            Noted::Reordered => counters.reordered += 1,
        }
    }
}

/// The number of this packet's visit to this element, from 0.
fn visit(cyclic: Option<u32>, pool: &Pool, packet: PacketRef) -> u8 {
    cyclic.map_or(0, |link| pool.earlier_visits(packet, link))
}
