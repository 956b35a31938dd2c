//! What a link counts: every verdict, with its reason.

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

    /// What came since `earlier`.
    pub const fn since(self, earlier: Self) -> Self {
        Self { packets: self.packets - earlier.packets, bytes: self.bytes - earlier.bytes }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// Lost at the entrance of the link, before its queue.
    IngressLoss,
    /// The queue's bound was reached.
    QueueFull,
    /// Lost on the wire, after using its transmission time.
    WireLoss,
    /// The delay model, or whoever feeds it, said so.
    DelayModel,
    /// The delay line's limit was reached.
    LineFull,
    /// Longer than the MTU; the sender is told.
    TooLong,
    /// Longer than the MTU, or than the bucket of a shaper, and so never to be sent; nobody is told.
    BlackHole,
    /// It visited more links than it may.
    Loop,
    /// The network held as many bytes as it may, or the packet had as many copies.
    Memory,
    /// Queue management (RED, CoDel, PIE, …) dropped it to say that there is congestion.
    QueueManagement,
    /// It belongs to no class of the scheduler, and there is no default class.
    NoClass,
    /// It came faster than the policer at the entrance of the link lets in.
    Policed,
    /// It collided as often as the medium access protocol retries.
    RetryLimit,
    /// It collided as often as Ethernet tries to send a frame.
    Collisions,
    /// It would have waited longer than its class allows.
    TooLate,
    /// A rule denied it.
    Denied,
    /// A rule gave it the number of a pipe or queue that there is not.
    NoPipe,
    /// No route leads to its destination, or a router got what is not IP.
    NoRoute,
    /// It passed as many routers as its hop limit allows.
    HopLimit,
}

impl DropReason {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 19] = [
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
        Self::Denied,
        Self::NoPipe,
        Self::NoRoute,
        Self::HopLimit,
    ];

    /// How many of them, the first ones, are those of links.
    const OF_LINKS: usize = Self::Denied as usize;

    /// And how many of these any link may have: the others are those of one scheduler each.
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
            Self::Policed => "policed",
            Self::Denied => "denied",
            Self::NoPipe => "no pipe",
            Self::NoRoute => "no route",
            Self::HopLimit => "hop limit",
        }
    }
}

/// The counters of one lane of a link. `arrived + duplicated = left + dropped + inside`, where the pieces of a packet
/// that was cut count as duplicates of it: n pieces are n − 1 more packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Handed to the link.
    pub arrived: Tally,
    /// Packets that the link made itself: duplicates, and all pieces but one of a packet that it cut. The bytes are
    /// those by which the bytes inside grew: for each such piece one more header.
    pub duplicated: Tally,
    /// Out of the delay line.
    pub left: Tally,
    /// Dropped, by reason; see [`Counters::dropped`].
    drops: [Tally; DropReason::OF_ANY_LINK],
    /// The same of what few links have, from the first one on.
    rare: Option<Box<RareDrops>>,
    /// Sent by the transmitter, lost on the wire or not.
    pub sent: Tally,
    /// With at least one bit flipped.
    pub corrupted: u64,
    /// Bits flipped.
    pub flipped: u64,
    /// Marked with "congestion experienced", by the queue or instead of a loss.
    pub marked: u64,
    /// Sent past the delay, so that they may overtake others.
    pub reordered: u64,
    /// Held back in the delay line until those before them had left, because order is kept; they leave at one instant
    /// with another, so this is how much the delay clumps packets that the transmitter had spaced.
    pub held_back: u64,
    /// Packets that the link cut into pieces.
    pub fragmented: u64,
    /// Of the duplicated ones, those that are pieces.
    pub pieces: u64,
    /// The time that packets waited in the queue before they were sent, added up.
    pub waited: Duration,
    /// Bits that the transmitter sent, overhead included.
    pub wire_bits: u64,
    /// The time for which the transmitter was at work on packets of this lane that it has sent.
    pub busy: Duration,
    /// When the first packet and the last one so far arrived. Means nothing before there was one.
    pub arrivals: (Time, Time),
    /// When the first transmission began and the last one so far ended. Means nothing before one has ended.
    pub transmissions: (Time, Time),
    /// When the first packet and the last one so far left. Means nothing before one has left.
    pub departures: (Time, Time),
}

type RareDrops = [Tally; DropReason::OF_LINKS - DropReason::OF_ANY_LINK];

impl Counters {
    /// Counts a packet that is dropped, for one of the reasons of links.
    pub(crate) fn drop_packet(&mut self, reason: DropReason, length: u32) {
        let place = reason as usize;
        match self.drops.get_mut(place) {
            Some(tally) => tally.add(length),
            None => self.rare.get_or_insert_default()[place - DropReason::OF_ANY_LINK].add(length),
        }
    }

    /// All that were dropped, by reason.
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

    /// A transmission ended; to be called before it is counted in [`Counters::sent`].
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

    /// Adds what another link has counted.
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
            (&mut self.held_back, other.held_back),
            (&mut self.fragmented, other.fragmented),
            (&mut self.pieces, other.pieces),
            (&mut self.wire_bits, other.wire_bits),
        ] {
            *own += other;
        }
        self.waited += other.waited;
        self.busy += other.busy;
    }

    /// Packets inside: what came in and was made, and has neither left nor been dropped.
    pub fn inside(&self) -> u64 {
        self.arrived.packets + self.duplicated.packets - self.left.packets - self.dropped_in_all().packets
    }
}
