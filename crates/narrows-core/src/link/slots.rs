//! Slots: packets that are due at the end of the delay line wait there for the next slot. This models a
//! medium that lets a station send only now and then, and batches several packets per turn (Wi-Fi, cable,
//! LTE).
//!
//! This is NetEm's `slot`, made independent of polling. A slot is scheduled when a packet becomes due and no
//! slot opens at that time or later, and whenever the open slot is used up; it opens one gap later. All
//! packets due by then leave at once, in order, up to `packets` packets and until `bytes` bytes are used up:
//! the packet that uses them up still leaves. A packet that becomes due exactly when a slot with room opens
//! leaves in it. NetEm schedules a slot when its queue is polled, so there an arrival can shift the slots of
//! packets that are not due yet.
//!
//! ```
//! use narrows_core::{Bytes, Duration, SlotGap, Slots};
//!
//! // Every 10 ms as many as are due, but no more than 8 and no more than about 9000 bytes.
//! let gap = SlotGap::Between(Duration::from_millis(10), Duration::from_millis(10));
//! let slots = Slots { gap, packets: 8, bytes: Bytes::new(9000) };
//! ```

use alloc::boxed::Box;

use super::Link;
use crate::model::{Distribution, Sampler};
use crate::pool::{PacketList, PacketRef, Pool};
use crate::random::{Seed, Stream};
use crate::time::{Duration, Time};
use crate::units::Bytes;

/// When packets that are due leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    /// The gap from the scheduling of a slot until it opens.
    pub gap: SlotGap,
    /// Maximum packets per slot; 0 for no limit.
    pub packets: u64,
    /// The bytes after which a slot is used up, including the link's overhead; 0 for no limit.
    pub bytes: Bytes,
}

/// The gap until a slot opens. Each slot draws its own, by the number of the slot.
#[derive(Clone, Debug, PartialEq)]
pub enum SlotGap {
    /// Uniform between a minimum and a maximum, both included.
    Between(Duration, Duration),
    /// From any distribution.
    Drawn(Box<Distribution>),
}

impl Link {
    pub(super) fn change_slots(&mut self, now: Time, slots: Option<Slots>) {
        if slots.is_some() || self.gate.is_some() {
            let new = || Box::new(Gate::new(self.seed, &self.name, self.slots.of_line));
            let gate = self.gate.get_or_insert_with(new);
            gate.set(now, slots);
            self.attend_gate();
        }
    }

    /// Whether a packet that is due at `now` leaves at once.
    pub(super) fn passes_gate(&mut self, now: Time, packet: PacketRef, pool: &mut Pool) -> bool {
        let bytes = self.slot_bytes(packet, pool);
        let passes = self.gate.as_mut().is_none_or(|gate| gate.admits(now, packet, bytes, pool));
        self.attend_gate();
        passes
    }

    /// The next packet that leaves in the slot that opens at `now`, if any.
    pub(super) fn pass_next(&mut self, now: Time, pool: &mut Pool) -> Option<PacketRef> {
        let packet = self.gate.as_ref().filter(|gate| gate.next_event() == now)?.waiting.front()?;
        let bytes = self.slot_bytes(packet, pool);
        if let Some(gate) = &mut self.gate {
            gate.waiting.pop_front(pool);
            gate.use_up(now, bytes);
        }
        self.attend_gate();
        Some(packet)
    }

    fn attend_gate(&mut self) {
        if let Some(gone) = self.gate.take_if(|gate| gate.slots.is_none() && gate.waiting.is_empty()) {
            self.slots.of_line = gone.asked;
        }
        self.attend();
    }

    /// When the gate opens for waiting packets.
    pub(super) fn gate_opens(&self) -> Time {
        self.gate.as_ref().map_or(Time::NEVER, |gate| gate.next_event())
    }

    fn slot_bytes(&self, packet: PacketRef, pool: &Pool) -> u64 {
        let state = pool.get(packet);
        self.overhead.bits(state.length, state.link_header).div_ceil(8)
    }
}

/// How many slots removed parts of a link have scheduled. A slot's gap is drawn by its number, so numbering
/// must continue when slots are added again.
#[derive(Debug)]
pub(super) struct Numbers {
    /// At the end of the delay line.
    pub(super) of_line: u64,
    /// In the single queue of sch_netem, which has another stream.
    pub(super) of_netem: u64,
}

impl Numbers {
    /// For a link that exists from `since` on. A link created again under the same name continues with other
    /// numbers, unless it scheduled more slots before than nanoseconds had passed.
    pub(super) const fn since(since: Time) -> Self {
        Self { of_line: since.nanos(), of_netem: since.nanos() }
    }
}

/// Packets that wait for a slot, and the newest slot.
#[derive(Debug)]
pub(super) struct Gate {
    /// `None` if the gate only releases its waiting packets and is then removed.
    slots: Option<Slots>,
    /// Draws gaps that are not uniform.
    sampler: Option<Sampler>,
    stream: Stream,
    waiting: PacketList,
    /// How many slots have been scheduled.
    asked: u64,
    /// When the newest slot opened or opens, and what is left of it.
    opens: Option<Time>,
    packets_left: u64,
    bytes_left: u64,
}

impl Gate {
    /// Without slots yet; `asked` slots were scheduled before.
    fn new(seed: Seed, link: &str, asked: u64) -> Self {
        Self {
            slots: None,
            sampler: None,
            stream: Stream::new(seed, link, "slots"),
            waiting: PacketList::default(),
            asked,
            opens: None,
            packets_left: 0,
            bytes_left: 0,
        }
    }

    /// Sets other slots from the next one on. A slot already scheduled keeps its time; with `None`, all
    /// waiting packets leave at once.
    fn set(&mut self, now: Time, slots: Option<Slots>) {
        if slots.is_none() {
            self.opens = Some(now);
        }
        self.sampler = match &slots {
            Some(Slots { gap: SlotGap::Drawn(distribution), .. }) => Some(Sampler::new(distribution)),
            _ => None,
        };
        self.slots = slots;
    }

    /// How many packets wait.
    pub(super) fn len(&self) -> u64 {
        self.waiting.len()
    }

    /// When waiting packets may leave.
    fn next_event(&self) -> Time {
        self.opens.filter(|_| !self.waiting.is_empty()).unwrap_or(Time::NEVER)
    }

    /// A packet of `bytes` bytes is due. Returns whether it leaves now; otherwise it waits here.
    fn admits(&mut self, now: Time, packet: PacketRef, bytes: u64, pool: &mut Pool) -> bool {
        if self.waiting.is_empty() {
            if self.opens.is_none_or(|opens| opens < now) {
                self.ask(now);
            }
            if self.opens == Some(now) {
                self.use_up(now, bytes);
                return true;
            }
        }
        self.waiting.push_back(packet, pool);
        false
    }

    /// A packet of `bytes` bytes leaves at `now`.
    fn use_up(&mut self, now: Time, bytes: u64) {
        self.packets_left = self.packets_left.saturating_sub(1);
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if self.packets_left == 0 || self.bytes_left == 0 {
            self.ask(now);
        }
    }

    /// Schedules a slot at `now`.
    fn ask(&mut self, now: Time) {
        let Some(slots) = &self.slots else { return };
        let mut draw = self.stream.nth(self.asked);
        let gap = match (&slots.gap, &self.sampler) {
            (SlotGap::Between(least, most), _) => {
                let width = most.saturating_sub(*least).nanos().saturating_add(1);
                *least + Duration::from_nanos(draw.below(width))
            }
            (SlotGap::Drawn(_), sampler) => {
                sampler.as_ref().map_or(Duration::ZERO, |sampler| sampler.sample(&mut draw))
            }
        };
        let most = |limit: u64| if limit == 0 { u64::MAX } else { limit };
        self.asked += 1;
        self.opens = Some(now + gap);
        self.packets_left = most(slots.packets);
        self.bytes_left = most(slots.bytes.get());
    }
}
