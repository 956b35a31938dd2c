//! The end of a link that is inside the kernel: a queueing discipline in BPF at a host's interface moves its packets, and
//! leaves a record of each in memory that is mapped here. Nothing is received or sent: the records stand for the packets.
//!
//! The memory's layout is that of `bpf/state.h` in `narrows-kernel`, which has the program.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::bpf::{BpfError, Map, MappedMap};
use crate::clock::MonotonicTime;
use crate::frame::FramePool;
use crate::packet_socket::{PacketStatistics, ReceiveBatch, Received};

/// Places and sizes in the memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout;

#[expect(missing_docs, reason = "they are the names in state.h")]
impl Layout {
    pub const DIRECTION: usize = 11_488;
    pub const NUMBER: usize = 6192;
    pub const LEFT: usize = 11_304;
    pub const BEGUN: usize = 11_328;
    pub const DONE: usize = 11_336;
    pub const READ: usize = 11_344;
    pub const SETTLED: usize = 11_352;
    pub const FED: usize = 11_360;
    pub const EPOCH: usize = 11_368;
    pub const NO_ROOM: usize = 11_376;
    pub const UNSUPPORTED: usize = 11_384;
    pub const TRAINS: usize = 11_392;
    pub const BYPASSED: usize = 11_400;
    pub const TAGGED: usize = 11_408;
    pub const UNWATCHED: usize = 11_416;
    pub const MTU: usize = 48;
    pub const RECORD: usize = 152;
    pub const ARRIVAL: usize = 0;
    pub const FRAME_LENGTH: usize = 8;
    pub const HEAD_LENGTH: usize = 12;
    pub const HEAD: usize = 16;
    pub const HEAD_MOST: usize = 136;
    pub const DECISION: usize = 16;
    pub const DEPARTURE: usize = 16;
    pub const DELAY: usize = 8;
    pub const VALUE: usize = 16;
}

/// What the kernel did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelVerdict {
    /// It leaves when it is due.
    Delivered,
    /// Lost before the queue.
    IngressLoss,
    /// The queue was full.
    QueueFull,
    /// Lost after its transmission.
    WireLoss,
    /// It belongs to no class.
    NoClass,
    /// Lost by a value that was fed, or for lack of one.
    DelayModel,
    /// None: it was inside when the interface went down.
    Forgotten,
    /// Dropped by queue management.
    QueueManagement,
}

/// The verdict about a packet, and its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFate {
    /// The verdict.
    pub verdict: KernelVerdict,
    /// When the packet leaves or is dropped.
    pub at: MonotonicTime,
    /// Whether it leaves with the mark "congestion experienced"; not known where packets are never [marked](KernelEnd::marks).
    pub has_mark: bool,
}

/// A packet that has left the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it was due.
    pub due: MonotonicTime,
    /// When the kernel took it from the qdisc.
    pub left: MonotonicTime,
}

/// The memory of all directions of a program.
#[derive(Clone, Copy, Debug)]
pub struct KernelMaps<'a> {
    /// Their states.
    pub control: &'a Map,
    /// Packets that entered.
    pub records: &'a Map,
    /// What was decided about them.
    pub decisions: &'a Map,
    /// Packets that left.
    pub departures: &'a Map,
    /// Delays that are drawn ahead.
    pub delays: &'a Map,
    /// Values that are fed.
    pub values: &'a Map,
    /// The length of the ring of values of one direction, a power of two.
    pub value_count: u32,
    /// The length of the rings of records, departures and delays of one direction, a power of two.
    pub record_count: u32,
    /// The length of the ring of decisions, a power of two.
    pub decision_count: u32,
    /// How many directions there are.
    pub directions: usize,
}

/// Draws the delay of the packet with this number, in nanoseconds.
pub type DrawDelay = Box<dyn FnMut(u64) -> u64 + Send>;

/// A direction of a link inside the kernel, seen from the host that sends.
pub struct KernelEnd {
    control: MappedMap,
    records: MappedMap,
    decisions: MappedMap,
    departures: MappedMap,
    delays: MappedMap,
    values: MappedMap,
    /// Its number, which is its place in each memory.
    direction: usize,
    record_count: u64,
    decision_count: u64,
    value_count: u64,
    /// Values fed so far.
    fed: u64,
    draw: Option<DrawDelay>,
    marks: bool,
    read: u64,
    departed: u64,
    /// Of the packets from this number on, those whose decisions need not be kept.
    settled: u64,
    settled_ahead: VecDeque<bool>,
    /// Nothing ever happens at it: records are looked at from time to time.
    silent: EventFd,
}

impl fmt::Debug for KernelEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelEnd").field("direction", &self.direction).finish_non_exhaustive()
    }
}

impl KernelEnd {
    /// Added to a verdict.
    const HAS_MARK: u64 = 0x80;

    /// The direction with this number, which may mark packets. With `draw` the delays of the first packets are drawn here.
    ///
    /// # Errors
    /// If the memory cannot be mapped.
    pub fn new(
        maps: KernelMaps<'_>,
        direction: usize,
        draw: Option<DrawDelay>,
        marks: bool,
    ) -> Result<Self, BpfError> {
        let KernelMaps { record_count, decision_count, directions, .. } = maps;
        let records = record_count as usize * directions;
        let silent = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        let silent = silent.map_err(|cause| BpfError::Refused {
            step: "make a descriptor to wait for".into(),
            cause: cause.into(),
        })?;
        let mut end = Self {
            control: MappedMap::new(maps.control, Layout::DIRECTION * directions)?,
            records: MappedMap::new(maps.records, Layout::RECORD * records)?,
            decisions: MappedMap::new(
                maps.decisions,
                Layout::DECISION * decision_count as usize * directions,
            )?,
            departures: MappedMap::new(maps.departures, Layout::DEPARTURE * records)?,
            delays: MappedMap::new(maps.delays, Layout::DELAY * records)?,
            values: MappedMap::new(maps.values, Layout::VALUE * maps.value_count as usize * directions)?,
            direction,
            record_count: record_count.into(),
            decision_count: decision_count.into(),
            value_count: maps.value_count.into(),
            fed: 0,
            draw,
            marks,
            read: 0,
            departed: 0,
            settled: 0,
            settled_ahead: VecDeque::new(),
            silent,
        };
        for number in 0..end.record_count {
            end.draw_delay(number);
        }
        Ok(end)
    }

    /// Whether packets may be marked.
    pub fn marks(&self) -> bool {
        self.marks
    }

    /// The run starts: from this instant on the program counts what happens at regular instants of a run. Once.
    pub fn set_start(&self, start: MonotonicTime) {
        self.set_counter(Layout::EPOCH, start.as_nanos());
    }

    fn counter(&self, place: usize) -> u64 {
        self.control.number(self.direction * Layout::DIRECTION + place)
    }

    fn set_counter(&self, place: usize, value: u64) {
        self.control.set_number(self.direction * Layout::DIRECTION + place, value);
    }

    /// The place of a packet in the rings of records.
    fn place(&self, number: u64) -> usize {
        (self.direction as u64 * self.record_count + number % self.record_count) as usize
    }

    /// Draws the delay of the packet with this number, if delays are drawn here.
    fn draw_delay(&mut self, number: u64) {
        if let Some(draw) = &mut self.draw {
            let delay = draw(number);
            self.delays.set_number(self.place(number) * Layout::DELAY, delay);
        }
    }

    /// Appends the packets that arrived since the last call, at most [`ReceiveBatch::FRAMES`]; returns how many. Of each
    /// frame only the head is known: zeros follow. With fewer, everything that arrived before the call has been received.
    pub fn receive(&mut self, pool: &mut FramePool, into: &mut Vec<Received>) -> usize {
        let mut frame = Vec::new();
        let mut count = 0;
        while count < ReceiveBatch::FRAMES {
            // No arrival is under way between the two looks at `begun`, so all packets below `number` have been recorded, and
            // what arrives later has a later stamp.
            let begun = self.counter(Layout::BEGUN);
            let done = self.counter(Layout::DONE);
            let number = self.counter(Layout::NUMBER);
            if done != begun || self.counter(Layout::BEGUN) != begun {
                // An arrival takes a microsecond.
                std::hint::spin_loop();
                continue;
            }
            if number == self.read {
                break;
            }
            while self.read < number && count < ReceiveBatch::FRAMES {
                into.push(self.take_record(&mut frame, pool));
                count += 1;
            }
            self.set_counter(Layout::READ, self.read);
        }
        count
    }

    fn take_record(&mut self, frame: &mut Vec<u8>, pool: &mut FramePool) -> Received {
        let place = self.place(self.read) * Layout::RECORD;
        let word = |at: usize| self.records.word(place + at);
        let length = word(Layout::FRAME_LENGTH) as usize;
        let head = (word(Layout::HEAD_LENGTH) as usize).min(Layout::HEAD_MOST).min(length);
        frame.clear();
        frame.resize(length, 0);
        self.records.copy(place + Layout::HEAD, &mut frame[..head]);
        let arrival = self.records.number(place + Layout::ARRIVAL);
        // The packet has its delay; that of a later one takes its place.
        self.draw_delay(self.read + self.record_count);
        self.read += 1;
        Received {
            frame: pool.frame(frame),
            stamp: Some(MonotonicTime::from_nanos(arrival)),
            original_length: length,
            partial_checksum: false,
            interface: None,
        }
    }

    /// Feeds values: delays in nanoseconds, or below zero losses. They count for packets that enter the delay line after
    /// `from`, which should be in the future when this returns. The caller knows that there is room.
    pub fn feed(&mut self, from: MonotonicTime, values: &[i64]) {
        for &value in values {
            let number = self.direction as u64 * self.value_count + self.fed % self.value_count;
            let place = number as usize * Layout::VALUE;
            self.values.set_number(place, from.as_nanos());
            self.values.set_number(place + 8, value as u64);
            self.fed += 1;
        }
        self.set_counter(Layout::FED, self.fed);
    }

    /// What the kernel has decided about the packet with this number, if it has. Known until the packet is
    /// [settled](Self::settle).
    pub fn fate(&self, number: u64) -> Option<KernelFate> {
        let place = self.direction as u64 * self.decision_count + number % self.decision_count;
        let place = place as usize * Layout::DECISION;
        let word = self.decisions.number(place + 8);
        let verdict = match word & 0x7f {
            1 => KernelVerdict::Delivered,
            2 => KernelVerdict::IngressLoss,
            3 => KernelVerdict::QueueFull,
            4 => KernelVerdict::WireLoss,
            5 => KernelVerdict::NoClass,
            6 => KernelVerdict::DelayModel,
            7 => KernelVerdict::Forgotten,
            8 => KernelVerdict::QueueManagement,
            _ => return None,
        };
        let at = MonotonicTime::from_nanos(self.decisions.number(place));
        (word >> 8 == number).then_some(KernelFate { verdict, at, has_mark: word & Self::HAS_MARK != 0 })
    }

    /// The decision about the packet with this number need not be kept.
    pub fn settle(&mut self, number: u64) {
        let Some(ahead) = number.checked_sub(self.settled) else { return };
        let ahead = ahead as usize; // below the number of packets that have records
        if self.settled_ahead.len() <= ahead {
            self.settled_ahead.resize(ahead + 1, false);
        }
        self.settled_ahead[ahead] = true;
        while self.settled_ahead.front() == Some(&true) {
            self.settled_ahead.pop_front();
            self.settled += 1;
        }
        self.set_counter(Layout::SETTLED, self.settled);
    }

    /// Packets that have left since the last call, oldest first. Of very many only the last are known.
    pub fn departures(&mut self, mut each: impl FnMut(Departure)) {
        let until = self.counter(Layout::LEFT);
        // The kernel may be writing over the oldest.
        let oldest = until.saturating_sub(self.record_count / 2);
        for number in self.departed.max(oldest)..until {
            let place = self.place(number) * Layout::DEPARTURE;
            let at = |place| MonotonicTime::from_nanos(self.departures.number(place));
            each(Departure { due: at(place), left: at(place + 8) });
        }
        self.departed = until;
    }

    /// Packets that did not enter the link, because user space had fallen behind or the queue was longer than the
    /// program's memory; and those that are too short.
    pub fn refused(&self) -> [u64; 2] {
        [self.counter(Layout::NO_ROOM), self.counter(Layout::UNSUPPORTED)]
    }

    /// Packets that entered the link.
    pub fn entered(&self) -> u64 {
        self.counter(Layout::NUMBER)
    }

    /// Packets longer than the MTU, which crossed unsegmented.
    pub fn trains(&self) -> u64 {
        self.counter(Layout::TRAINS)
    }

    /// Packets of address resolution and the like, and those with a VLAN tag: they do not cross the link.
    pub fn bypassed(&self) -> u64 {
        self.counter(Layout::BYPASSED)
    }

    /// Packets with a VLAN tag, which do not cross the link.
    pub fn tagged(&self) -> u64 {
        self.counter(Layout::TAGGED)
    }

    /// Arrivals, and packets that did not enter.
    pub fn statistics(&self) -> PacketStatistics {
        let dropped = self.refused().iter().sum();
        PacketStatistics { dropped, ..PacketStatistics::default() }
    }
}

impl AsFd for KernelEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.silent.as_fd()
    }
}
