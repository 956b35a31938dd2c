//! The bound of a queue that is given none: one bandwidth-delay product, with a floor.
//!
//! `⌈rate · RTT / (8 · 1498 bytes)⌉` packets, where RTT is the mean delay of the path that the link lies on,
//! there and back. 1498 bytes are a UDP datagram of 1470 bytes, which is what iperf sends, as an IP packet. Where the
//! rate is unlimited or the link is down there is no product: 1000 packets, as Linux gives an interface. Where no delay
//! is given, a round trip of 100 ms is assumed.
//!
//! The floor is what the rate sends in 10 ms; or 20 packets, where it sends those within 25 ms, and otherwise what it sends in
//! 25 ms; and always 4 packets. Senders of a live run share processors with everything else and bunch: on a short path one
//! product is gone before a sender gets its turn again, and TCP gets half of the rate. `docs/model.md` has the measurements,
//! and `scripts/queue-floor` makes them. Virtual time has no bunching and the same floor, as its verdicts are the same.
//!
//! The default is worked out once, from the values in the file or the flags. It is a part of the network, like a router's
//! memory: a change of rate or delay while the network runs leaves it as it is.
//!
//! Example: 1.5 Mbit/s and 10 ms each way are 30,000 bits, or 2.5 packets of 1498 bytes: the least of 4 counts. 100 Mbit/s and
//! 0.5 ms each way are 8.3 packets: the 84 that leave in 10 ms count.

use narrows_core::queue::Bound;
use narrows_core::{Duration, LinkConfig, Rate};

use crate::units::MOST_PACKETS;

/// Bytes of a packet in the formula.
const PACKET: u128 = 1498;
/// The least number of packets, whatever the rate.
const LEAST: u64 = 4;
/// How long a sender may have to wait for its turn: the queue lasts as long.
const TURN: Duration = Duration::from_millis(10);
/// Two initial windows of TCP (RFC 6928), or a traceroute's packets.
const BURST: u64 = 20;
/// The longest wait that room for a burst may make.
const BURST_WAIT: Duration = Duration::from_millis(25);
/// The round trip where it is not known.
const ASSUMED: Duration = Duration::from_millis(100);

/// A default bound, and how it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultBound {
    /// Packets.
    packets: u64,
    reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    NoRate,
    Product { rate: Rate, round_trip: Duration, assumed: bool, floor: Option<u64> },
}

impl DefaultBound {
    /// For a link without a rate to work one out from.
    pub(crate) const NO_RATE: Self = Self {
        packets: match LinkConfig::DEFAULT_BOUND {
            Bound::Packets(packets) => packets,
            Bound::Bytes(_) => panic!("the engine's default is in packets"),
        },
        reason: Reason::NoRate,
    };

    /// For a link of this rate on a path with this round trip, if it is known.
    pub(crate) fn new(rate: Rate, round_trip: Option<Duration>) -> Self {
        if rate == Rate::UNLIMITED || rate == Rate::DOWN {
            return Self::NO_RATE;
        }
        let assumed = round_trip.is_none();
        let round_trip = round_trip.unwrap_or(ASSUMED);
        let product = packets_in(rate, round_trip);
        let floor = packets_in(rate, BURST_WAIT).min(BURST).max(packets_in(rate, TURN)).max(LEAST);
        let reason = Reason::Product { rate, round_trip, assumed, floor: (product < floor).then_some(floor) };
        Self { packets: product.max(floor).min(MOST_PACKETS), reason }
    }

    /// What it was before it had a floor for senders that bunch.
    pub(crate) fn without_floor(self) -> Self {
        let Reason::Product { rate, round_trip, assumed, .. } = self.reason else { return self };
        let product = packets_in(rate, round_trip);
        let floor = (product < LEAST).then_some(LEAST);
        let reason = Reason::Product { rate, round_trip, assumed, floor };
        Self { packets: product.clamp(LEAST, MOST_PACKETS), reason }
    }

    /// The bound.
    pub const fn bound(self) -> Bound {
        Bound::Packets(self.packets)
    }
}

/// How many packets a rate sends in that time, one that has begun included.
fn packets_in(rate: Rate, time: Duration) -> u64 {
    // Less than 2^64 · 2^64.
    let bits_e9 = u128::from(rate.bits_per_second()) * u128::from(time.nanos());
    u64::try_from(bits_e9.div_ceil(8 * PACKET * 1_000_000_000)).unwrap_or(MOST_PACKETS)
}

/// How it came about.
impl std::fmt::Display for DefaultBound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.reason {
            Reason::NoRate => write!(f, "default without a rate"),
            Reason::Product { rate, round_trip, assumed, floor } => {
                write!(f, "default: one bandwidth-delay product, {rate} × {round_trip} round trip")?;
                if assumed {
                    write!(f, " (assumed, as no delay is given)")?;
                }
                if let Some(floor) = floor {
                    write!(f, ", but at least {floor}")?;
                    if floor > LEAST {
                        write!(f, " because senders send in bursts")?;
                    }
                }
                write!(f, ", in packets of {PACKET} bytes")
            }
        }
    }
}
