//! The queue in front of a link's transmitter.
//!
//! Implement [`Queue`] to add a queueing discipline. A scheduler is one, too: it keeps several queues and chooses
//! among them. The link calls a queue with scheduled instants, never with the instant of a poll. The queue holds only
//! packets that wait for the transmitter, not those on the wire or in the delay line.

pub(crate) mod context;
mod fifo;
mod masked;
mod plan;
mod policy;
mod stand;

pub use context::{Context, Drops};
pub use fifo::{DropAt, Fifo};
pub use masked::{FlowSetCounts, MaskedFlow};
pub use plan::{ClassesPlan, FifoPlan};
pub use policy::{Aqm, AqmSettings, Judgement, Waiting};
pub use stand::Stand;

use alloc::vec::Vec;
use core::fmt;

use crate::class::{ClassSettings, ClassState, Refused, Weight};
use crate::classify::Classifier;
use crate::counters::Tally;
use crate::model::Feed;
use crate::pool::{PacketList, PacketRef, Pool};
use crate::service::Overhead;
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};

/// Holds packets until the transmitter is free.
pub trait Queue: fmt::Debug + Send {
    /// Enqueues a packet that arrives at `now`. May drop or mark this packet or others: [`Context::drop`],
    /// [`Context::mark`].
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>);

    /// Enqueues a packet that arrives at `now` while the transmitter is free, and returns what to send next.
    /// Equivalent to [`Queue::enqueue`] followed by [`Queue::dequeue`], which is the default. Override it if there is
    /// a faster path.
    fn pass(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) -> Dequeue {
        self.enqueue(now, packet, context);
        self.dequeue(now, context)
    }

    /// Returns the packet to send next, if one may be sent. The transmitter is free at `now`. May drop packets.
    ///
    /// After [`Dequeue::NotBefore`] it is called again at that instant, after every enqueue, after a reconfiguration,
    /// and whenever the rate of a service curve that varies by itself has changed.
    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue;

    /// The packets and bytes that wait here.
    fn backlog(&self) -> Backlog;

    /// Sets the bound. Packets that already wait stay, even beyond a smaller bound.
    fn set_bound(&mut self, bound: Bound);

    /// The current bound.
    fn bound(&self) -> Bound;

    /// Removes and returns all waiting packets in order of arrival. Called when a queue of another kind replaces this
    /// one.
    ///
    /// A queue with several classes cannot tell the order of packets that arrived at the same instant in different
    /// classes. It returns these in class order.
    fn take_all(&mut self, pool: &mut Pool) -> PacketList;

    /// Takes over the packets of the queue that this one replaces. No bound applies. [`PacketState::entered`] is the
    /// instant at which each packet began to wait.
    ///
    /// [`PacketState::entered`]: crate::PacketState::entered
    fn adopt(&mut self, now: Time, packets: PacketList, context: &mut Context<'_>);

    /// Sets what the queue feeds: the transmitter's rate and overhead, from `now` on. Called before the first packet
    /// and whenever the service curve or the overhead changes.
    ///
    /// For a curve that varies by itself, it is called before the first call at which the rate differs
    /// ([`ServiceCurve::next_change`](crate::service::ServiceCurve::next_change)): once for each rate in between, in
    /// order, with the instant at which that rate began. After 64 of these, it is called once with the mean rate of
    /// the rest and once with the present rate.
    fn set_wire(&mut self, _now: Time, _wire: Wire) {}

    /// The queue itself, moved out, if it is a [`Fifo`]: a link then calls it directly. Any other queue stays as it is
    /// and returns `None`, the default.
    fn take_fifo(&mut self) -> Option<Fifo> {
        None
    }

    /// What it is made of, if it has classes and is of a kind that [`ClassesPlan`] has.
    fn plan(&self) -> Option<ClassesPlan> {
        None
    }

    /// The counters of each class. Empty if the queue has no classes.
    fn classes(&self) -> &[ClassCounters] {
        &[]
    }

    /// The state of each class of a scheduler that reports more than the common counters: see
    /// [`Scheduler::states`](crate::sched::Scheduler::states).
    fn class_states(&self, _now: Time) -> Vec<ClassState> {
        Vec::new()
    }

    /// The flows created by masks that exist at `now`, by set and in order within it; see
    /// [`FlowSets`](crate::sched::FlowSets).
    fn masked_flows(&self, _now: Time) -> Vec<MaskedFlow> {
        Vec::new()
    }

    /// The flow counts of each set, where masks create flows.
    fn flow_sets(&self) -> Vec<FlowSetCounts> {
        Vec::new()
    }

    /// Changes the weight of the class with this number.
    ///
    /// # Errors
    /// If there is no such class, or the scheduler does not accept the weight. Then nothing has changed.
    fn set_weight(&mut self, _now: Time, _class: usize, _weight: Weight) -> Result<(), Refused> {
        Err(Refused::NoClass)
    }

    /// Changes the scheduler-specific parameters of the class with this number.
    ///
    /// # Errors
    /// If there is no such class, or the scheduler does not accept the parameters. Then nothing has changed.
    fn set_class(&mut self, _now: Time, _class: usize, _settings: ClassSettings) -> Result<(), Refused> {
        Err(Refused::NoClass)
    }

    /// Replaces the rules that sort packets into the existing classes, from the next arrival on.
    ///
    /// # Errors
    /// If the queue has no classes, or the rules name a class that does not exist. Then nothing has changed.
    fn set_classifier(&mut self, _classifier: Classifier) -> Result<(), Refused> {
        Err(Refused::NoClass)
    }

    /// Whether it looks at [headers](crate::Headers) that are not in a flow key. The network then keeps them. A queue with
    /// nested queues asks these, too.
    fn looks_at_headers(&self) -> bool {
        false
    }

    /// Whether it looks at the [options](crate::TcpOptions) of TCP segments. The network then keeps them, and headers. A queue
    /// with nested queues asks these, too.
    fn looks_at_tcp_options(&self) -> bool {
        false
    }

    /// Visits the feeds that its delays come from, always in the same order. A queue with nested queues visits theirs.
    /// [`Engine::feed`](crate::Engine::feed) finds them by their names, after those of the link's delay model.
    fn each_feed(&mut self, _visit: &mut dyn FnMut(&mut Feed)) {}

    /// As [`Queue::each_feed`], read-only.
    fn view_feeds<'a>(&'a self, _visit: &mut dyn FnMut(&'a Feed)) {}
}

/// What a queue feeds: the transmitter's present rate, and the overhead of a packet there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Rate in bits per second.
    pub rate: Rate,
    /// How many bits a packet takes on the wire.
    pub overhead: Overhead,
}

/// Counters of one class of a queue. `arrived = sent + dropped + waiting`. If another queue replaces this one, its
/// counters start from zero, and the packets that it takes over count as arrived there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Arrived at this class.
    pub arrived: Tally,
    /// Sent to the transmitter.
    pub sent: Tally,
    /// Dropped by the class's bound or by queue management, on arrival or later.
    pub dropped: Tally,
    /// Acknowledgements among those dropped, because a later one made them redundant.
    pub redundant: u64,
    /// Marked here with "congestion experienced".
    pub marked: u64,
    /// Sum of the waiting times of all packets sent.
    pub waited: Duration,
    /// Longest waiting time of a packet sent.
    pub longest_wait: Duration,
}

/// The answer to [`Queue::dequeue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// Send this packet.
    Packet(PacketRef),
    /// This packet's transmission began at the given instant and ends now. It leaves at once, whatever the transmitter's
    /// rate.
    Ended(PacketRef, Time),
    /// Packets wait, but none may be sent before this instant, which is later than `now`.
    NotBefore(Time),
    /// No packet waits.
    Empty,
}

/// The backlog: how much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Bytes from the network header on.
    pub bytes: u64,
}

/// The maximum backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// This many packets.
    Packets(u64),
    /// This many bytes, counted from the network header on.
    Bytes(Bytes),
}

impl Bound {
    /// Whether a packet of `length` bytes fits on top of this backlog.
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
