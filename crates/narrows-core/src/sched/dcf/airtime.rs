//! Air time of frames: TXTIME of IEEE 802.11-2007, 18.3.4, and the times derived from it.

use crate::queue::Wire;
use crate::sched::dcf::DcfConfig;
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

/// Transmission time of `bits`, in whole nanoseconds. Zero at a rate of zero, when nothing is sent.
fn at_rate(rate: Rate, bits: u64) -> Duration {
    let finish = ConstantRate(rate).finish(Time::ZERO, Work::bits(bits));
    finish.map_or(Duration::ZERO, |finish| finish.at.since(Time::ZERO))
}

/// The parameters of a DCF on a wire, which give the times of frames. A station's `rate` is that of its PSDUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phy {
    pub(super) config: DcfConfig,
    pub(super) wire: Wire,
}

impl Phy {
    /// The rate of the PSDUs of a station with this rate of its own, which is at most the wire's.
    pub(super) fn rate(&self, own: Option<Rate>) -> Rate {
        own.map_or(self.wire.rate, |own| own.min(self.wire.rate))
    }

    /// Air time of a PSDU, without the preamble.
    pub(super) fn psdu(&self, length: u32, rate: Rate) -> Duration {
        whole_micros(at_rate(rate, self.bits(length)))
    }

    /// Air time of a data frame.
    pub(super) fn data(&self, length: u32, rate: Rate) -> Duration {
        self.config.preamble + self.psdu(length, rate)
    }

    /// Air time of an acknowledgement.
    pub(super) fn ack(&self, rate: Rate) -> Duration {
        self.control(ACK_BITS, rate)
    }

    pub(super) fn rts(&self, rate: Rate) -> Duration {
        self.control(RTS_BITS, rate)
    }

    pub(super) fn cts(&self, rate: Rate) -> Duration {
        self.control(CTS_BITS, rate)
    }

    /// From the start of a station's transmission to the start of its PSDU.
    pub(super) fn before_psdu(&self, length: u32, rate: Rate) -> Duration {
        let DcfConfig { preamble, sifs, .. } = self.config;
        if !self.is_announced_by_rts(length) {
            return preamble;
        }
        self.rts(rate) + sifs + self.cts(rate) + sifs + preamble
    }

    /// How long a station that collides sends.
    pub(super) fn collided(&self, length: u32, rate: Rate) -> Duration {
        if self.is_announced_by_rts(length) {
            return self.rts(rate);
        }
        self.data(length, rate)
    }

    /// From the end of a frame until it is known that no acknowledgement follows.
    pub(super) fn ack_timeout(&self) -> Duration {
        let ack = whole_micros(at_rate(LOWEST_RATE, ACK_BITS));
        self.config.sifs + DcfConfig::LONG_PREAMBLE + ack
    }

    /// From the end of a collision until slots count.
    pub(super) fn eifs(&self) -> Duration {
        self.ack_timeout() + self.config.difs
    }

    pub(super) fn is_announced_by_rts(&self, length: u32) -> bool {
        self.config.rts_threshold.is_some_and(|threshold| self.bits(length) / 8 > threshold.into())
    }

    fn control(&self, bits: u64, rate: Rate) -> Duration {
        self.config.preamble + whole_micros(at_rate(self.control_rate(rate), bits))
    }

    fn bits(&self, length: u32) -> u64 {
        self.wire.overhead.bits(length, ETHERNET_HEADER)
    }

    fn control_rate(&self, rate: Rate) -> Rate {
        match rate {
            Rate::DOWN => self.config.basic_rate,
            rate => rate.min(self.config.basic_rate),
        }
    }
}
