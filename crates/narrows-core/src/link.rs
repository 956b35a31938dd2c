//! One direction of a wire, or a medium that several directions share.
//!
//! ```text
//! arrive → loss at ingress → MTU → queue → transmitter → loss, corruption, duplication → delay line → slots → leave
//! ```
//!
//! The queue sees only packets that wait for the transmitter. The transmitter takes the next packet at the exact
//! instant at which it finishes the last one. The delay line holds packets for their propagation delay. Instead of all of
//! this a link can have the single queue of sch_netem ([`netem`]).

mod asked;
mod config;
mod corruption;
mod feeds;
mod impairments;
mod line;
mod slots;
mod waiting;

pub mod netem;

pub use asked::Question;
pub use config::{Change, LinkConfig, Loss, Mtu, MtuPolicy, Order, Reorder};
pub use corruption::{BitErrors, Corruption};
pub use feeds::FeedView;
pub use slots::{SlotGap, Slots};

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::counters::{Counters, DropReason};
use crate::model::{DelayModel, Propagation};
use crate::packet::{Fragment, Protocol};
use crate::pool::{PacketRef, Pool};
use crate::queue::context::{Draws, Noted};
use crate::queue::{Backlog, Bound, ClassCounters, Context, Dequeue, Drops, Wire};
use crate::random::{Seed, Stream};
use crate::service::{Overhead, ServiceCurve, Work};
use crate::steps::{Segment, Steps};
use crate::time::{Duration, Time};
use crate::units::Rate;
use asked::Asked;
use impairments::Impairments;
use line::DelayLine;
use slots::Gate;
use waiting::Waiting;

/// The packet on the wire.
#[derive(Debug)]
struct Transmission {
    packet: PacketRef,
    /// When its remaining work began: when it went on the wire, or when the rate changed last.
    since: Time,
    work: Work,
    /// When it went on the wire, and the bits that it occupies there.
    began: Time,
    bits: u64,
    /// When it will be done, unless the rate changes; never while the wire is down for good.
    end: Time,
    /// What the rounding of `end` leaves for a successor that starts at once, less than a nanosecond's work at a rate; or
    /// what is left of opportunities, of which many may coincide.
    surplus: Work,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    counters: Box<[Counters]>,
    queue: Waiting,
    draws: Draws,
    service: Box<dyn ServiceCurve>,
    overhead: Overhead,
    impairments: Option<Box<Impairments>>,
    delay: Box<dyn DelayModel>,
    order: Order,
    line_limit: Option<u64>,
    mtu: Option<Mtu>,
    bounds: Option<Box<BoundSteps>>,
    seed: Seed,
    streams: Streams,

    transmission: Option<Transmission>,
    /// When the last transmission ended and what its rounding left over.
    freed: (Time, Work),
    /// When the queue will let a packet go that it held back while the wire is free.
    not_before: Time,
    /// From when on the rate is another, or the bound of the queue is.
    varies: Time,
    line: DelayLine,
    /// The latest instant at which a packet that did not skip the delay is due. Where order is kept, no other is due
    /// before it.
    last_due: Time,
    /// Packets that are due and wait for a slot.
    gate: Option<Box<Gate>>,
    /// How many slots were asked for while there was another gate, or another single queue: none is drawn a second time.
    slots: slots::Numbers,
    /// Packets on their way whose delay is asked for.
    asked: Option<Box<Asked>>,
    /// When the next slot opens for packets that wait, or the patience for the next answer runs out.
    deadline: Time,
}

/// A bound of the queue that follows a trace, and the one in force.
#[derive(Debug)]
struct BoundSteps {
    steps: Steps<Bound>,
    segment: Segment,
}

impl BoundSteps {
    fn new(steps: Steps<Bound>) -> Box<Self> {
        Box::new(Self { steps, segment: Segment::NOWHERE })
    }
}

#[derive(Debug)]
struct Streams {
    fragments: Stream,
    delay: Stream,
}

impl Link {
    pub(crate) fn new(config: LinkConfig, seed: Seed, cyclic: Option<u32>) -> Self {
        let (config, single) = netem::replace(config, seed);
        let stream = |purpose| Stream::new(seed, &config.name, purpose);
        let streams = Streams { fragments: stream("fragments"), delay: stream("delay") };
        // The link's number, if a packet may come by more than once, so that draws must tell its visits apart.
        let draws = Draws { arrival: stream("queue arrival"), cyclic };
        let mut link = Self {
            counters: config.lanes.iter().map(|_| Counters::default()).collect(),
            name: config.name,
            queue: single.map_or(Waiting::Any(config.queue), Waiting::Single),
            draws,
            service: config.service,
            overhead: config.overhead,
            impairments: None,
            delay: config.delay,
            order: config.order,
            line_limit: config.line_limit,
            mtu: config.mtu,
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
            slots: slots::Numbers::default(),
            asked: None,
            deadline: Time::NEVER,
        };
        link.impair(config.ingress_loss, |link| &mut link.ingress_loss);
        link.impair(config.wire_loss, |link| &mut link.wire_loss);
        link.impair(config.corruption, |link| &mut link.corruption);
        link.impair(config.duplication, |link| &mut link.duplication);
        link.impair(config.reorder, |link| &mut link.reorder);
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

    fn wire(&self, now: Time) -> Wire {
        Wire { rate: self.service.rate(now), overhead: self.overhead }
    }

    /// Tells the queue what the wire is like at `now`, and until when that holds. Where the rate varies by itself, this is
    /// called when the queue is needed next, and what it was in between is told then.
    #[cold]
    fn vary(&mut self, now: Time) {
        self.catch_up(now);
        self.set_wire(now);
        self.set_bound(now);
    }

    /// Tells the queue of the rates that there were since it was told last: idle time counts by what could have been sent.
    /// After very many changes at once the mean of the others has to do, or a fast trace and a long silence would take for
    /// ever.
    fn catch_up(&mut self, now: Time) {
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

    fn set_wire(&mut self, now: Time) {
        let wire = self.wire(now);
        self.queue.set_wire(now, wire);
    }

    /// Gives the queue the bound that it has at `now`, where that follows a trace.
    fn set_bound(&mut self, now: Time) {
        self.varies = self.service.next_change(now);
        if let Some(BoundSteps { steps, segment }) = self.bounds.as_deref_mut() {
            steps.seek(segment, now);
            self.queue.set_bound(*steps.value(segment));
            self.varies = self.varies.min(segment.until);
        }
    }

    fn change_bounds(&mut self, now: Time, steps: Option<Steps<Bound>>) {
        self.bounds = steps.map(BoundSteps::new);
        self.vary(now);
    }

    /// When [`Link::step`] has something to do. Any call that changes the link may move it.
    #[inline]
    pub(crate) fn next_event(&self) -> Time {
        let wire = self.transmission.as_ref().map_or(self.not_before, |transmission| transmission.end);
        wire.min(self.line.next_due()).min(self.deadline)
    }

    /// Takes a packet that arrives at `now`. All events up to `now` have been handled.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        packet: PacketRef,
        lane: u8,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let state = pool.get_mut(packet);
        (state.lane, state.entered) = (lane, now);
        self.counters[usize::from(lane)].arrive(now, state.length);
        if let Some(link) = self.draws.cyclic {
            pool.count_visit(packet, link);
        }
        if let Some(impairments) = &mut self.impairments
            && let Some(loss) = &mut impairments.ingress_loss
        {
            let stream = &impairments.streams.ingress_loss;
            let mut draw = pool.draw(stream, packet, visit(self.draws.cyclic, pool, packet));
            if loss.selector.selects(now, pool.get(packet), &mut draw)
                && !(loss.mark && Context::new(pool, drops, &self.draws).mark(packet))
            {
                return drops.push(packet, DropReason::IngressLoss);
            }
        }
        match self.mtu {
            Some(mtu) if pool.get(packet).length > mtu.bytes => self.too_long(now, packet, mtu, pool, drops),
            _ => self.enqueue(now, packet, pool, drops),
        }
    }

    /// Counts a packet that has visited too many elements already, and drops it.
    pub(crate) fn refuse(
        &mut self,
        now: Time,
        packet: PacketRef,
        lane: u8,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let state = pool.get_mut(packet);
        state.lane = lane;
        self.counters[usize::from(lane)].arrive(now, state.length);
        drops.push(packet, DropReason::Loop);
    }

    /// Handles one event that is due at `now`, which is what [`Link::next_event`] said. Packets that leave at one
    /// instant do so in the order in which they entered the delay line, then those for which a slot opens, then patience runs
    /// out, then the transmitter moves on. Returns the packet that left, if one did, and its lane.
    #[inline]
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

    /// To be called whenever the gate or a question has changed.
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

    /// Ends the transmission that is due, and puts the next packet on the wire if the wire is free and one may go. What
    /// takes no time ends at once: on a wire without a limit no packet ever waits for another.
    fn serve(&mut self, now: Time, pool: &mut Pool, drops: &mut Drops) {
        loop {
            if let Some(transmission) = &self.transmission {
                if transmission.end != now {
                    return;
                }
                let (packet, began, bits) = (transmission.packet, transmission.began, transmission.bits);
                self.freed = (now, transmission.surplus);
                self.transmission = None;
                self.sent(now, packet, began, bits, pool, drops);
            }
            self.not_before = Time::NEVER;
            if self.varies <= now {
                self.vary(now);
            }
            match self.queue.dequeue(now, &mut Context::new(pool, drops, &self.draws)) {
                Dequeue::Packet(packet) => self.transmission = Some(self.transmit(now, packet, pool)),
                Dequeue::NotBefore(at) => {
                    // What the queue waits for may be another rate, of which it is told before it is asked. And one that
                    // says "not before now" would be asked for ever.
                    let at = at.min(self.service.next_change(now));
                    self.not_before = at.max(now + Duration::from_nanos(1));
                    return;
                }
                Dequeue::Empty => return,
            }
        }
    }

    /// The transmission of a packet that goes on the wire at `now`.
    #[inline]
    fn transmit(&mut self, now: Time, packet: PacketRef, pool: &mut Pool) -> Transmission {
        let state = pool.get_mut(packet);
        let waited = now.since(state.entered);
        state.queued += waited;
        self.counters[usize::from(state.lane)].waited += waited;
        let bits = self.overhead.bits(state.length, state.link_header);

        let (mut work, mut left_over) = (Work::bits(bits), Work::default());
        if self.freed.0 == now && (waited > Duration::ZERO || self.service.keeps_surplus()) {
            let carried = self.freed.1;
            left_over = Work(carried.0.saturating_sub(work.0));
            work = Work(work.0.saturating_sub(carried.0));
        }
        let (end, surplus) = match work.0 {
            // Done by what the one before it left over, whatever the curve does from now on.
            0 if bits > 0 || left_over > Work::default() => (now, left_over),
            _ => self.predict(now, work, left_over),
        };
        Transmission { packet, since: now, work, began: now, bits, end, surplus }
    }

    /// When work that begins at `since` ends at the present service curve, and what is left over then.
    fn predict(&self, since: Time, work: Work, left_over: Work) -> (Time, Work) {
        match self.service.finish(since, work) {
            Some(finish) => {
                let surplus = Work(finish.surplus.0.saturating_add(left_over.0));
                // Never in the past, whatever a curve from elsewhere says: time must not go back.
                (finish.at.max(since), surplus)
            }
            None => (Time::NEVER, left_over),
        }
    }

    /// A packet has been sent, from `began` on: what the wire does to it, then the delay line.
    #[inline]
    fn sent(
        &mut self,
        now: Time,
        packet: PacketRef,
        began: Time,
        bits: u64,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let (lane, length) = (usize::from(pool.get(packet).lane), pool.get(packet).length);
        self.counters[lane].finish(began, now, bits);
        let visit = visit(self.draws.cyclic, pool, packet);
        self.counters[lane].sent.add(length);
        let mut twin = None;
        if let Some(impairments) = &mut self.impairments {
            let streams = &impairments.streams;
            if let Some(loss) = &mut impairments.wire_loss {
                let mut draw = pool.draw(&streams.wire_loss, packet, visit);
                if loss.selector.selects(now, pool.get(packet), &mut draw)
                    && !(loss.mark && Context::new(pool, drops, &self.draws).mark(packet))
                {
                    return drops.push(packet, DropReason::WireLoss);
                }
            }
            if let Some(corruption) = &mut impairments.corruption {
                let mut draw = pool.draw(&streams.corruption, packet, visit);
                let flips = &mut impairments.flips;
                corruption.corrupt(now, pool.get(packet), &mut draw, |bit| flips.push(bit));
                self.counters[lane].corrupted += u64::from(!flips.is_empty());
                self.counters[lane].flipped += flips.len() as u64;
                flips.drain(..).for_each(|bit| pool.flip(packet, bit));
            }
            if let Some(duplication) = &mut impairments.duplication {
                let mut draw = pool.draw(&streams.duplication, packet, visit);
                if duplication.selects(now, pool.get(packet), &mut draw) {
                    twin = pool.duplicate(packet, &streams.duplication, visit, 0);
                }
            }
        }
        self.propagate(now, packet, visit, pool, drops);
        if let Some(twin) = twin {
            self.counters[lane].duplicated.add(length);
            if pool.is_beyond_memory() {
                return drops.push(twin, DropReason::Memory);
            }
            self.propagate(now, twin, visit, pool, drops);
        }
    }

    /// Puts a packet into the delay line.
    #[inline]
    fn propagate(&mut self, now: Time, packet: PacketRef, visit: u8, pool: &mut Pool, drops: &mut Drops) {
        if self.line_limit.is_some_and(|limit| self.in_flight() >= limit) {
            return drops.push(packet, DropReason::LineFull);
        }
        if let Some(impairments) = &mut self.impairments
            && impairments.skips(now, packet, visit, pool)
        {
            self.counters[usize::from(pool.get(packet).lane)].reordered += 1;
            return self.line.push(now, packet, pool);
        }
        let mut draw = pool.draw(&self.streams.delay, packet, visit);
        let delay = match self.delay.delay(now, pool.get(packet), &mut draw) {
            Propagation::After(delay) => delay,
            Propagation::Lost => return drops.push(packet, DropReason::DelayModel),
            Propagation::Asked(feed) => return self.ask(now, packet, feed, pool),
        };
        let keeps = self.order == Order::Keep;
        if keeps && let Some(asked) = self.asked.as_mut().filter(|asked| !asked.is_empty()) {
            pool.get_mut(packet).entered = now + delay;
            return asked.wait_behind(packet);
        }
        self.put_in_line(now + delay, packet, keeps, pool);
    }

    /// Puts a packet into the delay line that is due then, or, if order is kept, when those before it are.
    #[inline(always)]
    fn put_in_line(&mut self, mut due: Time, packet: PacketRef, keeps: bool, pool: &mut Pool) {
        if keeps && due < self.last_due {
            due = self.last_due;
            self.counters[usize::from(pool.get(packet).lane)].held_back += 1;
        }
        // Also while order is not kept, in case it is from now on.
        self.last_due = self.last_due.max(due);
        self.line.push(due, packet, pool);
    }

    /// Packets in the delay line, those among them that wait for an answer or a slot.
    fn in_flight(&self) -> u64 {
        let asked = self.asked.as_ref().map_or(0, |asked| asked.len());
        self.line.len() + self.gate.as_ref().map_or(0, |gate| gate.len()) + asked
    }

    #[inline]
    fn enqueue(&mut self, now: Time, packet: PacketRef, pool: &mut Pool, drops: &mut Drops) {
        if self.varies <= now {
            self.vary(now);
        }
        self.queue.enqueue(now, packet, &mut Context::new(pool, drops, &self.draws));
        self.serve(now, pool, drops);
    }

    fn too_long(&mut self, now: Time, packet: PacketRef, mtu: Mtu, pool: &mut Pool, drops: &mut Drops) {
        let state = pool.get(packet);
        let header = u32::from(state.network_header);
        let room = mtu.bytes.saturating_sub(header) & !7;
        let end =
            state.fragment().map_or(0, |piece| u32::from(piece.offset)) + state.length.saturating_sub(header);
        match mtu.policy {
            MtuPolicy::BlackHole => drops.push(packet, DropReason::BlackHole),
            // Longer than 65,535 bytes no IPv4 packet is, and the offsets of its pieces could not be told.
            MtuPolicy::Fragment
                if state.key.network == Protocol::Ipv4 && header > 0 && room > 0 && end <= 0xffff =>
            {
                self.cut(now, packet, header, room, pool, drops);
            }
            _ => drops.push(packet, DropReason::TooLong),
        }
    }

    /// Cuts a packet into pieces of up to `room` bytes of payload, a multiple of 8, and queues them in order.
    fn cut(
        &mut self,
        now: Time,
        packet: PacketRef,
        header: u32,
        room: u32,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let state = pool.get(packet);
        let whole = state.fragment().unwrap_or(Fragment { offset: 0, more: false });
        let (payload, lane) = (state.length - header, usize::from(state.lane));
        let visit = visit(self.draws.cyclic, pool, packet);
        self.counters[lane].fragmented += 1;
        let place = |offset, more| Fragment { offset: whole.offset + offset as u16, more };
        let mut offset = 0;
        while payload - offset > room {
            // Up to 8,188 pieces of an IPv4 packet, so their numbers and offsets fit in 16 bits.
            let nth = (offset / room) as u16;
            let Some(piece) = pool.duplicate(packet, &self.streams.fragments, visit, nth) else { break };
            pool.cut(piece, offset, room, place(offset, true));
            self.counters[lane].duplicated.add(header);
            self.counters[lane].pieces += 1;
            self.enqueue_piece(now, piece, pool, drops);
            offset += room;
        }
        // The packet itself becomes the last piece: all that is left of it.
        let left = payload - offset;
        pool.cut(packet, offset, left, place(offset, whole.more));
        if left > room {
            // As many copies were made of it as can be told apart.
            return drops.push(packet, DropReason::Memory);
        }
        self.enqueue_piece(now, packet, pool, drops);
    }

    fn enqueue_piece(&mut self, now: Time, piece: PacketRef, pool: &mut Pool, drops: &mut Drops) {
        if pool.is_beyond_memory() {
            return drops.push(piece, DropReason::Memory);
        }
        self.enqueue(now, piece, pool, drops);
    }

    /// Counts a packet that was dropped here, by the link or by its queue.
    pub(crate) fn count_drop(&mut self, packet: PacketRef, reason: DropReason, pool: &Pool) {
        let state = pool.get(packet);
        self.counters[usize::from(state.lane)].drops[reason as usize].add(state.length);
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

    /// Changes the link at `now`; all events up to `now` have been handled. No packet is lost: those in the delay line
    /// keep their instants, those that wait stay, in order of arrival, even beyond a smaller bound, and what is left of
    /// a transmission goes on at the new rate.
    pub(crate) fn change(&mut self, now: Time, change: Change, pool: &mut Pool, drops: &mut Drops) {
        if self.varies <= now {
            self.vary(now);
        }
        match change {
            Change::Service(service) => {
                self.change_service(now, service);
                self.vary(now);
            }
            Change::Queue(mut queue) => {
                self.end_netem(now, pool);
                let waiting = self.queue.take_all(pool);
                queue.set_wire(now, self.wire(now));
                queue.adopt(now, waiting, &mut Context::new(pool, drops, &self.draws));
                self.queue = Waiting::Any(queue);
                self.set_bound(now);
            }
            Change::QueueBound(bound) => self.queue.set_bound(bound),
            Change::BoundSteps(steps) => self.change_bounds(now, steps),
            Change::Weight { class, weight } => {
                let changed = self.queue.set_weight(now, class, weight);
                debug_assert!(changed.is_ok(), "whoever asks for a weight knows the scheduler: {changed:?}");
            }
            Change::Overhead(overhead) => {
                self.overhead = overhead;
                self.set_wire(now);
            }
            Change::IngressLoss(loss) => self.impair(loss, |link| &mut link.ingress_loss),
            Change::WireLoss(loss) => self.impair(loss, |link| &mut link.wire_loss),
            Change::Corruption(corruption) => self.impair(corruption, |link| &mut link.corruption),
            Change::Duplication(selector) => self.impair(selector, |link| &mut link.duplication),
            Change::Delay(delay) => self.change_delay(now, delay, pool, drops),
            Change::Order(order) => self.order = order,
            Change::Reorder(reorder) => self.impair(reorder, |link| &mut link.reorder),
            Change::Slots(slots) => self.change_slots(now, slots),
            Change::Netem(netem) => self.change_netem(now, netem, pool, drops),
            Change::LineLimit(limit) => self.line_limit = limit,
            Change::Mtu(mtu) => self.mtu = mtu,
        }
        self.serve(now, pool, drops);
    }

    fn change_service(&mut self, now: Time, service: Box<dyn ServiceCurve>) {
        let before = core::mem::replace(&mut self.service, service);
        self.freed.1 = Work::default();
        let Some(mut transmission) = self.transmission.take() else { return };
        let done = before.served(transmission.since, now);
        transmission.work = Work(transmission.work.0.saturating_sub(done.0));
        transmission.since = now;
        (transmission.end, transmission.surplus) = self.predict(now, transmission.work, Work::default());
        self.transmission = Some(transmission);
    }

    /// What can be seen of the link from outside.
    pub(crate) fn view(&self) -> LinkView<'_> {
        LinkView { link: self }
    }
}

/// Which visit of this packet to this element it is, from 0.
fn visit(cyclic: Option<u32>, pool: &Pool, packet: PacketRef) -> u8 {
    cyclic.map_or(0, |link| pool.earlier_visits(packet, link))
}

/// A link, to look at.
#[derive(Clone, Copy, Debug)]
pub struct LinkView<'a> {
    link: &'a Link,
}

impl<'a> LinkView<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.link.name
    }

    /// The counters of each lane: one for a link of one direction, more for a shared medium.
    pub fn counters(&self) -> &'a [Counters] {
        &self.link.counters
    }

    /// What waits in the queue.
    pub fn backlog(&self) -> Backlog {
        self.link.queue.backlog()
    }

    /// What each class of the queue has counted, where it has classes.
    pub fn classes(&self) -> &'a [ClassCounters] {
        self.link.queue.classes()
    }

    /// The bound of the queue.
    pub fn bound(&self) -> Bound {
        self.link.queue.bound()
    }

    /// Packets in the delay line, those included that wait for an answer of a feed or for a slot.
    pub fn in_flight(&self) -> u64 {
        self.link.in_flight()
    }

    /// The feeds that the delays come from.
    pub fn feeds(&self) -> Vec<FeedView<'a>> {
        self.link.view_feeds()
    }

    /// The longest packet that it takes.
    pub fn mtu(&self) -> Option<Mtu> {
        self.link.mtu
    }

    /// Whether a packet is on the wire.
    pub fn is_transmitting(&self) -> bool {
        self.link.transmission.is_some()
    }

    /// The rate at an instant.
    pub fn rate(&self, at: Time) -> Rate {
        self.link.service.rate(at)
    }

    /// The mean propagation delay, where it is known.
    pub fn mean_delay(&self) -> Option<Duration> {
        self.link.delay.mean()
    }
}
