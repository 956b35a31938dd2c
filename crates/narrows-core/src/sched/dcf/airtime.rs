//! Air time of frames: TXTIME of IEEE 802.11-2007, 18.3.4, and the times derived from it.

use crate::sched::dcf::{Dcf, DcfConfig};
use crate::service::{ConstantRate, ServiceCurve, Work};
use crate::time::{Duration, Time};
use crate::units::Rate;

const MICROSECOND: u64 = 1_000;
/// The link header of a packet, if the overhead counts it.
const ETHERNET_HEADER: u8 = 14;
/// The lengths of control frames (7.2.1).
const ACK_BITS: u64 = 14 * 8;
const CTS_BITS: u64 = 14 * 8;
const RTS_BITS: u64 = 20 * 8;
/// The rate that every station supports.
const LOWEST_RATE: Rate = Rate::from_bits_per_second(1_000_000);

/// Rounds up to whole microseconds. The length of a frame is signalled in whole microseconds.
pub(super) const fn whole_micros(span: Duration) -> Duration {
    Duration::from_micros(span.nanos().div_ceil(MICROSECOND))
}

/// Air time of `bits` at a rate, without the preamble. Zero at a rate of zero, when nothing is sent.
fn at_rate(rate: Rate, bits: u64) -> Duration {
    let finish = ConstantRate(rate).finish(Time::ZERO, Work::bits(bits));
    whole_micros(finish.map_or(Duration::ZERO, |finish| finish.at.since(Time::ZERO)))
}

impl Dcf {
    /// Air time of an acknowledgement.
    pub(super) fn ack(&self) -> Duration {
        self.config.preamble + at_rate(self.control_rate(), ACK_BITS)
    }

    /// From the start of a station's transmission to the start of its PSDU.
    pub(super) fn before_psdu(&self, length: u32) -> Duration {
        let DcfConfig { preamble, sifs, .. } = self.config;
        if !self.is_announced_by_rts(length) {
            return preamble;
        }
        let cts = preamble + at_rate(self.control_rate(), CTS_BITS);
        self.rts() + sifs + cts + sifs + preamble
    }

    /// How long a station that collides sends.
    pub(super) fn collided(&self, length: u32) -> Duration {
        if self.is_announced_by_rts(length) {
            return self.rts();
        }
        self.config.preamble + at_rate(self.wire.rate, self.bits(length))
    }

    /// From the end of a frame until it is known that no acknowledgement follows.
    pub(super) fn ack_timeout(&self) -> Duration {
        self.config.sifs + DcfConfig::LONG_PREAMBLE + at_rate(LOWEST_RATE, ACK_BITS)
    }

    /// From the end of a collision until slots count.
    pub(super) fn eifs(&self) -> Duration {
        self.ack_timeout() + self.config.difs
    }

    fn rts(&self) -> Duration {
        self.config.preamble + at_rate(self.control_rate(), RTS_BITS)
    }

    fn is_announced_by_rts(&self, length: u32) -> bool {
        self.config.rts_threshold.is_some_and(|threshold| self.bits(length) / 8 > threshold.into())
    }

    fn bits(&self, length: u32) -> u64 {
        self.wire.overhead.bits(length, ETHERNET_HEADER)
    }

    fn control_rate(&self) -> Rate {
        match self.wire.rate {
            Rate::DOWN => self.config.basic_rate,
            rate => rate.min(self.config.basic_rate),
        }
    }
}
