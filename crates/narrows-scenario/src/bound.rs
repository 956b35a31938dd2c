//! Default bound of a queue: one bandwidth-delay product, with a floor.
//!
//! The product is `⌈rate · RTT / (8 · 1498 bytes)⌉` packets. RTT is the mean round-trip delay of the path
//! that contains the link. 1498 bytes is the IP packet size of a 1470-byte UDP datagram, iperf's default.
//! If the rate is unlimited or the link is down there is no product, and the bound is 1000 packets, the
//! Linux default for an interface. If no delay is given, RTT is 100 ms.
//!
//! The floor is the number of packets that the rate sends in 10 ms. If that is below 20 packets, the floor
//! is 20 packets where the rate sends them within 25 ms, and what it sends in 25 ms otherwise. It is never
//! below 4 packets. Reason: senders of a live run share processors with other work and therefore send in
//! bursts. On a short path, a queue of one product drains before a sender runs again, and TCP gets half of
//! the rate. `docs/model.md` has the measurements; `scripts/queue-floor` reproduces them. Virtual time has
//! no such bursts but uses the same floor, so that both modes give the same verdicts.
//!
//! The default is computed once, from the values in the file or the flags. It belongs to the network, like
//! a router's memory: changing the rate or the delay of a running network does not change it.
//!
//! Examples: 1.5 Mbit/s and 10 ms each way give 30,000 bits, or 2.5 packets of 1498 bytes; the minimum of 4
//! applies. 100 Mbit/s and 0.5 ms each way give 8.3 packets; the 84 packets sent in 10 ms apply.

use narrows_core::queue::Bound;
use narrows_core::{Duration, LinkConfig, Rate};

use crate::units::MOST_PACKETS;

/// Packet size in the formula, in bytes.
const PACKET: u128 = 1498;
/// Minimum number of packets at any rate.
const LEAST: u64 = 4;
/// Longest run-queue wait of a sender that the queue must cover.
const TURN: Duration = Duration::from_millis(10);
/// Burst size in packets: two initial windows of TCP (RFC 6928), or the packets of a traceroute.
const BURST: u64 = 20;
/// Longest queueing delay that room for a burst may add.
const BURST_WAIT: Duration = Duration::from_millis(25);
/// Round-trip time if the path's is unknown.
const ASSUMED: Duration = Duration::from_millis(100);

/// A default bound and its derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultBound {
    /// The bound in packets.
    packets: u64,
    reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    NoRate,
    Product { rate: Rate, round_trip: Duration, assumed: bool, floor: Option<u64> },
}

impl DefaultBound {
    /// Default for a link without a finite rate.
    pub(crate) const NO_RATE: Self = Self {
        packets: match LinkConfig::DEFAULT_BOUND {
            Bound::Packets(packets) => packets,
            Bound::Bytes(_) => panic!("the engine's default is in packets"),
        },
        reason: Reason::NoRate,
    };

    /// Default for a link with this rate on a path with this round-trip time, if known.
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

    /// The default without the floor for bursty senders, as earlier versions computed it.
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

/// Packets that `rate` sends in `time`, rounded up.
fn packets_in(rate: Rate, time: Duration) -> u64 {
    // Less than 2^64 · 2^64.
    let bits_e9 = u128::from(rate.bits_per_second()) * u128::from(time.nanos());
    u64::try_from(bits_e9.div_ceil(8 * PACKET * 1_000_000_000)).unwrap_or(MOST_PACKETS)
}

/// How the bound was derived, in words.
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
