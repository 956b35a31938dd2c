//! Counters of a link: arrivals, departures, drops by reason, and what the link did to packets.

use alloc::boxed::Box;

use crate::time::{Duration, Time};

/// Packets and their bytes from the network header on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Bytes from the network header on.
    pub bytes: u64,
}

impl Tally {
    /// Counts a packet.
    pub const fn add(&mut self, length: u32) {
        self.packets += 1;
        self.bytes += length as u64;
    }

    /// The difference to an `earlier` tally.
    pub const fn since(self, earlier: Self) -> Self {
        Self { packets: self.packets - earlier.packets, bytes: self.bytes - earlier.bytes }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// Lost at the ingress of the link, before its queue.
    IngressLoss,
    /// Drop tail: the queue was full.
    QueueFull,
    /// Lost on the wire, after its transmission time.
    WireLoss,
    /// Lost by decision of the delay model or of the feed that supplies its delays.
    DelayModel,
    /// The delay line's limit was reached.
    LineFull,
    /// Longer than the MTU; the sender is notified.
    TooLong,
    /// Longer than the MTU or than a shaper's bucket, so it can never be sent; the sender is not notified.
    BlackHole,
    /// Exceeded the limit on visited links and rule sets.
    Loop,
    /// The network had reached its memory limit, or the packet its limit of copies.
    Memory,
    /// Dropped by active queue management (RED, CoDel, PIE, …) to signal congestion.
    QueueManagement,
    /// It matches no class of the scheduler, and there is no default class.
    NoClass,
    /// It exceeded the rate of a policer at the ingress of the link, or a filter there dropped it.
    Policed,
    /// Reached the retry limit of the medium access protocol.
    RetryLimit,
    /// Reached Ethernet's limit on attempts to send a frame (excessive collisions).
    Collisions,
    /// It would have waited longer than its class allows.
    TooLate,
    /// An acknowledgement that a later one of its connection made redundant, dropped by a filter of acknowledgements.
    RedundantAck,
    /// Denied by a rule.
    Denied,
    /// A rule gave it the number of a pipe or queue that does not exist.
    NoPipe,
    /// No route matches its destination, or a router received a packet that is not IP.
    NoRoute,
    /// Its hop limit was exhausted at a router.
    HopLimit,
    /// A switch had no port to send it to, or a router received a frame that was not addressed to it.
    Filtered,
}

impl DropReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 21] = [
        Self::IngressLoss,
        Self::QueueFull,
        Self::WireLoss,
        Self::DelayModel,
        Self::LineFull,
        Self::TooLong,
        Self::BlackHole,
        Self::Loop,
        Self::Memory,
        Self::QueueManagement,
        Self::NoClass,
        Self::Policed,
        Self::RetryLimit,
        Self::Collisions,
        Self::TooLate,
        Self::RedundantAck,
        Self::Denied,
        Self::NoPipe,
        Self::NoRoute,
        Self::HopLimit,
        Self::Filtered,
    ];

    /// How many reasons, the first ones, belong to links.
    const OF_LINKS: usize = Self::Denied as usize;

    /// How many of these any link may have; each of the others belongs to one scheduler only.
    const OF_ANY_LINK: usize = Self::RetryLimit as usize;

    /// A short name for reports and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IngressLoss => "ingress loss",
            Self::QueueFull => "queue full",
            Self::WireLoss => "wire loss",
            Self::DelayModel => "delay model",
            Self::LineFull => "delay line full",
            Self::TooLong => "too long",
            Self::BlackHole => "black hole",
            Self::Loop => "loop",
            Self::Memory => "memory",
            Self::QueueManagement => "queue management",
            Self::NoClass => "no class",
            Self::RetryLimit => "retry limit",
            Self::Collisions => "collisions",
            Self::TooLate => "too late",
            Self::RedundantAck => "redundant ack",
            Self::Policed => "policed",
            Self::Denied => "denied",
            Self::NoPipe => "no pipe",
            Self::NoRoute => "no route",
            Self::HopLimit => "hop limit",
            Self::Filtered => "filtered",
        }
    }
}

/// The counters of one lane of a link: `arrived + duplicated = left + dropped + inside`. The fragments of a
/// packet count as duplicates of it: n fragments are n − 1 additional packets.
// First what each packet changes: memory to wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Handed to the link.
    pub arrived: Tally,
    /// Left the delay line.
    pub left: Tally,
    /// Sent by the transmitter, including those then lost on the wire.
    pub sent: Tally,
    /// Total time that packets waited in the queue before transmission.
    pub waited: Duration,
    /// Bits that the transmitter sent, overhead included.
    pub wire_bits: u64,
    /// Total transmission time of packets of this lane, counted when each transmission ends.
    pub busy: Duration,
    /// When the first and the latest packet arrived. Meaningless before the first arrival.
    pub arrivals: (Time, Time),
    /// When the first transmission began and the latest one ended. Meaningless before one has ended.
    pub transmissions: (Time, Time),
    /// When the first and the latest packet left. Meaningless before one has left.
    pub departures: (Time, Time),
    /// Packets that the link created: duplicates, and all fragments but one of each packet that it cut. Bytes
    /// are those by which the bytes inside grew: one more header for each such fragment.
    pub duplicated: Tally,
    /// Dropped, by reason; see [`Counters::dropped`].
    drops: [Tally; DropReason::OF_ANY_LINK],
    /// Drops for the reasons that few links have, starting after those in `drops`.
    rare: Option<Box<RareDrops>>,
    /// Packets with at least one flipped bit.
    pub corrupted: u64,
    /// Flipped bits.
    pub flipped: u64,
    /// Marked CE ("congestion experienced") by the queue, or instead of a loss.
    pub marked: u64,
    /// Sent without the delay, so that they may overtake others.
    pub reordered: u64,
    /// Delayed to keep order: due before an earlier packet, so kept in the delay line until that one leaves.
    /// Such packets leave at the same time as another, so this shows how far the delay bunches packets that
    /// the transmitter had spaced.
    pub delayed_to_keep_order: u64,
    /// Packets that the link fragmented.
    pub fragmented: u64,
    /// Fragments among the duplicated packets.
    pub pieces: u64,
}

type RareDrops = [Tally; DropReason::OF_LINKS - DropReason::OF_ANY_LINK];

impl Counters {
    /// Counts a packet that is dropped for one of the reasons of links.
    pub(crate) fn drop_packet(&mut self, reason: DropReason, length: u32) {
        let place = reason as usize;
        match self.drops.get_mut(place) {
            Some(tally) => tally.add(length),
            None => self.rare.get_or_insert_default()[place - DropReason::OF_ANY_LINK].add(length),
        }
    }

    /// All drops, by reason.
    fn all_drops(&self) -> impl Iterator<Item = &Tally> {
        self.drops.iter().chain(self.rare.iter().flat_map(|rare| rare.iter()))
    }

    pub(crate) fn arrive(&mut self, now: Time, length: u32) {
        if self.arrived.packets == 0 {
            self.arrivals.0 = now;
        }
        self.arrivals.1 = now;
        self.arrived.add(length);
    }

    pub(crate) fn depart(&mut self, now: Time, length: u32) {
        if self.left.packets == 0 {
            self.departures.0 = now;
        }
        self.departures.1 = now;
        self.left.add(length);
    }

    /// Counts the end of a transmission. Call this before counting the packet in [`Counters::sent`].
    pub(crate) fn finish(&mut self, began: Time, now: Time, bits: u64) {
        if self.sent.packets == 0 {
            self.transmissions.0 = began;
        }
        self.transmissions.1 = now;
        self.busy += now.since(began);
        self.wire_bits += bits;
    }

    /// Packets dropped for one reason.
    pub fn dropped(&self, reason: DropReason) -> Tally {
        self.all_drops().nth(reason as usize).copied().unwrap_or_default()
    }

    /// Packets dropped for any reason.
    pub fn dropped_in_all(&self) -> Tally {
        let sum = |all: Tally, one: &Tally| Tally {
            packets: all.packets + one.packets,
            bytes: all.bytes + one.bytes,
        };
        self.all_drops().fold(Tally::default(), sum)
    }

    /// Adds the counters of another link.
    pub(crate) fn absorb(&mut self, other: &Self) {
        let span = |own: (Time, Time), any: bool, others: (Time, Time), other: bool| match (any, other) {
            (true, true) => (own.0.min(others.0), own.1.max(others.1)),
            (false, true) => others,
            _ => own,
        };
        let any = |own: Tally| own.packets > 0;
        self.arrivals = span(self.arrivals, any(self.arrived), other.arrivals, any(other.arrived));
        self.transmissions = span(self.transmissions, any(self.sent), other.transmissions, any(other.sent));
        self.departures = span(self.departures, any(self.left), other.departures, any(other.left));
        if let Some(other) = &other.rare {
            for (own, other) in self.rare.get_or_insert_default().iter_mut().zip(other.iter()) {
                own.packets += other.packets;
                own.bytes += other.bytes;
            }
        }
        for (own, other) in [
            (&mut self.arrived, other.arrived),
            (&mut self.duplicated, other.duplicated),
            (&mut self.left, other.left),
            (&mut self.sent, other.sent),
        ]
        .into_iter()
        .chain(self.drops.iter_mut().zip(other.drops))
        {
            own.packets += other.packets;
            own.bytes += other.bytes;
        }
        for (own, other) in [
            (&mut self.corrupted, other.corrupted),
            (&mut self.flipped, other.flipped),
            (&mut self.marked, other.marked),
            (&mut self.reordered, other.reordered),
            (&mut self.delayed_to_keep_order, other.delayed_to_keep_order),
            (&mut self.fragmented, other.fragmented),
            (&mut self.pieces, other.pieces),
            (&mut self.wire_bits, other.wire_bits),
        ] {
            *own += other;
        }
        self.waited += other.waited;
        self.busy += other.busy;
    }

    /// Packets inside: arrived or created here, and neither left nor dropped.
    pub fn inside(&self) -> u64 {
        self.arrived.packets + self.duplicated.packets - self.left.packets - self.dropped_in_all().packets
    }
}
