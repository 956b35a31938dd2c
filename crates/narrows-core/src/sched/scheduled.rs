//! A link's queue with several classes or flows, served by a scheduler.
//!
//! On arrival a packet is classified. The queue management of its class judges it, and then the bounds of the class
//! and of the whole queue must admit it. The scheduler is told about the backlog and decides which class sends next.

mod nested;
mod parked;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::aqm::{Aqm, Judgement, Waiting};
use crate::classify::Classifier;
use crate::counters::DropReason;
use crate::model::Feed;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::queue::{Backlog, Bound, ClassCounters, Context, Dequeue, DropAt, FifoPlan, Queue, Wire};
use crate::sched::longest::Longest;
use crate::sched::{
    ClassSettings, ClassState, ClassesPlan, FlowConfig, FlowId, Refused, Scheduler, Selection, Server, Waits,
    Weight,
};
use crate::time::Time;
use parked::Parked;

/// A class of packets with its own queue.
#[derive(Debug)]
pub struct Class {
    /// The scheduler's parameters.
    pub flow: FlowConfig,
    /// The maximum backlog of this class.
    pub bound: Bound,
    /// Which packet to drop when the bound is reached.
    pub drop_at: DropAt,
    /// How the packets of the class are stored.
    pub store: Store,
}

/// How the packets of a class or flow are stored.
#[derive(Debug)]
pub enum Store {
    /// In a FIFO.
    Plain,
    /// In a FIFO with queue management.
    Managed(Box<dyn Aqm>),
    /// In a nested queue. Its own bound applies instead of the class's.
    ///
    /// The nested queue decides which of its packets is sent first. A scheduler that asks for the length of the next
    /// packet gets the length of the packet that has waited longest. While the nested queue answers
    /// [`Dequeue::NotBefore`], the scheduler sees the class as idle and the other classes use the transmitter. The
    /// class keeps its packets during that time, even when the whole queue is over its bound.
    Queue(Box<dyn Queue>),
}

/// What to do when the bound of the whole queue is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// Drop the arriving packet.
    Arriving,
    /// Let the scheduler decide whether to accept the arriving packet ([`Scheduler::refuses`]), by the bound or by
    /// another rule.
    Scheduler,
    /// Drop packets of the flow with the most bytes: half of its packets, but no more than `batch`. Only an arrival
    /// triggers this. If the bound is reduced, or packets are taken over from another queue, the excess is dropped at
    /// the next arrival.
    Longest {
        /// Maximum number of packets to drop at once, at least 1. RFC 8290 uses 64.
        batch: u32,
        /// Whether to drop at the head or at the tail. A class with a nested queue decides itself.
        drop_at: DropAt,
    },
}

/// Classes or flows served by a scheduler, as a link's queue.
#[derive(Debug)]
pub struct Scheduled<S: Scheduler> {
    server: Server<S>,
    classifier: Classifier,
    stores: Vec<Store>,
    /// Bounds and counters of each class. Empty for flows, but for those with bounds of their own.
    bounds: Vec<(Bound, DropAt)>,
    counters: Vec<ClassCounters>,
    backlog: Backlog,
    bound: Bound,
    overload: Overload,
    /// Set from the first overload on, if the longest flow pays for it.
    longest: Option<Longest>,
    /// Classes whose nested queues have nothing to send for a while. Set once there was one.
    parked: Option<Box<Parked>>,
}

impl<S: Scheduler> Scheduled<S> {
    /// A queue without classes. `bound` applies to all classes together. The classifier may return only numbers of
    /// classes or flows that will be added, counted from 0.
    pub fn new(scheduler: S, classifier: Classifier, bound: Bound, overload: Overload) -> Self {
        let mut server = Server::new(scheduler);
        server.set_bound(bound);
        Self {
            server,
            classifier,
            stores: Vec::new(),
            bounds: Vec::new(),
            counters: Vec::new(),
            backlog: Backlog::default(),
            bound,
            overload,
            longest: None,
            parked: None,
        }
    }

    /// Adds a class, which gets the next number.
    ///
    /// # Errors
    /// If the scheduler does not accept it.
    pub fn add_class(&mut self, class: Class) -> Result<(), Refused> {
        self.add_flow(class.flow, class.store)?;
        self.bounds.push((class.bound, class.drop_at));
        self.counters.push(ClassCounters::default());
        Ok(())
    }

    /// Adds a flow without its own bound and counters. It gets the next number. Do not mix flows and classes.
    ///
    /// # Errors
    /// If the scheduler does not accept it.
    pub fn add_flow(&mut self, flow: FlowConfig, store: Store) -> Result<(), Refused> {
        let id = self.server.join(flow)?;
        debug_assert_eq!(id.number() as usize, self.stores.len());
        self.stores.push(store);
        Ok(())
    }

    /// Like [`Self::add_flow`], with a bound of its own. Add all flows with bounds, or none.
    ///
    /// # Errors
    /// If the scheduler does not accept it.
    pub fn add_bounded_flow(
        &mut self,
        flow: FlowConfig,
        store: Store,
        bound: Bound,
        drop_at: DropAt,
    ) -> Result<(), Refused> {
        self.add_flow(flow, store)?;
        self.bounds.push((bound, drop_at));
        Ok(())
    }

    fn count(&mut self, flow: FlowId) -> Option<&mut ClassCounters> {
        self.counters.get_mut(flow.number() as usize)
    }

    /// Whether the queue management of the class and the class's bound accept a packet.
    fn admit(&mut self, now: Time, flow: FlowId, arriving: Waits, context: &mut Context<'_>) -> bool {
        let waiting = self.waiting(flow, context.pool);
        if let Store::Managed(policy) = &mut self.stores[flow.number() as usize] {
            let judgement = policy.arrive(now, arriving.packet, waiting, context);
            if !self.carry_out(judgement, flow, arriving, context) {
                return false;
            }
        }
        let Some(&(bound, drop_at)) = self.bounds.get(flow.number() as usize) else { return true };
        let before_it = match drop_at {
            DropAt::Tail => self.class_backlog(flow),
            DropAt::Head => Backlog::default(),
        };
        let fits = bound.admits(before_it, arriving.length);
        if !fits {
            self.refuse(flow, arriving, DropReason::QueueFull, context);
        }
        fits
    }

    /// Head drop: after a packet has joined its class, drops packets before it until it fits. If they were dropped
    /// first, the flow could become idle in between and lose its turn again and again.
    fn drop_before(&mut self, now: Time, flow: FlowId, joined: Waits, context: &mut Context<'_>) {
        let Some(&(bound, DropAt::Head)) = self.bounds.get(flow.number() as usize) else { return };
        loop {
            let mut before_it = self.class_backlog(flow);
            before_it.remove(joined.length);
            if bound.admits(before_it, joined.length) {
                return;
            }
            self.drop_first(now, flow, DropReason::QueueFull, context);
        }
    }

    /// Drops a packet that has not joined its class.
    fn refuse(&mut self, flow: FlowId, arriving: Waits, reason: DropReason, context: &mut Context<'_>) {
        if let Some(counters) = self.count(flow) {
            counters.dropped.add(arriving.length);
        }
        context.drop(arriving.packet, reason);
    }

    /// Marks or drops a packet that is in no list. Returns whether it passes.
    fn carry_out(
        &mut self,
        judgement: Judgement,
        flow: FlowId,
        waits: Waits,
        context: &mut Context<'_>,
    ) -> bool {
        let before = context.marks();
        let goes_on = judgement.carry_out(waits.packet, context);
        if let Some(counters) = self.count(flow) {
            counters.marked += context.marks() - before;
            if !goes_on {
                counters.dropped.add(waits.length);
            }
        }
        goes_on
    }

    /// Drops the first packet of a class. If the nested queue answers "not before", returns that instant and drops
    /// nothing.
    fn drop_first(
        &mut self,
        now: Time,
        flow: FlowId,
        reason: DropReason,
        context: &mut Context<'_>,
    ) -> Option<Time> {
        if let Store::Queue(_) = self.stores[flow.number() as usize] {
            // The nested queue decides which packet is dropped.
            return self.drop_nested(now, flow, reason, context);
        }
        if let Some(dropped) = self.server.drop_first(now, flow) {
            self.account(flow, dropped, reason, context);
        }
        None
    }

    /// Counts and drops a packet that has been removed from its flow.
    fn account(&mut self, flow: FlowId, dropped: Waits, reason: DropReason, context: &mut Context<'_>) {
        self.backlog.remove(dropped.length);
        if let Some(counters) = self.count(flow) {
            counters.dropped.add(dropped.length);
        }
        context.drop(dropped.packet, reason);
    }

    /// Drops a packet of the longest flow. If a nested queue answers "not before", returns that instant and drops
    /// nothing.
    fn drop_of_longest(
        &mut self,
        now: Time,
        flow: FlowId,
        drop_at: DropAt,
        context: &mut Context<'_>,
    ) -> Option<Time> {
        if drop_at == DropAt::Head || matches!(self.stores[flow.number() as usize], Store::Queue(_)) {
            return self.drop_first(now, flow, DropReason::QueueFull, context);
        }
        if let Some(dropped) = self.server.drop_last(now, flow) {
            self.account(flow, dropped, DropReason::QueueFull, context);
        }
        None
    }

    /// Appends a packet to a flow. It waits from now on.
    fn join(&mut self, now: Time, flow: FlowId, joining: Waits) {
        self.backlog.add(joining.length);
        self.server.enqueue(now, flow, joining.packet, joining.length);
        if let Some(longest) = &mut self.longest {
            longest.grown(flow, self.server.flows());
        }
    }

    /// Makes room after the bound of the whole queue was exceeded. Returns whether it could.
    fn relieve(&mut self, now: Time, batch: u32, drop_at: DropAt, context: &mut Context<'_>) -> bool {
        let flows = self.server.flows();
        let longest = self.longest.get_or_insert_with(|| Longest::of(flows)).find(flows);
        let Some(longest) = longest else { return false };
        if self.has_parked_more(self.server.flows().bytes(longest)) {
            return false;
        }
        let half = self.server.flows().packets(longest).div_ceil(2);
        let first = self.drop_of_longest(now, longest, drop_at, context);
        for _ in 1..half.min(batch) {
            self.drop_of_longest(now, longest, drop_at, context);
        }
        first.is_none()
    }

    fn is_beyond_bound(&self) -> bool {
        match self.bound {
            Bound::Packets(most) => self.backlog.packets > most,
            Bound::Bytes(most) => self.backlog.bytes > most.get(),
        }
    }

    /// The backlog of one class, as its bound measures it.
    fn class_backlog(&self, flow: FlowId) -> Backlog {
        let flows = self.server.flows();
        Backlog { packets: flows.packets(flow).into(), bytes: flows.bytes(flow) }
    }

    /// The input of a policy. It costs a look at a packet, so it is computed only if there is a policy.
    fn waiting(&self, flow: FlowId, pool: &Pool) -> Waiting {
        match self.stores[flow.number() as usize] {
            Store::Managed(_) => {
                let oldest = self.server.flows().first(flow).map(|first| pool.get(first.packet).entered);
                Waiting { backlog: self.class_backlog(flow), oldest }
            }
            _ => Waiting::default(),
        }
    }

    /// Dequeues what the selected flow sends, in a transmission that began at `began`. `None` if queue
    /// management dropped all its packets.
    fn take(&mut self, now: Time, flow: FlowId, began: Time, context: &mut Context<'_>) -> Option<PacketRef> {
        match self.stores[flow.number() as usize] {
            Store::Plain => {}
            Store::Managed(_) => {}
            Store::Queue(_) => return self.take_nested(now, flow, began, context),
        }
        loop {
            let waiting = self.waiting(flow, context.pool);
            let (scheduler, flows) = self.server.parts();
            let Some(waits) = flows.pop(flow) else {
                scheduler.head_dropped(now, flow, flows);
                return None;
            };
            self.backlog.remove(waits.length);
            let judgement = match &mut self.stores[flow.number() as usize] {
                Store::Managed(policy) => policy.depart(now, waits.packet, waiting, context),
                _ => Judgement::Pass,
            };
            if self.carry_out(judgement, flow, waits, context) {
                self.send(now, flow, waits, began, context.pool);
                return Some(waits.packet);
            }
        }
    }

    fn send(&mut self, now: Time, flow: FlowId, waits: Waits, began: Time, pool: &Pool) {
        if let Some(counters) = self.counters.get_mut(flow.number() as usize) {
            let waited = began.since(pool.get(waits.packet).entered);
            counters.sent.add(waits.length);
            counters.waited += waited;
            counters.longest_wait = counters.longest_wait.max(waited);
        }
        let (scheduler, flows) = self.server.parts();
        scheduler.sent(now, flow, waits.length, flows);
    }
}

impl Backlog {
    pub(super) fn add(&mut self, length: u32) {
        self.packets += 1;
        self.bytes += u64::from(length);
    }

    pub(super) fn remove(&mut self, length: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(length);
    }
}

impl<S: Scheduler> Queue for Scheduled<S> {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        let state = context.pool.get(packet);
        let arriving = Waits { packet, length: state.length };
        let Some(class) = self.classifier.class(packet, context.pool) else {
            return context.drop(packet, DropReason::NoClass);
        };
        let flow = FlowId::new(class);
        if let Some(counters) = self.count(flow) {
            counters.arrived.add(arriving.length);
        }
        if let Some(reason) = self.server.scheduler().never_sends(arriving.length) {
            return self.refuse(flow, arriving, reason, context);
        }
        let refusal = match self.overload {
            Overload::Arriving => {
                (!self.bound.admits(self.backlog, arriving.length)).then_some(DropReason::QueueFull)
            }
            Overload::Scheduler => self.server.refuses(now, arriving.length),
            Overload::Longest { .. } => None,
        };
        if let Some(reason) = refusal {
            return self.refuse(flow, arriving, reason, context);
        }
        if let Store::Queue(_) = self.stores[class as usize] {
            self.enqueue_nested(now, flow, arriving, context);
        } else if self.admit(now, flow, arriving, context) {
            self.join(now, flow, arriving);
            self.drop_before(now, flow, arriving, context);
        }
        if let Overload::Longest { batch, drop_at } = self.overload {
            while self.is_beyond_bound() && self.relieve(now, batch, drop_at, context) {}
        }
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        if self.parked.is_some() {
            self.unpark_due(now);
        }
        loop {
            let (scheduler, flows) = self.server.parts();
            match scheduler.select(now, flows) {
                Selection::Flow(flow) => {
                    if let Some(packet) = self.take(now, flow, now, context) {
                        return Dequeue::Packet(packet);
                    }
                }
                Selection::Ended(flow, began) => {
                    if let Some(packet) = self.take(now, flow, began, context) {
                        return Dequeue::Ended(packet, began);
                    }
                }
                Selection::GiveUp(flow, reason) => {
                    if let Some(at) = self.drop_first(now, flow, reason, context) {
                        self.park(now, flow, at);
                    }
                }
                Selection::NotBefore(at) => {
                    return Dequeue::NotBefore(self.next_parked().map_or(at, |(other, _)| at.min(other)));
                }
                Selection::Empty => {
                    return self.next_parked().map_or(Dequeue::Empty, |(at, _)| Dequeue::NotBefore(at));
                }
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
        self.server.set_bound(bound);
    }

    fn bound(&self) -> Bound {
        self.bound
    }

    fn plan(&self) -> Option<ClassesPlan> {
        let has_classes = self.overload == Overload::Arriving && self.bounds.len() == self.stores.len();
        let scheduler = self.server.scheduler().plan(self.server.flows()).filter(|_| has_classes)?;
        let class = |(&(bound, drop_at), store): (&(Bound, DropAt), &Store)| match store {
            Store::Plain => FifoPlan::new(bound, drop_at, None),
            Store::Managed(policy) => FifoPlan::new(bound, drop_at, Some(&**policy)),
            Store::Queue(_) => None,
        };
        let classes = self.bounds.iter().zip(&self.stores).map(class).collect::<Option<_>>()?;
        Some(ClassesPlan { scheduler, classifier: self.classifier.clone(), classes, bound: self.bound })
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        self.unpark_untold();
        let mut all: Vec<PacketRef> = Vec::new();
        for number in 0..self.stores.len() {
            let flow = FlowId::new(number as u32);
            let inside = self.class_backlog(flow);
            let (_, flows) = self.server.parts();
            if let Store::Queue(queue) = &mut self.stores[number] {
                flows.discard(flow, inside);
                let mut inside = queue.take_all(pool);
                all.extend(core::iter::from_fn(|| inside.pop_front(pool)));
            } else {
                all.extend(core::iter::from_fn(|| flows.pop(flow)).map(|waits| waits.packet));
            }
        }
        self.backlog = Backlog::default();
        PacketList::by_arrival(all, pool)
    }

    fn adopt(&mut self, now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        let mut nested: Vec<(FlowId, PacketList)> = Vec::new();
        while let Some(packet) = packets.pop_front(context.pool) {
            let state = context.pool.get(packet);
            let waits = Waits { packet, length: state.length };
            let Some(class) = self.classifier.class(packet, context.pool) else {
                context.drop(packet, DropReason::NoClass);
                continue;
            };
            let flow = FlowId::new(class);
            if let Some(counters) = self.count(flow) {
                counters.arrived.add(waits.length);
            }
            if let Some(reason) = self.server.scheduler().never_sends(waits.length) {
                self.refuse(flow, waits, reason, context);
                continue;
            }
            if let Store::Queue(_) = self.stores[class as usize] {
                self.unpark(now, flow);
                match nested.iter_mut().find(|(of, _)| *of == flow) {
                    Some((_, list)) => list.push_back(packet, context.pool),
                    None => {
                        let mut list = PacketList::default();
                        list.push_back(packet, context.pool);
                        nested.push((flow, list));
                    }
                }
            }
            let since = context.pool.get(packet).entered;
            self.backlog.add(waits.length);
            self.server.take_over(now, flow, waits, since);
            if let Some(longest) = &mut self.longest {
                longest.grown(flow, self.server.flows());
            }
        }
        for (flow, list) in nested {
            // No bound applies, but the nested queue may have no class for a packet.
            self.adopt_nested(now, flow, list, context);
        }
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        let (scheduler, _) = self.server.parts();
        scheduler.set_wire(now, wire);
        // The instants for which they wait may change.
        self.unpark_all(now);
        for store in &mut self.stores {
            match store {
                Store::Plain => {}
                Store::Managed(policy) => policy.set_wire(now, wire),
                Store::Queue(queue) => queue.set_wire(now, wire),
            }
        }
    }

    fn classes(&self) -> &[ClassCounters] {
        &self.counters
    }

    fn class_states(&self, now: Time) -> Vec<ClassState> {
        self.server.states(now)
    }

    fn looks_at_headers(&self) -> bool {
        let nested = |store: &Store| matches!(store, Store::Queue(queue) if queue.looks_at_headers());
        self.classifier.looks_at_headers() || self.stores.iter().any(nested)
    }

    fn looks_at_tcp_options(&self) -> bool {
        self.stores.iter().any(|store| matches!(store, Store::Queue(queue) if queue.looks_at_tcp_options()))
    }

    fn each_feed(&mut self, visit: &mut dyn FnMut(&mut Feed)) {
        for store in &mut self.stores {
            if let Store::Queue(queue) = store {
                queue.each_feed(visit);
            }
        }
    }

    fn view_feeds<'a>(&'a self, visit: &mut dyn FnMut(&'a Feed)) {
        for store in &self.stores {
            if let Store::Queue(queue) = store {
                queue.view_feeds(visit);
            }
        }
    }

    fn set_weight(&mut self, now: Time, class: usize, weight: Weight) -> Result<(), Refused> {
        if class >= self.stores.len() {
            return Err(Refused::NoClass);
        }
        self.server.set_weight(now, FlowId::new(class as u32), weight)
    }

    fn set_class(&mut self, now: Time, class: usize, settings: ClassSettings) -> Result<(), Refused> {
        if class >= self.stores.len() {
            return Err(Refused::NoClass);
        }
        self.server.set_class(now, FlowId::new(class as u32), settings)
    }

    fn set_classifier(&mut self, classifier: Classifier) -> Result<(), Refused> {
        if classifier.classes() > self.counters.len() {
            return Err(Refused::NoClass);
        }
        self.classifier = classifier;
        Ok(())
    }
}
