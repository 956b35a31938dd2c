//! Finds and creates flows, and removes those that have been idle for long.

use alloc::vec::Vec;

use crate::classify::{Flow, Known};
use crate::pool::{PacketRef, Pool};
use crate::sched::flow_sets::{FlowSets, Row, Set};
use crate::sched::{FlowId, PolicyPerFlow, Refused, Scheduler};
use crate::time::Time;

/// A flow label that no packet has. It denotes the shared flow.
pub(super) const OVERFLOW: u32 = u32::MAX;

/// How many expired flows an arriving packet handles. A packet creates at most one flow, and each removal may be
/// preceded by one flow that stays for another period. The rest catches up.
const EXPIRIES: usize = 4;

/// This many flows may always stay beyond their idle period; more, up to half of all flows.
const FEW: u32 = 64;

impl<S: Scheduler> FlowSets<S> {
    /// Adds a flow to the set given by its queue number. The flow is not idle.
    pub(super) fn add_flow(&mut self, now: Time, flow: Flow) -> Result<FlowId, Refused> {
        let set = &mut self.sets[flow.queue as usize];
        let id = self.server.join(set.config.flow)?;
        let Some(number) = self.known.insert(flow) else {
            self.server.leave(id);
            return Err(Refused::Flows { most: Known::MOST.into() });
        };
        debug_assert_eq!(number, id.number(), "both give out the number that they got back last");
        let mut policy = set.config.policy.as_ref().map(PolicyPerFlow::make);
        if let (Some(policy), Some(wire)) = (&mut policy, self.wire) {
            policy.set_wire(now, wire);
        }
        let row = Row { policy, set: flow.queue, ..Row::default() };
        match self.rows.get_mut(number as usize) {
            Some(free) => *free = row,
            None => {
                if self.rows.len() == self.rows.capacity() {
                    self.rows.reserve_exact((self.rows.len() / 8).max(4));
                }
                self.rows.push(row);
            }
        }
        set.flows += u32::from(flow.flow_label != OVERFLOW);
        set.counts.made += 1;
        Ok(id)
    }

    /// Removes a flow whose queue is empty.
    pub(super) fn remove_flow(&mut self, id: FlowId) {
        let flow = *self.known.flow(id.number());
        let left = self.server.leave(id);
        debug_assert!(left, "only a flow in which nothing waits is taken away");
        self.known.remove(id.number());
        self.stay(id.number(), false);
        self.rows[id.number() as usize].policy = None;
        self.sets[flow.queue as usize].flows -= u32::from(flow.flow_label != OVERFLOW);
    }

    /// Flows that have been idle since this instant or earlier are expired at `now`.
    pub(super) fn expiry(&self, now: Time) -> Option<Time> {
        now.nanos().checked_sub(self.idle.nanos()).map(Time::from_nanos)
    }

    /// Whether an idle flow must stay. Debts from before the current busy period do not count.
    pub(super) fn must_stay(&self, number: u32) -> bool {
        let idle = self.known.idle_since(number);
        self.backlog.packets > 0
            && idle.is_some_and(|since| since >= self.busy_since)
            && (self.rows[number as usize].stays || self.staying < (self.known.len() / 2).max(FEW))
            && self.server.owes(FlowId::new(number))
    }

    /// Records whether an idle flow stays beyond its idle period.
    fn stay(&mut self, number: u32, stays: bool) {
        let before = core::mem::replace(&mut self.rows[number as usize].stays, stays);
        self.staying = self.staying + u32::from(stays) - u32::from(before);
    }

    /// Whether a flow is expired: a packet that arrives now would not find it.
    pub(super) fn is_gone(&self, now: Time, number: u32) -> bool {
        let since = self.known.idle_since(number);
        since.is_some_and(|since| self.expiry(now).is_some_and(|before| since <= before))
            && !self.must_stay(number)
    }

    /// Removes an expired flow, or gives it another idle period.
    fn expire(&mut self, now: Time, number: u32) {
        if self.must_stay(number) {
            self.stay(number, true);
            return self.known.idle(number, now);
        }
        let set = self.known.flow(number).queue;
        self.sets[set as usize].counts.expired += 1;
        self.remove_flow(FlowId::new(number));
    }

    /// Removes a few expired flows.
    #[inline]
    pub(super) fn tidy(&mut self, now: Time) {
        let Some(before) = self.expiry(now) else { return };
        for _ in 0..EXPIRIES {
            match self.known.expired(before) {
                Some(number) => self.expire(now, number),
                None => return,
            }
        }
    }

    /// The flow of a packet of a set, created if necessary. `None` if the scheduler does not accept it.
    #[inline]
    pub(super) fn flow(&mut self, now: Time, set: u32, packet: PacketRef, pool: &Pool) -> Option<FlowId> {
        let Set { config, fixed, .. } = &self.sets[set as usize];
        if fixed.is_some() {
            return *fixed;
        }
        let flow =
            Flow { queue: set, ..config.mask.flow(&pool.get(packet).seen_key(), pool.flow_label(packet)) };
        match self.find(now, &flow) {
            Some(id) => Some(id),
            None => self.new_flow(now, flow),
        }
    }

    /// Finds an existing flow. It is no longer idle.
    #[inline]
    fn find(&mut self, now: Time, flow: &Flow) -> Option<FlowId> {
        let number = self.known.find(flow)?;
        if self.is_gone(now, number) {
            self.expire(now, number);
            return None;
        }
        self.stay(number, false);
        self.known.busy(number);
        Some(FlowId::new(number))
    }

    #[cold]
    fn new_flow(&mut self, now: Time, flow: Flow) -> Option<FlowId> {
        let set = flow.queue as usize;
        // Expired flows that have not been removed yet do not count. Each comes up once, and is then removed or given
        // another period.
        while self.is_full(set)
            && let Some(expired) = self.expiry(now).and_then(|before| self.known.expired(before))
        {
            self.expire(now, expired);
        }
        if !self.is_full(set)
            && let Ok(id) = self.add_flow(now, flow)
        {
            return Some(id);
        }
        self.sets[set].counts.overflowed += 1;
        let shared = Flow { queue: flow.queue, flow_label: OVERFLOW, ..Flow::default() };
        self.find(now, &shared).or_else(|| self.add_flow(now, shared).ok())
    }

    fn is_full(&self, set: usize) -> bool {
        self.sets[set].flows >= self.sets[set].config.most
    }

    /// Marks a flow as idle if its queue is empty, unless the flow is permanent.
    #[inline]
    pub(super) fn rest(&mut self, now: Time, flow: FlowId) {
        let set = self.rows[flow.number() as usize].set;
        if self.server.flows().packets(flow) == 0 && self.sets[set as usize].fixed.is_none() {
            self.known.idle(flow.number(), now);
        }
    }

    /// The flows of a set, in order of their numbers.
    pub(super) fn flows_of(&self, set: u32) -> Vec<FlowId> {
        let of_set = self.known.iter().filter(|(_, flow)| flow.queue == set);
        of_set.map(|(number, _)| FlowId::new(number)).collect()
    }
}
