//! A FIFO around a policy, for tests that compare a policy with a plain model of its source.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::aqm::{Aqm, Judgement, Waiting};
use crate::packet::FlowKey;
use crate::pool::PacketRef;
use crate::queue::{Backlog, Stand};
use crate::random::Seed;
use crate::time::Time;

/// What happened to a packet, identified by its number among all arrivals, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Dropped(u64),
    /// Its number, and whether it was marked here.
    Sent(u64, bool),
}

/// The FIFO.
pub(crate) struct Managed<P> {
    pub(crate) policy: P,
    stand: Stand,
    waiting: VecDeque<PacketRef>,
    bytes: u64,
    /// The first uniform draw for the last arrival.
    pub(crate) uniform: f64,
}

impl<P: Aqm> Managed<P> {
    pub(crate) fn new(policy: P) -> Self {
        Self { policy, stand: Stand::new(Seed(7)), waiting: VecDeque::new(), bytes: 0, uniform: 0.0 }
    }

    pub(crate) fn waiting(&self) -> Waiting {
        Waiting {
            backlog: Backlog { packets: self.waiting.len() as u64, bytes: self.bytes },
            oldest: self.waiting.front().map(|&p| self.stand.pool().get(p).entered),
        }
    }

    /// Enqueues a packet. Returns how it was judged.
    pub(crate) fn enqueue(&mut self, now: Time, length: u32, ecn: u8) -> Judgement {
        let waiting = self.waiting();
        let key = FlowKey { traffic_class: ecn, ..FlowKey::default() };
        let packet = self.stand.insert(now, key, length);
        self.uniform = self.stand.context().draw_at_arrival(packet).uniform();
        let judgement = self.policy.arrive(now, packet, waiting, &mut self.stand.context());
        match judgement {
            Judgement::Drop => self.stand.remove(packet),
            _ => {
                self.waiting.push_back(packet);
                self.bytes += u64::from(length);
            }
        }
        judgement
    }

    /// Dequeues. Returns what happened to the packets at the head, up to the one that is sent.
    pub(crate) fn dequeue(&mut self, now: Time) -> Vec<Fate> {
        let mut fates = Vec::new();
        while let Some(&packet) = self.waiting.front() {
            let waiting = self.waiting();
            let judgement = self.policy.depart(now, packet, waiting, &mut self.stand.context());
            self.waiting.pop_front();
            self.bytes -= u64::from(self.stand.pool().get(packet).length);
            let number = self.stand.pool().get(packet).id.number();
            self.stand.remove(packet);
            match judgement {
                Judgement::Drop => fates.push(Fate::Dropped(number)),
                _ => {
                    fates.push(Fate::Sent(number, judgement == Judgement::Mark));
                    break;
                }
            }
        }
        fates
    }
}
