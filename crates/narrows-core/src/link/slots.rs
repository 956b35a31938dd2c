//! Slots: what is due at the end of the delay line waits there for the next slot, as on a medium that lets a station speak
//! only now and then, and gathers several packets for one turn (Wi-Fi, cable, LTE).
//!
//! NetEm's `slot`, made independent of when anybody looks. A slot is asked for at the instant at which a packet becomes due
//! and no slot has opened at or after that instant nor is to open, and when the open one is used up; it opens a gap later.
//! All that is due by then leaves at once, in order, up to `packets` packets and until `bytes` bytes are used up: the
//! packet that uses them up still leaves. What becomes due at the very instant of a slot that has room leaves with it.
//! NetEm asks whenever it is looked at, so that there an arrival can shift the slots of packets that are not due yet.
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
    /// How long it takes until a slot that is asked for opens.
    pub gap: SlotGap,
    /// The most packets that leave in one slot; 0 for any number.
    pub packets: u64,
    /// The bytes after which a slot is used up, counted as the link's overhead says; 0 for any number.
    pub bytes: Bytes,
}

/// How long it takes until a slot opens. Drawn for each slot by its number.
#[derive(Clone, Debug, PartialEq)]
pub enum SlotGap {
    /// Uniform between two, both included.
    Between(Duration, Duration),
    /// Of any distribution.
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

    /// The next packet that leaves in the slot that opens at `now`, if one does.
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

    /// When the gate opens for packets that wait.
    pub(super) fn gate_opens(&self) -> Time {
        self.gate.as_ref().map_or(Time::NEVER, |gate| gate.next_event())
    }

    fn slot_bytes(&self, packet: PacketRef, pool: &Pool) -> u64 {
        let state = pool.get(packet);
        self.overhead.bits(state.length, state.link_header).div_ceil(8)
    }
}

/// How many slots the parts of a link asked for that are gone. The gap of a slot is drawn by its number, and numbers must
/// go on when slots come back.
#[derive(Debug)]
pub(super) struct Numbers {
    /// At the end of the delay line.
    pub(super) of_line: u64,
    /// In the single queue of sch_netem, which has another stream.
    pub(super) of_netem: u64,
}

impl Numbers {
    /// Of a link that is there from then on. One of the same name that is made anew goes on with other numbers, unless it asked
    /// for more slots before than there were nanoseconds.
    pub(super) const fn since(since: Time) -> Self {
        Self { of_line: since.nanos(), of_netem: since.nanos() }
    }
}

/// Packets that wait for a slot, and the newest slot.
#[derive(Debug)]
pub(super) struct Gate {
    /// Nothing when what waits is to be let out, and no more.
    slots: Option<Slots>,
    /// What draws gaps that are not uniform.
    sampler: Option<Sampler>,
    stream: Stream,
    waiting: PacketList,
    /// How many slots have been asked for.
    asked: u64,
    /// When the newest slot opened, or opens, and what it has left.
    opens: Option<Time>,
    packets_left: u64,
    bytes_left: u64,
}

impl Gate {
    /// Without slots yet; so many were asked for before.
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

    /// Other slots from the next one on. The one that was asked for keeps its instant; without slots, all that waits leaves
    /// at once.
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

    /// When packets that wait may leave.
    fn next_event(&self) -> Time {
        self.opens.filter(|_| !self.waiting.is_empty()).unwrap_or(Time::NEVER)
    }

    /// A packet of `bytes` bytes is due: whether it leaves now. Otherwise it waits here.
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

    /// Asks for a slot at `now`.
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
