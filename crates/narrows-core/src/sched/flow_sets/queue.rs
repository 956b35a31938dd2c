//! Enqueue and dequeue.

use alloc::vec::Vec;

use crate::aqm::{Aqm, Judgement, Waiting};
use crate::classify::Flow;
use crate::counters::DropReason;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::queue::{Backlog, Bound, ClassCounters, Context, Dequeue, DropAt, Queue, Wire};
use crate::sched::flow_sets::FlowSets;
use crate::sched::flow_sets::made::OVERFLOW;
use crate::sched::{
    FlowId, FlowSet, FlowSetCounts, MaskedFlow, Refused, Scheduler, Selection, Waits, Weight,
};
use crate::time::Time;

impl<S: Scheduler> Queue for FlowSets<S> {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        self.tidy(now);
        let state = context.pool.get(packet);
        let (arriving, set) = (Waits { packet, length: state.length }, state.key.mark);
        if set as usize >= self.sets.len() {
            return context.drop(packet, DropReason::NoClass);
        }
        let Some(flow) = self.flow(now, set, packet, context.pool) else {
            self.counters[set as usize].arrived.add(arriving.length);
            self.counters[set as usize].dropped.add(arriving.length);
            return context.drop(packet, DropReason::NoClass);
        };
        self.count_arrived(flow, arriving.length);
        if self.loses(now, flow, packet, context) {
            self.refuse(flow, arriving, DropReason::IngressLoss, context);
        } else if !self.bound.admits(self.backlog, arriving.length) {
            self.refuse(flow, arriving, DropReason::QueueFull, context);
        } else if self.admit(now, flow, arriving, context) {
            self.join(now, flow, arriving);
            return self.drop_before(now, flow, arriving, context);
        }
        // The flow may have been created for this packet.
        self.rest(now, flow);
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        loop {
            let (scheduler, flows) = self.server.parts();
            match scheduler.select(now, flows) {
                selection @ (Selection::Flow(flow) | Selection::Ended(flow, _)) => {
                    let packet = self.take(now, flow, context);
                    self.rest(now, flow);
                    match (packet, selection) {
                        (Some(packet), Selection::Ended(_, began)) => return Dequeue::Ended(packet, began),
                        (Some(packet), _) => return Dequeue::Packet(packet),
                        (None, _) => {}
                    }
                }
                Selection::GiveUp(flow, reason) => {
                    self.drop_first(now, flow, reason, context);
                    self.rest(now, flow);
                }
                Selection::NotBefore(at) => return Dequeue::NotBefore(at),
                Selection::Empty => return Dequeue::Empty,
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Sets the bound of all flows together.
    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.bound
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        let (_, flows) = self.server.parts();
        let ids: Vec<FlowId> = flows.ids().collect();
        let mut all: Vec<PacketRef> = Vec::new();
        for flow in ids {
            all.extend(core::iter::from_fn(|| flows.pop(flow)).map(|waits| waits.packet));
        }
        self.backlog = Backlog::default();
        PacketList::by_arrival(all, pool)
    }

    fn adopt(&mut self, now: Time, mut packets: PacketList, context: &mut Context<'_>) {
        while let Some(packet) = packets.pop_front(context.pool) {
            let state = context.pool.get(packet);
            let (waits, set) = (Waits { packet, length: state.length }, state.key.mark);
            let flow = if (set as usize) < self.sets.len() {
                self.flow(now, set, packet, context.pool)
            } else {
                None
            };
            let Some(flow) = flow else {
                context.drop(packet, DropReason::NoClass);
                continue;
            };
            self.count_arrived(flow, waits.length);
            self.join(now, flow, waits);
        }
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        self.wire = Some(wire);
        let (scheduler, _) = self.server.parts();
        scheduler.set_wire(now, wire);
        if self.sets.iter().any(|set| set.config.policy.is_some()) {
            self.rows
                .iter_mut()
                .filter_map(|row| row.policy.as_mut())
                .for_each(|policy| policy.set_wire(now, wire));
        }
    }

    /// By set; counts flows that have been removed, too.
    fn classes(&self) -> &[ClassCounters] {
        &self.counters
    }

    /// Changes the weight of each flow of a set, present and future.
    fn set_weight(&mut self, now: Time, class: usize, weight: Weight) -> Result<(), Refused> {
        let set = self.sets.get(class).ok_or(Refused::NoClass)?;
        let before = set.config.flow.weight;
        let flows = self.flows_of(class as u32);
        for (done, &flow) in flows.iter().enumerate() {
            if let Err(refused) = self.server.set_weight(now, flow, weight) {
                for &flow in &flows[..done] {
                    // They had this weight before, and every sum on the way back is below one that was accepted.
                    let _had = self.server.set_weight(now, flow, before);
                }
                return Err(refused);
            }
        }
        self.sets[class].config.flow.weight = weight;
        Ok(())
    }

    fn masked_flows(&self, now: Time) -> Vec<MaskedFlow> {
        let mut all: Vec<MaskedFlow> = self
            .known
            .iter()
            .filter(|&(number, _)| !self.is_gone(now, number))
            .map(|(number, &flow)| self.view(number, flow))
            .collect();
        all.sort_unstable_by_key(|flow| (flow.set, flow.flow));
        all
    }

    fn flow_sets(&self) -> Vec<FlowSetCounts> {
        self.sets.iter().map(|set| set.counts).collect()
    }
}

impl<S: Scheduler> FlowSets<S> {
    fn view(&self, number: u32, flow: Flow) -> MaskedFlow {
        let row = &self.rows[number as usize];
        let set = &self.sets[row.set as usize];
        // The flow's key has the set's index here, for lookup.
        let queue = if set.config.mask.queue { flow.queue } else { 0 };
        MaskedFlow {
            set: row.set,
            number: set.config.number,
            flow: (flow.flow_label != OVERFLOW).then_some(Flow { queue, ..flow }),
            arrived: row.arrived,
            dropped: row.dropped,
            backlog: self.backlog_of(FlowId::new(number)),
            idle_since: self.known.idle_since(number),
        }
    }

    fn count_arrived(&mut self, flow: FlowId, length: u32) {
        let row = &mut self.rows[flow.number() as usize];
        row.arrived.add(length);
        self.counters[row.set as usize].arrived.add(length);
    }

    fn count_dropped(&mut self, flow: FlowId, length: u32) {
        let row = &mut self.rows[flow.number() as usize];
        row.dropped.add(length);
        self.counters[row.set as usize].dropped.add(length);
    }

    /// Counts and drops a packet that is in no flow.
    fn refuse(&mut self, flow: FlowId, packet: Waits, reason: DropReason, context: &mut Context<'_>) {
        self.count_dropped(flow, packet.length);
        context.drop(packet.packet, reason);
    }

    /// Whether a packet is lost before it reaches its flow.
    fn loses(&mut self, now: Time, flow: FlowId, packet: PacketRef, context: &mut Context<'_>) -> bool {
        let place = self.rows[flow.number() as usize].set as usize;
        let set = &mut self.sets[place];
        let Some(loss) = &mut set.config.loss else { return false };
        let mut draw = context.draw(&set.losses, packet);
        if !loss.selector.selects(now, context.pool.get(packet), &mut draw) {
            return false;
        }
        let before = context.marks();
        let marked = loss.mark && context.mark(packet);
        self.counters[place].marked += context.marks() - before;
        !marked
    }

    /// Whether the flow's policy and bound accept a packet.
    fn admit(&mut self, now: Time, flow: FlowId, arriving: Waits, context: &mut Context<'_>) -> bool {
        let waiting = self.waiting(flow, context.pool);
        let goes_on = self.judge(flow, arriving, context, |policy, context| {
            policy.arrive(now, arriving.packet, waiting, context)
        });
        goes_on && self.fits(flow, arriving, context)
    }

    /// Whether the flow's bound accepts a packet. Drops the packet if not.
    fn fits(&mut self, flow: FlowId, arriving: Waits, context: &mut Context<'_>) -> bool {
        let FlowSet { bound, drop_at, .. } = self.config(flow);
        let before_it = match drop_at {
            DropAt::Tail => self.backlog_of(flow),
            DropAt::Head => Backlog::default(),
        };
        let fits = bound.admits(before_it, arriving.length);
        if !fits {
            self.refuse(flow, arriving, DropReason::QueueFull, context);
        }
        fits
    }

    /// Head drop: after a packet has joined its flow, drops packets before it until it fits.
    fn drop_before(&mut self, now: Time, flow: FlowId, joined: Waits, context: &mut Context<'_>) {
        let FlowSet { bound, drop_at: DropAt::Head, .. } = *self.config(flow) else { return };
        loop {
            let mut before_it = self.backlog_of(flow);
            before_it.remove(joined.length);
            if bound.admits(before_it, joined.length) {
                return;
            }
            self.drop_first(now, flow, DropReason::QueueFull, context);
        }
    }

    /// Lets the flow's policy, if any, judge a packet that is in no flow. Returns whether it passes.
    fn judge(
        &mut self,
        flow: FlowId,
        packet: Waits,
        context: &mut Context<'_>,
        judge: impl FnOnce(&mut dyn Aqm, &mut Context<'_>) -> Judgement,
    ) -> bool {
        let row = &mut self.rows[flow.number() as usize];
        let Some(policy) = &mut row.policy else { return true };
        let before = context.marks();
        let goes_on = judge(&mut **policy, context).carry_out(packet.packet, context);
        self.counters[row.set as usize].marked += context.marks() - before;
        if !goes_on {
            self.count_dropped(flow, packet.length);
        }
        goes_on
    }

    fn join(&mut self, now: Time, flow: FlowId, joining: Waits) {
        if self.backlog.packets == 0 {
            self.busy_since = now;
        }
        self.backlog.add(joining.length);
        self.server.enqueue(now, flow, joining.packet, joining.length);
    }

    fn drop_first(&mut self, now: Time, flow: FlowId, reason: DropReason, context: &mut Context<'_>) {
        if let Some(dropped) = self.server.drop_first(now, flow) {
            self.backlog.remove(dropped.length);
            self.refuse(flow, dropped, reason, context);
        }
    }

    /// Dequeues what the selected flow sends. `None` if its policy dropped all its packets.
    fn take(&mut self, now: Time, flow: FlowId, context: &mut Context<'_>) -> Option<PacketRef> {
        loop {
            let waiting = self.waiting(flow, context.pool);
            let (scheduler, flows) = self.server.parts();
            let Some(waits) = flows.pop(flow) else {
                scheduler.head_dropped(now, flow, flows);
                return None;
            };
            self.backlog.remove(waits.length);
            let goes_on = self.judge(flow, waits, context, |policy, context| {
                policy.depart(now, waits.packet, waiting, context)
            });
            if goes_on {
                self.send(now, flow, waits, context.pool);
                return Some(waits.packet);
            }
        }
    }

    fn send(&mut self, now: Time, flow: FlowId, waits: Waits, pool: &Pool) {
        let counters = &mut self.counters[self.rows[flow.number() as usize].set as usize];
        let waited = now.since(pool.get(waits.packet).entered);
        counters.sent.add(waits.length);
        counters.waited += waited;
        counters.longest_wait = counters.longest_wait.max(waited);
        let (scheduler, flows) = self.server.parts();
        scheduler.sent(now, flow, waits.length, flows);
    }

    fn config(&self, flow: FlowId) -> &FlowSet {
        &self.sets[self.rows[flow.number() as usize].set as usize].config
    }

    fn backlog_of(&self, flow: FlowId) -> Backlog {
        let flows = self.server.flows();
        Backlog { packets: flows.packets(flow).into(), bytes: flows.bytes(flow) }
    }

    /// The input of a policy. It costs a look at a packet, so it is computed only if there is a policy.
    fn waiting(&self, flow: FlowId, pool: &Pool) -> Waiting {
        if self.rows[flow.number() as usize].policy.is_none() {
            return Waiting::default();
        }
        let oldest = self.server.flows().first(flow).map(|first| pool.get(first.packet).entered);
        Waiting { backlog: self.backlog_of(flow), oldest }
    }
}
