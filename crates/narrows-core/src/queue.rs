//! Where packets wait for the transmitter.
//!
//! [`Queue`] is an open seam: a queue management policy is one type that implements it, and so is a scheduler, which
//! keeps several queues and chooses among them. The link calls it with scheduled instants, never with the time of a
//! poll, and only for packets that truly wait: what is on the wire or in the delay line is not the queue's business.

pub(crate) mod context;
mod fifo;
mod masked;
mod policy;
mod stand;

pub use context::{Context, Drops};
pub use fifo::{DropAt, Fifo};
pub use masked::{FlowSetCounts, MaskedFlow};
pub use policy::{Aqm, Judgement, Waiting};
pub use stand::Stand;

use alloc::vec::Vec;
use core::fmt;

use crate::class::{ClassSettings, ClassState, Refused, Weight};
use crate::classify::Classifier;
use crate::counters::Tally;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::service::Overhead;
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};

/// Packets wait here until the transmitter is free.
pub trait Queue: fmt::Debug + Send {
    /// Takes a packet that arrives at `now`. It may drop this packet or others, or mark them: [`Context::drop`],
    /// [`Context::mark`].
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>);

    /// Takes a packet that arrives at `now` while the transmitter is free, and says what to send next: the same as
    /// [`Queue::enqueue`] and then [`Queue::dequeue`], for queues that have a shorter way.
    fn pass(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) -> Dequeue {
        self.enqueue(now, packet, context);
        self.dequeue(now, context)
    }

    /// The transmitter is free at `now`: the packet to send next, if one may go. Called again at the instant of
    /// [`Dequeue::NotBefore`], at any enqueue and at a reconfiguration, and, after a [`Dequeue::NotBefore`], whenever the
    /// rate of a curve that varies by itself has become another. May drop packets on the way.
    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue;

    /// What waits here.
    fn backlog(&self) -> Backlog;

    /// Sets the bound. Packets that wait already stay, even beyond a smaller bound.
    fn set_bound(&mut self, bound: Bound);

    /// The bound in force.
    fn bound(&self) -> Bound;

    /// Hands over everything that waits, in order of arrival, when the queue is replaced by one of another kind. A queue of
    /// several classes no longer knows which of two packets came first if they came at one instant to different classes;
    /// these go by class.
    fn take_all(&mut self, pool: &mut Pool) -> PacketList;

    /// Takes over what waited in the queue that this one replaces; no bound applies. [`PacketState::entered`] has the
    /// instant at which each began to wait.
    ///
    /// [`PacketState::entered`]: crate::PacketState::entered
    fn adopt(&mut self, now: Time, packets: PacketList, context: &mut Context<'_>);

    /// What the queue feeds is now this. Called before the first packet, whenever the service curve or the overhead is
    /// changed, and, where a curve varies by itself, before the first call for which its rate is another
    /// ([`ServiceCurve::next_change`](crate::service::ServiceCurve::next_change)): once for each rate that there was meanwhile,
    /// from when on it was, in order; after 64 of these, once for the mean rate of the rest and once for the present one.
    fn set_wire(&mut self, _now: Time, _wire: Wire) {}

    /// What each class has counted, where the queue has classes.
    fn classes(&self) -> &[ClassCounters] {
        &[]
    }

    /// Where the classes of a scheduler stand that tells more of them than what all count: see
    /// [`Scheduler::states`](crate::sched::Scheduler::states).
    fn class_states(&self, _now: Time) -> Vec<ClassState> {
        Vec::new()
    }

    /// The flows that masks have made and that are there at `now`, by set and in their order; see
    /// [`FlowSets`](crate::sched::FlowSets).
    fn masked_flows(&self, _now: Time) -> Vec<MaskedFlow> {
        Vec::new()
    }

    /// What has become of the flows of each set, where masks make flows.
    fn flow_sets(&self) -> Vec<FlowSetCounts> {
        Vec::new()
    }

    /// Gives the class of that number another weight.
    ///
    /// # Errors
    /// When there is no such class or its scheduler does not take the weight; then nothing has changed.
    fn set_weight(&mut self, _now: Time, _class: usize, _weight: Weight) -> Result<(), Refused> {
        Err(Refused::NoClass)
    }

    /// Gives the class of that number other parameters of its scheduler's own.
    ///
    /// # Errors
    /// When there is no such class or its scheduler does not take them; then nothing has changed.
    fn set_class(&mut self, _now: Time, _class: usize, _settings: ClassSettings) -> Result<(), Refused> {
        Err(Refused::NoClass)
    }

    /// Sorts packets into the same classes by other rules, from the next arrival on.
    ///
    /// # Errors
    /// When there are no classes, or none of a number that the rules name; then nothing has changed.
    fn set_classifier(&mut self, _classifier: Classifier) -> Result<(), Refused> {
        Err(Refused::NoClass)
    }
}

/// What a queue feeds: how fast the transmitter is at present, and what a packet costs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Bits a second.
    pub rate: Rate,
    /// How many bits a packet is.
    pub overhead: Overhead,
}

/// What one class of a queue has counted. `arrived = sent + dropped + waiting`. Another queue in its place begins anew,
/// and what it takes over has arrived there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Came to this class.
    pub arrived: Tally,
    /// Went to the transmitter.
    pub sent: Tally,
    /// Dropped by the class's bound or by queue management, when coming or while waiting.
    pub dropped: Tally,
    /// Marked with "congestion experienced", here.
    pub marked: u64,
    /// The time that those sent had waited, added up.
    pub waited: Duration,
    /// The longest time that one of those had waited.
    pub longest_wait: Duration,
}

/// The answer to [`Queue::dequeue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// Send this one.
    Packet(PacketRef),
    /// Packets wait, but none may go before that instant, which lies in the future.
    NotBefore(Time),
    /// Nothing waits.
    Empty,
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Bytes from the network header on.
    pub bytes: u64,
}

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// That many packets.
    Packets(u64),
    /// That many bytes, counted from the network header on.
    Bytes(Bytes),
}

impl Bound {
    /// Whether a packet of `length` bytes fits beside what waits already.
    pub const fn admits(self, waiting: Backlog, length: u32) -> bool {
        match self {
            Self::Packets(limit) => waiting.packets < limit,
            Self::Bytes(limit) => waiting.bytes + length as u64 <= limit.get(),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(1) => f.pad("1 packet"),
            Self::Packets(n) => f.pad(&alloc::format!("{n} packets")),
            Self::Bytes(n) => n.fmt(f),
        }
    }
}
