//! The parameters of a direction of a link, as the program reads them (`struct narrows_parameters` in `bpf/state.h`).

mod loss;
mod policy;
mod queue;
mod rules;

pub use loss::Loss;
pub use policy::Policy;
pub use queue::{Discipline, QueueParameters};
pub use rules::{MOST_RULES, Rule, rules_of};

use narrows_core::model::{CorrelatedPlan, DelayModel, OnEmpty};
use narrows_core::queue::Bound;
use narrows_core::service::Overhead;
use narrows_core::{Duration, Probability, Rate, Stream};

/// What stands for "no limit", and for "never".
const NO_LIMIT: u64 = u64::MAX;
/// More bytes than this in an overhead might overflow the program's arithmetic.
pub const MOST_OVERHEAD: u32 = 1 << 20;
/// The most values of a feed that are held. The ring has room for as many used ones, which may repeat, and for as many as the engine
/// may be ahead of the kernel.
pub const MOST_LEAD: usize = VALUES as usize / 4;
/// The length of the ring of values that were fed, a power of two.
pub const VALUES: u32 = 1 << 18;
/// The most ranges of a pattern of losses.
pub const MOST_RANGES: usize = 4096;

/// A direction of a link.
#[derive(Debug)]
pub struct Parameters {
    /// The rate.
    pub rate: Rate,
    /// The delay.
    pub delay: Delay,
    /// Whether packets keep their order.
    pub keeps_order: bool,
    /// The queue.
    pub queue: QueueParameters,
    /// What packets occupy; its numbers are at most [`MOST_OVERHEAD`].
    pub overhead: Overhead,
    /// Loss before the queue, and after the transmission.
    pub losses: [Loss; 2],
    /// How likely a bit of a packet is flipped, and the key of its draws.
    pub corruption: Option<(Probability, [u32; 2])>,
    /// The hash of the port's name in draws ([`narrows_core::port_origin`]).
    pub origin: u32,
    /// The MTU of the sending interface.
    pub mtu: u32,
}

/// The delay of packets.
#[derive(Debug)]
pub enum Delay {
    /// The same for all.
    Constant(Duration),
    /// Drawn for each packet, by its number, ahead of it.
    Drawn(Drawn),
    /// Normal and correlated from packet to packet: all but their state is drawn ahead.
    Correlated(Correlated),
    /// Fed by another process.
    Fed {
        /// The delay of a packet without a value.
        on_empty: OnEmpty,
        /// The most values that are held, at most [`MOST_LEAD`].
        lead: u32,
    },
}

/// Draws delays as the engine does.
#[derive(Debug)]
pub struct Drawn {
    model: Box<dyn DelayModel>,
    stream: Stream,
    origin: u32,
}

impl Drawn {
    /// Delays by a model, with these draws, for packets of a port. `None` if it depends on more than its draws.
    pub fn new(model: Box<dyn DelayModel>, stream: Stream, origin: u32) -> Option<Self> {
        model.drawn(&mut stream.nth(0))?;
        Some(Self { model, stream, origin })
    }

    /// The delay of the packet with this number, in nanoseconds.
    pub fn of(&self, number: u64) -> u64 {
        let mut draw = self.stream.draw(self.origin, number, 0, 0);
        self.model.drawn(&mut draw).unwrap_or_default().nanos()
    }
}

/// Draws what is new in each correlated delay, as the engine does.
#[derive(Debug)]
pub struct Correlated {
    plan: CorrelatedPlan,
    stream: Stream,
    origin: u32,
}

impl Correlated {
    /// Delays of a process, with these draws, for packets of a port.
    pub const fn new(plan: CorrelatedPlan, stream: Stream, origin: u32) -> Self {
        Self { plan, stream, origin }
    }

    /// The bits of the new number of the packet with this number.
    pub fn of(&self, number: u64) -> u64 {
        CorrelatedPlan::new_number(&mut self.stream.draw(self.origin, number, 0, 0)).to_bits()
    }
}

/// The lengths of rings, in packets: powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Packets inside the link.
    pub slots: u32,
    /// Records that were not read yet, departures, and delays that were drawn ahead.
    pub records: u32,
    /// Decisions that were not looked at yet.
    pub decisions: u32,
}

impl Room {
    /// The room of each direction, of so many: 25 MiB for two, less of each for more.
    pub const fn of(directions: usize) -> Self {
        let less = match directions {
            0..=2 => 0,
            3..=8 => 2,
            _ => 4,
        };
        // At 10 Gbit/s and 1500 bytes, the slots of two directions are 157 ms; at a million packets a second, the records 65 ms. While a
        // packet waits, so many others as there is room for decisions may come.
        Self { slots: 1 << (17 - less), records: 1 << (16 - less), decisions: 1 << (18 - less / 2) }
    }
}

impl Parameters {
    /// How they lie in memory.
    pub fn bytes(&self, room: Room) -> Vec<u8> {
        let mut bytes = Bytes::default();
        // The least value of others is not known.
        let (delay, delays, on_empty, lead) = match &self.delay {
            Delay::Constant(delay) => (delay.nanos(), 0, OnEmpty::Zero, 0),
            Delay::Drawn(_) => (0, 1, OnEmpty::Zero, 0),
            Delay::Fed { on_empty, lead } => (0, 2, *on_empty, *lead),
            Delay::Correlated(_) => (0, 3, OnEmpty::Zero, 0),
        };
        let on_empty = match on_empty {
            OnEmpty::Zero => 0,
            OnEmpty::Last => 1,
            OnEmpty::Repeat => 2,
            OnEmpty::Drop => 3,
        };
        bytes.long(self.rate.bits_per_second());
        bytes.long(delay);
        let cells = self.overhead.cells;
        for word in [
            delays,
            u32::from(self.keeps_order),
            self.origin,
            self.overhead.extra as u32,
            self.overhead.minimum,
            u32::from(self.overhead.link_header),
            cells.map_or(0, |cells| cells.payload),
            cells.map_or(0, |cells| cells.size),
            self.mtu,
            room.slots,
            self.queue.rules.len() as u32, // at most MOST_RULES
            on_empty,
            lead,
            u32::from(self.queue.marks()),
        ] {
            bytes.word(word);
        }
        let (corrupts, key) = self.corruption.unwrap_or((Probability::ZERO, [0; 2]));
        bytes.long(corrupts.raw());
        key.into_iter().for_each(|half| bytes.word(half));
        let process = match &self.delay {
            Delay::Correlated(Correlated { plan, .. }) => {
                [plan.correlation, plan.innovation, plan.mean, plan.sd]
            }
            _ => [0.0; 4],
        };
        process.into_iter().for_each(|number| bytes.double(number));
        for loss in &self.losses {
            loss.put(&mut bytes);
        }
        self.queue.put(&mut bytes);
        bytes.0
    }

    /// Whether its delays are fed.
    pub const fn is_fed(&self) -> bool {
        matches!(self.delay, Delay::Fed { .. })
    }

    /// Whether packets are marked or hit by flipped bits.
    pub fn changes_packets(&self) -> bool {
        self.queue.marks() || self.corruption.is_some()
    }

    /// DBHPD's weights by the backlog, for up to so many packets; nothing if no class needs them.
    pub fn weights(&self, packets: u32) -> Vec<u64> {
        self.queue.weights(packets)
    }
}

/// Two limits, in packets and in bytes, one of which is none.
const fn limits(bound: Bound) -> [u64; 2] {
    match bound {
        Bound::Packets(packets) => [packets, NO_LIMIT],
        Bound::Bytes(bytes) => [NO_LIMIT, bytes.get()],
    }
}

/// Numbers in the order of a structure's fields, in this machine's order of bytes.
#[derive(Debug, Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    fn long(&mut self, number: u64) {
        self.0.extend(number.to_ne_bytes());
    }

    fn double(&mut self, number: f64) {
        self.long(number.to_bits());
    }

    fn word(&mut self, number: u32) {
        self.0.extend(number.to_ne_bytes());
    }

    fn short(&mut self, number: u16) {
        self.0.extend(number.to_ne_bytes());
    }
}
