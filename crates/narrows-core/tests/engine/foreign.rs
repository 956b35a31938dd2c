//! One implementation of each open seam, as another crate would write it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use narrows_core::model::{DelayModel, Propagation, Selector};
use narrows_core::queue::{Backlog, Bound, Context, Dequeue, Queue};
use narrows_core::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use narrows_core::service::{Finish, ServiceCurve, Work};
use narrows_core::{Draw, DropReason, Duration, PacketList, PacketRef, PacketState, Pool, Rate, Time};

/// A queue that opens at multiples of `period` only, and drops what has waited longer than its `patience`.
#[derive(Debug)]
pub(crate) struct Gate {
    packets: PacketList,
    bound: Bound,
    period: Duration,
    patience: Duration,
}

impl Gate {
    pub(crate) fn new(bound: Bound, period: Duration, patience: Duration) -> Self {
        Self { packets: PacketList::default(), bound, period, patience }
    }
}

impl Queue for Gate {
    fn enqueue(&mut self, _now: Time, packet: PacketRef, context: &mut Context<'_>) {
        if self.bound.admits(self.backlog(), context.pool.get(packet).length) {
            self.packets.push_back(packet, context.pool);
        } else {
            context.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        while let Some(first) = self.packets.front()
            && now.since(context.pool.get(first).entered) > self.patience
        {
            self.packets.pop_front(context.pool);
            context.drop(first, DropReason::QueueFull);
        }
        if self.packets.is_empty() {
            return Dequeue::Empty;
        }
        let late = now.nanos() % self.period.nanos();
        if late > 0 {
            return Dequeue::NotBefore(Time::from_nanos(now.nanos() - late) + self.period);
        }
        self.packets.pop_front(context.pool).map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len(), bytes: self.packets.bytes() }
    }

    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
    }

    fn bound(&self) -> Bound {
        self.bound
    }

    fn take_all(&mut self, _pool: &mut Pool) -> PacketList {
        core::mem::take(&mut self.packets)
    }

    fn adopt(&mut self, _now: Time, packets: PacketList, _context: &mut Context<'_>) {
        self.packets = packets;
    }
}

/// A scheduler by time division: the instant says whose slot it is, and a packet goes only at the beginning of a slot of
/// its flow.
#[derive(Debug)]
pub(crate) struct Slots {
    slot: Duration,
    flows: u64,
}

impl Slots {
    pub(crate) fn new(slot: Duration) -> Self {
        Self { slot, flows: 0 }
    }
}

impl Scheduler for Slots {
    type Flow = ();

    fn join(&mut self, _flow: FlowConfig) -> Result<(), Refused> {
        self.flows += 1;
        Ok(())
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<()>) {}

    fn enqueue(&mut self, _now: Time, _flow: FlowId, _flows: &mut Flows<()>) {}

    fn select(&mut self, now: Time, flows: &mut Flows<()>) -> Selection {
        let first = now.nanos().div_ceil(self.slot.nanos());
        for slot in first..first + self.flows {
            let flow = FlowId::new((slot % self.flows) as u32);
            let begins = Time::from_nanos(slot * self.slot.nanos());
            if flows.packets(flow) > 0 {
                return if begins == now { Selection::Flow(flow) } else { Selection::NotBefore(begins) };
            }
        }
        Selection::Empty
    }

    fn sent(&mut self, _now: Time, _flow: FlowId, _length: u32, _flows: &mut Flows<()>) {}

    fn head_dropped(&mut self, _now: Time, _flow: FlowId, _flows: &mut Flows<()>) {}
}

/// A rate that holds until an instant, then nothing until another, then a second rate for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outage {
    pub(crate) before: Rate,
    pub(crate) down: Time,
    pub(crate) up: Time,
    pub(crate) after: Rate,
}

impl Outage {
    fn pieces(&self) -> [(Time, Time, Rate); 3] {
        [
            (Time::ZERO, self.down, self.before),
            (self.down, self.up, Rate::DOWN),
            (self.up, Time::NEVER, self.after),
        ]
    }
}

impl ServiceCurve for Outage {
    fn finish(&self, start: Time, work: Work) -> Option<Finish> {
        let mut left = work.0;
        for (from, to, rate) in self.pieces() {
            let from = from.max(start);
            if to <= from {
                continue;
            }
            let done = Work::done(rate, to.since(from)).0;
            if done < left || rate == Rate::DOWN {
                left -= done;
                continue;
            }
            let nanos = left.div_ceil(u128::from(rate.bits_per_second()));
            let span = Duration::from_nanos(u64::try_from(nanos).expect("no longer than the piece"));
            return Some(Finish { at: from + span, surplus: Work(Work::done(rate, span).0 - left) });
        }
        None
    }

    fn served(&self, start: Time, end: Time) -> Work {
        let within =
            |(from, to, rate): (Time, Time, Rate)| Work::done(rate, to.min(end).since(from.max(start))).0;
        Work(self.pieces().into_iter().map(within).sum())
    }

    fn rate(&self, at: Time) -> Rate {
        self.pieces().into_iter().find(|piece| at < piece.1).map_or(self.after, |piece| piece.2)
    }
}

/// Two delays in turn; every seventh packet is lost. A model with state.
#[derive(Debug)]
pub(crate) struct InTurn {
    pub(crate) delays: [Duration; 2],
    pub(crate) seen: u64,
}

impl DelayModel for InTurn {
    fn delay(&mut self, _now: Time, _packet: &PacketState, _draw: &mut Draw) -> Propagation {
        self.seen += 1;
        match self.seen.is_multiple_of(7) {
            true => Propagation::Lost,
            false => Propagation::After(self.delays[(self.seen % 2) as usize]),
        }
    }

    fn mean(&self) -> Option<Duration> {
        None
    }
}

/// Loses every `nth` packet that it sees.
#[derive(Debug)]
pub(crate) struct EveryNth {
    pub(crate) nth: u64,
    pub(crate) seen: u64,
}

impl Selector for EveryNth {
    fn selects(&mut self, _now: Time, _packet: &PacketState, _draw: &mut Draw) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(self.nth)
    }

    fn mean(&self) -> f64 {
        1.0 / self.nth as f64
    }
}

/// The draws that packets were offered, by place and by the mark of the packet, in order of time.
pub(crate) type Drawn = BTreeMap<(String, u32), Vec<u64>>;

/// Loses nothing, delays by what it draws, and writes down the draw.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub(crate) place: String,
    pub(crate) drawn: Arc<Mutex<Drawn>>,
}

impl Recorder {
    fn record(&self, packet: &PacketState, draw: &mut Draw) -> u64 {
        let bits = draw.bits();
        let mut drawn = self.drawn.lock().expect("no test panics while it holds it");
        drawn.entry((self.place.clone(), packet.key.mark)).or_default().push(bits);
        bits
    }
}

impl Selector for Recorder {
    fn selects(&mut self, _now: Time, packet: &PacketState, draw: &mut Draw) -> bool {
        self.record(packet, draw);
        false
    }

    fn mean(&self) -> f64 {
        0.0
    }
}

impl DelayModel for Recorder {
    fn delay(&mut self, _now: Time, packet: &PacketState, draw: &mut Draw) -> Propagation {
        Propagation::After(Duration::from_nanos(self.record(packet, draw) >> 44)) // up to a millisecond
    }

    fn mean(&self) -> Option<Duration> {
        None
    }
}
