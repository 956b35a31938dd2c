//! The end of a link that is inside the kernel: a queueing discipline in BPF at a host's interface moves its packets, and
//! leaves a record of each in memory that is mapped here. Nothing is received or sent: the records stand for the packets.
//!
//! The memory's layout is that of `link.h` in `narrows-kernel`, which has the program.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::bpf::{BpfError, Map, MappedMap};
use crate::clock::MonotonicTime;
use crate::frame::FramePool;
use crate::packet_socket::{PacketStatistics, ReceiveBatch, Received};

/// Places and sizes in the memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout;

#[expect(missing_docs, reason = "they are the names in link.h")]
impl Layout {
    pub const PARAMETERS: usize = 104;
    pub const DIRECTION: usize = 240;
    pub const NUMBER: usize = 104;
    pub const LINE_IN: usize = 152;
    pub const LINE_OUT: usize = 160;
    pub const BEGUN: usize = 184;
    pub const DONE: usize = 192;
    pub const READ: usize = 200;
    pub const NO_ROOM: usize = 208;
    pub const UNSUPPORTED: usize = 216;
    pub const TRAINS: usize = 224;
    pub const BYPASSED: usize = 232;
    pub const RECORD: usize = 176;
    pub const ARRIVAL: usize = 8;
    pub const AT: usize = 16;
    pub const LENGTH: usize = 24;
    pub const FRAME_LENGTH: usize = 28;
    pub const VERDICT: usize = 32;
    pub const HEAD_LENGTH: usize = 36;
    pub const HEAD: usize = 40;
    pub const HEAD_MOST: usize = 136;
    pub const DEPARTURE: usize = 16;
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
}

/// The verdict about a packet, and its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFate {
    /// The verdict.
    pub verdict: KernelVerdict,
    /// When the packet leaves or is dropped.
    pub at: MonotonicTime,
}

/// A packet that has left the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it was due.
    pub due: MonotonicTime,
    /// When the kernel took it from the qdisc.
    pub left: MonotonicTime,
}

/// A direction of a link inside the kernel, seen from the host that sends.
#[derive(Debug)]
pub struct KernelEnd {
    control: MappedMap,
    records: MappedMap,
    departures: MappedMap,
    /// Its number, which is its place in each memory.
    direction: usize,
    /// The length of both rings.
    length: u64,
    read: u64,
    departed: u64,
    /// What the kernel decided about packets that were received here, and that were not asked for yet.
    fates: VecDeque<Option<KernelFate>>,
    /// The number of the first of them.
    first_fate: u64,
    /// Nothing ever happens at it: records are looked at from time to time.
    silent: EventFd,
}

impl KernelEnd {
    /// The direction with this number in the program's maps, whose rings have this length, a power of two.
    ///
    /// # Errors
    /// If the memory cannot be mapped.
    pub fn new(
        [control, records, departures]: [&Map; 3],
        direction: usize,
        length: u32,
        directions: usize,
    ) -> Result<Self, BpfError> {
        let all = length as usize * directions;
        let silent = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        let silent = silent.map_err(|cause| BpfError::Refused {
            step: "make a descriptor to wait for".into(),
            cause: cause.into(),
        })?;
        Ok(Self {
            control: MappedMap::new(control, Layout::DIRECTION * directions)?,
            records: MappedMap::new(records, Layout::RECORD * all)?,
            departures: MappedMap::new(departures, Layout::DEPARTURE * all)?,
            direction,
            length: length.into(),
            read: 0,
            departed: 0,
            fates: VecDeque::new(),
            first_fate: 0,
            silent,
        })
    }

    fn counter(&self, place: usize) -> u64 {
        self.control.number(self.direction * Layout::DIRECTION + place)
    }

    fn place(&self, number: u64) -> usize {
        self.direction * self.length as usize + (number % self.length) as usize
    }

    /// Appends the packets that arrived since the last call, at most [`ReceiveBatch::FRAMES`]; returns how many. Of each
    /// frame only the head is known: zeros follow. With fewer, everything that arrived before the call has been received.
    pub fn receive(&mut self, pool: &mut FramePool, into: &mut Vec<Received>) -> usize {
        let mut frame = Vec::new();
        let mut count = 0;
        while count < ReceiveBatch::FRAMES {
            // In this order: all packets below `number` had begun to arrive, and have been recorded if none is arriving.
            let number = self.counter(Layout::NUMBER);
            let begun = self.counter(Layout::BEGUN);
            if self.counter(Layout::DONE) != begun {
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
            let read = self.direction * Layout::DIRECTION + Layout::READ;
            self.control.set_number(read, self.read);
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
        let verdict = match word(Layout::VERDICT) {
            0 => KernelVerdict::Delivered,
            1 => KernelVerdict::IngressLoss,
            2 => KernelVerdict::QueueFull,
            _ => KernelVerdict::WireLoss,
        };
        let at = MonotonicTime::from_nanos(self.records.number(place + Layout::AT));
        self.fates.push_back(Some(KernelFate { verdict, at }));
        let arrival = self.records.number(place + Layout::ARRIVAL);
        self.read += 1;
        Received {
            frame: pool.frame(frame),
            stamp: Some(MonotonicTime::from_nanos(arrival)),
            original_length: length,
            partial_checksum: false,
        }
    }

    /// What the kernel decided about the packet with this number among those received here; at most once.
    pub fn take_fate(&mut self, number: u64) -> Option<KernelFate> {
        let at = usize::try_from(number.checked_sub(self.first_fate)?).ok()?;
        let fate = self.fates.get_mut(at)?.take();
        while let Some(None) = self.fates.front() {
            self.fates.pop_front();
            self.first_fate += 1;
        }
        fate
    }

    /// Packets that have left since the last call, oldest first. Of very many only the last are known.
    pub fn departures(&mut self, mut each: impl FnMut(Departure)) {
        let until = self.counter(Layout::LINE_OUT);
        // The kernel may be writing over the oldest.
        let oldest = until.saturating_sub(self.length / 2);
        for number in self.departed.max(oldest)..until {
            let place = self.place(number) * Layout::DEPARTURE;
            let at = |place| MonotonicTime::from_nanos(self.departures.number(place));
            each(Departure { due: at(place), left: at(place + 8) });
        }
        self.departed = until;
    }

    /// Packets that did not enter the link, because user space had fallen behind or the queue was longer than the
    /// program's memory; and those with a VLAN tag, or no IP header.
    pub fn refused(&self) -> [u64; 2] {
        [self.counter(Layout::NO_ROOM), self.counter(Layout::UNSUPPORTED)]
    }

    /// Packets longer than the MTU, which crossed unsegmented.
    pub fn trains(&self) -> u64 {
        self.counter(Layout::TRAINS)
    }

    /// Packets that address resolution and the like sent, which do not cross the link.
    pub fn bypassed(&self) -> u64 {
        self.counter(Layout::BYPASSED)
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
